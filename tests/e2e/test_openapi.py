"""The OpenAPI document against a running node: every operation, its successes and its errors, each validated against the
schema that the document gives for it."""

import datetime
import itertools
import json
import pathlib
import subprocess

import pytest
from harness import senders
from harness.npm import npm_install
from harness.openapi import Document

NUMBERS = itertools.count(1)
NO_DATABASE = "postgresql://nobody@127.0.0.1:1/none"
# Operations on a delivery that is not finished, and on dead letters that match a filter.
WAITING_DELIVERY = {f"{verb}_{which}" for verb in ("cancel", "retry") for which in ("delivery", "tenant_delivery")}
DISCARDS = {"discard_dead_letters", "discard_tenant_dead_letters"}
CONFORMANCE = pathlib.Path(__file__).resolve().parents[1] / "conformance"


@pytest.fixture(scope="module")
def document(node):
    return Document(node.api.get("/openapi.json").expect(200))


def an_hour_ago():
    return (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)).isoformat()


class World:
    """Things that exist, for operations that need some: each operation gets fresh ones."""

    def __init__(self, node, hook):
        self.node, self.api, self.hook = node, (api := node.api), hook
        self.tenant = f"walk-{next(NUMBERS)}"
        api.create_tenant(self.tenant)
        self.endpoint = api.create_endpoint(self.tenant, hook.url, ["invoice.*"])["id"]
        self.event = api.publish(self.tenant, "invoice.paid", {"n": 1})["id"]

    def old_secret(self):
        """The id of a secret in its overlap."""
        path = f"/v1/tenants/{self.tenant}/endpoints/{self.endpoint}/secrets"
        self.api.post(path + "/rotate").expect(201)
        return next(secret["id"] for secret in self.api.get(path).expect(200)["data"] if not secret["current"])

    def source(self, operation):
        """A source with two secrets and a message."""
        source, secret = f"walk-{next(NUMBERS)}", senders.STANDARD_SECRET
        self.api.post("/v1/sources", {"id": source, "provider": "standard", "secret": secret}).expect(201)
        added = self.api.post(f"/v1/sources/{source}/secrets").expect(201)
        values = {"source": source, "secret": added["id"]}
        if "message" in operation.parameters("path") or operation.id in ("retry_messages", "discard_messages"):
            sent = self.api.call("POST", f"/in/{source}", b"{}", headers=senders.standard(secret, "m", b"{}"))
            sent.expect(200)
            values["message"] = self.message = self.api.get(f"/v1/sources/{source}/messages").expect(200)["data"][0]["id"]
        return values

    def contact(self):
        """An e-mail address that has not confirmed: one that a bound key added."""
        key = self.api.post("/v1/keys", {"role": "operator", "tenant_id": self.tenant}).expect(201)["key"]
        self.api.as_key(key).call("PATCH", f"/v1/tenants/{self.tenant}", {"contacts": ["a@acme.example"]}).expect(200)
        return "a@acme.example"

    def link_token(self, operation):
        """A token as mails have it."""
        token = f"{next(NUMBERS):064x}"
        purpose = "confirm" if operation.path.startswith("/contacts/confirm") else "unsubscribe"
        self.node.sql("insert into postrider.contact_token (hash, purpose, tenant_id, address, expires_at) values "
                      "(sha256(%s::bytea), %s, %s, 'ops@acme.example', now() + interval '1 hour')",
                      (token, purpose, self.tenant))
        return token

    def outbox(self, operation):
        if operation.access != "administer" or operation.id in ("update_outbox", "update_outbox_capture"):
            return "local"
        outbox = f"walk-{next(NUMBERS)}"
        if operation.id == "delete_outbox":
            self.api.call("PUT", f"/v1/outboxes/{outbox}", {"database_url": NO_DATABASE}).expect(201)
        return outbox

    def delivery(self):
        """One that stays pending: its endpoint is paused, and the only one that receives this type."""
        of_tenant = f"/v1/tenants/{self.tenant}"
        held = self.api.create_endpoint(self.tenant, self.hook.url, ["order.held"])["id"]
        self.api.post(f"{of_tenant}/endpoints/{held}/pause").expect(200)
        self.api.publish(self.tenant, "order.held")
        return self.api.get(f"{of_tenant}/deliveries?type=order.held").expect(200)["data"][0]["id"]

    def values(self, operation):
        """A value for each parameter of the path."""
        values = {"tenant": self.tenant, "endpoint": self.endpoint, "event": self.event, "pattern": "invoice.*",
                  "file": "docs.css"}
        if operation.id == "put_endpoint":
            values["endpoint"] = f"own-{next(NUMBERS)}"
        if "name" in operation.parameters("path"):
            values["name"] = f"walk.{next(NUMBERS)}"
            self.api.call("PUT", f"/v1/event-types/{values['name']}", {}).expect(201)
        if "key" in operation.parameters("path"):
            values["key"] = self.api.post("/v1/keys", {"role": "reader"}).expect(201)["id"]
        if "outbox" in operation.parameters("path"):
            values["outbox"] = self.outbox(operation)
        if "source" in operation.parameters("path"):
            values.update(self.source(operation))
        elif "secret" in operation.parameters("path"):
            values["secret"] = self.old_secret()
        if "delivery" in operation.parameters("path"):
            event = self.api.get(f"/v1/tenants/{self.tenant}/events/{self.event}").expect(200)
            values["delivery"] = event["deliveries"][0]["id"]
        if "replay" in operation.parameters("path"):
            asked = {"only": "failed", "since": an_hour_ago(), "reason": "the walk"}
            values["replay"] = self.api.post(f"/v1/tenants/{self.tenant}/replays", asked).expect(202)["id"]
        if operation.id in WAITING_DELIVERY:
            values["delivery"] = self.delivery()
        if operation.id in ("get_token", "revoke_token"):
            made = self.api.post(f"/v1/tenants/{self.tenant}/tokens", {"expires_in_seconds": 60}).expect(201)
            values["token"] = made["id"]
        elif "token" in operation.parameters("path"):
            values["token"] = self.link_token(operation)
        if "link" in operation.parameters("path"):
            values["link"] = self.api.post(f"/v1/tenants/{self.tenant}/portal-links").expect(201)["id"]
        for name in operation.parameters("path"):
            values.setdefault(name, f"unknown-{name}")
        return values

    def body(self, operation):
        body = operation.example_body()
        if operation.id in ("create_tenant", "create_source"):
            return {**body, "id": f"walk-{next(NUMBERS)}"}
        if operation.id == "claim_messages":
            return {"worker": "walk", "source": self.source(operation)["source"]}
        if operation.id in ("confirm_contact", "request_contact_confirmation"):
            return {"address": self.contact()}
        if operation.id == "put_outbox":
            return {"database_url": NO_DATABASE}
        if operation.id == "create_console_session":
            return {"key": self.api.key}
        if operation.id == "create_portal_session":
            link = self.api.post(f"/v1/tenants/{self.tenant}/portal-links").expect(201)
            return {"token": link["url"].split("#l=")[1]}
        if operation.id in ("create_endpoint", "put_endpoint"):
            return {**body, "url": self.hook.url}
        if operation.id == "create_replay":
            return {"only": "failed", "since": an_hour_ago(), "reason": "the walk"}
        if operation.id == "update_brakes":
            return {"pause_all": False, "reason": "walk"}
        if operation.id in DISCARDS:
            return {"cause": "blocked", "reason": "walk"}
        if operation.id == "publish_batch":
            return [{**body[0], "tenant_id": self.tenant}, {"tenant_id": "walk-unknown", "type": "a", "data": 1}]
        return body


