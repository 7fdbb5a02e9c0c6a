"""People change endpoints while hundreds of deliveries are under way."""

import time

from harness.wait import wait_until

NOTICED_SECONDS = 3.0    # a change reaches the owner within one second; this machine may be busy


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


def test_pause_and_resume_with_many_in_flight(world):
    [endpoint, *_], producer = busy(world)
    world.api.post(path(endpoint, "/pause"), {"reason": "test"}).expect(200)
    paused = time.time()
    wait_until(lambda: time.time() - paused > NOTICED_SECONDS, "the pause is noticed")
    quiet = time.time()
    producer.wait_acknowledged(100)
    resumed = time.time()
    world.api.post(path(endpoint, "/resume"), {"reason": "test"}).expect(200)
    producer.wait_acknowledged(50)
    figures = world.finish()
    assert not [got for got in endpoint.hook.requests if quiet < got.at < resumed]
    assert figures["duplicates"] == 0 and figures["dead"] == 0


def test_delete_with_many_in_flight(world):
    """What is pending is canceled, what is in flight ends, nobody else notices."""
    [endpoint, *_], producer = busy(world)
    endpoint.deleted_at = time.time()
    world.api.call("DELETE", path(endpoint)).expect(200, 204)
    producer.wait_acknowledged(150)
    figures = world.finish()
    late = [got for got in endpoint.hook.requests if got.at > endpoint.deleted_at + NOTICED_SECONDS]
    assert not late and figures["duplicates"] == 0 and figures["dead"] == 0


def test_url_change_with_many_in_flight(world):
    [endpoint, *_], producer = busy(world)
    moved = world.receivers.hook()
    endpoint.moved_to(moved)
    world.api.call("PATCH", path(endpoint), {"url": moved.url}).expect(200)
    changed = time.time()
    producer.wait_acknowledged(150)
    figures = world.finish()
    assert not [got for got in endpoint.hook.requests if got.at > changed + NOTICED_SECONDS]
    assert moved.requests and figures["duplicates"] == 0 and figures["dead"] == 0


def test_secret_rotation_under_load(world):
    """Every request verifies with a secret that was valid when it was sent; during the overlap with both."""
    endpoints, producer = busy(world)
    rotated = {}
    for endpoint in endpoints:
        answer = world.api.post(path(endpoint, "/secrets/rotate"), {"overlap_seconds": 600}).expect(200, 201)
        endpoint.secrets.append(answer["secret"])
        rotated[endpoint.id] = time.time()
        producer.wait_acknowledged(20)
    wait_until(lambda: time.time() - max(rotated.values()) > NOTICED_SECONDS, "the rotations are noticed")
    producer.wait_acknowledged(60)
    figures = world.finish()
    assert figures["duplicates"] == 0
    for endpoint in endpoints:
        later = [got for got in endpoint.hook.requests if got.at > rotated[endpoint.id] + NOTICED_SECONDS]
        assert later and all(len(got.headers["webhook-signature"].split(" ")) == 2 for got in later)
