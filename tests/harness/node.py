"""A postrider process: started with an environment of its own, its log read as it comes."""

import json
import os
import pathlib
import signal
import subprocess
import threading
import time

from .api import Api
from .postgres import run_sql
from .wait import PATIENCE_SECONDS, wait_until

ADMIN_KEY = "e2e-admin-key-that-is-long-enough-to-be-taken"
MASTER_KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
START_SECONDS = 120.0


def binary():
    default = pathlib.Path(__file__).resolve().parents[2] / "build" / "test" / "postrider"
    return os.environ.get("POSTRIDER_TEST_BINARY", str(default))


def environment(**settings):
    """A node's whole environment. Settings are named as in postrider.toml; None leaves one out."""
    defaults = {
        "listen": "127.0.0.1:0",
        "admin_key": ADMIN_KEY,
        "allow_http": "true",
        "allow_networks": "127.0.0.0/8",
        "log_format": "json",
    }
    values = {**defaults, **settings}
    variables = {f"POSTRIDER_{name.upper()}": str(value) for name, value in values.items() if value is not None}
    passed_on = {name: os.environ[name] for name in ("ASAN_OPTIONS", "TSAN_OPTIONS") if name in os.environ}
    return {"PATH": "/usr/bin:/bin", **passed_on, **variables}


class Node:
    running = []  # all that were started and not closed, for reports

    def __init__(self, words=("serve",), **settings):
        """Starts it; wait_ready() waits. `data_dir`: private Postgres; `database_url`: that one; `variables`: more of the
        environment."""
        variables = settings.pop("variables", {})
        self.settings = settings
        if "database_url" in settings:
            settings.setdefault("master_key", MASTER_KEY)
        self.log = []
        self.text = []  # lines that are not JSON
        self._changed = threading.Condition()
        self.process = subprocess.Popen([binary(), *words], env={**environment(**settings), **variables}, cwd="/",
                                        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        Node.running.append(self)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            try:
                entry = json.loads(line)
            except ValueError:
                entry = None
            with self._changed:
                if isinstance(entry, dict):
                    self.log.append(entry)
                else:
                    self.text.append(line.rstrip("\n"))
                self._changed.notify_all()
        self.ended_at = time.time()

    def wait_for_log(self, event, seconds=PATIENCE_SECONDS, count=1, **fields):
        """The entry of that event with those fields, when it comes (the count-th one)."""

        def matches():
            found = [entry for entry in self.log
                     if entry["event"] == event and all(entry.get(name) == value for name, value in fields.items())]
            return found[count - 1] if len(found) >= count else None

        with self._changed:
            if not self._changed.wait_for(lambda: matches() or self.process.poll() is not None, seconds) or not matches():
                raise AssertionError(f"no log line {event} {fields}; {self.describe()}")
            return matches()

    def describe(self):
        lines = [json.dumps(entry) for entry in self.log[-25:]] + self.text[-25:]
        return f"exit code {self.process.poll()}, log:\n" + "\n".join(lines)

    def wait_ready(self):
        self.address = self.wait_for_log("started", START_SECONDS)["listen"]
        self.api = Api(f"http://{self.address}", self.settings.get("admin_key") or ADMIN_KEY)
        wait_until(lambda: self.api.get("/readyz").status == 200, "the node is ready")
        return self

    @property
    def database_url(self):
        if "database_url" in self.settings:
            return self.settings["database_url"]
        done = subprocess.run([binary(), "database-url"], env=environment(**self.settings), cwd="/", text=True,
                              check=True, stdout=subprocess.PIPE)
        return done.stdout.strip()

    def sql(self, statement, arguments=None):
        return run_sql(self.database_url, statement, arguments)

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.wait_exit()

    def wait_exit(self, seconds=60):
        code = self.process.wait(seconds)
        self._reader.join(seconds)
        return code

    def stop(self, seconds=60):
        """SIGTERM, and its exit code."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        return self.wait_exit(seconds)

    def close(self):
        """For the end of a test: politely if it can, firmly if not."""
        Node.running.remove(self)
        try:
            self.stop()
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the node did not stop; {self.describe()}") from None
