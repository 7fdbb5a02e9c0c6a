"""What is being sent at this moment is `processing`, wherever deliveries are shown."""

import csv
import io

from harness.wait import wait_until


def ids(node, path):
    return [delivery["id"] for delivery in node.api.get(path).expect(200)["data"]]


def test_what_is_being_sent_is_processing_everywhere_and_only_while_it_is(node, tenant, hook, receiver):
    hook.hold()
    slow = node.api.create_endpoint(tenant, hook.url, timeout_ms=60_000, max_in_flight=1)["id"]
    quick = node.api.create_endpoint(tenant, receiver.hook().url)["id"]
    event = node.api.publish(tenant, "invoice.paid", subject="in_1")["id"]
    node.api.publish(tenant, "invoice.paid")  # waits behind it at the slow endpoint
    hook.wait_for(1)
    lists = f"/v1/tenants/{tenant}/deliveries"
    try:
        wait_until(lambda: len(ids(node, f"{lists}?status=delivered&endpoint={quick}")) == 2, "the quick one has both")
        sent = wait_until(lambda: ids(node, f"{lists}?status=processing&limit=250"), "the node says what it is sending")
        assert len(sent) == 1
        assert ids(node, f"{lists}?status=processing&endpoint={slow}") == sent
        assert ids(node, f"{lists}?status=processing&endpoint={quick}") == []
        assert ids(node, f"{lists}?status=processing&event={event}&type=invoice.paid&subject=in_1") == sent
        assert ids(node, f"{lists}?status=processing&type=other") == []
        assert ids(node, f"{lists}?status=processing&until=2020-01-01T00:00:00Z") == []
        assert sent[0] in ids(node, "/v1/deliveries?status=processing&limit=250")
        assert sent[0] not in ids(node, f"{lists}?status=pending") and len(ids(node, f"{lists}?status=pending")) == 1
        shown = node.api.get(f"{lists}/{sent[0]}").expect(200)
        assert (shown["status"], shown["attempts"]) == ("processing", 0)
        of_event = node.api.get(f"/v1/tenants/{tenant}/events/{event}").expect(200)["deliveries"]
        assert {each["id"]: each["status"] for each in of_event}[sent[0]] == "processing"
        exported = node.api.get(f"{lists}?status=processing&format=csv").body.decode()
        assert [(row["id"], row["status"]) for row in csv.DictReader(io.StringIO(exported))] == [(sent[0], "processing")]
        in_sql = "select delivery from postrider.webhook_deliveries where tenant_id = %s and status = 'processing'"
        assert node.sql(in_sql, [tenant]) == [(sent[0],)]
        assert ("processing",) in node.sql("select status from postrider.deliveries_of(%s, %s)", [tenant, event])
        found = node.api.get(f"/v1/search?q={sent[0]}").expect(200)["data"]
        assert [entry["about"] for entry in found] == ["processing"]
    finally:
        hook.release()
    wait_until(lambda: ids(node, f"{lists}?status=delivered&endpoint={slow}")[1:], "both arrived")
    wait_until(lambda: node.sql("select count(*) from postrider.node_in_flight") == [(0,)], "and nothing is under way")


def test_what_a_dead_node_was_sending_is_not_processing_once_it_is_missed(start_node, database_url, hook):
    node = start_node(database_url=database_url, lease_seconds=2)
    node.api.create_tenant("acme")
    node.api.create_endpoint("acme", hook.url, timeout_ms=60_000)
    hook.hold()
    node.api.publish("acme")
    lists = "/v1/tenants/acme/deliveries"
    wait_until(lambda: ids(node, f"{lists}?status=processing"), "the node says what it is sending")
    sent = ids(node, f"{lists}?status=processing")
    node.kill()
    other = start_node(database_url=database_url, lease_seconds=2, roles="api")
    wait_until(lambda: not ids(other, f"{lists}?status=processing"), "the other node misses it")
    assert ids(other, f"{lists}?status=pending") == sent
    hook.release()
