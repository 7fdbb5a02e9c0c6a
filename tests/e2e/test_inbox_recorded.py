"""A recorded request is sent again with another id: where the provider does not sign the id, it is one message."""

import concurrent.futures
import hashlib
import hmac
import json
import urllib.parse

import pytest

from harness import senders
from harness.wait import wait_until

SECRET = "a secret of the tests"
STANDARD_SECRET = senders.STANDARD_SECRET


def create_source(node, source, provider, **fields):
    fields.setdefault("secret", SECRET)
    return node.api.post("/v1/sources", {"id": source, "provider": provider, **fields}).expect(201)


def send(node, source, body, headers):
    headers = {"content-type": "application/json", **headers}
    return node.api.as_key(None).call("POST", f"/in/{source}", body, headers=headers)


def stored(node, source):
    return [row[0] for row in node.sql("select provider_id from postrider.inbox where source_id = %s order by id", [source])]


def wait_dropped(node, source, count):
    """Counts are written every few seconds."""
    def dropped():
        shown = node.api.get(f"/v1/sources/{source}").expect(200)["dropped_by_content"]
        return shown if shown["count"] == count else None
    return wait_until(dropped, f"{count} messages of {source} are counted as dropped by content")


def metric(node):
    text = node.api.get("/metrics").body.decode()
    line = [line for line in text.splitlines() if line.startswith('webhook_inbox_received_total{outcome="duplicate_content"}')]
    return float(line[0].split()[1])


def test_a_github_request_with_another_delivery_id_is_accepted_and_not_stored(node, cli):
    created = create_source(node, "gh", "github")
    assert created["deduplicate"] == "content"
    before = metric(node)
    body = senders.event(action="opened", number=1)
    for delivery in ("first", "second", "third", "first"):
        assert send(node, "gh", body, senders.github(SECRET, delivery, body)).status == 200
    assert stored(node, "gh") == ["first"]
    shown = wait_dropped(node, "gh", 2)
    assert shown["last_at"] and shown["last_detail"] == "came as third"
    assert node.api.get("/v1/sources/gh").json["rejections"] == []
    assert metric(node) == before + 2
    assert json.loads(cli("source", "show", "gh", "--json").stdout)["dropped_by_content"] == shown
    other = senders.event(action="opened", number=2)
    assert send(node, "gh", other, senders.github(SECRET, "second", other)).status == 200
    assert stored(node, "gh") == ["first", "second"], "an id that came with old content is free"


def test_without_its_id_or_signed_with_another_secret_it_is_still_the_same_message(node):
    create_source(node, "gh-rotated", "github")
    body = senders.event(action="closed")
    assert send(node, "gh-rotated", body, senders.github(SECRET, "first", body)).status == 200
    new = node.api.post("/v1/sources/gh-rotated/secrets/rotate", {}).expect(201)["secret"]
    wait_until(lambda: send(node, "gh-rotated", body, senders.github(new, "second", body)).status == 200, "the new secret is taken")
    bare = senders.github(SECRET, "", body)
    del bare["x-github-delivery"]
    assert send(node, "gh-rotated", body, bare).status == 200
    assert stored(node, "gh-rotated") == ["first"]


def test_shopify_may_send_one_body_under_several_topics_but_not_under_any_number(node):
    create_source(node, "shop-topics", "shopify")
    body = senders.event(id=820982911946154508)
    for topic in ("orders/create", "orders/paid"):
        for webhook_id in ("one", "two"):
            headers = senders.shopify(SECRET, f"{topic} {webhook_id}", body, topic)
            assert send(node, "shop-topics", body, headers).status == 200
    assert stored(node, "shop-topics") == ["orders/create one", "orders/paid one"]
    for number in range(20):
        headers = senders.shopify(SECRET, f"made up {number}", body, f"made/up{number}")
        assert send(node, "shop-topics", body, headers).status == 200
    assert len(stored(node, "shop-topics")) == 8
    wait_dropped(node, "shop-topics", 2 + 14)


