"""What /metrics of a running node shows."""

import re

from harness.wait import wait_until


def metrics(node):
    """{series: value}"""
    lines = node.api.get("/metrics").body.decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def test_counters_of_deliveries_move_in_a_running_node(start_node, data_dir, receiver):
    node = start_node(data_dir=data_dir, metrics_tenants="acme", breaker_failures=1000)
    good, bad, slow = receiver.hook(), receiver.hook(), receiver.hook()
    for tenant in ("acme", "other"):
        node.api.create_tenant(tenant)
    node.api.create_endpoint("acme", good.url, event_types=["order.paid"])
    node.api.create_endpoint("acme", bad.url, event_types=["order.lost"])
    node.api.create_endpoint("other", slow.url, event_types=["order.late"], retry_schedule=[1])
    bad.reply(then=400)
    slow.reply(503, then=204)
    before = metrics(node)
    assert before['webhook_tenant_attempts_total{outcome="delivered",tenant="acme"}'] == 0
    for tenant, event_type in (("acme", "order.paid"), ("acme", "order.lost"), ("other", "order.late")):
        node.api.publish(tenant, type=event_type)
    expected = {
        "webhook_events_created_total": 3,
        "webhook_deliveries_succeeded_total": 2,
        'webhook_deliveries_failed_total{reason="status_4xx"}': 1,
        'webhook_deliveries_failed_total{reason="status_5xx"}': 1,
        'webhook_dead_lettered_total{cause="rejected"}': 1,
        'webhook_deliveries_attempted_total{outcome="delivered",status_class="2xx"}': 2,
        'webhook_deliveries_attempted_total{outcome="retrying",status_class="5xx"}': 1,
        "webhook_delivery_duration_seconds_count": 4,
        "webhook_delivery_lag_seconds_count": 2,
        "webhook_delivery_attempt_count_count": 3,
        'webhook_attempts_by_type_total{event_type="order.paid",outcome="delivered"}': 1,
        'webhook_attempts_by_type_total{event_type="order.lost",outcome="dead_letter"}': 1,
        'webhook_attempts_by_type_total{event_type="order.late",outcome="retrying"}': 1,
        'webhook_first_attempt_successes_total{event_type="order.paid"}': 1,
        'webhook_first_attempt_successes_total{event_type="order.late"}': 0,
        'webhook_tenant_attempts_total{outcome="delivered",tenant="acme"}': 1,
        'webhook_tenant_attempts_total{outcome="dead_letter",tenant="acme"}': 1,
        'webhook_tenant_delivery_lag_seconds_count{tenant="acme"}': 1,
    }

    def seen():
        now = metrics(node)
        return {name: now.get(name, 0) - before.get(name, 0) for name in expected}

    wait_until(lambda: seen() == expected, "all counters have moved", 60)
    assert not re.search(r'tenant="other"', node.api.get("/metrics").body.decode())


def test_the_success_rate_drops_during_an_outage_because_probes_count(start_node, data_dir, receiver):
    """With an open breaker only probes are sent. Each is a request in /metrics, in the statistics and in the history."""
    node = start_node(data_dir=data_dir, breaker_failures=1)
    hook = receiver.hook()
    node.api.create_tenant("acme")
    endpoint = node.api.create_endpoint("acme", hook.url, retry_schedule=[3600])["id"]
    node.api.publish("acme")
    hook.wait_for(1)
    hook.reply(then=503)
    node.api.publish("acme")
    wait_until(lambda: node.api.endpoint("acme", endpoint)["breaker"] == "open", "the breaker opens")
    node.api.publish("acme")        # waits for the breaker

    def rate_in_metrics():
        by_outcome = {name: value for name, value in metrics(node).items()
                      if name.startswith("webhook_deliveries_attempted_total")}
        return sum(value for name, value in by_outcome.items() if "delivered" in name), sum(by_outcome.values())

    def rate_in_stats():
        rows = node.api.get("/v1/tenants/acme/stats").expect(200)["data"]
        return sum(row["delivered"] for row in rows), sum(row["attempts"] for row in rows)

    def rate_in_history():
        return node.sql("""select count(*) filter (where outcome = 'delivered'), count(*) from postrider.webhook_delivery_attempts
                           where attempt > 0""")[0]

    wait_until(lambda: rate_in_metrics() == (1, 2), "half of the requests succeed")
    hook.wait_for(4, 90)            # two probes
    for rate in (rate_in_metrics, rate_in_history, rate_in_stats):
        wait_until(lambda rate=rate: rate() >= (1, 4), f"the failed probes are in {rate.__name__}", 60)
        assert rate()[0] == 1 and rate()[0] / rate()[1] <= 1 / 4
    assert len(hook.requests) == rate_in_history()[1]


def depth(node, state):
    return metrics(node)[f'webhook_queue_depth{{state="{state}"}}']


def test_a_dead_or_paused_endpoint_does_not_make_the_queue_look_stuck(start_node, data_dir, receiver):
    node = start_node(data_dir=data_dir, breaker_failures=1)
    down, paused = receiver.hook(), receiver.hook()
    node.api.create_tenant("acme")
    node.api.create_endpoint("acme", down.url, event_types=["a.down"])
    resting = node.api.create_endpoint("acme", paused.url, event_types=["a.paused"])["id"]
    node.api.post(f"/v1/tenants/acme/endpoints/{resting}/pause").expect(200)
    down.reply(then=503)
    for _ in range(5):
        node.api.publish("acme", type="a.down")
        node.api.publish("acme", type="a.paused")
    wait_until(lambda: depth(node, "breaker") >= 1, "others wait for the breaker", 60)
    wait_until(lambda: depth(node, "pending") == 0 and metrics(node)["webhook_oldest_pending_seconds"] == 0,
               "nothing could be sent now", 60)
