#!/usr/bin/python3
"""Reports files over 400 lines and functions over 70. A report, not a verdict: some have a reason."""

import re
import sys

import tree

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
# clang-format puts a function's closing brace in the column where its first line starts.
FUNCTION = re.compile(r"^((?:  )?)(?!namespace|struct|class|enum|union|if|for|while|switch|else|do\b)[^\s#/}][^;\n]*\)[^;\n]*\{$")


def long_functions(text):
    lines = tree.code_only(text).split("\n")
    for number, line in enumerate(lines, 1):
        match = FUNCTION.match(line)
        if not match:
            continue
        end = next((i for i, other in enumerate(lines[number:], number + 1) if other.startswith(match.group(1) + "}")), 0)
        if end - number + 1 > FUNCTION_LINES_MAX:
            yield number, end - number + 1


def main():
    for path in tree.files(".cpp", ".hpp", ".py", ".sql", ".ts", ".tsx"):
        if path.name == "schema.sql":
            continue
        text = tree.read(path)
        if (lines := text.count("\n")) > FILE_LINES_MAX:
            print(f"{path}: {lines} lines")
        if path.suffix in (".cpp", ".hpp"):
            for number, length in long_functions(text):
                print(f"{path}:{number}: a function of {length} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
