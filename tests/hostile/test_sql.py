"""Hostile values in every argument of every SQL function that a role of postrider's may call, and in every column of every
row that an application can write into an outbox."""

import itertools
import random
import time
import uuid

import psycopg2
import pytest

from harness.hostile import LONG, TEXTS, some, shown
from harness.postgres import run_sql
from harness.relay import install
from harness.wait import wait_until

NUMBERS = itertools.count(1)
SQL_TEXTS = [text for text in TEXTS if "\x00" not in text]
STATEMENT_SECONDS = 20

BY_TYPE = {
    "text": SQL_TEXTS + [LONG],
    "json": ["{}", "1", '"\\u0000"', '{"a":' * 60 + "1" + "}" * 60, '"' + LONG + '"', "[" + "1," * 50_000 + "1]"],
    "jsonb": ["{}", "1", '{"a":' * 60 + "1" + "}" * 60, '"' + LONG + '"'],
    "timestamp with time zone": ["infinity", "-infinity", "4713-01-01 BC", "294276-12-31", "1970-01-01", "9999-12-31"],
    "interval": ["0", "-1 day", "178000000 years", "-178000000 years", "1 microsecond"],
    "integer": ["0", "-1", "2147483647", "-2147483648"],
    "bigint": ["0", "-1", "9223372036854775807", "-9223372036854775808"],
    "double precision": ["NaN", "Infinity", "-1", "1e308"],
    "boolean": ["true", "false"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
    "xid8": ["0", "1", "18446744073709551615"],
    "pg_lsn": ["0/0", "FFFFFFFF/FFFFFFFF"],
    "bytea": ["", "\\x00", "\\x" + "ff" * 1000],
    "text[]": ["{}", "{NULL}", '{""}', "{a,a}", "{" + ",".join(["x"] * 20_000) + "}", "{{a,b},{c,d}}"],
    "uuid[]": ["{}", "{NULL}", "{00000000-0000-0000-0000-000000000000}"],
}


def superuser_of(url):
    return url.replace("postrider@", "postgres@")


class Session:
    """A connection of one role, on which no statement may fail in a way that says the server is at fault."""

    def __init__(self, url, role=None):
        self._connection = psycopg2.connect(url)
        self._connection.autocommit = True
        self.wrong = []
        self.run("", f"set statement_timeout = '{STATEMENT_SECONDS}s'")
        if role is not None:
            self.run("", f"set role {role}")

    def run(self, what, statement, arguments=None):
        with self._connection.cursor() as cursor:
            try:
                cursor.execute(statement, arguments)
            except psycopg2.Error as error:
                code = error.pgcode or "no code"
                if code == "no code" or code.startswith(("XX", "57", "58", "53")):
                    self.wrong.append(f"{what}: {code} {str(error)[:200]}")

    def close(self):
        self._connection.close()


# ── functions ──

FUNCTIONS = """
select p.proname, coalesce(p.proargnames[1:p.pronargs], '{}'), array(select format_type(t, null) from unnest(p.proargtypes) t)
from pg_proc p
where p.pronamespace = 'postrider'::regnamespace and p.prokind = 'f' and p.prorettype <> 'trigger'::regtype
  and has_function_privilege(%s, p.oid, 'execute')
order by p.oid
"""


def good_arguments(scene):
    event = scene.api.publish("hostile", "a.b", {})["id"]
    delivery = wait_until(lambda: scene.api.get(f"/v1/tenants/hostile/events/{event}").json["deliveries"], "a delivery")[0]
    return {"tenant": "hostile", "type": "a.b", "data": "{}", "worker": "w", "source": "s", "max": "10", "lease": "1 minute",
            "ids": "{}", "delivery": delivery["id"], "reason": "a test", "endpoint": delivery["endpoint_id"]}


GRANTS = {"postrider_publisher": "grant_outbox", "postrider_consumer": "grant_consumer", "postrider_support": "grant_support",
          "postrider_support_payloads": "grant_support"}


def create_role(node, role):
    """As an administrator does where postrider may not: roles are the whole server's."""
    superuser = superuser_of(node.database_url)
    if not run_sql(superuser, "select from pg_roles where rolname = %s", [role]):
        run_sql(superuser, f"create role {role}")
    node.sql(f"select postrider.{GRANTS[role]}()")


@pytest.mark.parametrize("role", GRANTS)
def test_no_argument_of_a_function_harms_the_node_or_others(scene, postgres, role):
    create_role(scene.node, role)
    scene.hostile_tenant("hostile")
    scene.api.post("/v1/sources", {"id": "s", "provider": "github"}).expect(201)
    good = good_arguments(scene)
    superuser = superuser_of(scene.node.database_url)
    session, called = Session(superuser, role), 0
    for name, names, types in run_sql(superuser, FUNCTIONS, [role]):
        known = [good.get(argument) for argument in names] if names else [None] * len(types)
        marks = ", ".join(f"%s::{kind}" for kind in types)
        for at, kind in enumerate(types):
            for value in [None, *some(BY_TYPE.get(kind, []), next(NUMBERS), 14)]:
                arguments = [*known[:at], value, *known[at + 1:]]
                session.run(f"{name} argument {at + 1} = {shown(value)}", f"select * from postrider.{name}({marks})", arguments)
                called += 1
    session.close()
    assert called > 20, "no function was found"
    assert not session.wrong, f"{len(session.wrong)} of {called}:\n" + "\n".join(session.wrong[:20])
    scene.finish()


# ── rows ──

COLUMNS = """
select column_name, case when data_type = 'ARRAY' then substr(udt_name, 2) || '[]' else data_type end
from information_schema.columns
where table_schema = 'postrider' and table_name = %s and is_updatable = 'YES'
order by ordinal_position
"""


def columns(url, table):
    return [(name, kind) for name, kind in run_sql(url, COLUMNS, [table])]


def fresh_id():
    """As publish() makes them: an id carries its time, and each day has partitions of its own."""
    milliseconds = int(time.time() * 1000)
    return str(uuid.UUID(int=milliseconds << 80 | 7 << 76 | 2 << 62 | random.getrandbits(62)))


def insert_hostile_rows(session, url):
    """One row for each column and value; those that violate the table's constraints are skipped."""
    inserted = 0
    for column, kind in columns(url, "outbox"):
        for value in [None, *some(BY_TYPE.get(kind, []), next(NUMBERS), 60)]:
            row = {"event_id": fresh_id(), "tenant_id": "hostile", "type": "a.b", "data": "{}", column: value}
            names = ", ".join(row)
            marks = ", ".join("%s" if name != column else f"%s::{kind}" for name in row)
            session.run(f"{column} = {shown(value)}", f"insert into postrider.outbox ({names}) values ({marks})", list(row.values()))
            inserted += 1
    return inserted


def application(postgres, scene, name):
    """Another database with the outbox installed, and registered."""
    postgres.create(name)
    url = install(postgres.url(name))
    scene.api.call("PUT", f"/v1/outboxes/{name.replace('_', '-')}", {"database_url": url}).expect(201)
    return url


def publish_and_wait(scene, url, hook, count=3):
    sent = [run_sql(url, "select postrider.publish('good', 'a.b', '{}')")[0][0] for _ in range(count)]
    hook.wait_for(sent, 90)


@pytest.fixture
def databases(postgres):
    """Names of databases that are dropped after the test, when the node is gone."""
    made = []
    yield lambda: made.append(f"hostile_{next(NUMBERS)}") or made[-1]
    for name in made:
        postgres.drop(name)


def test_no_row_in_postriders_own_outbox_harms_the_node_or_others(scene):
    scene.hostile_tenant("hostile")
    good = scene.hostile_tenant("good")
    url = superuser_of(scene.node.database_url)
    session = Session(url)
    assert insert_hostile_rows(session, url) > 50
    session.close()
    assert not session.wrong, session.wrong[:20]
    publish_and_wait(scene, url, good)
    scene.finish()


def test_no_row_in_another_databases_outbox_harms_the_node_or_others(scene, postgres, databases):
    scene.hostile_tenant("hostile")
    good = scene.hostile_tenant("good")
    attacked, other = application(postgres, scene, databases()), application(postgres, scene, databases())
    session = Session(superuser_of(attacked))
    session.run("no trigger", "drop trigger outbox_event_form on postrider.outbox")  # its owner can
    assert insert_hostile_rows(session, superuser_of(attacked)) > 50
    session.close()
    assert not session.wrong, session.wrong[:20]
    publish_and_wait(scene, other, good)
    publish_and_wait(scene, attacked, good)
    scene.finish()


def test_no_state_of_another_databases_outbox_harms_the_node_or_others(scene, postgres, databases):
    """Its one-row tables are emptied, or hold whatever their columns take."""
    good = scene.hostile_tenant("good")
    attacked, other = application(postgres, scene, databases()), application(postgres, scene, databases())
    superuser = superuser_of(attacked)
    tables = [name for name, in run_sql(superuser, """select table_name from information_schema.columns
        where table_schema = 'postrider' and column_name = 'singleton' order by 1""")]
    assert tables
    session = Session(superuser)
    for table in tables:
        session.run(table, f"create table postrider.kept_{table} as table postrider.{table}")
        for column, kind in columns(superuser, table):
            for value in some(BY_TYPE.get(kind, []), next(NUMBERS), 6):
                session.run(f"{table}.{column} = {shown(value)}", f"update postrider.{table} set {column} = %s::{kind}", [value])
            publish_and_wait(scene, other, good, 1)
        session.run(table, f"delete from postrider.{table}")
        publish_and_wait(scene, other, good, 1)
        session.run(table, f"insert into postrider.{table} select * from postrider.kept_{table}")
    session.close()
    assert not session.wrong, session.wrong[:20]
    scene.finish()
