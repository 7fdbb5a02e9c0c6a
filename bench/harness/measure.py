"""What a scenario measures: the rate that deliveries keep up with, its CPU time, and who else used the machine."""

import dataclasses
import os
import pathlib
import subprocess
import time

from . import processes

OTHERS_SHARE_MAX = 0.15  # if other programs use more of the machine, times are not valid


def machine_busy_us():
    """CPU time of all processes on the machine, and what its host gave to other machines (steal). Interrupts are left out:
    here they are the loopback's, so the benchmark's own."""
    fields = pathlib.Path("/proc/stat").read_text(encoding="utf-8").split("\n")[0].split()[1:9]
    user, nice, system, _idle, _waiting, _irq, _softirq, steal = (int(x) for x in fields)
    return (user + nice + system + steal) * processes.TICK_US


@dataclasses.dataclass
class Cpu:
    """CPU time so far, in µs, by part."""

    node: int
    postgres: int
    receiver: int
    generator: int
    machine: int

    def since(self, earlier):
        return Cpu(*(a - b for a, b in zip(dataclasses.astuple(self), dataclasses.astuple(earlier))))

    @property
    def engine(self):
        return self.node + self.postgres

    def others_share(self, seconds):
        """The part of the machine that others had: processes outside the benchmark, and the host's other machines."""
        ours = self.node + self.postgres + self.receiver + self.generator
        return max(0.0, (self.machine - ours) / (seconds * 1e6 * os.cpu_count()))


@dataclasses.dataclass
class Measured:
    """A rate of deliveries, the CPU time it took and who else used the machine meanwhile."""

    per_s: float
    seconds: float
    deliveries: int
    cpu: Cpu
    others_share: float

    def cpu_each(self, part):
        return getattr(self.cpu, part) / max(1, self.deliveries)

    @property
    def all_cores_per_s(self):
        """The rate at which this much CPU time per delivery would use up the machine, had it been left alone."""
        ours = sum(self.cpu_each(part) for part in ("engine", "receiver", "generator"))
        return os.cpu_count() * 1e6 / max(ours, 1e-9)

    @property
    def is_quiet(self):
        return self.others_share <= OTHERS_SHARE_MAX

    @property
    def is_complete(self):
        """Whether enough deliveries arrived for a valid figure."""
        return self.deliveries > 0


@dataclasses.dataclass
class Sustained(Measured):
    """The same of a load generator's whole run."""

    series: list  # (second, deliveries in that second)
    latency: dict
    cdf: list
    acked: int
    rejected: int
    duplicates: int
    body_bytes: float
    arrived: int  # distinct events

    @property
    def is_complete(self):
        return self.deliveries > 0 and self.arrived >= 0.99 * self.acked


class Window:
    """Measures from its making until close()."""

    def __init__(self, env, node, generator_pid=None):
        self.env, self.node_pid, self.generator_pid = env, node.pid, generator_pid
        self.start, self.count, self.cpu = time.monotonic(), env.receiver.count(), self._cpu()

    def _cpu(self):
        return Cpu(node=processes.cpu_us(self.node_pid),
                   postgres=processes.tree_cpu_us(self.env.cluster.postmaster_pid()),
                   receiver=processes.cpu_us(self.env.receiver.pid),
                   generator=processes.cpu_us(self.generator_pid) if self.generator_pid else 0,
                   machine=machine_busy_us())

    def close(self):
        cpu, count = self._cpu().since(self.cpu), self.env.receiver.count() - self.count
        seconds = time.monotonic() - self.start
        return Measured(per_s=count / seconds, seconds=seconds, deliveries=count, cpu=cpu,
                        others_share=cpu.others_share(seconds))


class Load:
    """A running load generator against one node, observed at the receiver."""

    def __init__(self, env, node, *, seconds, first_seq, batch=100, connections=4, window=10_000, rate=0,
                 tenants=100, types=10, prefix="bench-", record=None, key=None):
        self.env, self.node = env, node
        command = [env.tools / "bench_loadgen", "--target", node.address, "--key", key or node.KEY, "--tenants", tenants,
                   "--types", types, "--tenant-prefix", prefix, "--batch", batch, "--connections", connections,
                   "--seconds", seconds, "--rate", rate, "--first-seq", first_seq]
        if window and not rate:
            command += ["--window", window, "--receiver", env.receiver.address]
        if record:
            command += ["--record", record]
        env.receiver.reset()
        self.program = processes.Program(command)

    def finish(self, patience=120):
        """Waits for the generator's end and gives its figures."""
        out, _ = self.program.process.communicate(timeout=patience)
        if self.program.process.returncode != 0:
            raise RuntimeError("the load generator failed")
        return processes.json.loads(out)


def wait_for(condition, what, patience=60.0, every=0.1):
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(every)
    raise RuntimeError(f"gave up waiting for {what}")


def sustained(env, node, *, seconds, warm_up=3.0, **load_options):
    """Runs a load and measures after the warm-up until its end; then waits until everything has arrived."""
    first_seq = env.take_numbers()
    load = Load(env, node, seconds=warm_up + seconds, first_seq=first_seq, **load_options)
    time.sleep(warm_up)
    window = Window(env, node, load.program.pid)
    time.sleep(max(0.5, seconds - 0.5))
    measured = window.close()
    published = load.finish()
    try:
        wait_for(lambda: env.receiver.count() >= published["acked"], "the last deliveries", patience=30)
    except RuntimeError as error:
        env.note(str(error))
    stats = env.receiver.stats()
    return Sustained(**vars(measured), series=per_second(stats), latency=stats["latency"], cdf=stats["cdf"],
                     acked=published["acked"], rejected=published["rejected"], duplicates=stats["duplicates"],
                     arrived=stats["unique"], body_bytes=stats["body_bytes"] / max(1, stats["received"]))


def per_second(stats):
    """The receiver's 100 ms counts as (second, count)."""
    series, each = stats["series"], 1000 // stats["series_step_ms"]
    return [(i // each, sum(series[i:i + each])) for i in range(0, len(series) - each + 1, each)]


def judged_times(condition, *results):
    """A verdict about times, or none: a measurement is incomplete, or others kept the machine busy."""
    return condition() if all(result.is_complete and result.is_quiet for result in results) else None


def compare_rates(after, before, bar):
    """Words and verdict for "at least `bar` times the rate of before".

    On a busy machine the rates say more about the others than about postrider. Then CPU time per delivery decides: the
    rate at which it would use up the machine."""
    by_rate = ratio(after.per_s, before.per_s)
    by_cpu = ratio(after.all_cores_per_s, before.all_cores_per_s)
    words = f"{after.per_s:,.0f}/s / {before.per_s:,.0f}/s = {by_rate:.2f} ×; by CPU time {by_cpu:.2f} ×"
    if not (after.is_complete and before.is_complete):
        return words, None
    if after.is_quiet and before.is_quiet:
        return words, by_rate >= bar
    return words + " (decides: the machine was busy)", by_cpu >= bar


def ratio(a, b):
    return a / b if b else float("nan")


def quantile(values, fraction):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))] if ordered else 0


def machine_description(cluster):
    """What the figures were measured on; no names."""
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    cpu = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
    memory_kib = int(pathlib.Path("/proc/meminfo").read_text(encoding="utf-8").split()[1])
    kernel = subprocess.run(["uname", "-sr"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    return (f"{os.cpu_count()} cores ({cpu}), {memory_kib / 1048576:.0f} GiB memory, {kernel}, "
            f"Postgres {cluster.version().split()[0]} with fsync and synchronous_commit on")
