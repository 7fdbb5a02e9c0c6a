"""The files of the project, for the checks."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def files(*suffixes):
    """Tracked and new files that git does not ignore, relative to the root; with one of the suffixes if any are given."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout
    paths = sorted({pathlib.Path(name) for name in listed.split("\0") if name})
    return [path for path in paths if (ROOT / path).is_file() and (not suffixes or path.suffix in suffixes)]


def read(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="surrogateescape")


NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""",
    re.DOTALL,
)


def code_only(text, keep_strings=False):
    """C++ with comments (and the insides of literals) blanked out; every character keeps its place."""

    def blank(match):
        found = match.group()
        if found.startswith(("//", "/*")):
            return re.sub(r"[^\n]", " ", found)
        if keep_strings:
            return found
        return found[0] + re.sub(r"[^\n]", "_", found[1:-1]) + found[-1]

    return NOT_CODE.sub(blank, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1
