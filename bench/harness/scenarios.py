"""The rows of the result table that are about one node's rate and latency."""

import array
import contextlib
import time

from . import limits, population, processes
from .measure import Load, Window, compare_rates, judged_times, quantile, ratio, sustained, wait_for


def note_if_busy(env, what, result):
    if not result.is_quiet:
        env.note(f"{what}: other processes used {result.others_share:.0%} of the machine")


def throughput(env):
    """The machine's pace changes within minutes, so every round measures the limit again; the middle round counts."""
    rounds = []
    for _ in range(3):
        limit = limits.cpu_limit(env)["deliveries_per_s"]
        with env.database() as database, env.node(database) as node:
            rounds.append((limit, sustained(env, node, seconds=env.sizes.sustained_s)))
            left = population.pending(env.cluster, database)
            single = sustained(env, node, seconds=env.sizes.sustained_s / 3, batch=1, connections=64)
        if left > 20_000:
            env.note(f"sustained deliveries: {left} rows were left in the queue when the load ended")
    limit, result = sorted(rounds, key=share_of_limit)[1]
    env.figures["fast"] = result
    env.figures["sustained"] = {
        "per_s": result.per_s, "node_us": result.cpu_each("node"), "postgres_us": result.cpu_each("postgres"),
        "receiver_us": result.cpu_each("receiver"), "generator_us": result.cpu_each("generator"),
        "engine_us": result.cpu_each("engine"), "p50_ms": result.latency["p50_ns"] / 1e6,
        "p99_ms": result.latency["p99_ns"] / 1e6, "single_per_s": single.per_s, "others_share": result.others_share,
        "all_cores_per_s": result.all_cores_per_s}
    env.plots["throughput"], env.plots["throughput_single"] = result.series, single.series
    env.plots["cdf_loaded"] = result.cdf
    note_if_busy(env, "sustained deliveries", result)
    if result.duplicates or result.rejected:
        env.note(f"sustained deliveries: {result.duplicates} duplicates, {result.rejected} publishes rejected")
    left_to_us = limit * (1 - result.others_share)
    by_cpu = result.all_cores_per_s / limit
    met = (share_of_limit((limit, result)) if result.is_quiet else by_cpu) >= 0.5 if result.is_complete else None
    env.add("sustained deliveries, fan-out 1, 1,000 endpoints", "≥ 50 % of the CPU limit",
            f"{result.per_s:,.0f}/s = {share_of_limit((limit, result)):.0%} of {left_to_us:,.0f}/s; by CPU time "
            f"{result.all_cores_per_s:,.0f}/s = {by_cpu:.0%}"
            + ("" if result.is_quiet else " (used for the result, because the machine was busy)"), met,
            f"median of three rounds ({', '.join(f'{share_of_limit(each):.0%}' for each in rounds)}), each with "
            f"its own limit, here {limit:,.0f}/s; other processes used {result.others_share:.0%} of the machine; "
            f"CPU per delivery: node {result.cpu_each('node'):.1f} µs, Postgres {result.cpu_each('postgres'):.1f}, "
            f"receiver {result.cpu_each('receiver'):.1f}, generator {result.cpu_each('generator'):.1f}; bodies of "
            f"{result.body_bytes:.0f} bytes; published in batches of 100 (one by one: {single.per_s:,.0f}/s, by CPU "
            f"time {single.all_cores_per_s:,.0f}/s)")


def share_of_limit(limit_and_result):
    limit, result = limit_and_result
    return ratio(result.per_s, limit * (1 - result.others_share))


def idle_latency(env):
    limit_us = env.figures["limits"]["commit_p50_us"] + env.figures["limits"]["post_p50_us"]
    count, first, record = env.sizes.idle_events, env.take_numbers(), env.scratch / "idle"
    with env.database() as database, env.node(database) as node:
        sustained(env, node, seconds=2, warm_up=1, rate=200, batch=1, connections=1)  # opens the connections
        load = Load(env, node, seconds=count / 50, first_seq=first, rate=50, batch=1, connections=1, record=record)
        window = Window(env, node, load.program.pid)
        load.finish(patience=count / 50 + 60)
        measured = window.close()
        time.sleep(1)
        env.plots["cdf_idle"] = env.receiver.stats()["cdf"]
    sent, acked = read_records(record)
    arrived = read_arrivals(env, first, len(sent))
    triples = [(s, a, r) for s, a, r in zip(sent, acked, arrived) if a and r]
    from_sent = [(r - s) / 1e3 for s, a, r in triples]
    from_acked = [max(0, r - a) / 1e3 for s, a, r in triples]
    p50, p99 = quantile(from_acked, 0.5), quantile(from_acked, 0.99)
    sent50, sent99 = quantile(from_sent, 0.5), quantile(from_sent, 0.99)
    env.figures["idle"] = {"p50_us": p50, "p99_us": p99, "sent_p50_us": sent50, "sent_p99_us": sent99}
    note_if_busy(env, "idle latency", measured)
    is_complete = len(triples) >= 0.99 * count
    if not is_complete:
        env.note(f"idle latency: only {len(triples)} of {count} events arrived")
    env.add("from the publish response to the delivery at the receiver, idle: p50",
            f"≤ 2 × {limit_us:.0f} µs (commit + POST)",
            f"{p50:.0f} µs = {p50 / limit_us:.2f} ×",
            judged_times(lambda: p50 <= 2 * limit_us, measured) if is_complete else None,
            f"from the publish request: {sent50:.0f} µs = {sent50 / limit_us:.2f} ×")
    env.add("the same: p99", f"≤ 5 × {limit_us:.0f} µs", f"{p99:.0f} µs = {p99 / limit_us:.2f} ×",
            judged_times(lambda: p99 <= 5 * limit_us, measured) if is_complete else None,
            f"from the publish request: {sent99:.0f} µs = {sent99 / limit_us:.2f} ×")


