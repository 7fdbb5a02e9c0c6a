// npm install standardwebhooks
// Respond 401 if verify(secret, request.headers, body) is false. The body is the Buffer that was received, not parsed JSON.
import { Webhook, WebhookVerificationError } from "standardwebhooks";

export function verify(secret, headers, body) {
  try {
    new Webhook(secret).verify(body, headers);
    return true;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false;
    throw error;
  }
}
