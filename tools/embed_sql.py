#!/usr/bin/env python3
"""Embeds SQL files in generated C++ headers.

    embed_sql.py FILE FOLDER OUT           the statements of one file in namespace postrider::FOLDER::sql, each with the
                                           types of its parameters and columns (typed_sql.py says how)
    embed_sql.py --all SOURCE_DIR OUT      the statements of all .sql files below SOURCE_DIR in one array, for tests
    embed_sql.py --migrations DIR OUT      all DIR/NNNN_name.sql and DIR/NNNN_name/*.sql as pg::Migration, in order
    embed_sql.py --schema FILE OUT         the statements of a dump and the names of its tables, for repairs

A statement starts at a line `-- name: snake_name` and ends at the next one. Comments are left out, except inside
dollar-quoted bodies.

Text that several statements have in common is written once, after a line `-- part: snake_name`, and `{{snake_name}}` in a
statement stands for it. `{{folder/file.snake_name}}` is a part of another file below src/postrider.
"""

import collections
import pathlib
import re
import sys

import typed_sql

NAME_LINE = re.compile(r"^--\s*(?P<kind>name|part):\s*(?P<name>.*?)\s*$", re.MULTILINE)
PART = re.compile(r"\{\{(?:(?P<folder>[a-z_/]+)/(?P<file>[a-z_]+)\.)?(?P<name>[a-z][a-z0-9_]*)\}\}")
SNAKE_NAME = re.compile(r"[a-z][a-z0-9_]*")
MIGRATION = re.compile(r"(\d{4})_([a-z0-9_]+)(?:\.sql)?")
OLDEST_BINARY = re.compile(r"^-- oldest binary: (\d+)$", re.MULTILINE)
LITERAL = re.compile(
    r"""(?P<literal>[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(?P<tag>[A-Za-z_]\w*)?\$.*?\$(?(tag)(?P=tag))\$)"""
    r"|(?P<line_comment>--[^\n]*)|(?P<block_comment>/\*)",
    re.DOTALL,
)
# By default, every role may call a new function.
REVOKE = """;
do $revoke$
declare
  made regprocedure;
begin
  for made in select oid from pg_proc
              where pronamespace = 'postrider'::regnamespace and xmin = pg_current_xact_id()::xid loop
    execute 'revoke execute on function ' || made || ' from public';
  end loop;
end
$revoke$"""
ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "postrider"
COLUMNS = ROOT / "sql" / "columns.txt"
BLOCK_EDGE = re.compile(r"/\*|\*/")


class SqlError(Exception):
    pass


# parameters: [(name, C++ type)], or None where the text still numbers them.
Statement = collections.namedtuple("Statement", "name text parameters comments")
Migration = collections.namedtuple("Migration", "version name text oldest_binary")


def pieces(text):
    """Yields (is_literal, text) without comments; a literal is a quoted string, a quoted name or a dollar body."""
    at = 0
    while match := LITERAL.search(text, at):
        yield False, text[at : match.start()]
        at = match.end()
        if match["literal"]:
            yield True, match["literal"]
        elif match["block_comment"]:
            depth = 1
            while depth:
                edge = BLOCK_EDGE.search(text, at)
                if not edge:
                    raise SqlError("a /* comment does not end")
                depth += 1 if edge[0] == "/*" else -1
                at = edge.end()
            yield False, " "
    yield False, text[at:]


def strip_comments(text):
    joined = []
    for is_literal, piece in pieces(text):
        if joined and joined[-1][0] == is_literal:
            joined[-1][1] += piece
        else:
            joined.append([is_literal, piece])
    out = ""
    for is_literal, piece in joined:
        if not is_literal:
            piece = re.sub(r"[ \t]+\n", "\n", piece)
            piece = re.sub(r"\n(?:[ \t]*\n)+", "\n", piece)
        out += piece
    return out.strip()


def without_literals(text):
    return "".join(piece for is_literal, piece in pieces(text) if not is_literal)


