"""Whose mail address gets notices: one that confirmed, or that an operator vouches for, until it unsubscribes."""

import json
import subprocess

import pytest
from harness.mail import mail_server
from harness.node import binary, environment
from harness.wait import wait_until

PUBLIC_URL = "https://hooks.example/app"
TENANT = "/v1/tenants/acme"
FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture
def box():
    with mail_server() as handler:
        yield handler


class Acme:
    """A tenant named acme, with an operator's key and one that is bound to it."""

    def __init__(self, node, hook):
        self.node, self.operator, self.hook = node, node.api, hook
        node.api.create_tenant("acme", name="Win-a-prize")
        key = node.api.post("/v1/keys", {"role": "operator", "tenant_id": "acme"}).expect(201)["key"]
        self.customer = node.api.as_key(key)

    def list(self, api, contacts):
        changed = api.call("PATCH", TENANT, {"contacts": contacts}).expect(200)
        return changed["contacts"]

    def state(self, address):
        [contact] = [one for one in self.operator.get(TENANT).expect(200)["contacts"] if one["address"] == address]
        return contact["confirmed_at"] is not None, contact["unsubscribed_at"] is not None

    def notice(self, api=None):
        """Creates an endpoint and disables it, of which contacts are notified. Returns its ID."""
        api = api or self.operator
        endpoint = api.create_endpoint("acme", self.hook.url)["id"]
        reason = {"reason": "Your account is closed today: https://evil.example/login"}
        api.post(f"{TENANT}/endpoints/{endpoint}/disable", reason).expect(200)
        return endpoint

    def follow(self, link, method="POST", body=b"", headers=FORM):
        """As a browser or a mail program does: without a key."""
        assert link.startswith(PUBLIC_URL)
        return self.node.api.as_key(None).call(method, link.removeprefix(PUBLIC_URL), body, headers=headers)

    def confirm(self, box, address):
        wait_until(lambda: box.to(address), f"the confirmation mail to {address}")
        assert self.follow(box.to(address)[-1].links[0]).status == 200


@pytest.fixture
def acme(start_node, data_dir, receiver, box):
    def start(**settings):
        node = start_node(data_dir=data_dir, smtp_url=box.url, public_url=PUBLIC_URL, disable_after="200s", **settings)
        return Acme(node, receiver.hook())

    return start


def mails_about(box, endpoint):
    return {mail.to for mail in box.mails if endpoint in mail.message["subject"]}


def test_an_address_gets_notices_only_once_it_has_confirmed(acme, box):
    tenant = acme()
    tenant.list(tenant.operator, ["ops@acme.example"])
    tenant.list(tenant.customer, ["ops@acme.example", "Stranger@Example.com"])
    assert tenant.state("ops@acme.example") == (True, False) and tenant.state("Stranger@Example.com") == (False, False)
    first = tenant.notice()
    wait_until(lambda: mails_about(box, first), "somebody is told")
    assert mails_about(box, first) == {"ops@acme.example"}

    wait_until(lambda: box.to("Stranger@Example.com"), "the mail that asks to confirm")
    [mail] = box.to("Stranger@Example.com")
    [link] = mail.links
    page = tenant.follow(link, "GET", None)
    assert page.status == 200 and b'<form method="post">' in page.body and b"<script" not in page.body
    assert tenant.state("Stranger@Example.com") == (False, False), "a page that is only looked at changes nothing"
    assert tenant.follow(link).status == 200
    assert tenant.state("Stranger@Example.com") == (True, False)
    [entry] = tenant.operator.get("/v1/audit?action=contact.confirm").expect(200)["data"]
    assert entry["tenant_id"] == "acme" and entry["object"] == "stranger@example.com" and entry["address"] is None
    second = tenant.notice()
    wait_until(lambda: len(mails_about(box, second)) == 2, "both are told")
    assert box.to("ops@acme.example")[0].message["list-unsubscribe"], "and nobody was asked to confirm who need not"


