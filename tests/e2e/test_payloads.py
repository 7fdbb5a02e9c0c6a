"""A key without the right to payloads sees none, wherever it looks: every path of the API is asked."""

import datetime
import http.client
import re

from harness import senders
from harness.receiver import Reply
from harness.wait import wait_until

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
DATA, ANSWER, INBOUND, KEPT = "canary-of-data", "canary-of-answer", "canary-of-inbound", "canary-of-header"
CANARIES = (DATA, ANSWER, INBOUND, KEPT)


def fill(node, tenant, hook):
    """Something of everything that people can look at; returns the path parameters that name it."""
    hook.reply(Reply(503, body=ANSWER.encode()), then=Reply(400, body=ANSWER.encode()))
    endpoint = node.api.create_endpoint(tenant, hook.url, retry_schedule=[1])["id"]
    event = node.api.publish(tenant, "invoice.paid", {"text": DATA}, subject="in_77")["id"]
    listed = lambda: node.api.get(f"/v1/tenants/{tenant}/dead-letters").expect(200)["data"]
    wait_until(listed, "the delivery gave up")
    source = f"{tenant}-in"
    node.api.post("/v1/sources", {"id": source, "provider": "standard", "secret": SECRET, "headers": ["x-kept"],
                                  "forward": {"tenant_id": tenant, "type": "in.{type}"}}).expect(201)
    body = b'{"type":"a","text":"%s"}' % INBOUND.encode()
    sent = senders.standard(SECRET, "msg_1", body) | {"content-type": "application/json", "x-kept": KEPT}
    assert node.api.as_key(None).call("POST", f"/in/{source}", body, headers=sent).status == 200
    message = node.api.get(f"/v1/sources/{source}/messages").expect(200)["data"][0]["id"]
    now = datetime.datetime.now(datetime.timezone.utc)
    span = {"since": (now - datetime.timedelta(hours=1)).isoformat(), "until": now.isoformat()}
    replay = node.api.post(f"/v1/tenants/{tenant}/replays", {"only": "failed", "reason": "again", **span}).expect(202)["id"]
    node.api.call("PUT", "/v1/event-types/invoice.paid", {"description": "paid"}).expect(200, 201)
    key = node.api.post("/v1/keys", {"role": "admin", "payloads": False}).expect(201)
    link = node.api.post(f"/v1/tenants/{tenant}/portal-links", {}).expect(201)
    return key["key"], {"tenant": tenant, "endpoint": endpoint, "event": event, "delivery": listed()[0]["id"],
                        "source": source, "message": message, "replay": replay, "name": "invoice.paid",
                        "key": key["id"], "link": link["id"], "outbox": "local", "file": "docs.css"}


def read_stream(node, key, path, since):
    """The stream's messages since that time."""
    connection = http.client.HTTPConnection(node.address, timeout=30)
    try:
        connection.request("GET", f"{path}?after=@{since}", headers={"authorization": f"Bearer {key}"})
        answer, text = connection.getresponse(), ""
        assert answer.status == 200, path
        while "event: ready" not in text:
            text += answer.readline().decode()
        return text
    finally:
        connection.close()


def pages(node, names):
    """Every GET of the API that succeeds, exports included."""
    for path, methods in node.api.get("/openapi.json").json["paths"].items():
        if "get" not in methods or "{token}" in path:  # pages for contacts, which have no key
            continue
        filled = re.sub(r"\{(\w+)\}", lambda name: names[name[1]], path)
        asked = [parameter.get("name") or parameter["$ref"].split("/")[-1]
                 for parameter in methods["get"].get("parameters", [])]
        if "q" in asked:
            yield from (f"{filled}?q={what}" for what in (names["event"], names["delivery"], "in_77", DATA, INBOUND))
        else:
            yield filled
        if "format" in asked:
            yield from (f"{filled}?format={kind}" for kind in ("ndjson", "csv"))


def test_without_payloads_no_answer_of_the_api_has_one(node, tenant, hook):
    since = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    blind, names = fill(node, tenant, hook)
    seen, shown_in = "", {canary: [] for canary in CANARIES}
    for page in pages(node, names):
        is_stream = page.endswith("/stream")
        read = lambda key: read_stream(node, key, page, since) if is_stream else \
            node.api.as_key(key).get(page).body.decode(errors="replace")
        hidden, shown = read(blind), read(node.api.key)
        if not is_stream:
            status = node.api.as_key(blind).get(page).status
            assert status == 200 or page == "/" or page.startswith("/docs/"), (page, status, hidden)
        for canary in CANARIES:
            assert canary not in hidden, page
            if canary in shown:
                shown_in[canary].append(page)
        seen += hidden
    # The test is worth something only if there was something to hide, and the key saw the rest.
    assert names["event"] in seen and names["delivery"] in seen and names["message"] in seen
    base = f"/v1/tenants/{tenant}"
    assert {f"{base}/events/{names['event']}", f"{base}/stream"} <= set(shown_in[DATA])
    assert {f"{base}/deliveries/{names['delivery']}", f"{base}/deliveries/{names['delivery']}/attempts",
            f"{base}/attempts", f"{base}/attempts?format=csv", "/v1/attempts?format=ndjson"} <= set(shown_in[ANSWER])
    assert f"/v1/sources/{names['source']}/messages/{names['message']}" in shown_in[INBOUND]
    assert f"/v1/sources/{names['source']}/messages/{names['message']}" in shown_in[KEPT]


def test_without_payloads_nothing_that_is_done_shows_one(node, tenant, hook):
    blind, names = fill(node, tenant, hook)
    api = node.api.as_key(blind)
    claim = {"worker": "w", "source": names["source"], "max": 10}
    assert api.post("/v1/inbox/claim", claim).status == 403
    base = f"/v1/tenants/{tenant}"
    done = [api.post(f"{base}/endpoints/{names['endpoint']}/test"),
            api.post(f"{base}/deliveries/{names['delivery']}/replay", {"reason": "again"}),
            api.post(f"{base}/dead-letters/discard", {"all": True, "reason": "enough"}),
            api.post(f"/v1/sources/{names['source']}/messages/retry", {"ids": [names["message"]]})]
    for answer in done:
        assert answer.status < 300, (answer.status, answer.body)
        assert not any(canary in answer.body.decode() for canary in CANARIES)
    tested = node.api.post(f"{base}/endpoints/{names['endpoint']}/test").expect(200)
    assert ANSWER in str(tested), "a key with payloads sees what the endpoint answered"
