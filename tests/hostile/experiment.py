"""Healthy tenants beside attackers of every kind at once: first quiet, then under attack, then the figures of both.

`./dev hostile [MINUTES]` runs it against the release build and exits with 1 if a node ended, a healthy tenant was rejected, or
a receiver saw a byte that does not belong there. The ratio of the p99s is printed but has no limit: it needs a quiet machine.

The attack: each attacker of each kind acts up to fifty times a second, as fast as it gets responses. One tenant makes hundreds
of API calls a second, and its lists, exports, statistics and dry-run replays keep the one database connection that it may use
busy all the time. It publishes fifty events a second of up to 200 KB to eleven endpoints that each misbehave in another way, and
opens streams that it does not read. Inbound there are a hundred forged and recorded requests a second, two bodies of 900 KB with
150 signatures each, and stalled uploads. Three applications each write fifty hostile outbox rows a second. The hostile tenant
has no rate limit. What each attacker got is printed.

All parts share one machine, which they do not in production. These measures keep the attackers' own work out of the figures:
- The attackers run only when nothing else wants the processor (SCHED_IDLE): they come from elsewhere, and cost the node what
  they send to it. A higher nice value is not enough: a process that wakes up still waits for the end of the running one's time
  slice, about 3 ms.
- The hostile applications have a Postgres server of their own, with the same priority, without fsync and, if there is a tmpfs,
  without a disk: it would be on another machine. Without fsync alone its pages still went to the disk that postrider's own
  Postgres waits for at every commit, also for the hostile tenant's.
- The clients and the receiver of the healthy tenants run before everything else, if that is permitted (root): they are elsewhere.
- Python's garbage collection is off. The node's log is kept in memory, and one full collection of ten minutes of it stops the
  clients for longer than anything that is measured here.
- A probe that has nothing to do with postrider measures the machine in both phases: how late a sleep ends, and how long it takes
  to write a page to the disk. What it loses under attack is lost to sharing the processor and the disk."""

import argparse
import contextlib
import gc
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import node as node_module  # noqa: E402
from harness.node import Node  # noqa: E402
from harness.ports import lasting_port  # noqa: E402
from harness.postgres import Postgres  # noqa: E402
from harness.relay import install  # noqa: E402
from harness.strict_receiver import StrictReceiver  # noqa: E402
from harness.wait import wait_until  # noqa: E402
from healthy import HealthyTenant, percentile  # noqa: E402
from priority import run_first, run_last  # noqa: E402

TENANTS = 3
OUTBOXES = 3
DRAIN_SECONDS = 60
RATIO_MAX = 1.5
SOURCE_SECRET = "a secret of the experiment"
# 32 bytes that are no key: every request to this source fails verification.
ED25519_SECRET = "whpk_" + "A" * 43 + "="
ATTACKERS = pathlib.Path(__file__).resolve().with_name("attackers.py")
PROBE = ATTACKERS.with_name("probe.py")


