"""A throw-away Postgres cluster: durable settings, unix socket only, gone at the end."""

import glob
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

SETTINGS = {
    "listen_addresses": "",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
    "max_connections": "60",
}


def server_binary(name):
    """The newest installed server's program of that name."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    if not found:
        raise SystemExit(f"bench: {name} of a Postgres server was not found")
    return found[-1]


class Cluster:
    """Use as a context manager. Postgres does not run as root, so for root it runs as the user postgres."""

    def __init__(self, settings=None):
        self.settings = {**SETTINGS, **(settings or {})}
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="prb"))
        self.data = self.dir / "data"

    def __enter__(self):
        if os.geteuid() == 0:
            shutil.chown(self.dir, "postgres")
        self._as_server_user(server_binary("initdb"), "-D", self.data, "-U", "postgres", "--auth=trust",
                             "--encoding=UTF8", "--locale=C.UTF-8", "--data-checksums")
        lines = [f"{name} = '{value}'" for name, value in self.settings.items()]
        lines.append(f"unix_socket_directories = '{self.dir}'")
        with open(self.data / "postgresql.auto.conf", "a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        self._as_server_user(server_binary("pg_ctl"), "-D", self.data, "-w", "-l", self.dir / "log", "start")
        return self

    def __exit__(self, *_):
        self._as_server_user(server_binary("pg_ctl"), "-D", self.data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.dir, ignore_errors=True)

    def _as_server_user(self, *command):
        prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        subprocess.run([*prefix, *map(str, command)], check=True, cwd=self.dir, stdout=subprocess.DEVNULL)

    def postmaster_pid(self):
        return int((self.data / "postmaster.pid").read_text(encoding="utf-8").split()[0])

    def version(self):
        return self.sql("postgres", "show server_version").strip()

    def url(self, database):
        return f"postgresql://postgres@/{database}?host={self.dir}"

    def create(self, database, template="template1"):
        self.sql("postgres", f'create database "{database}" template "{template}"')

    def drop(self, database):
        self.sql("postgres", f'drop database if exists "{database}" with (force)')

    def sql(self, database, text):
        """Runs statements, each in its own transaction; gives the rows as tab-separated lines."""
        done = subprocess.run([*self._psql(database), "-f", "-"], input=text, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stdout

    def rows(self, database, query):
        """The rows of one query as dictionaries."""
        text = self.sql(database, f"select coalesce(json_agg(r), '[]') from ({query}) r")
        return json.loads(text)

    def session(self, database):
        """An open psql, for a transaction that is held: write statements to its stdin."""
        return subprocess.Popen(self._psql(database), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _psql(self, database):
        return ["psql", "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", self.url(database)]
