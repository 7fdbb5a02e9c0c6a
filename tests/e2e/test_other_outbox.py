"""Outboxes in other databases, and rows that were set aside."""

import gzip
import itertools
import json
import subprocess

import psycopg2
import pytest

from harness import node as node_module
from harness.postgres import Postgres, run_sql
from harness.wait import wait_until

NUMBERS = itertools.count(1)


@pytest.fixture
def application(postgres):
    """An application's database, with the outbox installed."""
    name = f"application_{next(NUMBERS)}"
    postgres.create(name)
    yield postgres.url(name)
    postgres.drop(name)


def install(url):
    return subprocess.run([node_module.binary(), "outbox", "install", "--database-url", url], cwd="/", text=True,
                          env=node_module.environment(), capture_output=True)


@pytest.fixture
def fresh(start_node, database_url, hook):
    started = start_node(database_url=database_url)
    started.api.create_tenant("acme")
    started.api.create_endpoint("acme", hook.url)
    return started


def test_installing_can_be_repeated_and_is_refused_in_postriders_own_database(application, database_url):
    for _ in range(2):
        done = install(application)
        assert done.returncode == 0, done.stdout + done.stderr
    refused = install(database_url)
    assert refused.returncode != 0
    assert "it already has an outbox" in refused.stderr


def test_committed_rows_of_another_database_are_delivered_and_marked(fresh, application, hook):
    assert install(application).returncode == 0
    url = application.replace("postrider@", "postrider:sesame@")
    made = fresh.api.call("PUT", "/v1/outboxes/billing", {"database_url": url}).expect(201)
    assert "sesame" not in json.dumps(made)
    [(event,)] = run_sql(application, "select postrider.publish('acme', 'order.paid', '{\"n\": 1}')")
    [request] = hook.wait_for(1)
    assert request.headers["webhook-id"] == event
    assert fresh.api.get(f"/v1/tenants/acme/events/{event}").json["id"] == event
    wait_until(lambda: run_sql(application, "select count(*) from postrider.outbox where processed_at is not null")
               == [(1,)], "the row is marked")
    assert "sesame" not in json.dumps(fresh.api.get("/v1/outboxes").json)
    # As after a crash between publishing and marking.
    run_sql(application, "update postrider.outbox set processed_at = null, xid = pg_current_xact_id()")
    wait_until(lambda: run_sql(application, "select count(*) from postrider.outbox where processed_at is not null")
               == [(1,)], "the row is marked again", 90)
    run_sql(application, "select postrider.publish('acme', 'order.paid', '2')")
    hook.wait_for(2)
    assert len(hook.requests) == 2


def test_an_outbox_that_cannot_be_reached_does_not_touch_the_others(fresh, application, hook):
    assert install(application).returncode == 0
    fresh.api.call("PUT", "/v1/outboxes/gone", {"database_url": "postgresql://nobody@127.0.0.1:1/none"}).expect(201)
    fresh.api.call("PUT", "/v1/outboxes/billing", {"database_url": application}).expect(201)
    run_sql(application, "select postrider.publish('acme', 'order.paid', '1')")
    fresh.sql("select postrider.publish('acme', 'order.paid', '2')")
    assert sorted(json.loads(request.body)["data"] for request in hook.wait_for(2)) == [1, 2]
    gone = fresh.api.get("/v1/outboxes/gone")
    assert gone.status == 503 and "Connection refused" in gone.json["detail"]
    assert fresh.api.call("DELETE", "/v1/outboxes/gone").status == 204
    assert fresh.api.get("/v1/outboxes/gone").status == 404


def test_a_database_without_an_outbox_or_without_rights_to_it_is_told_from_one_that_is_away(fresh, application, postgres):
    name = application.split("?")[0].rsplit("/", 1)[1]
    postgres.sql("do $$ begin create role stranger login; exception when duplicate_object then end $$", name)
    for user in ("postrider", "stranger"):
        fresh.api.call("PUT", "/v1/outboxes/billing", {"database_url": postgres.url(name, user)})
        for path in ("billing", "billing/stuck", "billing/capture"):
            refused = fresh.api.get(f"/v1/outboxes/{path}")
            assert refused.status == 503 and "outbox install" in refused.json["detail"], refused.json
        assert install(application).returncode == 0
    assert fresh.wait_for_log("relay_failed", outbox="billing")


