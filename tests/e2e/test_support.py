"""The role postrider_support. The lines of docs/support.md are run by test_documents.py."""

import contextlib

import psycopg2
import pytest

from harness.receiver import Reply
from harness.wait import wait_until

SUPPORT, WITH_PAYLOADS = "postrider_support", "postrider_support_payloads"


def make_dead_letter(node, tenant, hook):
    hook.reply(then=400)
    endpoint = node.api.create_endpoint(tenant, hook.url, ["invoice.*"])["id"]
    event = node.api.publish(tenant, "invoice.paid", subject="invoice-17")["id"]
    path = f"/v1/tenants/{tenant}/deliveries?event={event}"
    wait_until(lambda: [d["status"] for d in node.api.get(path).expect(200)["data"]] == ["dead_letter"], "a dead letter")
    delivery = node.api.get(path).expect(200)["data"][0]["id"]
    return {"tenant": tenant, "endpoint": endpoint, "event": event, "delivery": delivery}


def test_support_sees_and_repairs_but_reads_no_secrets(start_node, postgres, database_url, receiver):
    """The role has views and functions only."""
    node = start_node(database_url=database_url)
    node.api.create_tenant("t")
    ids = make_dead_letter(node, "t", receiver.hook())
    name = node.sql("select current_database()")[0][0]
    admin = psycopg2.connect(postgres.url(name, "postgres"))
    admin.autocommit = True
    with admin.cursor() as cursor:
        cursor.execute("do $$ begin create role postrider_support nologin; exception when duplicate_object then end $$")
    node.sql("select postrider.grant_support()")
    with admin.cursor() as cursor:
        cursor.execute("set role postrider_support")
        for view in ("endpoints", "subscriptions", "events", "deliveries", "delivery_attempts", "dead_letters", "health"):
            cursor.execute(f"select * from postrider.webhook_{view} limit 1")
        cursor.execute("select status from postrider.deliveries_of(%s, %s)", [ids["tenant"], ids["event"]])
        assert cursor.fetchall() == [("dead_letter",)]
        cursor.execute("select postrider.pause_endpoint(%s, 'test')", [ids["endpoint"]])
        cursor.execute("select postrider.resume_endpoint(%s, 'test')", [ids["endpoint"]])
        for table in ("endpoint_secret", "endpoint", "api_key", "event", "attempt"):
            with pytest.raises(psycopg2.errors.InsufficientPrivilege):
                cursor.execute(f"select * from postrider.{table} limit 1")
    admin.close()


@contextlib.contextmanager
def support(node, postgres, role):
    """A cursor of that role, which sees what the node committed."""
    admin = psycopg2.connect(postgres.url(node.sql("select current_database()")[0][0], "postgres"))
    admin.autocommit = True
    with contextlib.closing(admin), admin.cursor() as cursor:
        for each in (SUPPORT, WITH_PAYLOADS):
            cursor.execute(f"do $$ begin create role {each} nologin; exception when duplicate_object then end $$")
        node.sql("select postrider.grant_support()")
        cursor.execute(f"set role {role}")
        yield cursor


def test_only_support_with_payloads_sees_responses(start_node, database_url, postgres, receiver):
    """A response may repeat what the endpoint got."""
    hook = receiver.hook()
    hook.reply(then=Reply(400, body=b"no such invoice: 17", headers={"x-note": "kept"}))
    node, tenant = start_node(database_url=database_url), "t"
    node.api.create_tenant(tenant)
    node.api.create_endpoint(tenant, hook.url, ["invoice.*"])
    node.api.publish(tenant, "invoice.paid")
    seen = (f"select status_code, response_preview, response_headers like '%x-note: kept%' "
            f"from postrider.webhook_delivery_attempts where tenant_id = '{tenant}'")
    all_of_it = [(400, "no such invoice: 17", True)]
    wait_until(lambda: node.sql(seen) == all_of_it, "the owner of the schema sees it")
    with support(node, postgres, SUPPORT) as cursor:
        cursor.execute(seen)
        assert cursor.fetchall() == [(400, None, None)]
    with support(node, postgres, WITH_PAYLOADS) as cursor:
        cursor.execute(seen)
        assert cursor.fetchall() == all_of_it
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            cursor.execute("select * from postrider.event")


def test_support_is_told_the_function_to_call(start_node, database_url, postgres):
    """An update or a delete of a view gets to the hint, and is not stopped before it for a missing right."""
    node = start_node(database_url=database_url)
    views = [name for name, in node.sql("select viewname from pg_views where schemaname = 'postrider' and "
                                        "viewname like 'webhook\\_%'")]
    assert len(views) > 8
    for role in (SUPPORT, WITH_PAYLOADS):
        with support(node, postgres, role) as cursor:
            for view in views:
                for statement in (f"update postrider.{view} set tenant_id = 'x' where tenant_id = 'x'",
                                  f"delete from postrider.{view} where tenant_id = 'x'"):
                    with pytest.raises(psycopg2.errors.ObjectNotInPrerequisiteState) as failure:
                        cursor.execute(statement)
                    assert "postrider." in failure.value.diag.message_hint, statement


