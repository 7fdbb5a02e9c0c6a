"""Inbound webhooks under kill -9: one row per message, every 2xx has its row, and order holds among consumers."""

import collections
import concurrent.futures
import http.client
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time

from harness import senders
from harness.node import Node
from harness.postgres import run_sql
from harness.wait import wait_until

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SENDERS = 16


class Door:
    """A node that is killed again and again; its address changes with every start."""

    def __init__(self, database_url, **settings):
        self.settings = {"database_url": database_url, **settings}
        self.starts = 0
        self.start()

    def start(self):
        node = Node(**self.settings)
        self.starts += 1
        node.wait_ready()
        self.node, self.address = node, node.address

    def kill(self):
        self.node.kill()
        Node.running.remove(self.node)


def send_once(address, source, message_id, body):
    host, port = address.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=20)
    try:
        connection.request("POST", f"/in/{source}", body, senders.standard(SECRET, message_id, body))
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None  # unknown
    finally:
        connection.close()


def send_all(door, source, numbers, accepted):
    """Sends each until it gets a 2xx, and waits for a node that is down."""
    for number in numbers:
        message_id, body = f"msg-{number}", senders.event(n=number, key=f"k{number % 50}")
        while (status := send_once(door.address, source, message_id, body)) != 200:
            assert status in (None, 503), status
            time.sleep(0.05)  # the node is being started again
        accepted.add(message_id)


def test_messages_sent_thrice_to_a_dying_node_are_stored_once(database_url, seed, sized):
    messages = sized(short=3_000, full=50_000)
    choice = random.Random(seed)
    door = Door(database_url)
    door.node.api.post("/v1/sources", {"id": "many", "provider": "standard", "secret": SECRET}).expect(201)
    everything = [number for number in range(messages) for _ in range(3)]
    choice.shuffle(everything)
    accepted = [set() for _ in range(SENDERS)]
    stopping = threading.Event()

    def kill_every_second():
        while not stopping.wait(1.0):
            door.kill()
            door.start()

    killer = threading.Thread(target=kill_every_second)
    killer.start()
    try:
        with concurrent.futures.ThreadPoolExecutor(SENDERS) as pool:
            parts = [pool.submit(send_all, door, "many", everything[i::SENDERS], accepted[i]) for i in range(SENDERS)]
            for part in parts:
                part.result()
    finally:
        stopping.set()
        killer.join()
    stored = run_sql(database_url, "select provider_id, count(*) from postrider.inbox group by provider_id")
    [(wrong,)] = run_sql(database_url, """select count(*) from postrider.inbox
                                          where 'msg-' || (body::json ->> 'n') is distinct from provider_id""")
    queued = run_sql(database_url, "select count(*) from postrider.inbox_queue where source_id = 'many'")[0][0]
    door.node.close()
    print(f"{messages} messages, {len(everything)} requests, {door.starts} starts")
    assert door.starts > 1, "no node was ever killed"
    assert {provider_id for provider_id, _ in stored} == set.union(*accepted)
    assert [row for row in stored if row[1] != 1] == [] and len(stored) == messages == queued
    assert wrong == 0, f"{wrong} rows have the body of another message"


def fail_points():
    source = os.path.join(os.path.dirname(__file__), "..", "..", "src", "postrider", "inbox")
    found = set()
    for name in os.listdir(source):
        if name.endswith(".cpp"):
            with open(os.path.join(source, name)) as file:
                found.update(re.findall(r'\breach\("(inbox\.[a-z_]+)"\)', file.read()))
    return sorted(found)


def die_at(database_url, point, log, first):
    """A node that dies the third time it gets there, under messages from number `first` on; the last number sent."""
    dying = Door(database_url, fail_point=f"{point}:3", fail_point_log=log)
    number = first
    while dying.node.process.poll() is None:
        number += 1
        send_once(dying.address, "steps", f"msg-{number}", senders.event(n=number))
        assert number < first + 5_000, f"{point} is never reached"
    assert dying.node.process.returncode == -signal.SIGKILL
    dying.node.wait_exit()
    Node.running.remove(dying.node)
    return number