def read_records(path):
    words = array.array("Q")
    words.frombytes(path.read_bytes())
    return words[0::2], words[1::2]


def read_arrivals(env, first, count):
    words = array.array("Q")
    with open(env.scratch / "arrivals", "rb") as file:
        file.seek(first * 8)
        words.frombytes(file.read(count * 8))
    return words


def noisy_tenant(env):
    """Both databases are there from the beginning, and the rounds take turns: a moment of a busy disk is not the
    tenant's doing, so the middle one of each side's rounds counts."""
    rate = min(2_000, 0.25 * env.figures["sustained"]["per_s"])
    hanging = processes.Receiver(env.tools)
    try:
        with env.database() as alone, env.database() as shared:
            env.register(shared, "noisy-", 1, 1, lambda _: hanging.url(0, "/hang"), max_in_flight=100)
            population.fill_pending(env.cluster, shared, env.sizes.pending, "noisy-%")
            rounds = {alone: [], shared: []}
            for database in (alone, shared, shared, alone) * 2 + (alone, shared):
                rounds[database].append(healthy_latency(env, database, rate, hanging if database == shared else None))
        held = hanging.stats()["in_flight_peak"]
    finally:
        hanging.stop()
    quiet, noisy = (sorted(side, key=p99_ms)[len(side) // 2] for side in rounds.values())
    env.plots["cdf_quiet"], env.plots["cdf_noisy"] = quiet.cdf, noisy.cdf
    env.figures["noisy"] = {"quiet_p99_ms": p99_ms(quiet), "noisy_p99_ms": p99_ms(noisy), "rate": rate}
    note_if_busy(env, "healthy tenants", noisy)
    without_it, with_it = (", ".join(f"{p99_ms(each):.1f}" for each in side) for side in rounds.values())
    env.add(f"healthy tenants while another has {env.sizes.pending:,} pending and its endpoint hangs",
            "p99 ≤ 1.2 × without it",
            f"{p99_ms(noisy):.2f} ms / {p99_ms(quiet):.2f} ms = {ratio(p99_ms(noisy), p99_ms(quiet)):.2f} ×",
            judged_times(lambda: p99_ms(noisy) <= 1.2 * p99_ms(quiet), quiet, noisy),
            f"{rate:,.0f} events/s of healthy tenants; requests held by the hanging endpoint: {held}; medians of five "
            f"alternating rounds each (without: {without_it} ms; with: {with_it} ms)")


def p99_ms(result):
    return result.latency["p99_ns"] / 1e6


def healthy_latency(env, database, rate, hanging):
    with env.node(database) as node:
        if hanging:
            wait_for(lambda: hanging.stats()["in_flight"] > 0, "the hanging endpoint", patience=20)
        sustained(env, node, seconds=2, rate=rate, batch=1, connections=32)  # opens the connections
        return sustained(env, node, seconds=env.sizes.noisy_s, rate=rate, batch=1, connections=32)


def drain(env):
    before = env.figures["fast"]
    with env.database() as database:
        population.fill_pending(env.cluster, database, env.sizes.pending, "bench-%")
        env.receiver.reset()
        with env.node(database, ready=False) as node:
            low, high = 0.1 * env.sizes.pending, 0.9 * env.sizes.pending
            patience = 120 + env.sizes.pending / 1000
            wait_for(lambda: env.receiver.count() >= low, "the drain to begin", patience=patience, every=0.02)
            window = Window(env, node)
            wait_for(lambda: env.receiver.count() >= high, "the drain to end", patience=patience, every=0.02)
            after = window.close()
            wait_for(lambda: env.receiver.count() >= env.sizes.pending, "the last of the drain", patience=60)
            stats = env.receiver.stats()
    env.plots["drain"] = [(i / 10, n * 10) for i, n in enumerate(stats["series"])]
    env.figures["drain"] = {"per_s": after.per_s, "duplicates": stats["duplicates"]}
    note_if_busy(env, "drain", after)
    words, met = compare_rates(after, before, 0.9)
    env.add(f"draining {env.sizes.pending:,} pending vs. an empty start", "≥ 0.9 ×", words, met,
            f"{stats['unique']:,} delivered, {stats['duplicates']} duplicates")


def history(env):
    """Turn and turn about, and the better one of two each: the machine's own pace changes within minutes. A long warm-up,
    because indexes that are nearly empty are cheaper than any that were ever in use."""
    rounds = []
    with env.database() as filled:
        population.fill_history(env.cluster, filled, env.sizes.history)
        for is_filled in (False, True, True, False):
            with contextlib.nullcontext(filled) if is_filled else env.database() as database:
                with env.node(database) as node:
                    rounds.append(sustained(env, node, seconds=env.sizes.sustained_s, warm_up=12))
    before, after = (max(pair, key=lambda result: result.per_s)
                     for pair in ((rounds[0], rounds[3]), (rounds[1], rounds[2])))
    env.figures["history"] = {"none_per_s": before.per_s, "full_per_s": after.per_s}
    note_if_busy(env, "history", after)
    words, met = compare_rates(after, before, 0.95)
    env.add(f"{env.sizes.history:,} attempts in history vs. none", "≥ 0.95 ×", words, met,
            f"the better of two rounds each (none, full, full, none: "
            f"{', '.join(f'{each.per_s:,.0f}' for each in rounds)}/s); "
            f"Postgres {before.cpu_each('postgres'):.1f} → {after.cpu_each('postgres'):.1f} µs per delivery")
