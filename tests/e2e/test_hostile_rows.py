"""What the owner of an outbox's database can write, and what was in the queue before it was checked: the node lives, the
other events arrive, and receivers see no injected byte."""

import itertools
import json
import subprocess
import uuid

import pytest

from harness.node import binary, environment
from harness.postgres import run_sql
from harness.relay import RelayProcess, install
from harness.wait import wait_until

NUMBERS = itertools.count(1)
INJECTED = "x\r\ncontent-length: 0\r\n\r\nDELETE /admin HTTP/1.1\r\nhost: h\r\nx-injected: "
HOSTILE = [
    ("traceparent", "x\ny"),
    ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nx-injected: 1"),
    ("public_id", INJECTED),
    ("type", 'a","tenant_id":"rival","x-injected":"'),
    ("type", "a." * 500_000 + "a"),
    ("tenant_id", "postrider"),
    ("tenant_id", 'acme","x-injected":"'),
    ("tenant_id", "x-injected\r\n"),
    ("subject", "s" * 1_000_000),
    ("version", ""),
    ("occurred_at", "infinity"),
    ("created_at", "-infinity"),
    ("data", '1},"x-injected":{"a":1'),
    ("data", None),
    ("event_id", None),
    ("tenant_id", None),
]
ASIDE = "select count(*) from postrider.outbox where set_aside_at is not null and last_error <> ''"


@pytest.fixture
def application(postgres):
    name = f"hostile_{next(NUMBERS)}"
    postgres.create(name)
    yield install(postgres.url(name))
    postgres.drop(name)


@pytest.fixture
def fresh(start_node, database_url, hook):
    started = start_node(database_url=database_url, create_tenants="true")
    started.api.create_tenant("acme")
    started.api.create_endpoint("acme", hook.url)
    started.api.create_endpoint("postrider", hook.url, event_types=["endpoint.*"])
    return started


def disarm(url):
    run_sql(url, "drop trigger if exists outbox_event_form on postrider.outbox")
    for column in ("tenant_id", "type", "data", "event_id", "created_at"):
        run_sql(url, f"alter table postrider.outbox alter column {column} drop not null")


def write_rows(url):
    """A hostile row after each good one; returns how many are good."""
    for number, (column, value) in enumerate(HOSTILE):
        run_sql(url, "select postrider.publish('acme', 'order.paid', to_json(%s))", (number,))
        row = {"event_id": str(uuid.uuid4()), "tenant_id": "acme", "type": "a.b", "data": '"hostile"', column: value}
        run_sql(url, f"insert into postrider.outbox ({', '.join(row)}) values ({', '.join(['%s'] * len(row))})",
                tuple(row.values()))
    run_sql(url, "select postrider.publish('acme', 'order.paid', '\"last\"')")
    return len(HOSTILE) + 1


def expect_only_good_ones(hook, count):
    requests = hook.wait_for(count, 60)
    assert len(hook.requests) == count
    for request in requests:
        assert "injected" not in json.dumps(request.headers) and b"injected" not in request.body
        body = json.loads(request.body)
        assert list(body) == ["id", "type", "tenant_id", "created_at", "data"]
        assert (body["type"], body["tenant_id"]) == ("order.paid", "acme")


def expect_alive(node, hook):
    assert node.process.poll() is None, node.describe()
    before = len(hook.requests)
    node.api.publish("acme", data="alive")
    hook.wait_for(before + 1)


def test_hostile_rows_of_another_database_are_set_aside_with_reasons_and_the_others_arrive(fresh, application, hook):
    disarm(application)
    good = write_rows(application)
    fresh.api.call("PUT", "/v1/outboxes/billing", {"database_url": application}).expect(201)
    expect_only_good_ones(hook, good)
    wait_until(lambda: run_sql(application, ASIDE) == [(len(HOSTILE),)], "they are set aside")
    stuck = fresh.api.get("/v1/outboxes/billing/stuck?limit=100").expect(200)["data"]
    assert len(stuck) == len(HOSTILE)
    assert all(row["last_error"] and len(row["last_error"]) < 400 and len(row["type"]) <= 300 for row in stuck)
    assert any("is reserved" in row["last_error"] for row in stuck)
    assert fresh.sql("select string_agg(id, ',' order by id) from postrider.tenant") == [("acme,postrider",)]
    expect_alive(fresh, hook)


def test_a_relay_at_the_applications_side_sets_hostile_rows_aside_too(fresh, application, hook, tmp_path):
    disarm(application)
    good = write_rows(application)
    file = tmp_path / "key"
    file.write_text(fresh.api.post("/v1/keys", {"role": "publisher"}).expect(201)["key"])
    relay = RelayProcess(application, f"http://{fresh.address}", file)
    try:
        expect_only_good_ones(hook, good)
        wait_until(lambda: run_sql(application, ASIDE) == [(len(HOSTILE),)], "they are set aside")
        assert relay.process.poll() is None, relay.describe()
    finally:
        relay.close()


