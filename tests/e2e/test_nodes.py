"""Stopping, restarting, losing and adding nodes."""

import os
import signal
import socket

from harness.wait import wait_until

LEASE_SECONDS = 3


def queued(node):
    return node.sql("select count(*) from postrider.queue where bucket >= 0")[0][0]


def owners(node):
    rows = node.sql("select owner, count(*) from postrider.bucket_lease where owner is not null group by owner")
    return sorted(count for _, count in rows)


def test_sigterm_lets_what_is_in_flight_finish(start_node, database_url, hook):
    node = start_node(database_url=database_url)
    node.api.create_tenant("t")
    node.api.create_endpoint("t", hook.url)
    hook.hold()
    node.api.publish("t")
    hook.wait_for(1)
    node.signal(signal.SIGTERM)
    node.wait_for_log("stopping")
    hook.release()
    assert node.wait_exit() == 0
    assert node.sql("select outcome from postrider.attempt") == [("delivered",)]
    assert queued(node) == 0


def test_after_the_signal_nothing_new_is_sent_whoever_holds_up_the_stop(start_node, database_url, hook):
    hook.reply(then=503)
    node = start_node(database_url=database_url, drain_timeout="12s")
    node.api.create_tenant("t")
    node.api.create_endpoint("t", hook.url, retry_schedule=[8])  # due before the stop is over
    node.api.publish("t")
    wait_until(lambda: node.sql("select count(*) from postrider.queue where attempts = 1") == [(1,)], "it is retried")
    host, port = node.address.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"POST /v1/tenants/t/events HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\n{")
        node.api.get("/readyz")  # let in after it
        assert node.stop() == 0
    assert len(hook.requests) == 1
    assert queued(node) == 1


def test_a_second_signal_stops_at_once(start_node, database_url, hook):
    node = start_node(database_url=database_url)
    node.api.create_tenant("t")
    node.api.create_endpoint("t", hook.url)
    hook.hold()
    node.api.publish("t")
    hook.wait_for(1)
    node.signal(signal.SIGINT)
    node.wait_for_log("stopping")
    node.signal(signal.SIGINT)
    assert node.wait_exit(20) == 3
    assert queued(node) == 1


def test_a_restart_keeps_what_is_pending(start_node, database_url, hook):
    hook.reply(then=503)
    first = start_node(database_url=database_url)
    first.api.create_tenant("t")
    first.api.create_endpoint("t", hook.url, retry_schedule=[2])
    events = {first.api.publish("t", data={"n": n})["id"] for n in range(5)}
    hook.wait_for(5)
    assert first.stop() == 0
    hook.reply(then=204)
    seen = len(hook.requests)
    second = start_node(database_url=database_url)
    wait_until(lambda: {request.headers["webhook-id"] for request in hook.requests[seen:]} == events, "all arrive")
    wait_until(lambda: queued(second) == 0, "all are settled")


def test_the_private_postgres_keeps_everything_over_a_kill(start_node, data_dir, hook):
    hook.reply(then=503)
    first = start_node(data_dir=data_dir)
    first.api.create_tenant("t")
    secret = first.api.create_endpoint("t", hook.url, retry_schedule=[2])["secret"]
    event = first.api.publish("t")["id"]
    hook.wait_for(1)
    first.kill()
    hook.reply(then=204)
    seen = len(hook.requests)
    second = start_node(data_dir=data_dir)
    assert second.wait_for_log("private_postgres_ready")["adopted"] is True
    request = hook.wait_for(seen + 1)[-1]
    assert request.headers["webhook-id"] == event
    assert secret.startswith("whsec_")
    assert second.stop() == 0


def test_two_nodes_share_the_buckets_and_send_each_event_once(start_node, database_url, receiver):
    first = start_node(database_url=database_url, lease_seconds=10)
    second = start_node(database_url=database_url, lease_seconds=10)
    wait_until(lambda: owners(first) == [128, 128], "each owns half of the buckets")
    first.api.create_tenant("t")
    hooks = [receiver.hook() for _ in range(8)]
    for hook in hooks:
        second.api.create_endpoint("t", hook.url)
    events = [node.api.publish("t", data={"n": n})["id"] for n in range(10) for node in (first, second)]
    for hook in hooks:
        arrived = [request.headers["webhook-id"] for request in hook.wait_for(20)]
        assert sorted(arrived) == sorted(events)
    wait_until(lambda: queued(first) == 0, "all are settled")
    assert all(len(hook.requests) == 20 for hook in hooks)


def test_after_kill_nine_the_other_node_sends_its_work(start_node, database_url, receiver):
    first = start_node(database_url=database_url, lease_seconds=LEASE_SECONDS)
    first.api.create_tenant("t")
    hooks = [receiver.hook() for _ in range(8)]
    for hook in hooks:
        first.api.create_endpoint("t", hook.url)
    second = start_node(database_url=database_url, lease_seconds=LEASE_SECONDS)
    wait_until(lambda: owners(first) == [128, 128], "each owns half of the buckets")
    first.kill()
    event = second.api.publish("t")["id"]
    for hook in hooks:
        [request] = hook.wait_for(1)
        assert request.headers["webhook-id"] == event
    wait_until(lambda: owners(second) == [256], "the other one owns all buckets")


def test_a_node_that_leaves_hands_its_buckets_over_at_once(start_node, database_url):
    lease = 60  # so long that no test can have waited for its end
    first = start_node(database_url=database_url, lease_seconds=lease)
    second = start_node(database_url=database_url, lease_seconds=lease)
    wait_until(lambda: owners(first) == [128, 128], "each owns half of the buckets")
    assert first.stop() == 0
    wait_until(lambda: owners(second) == [256], "the other one owns all buckets")


def test_roles_split_a_node_that_takes_events_from_one_that_sends(start_node, database_url, hook):
    taking = start_node(database_url=database_url, roles="api,upkeep")
    taking.api.create_tenant("t")
    taking.api.create_endpoint("t", hook.url)
    event = taking.api.publish("t")["id"]
    assert owners(taking) == []
    sending = start_node(database_url=database_url, roles="delivery")
    [request] = hook.wait_for(1)
    assert request.headers["webhook-id"] == event
    assert sending.api.post("/v1/tenants/t/events", {"type": "a.b", "data": {}}).status in (404, 405)
    assert "webhook_deliveries_succeeded_total" in sending.api.get("/metrics").body.decode()
    later = taking.api.publish("t")["id"]
    assert hook.wait_for(2)[-1].headers["webhook-id"] == later


def test_a_private_postgres_that_dies_is_started_again(start_node, data_dir, hook):
    node = start_node(data_dir=data_dir)
    node.api.create_tenant("t")
    node.api.create_endpoint("t", hook.url)
    os.kill(node.wait_for_log("private_postgres_ready")["pid"], signal.SIGKILL)
    node.wait_for_log("private_postgres_ready", count=2)
    event = {"type": "a.b", "data": {}, "id": "after-the-crash"}
    wait_until(lambda: node.api.post("/v1/tenants/t/events", event).status in (200, 202), "publishing works again")
    [request] = hook.wait_for(1)
    assert request.headers["webhook-id"] == "after-the-crash"
