"""Invalid events that publish() sets aside instead of failing the caller's transaction."""

import itertools
import json

import psycopg2
import pytest

from harness.postgres import run_sql
from harness.relay import install
from harness.wait import wait_until

NUMBERS = itertools.count(1)


@pytest.fixture(params=["local", "billing"])
def outbox(request, postgres, start_node, database_url, hook):
    """(node, name, the outbox's database): postrider's own outbox, and one in another database."""
    node = start_node(database_url=database_url)
    node.api.create_tenant("acme")
    node.api.create_endpoint("acme", hook.url)
    if request.param == "local":
        yield node, "local", database_url
        return
    name = f"invalid_{next(NUMBERS)}"
    postgres.create(name)
    url = install(postgres.url(name))
    node.api.call("PUT", "/v1/outboxes/billing", {"database_url": url}).expect(201)
    yield node, "billing", url
    postgres.drop(name)


def shop(url, *calls):
    """A business transaction that publishes; returns the IDs."""
    with psycopg2.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("create table if not exists orders (id int)")
        cursor.execute("insert into orders values (1)")
        ids = []
        for call in calls:
            cursor.execute(f"select postrider.publish({call})")
            ids += cursor.fetchone()
        cursor.execute("insert into orders values (2)")
    connection.close()
    return ids


def stuck(node, name, count):
    return wait_until(lambda: len(rows := node.api.get(f"/v1/outboxes/{name}/stuck").expect(200)["data"]) == count and rows,
                      f"{count} rows are set aside")


def metrics(node):
    return node.api.get("/metrics").body.decode()


def test_the_transaction_commits_and_the_rows_are_counted_and_reported(outbox, receiver, hook):
    node, name, url = outbox
    told = receiver.hook()
    node.api.create_endpoint("postrider", told.url, event_types=["outbox.stuck"])
    assert node.api.get(f"/v1/outboxes/{name}").expect(200)["on_invalid"] == "refuse"
    with pytest.raises(psycopg2.errors.InvalidParameterValue):
        shop(url, "'acme', 'a b', '1'")
    shown = node.api.call("PATCH", f"/v1/outboxes/{name}", {"on_invalid": "set_aside"}).expect(200)
    assert shown["on_invalid"] == "set_aside"
    assert node.api.get("/v1/audit?action=outbox.update").expect(200)["data"][0]["after"] == {"on_invalid": "set_aside"}

    bad, good = shop(url, "'acme', 'a b', '1'", "'acme', 'order.paid', '2'")
    assert run_sql(url, "select count(*) from orders") == [(2,)]
    [request] = hook.wait_for(1)
    assert request.headers["webhook-id"] == good
    [report] = told.wait_for(1)
    data = json.loads(report.body)["data"]
    assert (data["outbox"], data["rows"], data["first"][0]["type"]) == (name, 1, "a b")
    assert data["first"][0]["error"].startswith("type must be")
    [row] = stuck(node, name, 1)
    assert (row["event_id"], row["attempts"], row["cut_from_bytes"]) == (bad, 1, None)
    assert row["last_error"].startswith("type must be")
    assert node.api.get(f"/v1/outboxes/{name}").expect(200)["stuck"] == 1
    wait_until(lambda: f'webhook_outbox_stuck{{outbox="{name}"}} 1\n' in metrics(node), "the gauge counts it")
    assert f'webhook_relay_rows_total{{outbox="{name}",result="rejected"}} 1\n' in metrics(node)
    assert len(hook.requests) == 1


def test_released_rows_are_validated_again(outbox, hook):
    node, name, url = outbox
    _, repaired = shop(url, "'acme', 'a b', '1', on_invalid => 'set_aside'",
                       "'acme', 'order paid', '{\"n\": 2}', on_invalid => 'set_aside'")
    first, second = stuck(node, name, 2)
    run_sql(url, "update postrider.outbox set type = 'order.paid' where id = %s", (second["id"],))
    assert node.api.post(f"/v1/outboxes/{name}/stuck/release").expect(200) == {"released": 2, "cut": 0}
    [request] = hook.wait_for(1)
    assert request.headers["webhook-id"] == repaired and json.loads(request.body)["data"] == {"n": 2}
    [again] = wait_until(lambda: (rows := node.api.get(f"/v1/outboxes/{name}/stuck").expect(200)["data"])
                         and rows[0]["attempts"] == 2 and rows, "the other one is set aside again")
    assert again["id"] == first["id"] and again["last_error"].startswith("type must be")


def test_a_row_whose_data_was_cut_is_never_published(outbox, hook):
    node, name, url = outbox
    shop(url, "'acme', 'order.paid', to_json(repeat('x', 2000000)), on_invalid => 'set_aside'",
         "'acme', 'order paid', '1', on_invalid => 'set_aside'")
    cut, whole = stuck(node, name, 2)
    assert cut["cut_from_bytes"] == 2_000_002
    run_sql(url, "update postrider.outbox set type = 'order.paid'")
    refused = node.api.post(f"/v1/outboxes/{name}/stuck/release", {"ids": [cut["id"], whole["id"]]})
    assert refused.status == 409 and refused.json["type"].endswith("data-cut")
    assert f"row {cut['id']}" in refused.json["detail"]
    assert len(stuck(node, name, 2)) == 2
    assert node.api.post(f"/v1/outboxes/{name}/stuck/release").expect(200) == {"released": 1, "cut": 1}
    hook.wait_for(1)
    # By hand, as docs/outbox.md shows for a relay next to the application; the beginning happens to be JSON.
    run_sql(url, "update postrider.outbox set data = '1', attempts = 1, set_aside_at = null, retry_at = now() where id = %s",
            (cut["id"],))
    [again] = stuck(node, name, 1)
    assert "only its beginning was kept" in again["last_error"]
    assert len(hook.requests) == 1


def test_the_setting_is_changed_from_the_command_line_and_checked(outbox, cli):
    node, name, url = outbox
    done = cli("outbox", "set", name, "--on-invalid", "set_aside", "-o", "json",
               more={"POSTRIDER_SERVER": f"http://{node.address}"})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["on_invalid"] == "set_aside"
    shop(url, "null, null, null::text")
    for body in ({}, {"on_invalid": "ignore"}, {"on_invalid": None}, {"mode": "table"}):
        assert node.api.call("PATCH", f"/v1/outboxes/{name}", body).status == 422, body
    assert node.api.call("PATCH", "/v1/outboxes/unknown", {"on_invalid": "refuse"}).status == 404
