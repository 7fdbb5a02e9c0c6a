"""Senders of inbound webhooks, signing by hand as each provider's documentation says."""

import base64
import hashlib
import hmac
import json
import time

STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def _mac(key, text, digest=hashlib.sha256):
    return hmac.new(key if isinstance(key, bytes) else key.encode(), text, digest).digest()


def standard(secret, message_id, body, at=None, family="webhook"):
    at = int(time.time()) if at is None else at
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signature = base64.b64encode(_mac(key, f"{message_id}.{at}.".encode() + body)).decode()
    return {f"{family}-id": message_id, f"{family}-timestamp": str(at), f"{family}-signature": f"v1,{signature}"}


def stripe(secret, body, at=None):
    at = int(time.time()) if at is None else at
    return {"stripe-signature": f"t={at},v1={_mac(secret, f'{at}.'.encode() + body).hex()}"}


def github(secret, delivery, body, event="push"):
    return {"x-hub-signature-256": "sha256=" + _mac(secret, body).hex(), "x-github-delivery": delivery,
            "x-github-event": event}


def shopify(secret, webhook_id, body, topic="orders/create"):
    return {"x-shopify-hmac-sha256": base64.b64encode(_mac(secret, body)).decode(), "x-shopify-webhook-id": webhook_id,
            "x-shopify-topic": topic}


def slack(secret, body, at=None):
    at = int(time.time()) if at is None else at
    return {"x-slack-request-timestamp": str(at), "x-slack-signature": "v0=" + _mac(secret, f"v0:{at}:".encode() + body).hex()}


def twilio(token, url, parameters):
    """`parameters` are those of a form; for a JSON body, give none and a URL with bodySHA256."""
    text = url + "".join(name + value for name, value in sorted(parameters.items()))
    return {"x-twilio-signature": base64.b64encode(_mac(token, text.encode(), hashlib.sha1)).decode()}


def event(**fields):
    return json.dumps(fields).encode()