class Experiment:
    """`is_timed`: attackers run last and clients first, for the sake of the figures. Beside other tests such attackers would not
    run at all."""

    def __init__(self, postgres, seed=1, is_timed=False):
        self.postgres, self.seed, self.is_timed = postgres, seed, is_timed
        self.stopping = threading.Event()
        self.phase = "warm-up"
        self.ended = []             # exit codes of nodes that ended by themselves
        self.memory = {}            # phase → the largest resident set, in MiB
        self.attacks = {}
        self.receiver = StrictReceiver(on_thread=self.run_first)
        self.applications = Postgres(settings=["fsync=off"], folder="/dev/shm" if os.path.ismount("/dev/shm") else "/tmp")
        self.name = f"hostile_{time.time_ns()}"
        postgres.create(self.name)
        self.settings = {"database_url": postgres.url(self.name), "listen": f"127.0.0.1:{lasting_port()}"}
        subprocess.run([node_module.binary(), "migrate"], cwd="/", check=True, capture_output=True,
                       env=node_module.environment(**self.settings, master_key=node_module.MASTER_KEY))
        self._start_node()
        self.tenants = [HealthyTenant(self, f"healthy-{number + 1}") for number in range(TENANTS)]
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        self._prepare_attack()
        if is_timed:
            run_last(self.applications.postmaster())
        self.machine = []           # (phase, seconds that a sleep was late, seconds that a page took to the disk)
        self._probe = subprocess.Popen([sys.executable, PROBE, postgres.home], stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read_probe, daemon=True).start()

    def run_first(self):
        if self.is_timed:
            run_first()

    @property
    def api(self):
        return self.node.api

    def _start_node(self):
        self.node = Node(**self.settings).wait_ready()

    def _read_probe(self):
        for line in self._probe.stdout:
            _, late, sync = map(float, line.split())
            self.machine.append((self.phase, late, sync))

    def _watch(self):
        """Samples the node's memory; a node that ends is started again, so that the rest of the run shows something."""
        while not self.stopping.wait(0.5):
            code = self.node.process.poll()
            if code is not None:
                self.ended.append((self.phase, code, self.node.text[-1:]))
                Node.running.remove(self.node)
                self._start_node()
                continue
            with contextlib.suppress(OSError):
                for line in pathlib.Path(f"/proc/{self.node.process.pid}/status").read_text().splitlines():
                    if line.startswith("VmRSS:"):
                        now = int(line.split()[1]) // 1024
                        self.memory[self.phase] = max(now, self.memory.get(self.phase, 0))

    def run_phase(self, name, seconds):
        self.phase = name
        time.sleep(seconds)      # the length of a phase is what was asked for, not a wait for something
        self.phase = f"after {name}"

    def _prepare_attack(self):
        """What the attackers have: a tenant with a key, sources, and outboxes in databases that they own."""
        outboxes = []
        for number in range(1, OUTBOXES + 1):
            self.applications.create(f"application_{number}")
            url = install(self.applications.url(f"application_{number}"))
            self.api.call("PUT", f"/v1/outboxes/hostile-{number}", {"database_url": url}).expect(201)
            outboxes.append(url.replace("postrider@", "postgres@"))
        self.api.create_tenant("hostile")
        key = self.api.post("/v1/keys", {"role": "operator", "tenant_id": "hostile"}).expect(201)["key"]
        self.api.post("/v1/sources", {"id": "recorded", "provider": "github", "secret": SOURCE_SECRET}).expect(201)
        self.api.post("/v1/sources", {"id": "ed25519", "provider": "standard", "secret": ED25519_SECRET}).expect(201)
        self.config = {"address": self.node.address, "key": key, "tenant": "hostile", "healthy": self.tenants[0].name,
                       "seed": self.seed, "is_timed": self.is_timed, "outboxes": outboxes, "source": "recorded",
                       "source_secret": SOURCE_SECRET, "ed25519_source": "ed25519"}

    @contextlib.contextmanager
    def under_attack(self, only=None):
        """`only`: how the names of the attackers that take part begin; all of them without it."""
        config = {**self.config, "only": only}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(config, file)
            file.flush()
            process = subprocess.Popen([sys.executable, ATTACKERS, file.name], stdout=subprocess.PIPE, text=True)
            try:
                assert process.stdout.readline() == "started\n", "the attackers did not start"
                yield
            finally:
                process.terminate()
                with contextlib.suppress(ValueError):
                    self.attacks = json.loads(process.communicate(timeout=60)[0] or "{}")

    def finish(self):
        """Ends the load, and waits until what was accepted has arrived."""
        self.stopping.set()
        self._watcher.join(150)
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not any(tenant.missing() for tenant in self.tenants), "everything arrived", DRAIN_SECONDS)

    def failures(self):
        found = [f"a node ended with {code} ({phase}): {text}" for phase, code, text in self.ended]
        found += [f"{tenant.name}: refused in {phase}: {what}" for tenant in self.tenants for phase, what in tenant.refused]
        found += [f"{tenant.name}: {len(tenant.missing())} events did not arrive" for tenant in self.tenants if tenant.missing()]
        found += [f"a receiver saw: {violation}" for violation in self.receiver.violations]
        [(stored,)] = self.node.sql("select count(*) from postrider.inbox where source_id = 'recorded' and body like '%%opened%%'")
        if stored > 1:
            found.append(f"a recorded request was stored {stored} times")
        return found

    def figures(self, phase):
        answers, arrivals = [], []
        for tenant in self.tenants:
            of_tenant = tenant.latencies(phase)
            answers += of_tenant[0]
            arrivals += of_tenant[1]
        milliseconds = lambda values, share: round(1000 * percentile(values, share), 1)
        late = [late for of, late, _ in self.machine if of == phase]
        syncs = [sync for of, _, sync in self.machine if of == phase]
        return {"events": len(arrivals), "answered p50": milliseconds(answers, 0.5), "answered p99": milliseconds(answers, 0.99),
                "arrived p50": milliseconds(arrivals, 0.5), "arrived p99": milliseconds(arrivals, 0.99),
                "refused": sum(of == phase for tenant in self.tenants for of, _ in tenant.refused),
                "memory MiB": self.memory.get(phase),
                "probe: late p99": milliseconds(late, 0.99), "probe: disk p50": milliseconds(syncs, 0.5),
                "probe: disk p99": milliseconds(syncs, 0.99)}

    def close(self):
        self.stopping.set()
        self._probe.terminate()
        self._probe.wait()
        self.receiver.close()
        with contextlib.suppress(AssertionError):
            self.node.close()
        self.applications.close()
        self.postgres.drop(self.name)