@pytest.fixture
def world(node, receiver):
    hook = receiver.hook()
    return lambda: World(node, hook)


def call(api, operation, values, body, query=""):
    return api.call(operation.method.upper(), operation.target(values) + query, body)


def test_the_official_validator_accepts_the_document(node):
    """@readme/openapi-parser, from npm, knows the schema of OpenAPI 3.1 itself."""
    npm_install(CONFORMANCE)
    judged = subprocess.run(["node", "judge_openapi.mjs"], cwd=CONFORMANCE, input=node.api.get("/openapi.json").body,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert judged.returncode == 0, judged.stdout.decode()


def test_every_operation_does_what_the_document_says(document, world, node):
    wrong, never_good = [], []
    for operation in document.operations():
        here = world()
        if operation.streams():
            continue  # test_history.py
        query = "?q=walk" if operation.id == "search" else ""
        answer = call(node.api, operation, here.values(operation), here.body(operation), query)
        wrong += operation.judge(answer)
        # An inbound webhook is signed: test_inbox.py.
        good = (302,) if operation.id == "get_front_page" else range(200, 300)
        if answer.status not in good and operation.id != "receive_webhook":
            never_good.append(f"{operation}: {answer.status} {answer.body[:200]!r}")
    assert not wrong, "\n".join(wrong)
    assert not never_good, "without one good answer:\n" + "\n".join(never_good)


# Changing operations that leave nothing in the audit log, and why.
UNAUDITED = {
    "publish_event": "an event is its own record: who published what is the event",
    "publish_batch": "the same",
    "receive_webhook": "a message is its own record",
    "claim_messages": "work of consumers, thousands per second; the message keeps what became of it",
    "ack_messages": "the same",
    "nack_message": "the same",
    "extend_leases": "the same",
    "test_endpoint": "changes nothing, counts for nothing",
    "confirm_by_link": "is in the audit log, but no key did it: test_contacts.py",
    "unsubscribe_by_link": "the same",
    "create_console_session": "is in the audit log, but no key did it: test_console.py",
    "delete_console_session": "the same",
    "create_portal_session": "is in the audit log, but no key did it: test_portal.py",
    "delete_portal_session": "the same",
}


def changing_calls(api, document, world):
    """Each changing operation once: the request and the response."""
    for operation in document.operations():
        if operation.method == "get" or operation.id in UNAUDITED:
            continue
        here = world()
        values, body, headers = here.values(operation), here.body(operation), {"x-request-id": operation.id}
        if operation.id in ("retry_messages", "discard_messages"):
            body = {"ids": [here.message], "reason": "walk"}
        if operation.id == "import_endpoints":
            line = {"tenant_id": here.tenant, "url": here.hook.url, "event_types": ["*"]}
            body, headers["content-type"] = json.dumps(line).encode(), "application/x-ndjson"
        if operation.id.startswith("resume_"):
            api.post(operation.target(values).replace("/resume", "/pause")).expect(200)
        if operation.id == "update_tenant":
            body = {"name": "Walked"}
        answer = api.call(operation.method.upper(), operation.target(values), body, headers=headers)
        answer.expect(200, 201, 202, 204)
        yield operation, here, answer


def newest_entries(api, operation):
    return [entry for entry in api.get("/v1/audit?limit=20").expect(200)["data"] if entry["request_id"] == operation.id]


def test_every_change_is_in_the_audit_log_with_who_and_from_where(document, world, node):
    """Walks the document, so that an operation added later cannot be forgotten."""
    me = node.api.get("/v1/keys").expect(200)["data"]
    keys, missing = {key["id"] for key in me}, []
    for operation, here, answer in changing_calls(node.api, document, world):
        entries = newest_entries(node.api, operation)
        if not entries:
            missing.append(str(operation))
        for entry in entries:
            assert entry["actor"]["kind"] == "key" and entry["actor"]["id"] in keys, (operation, entry)
            assert entry["address"] == "127.0.0.1", (operation, entry)
            if "tenant" in operation.parameters("path"):
                assert entry["tenant_id"] == here.tenant, (operation, entry)
            shown = json.dumps(entry)
            for secret in [value for name, value in (answer.json if answer.body else {}).items()
                           if name in ("secret", "key")]:
                assert secret not in shown, f"{operation} shows a secret in the audit log"
    assert not missing, "no audit entry:\n" + "\n".join(missing)


def test_without_a_key_nothing_but_the_open_operations_answers(document, world, node):
    here, wrong = world(), []
    for operation in document.operations():
        if operation.access == "everyone":
            continue
        for key in (None, "pr_" + "0" * 64):
            answer = call(node.api.as_key(key), operation, here.values(operation), here.body(operation))
            wrong += operation.judge(answer)
            if answer.status != 401:
                wrong.append(f"{operation}: {answer.status} without a valid key")
    assert not wrong, "\n".join(wrong)


# Operations that make what is not there.
MAKES = {"put_event_type", "put_outbox", "put_tenant"}


def test_unknown_ids_are_not_found(document, world, node):
    wrong = []
    for operation in document.operations():
        names = list(operation.parameters("path"))
        if operation.access == "everyone" or not names:
            continue
        for unknown in names[-1:] if operation.id == "put_endpoint" else names:
            if operation.id in MAKES or (operation.id == "put_endpoint" and unknown == "endpoint"):
                continue
            here = world()
            values = {**here.values(operation), unknown: "no-such-thing"}
            answer = call(node.api, operation, values, here.body(operation))
            wrong += operation.judge(answer)
            if answer.status != 404:
                wrong.append(f"{operation} with an unknown {unknown}: {answer.status} {answer.body[:200]!r}")
    assert not wrong, "\n".join(wrong)


def test_unknown_endpoints_and_tenants_of_a_filter_are_not_found(document, world, node):
    wrong = []
    for operation in document.operations():
        asked = [("?endpoint=no-such-thing", None)] if "endpoint" in operation.parameters("query") else []
        if operation.id == "get_stats":
            asked += [("?tenant=no-such-thing", None)]
        if operation.id in DISCARDS:
            asked += [("", {"endpoint": "no-such-thing", "reason": "walk"})]
        for query, body in asked:
            answer = call(node.api, operation, world().values(operation), body, query)
            wrong += operation.judge(answer)
            if answer.status != 404:
                wrong.append(f"{operation}{query}: {answer.status} {answer.body[:200]!r}")
    assert not wrong, "\n".join(wrong)


def test_paths_that_do_not_decode_are_malformed(document, node):
    wrong = []
    for operation in document.operations():
        names = operation.parameters("path")
        if names:
            answer = call(node.api, operation, dict.fromkeys(names, "%ff"), None)
            wrong += operation.judge(answer)
            if answer.status != 400:
                wrong.append(f"{operation}: {answer.status} {answer.body[:200]!r}")
    assert not wrong, "\n".join(wrong)


def test_what_was_changed_meanwhile_is_left_alone(document, world, node):
    """Every change with If-Match, so that an operation that reads it without documenting it is found, too."""
    wrong = []
    for operation in document.operations():
        if operation.method == "get":
            continue
        here = world()
        answer = node.api.call(operation.method.upper(), operation.target(here.values(operation)), here.body(operation),
                               headers={"if-match": '"r99-0"'})
        wrong += operation.judge(answer)
        if ("If-Match" in operation.parameters("header")) != (answer.status == 412):
            wrong.append(f"{operation}: {answer.status} {answer.body[:200]!r}")
    assert not wrong, "\n".join(wrong)


def test_what_is_known_is_not_sent_again(document, world, node):
    wrong = []
    for operation in document.operations():
        if operation.method != "get" or operation.streams():
            continue
        here = world()
        query = "?q=walk" if operation.id == "search" else ""
        answer = node.api.get(operation.target(here.values(operation)) + query, headers={"if-none-match": "*"})
        wrong += operation.judge(answer)
        if ("If-None-Match" in operation.parameters("header")) != (answer.status == 304):
            wrong.append(f"{operation}: {answer.status} {answer.body[:200]!r}")
        if answer.status == 304:
            assert answer.headers["etag"], operation
    assert not wrong, "\n".join(wrong)


BAD_BODIES = {
    "no JSON": (b'{"a":', {}, {400}),
    "no UTF-8": (b'{"a":"\xff"}', {}, {400}),
    "too deep": (b'{"a":' * 100 + b"1" + b"}" * 100, {}, {400}),
    "trailing bytes": (b"{} x", {}, {400}),
    "not application/json": (b"<a/>", {"content-type": "text/xml"}, {415}),
    "no object": (b'"text"', {}, {422}),
    "unknown field": (b'{"no_such_field": 1}', {}, {422}),
}


@pytest.mark.parametrize("kind", BAD_BODIES)
def test_bad_bodies_are_refused_as_documented(kind, document, world, node):
    body, headers, statuses = BAD_BODIES[kind]
    here, wrong = world(), []
    for operation in document.operations():
        if operation.body_schema() is None:
            continue
        target = operation.target(here.values(operation))
        answer = node.api.call(operation.method.upper(), target, body, headers=headers)
        wrong += operation.judge(answer)
        if answer.status not in statuses:
            wrong.append(f"{operation} with {kind}: {answer.status} {answer.body[:200]!r}")
    assert not wrong, "\n".join(wrong)


def test_unknown_and_bad_query_parameters_are_refused(document, world, node):
    here, wrong = world(), []
    for operation in document.operations():
        parameters = operation.parameters("query")
        if not parameters:
            if operation.method == "get":  # if it minds, the document must say so
                wrong += operation.judge(call(node.api, operation, here.values(operation), None, "?no_such_parameter=1"))
            continue
        queries = ["?no_such_parameter=1"]
        queries += [f"?{name}=no-such-word" for name, one in parameters.items() if "enum" in document.at(one["schema"])]
        queries += ["?limit=0", "?limit=251", "?limit=x", "?limit=1&limit=2"] if "limit" in parameters else []
        queries += ["?cursor=forged"] if "cursor" in parameters else []
        queries += ["?since=yesterday"] if "since" in parameters else []
        for query in queries:
            answer = call(node.api, operation, here.values(operation), here.body(operation), query)
            wrong += operation.judge(answer)
            if answer.status != 422:
                wrong.append(f"{operation}{query}: {answer.status} {answer.body[:200]!r}")
    assert not wrong, "\n".join(wrong)


def test_other_methods_are_405_and_say_what_is_allowed(document, node):
    paths = {}
    for operation in document.operations():
        paths.setdefault(operation.path, set()).add(operation.method.upper())
    for path, methods in paths.items():
        other = next(method for method in ("PATCH", "DELETE", "PUT", "POST", "GET") if method not in methods)
        answer = node.api.call(other, path.replace("{", "x").replace("}", ""))
        if answer.status == 404 and "{" in path:
            continue  # another path of the same shape
        assert answer.status == 405, (path, other, answer.status)
        assert methods <= set(answer.headers["allow"].split(", ")), path
        assert json.loads(answer.body)["status"] == 405
