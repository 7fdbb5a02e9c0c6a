#!/usr/bin/python3
"""Runs clang-tidy-19 (.clang-tidy says what and why) over src/, app/, tests/ and bench/.

usage: check_tidy.py BUILD_DIR [--budget SECONDS]

A file that passed is not looked at again until it, a header it includes, its flags or .clang-tidy change; the record is
BUILD_DIR/tidy. Files changed since the last commit come first, then the ones committed last; when the budget is used up
the rest is left for the next run, and said so.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import tree

INCLUDE = re.compile(r'^\s*#\s*include\s*"(postrider/[^"]+|support/[^"]+|[^"/]+)"', re.MULTILINE)


class Digests:
    """The hash of a file with everything of the project that it includes."""

    def __init__(self, build):
        self.roots = [tree.ROOT / "src", tree.ROOT / "tests", build / "generated"]
        self.texts = {}

    def text(self, path):
        if path not in self.texts:
            self.texts[path] = path.read_text(encoding="utf-8")
        return self.texts[path]

    def closure(self, path, seen):
        if path in seen:
            return
        seen.add(path)
        for name in INCLUDE.findall(self.text(path)):
            for root in [*self.roots, path.parent]:
                if (root / name).is_file():
                    self.closure(root / name, seen)
                    break

    def of(self, path, extra):
        seen = set()
        self.closure(path, seen)
        digest = hashlib.sha256(extra.encode())
        for file in sorted(seen):
            digest.update(str(file.name).encode() + b"\0" + self.text(file).encode() + b"\0")
        return digest.hexdigest()


def by_recency(paths):
    """Files with uncommitted changes first, then by how recently they were committed."""
    git = ["git", "-C", str(tree.ROOT)]
    changed = subprocess.run([*git, "diff", "--name-only", "HEAD"], capture_output=True, text=True).stdout.split()
    log = subprocess.run([*git, "log", "--format=", "--name-only", "-n", "200"], capture_output=True, text=True).stdout
    rank = {}
    for name in [*changed, *log.split()]:
        rank.setdefault(tree.ROOT / name, len(rank))
    return sorted(paths, key=lambda path: rank.get(path, len(rank)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--budget", type=float, default=None)
    options = parser.parse_args()
    build = options.build.resolve()

    entries = json.loads((build / "compile_commands.json").read_text())
    commands = {pathlib.Path(entry["file"]): entry["command"] for entry in entries}
    wanted = [path for path in commands if path.is_relative_to(tree.ROOT) and not path.is_relative_to(build)]
    config = tree.read(".clang-tidy")
    record = build / "tidy"
    record.mkdir(exist_ok=True)
    digests = Digests(build)

    todo = []
    for path in by_recency(wanted):
        flags = re.sub(r"^.*?(?= -)|-o \S+", "", commands[path])
        passed = record / digests.of(path, config + flags.replace(str(tree.ROOT), ""))
        if not passed.exists():
            todo.append((path, passed))

    deadline = time.monotonic() + options.budget if options.budget else None

    def examine(item):
        path, passed = item
        if deadline and time.monotonic() > deadline:
            return path, None, ""
        done = subprocess.run(
            ["clang-tidy-19", "-p", str(build), "--quiet", "--warnings-as-errors=*", str(path)],
            capture_output=True, text=True,
        )
        if done.returncode == 0:
            passed.touch()
        return path, done.returncode == 0, done.stdout

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(examine, todo))
    failed = [result for result in results if result[1] is False]
    left = sum(1 for result in results if result[1] is None)
    for _, _, output in failed:
        print(output.replace(f"{tree.ROOT}/", ""), end="")
    note = f", {left} left for the next run (./dev check --all takes them all)" if left else ""
    print(f"{len(wanted) - len(todo)} files known good, {len(todo) - left} examined, {len(failed)} failed{note}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
