"""Commands for operators and for those who write receivers: doctor, replay, trigger, verify, listen."""

import hmac
import http.server
import json
import ssl
import subprocess
import threading

import pytest
from harness.node import ADMIN_KEY, binary, environment
from harness.ports import lasting_port
from harness.wait import wait_until


def run(*words, node=None, variables=None, text="", **settings):
    more = {"POSTRIDER_SERVER": f"http://{node.address}", "POSTRIDER_KEY": ADMIN_KEY} if node else {}
    return subprocess.run([binary(), *words], env={**environment(**settings), **more, **(variables or {})}, cwd="/",
                          input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)


def server(node):
    return ["--server", f"http://{node.address}"]


def test_doctor_finds_a_running_node_well(node):
    done = run("doctor", "--json", data_dir=node.settings["data_dir"])
    findings = {finding["about"]: finding for finding in json.loads(done.stdout)}
    assert {"database", "migrations", "clock", "disk", "tls store", "partitions", "leases"} <= set(findings), done.stderr
    assert findings["migrations"]["status"] == "ok" and findings["partitions"]["status"] == "ok"


def test_a_node_says_that_nobody_would_hear_of_failures(start_node, data_dir, hook):
    node = start_node(data_dir=data_dir)
    node.api.create_tenant("acme", contacts=["ops@acme.example"])
    node.api.create_tenant("other")
    assert node.stop() == 0
    again = start_node(**node.settings)
    missing = ("some tenants have no confirmed contact", "smtp_url is not set", "subscribed to operational events")
    logged = [again.wait_for_log("no_recipients", count=count)["note"] for count in (1, 2, 3)]
    ready = again.api.get("/readyz").body.decode()
    findings = [finding for finding in json.loads(run("doctor", "--json", data_dir=data_dir).stdout)
                if finding["about"] in ("contacts", "recipients")]
    for text, line in zip(missing, logged):
        assert text in line and line in ready
    assert "other" not in ready and "other" in findings[0]["finding"]
    assert [text in finding["finding"] for text, finding in zip(missing[1:], findings[1:])] == [True, True]

    again.api.create_endpoint("postrider", hook.url)
    again.api.call("PATCH", "/v1/tenants/acme", {"contacts": [hook.url]}).expect(200)
    again.api.call("PATCH", "/v1/tenants/other", {"contacts": [hook.url]}).expect(200)
    assert again.stop() == 0
    assert start_node(**again.settings).api.get("/readyz").body.decode() == "ready\n"


def test_doctor_says_what_to_do_when_there_is_no_database(data_dir):
    done = run("doctor", data_dir=data_dir, database_url="postgresql://nobody@127.0.0.1:1/none", master_key="00" * 32)
    assert done.returncode == 1
    assert "problem  database" in done.stdout and "POSTRIDER_DATABASE_URL" in done.stdout


def test_doctor_tries_the_way_of_a_delivery(node, hook):
    done = run("doctor", "--url", hook.url, "--json", data_dir=node.settings["data_dir"])
    assert [f["status"] for f in json.loads(done.stdout) if f["about"] == "egress"] == ["ok"], done.stdout
    refused = run("doctor", "--url", hook.url, "--json", data_dir=node.settings["data_dir"], allow_networks=None)
    [finding] = [f for f in json.loads(refused.stdout) if f["about"] == "egress"]
    assert finding["status"] == "problem" and "ALLOW_NETWORKS" in finding["advice"]


@pytest.fixture
def misnamed(tmp_path):
    """The URL of a TLS server whose certificate is for another name, and the file of its CA."""
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
                    "-subj", "/CN=other.example", "-addext", "subjectAltName=DNS:other.example", "-keyout", str(key),
                    "-out", str(certificate)], check=True, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    server.handle_error = lambda *_: None
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}/", str(certificate)
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_doctors_advice_fits_the_error(node, misnamed):
    url, ca_file = misnamed

    def advice(url, **settings):
        done = run("doctor", "--url", url, "--json", data_dir=node.settings["data_dir"], **settings)
        [finding] = [f for f in json.loads(done.stdout) if f["about"] in ("egress", "names")]
        assert done.returncode == 1 and finding["status"] == "problem"
        return finding["advice"]

    assert "certificate is for another host name" in advice(url, extra_ca_file=ca_file)
    assert "POSTRIDER_EXTRA_CA_FILE" in advice(url)
    assert "Nothing accepts connections there" in advice("http://127.0.0.1:1/", allow_ports="1-65535")
    assert "spelling of the host name" in advice("https://no-such-host.invalid/")
    assert "POSTRIDER_ALLOW_PORTS" in advice("https://127.0.0.1:22/")


