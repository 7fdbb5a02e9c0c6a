"""The short form of `./dev hostile`: all attackers at once for a few seconds, without looking at times."""

import pytest

from experiment import Experiment, run

HOSTILE_SECONDS = 20
SLOW_CALLS = ["dry-run replays", "lists", "events", "stats", "exports"]


@pytest.fixture
def experiment(postgres):
    made = Experiment(postgres)
    yield made
    made.close()


def test_healthy_tenants_are_served_beside_all_attackers_at_once(experiment):
    failures = run(experiment, 2, HOSTILE_SECONDS)
    assert not failures, "\n".join(failures[:20])
    assert experiment.figures("hostile")["events"] > 0
    useless = [name for name in SLOW_CALLS if not experiment.attacks.get(f"{name}: 200")]
    assert not useless, f"slow calls that were all refused: {useless}"
    idle = [name for name, count in experiment.attacks.items() if count == 0]
    assert experiment.attacks and not idle, f"attackers that did nothing: {idle}"
