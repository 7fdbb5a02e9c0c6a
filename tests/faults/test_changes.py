"""Endpoints are changed while hundreds of deliveries are in flight."""

import time

from harness.wait import wait_until


def path(endpoint, action=""):
    return f"/v1/tenants/{endpoint.tenant}/endpoints/{endpoint.id}{action}"


def busy(world, count=4):
    """Two nodes, endpoints with many in flight each, a backlog."""
    world.start_node()
    world.start_node()
    tenant = world.tenant("a")
    endpoints = [world.endpoint(tenant, behave=lambda got: (204, 0.2), max_in_flight=40) for _ in range(count)]
    producer = world.produce([tenant], per_second=200)
    wait_until(lambda: sum(endpoint.hook.in_flight for endpoint in endpoints) > 60, "many are in flight")
    return endpoints, producer


def wait_quiet(world, hook, producer, changed):
    """Until no request arrives although others publish: every sender has noticed the change. Later requests are errors."""
    def is_quiet():
        before = len(hook.requests)
        producer.wait_acknowledged(100)
        return hook.in_flight == 0 and len(hook.requests) == before
    wait_until(is_quiet, "the change is noticed")
    world.figures["noticed_s"] = round(max(0, hook.requests[-1].at - changed), 1)  # a second is promised to an idle machine
    return time.time()


def test_pause_and_resume_with_many_in_flight(world):
    [endpoint, *_], producer = busy(world)
    world.api.post(path(endpoint, "/pause"), {"reason": "test"}).expect(200)
    quiet = wait_quiet(world, endpoint.hook, producer, time.time())
    producer.wait_acknowledged(100)
    resumed = time.time()
    world.api.post(path(endpoint, "/resume"), {"reason": "test"}).expect(200)
    producer.wait_acknowledged(50)
    figures = world.finish()
    assert not [got for got in endpoint.hook.requests if quiet < got.at < resumed]
    assert figures["duplicates"] == 0 and figures["dead"] == 0


def test_delete_with_many_in_flight(world):
    """Pending deliveries are canceled, those in flight end, and other endpoints are not affected."""
    [endpoint, *_], producer = busy(world)
    endpoint.deleted_at = time.time()
    world.api.call("DELETE", path(endpoint)).expect(200, 204)
    quiet = wait_quiet(world, endpoint.hook, producer, endpoint.deleted_at)
    producer.wait_acknowledged(100)
    figures = world.finish()
    assert not [got for got in endpoint.hook.requests if got.at > quiet]
    assert figures["duplicates"] == 0 and figures["dead"] == 0


def test_url_change_with_many_in_flight(world):
    [endpoint, *_], producer = busy(world)
    moved = world.receivers.hook()
    endpoint.moved_to(moved)
    world.api.call("PATCH", path(endpoint), {"url": moved.url}).expect(200)
    quiet = wait_quiet(world, endpoint.hook, producer, time.time())
    producer.wait_acknowledged(100)
    figures = world.finish()
    assert not [got for got in endpoint.hook.requests if got.at > quiet]
    assert moved.requests and figures["duplicates"] == 0 and figures["dead"] == 0


def is_signed_twice(got):
    return len(got.headers["webhook-signature"].split(" ")) == 2


def test_secret_rotation_under_load(world):
    """Every request verifies with a secret that was valid when it was sent; during the overlap with both."""
    endpoints, producer = busy(world)
    rotated = {}
    for endpoint in endpoints:
        answer = world.api.post(path(endpoint, "/secrets/rotate"), {"overlap_seconds": 600}).expect(200, 201)
        endpoint.secrets.append(answer["secret"])
        rotated[endpoint.id] = time.time()
        producer.wait_acknowledged(20)

    def first_of(endpoint):
        return next((got for got in list(endpoint.hook.requests) if is_signed_twice(got)), None)

    def signed_later(endpoint):
        """By the sender's clock: on another connection an older one may arrive later."""
        first = first_of(endpoint)
        return [got for got in list(endpoint.hook.requests) if first and got.signed_at > first.signed_at]

    for endpoint in endpoints:
        wait_until(lambda: signed_later(endpoint), "the rotation is noticed")
    world.figures["noticed_s"] = round(max(0, *(first_of(each).at - rotated[each.id] for each in endpoints)), 1)
    producer.wait_acknowledged(60)
    figures = world.finish()
    assert figures["duplicates"] == 0
    for endpoint in endpoints:
        assert all(is_signed_twice(got) for got in signed_later(endpoint))
