#!/usr/bin/python3
"""Every CHECK in the sources is accounted for in docs/decisions/checks.md: one that input can reach lets a stranger end
the process."""

import re
import sys

import tree

PAGE = "docs/decisions/checks.md"
ROW = re.compile(r"^\| `(?P<file>[^`]+)` \| (?P<count>\d+) \|", re.MULTILINE)
CHECK = re.compile(r"\bCHECK\(")
TESTS = re.compile(r"(?:_test|_pgtest)\.cpp$|_testing\.hpp$|_test_support\.hpp$|_fixture\.hpp$")
DEFINITION = "base/check."


def main():
    listed = {match["file"]: int(match["count"]) for match in ROW.finditer(tree.read(PAGE))}
    found = {}
    for path in tree.files(".cpp", ".hpp"):
        name = path.as_posix().removeprefix("src/postrider/")
        if name == path.as_posix() or TESTS.search(name) or name.startswith(DEFINITION):
            continue
        count = len(CHECK.findall(tree.code_only(tree.read(path))))
        if count:
            found[name] = count
    wrong = [
        f"src/postrider/{name}: has {found.get(name, 0)} CHECKs, and {PAGE} says {listed.get(name, 0)}:"
        " write down there why no input can reach them"
        for name in sorted(found.keys() | listed.keys())
        if found.get(name, 0) != listed.get(name, 0)
    ]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
