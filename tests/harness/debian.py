"""Programs of Debian packages that are not installed: nginx and Prometheus would start services of their own on the
developer's machine, so the packages are only downloaded and unpacked."""

import fcntl
import pathlib
import subprocess
import tempfile

from .documents import ROOT

UNPACKED = ROOT / "build" / "debian"


def program(package, path):
    """The path of a program in a package, which is fetched when it is needed first."""
    found = UNPACKED / package / path
    UNPACKED.mkdir(parents=True, exist_ok=True)
    with open(UNPACKED / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.exists():
            fetch(package)
    return found


def fetch(package):
    with tempfile.TemporaryDirectory(prefix="pr-debian-") as folder:
        pathlib.Path(folder).chmod(0o755)
        done = subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        archives = list(pathlib.Path(folder).glob("*.deb"))
        if done.returncode != 0 or not archives:
            raise RuntimeError(f"cannot download the Debian package {package}: {done.stdout}")
        subprocess.run(["dpkg-deb", "-x", archives[0], UNPACKED / package], check=True)
