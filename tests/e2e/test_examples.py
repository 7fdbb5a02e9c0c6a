"""The order services in examples/: what they charge is delivered; what they roll back, or crash in, is not."""

import json
import os
import pathlib
import subprocess

import pytest

from harness.npm import npm_install

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="session")
def node_packages():
    npm_install(EXAMPLES / "orders-node")


def command_of(language, request):
    if language == "python":
        return ["/usr/bin/python3", str(EXAMPLES / "orders-python" / "orders.py")]
    request.getfixturevalue("node_packages")
    return ["node", str(EXAMPLES / "orders-node" / "orders.mjs")]


@pytest.mark.parametrize("language", ["python", "node"])
def test_an_order_service_charges_and_publishes_in_one_transaction(language, request, start_node, database_url, hook):
    fresh = start_node(database_url=database_url)
    fresh.api.create_tenant("acme")
    fresh.api.create_endpoint("acme", hook.url)
    command = command_of(language, request)
    environment = {**os.environ, "DATABASE_URL": database_url, "PGHOST": str(database_url.split("host=")[1])}

    def run(*arguments):
        return subprocess.run([*command, "charge", *arguments], env=environment, text=True, capture_output=True)

    assert run("1", "100", "--fail").returncode == 1
    assert run("2", "200", "--crash").returncode != 0
    done = run("3", "300")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "charge-3"
    [request_3] = hook.wait_for(1)
    assert json.loads(request_3.body)["data"] == {"order": "3", "cents": 300}
    assert fresh.sql("select order_id from charge") == [("3",)]
    assert len(hook.requests) == 1
