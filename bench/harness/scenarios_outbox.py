"""The rows of the result table that are about the outbox: what publish() and emit() cost the application, how long the
relay takes and what it asks of Postgres, and how much it moves. On a server of its own, with wal_level = logical."""

import contextlib
import os
import subprocess
import time

from . import processes
from .cluster import Cluster, server_binary
from .measure import Window, quantile, wait_for
from .scenarios import read_arrivals
from .scenarios_inbox import post

COMMITTERS = 64
CUSTOMERS = 100_000
DATA = '{"order":17,"cents":4200,"customer":"cus_0123456789","note":"' + "x" * 100 + '"}'
POLLS_MS = (100, 500, 1_000, 5_000)
# What any outbox table costs, without checks, rights and an id that means anything.
PLAIN_INSERT = ("insert into plain_outbox (event_id, tenant_id, type, data) "
                f"values (gen_random_uuid(), 'acme', 'order.paid', '{DATA}');")
BUSINESS = r"""\set customer random(1, %d)
begin;
insert into business_order (customer, cents) values (:customer, 4200);
update business_customer set balance = balance - 4200 where id = :customer;
%%s
commit;
""" % CUSTOMERS


@contextlib.contextmanager
def own_server(env):
    """The scenarios' nodes and databases are on it for a while."""
    usual = env.cluster
    with Cluster({"wal_level": "logical", "max_connections": "150"}) as cluster:
        env.cluster = cluster
        try:
            yield cluster
        finally:
            env.cluster = usual


def prepare(env, database):
    env.migrate(database)
    env.cluster.sql(database, f"""
        create table business_customer (id integer primary key, balance bigint not null) with (fillfactor = 70);
        insert into business_customer select n, 0 from generate_series(1, {CUSTOMERS}) n;
        create table business_order (id bigserial primary key, customer integer not null, cents integer not null);
        create index on business_order (customer);
        create table plain_outbox (like postrider.outbox including all);
        vacuum analyze business_customer;""")


# ── what a business transaction pays ───────────────────────────────────────────────────────────────────────────


def pgbench(env, database, statement, seconds):
    """Transactions per second of 64 committers, and the server's CPU time for each."""
    script = env.scratch / "business.sql"
    script.write_text(BUSINESS % statement, encoding="utf-8")
    script.chmod(0o644)
    before = processes.tree_cpu_us(env.cluster.postmaster_pid())
    done = subprocess.run([server_binary("pgbench"), "-n", "-M", "prepared", "-c", str(COMMITTERS), "-j", "2",
                           "-T", str(int(seconds)), "-f", str(script), env.cluster.url(database)],
                          check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-500:])
    per_s = next(float(line.split("=")[1].split()[0]) for line in done.stdout.splitlines() if line.startswith("tps"))
    count = next(int(line.split(":")[1].split("/")[0]) for line in done.stdout.splitlines()
                 if line.startswith("number of transactions actually processed"))
    # Sessions that have ended count for the postmaster, so nothing of them is missed.
    return per_s, (processes.tree_cpu_us(env.cluster.postmaster_pid()) - before) / max(1, count)


@contextlib.contextmanager
def everybody_notifies(env, database):
    """As if the relay slept all the time: each commit sends a NOTIFY."""
    env.cluster.sql(database, """
        select setval('postrider.outbox_idle_until', (extract(epoch from clock_timestamp()) * 1000)::bigint + 3600000);""")
    try:
        yield
    finally:
        env.cluster.sql(database, "select setval('postrider.outbox_idle_until', 1)")


@contextlib.contextmanager
def messages(env, database):
    """emit() writes messages that no relay reads: only the application's part."""
    env.cluster.sql(database, """
        select pg_create_logical_replication_slot('bench', 'pgoutput');
        select setval('postrider.outbox_capture', ((extract(epoch from clock_timestamp())::bigint - 1600000000 + 3600) << 32)
                      | postrider.outbox_location());""")
    try:
        yield
    finally:
        env.cluster.sql(database, "select setval('postrider.outbox_capture', 1); "
                                  "select pg_drop_replication_slot('bench');")


