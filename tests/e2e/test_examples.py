"""The programs in examples/: order services that publish in their transaction, and receivers that verify signatures."""

import contextlib
import http.client
import json
import os
import subprocess
import threading

import pytest

from harness import toolchains
from harness.ports import lasting_port
from harness.postgres import Postgres
from harness.wait import wait_until


@pytest.fixture(scope="module")
def tcp_postgres():
    """JDBC knows no unix sockets."""
    server = Postgres(settings=["fsync=off"], port=lasting_port())
    yield server
    server.close()


@pytest.fixture(params=toolchains.LANGUAGES)
def commands(request):
    return toolchains.LANGUAGES[request.param]() | {"language": request.param}


@pytest.fixture
def shop_url(tcp_postgres, commands):
    database = f"shop_{commands['language']}"
    tcp_postgres.create(database)
    return tcp_postgres.url(database)


def test_an_order_service_charges_and_publishes_in_one_transaction(commands, start_node, shop_url, hook):
    node = start_node(database_url=shop_url)
    node.api.create_tenant("acme")
    node.api.create_endpoint("acme", hook.url)
    node.sql("create table public.charge (order_id text primary key, cents int not null)")
    url = shop_url if commands["language"] != "java" else jdbc(shop_url)

    def run(*arguments):
        return subprocess.run([*commands["orders"], "charge", *arguments], env={**os.environ, "DATABASE_URL": url}, text=True,
                              capture_output=True)

    assert run("1", "100", "--fail").returncode == 1
    assert run("2", "200", "--crash").returncode not in (0, 1)
    done = run("3", "300")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "charge-3"
    [request] = hook.wait_for(1)
    assert json.loads(request.body)["data"] == {"order": "3", "cents": 300}
    assert node.sql("select order_id from public.charge") == [("3",)]
    assert node.sql("select count(*) from postrider.event where tenant_id = 'acme'") == [(1,)]


def jdbc(url):
    user, rest = url.removeprefix("postgresql://").split("@")
    return f"jdbc:postgresql://{rest}?user={user}"


class Program:
    """A receiver that runs; `lines` is what it has printed."""

    def __init__(self, command, secret):
        self.port = lasting_port()
        self.lines = []
        environment = {**os.environ, "WEBHOOK_SECRET": secret, "LISTEN": f"127.0.0.1:{self.port}"}
        self.process = subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._reader = threading.Thread(target=lambda: self.lines.extend(self.process.stdout), daemon=True)
        self._reader.start()
        wait_until(lambda: self.listens() or self.process.poll() is not None, "the receiver listens")
        assert self.process.poll() is None, self.lines

    def listens(self):
        try:
            return self.post({}, b"") in (400, 401)
        except OSError:
            return False

    def post(self, headers, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            connection.request("POST", "/", body, headers)
            return connection.getresponse().status

    def close(self):
        self.process.kill()
        self.process.wait(30)
        self._reader.join(30)


def test_a_receiver_verifies_with_the_official_library(commands, node, tenant, hook):
    if commands["receiver"] is None:
        pytest.skip("the Standard Webhooks library for Go needs Go 1.21, and Debian 12 has 1.19")
    endpoint = node.api.create_endpoint(tenant, hook.url)
    event = node.api.publish(tenant, "order.paid", {"order": 1})["id"]
    [recorded] = hook.wait_for(1)
    signed = {name: value for name, value in recorded.headers.items() if name.startswith("webhook-")}
    program = Program(commands["receiver"], endpoint["secret"])
    try:
        # What postrider sends to it is accepted.
        node.api.call("PATCH", f"/v1/tenants/{tenant}/endpoints/{endpoint['id']}",
                      {"url": f"http://127.0.0.1:{program.port}/"}).expect(200)
        second = node.api.publish(tenant, "order.shipped", {"order": 2})["id"]
        path = f"/v1/tenants/{tenant}/deliveries?event={second}"
        wait_until(lambda: [one["status"] for one in node.api.get(path).expect(200)["data"]] == ["delivered"], "delivered")

        assert program.post(signed, recorded.body) == 204
        assert program.post(signed, recorded.body) == 204, "a repeated event is accepted and not processed again"
        assert program.post(signed, recorded.body.replace(b"1", b"2")) == 401
        assert program.post({**signed, "webhook-id": "evt_other"}, recorded.body) == 401
        assert program.post({**signed, "webhook-timestamp": "1700000000"}, recorded.body) == 401
        assert program.post({**signed, "webhook-signature": "v1,AAAA"}, recorded.body) == 401
        assert program.post({**signed, "webhook-signature": "nonsense"}, recorded.body) in (400, 401)
    finally:
        program.close()
    assert [line.split()[0] for line in program.lines] == [second, event]
