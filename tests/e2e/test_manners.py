"""What the API does for browsers, and against clients that open too many connections."""

import http.client
import socket

import pytest

ORIGIN = "https://app.example.com"


def preflight(node, origin):
    return node.api.call("OPTIONS", "/v1/tenants", headers={"origin": origin, "access-control-request-method": "POST"})


def test_pages_of_other_origins_are_refused_unless_they_are_named(start_node, database_url, node):
    assert "access-control-allow-origin" not in preflight(node, ORIGIN).headers
    opened = start_node(database_url=database_url, cors_origins=f"{ORIGIN},https://other.example")
    asked = preflight(opened, ORIGIN)
    assert asked.status == 204 and asked.headers["access-control-allow-origin"] == ORIGIN
    assert "authorization" in asked.headers["access-control-allow-headers"]
    assert "access-control-allow-origin" not in preflight(opened, "https://evil.example").headers
    answer = opened.api.get("/v1/tenants", headers={"origin": ORIGIN})
    assert answer.status == 200 and answer.headers["access-control-allow-origin"] == ORIGIN
    refused = opened.api.as_key(None).get("/v1/tenants", headers={"origin": ORIGIN})
    assert refused.status == 401 and refused.headers["access-control-allow-origin"] == ORIGIN


def connect(node):
    host, port = node.api.url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    connection.connect()
    return connection


def status_of(connection):
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except (ConnectionError, http.client.HTTPException):
        return 503  # rejected before it was read


def own_address():
    """An address of this machine that is not loopback, or None. Connections to it do not leave the machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return probe.getsockname()[0]


def test_connections_of_one_address_are_limited_until_they_are_authenticated(start_node, database_url):
    address = own_address()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    node = start_node(database_url=database_url, connections_per_address_max="3", listen="0.0.0.0:0")
    port = int(node.api.url.rsplit(":", 1)[1])

    def connect_from_outside():
        connection = http.client.HTTPConnection(address, port, timeout=60)
        connection.connect()
        return connection

    held = [connect_from_outside() for _ in range(3)]
    assert [status_of(connection) for connection in held] == [200, 200, 200]
    assert status_of(connect_from_outside()) == 503
    assert status_of(connect(node)) == 200, "loopback is not counted"
    held[0].request("GET", "/v1/tenants", headers={"authorization": f"Bearer {node.api.key}"})
    answer = held[0].getresponse()
    assert answer.read() and answer.status == 200
    held.append(connect_from_outside())
    assert status_of(held[-1]) == 200, "an authenticated connection is not counted any more"
    for connection in held:
        connection.close()
