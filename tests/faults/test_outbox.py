"""The outbox under kill -9: exactly the events of committed transactions arrive, each at least once."""

import collections
import json
import random
import subprocess
import threading
import time

import psycopg2
import pytest

from harness import node as node_module
from harness.node import Node
from harness.wait import wait_until

WRITERS = 8
FULL, SHORT = 100_000, 2_000


class Writers:
    """Transactions from several connections; a third rolls back. Knows what was committed."""

    def __init__(self, url, seed, transactions):
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
                cursor.execute("select postrider.publish('acme', 'order.paid', %s)", (json.dumps(name),))
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


def kill_every_second(settings, outbox, until):
    """A node that is killed and started again, over and over; returns the one that lives at the end."""
    running = Node(**settings)
    kills = 0
    while not until():
        running.wait_for_log("relay_active", 120, outbox=outbox)
        time.sleep(1)  # the fault itself: whatever the relay is doing then
        running.kill()
        running.close()
        kills += 1
        running = Node(**settings)
    return running.wait_ready(), kills


def prepare(start_node, database_url, hook):
    first = start_node(database_url=database_url)
    first.api.create_tenant("acme")
    first.api.create_endpoint("acme", hook.url, max_in_flight=100)
    first.stop()


def arrived(hook):
    return collections.Counter(json.loads(request.body)["data"] for request in list(hook.requests))


@pytest.mark.parametrize("place", ["same_database", "other_database"])
def test_exactly_the_committed_events_arrive(place, start_node, postgres, database_url, receiver, seed, is_short):
    hook = receiver.hook()
    transactions = SHORT if is_short else FULL
    prepare(start_node, database_url, hook)
    application = database_url
    if place == "other_database":
        application = install_elsewhere(start_node, postgres, database_url)
    connection = psycopg2.connect(application)
    with connection, connection.cursor() as cursor:
        cursor.execute("create table business (name text primary key)")
    connection.close()

    writers = Writers(application, seed, transactions)
    survivor, kills = kill_every_second({"database_url": database_url},
                                        "local" if place == "same_database" else "billing", writers.are_done)
    try:
        wait_until(lambda: len(arrived(hook)) >= len(writers.committed), "every committed event arrives", 300)
        counts = arrived(hook)
        assert set(counts) == writers.committed
        assert not set(counts) & writers.rolled_back
        again = sum(counts.values()) - len(counts)
        print(f"{transactions} transactions, {len(counts)} committed, {kills} kills, {again} deliveries repeated")
    finally:
        survivor.close()


def install_elsewhere(start_node, postgres, database_url):
    name = f"application_{random.randrange(1_000_000)}"
    postgres.create(name)
    url = postgres.url(name)
    subprocess.run([node_module.binary(), "outbox", "install", "--database-url", url], check=True, cwd="/",
                   env=node_module.environment(), stdout=subprocess.DEVNULL)
    first = start_node(database_url=database_url)
    first.api.call("PUT", "/v1/outboxes/billing", {"database_url": url}).expect(201)
    first.stop()
    return url
