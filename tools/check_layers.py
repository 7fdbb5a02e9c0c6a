#!/usr/bin/python3
"""Rejects an include that goes against the layering: a folder may include only what its link line reaches.

The link lines are the postrider_folder(…) calls of src/postrider/CMakeLists.txt.
"""

import re
import sys

import tree

FOLDER = re.compile(r"^postrider_folder\(([\w/]+)\s+LINKS\s+([^)]*)\)", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]postrider/([\w/]+)/[^/">]+[">]', re.MULTILINE)
# Made from sql/ by sql/CMakeLists.txt, just above pg.
GENERATED = {"sql": {"pg"}}


def reachable(links):
    """For each folder, itself and everything below it."""
    reach = {}

    def visit(folder, path):
        if folder in path:
            sys.exit(f"src/postrider/CMakeLists.txt: a circle: {' -> '.join([*path, folder])}")
        if folder not in reach:
            below = (visit(other, [*path, folder]) for other in links.get(folder, ()))
            reach[folder] = {folder}.union(*below)
        return reach[folder]

    for folder in links:
        visit(folder, [])
    return reach


def main():
    declared = FOLDER.findall(tree.read("src/postrider/CMakeLists.txt"))
    folder_of = {folder.replace("/", "_"): folder for folder, _ in declared}
    links = {folder: {folder_of.get(target, target) for target in re.findall(r"\bpostrider_(\w+)", line)}
             for folder, line in declared}
    reach = reachable(links | GENERATED)

    wrong = []
    for path in tree.files(".cpp", ".hpp"):
        parts = path.parts
        if parts[:2] != ("src", "postrider"):
            continue
        folder = "/".join(parts[2:-1])
        if folder not in reach:
            wrong.append(f"{path}: folder {folder} has no postrider_folder line")
            continue
        text = tree.code_only(tree.read(path), keep_strings=True)
        is_test = path.stem.endswith(("_test", "_pgtest"))
        for match in INCLUDE.finditer(text):
            other = match.group(1)
            if other in reach[folder] or (is_test and other == "sql"):
                continue
            wrong.append(f"{path}:{tree.line_of(text, match.start(1))}: {folder} must not include {other}")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
