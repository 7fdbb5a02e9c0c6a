"""What people see of deliveries and do to them while a node runs."""

import csv
import datetime
import http.client
import io
import json
import urllib.parse

from harness.wait import wait_until


def deliveries(node, tenant, **filters):
    query = "&".join(f"{name}={value}" for name, value in filters.items())
    return node.api.get(f"/v1/tenants/{tenant}/deliveries?{query}").expect(200)["data"]


def wait_for_status(node, tenant, status):
    wait_until(lambda: [d["status"] for d in deliveries(node, tenant)] == [status], f"one delivery {status}")
    return deliveries(node, tenant)[0]


def test_a_delivery_can_be_followed_from_the_first_failure_to_its_end(node, tenant, hook):
    hook.reply(503)
    endpoint = node.api.create_endpoint(tenant, hook.url, retry_schedule=[1])["id"]
    event = node.api.publish(tenant, "invoice.paid", subject="in_9")["id"]
    done = wait_for_status(node, tenant, "delivered")
    assert (done["endpoint_id"], done["event_id"], done["attempts"]) == (endpoint, event, 2)
    shown = node.api.get(f"/v1/tenants/{tenant}/deliveries/{done['id']}").expect(200)
    assert [(a["attempt"], a["outcome"], a["status_code"]) for a in shown["timeline"]] == [
        (1, "retrying", 503), (2, "delivered", 204)]
    assert [d["id"] for d in deliveries(node, tenant, subject="in_9")] == [done["id"]]
    found = node.api.get(f"/v1/search?q={done['id']}").expect(200)["data"]
    assert [(f["kind"], f["tenant_id"], f["about"]) for f in found] == [("delivery", tenant, "delivered")]


def test_retry_sends_a_waiting_delivery_now(node, tenant, hook):
    hook.reply(503)
    node.api.create_endpoint(tenant, hook.url, retry_schedule=[3600])
    node.api.publish(tenant)
    waiting = wait_for_status(node, tenant, "retrying")
    node.api.post(f"/v1/tenants/{tenant}/deliveries/{waiting['id']}/retry", {"reason": "it is up again"}).expect(200)
    done = wait_for_status(node, tenant, "delivered")
    assert (done["id"], done["attempts"]) == (waiting["id"], 2)
    node.api.post(f"/v1/tenants/{tenant}/deliveries/{waiting['id']}/retry").expect(409)


def test_a_canceled_delivery_is_not_sent_again(node, tenant, hook):
    hook.reply(503, 503)
    node.api.create_endpoint(tenant, hook.url, retry_schedule=[2])
    node.api.publish(tenant)
    waiting = wait_for_status(node, tenant, "retrying")
    node.api.post(f"/v1/tenants/{tenant}/deliveries/{waiting['id']}/cancel", {"reason": "wrong"}).expect(200)
    ended = wait_for_status(node, tenant, "canceled")
    assert ended["attempts"] == 1 and "wrong" in ended["last_error_detail"]
    node.api.post(f"/v1/tenants/{tenant}/deliveries/{waiting['id']}/cancel").expect(409)
    # A later event that took the same way proves that the canceled one would have been sent by now.
    node.api.publish(tenant, "later.on")
    wait_until(lambda: any(d["event_type"] == "later.on" and d["status"] == "delivered"
                           for d in deliveries(node, tenant)), "the later one arrived")
    assert [r.headers["webhook-attempt"] for r in hook.requests
            if r.headers["webhook-delivery-id"] == waiting["id"]] == ["1"]
    log = node.sql("select action, reason from postrider.audit where tenant_id = %s and action = 'delivery.cancel'", [tenant])
    assert log == [("delivery.cancel", "wrong")]


def test_a_delivery_canceled_while_it_is_sent_stays_canceled(node, tenant, hook):
    hook.hold()
    node.api.create_endpoint(tenant, hook.url)
    node.api.publish(tenant)
    hook.wait_for(1)
    [running] = deliveries(node, tenant)
    node.api.post(f"/v1/tenants/{tenant}/deliveries/{running['id']}/cancel").expect(200)
    hook.release()
    # The endpoint continues: events that are published now are settled after the late result was dropped.
    node.api.publish(tenant, "later.on")
    wait_until(lambda: any(d["event_type"] == "later.on" and d["status"] == "delivered"
                           for d in deliveries(node, tenant)), "the later one arrived")
    assert [d["status"] for d in deliveries(node, tenant) if d["id"] == running["id"]] == ["canceled"]


