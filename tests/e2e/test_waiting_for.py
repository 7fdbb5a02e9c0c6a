"""Why a delivery is not sent yet, when the next attempt or probe is, and when it expires: API, view and command line."""

import subprocess
from datetime import datetime, timedelta

import pytest
from harness import node as node_module
from harness.receiver import Reply
from harness.wait import wait_until

SECONDS = 3600


def time_of(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def detail(node, delivery):
    return node.api.get(f"/v1/deliveries/{delivery}").expect(200)


def listed(node, tenant, **filters):
    query = "&".join(f"{name}={value}" for name, value in filters.items())
    return node.api.get(f"/v1/tenants/{tenant}/deliveries?{query}").expect(200)["data"]


def delivery_of(node, tenant, event):
    return listed(node, tenant, event=event)[0]["id"]


def wait_for_reason(node, tenant, event, reason):
    """The delivery, once the API says so; then list, view and function must agree."""
    delivery = delivery_of(node, tenant, event)
    found = wait_until(lambda: (lambda d: d if d["waiting_for"] == reason else None)(detail(node, delivery)), reason)
    assert [each["waiting_for"] for each in listed(node, tenant, event=event)] == [reason]
    assert node.sql("select waiting_for, give_up_at, next_probe_at, give_up_at is null from postrider.webhook_deliveries where delivery = %s",
                    [delivery]) == [(reason, *(found[each] and time_of(found[each]) for each in ("give_up_at", "next_probe_at")),
                                     found["give_up_at"] is None)]
    assert node.sql("select waiting_for from postrider.delivery(%s)", [delivery]) == [(reason,)]
    return found


def test_schedule_and_the_give_up_time(node, tenant, hook):
    hook.reply(then=503)
    node.api.create_endpoint(tenant, hook.url, retry_schedule=[3600], give_up_seconds=7 * SECONDS)
    event = node.api.publish(tenant)["id"]
    found = wait_for_reason(node, tenant, event, "schedule")
    assert time_of(found["give_up_at"]) == time_of(found["created_at"]) + timedelta(hours=7)
    assert found["next_probe_at"] is None and found["next_attempt_at"] == found["timeline"][0]["next_attempt_at"]
    node.api.post(f"/v1/tenants/{tenant}/deliveries/{found['id']}/cancel").expect(200)
    ended = wait_until(lambda: (lambda d: d if d["status"] == "canceled" else None)(detail(node, found["id"])), "canceled")
    assert (ended["waiting_for"], ended["give_up_at"], ended["next_attempt_at"], ended["next_probe_at"]) == (None,) * 4


def test_in_flight_cap_for_as_long_as_it_lasts(node, tenant, hook):
    hook.hold()
    node.api.create_endpoint(tenant, hook.url, max_in_flight=1, timeout_ms=60_000)
    events = [node.api.publish(tenant)["id"] for _ in range(2)]
    hook.wait_for(1)
    try:
        sent, waiting = sorted(events, key=lambda event: hook.requests[0].headers["webhook-id"] != event)
        wait_for_reason(node, tenant, waiting, "in_flight_cap")
        in_flight = wait_until(lambda: (lambda d: d if d["status"] == "processing" else None)(
            detail(node, delivery_of(node, tenant, sent))), "it is in flight")
        assert in_flight["waiting_for"] is None and in_flight["give_up_at"]
    finally:
        hook.release()
    wait_until(lambda: len(listed(node, tenant, status="delivered")) == 2, "both arrive")
    assert [each["waiting_for"] for each in listed(node, tenant)] == [None, None]
    wait_until(lambda: node.sql("""select count(*) from postrider.lane_wait w join postrider.endpoint e on e.id = w.endpoint_id
                                   where e.tenant_id = %s""", [tenant]) == [(0,)], "nothing waits any more")


def test_rate_and_what_a_former_owner_wrote(node, tenant, hook):
    node.api.create_endpoint(tenant, hook.url, rate_per_second=0.001)
    events = [node.api.publish(tenant)["id"] for _ in range(2)]
    hook.wait_for(1)
    waiting = next(event for event in events if event != hook.requests[0].headers["webhook-id"])
    found = wait_for_reason(node, tenant, waiting, "rate")
    # As if the bucket had a new owner since, which has not found out yet.
    forget = "update postrider.lane_wait w set epoch = epoch - 1 from postrider.endpoint e where e.id = w.endpoint_id and e.tenant_id = %s"
    node.sql(forget, [tenant])
    assert detail(node, found["id"])["waiting_for"] is None


def test_retry_after_counts_as_a_rate(node, tenant, hook):
    hook.reply(then=Reply(429, {"Retry-After": "3600"}))
    node.api.create_endpoint(tenant, hook.url, max_in_flight=1)
    node.api.publish(tenant)
    wait_until(lambda: listed(node, tenant, status="retrying"), "the endpoint asked for a pause")
    wait_for_reason(node, tenant, node.api.publish(tenant)["id"], "rate")


def test_strict_order(node, tenant, hook):
    hook.reply(then=503)
    node.api.create_endpoint(tenant, hook.url, ordering="strict", retry_schedule=[3600])
    first, second, third = (node.api.publish(tenant)["id"] for _ in range(3))
    wait_for_reason(node, tenant, first, "schedule")
    wait_for_reason(node, tenant, second, "strict_order")
    wait_for_reason(node, tenant, third, "strict_order")


def test_pauses_stop_the_clock_and_a_brake_comes_first(start_node, data_dir, hook):
    node = start_node(data_dir=data_dir)
    node.api.create_tenant("t")
    endpoint = node.api.create_endpoint("t", hook.url, give_up_seconds=SECONDS)["id"]
    actions = f"/v1/tenants/t/endpoints/{endpoint}"
    node.api.post(f"{actions}/pause", {"reason": "r"}).expect(200)
    event = node.api.publish("t")["id"]
    assert wait_for_reason(node, "t", event, "endpoint_paused")["give_up_at"] is None
    node.api.post("/v1/tenants/t/pause", {"reason": "r"}).expect(200)
    assert wait_for_reason(node, "t", event, "tenant_paused")["give_up_at"] is None
    node.api.call("PATCH", "/v1/brakes", {"pause_all": True, "reason": "incident"}).expect(200)
    found = wait_for_reason(node, "t", event, "brake")
    assert found["give_up_at"] is None
    shown = run_command(node, "delivery", "show", found["id"])
    assert "brake" in shown and "postrider brakes show" in shown
    # The endpoint was paused 10 to 5 minutes before, and everything from 6 minutes before to 4 minutes after the publish.
    node.sql("""update postrider.pause_span set since = q.created_at - interval '10 min', until = q.created_at - interval '5 min'
                from postrider.queue q where q.bucket >= 0""")
    node.sql("""update postrider.brake_span set since = q.created_at - interval '6 min', until = q.created_at + interval '4 min'
                from postrider.queue q where q.bucket >= 0""")
    delivery = detail(node, found["id"])
    assert time_of(delivery["give_up_at"]) == time_of(delivery["created_at"]) + timedelta(minutes=64)


def test_the_rates_of_the_brakes(start_node, data_dir, hook):
    node = start_node(data_dir=data_dir)
    node.api.create_tenant("t")
    node.api.create_endpoint("t", hook.url)
    node.api.call("PATCH", "/v1/brakes", {"drain_rate_per_second": 0.001, "reason": "incident"}).expect(200)

    def waits():
        node.api.publish("t")  # those before the node knows of the brake are sent
        return [each["event_id"] for each in listed(node, "t") if each["waiting_for"] == "brake"]
    wait_for_reason(node, "t", wait_until(waits, "some wait")[0], "brake")


def test_held(start_node, data_dir, hook, tmp_path):
    node = start_node(data_dir=data_dir, secret_directories=str(tmp_path))
    node.api.create_tenant("t")
    node.api.create_endpoint("t", hook.url, secret=f"file:{tmp_path}/missing")
    found = wait_for_reason(node, "t", node.api.publish("t")["id"], "held")
    assert found["give_up_at"] is None and found["next_probe_at"] is None


@pytest.fixture
def broken(start_node, data_dir, hook):
    """A node with an endpoint whose breaker is open, and the deliveries that wait for it."""
    node = start_node(data_dir=data_dir, breaker_failures=2)
    node.api.create_tenant("t")
    hook.reply(then=503)
    node.endpoint_id = node.api.create_endpoint("t", hook.url, retry_schedule=[1], max_attempts=50, max_in_flight=1)["id"]
    for _ in range(3):
        node.api.publish("t")
    wait_until(lambda: node.api.endpoint("t", node.endpoint_id)["breaker"] == "open", "the breaker opens", 60)
    return node


def probes_of(node):
    return [(each["delivery_id"], attempt) for each in node.api.get("/v1/tenants/t/attempts?limit=250").expect(200)["data"]
            for attempt in [each] if each["kind"] == "probe"]


def run_command(node, *words):
    done = subprocess.run([node_module.binary(), *words], env=node_module.environment(server=node.api.url, key=node.api.key),
                          cwd="/", capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_breaker_and_the_next_probe(broken):
    node = broken
    event = node.api.publish("t")["id"]
    delivery = delivery_of(node, "t", event)

    def waits():
        found = detail(node, delivery)
        return found if found["waiting_for"] == "breaker" and found["next_probe_at"] else None
    found = wait_until(waits, "it waits for the breaker")
    assert found["give_up_at"], "the breaker does not stop the clock"
    assert time_of(found["next_probe_at"]) > time_of(found["created_at"])
    wait_until(lambda: len(probes_of(node)) >= 2, "probes fail", 60)
    endpoint = node.api.endpoint("t", node.endpoint_id)
    assert endpoint["breaker"] == "open" and endpoint["next_probe_at"]
    wait_until(lambda: node.sql("select count(*) from postrider.webhook_deliveries where next_probe_at is null and attempts = 0") == [(0,)],
               "the view has the next probe")
    probed, attempt = probes_of(node)[0]
    shown = run_command(node, "delivery", "show", probed)
    assert f"probe {attempt['probe']}" in shown and "next probe" in shown.lower()
    node.api.post(f"/v1/tenants/t/endpoints/{node.endpoint_id}/pause", {"reason": "r"}).expect(200)
    assert detail(node, delivery)["next_probe_at"] is None, "a paused endpoint is not probed"


@pytest.mark.parametrize("status, outcome", [(204, "delivered"), (400, "dead_letter")])
def test_a_probe_that_is_answered_is_the_next_attempt_of_its_delivery(broken, hook, status, outcome):
    node = broken
    wait_until(lambda: probes_of(node), "a probe fails", 60)
    hook.reply(then=status)
    wait_until(lambda: listed(node, "t", status=outcome), "a probe ends the outage", 60)
    ended = [(delivery, attempt) for delivery, attempt in probes_of(node) if attempt["outcome"] != "retrying"]
    assert len(ended) == 1, "after it the breaker is closed"
    (delivery, last), = ended
    timeline = detail(node, delivery)["timeline"]
    ordinary = [each["attempt"] for each in timeline if each["probe"] is None]
    assert ordinary == list(range(1, len(ordinary) + 1)) and timeline[-1]["attempt"] == last["attempt"] == ordinary[-1]
    assert (last["kind"], last["probe"], last["outcome"]) == ("probe", None, outcome)
    assert detail(node, delivery)["attempts"] == ordinary[-1]
