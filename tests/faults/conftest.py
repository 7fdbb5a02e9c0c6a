"""Seeds and the summary of the fault tests."""

import json
import pathlib

import pytest

from world import World, skip_disk

RESULTS = []
LOGS = pathlib.Path(__file__).resolve().parents[2] / "build" / "test" / "faults"


def pytest_addoption(parser):
    parser.addoption("--seed", type=int, default=1, help="fault tests: the first seed")
    parser.addoption("--seeds", type=int, default=1, help="fault tests: how many seeds, from --seed on")
    parser.addoption("--size", type=int, help="fault tests: how many messages or deliveries the big runs take")


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        first, count = metafunc.config.getoption("seed"), metafunc.config.getoption("seeds")
        metafunc.parametrize("seed", range(first, first + count), ids=lambda seed: f"seed{seed}")


@pytest.fixture
def is_short(request):
    return request.config.getoption("short")


@pytest.fixture
def sized(request, is_short):
    """sized(short, full): how big this run is; --size has the last word."""
    return lambda short, full: request.config.getoption("size") or (short if is_short else full)


@pytest.fixture(scope="session", autouse=True)
def hasten(request, postgres):
    """The short set does not wait for the disk: what dies here are processes, never the machine."""
    if request.config.getoption("short"):
        skip_disk(postgres)


@pytest.fixture
def make_world(request, database_url, seed):
    """make_world(**settings of the nodes) on a fresh database; everything is killed in the end."""
    made = []

    def make(name=request.node.originalname, url=database_url, **settings):
        made.append(World(name, url, seed, **settings))
        return made[-1]

    yield make
    for world in made:
        world.close()
        request.node.user_properties.append(("figures", [world.name, seed, world.figures]))
        if getattr(request.node, "has_failed", True):
            keep_logs(world)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call":
        item.has_failed = outcome.get_result().failed


def keep_logs(world):
    """All that the nodes of a failed experiment said, one file each."""
    folder = LOGS / f"{world.name.replace('/', '-')}-seed{world.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    for number, node in enumerate(world.nodes, 1):
        lines = [json.dumps(entry) for entry in node.log] + node.text
        (folder / f"node{number}.log").write_text("\n".join(lines))
    print(f"logs of the nodes: {folder}")


@pytest.fixture
def world(make_world):
    return make_world()


def pytest_runtest_logreport(report):
    """Experiments may run in processes of their own; their figures come with the report."""
    if report.when == "teardown":
        RESULTS.extend(value for name, value in report.user_properties if name == "figures")


def pytest_terminal_summary(terminalreporter):
    if not RESULTS:
        return
    terminalreporter.section("fault experiments")
    for name, seed, figures in RESULTS:
        shown = ", ".join(f"{key} {value}" for key, value in figures.items())
        terminalreporter.write_line(f"{name.removeprefix('test_'):58} seed {seed:<4} {shown}")


@pytest.fixture
def fresh_database(postgres, template):
    """fresh_database() makes another migrated database and returns its URL; all are dropped after the test."""
    made = []

    def make():
        made.append(f"faults_{id(made)}_{len(made)}")
        postgres.create(made[-1], template)
        return postgres.url(made[-1])

    yield make
    for name in made:
        postgres.drop(name)
