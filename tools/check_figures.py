#!/usr/bin/python3
"""Compares the figures that README and docs quote from benchmarks with the committed results in docs/benchmarks.md.

A paragraph, list item or table row that quotes figures has a comment `<!-- figures: NAME; NAME -->` with the first cells of
the rows that it quotes. Every number with a unit in it must be a number of these rows, rounded to the digits that are
written. Text that mentions `./dev bench` in a paragraph with a number and a unit must have such a comment. Pages in
docs/decisions keep the figures of their time.
"""

import decimal
import re
import sys

import tree

RESULTS = "docs/benchmarks.md"
MARK = re.compile(r"<!-- figures: (.*?) -->", re.DOTALL)
QUOTED = re.compile(r"(?<![\w.,])(\d[\d,]*(?:\.\d+)?) ?(?:ms|µs|s|×|%|MiB|times|of its rate|/s|(?:deliveries|events)/s)(?!\w)")
RATIO = re.compile(r"(?<![\w.,])(0\.\d+)(?![\w.]*\d)")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
BENCH = re.compile(r"`\./dev\s+bench")


def value(text):
    return decimal.Decimal(text.replace(",", ""))


def results(text):
    """{first cell of a row: its other numbers}"""
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) > 1:
            rows.setdefault(cells[0], set()).update(value(number) for number in NUMBER.findall(" ".join(cells[1:])))
    return rows


def parts(text):
    """(offset, text) of each paragraph and list item, without fenced blocks."""
    text = re.sub(r"^```.*?^```", lambda match: re.sub(r"[^\n]", " ", match.group()), text, flags=re.DOTALL | re.MULTILINE)
    at = 0
    for part in re.split(r"(\n\s*\n|\n(?=(?:[-*|]|\d+\.) ))", text):
        if part.strip():
            yield at, part
        at += len(part)


def rounded_to(number, like):
    return number.quantize(decimal.Decimal(1).scaleb(like.as_tuple().exponent), rounding=decimal.ROUND_HALF_UP)


def problems_of(part, rows):
    mark = MARK.search(part)
    prose = MARK.sub("", part)
    quoted = [match[1] for match in QUOTED.finditer(prose)]
    if not mark:
        return ["name the rows it quotes: <!-- figures: NAME; NAME -->"] if quoted and BENCH.search(prose) else []
    names = [re.sub(r"\s+", " ", name.strip()) for name in mark[1].split(";")]
    unknown = [f"{RESULTS} has no row `{name}`" for name in names if name not in rows]
    known = set().union(*(rows.get(name, set()) for name in names))
    quoted = dict.fromkeys(quoted + [match[1] for match in RATIO.finditer(prose)])
    wrong = [f"{number} is not in {RESULTS}" for number in quoted
             if not unknown and not any(rounded_to(found, value(number)) == value(number) for found in known)]
    return unknown + wrong


def main():
    rows = results(tree.read(RESULTS))
    wrong = []
    for path in tree.files(".md"):
        if str(path) == RESULTS or (str(path) != "README.md" and (path.parts[0] != "docs" or "decisions" in path.parts)):
            continue
        text = tree.read(path)
        for at, part in parts(text):
            start = at + len(part) - len(part.lstrip())
            wrong += [f"{path}:{tree.line_of(text, start)}: {problem}" for problem in problems_of(part, rows)]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
