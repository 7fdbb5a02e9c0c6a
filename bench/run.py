#!/usr/bin/python3
"""Measures postrider against the limits of this machine: `./dev bench [short|full] [--only NAME…] [--docs]`.

Builds the tools, starts a throw-away Postgres, receivers and nodes on loopback, runs the scenarios one after another
and prints a table. The results go to build/bench/report; `full` and --docs also write docs/benchmarks.md with its plots.
"""

import argparse
import dataclasses
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from harness import limits, measure, report, scenarios, scenarios_api, scenarios_flood, scenarios_inbox  # noqa: E402
from harness import scenarios_lists, scenarios_outbox, scenarios_pinned, scenarios_retention, scenarios_wide  # noqa: E402
from harness.env import FULL, SHORT, Env  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = ["receiver", "loadgen", "raw_http", "raw_pg"]
SCENARIOS = {
    "throughput": scenarios.throughput,
    "idle": scenarios.idle_latency,
    "noisy": scenarios.noisy_tenant,
    "drain": scenarios.drain,
    "history": scenarios.history,
    "lists": scenarios_lists.lists,
    "pinned": scenarios_pinned.pinned_xmin,
    "slow": scenarios_wide.slow_endpoints,
    "memory": scenarios_wide.memory,
    "nodes": scenarios_wide.two_nodes,
    "api": scenarios_api.full_api,
    "flood": scenarios_flood.flooded_api,
    "inbound": scenarios_inbox.inbound,
    "retention": scenarios_retention.drop_a_day,
    "publish_cost": scenarios_outbox.publish_cost,
    "relay_latency": scenarios_outbox.relay_latency,
    "relay_rate": scenarios_outbox.relay_rate,
}
NEED_THROUGHPUT = {"noisy", "drain"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("mode", nargs="?", choices=["short", "full"], default="short")
    parser.add_argument("--only", nargs="+", choices=SCENARIOS, help="these scenarios, and what they compare with")
    parser.add_argument("--set", nargs="+", default=[], metavar="SIZE=N", help="other sizes, for example pinned_s=90")
    parser.add_argument("--docs", action="store_true", help="write docs/benchmarks.md in short mode, too")
    parser.add_argument("--postrider", default=ROOT / "build/release/postrider", help="the binary to measure")
    parser.add_argument("--tools", help="folder of the built tools; otherwise they are built")
    return parser.parse_args()


def built_tools():
    folder = ROOT / "build/bench"
    if not (folder / "build.ninja").exists():
        subprocess.run(["cmake", "--preset", "bench"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", folder, "--quiet", *(f"bench_{tool}" for tool in TOOLS)], check=True)
    return folder / "bench"


def chosen(only):
    names = [name for name in SCENARIOS if not only or name in only]
    if NEED_THROUGHPUT & set(names) and "throughput" not in names:
        names.insert(0, "throughput")
    return names


def run(env, names, commit):
    machine = measure.machine_description(env.cluster)
    print(f"{env.sizes.name} mode on {machine}", flush=True)
    env.migrate("migrated")
    print("limits", flush=True)
    limits.measure(env)
    env.prepare()
    for name in names:
        print(name, flush=True)
        started = time.monotonic()
        try:
            SCENARIOS[name](env)
        except Exception as error:  # one scenario that fails must not hide the figures of the others
            traceback.print_exc()
            env.add(name, "", f"failed: {str(error).splitlines()[0] if str(error) else type(error).__name__}", None)
        env.say(f"({time.monotonic() - started:.0f} s)")
        save(env, machine, commit)
    return machine


def save(env, machine, commit):
    """After each scenario, so that a long run that is stopped keeps its figures."""
    out = ROOT / "build/bench/report"
    out.mkdir(parents=True, exist_ok=True)
    report.write_json(env, machine, out / "results.json")
    report.write_page(env, machine, out / "benchmarks.md", commit)


def chosen_sizes(mode, changes):
    sizes = FULL if mode == "full" else SHORT
    for change in changes:
        name, _, value = change.partition("=")
        if name == "name" or not hasattr(sizes, name):
            raise SystemExit(f"bench: there is no size {name}")
        sizes = dataclasses.replace(sizes, **{name: type(getattr(sizes, name))(value)})
    return sizes


def commit_of_tree():
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.strip() or "an unknown commit"


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: stopped"))  # so that what was started is stopped, too
    binary = pathlib.Path(options.postrider).resolve()
    if not binary.exists():
        raise SystemExit(f"bench: {options.postrider} does not exist; ./dev build makes it")
    tools = pathlib.Path(options.tools).resolve() if options.tools else built_tools()
    sizes = chosen_sizes(options.mode, options.set)
    commit = commit_of_tree()
    with tempfile.TemporaryDirectory(prefix="prb") as scratch, Env(binary, tools, sizes, scratch) as env:
        machine = run(env, chosen(options.only), commit)
        report.print_table(env)
        if options.docs or (options.mode == "full" and not options.only):
            report.write_page(env, machine, ROOT / "docs/benchmarks.md", commit)
    return 0


if __name__ == "__main__":
    sys.exit(main())
