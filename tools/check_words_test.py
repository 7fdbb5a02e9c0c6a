#!/usr/bin/python3
import unittest

import check_words


def words(text):
    return [word for _, word, _ in check_words.find(text)]


class Words(unittest.TestCase):
    def test_retired_words_are_found_in_any_case(self):
        self.assertEqual(words("Nobody gave up for good."), ["Nobody", "gave up", "for good"])

    def test_words_of_the_field_stay(self):
        self.assertEqual(words("An attempt in flight; connection refused; the takeover of a lease."), [])

    def test_a_word_inside_another_is_not_found(self):
        self.assertEqual(words("wishbone, retelling, in-flight"), [])

    def test_only_strings_and_comments_of_sql_are_read(self):
        prose = check_words.only(check_words.SQL_TEXT, "select answer -- nobody\nfrom a where b = 'for good'")
        self.assertEqual(words(prose), ["nobody", "for good"])

    def test_comments_and_strings_of_cpp_are_read_and_names_are_not(self):
        text = 'int tell();  // nobody answers; see tell() and Door::wish\nlog("given up: x", "answered");'
        self.assertEqual(words(check_words.cpp_prose("a.cpp", text)), ["nobody", "answers", "given up"])
        self.assertEqual(words(check_words.cpp_prose("a_test.cpp", text)), ["nobody", "answers"])

    def test_docstrings_and_comments_of_python_are_read(self):
        prose = check_words.only(check_words.PYTHON_TEXT, 'def answer():\n    """Tells\n    all."""\n    x = "wish"  # door')
        self.assertEqual(words(prose), ["Tells", "door"])

    def test_code_in_pages_is_not_read(self):
        prose = check_words.CODE.sub(check_words.blank, "`give up`\n```text\nnobody\n```\n[a](tell)\nsomebody\n")
        self.assertEqual(words(prose), ["somebody"])


if __name__ == "__main__":
    unittest.main()
