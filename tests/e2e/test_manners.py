"""What the API does for browsers, and against clients that open too many connections."""

import http.client

import pytest
from harness.wait import wait_until

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
        return 503  # refused before it was read


@pytest.mark.parametrize("proxies, last", [("", 503), ("127.0.0.0/8", 200)], ids=["a client", "a trusted proxy"])
def test_one_address_may_have_so_many_connections(start_node, database_url, proxies, last):
    node = start_node(database_url=database_url, connections_per_address_max="3", trusted_proxies=proxies)
    held = []
    for _ in range(3):
        held.append(connect(node))
        wait_until(lambda: status_of(held[-1]) == 200 or held.append(connect(node)), "a connection is taken")
    assert status_of(connect(node)) == last
    for connection in held:
        connection.close()
    wait_until(lambda: status_of(connect(node)) == 200, "there is room again")
