#!/usr/bin/python3
"""Rejects names of source files in ARCHITECTURE.md and docs/internals that do not exist, folders without a page, fail points
without a row in crash-points.md (and rows without a fail point), and a walk of one event whose stated number of files is
wrong. --fix corrects that number."""

import re
import sys

import tree

PAGE = "ARCHITECTURE.md"
INTERNALS = "docs/internals"
SOURCE = "src/postrider"
PATH = re.compile(r"`(\w+/[\w./*]+)`")
CRASH_POINTS = f"{INTERNALS}/crash-points.md"
REACHED = re.compile(r'\breach\("([\w.]+)"\)')
CRASH_ROW = re.compile(r"^\| (`[^|]*) \|", re.MULTILINE)
COUNT = re.compile(r"That is (\d+) files to follow and (\d+) to skip\.")


def folders():
    return sorted({path.parts[2] for path in tree.files() if path.as_posix().startswith(SOURCE + "/") and len(path.parts) > 3})


def exists(name, names):
    """`folder/file.cpp`, `folder/file` for any suffix, `folder/prefix*`, or `folder/`."""
    if name.endswith("*"):
        return any(known.startswith(name[:-1]) for known in names)
    return name in names or any(known.startswith((name + ".", name.rstrip("/") + "/")) for known in names)


def unknown_files(page, names):
    text = tree.read(page)
    for match in PATH.finditer(text):
        if match[1].split("/")[0] in folders() and not exists(match[1], names):
            yield f"{page}:{tree.line_of(text, match.start())}: there is no {SOURCE}/{match[1]}"


def crash_point_errors():
    code = {name for path in tree.files(".cpp", ".hpp") if path.as_posix().startswith(SOURCE) and "_test" not in path.name
            for name in REACHED.findall(tree.code_only(tree.read(path), keep_strings=True))}
    listed = {name for cell in CRASH_ROW.findall(tree.read(CRASH_POINTS)) for name in re.findall(r"`([\w.]+)`", cell)}
    yield from (f"{CRASH_POINTS}: has no row for {name}" for name in sorted(code - listed))
    yield from (f"{CRASH_POINTS}: there is no fail point {name}" for name in sorted(listed - code))


def walk_counts(text):
    walk = text[text.index("| step |"):text.index("That is ")]
    columns = [line.split("|")[2:4] for line in walk.strip().splitlines()[2:]]
    return tuple(len({name for row in columns for name in re.findall(r"`([^`]+)`", row[column])}) for column in (0, 1))


def main():
    names = {path.as_posix().removeprefix(SOURCE + "/") for path in tree.files() if path.as_posix().startswith(SOURCE + "/")}
    pages = [path for path in tree.files(".md") if str(path) == PAGE or path.parent.as_posix() == INTERNALS]
    wrong = [error for page in pages for error in unknown_files(page, names)]
    wrong += [f"{SOURCE}/{folder} has no page: write {INTERNALS}/{folder}.md"
              for folder in folders() if not (tree.ROOT / INTERNALS / f"{folder}.md").exists()]
    wrong += crash_point_errors()
    text = tree.read(PAGE)
    counts = "That is {} files to follow and {} to skip.".format(*walk_counts(text))
    if COUNT.search(text)[0] != counts and "--fix" in sys.argv[1:]:
        (tree.ROOT / PAGE).write_text(COUNT.sub(counts, text), encoding="utf-8")
    elif COUNT.search(text)[0] != counts:
        wrong.append(f"{PAGE}: the walk says: {COUNT.search(text)[0]} Counted: {counts}")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
