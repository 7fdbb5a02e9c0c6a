"""The console: how its files are served, and how it works in a browser."""

import gzip
import json
import os
import pathlib
import re
import subprocess
import urllib.parse

import pytest
from harness.npm import npm_install
from harness.receiver import Reply
from harness.wait import wait_until

WEB = pathlib.Path(__file__).resolve().parents[2] / "web"
SECONDS_MAX = 900
EXACT = '{"n":12345678901234567890.10,"a":1,"a":2}'
HOSTILE = "<img src=x onerror=\"window.injected=1\"></script><script>window.injected=1</script>\u202e" + "x" * 120


def get(node, path, **headers):
    return node.api.as_key(None).get(path, headers=headers)


def files(node):
    return re.findall(r'(?:src|href)="(/console/assets/[^"]+)"', get(node, "/console").body.decode())


def test_every_address_of_the_console_is_its_page(node):
    page = get(node, "/console")
    for path in ["/console", "/console/deliveries", "/console/tenants/a.b/deliveries/dlv_1?tab=x"]:
        response = get(node, path)
        assert (response.status, response.body) == (200, page.body), path
        assert response.headers["content-type"] == "text/html; charset=utf-8"
        assert response.headers["cache-control"] == "no-cache"
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "trusted-types 'none'" in policy
        assert "unsafe" not in policy and "http" not in policy
    assert get(node, "/console", **{"if-none-match": page.headers["etag"]}).status == 304


def test_files_are_kept_for_ever_and_the_same_in_every_encoding(node):
    assert len(files(node)) >= 3
    for path in files(node):
        plain = get(node, path)
        assert plain.status == 200 and plain.headers["cache-control"] == "public, max-age=31536000, immutable", path
        packed = get(node, path, **{"accept-encoding": "gzip"})
        if packed.headers["content-encoding"] == "gzip":
            assert gzip.decompress(packed.body) == plain.body, path
        assert packed.headers["vary"] == "accept-encoding"
    assert get(node, "/console/assets/other.js").status == 404


@pytest.fixture
def facts(node, receiver):
    """What the scenarios look at: a healthy and a failing endpoint, dead letters, hostile text, a key that reads only."""
    api = node.api
    api.create_tenant("console-acme", name="Acme")
    healthy, failing = receiver.hook(), receiver.hook()
    failing.reply(then=Reply(404, body=b"no such path"))
    good = api.create_endpoint("console-acme", healthy.url, ["order.*"])["id"]
    bad = api.create_endpoint("console-acme", failing.url, ["invoice.paid"])["id"]
    exact = api.call("POST", "/v1/tenants/console-acme/events",
                     f'{{"type":"invoice.paid","subject":"invoice-1","data":{EXACT}}}'.encode()).expect(200, 202)["id"]
    events = [api.publish("console-acme", "invoice.paid", {"n": n}, subject="invoice-404")["id"] for n in range(3)]
    api.publish("console-acme", "order.created", {"n": 1})

    def dead():
        return api.get("/v1/tenants/console-acme/dead-letters").expect(200)["data"]

    wait_until(lambda: len(dead()) == 4, "all of them are dead letters")
    by_event = {row["event_id"]: row["id"] for row in dead()}
    api.create_tenant("console-hostile", name=HOSTILE)
    hostile = api.publish("console-hostile", "hostile", {"text": HOSTILE}, subject=HOSTILE[:200])["id"]
    reader = api.post("/v1/keys", {"role": "reader", "payloads": False}).expect(201)["key"]
    link = api.post("/v1/console-links").expect(201)["url"]
    return {
        "tenant": "console-acme", "host": urllib.parse.urlsplit(healthy.url).netloc, "healthyEndpoint": good, "failingEndpoint": bad,
        "exactEvent": exact, "exactData": EXACT, "deadDelivery": by_event[events[0]], "replayDelivery": by_event[events[1]],
        "hostileTenant": "console-hostile", "hostileName": HOSTILE.replace("\u202e", "\\u202e"), "hostileEvent": hostile,
        "readerKey": reader, "link": link[link.index("#"):],
    }


def test_the_console_works_in_a_browser(node, facts):
    """All scenarios of web/tests/scenarios in one browser."""
    npm_install(WEB)
    run = subprocess.run(["node", "tests/console.mjs", node.api.url, node.api.key, json.dumps(facts)], cwd=WEB,
                         capture_output=True, timeout=SECONDS_MAX, text=True)
    assert run.returncode == 0, run.stderr
    results = json.loads(run.stdout)
    failed = {name: error for name, error in results.items() if error is not None}
    assert not failed, "\n\n".join(f"{name}: {error}" for name, error in failed.items())
    assert len(results) > 10 or "ONLY" in os.environ
