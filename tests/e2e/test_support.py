"""Every line of docs/support.md, run as it stands there."""

import json
import pathlib
import re
import shlex
import subprocess

import psycopg2
import pytest

from harness import node as node_module
from harness.wait import wait_until

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "support.md"


def questions():
    """Title → {"sql": line, "sh": line, "http": line}."""
    found = {}
    for part in PAGE.read_text().split("\n## ")[1:]:
        title = part.splitlines()[0]
        lines = dict(re.findall(r"```(sql|sh|http)\n(.*)\n```", part))
        if lines:
            found[title] = lines
    return found


# What each answer must contain.
ANSWERS = {
    "Which endpoints receive `invoice.paid`?": "{endpoint}",
    "Did this endpoint receive this event?": "dead_letter",
    "Why did it fail?": "400",
    "What happened to everything about `invoice-17`?": "dead_letter",
    "Which deliveries are dead letters, and why?": "rejected",
    "Send it again": "dlv_",
    "Pause it": "",
    "Resume it": "",
}


def test_each_question_has_three_answers():
    assert set(questions()) == set(ANSWERS)
    for title, lines in questions().items():
        assert set(lines) == {"sql", "sh", "http"}, title


def make_dead_letter(node, tenant, hook):
    hook.reply(then=400)
    endpoint = node.api.create_endpoint(tenant, hook.url, ["invoice.*"])["id"]
    event = node.api.publish(tenant, "invoice.paid", subject="invoice-17")["id"]
    path = f"/v1/tenants/{tenant}/deliveries?event={event}"
    wait_until(lambda: [d["status"] for d in node.api.get(path).expect(200)["data"]] == ["dead_letter"], "a dead letter")
    delivery = node.api.get(path).expect(200)["data"][0]["id"]
    return {"tenant": tenant, "endpoint": endpoint, "event": event, "delivery": delivery}


@pytest.fixture
def ids(node, tenant, hook):
    return make_dead_letter(node, tenant, hook)


def fill(line, ids):
    for name, value in ids.items():
        line = line.replace("{" + name + "}", value)
    return line


@pytest.mark.parametrize("title", ANSWERS)
def test_the_lines_answer_the_question(node, ids, title):
    lines = {kind: fill(line, ids) for kind, line in questions()[title].items()}
    wanted = fill(ANSWERS[title], ids)

    assert wanted in str(node.sql(lines["sql"]))

    words = shlex.split(lines["sh"])
    environment = node_module.environment() | {"POSTRIDER_SERVER": node.api.url, "POSTRIDER_KEY": node.api.key}
    done = subprocess.run([node_module.binary(), *words[1:]], env=environment, cwd="/", text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert wanted in done.stdout

    method, target, *body = lines["http"].split(" ", 2)
    answer = node.api.call(method, target, json.loads(body[0]) if body else None)
    assert answer.status in (200, 201, 202), answer.body
    assert wanted in answer.body.decode()


def test_support_sees_and_repairs_but_reads_no_secrets(start_node, postgres, database_url, receiver):
    """The role has views and functions only."""
    node = start_node(database_url=database_url)
    node.api.create_tenant("t")
    ids = make_dead_letter(node, "t", receiver.hook())
    name = node.sql("select current_database()")[0][0]
    admin = psycopg2.connect(postgres.url(name, "postgres"))
    admin.autocommit = True
    with admin.cursor() as cursor:
        cursor.execute("do $$ begin create role postrider_support nologin; exception when duplicate_object then end $$")
    node.sql("select postrider.grant_support()")
    with admin.cursor() as cursor:
        cursor.execute("set role postrider_support")
        for view in ("endpoints", "subscriptions", "events", "deliveries", "delivery_attempts", "dead_letters", "health"):
            cursor.execute(f"select * from postrider.webhook_{view} limit 1")
        cursor.execute("select status from postrider.deliveries_of(%s, %s)", [ids["tenant"], ids["event"]])
        assert cursor.fetchall() == [("dead_letter",)]
        cursor.execute("select postrider.pause_endpoint(%s, 'test')", [ids["endpoint"]])
        cursor.execute("select postrider.resume_endpoint(%s, 'test')", [ids["endpoint"]])
        for table in ("endpoint_secret", "endpoint", "api_key", "event", "attempt"):
            with pytest.raises(psycopg2.errors.InsufficientPrivilege):
                cursor.execute(f"select * from postrider.{table} limit 1")
    admin.close()
