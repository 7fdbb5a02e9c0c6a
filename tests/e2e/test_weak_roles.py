"""What roles that may only publish, consume or support can hold, and that nothing of postrider waits for it."""

import concurrent.futures
import contextlib
import itertools
import json
import subprocess

import psycopg2
import pytest

from harness import node as node_module
from harness import senders
from harness.wait import wait_until

NUMBERS = itertools.count(1)
ROLES = ("publisher", "consumer", "support")
# Every advisory lock that postrider ever took, by number or by name.
LOCK_NUMBERS = (8031453476610911596, 8031453476610911603, 0x706F737472696465)
LOCK_NAMES = ("postrider.retention", "postrider.refanout", "postrider.dead_letter_count")


@pytest.fixture(params=ROLES)
def weak(request, postgres):
    """A login role with one of postrider's roles; they are made before postrider is, as an administrator may."""
    granted, name = f"postrider_{request.param}", f"weak_{request.param}"
    for role in (granted, f"{name} login"):
        postgres.sql(f"do $$ begin create role {role}; exception when duplicate_object then end $$", "postgres")
    postgres.sql(f"grant {granted} to {name}", "postgres")
    return name


@pytest.fixture
def empty(postgres):
    name = f"empty_{next(NUMBERS)}"
    postgres.create(name)
    yield name
    postgres.drop(name)


@contextlib.contextmanager
def session(postgres, database, role):
    connection = psycopg2.connect(postgres.url(database, role))
    connection.autocommit = True
    try:
        yield connection.cursor()
    finally:
        connection.close()


def take_every_advisory_lock(cursor, keys=()):
    for number in LOCK_NUMBERS:
        cursor.execute("select pg_advisory_lock(%s)", (number,))
    for name in (*LOCK_NAMES, *(f"postrider.replay.{key}" for key in keys)):
        cursor.execute("select pg_advisory_lock(hashtextextended(%s, 0))", (name,))