def publish_cost(env):
    """Added cost of publish() and emit() to an insert and an update, with 64 concurrent committers; beside them what a
    statement that does nothing and a bare insert add."""
    seconds = max(2, env.sizes.sustained_s / 3)
    publish, emit = (f"select postrider.{function}('acme', 'order.paid', '{DATA}');" for function in ("publish", "emit"))
    variants = {"plain": ("", None), "one more statement (select 1)": ("select 1;", None),
                "a plain insert of the same row": (PLAIN_INSERT, None), "publish, no NOTIFY": (publish, None),
                "publish, NOTIFY at every commit": (publish, everybody_notifies), "emit": (emit, messages)}
    results = {name: [] for name in variants}
    with own_server(env) as cluster:
        prepare(env, "outbox_cost")
        pgbench(env, "outbox_cost", "", 2)
        for _ in range(2):
            for name, (statement, around) in variants.items():
                with around(env, "outbox_cost") if around else contextlib.nullcontext():
                    results[name].append(pgbench(env, "outbox_cost", statement, seconds))
                cluster.sql("outbox_cost", "truncate postrider.outbox, plain_outbox")
    per_s = {name: max(rate for rate, _ in runs) for name, runs in results.items()}
    cpu = {name: min(us for _, us in runs) for name, runs in results.items()}
    env.figures["publish_cost"] = {name: {"tx_per_s": per_s[name], "cpu_us": cpu[name]} for name in variants}
    for name in list(variants)[1:]:
        env.add(f"business transaction with {name}, {COMMITTERS} committers", "",
                f"{per_s[name] / per_s['plain']:.2f} × the rate without it", None,
                f"{per_s[name]:,.0f} against {per_s['plain']:,.0f} transactions/s; {cpu[name] - cpu['plain']:+.0f} µs CPU of "
                f"Postgres per transaction ({cpu['plain']:.0f} without); the better of two rounds")


# ── how long the relay takes ───────────────────────────────────────────────────────────────────────────────────


def relay_delays(env, node, database, function, count, gap_s):
    """Commit returned → receiver has the request, in ms, of single transactions with gaps between them."""
    first = env.take_numbers(count)
    env.receiver.reset()
    session = env.cluster.session(database)
    committed = []
    for number in range(first, first + count):
        time.sleep(gap_s)
        session.stdin.write(f"select postrider.{function}('acme', 'bench.e0', '{{\"bench_seq\":{number}}}');\n")
        session.stdin.flush()
        session.stdout.readline()
        committed.append(time.monotonic_ns())
    session.stdin.close()
    session.wait(20)
    wait_for(lambda: env.receiver.count() >= count, "the last events of the relay", patience=60)
    arrived = read_arrivals(env, first, count)
    return [max(0, there - done) / 1e6 for done, there in zip(committed, arrived) if there]


def idle_load(env, node, seconds):
    """What a node that has nothing to do asks of Postgres: CPU time per second, in ms, and transactions per second."""
    def transactions():
        return int(env.cluster.sql("postgres", "select sum(xact_commit + xact_rollback) from pg_stat_database"))
    window, before, started = Window(env, node), transactions(), time.monotonic()
    time.sleep(seconds)
    measured, after = window.close(), transactions()
    return measured.cpu.postgres / 1e3 / measured.seconds, (after - before) / (time.monotonic() - started)


def relay_settings():
    yield "LISTEN", "publish", {}
    for poll in POLLS_MS:
        yield f"poll {poll / 1000:g} s", "publish", {"relay_poll": f"{poll}ms", "relay_notify": "false"}
    yield "change data capture", "emit", {}


