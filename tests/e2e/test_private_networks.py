"""Private networks that operators open for one tenant or one endpoint."""

import pytest

from harness.node import Node
from harness.receiver import Reply
from harness.wait import wait_until

LOOPBACK = ["127.0.0.0/8"]


@pytest.fixture
def closed(start_node, database_url):
    """A node without any private network of its own."""
    node = start_node(database_url=database_url, allow_networks=None, shards=1)
    for tenant in ("a", "b"):
        node.api.create_tenant(tenant)
    return node


def tenant_path(tenant):
    return f"/v1/tenants/{tenant}"


def allow(node, path, networks):
    return node.api.call("PATCH", path, {"allow_networks": networks}).expect(200)


def path_of(endpoint):
    return f"/v1/tenants/{endpoint['tenant_id']}/endpoints/{endpoint['id']}"


def with_list(node, tenant, url, networks=LOOPBACK):
    return node.api.post(f"/v1/tenants/{tenant}/endpoints",
                         {"url": url, "event_types": ["*"], "allow_networks": networks}).expect(201)


def forced_endpoint(node, tenant, url):
    """As if the URL's name had led to a public address at registration and leads to a private one now."""
    made = node.api.create_endpoint(tenant, "http://8.8.8.8/")
    node.sql("update postrider.endpoint set url = %s where public_id = %s", [url, made["id"]])
    return made


def attempts(node, tenant):
    return node.api.get(f"/v1/tenants/{tenant}/attempts").expect(200)["data"]


def deliver(node, tenant, count):
    """Publishes one event and waits for the tenant's `count`-th attempt."""
    node.api.publish(tenant)
    wait_until(lambda: len(attempts(node, tenant)) == count, f"attempt {count} of {tenant}")
    return attempts(node, tenant)[0]


def test_a_warm_connection_of_one_tenant_is_closed_to_the_others(closed, hook):
    allow(closed, tenant_path("a"), LOOPBACK)
    closed.api.create_endpoint("a", hook.url)
    assert deliver(closed, "a", 1)["status_code"] == 204
    assert deliver(closed, "a", 2)["connection_reused"]

    forced_endpoint(closed, "b", hook.url)
    blocked = deliver(closed, "b", 1)
    assert (blocked["error"], blocked["status_code"]) == ("blocked", None)
    assert len(hook.requests) == 2
    assert deliver(closed, "a", 3)["connection_reused"]


def test_equal_lists_of_two_tenants_share_no_connection(closed, hook):
    for tenant in ("a", "b"):
        allow(closed, tenant_path(tenant), LOOPBACK)
        closed.api.create_endpoint(tenant, hook.url)
        assert not deliver(closed, tenant, 1)["connection_reused"]
        assert deliver(closed, tenant, 2)["connection_reused"]


def test_an_endpoints_list_is_its_own(closed, hook):
    first = with_list(closed, "a", hook.url)
    assert first["allow_networks"] == LOOPBACK
    deliver(closed, "a", 1)
    assert deliver(closed, "a", 2)["connection_reused"]

    refused = closed.api.post("/v1/tenants/a/endpoints", {"url": hook.url, "event_types": ["*"]})
    assert refused.status == 422 and refused.json["errors"][0]["pointer"] == "/url"
    second = forced_endpoint(closed, "a", hook.url)
    closed.api.publish("a")
    wait_until(lambda: len(attempts(closed, "a")) == 4, "both attempts")
    by_endpoint = {attempt["endpoint_id"]: attempt for attempt in attempts(closed, "a")[:2]}
    assert by_endpoint[first["id"]]["status_code"] == 204
    assert by_endpoint[second["id"]]["error"] == "blocked"


def test_the_lists_of_tenant_and_endpoint_add_up(closed, hook):
    allow(closed, tenant_path("a"), ["127.0.0.1"])
    made = with_list(closed, "a", hook.url, ["10.9.0.0/16"])
    assert deliver(closed, "a", 1)["status_code"] == 204
    closed.api.call("PATCH", path_of(made), {"url": "http://10.9.1.2/"}).expect(200)
    assert closed.api.call("PATCH", path_of(made), {"url": "http://10.8.1.2/"}).status == 422


@pytest.mark.parametrize("level", ["tenant", "endpoint"])
def test_a_revoked_list_ends_a_warm_connection(closed, hook, level):
    if level == "tenant":
        allow(closed, tenant_path("a"), LOOPBACK)
        closed.api.create_endpoint("a", hook.url)
        path = tenant_path("a")
    else:
        path = path_of(with_list(closed, "a", hook.url))
    deliver(closed, "a", 1)
    assert deliver(closed, "a", 2)["connection_reused"]
    assert allow(closed, path, [])["allow_networks"] == []
    assert deliver(closed, "a", 3)["error"] == "blocked"
    assert len(hook.requests) == 2
    # Opened again: the old connection was closed with the list.
    allow(closed, path, LOOPBACK)
    again = deliver(closed, "a", 4)
    assert again["status_code"] == 204 and not again["connection_reused"]


