#!/usr/bin/python3
"""Every block of README and docs is run by a test, says above it why not, or is no command at all. Counts those that are
not run; there may be fewer of them than NOT_RUN_MAX, but not more."""

import sys

import tree

sys.path.insert(0, str(tree.ROOT / "tests"))

from harness import documents  # noqa: E402

NOT_RUN_MAX = 2


def problem_of(block):
    """What is wrong with a block, or None."""
    if block.not_run is not None:
        return None if block.not_run else "give the reason: <!-- not run: REASON -->"
    if block.run_by is not None:
        if not (tree.ROOT / block.run_by).is_file():
            return f"there is no {block.run_by} that could run it"
        return None if block.page in tree.read(block.run_by) else f"{block.run_by} does not mention this page"
    if not block.language:
        return f"name its language: {', '.join(documents.RUN)} are run, {', '.join(documents.SHOWN)} are not"
    if block.language not in documents.RUN + documents.SHOWN:
        return f"tests cannot run {block.language}; say so above it: <!-- not run: REASON -->"
    return None


def stray_fences(text):
    """Lines with a fence of no block that was found: not closed, or indented."""
    lines = {number for number, line in enumerate(text.splitlines(), 1) if line.lstrip().startswith("```")}
    for block in documents.parse("", text):
        lines -= {block.line, block.line + block.text.count("\n") + 1}
    return sorted(lines)


def main():
    pages = [path for path in tree.files(".md") if str(path) == "README.md" or path.parts[0] == "docs"]
    blocks = [block for path in pages for block in documents.blocks_of(str(path))]
    wrong = [f"{block.place}: {problem}" for block in blocks if (problem := problem_of(block))]
    wrong += [f"{path}:{line}: a fence that is indented or not closed"
              for path in pages for line in stray_fences(tree.read(path))]
    not_run = [block for block in blocks if block.not_run is not None]
    if len(not_run) > NOT_RUN_MAX:
        wrong += [f"{block.place}: not run: {block.not_run}" for block in not_run]
        wrong.append(f"{len(not_run)} blocks are not run; {NOT_RUN_MAX} is the limit")
    run = sum(block.not_run is None and block.language in documents.RUN for block in blocks)
    print("\n".join(wrong) if wrong else f"{run} blocks are run, {len(not_run)} are not")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
