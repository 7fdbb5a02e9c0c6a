"""The deadline of a delivery holds, whatever keeps it from being sent."""

from harness.wait import wait_until


def letters(node):
    return node.sql("select cause, count(*) from postrider.dead_letter group by 1 order by 1")


def pending(node):
    return node.sql("select count(*) from postrider.queue where bucket >= 0")[0][0]


def test_what_is_published_during_an_outage_expires_and_is_not_sent_afterwards(start_node, data_dir, hook):
    node = start_node(data_dir=data_dir, breaker_failures=1)
    node.api.create_tenant("t")
    endpoint = node.api.create_endpoint("t", hook.url, give_up_seconds=4, retry_schedule=[1], max_attempts=100)
    hook.reply(then=503)
    before = [node.api.publish("t")["id"] for _ in range(5)]
    wait_until(lambda: node.api.endpoint("t", endpoint["id"])["breaker"] == "open", "the breaker opens")
    during = [node.api.publish("t")["id"] for _ in range(20)]
    wait_until(lambda: pending(node) == 0, "all of them end", 120)
    assert letters(node) == [("expired", 25)]
    seen = len(hook.requests)
    hook.reply(then=204)
    node.api.call("PATCH", f"/v1/tenants/t/endpoints/{endpoint['id']}", {"give_up_seconds": 3600}).expect(200)
    last = node.api.publish("t")["id"]
    wait_until(lambda: pending(node) == 0, "the endpoint is back", 120)
    later = {got.headers["webhook-id"] for got in hook.requests[seen:]}
    assert later == {last} and not later & set(before + during)


def test_the_clock_stands_still_under_the_brake(start_node, data_dir, hook):
    node = start_node(data_dir=data_dir)
    node.api.create_tenant("t")
    node.api.create_endpoint("t", hook.url, give_up_seconds=60)
    node.api.call("PATCH", "/v1/brakes", {"pause_all": True, "reason": "incident"}).expect(200)
    node.api.publish("t")
    # As if it had been set two hours ago, and the event published an hour ago.
    node.sql("update postrider.brake_span set since = now() - interval '2 hours'")
    node.sql("update postrider.queue set created_at = now() - interval '1 hour' where bucket >= 0")
    node.stop()
    node = start_node(data_dir=data_dir)
    assert node.sql("select count(*) from postrider.brake_span where until is null") == [(1,)]
    node.api.call("PATCH", "/v1/brakes", {"pause_all": False, "reason": "over"}).expect(200)
    hook.wait_for(1)
    wait_until(lambda: pending(node) == 0, "it is delivered")
    assert letters(node) == []
    assert node.sql("select count(*) from postrider.brake_span where until is not null") == [(1,)]