def test_a_list_that_the_owner_of_the_schema_changes_is_noticed(closed, hook):
    allow(closed, tenant_path("a"), LOOPBACK)
    endpoint = closed.api.create_endpoint("a", hook.url)
    assert deliver(closed, "a", 1)["status_code"] == 204
    closed.sql("update postrider.tenant set allow_networks = '{}' where id = 'a'")

    def is_blocked():
        closed.api.publish("a")
        return any(attempt["error"] == "blocked" for attempt in attempts(closed, "a"))

    wait_until(is_blocked, "a delivery is blocked")
    assert closed.api.get(path_of(endpoint)).expect(200)["allow_networks"] == []


def test_a_test_request_uses_the_list(closed, hook):
    made = with_list(closed, "a", hook.url)
    assert closed.api.post(path_of(made) + "/test").expect(200)["delivered"]
    allow(closed, path_of(made), [])
    assert closed.api.post(path_of(made) + "/test").expect(200)["error"] == "blocked"
    other = forced_endpoint(closed, "b", hook.url)
    assert closed.api.post(path_of(other) + "/test").expect(200)["error"] == "blocked"
    assert len(hook.requests) == 1


@pytest.mark.parametrize("role", ["customer", "admin"])
def test_keys_of_a_tenant_neither_see_nor_set_nor_clear_the_lists(closed, hook, role):
    allow(closed, tenant_path("a"), ["10.9.0.0/16"])
    body = {"url": hook.url, "event_types": ["*"]}
    closed.api.call("PUT", "/v1/tenants/a/endpoints/own", {**body, "allow_networks": LOOPBACK}).expect(201)
    key = closed.api.post("/v1/keys", {"role": role, "tenant_id": "a"}).expect(201)["key"]
    bound = closed.api.as_key(key)
    for networks in (["10.0.0.0/8"], [], None):
        for method, path, document in (("PUT", "/v1/tenants/a/endpoints/own", body),
                                       ("PUT", "/v1/tenants/a/endpoints/other", body),
                                       ("POST", "/v1/tenants/a/endpoints", body),
                                       ("PATCH", "/v1/tenants/a/endpoints/own", {}),
                                       ("PATCH", "/v1/tenants/a", {})):
            refused = bound.call(method, path, {**document, "allow_networks": networks})
            assert refused.status == 403, (method, path)
            assert refused.json["errors"][0]["pointer"] == "/allow_networks"

    assert "allow_networks" not in bound.get("/v1/tenants/a").expect(200)
    shown = bound.get("/v1/tenants/a/endpoints/own").expect(200)
    assert "allow_networks" not in shown
    replaced = bound.call("PUT", "/v1/tenants/a/endpoints/own", {**body, "description": "mine"}).expect(200)
    assert "allow_networks" not in replaced and replaced["description"] == "mine"
    bound.call("PATCH", "/v1/tenants/a", {"name": "A"}).expect(200)
    assert closed.api.get("/v1/tenants/a/endpoints/own").expect(200)["allow_networks"] == LOOPBACK
    assert closed.api.get("/v1/tenants/a").expect(200)["allow_networks"] == ["10.9.0.0/16"]

    # A new endpoint with the ID of a deleted one has none of its networks.
    bound.call("DELETE", "/v1/tenants/a/endpoints/own").expect(200)
    assert bound.call("PUT", "/v1/tenants/a/endpoints/own", body).status == 422
    bound.call("PUT", "/v1/tenants/a/endpoints/own", {**body, "url": "http://10.9.1.2/"}).expect(201)
    assert closed.api.get("/v1/tenants/a/endpoints/own").expect(200)["allow_networks"] == []


def test_an_operators_put_replaces_the_list(closed, hook):
    body = {"url": hook.url, "event_types": ["*"], "allow_networks": LOOPBACK}
    closed.api.call("PUT", "/v1/tenants/a/endpoints/own", body).expect(201)
    refused = closed.api.call("PUT", "/v1/tenants/a/endpoints/own", {**body, "allow_networks": None})
    assert refused.status == 422 and refused.json["errors"][0]["pointer"] == "/url"
    public = {"url": "https://receiver.invalid/", "event_types": ["*"]}
    assert closed.api.call("PUT", "/v1/tenants/a/endpoints/own", public).expect(200)["allow_networks"] == []
    allow(closed, tenant_path("a"), LOOPBACK)
    assert closed.api.call("PUT", tenant_path("a"), {}).expect(200)["allow_networks"] == []
    changes = closed.api.get("/v1/audit?tenant=a&action=tenant.update").expect(200)["data"]
    assert changes[0]["before"] == {"allow_networks": LOOPBACK} and changes[0]["after"] == {"allow_networks": []}