def test_a_link_that_was_used_and_one_that_never_was_look_the_same(acme, box):
    tenant = acme()
    tenant.list(tenant.customer, ["ops@acme.example"])
    wait_until(lambda: box.mails, "the mail")
    [link] = box.mails[0].links
    pages = [tenant.follow(link), tenant.follow(link), tenant.follow(link[:-1] + ("0" if link[-1] != "0" else "1")),
             tenant.follow(link[:-5])]
    assert [page.status for page in pages] == [200, 404, 404, 404]
    assert pages[1].body == pages[2].body == pages[3].body
    for page in pages:
        assert page.headers["referrer-policy"] == "no-referrer" and page.headers["cache-control"] == "no-store"
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script" not in policy and "frame-ancestors 'none'" in policy
    stored = json.dumps(tenant.node.sql("select tenant_id, address, purpose, encode(hash, 'hex') from postrider.contact_token"))
    assert link.rsplit("/", 1)[1] not in stored


def test_an_expired_link_does_not_confirm(acme, box):
    tenant = acme()
    tenant.list(tenant.customer, ["ops@acme.example"])
    wait_until(lambda: box.mails, "the mail")
    tenant.node.sql("update postrider.contact_token set expires_at = now() - interval '1 second'")
    assert tenant.follow(box.mails[0].links[0]).status == 404
    assert tenant.state("ops@acme.example") == (False, False)


def test_mails_have_no_text_that_a_customer_wrote(acme, box):
    tenant = acme()
    tenant.hook.url += "/Your-account-is-closed?login=1"
    tenant.list(tenant.customer, ["ops@acme.example"])
    tenant.confirm(box, "ops@acme.example")
    endpoint = tenant.notice()
    wait_until(lambda: mails_about(box, endpoint), "the notice")
    for mail in box.mails:
        sent = mail.message.as_string()
        for foreign in ("prize", "acme" if "Confirm" in mail.message["subject"] else "closed", "closed", "evil", "login"):
            assert foreign not in sent.replace("ops@acme.example", ""), sent
    notice = box.mails[-1]
    assert endpoint in notice.text and "Host: 127.0.0.1\n" in notice.text.replace("\r", "")
    assert notice.links == [notice.message["list-unsubscribe"].strip("<>")]


def test_one_click_unsubscribes(acme, box):
    tenant = acme()
    tenant.list(tenant.operator, ["ops@acme.example", "other@acme.example"])
    first = tenant.notice()
    wait_until(lambda: len(mails_about(box, first)) == 2, "both are told")
    mail = box.to("ops@acme.example")[0]
    assert mail.message["list-unsubscribe-post"] == "List-Unsubscribe=One-Click"
    link = mail.message["list-unsubscribe"].strip("<>")
    assert b"<button>Unsubscribe" in tenant.follow(mail.links[0], "GET", None).body
    assert tenant.state("ops@acme.example") == (True, False)
    for _ in range(2):  # mail programs may repeat it
        assert tenant.follow(link, body=b"List-Unsubscribe=One-Click").status == 200
    assert tenant.state("ops@acme.example") == (True, True)
    assert len(tenant.operator.get("/v1/audit?action=contact.unsubscribe").expect(200)["data"]) == 1
    second = tenant.notice()
    wait_until(lambda: mails_about(box, second), "the other one is told")
    assert mails_about(box, second) == {"other@acme.example"}


