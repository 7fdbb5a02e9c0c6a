#!/usr/bin/python3
"""Tests of check_commits.py, in repositories of their own."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent
GOOD = "Close idle connections\n\nThey kept descriptors open."


class CheckCommitsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "project"
        self.root.mkdir()
        self.git("init", "--quiet")
        self.commit("whatever came before is not checked.")
        (self.root / "tools").mkdir()
        for name in ["tree.py", "check_commits.py"]:
            shutil.copy(TOOLS / name, self.root / "tools")
        self.git("add", ".")
        self.commit("added the check itself.")

    def git(self, *arguments, root=None):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        environment |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        identity = ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *arguments], cwd=root or self.root, env=environment, check=True, capture_output=True)

    def commit(self, message):
        self.git("commit", "--quiet", "--allow-empty", "--message", message)

    def check(self, root=None):
        done = subprocess.run([sys.executable, "tools/check_commits.py"], cwd=root or self.root, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def assert_rejected(self, message, reason):
        self.commit(message)
        code, output = self.check()
        self.assertEqual(code, 1)
        self.assertIn(reason, output)

    def test_commits_up_to_the_check_itself_may_have_any_message(self):
        self.assertEqual(self.check(), (0, ""))

    def test_an_imperative_subject_with_a_body_passes(self):
        self.commit(GOOD)
        self.commit("Process addresses in order\n\nThe receiver expects it.\n\nMore than one paragraph is fine.")
        self.assertEqual(self.check(), (0, ""))

    def test_a_subject_over_72_characters_is_rejected(self):
        self.commit("A" * 72 + "\n\nThat long is allowed.")
        self.assertEqual(self.check(), (0, ""))
        self.assert_rejected("A" * 73 + "\n\nThat long is not.", "73 characters")

    def test_a_subject_that_is_not_imperative_is_rejected(self):
        for subject in ["Fixed the leak", "Fixes the leak", "Fixing the leak", "The leak is fixed", "fix the leak", "Fix the leak."]:
            self.git("reset", "--quiet", "--hard")
            self.assert_rejected(subject + "\n\nIt leaked.", "the subject must start")
            self.git("reset", "--quiet", "--hard", "HEAD~1")

    def test_a_missing_body_is_rejected(self):
        self.assert_rejected("Close idle connections", "the body must say why")

    def test_a_merge_needs_no_body(self):
        self.git("checkout", "--quiet", "-b", "side")
        self.commit(GOOD + " On the side.")
        self.git("checkout", "--quiet", "-")
        self.commit(GOOD)
        self.git("merge", "--quiet", "--no-ff", "--message", "Merge branch side", "side")
        self.assertEqual(self.check(), (0, ""))

    def test_a_shallow_clone_checks_what_it_has(self):
        self.commit("old, and not in the clone")
        self.commit(GOOD)
        clone = self.root.parent / "clone"
        self.git("clone", "--quiet", "--depth", "1", f"file://{self.root}", str(clone), root=self.root.parent)
        self.assertEqual(self.check(clone), (0, ""))

    def test_a_detached_head_is_checked(self):
        self.git("checkout", "--quiet", "--detach")
        self.commit(GOOD)
        self.assertEqual(self.check(), (0, ""))
        self.assert_rejected("Close idle connections", "the body must say why")

    def test_without_history_it_passes(self):
        shutil.rmtree(self.root / ".git")
        self.assertEqual(self.check(), (0, ""))


if __name__ == "__main__":
    unittest.main()
