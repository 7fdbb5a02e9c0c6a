"""The row about an open transaction that keeps vacuum from cleaning."""

import contextlib
import copy
import dataclasses
import time

from . import processes
from .cluster import Cluster
from .env import ENDPOINTS_EACH, TENANTS
from .measure import Load, Measured, Window, ratio
from .processes import Sampler


def pinned_xmin(env):
    """Two nodes share the machine, each with a Postgres of its own, and one's horizon is pinned: whatever the machine
    does within these minutes, it does to both. Their rates are shares of one machine, which they do not divide evenly
    even when nothing is pinned; what a delivery costs each of them decides."""
    free_s, seconds = max(8, env.sizes.sustained_s), env.sizes.pinned_s
    judged_s = max(5, seconds * 0.3)
    with contextlib.ExitStack() as stack:
        sides = free, pinned = [stack.enter_context(Side(env, f"{name}-")) for name in ("free", "pinned")]
        for side in sides:
            side.start_load(3 + free_s + seconds + 1)
        counts = stack.enter_context(Sampler(lambda: [side.env.receiver.count() for side in sides], every=1.0))
        time.sleep(3)
        before = Compared(*measured(sides, free_s))
        with pinned_horizon(pinned):
            time.sleep(seconds - judged_s)
            after = Compared(*measured(sides, judged_s))
            dead = dead_queue_rows(pinned)
            for side in sides:
                side.load.finish(patience=120)
    env.plots["pinned"], env.plots["pinned_free"] = (
        [(t2, (c2[i] - c1[i]) / (t2 - t1)) for (t1, c1), (t2, c2) in zip(counts.points, counts.points[1:])]
        for i in (1, 0))
    env.plots["pinned_from"] = 3 + free_s
    env.figures["pinned"] = {"by_cpu": after.by_cpu, "by_cpu_before": before.by_cpu, "by_rate": after.by_rate,
                             "by_rate_before": before.by_rate, "dead_rows": dead}
    result = ratio(after.by_cpu, before.by_cpu)
    env.add(f"xmin pinned for {seconds:.0f} s under load", "≥ 0.9 ×",
            f"{after.free_us:.1f} µs / {after.pinned_us:.1f} µs = {after.by_cpu:.2f} ×; "
            f"before pinning {before.by_cpu:.2f} ×; adjusted: {result:.2f} ×",
            result >= 0.9 if before.is_complete and after.is_complete else None,
            f"CPU per delivery of node and Postgres; two of each run side by side, one pinned; last {judged_s:.0f} s; "
            f"{dead:,} dead queue rows at the end; deliveries/s {after.pinned.per_s:,.0f} / {after.free.per_s:,.0f} = "
            f"{after.by_rate:.2f} ×, before pinning {before.by_rate:.2f} ×")


@dataclasses.dataclass
class Compared:
    free: Measured
    pinned: Measured

    @property
    def free_us(self):
        return self.free.cpu_each("engine")

    @property
    def pinned_us(self):
        return self.pinned.cpu_each("engine")

    @property
    def by_cpu(self):
        return ratio(self.free_us, self.pinned_us)

    @property
    def by_rate(self):
        return ratio(self.pinned.per_s, self.free.per_s)

    @property
    def is_complete(self):
        return self.free.is_complete and self.pinned.is_complete


class Side:
    """A node with a Postgres, a receiver and a load of its own."""

    def __init__(self, env, prefix):
        self.env, self.prefix = copy.copy(env), prefix

    def __enter__(self):
        env = self.env
        with contextlib.ExitStack() as stack:
            env.receiver = processes.Receiver(env.tools, hosts=TENANTS * ENDPOINTS_EACH)
            stack.callback(env.receiver.stop)
            env.cluster = stack.enter_context(Cluster())
            env.migrate("side")
            env.register("side", self.prefix, TENANTS, ENDPOINTS_EACH, lambda i: env.receiver.url(i, f"/ok/{i}"))
            self.node = stack.enter_context(env.node("side"))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        self._stack.__exit__(*error)

    def start_load(self, seconds):
        self.load = Load(self.env, self.node, seconds=seconds, first_seq=0, prefix=self.prefix)


def measured(sides, seconds):
    windows = [Window(side.env, side.node) for side in sides]
    time.sleep(seconds)
    return [window.close() for window in windows]


@contextlib.contextmanager
def pinned_horizon(side):
    holder = side.env.cluster.session("side")
    holder.stdin.write("begin isolation level repeatable read;\nselect pg_current_xact_id();\n")
    holder.stdin.flush()
    holder.stdout.readline()
    try:
        yield
    finally:
        holder.stdin.close()
        holder.wait()


def dead_queue_rows(side):
    query = "select n_dead_tup from pg_stat_user_tables where relname = 'queue'"
    return side.env.cluster.rows("side", query)[0]["n_dead_tup"]
