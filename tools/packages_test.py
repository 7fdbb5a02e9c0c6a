#!/usr/bin/python3
"""Which packages the verbs of ./dev install on a machine that has none. apt-get and dpkg-query are stubs here."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import tree

STUBS = {
    "apt-get": 'echo "$@" >> "$ASKED"',
    "dpkg-query": "exit 0",          # nothing is installed
    "sudo": "exec \"$@\"",
    "mkdir": "exit 0",
    "tee": "cat >/dev/null",
}
ONLY_FOR_TESTS = {"chromium", "clang-tidy-19", "libgtest-dev", "pgbouncer", "python3-pytest", "ivy"}
FOR_ALL = {"clang-19", "cmake", "libpq-dev", "postgresql-15"}


class PackagesTest(unittest.TestCase):
    def asked_by(self, verb):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for command, text in STUBS.items():
                (folder / command).write_text(f"#!/bin/sh\n{text}\n")
                (folder / command).chmod(0o755)
            environment = {"PATH": f"{folder}:/usr/bin:/bin", "ASKED": str(folder / "asked"), "HOME": name}
            done = subprocess.run([tree.ROOT / "dev", verb], env=environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("could not install", done.stdout)
            return set((folder / "asked").read_text().split())

    def test_running_postrider_does_not_need_what_only_tests_need(self):
        for verb in ("up", "build"):
            asked = self.asked_by(verb)
            self.assertLessEqual(FOR_ALL, asked, verb)
            self.assertFalse(ONLY_FOR_TESTS & asked, verb)

    def test_running_postrider_needs_what_builds_its_pages(self):
        packages = (tree.ROOT / "tools" / "packages").read_text().splitlines()
        self.assertLessEqual({"nodejs node", "npm npm"}, set(packages))

    def test_tests_need_both_lists(self):
        for verb in ("test", "check", "postgres"):
            self.assertLessEqual(FOR_ALL | ONLY_FOR_TESTS, self.asked_by(verb), verb)

    def test_a_toolchain_that_is_present_is_not_installed(self):
        asked = self.asked_by("test")
        for package, command in (("nodejs", "node"), ("rustc-web", "rustc"), ("default-jdk-headless", "javac")):
            is_present = any(os.access(f"{folder}/{command}", os.X_OK) for folder in ("/usr/bin", "/bin"))
            self.assertEqual(package in asked, not is_present, package)


if __name__ == "__main__":
    unittest.main()