def test_verify_accepts_what_was_sent_and_says_what_differs(node, tenant, hook, tmp_path):
    for scheme in ("standard", "standard-ed25519", "hex-v1", "sha256"):
        made = node.api.create_endpoint(tenant, hook.url, event_types=[f"t.{scheme}"], signature=scheme)
        (tmp_path / "secret").write_text(made["secret"] + "\n")
        before = len(hook.requests)
        node.api.publish(tenant, f"t.{scheme}")
        got = hook.wait_for(before + 1)[-1]
        (tmp_path / "headers").write_text("\n".join(f"{k}: {v}" for k, v in got.headers.items()))
        words = ("verify", "-", "--headers", str(tmp_path / "headers"), "--secret-file", str(tmp_path / "secret"))
        good = run(*words, text=got.body.decode())
        assert good.returncode == 0 and scheme in good.stdout, (scheme, good.stdout, good.stderr)
        bad = run(*words, text=got.body.decode() + "\n")
        assert bad.returncode == 1 and "line break at its end" in bad.stdout


def test_trigger_publishes_a_sample(node, tenant, hook):
    node.api.create_endpoint(tenant, hook.url)
    done = run("trigger", tenant, "invoice.paid", *server(node), node=node)
    assert done.returncode == 0, done.stderr
    assert json.loads(hook.wait_for(1)[0].body)["type"] == "invoice.paid"


