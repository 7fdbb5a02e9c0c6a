"""HTTP with nothing in between: requests are bytes, and connections are kept as long as the server keeps them."""

import socket

from harness.api import Answer

ANSWER_SECONDS = 60
KEY_LINE = "authorization: Bearer {}\r\n"


class Hang(AssertionError):
    pass


class Client:
    def __init__(self, address, key):
        host, _, port = address.rpartition(":")
        self._address, self._key = (host, int(port)), key
        self._socket, self._buffer = None, b""

    def request(self, method, target, body=None, fields=(), key=True):
        """`target` and the names and values of `fields` are sent as they are. `fields` may replace those that are sent by
        default."""
        names = {name.lower() for name, _ in fields}
        head = [f"{method} ".encode() + (target if isinstance(target, bytes) else target.encode()) + b" HTTP/1.1"]
        defaults = [("host", b"hostile.example")]
        if key:
            defaults.append(("authorization", f"Bearer {self._key}".encode()))
        if body is not None:
            defaults += [("content-type", b"application/json"), ("content-length", str(len(body)).encode())]
        for name, value in [*(pair for pair in defaults if pair[0] not in names), *fields]:
            head.append(name.encode() + b": " + value)
        return self.exchange(b"\r\n".join(head) + b"\r\n\r\n" + (body or b""), method)

    def exchange(self, raw, method="POST"):
        for is_fresh in (self._socket is None, True):
            if is_fresh:
                self._connect()
            try:
                self._socket.sendall(raw)
                return self._answer(method)
            except TimeoutError:
                raise Hang(f"no answer in {ANSWER_SECONDS} s to {raw[:300]!r}") from None
            except ConnectionError:
                # The server may close a kept connection at any time, or reject a request that it has not read completely.
                answer = self._rest()
                if answer is not None:
                    return answer
                if is_fresh:
                    return None
        return None

    def _connect(self):
        self.close()
        self._socket = socket.create_connection(self._address, ANSWER_SECONDS)
        self._buffer = b""

    def _rest(self):
        try:
            return self._answer("POST")
        except (OSError, ConnectionError):
            self.close()
            return None

    def _read(self):
        chunk = self._socket.recv(65536)
        if not chunk:
            raise ConnectionError("closed")
        self._buffer += chunk

    def _answer(self, method):
        while True:
            while b"\r\n\r\n" not in self._buffer:
                self._read()
            head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            status = int(first.split(" ")[1])
            if status != 100:
                break
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = b"" if method == "HEAD" or status in (204, 304) else self._body(headers)
        if headers.get("connection") == "close":
            self.close()
        return Answer(status, headers, body)

    def _body(self, headers):
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while True:
                while b"\r\n" not in self._buffer:
                    self._read()
                size, _, self._buffer = self._buffer.partition(b"\r\n")
                length = int(size, 16)
                while len(self._buffer) < length + 2:
                    self._read()
                body, self._buffer = body + self._buffer[:length], self._buffer[length + 2:]
                if length == 0:
                    return body
        length = int(headers.get("content-length", 0))
        while len(self._buffer) < length:
            self._read()
        body, self._buffer = self._buffer[:length], self._buffer[length:]
        return body

    def close(self):
        if self._socket is not None:
            self._socket.close()
        self._socket = None
