// Respond 401 if verify(secret, request.headers, body) is false. The body is the Buffer that was received, not parsed JSON.
import { createHmac, timingSafeEqual } from "node:crypto";

const toleranceSeconds = 300;

function isEqual(left, right) {
  const [a, b] = [Buffer.from(left), Buffer.from(right)];
  return a.length === b.length && timingSafeEqual(a, b);
}

export function verify(secret, headers, body) {
  const id = headers["webhook-id"];
  const timestamp = headers["webhook-timestamp"];
  const signatures = headers["webhook-signature"];
  if (!id || !timestamp || !signatures) return false;
  const age = Math.abs(Date.now() / 1000 - Number(timestamp));
  if (!(age <= toleranceSeconds)) return false; // also if it is not a number
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const digest = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
  // There are several signatures while the secret is being rotated; one match is enough.
  return signatures.split(" ").some((signature) => isEqual(signature, `v1,${digest}`));
}
