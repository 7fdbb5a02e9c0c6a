"""The relay at the application's side: it publishes over HTTP, and postrider needs no access to that database."""

import http.server
import itertools
import json
import signal
import ssl
import subprocess
import threading

import pytest

from harness.api import Api
from harness.node import ADMIN_KEY, binary, environment
from harness.ports import lasting_port
from harness.postgres import run_sql
from harness.relay import RelayProcess, install
from harness.wait import wait_until

NUMBERS = itertools.count(1)
PROCESSED = "select count(*) from postrider.outbox where processed_at is not null"


def publish(application, tenant, count):
    return run_sql(application, "select postrider.publish(%s, 'order.paid', to_json(n)) from generate_series(1, %s) n",
                   (tenant, count))


@pytest.fixture
def application(postgres):
    name = f"relayed_{next(NUMBERS)}"
    postgres.create(name)
    yield install(postgres.url(name))
    postgres.drop(name)


@pytest.fixture
def key_file(node, tenant, hook, tmp_path):
    """Of a key that may publish and nothing else; the tenant has an endpoint."""
    node.api.create_endpoint(tenant, hook.url)
    made = node.api.post("/v1/keys", {"role": "publisher"}).expect(201)
    file = tmp_path / "key"
    file.write_text(made["key"] + "\n")
    return file


@pytest.fixture
def start_relay(application, node, key_file):
    started = []

    def start(*words, to=None, **settings):
        relay = RelayProcess(application, to or f"http://{node.address}", key_file, *words, **settings)
        started.append(relay)
        return relay

    yield start
    for relay in started:
        relay.close()


def received(hook):
    return sorted(json.loads(request.body)["data"] for request in list(hook.requests))


def test_committed_rows_are_handed_over_under_their_ids_and_marked(start_relay, application, tenant, hook):
    relay = start_relay("--listen", "127.0.0.1:0")
    relay.wait_for_log("relay_active", outbox="outbox")
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    [(event,)] = run_sql(application, "select postrider.publish(%s, 'order.paid', '{\"n\": 12345678901234567890123}',"
                                      " version => '2', traceparent => %s)", (tenant, trace))
    [request] = hook.wait_for(1)
    assert request.headers["webhook-id"] == event
    assert request.headers["traceparent"] == trace
    assert b'{"n": 12345678901234567890123}' in request.body and json.loads(request.body)["version"] == "2"
    wait_until(lambda: run_sql(application, PROCESSED) == [(1,)], "the row is marked")
    at_relay = Api(f"http://{relay.wait_for_log('started')['listen']}", None)
    published = b'webhook_relay_rows_total{outbox="outbox",result="published"} 1\n'
    wait_until(lambda: published in at_relay.exchange("GET", "/metrics").body, "the row is counted")
    assert at_relay.exchange("GET", "/readyz").status == 200
    assert relay.stop() == 0


@pytest.mark.parametrize("point", ["outbox.before_mark", "outbox.after_mark"])
def test_a_relay_killed_in_between_makes_no_second_event(start_relay, application, node, tenant, hook, point):
    killed = start_relay(fail_point=f"{point}:1")
    publish(application, tenant, 10)
    assert killed.wait_exit() == -signal.SIGKILL
    assert run_sql(application, PROCESSED) == [(0 if point == "outbox.before_mark" else 10,)]
    start_relay()
    run_sql(application, "select postrider.publish(%s, 'order.paid', '11')", (tenant,))
    hook.wait_for(11)
    wait_until(lambda: run_sql(application, PROCESSED) == [(11,)], "all are marked")
    assert received(hook) == list(range(1, 12))
    assert node.sql("select count(*) from postrider.event where tenant_id = %s", (tenant,)) == [(11,)]


def test_while_the_server_is_down_nothing_is_lost(start_relay, start_node, application, tenant, database_url, key_file,
                                                  hook):
    fresh = start_node(database_url=database_url, listen=f"127.0.0.1:{lasting_port()}")
    fresh.api.create_tenant(tenant)
    fresh.api.create_endpoint(tenant, hook.url)
    key_file.write_text(ADMIN_KEY)
    relay = start_relay(to=f"http://{fresh.address}")
    fresh.stop()
    publish(application, tenant, 5)
    relay.wait_for_log("relay_target_not_taking")
    assert run_sql(application, "select sum(attempts), count(processed_at) from postrider.outbox") == [(0, 0)]
    start_node(**fresh.settings)
    hook.wait_for(5)
    relay.wait_for_log("relay_target_reachable")
    assert received(hook) == [1, 2, 3, 4, 5]


