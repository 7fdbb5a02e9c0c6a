"""Behind a real pgbouncer in transaction mode: Debian's 1.18, which knows nothing about prepared statements."""

import concurrent.futures

import pytest

from harness.pgbouncer import Pgbouncer
from harness.postgres import Postgres
from harness.wait import wait_until

EVENTS = 200
ROLE_SETTINGS = ("search_path = postrider", "timezone = 'UTC'", "jit = off", "statement_timeout = '30s'",
                 "idle_in_transaction_session_timeout = '30s'")


@pytest.fixture(scope="module")
def own_postgres():
    server = Postgres(settings=["fsync=off"])
    for setting in ROLE_SETTINGS:
        server.sql(f"alter role postrider set {setting}", "postgres")
    server.create("app")
    yield server
    server.close()


@pytest.fixture
def pooler(own_postgres):
    pgbouncer = Pgbouncer(own_postgres)
    yield pgbouncer
    pgbouncer.close()


def publish_many(node, tenant):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda _: node.api.publish(tenant)["id"], range(EVENTS)))


def test_two_nodes_publish_deliver_list_and_replay_behind_pgbouncer(start_node, own_postgres, pooler, receiver):
    urls = {"database_url": pooler.url("app"), "direct_database_url": own_postgres.url("app")}
    nodes = [start_node(**urls), start_node(**urls)]
    api = nodes[0].api
    healthy, failing = receiver.hook(), receiver.hook()
    failing.reply(then=400)
    api.create_tenant("t")
    api.create_endpoint("t", healthy.url)
    broken = api.create_endpoint("t", failing.url, event_types=["order.failed"])["id"]

    published = publish_many(nodes[0], "t") + publish_many(nodes[1], "t")
    healthy.wait_for(len(published))
    assert {request.headers["webhook-id"] for request in healthy.requests} == set(published)

    failed = api.publish("t", "order.failed")["id"]
    failing.wait_for(1)
    letters = "/v1/tenants/t/dead-letters"
    wait_until(lambda: api.get(letters).expect(200)["data"], "the delivery is a dead letter")
    failing.reply(then=204)
    [delivery] = api.get(f"/v1/tenants/t/deliveries?event={failed}&endpoint={broken}").expect(200)["data"]
    api.post(f"/v1/tenants/t/deliveries/{delivery['id']}/replay", {"reason": "it works again"}).expect(202)
    failing.wait_for(2)

    # Nothing was prepared on a connection that another client had a moment later.
    assert "prepared statement" not in (own_postgres.home / "log").read_text()
    for node in nodes:
        assert node.stop() == 0