def test_an_address_that_unsubscribed_can_only_come_back_itself(acme, box):
    tenant = acme()
    address = "ops@acme.example"
    tenant.list(tenant.operator, [address])
    first = tenant.notice()
    wait_until(lambda: mails_about(box, first), "the notice")
    tenant.follow(box.mails[0].links[0])
    for api in (tenant.customer, tenant.operator):
        tenant.list(api, [])
        tenant.list(api, [address.upper()])
        assert tenant.state(address.upper()) == (True, True)
    refused = tenant.operator.post(f"{TENANT}/contacts/confirm", {"address": address})
    assert refused.status == 409 and "unsubscribed" in refused.json["type"]
    wait_until(lambda: len(box.mails) == 2, "the mail that asks to confirm again")
    assert tenant.follow(box.mails[1].links[0]).status == 200
    assert tenant.state(address.upper()) == (True, False)


def test_a_list_that_was_read_can_be_written_back_and_sets_no_state(acme, box):
    tenant = acme()
    tenant.list(tenant.operator, ["ops@acme.example", "https://acme.example/notices"])
    tenant.list(tenant.customer, ["ops@acme.example", "https://acme.example/notices", "new@acme.example"])
    read = tenant.operator.get(TENANT).expect(200)["contacts"]
    assert read[1] == {"address": "https://acme.example/notices", "confirmed_at": None, "unsubscribed_at": None}
    for api in (tenant.customer, tenant.operator):  # an operator who writes back vouches for nothing
        assert tenant.list(api, read) == read
    claimed = [{**one, "confirmed_at": "2026-01-01T00:00:00Z", "unsubscribed_at": None} for one in read]
    assert tenant.list(tenant.customer, claimed) == read
    assert tenant.list(tenant.customer, []) == []
    assert tenant.list(tenant.customer, [one["address"] for one in read]) == read
    for wrong in ([{"address": "x"}], [{"confirmed_at": None}], ["a@b.example", "A@b.example"], [{"address": "a@b.example", "x": 1}],
                  ["x://y@b.example"], ["a@[127.0.0.1]"]):
        assert tenant.customer.call("PATCH", TENANT, {"contacts": wrong}).status == 422, wrong


def test_an_address_is_not_asked_again_and_again(acme, box):
    tenant = acme(confirmation_mails_per_address=2)
    for number in range(4):
        tenant.list(tenant.customer, [])
        tenant.list(tenant.customer, [f"victim+{number}@example.com"])
        tenant.customer.post(f"{TENANT}/contacts/request-confirmation", {"address": f"victim+{number}@example.com"}).expect(202)
        wait_until(lambda: tenant.node.sql("select count(*) from postrider.contact_request where due_at <= now()") == [(0,)],
                   "the worker has seen it")
        if number < 2:
            wait_until(lambda: len(box.mails) == number + 1, "a mail")
    tenant.node.wait_for_log("confirmation_capped", tenant_id="acme")
    assert 'webhook_confirmation_mails_total{outcome="capped"} 2' in tenant.operator.get("/metrics").body.decode()
    # Another tenant asks the same mailbox: the cap is the mailbox's.
    tenant.operator.create_tenant("other")
    key = tenant.operator.post("/v1/keys", {"role": "operator", "tenant_id": "other"}).expect(201)["key"]
    other = tenant.operator.as_key(key)
    other.call("PATCH", "/v1/tenants/other", {"contacts": ["victim@example.com", "ops@other.example"]}).expect(200)
    wait_until(lambda: box.to("ops@other.example"), "the one that may be sent")
    assert len(box.mails) == 3
    # The next day the mail that waits is sent.
    tenant.node.sql("update postrider.mail_budget set day = day - 1")
    tenant.node.sql("update postrider.contact_request set due_at = now() where tenant_id = 'other'")
    wait_until(lambda: box.to("victim@example.com"), "the mail of the next day")


def test_a_tenant_sends_few_confirmation_mails_a_day(acme, box):
    tenant = acme(confirmation_mails_per_tenant=3)
    tenant.list(tenant.customer, [f"person{number}@example.com" for number in range(5)])
    tenant.node.wait_for_log("confirmation_capped", count=2, tenant_id="acme")
    assert len(box.mails) == 3
    assert tenant.node.sql("select count(*) from postrider.contact_request") == [(2,)], "the others wait"