def test_one_call_finds_a_delivery_an_event_and_an_endpoint_by_index(node, tenant, receiver):
    """`postrider.delivery('dlv_…')` and its sisters; none reads a table of deliveries or events from end to end."""
    ids = make_dead_letter(node, tenant, receiver.hook())
    calls = {
        f"postrider.delivery('{ids['delivery']}')": ("delivery", ids["delivery"]),
        f"postrider.event('{tenant}', '{ids['event']}')": ("event", ids["event"]),
        f"postrider.endpoint('{ids['endpoint']}')": ("endpoint", ids["endpoint"]),
        f"postrider.endpoint('{tenant}', '{ids['endpoint']}')": ("endpoint", ids["endpoint"]),
    }
    for call, (column, expected) in calls.items():
        assert node.sql(f"select {column} from {call}") == [(expected,)]
        plan = explain_without_sequential_scans(node, f"select * from {call}")
        for table in ("queue", "attempt", "event", "endpoint"):
            assert f"Seq Scan on {table}" not in plan, plan


def explain_without_sequential_scans(node, statement):
    """The tables of a test are too small for indexes, unless a scan is expensive."""
    connection = psycopg2.connect(node.database_url)
    with connection, connection.cursor() as cursor:
        cursor.execute("set local enable_seqscan = off")
        cursor.execute("explain (costs off) " + statement)
        return "\n".join(row[0] for row in cursor.fetchall())


def test_views_have_the_columns_that_people_type(node, tenant, receiver):
    ids = make_dead_letter(node, tenant, receiver.hook())
    where = f"where delivery = '{ids['delivery']}'"
    assert node.sql(f"select event_type, attempted_at is not null, duration_ms > 0 "
                    f"from postrider.webhook_delivery_attempts {where}") == [("invoice.paid", True, True)]
    assert node.sql("select event_type, payload_version, next_attempt_at from postrider.webhook_deliveries "
                    + where) == [("invoice.paid", None, None)]
    node.sql("select event_type, payload_version, processed_at, next_attempt_at from postrider.webhook_outbox")


@pytest.mark.parametrize("view, function", [
    ("endpoints", "pause_endpoint"), ("subscriptions", "pause_endpoint"), ("events", "replay_delivery"),
    ("deliveries", "replay_delivery"), ("delivery_attempts", "replay_delivery"), ("dead_letters", "replay_delivery"),
    ("replay_requests", "replay_delivery"), ("outbox", "publish"), ("health", "replay_delivery")])
def test_a_change_of_a_view_fails_with_the_function_to_call(node, view, function):
    """Also one that finds no rows."""
    for statement in (f"update postrider.webhook_{view} set tenant_id = 'x' where false",
                      f"delete from postrider.webhook_{view} where tenant_id = 'nobody'"):
        with pytest.raises(psycopg2.errors.ObjectNotInPrerequisiteState) as failure:
            node.sql(statement)
        assert f"postrider.{function}(" in failure.value.diag.message_hint


@pytest.mark.parametrize("table, change, kind", [
    ("endpoint", "timeout_ms = 5000", "endpoint"), ("subscription", "enabled = false", "endpoint"),
    ("tenant", "max_in_flight = 3", "tenant")])
def test_an_owners_direct_update_is_recorded_as_a_change_for_the_nodes(node, tenant, receiver, table, change, kind):
    """Nodes follow control_log, whichever program made the change."""
    node.api.create_endpoint(tenant, receiver.hook().url, ["invoice.*"])
    changes = f"select count(*) from postrider.control_log where kind = '{kind}' and tenant_id = '{tenant}'"
    before = node.sql(changes)[0][0]
    column = "id" if table == "tenant" else "tenant_id"
    node.sql(f"update postrider.{table} set {change} where {column} = '{tenant}'")
    wait_until(lambda: node.sql(changes)[0][0] == before + 1, "the change is recorded")


def test_running_nodes_apply_an_owners_direct_update(start_node, database_url, receiver):
    """Both nodes: the one that publishes, and the one that sends."""
    nodes = [start_node(database_url=database_url), start_node(database_url=database_url)]
    former, moved = receiver.hook(), receiver.hook()
    nodes[0].api.create_tenant("t")
    endpoint = nodes[0].api.create_endpoint("t", former.url, ["invoice.*"])["id"]
    nodes[0].api.publish("t", "invoice.paid")
    former.wait_for(1)

    nodes[0].sql(f"update postrider.endpoint set url = '{moved.url}' where public_id = '{endpoint}'")
    def is_moved():
        nodes[0].api.publish("t", "invoice.paid")
        return moved.requests
    wait_until(is_moved, "the owner of the endpoint sends to its new URL")

    nodes[0].sql("update postrider.subscription set enabled = false where tenant_id = 't'")
    def deliveries(node):
        event = node.api.publish("t", "invoice.paid")["id"]
        return node.api.get(f"/v1/tenants/t/events/{event}").expect(200)["deliveries"]
    for node in nodes:
        wait_until(lambda: deliveries(node) == [], "the node publishes to no endpoint")

    nodes[0].sql("update postrider.tenant set publish_rate_per_second = 1 where id = 't'")
    def is_limited(node):
        return any(node.api.call("POST", "/v1/tenants/t/events", {"type": "a", "data": {}}).status == 429 for _ in range(5))
    for node in nodes:
        wait_until(lambda: is_limited(node), "the node has the tenant's new rate")


def test_a_change_through_the_api_is_recorded_once(node, tenant, receiver):
    endpoint = node.api.create_endpoint(tenant, receiver.hook().url, ["invoice.*"])["id"]
    changes = f"select count(*) from postrider.control_log where kind = 'endpoint' and tenant_id = '{tenant}'"
    before = node.sql(changes)[0][0]
    path = f"/v1/tenants/{tenant}/endpoints/{endpoint}"
    node.api.call("PATCH", path, {"timeout_ms": 5000}).expect(200)
    assert node.sql(changes)[0][0] == before + 1
    assert node.sql("select count(*) from postrider.requested_change") == [(0,)]