def test_dead_letters_are_counted_listed_and_discarded(node, tenant, hook):
    hook.reply(then=400)
    endpoint = node.api.create_endpoint(tenant, hook.url)["id"]
    for _ in range(3):
        node.api.publish(tenant)
    path = f"/v1/tenants/{tenant}/dead-letters"
    wait_until(lambda: node.api.get(f"{path}/summary").expect(200)["unresolved"] == 3, "three dead letters")
    [group] = node.api.get(f"{path}/summary").expect(200)["data"]
    assert (group["endpoint_id"], group["cause"], group["unresolved"]) == (endpoint, "rejected", 3)
    letters = node.api.get(f"{path}?cause=rejected&resolved=false").expect(200)["data"]
    assert node.api.post(f"{path}/discard", {"ids": [letters[0]["id"]]}).expect(200) == {"discarded": 1, "more": False}
    assert node.api.post(f"{path}/discard", {"endpoint": endpoint, "reason": "test"}).expect(200)["discarded"] == 2
    assert node.api.get(f"{path}/summary").expect(200) == {"data": [], "unresolved": 0}
    assert {l["resolution"] for l in node.api.get(path).expect(200)["data"]} == {"discarded"}
    assert node.api.get(f"{path}?resolved=false").expect(200)["data"] == []
    node.api.post(f"{path}/discard", {}).expect(422)


def test_the_brake_stops_everything_until_it_is_released(start_node, database_url, receiver):
    node = start_node(database_url=database_url)
    node.api.create_tenant("t")
    hook = receiver.hook()
    node.api.create_endpoint("t", hook.url)
    node.api.call("PATCH", "/v1/brakes", {"pause_all": True}).expect(422)
    braked = node.api.call("PATCH", "/v1/brakes", {"pause_all": True, "reason": "incident 42"}).expect(200)
    assert braked["pause_all"] and braked["reason"] == "incident 42" and braked["changed_by"].startswith("key_")
    wait_until(lambda: node.api.publish("t") and deliveries(node, "t", status="pending"), "what is published waits")
    node.api.call("PATCH", "/v1/brakes", {"pause_all": False, "reason": "over"}).expect(200)
    wait_until(lambda: not deliveries(node, "t", status="pending"), "all of it was sent")
    assert [row[0] for row in node.sql("select action from postrider.audit where action = 'brakes.update'")] == [
        "brakes.update"] * 2


def test_the_summary_is_of_the_largest_whatever_has_changed_since_they_were_summed_up(node, tenant):
    node.sql("""insert into postrider.dead_letter_count (tenant_id, endpoint_id, cause, unresolved)
                select %s, md5(n::text)::uuid, 'exhausted', n from generate_series(1, 1200) n""", (tenant,))
    # The largest are resolved, small ones grow, new ones come.
    node.sql("""insert into postrider.dead_letter_delta (tenant_id, endpoint_id, cause, unresolved)
                select %s, md5(n::text)::uuid, 'exhausted', -n from generate_series(1101, 1200) n
                union all select %s, md5(n::text)::uuid, 'exhausted', 5000 from generate_series(1, 3) n
                union all select %s, md5(n::text)::uuid, 'rejected', 9000 from generate_series(2001, 2002) n""",
             (tenant, tenant, tenant))
    found = [group["unresolved"] for group in
             node.api.get(f"/v1/tenants/{tenant}/dead-letters/summary").expect(200)["data"]]
    assert found == [9000, 9000, 5003, 5002, 5001] + list(range(1100, 105, -1))


def most_in_a_second(node, condition):
    """By the node's own clock, so that a slow receiver changes nothing."""
    [(most, count)] = node.sql(f"""
        select max(beside), count(*) from (
          select count(*) over (order by started_at range interval '1 second' preceding) as beside
          from postrider.attempt where attempt > 0 and {condition}) as sent""")
    return most, count


