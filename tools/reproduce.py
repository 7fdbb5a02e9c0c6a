#!/usr/bin/python3
"""Builds the release binary of HEAD twice, in two folders with different names and without a compiler cache, and compares
the results byte for byte."""

import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

import tree


def build(folder):
    """The SHA-256 of the binary that a clone in this folder gives."""
    environment = {**os.environ, "CCACHE_DISABLE": "1"}
    subprocess.run(["git", "clone", "-q", "--local", tree.ROOT, folder], check=True)
    subprocess.run(["cmake", "--preset", "release"], cwd=folder, check=True, env=environment, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", "build/release", "postrider"], cwd=folder, check=True, env=environment,
                   stdout=subprocess.DEVNULL)
    return hashlib.sha256((folder / "build/release/postrider").read_bytes()).hexdigest()


def main():
    with tempfile.TemporaryDirectory(prefix="pr-reproduce-", dir="/tmp") as temporary:
        sums = [build(pathlib.Path(temporary) / name) for name in ("first", "another-name")]
    print("\n".join(f"{digest}  postrider" for digest in sums))
    print("the two builds are the same" if sums[0] == sums[1] else "the two builds differ")
    return 0 if sums[0] == sums[1] else 1


if __name__ == "__main__":
    sys.exit(main())
