#!/usr/bin/python3
"""Checks web/: imports go down only, no markup from text, sizes, registry hosts in the lock file; then types and unit tests.

Layers: lib ← api, ui ← features ← console, portal. Console and portal never import each other.
"""

import re
import subprocess
import sys

import build_web
import tree

BELOW = {
    "lib": {"lib"},
    "api": {"lib", "api"},
    "ui": {"lib", "ui"},
    "features": {"lib", "api", "ui", "features"},
    "console": {"lib", "api", "ui", "features", "console"},
    "portal": {"lib", "api", "ui", "features", "portal"},
}
IMPORT = re.compile(r"""(?:from|import|import\()\s*['"](\.[^'"]*)['"]""")
FORBIDDEN = {
    r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML": "text must never become markup",
    r"\beval\(|new Function\(": "no code from text",
    r"\bstyle=[\"']": "no inline style as a string: the policy blocks it",
    r":\s*any\b|\bas any\b": "no any",
    r"export default": "no default exports",
}
LINES_MAX = 400


def sources():
    return [path for path in tree.files(".ts", ".tsx") if str(path).startswith("web/src/") and path.name != "schema.d.ts"]


def check_imports(path, text):
    parts = path.parts[2:]
    allowed = BELOW.get(parts[0], set())
    for target in IMPORT.findall(text):
        place = list(parts[:-1])
        for step in target.split("/"):
            if step == "..":
                place.pop()
            elif step != ".":
                place.append(step)
        if place[0] not in allowed:
            yield f"{path}: {parts[0]}/ must not import {'/'.join(place)}"


def check_file(path):
    text = tree.read(path)
    yield from check_imports(path, text)
    for pattern, why in FORBIDDEN.items():
        for match in re.finditer(pattern, text):
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}: {why}"
    if text.count("\n") > LINES_MAX:
        yield f"{path}: {text.count(chr(10))} lines, at most {LINES_MAX}"


def run(*command):
    done = subprocess.run(command, cwd=build_web.WEB, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return [] if done.returncode == 0 else [f"{' '.join(command)}:", *done.stdout.strip().splitlines()[-40:]]


def main():
    wrong = [problem for path in sources() for problem in check_file(path)]
    if "resolved" in tree.read("web/package-lock.json"):
        wrong.append("web/package-lock.json: names hosts of registries; see web/.npmrc")
    build_web.install()
    wrong += run("node", "scripts/types.mjs") or run("node", "node_modules/typescript/bin/tsc", "--noEmit")
    wrong += run("node", "node_modules/vitest/vitest.mjs", "run", "--reporter=dot")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