def run(experiment, quiet_seconds, hostile_seconds, only=None):
    experiment.run_phase("warm-up", min(10, quiet_seconds))
    experiment.run_phase("quiet", quiet_seconds)
    with experiment.under_attack(only):
        experiment.run_phase("hostile", hostile_seconds)
    experiment.finish()
    return experiment.failures()


def report(experiment, failures):
    quiet, hostile = experiment.figures("quiet"), experiment.figures("hostile")
    print(f"{'ms':18} {'quiet':>10} {'hostile':>10} {'ratio':>7}")
    for name in quiet:
        ratio = f"{hostile[name] / quiet[name]:.2f}" if "p" in name.split()[-1] and quiet[name] else ""
        print(f"{name:18} {quiet[name]!s:>10} {hostile[name]!s:>10} {ratio:>7}")
    print("\nwhat the attackers did:")
    for name, count in sorted(experiment.attacks.items()):
        print(f"  {name:32} {count:>8}")
    aborts = sum(code is not None and code < 0 for _, code, _ in experiment.ended)
    print(f"\naborts {aborts}, restarts {len(experiment.ended)}, failures {len(failures)}")
    for failure in failures[:20]:
        print(f"  {failure}")
    ratio = hostile["arrived p99"] / quiet["arrived p99"]
    print(f"p99 of healthy tenants under attack: {ratio:.2f} × the quiet one ({'within' if ratio <= RATIO_MAX else 'NOT within'} {RATIO_MAX})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("minutes", type=float, nargs="?", default=10, help="under attack; the quiet phase takes a fifth of it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", metavar="ATTACKER", help="those whose names begin so, to see what each costs")
    options = parser.parse_args()
    gc.disable()
    postgres = Postgres()
    experiment = None
    try:
        experiment = Experiment(postgres, options.seed, is_timed=True)
        failures = run(experiment, max(60, 12 * options.minutes), 60 * options.minutes, options.only)
        report(experiment, failures)
    finally:
        if experiment is not None:
            experiment.close()
        postgres.close()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
