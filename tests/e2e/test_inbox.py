"""Inbound webhooks: verified on arrival, stored once, processed later."""

import base64
import hashlib
import hmac
import json
import re
import socket
import threading
import time
import urllib.parse

import psycopg2
import pytest

from harness import senders
from harness.wait import wait_until

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def make_source(node, source, provider="standard", **fields):
    if provider in ("standard", "svix"):
        fields.setdefault("secret", SECRET)
    return node.api.post("/v1/sources", {"id": source, "provider": provider, **fields}).expect(201)


def send(node, source, body, headers, query=""):
    headers = {"content-type": "application/json", **headers}
    return node.api.as_key(None).call("POST", f"/in/{source}{query}", body, headers=headers)


def send_standard(node, source, message_id, body=b'{"n":1}', **more):
    return send(node, source, body, senders.standard(SECRET, message_id, body, **more))


def rows(node, source):
    return node.sql("select count(*) from postrider.inbox where source_id = %s", [source])[0][0]


def test_a_source_that_cannot_be_read_is_refused_and_harms_nobody_else(node):
    make_source(node, "unreadable")
    make_source(node, "sound")
    # As a newer version, or a hand, might have left it.
    node.sql("update postrider.source set provider = 'hmac', signature = '[]' where id = 'unreadable'")
    assert send_standard(node, "unreadable", "msg_1").status == 503
    assert send_standard(node, "sound", "msg_1").status in (200, 202)
    listed = {source["id"]: source for source in node.api.get("/v1/sources?limit=250").expect(200)["data"]}
    assert "sound" in listed and listed["unreadable"]["signature"]["header"] == ""
    refused = node.api.call("PATCH", "/v1/sources/unreadable", {"description": "the shop"}).expect(422)
    assert refused["errors"][0]["pointer"] == "/signature"
    mended = node.api.call("PATCH", "/v1/sources/unreadable", {"signature": {"header": "x-signature"}}).expect(200)
    assert mended["signature"]["header"] == "x-signature"
    wait_until(lambda: send_standard(node, "unreadable", "msg_1").status == 401, "it is read again")


def test_a_verified_message_is_stored_once_with_its_exact_bytes(node):
    make_source(node, "shop")
    body = '{"big": 12345678901234567890123, "text": "\\u0000 ä"}'.encode()
    for _ in range(3):
        assert send_standard(node, "shop", "msg_1", body).status == 200
    stored = node.sql("select provider_id, body, headers->>'webhook-id' from postrider.inbox where source_id = 'shop'")
    assert stored == [("msg_1", body.decode(), "msg_1")]


def test_what_is_not_verified_is_refused_and_only_operators_learn_why(node):
    make_source(node, "strict-door")
    late = send_standard(node, "strict-door", "msg_1", at=int(time.time()) - 412)
    forged = send(node, "strict-door", b"{}", senders.standard(SECRET, "msg_2", b'{"other":1}'))
    assert (late.status, forged.status) == (401, 401)
    told = [{name: value for name, value in answer.json.items() if name != "request_id"} for answer in (late, forged)]
    assert told[0] == told[1]

    def rejections():
        listed = node.api.get("/v1/sources/strict-door").expect(200)["rejections"]
        return {entry["reason"]: entry for entry in listed} if len(listed) == 2 else None

    seen = wait_until(rejections, "the rejections are written down")
    assert re.fullmatch(r"timestamp 4\d\d s old", seen["timestamp_old"]["last_detail"])
    assert seen["signature_mismatch"]["last_detail"] == "the active secret does not match"
    assert rows(node, "strict-door") == 0
    assert 'webhook_inbox_rejected_total{reason="timestamp_old"} 1' in node.api.get("/metrics").body.decode()


def test_an_unknown_source_is_not_found(node):
    assert send_standard(node, "nobody", "msg_1").status == 404


def test_during_a_rotation_both_secrets_are_taken(node):
    make_source(node, "rotating")
    path = "/v1/sources/rotating/secrets"
    new = node.api.post(f"{path}/rotate", {"overlap_seconds": 600}).expect(201)["secret"]
    for message_id, secret in (("old", SECRET), ("new", new)):
        body = b"{}"
        assert send(node, "rotating", body, senders.standard(secret, message_id, body)).status == 200
    old = [secret for secret in node.api.get(path).expect(200)["data"] if secret["expires_at"]]
    node.api.call("DELETE", f"{path}/{old[0]['id']}").expect(204)
    wait_until(lambda: send_standard(node, "rotating", "too-late").status == 401, "the old secret is refused")


