#!/usr/bin/python3
"""Rejects columns read by number, parameters given by number, and two statements of one name in a folder.

Generated code alone knows the number of a column: elsewhere, a column that was added to a statement would shift those after
it without an error. UNCONVERTED lists folders that still do so; it only gets shorter. COMPOSED lists files that run SQL
that is composed at run time, of which no struct can be generated. A folder is a namespace, so two statements of one name
in it would be two definitions of one struct.
"""

import collections
import re
import sys

import embed_sql
import tree

UNCONVERTED = {"api", "cli", "delivery", "inbox", "outbox", "pg", "publish"}
COMPOSED = {"upkeep/keep.cpp", "upkeep/retention.cpp"}
POSITIONAL = re.compile(r"\bpg::Rows\b|\bpg::Params\b|\brun_one\(|\.with\(sql::")


def positional_uses():
    for path in tree.files(".cpp", ".hpp"):
        if path.parts[:2] != ("src", "postrider") or path.stem.endswith("test") or path.parts[2] in UNCONVERTED:
            continue
        if path.relative_to("src/postrider").as_posix() in COMPOSED:
            continue
        text = tree.code_only(tree.read(path))
        for match in POSITIONAL.finditer(text):
            yield f"{path}:{tree.line_of(text, match.start())}: use a statement's struct instead of {match[0]}"


def repeated_names():
    found = collections.defaultdict(list)
    for path in tree.files(".sql"):
        if path.parts[:2] == ("src", "postrider"):
            for statement in embed_sql.statements(tree.ROOT / path):
                found[path.parent, statement.name].append(str(path))
    for (_, name), paths in found.items():
        if len(paths) > 1:
            yield f"{' and '.join(paths)}: both have a statement `{name}`"


def main():
    wrong = [*positional_uses(), *repeated_names()]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