def test_what_was_set_aside_is_listed_repaired_and_released(fresh, hook):
    fresh.sql("select postrider.publish('late', 'order.paid', '1')")
    wait_until(lambda: fresh.sql("select count(*) from postrider.outbox where attempts > 0") == [(1,)], "it is refused")
    fresh.sql("update postrider.outbox set attempts = 4, retry_at = now()")
    stuck = wait_until(lambda: fresh.api.get("/v1/outboxes/local/stuck").json["data"], "it is set aside")
    assert [(row["tenant_id"], row["attempts"], row["last_error"]) for row in stuck] == [
        ("late", 5, "there is no such tenant")]
    assert fresh.api.get("/v1/outboxes/local").json["stuck"] == 1
    fresh.api.create_tenant("late")
    fresh.api.create_endpoint("late", hook.url)
    assert fresh.api.post("/v1/outboxes/local/stuck/release").json == {"released": 1, "cut": 0}
    hook.wait_for(1)


def test_rows_that_fail_are_shown_and_those_set_aside_can_be_discarded(fresh):
    fresh.sql("select postrider.publish('typo', 'order.paid', '1'), postrider.publish('typo', 'order.sent', '2')")
    state = wait_until(lambda: (shown := fresh.api.get("/v1/outboxes/local").expect(200))["failing"] == 2 and shown,
                       "both rows have failed")
    assert (state["waiting"], state["stuck"]) == (0, 0)
    assert {(row["tenant_id"], row["last_error"]) for row in state["failing_rows"]} == {("typo", "there is no such tenant")}
    assert {row["type"] for row in state["failing_rows"]} == {"order.paid", "order.sent"}
    fresh.sql("update postrider.outbox set attempts = 4, retry_at = now()")
    stuck = wait_until(lambda: len(rows := fresh.api.get("/v1/outboxes/local/stuck").json["data"]) == 2 and rows,
                       "both are set aside")
    discard = "/v1/outboxes/local/stuck/discard"
    assert fresh.api.post(discard, {}).status == 422
    assert fresh.api.post(discard, {"all": True, "ids": [1]}).status == 422
    one = fresh.api.post(discard, {"ids": [stuck[0]["id"]], "reason": "a typo"}).expect(200)
    assert one == {"discarded": 1}
    entry = fresh.api.get("/v1/audit?action=outbox.discard").expect(200)["data"][0]
    assert entry["reason"] == "a typo" and entry["after"] == {"rows": [str(stuck[0]["id"])]}
    assert fresh.api.post(discard, {"all": True}).expect(200) == {"discarded": 1}
    assert fresh.sql("select count(*) from postrider.outbox where processed_at is null") == [(0,)]


def test_a_relay_role_needs_only_what_it_is_granted(postgres, fresh, application, hook):
    name = application.split("?")[0].rsplit("/", 1)[1]
    postgres.sql("do $$ begin create role postrider_relay; exception when duplicate_object then end $$", name)
    postgres.sql("do $$ begin create role relay login; exception when duplicate_object then end $$", name)
    postgres.sql("grant postrider_relay to relay", name)
    assert install(application).returncode == 0
    fresh.api.call("PUT", "/v1/outboxes/billing", {"database_url": postgres.url(name, "relay")}).expect(201)
    run_sql(application, "select postrider.publish('acme', 'order.paid', '1')")
    hook.wait_for(1)
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        postgres.sql("insert into postrider.outbox (event_id, tenant_id, type, data)"
                     " values (gen_random_uuid(), 'acme', 'a.b', '1')", name, "relay")


