"""A tenant's contacts are told about their endpoint, by mail and by URL."""

import base64
import email
import hmac
import json
import socket

import pytest
from aiosmtpd.controller import Controller

from harness.wait import wait_until


class Box:
    def __init__(self):
        self.mails = []
        self.refuses = False

    async def handle_DATA(self, server, session, envelope):
        if self.refuses:
            return "451 come back later"
        self.mails.append((envelope.mail_from, envelope.rcpt_tos, email.message_from_bytes(envelope.content)))
        return "250 taken"


@pytest.fixture
def box():
    handler = Box()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    controller = Controller(handler, hostname="127.0.0.1", port=port)
    controller.start()
    handler.url = f"smtp://127.0.0.1:{port}"
    yield handler
    controller.stop()


def test_contacts_hear_of_the_trouble_once_an_hour(start_node, data_dir, receiver, box):
    node = start_node(data_dir=data_dir, disable_after="8s", breaker_failures=1000, smtp_url=box.url,
                      mail_from="hooks@postrider.example")
    contact, hook = receiver.hook(), receiver.hook()
    node.api.create_tenant("acme", contacts=["ops@acme.example", contact.url])
    secret = node.api.post("/v1/tenants/acme/contact-secret").expect(201)["secret"]
    endpoint = node.api.create_endpoint("acme", hook.url, retry_schedule=[1], max_attempts=100)["id"]
    hook.reply(then=503)
    for _ in range(12):
        node.api.publish("acme")
    [posted] = contact.wait_for(1, 60)
    wait_until(lambda: box.mails, "a mail", 60)
    sender, recipients, mail = box.mails[0]
    assert sender == "hooks@postrider.example" and recipients == ["ops@acme.example"]
    assert endpoint in mail["subject"] and "What to do" in mail.get_payload()
    signed = f"{posted.headers['webhook-id']}.{posted.headers['webhook-timestamp']}.".encode() + posted.body
    digest = hmac.new(base64.b64decode(secret.removeprefix("whsec_")), signed, "sha256").digest()
    assert posted.headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()
    told = json.loads(posted.body)
    assert told["type"] == "endpoint.warning" and told["endpoint_id"] == endpoint and told["percent"] == 50

    # Further stages pass, the endpoint is disabled: within the hour nobody hears more, also not after a restart.
    wait_until(lambda: node.api.endpoint("acme", endpoint)["status"] == "disabled", "it is disabled", 60)
    assert node.stop() == 0
    again = start_node(**node.settings)
    pending = "select kind, due_at > now() + interval '50 minutes' from postrider.notice"
    wait_until(lambda: again.sql(pending) == [("disabled", True)], "the news wait")
    assert len(box.mails) == 1 and len(contact.requests) == 1

    # The hour is over.
    again.sql("update postrider.notice set due_at = now()")
    assert json.loads(contact.wait_for(2)[1].body)["type"] == "endpoint.disabled"
    wait_until(lambda: len(box.mails) == 2, "the second mail")
    wait_until(lambda: again.sql("select count(*) from postrider.notice") == [(0,)], "everybody was told")


def test_who_could_not_be_told_is_told_later(start_node, data_dir, box):
    node = start_node(data_dir=data_dir, smtp_url=box.url)
    box.refuses = True
    node.api.create_tenant("acme", contacts=["ops@acme.example"])
    node.api.create_endpoint("acme", "http://127.0.0.1:9999/")
    node.sql("""insert into postrider.notice (endpoint_id, tenant_id, kind, stage, contacts, due_at)
                select id, 'acme', 'warning', 50, '["ops@acme.example"]', now() from postrider.endpoint""")
    node.wait_for_log("notice_failed")
    assert node.sql("select contacts, due_at > now() from postrider.notice") == [(["ops@acme.example"], True)]
    box.refuses = False
    node.sql("update postrider.notice set due_at = now()")
    wait_until(lambda: box.mails, "the mail")
