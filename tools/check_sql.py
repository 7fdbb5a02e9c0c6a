#!/usr/bin/python3
"""Rejects columns read by number, parameters given by number, and two statements of one name in a folder.

Generated code alone knows the number of a column: elsewhere, a column that was added to a statement would shift those after
it without an error. UNCONVERTED lists folders that still pass pg::Rows on, to the Row::read() of a statement; it only gets
shorter. COMPOSED lists files that run SQL
that is composed at run time, of which no struct can be generated. A folder is a namespace, so two statements of one name
in it would be two definitions of one struct.
"""

import collections
import re
import sys

import embed_sql
import tree

UNCONVERTED = {"api", "outbox", "pg"}
COMPOSED = {"upkeep/keep.cpp", "upkeep/retention.cpp"}
# Part of pg, below the generated layer.
GROUND = {"pg/rows.cpp", "pg/rows.hpp", "pg/query.hpp", "pg/params.hpp", "pg/send.cpp"}
NUMBERED = re.compile(r"\.get<(?:[^<>;]|<[^<>;]*>)*>\(\s*[\w.]+\s*,|\.is_null\(\s*[\w.]+\s*,")
POSITIONAL = re.compile(r"\bpg::Rows\b|\bpg::Params\b|\brun_one\(|\.with\(sql::")


def positional_uses():
    for path in tree.files(".cpp", ".hpp"):
        if path.parts[:2] != ("src", "postrider") or path.stem.endswith("test"):
            continue
        if path.relative_to("src/postrider").as_posix() in COMPOSED | GROUND:
            continue
        text = tree.code_only(tree.read(path))
        for match in NUMBERED.finditer(text):
            yield f"{path}:{tree.line_of(text, match.start())}: read a row's member instead of a column by number"
        if path.parts[2] in UNCONVERTED:
            continue
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
