"""What postrider does by itself over days: endpoint health, operational events, retention, erasure."""

import os
import stat
import threading
import time

from harness.wait import wait_until


def body_of(got):
    import json
    return json.loads(got.body)


def test_nothing_but_failure_disables_an_endpoint_and_operators_hear_of_each_step(start_node, data_dir, receiver):
    node = start_node(data_dir=data_dir, disable_after="6s", breaker_failures=1000)
    pager, hook = receiver.hook(), receiver.hook()
    node.api.create_endpoint("postrider", pager.url, event_types=["endpoint.*"], ordering="strict")
    node.api.create_tenant("acme")
    endpoint = node.api.create_endpoint("acme", hook.url, retry_schedule=[1], max_attempts=100)["id"]
    hook.reply(then=503)
    for _ in range(12):
        node.api.publish("acme")
    told = [body_of(got) for got in pager.wait_for(5, 60)]
    assert [event["type"] for event in told] == [
        "endpoint.failing", "endpoint.unhealthy", "endpoint.unhealthy", "endpoint.unhealthy", "endpoint.disabled"]
    assert [event["data"]["percent"] for event in told[1:]] == [50, 70, 90, 100]
    assert {event["data"]["endpoint_id"] for event in told} == {endpoint}
    seen = node.api.endpoint("acme", endpoint)
    assert seen["status"] == "disabled" and "every attempt failed" in seen["status_reason"]
    wait_until(lambda: node.sql("select count(*) from postrider.queue where bucket >= 0") == [(0,)], "its rows are swept")

    hook.reply(then=204)
    node.api.post(f"/v1/tenants/acme/endpoints/{endpoint}/resume").expect(200)
    assert body_of(pager.wait_for(6, 60)[5])["type"] == "endpoint.recovered"


def test_nobody_else_publishes_to_the_reserved_tenant_or_removes_it(node):
    event = {"type": "endpoint.failing", "data": {}}
    assert node.api.post("/v1/tenants/postrider/events", event).status == 409
    assert node.api.call("DELETE", "/v1/tenants/postrider").status == 409
    assert node.api.post("/v1/tenants/postrider/pause").status == 409
    assert node.api.get("/v1/tenants/postrider").status == 200


def test_an_erased_payload_is_gone_and_is_not_sent_any_more(node, tenant, hook):
    node.api.create_endpoint(tenant, hook.url, retry_schedule=[600])
    hook.reply(503)
    event = node.api.publish(tenant, data={"name": "Erika Mustermann"}, subject="customer-1")["id"]
    hook.wait_for(1)
    pending = "select count(*) from postrider.queue where tenant_id = %s and attempts = 1"
    wait_until(lambda: node.sql(pending, (tenant,)) == [(1,)], "it is to be retried")
    path = f"/v1/tenants/{tenant}/events/{event}"
    answer = node.api.call("DELETE", f"{path}/payload").expect(200)
    assert answer == {"erased": 1, "canceled_deliveries": 1, "is_complete": True}
    assert node.api.get(path).expect(200)["data"] is None
    assert node.sql("select count(*) from postrider.event where tenant_id = %s and body like '%%Erika%%'", (tenant,)) == [(0,)]
    assert node.sql(pending, (tenant,)) == [(0,)]
    assert node.sql("select outcome, error_detail from postrider.attempt where tenant_id = %s and attempt = 0",
                    (tenant,)) == [("canceled", "the payload was erased")]
    old = hook.requests[0].headers["webhook-delivery-id"]
    assert node.api.post(f"/v1/tenants/{tenant}/deliveries/{old}/replay", {"reason": "x"}).status == 409
    assert node.api.call("DELETE", f"{path}/payload").expect(200)["erased"] == 0
    assert node.api.call("DELETE", f"/v1/tenants/{tenant}/events/none/payload").status == 404


def test_all_payloads_of_a_tenant(node, tenant, hook):
    for number in range(450):
        node.api.publish(tenant, data={"number": number})
    answer = node.api.call("DELETE", f"/v1/tenants/{tenant}/payloads").expect(200)
    assert answer["erased"] == 450 and answer["is_complete"]
    assert node.sql("select count(*) from postrider.event where tenant_id = %s and body <> ''", (tenant,)) == [(0,)]


def test_a_day_is_dropped_under_load_and_nobody_notices(start_node, database_url, hook):
    # This one keeps them: its own first pass would race with the rows below.
    node = start_node(database_url=database_url, retain_events="60d", retain_attempts="60d")
    node.sql("select postrider.create_partitions(25, 1)")
    node.sql("""insert into postrider.event (id, tenant_id, type, body)
                select (left(replace(postrider.id_floor(now() - interval '24 days')::text, '-', ''), 20)
                        || lpad(to_hex(n), 12, '0'))::uuid, 'acme', 't', repeat('x', 300)
                from generate_series(1, 20000) n""")
    node.api.create_tenant("acme")
    node.api.create_endpoint("acme", hook.url)
    stop, sent = threading.Event(), []

    def count_old():
        last = time.strftime("%Y%m%d", time.gmtime(time.time() - 22 * 86400))
        return node.sql("""select count(*) from pg_class where relname like 'event_%%' and relkind = 'r'
                           and right(relname, 8) < %s""", (last,))[0][0]

    def publish():
        while not stop.is_set():
            node.api.publish("acme")  # fails the test if it is rejected
            sent.append(1)

    assert count_old() > 0

    producer = threading.Thread(target=publish)
    producer.start()
    try:
        hook.wait_for(20)
        # Its first pass of retention comes with its start.
        start_node(database_url=database_url, retain_events="20d", retain_attempts="20d")
        wait_until(lambda: count_old() == 0, "the old days are dropped")
        hook.wait_for(len(hook.requests) + 20)
    finally:
        stop.set()
        producer.join()
    hook.wait_for(len(sent))
    assert not [entry for entry in node.log if entry["event"] in ("publish_failed", "settle_failed")]


def test_archives_are_readable_by_their_owner_only(start_node, database_url, tmp_path):
    node = start_node(database_url=database_url, retain_events="60d", retain_attempts="60d")
    node.sql("select postrider.create_partition('event', (now() at time zone 'UTC')::date - 24)")
    node.stop()  # or the next one might find the lease of retention taken
    archive = tmp_path / "archive"
    archive.mkdir()
    # Its first pass of retention comes with its start.
    start_node(database_url=database_url, retain_events="20d", archive_dir=str(archive))
    wait_until(lambda: [file for file in archive.iterdir() if file.name.endswith(".gz")], "a day is archived")
    assert {stat.S_IMODE(os.stat(file).st_mode) for file in archive.iterdir()} == {0o600}
