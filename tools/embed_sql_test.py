#!/usr/bin/python3
import pathlib
import tempfile
import unittest
from unittest import mock

import embed_sql
import typed_sql


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
            return [(statement.name, statement.text) for statement in embed_sql.statements(path)]

    def refused(self, text, reason):
        with self.assertRaisesRegex(embed_sql.SqlError, reason):
            self.parse(text)

    def test_each_name_starts_a_statement(self):
        text = "-- About the file.\n\n-- name: first\n-- $1 id\nselect $1::int;\n\n-- name: second\nselect ';'\n"
        self.assertEqual(self.parse(text), [("first", "select $1::int"), ("second", "select ';'")])

    def test_a_part_is_written_once_and_used_in_several_statements(self):
        text = ("-- part: columns\n-- Of t.\na, b\n-- part: rows\n{{columns}} from t\n"
                "-- name: first\nselect {{rows}}\n-- name: second\nselect {{columns}} from u")
        self.assertEqual(self.parse(text), [("first", "select a, b from t"), ("second", "select a, b from u")])

    def test_a_part_of_another_file(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for file, text in (("publish/fanout.sql", "-- part: targets\nselect 1\n-- name: a\nselect 2"),
                               ("delivery/settle/sweep.sql", "-- name: queue\nwith t as ({{publish/fanout.targets}}) select 3")):
                (root / file).parent.mkdir(parents=True)
                (root / file).write_text(text)
            with mock.patch.object(embed_sql, "SOURCES", root):
                found = embed_sql.statements(root / "delivery/settle/sweep.sql")
        self.assertEqual([statement.text for statement in found], ["with t as (select 1) select 3"])

    def test_what_cannot_be_right_is_refused(self):
        self.refused("-- name: a\nselect {{b}}", "no part `{{b}}`")
        self.refused("-- part: b\n{{b}}\n-- name: a\nselect {{b}}", "contains itself")
        self.refused("select 1", "no `-- name:` line")
        self.refused("select 1;\n-- name: a\nselect 2", "before the first")
        self.refused("-- name: a\nselect 1\n-- name: a\nselect 2", "`a` is defined twice")
        self.refused("-- name: a\nselect 1; select 2", "more than one statement")
        self.refused("-- name: a\n-- nothing\n", "`a` is empty")
        self.refused("-- name: NotSnake\nselect 1", "not a snake_case name")
        self.refused("-- name: a\nselect 1 /* open", "does not end")


class Parameters(unittest.TestCase):
    def number(self, text):
        statement = embed_sql.number_parameters("find", text, "")
        return statement.text, statement.parameters

    def test_names_are_numbered_in_order_and_keep_their_type(self):
        self.assertEqual(
            self.number("select :id::uuid, :since?::timestamptz, :id, ':no'"),
            ("select $1::uuid, $2::timestamptz, $1::uuid, ':no'",
             [("id", "base::Uuid"), ("since", "std::optional<base::Timestamp>")]))
        self.assertEqual(self.number("select any(:ids::uuid[])")[1], [("ids", "pg::ArrayOf<base::Uuid>")])

    def test_casts_and_slices_are_no_parameters(self):
        self.assertEqual(self.number("select a::text, path[1:n] from t"), ("select a::text, path[1:n] from t", []))

    def test_what_cannot_be_right_is_refused(self):
        for text, reason in (("select :id", "needs a cast"), ("select :id::uuid, :id::text", "both uuid and text"),
                             ("select :at::date", "no C\\+\\+ type"), ("select :new::text", "cannot be a C\\+\\+ name"),
                             ("select :find::text", "the name of its statement")):
            with self.assertRaisesRegex(typed_sql.TypeErrorInSql, reason):
                self.number(text)


class Columns(unittest.TestCase):
    def embed(self, comments, columns):
        statement = embed_sql.number_parameters("find_rows", "select 1", comments)
        described = {"registry.keys.find_rows": (typed_sql.digest("select 1"), columns)}
        return embed_sql.embed_statement("registry.keys.find_rows", statement, described, typed_sql.Structures())

    def test_are_optional_unless_marked(self):
        columns = [("id", "uuid"), ("reason", "text")]
        for comments, id_type, reason_type in (
                ("-- not null: id", "base::Uuid", "std::optional<std::string_view>"),
                ("-- not null: all but reason", "base::Uuid", "std::optional<std::string_view>"),
                ("-- not null: all", "base::Uuid", "std::string_view")):
            text = self.embed(comments, columns)
            self.assertIn(f"    {id_type} id;\n    {reason_type} reason;\n", text, comments)

    def test_of_arrays_list_where_an_element_may_be_null(self):
        text = self.embed("-- not null: all\n-- null elements: ends", [("starts", "integer[]"), ("ends", "integer[]")])
        self.assertIn("    std::vector<int32_t> starts;\n    std::vector<std::optional<int32_t>> ends;\n", text)
        with self.assertRaisesRegex(typed_sql.TypeErrorInSql, "not an array column"):
            self.embed("-- null elements: id", [("id", "uuid")])

    def test_keep_their_place_beside_one_without_a_value(self):
        text = self.embed("-- not null: id", [("record_change", "void"), ("id", "uuid")])
        self.assertIn("return {rows.get<base::Uuid>(row, 1)};", text)
        self.assertNotIn("record_change", text)

    def test_statements_that_name_the_same_row_share_it(self):
        structures = typed_sql.Structures()
        columns = [("id", "uuid")]
        first, second, other = (embed_sql.number_parameters(name, "select 1", "-- row: found\n-- not null: id")
                                for name in ("first", "second", "other"))
        self.assertIn("struct FoundRow {", structures.of(first, columns, ""))
        self.assertNotIn("struct FoundRow {", structures.of(second, columns, ""))
        with self.assertRaisesRegex(typed_sql.TypeErrorInSql, "not those of the other"):
            structures.of(other, [("id", "text")], "")

    def test_what_cannot_be_right_is_refused(self):
        for comments, columns, reason in (
                ("-- not null: ide", [("id", "uuid")], "which is not a column"),
                ("-- not null: all", [("?column?", "integer")], "cannot be a C"),
                ("-- not null: a", [("a", "integer"), ("a", "integer")], "same name"),
                ("-- not null: a", [("a", "interval")], "cast column `a`")):
            with self.assertRaisesRegex(typed_sql.TypeErrorInSql, reason):
                self.embed(comments, columns)

    def test_a_statement_that_changed_must_be_described_again(self):
        statement = embed_sql.number_parameters("find_rows", "select 2", "-- not null: all")
        described = {"registry.keys.find_rows": (typed_sql.digest("select 1"), [("a", "integer")])}
        with self.assertRaisesRegex(embed_sql.SqlError, "has changed since"):
            embed_sql.embed_statement("registry.keys.find_rows", statement, described, typed_sql.Structures())


class Migrations(unittest.TestCase):
    def parse(self, *names, oldest="-- oldest binary: 1"):
        with tempfile.TemporaryDirectory() as folder:
            for name in names:
                file = pathlib.Path(folder) / name
                file.parent.mkdir(exist_ok=True)
                file.write_text(f"{oldest}\nselect '{file.stem}';")
            return embed_sql.migrations(pathlib.Path(folder))

    def test_versions_follow_each_other(self):
        self.assertEqual([each.version for each in self.parse("0001_a.sql", "0002_b.sql")], [1, 2])
        for wrong in (["0002_a.sql"], ["0001_a.sql", "0003_b.sql"], ["0001_a.sql", "0001_b.sql"], ["1_a.sql"],
                      ["0001_a.txt"], ["0001_a.sql/01.sql"]):
            with self.assertRaises(embed_sql.SqlError):
                self.parse(*wrong)

    def test_the_files_of_a_folder_are_one_migration_in_order(self):
        first, second = self.parse("0001_schema/02_b.sql", "0001_schema/01_a.sql", "0002_more.sql")
        self.assertEqual((first.version, first.name, first.text.split()),
                         (1, "schema", ["select", "'01_a';", "select", "'02_b';"]))
        self.assertEqual(second[:2], (2, "more"))

    def test_a_later_migration_names_the_oldest_binary_that_runs_on_it(self):
        self.assertEqual([each.oldest_binary for each in self.parse("0001_a.sql", "0002_b.sql")], [1, 1])
        for wrong in ("", "-- oldest binary: 0", "-- oldest binary: 3", "-- oldest binary: next"):
            with self.assertRaisesRegex(embed_sql.SqlError, "0002_b.sql needs a line"):
                self.parse("0001_a.sql", "0002_b.sql", oldest=wrong)


if __name__ == "__main__":
    unittest.main()
