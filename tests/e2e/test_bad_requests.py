"""What a client gets that asks for something wrong: raw bytes in, status (and pointer) out. TRUST's table, line by line.

src/postrider/http/server/request_errors_test.cpp has the grammar of requests byte by byte; here it is the whole server, with
keys, routes and documents behind it.
"""

import json
import socket
import urllib.parse

import pytest

from harness.node import ADMIN_KEY

AUTHORIZED = f"Authorization: Bearer {ADMIN_KEY}\r\n"
HEAD = "Host: test\r\n" + AUTHORIZED
EVENTS = "/v1/tenants/bad-requests/events"
TENANTS = "/v1/tenants"


def request(method, target, body=None, fields=HEAD, content_type="application/json"):
    text = f"{method} {target} HTTP/1.1\r\n{fields}Connection: close\r\n"
    if body is None:
        return (text + "\r\n").encode("latin-1")
    body = body if isinstance(body, bytes) else body.encode()
    kind = f"Content-Type: {content_type}\r\n" if content_type else ""
    return f"{text}{kind}Content-Length: {len(body)}\r\n\r\n".encode("latin-1") + body


def raw(text):
    return text.encode("latin-1")


def deep(depth):
    return '{"type":"a","data":' + "[" * depth + "]" * depth + "}"


