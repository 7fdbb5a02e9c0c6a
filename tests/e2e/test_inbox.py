"""Inbound webhooks: verified at the door, stored once, worked on later."""

import json
import time
import urllib.parse

import psycopg2
import pytest

from harness import senders
from harness.wait import wait_until

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def make_source(node, source, provider="standard", **fields):
    if provider in ("standard", "svix"):
        fields.setdefault("secret", SECRET)
    return node.api.post("/v1/sources", {"id": source, "provider": provider, **fields}).expect(201)


def send(node, source, body, headers, query=""):
    headers = {"content-type": "application/json", **headers}
    return node.api.as_key(None).call("POST", f"/in/{source}{query}", body, headers=headers)


def send_standard(node, source, message_id, body=b'{"n":1}', **more):
    return send(node, source, body, senders.standard(SECRET, message_id, body, **more))


def rows(node, source):
    return node.sql("select count(*) from postrider.inbox where source_id = %s", [source])[0][0]


def test_a_verified_message_is_stored_once_with_its_exact_bytes(node):
    make_source(node, "shop")
    body = '{"big": 12345678901234567890123, "text": "\\u0000 ä"}'.encode()
    for _ in range(3):
        assert send_standard(node, "shop", "msg_1", body).status == 200
    stored = node.sql("select provider_id, body, headers->>'webhook-id' from postrider.inbox where source_id = 'shop'")
    assert stored == [("msg_1", body.decode(), "msg_1")]


def test_what_is_not_verified_is_refused_and_only_operators_learn_why(node):
    make_source(node, "strict-door")
    late = send_standard(node, "strict-door", "msg_1", at=int(time.time()) - 412)
    forged = send(node, "strict-door", b"{}", senders.standard(SECRET, "msg_2", b'{"other":1}'))
    assert (late.status, forged.status) == (401, 401)
    told = [{name: value for name, value in answer.json.items() if name != "request_id"} for answer in (late, forged)]
    assert told[0] == told[1]

    def rejections():
        listed = node.api.get("/v1/sources/strict-door").expect(200)["rejections"]
        return {entry["reason"]: entry for entry in listed} if len(listed) == 2 else None

    seen = wait_until(rejections, "the rejections are written down")
    assert seen["timestamp_old"]["last_detail"].startswith("timestamp 41")
    assert seen["signature_mismatch"]["last_detail"] == "the active secret does not match"
    assert rows(node, "strict-door") == 0
    assert 'webhook_inbox_rejected_total{reason="timestamp_old"} 1' in node.api.get("/metrics").body.decode()


def test_an_unknown_source_is_not_found(node):
    assert send_standard(node, "nobody", "msg_1").status == 404


def test_during_a_rotation_both_secrets_are_taken(node):
    make_source(node, "rotating")
    path = "/v1/sources/rotating/secrets"
    new = node.api.post(f"{path}/rotate", {"overlap_seconds": 600}).expect(201)["secret"]
    for message_id, secret in (("old", SECRET), ("new", new)):
        body = b"{}"
        assert send(node, "rotating", body, senders.standard(secret, message_id, body)).status == 200
    old = [secret for secret in node.api.get(path).expect(200)["data"] if secret["expires_at"]]
    node.api.call("DELETE", f"{path}/{old[0]['id']}").expect(204)
    wait_until(lambda: send_standard(node, "rotating", "too-late").status == 401, "the old secret is refused")


def test_slack_gets_its_challenge_back_and_nothing_is_stored(node):
    make_source(node, "slack", "slack", secret="8f742231b10e8888abcd99yyyzzz85a5")
    body = senders.event(type="url_verification", challenge="3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P")
    answer = send(node, "slack", body, senders.slack("8f742231b10e8888abcd99yyyzzz85a5", body))
    assert (answer.status, answer.body) == (200, b"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P")
    assert rows(node, "slack") == 0


def test_twilio_signs_the_public_url_and_the_form(node):
    make_source(node, "sms", "twilio", secret="12345678901234567890123456789012", partition_key="/From")
    form = {"From": "+4912345", "Body": "hello world", "MessageSid": "SM1"}
    url = node.api.get("/v1/sources/sms").expect(200)["url"]
    body = urllib.parse.urlencode(form).encode()
    signed = senders.twilio("12345678901234567890123456789012", url, form)
    headers = {"content-type": "application/x-www-form-urlencoded", "i-twilio-idempotency-token": "tok-1", **signed}
    answer = send(node, "sms", body, headers)
    assert (answer.status, answer.body) == (200, b"<Response/>")
    assert send(node, "sms", body.replace(b"hello", b"hallo"), headers).status == 401
    assert node.sql("select provider_id, partition_key from postrider.inbox where source_id = 'sms'") == [("tok-1", "+4912345")]


def test_a_source_of_ones_own_says_how_it_signs(node):
    scheme = {"header": "X-Acme-Signature", "prefix": "t=", "template": "{timestamp}:{header:X-Acme-Id}:{body}",
              "hash": "sha512", "encoding": "base64", "timestamp_header": "X-Acme-Time"}
    created = make_source(node, "acme-hooks", "hmac", signature=scheme, idempotency_key="X-Acme-Id")
    import base64, hashlib, hmac
    at, body = str(int(time.time())), b"plain text"
    mac = hmac.new(created["secret"].encode(), f"{at}:7:".encode() + body, hashlib.sha512).digest()
    headers = {"x-acme-signature": "t=" + base64.b64encode(mac).decode(), "x-acme-time": at, "x-acme-id": "7"}
    assert send(node, "acme-hooks", body, headers).status == 200
    assert send(node, "acme-hooks", body, {**headers, "x-acme-id": "8"}).status == 401
    bad = node.api.post("/v1/sources", {"id": "x", "provider": "hmac", "signature": {"template": "{timestamp}"}})
    assert bad.status == 422 and {error["pointer"] for error in bad.json["errors"]} == {
        "/signature/template", "/signature/timestamp_header"}