def test_kill_at_every_named_step_of_the_inbox(database_url):
    """One node after the other dies, each at its step; in the end each message is one row and one event."""
    door = Door(database_url)
    door.node.api.create_tenant("acme")
    source = {"id": "steps", "provider": "standard", "secret": SECRET, "forward": {"tenant_id": "acme", "type": "a.b"}}
    door.node.api.post("/v1/sources", source).expect(201)
    door.kill()
    names, last = fail_points(), 0
    assert len(names) >= 4
    with tempfile.NamedTemporaryFile(prefix="fail-points-") as log:
        for point in names:
            last = die_at(database_url, point, log.name, last)
        reached = collections.Counter(pathlib.Path(log.name).read_text().split())
    print("\n".join(f"{name}: reached in {reached[name]} processes, killed one" for name in names))
    assert [name for name in names if not reached[name]] == [], "never reached"
    door.start()
    send_all(door, "steps", range(1, last + 1), set())
    wait_until(lambda: run_sql(database_url, "select count(*) from postrider.event where tenant_id = 'acme'")[0][0] == last,
               "every message is an event", seconds=120)  # what the dead nodes were forwarding waits for its lease
    door.node.close()
    assert run_sql(database_url, "select count(*), count(distinct provider_id) from postrider.inbox") == [(last, last)]


CONSUMER = textwrap.dedent("""
    import os, random, sys, psycopg2, json, time
    url, worker, crashes = sys.argv[1], sys.argv[2], sys.argv[3] == "crashing"
    connection = psycopg2.connect(url)
    connection.autocommit = True
    cursor = connection.cursor()
    choice = random.Random(worker)
    while True:
        cursor.execute("select id, body from postrider.inbox_claim(%s, 'ordered', 5, '3 seconds')", [worker])
        for message_id, body in cursor.fetchall():
            n = json.loads(body)
            cursor.execute("insert into ledger (worker, message_id, key, n, what) values (%s, %s, %s, %s, 'begin')",
                           [worker, message_id, n["key"], n["n"]])
            if crashes and choice.random() < 0.05:
                os._exit(1)
            cursor.execute("insert into ledger (worker, message_id, key, n, what) values (%s, %s, %s, %s, 'end')",
                           [worker, message_id, n["key"], n["n"]])
            cursor.execute("select postrider.inbox_ack(%s, %s)", [worker, [message_id]])
        cursor.execute("select count(*) from postrider.inbox_queue where source_id = 'ordered'")
        if cursor.fetchone()[0] == 0:
            break
        time.sleep(0.02)
""")


def test_no_key_is_worked_on_by_two_at_once_or_out_of_order(database_url, seed, is_short):
    per_key, keys = (20, 12) if is_short else (100, 40)
    door = Door(database_url)
    door.node.api.post("/v1/sources", {"id": "ordered", "provider": "standard", "secret": SECRET, "max_attempts": 1000,
                                       "partition_key": "/key", "ordering": "strict"}).expect(201)
    run_sql(database_url, "create table public.ledger (at bigserial, worker text, message_id text, key text, n int, what text)")

    def send_key(key):
        for n in range(per_key):
            body = senders.event(key=key, n=n)
            assert send_once(door.address, "ordered", f"{key}-{n}", body) == 200

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(send_key, [f"key{seed}-{number}" for number in range(keys)]))

    names = iter(range(10_000))

    def consume(crashing):
        while True:  # a consumer that crashed is started again, under another name
            worker = f"worker-{next(names)}"
            code = subprocess.run([sys.executable, "-c", CONSUMER, database_url, worker, "crashing" if crashing else ""]).returncode
            if code == 0:
                return

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(consume, [True, True, True, False, False, False, False, False]))
    ledger = run_sql(database_url, "select worker, key, n, what from public.ledger order by at")
    door.node.close()
    next_of, holder = {}, {}
    crashed = 0
    for worker, key, n, what in ledger:
        if what == "begin":
            if holder.get(key) is not None:
                assert holder[key][1] == n, f"{key}: {worker} began {n} while {holder[key]} was not done"
                crashed += 1
            assert n == next_of.get(key, 0), f"{key}: {n} came before {next_of.get(key, 0)}"
            holder[key] = (worker, n)
        else:
            assert holder[key] == (worker, n), f"{key}: {worker} ended {n}, which {holder[key]} holds"
            holder[key], next_of[key] = None, n + 1
    print(f"{len(ledger)} entries, {crashed} messages taken over from crashed consumers")
    assert next_of == {f"key{seed}-{number}": per_key for number in range(keys)}
    assert crashed > 0, "no consumer crashed in the middle"
