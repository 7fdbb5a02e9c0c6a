"""The receivers' ledger: one loopback server for any number of hooks. It keeps every request with when it came, how many
were in flight then and which response it sent. Each hook decides its own responses."""

import asyncio
import dataclasses
import os
import socket
import threading
import time


@dataclasses.dataclass
class Got:
    """One request as it arrived. `status` stays None if the sender disconnected before the response was written."""
    hook: "Hook"
    at: float                # wall clock, to compare with the database's
    headers: dict            # names in lower case
    body: bytes
    in_flight: int           # of its hook, itself included
    status: int = None
    answered_at: float = None
    lost_at: float = None    # when the sender gave it up

    @property
    def event(self):
        return self.headers["webhook-id"]

    @property
    def delivery(self):
        return self.headers["webhook-delivery-id"]

    @property
    def attempt(self):
        return int(self.headers["webhook-attempt"])

    @property
    def signed_at(self):
        """By the sender's clock, in whole seconds."""
        return int(self.headers["webhook-timestamp"])

    @property
    def is_accepted(self):
        return self.status is not None and 200 <= self.status < 300


class Hook:
    """One URL. `behave(got)` returns a status, or (status, seconds until the response), or None: no response until
    release() is called."""

    def __init__(self, server, path):
        self.server, self.path = server, path
        self.url = f"http://127.0.0.1:{server.port}{path}"
        self.behave = lambda got: 204
        self.requests = []
        self.in_flight = 0
        self.max_in_flight = None  # what the endpoint allows
        self.is_refusing = False   # the server was closed at some time: attempts may fail to connect
        self.is_hanging = False    # left requests unanswered at some time: attempts may time out
        self._held = []

    def count_in_flight(self):
        """A client that abandons a request closes its connection, and may send the next one at once. Both can be read
        here in either order, so before there are too many, those that are already closed are removed."""
        if self.max_in_flight is None or self.in_flight <= self.max_in_flight:
            return self.in_flight
        return self.in_flight - sum(connection.got is not None and connection.got.hook is self and connection.is_closed()
                                    for connection in self.server.connections)

    def hang(self):
        self.is_hanging = True
        self.behave = lambda got: None

    def recover(self):
        """Responds from now on; requests that are held get no response and time out."""
        self.behave = lambda got: 204

    def release(self):
        self.recover()
        self.server.call(self._release)

    def _release(self):
        for answer in self._held:
            answer(204)
        self._held.clear()


class Connection(asyncio.Protocol):
    def __init__(self, server):
        self.server = server
        self.buffer = b""
        self.got = None       # its response is being written
        self.is_lost = False

    def connection_made(self, transport):
        self.transport = transport
        self.server.connections.add(self)

    def connection_lost(self, _):
        self.server.connections.discard(self)
        self.is_lost = True
        if self.got is not None:
            self.got.lost_at = time.time()
            self.got.hook.in_flight -= 1
            self.got = None

    def is_closed(self):
        """Whether the sender has closed it, although the event loop has not said so yet."""
        if self.transport.is_closing():
            return True
        with socket.socket(fileno=os.dup(self.transport.get_extra_info("socket").fileno())) as peeked:
            try:
                return peeked.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
            except BlockingIOError:
                return False
            except OSError:
                return True

    def data_received(self, data):
        self.buffer += data
        if self.got is None:
            self._next_request()

    def _next_request(self):
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return
        self.buffer = rest[length:]
        hook = self.server.hooks[first.split(" ")[1]]
        hook.in_flight += 1
        got = Got(hook, time.time(), headers, rest[:length], hook.count_in_flight())
        self.got = got
        hook.requests.append(got)
        plan = hook.behave(got)
        if plan is None:
            hook._held.append(lambda status: self._answer(got, status))
            return
        status, delay = plan if isinstance(plan, tuple) else (plan, 0)
        if delay:
            self.server.loop.call_later(delay, self._answer, got, status)
        else:
            self._answer(got, status)

    def _answer(self, got, status):
        if self.is_lost or self.got is not got:
            return
        # First noted, then written: the sender may come back before this thread goes on.
        got.status, got.answered_at = status, time.time()
        got.hook.in_flight -= 1
        self.got = None
        length = "" if status == 204 else "content-length: 0\r\n"
        self.transport.write(f"HTTP/1.1 {status} x\r\n{length}\r\n".encode())
        self._next_request()


class Receivers:
    def __init__(self, port=0):
        self.hooks = {}
        self.connections = set()
        self.port = port
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self._server = None
        self.listen()

    def call(self, function):
        """Runs it on the server's thread and returns what it returns."""
        async def run():
            return function()
        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(30)

    def listen(self):
        async def start():
            return await self.loop.create_server(lambda: Connection(self), "127.0.0.1", self.port, backlog=1024,
                                                 reuse_address=True)
        self._server = asyncio.run_coroutine_threadsafe(start(), self.loop).result(30)
        self.port = self._server.sockets[0].getsockname()[1]

    def refuse(self):
        """Closes the port and every connection: new connections are refused until listen()."""
        for hook in self.hooks.values():
            hook.is_refusing = True
        self.call(self._server.close)
        self.drop_connections()

    def drop_connections(self):
        self.call(lambda: [connection.transport.abort() for connection in list(self.connections)])

    def hook(self):
        hook = Hook(self, f"/{len(self.hooks) + 1}")
        self.hooks[hook.path] = hook
        return hook

    def requests(self):
        """All of them, by time."""
        return self.call(lambda: sorted((got for hook in self.hooks.values() for got in hook.requests),
                                        key=lambda got: got.at))

    def close(self):
        self.refuse()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(30)
