#!/usr/bin/python3
"""Rejects SQL in C++ string literals (it belongs in .sql files), and what must not stand in any file: paths of one
machine, hosts of package registries."""

import re
import sys

import tree

STRING = re.compile(r'R"(?P<mark>[^()\s\\]{0,16})\((?P<raw>.*?)\)(?P=mark)"|"(?P<plain>(?:\\.|[^"\\\n])*)"', re.DOTALL)
SQL = re.compile(
    r"\b(?:select\s.+\sfrom|insert\s+into|update\s+\w+\s+set|delete\s+from|create\s+(?:table|index|schema|role|database)"
    r"|alter\s+(?:table|role|system)|drop\s+(?:table|schema|database))\b",
    re.IGNORECASE | re.DOTALL,
)
# Tests may say in SQL what they set up and what they find; a private cluster is set up before there is any session.
SQL_ALLOWED = re.compile(r"(?:_test|_pgtest)\.cpp$|(?:_testing|_fixture)\.hpp$|^tests/|^bench/|/pg/private_cluster_layout\.cpp$")
# Written so that this file does not match itself.
MACHINE = re.compile(r"(?<!\w)/(?:work|home|Users|root)/\w|regis[t]ry\.npmjs\.org|pypi\.[o]rg|deb\.debian\.[o]rg")


def main():
    wrong = []
    for path in tree.files():
        try:
            text = tree.read(path)
        except UnicodeDecodeError:
            continue
        for match in MACHINE.finditer(text):
            wrong.append(f"{path}:{tree.line_of(text, match.start())}: names a machine: {match.group()}")
        if path.suffix not in (".cpp", ".hpp") or SQL_ALLOWED.search(str(path)):
            continue
        code = tree.code_only(text, keep_strings=True)
        for match in STRING.finditer(code):
            literal = match["raw"] if match["raw"] is not None else match["plain"]
            if SQL.search(literal):
                wrong.append(f"{path}:{tree.line_of(code, match.start())}: SQL in a string; put it into a .sql file")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
