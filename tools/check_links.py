#!/usr/bin/python3
"""Rejects links of Markdown pages that lead nowhere: to a file that is not in the project, or a heading that is not on
the page. Links to other sites are not checked."""

import posixpath
import re
import sys

import tree

CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def anchors(text):
    """As forges make them of headings: small letters, hyphens for spaces, without other signs."""
    fenceless = re.sub(r"^```.*?^```", blank, text, flags=re.DOTALL | re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in HEADING.findall(fenceless)}


def main():
    files = tree.files()
    known = {str(path) for path in files} | {str(folder) for path in files for folder in path.parents}
    wrong = []
    for path in tree.files(".md"):
        text = CODE.sub(blank, tree.read(path))
        for match in LINK.finditer(text):
            target = posixpath.normpath(posixpath.join(path.parent.as_posix(), match[1])) if match[1] else str(path)
            if target not in known:
                wrong.append(f"{path}:{tree.line_of(text, match.start())}: there is no {target}")
            elif match[2] and match[2] not in anchors(tree.read(target)):
                wrong.append(f"{path}:{tree.line_of(text, match.start())}: there is no heading #{match[2]} in {target}")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
