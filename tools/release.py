#!/usr/bin/python3
"""Cuts a release: dates the changelog, commits and tags it, builds the packages, runs the end-to-end tests with the packaged
binary, and signs the checksums. Nothing is published: it prints what to push and to upload.

usage: release.py VERSION --key KEY [--dry-run] [--binary FILE]
  --key       the GPG key that signs the tag and the checksums
  --dry-run   work in a temporary clone that is deleted, and skip the tests; the artefacts stay in build/release-VERSION
  --binary    package this binary instead of building one; only with --dry-run
"""

import argparse
import contextlib
import datetime
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import package
import tree

VERSION = re.compile(r"\d+\.\d+\.\d+")
UNRELEASED = re.compile(r"^## Unreleased\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
NOTHING_YET = re.compile(r"^The first version, [^\n]*\n+", re.MULTILINE)


class Problem(Exception):
    """The release cannot be cut; says what to do."""


def run(*command, cwd, **more):
    return subprocess.run([str(word) for word in command], cwd=cwd, check=True, text=True, **more)


def output(*command, cwd):
    return run(*command, cwd=cwd, stdout=subprocess.PIPE).stdout.strip()


def check(root, version):
    """Everything that can be wrong, before anything is changed."""
    if not VERSION.fullmatch(version):
        raise Problem(f"{version} is not a version such as 0.1.0")
    if output("git", "status", "--porcelain", cwd=root):
        raise Problem("there are changes that are not committed")
    if output("git", "tag", "--list", f"v{version}", cwd=root):
        raise Problem(f"the tag v{version} exists")
    for path, pattern in (("CMakeLists.txt", rf"project\(postrider VERSION {re.escape(version)} "),
                          ("src/postrider/base/version.hpp", rf'kVersion = "{re.escape(version)}"')):
        if not re.search(pattern, (root / path).read_text()):
            raise Problem(f"{path} has another version than {version}")
    found = UNRELEASED.search((root / "CHANGELOG.md").read_text())
    if not found or not found[1].strip():
        raise Problem("CHANGELOG.md has nothing below `## Unreleased`")


def date_changelog(text, version, day):
    """The changelog with its unreleased part as that version; and that part, for the tag."""
    notes = NOTHING_YET.sub("", UNRELEASED.search(text)[1]).strip()
    dated = f"## Unreleased\n\n## {version}, {day}\n\n{notes}\n\n"
    return UNRELEASED.sub(lambda _: dated, text, count=1).rstrip() + "\n", notes


def commit_and_tag(root, version, key):
    path = root / "CHANGELOG.md"
    text, notes = date_changelog(path.read_text(), version, datetime.datetime.now(datetime.timezone.utc).date())
    path.write_text(text)
    message = f"Release {version}\n\nThe changelog gets its date. The tag v{version} is this commit."
    run("git", "commit", "-q", "--no-verify", "-m", message, "CHANGELOG.md", cwd=root)
    # Headings of the notes start with #, which git would drop as comments.
    run("git", "-c", f"user.signingkey={key}", "tag", "-s", "--cleanup=whitespace", f"v{version}", "-F", "-", cwd=root,
        input=f"postrider {version}\n\n{notes}\n")


def build_binary(root):
    run("./dev", "build", cwd=root, stdout=subprocess.DEVNULL)
    return root / "build" / "release" / "postrider"


def sign(sums, key):
    run("gpg", "--batch", "--yes", "--armor", "--local-user", key, "--detach-sign", sums.name, cwd=sums.parent)
    return sums.with_name(sums.name + ".asc")


def test_packaged(root, target):
    """The end-to-end tests with the binary of the .deb: what is released is what was tested."""
    with tempfile.TemporaryDirectory(prefix="pr-release-") as folder:
        [archive] = target.glob("postrider_*.deb")
        run("dpkg-deb", "-x", archive, folder, cwd=root)
        environment = {**os.environ, "POSTRIDER_TEST_BINARY": f"{folder}/usr/bin/postrider"}
        run("/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "tests/e2e", cwd=root, env=environment)


@contextlib.contextmanager
def working_copy(is_dry):
    """The tree in which the release is made: this one, or a clone of it."""
    if not is_dry:
        yield tree.ROOT
        return
    with tempfile.TemporaryDirectory(prefix="pr-release-") as folder:
        clone = pathlib.Path(folder) / "postrider"
        run("git", "clone", "-q", "--local", tree.ROOT, clone, cwd=folder)
        for name in ("user.name", "user.email"):
            value = subprocess.run(["git", "config", name], cwd=tree.ROOT, text=True, stdout=subprocess.PIPE).stdout.strip()
            run("git", "config", name, value or "release", cwd=clone)
        yield clone


def release(options):
    version = options.version
    target = tree.ROOT / "build" / f"release-{version}"
    with working_copy(options.dry_run) as root:
        check(root, version)
        if not options.dry_run:
            run("./dev", "test", cwd=root)
        commit_and_tag(root, version, options.key)
        binary = options.binary or build_binary(root)
        os.environ["SOURCE_DATE_EPOCH"] = output("git", "log", "-1", "--format=%ct", cwd=root)
        artefacts = package.build(binary.resolve(), target, version)
        artefacts.append(sign(artefacts[-1], options.key))
        if not options.dry_run:
            test_packaged(root, target)
        commit = output("git", "rev-parse", f"v{version}^{{commit}}", cwd=root)
    for path in artefacts:
        print(f"{path.stat().st_size:>12,}  {path}")
    print(f"v{version} is {commit}" + (", in a clone that is gone" if options.dry_run else
                                       f"; publish it: git push origin main v{version}, and upload these files"))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("version")
    parser.add_argument("--key", required=True)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--binary", type=pathlib.Path)
    options = parser.parse_args()
    try:
        if options.binary and not options.dry_run:
            raise Problem("--binary is only for --dry-run: a release is built from its tag")
        release(options)
    except Problem as problem:
        print(f"release: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
