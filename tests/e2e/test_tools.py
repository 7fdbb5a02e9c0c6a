"""Commands for operators and for those who write receivers: doctor, replay, trigger, verify, listen."""

import json
import subprocess
import threading

from harness.node import ADMIN_KEY, binary, environment
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


def test_verify_accepts_what_was_sent_and_says_what_differs(node, tenant, hook, tmp_path):
    for scheme in ("standard", "standard-ed25519", "hex-v1", "sha256"):
        made = node.api.create_endpoint(tenant, hook.url, event_types=[f"t.{scheme}"], signature=scheme)
        (tmp_path / "secret").write_text(made["secret"] + "\n")
        node.api.publish(tenant, f"t.{scheme}")
        got = hook.wait_for(len(hook.requests) + 1)[-1] if not hook.requests else wait_until(
            lambda: hook.requests[-1] if json.loads(hook.requests[-1].body)["type"] == f"t.{scheme}" else None, scheme)
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


def test_listen_forwards_in_order_and_catches_up_after_a_break(start_node, data_dir, hook):
    node = start_node(data_dir=data_dir)
    node.api.create_tenant("acme")
    node.api.publish("acme", data={"number": -1})  # from before: not forwarded
    settings = {**node.settings, "listen": node.address}
    more = {"POSTRIDER_SERVER": f"http://{node.address}", "POSTRIDER_KEY": ADMIN_KEY}
    listening = subprocess.Popen([binary(), "listen", "acme", "--forward-to", hook.url, *server(node)],
                                 env={**environment(), **more}, cwd="/", text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(iter(listening.stderr.readline, "")), daemon=True)
    reader.start()
    try:
        wait_until(lambda: any(line.startswith("connected to") for line in lines), f"it is connected: {lines}")
        big = b'{"type":"a.b","data":{"number":0,"big":12345678901234567890123}}'
        node.api.post("/v1/tenants/acme/events", big).expect(202)
        assert b'"big":12345678901234567890123' in hook.wait_for(1)[0].body
        assert node.stop() == 0
        wait_until(lambda: any(line.startswith("not connected") for line in lines), "it says that it is not connected")
        again = start_node(**settings)
        for number in range(1, 4):
            again.api.publish("acme", data={"number": number})
        got = [json.loads(request.body)["data"]["number"] for request in hook.wait_for(4)]
        assert got == [0, 1, 2, 3]
        assert any(line.startswith("connected again") for line in lines)
    finally:
        listening.kill()
        listening.wait()


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
