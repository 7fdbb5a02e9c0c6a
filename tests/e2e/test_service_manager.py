"""What a node reports to systemd: a socket of the test's own stands in for it."""

import signal
import socket

import pytest

from harness.wait import PATIENCE_SECONDS


@pytest.fixture
def notify(tmp_path):
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(tmp_path / "notify"))
    manager.settimeout(PATIENCE_SECONDS)
    yield manager
    manager.close()


def next_message(manager, other_than=None):
    while True:
        message = manager.recv(512).decode()
        if message != other_than:
            return message


def test_a_node_reports_start_life_and_stop_to_systemd(notify, start_node, database_url):
    variables = {"NOTIFY_SOCKET": notify.getsockname(), "WATCHDOG_USEC": "1000000"}
    node = start_node(database_url=database_url, variables=variables)
    assert next_message(notify) == f"READY=1\nSTATUS=Listening on {node.address}"
    assert [next_message(notify) for _ in range(3)] == ["WATCHDOG=1"] * 3

    node.signal(signal.SIGTERM)
    assert next_message(notify, other_than="WATCHDOG=1") == "STOPPING=1\nSTATUS=Draining"
    assert node.wait_exit() == 0


def test_a_node_serves_although_systemd_cannot_be_reached(tmp_path, start_node, database_url):
    node = start_node(database_url=database_url, variables={"NOTIFY_SOCKET": str(tmp_path / "absent")})
    assert node.wait_for_log("service_manager_unreachable")["error"] == "No such file or directory"
    assert node.api.get("/healthz").status == 200
