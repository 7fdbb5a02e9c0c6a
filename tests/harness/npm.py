"""Packages from npm, installed once for all processes that run tests."""

import fcntl
import json
import subprocess


def npm_install(folder):
    """Returns when `folder` has the packages of its lock file; a second caller waits for the first."""
    with open(folder / "package-lock.json") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_installed(folder, json.load(lock)["packages"]):
            subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def is_installed(folder, wanted):
    """npm writes down what it installed when it is done; packages for other systems are left out."""
    try:
        found = json.loads((folder / "node_modules" / ".package-lock.json").read_text())["packages"]
    except OSError:
        return False
    return found == {name: package for name, package in wanted.items()
                     if name and (name in found or not package.get("optional"))}
