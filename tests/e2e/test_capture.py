"""Change data capture: events that are written into the write-ahead log instead of a table."""

import json
import os
import subprocess

import psycopg2
import pytest

from harness import node as node_module
from harness.postgres import run_sql
from harness.wait import wait_until


def state(node, outbox="local"):
    return node.api.get(f"/v1/outboxes/{outbox}/capture").expect(200)


def switch(node, mode, outbox="local"):
    node.api.call("PATCH", f"/v1/outboxes/{outbox}/capture", {"mode": mode}).expect(200)


def wait_for(node, wanted, outbox="local"):
    wait_until(lambda: state(node, outbox)["state"] == wanted, f"capture is {wanted}", 60)


@pytest.fixture
def capturing(start_node, database_url, hook):
    started = start_node(database_url=database_url)
    started.api.create_tenant("acme")
    started.api.create_endpoint("acme", hook.url)
    switch(started, "cdc")
    wait_for(started, "on")
    yield started
    started.stop()  # before its database goes: a slot that is read holds it


def test_what_commits_is_delivered_and_no_row_is_written(capturing, hook):
    application = psycopg2.connect(capturing.database_url)
    with application.cursor() as cursor:
        cursor.execute("select postrider.emit('acme', 'order.paid', '\"no\"')")
        application.rollback()
        cursor.execute("select postrider.emit('acme', 'order.paid', %s, subject => 'o/1')", ('{"n": 1.50}',))
        [(event,)] = cursor.fetchall()
        application.commit()
    application.close()
    [request] = hook.wait_for(1)
    assert request.headers["webhook-id"] == event
    assert b'"data":{"n": 1.50}}' in request.body
    assert capturing.sql("select last_value, (select count(*) from postrider.outbox) from postrider.outbox_id_seq") \
        == [(2, 0)]


@pytest.mark.parametrize("arguments, complaint", [
    ("'no spaces please', 'a.b', '1'", "postrider.emit: tenant must have"),
    ("'t', 'a.b', '{\"a\":}'", "invalid input syntax for type json"),
    ("'t', 'a.b', to_json(repeat('x', 300000))", "the limit is 262144"),
])
def test_bad_arguments_fail_the_transaction(node, arguments, complaint):
    with pytest.raises(psycopg2.DataError, match=complaint):
        node.sql(f"select postrider.emit({arguments})")


def test_a_role_that_may_only_publish_may_emit(postgres, capturing, hook):
    name = capturing.database_url.split("?")[0].rsplit("/", 1)[1]
    for role in ("postrider_publisher", "shop login"):
        postgres.sql(f"do $$ begin create role {role}; exception when duplicate_object then end $$", name)
    postgres.sql("grant postrider_publisher to shop", name)
    postgres.sql("select postrider.grant_outbox()", name, "postrider")
    postgres.sql("select postrider.emit('acme', 'a.b', jsonb_build_object('n', 1))", name, "shop")
    assert json.loads(hook.wait_for(1)[0].body)["data"] == {"n": 1}
    for forbidden in ("select capture_key from postrider.outbox_setting", "select postrider.outbox_set_mode('table')",
                      "select setval('postrider.outbox_capture', 1)"):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            postgres.sql(forbidden, name, "shop")


def test_what_cannot_be_published_is_set_aside_seen_and_released(capturing, hook):
    capturing.sql("select postrider.emit('newcomer', 'a.b', '\"first\"')")
    capturing.sql("select postrider.emit('acme', 'a.b', '\"second\"')")
    assert json.loads(hook.wait_for(1)[0].body)["data"] == "second"
    wait_until(lambda: capturing.sql("select last_error from postrider.webhook_outbox")
               == [("there is no such tenant",)], "the refusal is on its row")
    capturing.sql("update postrider.outbox set attempts = 5, set_aside_at = now()")
    assert [row["tenant_id"] for row in capturing.api.get("/v1/outboxes/local/stuck").expect(200)["data"]] == ["newcomer"]
    capturing.api.create_tenant("newcomer")
    capturing.api.create_endpoint("newcomer", hook.url)
    assert capturing.api.post("/v1/outboxes/local/stuck/release").expect(200) == {"released": 1, "cut": 0}
    assert json.loads(hook.wait_for(2)[1].body)["data"] == "first"


def refuse_unfit_amounts(start_node, database_url, hook):
    """A tenant, an endpoint, and a type whose schema is obeyed; the node that comes next knows them from its start."""
    node = start_node(database_url=database_url)
    node.api.create_tenant("acme")
    node.api.create_endpoint("acme", hook.url)
    document = {"validation": "reject",
                "versions": [{"version": "1", "schema": {"properties": {"amount": {"type": "integer"}}}}]}
    node.api.call("PUT", "/v1/event-types/invoice.paid", document).expect(201)
    node.stop()


def emit_unfit_and_fit(sql):
    sql("select postrider.emit('acme', 'invoice.paid', '{\"amount\": \"much\"}'::json)")
    sql("select postrider.emit('acme', 'invoice.paid', '{\"amount\": 7}'::json)")


