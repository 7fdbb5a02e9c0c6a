#!/usr/bin/python3
import pathlib
import tempfile
import unittest

import embed_sql


class StripComments(unittest.TestCase):
    def check(self, text, wanted):
        self.assertEqual(embed_sql.strip_comments(text), wanted)

    def test_comments_go_and_literals_stay(self):
        self.check("select 1 -- one\n\n  , '-- no; ''comment' /* a /* nested */ one */, 2", "select 1\n  , '-- no; ''comment'  , 2")
        self.check("select E'\\'--x', \"a--b\"", "select E'\\'--x', \"a--b\"")

    def test_dollar_bodies_are_kept_as_they_are(self):
        body = "$$\n  -- why\n\n  select 1;  \n$$"
        self.check(f"create function f() as {body} -- end", f"create function f() as {body}")
        self.check("select $a$ $$ -- x $$ $a$ -- y", "select $a$ $$ -- x $$ $a$")

    def test_parameters_are_no_dollar_quotes(self):
        self.check("select $1::text, -- first\n  $2::text", "select $1::text,\n  $2::text")


class Statements(unittest.TestCase):
    def parse(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "settle.sql"
            path.write_text(text)
            return embed_sql.statements(path)

    def refused(self, text, reason):
        with self.assertRaisesRegex(embed_sql.SqlError, reason):
            self.parse(text)

    def test_each_name_starts_a_statement(self):
        text = "-- About the file.\n\n-- name: first\n-- $1 id\nselect $1::int;\n\n-- name: second\nselect ';'\n"
        self.assertEqual(self.parse(text), [("first", "select $1::int"), ("second", "select ';'")])

    def test_what_cannot_be_right_is_refused(self):
        self.refused("select 1", "no `-- name:` line")
        self.refused("select 1;\n-- name: a\nselect 2", "before the first")
        self.refused("-- name: a\nselect 1\n-- name: a\nselect 2", "`a` is there twice")
        self.refused("-- name: a\nselect 1; select 2", "more than one statement")
        self.refused("-- name: a\n-- nothing\n", "`a` is empty")
        self.refused("-- name: NotSnake\nselect 1", "not a snake_case name")
        self.refused("-- name: a\nselect 1 /* open", "does not end")


class Migrations(unittest.TestCase):
    def parse(self, *names):
        with tempfile.TemporaryDirectory() as folder:
            for name in names:
                (pathlib.Path(folder) / name).write_text("select 1;")
            return [version for version, _, _ in embed_sql.migrations(pathlib.Path(folder))]

    def test_versions_follow_each_other(self):
        self.assertEqual(self.parse("0001_a.sql", "0002_b.sql"), [1, 2])
        for wrong in (["0002_a.sql"], ["0001_a.sql", "0003_b.sql"], ["0001_a.sql", "0001_b.sql"], ["1_a.sql"]):
            with self.assertRaises(embed_sql.SqlError):
                self.parse(*wrong)


if __name__ == "__main__":
    unittest.main()
