"""What settings and the kind of a token let a customer do and see."""

from harness.receiver import Reply
from harness.wait import wait_until

ENDPOINT = {"url": "http://127.0.0.1:9999/", "event_types": ["*"]}
ENDPOINTS = "/v1/tenants/acme/endpoints"


def customer_of(node, **key):
    node.api.call("PUT", "/v1/tenants/acme", {}).expect(200, 201)
    made = node.api.post("/v1/keys", {"role": "customer", "tenant_id": "acme", **key}).expect(201)
    return node.api.as_key(made["key"])


def token_of(node, **fields):
    made = node.api.post("/v1/tenants/acme/tokens", {"expires_in_seconds": 3600, **fields}).expect(201)
    return node.api.as_key(made["token"])


def test_a_customer_erases_payloads_where_operators_allow_it(start_node, database_url):
    node = start_node(database_url=database_url, customer_may_erase="true")
    customer = customer_of(node)
    node.api.create_tenant("other")
    others = node.api.publish("other", data={"secret": 0})["id"]
    events = [node.api.publish("acme", data={"secret": number})["id"] for number in (1, 2, 3)]
    reader = token_of(node, access="read")
    assert reader.call("DELETE", f"/v1/tenants/acme/events/{events[0]}/payload").status == 403
    assert reader.call("DELETE", "/v1/tenants/acme/payloads").status == 403
    assert customer.call("DELETE", f"/v1/tenants/other/events/{others}/payload").status in (403, 404)
    assert customer.call("DELETE", "/v1/tenants/other/payloads").status in (403, 404)

    assert customer.call("DELETE", f"/v1/tenants/acme/events/{events[0]}/payload").expect(200)["erased"] == 1
    assert [bool(customer.get(f"/v1/tenants/acme/events/{event}").expect(200)["data"]) for event in events] == \
        [False, True, True]
    assert customer.call("DELETE", "/v1/tenants/acme/payloads").expect(200)["is_complete"]
    assert not any(customer.get(f"/v1/tenants/acme/events/{event}").expect(200)["data"] for event in events)
    assert node.api.get(f"/v1/tenants/other/events/{others}").expect(200)["data"] == {"secret": 0}


def test_the_rate_for_customers_is_their_maximum_and_their_default(start_node, database_url):
    node = start_node(database_url=database_url, customer_rate_per_second=5)
    customer = customer_of(node)
    for rate in (5.5, 6, 1000000):
        for method, path in (("POST", ENDPOINTS), ("PUT", f"{ENDPOINTS}/own")):
            refused = customer.call(method, path, {**ENDPOINT, "rate_per_second": rate})
            assert refused.status == 422 and refused.json["errors"][0]["pointer"] == "/rate_per_second", refused.body
    path = f"{ENDPOINTS}/own"
    assert customer.call("PUT", path, ENDPOINT).expect(201)["rate_per_second"] == 5
    assert customer.post(ENDPOINTS, {**ENDPOINT, "rate_per_second": None}).expect(201)["rate_per_second"] == 5
    assert customer.call("PATCH", path, {"rate_per_second": 2.5}).expect(200)["rate_per_second"] == 2.5
    assert customer.call("PATCH", path, {"description": "x"}).expect(200)["rate_per_second"] == 2.5
    assert customer.call("PATCH", path, {"rate_per_second": None}).expect(200)["rate_per_second"] == 5
    assert customer.call("PATCH", path, {"rate_per_second": 6}).status == 422

    # It is no limit for operators, and what they set stays until the customer changes the rate.
    assert node.api.call("PATCH", path, {"rate_per_second": None}).expect(200)["rate_per_second"] is None
    assert customer.call("PATCH", path, {"description": "y"}).expect(200)["rate_per_second"] is None
    assert node.api.call("PATCH", path, {"rate_per_second": 50}).expect(200)["rate_per_second"] == 50


def test_a_token_without_payloads_sees_neither_data_nor_responses(start_node, database_url, hook):
    node = start_node(database_url=database_url)
    customer_of(node)
    hook.reply(then=Reply(500, {"content-type": "text/plain"}, b"the answer"))
    endpoint = node.api.create_endpoint("acme", hook.url)
    event = node.api.publish("acme", data={"secret": "of acme"})["id"]

    def tried():
        return node.api.get("/v1/tenants/acme/attempts").expect(200)["data"]

    wait_until(tried, "an attempt")
    (delivery,) = node.api.get("/v1/tenants/acme/deliveries").expect(200)["data"]
    for payloads in (True, False):
        token = token_of(node, payloads=payloads)
        assert ("of acme" in str(token.get(f"/v1/tenants/acme/events/{event}").expect(200))) == payloads
        shown = token.get(f"/v1/tenants/acme/deliveries/{delivery['id']}").expect(200)
        assert ("the answer" in str(shown)) == payloads
        sample = token.post(f"{ENDPOINTS}/{endpoint['id']}/test").expect(200)
        assert (sample["response"]["preview"] == "the answer") == payloads
