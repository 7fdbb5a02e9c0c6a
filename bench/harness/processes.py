"""The programs of a run: tools and nodes, their output and the CPU time they used."""

import json
import os
import pathlib
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")


def _stat_fields(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text[text.rindex(")") + 2:].split()


def cpu_us(pid):
    """User and system time of a process; 0 when it is gone."""
    fields = _stat_fields(pid)
    return 0 if fields is None else (int(fields[11]) + int(fields[12])) * TICK_US


def tree_cpu_us(parent):
    """The same for a process and its direct children, those that have ended included."""
    fields = _stat_fields(parent)
    if fields is None:
        return 0
    total = sum(int(fields[i]) for i in (11, 12, 13, 14)) * TICK_US
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            child = _stat_fields(entry.name)
            if child is not None and int(child[1]) == parent:
                total += (int(child[11]) + int(child[12])) * TICK_US
    return total


def rss_mib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


class Tail(threading.Thread):
    """Reads a pipe to its end and keeps the last bytes, so that a talkative child neither waits nor fills a disk."""

    KEPT_BYTES = 65536

    def __init__(self, pipe):
        super().__init__(daemon=True)
        self.pipe, self.kept = pipe, b""
        self.start()

    def run(self):
        while chunk := os.read(self.pipe.fileno(), self.KEPT_BYTES):
            self.kept = (self.kept + chunk)[-self.KEPT_BYTES:]

    def text(self):
        return self.kept.decode(errors="replace")


class Program:
    """A child process whose standard output is read by the caller."""

    def __init__(self, command, **options):
        options.setdefault("text", True)
        options.setdefault("stdout", subprocess.PIPE)
        self.process = subprocess.Popen([str(part) for part in command], **options)

    @property
    def pid(self):
        return self.process.pid

    def stop(self, how=signal.SIGTERM, patience=20):
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Receiver(Program):
    def __init__(self, tools, hosts=1, record=None):
        command = [tools / "bench_receiver", "--listen", "127.0.0.1:0", "--hosts", hosts]
        if record:
            command += ["--record", record]
        super().__init__(command)
        self.hosts = hosts
        self.port = int(self.process.stdout.readline().split()[-1])

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def url(self, index, path):
        """The index-th endpoint's URL: endpoints are spread over the receiver's hosts."""
        host = index % self.hosts
        name = "127.0.0.1" if host == 0 else f"127.1.{host >> 8}.{host & 255}"
        return f"http://{name}:{self.port}{path}"

    def get(self, path):
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=20) as answer:
            return answer.read().decode()

    def stats(self):
        return json.loads(self.get("/__stats"))

    def count(self):
        return int(self.get("/__count"))

    def reset(self):
        self.get("/__reset")


class Node(Program):
    """One `postrider serve`, with default settings as far as they do not concern loopback endpoints and keys."""

    KEY = "bench-admin-key-0123456789abcdef0123456789abcdef"
    MASTER_KEY = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

    def __init__(self, binary, database_url, port, settings=None):
        self.address = f"127.0.0.1:{port}"
        super().__init__([binary, "serve"], env=self.environment(database_url, self.address, settings), text=False,
                         stderr=subprocess.STDOUT)
        self.log = Tail(self.process.stdout)

    @classmethod
    def environment(cls, database_url, address, settings=None):
        return {
            "PATH": os.environ["PATH"],
            "POSTRIDER_DATABASE_URL": database_url,
            "POSTRIDER_LISTEN": address,
            "POSTRIDER_ADMIN_KEY": cls.KEY,
            "POSTRIDER_MASTER_KEY": cls.MASTER_KEY,
            "POSTRIDER_ALLOW_HTTP": "true",
            "POSTRIDER_ALLOW_NETWORKS": "127.0.0.0/8",
            **(settings or {}),
        }

    def wait_until_ready(self, patience=60):
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"http://{self.address}/readyz", timeout=2) as answer:
                    if answer.status == 200:
                        return self
            except (urllib.error.URLError, OSError):
                pass
            time.sleep(0.05)
        raise RuntimeError(f"the node did not become ready:\n{self.log.text()[-2000:]}")


class Sampler(threading.Thread):
    """Calls a function at a steady pace and keeps (seconds since start, value)."""

    def __init__(self, function, every=1.0):
        super().__init__(daemon=True)
        self.function, self.every = function, every
        self.points, self._done = [], threading.Event()
        self._start = time.monotonic()

    def run(self):
        while not self._done.wait(self.every):
            self.points.append((time.monotonic() - self._start, self.function()))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self.join()


def run_tool(tools, name, *flags):
    """Runs a tool to its end and gives the JSON it printed."""
    done = subprocess.run([str(tools / f"bench_{name}"), *map(str, flags)], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)
