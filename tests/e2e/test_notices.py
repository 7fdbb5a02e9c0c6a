"""Notices to a tenant's contacts about an endpoint, by mail and by URL."""

import base64
import hmac
import json
import ssl
import subprocess

import pytest
from harness.mail import mail_server
from harness.wait import wait_until

STAGES = (50, 70, 90)  # a newer one replaces one that was not sent yet


@pytest.fixture
def box():
    with mail_server() as handler:
        yield handler


@pytest.fixture
def certificate(tmp_path):
    """A server's certificate that is its own authority: (context, path)."""
    files = [str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", files[0], "-out", files[1],
                    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                   check=True, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files[1], files[0])
    return context, files[1]


def is_signed(posted, secret):
    signed = f"{posted.headers['webhook-id']}.{posted.headers['webhook-timestamp']}.".encode() + posted.body
    digest = hmac.new(base64.b64decode(secret.removeprefix("whsec_")), signed, "sha256").digest()
    return posted.headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()


def test_contacts_hear_of_the_trouble_once_an_hour(start_node, data_dir, receiver, box):
    node = start_node(data_dir=data_dir, disable_after="20s", breaker_failures=1000, smtp_url=box.url,
                      mail_from="hooks@postrider.example")
    contact, hook = receiver.hook(), receiver.hook()
    secret = node.api.create_tenant("acme", contacts=["ops@acme.example", contact.url])["contact_secret"]
    endpoint = node.api.create_endpoint("acme", hook.url, retry_schedule=[1], max_attempts=100)["id"]
    hook.reply(then=503)
    for _ in range(12):
        node.api.publish("acme")
    [posted] = contact.wait_for(1, 60)
    wait_until(lambda: box.mails, "a mail", 60)
    [mail] = box.mails
    assert mail.sender == "hooks@postrider.example" and mail.to == "ops@acme.example"
    assert endpoint in mail.message["subject"] and "What to do" in mail.text
    assert is_signed(posted, secret)
    told = json.loads(posted.body)
    assert told["type"] == "endpoint.warning" and told["endpoint_id"] == endpoint and told["percent"] in STAGES

    # Further stages pass, the endpoint is disabled: no more notices are sent within the hour, even after a restart.
    wait_until(lambda: node.api.endpoint("acme", endpoint)["status"] == "disabled", "it is disabled", 90)
    assert node.stop() == 0
    again = start_node(**node.settings)
    pending = "select kind, due_at > now() + interval '50 minutes' from postrider.notice"
    wait_until(lambda: again.sql(pending) == [("disabled", True)], "the news wait")
    assert len(box.mails) == 1 and len(contact.requests) == 1

    # The hour is over.
    again.sql("update postrider.endpoint set notified_at = now() - interval '61 minutes'")
    again.sql("update postrider.notice set due_at = now()")
    assert json.loads(contact.wait_for(2)[1].body)["type"] == "endpoint.disabled"
    wait_until(lambda: len(box.mails) == 2, "the second mail")
    wait_until(lambda: again.sql("select count(*) from postrider.notice") == [(0,)], "everybody was told")


def make_notice(node):
    node.api.create_tenant("acme", contacts=["ops@acme.example"])
    node.api.create_endpoint("acme", "http://127.0.0.1:9999/")
    node.sql("""insert into postrider.notice (endpoint_id, tenant_id, kind, stage, contacts, due_at)
                select id, 'acme', 'warning', 50, '{ops@acme.example}', now() from postrider.endpoint""")


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
def test_mail_goes_over_tls_to_a_server_that_can_be_verified(start_node, database_url, certificate, scheme):
    context, authority = certificate
    # STARTTLS where it is asked for, or TLS from the first byte.
    options = {"ssl_context": context} if scheme == "smtps" else {"tls_context": context, "require_starttls": True}
    with mail_server(scheme, **options) as box:
        stranger = start_node(database_url=database_url, smtp_url=box.url)
        make_notice(stranger)
        assert "certificate" in stranger.wait_for_log("notice_failed")["error"].lower()
        assert box.mails == [] and stranger.stop() == 0
        node = start_node(database_url=database_url, smtp_url=box.url, extra_ca_file=authority)
        node.sql("update postrider.notice set due_at = now()")
        wait_until(lambda: box.mails, "the mail")
        assert box.mails[0].to == "ops@acme.example" and (box.was_encrypted or scheme == "smtps")


def test_who_could_not_be_told_is_told_later(start_node, data_dir, box):
    node = start_node(data_dir=data_dir, smtp_url=box.url)
    box.refuses = True
    make_notice(node)
    node.wait_for_log("notice_failed")
    # While it is worked on it is due in an hour; then it waits for the next try.
    waiting = "select contacts, due_at > now() from postrider.notice where due_at < now() + interval '10 minutes'"
    wait_until(lambda: node.sql(waiting) == [(["ops@acme.example"], True)], "it is tried again soon")
    box.refuses = False
    node.sql("update postrider.notice set due_at = now()")
    wait_until(lambda: box.mails, "the mail")