def test_a_tenant_gets_a_limited_number_of_notices_a_day(acme, box):
    tenant = acme(notices_per_tenant=20)
    tenant.list(tenant.operator, [f"person{number}@example.com" for number in range(11)])
    first = tenant.notice()
    wait_until(lambda: len(mails_about(box, first)) == 11, "all are told")
    second = tenant.notice()
    tenant.node.wait_for_log("notice_capped", tenant_id="acme", endpoint_id=second)
    assert 'webhook_notices_total{outcome="capped"} 1' in tenant.operator.get("/metrics").body.decode()
    assert len(box.mails) == 11
    tenant.node.sql("update postrider.mail_budget set day = day - 1; update postrider.notice set due_at = now()")
    wait_until(lambda: len(mails_about(box, second)) == 11, "the notice of the next day")


def test_what_customers_disable_themselves_they_are_not_told(acme, box):
    tenant = acme()
    tenant.list(tenant.operator, ["ops@acme.example"])
    own = tenant.notice(tenant.customer)
    wait_until(lambda: tenant.node.sql("select reported_stage from postrider.endpoint where public_id = %s", (own,)) == [(100,)],
               "it was reported")
    operators = tenant.notice()
    wait_until(lambda: mails_about(box, operators), "the mail about what an operator disabled")
    assert len(box.mails) == 1 and "an operator" in box.mails[0].text


def test_an_operator_vouches_by_command_and_the_doctor_lists_who_has_no_contact(acme, box):
    tenant = acme()

    def run(*words, key=None):
        connection = ["--server", f"http://{tenant.node.address}", "--key", key or tenant.operator.key]
        more = connection if words[0] == "tenant" else ["--json"]
        return subprocess.run([binary(), *words, *more], env=environment(**tenant.node.settings), cwd="/", text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def untold():
        found = [one for one in json.loads(run("doctor").stdout) if one["about"] == "contacts"]
        return found[0]["status"], found[0]["finding"]

    tenant.list(tenant.customer, ["ops@acme.example"])
    assert untold()[0] == "warning" and "acme" in untold()[1]
    confirm = ("tenant", "contact", "confirm", "acme")
    assert run(*confirm, "ops@acme.example", key=tenant.customer.key).returncode != 0
    assert tenant.state("ops@acme.example") == (False, False)
    done = run(*confirm, "ops@acme.example")
    assert done.returncode == 0, done.stderr
    assert tenant.state("ops@acme.example") == (True, False) and untold()[0] == "ok"
    assert run(*confirm, "unknown@acme.example").returncode != 0
    entries = tenant.operator.get("/v1/audit?action=contact.vouch").expect(200)["data"]
    assert [(entry["tenant_id"], entry["object"]) for entry in entries] == [("acme", "ops@acme.example")]


def test_the_secret_of_notices_is_created_with_the_first_url_and_shown_once(node, receiver):
    api, contact = node.api, receiver.hook()
    created = api.create_tenant("signed-later", contacts=["ops@acme.example"])
    assert "contact_secret" not in created
    path = "/v1/tenants/signed-later"
    changed = api.call("PATCH", path, {"contacts": ["ops@acme.example", contact.url]})
    secret = changed.expect(200)["contact_secret"]
    assert secret.startswith("whsec_") and changed.headers["cache-control"] == "no-store"
    assert "contact_secret" not in api.get(path).expect(200)
    for contacts in ([], [receiver.hook().url]):
        assert "contact_secret" not in api.call("PATCH", path, {"contacts": contacts}).expect(200)
    [entry] = api.get("/v1/audit?action=contact_secret.create&object=signed-later").expect(200)["data"]
    assert secret not in json.dumps(entry)
    replaced = api.call("PUT", "/v1/tenants/signed-by-put", {"contacts": [contact.url]}).expect(201)
    assert replaced["contact_secret"] != secret
