#!/usr/bin/python3
"""Runs clang-tidy-19 (.clang-tidy says what and why) over src/, app/, tests/ and bench/.

usage: check_tidy.py BUILD_DIR [--changed]

--changed: only files that differ from the main branch (origin/main, or else main), committed or not; all of them take
two cores about a quarter of an hour. A file that passed is not checked again until it, a header it includes, its flags
or .clang-tidy change; the record is BUILD_DIR/tidy. Findings are printed as they are found.
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


def git(*arguments):
    done = subprocess.run(["git", "-C", str(tree.ROOT), *arguments], capture_output=True, text=True)
    return done.stdout.split() if done.returncode == 0 else None


def changed_files():
    """What differs from where the main branch was left, and new files."""
    base = next(filter(None, (git("merge-base", "HEAD", branch) for branch in ("origin/main", "main"))), ["HEAD"])
    names = (git("diff", "--name-only", base[0]) or []) + (git("ls-files", "--others", "--exclude-standard") or [])
    return {tree.ROOT / name for name in names}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--changed", action="store_true")
    options = parser.parse_args()
    build = options.build.resolve()

    entries = json.loads((build / "compile_commands.json").read_text())
    commands = {pathlib.Path(entry["file"]): entry["command"] for entry in entries}
    wanted = [path for path in commands if path.is_relative_to(tree.ROOT) and not path.is_relative_to(build)]
    if options.changed:
        changed = changed_files()
        wanted = [path for path in wanted if path in changed]
    config = tree.read(".clang-tidy")
    record = build / "tidy"
    record.mkdir(exist_ok=True)
    digests = Digests(build)

    todo = []
    for path in wanted:
        flags = re.sub(r"^.*?(?= -)|-o \S+", "", commands[path])
        passed = record / digests.of(path, config + flags.replace(str(tree.ROOT), ""))
        if not passed.exists():
            todo.append((path, passed))

    def examine(item):
        path, passed = item
        done = subprocess.run(
            ["clang-tidy-19", "-p", str(build), "--quiet", "--warnings-as-errors=*", str(path)],
            capture_output=True, text=True,
        )
        if done.returncode == 0:
            passed.touch()
        else:
            print(done.stdout.replace(f"{tree.ROOT}/", ""), end="", flush=True)
        return done.returncode == 0

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = list(pool.map(examine, todo)).count(False)
    print(f"{len(wanted) - len(todo)} files known good, {len(todo)} examined, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
