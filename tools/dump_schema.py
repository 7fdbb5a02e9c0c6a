#!/usr/bin/python3
"""Prints the schema `postrider` of a migrated database as sql/schema.sql keeps it.

usage: dump_schema.py DATABASE_URL

The dump is made independent of the day, the owner and the minor version: partitions, comments and session settings are
left out. `./dev schema` writes sql/schema.sql; a test fails when the migrations have drifted from it.
"""

import re
import subprocess
import sys

DAY_PARTITIONS = "postrider.*_" + "[0-9]" * 8
NOISE = re.compile(r"--|SET |SELECT pg_catalog\.set_config|\\(?:un)?restrict ")


def dump(url):
    command = ["pg_dump", "--schema-only", "--schema=postrider", "--no-owner", "--no-privileges"]
    return subprocess.run(
        [*command, f"--exclude-table={DAY_PARTITIONS}", f"--dbname={url}"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def normalise(text):
    kept = []
    body = None  # the closing tag of a dollar-quoted body, in which every line counts
    for line in text.splitlines():
        if body is None and NOISE.match(line):
            continue
        for tag in re.findall(r"\$\w*\$", line):
            body = tag if body is None else None if tag == body else body
        kept.append(line.rstrip())
    return re.sub(r"\n{2,}", "\n\n", "\n".join(kept)).strip() + "\n"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print("-- Made by `./dev schema` from sql/migrations, to be read and compared. Do not edit.\n")
    print(normalise(dump(sys.argv[1])), end="")


if __name__ == "__main__":
    main()
