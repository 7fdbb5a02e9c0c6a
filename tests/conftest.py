"""Fixtures. A test gets its own tenant and its own hooks on a node that others use, too (`node`), or nodes of its own
(`start_node`) on a database of its own (`database_url`)."""

import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from harness import node as node_module  # noqa: E402
from harness.node import Node  # noqa: E402
from harness.postgres import Postgres  # noqa: E402
from harness.receiver import Receiver  # noqa: E402

NUMBERS = itertools.count(1)


def pytest_addoption(parser):
    parser.addoption("--short", action="store_true", help="fault tests: the short set")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """A failure shows the end of the log of every node that had to do with it."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for number, used in enumerate(Node.running, 1):
            report.sections.append((f"node {number}", used.describe()))


@pytest.fixture(scope="session")
def postgres():
    server = Postgres()
    yield server
    server.close()


@pytest.fixture(scope="session")
def template(postgres):
    """A migrated database that others are copied from."""
    postgres.create("template_migrated")
    settings = {"database_url": postgres.url("template_migrated"), "master_key": node_module.MASTER_KEY}
    subprocess.run([node_module.binary(), "migrate"], env=node_module.environment(**settings), cwd="/", check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return "template_migrated"


@pytest.fixture
def database_url(postgres, template):
    name = f"test_{next(NUMBERS)}"
    postgres.create(name, template)
    yield postgres.url(name)
    if postgres.process.poll() is None:
        postgres.drop(name)


@pytest.fixture(scope="session")
def node(request):
    """One node for all tests that do not restart or break it: on its private Postgres, or on the chosen version's."""
    data_dir = tempfile.mkdtemp(prefix="pr-data-", dir="/tmp")
    if "POSTRIDER_TEST_PG_BIN" in os.environ:
        chosen = request.getfixturevalue("postgres")
        chosen.create("shared_node")
        shared = Node(data_dir=data_dir, database_url=chosen.url("shared_node"))
    else:
        shared = Node(data_dir=data_dir)
    try:
        yield shared.wait_ready()
    finally:
        shared.close()
        shutil.rmtree(data_dir, ignore_errors=True)


@pytest.fixture
def start_node():
    """start_node(**settings) starts a node and returns it when it is ready; all are stopped after the test."""
    started = []

    def start(ready=True, **settings):
        fresh = Node(**settings)
        started.append(fresh)
        return fresh.wait_ready() if ready else fresh

    yield start
    for fresh in started:
        fresh.close()


@pytest.fixture
def receiver():
    server = Receiver()
    yield server
    server.close()


@pytest.fixture
def hook(receiver):
    return receiver.hook()


@pytest.fixture
def tenant(node):
    """The id of a new tenant on the shared node."""
    name = f"tenant-{next(NUMBERS)}"
    node.api.create_tenant(name)
    return name


@pytest.fixture
def cli(node, tmp_path):
    """cli("tenant", "list") runs it against the shared node; more= adds variables."""

    def run(*arguments, stdin="", more=None):
        environment = {"PATH": "/usr/bin:/bin", "XDG_CONFIG_HOME": str(tmp_path), "POSTRIDER_KEY": node_module.ADMIN_KEY,
                       "POSTRIDER_SERVER": f"http://{node.address}", **(more or {})}
        environment = {name: value for name, value in environment.items() if value is not None}
        return subprocess.run([node_module.binary(), *arguments], env=environment, cwd="/", text=True, input=stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    return run


@pytest.fixture
def data_dir():
    path = tempfile.mkdtemp(prefix="pr-data-", dir="/tmp")
    yield path
    shutil.rmtree(path, ignore_errors=True)
