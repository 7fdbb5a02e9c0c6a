"""Postgres that crashes, connections that are cut."""

import os
import signal
import time

import pytest

from harness.postgres import Postgres
from harness.wait import wait_until
from pg_proxy import PgProxy
from world import LEASE_SECONDS, skip_disk


@pytest.fixture
def own_postgres(is_short):
    """A server that the test may break."""
    server = Postgres()
    if is_short:
        skip_disk(server)
    yield server
    server.close()


def crash(server, how):
    os.kill(server.postmaster(), how)
    server.process.wait(60)


def restart(server):
    """After kill -9 the old server's children may need a moment; until they are gone a new one does not start."""
    def starts():
        try:
            server.start()
            return True
        except AssertionError:
            return False
    wait_until(starts, "Postgres starts again", 60)


@pytest.mark.parametrize("nodes", [1, 2])
def test_postgres_crashes_under_load(make_world, own_postgres, seed, nodes, is_short):
    """Immediate shutdown and kill -9, each in the middle of everything, and a start afterwards."""
    own_postgres.create("crashed")
    world = make_world(f"test_postgres_crashes_under_load/{nodes}", own_postgres.url("crashed"),
                       lease_seconds=2 if nodes == 1 else LEASE_SECONDS)
    for _ in range(nodes):
        world.start_node()
    tenants = [world.tenant(name) for name in ("a", "b")]
    for tenant in tenants:
        for _ in range(4):
            world.endpoint(tenant, behave=lambda got: 503 if world.random.random() < 0.1 else (204, 0.02))
    producer = world.produce(tenants, per_second=100)
    for how in (signal.SIGQUIT, signal.SIGKILL) if nodes == 1 or not is_short else (signal.SIGKILL,):
        producer.wait_acknowledged(world.random.randint(50, 150))
        with world.fault("database", how.name):
            crash(own_postgres, how)
            restart(own_postgres)
        start = time.monotonic()
        producer.wait_acknowledged(1)
        world.figures[f"back_after_{how.name}_s"] = round(time.monotonic() - start, 1)
    producer.wait_acknowledged(100)
    figures = world.finish()
    assert figures["dead"] == 0
    if nodes == 1:
        assert figures["duplicates"] == 0   # results wait in memory for the database


def test_a_lost_listen_connection_only_costs_a_poll(world):
    world.start_node()
    world.start_node()
    tenant = world.tenant("a")
    for _ in range(6):
        world.endpoint(tenant)
    producer = world.produce([tenant], per_second=100)
    for _ in range(3):
        producer.wait_acknowledged(40)
        world.sql("""select pg_terminate_backend(pid) from pg_stat_activity
                     where application_name = 'postrider listen' and datname = current_database()""")
    producer.wait_acknowledged(40)
    assert world.finish()["duplicates"] == 0


def test_every_session_is_terminated_under_load(world):
    """Each connection of the nodes is cut at least once, wherever it was."""
    world.start_node()
    world.start_node()
    tenant = world.tenant("a")
    for _ in range(6):
        world.endpoint(tenant, behave=lambda got: 503 if world.random.random() < 0.1 else (204, 0.01))
    producer = world.produce([tenant], per_second=100)
    for _ in range(8):
        producer.wait_acknowledged(20)
        world.sql("""select pg_terminate_backend(pid) from pg_stat_activity
                     where datname = current_database() and application_name like 'postrider%'
                       and pid <> pg_backend_pid() and random() < 0.6""")
    producer.wait_acknowledged(40)
    figures = world.finish()
    assert figures["duplicates"] == 0 and figures["dead"] == 0


def test_answers_are_lost_after_the_commit(make_world, postgres, database_url, seed):
    """The connection is cut between COMMIT and its result, on every kind of connection: what was committed is not repeated."""
    proxy = PgProxy(postgres.home, seed)
    try:
        world = make_world(url=database_url.replace(str(postgres.home), proxy.folder), wide_fanout_endpoints=8,
                           fanout_chunk_rows=3)
        world.start_node()
        world.start_node()
        narrow, wide = world.tenant("narrow"), world.tenant("wide")
        for _ in range(4):
            world.endpoint(narrow, behave=lambda got: 503 if world.random.random() < 0.1 else (204, 0.01))
        world.endpoint(narrow, ordering="strict", max_in_flight=1)
        for _ in range(10):
            world.endpoint(wide)
        producer = world.produce([narrow] * 9 + [wide], per_second=60)
        proxy.share = 0.05
        producer.wait_acknowledged(200, 120)
        wait_until(lambda: all(proxy.lost.get(f"postrider {kind}") for kind in ("publish", "delivery", "fanout", "leases")),
                   "each kind has lost one", 120)
        proxy.share = 0.0
        producer.wait_acknowledged(20)
        world.figures["lost_answers"] = sum(proxy.lost.values())
        figures = world.finish()
        assert figures["duplicates"] == 0 and figures["dead"] == 0
    finally:
        proxy.close()


def test_an_outage_longer_than_the_lease_makes_no_node_dead(make_world, own_postgres):
    """No node could send a heartbeat, so none may be declared dead for it: ownership stays, nothing is sent twice."""
    own_postgres.create("away")
    world = make_world(url=own_postgres.url("away"), lease_seconds=4)
    world.start_node()
    world.start_node()
    wait_until(lambda: sorted(world.owners().values()) == [128, 128], "both own half of the buckets")
    tenant = world.tenant("a")
    for _ in range(8):
        world.endpoint(tenant, behave=lambda got: (204, 0.2))
    producer = world.produce([tenant], per_second=60)
    producer.wait_acknowledged(60)
    before = world.owners()
    with world.fault("database", "outage"):
        crash(own_postgres, signal.SIGQUIT)
        start = time.monotonic()
        wait_until(lambda: time.monotonic() - start > 8, "the outage lasts")
        restart(own_postgres)
    producer.wait_acknowledged(60)
    assert world.owners() == before
    figures = world.finish()
    assert figures["duplicates"] == 0
    assert not any(entry["event"] == "node_declared_dead" for node in world.nodes for entry in node.log)
