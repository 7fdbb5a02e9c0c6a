"""postrider behind real proxies: nginx with default settings, and the examples of deploy/."""

import concurrent.futures
import contextlib
import http.client
import json
import re
import subprocess

import pytest

from harness import debian, senders
from harness.api import Api
from harness.documents import ROOT
from harness.ports import lasting_port
from servers import running

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NGINX = ROOT / "deploy" / "nginx" / "postrider.conf"
CADDY = ROOT / "deploy" / "caddy" / "Caddyfile"


@pytest.fixture
def behind_nginx(node, nginx, port):
    """The API through an nginx that has one setting, proxy_pass."""
    nginx(f"  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://{node.address}; }} }}", port)
    return Api(f"http://127.0.0.1:{port}", node.api.key)


@contextlib.contextmanager
def stream(api, tenant):
    """An open stream that has begun."""
    connection = http.client.HTTPConnection(api.url.removeprefix("http://"), timeout=60)
    try:
        connection.request("GET", f"/v1/tenants/{tenant}/stream", headers={"authorization": f"Bearer {api.key}"})
        response = connection.getresponse()
        assert response.status == 200, response.read()
        assert response.readline() == b"retry: 2000\n"
        yield response
    finally:
        connection.close()


def next_event(response):
    """The next published event; the stream also has attempts and its position."""
    kind = None
    for line in iter(response.readline, b""):
        if line.startswith(b"event: "):
            kind = line.removeprefix(b"event: ").strip()
        if line.startswith(b"data: ") and kind == b"event":
            return json.loads(line.removeprefix(b"data: "))
    raise AssertionError("the stream ended")


def test_a_stream_passes_default_nginx_event_by_event(behind_nginx, node, tenant):
    with stream(behind_nginx, tenant) as response:
        for _ in range(3):
            event = node.api.publish(tenant)["id"]
            assert next_event(response)["id"] == event


def test_a_stream_without_events_stays_open_by_heartbeats(behind_nginx, tenant):
    with stream(behind_nginx, tenant) as response:
        lines = iter(response.readline, b"")
        assert next(line for line in lines if line.startswith(b":")) == b": heartbeat\n"


def test_a_claim_that_waits_gets_its_message_through_nginx(behind_nginx, node):
    node.api.post("/v1/sources", {"id": "proxied", "provider": "standard", "secret": SECRET}).expect(201)
    claim = {"worker": "w", "source": "proxied", "wait_seconds": 30}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(behind_nginx.post, "/v1/inbox/claim", claim)
        body = senders.event(n=1)
        sent = behind_nginx.call("POST", "/in/proxied", body, senders.standard(SECRET, "m1", body))
        assert sent.status == 200, sent.body
        [message] = waiting.result().expect(200)["data"]
    assert message["id"]


# ── the examples ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def nginx_example(node, nginx, certificate):
    """deploy/nginx/postrider.conf on other ports; (plain, secure)."""
    plain, secure = lasting_port(), lasting_port()
    text = NGINX.read_text()
    text = re.sub(r"\n\s*listen \[::\].*", "", text)
    text = text.replace("listen 80;", f"listen 127.0.0.1:{plain};").replace("listen 443 ", f"listen 127.0.0.1:{secure} ")
    text = text.replace("127.0.0.1:8090", node.address)
    text = text.replace("/etc/ssl/certs/hooks.example.com.pem", str(certificate[0]))
    text = text.replace("/etc/ssl/private/hooks.example.com.key", str(certificate[1]))
    text = text.replace("allow 127.0.0.1;", "")  # the test is a stranger
    nginx(text, secure)
    return plain, secure


def test_the_nginx_example_serves_the_api_over_tls(nginx_example, request_over_tls, node, tenant):
    body = json.dumps({"type": "invoice.paid", "data": {"n": 1}})
    response = request_over_tls(nginx_example[1], f"POST /v1/tenants/{tenant}/events", body, node.api.key)
    assert response.startswith("HTTP/1.1 202 "), response
    assert "strict-transport-security" in response


@pytest.mark.parametrize("path", ["/metrics", "/readyz"])
def test_the_nginx_example_hides_metrics_from_strangers(nginx_example, request_over_tls, path):
    assert request_over_tls(nginx_example[1], f"GET {path}").startswith("HTTP/1.1 403 ")
    assert request_over_tls(nginx_example[1], "GET /healthz").startswith("HTTP/1.1 200 ")


def test_the_nginx_example_redirects_plain_http(nginx_example):
    api = Api(f"http://127.0.0.1:{nginx_example[0]}", None)
    response = api.exchange("GET", "/docs", headers={"host": "hooks.example.com"})
    assert (response.status, response.headers["location"]) == (301, "https://hooks.example.com/docs")


@pytest.fixture
def caddy_example(node, folder, port):
    """deploy/caddy/Caddyfile without TLS, which would need a public name; the API through it."""
    text = CADDY.read_text().replace("hooks.example.com {", f"http://127.0.0.1:{port} {{", 1)
    text = text.replace("127.0.0.1:8090", node.address).replace("not remote_ip 127.0.0.1", "not remote_ip")
    (folder / "Caddyfile").write_text("{\n\tadmin off\n\tgrace_period 1s\n}\n" + text)
    command = [debian.program("caddy", "usr/bin/caddy"), "run", "--adapter", "caddyfile", "--config", folder / "Caddyfile"]
    with running(command, folder, port):
        yield Api(f"http://127.0.0.1:{port}", node.api.key)


def test_the_caddy_example_is_valid_as_written(folder):
    done = subprocess.run([debian.program("caddy", "usr/bin/caddy"), "adapt", "--adapter", "caddyfile", "--config", CADDY],
                          env={"PATH": "/usr/bin:/bin", "HOME": str(folder)}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0 and "warn" not in done.stderr.lower(), done.stderr


def test_the_caddy_example_serves_streams_and_hides_metrics(caddy_example, node, tenant):
    with stream(caddy_example, tenant) as response:
        event = caddy_example.publish(tenant)["id"]
        assert next_event(response)["id"] == event
    assert caddy_example.exchange("GET", "/metrics").status == 403
