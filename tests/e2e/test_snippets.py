"""The verification snippets that the portal shows to customers, run as they are shown."""

import base64
import hashlib
import hmac
import json
import re
import subprocess
import time

import pytest
from harness import snippets

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER_SECRET = "whsec_" + base64.b64encode(bytes(range(1, 33))).decode()
BODY = '{"type":"order.paid","data":{"name":"Zoë 🚀"}}\r\n'.encode()
LINES_MAX = 30
DAY = 24 * 60 * 60


def sign(secret, event_id, timestamp, body):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    message = f"{event_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, message, hashlib.sha256)).decode()


def request(secret=SECRET, age_seconds=0, signatures="{valid}", body=BODY, **changes):
    """A request as it was signed, and what was changed afterwards: None leaves a header out."""
    timestamp = str(int(time.time()) - age_seconds)
    valid = sign(secret, "evt_1", timestamp, body)
    signature = signatures.format(valid=valid, other=sign(OTHER_SECRET, "evt_1", timestamp, body))
    return {"id": "evt_1", "timestamp": timestamp, "signature": signature, "body": body} | changes


def cases():
    """What is given to a snippet, and whether it must accept it."""
    return {
        "good": (request(), True),
        "almost too old": (request(age_seconds=240), True),
        "slightly in the future": (request(age_seconds=-240), True),
        "an empty object": (request(body=b"{}"), True),
        "rotation: the new signature is the second": (request(signatures="{other} {valid}"), True),
        "rotation: the new signature is the first": (request(signatures="{valid} {other}"), True),
        "beside a signature of another scheme": (request(signatures="v1a,AAAA {valid}"), True),
        "tampered body": (request() | {"body": BODY.replace(b"paid", b"PAID")}, False),
        "a newline after the body": (request() | {"body": BODY + b"\n"}, False),
        "tampered ID": (request(id="evt_2"), False),
        "tampered timestamp": (request(timestamp=str(int(time.time()) - 7)), False),
        "stale": (request(age_seconds=DAY), False),
        "future": (request(age_seconds=-DAY), False),
        "wrong secret": (request(secret=OTHER_SECRET), False),
        "both signatures wrong": (request(signatures="{other} {other}"), False),
        "no ID": (request(id=None), False),
        "no timestamp": (request(timestamp=None), False),
        "no signature": (request(signature=None), False),
        "empty signature": (request(signature=""), False),
        "shortened signature": (request(signature=request()["signature"][:-4]), False),
        "signature without a version": (request(signature=request()["signature"][3:]), False),
        "signature that is not base64": (request(signature="v1,%%%"), False),
        "timestamp that is no number": (request(timestamp="yesterday"), False),
        "timestamp far too large": (request(timestamp="9" * 40), False),
    }


def encode(value):
    return "-" if value is None else base64.b64encode(value if isinstance(value, bytes) else value.encode()).decode()


def verdicts(command, requests, secret=SECRET):
    names = ("id", "timestamp", "signature", "body")
    lines = ["\t".join([encode(secret), *(encode(each[name]) for name in names)]) for each in requests]
    done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return [{"true": True, "false": False}[line] for line in done.stdout.split()]


@pytest.fixture(params=snippets.PROGRAM_NAMES, ids="-".join)
def program(request):
    command = snippets.command(*request.param)
    if command is None:
        pytest.skip("the Standard Webhooks library for Go needs Go 1.21, and Debian 12 has 1.19")
    return command


def test_a_snippet_accepts_genuine_requests_only(program):
    expected = cases()
    found = dict(zip(expected, verdicts(program, [given for given, _ in expected.values()])))
    assert found == {name: is_genuine for name, (_, is_genuine) in expected.items()}


@pytest.fixture(scope="module")
def commands():
    return {"-".join(names): command for names in snippets.PROGRAM_NAMES if (command := snippets.command(*names))}


def test_every_snippet_accepts_what_postrider_sends_also_during_a_rotation(commands, node, tenant, hook):
    endpoint = node.api.create_endpoint(tenant, hook.url)
    path = f"/v1/tenants/{tenant}/endpoints/{endpoint['id']}"
    rotated = node.api.post(f"{path}/secrets/rotate", {"overlap_seconds": 3600}).expect(200, 201)["secret"]
    node.api.publish(tenant, "order.paid", {"name": "Zoë 🚀"})
    [recorded] = hook.wait_for(1)
    headers = {name: recorded.headers[f"webhook-{name}"] for name in ("id", "timestamp", "signature")}
    assert len(headers["signature"].split()) == 2
    assert json.loads(recorded.body)["data"] == {"name": "Zoë 🚀"}
    for secret in (endpoint["secret"], rotated):
        accepted = {name: verdicts(command, [headers | {"body": recorded.body}], secret) for name, command in commands.items()}
        assert accepted == dict.fromkeys(commands, [True])


def test_snippets_are_short():
    lines = {path.name: len(path.read_text().splitlines()) for path in snippets.SHOWN.iterdir()}
    assert len(lines) == len(snippets.PROGRAM_NAMES)
    assert {name: count for name, count in lines.items() if count > LINES_MAX} == {}


def test_snippets_compare_in_constant_time():
    """What a test cannot measure reliably: each uses the comparison of its language, never ==."""
    comparisons = {"mjs": "timingSafeEqual", "py": "compare_digest", "go": "hmac.Equal", "java": "MessageDigest.isEqual",
                   "rs": "memcmp::eq", "php": "hash_equals", "rb": "secure_compare", "cs": r"a \^ b"}
    for suffix, comparison in comparisons.items():
        assert re.search(comparison, (snippets.SHOWN / f"verify.{suffix}").read_text()), suffix
