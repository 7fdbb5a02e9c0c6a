"""Hostile values, one list for every entry point. Values that try to inject something contain INJECTED, so that a receiver
shows where it came out."""

import itertools
import json

INJECTED = "injected"

# What every text field gets.
TEXTS = [
    "",
    " ",
    "\x00",
    "a\x00b",
    f"x\r\nx-{INJECTED}: 1",
    f"x\nx-{INJECTED}: 1",
    f"x\r\ncontent-length: 0\r\n\r\nPOST /{INJECTED} HTTP/1.1\r\nhost: h\r\n\r\n",
    f'x","{INJECTED}":"1',
    f"x\\\",\\\"{INJECTED}\\\":\\\"1",
    f"'; insert into postrider.tenant (id) values ('{INJECTED}'); --",
    "x" * 300,
    "." * 5000,
    "a." * 5000 + "a",
    "é" * 200,
    "\u202e\ufeff\U0001f4a5",
    "\x7f\x1b[2J",
    "../../../../etc/passwd",
    "%00%0d%0a%2f..%2f",
    "${jndi:ldap://h}{{7*7}}$(id)`id`",
    "<script>alert(1)</script>",
    "-1",
    "0",
    "9" * 40,
    "1e999",
    "NaN",
    "infinity",
    "null",
    "true",
    "*",
    "**.*",
    "evt_" + "f" * 32,
    "msg_" + "0" * 32,
    "00000000-0000-0000-0000-000000000000",
    "postrider",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999Z",
    "294277-01-01T00:00:00Z",
    "-infinity",
    f"http://127.0.0.1:1/{INJECTED}",
    f"http://user:{INJECTED}@h/",
    "http://[::ffff:127.0.0.1]:1/",
    "http://0x7f.1/",
    "gopher://h/_x",
    "whsec_",
    "whsec_" + "A" * 4096,
    "env:PATH",
    "exec:/usr/bin/id",
    "file:/etc/shadow",
]
LONG = "x" * 1_000_000

# What every field of a JSON document gets beside texts.
VALUES = [None, True, False, -1, 0, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 1e308, -5e-324, [], {}, [[]], [None], [""], [{}],
          {"": ""}, {INJECTED: INJECTED}, {"$ref": "#"}, ["x"] * 2000, {"a" * 300: 1}]

# Documents that are no JSON, or only just. As bytes, because no encoder would write them.
DOCUMENTS = [
    b"", b"\x00", b"{", b"[" * 100_000, b'{"a":' * 100 + b"1" + b"}" * 100, b"nul", b"{}{}", b"\xff\xfe{\x00}\x00",
    b'{"\xff":1}', b'"\\ud800"', b'{"id":"\\ud800"}', b'{"a":1,"a":2}', b"1" * 100_000, b"1e999999", b"[1,]", b"\xef\xbb\xbf{}",
    b'{"type":"a.b","data":"\\u0000\\uffff"}', b"[]", b"null", b"true", b"-0", b'""', b" \r\n\t", b"{}" + b" " * 100_000,
]

# Header values as bytes. Those with line ends or NUL make a request that cannot be parsed.
HEADERS = [
    b"", b" ", b"\t", b"x" * 4000, b"x" * 20_000, b"\x00", b"a\rb", f"a\r\nx-{INJECTED}: 1".encode(),
    f"a\r\n x-{INJECTED}: 1".encode(), b"\xff\xfe", "é".encode(), b"-1", b"0", b"9" * 40, b"NaN", b",,,,", b";;;;", b"\"",
    b"v1," * 500, b"v1a," * 500, b"t=1," * 500, b"sha256=", b"sha256=" + b"0" * 64, b"Bearer", b"Bearer " + b"x" * 5000,
    b"application/x-www-form-urlencoded", b"text/plain", b"multipart/form-data", b"application/json; charset=utf-16",
    b"'; drop table postrider.event; --", b"$(id)", b"../..", b"%0d%0a", b"content:" + b"0" * 64, b"chunked", b"gzip",
]


def some(values, number, count):
    """`count` of the values, others for each number: a walk over many fields meets all of them."""
    if len(values) <= count:
        return values
    start = number * count % len(values)
    return list(itertools.islice(itertools.cycle(values), start, start + count))


def shown(value):
    text = value if isinstance(value, bytes) else json.dumps(value)
    return repr(text[:80])
