"""The rows about many slow endpoints, memory, and two nodes."""

import signal
import time

from . import population, processes
from .env import ENDPOINTS_EACH, TENANTS
from .measure import Load, ratio, sustained, wait_for
from .scenarios import note_if_busy, read_arrivals, read_records


def slow_endpoints(env):
    sizes = env.sizes
    tenants = sizes.slow_endpoints // ENDPOINTS_EACH
    with env.database() as database, env.node(database) as node:  # right before, so that both see the same machine
        fast = sustained(env, node, seconds=sizes.sustained_s, rate=0.9 * 5 * sizes.slow_cap)
    with env.database("migrated") as database:
        env.register(database, "slow-", tenants, ENDPOINTS_EACH, lambda i: env.receiver.url(i, f"/delay/200/{i}"))
        with env.node(database, max_in_flight=sizes.slow_cap) as node:
            result = sustained(env, node, seconds=sizes.sustained_s, tenants=tenants, prefix="slow-",
                               window=4 * sizes.slow_cap)
        peak = env.receiver.stats()["in_flight_peak"]
    engine_us, fast_us = result.cpu_each("engine"), fast.cpu_each("engine")
    env.figures["slow"] = {"peak": peak, "per_s": result.per_s, "engine_us": engine_us}
    note_if_busy(env, "slow endpoints", result)
    env.add(f"{sizes.slow_endpoints:,} endpoints with a response time of 200 ms: in flight",
            f"reaches the limit of {sizes.slow_cap:,}", f"{peak:,}", 0.98 * sizes.slow_cap <= peak <= sizes.slow_cap,
            f"{result.per_s:,.0f} deliveries/s of at most {sizes.slow_cap * 5:,}")
    env.add("the same: CPU per delivery (node + Postgres)", "≤ 1.3 × the fast case",
            f"{engine_us:.1f} µs / {fast_us:.1f} µs = {ratio(engine_us, fast_us):.2f} ×",
            engine_us <= 1.3 * fast_us if result.is_complete and fast.is_complete else None,
            f"the fast case at about the same rate; node {fast.cpu_each('node'):.1f} → {result.cpu_each('node'):.1f}, "
            f"Postgres {fast.cpu_each('postgres'):.1f} → {result.cpu_each('postgres'):.1f}")


def memory(env):
    sizes = env.sizes
    tenants = sizes.memory_endpoints // 50
    with env.database("migrated") as database:
        env.register(database, "wide-", tenants, 50, lambda i: env.receiver.url(i, f"/delay/200/{i}"))
        population.fill_pending(env.cluster, database, sizes.pending, "wide-%")
        with env.node(database) as node:
            env.receiver.reset()
            with processes.Sampler(lambda: processes.rss_mib(node.pid), every=0.25) as rss:
                time.sleep(sizes.memory_s)
            delivered = env.receiver.count()
    peak = max(value for _, value in rss.points)
    env.plots["memory"] = rss.points
    env.figures["memory"] = {"peak_mib": peak}
    env.add(f"resident memory: {tenants * 50:,} endpoints, {sizes.pending:,} pending", "≤ 256 MiB",
            f"{peak:.0f} MiB", peak <= 256 if delivered else None,
            f"peak during {sizes.memory_s:.0f} s of sending ({delivered:,} deliveries)")


def two_nodes(env):
    sizes, rate = env.sizes, 500
    after_s = sizes.lease_s + 6
    first, record = env.take_numbers(), env.scratch / "two_nodes"
    with env.database("migrated") as database:
        env.register(database, "pair-", TENANTS, ENDPOINTS_EACH, lambda i: env.receiver.url(i, f"/delay/50/{i}"))
        with env.node(database, lease_seconds=sizes.lease_s) as survivor:
            with env.node(database, ready=False, lease_seconds=sizes.lease_s) as victim:
                victim.wait_until_ready()
                env.wait_for_leases(database, owners=2)
                load = Load(env, survivor, seconds=5 + after_s, first_seq=first, rate=rate, batch=1, connections=16,
                            prefix="pair-", record=record)
                time.sleep(5)
                killed_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
                victim.process.send_signal(signal.SIGKILL)
                published = load.finish(patience=after_s + 60)
            try:
                wait_for(lambda: env.receiver.stats()["unique"] >= published["acked"], "what the lost node had",
                         patience=30)
            except RuntimeError as error:
                env.note(str(error))
            stats = env.receiver.stats()
    judge_takeover(env, first, record, killed_ns, published, stats)


def judge_takeover(env, first, record, killed_ns, published, stats):
    sizes = env.sizes
    sent, acked = read_records(record)
    arrived = read_arrivals(env, first, len(sent))
    lost = sum(1 for a, r in zip(acked, arrived) if a and not r)
    # The longest wait of deliveries that were due while no node served them, counted from the kill or the publish.
    waits = [(r - max(s, killed_ns)) / 1e9 for s, r in zip(sent, arrived) if r > killed_ns]
    worst = max(waits, default=0.0)
    env.plots["takeover"] = sorted(((s - killed_ns) / 1e9, (r - s) / 1e6) for s, r in zip(sent, arrived) if r)
    env.figures["takeover"] = {"worst_s": worst, "lost": lost, "overlaps": stats["overlaps"],
                               "duplicates": stats["duplicates"]}
    env.add(f"two nodes, kill -9 of one (lease {sizes.lease_s} s): its work is sent by the other",
            f"≤ {sizes.lease_s + 1} s",
            f"within {worst:.2f} s", bool(waits) and worst <= sizes.lease_s + 1)
    env.add("the same: deliveries lost / sent by both nodes at once", "0 / 0", f"{lost} / {stats['overlaps']}",
            lost == 0 and stats["overlaps"] == 0,
            f"{published['acked']:,} published; {stats['duplicates']} sent again after the crash, "
            "as at-least-once allows")
