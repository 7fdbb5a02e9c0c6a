"""Official libraries sign what is sent to postrider; consumers written as examples work on it."""

import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

from harness.npm import npm_install
from harness.signatures import CONFORMANCE
from harness.wait import wait_until

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def judged(node):
    """Requests as the official libraries sign them, by the name of their source."""
    npm_install(CONFORMANCE)
    probe = node.api.post("/v1/sources", {"id": "judge_probe", "provider": "github"}).expect(201)
    base = probe["url"].removesuffix("/in/judge_probe")  # the URL that Twilio calls
    given = {"now": int(time.time()),
             "url": {name: f"{base}/in/judge_{name}" for name in ("twilio", "twilio_json")}}
    done = subprocess.run(["node", "sign_inbound.mjs"], cwd=CONFORMANCE, input=json.dumps(given), text=True, check=True,
                          stdout=subprocess.PIPE)
    requests = {request["case"]: request for request in json.loads(done.stdout.splitlines()[-1])}
    for name, request in requests.items():
        body = {"id": f"judge_{name}", "provider": request["provider"], "secret": request["secret"]}
        node.api.post("/v1/sources", body).expect(201)
    return requests


def send(node, name, request, **changed):
    request = {**request, **changed}
    anybody = node.api.as_key(None)
    return anybody.call("POST", f"/in/judge_{name}{request['query']}", request["body"].encode(), headers=request["headers"]).status


CASES = ["standard", "svix", "stripe", "github", "shopify", "slack", "twilio", "twilio_json"]


@pytest.mark.parametrize("name", CASES)
def test_what_the_official_library_signed_is_taken_and_a_changed_byte_is_not(node, judged, name):
    request = judged[name]
    assert send(node, name, request) == 200
    assert node.sql("select count(*) from postrider.inbox where source_id = %s and body = %s",
                    [f"judge_{name}", request["body"]]) == [(1,)]
    changed = request["body"].replace("Body=", "Bodx=").replace("order", "ordes")
    assert changed != request["body"] and send(node, name, request, body=changed) == 401
    for header, value in request["headers"].items():
        if "signature" not in header and "hmac" not in header:
            continue
        for at in (len(value) - 10, len(value) // 2):
            other = value[:at] + ("a" if value[at] != "a" else "b") + value[at + 1:]
            assert send(node, name, request, headers={**request["headers"], header: other}) == 401, other
        missing = {key: kept for key, kept in request["headers"].items() if key != header}
        assert send(node, name, request, headers=missing) == 401


@pytest.mark.parametrize("runner", ["python", "node"])
def test_a_consumer_written_as_the_example_works_on_every_message_once(node, judged, runner):
    node.sql("create table if not exists public.processed (message_id text primary key, body text, worker text)")
    source = {"python": "judge_stripe", "node": "judge_github"}[runner]
    name = source.removeprefix("judge_")
    send(node, name, judged[name])
    copied = CONFORMANCE / f"inbox_consumer.{os.getpid()}.mjs"  # imports are looked up beside the file
    program = {"python": [sys.executable, str(EXAMPLES / "inbox_consumer.py")], "node": ["node", str(copied)]}[runner]
    copied.write_text((EXAMPLES / "inbox_consumer.mjs").read_text())
    try:
        subprocess.run([*program, node.database_url, source, f"{runner}-1", "--until-empty"], check=True)
    finally:
        copied.unlink()
    wait_until(lambda: node.sql("select count(*) from public.processed where worker = %s", [f"{runner}-1"]) == [(1,)],
               "it is processed")
    assert node.sql("select status from postrider.inbox where source_id = %s", [source]) == [("done",)]
