#!/usr/bin/python3
"""`./dev check`: everything about the source that is not a test. Runs every check, prints what fails, exits 1 if any did.

usage: check.py [--all | --no-tidy] [--fix]
  --all: clang-tidy over every file, not only over those that differ from main
  --no-tidy: without clang-tidy, which takes longest
  --fix: format in place and rewrite docs/reference
"""

import argparse
import py_compile
import subprocess
import sys
import tempfile
import time

import tree

BUILD = tree.ROOT / "build" / "test"


def run(*command):
    done = subprocess.run(command, cwd=tree.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode == 0, done.stdout


def tool(name, *arguments):
    return run(sys.executable, f"tools/{name}", *arguments)


def check_format(options):
    paths = [str(path) for path in tree.files(".cpp", ".hpp")]
    if not paths:
        return True, ""
    if options.fix:
        return run("clang-format-19", "-i", *paths)
    good, output = run("clang-format-19", "--dry-run", "--Werror", "--ferror-limit=1", *paths)
    if not good:
        output = "\n".join(sorted({line.split(":")[0] for line in output.splitlines() if ": error:" in line}))
        output += "\n(./dev check --fix formats them)\n"
    return good, output


def check_python(_):
    wrong = []
    with tempfile.NamedTemporaryFile() as compiled:
        for path in tree.files(".py"):
            try:
                py_compile.compile(str(tree.ROOT / path), cfile=compiled.name, doraise=True)
            except py_compile.PyCompileError as error:
                wrong.append(str(error))
    return not wrong, "".join(wrong)


def check_shell(_):
    scripts = [path for path in tree.files("") if tree.read(path).startswith(("#!/bin/sh", "#!/usr/bin/env bash"))]
    results = [run("bash", "-n", str(path)) for path in scripts]
    return all(good for good, _ in results), "".join(output for _, output in results)


def check_tidy(options):
    arguments = [] if options.all else ["--changed"]
    # Embedded SQL is a header that the sources include.
    good, output = run("ninja", "-C", str(BUILD), "-t", "targets", "all")
    headers = [line.split(":")[0] for line in output.splitlines() if line.startswith("generated/")]
    if good and headers:
        good, output = run("ninja", "-C", str(BUILD), *headers)
    return tool("check_tidy.py", str(BUILD), *arguments) if good else (False, output)


CHECKS = {
    "format": check_format,
    "layering": lambda _: tool("check_layers.py"),
    "coroutines": lambda _: tool("check_coro.py"),
    "services": lambda _: tool("check_services.py"),
    "constants": lambda _: tool("check_constants.py"),
    "strings": lambda _: tool("check_strings.py"),
    "words": lambda _: tool("check_words.py"),
    "checks": lambda _: tool("check_checks.py"),
    "links": lambda _: tool("check_links.py"),
    "documents": lambda _: tool("check_documents.py"),
    "types": lambda _: tool("check_types.py"),
    "named tests": lambda _: tool("check_named_tests.py"),
    "figures": lambda _: tool("check_figures.py"),
    "lists": lambda options: tool("lists.py", *(["--fix"] if options.fix else [])),
    "dashboards": lambda options: tool("dashboards.py", *(["--fix"] if options.fix else [])),
    "architecture": lambda options: tool("check_architecture.py", *(["--fix"] if options.fix else [])),
    "commits": lambda _: tool("check_commits.py"),
    "statements": lambda _: tool("check_sql.py"),
    "migrations": lambda _: tool("check_migrations.py"),
    "schema and columns": lambda _: tool("write_schema.py", "--check"),
    "sizes": lambda _: tool("check_sizes.py"),
    "web": lambda _: tool("check_web.py"),
    "python": check_python,
    "shell": check_shell,
    "clang-tidy": check_tidy,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--no-tidy", action="store_true")
    parser.add_argument("--fix", action="store_true")
    options = parser.parse_args()
    failed = []
    for name, check in CHECKS.items():
        if options.no_tidy and check is check_tidy:
            continue
        started = time.monotonic()
        good, output = check(options)
        print(f"{'ok  ' if good else 'FAIL'} {name} ({time.monotonic() - started:.1f} s)")
        for line in output.rstrip().splitlines():
            print(f"     {line}")
        sys.stdout.flush()
        if not good:
            failed.append(name)
    print(f"check: FAILED: {', '.join(failed)}" if failed else "check: everything holds")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
