"""The outbox in postrider's own database: an event commits with the business change, or not at all."""

import json
import signal

import psycopg2
import pytest

from harness.wait import wait_until

PUBLISH = "select postrider.publish(%s, %s, %s)"


def connect(url):
    connection = psycopg2.connect(url)
    connection.autocommit = False
    return connection


def test_what_commits_is_delivered_and_what_rolls_back_is_not(node, tenant, hook):
    node.api.create_endpoint(tenant, hook.url)
    application = connect(node.database_url)
    with application.cursor() as cursor:
        cursor.execute("create temporary table orders (id int)")
        cursor.execute("insert into orders values (1)")
        cursor.execute(PUBLISH, (tenant, "order.paid", '{"order": "rolled back"}'))
        application.rollback()
        cursor.execute(PUBLISH, (tenant, "order.paid", '{"order": 1}'))
        [(event,)] = cursor.fetchall()
        application.commit()
    application.close()
    [request] = hook.wait_for(1)
    assert request.headers["webhook-id"] == event
    body = json.loads(request.body)
    assert (body["id"], body["type"], body["tenant_id"], body["data"]) == (event, "order.paid", tenant, {"order": 1})
    assert node.api.get(f"/v1/tenants/{tenant}/events/{event}").json["id"] == event
    assert len(hook.requests) == 1


@pytest.mark.parametrize("arguments, complaint", [
    ("'no spaces please', 'a.b', '1'", "tenant must have"),
    ("'t', 'a..b', '1'", "type must be"),
    ("'t', 'a.b', null::text", "data is required"),
    ("'t', 'a.b', '{\"a\":}'", "invalid input syntax for type json"),
    ("'t', 'a.b', '1', id => 'a b'", "id must have"),
    ("'t', 'a.b', '1', version => ''", "version must have"),
    ("'t', 'a.b', '1', subject => repeat('x', 256)", "subject must have"),
    ("'t', 'a.b', '1', occurred_at => 'infinity'", "occurred_at must be"),
    ("'t', 'a.b', to_json(repeat('x', 300000))", "the limit is 262144"),
])
def test_bad_arguments_fail_the_transaction(node, arguments, complaint):
    with pytest.raises(psycopg2.DataError, match=complaint):
        node.sql(f"select postrider.publish({arguments})")


def test_a_bad_trace_never_fails_a_business_transaction(node, tenant, hook):
    node.api.create_endpoint(tenant, hook.url)
    node.sql("select postrider.publish(%s, 'a.b', '1', traceparent => 'garbage from a client')", (tenant,))
    [request] = hook.wait_for(1)
    assert "traceparent" not in request.headers


def test_a_role_that_may_only_publish_can_do_nothing_else(postgres, start_node, database_url, hook):
    name = database_url.split("?")[0].rsplit("/", 1)[1]
    postgres.sql("do $$ begin create role postrider_publisher; exception when duplicate_object then end $$", name)
    postgres.sql("do $$ begin create role shop login; exception when duplicate_object then end $$", name)
    postgres.sql("grant postrider_publisher to shop", name)
    postgres.sql("select postrider.grant_outbox()", name, "postrider")
    fresh = start_node(database_url=database_url)
    fresh.api.create_tenant("acme")
    fresh.api.create_endpoint("acme", hook.url)
    postgres.sql("select postrider.publish('acme', 'a.b', jsonb_build_object('n', 1))", name, "shop")
    assert json.loads(hook.wait_for(1)[0].body)["data"] == {"n": 1}
    for forbidden in ("select * from postrider.outbox", "insert into postrider.outbox (event_id, tenant_id, type, data)"
                      " values (gen_random_uuid(), 'acme', 'a.b', '1')", "select * from postrider.event",
                      "select postrider.create_partitions()", "delete from postrider.outbox"):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            postgres.sql(forbidden, name, "shop")


def test_another_node_takes_over_when_the_relaying_one_is_killed_or_stopped(start_node, database_url, hook):
    first = start_node(database_url=database_url, lease_seconds=3)
    first.wait_for_log("relay_active", outbox="local")
    second = start_node(database_url=database_url, lease_seconds=3)
    first.api.create_tenant("acme")
    first.api.create_endpoint("acme", hook.url)
    first.kill()
    second.sql("select postrider.publish('acme', 'a.b', '1')")
    second.wait_for_log("relay_active", outbox="local")
    hook.wait_for(1)

    third = start_node(database_url=database_url, lease_seconds=3)
    second.signal(signal.SIGSTOP)
    third.sql("select postrider.publish('acme', 'a.b', '2')")
    third.wait_for_log("lease_stalled", lease="relay", of="local")
    third.wait_for_log("relay_active", outbox="local")
    hook.wait_for(2)
    second.signal(signal.SIGCONT)


def test_metrics_of_the_outbox_are_there(node, tenant):
    assert 'webhook_relay_rows_total{outbox="local",result="rejected"}' in node.api.get("/metrics").body.decode()
    node.sql(PUBLISH, (tenant, "a.b", "1"))
    wait_until(lambda: node.sql("select count(*) from postrider.outbox") == [(0,)], "the row is moved")
