"""Publishing while one tenant's key floods the API with slow calls."""

import pathlib
import sys
import time

from . import processes
from .measure import Load, Window, ratio
from .population import NOW_MS
from .scenarios_api import call

FLOOD = pathlib.Path(__file__).resolve().parent / "flood.py"
TENANT = "greedy"
ENDPOINTS, EVENTS, ROLLUP_ROWS = 50, 50_000, 200_000
ROUNDS = 5
RATE = 200  # events per second that others publish
# Events of the last hour that all endpoints want and that none of them got, and a day of hourly sums of many types.
FILL = f"""
  insert into postrider.event (id, tenant_id, type, body)
  select (lpad(to_hex({NOW_MS} - 3600000 + n / 16), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0')
          || 'bfff000000000000')::uuid, '{TENANT}', 'flood.t' || n % 20, '{{}}'
  from generate_series(1, {EVENTS}) n;
  insert into postrider.rollup (hour, tenant_id, endpoint_id, event_type, node_id, delivered)
  select date_trunc('hour', now()) - n % 24 * interval '1 hour', '{TENANT}', md5('flood' || n % 50)::uuid, 'flood.t' || n,
         '018f0000-0000-7000-8000-000000000000', 1
  from generate_series(1, {ROLLUP_ROWS}) n;
  analyze postrider.event; analyze postrider.rollup;"""


class Round:
    """Figures of one stretch of publishing by the others."""

    def __init__(self, env, node, key, flood_key, seconds):
        flood = flood_key and processes.Program([sys.executable, FLOOD, "--target", node.address, "--key", flood_key,
                                                 "--tenant", TENANT, "--seconds", seconds + 2])
        time.sleep(1)
        load = Load(env, node, seconds=seconds, first_seq=env.take_numbers(), rate=RATE, batch=1, connections=8, key=key)
        window = Window(env, node, load.program.pid)
        published = load.finish()
        self.others_share = window.close().others_share
        self.p99_ms = published["latency"]["p99_ns"] / 1e6
        self.refused = {status: count for status, count in published["statuses"].items() if not status.startswith("2")}
        self.flood = {}
        if flood:
            out, _ = flood.process.communicate(timeout=60)
            self.flood = processes.json.loads(out)


def middle(rounds):
    return sorted(rounds, key=lambda each: each.p99_ms)[len(rounds) // 2]


def flooded_api(env):
    """The rounds take turns: a moment of a busy disk is not the flood's doing, so the middle one of each side counts."""
    seconds = max(5.0, env.sizes.noisy_s / 2)
    quiet, flooded = [], []
    with env.database() as database:
        env.cluster.sql(database, "vacuum analyze")
        with env.node(database) as node:
            prepare(env, database, node)
            key = call(node, "POST", "/v1/keys", {"role": "publisher"})["key"]
            flood_key = call(node, "POST", "/v1/keys", {"role": "operator", "tenant_id": TENANT})["key"]
            Round(env, node, key, None, 2)  # opens connections and warms the caches
            for _ in range(ROUNDS):
                quiet.append(Round(env, node, key, None, seconds))
                flooded.append(Round(env, node, key, flood_key, seconds))
    report(env, quiet, flooded)


def prepare(env, database, node):
    call(node, "POST", "/v1/tenants", {"id": TENANT, "endpoints_max": ENDPOINTS})
    for _ in range(ENDPOINTS):
        call(node, "POST", f"/v1/tenants/{TENANT}/endpoints", {"url": env.receiver.url(0, "/ok/0"), "event_types": ["*"]})
    env.cluster.sql(database, FILL)


def report(env, quiet, flooded):
    before, after = middle(quiet), middle(flooded)
    refused = {status: count for each in flooded for status, count in each.refused.items()}
    answers = {}
    for each in flooded:
        for kind, statuses in each.flood.items():
            for status, count in statuses.items():
                answers.setdefault(kind, {}).setdefault(status, 0)
                answers[kind][status] += count
    env.figures["flood"] = {"quiet_p99_ms": [each.p99_ms for each in quiet],
                            "flooded_p99_ms": [each.p99_ms for each in flooded], "refused": refused, "flood": answers}
    words = f"{after.p99_ms:.2f} ms / {before.p99_ms:.2f} ms = {ratio(after.p99_ms, before.p99_ms):.2f} ×"
    met = after.p99_ms <= 1.5 * before.p99_ms and not refused
    got = "; ".join(f"{kind}: " + ", ".join(f"{count} × {status}" for status, count in sorted(statuses.items()))
                    for kind, statuses in answers.items())
    env.add("publishing by other tenants while one floods the API with dry runs, exports, streams, statistics and lists",
            "p99 ≤ 1.5 × without it, none rejected", words, met,
            f"{RATE} events/s; medians of {ROUNDS} rounds each; rejected: {refused or 'none'}; the flood got {got}")