def test_outboxes_of_the_configuration_file_are_relayed_shown_and_only_changed_there(start_node, application, database_url,
                                                                                    hook, tmp_path):
    assert install(application).returncode == 0
    secret = application.replace("postrider@", "postrider:sesame@")
    assert secret != application
    (tmp_path / "billing.url").write_text(secret + "\n")
    (tmp_path / "postrider.toml").write_text(f'''
[[outbox]]
name = "billing"
database_url_file = "{tmp_path}/billing.url"
poll = "100ms"
retain = "1d"
''')
    words = ("--config", str(tmp_path / "postrider.toml"))
    node = start_node(words=("serve", *words), database_url=database_url)
    node.api.create_tenant("acme")
    node.api.create_endpoint("acme", hook.url)
    run_sql(application, "select postrider.publish('acme', 'order.paid', '1')")
    hook.wait_for(1)
    listed = node.api.get("/v1/outboxes").json["data"]
    assert [(each["id"], each["configured_by"]) for each in listed] == [("local", None), ("billing", "file")]
    assert node.api.get("/v1/outboxes/billing").json["stuck"] == 0
    for method, body in (("PUT", {"database_url": application}), ("DELETE", None)):
        refused = node.api.call(method, "/v1/outboxes/billing", body)
        assert refused.status == 409 and refused.json["type"].endswith("configured-by-file")
    shown = subprocess.run([node_module.binary(), "config", *words], cwd="/", text=True, capture_output=True,
                           env=node_module.environment(**node.settings))
    assert "outbox.billing" in shown.stdout, shown.stderr
    everything = shown.stdout + shown.stderr + json.dumps(listed) + json.dumps(node.log) + "".join(node.text)
    assert "sesame" not in everything


def test_a_row_whose_fault_cannot_be_written_as_it_is_holds_nothing_up(fresh, application, hook):
    """A fault names the field, which may be long, and hold what Postgres has no text for."""
    schema = {"type": "object", "additionalProperties": False}
    versions = [{"version": "1", "schema": schema}]
    fresh.api.call("PUT", "/v1/event-types/order.checked", {"validation": "reject", "versions": versions}).expect(201)
    unfit = {"type": "order.checked", "data": {"x": 1}}
    wait_until(lambda: fresh.api.post("/v1/tenants/acme/events", unfit).status == 422, "the node knows the schema")
    assert install(application).returncode == 0
    fresh.api.call("PUT", "/v1/outboxes/billing", {"database_url": application}).expect(201)
    for data in ({"x" + 600 * "é": 1}, {"\0": 1}, {}):
        run_sql(application, "select postrider.publish('acme', 'order.checked', %s)", (json.dumps(data),))
    hook.wait_for(1)
    wait_until(lambda: run_sql(application, "select processed_at is not null, attempts > 0, last_error is not null "
                               "from postrider.outbox order by id")
               == [(False, True, True), (False, True, True), (True, False, False)], "the bad ones are refused")


def test_operators_are_told_of_rows_that_are_set_aside(fresh, application, receiver):
    told = receiver.hook()
    fresh.api.create_endpoint("postrider", told.url, event_types=["outbox.stuck"])
    assert install(application).returncode == 0
    fresh.api.call("PUT", "/v1/outboxes/billing", {"database_url": application}).expect(201)
    for url, outbox in ((fresh.database_url, "local"), (application, "billing")):
        run_sql(url, "select postrider.publish('nobody', 'order.paid', to_json(n)) from generate_series(1, 12) n")
        wait_until(lambda: run_sql(url, "select count(*) from postrider.outbox where attempts > 0") == [(12,)], "refused")
        run_sql(url, "update postrider.outbox set attempts = 4, retry_at = now()")
        wait_until(lambda: [each for each in told.requests if json.loads(each.body)["data"]["outbox"] == outbox],
                   f"somebody is told about {outbox}")
    events = [json.loads(request.body) for request in told.requests]
    assert [(each["type"], each["data"]["outbox"], each["data"]["rows"]) for each in events] == [
        ("outbox.stuck", "local", 12), ("outbox.stuck", "billing", 12)]
    first = events[1]["data"]["first"]
    assert len(first) == 10 and first[0]["tenant_id"] == "nobody" and first[0]["error"] == "there is no such tenant"
    assert 'webhook_outbox_stuck{outbox="billing"}' in fresh.api.get("/metrics").body.decode()