def test_the_brakes_rates_hold(start_node, database_url, receiver):
    rate, events = 4, 14
    node = start_node(database_url=database_url, shards=1, breaker_failures=1000)
    node.api.create_tenant("t")
    hook = receiver.hook()
    endpoint = node.api.create_endpoint("t", hook.url, retry_schedule=[1], max_in_flight=50)["id"]
    brake = lambda **fields: node.api.call("PATCH", "/v1/brakes", {**fields, "reason": "a test"}).expect(200)
    # With everything paused the rates are known before the first attempt.
    brake(pause_all=True, drain_rate_per_second=rate)
    wait_until(lambda: node.api.publish("t") and deliveries(node, "t", status="pending"), "what is published waits")
    wait_until(lambda: node.api.publish("t") and node.api.endpoint("t", endpoint)["pending"] >= events, "a backlog")
    released = node.sql("select clock_timestamp()::text")[0][0]  # a few were sent before the pause had arrived
    brake(pause_all=False)
    wait_until(lambda: not deliveries(node, "t", status="pending"), "it drains", 60)
    most, count = most_in_a_second(node, f"started_at >= '{released}'")
    assert count >= events and most <= 2 * rate + 1  # a second's worth may be saved up

    # Retries only; first attempts are not held back.
    brake(drain_rate_per_second=None, retry_rate_per_second=rate, pause_all=True)
    pending = lambda: node.api.endpoint("t", endpoint)["pending"]
    wait_until(lambda: node.api.publish("t") and pending() >= events, "paused again")
    hook.reply(*[503] * pending(), then=204)
    brake(pause_all=False)
    wait_until(lambda: pending() == 0, "everything is delivered", 90)
    most, count = most_in_a_second(node, "attempt > 1")
    assert count >= events and most <= 2 * rate + 1


def test_a_stopped_node_has_written_its_sums(start_node, database_url, receiver):
    node = start_node(database_url=database_url)
    node.api.create_tenant("t")
    hook = receiver.hook()
    hook.reply(503)
    node.api.create_endpoint("t", hook.url, retry_schedule=[1])
    for _ in range(5):
        node.api.publish("t", "invoice.paid")
    wait_until(lambda: len(deliveries(node, "t", status="delivered")) == 5, "five are delivered")
    node.stop()
    assert node.sql("select event_type, sum(delivered), sum(first_attempt_successes), sum(retried) from postrider.rollup "
                    "group by 1") == [("invoice.paid", 5, 4, 1)]
    assert node.sql("select status, sum(delivery_count) from postrider.webhook_health group by 1") == [("delivered", 5)]


def test_the_stream_shows_attempts_and_events_as_they_happen(node, tenant, hook):
    node.api.create_endpoint(tenant, hook.url)
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(node.api.url).netloc, timeout=60)
    connection.request("GET", f"/v1/tenants/{tenant}/stream", headers={"authorization": f"Bearer {node.api.key}"})
    answer = connection.getresponse()
    assert answer.status == 200 and answer.getheader("content-type") == "text/event-stream"
    kinds = {}
    assert answer.readline() == b"retry: 2000\n"  # it has taken its first look: from here on nothing is missed
    event = node.api.publish(tenant, "invoice.paid")["id"]
    while not {"attempt", "event"} <= set(kinds):
        line = answer.readline().decode().rstrip("\n")
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        if line.startswith("data: "):
            kinds[kind] = json.loads(line.removeprefix("data: "))
    connection.close()
    assert kinds["attempt"]["event_id"] == event and kinds["attempt"]["outcome"] == "delivered"
    assert kinds["event"]["id"] == event and json.loads(kinds["event"]["body"])["type"] == "invoice.paid"


