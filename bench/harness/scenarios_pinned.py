"""The row about an open transaction that keeps vacuum from cleaning."""

import contextlib
import time

from . import processes
from .env import ENDPOINTS_EACH, TENANTS
from .measure import Load, ratio
from .processes import Sampler


def pinned_xmin(env):
    """Two nodes with a database each share the machine, and one database's horizon is pinned: whatever the machine does
    within these minutes, it does to both."""
    free_s, seconds = max(8, env.sizes.sustained_s), env.sizes.pinned_s
    judged_s = max(5, seconds * 0.3)
    with contextlib.ExitStack() as stack:
        free, pinned = (stack.enter_context(Side(env, f"{name}-")) for name in ("free", "pinned"))
        for side in (free, pinned):
            side.start_load(3 + free_s + seconds + 1)
        counts = stack.enter_context(Sampler(lambda: (free.receiver.count(), pinned.receiver.count()), every=1.0))
        time.sleep(3)
        before = ratio(*rates_of((pinned, free), free_s))
        with pinned_horizon(env, pinned.database):
            time.sleep(seconds - judged_s)
            rates = rates_of((pinned, free), judged_s)
            dead = dead_queue_rows(env, pinned.database)
            for side in (free, pinned):
                side.load.finish(patience=120)
    env.plots["pinned"], env.plots["pinned_free"] = (
        [(t2, (c2[i] - c1[i]) / (t2 - t1)) for (t1, c1), (t2, c2) in zip(counts.points, counts.points[1:])]
        for i in (1, 0))
    env.plots["pinned_from"] = 3 + free_s
    env.figures["pinned"] = {"pinned_per_s": rates[0], "free_per_s": rates[1], "before": before, "dead_rows": dead}
    result = ratio(ratio(*rates), before)
    env.add(f"xmin pinned for {seconds:.0f} s under load", "≥ 0.9 ×",
            f"{rates[0]:,.0f}/s / {rates[1]:,.0f}/s = {ratio(*rates):.2f} ×; before it {before:.2f} ×: {result:.2f} ×",
            result >= 0.9 if all(rates) else None,
            f"two nodes side by side, one of them with a pinned database; the last {judged_s:.0f} s; {dead:,} dead queue "
            "rows by then")


class Side:
    """A node with a database, a receiver and a load of its own."""

    def __init__(self, env, prefix):
        self.env, self.prefix = env, prefix
        self.tools, self.cluster = env.tools, env.cluster

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.receiver = processes.Receiver(self.tools, hosts=TENANTS * ENDPOINTS_EACH)
            stack.callback(self.receiver.stop)
            self.database = stack.enter_context(self.env.database("migrated"))
            self.env.register(self.database, self.prefix, TENANTS, ENDPOINTS_EACH,
                              lambda i: self.receiver.url(i, f"/ok/{i}"))
            self.node = stack.enter_context(self.env.node(self.database))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        self._stack.__exit__(*error)

    def start_load(self, seconds):
        self.load = Load(self, self.node, seconds=seconds, first_seq=0, prefix=self.prefix)


def rates_of(sides, seconds):
    started, counts = time.monotonic(), [side.receiver.count() for side in sides]
    time.sleep(seconds)
    passed = time.monotonic() - started
    return [(side.receiver.count() - count) / passed for side, count in zip(sides, counts)]


@contextlib.contextmanager
def pinned_horizon(env, database):
    holder = env.cluster.session(database)
    holder.stdin.write("begin isolation level repeatable read;\nselect pg_current_xact_id();\n")
    holder.stdin.flush()
    holder.stdout.readline()
    try:
        yield
    finally:
        holder.stdin.close()
        holder.wait()


def dead_queue_rows(env, database):
    return env.cluster.rows(database, "select n_dead_tup from pg_stat_user_tables where relname = 'queue'")[0]["n_dead_tup"]