def sections(path):
    """[(kind, name, text without comments, text with comments)] of a file; the kind is `name` or `part`."""
    source = path.read_text(encoding="utf-8")
    marks = list(NAME_LINE.finditer(source))
    if not any(mark["kind"] == "name" for mark in marks):
        raise SqlError("no `-- name:` line")
    if strip_comments(source[: marks[0].start()]):
        raise SqlError("SQL before the first `-- name:` line")
    found, names = [], set()
    for mark, following in zip(marks, marks[1:] + [None]):
        name = mark["name"]
        if not SNAKE_NAME.fullmatch(name):
            raise SqlError(f"`{name}` is not a snake_case name")
        if name in names:
            raise SqlError(f"`{name}` is defined twice")
        names.add(name)
        commented = source[mark.end() : following.start() if following else len(source)]
        text = strip_comments(commented).removesuffix(";").rstrip()
        if not text:
            raise SqlError(f"`{name}` is empty")
        found.append((mark["kind"], name, text, commented))
    return found


def with_parts(path, text, depth=0):
    """The text with its parts in place. A part may contain others."""
    def part(match):
        file = SOURCES / match["folder"] / f"{match['file']}.sql" if match["file"] else path
        found = [body for kind, name, body, _ in sections(file) if kind == "part" and name == match["name"]]
        if not found or depth > 5:
            raise SqlError(f"there is no part `{match[0]}`" if not found else f"`{match[0]}` contains itself")
        return with_parts(file, found[0], depth + 1)

    return PART.sub(part, text)


def statements(path):
    """The statements of a file, in its order."""
    found = {}
    for kind, name, text, commented in sections(path):
        if kind == "part":
            continue
        text = with_parts(path, text)
        if any(not is_literal and ";" in piece for is_literal, piece in pieces(text)):
            raise SqlError(f"`{name}` has more than one statement")
        found[name] = (text, commented)
    is_typed = typed_sql.is_typed("".join(comments for _, comments in found.values()),
                                  [without_literals(text) for text, _ in found.values()])
    return [number_parameters(name, text, comments) if is_typed else Statement(name, text, None, comments)
            for name, (text, comments) in found.items()]


def number_parameters(name, text, comments):
    return Statement(name, *typed_sql.number_parameters(name, list(pieces(text))), comments)


def migrations(folder):
    """[Migration], versions 1, 2, 3 …: NNNN_name.sql, or a folder NNNN_name whose files are one migration"""
    found = []
    for path in sorted(folder.iterdir(), key=lambda each: each.name):
        match = MIGRATION.fullmatch(path.name)
        if not match or path.is_dir() == path.name.endswith(".sql"):
            raise SqlError(f"{path.name} is neither a file NNNN_name.sql nor a folder NNNN_name")
        if int(match[1]) != len(found) + 1:
            raise SqlError(f"{path.name} should have the number {len(found) + 1:04}")
        files = sorted(path.glob("*.sql")) if path.is_dir() else [path]
        whole = "\n".join(file.read_text(encoding="utf-8") for file in files)
        version = int(match[1])
        found.append(Migration(version, match[2], strip_comments(whole), oldest_binary(path.name, version, whole)))
    return found


def oldest_binary(file, version, text):
    """The version that a binary must know to run on this schema. docs/internals/pg.md explains how to choose it."""
    if version == 1:
        return 1
    match = OLDEST_BINARY.search(text)
    if not match or not 1 <= int(match[1]) <= version:
        raise SqlError(f"{file} needs a line `-- oldest binary: N`, with N from 1 to {version}: the first migration that a "
                       "binary must know to run on this schema")
    return int(match[1])


def raw(text):
    if ')sql"' in text:
        raise SqlError('the text contains )sql"')
    return f'R"sql({text})sql"'


def header(title, include, namespace, body):
    return (
        f"// Made by tools/embed_sql.py from {title}. Do not edit.\n#pragma once\n\n"
        f'#include "{include}"\n\nnamespace {namespace} {{\n\n{body}\n}}  // namespace {namespace}\n'
    )


