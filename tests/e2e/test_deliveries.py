"""The requests that receivers get, and the effect of their responses on a delivery."""

import json

from harness.receiver import Reply
from harness.signatures import assert_official_library_accepts, assert_signed
from harness.wait import wait_until


def dead_letters(node, tenant):
    return node.sql("select cause, attempts, status_code from postrider.dead_letter where tenant_id = %s", [tenant])


def queued(node, tenant):
    return node.sql("select count(*) from postrider.queue where tenant_id = %s", [tenant])[0][0]


def test_published_event_arrives_signed(node, tenant, hook):
    secret = node.api.create_endpoint(tenant, hook.url)["secret"]
    event = node.api.publish(tenant, "invoice.paid", {"amount": 42}, version="2026-04-08")
    [request] = hook.wait_for(1)
    assert_signed(secret, request)
    assert request.headers["webhook-id"] == event["id"]
    assert request.headers["content-type"] == "application/json"
    assert request.headers["webhook-attempt"] == "1"
    assert request.headers["webhook-delivery-id"].startswith("dlv_")
    assert request.headers["user-agent"].startswith("postrider/")
    body = json.loads(request.body)
    assert list(body) == ["id", "type", "version", "tenant_id", "created_at", "data"]
    assert (body["id"], body["type"], body["tenant_id"]) == (event["id"], "invoice.paid", tenant)
    assert body["data"] == {"amount": 42}


def test_the_official_library_accepts_what_arrives(node, tenant, hook):
    secret = node.api.create_endpoint(tenant, hook.url)["secret"]
    node.api.publish(tenant, data={"name": "Zoë", "emoji": "🐎"})
    assert_official_library_accepts(secret, hook.wait_for(1)[0])


def test_payload_bytes_pass_untouched(node, tenant, hook):
    data = b'{"big":12345678901234567890.12345678901234567890,"zero":"\\u0000","odd":"\\u0041\\/","z":1,"a":[ 1 ,2 ]}'
    node.api.create_endpoint(tenant, hook.url)
    node.api.post(f"/v1/tenants/{tenant}/events", b'{"type":"a.b","data":' + data + b"}").expect(202)
    assert b'"data":' + data + b"}" in hook.wait_for(1)[0].body


def test_retry_sends_the_same_bytes_under_the_same_id(node, tenant, hook):
    hook.reply(503, 500)
    secret = node.api.create_endpoint(tenant, hook.url, retry_schedule=[1])["secret"]
    node.api.publish(tenant)
    requests = hook.wait_for(3)
    assert len({request.body for request in requests}) == 1
    assert len({request.headers["webhook-id"] for request in requests}) == 1
    assert [request.headers["webhook-attempt"] for request in requests] == ["1", "2", "3"]
    for request in requests:
        assert_signed(secret, request)
    wait_until(lambda: queued(node, tenant) == 0, "the delivery is settled")
    outcomes = node.sql("select attempt, outcome, status_code from postrider.attempt where tenant_id = %s order by 1",
                        [tenant])
    assert outcomes == [(1, "retrying", 503), (2, "retrying", 500), (3, "delivered", 204)]


def test_used_up_attempts_are_a_dead_letter(node, tenant, hook):
    hook.reply(then=500)
    node.api.create_endpoint(tenant, hook.url, retry_schedule=[1], max_attempts=2)
    node.api.publish(tenant)
    wait_until(lambda: dead_letters(node, tenant) == [("exhausted", 2, 500)], "a dead letter")
    assert queued(node, tenant) == 0


def test_rejected_is_a_dead_letter_at_once(node, tenant, hook):
    hook.reply(400)
    node.api.create_endpoint(tenant, hook.url)
    node.api.publish(tenant)
    wait_until(lambda: dead_letters(node, tenant) == [("rejected", 1, 400)], "a dead letter")


def test_redirects_are_not_followed(node, tenant, receiver):
    hook, elsewhere = receiver.hook(), receiver.hook()
    hook.reply(Reply(302, {"location": elsewhere.url}))
    node.api.create_endpoint(tenant, hook.url)
    node.api.publish(tenant)
    wait_until(lambda: dead_letters(node, tenant) == [("rejected", 1, 302)], "a dead letter")
    assert elsewhere.requests == []


def test_gone_disables_the_endpoint(node, tenant, hook):
    hook.reply(410)
    endpoint = node.api.create_endpoint(tenant, hook.url)
    node.api.publish(tenant)
    wait_until(lambda: node.api.endpoint(tenant, endpoint["id"])["status"] == "disabled", "it is disabled")
    wait_until(lambda: dead_letters(node, tenant) == [("gone", 1, 410)], "a dead letter")
    assert node.api.publish(tenant)["deliveries"] == 0


