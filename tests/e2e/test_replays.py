"""Sending again: one delivery, and ranges."""

import datetime
import json


from harness.wait import wait_until


def an_hour_ago():
    return (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)).isoformat()


def dead_letters(node, tenant):
    return node.sql("""select 'dlv_' || replace(delivery_id::text, '-', ''), resolution from postrider.dead_letter
                       where tenant_id = %s order by delivery_id""", (tenant,))


def make_dead_letters(node, tenant, hook, count=1, **fields):
    """Events that the endpoint rejects; from then on it accepts."""
    endpoint = node.api.create_endpoint(tenant, hook.url, **fields)["id"]
    hook.reply(*[400] * count)
    for number in range(count):
        node.api.publish(tenant, data={"number": number})
    wait_until(lambda: len(dead_letters(node, tenant)) == count, "everything is a dead letter")
    return endpoint


def replay(node, tenant, delivery, reason="the customer asked", **fields):
    return node.api.post(f"/v1/tenants/{tenant}/deliveries/{delivery}/replay", {"reason": reason, **fields})


def range_replay(node, tenant, only="failed", **fields):
    body = {"only": only, "since": an_hour_ago(), "reason": "after the outage", **fields}
    return node.api.post(f"/v1/tenants/{tenant}/replays", body)


def wait_settled(node, tenant, replay_id):
    def settled():
        seen = node.api.get(f"/v1/tenants/{tenant}/replays/{replay_id}").expect(200)
        return seen if seen["status"] == "completed" and seen["pending"] == 0 else None
    return wait_until(settled, "the replay is done and everything of it has ended")


def test_a_replay_sends_the_same_event_with_the_same_bytes_as_a_new_delivery(node, tenant, hook):
    make_dead_letters(node, tenant, hook)
    [(old, _)] = dead_letters(node, tenant)
    made = replay(node, tenant, old).expect(202)
    first, second = hook.wait_for(2)
    assert made["id"] != old and made["replayed_from"] == old
    assert second.headers["webhook-id"] == first.headers["webhook-id"]
    assert second.body == first.body
    assert second.headers["webhook-delivery-id"] == made["id"]
    assert second.headers["webhook-attempt"] == "1"
    assert dead_letters(node, tenant) == [(old, "replayed")]
    seen = wait_settled(node, tenant, made["replay_id"])
    assert (seen["matched"], seen["queued"], seen["delivered"], seen["failed"]) == (1, 1, 1, 0)
    assert seen["delivery_id"] == old and seen["reason"] == "the customer asked"


def test_a_failed_replay_leaves_the_retries_of_the_original_alone(node, tenant, hook):
    node.api.create_endpoint(tenant, hook.url, retry_schedule=[600], max_attempts=5)
    hook.reply(503, 400)
    node.api.publish(tenant)
    hook.wait_for(1)
    row = "select attempts, due_at from postrider.queue where tenant_id = %s and replay_id is null"
    [(attempts, due)] = wait_until(lambda: [r for r in node.sql(row, (tenant,)) if r[0] == 1], "it is to be retried")
    replay(node, tenant, hook.requests[0].headers["webhook-delivery-id"]).expect(202)
    hook.wait_for(2)
    wait_until(lambda: len(dead_letters(node, tenant)) == 1, "the replay was refused")
    assert node.sql(row, (tenant,)) == [(attempts, due)]


def test_a_replay_is_refused_where_it_makes_no_sense(node, tenant, hook):
    endpoint = make_dead_letters(node, tenant, hook)
    [(old, _)] = dead_letters(node, tenant)
    assert replay(node, tenant, "dlv_" + "0" * 32).status == 404
    assert replay(node, tenant, "nonsense").status == 404
    assert node.api.post(f"/v1/tenants/{tenant}/deliveries/{old}/replay", {}).status == 422
    assert replay(node, tenant, old, not_before="2999-01-01T00:00:00Z").status == 422
    node.api.create_tenant(tenant + "-other")
    assert replay(node, tenant + "-other", old).status == 404
    node.api.post(f"/v1/tenants/{tenant}/endpoints/{endpoint}/disable").expect(200)
    refused = replay(node, tenant, old)
    assert refused.status == 409 and refused.json["type"].endswith("endpoint-inactive")
    refused = range_replay(node, tenant, endpoint=endpoint)
    assert refused.status == 409
    assert dead_letters(node, tenant) == [(old, None)]


def test_one_key_replays_ten_deliveries_a_second(node, tenant, hook):
    make_dead_letters(node, tenant, hook)
    [(old, _)] = dead_letters(node, tenant)
    answers = {replay(node, tenant, old).status for _ in range(40)}
    assert answers <= {202, 429}  # a slow machine makes fewer
    [(most,)] = node.sql("""select max(beside) from (
                              select count(*) over (order by created_at range interval '1 second' preceding) as beside
                              from postrider.replay where tenant_id = %s) as r""", (tenant,))
    assert most <= 11  # the window is closed on both sides
    count = "select count(*) from postrider.replay where tenant_id = %s"
    wait_until(lambda: replay(node, tenant, old).status == 202 and node.sql(count, (tenant,))[0][0] >= 10, "ten are made")
    move = "update postrider.replay set created_at = clock_timestamp() + %s * interval '1 second' where tenant_id = %s"
    node.sql(move, (30, tenant))
    try:
        refused = replay(node, tenant, old)
        assert refused.status == 429 and refused.json["type"].endswith("too-fast"), refused
    finally:
        node.sql(move, (-30, tenant))
    assert replay(node, tenant, old).status == 202
    assert node.api.get("/metrics").body.count(b"webhook_replay_requests_total") >= 1