def test_contacts_of_one_tenant_that_do_not_respond_delay_no_others(start_node, data_dir, receiver, box):
    node = start_node(data_dir=data_dir, disable_after="200s", smtp_url=box.url)
    hook, silent = receiver.hook(), [receiver.hook() for _ in range(20)]
    for contact in silent:
        contact.hold()
    try:
        node.api.create_tenant("slow", contacts=[contact.url for contact in silent])
        for _ in range(10):
            endpoint = node.api.create_endpoint("slow", hook.url)["id"]
            node.api.post(f"/v1/tenants/slow/endpoints/{endpoint}/disable").expect(200)
        wait_until(lambda: any(contact.requests for contact in silent), "one of them is being told")
        wait_until(lambda: node.sql("select count(*) from postrider.notice") == [(10,)], "all of them wait")
        node.api.create_tenant("acme", contacts=["ops@acme.example"])
        endpoint = node.api.create_endpoint("acme", hook.url)["id"]
        node.api.post(f"/v1/tenants/acme/endpoints/{endpoint}/disable").expect(200)
        wait_until(lambda: box.to("ops@acme.example"), "the mail to the other tenant")
        assert node.sql("select count(*) from postrider.notice where tenant_id = 'slow'") == [(10,)]
    finally:
        for contact in silent:
            contact.release()


def test_notices_to_urls_come_from_the_bind_address(start_node, data_dir, receiver):
    node = start_node(data_dir=data_dir, bind_address="127.0.0.2")
    contact = receiver.hook()
    node.api.create_tenant("acme", contacts=[contact.url])
    node.api.create_endpoint("acme", receiver.hook().url)
    node.sql("""insert into postrider.notice (endpoint_id, tenant_id, kind, stage, contacts, due_at)
                select id, 'acme', 'warning', 50, array[%s], now() from postrider.endpoint""", (contact.url,))
    assert contact.wait_for(1)[0].peer == "127.0.0.2"


# Contacts hear of failures after a second; looking is as frequent.
SOON = {"first_notice_after": "1s", "breaker_failures": 1000}


def notices(hook, count):
    return [json.loads(got.body) for got in hook.wait_for(count, 60)]


def hour_is_over(node):
    node.sql("update postrider.endpoint set notified_at = now() - interval '61 minutes'")
    node.sql("update postrider.notice set due_at = now()")


def test_contacts_hear_of_an_outage_and_its_end(start_node, data_dir, receiver):
    node = start_node(data_dir=data_dir, **SOON)
    contact, hook = receiver.hook(), receiver.hook()
    node.api.create_tenant("acme", contacts=[contact.url])
    endpoint = node.api.create_endpoint("acme", hook.url, retry_schedule=[1], max_attempts=100)["id"]
    hook.reply(then=503)
    node.api.publish("acme")
    [first] = notices(contact, 1)
    assert first["type"] == "endpoint.failing" and first["endpoint_id"] == endpoint and first["failed"] >= 3
    assert f"All {first['failed']} delivery attempts since {first['failing_since']} have failed" in first["text"]
    hook.reply(then=204)
    ended = "select kind from postrider.notice"
    wait_until(lambda: node.sql(ended) == [("recovered",)], "its end waits for the hour to pass", 60)
    hour_is_over(node)
    assert notices(contact, 2)[1]["type"] == "endpoint.recovered"


@pytest.mark.parametrize("status", [401, 404])
@pytest.mark.parametrize("on_rejected", ["dead_letter", "retry", "pause"])
def test_an_endpoint_that_rejects_everything_is_reported(start_node, data_dir, receiver, status, on_rejected):
    node = start_node(data_dir=data_dir, **SOON)
    contact, hook = receiver.hook(), receiver.hook()
    node.api.create_tenant("acme", contacts=[contact.url])
    endpoint = node.api.create_endpoint("acme", hook.url, on_rejected=on_rejected, retry_schedule=[1],
                                        max_attempts=100)["id"]
    hook.reply(then=status)
    for _ in range(3):
        node.api.publish("acme")
    [notice] = notices(contact, 1)
    assert notice["type"] in ("endpoint.failing", "endpoint.paused") and notice["endpoint_id"] == endpoint
    assert notice["failed"] >= 3