def test_slack_gets_its_challenge_back_and_nothing_is_stored(node):
    make_source(node, "slack", "slack", secret="8f742231b10e8888abcd99yyyzzz85a5")
    body = senders.event(type="url_verification", challenge="3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P")
    answer = send(node, "slack", body, senders.slack("8f742231b10e8888abcd99yyyzzz85a5", body))
    assert (answer.status, answer.body) == (200, b"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P")
    assert rows(node, "slack") == 0


def test_twilio_signs_the_public_url_and_the_form(node):
    make_source(node, "sms", "twilio", secret="12345678901234567890123456789012", partition_key="/From")
    form = {"From": "+4912345", "Body": "hello world", "MessageSid": "SM1"}
    url = node.api.get("/v1/sources/sms").expect(200)["url"]
    body = urllib.parse.urlencode(form).encode()
    signed = senders.twilio("12345678901234567890123456789012", url, form)
    headers = {"content-type": "application/x-www-form-urlencoded", "i-twilio-idempotency-token": "tok-1", **signed}
    answer = send(node, "sms", body, headers)
    assert (answer.status, answer.body) == (200, b"<Response/>")
    assert send(node, "sms", body.replace(b"hello", b"hallo"), headers).status == 401
    assert node.sql("select provider_id, partition_key from postrider.inbox where source_id = 'sms'") == [("tok-1", "+4912345")]


def test_a_source_of_ones_own_says_how_it_signs(node):
    scheme = {"header": "X-Acme-Signature", "prefix": "t=", "template": "{timestamp}:{header:X-Acme-Id}:{body}",
              "hash": "sha512", "encoding": "base64", "timestamp_header": "X-Acme-Time"}
    created = make_source(node, "acme-hooks", "hmac", signature=scheme, idempotency_key="X-Acme-Id")

    at, body = str(int(time.time())), b"plain text"
    mac = hmac.new(created["secret"].encode(), f"{at}:7:".encode() + body, hashlib.sha512).digest()
    headers = {"x-acme-signature": "t=" + base64.b64encode(mac).decode(), "x-acme-time": at, "x-acme-id": "7"}
    assert send(node, "acme-hooks", body, headers).status == 200
    assert send(node, "acme-hooks", body, {**headers, "x-acme-id": "8"}).status == 401
    bad = node.api.post("/v1/sources", {"id": "x", "provider": "hmac", "signature": {"template": "{timestamp}"}})
    assert bad.status == 422 and {error["pointer"] for error in bad.json["errors"]} == {
        "/signature/template", "/signature/timestamp_header"}


# ── consumers ──


def claim(node, worker, source, count=10, lease="1 minute"):
    return node.sql("select id, body, attempts, partition_key from postrider.inbox_claim(%s, %s, %s, %s::interval)",
                    [worker, source, count, lease])


def status_of(node, source):
    listed = node.api.get(f"/v1/sources/{source}/messages?limit=250").expect(200)["data"]
    return {message["provider_id"]: message["status"] for message in listed}


def test_a_claimed_message_is_nobody_elses_until_it_is_acked(node):
    make_source(node, "claims")
    for number in range(3):
        send_standard(node, "claims", f"m{number}", senders.event(n=number)).expect(200)
    first = claim(node, "a", "claims", 2)
    second = claim(node, "b", "claims", 10)
    assert [json.loads(row[1])["n"] for row in first + second] == [0, 1, 2]
    assert claim(node, "c", "claims") == []
    ids = [row[0] for row in first]
    assert node.sql("select postrider.inbox_ack('b', %s)", [ids]) == [(0,)]
    assert node.sql("select postrider.inbox_extend('a', %s, '2 minutes')", [ids]) == [(2,)]
    assert node.sql("select postrider.inbox_ack('a', %s)", [ids]) == [(2,)]
    assert status_of(node, "claims") == {"m0": "done", "m1": "done", "m2": "processing"}


