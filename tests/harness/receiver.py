"""A server that receives webhooks: each hook has a path of its own, keeps its requests and sends the responses that the test sets."""

import dataclasses
import http.server
import itertools
import threading
import time

from .wait import PATIENCE_SECONDS


@dataclasses.dataclass
class Delivered:
    headers: dict  # names in lower case
    body: bytes
    at: float      # monotonic
    peer: str = ""         # address of the sender


@dataclasses.dataclass
class Reply:
    status: int = 204
    headers: dict = dataclasses.field(default_factory=dict)
    body: bytes = b""


class Hook:
    def __init__(self, url):
        self.url = url
        self.requests = []       # as they came
        self.in_flight = 0
        self.in_flight_max = 0
        self._replies = []
        self._default = Reply()
        self._gate = threading.Event()
        self._gate.set()
        self._changed = threading.Condition()

    def reply(self, *replies, then=None):
        """These responses one after the other, as Reply or status; `then` (204) for all later requests."""
        as_reply = lambda what: what if isinstance(what, Reply) else Reply(what)
        with self._changed:
            self._replies = [as_reply(what) for what in replies]
            self._default = as_reply(204 if then is None else then)

    def hold(self):
        """Requests wait for release() before they get a response."""
        self._gate.clear()

    def release(self):
        self._gate.set()

    def wait_for(self, count, seconds=PATIENCE_SECONDS):
        """The first `count` requests, when they are there."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.requests) >= count, seconds):
                raise AssertionError(f"{len(self.requests)} of {count} requests came in {seconds:.0f} s")
            return self.requests[:count]

    def receive(self, headers, body, peer=""):
        with self._changed:
            self.requests.append(Delivered(headers, body, time.monotonic(), peer))
            self.in_flight += 1
            self.in_flight_max = max(self.in_flight_max, self.in_flight)
            reply = self._replies.pop(0) if self._replies else self._default
            self._changed.notify_all()
        self._gate.wait(120)
        with self._changed:
            self.in_flight -= 1
        return reply


class Receiver:
    """All hooks of a test on one loopback port."""

    def __init__(self):
        self.hooks = {}
        self._numbers = itertools.count(1)
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                hook = receiver.hooks.get(self.path)
                reply = hook.receive({k.lower(): v for k, v in self.headers.items()}, body,
                                     self.client_address[0]) if hook else Reply(404)
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                if reply.status != 204:
                    self.send_header("content-length", str(len(reply.body)))
                self.end_headers()
                if reply.status != 204:
                    self.wfile.write(reply.body)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, *_):
                pass  # a node that was killed in the middle of a request

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def hook(self):
        path = f"/hook/{next(self._numbers)}"
        hook = Hook(f"http://127.0.0.1:{self.server.server_port}{path}")
        self.hooks[path] = hook
        return hook

    def close(self):
        for hook in self.hooks.values():
            hook.release()
        self.server.shutdown()
        self.server.server_close()
