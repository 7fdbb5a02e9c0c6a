"""Debian's pgbouncer in transaction mode, on a unix socket in front of a Postgres."""

import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

import psycopg2

from .wait import wait_until

PROGRAM = "/usr/sbin/pgbouncer"
PORT = 6432
# Few connections to the server: every client gets another one with each transaction.
SETTINGS = """
[databases]
* = host={server}

[pgbouncer]
listen_addr =
listen_port = {port}
unix_socket_dir = {home}
auth_type = trust
auth_file = {home}/users
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 200
server_round_robin = 1
ignore_startup_parameters = extra_float_digits
logfile = {home}/log
{more}
"""


class Pgbouncer:
    """Started by the constructor. `url(…)` is that of a database behind it."""

    def __init__(self, postgres, program=PROGRAM, pool_size=4, more=""):
        self.user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="pr-pool-", dir="/tmp"))
        settings = self.home / "pgbouncer.ini"
        settings.write_text(SETTINGS.format(server=postgres.home, home=self.home, port=PORT, pool_size=pool_size,
                                            more=more))
        users = self.home / "users"
        users.write_text("".join(f'"{user}" ""\n' for user in ("postgres", "postrider")))
        if os.geteuid() == 0:
            for path in (self.home, settings, users):
                shutil.chown(path, self.user)
        self.home.chmod(0o755)
        command = [program, "-q", str(settings)]
        if os.geteuid() == 0:
            command = [*command[:1], "-u", self.user, *command[1:]]
        self.process = subprocess.Popen(command, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        wait_until(lambda: self._accepts() or self.process.poll() is not None, "pgbouncer takes connections")
        assert self.process.poll() is None, f"pgbouncer did not start: {(self.home / 'log').read_text()[-2000:]}"

    def _accepts(self):
        try:
            psycopg2.connect(self.url("postgres", "postgres")).close()
            return True
        except psycopg2.OperationalError:
            return False

    def url(self, database, user="postrider"):
        return f"postgresql://{user}@/{database}?host={self.home}&port={PORT}"

    def log(self):
        return (self.home / "log").read_text()

    def close(self):
        self.process.terminate()
        self.process.wait(30)
        shutil.rmtree(self.home, ignore_errors=True)