def test_claiming_from_an_unknown_source_is_an_error(node):
    asked = {"worker": "w", "source": "no-such-source"}
    for body in (asked, {**asked, "wait_seconds": 20}):
        refused = node.api.post("/v1/inbox/claim", body)
        assert refused.status == 404 and refused.json["type"].endswith(":unknown-source"), refused.body
    with pytest.raises(Exception, match="source no-such-source does not exist"):
        claim(node, "w", "no-such-source")


def test_an_expired_lease_comes_back_and_the_late_ack_is_refused(node):
    make_source(node, "leases")
    send_standard(node, "leases", "m").expect(200)
    [(message, *_)] = claim(node, "slow", "leases", lease="1 second")
    [(again, _, attempts, _)] = wait_until(lambda: claim(node, "fast", "leases"), "the lease ends")
    assert (again, attempts) == (message, 2)
    assert node.sql("select postrider.inbox_ack('slow', %s)", [[message]]) == [(0,)]
    assert node.sql("select postrider.inbox_ack('fast', %s)", [[message]]) == [(1,)]


def test_what_fails_too_often_is_dead_until_a_person_retries_or_discards_it(node):
    make_source(node, "failing", max_attempts=2)
    send_standard(node, "failing", "m").expect(200)
    for _ in range(2):
        [(message, *_)] = claim(node, "w", "failing")
        node.sql("select postrider.inbox_nack('w', %s, 'no luck', '0 seconds')", [message])
    shown = node.api.get(f"/v1/sources/failing/messages/{message}").expect(200)
    assert (shown["status"], shown["attempts"], shown["last_error"]) == ("dead", 2, "no luck")
    assert claim(node, "w", "failing") == []
    assert node.api.post("/v1/sources/failing/messages/retry", {"status": "dead"}).expect(200) == {"retried": 1}
    assert [row[2] for row in claim(node, "w", "failing")] == [1]
    body = {"ids": [message], "reason": "a test"}
    assert node.api.post("/v1/sources/failing/messages/discard", body).expect(200) == {"discarded": 1}
    assert node.sql("select postrider.inbox_ack('w', %s)", [[message]]) == [(0,)]
    assert status_of(node, "failing") == {"m": "discarded"}


def test_a_message_that_takes_its_workers_down_is_given_up(node):
    make_source(node, "poison", max_attempts=1)
    send_standard(node, "poison", "m").expect(200)
    assert len(claim(node, "w", "poison", lease="1 second")) == 1
    wait_until(lambda: claim(node, "w", "poison") == [] and status_of(node, "poison") == {"m": "dead"}, "it is dead")


def test_ordered_messages_go_one_after_the_other_per_key(node):
    make_source(node, "ordered", partition_key="/key", ordering="strict")
    for number, key in enumerate(["a", "a", "b", "a", "b"]):
        send_standard(node, "ordered", f"m{number}", senders.event(n=number, key=key)).expect(200)
    send_standard(node, "ordered", "free", senders.event(n=9)).expect(200)
    first = claim(node, "w", "ordered")
    assert sorted(json.loads(row[1])["n"] for row in first) == [0, 2, 9]
    assert claim(node, "w2", "ordered") == []
    head = next(row[0] for row in first if json.loads(row[1])["n"] == 0)
    node.sql("select postrider.inbox_nack('w', %s, 'later', '1 hour')", [head])
    assert claim(node, "w2", "ordered") == []          # a waiting head holds its key
    node.api.post("/v1/sources/ordered/messages/retry", {"ids": [head]}).expect(200)
    [(again, *_)] = claim(node, "w2", "ordered")
    assert again == head
    node.sql("select postrider.inbox_ack('w2', %s)", [[head]])
    assert [json.loads(row[1])["n"] for row in claim(node, "w2", "ordered")] == [1]


def test_consumers_are_woken(node):
    make_source(node, "waking")
    connection = psycopg2.connect(node.database_url)
    connection.autocommit = True
    connection.cursor().execute("listen postrider_inbox")
    send_standard(node, "waking", "m").expect(200)

    def woken():
        connection.poll()
        return [notice.payload for notice in connection.notifies if notice.payload == "waking"]

    wait_until(woken, "a notification")
    connection.close()


