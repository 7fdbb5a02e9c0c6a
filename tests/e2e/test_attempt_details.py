"""What the history keeps about each request: the URL it was sent to, the response, its size and its connection."""

import socket
import subprocess
import threading

import pytest

from harness import node as node_module
from harness.receiver import Reply
from harness.wait import wait_until


def timeline(api, tenant, delivery):
    return api.get(f"/v1/tenants/{tenant}/deliveries/{delivery}").expect(200)["timeline"]


def only_delivery(node, tenant, status):
    found = wait_until(lambda: node.api.get(f"/v1/tenants/{tenant}/deliveries?status={status}").expect(200)["data"], status)
    assert len(found) == 1
    return found[0]["id"]


@pytest.fixture
def moved(node, tenant, receiver):
    """A delivery that failed at one URL and arrived at another."""
    old, new = receiver.hook(), receiver.hook()
    old.reply(then=Reply(503, {"Retry-After": "7", "Location": "/new?token=abcdef123456", "Set-Cookie": "sid=1", "X-Why": "asleep",
                               "Content-Type": "text/plain"}, b"z" * 3000))
    new.reply(then=Reply(200, {"Content-Type": "application/json"}, b"{}"))
    endpoint = node.api.create_endpoint(tenant, old.url, retry_schedule=[3600])["id"]
    node.api.publish(tenant)
    delivery = only_delivery(node, tenant, "retrying")
    path = f"/v1/tenants/{tenant}/endpoints/{endpoint}"
    node.api.call("PATCH", path, {"url": new.url}).expect(200)
    node.api.post(f"/v1/tenants/{tenant}/deliveries/{delivery}/retry").expect(200)
    assert only_delivery(node, tenant, "delivered") == delivery
    return {"delivery": delivery, "old": old, "new": new}


def test_an_attempt_has_its_url_response_sizes_and_connection(node, tenant, moved):
    failed, delivered = timeline(node.api, tenant, moved["delivery"])
    assert (failed["url"], delivered["url"]) == (moved["old"].url, moved["new"].url)
    response = failed["response"]
    headers = response.pop("headers")
    assert response == {"content_type": "text/plain", "bytes": 3000, "is_truncated": True, "retry_after_seconds": 7}
    assert headers["location"] == "/new?token=[redacted]" and headers["set-cookie"] == "[redacted]"
    assert headers["x-why"] == "asleep" and headers["retry-after"] == "7"
    assert delivered["response"] == {"headers": None, "content_type": "application/json", "bytes": 2,
                                     "is_truncated": False, "retry_after_seconds": None}
    assert failed["connection_reused"] is False and failed["is_resent"] is False
    for each, hook in ((failed, moved["old"]), (delivered, moved["new"])):
        body = len(hook.requests[0].body)
        assert body < each["bytes_sent"] < body + 2000
        assert 0 < each["phases"]["send_us"] <= each["phases"]["total_us"]
    assert node.sql("""select url, connection_reused, is_resent, bytes_received, content_type, is_truncated,
                              response_headers like '%x-why: asleep%'
                       from postrider.webhook_delivery_attempts
                       where delivery = '""" + moved["delivery"] + "' order by attempt") == [
        (moved["old"].url, False, False, 3000, "text/plain", True, True),
        (moved["new"].url, delivered["connection_reused"], False, 2, "application/json", False, None)]
    listed = node.api.get(f"/v1/tenants/{tenant}/attempts").expect(200)["data"]
    assert [each["url"] for each in listed] == [moved["new"].url, moved["old"].url]


