"""Inbound requests of every provider: hostile headers and bodies, signed and not."""

import base64
import itertools
import urllib.parse

import pytest

from client import Client
from harness import senders
from harness.hostile import DOCUMENTS, HEADERS, TEXTS, some, shown
from harness.wait import wait_until

NUMBERS = itertools.count(1)
SECRET = "a secret of the tests"
GOOD = {200}
REFUSED = {400, 401, 404, 408, 411, 413, 415, 417, 422, 429, 431}
FORM = {"From": "+491", "Body": "hello"}


def sign(provider, source_url, body, message_id):
    """Headers of a genuine request."""
    if provider in ("standard", "svix"):
        return senders.standard(senders.STANDARD_SECRET, message_id, body, family="svix" if provider == "svix" else "webhook")
    if provider == "stripe":
        return senders.stripe(SECRET, body)
    if provider == "github":
        return senders.github(SECRET, message_id, body)
    if provider == "shopify":
        return senders.shopify(SECRET, message_id, body)
    if provider == "slack":
        return senders.slack(SECRET, body)
    if provider == "twilio":
        return {"content-type": "application/x-www-form-urlencoded", "i-twilio-idempotency-token": message_id,
                **senders.twilio(SECRET, source_url, dict(urllib.parse.parse_qsl(body.decode("latin-1"))))}
    return {"x-signature": senders._mac(SECRET, body).hex(), "x-id": message_id}


def good_body(provider):
    return urllib.parse.urlencode(FORM).encode() if provider == "twilio" else senders.event(id=f"e-{next(NUMBERS)}", type="a")


PROVIDERS = ["standard", "svix", "stripe", "github", "shopify", "slack", "twilio", "hmac"]


def create_source(scene, provider):
    fields = {"idempotency_key": "x-id"} if provider == "hmac" else {}
    secret = senders.STANDARD_SECRET if provider in ("standard", "svix") else SECRET
    return scene.api.post("/v1/sources", {
        "id": provider, "provider": provider, "secret": secret, "partition_key": "x-key", "ordering": "strict",
        "forward": {"tenant_id": "hostile", "type": "{type}.{header:x-key}"}, **fields}).expect(201)["url"]


def test_no_inbound_request_harms_the_node_or_others(scene):
    hook = scene.hostile_tenant("hostile")
    client = Client(scene.node.address, None)
    wrong, sent = [], 0

    def send(what, value, provider, body, headers, statuses=GOOD | REFUSED):
        nonlocal sent
        fields = [(name, text if isinstance(text, bytes) else text.encode()) for name, text in headers.items()]
        answer = client.request("POST", f"/in/{provider}", body, fields, key=False)
        sent += 1
        if answer is None or answer.status not in statuses:
            wrong.append(f"{provider} {what} = {shown(value)}: {answer}")

    for provider in PROVIDERS:
        url = create_source(scene, provider)
        body = good_body(provider)
        send("nothing", "", provider, body, sign(provider, url, body, "good"), GOOD)
        names = [*sign(provider, url, body, "x"), "content-type", "x-key", "user-agent", "content-length", "transfer-encoding",
                 "expect", "content-encoding", "x-shopify-topic", "x-forwarded-for"]
        for name in names:
            for value in some(HEADERS, next(NUMBERS), 18):
                fresh = good_body(provider)
                send(name, value, provider, fresh, {**sign(provider, url, fresh, f"h-{next(NUMBERS)}"), name: value})
            client.close()  # a wrong length leaves a connection in any state
        for document in [*DOCUMENTS, *(text.encode() for text in TEXTS)]:
            if provider == "twilio":
                document = b"Body=" + urllib.parse.quote_from_bytes(document).encode()
            send("body", document, provider, document, sign(provider, url, document, f"b-{next(NUMBERS)}"))
        for text in TEXTS:
            fresh = good_body(provider)
            target = f"/in/{urllib.parse.quote(text, safe='')}?{urllib.parse.quote(text)}"
            answer = client.request("POST", target, fresh, [], key=False)
            if answer is None or answer.status not in REFUSED | {405, 414}:
                wrong.append(f"target {shown(target)}: {answer}")
    client.close()
    assert not wrong, f"{len(wrong)} of {sent}:\n" + "\n".join(wrong[:20])
    # Everything that was stored is forwarded, or fails with a reason.
    wait_until(lambda: scene.node.sql("""select count(*) from postrider.inbox_queue
        where bucket >= 0 and work = 'forward' and attempts = 0""") == [(0,)], "every message was tried", 90)
    assert hook.events
    scene.finish()
