"""The catalogue of event types on several nodes; secrets that are kept elsewhere; the master key; importing."""

import base64
import json
import os
import pathlib
import subprocess

from harness import node as node_module
from harness import senders
from harness.signatures import assert_signed
from harness.wait import wait_until

SECRET = "whsec_" + base64.b64encode(b"a secret of thirty-two bytes ok!").decode()
NEW_KEY = base64.b64encode(bytes(range(32, 64))).decode()


def run_command(*words, stdin=None, **settings):
    return subprocess.run([node_module.binary(), *words], env=node_module.environment(**settings), cwd="/", input=stdin,
                          capture_output=True, text=True)


def test_a_schema_put_on_one_node_is_obeyed_by_the_other(start_node, database_url):
    first = start_node(database_url=database_url)
    second = start_node(database_url=database_url)
    first.api.create_tenant("t")
    unfit = {"type": "invoice.paid", "data": {"amount": "much"}}
    assert second.api.post("/v1/tenants/t/events", unfit).status == 202
    document = {"validation": "reject",
                "versions": [{"version": "1", "schema": {"properties": {"amount": {"type": "integer"}}}}]}
    first.api.call("PUT", "/v1/event-types/invoice.paid", document).expect(201)
    refused = wait_until(lambda: (answer := second.api.post("/v1/tenants/t/events", unfit)).status == 422 and answer,
                         "the other node obeys")
    assert refused.json["errors"] == [{"pointer": "/data/amount", "detail": "must be an integer"}]
    assert second.api.publish("t", data={"amount": 7})


def test_what_the_outbox_relays_is_judged_too(start_node, database_url, hook):
    node = start_node(database_url=database_url)
    node.api.create_tenant("t")
    node.api.create_endpoint("t", hook.url)
    schema = {"properties": {"amount": {"type": "integer"}}}
    document = {"validation": "reject", "versions": [{"version": "1", "schema": schema}]}
    node.api.call("PUT", "/v1/event-types/invoice.paid", document).expect(201)
    refused = {"type": "invoice.paid", "data": {"amount": "much"}}
    wait_until(lambda: node.api.post("/v1/tenants/t/events", refused).status == 422, "the node knows the schema")
    node.sql("select postrider.publish('t', 'invoice.paid', '{\"amount\": \"much\"}'::json)")
    node.sql("select postrider.publish('t', 'invoice.paid', '{\"amount\": 7}'::json)")
    got, = hook.wait_for(1)
    assert json.loads(got.body)["data"] == {"amount": 7}
    error, = wait_until(lambda: node.sql("select last_error from postrider.outbox where attempts > 0"), "it is counted")[0]
    assert error == "the event does not match the schema of its type: /data/amount must be an integer"


def test_unknown_types_can_be_refused(start_node, database_url):
    node = start_node(database_url=database_url, allow_unknown_event_types="false")
    node.api.create_tenant("t")
    refused = node.api.post("/v1/tenants/t/events", {"type": "a.b", "data": 1})
    assert refused.status == 422 and refused.json["errors"][0]["pointer"] == "/type"
    node.api.call("PUT", "/v1/event-types/a.b", {}).expect(201)
    wait_until(lambda: node.api.post("/v1/tenants/t/events", {"type": "a.b", "data": 1}).status == 202, "it is known now")


def test_a_secret_in_a_file_signs_and_holds_the_lane_while_it_is_not_there(start_node, database_url, hook, tmp_path):
    path = tmp_path / "acme"
    node = start_node(database_url=database_url, secret_directories=str(tmp_path))
    node.api.create_tenant("t")
    made = node.api.create_endpoint("t", hook.url, secret=f"file:{path}")
    listed = node.api.get(f"/v1/tenants/t/endpoints/{made['id']}/secrets").expect(200)["data"]
    assert listed[0]["reference"] == f"file:{path}" and listed[0]["masked"] is None
    customer = node.api.as_key(node.api.post("/v1/keys", {"role": "operator", "tenant_id": "t"}).expect(201)["key"])
    assert customer.get(f"/v1/tenants/t/endpoints/{made['id']}/secrets").expect(200)["data"][0]["reference"] == "file:***"
    node.api.publish("t")
    node.wait_for_log("secret_unresolved", reference=f"file:{path}")
    assert node.api.endpoint("t", made["id"])["pending"] == 1 and hook.requests == []
    path.write_text(SECRET + "\n")
    got, = hook.wait_for(1)
    assert_signed(SECRET, got)


