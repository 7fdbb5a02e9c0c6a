"""What all scenarios share: the cluster with its prepared databases, the receiver, the sizes, the results."""

import contextlib
import dataclasses
import pathlib
import socket
import subprocess
import time

from . import population, processes
from .cluster import Cluster
from .measure import wait_for


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How much of everything; the bars are stated for `FULL`."""

    name: str
    raw_s: float            # each baseline
    sustained_s: float      # each throughput measurement, after its warm-up
    idle_events: int
    pending: int            # "1 M pending"
    noisy_s: float
    history: int            # "10 M attempts"
    pinned_s: float         # "10 minutes"
    slow_endpoints: int
    slow_cap: int           # configured in-flight cap of the node
    memory_endpoints: int   # "100,000 endpoints"
    memory_s: float
    lease_s: int
    list_attempts: int      # "10 M attempts"
    list_endpoints: int     # "100,000 endpoints"
    list_pending: int
    list_pages: int         # of each list and filter


SHORT = Sizes(name="short", raw_s=3, sustained_s=8, idle_events=300, pending=100_000, noisy_s=10, history=500_000,
              pinned_s=20, slow_endpoints=2_000, slow_cap=1_000, memory_endpoints=5_000, memory_s=8, lease_s=3,
              list_attempts=500_000, list_endpoints=10_000, list_pending=50_000, list_pages=50)
FULL = Sizes(name="full", raw_s=8, sustained_s=30, idle_events=2_000, pending=1_000_000, noisy_s=20,
             history=10_000_000, pinned_s=600, slow_endpoints=2_000, slow_cap=2_000, memory_endpoints=100_000,
             memory_s=30, lease_s=10, list_attempts=10_000_000, list_endpoints=100_000, list_pending=1_000_000,
             list_pages=200)

TENANTS, ENDPOINTS_EACH = 100, 10  # 1,000 endpoints, each on a host of its own


@dataclasses.dataclass
class Row:
    """One line of the result table. `met` is None when the row could not be measured."""

    figure: str
    bar: str
    measured: str
    met: bool | None
    detail: str = ""


class Env:
    def __init__(self, binary, tools, sizes, scratch):
        self.binary, self.tools, self.sizes = binary, tools, sizes
        self.scratch = pathlib.Path(scratch)
        self.rows, self.notes, self.plots, self.figures = [], [], {}, {}
        self._next_number, self._next_database = 0, 0
        self.cluster = self.receiver = None

    def __enter__(self):
        self._stack = contextlib.ExitStack()
        self.cluster = self._stack.enter_context(Cluster())
        self.receiver = processes.Receiver(self.tools, hosts=TENANTS * ENDPOINTS_EACH,
                                           record=self.scratch / "arrivals")
        self._stack.callback(self.receiver.stop)
        return self

    def __exit__(self, *error):
        self._stack.__exit__(*error)

    def say(self, text):
        print(f"  {text}", flush=True)

    def note(self, text):
        self.notes.append(text)
        self.say(f"note: {text}")

    def add(self, figure, bar, measured, met, detail=""):
        self.rows.append(Row(figure, bar, measured, met, detail))
        verdict = {True: "met", False: "MISSED", None: "not evaluated"}[met]
        self.say(f"{figure}: {measured} (target {bar}): {verdict}" + (f"; {detail}" if detail else ""))

    def take_numbers(self, count=4_000_000):
        """A range of event numbers that no other load of this run uses soon; gives the first."""
        first, self._next_number = self._next_number, (self._next_number + count) % 60_000_000
        return first

    def migrate(self, database):
        """An empty database with postrider's schema."""
        self.cluster.create(database)
        environment = processes.Node.environment(self.cluster.url(database), "127.0.0.1:0")
        done = subprocess.run([str(self.binary), "migrate"], env=environment, check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise RuntimeError(f"postrider migrate failed: {done.stdout}")

    def prepare(self):
        """Makes the database `base`, with the 1,000 endpoints that most scenarios use."""
        self.migrate("base")
        self.register("base", "bench-", TENANTS, ENDPOINTS_EACH, lambda i: self.receiver.url(i, f"/ok/{i}"))
        for database in ("migrated", "base"):  # otherwise autovacuum comes when something is measured
            self.cluster.sql(database, "vacuum analyze")

    def register(self, database, prefix, tenants, endpoints_each, url_of, **fields):
        """Registers through a node of its own. Only here commits do not wait for the disk: nothing is measured."""
        started = time.monotonic()
        self.cluster.sql("postgres", f'alter database "{database}" set synchronous_commit = off')
        with self.node(database) as node:
            population.Registrar(node).register(prefix, tenants, endpoints_each, url_of, **fields)
        self.cluster.sql("postgres", f'alter database "{database}" reset synchronous_commit')
        self.say(f"{tenants * endpoints_each:,} endpoints registered in {time.monotonic() - started:.1f} s")

    @contextlib.contextmanager
    def database(self, template="base"):
        """A copy of a prepared database, dropped afterwards."""
        self._next_database += 1
        name = f"scenario{self._next_database}"
        self.cluster.create(name, template)
        try:
            yield name
        finally:
            self.cluster.drop(name)

    @contextlib.contextmanager
    def node(self, database, ready=True, **settings):
        """A node on that database, stopped cleanly afterwards if it still runs."""
        node = self.start_node(database, **settings)
        try:
            if ready:
                node.wait_until_ready()
                self.wait_for_leases(database)
            yield node
        finally:
            node.stop()

    def start_node(self, database, **settings):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        named = {f"POSTRIDER_{name.upper()}": str(value) for name, value in settings.items()}
        named["POSTRIDER_DATA_DIR"] = str(self.scratch)
        return processes.Node(self.binary, self.cluster.url(database), port, named)

    def wait_for_leases(self, database, owners=1):
        """Until every bucket has an owner and the owners are that many."""
        def is_shared():
            row = self.cluster.rows(database, "select count(*) filter (where owner is null) as free, "
                                              "count(distinct owner) as owners from postrider.bucket_lease")[0]
            return row["free"] == 0 and row["owners"] == owners
        wait_for(is_shared, "bucket leases", patience=60)
