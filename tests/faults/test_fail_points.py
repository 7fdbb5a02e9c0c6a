"""kill -9 of a node at every named step. The names come from the source, so that none is forgotten."""

import collections
import concurrent.futures
import http.client
import pathlib
import random
import re
import tempfile

from harness.wait import wait_until

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "src" / "postrider"
CHAINS = 3                      # run side by side: most of the time they wait for a lease to run out
# How often a place is passed before the node dies there, at most. Places passed once per start must say 1.
PASSES_MAX = {"ownership.before_take": 1, "ownership.after_take": 1, "fetch.before": 2, "fetch.after": 2,
              "client.connect": 4, "fanout.before_chunk_commit": 3, "fanout.after_chunk_commit": 3,
              "ownership.before_release": 10}
PASSES_MAX_OTHERS = 30
LAST = "ownership.before_release"   # needs a second node, which then stays


def fail_points():
    found = set()
    for path in SOURCE.rglob("*.cpp"):
        found.update(re.findall(r'\breach\("([a-z_.]+)"\)', path.read_text()))
    # Those of the inbox need senders: test_inbox.py. Those of the outbox need writers in SQL: test_outbox.py.
    return sorted(name for name in found if not name.startswith(("inbox.", "outbox.")))


def wide_world(make_world, name, url):
    """Two tenants with endpoints of all kinds, one of them wide enough for a fan-out in the background."""
    world = make_world(name, url, lease_seconds=2, wide_fanout_endpoints=8, fanout_chunk_rows=3)
    world.start_node()
    narrow, wide = world.tenant("narrow"), world.tenant("wide")
    for _ in range(3):
        world.endpoint(narrow, behave=lambda got: 503 if world.random.random() < 0.1 else (204, 0.02),
                       max_in_flight=world.random.randint(1, 8))
    world.endpoint(narrow, ordering="strict", max_in_flight=1)
    for _ in range(10):
        world.endpoint(wide)
    return world, [narrow] * 9 + [wide]


def run_chain(make_world, name, url, points):
    """One node after the other on the same data, each killed at its point, under load all the time."""
    world, tenants = wide_world(make_world, name, url)
    [setup] = world.nodes
    producer = world.produce(tenants, per_second=40)
    producer.wait_acknowledged(10)
    world.kill(setup)
    with tempfile.NamedTemporaryFile(prefix="fail-points-") as log:
        for point in points:
            passes = world.random.randint(1, PASSES_MAX.get(point, PASSES_MAX_OTHERS))
            node = world.start_node(ready=False, fail_point=f"{point}:{passes}", fail_point_log=log.name)
            wait_until(lambda: node.process.poll() is not None or has_started(node), "it starts or dies")
            if node.process.poll() is None:
                join_or_die(world, node)
            if point == LAST:
                wait_until(lambda: list(world.owners().values()) == [256] and world.owner(node) in world.owners(),
                           "it owns all buckets, so that a second node makes it release some")
                world.start_node()
            world.wait_killed(node, f"{point}:{passes}")
        if LAST not in points:
            world.start_node()
        producer.wait_acknowledged(30)
        world.finish()
        world.figures["points"] = len(points)
        reached = collections.Counter(pathlib.Path(log.name).read_text().split())
    return reached


def has_started(node):
    return any(entry["event"] == "started" for entry in node.log)


def join_or_die(world, node):
    """Ready, unless it reached its point before that."""
    try:
        world.join(node)
    except (AssertionError, OSError, http.client.HTTPException):
        wait_until(lambda: node.process.poll() is not None, "a node that does not answer is dead", 10)


def test_kill_nine_at_every_named_step(make_world, fresh_database, seed):
    names = fail_points()
    assert len(names) > 15
    shuffled = [name for name in names if name != LAST]
    random.Random(seed).shuffle(shuffled)
    chains = [shuffled[number::CHAINS] for number in range(CHAINS)]
    if LAST in names:
        chains[-1].append(LAST)
    with concurrent.futures.ThreadPoolExecutor(CHAINS) as pool:
        running = [pool.submit(run_chain, make_world, f"test_kill_nine_at_every_named_step/{number + 1}",
                               fresh_database(), chain) for number, chain in enumerate(chains)]
        reached = sum((future.result() for future in running), collections.Counter())
    print("\n".join(f"{name}: reached in {reached[name]} processes, killed one" for name in names))
    never = [name for name in names if not reached[name]]
    assert not never, f"never reached: {never}"
