"""The outbox under kill -9: exactly the events of committed transactions arrive, each at least once.

Three ways: rows in postrider's own database, rows in another one that postrider reads, and rows in another one that a relay
at the application's side publishes over HTTP. `--size 100000` selects the large run."""

import collections
import json
import pathlib
import random
import re
import signal
import tempfile
import threading
import time

import psycopg2
import pytest

from harness.node import ADMIN_KEY, Node
from harness.postgres import run_sql
from harness.relay import RelayProcess, install
from harness.wait import wait_until

WRITERS = 8
SOURCE = pathlib.Path(__file__).resolve().parents[2] / "src" / "postrider" / "outbox"
PUBLISH = "select postrider.publish('acme', 'order.paid', to_json(%s || '-' || n)) from generate_series(1, %s) n"


class Writers:
    """Transactions from several connections; a third rolls back. Knows what was committed."""

    def __init__(self, url, seed, transactions, function="publish"):
        self.statement = f"select postrider.{function}('acme', 'order.paid', %s)"
        self.committed = set()
        self.rolled_back = set()
        self._lock = threading.Lock()
        each = transactions // WRITERS
        self.threads = [threading.Thread(target=self._write, args=(url, seed * 100 + number, number, each), daemon=True)
                        for number in range(WRITERS)]
        for thread in self.threads:
            thread.start()

    def _write(self, url, seed, writer, count):
        chance = random.Random(seed)
        connection = psycopg2.connect(url)
        done, undone = set(), set()
        with connection.cursor() as cursor:
            for number in range(count):
                name = f"{writer}-{number}"
                cursor.execute("insert into business (name) values (%s)", (name,))
                cursor.execute(self.statement, (json.dumps(name),))
                if chance.random() < 1 / 3:
                    connection.rollback()
                    undone.add(name)
                else:
                    connection.commit()
                    done.add(name)
        connection.close()
        with self._lock:
            self.committed |= done
            self.rolled_back |= undone

    def are_done(self):
        return not any(thread.is_alive() for thread in self.threads)


def kill_every_second(start, outbox, until):
    """A process that is killed and started again, over and over; returns the one that lives at the end."""
    running = start()
    kills = 0
    while not until():
        running.wait_for_log("relay_active", 120, outbox=outbox)
        time.sleep(1)  # the fault itself: whatever the relay is doing then
        running.kill()
        running.close()
        kills += 1
        running = start()
    return running, kills


def prepare(start_node, database_url, hook):
    first = start_node(database_url=database_url)
    first.api.create_tenant("acme")
    first.api.create_endpoint("acme", hook.url, max_in_flight=100)
    return first


def arrived(hook):
    return collections.Counter(json.loads(request.body)["data"] for request in list(hook.requests))


def new_application(postgres):
    name = f"application_{random.randrange(1_000_000_000)}"
    postgres.create(name)
    return install(postgres.url(name))


@pytest.mark.parametrize("place, function", [("same_database", "publish"), ("other_database", "publish"),
                                             ("application_side", "publish"), ("same_database", "emit"),
                                             ("other_database", "emit")])
def test_exactly_the_committed_events_arrive(place, function, start_node, postgres, database_url, receiver, seed, sized,
                                             is_short, tmp_path):
    if is_short and (place, function) == ("other_database", "emit"):
        pytest.skip("in the full set")
    hook = receiver.hook()
    transactions = sized(short=2_000, full=100_000)
    first = prepare(start_node, database_url, hook)
    application = database_url if place == "same_database" else new_application(postgres)
    if place == "other_database":
        first.api.call("PUT", "/v1/outboxes/billing", {"database_url": application}).expect(201)
    if place == "application_side":
        (tmp_path / "key").write_text(ADMIN_KEY)
    else:
        first.stop()
    run_sql(application, "create table business (name text primary key)")
    if function == "emit":
        run_sql(application, "select postrider.outbox_set_mode('cdc')")

    def start():
        if place == "application_side":
            return RelayProcess(application, f"http://{first.address}", tmp_path / "key")
        return Node(database_url=database_url)

    writers = Writers(application, seed, transactions, function)
    outbox = {"same_database": "local", "other_database": "billing", "application_side": "outbox"}[place]
    survivor, kills = kill_every_second(start, outbox, writers.are_done)
    try:
        wait_until(lambda: len(arrived(hook)) >= len(writers.committed), "every committed event arrives",
                   300 + transactions / 50)
        counts = arrived(hook)
        assert set(counts) == writers.committed
        assert not set(counts) & writers.rolled_back
        assert kills > 0, "nothing was ever killed"
        again = sum(counts.values()) - len(counts)
        if function == "emit":
            wait_until(lambda: run_sql(application, "select state from postrider.outbox_slot") == [("on",)], "capture", 60)
            assert run_sql(application, "select lost_at from postrider.outbox_slot") == [(None,)]
        print(f"{transactions} transactions, {len(counts)} committed, {kills} kills, {again} deliveries repeated")
    finally:
        survivor.close()


