"""The responses to publishers."""

import json

from harness.wait import wait_until


def events_of(tenant):
    return f"/v1/tenants/{tenant}/events"


def test_the_publishers_id_is_the_events_id(node, tenant, hook):
    node.api.create_endpoint(tenant, hook.url)
    assert node.api.publish(tenant, id="order-17")["id"] == "order-17"
    [request] = hook.wait_for(1)
    assert request.headers["webhook-id"] == "order-17"
    assert json.loads(request.body)["id"] == "order-17"


def test_the_same_id_and_content_is_answered_again_and_delivered_once(node, tenant, hook):
    node.api.create_endpoint(tenant, hook.url)
    body = {"type": "a.b", "data": {"n": 1}, "id": "same"}
    first = node.api.post(events_of(tenant), body)
    again = node.api.post(events_of(tenant), body)
    assert (first.status, again.status) == (202, 200)
    assert first.json == again.json
    assert node.api.post(events_of(tenant), {**body, "data": {"n": 2}}).status == 409
    node.api.publish(tenant, id="last")
    assert sorted(request.headers["webhook-id"] for request in hook.wait_for(2)) == ["last", "same"]
    assert len(hook.requests) == 2


def test_the_same_idempotency_key_is_answered_again(node, tenant):
    key = {"idempotency-key": "once only"}
    first = node.api.publish(tenant, data={"n": 1}, headers=key)
    assert node.api.publish(tenant, data={"n": 1}, headers=key) == first
    conflict = node.api.post(events_of(tenant), {"type": "a.b", "data": {"n": 2}}, headers=key)
    assert conflict.status == 409
    assert conflict.headers["content-type"].startswith("application/problem+json")


def test_good_items_of_a_batch_commit_although_others_are_bad(node, tenant, hook):
    node.api.create_endpoint(tenant, hook.url)
    items = [
        {"tenant_id": tenant, "type": "a.b", "data": {}, "id": "one"},
        {"tenant_id": tenant, "type": "not a type", "data": {}},
        {"tenant_id": "nobody-here", "type": "a.b", "data": {}},
        {"tenant_id": tenant, "type": "a.b", "data": {}, "id": "two"},
    ]
    answers = node.api.post("/v1/events/batch", items).expect(200)
    assert [answer["status"] for answer in answers] == [202, 422, 404, 202]
    assert sorted(request.headers["webhook-id"] for request in hook.wait_for(2)) == ["one", "two"]


def test_an_unknown_tenant_is_not_found(node):
    answer = node.api.post(events_of("nobody-here"), {"type": "a.b", "data": {}})
    assert answer.status == 404
    assert answer.json["request_id"]


def test_a_missing_key_is_named_and_wrong_keys_look_the_same(node, tenant):
    created = node.api.post("/v1/keys", {"role": "publisher", "tenant_id": tenant}).expect(201)
    node.api.call("DELETE", f"/v1/keys/{created['id']}").expect(204)
    publish = lambda key: node.api.as_key(key).post(events_of(tenant), {"type": "a.b", "data": {}})
    wait_until(lambda: publish(created["key"]).status == 401, "the key is revoked")
    missing, unknown, revoked = (publish(key) for key in (None, "x" * 40, created["key"]))
    assert [answer.status for answer in (missing, unknown, revoked)] == [401, 401, 401]
    assert "header is missing" in missing.json["detail"]
    assert unknown.json["detail"] == revoked.json["detail"]


def test_a_bad_field_is_named_with_a_pointer(node, tenant):
    answer = node.api.post(events_of(tenant), {"type": "a.b", "data": {}, "surprise": 1})
    assert answer.status == 422
    assert answer.json["errors"][0]["pointer"] == "/surprise"


def test_bad_json_is_refused(node, tenant):
    for body in (b"{", b"[1] x", b'{"type":"a.b","data":{}} {}', b"\xff\xfe", b"[" * 200):
        assert node.api.post(events_of(tenant), body).status in (400, 422), body


def test_too_much_data_is_refused(node, tenant):
    answer = node.api.post(events_of(tenant), {"type": "a.b", "data": "x" * (300 << 10)})
    assert answer.status in (413, 422)


def test_without_a_database_publishing_is_refused_with_retry_after(start_node, postgres, database_url):
    node = start_node(database_url=database_url)
    node.api.create_tenant("t")
    postgres.stop()
    try:
        answer = node.api.post(events_of("t"), {"type": "a.b", "data": {}})
        assert answer.status == 503
        assert int(answer.headers["retry-after"]) > 0
        assert node.api.get("/healthz").status == 200
        wait_until(lambda: node.api.get("/readyz").status == 503, "it says that it is not ready")
    finally:
        postgres.start()
    wait_until(lambda: node.api.post(events_of("t"), {"type": "a.b", "data": {}}).status == 202, "it recovers")