def held(node):
    return node.sql("select held_reason, held_since is not null from postrider.webhook_endpoints where tenant_id = 't'")


def lanes_held(node):
    return "\nwebhook_lanes_held 1\n" in node.api.get("/metrics").body.decode()


def test_why_an_endpoint_is_held_is_shown_until_its_secret_is_there(start_node, database_url, hook, tmp_path):
    path = tmp_path / "acme"
    node = start_node(database_url=database_url, secret_directories=str(tmp_path))
    node.api.create_tenant("t")
    made = node.api.create_endpoint("t", hook.url, secret=f"file:{path}")
    assert (made["held_reason"], made["held_since"]) == (None, None)
    node.api.publish("t")
    reason = "the file cannot be read: No such file or directory"
    seen = wait_until(lambda: (shown := node.api.endpoint("t", made["id"]))["held_reason"] and shown, "the node says why")
    assert seen["held_reason"] == reason and seen["held_since"] and seen["status"] == "active"
    assert held(node) == [(reason, True)]
    server = {"server": node.api.url, "key": node.api.key}
    assert reason in run_command("endpoint", "list", "t", **server).stdout
    assert reason in run_command("endpoint", "show", "t", made["id"], **server).stdout
    wait_until(lambda: lanes_held(node), "it is counted")
    path.write_text(SECRET + "\n")
    hook.wait_for(1)
    wait_until(lambda: node.api.endpoint("t", made["id"])["held_reason"] is None, "the node says that it is over")
    assert node.api.endpoint("t", made["id"])["held_since"] is None and held(node) == [(None, False)]
    wait_until(lambda: not lanes_held(node), "nothing is held")


def test_an_endpoint_that_is_paused_is_not_held_as_well(start_node, database_url, hook, tmp_path):
    node = start_node(database_url=database_url, secret_directories=str(tmp_path))
    node.api.create_tenant("t")
    made = node.api.create_endpoint("t", hook.url, secret=f"file:{tmp_path}/acme")
    node.api.publish("t")
    wait_until(lambda: held(node)[0][1], "it is held")
    node.api.post(f"/v1/tenants/t/endpoints/{made['id']}/pause").expect(200)
    wait_until(lambda: not held(node)[0][1], "the pause is the reason now")


def test_what_one_node_held_is_cleared_by_the_next_that_can_sign(start_node, database_url, hook, tmp_path):
    path = tmp_path / "acme"
    first = start_node(database_url=database_url, secret_directories=str(tmp_path))
    first.api.create_tenant("t")
    first.api.create_endpoint("t", hook.url, secret=f"file:{path}")
    first.api.publish("t")
    wait_until(lambda: held(first)[0][1], "it is held")
    assert first.stop() == 0
    path.write_text(SECRET)
    node = start_node(database_url=database_url, secret_directories=str(tmp_path))
    hook.wait_for(1)
    wait_until(lambda: held(node) == [(None, False)], "the next node says that it is over")


def test_references_are_refused_unless_they_are_opened(node, tenant, hook):
    for secret in ("file:/etc/shadow", "env:POSTRIDER_MASTER_KEY", "exec:/usr/bin/id"):
        body = {"url": hook.url, "event_types": ["*"], "secret": secret}
        answer = node.api.post(f"/v1/tenants/{tenant}/endpoints", body)
        assert answer.status == 422 and answer.json["errors"][0]["pointer"] == "/secret", secret


