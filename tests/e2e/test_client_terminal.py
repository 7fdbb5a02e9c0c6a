"""What the command line shows to people: on a terminal, in a pipe, and when something goes wrong."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import termios

import pytest
from harness.node import ADMIN_KEY, binary
from harness.receiver import Reply
from harness.wait import wait_until


def on_terminal(node, *words, columns=80, typed=b""):
    """Runs it on a terminal of that width; (exit code, what the terminal got)."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        os.execve(binary(), [binary(), *words], {"PATH": "/usr/bin", "POSTRIDER_KEY": ADMIN_KEY,
                                                 "POSTRIDER_SERVER": f"http://{node.address}"})
    if typed:
        os.write(terminal, typed)
    text = b""
    try:
        while piece := os.read(terminal, 4096):
            text += piece
    except OSError:
        pass  # the other side closed
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text.decode().replace("\r\n", "\n")


def good(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def dead(node, tenant, receiver):
    """A delivery that a receiver rejected with a body, and one that it redirected."""
    rejecting, moved = receiver.hook(), receiver.hook()
    rejecting.reply(then=Reply(404, body=b'{"error":"call ops"}'))
    moved.reply(then=Reply(301, headers={"location": "https://new.example.com/"}))
    for number, hook in enumerate((rejecting, moved)):
        node.api.create_endpoint(tenant, hook.url, event_types=[f"kind.{number}"])
        node.api.publish(tenant, f"kind.{number}")

    def letters():
        found = node.api.get(f"/v1/tenants/{tenant}/dead-letters").expect(200)["data"]
        return found if len(found) == 2 else None

    return wait_until(letters, "two dead letters")


@pytest.mark.parametrize("columns", [80, 100, 140])
def test_tables_fit_the_terminal_and_their_ids_can_be_used(node, tenant, dead, columns):
    for words in (["delivery", "list", tenant], ["endpoint", "list", tenant], ["event", "list", tenant],
                  ["dead-letter", "list"], ["delivery", "attempts"], ["audit"], ["key", "list"], ["node", "list"]):
        code, text = on_terminal(node, *words, columns=columns)
        assert code == 0, text
        assert max(len(line) for line in text.splitlines()) <= columns, text
    _, text = on_terminal(node, "delivery", "list", tenant, columns=columns)
    short = text.splitlines()[1].split()[0]
    assert len(short) < 30
    code, text = on_terminal(node, "delivery", "show", short)
    assert code == 0 and any(row["id"] in text for row in dead), text


def test_tables_are_whole_in_a_pipe(cli, tenant, dead):
    table = good(cli("delivery", "list", "--tenant", tenant))
    assert all(row["id"] in table and row["endpoint_id"] in table for row in dead)


def test_output_formats(cli, tenant, dead):
    ids = {row["id"] for row in dead}
    assert set(good(cli("delivery", "list", tenant, "-o", "name")).split()) == ids
    assert {row["id"] for row in json.loads(good(cli("delivery", "list", tenant, "-o", "json")))["data"]} == ids
    assert good(cli("delivery", "list", tenant, "-o", "json")) == good(cli("--json", "delivery", "list", tenant))
    yaml = good(cli("delivery", "list", tenant, "-o", "yaml"))
    assert yaml.startswith("data:\n- id: dlv_") and "{" not in yaml
    assert "SUBJECT" in good(cli("delivery", "list", tenant, "-o", "wide"))
    done = cli("tenant", "list", "-o", "table")
    assert done.returncode == 2 and "expected wide, json, yaml, name" in done.stderr


def test_a_long_list_says_how_to_see_more_without_a_cursor(cli, tenant, dead):
    done = cli("delivery", "list", tenant, "--limit", "1")
    assert "More results: add --all, or --limit 4." in done.stderr and "c2_" not in done.stderr + done.stdout


def test_delivery_show_has_the_response_and_the_next_command(cli, dead):
    rejected = next(row for row in dead if row["last_status_code"] == 404)
    shown = good(cli("delivery", "show", rejected["id"]))
    assert "HTTP 404 Not Found" in shown and '{"error":"call ops"}' in shown and "dead letter" in shown
    assert f"postrider delivery replay {rejected['id']} --reason" in shown
    assert '"cause"' not in shown


def test_dead_letters_are_replayed_by_id_by_filter_and_all_of_them(cli, node, tenant, dead):
    def unresolved():
        letters = node.api.get(f"/v1/tenants/{tenant}/dead-letters?resolved=false").expect(200)["data"]
        return {row["id"] for row in letters}

    first, second = (row["id"] for row in dead)
    good(cli("dead-letter", "replay", first, "--reason", "fixed"))
    wait_until(lambda: first not in unresolved(), "the first is replayed")
    good(cli("dead-letter", "replay", "--tenant", tenant, "--all", "--reason", "fixed"))
    wait_until(lambda: second not in unresolved(), "the second is replayed")


def test_a_replay_that_matches_nothing_says_so(cli, node, tenant):
    for words in (["--tenant", tenant, "--all"], ["--tenant", tenant, "--cause", "gone"],
                  ["--until", "2020-01-01"], ["dlv_" + "0" * 32]):
        done = cli("dead-letter", "replay", *words, "--reason", "fixed")
        assert done.returncode == 0 and "nothing was replayed" in done.stderr, (words, done.stderr)
    assert good(cli("dead-letter", "replay", "--tenant", tenant, "--all", "--reason", "x", "--json")) == '{"data":[]}\n'
    assert node.api.get(f"/v1/tenants/{tenant}/replays").expect(200)["data"] == []
    done = cli("dead-letter", "replay", "--reason", "x")
    assert done.returncode == 2 and "--all" in done.stderr
    done = cli("dead-letter", "replay", tenant, "--reason", "x")
    assert done.returncode == 2 and f"--tenant {tenant}" in done.stderr
    done = cli("dead-letter", "replay", "--all")
    assert done.returncode == 2 and "--reason is required" in done.stderr


def test_discarding_dead_letters_asks_on_a_terminal(cli, node, tenant, dead):
    words = ["dead-letter", "discard", "--tenant", tenant, "--all", "--reason", "old"]
    code, text = on_terminal(node, *words, typed=b"n\n")
    assert code == 1 and f"every unresolved dead letter of tenant {tenant}? This cannot be undone." in text
    assert len(good(cli("dead-letter", "list", "--tenant", tenant, "--unresolved", "-o", "name")).split()) == 2
    good(cli(*words, "--yes"))
    assert good(cli("dead-letter", "list", "--tenant", tenant, "--unresolved", "-o", "name")) == ""


def test_endpoint_test_looks_like_curl(cli, node, tenant, hook):
    made = node.api.create_endpoint(tenant, hook.url)
    shown = good(cli("endpoint", "test", tenant, made["id"]))
    lines = shown.splitlines()
    assert any(line.startswith("> POST /") for line in lines) and "< HTTP 204 No Content" in lines
    assert any(line.startswith("> webhook-signature: v1,") for line in lines) and "* Delivered" in lines
    assert '{"content-type"' not in shown


def test_show_is_grouped_and_leaves_out_what_is_empty(cli, node, tenant):
    made = node.api.create_endpoint(tenant, "https://example.com/", timeout_ms=5000)
    shown = good(cli("endpoint", "show", tenant, made["id"]))
    assert "\nRetries\n" in shown and "5.0 s" in shown
    assert not any(line.rstrip().endswith("  -") for line in shown.splitlines())
    created = good(cli("endpoint", "create", tenant, "--url", "https://example.com/", "--event-type", "*"))
    assert len(created.splitlines()) < 8 and "whsec_" in created


def test_times_are_ages_dates_or_timestamps(cli, tenant, dead):
    for since in ("1h", "2d", "today", "2020-01-01", "2020-01-01T00:00:00Z"):
        # Midnight may have passed a moment ago.
        assert since == "today" or "dlv_" in good(cli("delivery", "list", tenant, "--since", since))
    assert "No deliveries found." in cli("delivery", "list", tenant, "--until", "1d").stderr
    done = cli("delivery", "list", "--since", "soon")
    assert done.returncode == 2 and "1h, 2d, 2026-04-08" in done.stderr
    made = json.loads(good(cli("endpoint", "create", tenant, "--url", "https://example.com/", "--event-type", "*",
                               "--timeout", "2s", "--give-up-after", "1d", "--json")))
    assert made["timeout_ms"] == 2000 and made["give_up_seconds"] == 86400


def test_destroying_asks_on_a_terminal(cli, node, tenant):
    code, text = on_terminal(node, "tenant", "delete", tenant, typed=b"n\n")
    assert code == 1 and "[y/N]" in text and "nothing was changed" in text
    good(cli("tenant", "show", tenant))
    code, text = on_terminal(node, "tenant", "delete", tenant, "--yes")
    assert code == 0 and "[y/N]" not in text
    assert cli("tenant", "show", tenant).returncode == 5


def test_stopping_deliveries_asks_on_a_terminal(cli, node, tenant, hook):
    hook.reply(then=Reply(503))
    made = node.api.create_endpoint(tenant, hook.url)
    event = node.api.publish(tenant, "a.b")
    delivery = node.api.get(f"/v1/tenants/{tenant}/events/{event['id']}").expect(200)["deliveries"][0]["id"]
    replay = json.loads(good(cli("replay", "create", tenant, "--since", "1h", "--reason", "x", "--json")))["id"]
    for question, *words in (
            (f"Cancel delivery {delivery}?", "delivery", "cancel", delivery),
            (f"Cancel replay {replay}?", "replay", "cancel", tenant, replay),
            (f"Disable endpoint {made['id']}? Its queued deliveries become dead letters.",
             "endpoint", "disable", tenant, made["id"]),
            ("Pause all deliveries of all tenants?", "brakes", "set", "--pause-all", "--reason", "x")):
        code, text = on_terminal(node, *words, typed=b"n\n")
        assert code == 1 and question in text and "nothing was changed" in text, text
    assert node.api.get("/v1/brakes").expect(200)["pause_all"] is False
    good(cli("delivery", "cancel", delivery, "--yes"))
    shown = good(cli("endpoint", "disable", tenant, made["id"], "--yes"))
    assert "disabled" in shown
    code, text = on_terminal(node, "endpoint", "resume", tenant, made["id"])
    assert code == 0 and "[y/N]" not in text, text


def test_short_ids_work_in_filters_and_need_a_tenant(cli, node, tenant, dead):
    letter = dead[0]
    short = letter["endpoint_id"][:20]
    assert letter["id"] in good(cli("delivery", "list", tenant, "--endpoint", short, "-o", "name"))
    good(cli("stats", "--tenant", tenant, "--endpoint", short))
    good(cli("tail", "--tenant", tenant, "--endpoint", short, "--for", "1s"))
    good(cli("replay", "create", tenant, "--endpoint", short, "--since", "1h", "--dry-run"))
    for words in (["delivery", "list"], ["stats"], ["tail", "--for", "1s"]):
        done = cli(*words, "--endpoint", short)
        assert done.returncode == 2 and "add --tenant TENANT, or give the full ID" in done.stderr, (words, done.stderr)
    secrets = ["endpoint", "secrets"]
    where = [tenant, letter["endpoint_id"]]
    old = json.loads(good(cli(*secrets, "list", *where, "--json")))["data"][0]["id"]
    good(cli(*secrets, "rotate", *where))
    good(cli(*secrets, "end", *where, old[:20]))
    assert len(json.loads(good(cli(*secrets, "list", *where, "--json")))["data"]) == 1


def test_exports_keep_to_the_limit_and_errors_stay_out_of_them(cli, tenant, dead):
    rows = good(cli("delivery", "list", tenant, "--format", "csv", "--limit", "1")).splitlines()
    assert len(rows) == 2 and rows[1].split(",")[0].strip('"').startswith("dlv_")
    assert len(good(cli("delivery", "list", tenant, "--format", "ndjson", "--limit", "1")).splitlines()) == 1
    done = cli("delivery", "list", tenant, "--format", "xml")
    assert done.returncode == 2 and done.stdout == "" and "ndjson, csv" in done.stderr
    done = cli("delivery", "list", "--tenant", "nobody", "--format", "csv")
    assert done.returncode == 5 and done.stdout == ""


def test_subscriptions_are_added_and_removed_one_by_one(cli, node, tenant):
    made = node.api.create_endpoint(tenant, "https://example.com/", event_types=["a.b", "c.*"])
    words = ("endpoint", "update", tenant, made["id"], "--json")
    changed = json.loads(good(cli(*words, "--add-event-type", "d", "--remove-event-type", "a.b")))
    assert sorted(changed["event_types"]) == ["c.*", "d"]
    done = cli(*words, "--remove-event-type", "nothing")
    assert done.returncode == 2 and "not subscribed to nothing" in done.stderr


def test_a_source_keeps_a_given_secret_to_itself(cli):
    given = cli("source", "create", "cli-given", "github", "--secret-file", "-", stdin="a-secret-of-some-length\n")
    assert "a-secret-of-some-length" not in good(given)
    made = cli("source", "create", "cli-made", "standard")
    assert "whsec_" in good(made) and "It will not be shown again." in made.stderr


def test_watching_shows_changes(node, tenant):
    environment = {"PATH": "/usr/bin", "POSTRIDER_KEY": ADMIN_KEY, "POSTRIDER_SERVER": f"http://{node.address}"}
    with subprocess.Popen([binary(), "endpoint", "list", tenant, "--watch"], env=environment, cwd="/", text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watching:
        try:
            assert "No endpoints found." in watching.stderr.readline()
            node.api.create_endpoint(tenant, "https://watched.example.com/")
            assert watching.stdout.readline().startswith("ID")
            assert "watched.example.com" in watching.stdout.readline()
        finally:
            watching.kill()


def test_a_tenant_is_exported_as_a_whole(cli, node, tenant, dead, tmp_path):
    done = cli("tenant", "export", tenant, "--to", str(tmp_path / "tenant.ndjson"))
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "tenant.ndjson").read_text().splitlines()]
    assert lines[0]["kind"] == "tenant" and lines[0]["data"]["id"] == tenant
    assert lines[-1] == {"kind": "end", "counts": {"endpoint": 2, "event": 2, "delivery": 2, "attempt": 2, "dead_letter": 2,
                                                   "replay": 0}}
    assert {line["data"]["id"] for line in lines if line["kind"] == "dead_letter"} == {row["id"] for row in dead}
    bodies = [json.loads(line["data"]["body"]) for line in lines if line["kind"] == "event"]
    assert {body["type"] for body in bodies} == {"kind.0", "kind.1"}
    blind = json.loads(good(cli("key", "create", "--role", "operator", "--tenant", tenant, "--no-payloads", "--json")))["key"]
    blind_lines = good(cli("tenant", "export", tenant, more={"POSTRIDER_KEY": blind})).splitlines()
    assert all(json.loads(line)["data"]["body"] is None for line in blind_lines if line.startswith('{"kind":"event"'))
    assert "whsec_" not in "".join(blind_lines)
    assert cli("tenant", "export", "nobody").returncode == 5


def test_an_export_has_as_many_lines_as_there_are_events(cli, node, tenant):
    batch = [{"tenant_id": tenant, "type": "a.b", "data": number} for number in range(80)]
    node.api.post("/v1/events/batch", batch).expect(200)
    lines = good(cli("tenant", "export", tenant)).splitlines()
    assert json.loads(lines[-1])["counts"]["event"] == 80
    assert sorted(json.loads(json.loads(line)["data"]["body"])["data"] for line in lines[1:-1]) == list(range(80))
