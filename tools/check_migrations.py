#!/usr/bin/python3
"""Holds migrations to the rule that lets nodes be upgraded one after the other.

While an upgrade is in progress, binaries that do not know the newest migration run on its result. A migration after the
first names the oldest of them (`-- oldest binary: N`). If it takes something away that such a binary may use, N must be
the migration's own number, or the migration must wait for a release that no longer uses it.
"""

import re
import sys

import embed_sql
import tree

# What an older binary may not survive.
TAKES_AWAY = {
    r"drop\s+(?:table|view|function|procedure|type|sequence|schema)\b": "drops an object",
    r"drop\s+column\b|alter\s+table\s+\S+\s+drop\s+(?!constraint|not\s+null|default)": "drops a column",
    r"\brename\b": "renames something",
    r"alter\s+(?:column\s+)?\w+\s+(?:set\s+data\s+)?type\b": "changes a column's type",
    r"set\s+not\s+null\b": "requires a column that older binaries may leave out",
    r"add\s+(?:column\s+)?(?:if\s+not\s+exists\s+)?\w+\s+(?![^,;]*\bdefault\b)[^,;]*\bnot\s+null\b":
        "adds a required column without a default",
}


def breaks(migration):
    """What a migration takes away from binaries that it says still run."""
    if migration.version == 1 or migration.oldest_binary == migration.version:
        return []
    text = "".join(piece for is_literal, piece in embed_sql.pieces(migration.text) if not is_literal)
    return [what for pattern, what in TAKES_AWAY.items() if re.search(pattern, text, re.IGNORECASE)]


def main():
    wrong = []
    for migration in embed_sql.migrations(tree.ROOT / "sql" / "migrations"):
        wrong += [f"migration {migration.version:04}_{migration.name} {what}, so it needs `-- oldest binary: "
                  f"{migration.version}`" for what in breaks(migration)]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