def test_replaying_in_sql_is_one_line(node, tenant, hook):
    make_dead_letters(node, tenant, hook)
    [(old, _)] = dead_letters(node, tenant)
    [(made,)] = node.sql("select postrider.replay_delivery(%s, 'asked by phone')", (old,))
    assert hook.wait_for(2)[1].headers["webhook-delivery-id"] == made


def test_a_range_is_counted_dry_and_then_sent(node, tenant, hook):
    make_dead_letters(node, tenant, hook, 30)
    assert range_replay(node, tenant, dry_run=True).expect(200) == {"matched": 30, "is_complete": True}
    assert len(hook.requests) == 30
    asked = range_replay(node, tenant, rate_per_second=500).expect(202)
    done = wait_settled(node, tenant, asked["id"])
    assert (done["matched"], done["queued"], done["delivered"], done["failed"]) == (30, 30, 30, 0)
    sent = [json.loads(got.body)["data"]["number"] for got in hook.requests]
    assert sorted(sent[30:]) == list(range(30))
    assert {resolution for _, resolution in dead_letters(node, tenant)} == {"replayed"}
    assert range_replay(node, tenant, dry_run=True).expect(200)["matched"] == 0
    listed = node.api.get(f"/v1/tenants/{tenant}/replays").expect(200)["data"]
    assert [each["id"] for each in listed] == [asked["id"]]


def test_what_was_published_before_the_subscription_is_missing(node, tenant, hook):
    for number in range(10):
        node.api.publish(tenant, "order.sent" if number < 4 else "invoice.paid")
    node.api.create_endpoint(tenant, hook.url)
    asked = range_replay(node, tenant, "missing", event_types=["order.*"]).expect(202)
    assert wait_settled(node, tenant, asked["id"])["delivered"] == 4
    again = range_replay(node, tenant, "missing", rate_per_second=500).expect(202)
    assert wait_settled(node, tenant, again["id"])["delivered"] == 6
    assert len(hook.requests) == 10


def test_one_replay_runs_per_tenant_and_can_be_canceled(node, tenant, hook):
    make_dead_letters(node, tenant, hook, 20)
    slow = range_replay(node, tenant, rate_per_second=0.5).expect(202)
    waiting = range_replay(node, tenant).expect(202)
    path = f"/v1/tenants/{tenant}/replays"
    wait_until(lambda: node.api.get(f"{path}/{slow['id']}").json["status"] == "running", "the first one runs")
    assert node.api.get(f"{path}/{waiting['id']}").json["status"] == "queued"
    canceled = node.api.post(f"{path}/{slow['id']}/cancel", {"reason": "too slow"}).expect(200)
    assert canceled["status"] == "canceled" and canceled["queued"] < 20
    done = wait_settled(node, tenant, waiting["id"])
    assert done["delivered"] + node.api.get(f"{path}/{slow['id']}").json["queued"] == 20
    assert node.api.post(f"{path}/{slow['id']}/cancel").expect(200)["status"] == "canceled"


def test_wrong_requests_are_told_which_field(node, tenant):
    path = f"/v1/tenants/{tenant}/replays"
    def pointers(**body):
        return {error["pointer"] for error in node.api.post(path, body).json.get("errors", [])}
    assert pointers() == {"/only", "/since", "/reason"}
    good = {"only": "failed", "since": an_hour_ago(), "reason": "x"}
    assert pointers(**{**good, "only": "some"}) == {"/only"}
    assert pointers(**{**good, "since": "yesterday"}) == {"/since"}
    assert pointers(**{**good, "since": "2001-01-01T00:00:00Z"}) == {"/since"}
    assert pointers(**{**good, "event_types": ["a..b"]}) == {"/event_types/0"}
    assert pointers(**{**good, "endpoint": "ep_none"}) == {"/endpoint"}
    assert pointers(**{**good, "rate_per_second": 0}) == {"/rate_per_second"}
    assert pointers(**{**good, "more": 1}) == {"/more"}
    assert node.api.get(f"{path}/rpl_{'0' * 32}").status == 404
    assert node.api.get(f"{path}?status=canceled").expect(200)["data"] == []
    assert node.api.get(f"{path}?status=finished").json["errors"][0]["pointer"] == "status"


def test_dead_letters_are_replayed_by_id_or_by_filter(node, tenant, hook):
    make_dead_letters(node, tenant, hook, 5)
    ids = [delivery for delivery, _ in dead_letters(node, tenant)]
    path = f"/v1/tenants/{tenant}/dead-letters/replay"
    asked = node.api.post(path, {"ids": ids[:2], "reason": "these two"}).expect(202)
    assert wait_settled(node, tenant, asked["id"])["delivered"] == 2
    assert [resolution for _, resolution in dead_letters(node, tenant)] == ["replayed"] * 2 + [None] * 3
    none = node.api.post(path, {"cause": "gone", "reason": "x"}).expect(202)
    assert wait_settled(node, tenant, none["id"])["matched"] == 0
    rest = node.api.post(path, {"cause": "rejected", "reason": "the rest"}).expect(202)
    assert wait_settled(node, tenant, rest["id"])["delivered"] == 3
    assert node.api.post(path, {"ids": ["x"], "reason": "x"}).json["errors"][0]["pointer"] == "/ids/0"
    unknown = node.api.post(path, {"cause": "bad luck", "reason": "x"})
    assert unknown.status == 422 and unknown.json["errors"][0]["pointer"] == "/cause"
