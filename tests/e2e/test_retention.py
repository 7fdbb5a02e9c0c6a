"""What outlives its day: one tenant's paused endpoint and dead letters, with everybody else's payloads gone."""

import os
import stat
import subprocess

from harness.wait import wait_until

DAYS_AGO = 24


def old_event(node, tenant, number, endpoint=None, dead=False):
    """An event of a day long ago, as it was published then; with a delivery that is pending or dead. Returns its uuid."""
    (event, body), = node.sql("""
        insert into postrider.event (id, tenant_id, type, body, created_at)
        select i.id, %s, 'order.paid',
               format('{"id":"evt_%%s","type":"order.paid","tenant_id":"%%s","created_at":"2026-01-01T00:00:00Z","data":{"n":%%s}}',
                      replace(i.id::text, '-', ''), %s, %s),
               postrider.id_time(i.id)
        from (select (left(replace(postrider.id_floor(now() - make_interval(days => %s))::text, '-', ''), 16)
                      || lpad(to_hex(%s), 4, '0') || '000000000000')::uuid as id) as i
        returning id, body""", (tenant, tenant, number, DAYS_AGO, number))
    if endpoint:
        columns = "bucket, (left(replace(%s::text, '-', ''), 20) || delivery_tail)::uuid, %s, id, tenant_id"
        if dead:
            node.sql(f"""insert into postrider.dead_letter (bucket, delivery_id, event_id, endpoint_id, tenant_id, cause, attempts,
                                                            created_at)
                         select {columns}, 'exhausted', 1, now() - make_interval(days => %s)
                         from postrider.endpoint where public_id = %s""", (event, event, DAYS_AGO, endpoint))
        else:
            node.sql(f"""insert into postrider.queue (bucket, id, event_id, endpoint_id, tenant_id, due_at, created_at)
                         select {columns}, now(), now() - make_interval(days => %s)
                         from postrider.endpoint where public_id = %s""", (event, event, DAYS_AGO, endpoint))
            node.sql("""insert into postrider.publish_log (node_id, first_id, last_id, buckets)
                        select '00000000-0000-0000-0000-000000000000', id, id, array[bucket]
                        from postrider.queue where event_id = %s""", (event,))
    return str(event), body


def bodies_of(node, events):
    return {str(event): body for event, body in
            node.sql("select id, body from postrider.event where id = any(%s::uuid[])", (events,))}


def days_left(node):
    return node.sql("""select count(*) from pg_class where relkind = 'r' and relname ~ '^(event|attempt|dead_letter)_[0-9]{8}$'
                       and to_date(right(relname, 8), 'YYYYMMDD') < (now() at time zone 'UTC')::date - 21""")[0][0]


def test_a_day_goes_for_all_but_what_a_paused_endpoint_and_dead_letters_need(start_node, database_url, receiver, tmp_path):
    # This node keeps everything; the second one's first pass retires the day.
    node = start_node(database_url=database_url, retain_events="60d", retain_attempts="60d")
    node.sql("select postrider.create_partitions(25, 1)")
    hook = receiver.hook()
    node.api.create_tenant("acme")
    node.api.create_tenant("globex")
    endpoint = node.api.create_endpoint("acme", hook.url, give_up_seconds=3600)["id"]
    node.api.post(f"/v1/tenants/acme/endpoints/{endpoint}/pause", {"reason": "maintenance"}).expect(200)
    node.sql("update postrider.pause_span set since = now() - make_interval(days => %s)", (DAYS_AGO + 1,))
    waiting, sent_body = old_event(node, "acme", 1, endpoint)
    erased, _ = old_event(node, "acme", 2, endpoint)
    letter, letter_body = old_event(node, "acme", 3, endpoint, dead=True)
    others = [old_event(node, "globex", 10 + n)[0] for n in range(5)] + [old_event(node, "acme", 20)[0]]

    archive = tmp_path / "archive"
    archive.mkdir()
    start_node(database_url=database_url, retain_events="20d", retain_attempts="20d", archive_dir=str(archive))
    wait_until(lambda: days_left(node) == 0, "the day is gone")
    assert bodies_of(node, others) == {}
    assert set(bodies_of(node, [waiting, erased, letter])) == {waiting, erased, letter}
    files = list(archive.iterdir())
    assert files and all(stat.S_IMODE(os.stat(file).st_mode) == 0o600 for file in files)
    for file in files:
        if file.name.startswith("event_"):
            lines = subprocess.run(["zcat", file], capture_output=True, check=True).stdout.decode()
            if waiting in lines:
                assert all(lines.count(f'"id":"{event}"') == 1 for event in [waiting, letter, *others])
                break
    else:
        raise AssertionError(f"the day is in none of {files}")

    # Everything that shows them still does.
    outside = "evt_" + waiting.replace("-", "")
    assert node.api.get(f"/v1/tenants/acme/events/{outside}").expect(200)["data"] == {"n": 1}
    listed = node.api.get("/v1/tenants/acme/deliveries?status=pending").expect(200)["data"]
    assert {item["event_id"] for item in listed} == {"evt_" + e.replace("-", "") for e in (waiting, erased)}
    dead = node.api.get("/v1/tenants/acme/dead-letters").expect(200)["data"]
    assert [item["event_id"] for item in dead] == ["evt_" + letter.replace("-", "")]
    assert node.sql("select count(*) from postrider.webhook_events where tenant_id = 'acme'") == [(3,)]

    # An erased payload leaves the kept copy, too.
    answer = node.api.call("DELETE", f"/v1/tenants/acme/events/evt_{erased.replace('-', '')}/payload").expect(200)
    assert answer == {"erased": 1, "canceled_deliveries": 1, "is_complete": True}
    assert bodies_of(node, [erased]) == {erased: ""}

    # What waited is delivered with the same bytes, and the dead letter can be sent again.
    node.api.post(f"/v1/tenants/acme/deliveries/{dead[0]['id']}/replay", {"reason": "fixed"}).expect(202)
    node.api.post(f"/v1/tenants/acme/endpoints/{endpoint}/resume").expect(200)
    got = hook.wait_for(2)
    assert {request.body.decode() for request in got} == {sent_body, letter_body}
    delivery = next(item["id"] for item in listed if item["event_id"] == outside)
    wait_until(lambda: node.api.get(f"/v1/tenants/acme/deliveries/{delivery}").expect(200)["status"] == "delivered",
               "its history is there")
    assert days_left(node) == 0
