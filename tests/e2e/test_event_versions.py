"""One event in several versions: each endpoint gets the one that it subscribed to."""

import datetime
import itertools
import json

import psycopg2
import pytest
from harness.postgres import run_sql
from harness.relay import RelayProcess, install
from harness.wait import wait_until

NUMBERS = itertools.count(1)

VERSIONS = {"2026-04-08": {"total": "12.50"}, "2025-01-01": {"amount": 1250}, "2024-06-01": {"cents": 1250}}
NEWEST, MIDDLE, OLDEST = VERSIONS


def subscribe(node, tenant, hook, versions=None, **fields):
    """An endpoint that wants these versions of everything."""
    endpoint = node.api.create_endpoint(tenant, hook.url, **fields)["id"]
    wanted = {"pattern": "*"} if versions is None else {"pattern": "*", "versions": versions}
    path = f"/v1/tenants/{tenant}/endpoints/{endpoint}/subscriptions"
    node.api.call("PUT", path, {"data": [wanted]}).expect(200)
    return endpoint


def publish(node, tenant="t", **fields):
    return node.api.post(f"/v1/tenants/{tenant}/events", {"type": "invoice.paid", "versions": VERSIONS, **fields})


def assert_got(request, version, event):
    body = json.loads(request.body)
    assert (body["version"], body["data"]) == (version, VERSIONS[version])
    assert body["id"] == request.headers["webhook-id"] == event


@pytest.fixture
def hooks(receiver):
    return [receiver.hook() for _ in range(3)]


@pytest.fixture
def start_two(start_node, database_url):
    """A node, and the same again after a restart."""
    def start(**settings):
        node = start_node(database_url=database_url, **settings)
        node.api.create_tenant("t")
        return node
    return start


@pytest.mark.parametrize("settings", [{}, {"wide_fanout_endpoints": "1"}], ids=["at once", "as a wide fan-out"])
def test_each_endpoint_gets_its_version_of_the_same_event(start_two, hooks, settings):
    node = start_two(**settings)
    default, one, two = hooks
    subscribe(node, "t", default)
    subscribe(node, "t", one, [MIDDLE])
    subscribe(node, "t", two, [OLDEST, MIDDLE], ordering="strict")
    published = publish(node, id="inv-1").expect(202)
    assert published["id"] == "inv-1" and published["deliveries"] == 3
    for hook, version in ((default, NEWEST), (one, MIDDLE), (two, MIDDLE)):
        assert_got(hook.wait_for(1)[0], version, "inv-1")
    shown = wait_until(lambda: (event := node.api.get("/v1/tenants/t/events/inv-1").expect(200)) and
                       all(each["status"] == "delivered" for each in event["deliveries"]) and event, "all are delivered")
    assert len(shown["deliveries"]) == 3 and shown["unmatched_endpoints"] == []
    assert shown["versions"] == [{"version": name, "data": data} for name, data in VERSIONS.items()]
    assert [event["id"] for event in node.api.get("/v1/tenants/t/events").expect(200)["data"]] == ["inv-1"]


def test_the_default_can_be_chosen_and_a_version_that_is_not_there_is_not_sent(start_two, hooks):
    node = start_two()
    subscribe(node, "t", hooks[0])
    subscribe(node, "t", hooks[1], ["2023"])
    published = publish(node, version=OLDEST).expect(202)
    assert published["deliveries"] == 1
    assert_got(hooks[0].wait_for(1)[0], OLDEST, published["id"])
    shown = node.api.get(f"/v1/tenants/t/events/{published['id']}").expect(200)
    assert [each["reason"] for each in shown["unmatched_endpoints"]] == ["version_not_wanted"]
    assert hooks[1].requests == []


def test_what_is_fetched_after_a_restart_and_what_is_replayed_is_the_same_version(start_node, database_url, start_two, hooks):
    node = start_two()
    endpoints = [subscribe(node, "t", hook, versions) for hook, versions in zip(hooks, ([NEWEST], [MIDDLE], [OLDEST]))]
    for endpoint in endpoints:
        node.api.post(f"/v1/tenants/t/endpoints/{endpoint}/pause").expect(200)
    event = publish(node).expect(202)["id"]
    node.stop()
    node = start_node(database_url=database_url)
    for endpoint in endpoints:
        node.api.post(f"/v1/tenants/t/endpoints/{endpoint}/resume").expect(200)
    for hook, version in zip(hooks, VERSIONS):
        assert_got(hook.wait_for(1)[0], version, event)
    shown = wait_until(lambda: (event_ := node.api.get(f"/v1/tenants/t/events/{event}").expect(200)) and
                       all(each["status"] == "delivered" for each in event_["deliveries"]) and event_, "all are delivered")
    for delivery in shown["deliveries"]:
        node.api.post(f"/v1/tenants/t/deliveries/{delivery['id']}/replay", {"reason": "again"}).expect(202)
    for hook, version in zip(hooks, VERSIONS):
        first, second = hook.wait_for(2)
        assert_got(second, version, event)
        assert first.body == second.body
    since = (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)).isoformat()
    asked = {"only": "all", "since": since, "reason": "everything once more"}
    assert node.api.post("/v1/tenants/t/replays", {**asked, "dry_run": True}).expect(200)["matched"] == 3
    node.api.post("/v1/tenants/t/replays", asked).expect(202)
    for hook, version in zip(hooks, VERSIONS):
        assert_got(hook.wait_for(3)[2], version, event)
    assert len(node.api.get(f"/v1/tenants/t/events/{event}").expect(200)["deliveries"]) == 9


