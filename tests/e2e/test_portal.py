"""The portal: one-time links, sessions of customers, what they may do, and whose data they see."""

import concurrent.futures
import itertools
import uuid

import pytest
from harness.api import Api
from harness.openapi import Document
from harness.wait import wait_until

NUMBERS, ADDRESSES = itertools.count(1), itertools.count(1)


class Portal(Api):
    """A browser, or a page in a frame, that opened the portal: sends what its pages send."""

    def __init__(self, node, cookie=None, token=None):
        super().__init__(node.api.url, token)
        self.cookie, self.csrf = cookie, None
        if cookie:
            self.csrf = self.get("/v1/me").expect(200)["csrf_token"]

    def exchange(self, method, path, body=None, headers=None, timeout=60):
        sent = {"x-postrider-app": "portal"}
        if self.cookie:
            sent |= {"cookie": self.cookie, "origin": self.url}
            if self.csrf:
                sent["x-postrider-csrf"] = self.csrf
        sent |= headers or {}
        return super().exchange(method, path, body, {name: value for name, value in sent.items() if value is not None},
                                timeout)


@pytest.fixture
def tenant(node):
    name = f"portal-{next(NUMBERS)}-{uuid.uuid4().hex[:6]}"
    node.api.create_tenant(name, name="Acme")
    return name


def create_link(node, tenant, **fields):
    return node.api.post(f"/v1/tenants/{tenant}/portal-links", fields).expect(201)


def token_of(link):
    address, token = link["url"].split("#l=")
    assert address.endswith("/portal/enter")
    return token


def follow(node, token, **headers):
    """From an address of its own: after a few failures an address has to wait."""
    visitor, number = node.api.as_key(None), next(ADDRESSES)
    visitor.source = f"127.0.{1 + number // 250}.{1 + number % 250}"
    return visitor.post("/portal/session", {"token": token}, headers={"origin": node.api.url, **headers})


def cookie_of(answer):
    return answer.headers["set-cookie"].split(";")[0]


def open_portal(node, tenant, **fields):
    answer = follow(node, token_of(create_link(node, tenant, **fields)))
    answer.expect(200)
    return Portal(node, cookie=cookie_of(answer))


def test_a_link_opens_a_session_with_the_rights_of_a_customer(node, tenant, receiver):
    link = create_link(node, tenant, label="ann@acme.example", path="/endpoints")
    answer = follow(node, token_of(link))
    opened = answer.expect(200)
    assert opened["path"] == "/portal/endpoints" and opened["tenant_id"] == tenant and opened["session_token"] is None
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("postrider-portal=") and "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert answer.headers["cache-control"] == "no-store"
    portal = Portal(node, cookie=cookie_of(answer))
    me = portal.get("/v1/me").expect(200)
    assert (me["kind"], me["role"], me["tenant_id"], me["access"]) == ("portal", "customer", tenant, "manage")
    assert (me["owner"], me["key_id"], me["capabilities"]) == ("ann@acme.example", None, ["read", "customer"])
    endpoint = portal.create_endpoint(tenant, receiver.hook().url)["id"]
    shown = node.api.get(f"/v1/tenants/{tenant}/portal-links/{link['id']}").expect(200)
    assert shown["used_at"] and shown["session_expires_at"] and "url" not in shown
    entry = node.api.get(f"/v1/audit?object={endpoint}").expect(200)["data"][0]
    assert entry["actor"] == {"kind": "portal", "id": link["id"], "name": "ann@acme.example", "on_behalf_of": "customer"}


def test_a_used_expired_deleted_or_tampered_link_gets_one_and_the_same_response(node, tenant):
    used, expired, deleted, fresh = (create_link(node, tenant) for _ in range(4))
    follow(node, token_of(used)).expect(200)
    node.sql("update postrider.sign_in_link set expires_at = now() - interval '1 second' where id = %s",
             (expired["id"].removeprefix("link_"),))
    node.api.call("DELETE", f"/v1/tenants/{tenant}/portal-links/{deleted['id']}").expect(204)
    token = token_of(fresh)
    tampered = token[:-1] + ("A" if token[-1] != "A" else "B")
    # Of one request ID, so that not even that differs.
    seen = {(answer.status, answer.body) for answer in (
        follow(node, token_of(used), **{"x-request-id": "same"}), follow(node, token_of(expired), **{"x-request-id": "same"}),
        follow(node, token_of(deleted), **{"x-request-id": "same"}), follow(node, tampered, **{"x-request-id": "same"}))}
    assert len(seen) == 1 and seen.pop()[0] == 401
    assert node.api.as_key(None).get("/portal/enter").status in (200, 404)
    follow(node, token).expect(200)  # what was tried in between did not use it up


