"""Receivers and senders that flood or stall a connection: others are served meanwhile."""

import contextlib
import socket
import threading
import urllib.parse
import uuid

from harness import senders
from harness.wait import wait_until

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
EXTENSION = b"1;" + b"a" * 16_000 + b"\r\nx\r\n"
LARGE = 16 << 20


class EndlessReceiver:
    """Responds to each request with chunk extensions until the client closes. Counts the bytes that it could send."""

    def __init__(self):
        self.sent = []  # bytes, per connection that ended
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/hook"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._answer, args=self._listener.accept()[:1], daemon=True).start()

    def _answer(self, connection):
        total = 0
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            while True:
                total += connection.send(EXTENSION * 16)
        self.sent.append(total)

    def close(self):
        self._listener.close()


def test_endless_chunk_extensions_end_soon_and_delay_no_other_tenant(node, tenant, hook):
    flooded = "flooded-" + uuid.uuid4().hex[:8]
    node.api.create_tenant(flooded)
    endless = EndlessReceiver()
    try:
        node.api.create_endpoint(flooded, endless.url)
        node.api.create_endpoint(tenant, hook.url)
        for _ in range(10):
            node.api.publish(flooded)
            node.api.publish(tenant)
        assert len(hook.wait_for(10)) == 10
        # The response is a 200, so the event is delivered; what it never ends with is cut off.
        wait_until(lambda: len(endless.sent) == 10, "the node closes the flooded connections")
        assert max(endless.sent) < 32 << 20, "what it reads is bounded; the rest waited in the sockets"
        wait_until(lambda: node.sql("select count(*) from postrider.queue where tenant_id = %s", [flooded]) == [(0,)],
                   "they count as delivered")
    finally:
        endless.close()


def connect(node):
    url = urllib.parse.urlsplit(node.api.url)
    return socket.create_connection((url.hostname, url.port), timeout=60)


def head(path, length, key=None):
    authorization = f"authorization: Bearer {key}\r\n" if key else ""
    return (f"POST {path} HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n{authorization}"
            f"content-length: {length}\r\n\r\n").encode()


def status_by_head(node, path, key=None):
    """The status of a large request of which only the head is sent."""
    with connect(node) as connection:
        connection.sendall(head(path, LARGE, key))
        return int(connection.recv(4096).split()[1])


def test_a_large_body_is_refused_by_its_head(node, tenant):
    reader = node.api.post("/v1/keys", {"role": "reader"}).expect(201)["key"]
    bound = node.api.post("/v1/keys", {"role": "operator", "tenant_id": tenant}).expect(201)["key"]
    assert status_by_head(node, "/v1/events/batch") == 401
    assert status_by_head(node, "/v1/events/batch", "no-such-key") == 401
    assert status_by_head(node, "/v1/events/batch", reader) == 403
    assert status_by_head(node, "/v1/endpoints/import", bound) == 403
    assert status_by_head(node, f"/v1/tenants/{tenant}x/events", bound) == 404
    assert status_by_head(node, "/in/no-such-source") == 404
    assert status_by_head(node, "/no/such/path") == 404


def stall(node, path):
    """All of a large body but its last byte, as far as the server takes it."""
    connection = connect(node)
    with contextlib.suppress(OSError):
        connection.sendall(head(path, LARGE) + b" " * (LARGE - 1))
    return connection


def test_sixteen_stalled_uploads_leave_room_for_a_good_one(node, tenant, hook):
    node.api.create_endpoint(tenant, hook.url)
    source = "stalled-" + uuid.uuid4().hex[:8]
    fields = {"id": source, "provider": "standard", "secret": SECRET, "body_bytes_max": LARGE}
    node.api.post("/v1/sources", fields).expect(201)
    stalled = [stall(node, path) for path in (f"/in/{source}", "/v1/events/batch") * 16]
    try:
        items = [{"tenant_id": tenant, "type": "invoice.paid", "data": {"text": "x" * 20_000}} for _ in range(20)]
        node.api.post("/v1/events/batch", items).expect(200)
        assert len(hook.wait_for(20)) == 20
        body = b'{"n":1}'
        small = node.api.as_key(None).call("POST", f"/in/{source}", body, headers={
            "content-type": "application/json", **senders.standard(SECRET, "msg_1", body)})
        assert small.status == 200, "small inbound messages need no budget"
    finally:
        for connection in stalled:
            connection.close()
