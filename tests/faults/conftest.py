"""Seeds and the summary of the fault tests."""

import pytest

from world import World

RESULTS = []


def pytest_addoption(parser):
    parser.addoption("--seed", type=int, default=1, help="fault tests: the first seed")
    parser.addoption("--seeds", type=int, default=1, help="fault tests: how many seeds, from --seed on")


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        first, count = metafunc.config.getoption("seed"), metafunc.config.getoption("seeds")
        metafunc.parametrize("seed", range(first, first + count), ids=lambda seed: f"seed{seed}")


@pytest.fixture
def is_short(request):
    return request.config.getoption("short")


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
        RESULTS.append((world.name, seed, request.node, world.figures))


@pytest.fixture
def world(make_world):
    return make_world()


def pytest_terminal_summary(terminalreporter):
    if not RESULTS:
        return
    terminalreporter.section("fault experiments")
    for name, seed, _, figures in RESULTS:
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
