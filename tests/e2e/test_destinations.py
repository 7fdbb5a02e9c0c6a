"""Where deliveries may go. Nothing is opened unless the operator opens it."""

from harness.wait import wait_until


def test_private_addresses_and_plain_http_are_refused_at_save(start_node, database_url):
    node = start_node(database_url=database_url, allow_http=None, allow_networks=None)
    node.api.create_tenant("t")
    for url, opened_by in (("http://example.com/hook", "allow_http"), ("https://127.0.0.1/hook", "allow_networks"),
                           ("https://169.254.169.254/latest", ""), ("https://10.1.2.3/", "allow_networks"),
                           ("https://localhost/hook", "allow_networks"), ("https://[::1]/hook", "allow_networks"),
                           ("https://2130706433/", ""), ("https://user:pw@example.com/", "")):
        answer = node.api.post("/v1/tenants/t/endpoints", {"url": url, "event_types": ["*"]})
        assert answer.status == 422, url
        assert answer.json["errors"][0]["pointer"] == "/url"
        assert opened_by in answer.json["errors"][0]["detail"]


def test_a_destination_that_is_no_longer_allowed_is_a_dead_letter(start_node, database_url, hook):
    first = start_node(database_url=database_url)
    first.api.create_tenant("t")
    first.api.create_endpoint("t", hook.url)
    assert first.stop() == 0
    second = start_node(database_url=database_url, allow_networks=None)
    second.api.publish("t")
    wait_until(lambda: second.sql("select cause from postrider.dead_letter") == [("blocked",)], "a dead letter")
    assert hook.requests == []

    # The customer typed the address, so it may know what is wrong with it, but not how the server is configured.
    details = details_by_audience(second.api)
    assert all("allow_networks" in detail for detail in details["operator"]), details
    assert set(details["customer"]) == {"destination not allowed: the address is a loopback address"}


def test_what_a_name_resolves_to_is_shown_to_operators_only(start_node, database_url, hook):
    first = start_node(database_url=database_url)
    first.api.create_tenant("t")
    made = first.api.create_endpoint("t", hook.url.replace("127.0.0.1", "localhost"))
    assert first.stop() == 0
    second = start_node(database_url=database_url, allow_networks="192.168.77.0/24")
    second.api.publish("t")
    wait_until(lambda: second.sql("select cause from postrider.dead_letter") == [("blocked",)], "a dead letter")
    details = details_by_audience(second.api)
    assert all("localhost resolves to " in detail for detail in details["operator"]), details
    assert set(details["customer"]) == {"destination not allowed"}

    customer = second.api.as_key(bound_key(second.api, "operator"))
    test = f"/v1/tenants/t/endpoints/{made['id']}/test"
    assert "localhost resolves to " in second.api.post(test).expect(200)["error_detail"]
    tried = customer.post(test).expect(200)
    assert (tried["error"], tried["error_detail"], tried["address"]) == ("blocked", "destination not allowed", None)
    for answer in (customer.post("/v1/tenants/t/endpoints", {"url": "http://localhost/", "event_types": ["*"]}),
                   customer.call("PUT", "/v1/tenants/t/endpoints/own", {"url": "http://localhost/", "event_types": ["*"]}),
                   customer.call("PATCH", f"/v1/tenants/t/endpoints/{made['id']}", {"url": "http://localhost/"})):
        assert answer.status == 422
        assert answer.json["errors"] == [{"pointer": "/url", "detail": "destination not allowed"}]


def bound_key(api, role):
    return api.post("/v1/keys", {"role": role, "tenant_id": "t"}).expect(201)["key"]


def details_by_audience(api):
    details = {"operator": all_error_details(api), "customer": all_error_details(api.as_key(bound_key(api, "reader")))}
    assert len(details["operator"]) == len(details["customer"]) == 6
    return details


def all_error_details(api):
    """Of the one delivery, wherever it is shown."""
    (listed,) = api.get("/v1/tenants/t/deliveries").expect(200)["data"]
    (letter,) = api.get("/v1/tenants/t/dead-letters").expect(200)["data"]
    (attempt,) = api.get("/v1/tenants/t/attempts").expect(200)["data"]
    delivery = api.get(f"/v1/tenants/t/deliveries/{listed['id']}").expect(200)
    (tried,) = delivery["timeline"]
    event = api.get(f"/v1/tenants/t/events/{listed['event_id']}").expect(200)
    return [listed["last_error_detail"], letter["last_error_detail"], attempt["error_detail"],
            delivery["last_error_detail"], tried["error_detail"], event["deliveries"][0]["last_error_detail"]]
