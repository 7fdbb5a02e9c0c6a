"""One experiment's world: a database, the nodes on it, receivers, producers, and the faults that were caused, with their
times. finish() lets everything end and asks the oracle."""

import contextlib
import dataclasses
import os
import random
import signal
import threading
import time

from harness.node import Node
from harness.ports import lasting_port
from harness.postgres import run_sql
from harness.wait import wait_until
from oracle import Fault, check
from producer import Producer
from receivers import Receivers

LEASE_SECONDS = 10          # long, so that a slow machine loses no node; experiments that lose one set less
DRAIN_SECONDS = 90          # invariant 8: after the last fault the backlog is gone within this
DESCRIPTORS_SPARE = 4       # short-lived: a name lookup, a log file, a health check


@dataclasses.dataclass
class Endpoint:
    id: str
    tenant: str
    hook: object
    secrets: list
    max_in_flight: int
    is_strict: bool = False
    deleted_at: float = None
    hooks: list = dataclasses.field(default_factory=list)    # all that its URL ever pointed to

    def __post_init__(self):
        self.hooks.append(self.hook)

    def moved_to(self, hook):
        self.hooks.append(hook)


class World:
    def __init__(self, name, database_url, seed, **settings):
        self.name, self.database_url, self.seed = name, database_url, seed
        self.random = random.Random(f"{name}/{seed}")
        self.settings = {"lease_seconds": LEASE_SECONDS, **self.some_settings(), **settings}
        self.nodes, self.endpoints, self.faults, self.producers = [], [], [], []
        self.receivers = Receivers()
        self.other_receivers = []
        self.figures = {}
        self._alive = []
        self._baselines = {}
        self._lock = threading.Lock()

    def some_settings(self):
        """Sizes at which lanes overflow, batches are cut and threads share the work, or do not."""
        choose = self.random.choice
        return {"lane_rows_max": choose([2, 5, 50, 500]), "settle_batch_items_max": choose([1, 10, 500]),
                "publish_batch_items_max": choose([2, 500]), "buffer_bytes_max": choose(["4KiB", "64MiB"]),
                "shards": choose([1, 2]), "api_threads": choose([1, 2])}

    # ── nodes ──

    def start_node(self, ready=True, **settings):
        node = Node(database_url=self.database_url, **{**self.settings, **settings})
        self.nodes.append(node)
        return self.join(node) if ready else node

    def join(self, node):
        """Waits until it is ready; from then on producers use it."""
        node.wait_ready()
        self._baselines[node] = descriptors(node)
        with self._lock:
            self._alive.append(node)
        return node

    def alive(self):
        with self._lock:
            return [node for node in self._alive if node.process.poll() is None]

    def addresses(self):
        return [node.address for node in self.alive()]

    @property
    def api(self):
        return self.alive()[0].api

    def leave(self, node):
        with self._lock:
            if node in self._alive:
                self._alive.remove(node)

    def kill(self, node):
        start = time.time()
        node.kill()
        self.leave(node)
        self.faults.append(Fault("kill", start, time.time()))

    def wait_killed(self, node, note, seconds=60):
        """It kills itself at its fail point."""
        start = time.time()
        wait_until(lambda: node.process.poll() is not None, f"{note} is reached", seconds)
        assert node.wait_exit() == -signal.SIGKILL, node.describe()
        self.leave(node)
        # It may have died long before this check, while another node was being started.
        self.faults.append(Fault("kill", min(start, node.ended_at), node.ended_at, note))

    @contextlib.contextmanager
    def stopped(self, node):
        """SIGSTOP for the time of the block."""
        fault = Fault("stop", time.time(), float("inf"))
        self.faults.append(fault)
        self.leave(node)
        node.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            node.signal(signal.SIGCONT)
            fault.end = time.time()
            with self._lock:
                self._alive.append(node)

    @contextlib.contextmanager
    def fault(self, kind, note=""):
        fault = Fault(kind, time.time(), float("inf"), note)
        self.faults.append(fault)
        try:
            yield
        finally:
            fault.end = time.time()

    # ── tenants, endpoints, load ──

    def tenant(self, name, **fields):
        self.api.create_tenant(name, **fields)
        return name

    def endpoint(self, tenant, receivers=None, behave=None, **fields):
        hook = (receivers or self.receivers).hook()
        if behave is not None:
            hook.behave = behave
        fields = {"retry_schedule": [1], "timeout_ms": 15000, "max_in_flight": 10, "max_attempts": 20, **fields}
        hook.max_in_flight = fields["max_in_flight"]
        made = self.api.create_endpoint(tenant, hook.url, **fields)
        endpoint = Endpoint(made["id"], tenant, hook, [made["secret"]], fields["max_in_flight"],
                            fields.get("ordering") == "strict")
        self.endpoints.append(endpoint)
        return endpoint

    def more_receivers(self):
        """Others, which may go away and come back."""
        self.other_receivers.append(Receivers(lasting_port()))
        return self.other_receivers[-1]

    def produce(self, tenants, **options):
        number = len(self.producers)
        producer = Producer(f"p{number}", self.addresses, tenants, f"{self.name}/{self.seed}/{number}", **options)
        self.producers.append(producer)
        return producer.start()

    # ── observation ──

    def sql(self, statement, arguments=None):
        return run_sql(self.database_url, statement, arguments)

    def queued(self):
        [(rows,)] = self.sql("""select (select count(*) from postrider.queue where bucket >= 0)
                                     + (select count(*) from postrider.fanout_task)""")
        return rows

    def owners(self):
        """node id → how many buckets it owns"""
        return dict(self.sql("""select 'node_' || replace(owner::text, '-', ''), count(*) from postrider.bucket_lease
                                where owner is not null group by owner"""))

    def owner(self, node):
        return node.wait_for_log("started")["node_id"]

    def requests(self):
        found = [got for each in (self.receivers, *self.other_receivers) for got in each.requests()]
        return sorted(found, key=lambda got: got.at)

    def sent(self):
        return [sent for producer in self.producers for sent in producer.sent]

    # ── the end ──

    def finish(self, drain_seconds=DRAIN_SECONDS):
        """Ends the load, waits for the backlog to go, compares the ledgers; returns the figures."""
        for producer in self.producers:
            producer.stop()
        start = time.monotonic()
        wait_until(lambda: self.queued() == 0, f"the backlog of {self.queued()} is gone", drain_seconds)
        self.figures["drain_s"] = round(time.monotonic() - start, 1)
        violations = check(self)
        violations += self.leaked()
        assert not violations, self.explain(violations)
        return self.figures

    def leaked(self):
        """Invariant 9: once receivers closed their side, nodes have as many descriptors as at the start."""
        for each in (self.receivers, *self.other_receivers):
            each.drop_connections()
        try:
            for node in self.alive():
                wait_until(lambda: descriptors(node) <= self._baselines[node] + DESCRIPTORS_SPARE, "descriptors", 20)
        except AssertionError:
            return [f"9: {descriptors(node)} descriptors, {self._baselines[node]} at the start: {open_files(node)}"]
        return []

    def explain(self, violations):
        shown = "\n".join(violations[:12])
        logs = "\n\n".join(node.describe() for node in self.nodes) if len(self.nodes) < 5 else ""
        faults = "\n".join(f"  {fault}" for fault in self.faults)
        return (f"{self.name} with --seed {self.seed}: {len(violations)} violations\n{shown}\n"
                f"settings: {self.settings}\nfaults:\n{faults}\n"
                f"last log lines:\n{logs}")

    def log_of(self, delivery):
        return [entry for node in self.nodes for entry in node.log if entry.get("delivery_id") == delivery]

    def close(self):
        for producer in self.producers:
            producer._stopping.set()
        for node in self.nodes:
            if node.process.poll() is None:
                node.signal(signal.SIGCONT)
                node.kill()
        for each in (self.receivers, *self.other_receivers):
            each.close()


def descriptors(node):
    return len(os.listdir(f"/proc/{node.process.pid}/fd"))


def open_files(node):
    folder = f"/proc/{node.process.pid}/fd"
    found = []
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"{folder}/{name}").split(":")[0])
    return sorted(found)


def skip_disk(server):
    """For a Postgres whose machine does not die."""
    server.sql("alter system set fsync = off", "postgres")
    server.sql("select pg_reload_conf()", "postgres")
