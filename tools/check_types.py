#!/usr/bin/python3
"""Rejects two types of one name in the headers of a folder. A folder is a namespace: the linker would merge their inline
functions, and objects of one type would be destroyed as the other. Compilers say nothing about it."""

import collections
import re
import sys

import tree

DEFINED = re.compile(r"^(?:template <[^\n]*>\n)?(?:struct|class|union|enum class|enum) (?:\[\[\w+\]\] )?(\w+)(?!\w|::)[^;(){}]*\{", re.MULTILINE)


def main():
    found = collections.defaultdict(dict)
    for path in tree.files(".hpp"):
        text = tree.read(path)
        for match in DEFINED.finditer(text):
            found[path.parent, match[1]][path] = tree.line_of(text, match.start())
    wrong = [f"{name} is defined in " + " and ".join(f"{path}:{line}" for path, line in places.items())
             for (_, name), places in sorted(found.items()) if len(places) > 1]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