def test_pause_holds_and_resume_drains(node, tenant, receiver):
    held, other = receiver.hook(), receiver.hook()
    endpoint = node.api.create_endpoint(tenant, held.url)
    later = node.api.create_endpoint(tenant, other.url)
    path = f"/v1/tenants/{tenant}/endpoints/{endpoint['id']}"
    node.api.post(f"{path}/pause", {"reason": "maintenance"}).expect(200)
    assert node.api.endpoint(tenant, endpoint["id"])["status"] == "paused"
    # A node learns of changes in their order: where the one after the pause is seen, so is the pause.
    node.api.call("PATCH", f"/v1/tenants/{tenant}/endpoints/{later['id']}", {"headers": {"x-after": "pause"}}).expect(200)
    events = []

    def is_noticed():
        events.append(node.api.publish(tenant)["id"])
        return "x-after" in other.wait_for(len(events))[-1].headers

    wait_until(is_noticed, "the node has learnt of both")
    wait_until(lambda: queued(node, tenant) == len(events) - len(held.requests), "what was just in time has ended")
    before = len(held.requests)
    events += [node.api.publish(tenant, data={"n": n})["id"] for n in range(5)]
    other.wait_for(len(events))
    assert len(held.requests) == before
    node.api.post(f"{path}/resume", {"reason": "done"}).expect(200)
    arrived = [request.headers["webhook-id"] for request in held.wait_for(len(events))]
    assert sorted(arrived) == sorted(events)


def test_several_matching_patterns_make_one_delivery(node, tenant, receiver):
    many, one = receiver.hook(), receiver.hook()
    node.api.create_endpoint(tenant, many.url, ["invoice.paid", "invoice.*", "*"])
    node.api.create_endpoint(tenant, one.url, ["invoice.paid"])
    assert node.api.publish(tenant, "invoice.paid")["deliveries"] == 2
    one.wait_for(1)
    last = node.api.publish(tenant, "invoice.paid")["id"]
    arrived = [request.headers["webhook-id"] for request in many.wait_for(2)]
    one.wait_for(2)
    assert len(arrived) == len(many.requests) == 2 and last in arrived


def test_a_prefix_pattern_matches_below_the_prefix_only(node, tenant, hook):
    node.api.create_endpoint(tenant, hook.url, ["invoice.*"])
    assert node.api.publish(tenant, "invoice")["deliveries"] == 0
    assert node.api.publish(tenant, "invoices.paid")["deliveries"] == 0
    assert node.api.publish(tenant, "invoice.paid.late")["deliveries"] == 1


def test_tenants_get_only_their_own_events(node, tenant, receiver):
    mine, theirs = receiver.hook(), receiver.hook()
    stranger = f"{tenant}-stranger"
    node.api.create_tenant(stranger)
    node.api.create_endpoint(tenant, mine.url)
    node.api.create_endpoint(stranger, theirs.url)
    node.api.publish(tenant)
    mine.wait_for(1)
    node.api.publish(stranger)
    [request] = theirs.wait_for(1)
    assert json.loads(request.body)["tenant_id"] == stranger
    assert len(mine.requests) == 1


def test_a_strict_endpoint_gets_events_in_order_although_the_head_is_retried(node, tenant, hook):
    hook.reply(503)
    node.api.create_endpoint(tenant, hook.url, ordering="strict", retry_schedule=[1])
    events = [node.api.publish(tenant, data={"n": n})["id"] for n in range(5)]
    arrived = [request.headers["webhook-id"] for request in hook.wait_for(6)]
    assert arrived == [events[0], *events]
    assert hook.in_flight_max == 1


def test_in_flight_never_exceeds_the_endpoints_cap(node, tenant, hook):
    hook.hold()
    node.api.create_endpoint(tenant, hook.url, max_in_flight=3)
    for n in range(12):
        node.api.publish(tenant, data={"n": n})
    hook.wait_for(3)
    hook.release()
    hook.wait_for(12)
    assert hook.in_flight_max == 3


def test_an_endpoint_that_hangs_times_out_and_is_retried(node, tenant, hook):
    hook.hold()
    node.api.create_endpoint(tenant, hook.url, timeout_ms=500, retry_schedule=[1])
    node.api.publish(tenant)
    hook.wait_for(2)
    first = "select error from postrider.attempt where tenant_id = %s and attempt = 1"
    [(error,)] = wait_until(lambda: node.sql(first, [tenant]), "the first attempt is written down")
    assert error.startswith("timeout")
    hook.release()


def test_retry_after_holds_the_whole_endpoint(node, tenant, hook):
    hook.reply(Reply(429, {"retry-after": "2"}))
    node.api.create_endpoint(tenant, hook.url, retry_schedule=[1], max_in_flight=1)
    node.api.publish(tenant)
    hook.wait_for(1)
    node.api.publish(tenant)
    requests = hook.wait_for(3)
    assert requests[1].at - requests[0].at > 1.9


def test_custom_headers_arrive(node, tenant, hook):
    node.api.create_endpoint(tenant, hook.url, headers={"x-api-token": "s3cret"})
    node.api.publish(tenant)
    assert hook.wait_for(1)[0].headers["x-api-token"] == "s3cret"


def test_during_a_rotation_both_secrets_verify(node, tenant, hook):
    endpoint = node.api.create_endpoint(tenant, hook.url)
    path = f"/v1/tenants/{tenant}/endpoints/{endpoint['id']}/secrets/rotate"
    fresh = node.api.post(path, {"overlap_seconds": 600}).expect(200, 201)["secret"]

    def both_sign():
        before = len(hook.requests)
        node.api.publish(tenant)
        request = hook.wait_for(before + 1)[-1]
        return request if len(request.headers["webhook-signature"].split(" ")) == 2 else None

    request = wait_until(both_sign, "both secrets sign")
    assert_signed(fresh, request)
    assert_signed(endpoint["secret"], request)
