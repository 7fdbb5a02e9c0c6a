"""Dropping a big day under load."""

import time

from .measure import Load, wait_for
from .scenarios import read_arrivals, read_records

RATE = 500
LAG_BAR_MS = 100


def fill_old_day(cluster, database, rows):
    """A day of events and attempts a month ago."""
    cluster.sql(database, "select postrider.create_partitions(35, 1)")
    head = "left(replace(postrider.id_floor(now() - interval '30 days')::text, '-', ''), 20)"
    cluster.sql(database, f"""
        insert into postrider.event (id, tenant_id, type, body)
        select ({head} || lpad(to_hex(n), 12, '0'))::uuid, 'old', 'order.sent', repeat('x', 300)
        from generate_series(1, {rows}) n;
        insert into postrider.attempt (delivery_id, attempt, bucket, endpoint_id, event_id, tenant_id, outcome, started_at,
                                       total_us, node_id, created_at)
        select ({head} || lpad(to_hex(n), 12, '0'))::uuid, 1, 0, '00000000-0000-0000-0000-000000000001',
               ({head} || lpad(to_hex(n), 12, '0'))::uuid, 'old', 'delivered', now(), 1000,
               '00000000-0000-0000-0000-000000000002', now()
        from generate_series(1, {rows}) n;
        vacuum analyze postrider.event;
        vacuum analyze postrider.attempt;
        checkpoint""")


def drop_a_day(env):
    rows, seconds = env.sizes.pending, 20
    first, record = env.take_numbers(), env.scratch / "retention"
    old = "select count(*) as days from pg_class where relname ~ '^(event|attempt)_[0-9]{8}$' and relkind = 'r' and " \
          "right(relname, 8) < to_char(now() - interval '25 days', 'YYYYMMDD')"
    with env.database() as database, env.node(database, retain_events="365d", retain_attempts="365d") as node:
        fill_old_day(env.cluster, database, rows)
        load = Load(env, node, seconds=seconds, first_seq=first, rate=RATE, batch=1, connections=4, record=record)
        time.sleep(seconds / 3)
        dropping_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        # It does nothing but upkeep, and its first pass comes at once.
        with env.node(database, roles="upkeep", retain_events="20d", retain_attempts="20d") as _:
            wait_for(lambda: env.cluster.rows(database, old)[0]["days"] == 0, "the old days are gone", patience=60)
            took = (time.clock_gettime_ns(time.CLOCK_MONOTONIC) - dropping_ns) / 1e9
            load.finish(patience=seconds + 60)
        time.sleep(1)
    sent, acked = read_records(record)
    arrived = read_arrivals(env, first, len(sent))
    answered = [(s, r) for s, a, r in zip(sent, acked, arrived) if a]
    lags = [(r - s) / 1e6 for s, r in answered if r]
    before = [(r - s) / 1e6 for s, r in answered if r and r < dropping_ns]
    refused = len(sent) - len(answered)
    worst = max(lags, default=float("inf"))
    env.figures["retention"] = {"rows": rows, "worst_lag_ms": worst, "refused": refused}
    env.add(f"dropping a day of {rows:,} events and as many attempts at {RATE} events/s",
            f"no failed request, no lag over {LAG_BAR_MS} ms",
            f"{refused} rejected, {len(answered) - len(lags)} missing, worst lag {worst:.1f} ms",
            refused == 0 and len(lags) == len(answered) and worst <= LAG_BAR_MS,
            f"worst before the drop {max(before, default=0):.1f} ms; "
            f"time from the node's start until the last day was dropped: {took:.1f} s")
