"""Postgres that crashes, connections that are cut."""

import os
import signal
import time

import pytest

from harness.postgres import Postgres
from harness.wait import wait_until


@pytest.fixture
def own_postgres():
    """A server that the test may break."""
    server = Postgres()
    yield server
    server.close()


def crash(server, how):
    os.kill(server.postmaster(), how)
    server.process.wait(60)


def restart(server):
    """After kill -9 the old server's children may need a moment; until they are gone a new one refuses to start."""
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
    world = make_world(f"test_postgres_crashes_under_load/{nodes}", own_postgres.url("crashed"), lease_seconds=2)
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