def assert_unfit_is_set_aside(node, sql, hook, outbox):
    [got] = hook.wait_for(1)
    assert json.loads(got.body)["data"] == {"amount": 7}
    wait_until(lambda: sql("select last_error from postrider.outbox")
               == [("the event does not match the schema of its type: /data/amount must be an integer",)], "it is a row, with its error")
    sql("update postrider.outbox set attempts = 4, retry_at = now()")
    [stuck] = wait_until(lambda: node.api.get(f"/v1/outboxes/{outbox}/stuck").expect(200)["data"], "it is set aside")
    assert "does not match the schema" in stuck["last_error"]
    node.api.call("PUT", "/v1/event-types/invoice.paid", {"validation": "off"}).expect(200)
    assert node.api.post(f"/v1/outboxes/{outbox}/stuck/release").expect(200) == {"released": 1, "cut": 0}
    wait_until(lambda: {"amount": "much"} in [json.loads(each.body)["data"] for each in list(hook.requests)], "it is delivered")


def test_what_is_emitted_is_judged_by_the_catalogue(start_node, database_url, hook):
    refuse_unfit_amounts(start_node, database_url, hook)
    node = start_node(database_url=database_url)
    switch(node, "cdc")
    wait_for(node, "on")
    emit_unfit_and_fit(node.sql)
    assert_unfit_is_set_aside(node, node.sql, hook, "local")
    node.stop()


def test_another_database_and_back_to_rows_again(start_node, postgres, database_url, hook):
    postgres.create("captured_elsewhere")
    there = postgres.url("captured_elsewhere")
    try:
        subprocess.run([node_module.binary(), "outbox", "install", "--database-url", there], check=True, cwd="/",
                       env=node_module.environment(), stdout=subprocess.DEVNULL)
        node = start_node(database_url=database_url)
        node.api.create_tenant("acme")
        node.api.create_endpoint("acme", hook.url)
        node.api.call("PUT", "/v1/outboxes/billing", {"database_url": there}).expect(201)
        switch(node, "cdc", "billing")
        wait_for(node, "on", "billing")
        [(event,)] = run_sql(there, "select postrider.emit('acme', 'order.paid', '1')")
        assert hook.wait_for(1)[0].headers["webhook-id"] == event
        assert run_sql(there, "select count(*) from postrider.outbox") == [(0,)]
        refused = node.api.call("DELETE", "/v1/outboxes/billing")
        assert refused.status == 409, "its slot would stay and fill the disk"
        switch(node, "table", "billing")
        wait_for(node, "off", "billing")
        assert state(node, "billing")["slot"] is None
        run_sql(there, "select postrider.emit('acme', 'order.paid', '2')")
        hook.wait_for(2)
        assert run_sql(there, "select count(*) from postrider.outbox") == [(1,)]
        node.api.call("DELETE", "/v1/outboxes/billing").expect(204)
        node.stop()
    finally:
        postgres.drop("captured_elsewhere")


@pytest.mark.skipif("POSTRIDER_TEST_PG_BIN" in os.environ, reason="about the private Postgres; other versions run with wal_level = logical")
def test_a_server_without_logical_decoding_says_so_and_takes_rows(node, tenant, hook, cli):
    node.api.create_endpoint(tenant, hook.url)
    done = cli("outbox", "capture", "--mode", "cdc", "--json")
    assert done.returncode == 0, done.stderr
    try:
        wait_for(node, "impossible")
        assert "wal_level = logical" in state(node)["reason"]
        doctor = subprocess.run([node_module.binary(), "doctor"], cwd="/", capture_output=True, text=True,
                                env=node_module.environment(data_dir=node.settings["data_dir"]))
        assert "wal_level is replica" in doctor.stdout and "Set private_capture = true and restart." in doctor.stdout
        node.sql("select postrider.emit(%s, 'a.b', '1')", (tenant,))
        hook.wait_for(1)
    finally:
        switch(node, "table")
        wait_for(node, "off")


def test_what_is_emitted_in_another_database_is_judged_by_the_catalogue(start_node, postgres, database_url, hook):
    postgres.create("captured_unfit")
    there = postgres.url("captured_unfit")
    try:
        subprocess.run([node_module.binary(), "outbox", "install", "--database-url", there], check=True, cwd="/",
                       env=node_module.environment(), stdout=subprocess.DEVNULL)
        refuse_unfit_amounts(start_node, database_url, hook)
        node = start_node(database_url=database_url)
        node.api.call("PUT", "/v1/outboxes/billing", {"database_url": there}).expect(201)
        switch(node, "cdc", "billing")
        wait_for(node, "on", "billing")
        emit_unfit_and_fit(lambda text: run_sql(there, text))
        assert_unfit_is_set_aside(node, lambda text: run_sql(there, text), hook, "billing")
        switch(node, "table", "billing")
        wait_for(node, "off", "billing")
        node.stop()
    finally:
        postgres.drop("captured_unfit")


def test_the_private_postgres_can_be_started_for_it(start_node, data_dir, hook):
    node = start_node(data_dir=data_dir)
    node.api.create_tenant("acme")
    node.api.create_endpoint("acme", hook.url)
    switch(node, "cdc")
    wait_for(node, "impossible")
    node.stop()
    again = start_node(data_dir=data_dir)
    wait_until(lambda: [line for line in again.log if line["event"] == "capture_state"], "it says so at every start")
    again.stop()
    capturing = start_node(data_dir=data_dir, private_capture="true")
    wait_for(capturing, "on")
    [(event,)] = capturing.sql("select postrider.emit('acme', 'order.paid', '1')")
    assert hook.wait_for(1)[0].headers["webhook-id"] == event
    assert capturing.sql("select count(*) from postrider.outbox") == [(0,)]
