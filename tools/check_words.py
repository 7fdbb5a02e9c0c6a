#!/usr/bin/python3
"""Rejects words that docs/glossary.md retires, in all that people read: pages, examples, the OpenAPI document, the comments
and strings of C++ and SQL, and the docstrings and comments of Python.
"""

import re
import sys

import tree

# The glossary and the test of this check must name what is retired.
EXEMPT = {"docs/glossary.md", "tools/check_words_test.py"}

# Word or phrase → what to write. Whole words, in any case.
RETIRED = {
    r"nobody|somebody|anybody|whoever|whom(?:ever)?": "name the program or the person",
    r"for good": "permanently",
    r"so many": "name the number",
    r"hand(?:s|ed|ing)?[ -]over": "release, take over, handoff; or send, return, pass",
    r"unfit|judg(?:e|es|ed|ing|ement|ements|ment)": "invalid, validate",
    r"bur(?:y|ies|ied)": "mark as failed, remove",
    r"hurr(?:y|ies|ied)": "retry now",
    r"answer(?:s|ed|ing)?": "response, respond; result",
    r"(?<!connection )(?<!connections )(?<!connections are )(?:refuse|refuses|refused|refusing|refusal|refusals)(?! connections)":
        "reject, rejected; blocked for a destination",
    r"(?<!in )(?<!in-)flights?": "exchange; in flight",
    r"tall(?:y|ies|ied)": "rollup counts",
    r"under way|on its way|on the way": "in progress, in flight",
    r"put(?:s|ting)? off|put(?:s|ting)? right": "postpone, correct",
    r"giv(?:e|es|en|ing) up|gave up": "expire, dead-letter, stop retrying",
    r"wish(?:es|ed)?": "request",
    r"doors?": "request, entry point",
    r"tell|tells|telling|told": "report, notify, show",
    r"what bec(?:ame|omes) of": "what happened to",
    r"are not right|is not right": "is invalid",
    r"looked at|look(?:s)? at it": "checked, scanned",
    r"go(?:es)? on where": "continue where",
    r"in vain": "without success",
    r"the other way round": "vice versa",
    r"at most so|as it stands": "as written",
}
PATTERN = re.compile("|".join(rf"(?P<g{n}>\b(?:{words})\b)" for n, words in enumerate(RETIRED)), re.IGNORECASE)
ADVICE = list(RETIRED.values())

CODE = re.compile(r"^```.*?^```|`[^`]*`|\]\([^)]*\)|<!--.*?-->", re.DOTALL | re.MULTILINE)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
# Names are not words: settings, fields, paths, test names. Only text with a space in it is for people.
VALUES = re.compile(r"""[`'"]refuse[`'"]|refuse or set_aside""")  # of the setting on_invalid, a fixed name
NAME = re.compile(r'"[^\s"]*"|--[a-z][-a-z]*|\b\w+\.(?:mjs|hpp|cpp|py|sql|md)\b|\b\w+::\w+|\b\w+\(\)|\b[A-Z]\w+::')
PYTHON_TEXT = re.compile(r'"""[\s\S]*?"""|(?m:(?:^|(?<=\s))#[^\n]*)')
SQL_TEXT = re.compile(r"--[^\n]*|'(?:[^']|'')*'")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def only(pattern, text):
    """`text` with everything blanked out that the pattern does not match; the places stay."""
    kept, end = [], 0
    for match in pattern.finditer(text):
        kept += [re.sub(r"[^\n]", " ", text[end:match.start()]), match.group()]
        end = match.end()
    return "".join(kept) + re.sub(r"[^\n]", " ", text[end:])


def cpp_prose(name, text):
    """The comments, and the strings unless it is a test: a test's strings are often data of the other side."""
    is_test = name.endswith("test.cpp")
    kept, end = [], 0
    for match in tree.NOT_CODE.finditer(text):
        if match.group().startswith(("//", "/*")) or (not is_test and match.group().startswith('"')):
            kept += [re.sub(r"[^\n]", " ", text[end:match.start()]), match.group()]
            end = match.end()
    return NAME.sub(blank, "".join(kept) + re.sub(r"[^\n]", " ", text[end:]))


def prose_of(path):
    """The text of a file that people read, every character in its place; None if the file is not checked."""
    name = str(path)
    if path.suffix == ".md":
        return CODE.sub(blank, tree.read(path))
    if path.suffix in (".cpp", ".hpp"):
        return cpp_prose(name, tree.read(path))
    if name.startswith("src/postrider/api/openapi/") and path.suffix == ".json":
        return re.sub(r"`[^`]*`", blank, only(STRING, tree.read(path)))
    if name.startswith("examples/") and path.suffix in (".py", ".mjs"):
        return tree.read(path)
    if path.suffix == ".py":
        return NAME.sub(blank, re.sub(r"`[^`\n]*`", blank, only(PYTHON_TEXT, tree.read(path))))
    if path.suffix == ".sql" and name != "sql/schema.sql":
        return only(SQL_TEXT, tree.read(path))
    return None


def find(prose):
    """(offset, word, advice) of each retired word."""
    found, start = [], 0
    for line in prose.splitlines(keepends=True):
        text = line.strip()  # most of a line of code is blanked out
        at = start + line.find(text)
        found += [(at + match.start(), match.group(), ADVICE[int(match.lastgroup[1:])]) for match in PATTERN.finditer(text)]
        start += len(line)
    return found


def main():
    wrong = []
    for path in tree.files(".md", ".cpp", ".hpp", ".json", ".sql", ".py", ".mjs"):
        prose = prose_of(path) if str(path) not in EXEMPT else None
        if prose is not None:
            prose = VALUES.sub(blank, prose)
            wrong += [f"{path}:{tree.line_of(prose, at)}: {word!r}: {advice}" for at, word, advice in find(prose)]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