def relay_latency(env):
    """Delay and idle load for LISTEN, polls and change data capture; the load of a node without relay is beside it."""
    count = max(20, env.sizes.idle_events // 10)
    quiet_s = max(10, env.sizes.sustained_s)
    rows = {}
    with own_server(env):
        prepare(env, "outbox_delay")
        register_hook(env, "outbox_delay")
        with env.node("outbox_delay", roles="api,delivery,inbox,upkeep") as node:
            time.sleep(2)
            cpu, transactions = idle_load(env, node, quiet_s)
            rows["none"] = {"cpu_ms_per_s": cpu, "transactions_per_s": transactions}
        for name, function, settings in relay_settings():
            poll_s = 0.5 if name == "LISTEN" else float(name.split()[1]) if name.startswith("poll") else 0.05
            with env.node("outbox_delay", **settings) as node:
                if function == "emit":
                    capture(env, node, "outbox_delay")
                relay_delays(env, node, "outbox_delay", function, 3, 0.05)
                cpu, transactions = idle_load(env, node, quiet_s)
                # Gaps that do not fall into step with the poll.
                delays = relay_delays(env, node, "outbox_delay", function, max(10, int(count / max(1, 4 * poll_s))),
                                      0.037 + poll_s / 13)
            rows[name] = {"p50_ms": quantile(delays, 0.5), "p99_ms": quantile(delays, 0.99), "events": len(delays),
                          "cpu_ms_per_s": cpu, "transactions_per_s": transactions}
    env.figures["relay_latency"] = rows
    base = rows["none"]["cpu_ms_per_s"]
    for name, row in rows.items():
        if "p50_ms" in row:
            env.add(f"outbox to receiver, idle, {name}", "", f"p50 {row['p50_ms']:.1f} ms, p99 {row['p99_ms']:.1f} ms", None,
                    f"load of the idle node on Postgres: {row['transactions_per_s']:.0f} transactions/s, "
                    f"{row['cpu_ms_per_s']:.1f} ms CPU per second ({base:.1f} without a relay); {row['events']} events")


def register_hook(env, database):
    with env.node(database) as node:
        post(node, "/v1/tenants", {"id": "acme"})
        post(node, "/v1/tenants/acme/endpoints", {"url": env.receiver.url(0, "/ok/0"), "event_types": ["*"],
                                                  "max_in_flight": 200})


def capture(env, node, database):
    env.cluster.sql(database, "select postrider.outbox_set_mode('cdc')")
    wait_for(lambda: env.cluster.sql(database, "select state from postrider.outbox_slot").strip() == "on", "capture")


# ── how much the relay moves ───────────────────────────────────────────────────────────────────────────────────


def relay_rate(env):
    """A backlog in the table, and one in the log, against events over HTTP; to a tenant without endpoints."""
    count = max(2_000, env.sizes.pending // 5)
    rates = {}
    with own_server(env) as cluster:
        prepare(env, "outbox_rate")
        with env.node("outbox_rate") as node:
            for tenant in ("acme", "acme-0"):
                post(node, "/v1/tenants", {"id": tenant})
            rates["HTTP, batches of 100"] = http_rate(env, node, batch=100)
            rates["HTTP, one by one"] = http_rate(env, node, batch=1)
        for name, function in (("rows", "publish"), ("change data capture", "emit")):
            rates[name] = backlog_rate(env, cluster, function, count)
    env.figures["relay_rate"] = rates
    for name in ("rows", "change data capture"):
        env.add(f"sustained relay rate, {name}", "",
                f"{rates[name] / rates['HTTP, batches of 100']:.2f} × publishing in batches, "
                f"{rates[name] / rates['HTTP, one by one']:.2f} × one by one", None,
                f"{rates[name]:,.0f} events/s against {rates['HTTP, batches of 100']:,.0f} and "
                f"{rates['HTTP, one by one']:,.0f} over HTTP, a tenant without endpoints, {os.cpu_count()} cores")


def http_rate(env, node, batch):
    seconds = max(2, env.sizes.sustained_s / 3)
    program = processes.Program([env.tools / "bench_loadgen", "--target", node.address, "--key", node.KEY, "--tenants", 1,
                                 "--types", 1, "--tenant-prefix", "acme-", "--batch", batch, "--connections",
                                 4 if batch > 1 else COMMITTERS, "--seconds", seconds, "--first-seq", env.take_numbers()])
    out, _ = program.process.communicate(timeout=seconds + 120)
    if program.process.returncode != 0:
        raise RuntimeError("the load generator failed")
    return processes.json.loads(out)["acked_per_s"]


def backlog_rate(env, cluster, function, count):
    """Written while no relay runs (of messages: while none reads), then timed until all are events."""
    database = "outbox_rate"
    write = (f"select count(postrider.{function}('acme', 'order.paid', '{DATA}')) "
             f"from generate_series(1, 100)")
    before = int(cluster.sql(database, "select count(*) from postrider.event"))
    if function == "emit":  # a slot that is there, and a mark that is believed, as after a crash of the relay
        with env.node(database) as node:
            capture(env, node, database)
        cluster.sql(database, "select setval('postrider.outbox_capture', ((extract(epoch from clock_timestamp())::bigint"
                              " - 1600000000 + 3600) << 32) | postrider.outbox_location())")
    cluster.sql(database, "set synchronous_commit = off;\n" + (write + ";\n") * (count // 100))
    with env.node(database, ready=False):
        def published():
            return int(cluster.sql(database, "select count(*) from postrider.event")) - before
        wait_for(lambda: published() > 0, "the first event of the relay", patience=120, every=0.02)
        first, started = published(), time.monotonic()
        wait_for(lambda: published() >= count // 100 * 100, "the relay to move all", patience=600, every=0.1)
        seconds = time.monotonic() - started
    return (count // 100 * 100 - first) / seconds