def fail_points():
    """Those of rows; change data capture has a test of its own."""
    found = set()
    for path in SOURCE.rglob("*.cpp"):
        found.update(re.findall(r'\breach\("(outbox\.(?!capture)[a-z_]+)"\)', path.read_text()))
    return sorted(found)


def test_kill_nine_at_every_named_step_of_the_outbox(start_node, postgres, database_url, receiver, seed):
    """One node after the other on the same data, each killed at its point while rows wait in both outboxes."""
    hook = receiver.hook()
    names = fail_points()
    assert {"outbox.before_commit", "outbox.after_commit", "outbox.before_mark", "outbox.after_mark"} <= set(names)
    application = new_application(postgres)
    first = prepare(start_node, database_url, hook)
    first.api.call("PUT", "/v1/outboxes/billing", {"database_url": application}).expect(201)
    first.stop()
    committed = set()

    def publish(name, count=20):
        for url, where in ((database_url, "local"), (application, "billing")):
            run_sql(url, PUBLISH, (f"{name}-{where}", count))
            committed.update(f"{name}-{where}-{n}" for n in range(1, count + 1))

    choice = random.Random(seed)
    choice.shuffle(names)
    with tempfile.NamedTemporaryFile(prefix="fail-points-") as log:
        for name in names:
            publish(name)
            killed = start_node(ready=False, database_url=database_url, fail_point=f"{name}:1", fail_point_log=log.name)
            wait_until(lambda: killed.process.poll() is not None, f"it dies at {name}", 120)
            assert killed.process.returncode == -signal.SIGKILL, killed.describe()
        reached = collections.Counter(pathlib.Path(log.name).read_text().split())
    survivor = start_node(database_url=database_url)
    publish("last")
    wait_until(lambda: set(arrived(hook)) >= committed, "every committed event arrives", 120)
    assert set(arrived(hook)) == committed
    # Publishing is exactly once, whatever is repeated: one event per row.
    assert survivor.sql("select count(*) from postrider.event where tenant_id = 'acme'") == [(len(committed),)]
    print("\n".join(f"{name}: reached in {reached[name]} processes, killed one" for name in sorted(names)))
    never = [name for name in names if not reached[name]]
    assert not never, f"never reached: {never}"


@pytest.mark.parametrize("place, point", [("same_database", "outbox.capture_before_commit"),
                                          ("same_database", "outbox.capture_after_commit"),
                                          ("other_database", "outbox.capture_before_confirm")])
def test_a_relay_that_dies_before_it_confirms_publishes_nothing_twice(place, point, start_node, postgres, database_url,
                                                                      receiver):
    hook = receiver.hook()
    prepared = prepare(start_node, database_url, hook)
    application = database_url
    if place == "other_database":
        application = new_application(postgres)
        prepared.api.call("PUT", "/v1/outboxes/billing", {"database_url": application}).expect(201)
    prepared.stop()
    run_sql(application, "select postrider.outbox_set_mode('cdc')")
    dying = start_node(database_url=database_url, fail_point=f"{point}:2")
    wait_until(lambda: run_sql(application, "select state from postrider.outbox_slot") == [("on",)], "capture", 60)
    for first in (0, 50):  # the second batch kills it
        run_sql(application, "select count(postrider.emit('acme', 'order.paid', to_json(n)))"
                             f" from generate_series({first}, {first + 49}) n")
        wait_until(lambda done=first + 50: dying.process.poll() is not None or len(arrived(hook)) >= done, "a batch", 60)
    dying.wait_exit()
    survivor = start_node(database_url=database_url)
    try:
        wait_until(lambda: len(arrived(hook)) >= 100, "every event arrives", 120)
        assert survivor.sql("select count(*), count(distinct body) from postrider.event") == [(100, 100)]
        assert run_sql(application, "select count(*) from postrider.outbox") == [(0,)]
    finally:
        survivor.stop()