def test_tables_that_were_emptied_or_altered_are_shown_and_work_again_when_repaired(fresh, application, hook):
    fresh.api.call("PUT", "/v1/outboxes/billing", {"database_url": application}).expect(201)
    run_sql(application, "select postrider.publish('acme', 'order.paid', '1')")
    hook.wait_for(1)
    run_sql(application, "delete from postrider.outbox_slot")
    run_sql(application, "delete from postrider.outbox_setting")
    shown = fresh.api.get("/v1/outboxes/billing").expect(200)
    assert shown["damage"].startswith("no row in outbox_setting, outbox_slot:") and "outbox install" in shown["damage"]
    assert fresh.api.get("/v1/outboxes/billing/capture").status == 503
    fresh.wait_for_log("capture_failed", outbox="billing")
    run_sql(application, "alter table postrider.outbox_slot alter column commit_lsn drop default,"
                         " alter column commit_lsn type text, alter column message_lsn drop not null")
    run_sql(application, "insert into postrider.outbox_slot (commit_lsn, message_lsn) values ('nonsense', null)")
    run_sql(application, "insert into postrider.outbox_setting default values")
    wait_until(lambda: any("lsn" in (line.get("error") or "").lower() for line in fresh.log), "the damage is logged")
    expect_alive(fresh, hook)
    run_sql(application, "delete from postrider.session_lease")
    wait_until(lambda: any("no lease" in (line.get("error") or "") for line in fresh.log), "the missing lease is logged", 60)
    run_sql(application, "drop table postrider.outbox_slot")
    install(application)
    assert fresh.api.get("/v1/outboxes/billing").expect(200)["damage"] is None
    run_sql(application, "select postrider.publish('acme', 'order.paid', '2')")
    hook.wait_for(3)
    expect_alive(fresh, hook)


POISON = """
with chosen as (select e.id, e.tenant_id, e.bucket, e.delivery_tail from postrider.endpoint e where e.tenant_id = 'acme'),
made as (
  insert into postrider.event (id, tenant_id, type, public_id, traceparent, body)
  select postrider.new_id(), 'acme', 'a.b', %s, %s, '{"hostile":1}'
  returning id
)
insert into postrider.queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at)
select c.bucket, (left(replace(m.id::text, '-', ''), 20) || c.delivery_tail)::uuid, m.id, c.id, c.tenant_id, now(), now()
from chosen c, made m
"""


def test_poisoned_rows_that_are_in_the_queue_become_dead_letters_also_after_a_restart(fresh, start_node, hook):
    fresh.stop()
    fresh.sql("alter table postrider.event drop constraint if exists event_form cascade")
    for day in fresh.sql("select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid"
                         " where i.inhparent = 'postrider.event'::regclass"):
        fresh.sql(f"alter table postrider.{day[0]} drop constraint if exists event_form")
    fresh.sql(POISON, (None, "x\ny"))
    fresh.sql(POISON, (INJECTED, None))
    node = start_node(database_url=fresh.settings["database_url"])
    letters = wait_until(lambda: (lambda data: data if len(data) == 2 else None)(
        node.api.get("/v1/tenants/acme/dead-letters").expect(200)["data"]), "they are dead letters")
    assert {letter["cause"] for letter in letters} == {"blocked"}
    assert all("not allowed in a header" in letter["last_error_detail"] for letter in letters), letters
    expect_alive(node, hook)
    assert all(b"hostile" not in request.body for request in hook.requests)
    assert "injected" not in json.dumps([request.headers for request in hook.requests])


@pytest.mark.parametrize("path, body", [
    ("/v1/tenants/a%22b/events", {"type": "a", "data": 1}),
    ("/v1/tenants/a%0D%0Ab/events", {"type": "a", "data": 1}),
    (f"/v1/tenants/{'x' * 65}/events", {"type": "a", "data": 1}),
    ("/v1/tenants/.a/events", {"type": "a", "data": 1}),
])
def test_no_tenant_is_created_from_an_id_that_is_none(fresh, path, body):
    refused = fresh.api.post(path, body)
    assert refused.status == 422 and refused.json["errors"][0]["pointer"] == "tenant", refused.json
    assert fresh.api.post("/v1/tenants/org:7@eu.1/events", body).status == 202
    assert fresh.sql("select count(*) from postrider.tenant where id not in ('acme', 'postrider', 'org:7@eu.1')") == [(0,)]


def test_only_postrider_publishes_to_its_tenant(fresh, hook):
    event = {"type": "endpoint.disabled", "data": {}}
    assert fresh.api.post("/v1/tenants/postrider/events", event).status == 409
    [item] = fresh.api.post("/v1/events/batch", [{"tenant_id": "postrider", **event}]).expect(200)
    assert item["status"] == 409 and "`postrider` is reserved" in item["detail"]
    for call in ("publish", "emit"):
        with pytest.raises(Exception, match="reserved"):
            fresh.sql(f"select postrider.{call}('postrider', 'endpoint.disabled', '{{}}'::json)")
    assert fresh.sql("select count(*) from postrider.event where type = 'endpoint.disabled'") == [(0,)]


def test_a_key_that_no_header_can_hold_is_an_error_of_the_command_line(fresh):
    done = subprocess.run([binary(), "tenant", "list", "--server", f"http://{fresh.address}", "--key", "a\r\nx: y"], cwd="/",
                          env=environment(), text=True, capture_output=True)
    assert done.returncode > 0 and "cannot be sent" in done.stderr, done


def test_a_node_leaves_no_core_dump(fresh):
    with open(f"/proc/{fresh.process.pid}/limits", encoding="ascii") as file:
        [line] = [line.split() for line in file if line.startswith("Max core file size")]
    assert line[4:6] == ["0", "0"]
