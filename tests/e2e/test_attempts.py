"""The list of everything that was tried, over all deliveries: filters, cursors, export, and who may see what."""

import csv
import io
import json

import pytest

from harness.receiver import Reply
from harness.wait import wait_until


@pytest.fixture
def tried(node, tenant, receiver):
    """Three events at two endpoints: one accepts everything, the other fails once (503), then rejects (400)."""
    good, bad = receiver.hook(), receiver.hook()
    bad.reply(*[Reply(503, body=b"secret-answer"), Reply(400, body=b"secret-answer")] * 3)
    ids = {"good": node.api.create_endpoint(tenant, good.url)["id"],
           "bad": node.api.create_endpoint(tenant, bad.url, ordering="strict", retry_schedule=[1], max_attempts=5)["id"]}
    ids["events"] = [node.api.publish(tenant, kind)["id"] for kind in ("invoice.paid", "invoice.paid", "order.made")]
    wait_until(lambda: len(node.api.get(f"/v1/tenants/{tenant}/dead-letters").expect(200)["data"]) == 3, "three gave up")
    wait_until(lambda: len(node.api.get(f"/v1/tenants/{tenant}/deliveries?status=delivered").expect(200)["data"]) == 3,
               "three arrived")
    return ids


def attempts(node, path, **filters):
    """The whole filtered list, page by page."""
    found, cursor = [], None
    while True:
        query = {**filters, **({"cursor": cursor} if cursor else {})}
        page = node.api.get(path + "?" + "&".join(f"{name}={value}" for name, value in query.items())).expect(200)
        found += page["data"]
        cursor = page.get("next_cursor")
        if not cursor:
            return found


def test_attempts_are_listed_by_endpoint_event_type_outcome_and_time(node, tenant, tried):
    path = f"/v1/tenants/{tenant}/attempts"
    everything = attempts(node, path)
    key = lambda attempt: (attempt["delivery_id"], attempt["attempt"])
    assert len(everything) == 9
    assert [key(each) for each in everything] == sorted(map(key, everything), reverse=True)
    for limit in (1, 2, 4, 9):
        assert attempts(node, path, limit=limit) == everything, limit

    def expect(wanted, **filters):
        chosen = [each for each in everything if wanted(each)]
        for limit in (2, 50):
            assert attempts(node, path, limit=limit, **filters) == chosen, filters
        assert chosen or filters

    expect(lambda each: each["endpoint_id"] == tried["bad"], endpoint=tried["bad"])
    expect(lambda each: each["event_id"] == tried["events"][1], event=tried["events"][1])
    expect(lambda each: each["event_id"] == tried["events"][1] and each["endpoint_id"] == tried["good"],
           event=tried["events"][1], endpoint=tried["good"])
    expect(lambda each: each["event_type"] == "order.made", type="order.made")
    for outcome in ("delivered", "retrying", "dead_letter", "canceled"):
        expect(lambda each: each["outcome"] == outcome, outcome=outcome)
        expect(lambda each: each["outcome"] == outcome and each["endpoint_id"] == tried["bad"], outcome=outcome,
               endpoint=tried["bad"])
    expect(lambda each: each["status_code"] == 503, status_code=503)
    word = next(each["error"] for each in everything if each["error"])
    expect(lambda each: each["error"] == word, error=word)
    middle = sorted(each["started_at"] for each in everything)[4]
    expect(lambda each: each["started_at"] >= middle, since=middle)
    expect(lambda each: each["started_at"] < middle, until=middle)
    over_all = attempts(node, "/v1/attempts", endpoint=tried["bad"], limit=4)
    assert over_all == [each for each in everything if each["endpoint_id"] == tried["bad"]]
    first = node.api.get(f"/v1/tenants/{tenant}/deliveries/{everything[-1]['delivery_id']}").expect(200)["timeline"][0]
    assert {name: everything[-1][name] for name in first} == first, "as its delivery shows it"

    # A replay belongs to the event, too.
    dead = next(each["delivery_id"] for each in everything if each["outcome"] == "dead_letter")
    event = next(each["event_id"] for each in everything if each["delivery_id"] == dead)
    replayed = node.api.post(f"/v1/tenants/{tenant}/deliveries/{dead}/replay", {"reason": "again"}).expect(201, 202)["id"]
    wait_until(lambda: replayed in [each["delivery_id"] for each in attempts(node, path, event=event, limit=2)],
               "the replay was sent")


@pytest.mark.parametrize("query, pointer", [
    ("outcome=lost", "outcome"), ("status_code=abc", "status_code"), ("status_code=99", "status_code"),
    ("since=yesterday", "since"), ("until=1", "until"), ("limit=0", "limit"), ("cursor=abc", "cursor"),
    ("status=delivered", "status"), ("format=xml", "format")])
def test_a_bad_filter_of_attempts_is_named(node, tenant, query, pointer):
    refused = node.api.get(f"/v1/tenants/{tenant}/attempts?{query}")
    assert refused.status in (400, 422) and [each["pointer"] for each in refused.json["errors"]] == [pointer]
    assert node.api.get(f"/v1/tenants/{tenant}/attempts?endpoint=ep_none").status == 404
    assert node.api.get("/v1/tenants/nobody/attempts").status == 404
    assert node.api.get(f"/v1/tenants/{tenant}/attempts?event=none").json == {"data": []}


def test_attempts_are_exported_as_they_are_listed(node, tenant, tried, cli):
    path = f"/v1/tenants/{tenant}/attempts"
    listed = attempts(node, path, outcome="retrying")
    lines = node.api.get(f"{path}?outcome=retrying&format=ndjson").body.decode().splitlines()
    assert [json.loads(line) for line in lines] == listed
    rows = list(csv.DictReader(io.StringIO(node.api.get(f"{path}?outcome=retrying&format=csv").body.decode())))
    assert [(row["delivery_id"], row["attempt"], row["status_code"]) for row in rows] == \
        [(each["delivery_id"], str(each["attempt"]), "503") for each in listed]
    assert json.loads(rows[0]["phases"]) == listed[0]["phases"]
    done = cli("delivery", "attempts", "--tenant", tenant, "--endpoint", tried["bad"], "--outcome", "retrying",
               "--status-code", "503", "--json")
    shown = json.loads(done.stdout)
    assert (shown["data"] if isinstance(shown, dict) else shown) == listed


def test_a_key_sees_the_attempts_of_its_tenant_and_answers_only_with_payloads(node, tenant, tried):
    path = f"/v1/tenants/{tenant}/attempts"
    assert "secret-answer" in json.dumps(attempts(node, path))
    blind = node.api.post("/v1/keys", {"role": "reader", "tenant_id": tenant, "payloads": False}).expect(201)["key"]
    seen = node.api.as_key(blind).get(path).expect(200)["data"]
    assert len(seen) == 9 and "response_preview" not in seen[0]
    for kind in ("ndjson", "csv"):
        exported = node.api.as_key(blind).get(f"{path}?format={kind}").body.decode()
        assert len(exported.splitlines()) >= 9 and "secret-answer" not in exported
    assert node.api.as_key(blind).get("/v1/attempts").status == 403
    node.api.create_tenant(tenant + "-other")
    assert node.api.as_key(blind).get(f"/v1/tenants/{tenant}-other/attempts").status in (403, 404)
    publisher = node.api.post("/v1/keys", {"role": "publisher", "tenant_id": tenant}).expect(201)["key"]
    assert node.api.as_key(publisher).get(path).status == 403
