#!/usr/bin/python3
"""Checks the message of every commit after the one that added this file: an imperative subject of at most 72 characters,
an empty line, and a body that says why. Passes where there is no history to look at; in a shallow clone it checks the
commits that are there."""

import re
import subprocess
import sys

import tree

SUBJECT_LENGTH_MAX = 72
# Not imperative: "Fixed …", "Fixing …", "Fixes …", "The …". Verbs that only look like it are allowed.
NO_VERB = re.compile(r"(?:ed|ing|[^su]s)$|^(?:the|an?|what|who|how|when|it|this|that|no|some|more|wip|fixup!|squash!)$")
VERBS = {"bring", "embed", "exceed", "feed", "need", "ping", "seed", "shed", "speed", "string", "alias", "canvas", "bias"}


def git(*arguments):
    """The output, or None if git or the repository is missing or git fails."""
    try:
        done = subprocess.run(["git", *arguments], cwd=tree.ROOT, capture_output=True, encoding="utf-8", errors="replace")
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def errors_in(message):
    subject, _, rest = message.strip("\n").partition("\n")
    first = subject.split(" ")[0].lower()
    if len(subject) > SUBJECT_LENGTH_MAX:
        yield f"the subject has {len(subject)} characters; at most {SUBJECT_LENGTH_MAX} are allowed"
    if not subject[:1].isupper() or subject.endswith("."):
        yield "the subject must start with a capital letter and have no period at its end"
    if NO_VERB.search(first) and first not in VERBS:
        yield f"the subject must start with a verb in the imperative, not with \"{first}\""
    if rest and not rest.startswith("\n"):
        yield "the second line must be empty"
    if not rest.strip():
        yield "the body must say why the change was made"


def main():
    added = git("log", "--diff-filter=A", "--format=%H", "--", "tools/check_commits.py")
    if not added:
        return 0
    start = added.split()[-1]
    log = git("log", "--no-merges", "--format=%h%x00%B%x01", f"{start}..HEAD") or ""
    wrong = []
    for entry in filter(str.strip, log.split("\x01")):
        commit, message = entry.strip("\n").split("\x00")
        wrong += [f"{commit} {message.strip().splitlines()[0][:50] if message.strip() else ''}: {error}"
                  for error in errors_in(message)]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
