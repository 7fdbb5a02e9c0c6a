"""A receiver that looks at every byte: what a delivery may consist of, and nothing else. What it finds wrong is kept in
`violations`; each hook keeps the ids of the events that came."""

import collections
import json
import re
import socketserver
import threading
import time

from .hostile import INJECTED
from .signatures import standard_signature
from .receiver import Delivered
from .wait import PATIENCE_SECONDS, wait_until

REQUEST_LINE = re.compile(rb"POST (/strict/\d+) HTTP/1\.1")
FIELD = re.compile(rb"([a-z0-9-]+): ([\x20-\x7e\x80-\xff]*)")
ALWAYS = {"host", "user-agent", "content-type", "content-length", "webhook-attempt", "webhook-delivery-id"}
STANDARD = ALWAYS | {"webhook-id", "webhook-timestamp", "webhook-signature"}
ALLOWED = STANDARD | {"traceparent", "accept", "connection"}
MEMBERS = {"id", "type", "version", "tenant_id", "created_at", "data", "subject"}
HEAD_BYTES_MAX = 64 << 10


class Violation(Exception):
    pass


def demand(holds, what, found=b""):
    if not holds:
        raise Violation(f"{what}: {found[:300]!r}")


class StrictHook:
    """`is_plain`: its endpoint has the default signature and no headers of its own."""

    def __init__(self, url, is_plain=True):
        self.url, self.is_plain = url, is_plain
        self.secrets = []       # every request must be signed with one of them, if there is one
        self.events = collections.Counter()
        self.arrived = {}       # event id → monotonic time of the first request

    def wait_for(self, events, seconds=PATIENCE_SECONDS):
        missing = lambda: [event for event in events if event not in self.events]
        try:
            wait_until(lambda: not missing(), "events", seconds)
        except AssertionError:
            raise AssertionError(f"{len(missing())} of {len(events)} events did not come in {seconds:.0f} s: {missing()[:3]}") from None


class StrictReceiver:
    def __init__(self, on_thread=lambda: None):
        """`on_thread` is called by each thread that is to serve a connection."""
        self.hooks = {}
        self.violations = []
        receiver = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                on_thread()
                try:
                    while receiver.serve_one(self.rfile, self.wfile):
                        pass
                except OSError:
                    pass  # the sender went away
                except Exception as violation:
                    receiver.violations.append(f"{type(violation).__name__}: {violation}")

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            request_queue_size = 256

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def hook(self, is_plain=True):
        path = f"/strict/{len(self.hooks) + 1}"
        url = f"http://127.0.0.1:{self.server.server_address[1]}{path}"
        hook = self.hooks[path.encode()] = StrictHook(url, is_plain)
        return hook

    def serve_one(self, rfile, wfile):
        """False: the connection was closed between two requests."""
        line = rfile.readline(HEAD_BYTES_MAX)
        if not line:
            return False
        demand(line.endswith(b"\r\n"), "a request line without CR LF", line)
        matched = REQUEST_LINE.fullmatch(line[:-2])
        demand(matched, "not the request line of a delivery", line)
        hook = self.hooks.get(matched[1])
        demand(hook is not None, "no test uses this path", line)
        headers = self.read_headers(rfile, hook)
        body = rfile.read(int(headers["content-length"]))
        demand(len(body) == int(headers["content-length"]), "the body ends early", body)
        self.check(hook, Delivered(headers, body, time.monotonic()))
        wfile.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        return True

    @staticmethod
    def read_headers(rfile, hook):
        headers = {}
        while True:
            line = rfile.readline(HEAD_BYTES_MAX)
            demand(line.endswith(b"\r\n"), "a header line without CR LF", line)
            if line == b"\r\n":
                break
            field = FIELD.fullmatch(line[:-2])
            demand(field, "not a header line", line)
            name = field[1].decode()
            demand(name in ALLOWED or not hook.is_plain, "a header that postrider does not send", line)
            demand(name != f"x-{INJECTED}", "an injected header", line)
            demand(name not in headers, "a header twice", line)
            headers[name] = field[2].decode("latin-1")
        required = STANDARD if hook.is_plain else ALWAYS
        demand(required <= headers.keys(), "headers are missing", str(required - headers.keys()).encode())
        demand(headers["content-length"].isdigit(), "no length", headers["content-length"].encode())
        return headers

    @staticmethod
    def check(hook, request):
        # A violation if it cannot be read. Numbers may be longer than Python's.
        body = json.loads(request.body, parse_int=str, parse_float=str)
        demand(isinstance(body, dict) and body.keys() <= MEMBERS, "members that an event does not have", request.body)
        demand(INJECTED not in body.keys(), "an injected member", request.body)
        if hook.is_plain:
            demand(body["id"] == request.headers["webhook-id"], "another id in the header", request.body)
        if hook.secrets:
            signed = [standard_signature(secret, request) for secret in hook.secrets]
            demand(request.headers["webhook-signature"] in signed, "not signed with the endpoint's secret", request.body)
        hook.events[body["id"]] += 1
        hook.arrived.setdefault(body["id"], request.at)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