def test_the_master_key_is_rotated_while_a_node_works(start_node, database_url, hook):
    both = f"{NEW_KEY},{node_module.MASTER_KEY}"
    first = start_node(database_url=database_url)
    first.api.create_tenant("t")
    made = first.api.create_endpoint("t", hook.url, secret=SECRET, headers={"x-token": "kept"})
    first.api.post("/v1/sources", {"id": "s", "provider": "standard", "secret": SECRET}).expect(201)
    first.api.post("/v1/tenants/t/contact-secret").expect(201)
    here = {"database_url": database_url}
    first.api.call("PUT", "/v1/outboxes/other", here).expect(201)
    assert first.stop() == 0
    node = start_node(database_url=database_url, master_key=both)
    rotated = run_command("key", "rotate-master", database_url=database_url, master_key=both)
    assert rotated.returncode == 0, rotated.stderr
    assert rotated.stdout.startswith("Re-encrypted 5 secrets")
    again = run_command("key", "rotate-master", database_url=database_url, master_key=both)
    assert again.stdout.startswith("Re-encrypted 0 secrets")
    node.api.publish("t")
    hook.wait_for(1)
    assert node.stop() == 0
    last = start_node(database_url=database_url, master_key=NEW_KEY)
    last.api.publish("t")
    _, got = hook.wait_for(2)
    assert_signed(SECRET, got)
    assert got.headers["x-token"] == "kept"
    assert last.api.endpoint("t", made["id"])["headers"] == {"x-token": "***"}
    last.api.call("POST", "/in/s", b"{}", headers=senders.standard(SECRET, "m", b"{}")).expect(200)
    last.api.get("/v1/outboxes/other").expect(200)
    assert last.sql("select actor_kind, count(*) from postrider.audit where action = 'master_key.rotate' group by 1") == [("command", 2)]


def test_endpoints_are_imported_with_their_secrets(start_node, database_url, hook, tmp_path):
    node = start_node(database_url=database_url)
    node.api.create_tenant("t")
    lines = [{"tenant_id": "t", "id": "orders", "url": hook.url, "event_types": ["*"], "secret": SECRET},
             {"tenant_id": "nobody", "id": "x", "url": hook.url, "event_types": ["*"]},
             {"tenant_id": "t", "id": "y", "url": "http://10.0.0.1/", "event_types": ["*"]}]
    twice = '{"tenant_id":"t","url":"https://a.example","url":"https://b.example","event_types":["*"]}'
    text = "\n".join([*map(json.dumps, lines), "not json", twice, ""])
    dry = node.api.call("POST", "/v1/endpoints/import?dry_run=true", text.encode()).expect(200)
    assert [item["status"] for item in dry["data"]] == [201, 404, 422, 400, 422]
    assert node.api.get("/v1/tenants/t/endpoints").json["data"] == []
    file = tmp_path / "endpoints.ndjson"
    file.write_text(text)
    for status in (201, 200):
        done = run_command("import", str(file), "--json", "--server", node.api.url, "--key-file", key_file(tmp_path))
        assert done.returncode == 1, done.stderr
        results = json.loads(done.stdout)
        assert [item["status"] for item in results] == [status, 404, 422, 400, 422], results
        assert [item["line"] for item in results] == [1, 2, 3, 4, 5]
    node.api.publish("t")
    got, = hook.wait_for(1)
    assert_signed(SECRET, got)


def key_file(folder):
    path = pathlib.Path(folder) / "key"
    path.write_text(node_module.ADMIN_KEY)
    os.chmod(path, 0o600)
    return str(path)


def test_a_test_of_a_wildcard_subscription_sends_the_example_of_a_type_that_matches(node, tenant, hook):
    schema = {"versions": [{"version": "1", "example": {"total": "12.50"}}]}
    node.api.call("PUT", "/v1/event-types/parcel.sent", schema).expect(200, 201)
    made = node.api.create_endpoint(tenant, hook.url, ["parcel.*"])
    node.api.post(f"/v1/tenants/{tenant}/endpoints/{made['id']}/test").expect(200)
    sent = json.loads(hook.wait_for(1)[0].body)
    assert sent["type"] == "parcel.sent" and sent["data"] == {"total": "12.50"}