# name, bytes, status, pointer of the first error (None: there is none)
TABLE = [
    # What cannot be parsed safely: 400 and close.
    ("noise", b"\x16\x03\x01\x02\x00\x01\x00", 400, None),
    ("http/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, None),
    ("no host", raw("GET /healthz HTTP/1.1\r\n\r\n"), 400, None),
    ("two hosts", raw("GET /healthz HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), 400, None),
    ("two types", request("POST", TENANTS, '{"id":"a"}', fields=HEAD + "Content-Type: text/plain\r\n"), 400, None),
    ("bare LF", raw("GET /healthz HTTP/1.1\nHost: a\n\n"), 400, None),
    ("folded field", raw("GET /healthz HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n"), 400, None),
    ("space before colon", raw("GET /healthz HTTP/1.1\r\nHost : a\r\n\r\n"), 400, None),
    ("NUL in a field", raw("GET /healthz HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n"), 400, None),
    ("two lengths", raw(f"POST {TENANTS} HTTP/1.1\r\n{HEAD}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{{}}"), 400, None),
    ("length and chunked", raw(f"POST {TENANTS} HTTP/1.1\r\n{HEAD}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"), 400, None),
    ("unknown coding", raw(f"POST {TENANTS} HTTP/1.1\r\n{HEAD}Transfer-Encoding: xchunked\r\n\r\n"), 400, None),
    ("negative length", raw(f"POST {TENANTS} HTTP/1.1\r\n{HEAD}Content-Length: -1\r\n\r\n"), 400, None),
    ("bad chunk size", raw(f"POST {TENANTS} HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n"), 400, None),
    ("chunk longer than said", raw(f"POST {TENANTS} HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\n{{}}\r\n0\r\n\r\n"), 400, None),
    ("control character in the target", raw("GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n"), 400, None),
    ("encoded NUL", request("GET", "/v1/tenants/%00"), 400, None),
    ("broken escape", request("GET", "/v1/tenants/%zz"), 400, None),
    ("path not UTF-8", request("GET", "/v1/tenants/%ff"), 400, None),
    ("absolute target of another host", request("GET", "http://other/healthz"), 400, None),
    ("HTTP/1.2", raw("GET /healthz HTTP/1.2\r\nHost: a\r\n\r\n"), 400, None),
    # Too big.
    ("target too long", raw("GET /" + "a" * 9000 + " HTTP/1.1\r\nHost: a\r\n\r\n"), 414, None),
    ("head too large", raw("GET /healthz HTTP/1.1\r\nHost: a\r\nX: " + "a" * 17000 + "\r\n\r\n"), 431, None),
    ("too many fields", raw("GET /healthz HTTP/1.1\r\nHost: a\r\n" + "X: 1\r\n" * 101 + "\r\n"), 431, None),
    ("body too large, by its length", raw(f"POST {TENANTS} HTTP/1.1\r\n{HEAD}Content-Length: 1048577\r\n\r\n"), 413, None),
    ("body too large, in a chunk", raw(f"POST {TENANTS} HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\n100001\r\n"), 413, None),
    ("payload too large", request("POST", EVENTS, '{"type":"a","data":"' + "x" * (257 << 10) + '"}'), 413, None),
    ("unknown expectation", raw("POST /v1/tenants HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n"), 417, None),
    # Keys.
    ("no key", request("GET", TENANTS, fields="Host: a\r\n"), 401, None),
    ("unknown key", request("GET", TENANTS, fields="Host: a\r\nAuthorization: Bearer nobody\r\n"), 401, None),
    ("other scheme", request("GET", TENANTS, fields=f"Host: a\r\nAuthorization: Basic {ADMIN_KEY}\r\n"), 401, None),
    ("empty key", request("GET", TENANTS, fields="Host: a\r\nAuthorization: Bearer \r\n"), 401, None),
    ("key far too long", request("GET", TENANTS, fields=f"Host: a\r\nAuthorization: Bearer {'k' * 4000}\r\n"), 401, None),
    # Paths and methods.
    ("unknown path", request("GET", "/v1/nothing"), 404, None),
    ("path with an empty segment", request("GET", "/v1//tenants"), 404, None),
    ("path with a slash behind", request("GET", "/v1/tenants/"), 404, None),
    ("dots are no way up", request("GET", "/v1/tenants/../keys"), 404, None),
    ("unknown tenant", request("GET", "/v1/tenants/nobody"), 404, None),
    ("unknown endpoint", request("GET", "/v1/tenants/bad-requests/endpoints/ep_1"), 404, None),
    ("unknown event", request("GET", EVENTS + "/evt_1"), 404, None),
    ("unknown key id", request("GET", "/v1/keys/key_1"), 404, None),
    ("events of an unknown tenant", request("POST", "/v1/tenants/nobody/events", '{"type":"a","data":1}'), 404, None),
    ("method the path has not", request("PUT", TENANTS, "{}"), 405, None),
    ("unknown method", request("BREW", TENANTS), 405, None),
    ("method in lower case", request("get", TENANTS), 405, None),
    # Bodies.
    ("form instead of JSON", request("POST", TENANTS, "id=a", content_type="application/x-www-form-urlencoded"), 415, None),
    ("compressed JSON", request("POST", EVENTS, '{"type":"a","data":1}', fields=HEAD + "Content-Encoding: gzip\r\n"), 415, None),
    ("form instead of an event", request("POST", EVENTS, "type=a", content_type="text/plain"), 415, None),
    ("no body", request("POST", TENANTS), 400, None),
    ("JSON cut off", request("POST", TENANTS, '{"id":'), 400, None),
    ("event cut off", request("POST", EVENTS, '{"type":"a","data":{'), 400, None),
    ("bytes behind JSON", request("POST", TENANTS, '{"id":"a"} x'), 400, None),
    ("bytes behind an event", request("POST", EVENTS, '{"type":"a","data":1}]'), 400, None),
    ("not UTF-8", request("POST", TENANTS, b'{"id":"\xff"}'), 400, None),
    ("event not UTF-8", request("POST", EVENTS, b'{"type":"a","data":"\xc0\xaf"}'), 400, None),
    ("single quotes", request("POST", TENANTS, "{'id':'a'}"), 400, None),
    ("a comment", request("POST", TENANTS, '{"id":"a"/*x*/}'), 400, None),
    ("NaN", request("POST", EVENTS, '{"type":"a","data":NaN}'), 400, None),
    ("depth over 64", request("POST", EVENTS, deep(70)), 400, None),
    ("depth over 64 in a document", request("POST", TENANTS, '{"metadata":' + "[" * 70 + "]" * 70 + "}"), 400, None),
    # Well-formed, but wrong: 422 with a pointer.
    ("an array for a document", request("POST", TENANTS, "[]"), 422, ""),
    ("required field", request("POST", TENANTS, "{}"), 422, "/id"),
    ("unknown field", request("POST", TENANTS, '{"id":"a","colour":1}'), 422, "/colour"),
    ("a field twice", request("POST", TENANTS, '{"id":"a","name":"x","name":"y"}'), 422, "/name"),
    ("a field twice, deeper", request("POST", TENANTS, '{"id":"a","metadata":{"b/c":1,"b/c":2}}'), 422, "/metadata/b~1c"),
    ("wrong type", request("POST", TENANTS, '{"id":7}'), 422, "/id"),
    ("wrong characters", request("POST", TENANTS, '{"id":"a b"}'), 422, "/id"),
    ("U+0000 in a name", request("POST", TENANTS, '{"id":"a","name":"\\u0000"}'), 422, "/name"),
    ("a fraction for an integer", request("POST", TENANTS, '{"id":"a","max_in_flight":1.5}'), 422, "/max_in_flight"),
    ("a rate of zero", request("POST", TENANTS, '{"id":"a","rate_per_second":0}'), 422, "/rate_per_second"),
    ("event without data", request("POST", EVENTS, '{"type":"a"}'), 422, "/data"),
    ("event without type", request("POST", EVENTS, '{"data":1}'), 422, "/type"),
    ("event type with a space", request("POST", EVENTS, '{"type":"a b","data":1}'), 422, "/type"),
    ("event with an unknown field", request("POST", EVENTS, '{"type":"a","data":1,"x":1}'), 422, "/x"),
    ("occurred_at is no time", request("POST", EVENTS, '{"type":"a","data":1,"occurred_at":"now"}'), 422, "/occurred_at"),
    ("unknown parameter", request("GET", TENANTS + "?colour=red"), 422, "colour"),
    ("limit out of range", request("GET", TENANTS + "?limit=251"), 422, "limit"),
    ("limit twice", request("GET", TENANTS + "?limit=1&limit=2"), 422, "limit"),
    ("cursor made up", request("GET", TENANTS + "?cursor=c1_61"), 422, "cursor"),
    ("since is no time", request("GET", "/v1/audit?since=1"), 422, "since"),
    *((f"{what} until before since", request("GET", path + "?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z"), 422, "until")
      for what, path in (("audit", "/v1/audit"), ("stats", "/v1/stats"), ("inbox", "/v1/sources/none/messages"),
                         ("attempts", TENANTS + "/bad-requests/attempts"), ("deliveries", TENANTS + "/bad-requests/deliveries"),
                         ("dead letters", TENANTS + "/bad-requests/dead-letters"), ("events", EVENTS))),
    ("role that there is not", request("POST", "/v1/keys", '{"role":"king"}'), 422, "/role"),
    ("endpoint on a private address", request("POST", "/v1/tenants/bad-requests/endpoints", '{"url":"http://10.0.0.1/","event_types":["*"]}'), 422, "/url"),
    ("endpoint with a bad pattern", request("POST", "/v1/tenants/bad-requests/endpoints", '{"url":"https://a.example.com/","event_types":["a*"]}'), 422, "/event_types/0"),
    # Conflicts and conditions.
    ("tenant twice", request("POST", TENANTS, '{"id":"bad-requests"}'), 409, None),
    ("the reserved tenant", request("POST", TENANTS, '{"id":"postrider"}'), 409, None),
    ("If-Match of another revision", request("PATCH", "/v1/tenants/bad-requests", "{}", fields=HEAD + 'If-Match: "r99-0"\r\n'), 412, None),
]


@pytest.fixture(scope="module")
def address(node):
    answer = node.api.post("/v1/tenants", {"id": "bad-requests"})
    assert answer.status in (201, 409)
    parts = urllib.parse.urlsplit(node.api.url)
    return parts.hostname, parts.port


def exchange(address, sent):
    """The whole response, until the server closes. Sending may fail half-way: the response has the reason."""
    with socket.create_connection(address, timeout=60) as connection:
        try:
            connection.sendall(sent)
        except OSError:
            pass
        received = b""
        while True:
            try:
                piece = connection.recv(65536)
            except ConnectionResetError:
                break
            if not piece:
                break
            received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
    return int(lines[0].split(" ")[1]), fields, body


def test_the_table_is_long_enough():
    assert len(TABLE) >= 60
    assert len({name for name, *_ in TABLE}) == len(TABLE)


@pytest.mark.parametrize("sent, status, pointer", [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_bad_requests_get_their_answer(address, sent, status, pointer):
    got, fields, body = exchange(address, sent)
    assert got == status, body
    assert fields["content-type"] == "application/problem+json"
    assert fields["x-request-id"]
    problem = json.loads(body)
    assert problem["status"] == status and problem["detail"] and problem["type"].startswith("urn:postrider:problem:")
    assert problem["request_id"] == fields["x-request-id"]
    assert [error["pointer"] for error in problem.get("errors", [])][:1] == ([] if pointer is None else [pointer])
    if status == 401:
        assert fields["www-authenticate"].startswith("bearer")
    if status == 405:
        assert "get" in fields["allow"]


def test_the_server_is_as_it_was(node, address):
    """After all of the above: nothing was written, nothing is stuck."""
    assert node.api.get("/healthz").status == 200
    assert node.api.get(EVENTS).json["data"] == []
    assert node.api.get("/v1/tenants/bad-requests/endpoints").json["data"] == []
    assert node.api.get("/v1/tenants/a").status == 404
