#!/usr/bin/python3
"""Prints the columns of every embedded statement as sql/columns.txt keeps them.

usage: describe_sql.py DATABASE_URL     a database with the migrated schema

Postgres itself describes each statement, so the generated code expects what the server returns. `./dev schema` writes
sql/columns.txt, and `./dev check` fails if a statement or the schema has drifted from it.
"""

import ctypes
import ctypes.util
import pathlib
import sys

import embed_sql
import typed_sql

SOURCES = pathlib.Path(__file__).resolve().parents[1] / "src" / "postrider"
COMMAND_OK, TUPLES_OK = 1, 2
# An enum reaches C++ as its label.
TYPE_NAME = "select case when typtype = 'e' then 'text' else format_type(oid, null) end from pg_type where oid = "


class Connection:
    def __init__(self, url):
        self.libpq = ctypes.CDLL(ctypes.util.find_library("pq"))
        for name in ("PQconnectdb", "PQexec", "PQprepare", "PQdescribePrepared"):
            getattr(self.libpq, name).restype = ctypes.c_void_p
        for name in ("PQfname", "PQgetvalue", "PQerrorMessage"):
            getattr(self.libpq, name).restype = ctypes.c_char_p
        self.libpq.PQftype.restype = ctypes.c_uint
        self.conn = ctypes.c_void_p(self.libpq.PQconnectdb(url.encode()))
        self.types = {}
        self.result("PQexec", b"set search_path = postrider")

    def result(self, call, *arguments):
        result = ctypes.c_void_p(getattr(self.libpq, call)(self.conn, *arguments))
        if self.libpq.PQresultStatus(result) not in (COMMAND_OK, TUPLES_OK):
            raise RuntimeError(self.libpq.PQerrorMessage(self.conn).decode().strip())
        return result

    def type_name(self, oid):
        if oid not in self.types:
            result = self.result("PQexec", (TYPE_NAME + str(oid)).encode())
            self.types[oid] = self.libpq.PQgetvalue(result, 0, 0).decode()
        return self.types[oid]

    def columns(self, name, text):
        """[(column, type)]."""
        self.result("PQprepare", name.encode(), text.encode(), 0, None)
        result = self.result("PQdescribePrepared", name.encode())
        return [(self.libpq.PQfname(result, i).decode(), self.type_name(self.libpq.PQftype(result, i)))
                for i in range(self.libpq.PQnfields(result))]


def describe(url):
    connection = Connection(url)
    yield "# Written by `./dev schema`: statement, digest of its text, columns. Do not edit."
    for path in sorted(SOURCES.rglob("*.sql")):
        for statement in embed_sql.statements(path):
            name = f"{path.relative_to(SOURCES).parts[0]}.{path.stem}.{statement.name}"
            try:
                columns = ", ".join(f"{column} {kind}" for column, kind in connection.columns(name, statement.text))
            except RuntimeError as error:
                sys.exit(f"{name}: {error}")
            yield f"{name} {typed_sql.digest(statement.text)} {columns}".rstrip()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for line in describe(sys.argv[1]):
        print(line)


if __name__ == "__main__":
    main()