def embed_statement(full_name, statement, described, structures):
    if statement.parameters is None:
        return f'inline constexpr pg::Statement {statement.name}{{"{full_name}", {raw(statement.text)}}};\n\n'
    if full_name not in described:
        raise SqlError(f"`{statement.name}` is not in sql/columns.txt: run ./dev schema")
    digest, columns = described[full_name]
    if digest != typed_sql.digest(statement.text):
        raise SqlError(f"`{statement.name}` has changed since sql/columns.txt was written: run ./dev schema")
    definition = f'static constexpr pg::Statement statement{{"{full_name}", {raw(statement.text)}}};'
    return structures.of(statement, columns, definition)


def embed_statements(path, folder, described):
    structures = typed_sql.Structures()
    body = "".join(
        embed_statement(f"{folder}.{path.stem}.{statement.name}", statement, described, structures)
        for statement in statements(path)
    )
    return header(f"{folder}/{path.name}", "postrider/pg/query.hpp", f"postrider::{folder}::sql", body)


def embed_all(source_dir):
    rows = ""
    for path in sorted(source_dir.rglob("*.sql")):
        try:
            for statement in statements(path):
                name = f"{path.relative_to(source_dir).parts[0]}.{path.stem}.{statement.name}"
                rows += f'    {{"{name}", {raw(statement.text)}}},\n'
        except (SqlError, typed_sql.TypeErrorInSql) as error:
            raise SqlError(f"{path}: {error}") from None
    # The leading entry keeps the array from being empty.
    body = (
        "inline constexpr pg::Statement all_statements[] = {\n"
        f'    {{"tests.all.one", "select 1"}},\n{rows}}};\n'
    )
    return header("all .sql files", "postrider/pg/statement.hpp", "postrider::sql", body)


def embed_migrations(folder):
    found = migrations(folder)
    rows = "".join(f'    {{{each.version}, "{each.name}", {raw(each.text)}, {each.oldest_binary}}},\n' for each in found)
    array = f"inline constexpr pg::Migration migrations_array[] = {{\n{rows}}};\n" if found else ""
    span = "migrations_array" if found else ""
    body = f"{array}inline constexpr std::span<const pg::Migration> migrations{{{span}}};\n"
    return header("sql/migrations", "postrider/pg/migrate.hpp", "postrider::sql", body)


def dump_statements(text):
    """The statements of a dump made by pg_dump, in its order; each ends with `;` before an empty line."""
    found, statement = [], ""
    for is_literal, piece in pieces(text):
        while not is_literal and (end := piece.find(";\n")) >= 0:
            found.append((statement + piece[:end]).strip())
            statement, piece = "", piece[end + 2 :]
        statement += piece
    if statement.strip():
        raise SqlError("the dump does not end with a statement")
    return found


def embed_schema(path):
    found = [text + (REVOKE if text.startswith("CREATE FUNCTION") else "")
             for text in dump_statements(path.read_text(encoding="utf-8"))]
    tables = [match[1] for text in found if (match := re.match(r"CREATE TABLE postrider\.(\w+) ", text))]
    rows = "".join(f"    {raw(text)},\n" for text in found)
    names = "".join(f'    "{name}",\n' for name in tables)
    body = (f"inline constexpr const char* schema_statements[] = {{\n{rows}}};\n"
            f"inline constexpr const char* schema_tables[] = {{\n{names}}};\n")
    return header(f"sql/{path.name}", "postrider/pg/repair.hpp", "postrider::sql", body)


def main(arguments):
    if len(arguments) != 3:
        sys.exit(__doc__)
    try:
        if arguments[0] == "--all":
            text = embed_all(pathlib.Path(arguments[1]))
        elif arguments[0] == "--migrations":
            text = embed_migrations(pathlib.Path(arguments[1]))
        elif arguments[0] == "--schema":
            text = embed_schema(pathlib.Path(arguments[1]))
        else:
            path = pathlib.Path(arguments[0])
            text = embed_statements(path, arguments[1], typed_sql.read_columns(COLUMNS.read_text(encoding="utf-8")))
    except (SqlError, typed_sql.TypeErrorInSql) as error:
        sys.exit(f"{arguments[0]}: {error}")
    out = pathlib.Path(arguments[2])
    out.parent.mkdir(parents=True, exist_ok=True)
    # A header that stays the same keeps its time: sql/columns.txt changes with any statement, and most headers do not.
    if not out.exists() or out.read_text(encoding="utf-8") != text:
        out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
