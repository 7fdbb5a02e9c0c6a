"""pip install standardwebhooks

Respond 401 if verify(secret, request.headers, body) is false. The body is the bytes that were received, not parsed JSON.
"""
from standardwebhooks.webhooks import Webhook, WebhookVerificationError


def verify(secret, headers, body):
    try:
        Webhook(secret).verify(body, dict(headers))
    except (WebhookVerificationError, ValueError):  # ValueError: a signature that is not base64
        return False
    return True
