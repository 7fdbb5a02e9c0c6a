#!/usr/bin/env python3
"""Breaks the rules of docs/decisions/rules-and-their-tests.md one at a time and expects their tests to fail.

    tests/mutations/run.py [--log FILE] [RULE…]
                                       those rules only, by number; `client`: what is sent and shown of an exchange;
                                       `cdc`: what change data capture promises;
                                       `see`: what is shown, and to which reader;
                                       `deadline`: when deliveries expire; `probe`: each request is in the history;
                                       `rights`: what customers may do

--log FILE keeps the results. A run that was interrupted continues after the mutations that the file has; those that
survived or are stale run again.

Changes files of this working copy and puts them back; commit before. Builds in build/test. Not part of ./dev test:
each mutation is a build.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "test"
# What ./dev schema writes; the build compares it with the statements.
DESCRIBED = [ROOT / "sql" / "columns.txt", ROOT / "sql" / "schema.sql"]


def run(*command):
    environment = {**os.environ, "POSTRIDER_TEST_BINARY": str(BUILD / "postrider")}
    return subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_command(mutation):
    if mutation["target"] == "postrider":
        return ["/usr/bin/python3", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *mutation["test"].split()]
    return [str(BUILD / "src" / "postrider" / mutation["target"]), f"--gtest_filter={mutation['test']}"]


def verdict(mutation):
    path = ROOT / mutation["file"]
    original = path.read_text()
    described = [file.read_text() for file in DESCRIBED]
    if original.count(mutation["from"]) < 1:
        return "STALE: the text to change is not there"
    try:
        path.write_text(original.replace(mutation["from"], mutation["to"]))
        if path.suffix == ".sql":
            run("/usr/bin/python3", "tools/write_schema.py")
        built = run("ninja", "-C", str(BUILD), mutation["target"])
        if built.returncode != 0:
            return "STALE: does not build\n" + built.stdout[-800:]
        tested = run(*test_command(mutation))
    finally:
        path.write_text(original)
        for file, text in zip(DESCRIBED, described):
            file.write_text(text)
    if tested.returncode == 0:
        return "SURVIVED: no test failed"
    failed = [line for line in tested.stdout.splitlines() if line.startswith(("[  FAILED  ] ", "FAILED "))]
    return "killed by " + (failed[0].split("] ")[-1].split(" (")[0] if failed else "a crash of the test")


def name_of(mutation):
    return f"{mutation['rule']:>2}  {mutation['what']}"


def killed_in(log):
    """The names of the mutations that the log says were killed."""
    lines = log.read_text().splitlines() if log and log.exists() else []
    return {name for name, found, _ in (line.partition(": killed by ") for line in lines) if found}


def report(line, log):
    print(line, flush=True)
    if log:
        with log.open("a") as file:
            file.write(line + "\n")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--log", type=pathlib.Path)
    parser.add_argument("rules", nargs="*")
    wanted = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))   # the file that is changed is put back
    mutations = json.loads((ROOT / "tests" / "mutations" / "mutations.json").read_text())
    done = killed_in(wanted.log)
    survived = 0
    for mutation in mutations:
        name = name_of(mutation)
        if (wanted.rules and str(mutation["rule"]) not in wanted.rules) or name in done:
            continue
        result = verdict(mutation)
        survived += not result.startswith("killed")
        report(f"{name}: {result}", wanted.log)
    for target in sorted({mutation["target"] for mutation in mutations}) if not wanted.rules else ():
        run("ninja", "-C", str(BUILD), target)
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