INVALID_LISTS = (
    ("127.0.0.0/8", "/allow_networks", "array of at most 32"),
    ({}, "/allow_networks", "array of at most 32"),
    (["10.0.0.0/8"] * 33, "/allow_networks", "array of at most 32"),
    (["10.1.2.3/8"], "/allow_networks/0", "must be a network such as"),
    (["10.0.0.0/8", "10.0.0.0/33"], "/allow_networks/1", "must be a network such as"),
    (["localhost"], "/allow_networks/0", "must be a network such as"),
    ([""], "/allow_networks/0", "must be a network such as"),
    ([None], "/allow_networks/0", "must be a network such as"),
    ([10], "/allow_networks/0", "must be a network such as"),
    (["10.0.0.0/8 "], "/allow_networks/0", "must be a network such as"),
    (["fe80::1%eth0/128"], "/allow_networks/0", "must be a network such as"),
    (["0.0.0.0/0"], "/allow_networks/0", "every address"),
    (["::/0"], "/allow_networks/0", "every address"),
    (["::ffff:10.0.0.0/104"], "/allow_networks/0", "IPv4 network"),
)


def test_an_invalid_list_is_rejected(closed):
    endpoint = {"url": "https://a.invalid/", "event_types": ["*"]}
    for networks, pointer, detail in INVALID_LISTS:
        for method, path, body in (("PATCH", "/v1/tenants/a", {}), ("PUT", "/v1/tenants/c", {}),
                                   ("POST", "/v1/tenants/a/endpoints", endpoint)):
            refused = closed.api.call(method, path, {**body, "allow_networks": networks})
            assert refused.status == 422, (path, networks)
            assert [error["pointer"] for error in refused.json["errors"]] == [pointer]
            assert detail in refused.json["errors"][0]["detail"]


def test_a_list_is_returned_as_networks(closed):
    given = ["10.1.2.3", "fd00:1::/64", "10.1.2.3/32", "::1"]
    assert allow(closed, tenant_path("a"), given)["allow_networks"] == ["10.1.2.3/32", "fd00:1::/64", "::1/128"]


def test_redirects_are_not_followed_into_the_network(closed, receiver):
    here, there = receiver.hook(), receiver.hook()
    here.reply(then=Reply(302, {"location": there.url}))
    with_list(closed, "a", here.url)
    assert deliver(closed, "a", 1)["status_code"] == 302
    assert there.requests == []


def test_import_judges_urls_by_the_tenants_list(closed, hook):
    line = b'{"tenant_id": "a", "id": "own", "url": "%s", "event_types": ["*"]}' % hook.url.encode()
    refused = closed.api.post("/v1/endpoints/import", line).expect(200)["data"][0]
    assert refused["status"] == 422
    allow(closed, tenant_path("a"), LOOPBACK)
    assert closed.api.post("/v1/endpoints/import", line).expect(200)["data"][0]["status"] == 201


def test_notices_reach_the_networks_of_the_tenant(closed, receiver):
    hooks = {tenant: receiver.hook() for tenant in ("a", "b")}
    allow(closed, tenant_path("a"), LOOPBACK)
    for tenant, hook in hooks.items():
        closed.api.call("PATCH", tenant_path(tenant), {"contacts": [hook.url]}).expect(200)
        made = closed.api.create_endpoint(tenant, "http://8.8.8.8/")
        closed.sql("""insert into postrider.notice (endpoint_id, tenant_id, kind, stage, contacts, due_at)
                      select id, tenant_id, 'warning', 50, array[%s], now() - interval '1 minute'
                      from postrider.endpoint where public_id = %s""", [hook.url, made["id"]])
    hooks["a"].wait_for(1)
    assert "allow_networks" in closed.wait_for_log("notice_failed")["error"]
    assert hooks["b"].requests == []


def test_every_address_is_no_setting(start_node, database_url):
    node = Node(database_url=database_url, allow_networks="0.0.0.0/0")
    try:
        assert node.wait_exit() != 0
        assert "every address" in "\n".join([*map(str, node.log), *node.text])
    finally:
        Node.running.remove(node)
