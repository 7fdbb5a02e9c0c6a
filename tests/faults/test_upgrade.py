"""Nodes of two versions on one schema, as during a rolling upgrade."""

import pathlib

from test_nodes import loaded, wait_even

NEXT_VERSION = {"POSTRIDER_TEST_MIGRATION": str(pathlib.Path(__file__).with_name("next_version.sql"))}


def schema_version(world):
    return world.sql("select max(version) from postrider.migration")[0][0]


def replace(world, producer, old, **settings):
    """As a deployment does it: the new node is ready before the old one stops."""
    new = world.start_node(**settings)
    producer.wait_acknowledged(20)
    world.leave(old)
    assert old.stop() == 0
    producer.wait_acknowledged(20)
    return new


def test_two_nodes_are_upgraded_one_after_the_other(make_world):
    world = make_world()
    producer = loaded(world, 2)
    before = schema_version(world)
    first, second = world.nodes
    new = replace(world, producer, first, variables=NEXT_VERSION)
    assert schema_version(world) == before + 1
    assert new.wait_for_log("started")["schema"] == before + 1
    assert world.owners().keys() == {world.owner(second), world.owner(new)}, "both versions deliver"
    replace(world, producer, second, variables=NEXT_VERSION)
    wait_even(world, 2)
    producer.wait_acknowledged(30)
    figures = world.finish()
    assert figures["duplicates"] == 0
    assert not any(sent.unknown for sent in producer.sent), "no publish failed"


def test_an_upgrade_can_be_taken_back(make_world):
    world = make_world()
    producer = loaded(world, 1)
    before = schema_version(world)
    new = replace(world, producer, world.nodes[0], variables=NEXT_VERSION)
    old = replace(world, producer, new)
    assert old.wait_for_log("started")["schema"] == before + 1, "it runs on the schema of the next version"
    producer.wait_acknowledged(30)
    assert world.finish()["duplicates"] == 0
