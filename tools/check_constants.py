#!/usr/bin/python3
"""Constants at namespace scope and static constants of classes are named kName."""

import re
import sys

import tree

# The other folders are converted one by one; this list only gets longer.
FOLDERS = {"base", "cluster", "config", "crypto", "http", "replay", "runtime", "schema", "server", "telemetry", "upkeep"}
DEFINED = re.compile(r"^( *)((?:inline |static )*constexpr [^=\n;(]*?)\b(\w+)(?:\[\w*\])?\s*(?:=|\{)", re.MULTILINE)
NAME = re.compile(r"k[A-Z0-9]\w*$")
# Required by the standard library.
EXEMPT = {"is_steady"}


def main():
    wrong = []
    for path in tree.files(".cpp", ".hpp"):
        parts = path.as_posix().split("/")
        if parts[:2] != ["src", "postrider"] or parts[2] not in FOLDERS:
            continue
        text = tree.code_only(tree.read(path))
        for match in DEFINED.finditer(text):
            is_constant = not match[1] or "static" in match[2]
            if is_constant and not NAME.match(match[3]) and match[3] not in EXEMPT:
                wrong.append(f"{path}:{tree.line_of(text, match.start(3))}: {match[3]} is a constant: kName")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