def test_processed_rows_go_after_their_time_and_are_archived_first(start_node, application, database_url, hook, tmp_path):
    assert install(application).returncode == 0
    rows = "select id, data from postrider.outbox order by id"

    def age(numbers):
        run_sql(application, "update postrider.outbox set processed_at = now() - interval '8 days' where data::int = any (%s)",
                (numbers,))

    node = start_node(database_url=database_url)
    node.api.create_tenant("acme")
    node.api.create_endpoint("acme", hook.url)
    node.api.call("PUT", "/v1/outboxes/billing", {"database_url": application}).expect(201)
    run_sql(application, "select postrider.publish('acme', 'order.paid', to_json(n)) from generate_series(1, 6) n")
    wait_until(lambda: run_sql(application, "select count(*) from postrider.outbox where processed_at is not null")
               == [(6,)], "all are processed")
    node.stop()

    # The archive cannot be written: nothing goes.
    age([1, 2, 3])
    node = start_node(database_url=database_url, archive_dir=str(tmp_path / "missing"))
    node.wait_for_log("outbox_not_archived", outbox="billing")
    assert len(run_sql(application, rows)) == 6
    node.stop()

    node = start_node(database_url=database_url, archive_dir=str(tmp_path))
    done = node.wait_for_log("outbox_archived", outbox="billing")
    assert [data for _, data in run_sql(application, rows)] == ["4", "5", "6"]
    assert done["rows"] == 3
    with gzip.open(done["file"], "rt") as lines:
        kept = [json.loads(line) for line in lines]
    assert [(row["tenant_id"], row["data"]) for row in kept] == [("acme", "1"), ("acme", "2"), ("acme", "3")]
    node.stop()

    age([4])
    node = start_node(database_url=database_url)
    wait_until(lambda: [data for _, data in run_sql(application, rows)] == ["5", "6"], "it goes, the others stay")
    assert len(list(tmp_path.glob("outbox_*"))) == 1


def test_roles_that_could_not_be_created_come_with_the_statements_that_do(start_node):
    """The role postrider of a test's server is not allowed to create roles."""
    server = Postgres()
    try:
        server.create("application")
        server.create("own")
        url = server.url("application")
        done = install(url)
        assert done.returncode == 0, done.stderr
        statements = done.stdout.splitlines()[-1].strip()
        assert statements == ("create role postrider_publisher nologin; create role postrider_relay nologin; "
                              "select postrider.grant_outbox();")
        server.sql(statements, "application")
        assert "create role" not in install(url).stdout
        server.sql("set role postrider_publisher; select postrider.publish('acme', 'a', '{}'::json)", "application")

        node = start_node(database_url=server.url("own"))
        logged = node.wait_for_log("roles_missing")
        assert logged["roles"] == "postrider_consumer, postrider_support, postrider_support_payloads"
        server.sql("select response_preview, response_headers from postrider.webhook_delivery_attempts", "own")
        doctor = lambda: {one["about"]: one for one in json.loads(subprocess.run(
            [node_module.binary(), "doctor", "--json"], cwd="/", text=True, capture_output=True,
            env=node_module.environment(database_url=server.url("own"), master_key=node_module.MASTER_KEY)).stdout)}
        assert doctor()["roles"]["status"] == "warning" and logged["statements"] in doctor()["roles"]["advice"]
        server.sql(logged["statements"], "own")
        assert doctor()["roles"]["status"] == "ok"
        server.sql("set role postrider_support; select * from postrider.webhook_deliveries", "own")
        # One of the two roles is enough.
        server.sql("drop owned by postrider_support_payloads; drop role postrider_support_payloads", "own")
        server.sql("select postrider.grant_support()", "own", "postrider")
        server.sql("set role postrider_support; select response_preview from postrider.webhook_delivery_attempts", "own")
        node.stop()
    finally:
        server.close()
