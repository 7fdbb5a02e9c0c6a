#!/usr/bin/python3
"""`./dev schema`: migrates a throwaway database and writes sql/schema.sql and sql/columns.txt from it.

usage: write_schema.py [--check]     --check: write nothing, fail if either file would change

Nothing needs to be built for it: a build reads sql/columns.txt.
"""

import pathlib
import subprocess
import sys

import embed_sql
import tree

sys.path.insert(0, str(tree.ROOT / "tests"))
from harness.postgres import Postgres, run_sql  # noqa: E402

BUCKETS = "64"
# What `postrider migrate` creates before the first migration.
FOUNDATION = ("create_schema", "create_migration")


def migrate(url):
    texts = {statement.name: statement.text
             for statement in embed_sql.statements(tree.ROOT / "src/postrider/pg/migrate.sql")}
    for name in FOUNDATION:
        run_sql(url, texts[name])
    for migration in embed_sql.migrations(tree.ROOT / "sql" / "migrations"):
        run_sql(url, "set search_path = postrider;\n" + migration.text.replace("{{buckets}}", BUCKETS))


def printed_by(tool, url):
    done = subprocess.run([sys.executable, str(tree.ROOT / "tools" / tool), url], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return done.stdout


def statements_that_see_new_columns(url, columns):
    """Statements whose result changes when a migration adds a column, which ends those that another node has prepared."""
    for (table,) in run_sql(url, """select relname from pg_class where relnamespace = 'postrider'::regnamespace
                                      and relkind in ('r', 'p') and not relispartition"""):
        run_sql(url, f'alter table postrider."{table}" add added_by_a_migration int')
    changed = set(printed_by("describe_sql.py", url).splitlines()) - set(columns.splitlines())
    return sorted(line.split()[0] for line in changed)


def generate():
    """{file: text}"""
    server = Postgres()
    try:
        server.create("postrider")
        url = server.url("postrider")
        migrate(url)
        made = {tree.ROOT / "sql" / file: printed_by(tool, url)
                for file, tool in (("schema.sql", "dump_schema.py"), ("columns.txt", "describe_sql.py"))}
        if open_ended := statements_that_see_new_columns(url, made[tree.ROOT / "sql" / "columns.txt"]):
            sys.exit(f"these statements return all columns of a table; list the columns: {', '.join(open_ended)}")
        return made
    finally:
        server.close()


def main():
    drifted = []
    for path, text in generate().items():
        if path.read_text(encoding="utf-8") == text:
            continue
        drifted.append(path.name)
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
    if "--check" in sys.argv and drifted:
        sys.exit(f"sql/{' and sql/'.join(drifted)} no longer match the migrations and statements: run ./dev schema")


if __name__ == "__main__":
    main()
