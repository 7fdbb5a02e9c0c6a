"""Endpoints in daily work: testing one, canceling pending deliveries, concurrent changes."""

import datetime
import json
import socket

import pytest

from harness.receiver import Reply
from harness.wait import wait_until


def path(tenant, endpoint, *more):
    return "/".join([f"/v1/tenants/{tenant}/endpoints/{endpoint}", *more])


def history(node, endpoint):
    return node.sql(f"select outcome, attempt from postrider.attempt a join postrider.endpoint e on e.id = a.endpoint_id "
                    f"where e.public_id = '{endpoint}'")


def test_a_test_send_returns_the_exchange_and_counts_for_nothing(node, tenant, hook):
    made = node.api.create_endpoint(tenant, hook.url, ["invoice.paid"], headers={"x-api-token": "very-secret"})
    node.api.post(path(tenant, made["id"], "pause")).expect(200)
    hook.reply(Reply(503, {"content-type": "text/plain"}, b"not today"))
    tried = node.api.post(path(tenant, made["id"], "test"), {"data": {"n": 7}}).expect(200)
    assert tried["delivered"] is False
    assert tried["response"]["status"] == 503 and tried["response"]["preview"] == "not today"
    assert tried["phases"]["total_us"] > 0
    got, = hook.wait_for(1)
    assert json.loads(got.body)["type"] == "invoice.paid" and json.loads(got.body)["data"] == {"n": 7}
    assert got.body.decode() == tried["request"]["body"]
    assert got.headers["webhook-signature"] == tried["request"]["headers"]["webhook-signature"]
    assert got.headers["x-api-token"] == "very-secret"
    assert "very-secret" not in json.dumps(tried)
    after = node.api.endpoint(tenant, made["id"])
    assert (after["health"], after["pending"], after["status"]) == ("healthy", 0, "paused")
    assert history(node, made["id"]) == []


def test_a_test_send_uses_a_type_that_the_endpoint_subscribes_to(node, tenant, hook):
    name = f"{tenant}.paid"
    versions = [{"version": "1", "schema": {}, "example": {"amount": 7}}]
    node.api.call("PUT", f"/v1/event-types/{name}", {"versions": versions}).expect(201)
    catalogued = node.api.create_endpoint(tenant, hook.url, [f"{tenant}.*"])["id"]
    plain = node.api.create_endpoint(tenant, hook.url, ["unknown.to_the_catalogue.*"])["id"]

    def sent(endpoint):
        return json.loads(node.api.post(path(tenant, endpoint, "test")).expect(200)["request"]["body"])

    # Nodes see a change of the catalogue within a second.
    example = wait_until(lambda: (body := sent(catalogued))["type"] == name and body, "the example is sent")
    assert example["data"] == {"amount": 7}
    assert sent(plain)["type"] == "unknown.to_the_catalogue.test"


def test_a_delivered_test_resumes_what_postrider_stopped_if_it_is_asked_to(node, tenant, hook, cli):
    made = node.api.create_endpoint(tenant, hook.url)
    hook.reply(410, then=503)
    node.api.publish(tenant)
    wait_until(lambda: node.api.endpoint(tenant, made["id"])["status"] == "disabled", "410 disables it")
    assert node.api.endpoint(tenant, made["id"])["status_by"] == "postrider"
    failed = node.api.post(path(tenant, made["id"], "test"), {"resume": True}).expect(200)
    assert (failed["delivered"], failed["endpoint_status"], failed["resume"]) == (False, "disabled", None)
    hook.reply(then=204)
    offered = node.api.post(path(tenant, made["id"], "test")).expect(200)
    assert (offered["delivered"], offered["endpoint_status"], offered["resume"]) == (True, "disabled", "offered")
    done = cli("endpoint", "test", tenant, made["id"], "--resume")
    assert done.returncode == 0 and "active again" in done.stderr
    after = node.api.endpoint(tenant, made["id"])
    assert (after["status"], after["status_by"], after["status_reason"]) == ("active", "operator", "a test was delivered")
    again = node.api.post(path(tenant, made["id"], "test"), {"resume": True}).expect(200)
    assert (again["endpoint_status"], again["resume"]) == ("active", None)
    [entry] = node.api.get(f"/v1/audit?object={made['id']}&action=endpoint.resume").expect(200)["data"]
    assert entry["reason"] == "a test was delivered"
    node.api.publish(tenant)
    hook.wait_for(5)


@pytest.mark.parametrize("verb", ["pause", "disable"])
def test_a_test_never_resumes_what_somebody_stopped_by_hand(node, tenant, hook, verb):
    made = node.api.create_endpoint(tenant, hook.url)
    status = node.api.post(path(tenant, made["id"], verb), {"reason": "the customer asked"}).expect(200)["status"]
    tried = node.api.post(path(tenant, made["id"], "test"), {"resume": True}).expect(200)
    assert (tried["delivered"], tried["endpoint_status"], tried["resume"]) == (True, status, "by_hand")
    after = node.api.endpoint(tenant, made["id"])
    assert (after["status"], after["status_reason"], after["status_by"]) == (status, "the customer asked", "operator")


