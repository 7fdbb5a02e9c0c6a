"""A Postgres of our own: one throwaway server in a temporary directory, on a unix socket."""

import glob
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile

import psycopg2

from .wait import wait_until

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}


def programs():
    """POSTRIDER_TEST_PG_BIN, which ./dev postgres sets, or the newest of Debian's."""
    if chosen := os.environ.get("POSTRIDER_TEST_PG_BIN"):
        return pathlib.Path(chosen)
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[-2]))
    if not found:
        raise RuntimeError("no Postgres server is installed: ./dev test installs it")
    return pathlib.Path(found[-1])


class Postgres:
    """Started by the constructor. Databases belong to the role `postrider`, which is no superuser."""

    def __init__(self, settings=(), folder="/tmp", port=None):
        """`settings`: more of them, as in postgresql.conf: `fsync=off`. `folder`: where its files go. `port`: of TCP, too."""
        self.port = port
        self.settings = ["max_connections=200", "wal_level=logical", *settings]
        self.user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="pr-pg-", dir=folder))
        if os.geteuid() == 0:
            shutil.chown(self.home, self.user)
        self.home.chmod(0o755)
        self.process = None
        self._run(programs() / "initdb", "-D", self.home / "data", "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8",
                  "--auth=trust", "--no-sync", "--no-instructions")
        self.start()
        self.sql("create role postrider login replication", "postgres")

    def _as_user(self, *command):
        words = [str(word) for word in command]
        return ["/usr/sbin/runuser", "-u", self.user, "--", *words] if os.geteuid() == 0 else words

    def _run(self, *command):
        done = subprocess.run(self._as_user(*command), cwd="/", env=ENVIRONMENT, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise RuntimeError(done.stdout)

    def start(self):
        options = [word for setting in self.settings for word in ("-c", setting)]
        with open(self.home / "log", "ab") as log:
            self.process = subprocess.Popen(
                self._as_user(programs() / "postgres", "-D", self.home / "data", "-k", self.home, *self._listen(), *options),
                cwd="/", env=ENVIRONMENT, stdout=log, stderr=log, start_new_session=True)
        wait_until(lambda: self._accepts() or self.process.poll() is not None, "Postgres takes connections")
        assert self.process.poll() is None, f"Postgres did not start: {(self.home / 'log').read_text()[-2000:]}"

    def _listen(self):
        return ["-h", "127.0.0.1", "-p", str(self.port)] if self.port else ["-h", ""]

    def _accepts(self):
        try:
            psycopg2.connect(self.url("postgres", "postgres")).close()
            return True
        except psycopg2.OperationalError:
            return False

    def postmaster(self):
        return int((self.home / "data" / "postmaster.pid").read_text().split()[0])

    def stop(self, how=signal.SIGINT):
        """SIGINT: fast shutdown; SIGQUIT: crash."""
        os.kill(self.postmaster(), how)
        self.process.wait(60)

    def adopt(self, folder):
        """Files that the test has put there belong to the server's user from now on."""
        for path in [folder, *folder.rglob("*")] if os.geteuid() == 0 else []:
            shutil.chown(path, self.user, self.user)

    def close(self):
        if self.process.poll() is None:
            self.stop(signal.SIGQUIT)
        shutil.rmtree(self.home, ignore_errors=True)

    def url(self, database, user="postrider"):
        if self.port:
            return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"
        return f"postgresql://{user}@/{database}?host={self.home}"

    def sql(self, statement, database, user="postgres"):
        return run_sql(self.url(database, user), statement)

    def create(self, database, template=None):
        copied = f" template {template}" if template else ""
        self.sql(f"create database {database} owner postrider{copied}", "postgres")

    def drop(self, database):
        # A node that ended a moment ago: its reader of a replication slot ends by itself.
        active = f"select count(*) from pg_replication_slots where database = '{database}' and active"
        wait_until(lambda: self.sql(active, "postgres") == [(0,)], f"nobody reads a slot of {database}")
        self.sql(f"drop database {database} with (force)", "postgres")


def run_sql(url, statement, arguments=None):
    """The rows of one statement, in a transaction of its own."""
    connection = psycopg2.connect(url)
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement, arguments)
            return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()