def test_advisory_locks_hold_up_neither_start_nor_relay_nor_retention_nor_replay(postgres, empty, weak, start_node, hook):
    with session(postgres, empty, weak) as hostile:
        take_every_advisory_lock(hostile)
        fresh = start_node(database_url=postgres.url(empty))
        fresh.api.create_tenant("acme")
        fresh.api.create_endpoint("acme", hook.url)
        take_every_advisory_lock(hostile, [row[0] for row in fresh.sql(
            "select 'key_' || replace(id::text, '-', '') from postrider.api_key")])
        fresh.sql("select postrider.publish('acme', 'a.b', '1')")
        hook.wait_for(1)
        delivery = wait_until(lambda: fresh.api.get("/v1/tenants/acme/deliveries?status=delivered").json["data"],
                              "the delivery has ended")[0]["id"]
        fresh.api.call("POST", f"/v1/tenants/acme/deliveries/{delivery}/replay", {"reason": "again"}).expect(202)
        hook.wait_for(2)
        fresh.stop()
        postgres.sql("select postrider.create_partition('event', '2020-01-01')", empty, "postrider")
        start_node(database_url=postgres.url(empty))
        wait_until(lambda: postgres.sql("select to_regclass('postrider.event_20200101') is null", empty) == [(True,)],
                   "a day that is past its time is dropped")
        done = subprocess.run([node_module.binary(), "migrate", "--database-url", postgres.url(empty)], cwd="/",
                              env=node_module.environment(), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr


def test_advisory_locks_in_an_outbox_database_hold_up_nothing(postgres, empty, weak, start_node, database_url, hook):
    fresh = start_node(database_url=database_url)
    fresh.api.create_tenant("acme")
    fresh.api.create_endpoint("acme", hook.url)
    with session(postgres, empty, weak) as hostile:
        take_every_advisory_lock(hostile)
        done = subprocess.run([node_module.binary(), "outbox", "install", "--database-url", postgres.url(empty)], cwd="/",
                              env=node_module.environment(), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        fresh.api.call("PUT", "/v1/outboxes/billing", {"database_url": postgres.url(empty)}).expect(201)
        postgres.sql("select postrider.publish('acme', 'a.b', '1')", empty, "postrider")
        hook.wait_for(1)


def test_a_weak_role_can_touch_no_lease(postgres, weak, start_node, database_url):
    start_node(database_url=database_url)
    name = database_url.split("?")[0].rsplit("/", 1)[1]
    for grant in ("grant_outbox", "grant_consumer", "grant_support"):
        postgres.sql(f"select postrider.{grant}()", name, "postrider")
    for forbidden in ("select from postrider.session_lease for key share", "begin; lock table postrider.session_lease in share mode",
                      "update postrider.session_lease set epoch = 0", "begin; lock table postrider.migration in access share mode",
                      "select postrider.hold_lease('relay', 1)", "select setval('postrider.outbox_idle_until', 1)",
                      "select nextval('postrider.outbox_idle_until')", "begin; lock table postrider.outbox in row exclusive mode"):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            postgres.sql(forbidden, name, weak)


def test_open_transactions_of_weak_roles_hold_up_nothing_else(postgres, start_node, database_url, hook):
    fresh = start_node(database_url=database_url)
    name = database_url.split("?")[0].rsplit("/", 1)[1]
    make_roles(postgres, name)
    for tenant in ("acme", "other"):
        fresh.api.create_tenant(tenant)
    strict = fresh.api.create_endpoint("acme", hook.url, ordering="strict")["id"]
    fresh.api.post("/v1/sources", {"id": "s", "provider": "standard", "secret": senders.STANDARD_SECRET}).expect(201)
    fresh.sql("select postrider.publish('acme', 'a.b', '1')")
    hook.wait_for(1)
    [delivery] = wait_until(lambda: fresh.api.get("/v1/tenants/acme/deliveries?status=delivered").json["data"],
                            "the delivery has ended")
    with contextlib.ExitStack() as stack:
        sessions = {role: stack.enter_context(session(postgres, name, f"weak_{role}")) for role in ROLES}
        for cursor in sessions.values():
            cursor.execute("begin")
        sessions["support"].execute("select postrider.replay_delivery(%s, 'left open')", (delivery["id"],))
        sessions["support"].execute("select postrider.pause_endpoint(%s, 'left open')", (strict,))
        sessions["publisher"].execute("select postrider.publish('acme', 'a.b', '2')")
        sessions["consumer"].execute("select postrider.inbox_claim('w', 's', 10, '1 minute')")
        # The strict endpoint is published to, and the registry of everybody can be changed.
        fresh.sql("select postrider.publish('acme', 'a.b', '3')")
        assert b'"data":3' in hook.wait_for(2)[1].body
        fresh.api.create_endpoint("other", hook.url)
        fresh.sql("select postrider.publish('other', 'a.b', '4')")
        assert b'"data":4' in hook.wait_for(3)[2].body
        sessions["support"].execute("rollback")
        sessions["publisher"].execute("commit")
        assert b'"data":2' in hook.wait_for(4)[3].body


def test_what_support_does_in_sql_takes_effect_after_the_commit(postgres, start_node, database_url, hook):
    fresh = start_node(database_url=database_url)
    fresh.api.create_tenant("acme")
    endpoint = fresh.api.create_endpoint("acme", hook.url)["id"]
    fresh.sql("select postrider.pause_endpoint(%s, 'a moment')", (endpoint,))
    fresh.sql("select postrider.publish('acme', 'a.b', '1')")
    wait_until(lambda: fresh.sql("select count(*) from postrider.control_log c join postrider.endpoint e"
                                 " on e.id = c.endpoint_id where c.kind = 'endpoint' and e.status = 'paused'")[0][0] > 1,
               "the change is noted")
    fresh.sql("select postrider.resume_endpoint(%s, 'go on')", (endpoint,))
    hook.wait_for(1)


def make_roles(postgres, database):
    for role, grant in (("publisher", "grant_outbox"), ("consumer", "grant_consumer"), ("support", "grant_support")):
        for made in (f"postrider_{role}", f"weak_{role} login"):
            postgres.sql(f"do $$ begin create role {made}; exception when duplicate_object then end $$", "postgres")
        postgres.sql(f"grant postrider_{role} to weak_{role}", "postgres")
        if postgres.sql(f"select to_regprocedure('postrider.{grant}()') is not null", database) == [(True,)]:
            postgres.sql(f"select postrider.{grant}()", database, "postrider")


def run_command(*words):
    return subprocess.run([node_module.binary(), *words], cwd="/", env=node_module.environment(), capture_output=True,
                          text=True, timeout=60)


def send_message(node, source, number):
    body = json.dumps({"n": number}).encode()
    headers = {"content-type": "application/json", **senders.standard(senders.STANDARD_SECRET, f"msg_{number}", body)}
    assert node.api.as_key(None).call("POST", f"/in/{source}", body, headers=headers).status == 200


def bodies(hook, count):
    return sorted(json.loads(request.body)["data"]["n"] for request in hook.wait_for(count))


def test_calls_left_open_delay_no_lease_migration_forwarding_or_retention(postgres, start_node, database_url, hook):
    node = start_node(database_url=database_url)
    name = database_url.split("?")[0].rsplit("/", 1)[1]
    make_roles(postgres, name)
    node.api.create_tenant("acme")
    node.api.create_endpoint("acme", hook.url)
    node.api.post("/v1/sources", {"id": "shop", "provider": "standard", "secret": senders.STANDARD_SECRET,
                                  "forward": {"tenant_id": "acme", "type": "shop.order"}}).expect(201)
    for number in range(1, 4):
        send_message(node, "shop", number)
    assert bodies(hook, 3) == [1, 2, 3]
    with session(postgres, name, "weak_publisher") as publisher, session(postgres, name, "weak_consumer") as consumer:
        consumer.execute("select id from postrider.inbox_claim('w', 'shop', 10, '5 minutes')")
        acked, nacked, extended = (row[0] for row in consumer.fetchall())
        for cursor in (publisher, consumer):
            cursor.execute("begin")
        publisher.execute("select postrider.publish('acme', 'a.b', '{\"n\": 10}'), postrider.emit('acme', 'a.b', '{\"n\": 11}')")
        consumer.execute("select postrider.inbox_ack('w', %s)", ([acked],))
        consumer.execute("select postrider.inbox_nack('w', %s, 'left open')", (nacked,))
        consumer.execute("select postrider.inbox_extend('w', %s, '5 minutes')", ([extended],))

        assert run_command("migrate", "--database-url", database_url).returncode == 0
        assert node.stop() == 0
        days = ("event", "attempt", "dead_letter")
        for parent in (*days, "inbox"):
            postgres.sql(f"select postrider.create_partition('{parent}', '2020-01-01')", name, "postrider")

        def left():
            return {parent for parent in (*days, "inbox")
                    if postgres.sql(f"select to_regclass('postrider.{parent}_20200101') is not null", name) == [(True,)]}

        again = start_node(database_url=database_url)
        again.sql("select postrider.publish('acme', 'a.b', '{\"n\": 20}')")
        send_message(again, "shop", 21)
        assert bodies(hook, 5) == [1, 2, 3, 20, 21], "the relay has its lease, and messages are forwarded"
        # Detaching a day waits for transactions that use its table, so those of the inbox wait for the consumer.
        wait_until(lambda: left() <= {"inbox"}, "days that are past their time are dropped")
        publisher.execute("commit")
        consumer.execute("commit")
        assert bodies(hook, 7) == [1, 2, 3, 10, 11, 20, 21]
    assert again.sql("select status from postrider.inbox where id = postrider.message_id(%s)", (acked,)) == [("done",)]
    assert again.stop() == 0
    start_node(database_url=database_url)
    wait_until(lambda: not left(), "the day of the inbox is dropped by the next pass")


def test_an_open_publish_in_an_outbox_database_delays_neither_its_relay_nor_its_retention(postgres, empty, start_node,
                                                                                       database_url, hook):
    node = start_node(database_url=database_url)
    node.api.create_tenant("acme")
    node.api.create_endpoint("acme", hook.url)
    installed = run_command("outbox", "install", "--database-url", postgres.url(empty))
    assert installed.returncode == 0, installed.stderr
    make_roles(postgres, empty)
    postgres.sql("""insert into postrider.outbox (event_id, tenant_id, type, data, processed_at)
                    select gen_random_uuid(), 'acme', 'a.b', '1', now() - interval '30 days' from generate_series(1, 3)""",
                 empty, "postrider")
    for forbidden in ("select from postrider.outbox for update", "select from postrider.session_lease for key share",
                      "update postrider.outbox set processed_at = null", "delete from postrider.outbox"):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            postgres.sql(forbidden, empty, "weak_publisher")
    with session(postgres, empty, "weak_publisher") as publisher:
        publisher.execute("begin")
        publisher.execute("select postrider.publish('acme', 'a.b', '{\"n\": 1}'), postrider.emit('acme', 'a.b', '{\"n\": 2}')")
        node.api.call("PUT", "/v1/outboxes/billing", {"database_url": postgres.url(empty)}).expect(201)
        postgres.sql("select postrider.publish('acme', 'a.b', '{\"n\": 3}')", empty, "postrider")
        assert bodies(hook, 1) == [3]
        old = "select count(*) from postrider.outbox where processed_at < now() - interval '8 days'"
        wait_until(lambda: postgres.sql(old, empty) == [(0,)], "old rows are removed")
        publisher.execute("commit")
        assert bodies(hook, 3) == [1, 2, 3]


def test_who_holds_postrider_up_is_logged_and_shown_by_the_doctor(postgres, start_node, database_url, hook):
    node = start_node(database_url=database_url)
    node.api.create_tenant("acme")
    path = f"/v1/tenants/acme/endpoints/{node.api.create_endpoint('acme', hook.url)['id']}"

    def locks():
        done = subprocess.run([node_module.binary(), "doctor", "--json"], cwd="/", capture_output=True, text=True, timeout=60,
                              env=node_module.environment(**node.settings))
        return [(one["status"], one["finding"], one["advice"]) for one in json.loads(done.stdout) if one["about"] == "locks"]

    name = database_url.split("?")[0].rsplit("/", 1)[1]
    with session(postgres, name, "postgres") as person, concurrent.futures.ThreadPoolExecutor() as threads:
        pid = person.connection.get_backend_pid()
        person.execute("begin; update postrider.endpoint set description = 'left open'")
        [(status, finding, _)] = locks()
        assert status == "ok" and f"nothing is blocked; open transactions: pid {pid} (role postgres: endpoint" in finding
        changing = threads.submit(node.api.call, "PATCH", path, {"description": "waits"})
        entry = node.wait_for_log("blocked_by_transaction", pid=pid, role="postgres")
        assert entry["service"].startswith("postrider")
        [(status, finding, advice)] = locks()
        assert (status, finding) == ("warning", f"{entry['service']} is blocked by a transaction of pid {pid} (role postgres)")
        assert f"pg_terminate_backend({pid})" in advice
        person.execute("commit")
        assert changing.result().status == 200
    assert locks()[0][:2] == ("ok", "nothing is blocked")