def test_a_test_send_says_in_words_why_there_was_no_answer(node, tenant):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    made = node.api.create_endpoint(tenant, f"http://127.0.0.1:{port}/nobody-listens")
    tried = node.api.post(path(tenant, made["id"], "test")).expect(200)
    assert tried["response"] is None and tried["error"] == "connection_refused"
    assert tried["error_detail"]


def test_a_test_send_obeys_the_guard(start_node, database_url, hook):
    first = start_node(database_url=database_url)
    first.api.create_tenant("t")
    made = first.api.create_endpoint("t", hook.url)
    assert first.stop() == 0
    second = start_node(database_url=database_url, allow_networks=None)
    tried = second.api.post(path("t", made["id"], "test")).expect(200)
    assert (tried["error"], tried["address"]) == ("blocked", None)
    assert tried["error_detail"].startswith("destination not allowed: ")
    assert hook.requests == []


def test_pending_deliveries_are_canceled_and_later_ones_are_not(node, tenant, hook):
    made = node.api.create_endpoint(tenant, hook.url)
    node.api.post(path(tenant, made["id"], "pause")).expect(200)
    for number in range(3):
        node.api.publish(tenant, data={"n": number})
    wait_until(lambda: node.api.endpoint(tenant, made["id"])["pending"] == 3, "three are pending")
    answer = node.api.post(path(tenant, made["id"], "cancel-pending")).expect(202)
    assert answer["deliveries_canceled"] == 3
    wait_until(lambda: node.api.endpoint(tenant, made["id"])["pending"] == 0, "nothing is pending")
    assert history(node, made["id"]) == [("canceled", 0)] * 3
    node.api.publish(tenant, data={"n": "later"})
    node.api.post(path(tenant, made["id"], "resume")).expect(200)
    got, = hook.wait_for(1)
    assert json.loads(got.body)["data"] == {"n": "later"}


def test_canceling_spares_what_is_being_sent_and_the_lane_goes_on(node, tenant, hook):
    made = node.api.create_endpoint(tenant, hook.url, max_in_flight=1)
    hook.hold()
    for number in range(4):
        node.api.publish(tenant, data={"n": number})
    hook.wait_for(1)
    node.api.post(path(tenant, made["id"], "cancel-pending")).expect(202)
    node.wait_for_log("canceling_pending", endpoint_id=made["id"])
    hook.release()
    wait_until(lambda: sorted(history(node, made["id"])) == [("canceled", 0)] * 3 + [("delivered", 1)], "the end of all")
    node.api.publish(tenant, data={"n": "later"})
    first, second = hook.wait_for(2)
    assert json.loads(first.body)["data"] == {"n": 0} and json.loads(second.body)["data"] == {"n": "later"}


def test_deleting_an_endpoint_says_what_becomes_of_its_deliveries(node, tenant, hook):
    made = node.api.create_endpoint(tenant, hook.url)
    node.api.post(path(tenant, made["id"], "pause")).expect(200)
    node.api.publish(tenant)
    wait_until(lambda: node.api.endpoint(tenant, made["id"])["pending"] == 1, "one is pending")
    answer = node.api.call("DELETE", path(tenant, made["id"])).expect(200)
    assert (answer["status"], answer["deliveries_canceled"]) == ("deleted", 1)
    wait_until(lambda: history(node, made["id"]) == [("canceled", 0)], "canceled, and in the history")


def test_if_match_refuses_a_change_of_what_was_changed_meanwhile(node, tenant, hook):
    made = node.api.post(f"/v1/tenants/{tenant}/endpoints", {"url": hook.url, "event_types": ["*"]})
    tag, where = made.headers["etag"], path(tenant, made.json["id"])
    first = node.api.call("PATCH", where, {"description": "mine"}, headers={"if-match": tag})
    assert first.status == 200 and first.headers["etag"] != tag
    late = node.api.call("PATCH", where, {"description": "theirs"}, headers={"if-match": tag})
    assert late.status == 412 and late.json["type"].endswith("precondition-failed")
    assert node.api.call("DELETE", where, headers={"if-match": tag}).status == 412
    node.api.call("PUT", where + "/subscriptions", {"data": [{"pattern": "a.*"}]}).expect(200)
    assert node.api.call("PATCH", where, {}, headers={"if-match": first.headers["etag"]}).status == 412
    assert node.api.get(where).json["description"] == "mine"
    unknown = path(tenant, "not-there-yet")
    put = {"url": hook.url, "event_types": ["*"]}
    assert node.api.call("PUT", unknown, put, headers={"if-match": '"r1"'}).status == 412