def test_an_endpoint_that_postrider_pauses_is_reported(start_node, data_dir, receiver):
    node = start_node(data_dir=data_dir, disable_after="200s")
    contact, hook = receiver.hook(), receiver.hook()
    node.api.create_tenant("acme", contacts=[contact.url])
    endpoint = node.api.create_endpoint("acme", hook.url, on_rejected="pause", retry_schedule=[3600])["id"]
    hook.reply(then=401)
    for _ in range(12):
        node.api.publish("acme")
    [notice] = notices(contact, 1)
    assert (notice["type"], notice["endpoint_id"]) == ("endpoint.paused", endpoint)


def test_contacts_and_operators_hear_of_an_endpoint_that_fails_in_part(start_node, data_dir, receiver):
    node = start_node(data_dir=data_dir, disable_after="200s", breaker_failures=1000)
    contact, pager, hook = receiver.hook(), receiver.hook(), receiver.hook()
    node.api.create_endpoint("postrider", pager.url, event_types=["endpoint.degraded"])
    node.api.create_tenant("acme", contacts=[contact.url])
    endpoint = node.api.create_endpoint("acme", hook.url, retry_schedule=[3600])["id"]
    hook.reply(*[204, 503] * 20, then=204)
    for _ in range(41):
        node.api.publish("acme")
    [notice] = notices(contact, 1)
    assert (notice["type"], notice["endpoint_id"]) == ("endpoint.degraded", endpoint)
    assert f"About {notice['failed']} of {notice['attempts']} delivery attempts" in notice["text"]
    [event] = notices(pager, 1)
    assert event["type"] == "endpoint.degraded"
    assert event["data"]["endpoint_id"] == endpoint and event["data"]["attempts"] >= 20 > event["data"]["failed"] / 2


def test_contacts_hear_of_the_first_dead_letter_and_then_once_a_day(start_node, data_dir, receiver, box):
    node = start_node(data_dir=data_dir, smtp_url=box.url)
    contact, hook = receiver.hook(), receiver.hook()
    secret = node.api.create_tenant("acme", contacts=["ops@acme.example", contact.url])["contact_secret"]
    endpoint = node.api.create_endpoint("acme", hook.url)["id"]
    hook.reply(then=404)

    def fail(events):
        for _ in range(events):
            node.api.publish("acme")
        counted = "select coalesce(sum(dead_letters), 0) from postrider.dead_letter_minute"
        wait_until(lambda: node.sql(counted) == [(events,)], "they are dead letters")
        # The minute is over.
        node.sql("update postrider.dead_letter_minute set minute = minute - interval '1 minute'")
        wait_until(lambda: node.sql(counted) == [(0,)], "operators were notified")

    fail(2)
    [posted] = contact.wait_for(1, 60)
    assert is_signed(posted, secret)
    first = json.loads(posted.body)
    assert (first["type"], first["dead_letters"]) == ("delivery.dead_lettered", 2)
    assert first["endpoints"] == [{"endpoint_id": endpoint, "host": "127.0.0.1", "dead_letters": 2,
                                   "causes": {"rejected": 2}}]
    wait_until(lambda: box.mails, "the mail")
    assert "2 deliveries to 1 endpoint failed permanently" in box.mails[0].text.replace("\r", "")
    done = "select tries, due_at from postrider.dead_letter_notice"
    wait_until(lambda: node.sql(done) == [(0, None)], "everyone was notified")

    fail(3)
    [(waits,)] = node.sql("select due_at = notified_at + interval '1 day' from postrider.dead_letter_notice")
    assert waits
    node.sql("update postrider.endpoint set notified_at = notified_at - interval '1 day'")
    node.sql("""update postrider.dead_letter_notice
                set due_at = due_at - interval '1 day', notified_at = notified_at - interval '1 day'""")
    assert notices(contact, 2)[1]["dead_letters"] == 3
    wait_until(lambda: node.sql(done) == [(0, None)], "everyone was notified again")
    assert len(box.mails) == 2 and len(contact.requests) == 2


def test_two_nodes_send_each_notice_once(start_node, database_url, receiver):
    contact, hook = receiver.hook(), receiver.hook()
    nodes = [start_node(database_url=database_url, **SOON) for _ in range(2)]
    api = nodes[0].api
    api.create_tenant("acme", contacts=[contact.url])
    endpoints = [api.create_endpoint("acme", hook.url, retry_schedule=[1], max_attempts=100)["id"] for _ in range(6)]
    hook.reply(then=503)
    api.publish("acme")
    reported = {notice["endpoint_id"] for notice in notices(contact, 6)}
    assert reported == set(endpoints)
    # Both have checked their work.
    wait_until(lambda: nodes[0].sql("select count(*) from postrider.notice") == [(0,)], "all were sent")
    sent = [entry for node in nodes for entry in node.log if entry["event"] == "notice_sent"]
    assert len(sent) == len(contact.requests) == 6
