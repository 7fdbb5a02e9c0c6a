#!/usr/bin/env python3
"""Builds the pages of web/: build_web.py OUT. Installs the packages of web/package-lock.json first, if they are not there;
after that it needs no network."""

import fcntl
import hashlib
import pathlib
import shutil
import subprocess
import sys

WEB = pathlib.Path(__file__).resolve().parents[1] / "web"
INSTALLED = WEB / "node_modules" / ".postrider-installed"  # hash of the lock file that was installed


def fail(text):
    sys.exit(f"build_web: {text}")


def run(*command):
    done = subprocess.run(command, cwd=WEB, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        fail(f"{' '.join(command)} failed:\n{done.stdout}")


def install():
    """Once for all presets: a second build waits for the first."""
    for program in ("node", "npm"):
        if not shutil.which(program):
            fail(f"{program} is not installed, and the console is built with it. `apt-get install nodejs npm` "
                 "installs it (Node 18 or newer), and so does ./dev build.")
    with open(WEB / "package-lock.json", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = hashlib.sha256(lock.read()).hexdigest()
        if not INSTALLED.exists() or INSTALLED.read_text() != wanted:
            run("npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
            INSTALLED.write_text(wanted)


def main():
    install()
    if len(sys.argv) > 1:
        run("node", "scripts/build.mjs", str(pathlib.Path(sys.argv[1]).resolve()))


if __name__ == "__main__":
    main()