def test_settings_give_new_endpoints_their_schedule_and_requests_their_user_agent(start_node, database_url, hook):
    node = start_node(database_url=database_url, default_on_rejected="retry", default_retry_schedule="1s,300s",
                      user_agent="Acme-Webhooks/2.0")
    node.api.create_tenant("t")
    made = node.api.create_endpoint("t", hook.url)
    assert (made["on_rejected"], made["retry_schedule"]) == ("retry", [1, 300])
    hook.reply(404)
    event = node.api.publish("t")["id"]
    rejected, delivered = hook.wait_for(2)
    assert {rejected.headers["user-agent"], delivered.headers["user-agent"]} == {"Acme-Webhooks/2.0"}
    wait_until(lambda: node.api.get(f"/v1/tenants/t/deliveries?event={event}").expect(200)["data"][0]["status"] == "delivered",
               "a 404 is retried")
    tried = node.api.post(path("t", made["id"], "test")).expect(200)
    assert tried["request"]["headers"]["user-agent"] == "Acme-Webhooks/2.0"

    own = {"on_rejected": "pause", "retry_schedule": [5]}
    changed = node.api.call("PATCH", path("t", made["id"]), own).expect(200)
    assert (changed["on_rejected"], changed["retry_schedule"]) == ("pause", [5])
    reset = node.api.call("PATCH", path("t", made["id"]), dict.fromkeys(own)).expect(200)
    assert (reset["on_rejected"], reset["retry_schedule"]) == ("retry", [1, 300])


def test_a_pause_that_was_answered_is_in_force(node, tenant, receiver):
    paused, other = receiver.hook(), receiver.hook()
    made = node.api.create_endpoint(tenant, paused.url)
    node.api.create_endpoint(tenant, other.url)
    for number in range(1, 6):
        node.api.publish(tenant)
        paused.wait_for(2 * number - 1)
        node.api.post(path(tenant, made["id"], "pause")).expect(200)
        event = node.api.publish(tenant)["id"]
        other.wait_for(2 * number)
        [waiting] = node.api.get(f"/v1/tenants/{tenant}/deliveries?event={event}&endpoint={made['id']}").expect(200)["data"]
        assert (waiting["status"], waiting["attempts"], len(paused.requests)) == ("pending", 0, 2 * number - 1)
        node.api.post(path(tenant, made["id"], "resume")).expect(200)
        paused.wait_for(2 * number)


def test_a_rotated_secret_and_a_paused_tenant_are_in_force_when_answered(node, tenant, hook, receiver):
    made = node.api.create_endpoint(tenant, hook.url)
    for number in range(1, 4):
        node.api.publish(tenant)
        first = hook.wait_for(2 * number - 1)[-1]
        assert len(first.headers["webhook-signature"].split()) == number
        node.api.post(path(tenant, made["id"], "secrets", "rotate")).expect(201)
        node.api.publish(tenant)
        second = hook.wait_for(2 * number)[-1]
        assert len(second.headers["webhook-signature"].split()) == number + 1

    node.api.post(f"/v1/tenants/{tenant}/pause").expect(200)
    event = node.api.publish(tenant)["id"]
    elsewhere = receiver.hook()
    node.api.create_tenant(tenant + "-other")
    node.api.create_endpoint(tenant + "-other", elsewhere.url)
    node.api.publish(tenant + "-other")
    elsewhere.wait_for(1)
    [waiting] = node.api.get(f"/v1/tenants/{tenant}/deliveries?event={event}").expect(200)["data"]
    assert (waiting["status"], waiting["attempts"]) == ("pending", 0)
    node.api.post(f"/v1/tenants/{tenant}/resume").expect(200)
    hook.wait_for(7)


def test_the_last_success_is_known_before_and_after_the_first_failure(node, tenant, hook):
    made = node.api.create_endpoint(tenant, hook.url)
    assert made["last_success_at"] is None
    node.api.publish(tenant)
    known = lambda: node.api.endpoint(tenant, made["id"])["last_success_at"]
    wait_until(known, "the first success is written")
    first = known()
    hook.reply(204, then=500)
    node.api.publish(tenant)
    hook.wait_for(2)
    wait_until(lambda: node.api.endpoint(tenant, made["id"])["pending"] == 0, "the second is settled")
    node.api.publish(tenant)
    wait_until(lambda: node.api.endpoint(tenant, made["id"])["health"] == "failing", "a failure")
    after = node.api.endpoint(tenant, made["id"])
    times = [datetime.datetime.fromisoformat(text) for text in (first, after["last_success_at"], after["last_failure_at"])]
    assert times == sorted(set(times))