def test_a_key_that_is_not_accepted_blames_no_row_and_can_be_exchanged(start_relay, application, tenant, key_file, hook):
    good = key_file.read_text()
    key_file.write_text("wrong\n")
    relay = start_relay()
    publish(application, tenant, 2)
    assert "401" in relay.wait_for_log("relay_target_not_taking")["error"]
    key_file.write_text(good)
    hook.wait_for(2)
    assert run_sql(application, "select sum(attempts) from postrider.outbox") == [(0,)]


def test_what_is_refused_is_counted_on_its_row_and_holds_up_nobody(start_relay, application, tenant, hook):
    relay = start_relay()
    run_sql(application, "select postrider.publish('nobody', 'order.paid', '1')")
    publish(application, tenant, 1)
    hook.wait_for(1)
    row = "select attempts > 0, last_error, processed_at from postrider.outbox where tenant_id = 'nobody'"
    wait_until(lambda: run_sql(application, row)[0][0], "it is refused")
    assert "tenant" in run_sql(application, row)[0][1] and run_sql(application, row)[0][2] is None
    run_sql(application, "update postrider.outbox set attempts = 4, retry_at = now() where tenant_id = 'nobody'")
    relay.wait_for_log("outbox_row_set_aside", tenant_id="nobody")


def test_one_of_two_works_and_the_other_takes_over(start_relay, application, tenant, hook):
    first = start_relay()
    first.wait_for_log("relay_active")
    second = start_relay()
    second.wait_for_log("started")
    publish(application, tenant, 1)
    hook.wait_for(1)
    assert first.stop() == 0
    publish(application, tenant, 1)
    second.wait_for_log("relay_active")
    hook.wait_for(2)


def test_a_server_whose_certificate_is_not_trusted_gets_nothing(start_relay, application, tenant, tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", tmp_path / "tls.key", "-out", tmp_path / "tls.pem", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, stderr=subprocess.DEVNULL)
    got = []

    class Taking(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            items = json.loads(self.rfile.read(int(self.headers["content-length"])))
            got.extend(item["data"] for item in items)
            body = json.dumps([{"status": 202} for _ in items]).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Taking)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls.pem", tmp_path / "tls.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"https://127.0.0.1:{server.server_port}"
    try:
        publish(application, tenant, 3)
        distrusting = start_relay(to=url)
        assert "certificate" in distrusting.wait_for_log("relay_target_not_taking")["error"].lower()
        assert not got and run_sql(application, PROCESSED) == [(0,)]
        distrusting.stop()
        start_relay("--ca-file", str(tmp_path / "tls.pem"), to=url)
        wait_until(lambda: run_sql(application, PROCESSED) == [(3,)], "with the authority they are taken")
        assert sorted(got) == [1, 2, 3]
    finally:
        server.shutdown()


def test_what_is_missing_is_said_before_anything_is_done(postgres, key_file, database_url):
    def relay(*words):
        return subprocess.run([binary(), "relay", *words], env=environment(), cwd="/", text=True, capture_output=True,
                              timeout=30)
    for words, complaint in [
            ((), "--database-url"), (("--database-url", database_url), "--to is required"),
            (("--database-url", database_url, "--to", "http://127.0.0.1:1"), "--key-file is required"),
            (("--database-url", database_url, "--to", "nonsense", "--key-file", str(key_file)), "--to:")]:
        done = relay(*words)
        assert done.returncode == 2 and complaint in done.stderr, done.stderr
    empty = postgres.url("postgres")
    done = relay("--database-url", empty, "--to", "http://127.0.0.1:1", "--key-file", str(key_file))
    assert done.returncode == 2 and "outbox install" in done.stderr, done.stderr
    assert ADMIN_KEY not in done.stderr


def test_a_role_that_may_not_move_the_rows_is_told_what_it_needs(application, postgres, tmp_path):
    name = application.split("?")[0].rsplit("/", 1)[1]
    postgres.sql("do $$ begin create role stranger login; exception when duplicate_object then end $$", name)
    (tmp_path / "key").write_text("k")
    done = subprocess.run([binary(), "relay", "--database-url", postgres.url(name, "stranger"), "--to", "http://127.0.0.1:1",
                           "--key-file", str(tmp_path / "key")], env=environment(), cwd="/", text=True, capture_output=True,
                          timeout=60)
    assert done.returncode == 2 and "grant postrider_relay to stranger" in done.stderr, done.stderr
