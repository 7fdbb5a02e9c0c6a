"""Receivers that fail, reject, hang and recover; no fault on our side."""

import time

from harness.wait import wait_until


def flaky(random_numbers, share):
    """A receiver that fails a share of its requests."""
    return lambda got: 503 if random_numbers.random() < share else 204


def test_nothing_is_sent_twice_without_a_fault(make_world):
    """The control: some receivers fail now and then, nodes are healthy, breakers stay closed."""
    world = make_world(breaker_failures=10000)
    world.start_node()
    world.start_node()
    tenants = [world.tenant(name) for name in ("a", "b")]
    for tenant in tenants:
        for share in (0, 0.1, 0.3):
            world.endpoint(tenant, behave=flaky(world.random, share), max_in_flight=world.random.randint(1, 10))
    world.produce(tenants, per_second=150).wait_acknowledged(400)
    assert world.finish()["duplicates"] == 0


def test_receivers_that_fail_come_back(world):
    """503, refused connections and silence; then everything arrives."""
    world.start_node()
    tenant = world.tenant("a")
    closed = world.more_receivers()
    failing = world.endpoint(tenant, behave=lambda got: 503)
    refusing = world.endpoint(tenant, receivers=closed)
    hanging = world.endpoint(tenant, timeout_ms=1000)
    healthy = world.endpoint(tenant)
    hanging.hook.hang()
    closed.refuse()
    producer = world.produce([tenant], per_second=40)
    producer.wait_acknowledged(60)
    wait_until(lambda: len(failing.hook.requests) >= 5 and len(hanging.hook.requests) >= 5, "failures")
    recovered = time.monotonic()
    failing.hook.recover()
    hanging.hook.release()
    closed.listen()
    producer.wait_acknowledged(30)
    figures = world.finish()
    figures["recovery_s"] = round(time.monotonic() - recovered, 1)
    assert figures["dead"] == 0
    assert len(healthy.hook.requests) == len(world.sent())


def failed_probes(world):
    return world.sql("select count(*) from postrider.attempt where attempt < 0")[0][0]


def test_every_probe_of_an_open_breaker_is_in_the_history(make_world):
    """Breakers open after two failures; receivers send 503, hang or close, and each request is a row. No fault of ours."""
    world = make_world(breaker_failures=2)
    world.start_node()
    tenant = world.tenant("a")
    closed = world.more_receivers()
    failing = world.endpoint(tenant, behave=lambda got: 503)
    hanging = world.endpoint(tenant, timeout_ms=1000)
    refusing = world.endpoint(tenant, receivers=closed)
    world.endpoint(tenant, behave=lambda got: 503, ordering="strict", max_in_flight=1)
    strict = world.endpoints[-1]
    hanging.hook.hang()
    closed.refuse()
    producer = world.produce([tenant], per_second=30)
    wait_until(lambda: world.sql("select bool_and(last_probe_at is not null) from postrider.endpoint") == [(True,)],
               "a probe of each failed", 60)
    failing.hook.recover()
    strict.hook.recover()
    hanging.hook.release()
    closed.listen()
    producer.wait_acknowledged(30)
    figures = world.finish()
    assert figures["failed_probes"] >= len(world.endpoints) and figures["duplicates"] == figures["dead"] == 0


def test_a_node_that_probes_is_killed(make_world):
    """What it had not recorded is the only thing that the history lacks."""
    world = make_world(breaker_failures=2, lease_seconds=2)
    world.start_node()
    world.start_node()
    tenant = world.tenant("a")
    for _ in range(6):
        world.endpoint(tenant, behave=lambda got: (503, 0.02))
    world.endpoint(tenant, behave=lambda got: (204, 0.02))
    producer = world.produce([tenant], per_second=40)
    wait_until(lambda: failed_probes(world) >= 6, "probes fail", 60)
    world.kill(world.random.choice(world.nodes))
    wait_until(lambda: failed_probes(world) >= 12, "the other one probes", 60)
    for endpoint in world.endpoints:
        endpoint.hook.recover()
    producer.wait_acknowledged(30)
    assert world.finish()["dead"] == 0


def test_hanging_endpoints_do_not_hold_up_healthy_ones(world):
    world.start_node()
    tenants = [world.tenant(name) for name in ("a", "b")]
    hanging = [world.endpoint(tenants[0], timeout_ms=60000) for _ in range(5)]
    healthy = [world.endpoint(tenant) for tenant in tenants for _ in range(2)]
    for endpoint in hanging:
        endpoint.hook.hang()
    producer = world.produce(tenants, per_second=150)
    producer.wait_acknowledged(300)
    producer.stop()
    counts = {tenant: sum(1 for sent in producer.sent if sent.tenant == tenant) for tenant in tenants}
    wait_until(lambda: all(len(endpoint.hook.requests) == counts[endpoint.tenant] for endpoint in healthy),
               "healthy endpoints have everything while others hang")
    wait_until(lambda: world.queued() == counts[tenants[0]] * len(hanging), "only what hangs is left")
    wait_until(lambda: all(endpoint.hook.in_flight == endpoint.max_in_flight for endpoint in hanging), "others hang in full")
    for endpoint in hanging:
        endpoint.hook.release()
    assert world.finish()["dead"] == 0
