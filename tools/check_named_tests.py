#!/usr/bin/python3
"""Rejects names of tests in the pages of promises and attackers that no test has: a claim that nothing holds."""

import re
import sys

import tree

PAGES = ("docs/promises.md", "docs/security.md")
NAMED = re.compile(r"`(test_[a-z0-9_]+|[A-Z]\w+\.[A-Z]\w+)`")
CPP = re.compile(r"^(?:TEST|TEST_F|TEST_P)\((\w+),\s*(\w+)\)", re.MULTILINE)
PYTHON = re.compile(r"^def (test_\w+)", re.MULTILINE)


def main():
    tests = set()
    for path in tree.files(".cpp"):
        tests |= {f"{suite}.{name}" for suite, name in CPP.findall(tree.read(path))}
    for path in tree.files(".py"):
        tests |= set(PYTHON.findall(tree.read(path)))
    wrong = []
    for page in PAGES:
        text = tree.read(page)
        wrong += [f"{page}:{tree.line_of(text, match.start())}: there is no test {match[1]}"
                  for match in NAMED.finditer(text) if match[1] not in tests]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