def test_a_filtered_list_is_exported_as_a_whole(node, tenant, hook, cli):
    made = node.api.create_endpoint(tenant, hook.url)
    events = [{"tenant_id": tenant, "type": "invoice.paid", "data": {"n": n}, "subject": f"=cmd|'{n}\",\r\nä"} for n in range(300)]
    assert {item["status"] for item in node.api.post("/v1/events/batch", events).expect(200)} == {202}
    hook.wait_for(300)
    path = f"/v1/tenants/{tenant}/deliveries"
    wait_until(lambda: len(deliveries(node, tenant, status="delivered", limit=250)) == 250, "delivered")
    wait_until(lambda: node.api.endpoint(tenant, made["id"])["pending"] == 0, "all of them")
    answer = node.api.get(f"{path}?status=delivered&format=ndjson")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/x-ndjson")
    lines = [json.loads(line) for line in answer.body.splitlines()]
    assert len({line["id"] for line in lines}) == len(lines) == 300
    newest = node.api.get(f"{path}?status=delivered&limit=1").expect(200)["data"][0]
    assert lines[0] == newest

    done = cli("delivery", "list", "--tenant", tenant, "--status", "delivered", "--format", "csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") > 301  # line breaks within cells, too
    table = list(csv.DictReader(io.StringIO(answer_of(node, f"{path}?status=delivered&format=csv"), newline="")))
    assert [row["id"] for row in table] == [line["id"] for line in lines]
    assert {row["subject"] for row in table} == {f"'{event['subject']}" for event in events}
    assert node.api.get(f"{path}?format=csv&type=none").body.decode().splitlines()[0].startswith("id,tenant_id,endpoint_id")

    assert len(node.api.get(f"/v1/tenants/{tenant}/events?format=ndjson").body.splitlines()) == 300
    assert node.api.get(f"/v1/tenants/{tenant}/dead-letters?format=ndjson").body == b""
    for bad in ("format=xml", "format=csv&limit=5", "format=csv&nonsense=1"):
        assert node.api.get(f"{path}?{bad}").status == 422, bad
    assert node.api.get("/v1/tenants/nobody/deliveries?format=csv").status == 404
    assert cli("delivery", "list", "--tenant", "nobody", "--format", "csv").returncode == 5


def answer_of(node, path):
    return node.api.get(path).body.decode()


def test_a_canceled_replay_of_one_delivery_counts_in_its_replay(node, tenant, hook):
    node.api.create_endpoint(tenant, hook.url, max_in_flight=1, timeout_ms=60_000)
    hook.reply(400)
    node.api.publish(tenant)
    wait_until(lambda: deliveries(node, tenant, status="dead_letter"), "a dead letter")
    hook.hold()
    node.api.publish(tenant)  # what is replayed waits behind it
    hook.wait_for(2)
    since = (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)).isoformat()
    replay = node.api.post(f"/v1/tenants/{tenant}/replays", {
        "only": "failed", "since": since, "reason": "x"}).expect(202)["id"]
    path = f"/v1/tenants/{tenant}/replays/{replay}"
    wait_until(lambda: node.api.get(path).expect(200)["pending"] == 1, "it is queued")
    [again] = [each for each in deliveries(node, tenant, status="pending") if each["replay_id"] == replay]
    node.api.post(f"/v1/tenants/{tenant}/deliveries/{again['id']}/cancel", {"reason": "not needed"}).expect(200)
    seen = node.api.get(path).expect(200)
    assert (seen["canceled"], seen["pending"], seen["queued"]) == (1, 0, 1)
    hook.release()


def test_a_failed_probe_says_why(start_node, data_dir, hook):
    node = start_node(data_dir=data_dir, breaker_failures=2)
    node.api.create_tenant("t")
    made = node.api.create_endpoint("t", hook.url, retry_schedule=[1], max_attempts=50)
    hook.reply(then=503)
    for _ in range(3):
        node.api.publish("t")
    seen = wait_until(lambda: (lambda e: e if e["last_probe_at"] else None)(node.api.endpoint("t", made["id"])), "a probe fails", 60)
    assert seen["breaker"] == "open" and seen["last_probe_error"] == "the endpoint responded with 503"
    assert node.sql("select last_probe_error from postrider.webhook_endpoints where tenant_id = 't'") == [("the endpoint responded with 503",)]
    hook.reply(then=204)
    after = wait_until(lambda: (lambda e: e if e["breaker"] == "closed" else None)(node.api.endpoint("t", made["id"])), "it recovers", 60)
    assert (after["last_probe_at"], after["last_probe_error"]) == (None, None)
