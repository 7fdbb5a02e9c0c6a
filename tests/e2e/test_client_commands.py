"""The command line as a client of a running node."""

import json
import os
import subprocess

import pytest
from harness.node import ADMIN_KEY, binary


def good(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_tour_from_tenant_to_delivery(cli, hook):
    good(cli("tenant", "create", "cli-tour", "--name", "Tour", "--contact", "a@b.example", "--max-in-flight", "7"))
    made = json.loads(good(cli("endpoint", "create", "cli-tour", "--url", hook.url, "--event-type", "invoice.*",
                               "--header", "x-team=a=b", "--json")))
    assert made["secret"].startswith("whsec_") and made["headers"] == {"x-team": "***"}
    event = json.loads(good(cli("event", "publish", "cli-tour", "invoice.paid", '{"n": 12345678901234567890123}', "--json")))
    received = hook.wait_for(1)[0]
    assert b"12345678901234567890123" in received.body
    assert received.headers["x-team"] == "a=b"
    shown = good(cli("event", "show", "cli-tour", event["id"]))
    assert made["id"] in shown and "Deliveries" in shown
    table = good(cli("endpoint", "list", "cli-tour"))
    assert table.splitlines()[0].split()[:2] == ["ID", "URL"] and hook.url in table
    tested = cli("endpoint", "test", "cli-tour", made["id"], "--json")
    assert tested.returncode == 0 and json.loads(tested.stdout)["response"]["status"] == 204
    hook.reply(then=500)
    assert cli("endpoint", "test", "cli-tour", made["id"]).returncode == 1
    good(cli("endpoint", "update", "cli-tour", made["id"], "--rate-per-second", "5.5"))
    updated = json.loads(good(cli("endpoint", "update", "cli-tour", made["id"], "--rate-per-second", "none", "--json")))
    assert updated["rate_per_second"] is None
    good(cli("endpoint", "subscriptions", "set", "cli-tour", made["id"], "a.b", "c.*"))
    good(cli("endpoint", "subscriptions", "update", "cli-tour", made["id"], "c.*", "--disable"))
    assert "no" in good(cli("endpoint", "subscriptions", "list", "cli-tour", made["id"]))
    rotated = json.loads(good(cli("endpoint", "secrets", "rotate", "cli-tour", made["id"], "--json")))
    secrets = json.loads(good(cli("endpoint", "secrets", "list", "cli-tour", made["id"], "--json")))["data"]
    old = next(secret["id"] for secret in secrets if secret["id"] != rotated["id"])
    good(cli("endpoint", "secrets", "end", "cli-tour", made["id"], old))
    for verb in ("pause", "resume", "disable", "cancel-pending"):
        good(cli("endpoint", verb, "cli-tour", made["id"]))
    good(cli("endpoint", "delete", "cli-tour", made["id"]))
    good(cli("tenant", "delete", "cli-tour"))
    assert "ALIVE" in good(cli("node", "list"))


def test_lists_go_on_over_pages(cli, node):
    for number in range(3):
        node.api.create_tenant(f"cli-page-{number}")
    first = cli("tenant", "list", "--limit", "2", "--json")
    page = json.loads(good(first))
    assert len(page["data"]) == 2
    rest = json.loads(good(cli("tenant", "list", "--cursor", page["next_cursor"], "--all", "--json")))
    assert len(rest["data"]) >= 1 and "next_cursor" not in rest


def test_problems_say_which_field_and_what_next(cli, tenant):
    done = cli("endpoint", "create", tenant, "--url", "ftp://x", "--max-attempts", "0", "--event-type", "a b")
    assert done.returncode == 4
    for text in ("  --url: ", "  --max-attempts: ", "  --event-type: "):
        assert text in done.stderr
    done = cli("endpoint", "create", tenant)
    assert done.returncode == 2
    assert "--url is required" in done.stderr and "--event-type is required" in done.stderr
    done = cli("tenant", "show", "no-such-tenant")
    assert done.returncode == 5 and "postrider tenant list" in done.stderr
    done = cli("tenant", "show", "no-such-tenant", "--json")
    assert json.loads(done.stderr)["type"] == "urn:postrider:problem:unknown-tenant"
    done = cli("tenant", "list", more={"POSTRIDER_KEY": "wrong"})
    assert done.returncode == 4 and "The key came from POSTRIDER_KEY." in done.stderr
    done = cli("tenant", "list", more={"POSTRIDER_KEY": None})
    assert done.returncode == 4 and "No API key was sent." in done.stderr and "--key-file" in done.stderr
    done = cli("tenant", "list", "--server", "http://127.0.0.1:1")
    assert done.returncode == 6 and "postrider serve" in done.stderr


@pytest.mark.parametrize("words, near", [(["tenat", "list"], "`tenant`"), (["tenant", "lst"], "`list`"),
                                         (["tenant", "list", "--limt", "3"], "`--limit`")])
def test_slips_get_a_suggestion(cli, words, near):
    done = cli(*words)
    assert done.returncode == 2 and f"Did you mean {near}?" in done.stderr


def test_profiles_keep_servers_and_their_keys_apart(cli, node, tmp_path):
    none = {"POSTRIDER_KEY": None, "POSTRIDER_SERVER": None}
    good(cli("profile", "add", "here", f"http://{node.address}", "--key-file", "-", stdin=ADMIN_KEY + "\n", more=none))
    good(cli("profile", "add", "away", "http://127.0.0.1:1", "--key", "other", more=none))
    good(cli("tenant", "list", more=none))
    assert cli("tenant", "list", "--profile", "away", more=none).returncode == 6
    assert cli("tenant", "list", "--profile", "nowhere", more=none).returncode == 2
    listed = good(cli("profile", "list"))
    assert "here" in listed and ADMIN_KEY not in listed
    # The key of a profile does not go to another server.
    other = cli("tenant", "list", "--profile", "away", "--server", f"http://{node.address}", more=none)
    assert other.returncode == 4 and "profile `away`" in other.stderr
    wrong = cli("profile", "add", "bad", "notaurl", more=none)
    assert wrong.returncode == 2 and "not a valid server URL" in wrong.stderr
    path = tmp_path / "postrider" / "profiles.json"
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    assert cli("tenant", "list", more=none).returncode == 2
    path.chmod(0o600)
    good(cli("profile", "use", "away"))
    good(cli("profile", "remove", "here"))
    assert "here" not in good(cli("profile", "list"))


def test_keys_are_made_used_and_revoked_and_the_audit_log_says_so(cli):
    made = json.loads(good(cli("key", "create", "--role", "reader", "--description", "for the test", "--json")))
    good(cli("tenant", "list", more={"POSTRIDER_KEY": made["key"]}))
    assert cli("tenant", "create", "no", more={"POSTRIDER_KEY": made["key"]}).returncode == 4
    assert made["id"] in good(cli("key", "list", "--all"))
    good(cli("key", "revoke", made["id"]))
    assert json.loads(good(cli("key", "show", made["id"], "--json")))["revoked_at"]
    log = good(cli("audit", "--object", made["id"]))
    assert "key.create" in log and "key.revoke" in log
    assert cli("key", "create").returncode == 2


def test_a_customer_uses_a_key_or_a_token_of_its_own(cli, tenant):
    done = cli("key", "create", "--role", "customer")
    assert done.returncode == 4 and "--tenant" in done.stderr
    key = json.loads(good(cli("key", "create", "--role", "customer", "--tenant", tenant, "--owner", "Ann", "--json")))
    token = json.loads(good(cli("token", "create", tenant, "--expires-in", "15m", "--label", "Bob", "--json")))
    words = ("endpoint", "create", tenant, "--url", "https://example.com/", "--event-type", "*", "-o", "name")
    for credential in (key["key"], token["token"]):
        bound = {"POSTRIDER_KEY": credential}
        made = good(cli(*words, more=bound)).strip()
        good(cli("endpoint", "pause", tenant, made, more=bound))
        assert "customer" in good(cli("whoami", more=bound))
        denied = cli("tenant", "update", tenant, "--endpoints-max", "none", more=bound)
        assert denied.returncode == 4 and "--endpoints-max: can be changed only by operators" in denied.stderr
        assert cli("event", "publish", tenant, "a.b", "{}", more=bound).returncode == 4
    log = good(cli("audit", "--tenant", tenant, "--action", "endpoint.pause"))
    assert "Ann" in log and "Bob" in log
    assert token["id"] in good(cli("token", "list", tenant)) and token["id"] not in good(cli("key", "list", "--all"))
    assert "Bob" in good(cli("token", "show", tenant, token["id"]))
    good(cli("token", "revoke", tenant, token["id"]))
    assert cli("token", "show", tenant, token["id"]).returncode == 5
    reading = json.loads(good(cli("token", "create", tenant, "--access", "read", "--no-payloads", "--json")))["token"]
    assert cli(*words, more={"POSTRIDER_KEY": reading}).returncode == 4


def test_whoami_shows_server_key_role_and_tenant(cli, node, tenant):
    shown = good(cli("whoami"))
    assert f"http://{node.address}" in shown and "admin" in shown and "all tenants" in shown
    assert "POSTRIDER_KEY" in shown and ADMIN_KEY not in shown
    made = json.loads(good(cli("key", "create", "--role", "reader", "--tenant", tenant, "--json")))
    bound = {"POSTRIDER_KEY": made["key"]}
    shown = good(cli("whoami", more=bound))
    assert "reader" in shown and tenant in shown and made["id"] in shown
    assert json.loads(good(cli("whoami", "--json", more=bound)))["tenant_id"] == tenant
    denied = cli("key", "list", more=bound)
    assert denied.returncode == 4 and "postrider whoami" in denied.stderr


def test_names_cannot_drive_the_terminal(cli, node):
    node.api.create_tenant("cli-escape", name="red\x1b[31m\u009b")
    shown = good(cli("tenant", "show", "cli-escape"))
    assert "\x1b" not in shown and "\u009b" not in shown and "\\u001b[31m" in shown


def complete(script, line):
    """What bash offers at the end of the line."""
    words = line.split(" ")
    program = f"""{script}
COMP_WORDS=({' '.join(f"'{word}'" for word in words)}); COMP_CWORD={len(words) - 1}
_postrider; printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", program], text=True, stdout=subprocess.PIPE, check=True)
    return done.stdout.split()


def test_bash_completes_commands_options_and_choices(cli):
    script = good(cli("completion", "bash"))
    assert "tenant" in complete(script, "postrider te")
    assert {"list", "create", "pause"} <= set(complete(script, "postrider tenant "))
    assert complete(script, "postrider endpoint secrets ro") == ["rotate"]
    assert "--max-in-flight" in complete(script, "postrider endpoint update acme ep_1 --max-")
    assert complete(script, "postrider endpoint update acme ep_1 --ordering ") == ["none", "strict"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_every_command(cli, shell):
    script = good(cli("completion", shell))
    for word in ("tenant", "endpoint secrets", "max-in-flight"):
        assert word in script


def test_help_explains_every_command(cli):
    overview = good(cli("help"))
    commands = overview.split("\nGet started\n")[0]
    for line in commands.splitlines():
        if line.startswith("  ") and line[2] != " ":
            name = line.split()[0]
            page = good(cli(name, "--help"))
            assert "Usage: postrider " + name in page and "\nExample" in page
            assert good(cli("help", name)) == page
    assert good(cli("help", "help")) == overview
    assert "--request-timeout DURATION" in good(cli("help", "settings"))


def test_completion_offers_ids(cli, node, tenant):
    node.api.call("PUT", f"/v1/tenants/{tenant}/endpoints/complete-me",
                  {"url": "https://example.com/", "event_types": ["*"]}).expect(201)
    script = good(cli("completion", "bash"))
    os.environ.update({"POSTRIDER_KEY": ADMIN_KEY, "POSTRIDER_SERVER": f"http://{node.address}"})
    try:
        assert complete(script, f"{binary()} endpoint show {tenant} comp") == ["complete-me"]
        assert tenant in complete(script, f"{binary()} tenant show {tenant[:3]}")
        assert tenant in complete(script, f"{binary()} delivery list --tenant {tenant[:3]}")
    finally:
        del os.environ["POSTRIDER_KEY"], os.environ["POSTRIDER_SERVER"]


def test_data_that_is_no_json_is_shown_where(cli, tenant):
    done = cli("event", "publish", tenant, "a.b", '{"a": }')
    assert done.returncode == 2
    assert "Invalid JSON for <data>" in done.stderr and "byte 6" in done.stderr


def test_a_dry_run_of_an_import_says_what_would_happen(cli, tenant):
    line = json.dumps({"tenant_id": tenant, "url": "https://user:password@example.com/", "event_types": ["*"]})
    done = cli("import", "-", "--dry-run", stdin=line)
    assert "Dry run: would import 0, failed 1." in done.stderr
    assert "…" not in done.stdout