def test_the_command_line_shows_what_was_exchanged(node, tenant, moved):
    settings = node_module.environment(server=node.api.url, key=node.api.key)
    done = subprocess.run([node_module.binary(), "delivery", "show", moved["delivery"]], env=settings, cwd="/",
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    failed, delivered = timeline(node.api, tenant, moved["delivery"])
    assert f"to {moved['old'].url}, sent {failed['bytes_sent']} B on a new connection" in done.stdout
    assert "received 2.9 KiB of text/plain, more than the preview" in done.stdout
    assert "location: /new?token=[redacted]" in done.stdout and "x-why: asleep" in done.stdout
    kind = "reused" if delivered["connection_reused"] else "new"
    assert f"to {moved['new'].url}, sent {delivered['bytes_sent']} B on a {kind} connection" in done.stdout
    assert "received 2 B of application/json" in done.stdout


def test_response_headers_are_shown_only_with_payloads(node, tenant, moved):
    for payloads in (True, False):
        key = node.api.post("/v1/keys", {"role": "customer", "tenant_id": tenant, "payloads": payloads}).expect(201)["key"]
        failed = timeline(node.api.as_key(key), tenant, moved["delivery"])[0]
        assert (failed["response"]["headers"] is not None) == payloads
        assert failed["response"]["retry_after_seconds"] == 7 and failed["url"] == moved["old"].url


def test_a_delivery_that_ended_without_a_request_shows_none(node, tenant, hook):
    hook.reply(then=503)
    node.api.create_endpoint(tenant, hook.url, retry_schedule=[3600])
    node.api.publish(tenant)
    delivery = only_delivery(node, tenant, "retrying")
    node.api.post(f"/v1/tenants/{tenant}/deliveries/{delivery}/cancel").expect(200)
    last = timeline(node.api, tenant, delivery)[-1]
    assert (last["attempt"], last["url"], last["connection_reused"], last["bytes_sent"], last["response"]) == \
        (0, None, None, None, None)


class ClosesIdleConnections:
    """Reads a second request on a connection and closes it without a response, like a server whose idle timeout ended."""

    def __init__(self):
        self.requests = []  # the webhook-id and webhook-attempt of each
        self.server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.server.getsockname()[1]}/"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self.handle, args=(connection,), daemon=True).start()

    def handle(self, connection):
        with connection, connection.makefile("rb") as reader:
            if self.read(reader):
                connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
                self.read(reader)

    def read(self, reader):
        fields = {}
        for line in iter(reader.readline, b"\r\n"):
            if not line:
                return False
            name, _, value = line.decode().partition(":")
            fields[name.lower()] = value.strip()
        reader.read(int(fields["content-length"]))
        self.requests.append((fields["webhook-id"], fields["webhook-attempt"]))
        return True


def test_a_request_sent_again_over_a_new_connection_is_marked_and_counts_as_two(node, tenant):
    receiver = ClosesIdleConnections()
    node.api.create_endpoint(tenant, receiver.url)
    first = node.api.publish(tenant)["id"]
    wait_until(lambda: node.api.get(f"/v1/tenants/{tenant}/deliveries?status=delivered").expect(200)["data"], "one arrives")
    second = node.api.publish(tenant)["id"]
    found = wait_until(lambda: (lambda d: d if len(d) == 2 else None)(
        node.api.get(f"/v1/tenants/{tenant}/deliveries?status=delivered").expect(200)["data"]), "two arrived")
    attempts = {each["event_id"]: timeline(node.api, tenant, each["id"]) for each in found}
    assert [(each["attempt"], each["is_resent"], each["connection_reused"]) for each in attempts[first]] == [(1, False, False)]
    assert [(each["attempt"], each["is_resent"], each["connection_reused"]) for each in attempts[second]] == [(1, True, False)]
    assert receiver.requests == [(first, "1"), (second, "1"), (second, "1")]
    assert attempts[second][0]["bytes_sent"] == 2 * attempts[first][0]["bytes_sent"]
    shown = subprocess.run([node_module.binary(), "delivery", "show", next(each["id"] for each in found if each["event_id"] == second)],
                           env=node_module.environment(server=node.api.url, key=node.api.key), cwd="/", capture_output=True,
                           text=True, timeout=60).stdout
    assert f"sent {attempts[second][0]['bytes_sent']} B twice: the reused connection was closed" in shown
    stats = wait_until(lambda: (lambda rows: rows if rows and rows[0]["delivered"] == 2 else None)(
        node.api.get(f"/v1/tenants/{tenant}/stats").expect(200)["data"]), "the hour is counted", 30)
    assert stats[0]["attempts"] == 3
    receiver.server.close()