def test_of_many_requests_with_one_link_one_opens_a_session(node, tenant):
    token = token_of(create_link(node, tenant))
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        statuses = [answer.status for answer in threads.map(lambda _: follow(node, token), range(4))]
    assert sorted(statuses) == [200, 401, 401, 401]


def test_a_session_that_only_reads_changes_nothing(node, tenant, receiver):
    endpoint = node.api.create_endpoint(tenant, receiver.hook().url)["id"]
    portal = open_portal(node, tenant, access="read")
    assert portal.get("/v1/me").expect(200)["access"] == "read"
    assert portal.endpoint(tenant, endpoint)["id"] == endpoint
    for method, path in (("POST", "/pause"), ("DELETE", ""), ("POST", "/test"), ("POST", "/secrets/rotate")):
        assert portal.call(method, f"/v1/tenants/{tenant}/endpoints/{endpoint}{path}", {}).status == 403
    assert node.api.endpoint(tenant, endpoint)["status"] == "active"


def test_an_operator_sees_the_portal_of_a_customer_without_changing_it(node, tenant):
    link = create_link(node, tenant, preview=True)
    assert (link["access"], link["preview"]) == ("read", True)
    portal = Portal(node, cookie=cookie_of(follow(node, token_of(link))))
    assert portal.get("/v1/me").expect(200)["preview"] is True
    assert portal.call("PATCH", f"/v1/tenants/{tenant}", {"name": "Changed"}).status == 403
    entry = node.api.get(f"/v1/audit?object={link['id']}").expect(200)["data"][0]
    assert (entry["action"], entry["tenant_id"], entry["actor"]["kind"]) == ("portal.preview", tenant, "key")
    opened = node.api.get(f"/v1/audit?tenant={tenant}&action=session.create").expect(200)["data"][0]
    assert (opened["actor"]["kind"], opened["actor"]["on_behalf_of"]) == ("portal", "operator")
    answer = node.api.post(f"/v1/tenants/{tenant}/portal-links", {"preview": True, "access": "manage"})
    assert answer.status == 422 and answer.json["errors"][0]["pointer"] == "/access"