class Following:
    """`postrider listen` or `tail` beside the test; what it says and prints as it comes."""

    def __init__(self, node, *words, variables=None):
        more = {"POSTRIDER_SERVER": f"http://{node.address}", "POSTRIDER_KEY": ADMIN_KEY, **(variables or {})}
        self.process = subprocess.Popen([binary(), *words], env={**environment(), **more}, cwd="/", text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.said, self.printed = [], []
        for pipe, lines in ((self.process.stderr, self.said), (self.process.stdout, self.printed)):
            threading.Thread(target=lambda p=pipe, to=lines: to.extend(iter(p.readline, "")), daemon=True).start()

    def wait_said(self, start, count=1):
        return wait_until(lambda: [line for line in self.said if line.startswith(start)][count - 1:], f"it says {start!r}: {self.said}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def numbers(hook):
    return [json.loads(request.body)["data"]["number"] for request in list(hook.requests)]


def test_listen_forwards_the_bytes_and_misses_nothing_when_its_node_is_killed(start_node, database_url, hook):
    node = start_node(database_url=database_url, listen=f"127.0.0.1:{lasting_port()}")
    other = start_node(database_url=database_url)
    node.api.create_tenant("acme")
    node.api.publish("acme", data={"number": -1})  # from before: not forwarded
    with Following(node, "listen", "acme", "--forward-to", hook.url) as listening:
        listening.wait_said("connected to")
        big = b'{"type":"a.b","data":{"number":0,"big":12345678901234567890123}}'
        node.api.post("/v1/tenants/acme/events", big).expect(202)
        assert b'"big":12345678901234567890123' in hook.wait_for(1)[0].body
        node.kill()
        listening.wait_said("not connected")
        for number in range(1, 150):  # more than the server reads at once
            other.api.publish("acme", data={"number": number})
        again = start_node(**node.settings)
        listening.wait_said("connected again: 149 messages caught up")
        again.api.publish("acme", data={"number": 150})
        hook.wait_for(151)
        assert numbers(hook) == list(range(151))
        wait_until(lambda: len(listening.printed) == 151, "a line for each")
        assert listening.process.poll() is None


def test_listen_finds_an_event_that_was_committed_late(start_node, database_url, hook):
    node = start_node(database_url=database_url)
    node.api.create_tenant("acme")
    with Following(node, "listen", "acme", "--forward-to", hook.url) as listening:
        listening.wait_said("connected to")
        # As an application's transaction does: the id is made first, the row is seen after a younger one.
        [(late,)] = node.sql("select postrider.new_id()::text")
        node.api.publish("acme", data={"number": 1})
        hook.wait_for(1)
        node.sql("""insert into postrider.event (id, tenant_id, type, body)
                    values (%s, 'acme', 'a.b', '{"data":{"number":0}}')""", (late,))
        hook.wait_for(2)
        assert numbers(hook) == [1, 0]


def test_listen_from_a_time_on(node, tenant, hook):
    earlier = node.api.publish(tenant, data={"number": 0})["created_at"]
    # Well between the two: the clocks of the node and the database may differ by some milliseconds.
    passed = f"select clock_timestamp() > '{earlier}'::timestamptz + interval '200 ms'"
    wait_until(lambda: node.sql(passed) == [(True,)], "time has passed")
    [(since,)] = node.sql(f"""select to_char(('{earlier}'::timestamptz + interval '100 ms') at time zone 'UTC',
                                             'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')""")
    for number in (1, 2):
        node.api.publish(tenant, "a.b", data={"number": number})
    with Following(node, "listen", tenant, "--forward-to", hook.url, "--since", since) as listening:
        listening.wait_said("connected to")
        hook.wait_for(2)
        assert numbers(hook) == [1, 2]


def test_listen_forwards_several_types_signed_with_a_secret_that_stays(node, tenant, hook, tmp_path):
    home = {"XDG_CONFIG_HOME": str(tmp_path)}

    def secret_of(name):
        return run("listen", name, "--print-secret", node=node, variables=home).stdout.strip()

    secret = secret_of(tenant)
    assert secret.startswith("whsec_") and secret_of(tenant) == secret and secret_of("another") != secret
    words = ("listen", tenant, "--forward-to", hook.url, "--event-type", "invoice.*", "--event-type", "order.paid")
    with Following(node, *words, variables=home) as listening:
        listening.wait_said("connected to")
        for number, type in enumerate(("invoice.paid", "order.sent", "order.paid")):
            node.api.publish(tenant, type, data={"number": number})
        got = hook.wait_for(2)
        assert numbers(hook) == [0, 2]
    (tmp_path / "headers").write_text("\n".join(f"{k}: {v}" for k, v in got[0].headers.items()))
    (tmp_path / "secret").write_text(secret)
    verified = run("verify", "-", "--headers", str(tmp_path / "headers"), "--secret-file", str(tmp_path / "secret"),
                   text=got[0].body.decode())
    assert verified.returncode == 0, verified.stdout


def test_listen_prints_json_and_checks_its_url_first(node, tenant):
    with Following(node, "listen", tenant, "--json") as listening:
        listening.wait_said("connected to")
        made = node.api.publish(tenant, "invoice.paid")
        wait_until(lambda: listening.printed, "a line")
        line = json.loads(listening.printed[0])
        assert line["id"] == made["id"] and line["type"] == "invoice.paid"
    for wrong in ("9000", "ftp://x/"):
        done = run("listen", tenant, "--forward-to", wrong, node=node)
        assert done.returncode == 2 and "expected a URL such as http://localhost:" in done.stderr, done.stderr


def test_listen_forwards_what_a_source_received(node, hook):
    node.api.post("/v1/sources", {"id": "listened", "provider": "github", "secret": "a-secret-of-16-bytes"}).expect(201)
    with Following(node, "listen", "--source", "listened", "--forward-to", hook.url) as listening:
        listening.wait_said("connected to")
        body = b'{"number":1}'
        signature = hmac.new(b"a-secret-of-16-bytes", body, "sha256").hexdigest()
        headers = {"x-hub-signature-256": "sha256=" + signature, "x-github-delivery": "1", "x-github-event": "push"}
        node.api.post("/in/listened", body, headers=headers).expect(202, 200)
        got = hook.wait_for(1)[0]
        assert got.body == body and got.headers["x-hub-signature-256"] == headers["x-hub-signature-256"]
    for words in ([], ["acme", "--source", "listened"]):
        done = run("listen", *words, node=node)
        assert done.returncode == 2 and "either a tenant" in done.stderr


def test_listen_ends_when_coming_again_does_not_help(node):
    done = run("listen", "nobody", "--forward-to", "http://127.0.0.1:1/", node=node)
    assert done.returncode == 5 and "tenant" in done.stderr


def test_tail_shows_each_attempt_once_over_a_restart(start_node, database_url, hook):
    node = start_node(database_url=database_url, listen=f"127.0.0.1:{lasting_port()}")
    other = start_node(database_url=database_url)
    node.api.create_tenant("acme")
    node.api.create_endpoint("acme", hook.url)
    with Following(node, "tail", "--tenant", "acme", "--json") as tailing:
        tailing.wait_said("connected to")
        first = node.api.publish("acme")["id"]
        wait_until(lambda: any(first in line for line in tailing.printed), "the first is shown")
        assert node.stop() == 0
        tailing.wait_said("not connected")
        between = other.api.publish("acme")["id"]
        hook.wait_for(2)
        again = start_node(**node.settings)
        tailing.wait_said("connected again")
        last = again.api.publish("acme")["id"]

        def attempts():
            shown = [json.loads(line) for line in list(tailing.printed)]
            return [line["event_id"] for line in shown if line["kind"] == "attempt"]

        wait_until(lambda: last in attempts(), "the last is shown")
        assert attempts() == [first, between, last]


def test_replay_from_the_command_line(node, tenant, hook):
    node.api.create_endpoint(tenant, hook.url)
    hook.reply(400, 400)
    for _ in range(2):
        node.api.publish(tenant)
    letters = "select count(*) from postrider.dead_letter where tenant_id = %s"
    wait_until(lambda: node.sql(letters, (tenant,)) == [(2,)], "dead letters")
    words = ("replay", "create", tenant, "--only", "failed", "--since", "2026-01-01T00:00:00Z")
    since = node.sql("select to_char(now() - interval '1 hour', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')")[0][0]
    words = words[:-1] + (since,)
    dry = run(*words, "--dry-run", "--json", *server(node), node=node)
    assert json.loads(dry.stdout)["matched"] == 2, dry.stderr
    done = run(*words, "--reason", "x", "--wait", "--json", *server(node), node=node)
    assert done.returncode == 0 and json.loads(done.stdout)["delivered"] == 2, done.stderr
    listed = run("replay", "list", tenant, *server(node), node=node)
    assert "completed" in listed.stdout
