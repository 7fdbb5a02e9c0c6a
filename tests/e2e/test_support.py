"""The role postrider_support. The lines of docs/support.md are run by test_documents.py."""

import psycopg2
import pytest

from harness.wait import wait_until


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
