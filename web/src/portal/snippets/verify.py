"""Respond 401 if verify(secret, request.headers, body) is false. The body is the bytes received, not parsed JSON."""
import base64
import hashlib
import hmac
import time

TOLERANCE_SECONDS = 300


def verify(secret, headers, body):
    event_id = headers.get("webhook-id")
    timestamp = headers.get("webhook-timestamp")
    signatures = headers.get("webhook-signature")
    if not event_id or not timestamp or not signatures:
        return False
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    message = f"{event_id}.{timestamp}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.digest(key, message, hashlib.sha256))
    # There are several signatures while the secret is being rotated; one match is enough.
    return any(hmac.compare_digest(signature.encode(), expected) for signature in signatures.split(" "))
