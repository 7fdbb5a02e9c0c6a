"""Nodes that die around a publish commit, and in the middle of a wide fan-out."""

import concurrent.futures
import http.client

from harness.wait import wait_until
from producer import Sent

# Whether the event is in the database when the node dies there.
STEPS = {"publish.before_begin": False, "publish.before_commit": False, "publish.after_commit": True,
         "publish.before_answer": True}


def publish_and_die(world, step, sent, body, headers):
    victim = world.start_node(fail_point=f"{step}:1", roles="api")
    try:
        answer = victim.api.post(f"/v1/tenants/{sent.tenant}/events", body, headers=headers)
        raise AssertionError(f"{step} was passed: {answer}")
    except (OSError, http.client.HTTPException):
        sent.sends, sent.unknown = 1, 1
    world.wait_killed(victim, step)


def test_kill_nine_around_the_publish_commit_then_the_same_again(world):
    """Whatever the producer can know, a repetition with the same id or key leaves exactly one event."""
    survivor = world.start_node()
    tenant = world.tenant("a")
    world.endpoint(tenant)
    world.endpoint(tenant)
    world.sent = lambda: ledger
    ledger = []

    def case(step, with_key):
        token = f"{step.replace('.', '-')}-{'key' if with_key else 'id'}"
        sent = Sent(token, tenant, None if with_key else token, token if with_key else None)
        ledger.append(sent)
        headers = {"idempotency-key": token} if with_key else {}
        body = {"type": "thing.happened", "data": {"token": token}, **({} if with_key else {"id": token})}
        publish_and_die(world, step, sent, body, headers)
        for expected in (200 if STEPS[step] else 202, 200, 200):
            answer = survivor.api.post(f"/v1/tenants/{tenant}/events", body, headers=headers)
            assert answer.status == expected, (step, with_key, answer)
            assert answer.json["deliveries"] == 2
            sent.sends += 1
            sent.answers.add(answer.json["id"])
        other = {**body, "data": {"token": token, "other": True}}
        survivor.api.post(f"/v1/tenants/{tenant}/events", other, headers=headers).expect(409)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(case, step, with_key) for step in STEPS for with_key in (False, True)]:
            future.result()
    figures = world.finish()
    assert figures["duplicates"] == 0 and len(world.requests()) == 2 * len(ledger)


def test_kill_nine_during_a_wide_fan_out(make_world, is_short):
    """The fan-out continues where it stopped; every endpoint gets the event."""
    width = 200 if is_short else 3000
    chunk = 20 if is_short else 200
    world = make_world(lease_seconds=2, wide_fanout_endpoints=chunk, fanout_chunk_rows=chunk, endpoints_max=100000)
    first = world.start_node()
    tenant = world.tenant("wide", endpoints_max=100000)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: world.endpoint(tenant), range(width)))
    chunks = width // chunk
    for step in ("fanout.before_chunk_commit", "fanout.after_chunk_commit"):
        passes = world.random.randint(1, chunks - 1)
        victim = world.start_node(ready=False, fail_point=f"{step}:{passes}")
        world.kill(first)
        world.join(victim)
        producer = world.produce([tenant], per_second=5, threads=1)
        world.wait_killed(victim, f"{step}:{passes}")
        assert world.sql("select count(*) from postrider.fanout_task") != [(0,)]
        first = world.start_node()
        producer.wait_acknowledged(1)
        producer.stop()
    figures = world.finish(180)
    assert figures["dead"] == 0
    wait_until(lambda: sum(1 for endpoint in world.endpoints if endpoint.hook.requests) == width, "all got something")