def test_a_repeat_is_one_only_if_all_versions_are_the_same(start_two, hooks):
    node = start_two()
    subscribe(node, "t", hooks[0])
    first = publish(node, id="a").expect(202)
    assert publish(node, id="a").expect(200) == first
    other = {**VERSIONS, OLDEST: {"cents": 0}}
    assert publish(node, id="a", versions=other).status == 409
    batch = [{"tenant_id": "t", "type": "invoice.paid", "versions": VERSIONS, "id": "b"},
             {"tenant_id": "t", "type": "invoice.paid", "data": 1},
             {"tenant_id": "t", "type": "invoice.paid", "versions": VERSIONS}]
    assert [item["status"] for item in node.api.post("/v1/events/batch", batch).expect(200)] == [202, 202, 202]
    hooks[0].wait_for(4)


def test_erasing_an_event_erases_every_version(start_two, hooks):
    node = start_two()
    held = subscribe(node, "t", hooks[0], [OLDEST])
    node.api.post(f"/v1/tenants/t/endpoints/{held}/pause").expect(200)
    event = publish(node).expect(202)["id"]
    erased = node.api.call("DELETE", f"/v1/tenants/t/events/{event}/payload").expect(200)
    assert (erased["erased"], erased["canceled_deliveries"]) == (1, 1)
    shown = node.api.get(f"/v1/tenants/t/events/{event}").expect(200)
    assert [version["data"] for version in shown["versions"]] == [None] * 3


BAD = {
    "data and versions": ({"data": 1}, "/data"),
    "no version": ({"versions": {}}, "/versions"),
    "too many": ({"versions": {str(number): 1 for number in range(11)}}, "/versions"),
    "a nameless one": ({"versions": {"": 1}}, "/versions"),
    "no object": ({"versions": [1]}, "/versions"),
    "another default": ({"version": "1999"}, "/version"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_versions_are_refused(kind, node, tenant):
    fields, pointer = BAD[kind]
    answer = publish(node, tenant, **fields)
    assert answer.status == 422, answer.body
    assert [error["pointer"] for error in answer.json["errors"]] == [pointer]


def test_each_version_is_judged_by_its_own_schema(start_two):
    node = start_two()
    schemas = [{"version": MIDDLE, "schema": {"required": ["amount"]}}, {"version": NEWEST, "schema": {"required": ["total"]}}]
    node.api.call("PUT", "/v1/event-types/invoice.paid", {"validation": "reject", "versions": schemas}).expect(201)
    good = {NEWEST: {"total": "1"}, MIDDLE: {"amount": 1}}
    wait_until(lambda: publish(node, versions={**good, NEWEST: {}}).status == 422, "the schema is known")
    publish(node, versions=good).expect(202)
    refused = publish(node, versions={**good, MIDDLE: {}})
    assert refused.status == 422 and refused.json["errors"][0]["pointer"].startswith(f"/versions/{MIDDLE}")


def publish_in_sql(url, **named):
    """As an application: `postrider.publish_versions()`; returns the event's ID."""
    arguments = {"tenant": "t", "type": "invoice.paid", "versions": json.dumps(VERSIONS), **named}
    words = ", ".join(f"{name} => %s" for name in arguments)
    return run_sql(url, f"select postrider.publish_versions({words})", tuple(arguments.values()))[0][0]


@pytest.fixture(params=["own database", "another database", "a relay next to the application"])
def outbox(request, start_two, postgres, database_url, tmp_path):
    """(node, the database with the outbox)"""
    node = start_two()
    if request.param == "own database":
        yield node, database_url
        return
    name = f"versions_{next(NUMBERS)}"
    postgres.create(name)
    url = install(postgres.url(name))
    relay = None
    if request.param == "another database":
        node.api.call("PUT", "/v1/outboxes/billing", {"database_url": url}).expect(201)
    else:
        (tmp_path / "key").write_text(node.api.post("/v1/keys", {"role": "publisher"}).expect(201)["key"])
        relay = RelayProcess(url, f"http://{node.address}", tmp_path / "key")
    yield node, url
    if relay:
        relay.close()
    postgres.drop(name)


def test_each_endpoint_gets_its_version_of_an_event_from_sql(outbox, hooks):
    node, url = outbox
    default, one, two = hooks
    subscribe(node, "t", default)
    subscribe(node, "t", one, [MIDDLE])
    subscribe(node, "t", two, [OLDEST])
    made = publish_in_sql(url)
    for hook, version in ((default, NEWEST), (one, MIDDLE), (two, OLDEST)):
        assert_got(hook.wait_for(1)[0], version, made)
    assert publish_in_sql(url, version=OLDEST, id="inv-2") == "inv-2"
    for hook, version in ((default, OLDEST), (one, MIDDLE), (two, OLDEST)):
        assert_got(hook.wait_for(2)[1], version, "inv-2")


WRONG = [("[1]", "must be an object"), ("{}", "1 to 10"), (json.dumps({str(n): n for n in range(11)}), "1 to 10"),
         ('{"a": 1, "a": 2}', "more than once"), ('{"": 1}', "1 to 64 bytes"), (json.dumps({"v" * 65: 1}), "1 to 64 bytes"),
         (json.dumps({"a": "x" * 300_000, "b": 1}), "the limit is"), (None, "must be an object")]


@pytest.mark.parametrize("versions, error", WRONG, ids=[error + str(n) for n, (_, error) in enumerate(WRONG)])
def test_wrong_versions_from_sql_fail_the_transaction_or_are_set_aside(node, versions, error):
    with pytest.raises(psycopg2.errors.InvalidParameterValue, match=error):
        publish_in_sql(node.database_url, versions=versions)
    assert publish_in_sql(node.database_url, versions=versions, on_invalid="set_aside").startswith("evt_")
    assert publish_in_sql(node.database_url, version="none", on_invalid="set_aside").startswith("evt_")
    node.sql("delete from postrider.outbox where tenant_id = 't'")
