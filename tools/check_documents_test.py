#!/usr/bin/python3
import unittest

import check_documents
from harness import documents


def problem(text):
    [block] = documents.parse("docs/page.md", text)
    return check_documents.problem_of(block)


class Blocks(unittest.TestCase):
    def test_commands_and_samples_need_no_comment(self):
        for language in ("sh", "sql", "http", "toml", "text", "json", "ini"):
            self.assertIsNone(problem(f"```{language}\nx\n```\n"), language)

    def test_a_block_without_a_language_is_rejected(self):
        self.assertIn("name its language", problem("```\nx\n```\n"))

    def test_a_language_that_is_not_run_needs_a_reason(self):
        self.assertIn("not run", problem("```js\nx\n```\n"))
        self.assertIsNone(problem("<!-- not run: needs a browser -->\n```js\nx\n```\n"))

    def test_a_reason_is_not_empty(self):
        self.assertIn("give the reason", problem("<!-- not run: -->\n```sh\nx\n```\n"))

    def test_a_test_that_runs_a_block_exists_and_names_the_page(self):
        self.assertIn("there is no", problem("<!-- run by: tests/e2e/missing.py -->\n```sh\nx\n```\n"))
        self.assertIn("does not mention", problem("<!-- run by: tests/e2e/test_refanout.py -->\n```sh\nx\n```\n"))

    def test_a_comment_that_is_not_directly_above_does_not_count(self):
        self.assertIn("not run", problem("<!-- not run: needs a browser -->\n\n```js\nx\n```\n"))

    def test_fences_that_are_not_found_are_reported(self):
        self.assertEqual(check_documents.stray_fences("```sh\nx\n```\n"), [])
        self.assertEqual(check_documents.stray_fences("a\n```sh\nx\n"), [2])
        self.assertEqual(check_documents.stray_fences("- a\n  ```sh\n  x\n  ```\n"), [2, 4])


if __name__ == "__main__":
    unittest.main()