def test_the_consumers_role_may_use_the_functions_and_nothing_else(start_node, database_url, postgres):
    other = start_node(database_url=database_url)
    make_source(other, "role")
    send_standard(other, "role", "m").expect(200)
    postgres.sql("create role postrider_consumer", "postgres")     # postrider's own role may not
    postgres.sql("create role billing login in role postrider_consumer", "postgres")
    other.sql("select postrider.grant_consumer()")
    connection = psycopg2.connect(database_url.replace("postrider@", "billing@"))
    connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute("select id from postrider.inbox_claim('w', 'role', 1, '1 minute')")
    assert len(cursor.fetchall()) == 1
    for forbidden in ("select * from postrider.inbox", "select * from postrider.source_secret",
                      "select postrider.inbox_mark_dead('consume', '{}', '')"):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            cursor.execute(forbidden)
    connection.close()


def test_the_same_over_http_with_long_polling(node):
    make_source(node, "polled")
    wanted = {"worker": "w", "source": "polled", "wait_seconds": 30}
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(node.api.post("/v1/inbox/claim", wanted).expect(200)))
    waiting.start()
    send_standard(node, "polled", "m", b'{"n":7}').expect(200)
    waiting.join(30)
    [message] = answers[0]["data"]
    assert (message["provider_id"], message["body"], message["attempts"]) == ("m", '{"n":7}', 1)
    mine = {"worker": "w", "ids": [message["id"]]}
    assert node.api.post("/v1/inbox/extend", mine).expect(200) == {"extended": 1}
    nacked = {"worker": "w", "id": message["id"], "error": "again", "retry_in_seconds": 0}
    assert node.api.post("/v1/inbox/nack", nacked).expect(200) == {"nacked": 1}
    [again] = node.api.post("/v1/inbox/claim", wanted).expect(200)["data"]
    assert again["attempts"] == 2
    assert node.api.post("/v1/inbox/ack", {**mine, "worker": "x"}).expect(200) == {"acked": 0}
    assert node.api.post("/v1/inbox/ack", mine).expect(200) == {"acked": 1}


def test_a_claim_answers_a_bounded_page_and_the_rest_comes_with_the_next(node):
    make_source(node, "heavy", body_bytes_max=2 << 20)
    body = b'{"n":"' + b"x" * ((1 << 20) - 8) + b'"}'
    for number in range(18):
        send_standard(node, "heavy", f"m{number}", body).expect(200)
    wanted = {"worker": "w", "source": "heavy", "max": 1000}
    pages = [node.api.post("/v1/inbox/claim", wanted).expect(200)["data"] for _ in range(3)]
    assert [len(page) for page in pages] == [16, 2, 0]
    assert {message["attempts"] for page in pages for message in page} == {1}


# ── forwarding ──


def test_messages_become_events_of_a_tenant(node, tenant, hook):
    node.api.create_endpoint(tenant, hook.url, ["stripe.*"])
    make_source(node, "forwarded", "stripe", secret="whsec_stripe_test", consume=False,
                forward={"tenant_id": tenant, "type": "stripe.{type}"})
    body = b'{"id":"evt_1","type":"payment_intent.succeeded","amount":12345678901234567890.10}'
    for _ in range(2):
        send(node, "forwarded", body, senders.stripe("whsec_stripe_test", body)).expect(200)
    [request] = hook.wait_for(1)
    assert b'"data":' + body in request.body
    event = json.loads(request.body)
    assert event["type"] == "stripe.payment_intent.succeeded"
    [message] = wait_until(lambda: [m for m in node.api.get("/v1/sources/forwarded/messages").expect(200)["data"]
                                    if m["status"] == "done"], "the message is done")
    assert event["id"] == message["id"] == message["event_id"]


def test_what_cannot_be_an_event_is_dead(node, tenant):
    make_source(node, "unfit", forward={"tenant_id": tenant, "type": "a.b"})
    send_standard(node, "unfit", "m", b"not JSON").expect(200)
    wait_until(lambda: status_of(node, "unfit") == {"m": "dead"}, "it is dead")
    assert len(claim(node, "w", "unfit")) == 1      # consumers get it all the same


def test_a_node_without_the_role_takes_no_webhooks(start_node, database_url):
    other = start_node(database_url=database_url, roles="api,delivery")
    make_source(other, "closed")
    assert send_standard(other, "closed", "m").status == 404