def test_a_twilio_form_is_the_same_in_any_order_of_its_parameters(node):
    url = create_source(node, "sms-recorded", "twilio")["url"]
    form = {"From": "+4912345", "Body": "hello", "MessageSid": "SM1"}
    signed = senders.twilio(SECRET, url, form)
    for token, body in (("a", urllib.parse.urlencode(form)), ("b", urllib.parse.urlencode(form)),
                        ("c", urllib.parse.urlencode(dict(reversed(form.items())))), ("d", urllib.parse.urlencode(form) + "&Body=%68ello")):
        headers = {"content-type": "application/x-www-form-urlencoded", "i-twilio-idempotency-token": token, **signed}
        assert send(node, "sms-recorded", body.encode(), headers).status == 200
    assert stored(node, "sms-recorded") == ["a"]


def hmac_headers(delivery, body):
    return {"x-signature": hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest(), "x-delivery": delivery}


def test_a_source_of_ones_own_chooses(node):
    create_source(node, "own-id", "hmac", idempotency_key="x-delivery")
    create_source(node, "own-content", "hmac", idempotency_key="x-delivery", deduplicate="content")
    for source in ("own-id", "own-content"):
        for delivery in ("1", "2", "2"):
            assert send(node, source, b"ping", hmac_headers(delivery, b"ping")).status == 200
    assert stored(node, "own-id") == ["1", "2"], "equal bodies are common"
    assert stored(node, "own-content") == ["1"]
    changed = node.api.call("PATCH", "/v1/sources/own-id", {"deduplicate": "content"}).expect(200)
    assert changed["deduplicate"] == "content"
    assert node.api.call("PATCH", "/v1/sources/own-id", {"deduplicate": None}).expect(200)["deduplicate"] == "id"
    refused = node.api.call("PATCH", "/v1/sources/own-id", {"deduplicate": "both"})
    assert refused.status == 422 and refused.json["errors"][0]["pointer"] == "/deduplicate"


@pytest.mark.parametrize("provider", ["standard", "svix", "stripe", "slack"])
def test_providers_that_sign_the_id_are_deduplicated_by_it(node, provider):
    secret = STANDARD_SECRET if provider in ("standard", "svix") else SECRET
    assert create_source(node, f"signed-{provider}", provider, secret=secret)["deduplicate"] == "id"


def test_a_retried_message_is_not_taken_for_a_repetition(node):
    create_source(node, "gh-dead", "github", max_attempts=1)
    body = senders.event(action="deleted")
    assert send(node, "gh-dead", body, senders.github(SECRET, "first", body)).status == 200
    message = node.api.post("/v1/inbox/claim", {"worker": "w", "source": "gh-dead"}).expect(200)["data"][0]["id"]
    node.api.post("/v1/inbox/nack", {"worker": "w", "id": message, "error": "no"}).expect(200)
    node.api.post("/v1/sources/gh-dead/messages/retry", {"ids": [message]}).expect(200)
    again = node.api.post("/v1/inbox/claim", {"worker": "w", "source": "gh-dead"}).expect(200)["data"]
    assert [entry["id"] for entry in again] == [message]


def test_two_nodes_that_get_the_same_content_at_once_store_it_once(start_node, database_url):
    nodes = [start_node(database_url=database_url) for _ in range(2)]
    create_source(nodes[0], "gh-two", "github")
    bodies = [senders.event(number=number) for number in range(10)]
    requests = [(nodes[copy % 2], body, f"{number}-{copy}") for number, body in enumerate(bodies) for copy in range(8)]
    wait_until(lambda: all(send(node, "gh-two", b"{}", {}).status == 401 for node in nodes), "both nodes know the source")
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = pool.map(lambda request: send(request[0], "gh-two", request[1], senders.github(SECRET, request[2], request[1])).status, requests)
        assert set(answers) == {200}
    assert sorted(delivery.split("-")[0] for delivery in stored(nodes[0], "gh-two")) == [str(number) for number in range(10)]
    assert nodes[0].sql("select count(*) from postrider.inbox_key where source_id = 'gh-two'") == [(10,)]