def test_a_change_with_the_cookie_must_come_from_the_portal(node, tenant):
    portal = open_portal(node, tenant)
    path = f"/v1/tenants/{tenant}"
    forged = [{"x-postrider-csrf": None}, {"x-postrider-csrf": "wrong"}, {"origin": None},
              {"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}]
    for headers in forged:
        answer = portal.call("PATCH", path, {"name": "Forged"}, headers=headers)
        assert answer.status == 403 and answer.json["type"].endswith("cross-site-request"), headers
        assert portal.call("DELETE", "/portal/session", headers=headers).status == 403, headers
    assert node.api.get(path).expect(200)["name"] == "Acme"
    assert portal.get("/v1/me").status == 200
    # Without the header that names the app, the cookie of the portal counts for nothing.
    assert portal.call("PATCH", path, {"name": "Forged"}, headers={"x-postrider-app": None}).status == 401
    portal.call("PATCH", path, {"name": "By the portal"}).expect(200)


def test_the_portal_of_another_site_cannot_be_opened(node, tenant):
    token = token_of(create_link(node, tenant))
    assert follow(node, token, origin="https://evil.example").status == 403
    assert follow(node, token, origin="http://postrider.example").status == 403
    follow(node, token).expect(200)


def test_a_session_ends_with_its_link(node, tenant):
    link = create_link(node, tenant)
    portal = Portal(node, cookie=cookie_of(follow(node, token_of(link))))
    node.api.call("DELETE", f"/v1/tenants/{tenant}/portal-links/{link['id']}").expect(204)
    wait_until(lambda: portal.get("/v1/me").status == 401, "the session has ended")
    assert node.api.get(f"/v1/tenants/{tenant}/portal-links/{link['id']}").status == 404


def test_a_session_ends_with_the_key_that_created_its_link_and_with_its_tenant(node, tenant):
    made = node.api.post("/v1/keys", {"role": "operator", "tenant_id": tenant}).expect(201)
    link = node.api.as_key(made["key"]).post(f"/v1/tenants/{tenant}/portal-links").expect(201)
    unused = node.api.as_key(made["key"]).post(f"/v1/tenants/{tenant}/portal-links").expect(201)
    portal = Portal(node, cookie=cookie_of(follow(node, token_of(link))))
    node.api.call("DELETE", f"/v1/keys/{made['id']}").expect(204)
    wait_until(lambda: portal.get("/v1/me").status == 401, "the session has ended")
    assert follow(node, token_of(unused)).status == 401
    other = open_portal(node, tenant)
    node.api.call("DELETE", f"/v1/tenants/{tenant}").expect(204)
    wait_until(lambda: other.get("/v1/me").status == 401, "the session has ended")


def test_signing_out_ends_the_session_and_a_new_link_ends_the_earlier_one(node, tenant):
    portal = open_portal(node, tenant)
    answer = portal.call("DELETE", "/portal/session")
    assert answer.status == 204 and "Max-Age=0" in answer.headers["set-cookie"]
    assert answer.headers["clear-site-data"] == '"storage"'
    assert portal.get("/v1/me").status == 401
    earlier = open_portal(node, tenant)
    follow(node, token_of(create_link(node, tenant)), cookie=earlier.cookie).expect(200)
    wait_until(lambda: earlier.get("/v1/me").status == 401, "the earlier session has ended")


def test_a_customers_key_at_the_console_opens_the_portal_and_a_publishers_is_rejected(node, tenant):
    def sign_in(body):
        return node.api.as_key(None).post("/console/session", body, headers={"origin": node.api.url})

    key = node.api.post("/v1/keys", {"role": "customer", "tenant_id": tenant, "owner": "Ann"}).expect(201)
    answer = sign_in({"key": key["key"]})
    assert answer.expect(200)["path"] == "/portal"
    portal = Portal(node, cookie=cookie_of(answer))
    me = portal.get("/v1/me").expect(200)
    assert (me["kind"], me["role"], me["key_id"]) == ("portal", "customer", key["id"])
    portal.call("PATCH", f"/v1/tenants/{tenant}", {"name": "By Ann"}).expect(200)
    entry = node.api.get(f"/v1/audit?tenant={tenant}&action=tenant.update").expect(200)["data"][0]
    assert entry["actor"] == {"kind": "portal", "id": key["id"], "name": "Ann", "on_behalf_of": "customer"}
    link = node.api.as_key(key["key"]).post("/v1/console-links").expect(201)
    by_link = sign_in({"link": link["url"].split("#l=")[1]})
    assert by_link.expect(200)["path"] == "/portal" and by_link.headers["set-cookie"].startswith("postrider-portal=")
    node.api.call("DELETE", f"/v1/keys/{key['id']}").expect(204)
    wait_until(lambda: portal.get("/v1/me").status == 401, "the session has ended")
    publisher = node.api.post("/v1/keys", {"role": "publisher"}).expect(201)["key"]
    rejected = sign_in({"key": publisher})
    assert rejected.status == 403 and "publisher" in rejected.json["detail"]


def test_a_portal_session_reaches_no_other_tenant_and_nothing_of_the_console(node, tenant, receiver):
    """Every operation of the document: of another tenant 404, of all tenants 403 unless it is the customer's own."""
    other = f"{tenant}-other"
    node.api.create_tenant(other)
    endpoint = node.api.create_endpoint(other, receiver.hook().url)["id"]
    event = node.api.publish(other)["id"]
    link = create_link(node, other)["id"]
    delivery = node.api.get(f"/v1/tenants/{other}/events/{event}").expect(200)["deliveries"][0]["id"]
    values = {"tenant": other, "endpoint": endpoint, "event": event, "delivery": delivery, "link": link, "pattern": "*"}
    own = {"get_me", "list_event_types", "get_event_type", "delete_portal_session", "delete_console_session"}
    portal, wrong = open_portal(node, tenant), []
    for operation in Document(node.api.get("/openapi.json").expect(200)).operations():
        if operation.access == "everyone" or operation.id in own:
            continue
        names = operation.parameters("path")
        target = operation.target({**dict.fromkeys(names, "unknown"), **values})
        answer = portal.exchange(operation.method.upper(), target, operation.example_body())
        expected = 404 if "tenant" in names else 403
        if answer.status != expected:
            wrong.append(f"{operation}: {answer.status}, not {expected}: {answer.body[:200]!r}")
    assert not wrong, "\n".join(wrong)
    assert node.api.get(f"/v1/tenants/{other}").expect(200)["name"] is None


def test_ids_of_another_tenant_under_the_own_path_are_unknown(node, tenant, receiver):
    other = f"{tenant}-other"
    node.api.create_tenant(other)
    endpoint = node.api.create_endpoint(other, receiver.hook().url)["id"]
    event = node.api.publish(other)["id"]
    delivery = node.api.get(f"/v1/tenants/{other}/events/{event}").expect(200)["deliveries"][0]["id"]
    values = {"tenant": tenant, "endpoint": endpoint, "event": event, "delivery": delivery, "pattern": "*"}
    portal, wrong = open_portal(node, tenant), []
    for operation in Document(node.api.get("/openapi.json").expect(200)).operations():
        names = operation.parameters("path")
        if operation.access not in ("read", "customer") or not {"endpoint", "event", "delivery"} & set(names):
            continue
        if operation.id == "put_endpoint" or "tenant" not in names:  # creates one of its own
            continue
        target = operation.target({**dict.fromkeys(names, "unknown"), **values})
        answer = portal.exchange(operation.method.upper(), target, operation.example_body())
        if answer.status != 404:
            wrong.append(f"{operation}: {answer.status}: {answer.body[:200]!r}")
    assert not wrong, "\n".join(wrong)


def test_the_cursor_of_another_tenants_list_is_rejected(node, tenant):
    other = f"{tenant}-other"
    node.api.create_tenant(other)
    for _ in range(2):
        node.api.publish(other)
    cursor = open_portal(node, other).get(f"/v1/tenants/{other}/events?limit=1").expect(200)["next_cursor"]
    assert open_portal(node, tenant).get(f"/v1/tenants/{tenant}/events?limit=1&cursor={cursor}").status == 422


def test_a_link_gives_no_more_rights_than_its_creator_has(node, tenant):
    blind = node.api.post("/v1/keys", {"role": "operator", "payloads": False}).expect(201)["key"]
    links = f"/v1/tenants/{tenant}/portal-links"
    link = node.api.as_key(blind).post(links).expect(201)
    assert link["payloads"] is False
    assert node.api.as_key(blind).post(links, {"payloads": True}).status == 422
    portal = Portal(node, cookie=cookie_of(follow(node, token_of(link))))
    assert portal.get("/v1/me").expect(200)["payloads"] is False
    for role in ("reader", "publisher"):
        key = node.api.post("/v1/keys", {"role": role}).expect(201)["key"]
        assert node.api.as_key(key).post(links).status == 403
    customer = node.api.post("/v1/keys", {"role": "customer", "tenant_id": tenant}).expect(201)["key"]
    assert node.api.as_key(customer).post(links).status == 403


def test_links_are_listed_newest_first_and_bad_ones_are_rejected(node, tenant):
    links = f"/v1/tenants/{tenant}/portal-links"
    made = [create_link(node, tenant, label=f"person {n}")["id"] for n in range(3)]
    page = node.api.get(f"{links}?limit=2").expect(200)
    rest = node.api.get(f"{links}?limit=2&cursor={page['next_cursor']}").expect(200)
    assert [link["id"] for link in page["data"] + rest["data"]] == made[::-1] and "next_cursor" not in rest
    for fields in ({"expires_in_seconds": 59}, {"expires_in_seconds": 86401}, {"session_seconds": 299}, {"access": "write"},
                   {"path": "//evil.example"}, {"path": "https://evil.example"}, {"path": "/a b"}, {"path": "/a\\b"}, {"label": ""}):
        answer = node.api.post(links, fields)
        assert answer.status == 422, fields
        assert answer.json["errors"][0]["pointer"] == "/" + next(iter(fields)), fields