def raw_exchange(node, head, pieces=()):
    """The status line of the response; the pieces are sent as long as the server reads them."""
    host, port = node.address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(head)
        sent = 0
        try:
            for piece in pieces:
                connection.sendall(piece)
                sent += len(piece)
        except OSError:
            pass  # it has responded and closed
        return connection.makefile("rb").readline().decode().split(" ", 2)[1], sent


def test_too_large_a_body_is_refused_before_it_is_read(node):
    make_source(node, "small-door", body_bytes_max=2_000)
    make_source(node, "large-door", body_bytes_max=8 << 20)
    head = "POST /in/{} HTTP/1.1\r\nhost: x\r\n{}\r\n\r\n"
    # No byte of the body is sent, and the response comes anyway.
    assert raw_exchange(node, head.format("small-door", "content-length: 20001").encode())[0] == "413"
    assert raw_exchange(node, head.format("large-door", f"content-length: {(8 << 20) + 1}").encode())[0] == "413"
    asked = head.format("small-door", "content-length: 30000\r\nexpect: 100-continue").encode()
    assert raw_exchange(node, asked)[0] == "413"
    # Without a length it is rejected while it arrives.
    chunk = b"1000\r\n" + b"x" * 0x1000 + b"\r\n"
    status, sent = raw_exchange(node, head.format("small-door", "transfer-encoding: chunked").encode(), [chunk] * 5_000)
    assert status == "413" and sent < 5_000 * len(chunk)
    # What a source allows comes in, also above the server's own limit.
    body = b'{"n":"' + b"x" * (2 << 20) + b'"}'
    assert send_standard(node, "large-door", "msg_1", body).status == 200
    assert send_standard(node, "small-door", "msg_1", b'{"n":1}').status == 200
    assert send_standard(node, "small-door", "msg_2", b'{"n":"' + b"x" * 2_000 + b'"}').status == 413
    assert raw_exchange(node, head.format("no-such-door", f"content-length: {8 << 20}").encode())[0] == "404"

    def counted():
        listed = node.api.get("/v1/sources/small-door").expect(200)["rejections"]
        return [entry for entry in listed if entry["reason"] == "body_too_large"]

    assert wait_until(counted, "operators see it")[0]["count"] == 3


def test_sources_and_messages_from_the_command_line(node, cli):
    def good(*words, **more):
        done = cli(*words, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    made = json.loads(good("source", "create", "cli-door", "standard", "--secret-file", "-", "--json", stdin=SECRET + "\n"))
    assert made["id"] == "cli-door"
    assert "cli-door" in good("source", "list", "--all")
    assert json.loads(good("source", "update", "cli-door", "--max-attempts", "1", "--json"))["max_attempts"] == 1
    for number in range(3):
        assert send_standard(node, "cli-door", f"msg_{number}").status == 200
    claimed = node.api.post("/v1/inbox/claim", {"worker": "w", "source": "cli-door", "max": 2}).expect(200)["data"]
    for message in claimed:
        node.api.post("/v1/inbox/nack", {"worker": "w", "id": message["id"], "error": "no such invoice"}).expect(200)
    listed = json.loads(good("inbox", "list", "cli-door", "--status", "dead", "--json"))["data"]
    assert {message["id"] for message in listed} == {message["id"] for message in claimed}
    assert "no such invoice" in good("inbox", "show", "cli-door", claimed[0]["id"])
    good("inbox", "retry", "cli-door", claimed[0]["id"])
    assert json.loads(good("inbox", "show", "cli-door", claimed[0]["id"], "--json"))["status"] == "pending"
    good("inbox", "discard", "cli-door", "--dead", "--reason", "a test")
    assert json.loads(good("inbox", "show", "cli-door", claimed[1]["id"], "--json"))["status"] == "discarded"
    assert cli("inbox", "retry", "cli-door").returncode == 2
    rotated = json.loads(good("source", "secrets", "rotate", "cli-door", "--overlap", "60s", "--json"))
    assert rotated["secret"].startswith("whsec_")
    assert "cli-door" in good("source", "show", "cli-door")
    good("source", "delete", "cli-door")
    assert cli("source", "show", "cli-door").returncode == 5
