#!/usr/bin/python3
"""Prints the directory with the server programs (initdb, postgres) of a Postgres version; downloads them first if needed.

usage: fetch.py VERSION

15 is Debian's. The others are real servers from npm, kept in build/servers. They have no psql.
"""

import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness.npm import npm_install  # noqa: E402

STORE = HERE.parents[1] / "build" / "servers"
FILES = (".npmrc", "package.json", "package-lock.json")


def copy_lists():
    """npm installs beside its lists. They are only written if they differ: a lock may be held on one."""
    STORE.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        wanted, kept = HERE / name, STORE / name
        if not kept.exists() or kept.read_bytes() != wanted.read_bytes():
            shutil.copyfile(wanted, kept)


def hydrate(package):
    """npm cannot pack symbolic links, and does not run a package's own script by default."""
    subprocess.run(["node", "scripts/hydrate-symlinks.js"], cwd=package, check=True)


def programs_of(version):
    debian = pathlib.Path("/usr/lib/postgresql") / version / "bin"
    if debian.is_dir():
        return debian
    copy_lists()
    npm_install(STORE)
    package = STORE / "node_modules" / f"postgres-{version}"
    if not package.is_dir():
        known = sorted(path.name.removeprefix("postgres-") for path in package.parent.glob("postgres-*"))
        raise SystemExit(f"there is no Postgres {version} for the tests: install it from Debian, or choose {', '.join(known)}")
    hydrate(package)
    return package / "native" / "bin"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    print(programs_of(sys.argv[1]))
