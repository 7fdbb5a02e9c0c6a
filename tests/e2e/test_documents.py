"""The commands of README and docs, run as they stand there, in order, each page on a fresh data directory."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request

import pytest

from harness import node as node_module
from harness.api import Api
from harness.documents import ROOT, RUN, Shell, blocks_of
from harness.node import ADMIN_KEY, Node, binary
from harness.ports import lasting_port
from harness.postgres import Postgres
from harness.wait import wait_until


@pytest.fixture
def folder():
    """Below /tmp and open to other users: a Postgres that root starts runs as another one."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="pr-page-", dir="/tmp"))
    path.chmod(0o755)
    (path / "build" / "release").mkdir(parents=True)
    (path / "build" / "release" / "postrider").symlink_to(binary())
    yield path
    shutil.rmtree(path, ignore_errors=True)


def variables(folder, **more):
    """The environment of a reader's shell; nothing of postrider's that the page does not set."""
    passed_on = {name: os.environ[name] for name in ("ASAN_OPTIONS", "TSAN_OPTIONS") if name in os.environ}
    return {"PATH": "/usr/bin:/bin", "HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"), **passed_on, **more}


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def is_ready(address):
    try:
        return urllib.request.urlopen(f"http://{address}/readyz", timeout=5).status == 200
    except OSError:
        return False


# ── README: what `./dev up` starts, and a server of one's own ───────────────────────────────────────────────


@pytest.fixture
def dev_up(folder):
    """`./dev up` without the build; the address it listens on."""
    address = f"127.0.0.1:{lasting_port()}"
    command = [sys.executable, str(ROOT / "tools" / "up.py"), "build/release/postrider", "--listen", address]
    with open(folder / "up.log", "wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=variables(folder), stdout=log, stderr=log)
    printed = lambda: (folder / "up.log").read_text()
    try:
        wait_until(lambda: "publish another event" in printed() or process.poll() is not None, "dev up is ready", 120)
        assert process.poll() is None, printed()
        yield address
    finally:
        process.terminate()
        process.wait(120)
    assert "signature verified" in printed() and printed().endswith("stopped\n"), printed()


@pytest.fixture
def shop_server():
    """A Postgres with the database of an application, and nothing of postrider."""
    server = Postgres()
    server.sql("drop role postrider", "postgres")
    server.sql("create role shop login", "postgres")
    server.sql("create database shop owner shop", "postgres")
    yield server
    server.close()


def test_the_commands_of_readme_work_in_order(folder, dev_up, shop_server):
    receiver_port, production = lasting_port(), f"127.0.0.1:{lasting_port()}"
    shell = Shell(folder, variables(folder, POSTRIDER_SERVER=f"http://{dev_up}", POSTRIDER_LISTEN=production), {
        "127.0.0.1:8090": dev_up,
        "127.0.0.1:9000": f"127.0.0.1:{receiver_port}",
        '("127.0.0.1", 9000)': f'("127.0.0.1", {receiver_port})',
        "/etc/postrider": f"{folder}/etc",
        "postgresql://postrider:…@db/shop": shop_server.url("shop"),
    })
    shell.database_url = lambda role: shop_server.url("shop", role)
    shell.ready = {"receiver": lambda: listens(receiver_port), "server": lambda: is_ready(production)}
    with contextlib.closing(shell):
        shell.run_page("README.md")
        api = Api(f"http://{dev_up}", (folder / ".postrider" / "dev-admin.key").read_text().strip())
        for event in ("inv-17-paid", "inv-18-paid"):
            shown = lambda: api.get(f"/v1/tenants/acme/events/{event}").expect(200)["deliveries"]
            wait_until(lambda: [one["status"] for one in shown()] == ["delivered"], f"{event} is delivered")
        # The transaction at the top of the page, in the application's database and as its role.
        shop_server.sql("create table invoices (id int, cents int)", "shop", "shop")
        [transaction] = [block for block in blocks_of("README.md") if block.run_by]
        transaction.steps = ["as shop"]
        assert "(1 row)" in shell.run(transaction)
        assert shop_server.sql("select count(*) from invoices", "shop") == [(1,)]


# ── docs: a node on its private Postgres, a tenant with an endpoint, and a dead letter ──────────────────────


@pytest.fixture(scope="module")
def own_node():
    """One for all pages of docs/: each page works after any other."""
    data_dir = tempfile.mkdtemp(prefix="pr-data-", dir="/tmp")
    node = Node(data_dir=data_dir)
    try:
        node.wait_ready().api.create_tenant("acme")
        yield node
    finally:
        node.close()
        shutil.rmtree(data_dir, ignore_errors=True)


def shell_for(node, folder, replace=None):
    more = {**node_module.environment(**node.settings), "POSTRIDER_SERVER": node.api.url, "POSTRIDER_KEY": ADMIN_KEY,
            "url": node.api.url, "key": ADMIN_KEY}
    path = f"{folder}/build/release:/usr/bin:/bin"
    shell = Shell(folder, {**variables(folder), **more, "PATH": path}, replace)
    shell.api = node.api
    return shell


def make_dead_letter(node, tenant, hook):
    """The IDs of the tenant's one endpoint, which rejects what it gets, and of a delivery to it."""
    for endpoint in node.api.get(f"/v1/tenants/{tenant}/endpoints").expect(200)["data"]:  # of earlier pages
        node.api.call("DELETE", f"/v1/tenants/{tenant}/endpoints/{endpoint['id']}")
    hook.reply(then=400)
    endpoint = node.api.create_endpoint(tenant, hook.url, ["invoice.*"])["id"]
    event = node.api.publish(tenant, "invoice.paid", {"total": "12.50"}, subject="invoice-17")["id"]
    path = f"/v1/tenants/{tenant}/deliveries?event={event}&endpoint={endpoint}"
    wait_until(lambda: [d["status"] for d in node.api.get(path).expect(200)["data"]] == ["dead_letter"], "a dead letter")
    delivery = node.api.get(path).expect(200)["data"][0]["id"]
    return {"endpoint": endpoint, "event": event, "delivery": delivery}


# What each of the three ways shows for each question.
SUPPORT_ANSWERS = {
    "Which endpoints receive `invoice.paid`?": "{endpoint}",
    "Did this endpoint receive this event?": "dead_letter",
    "Why did it fail?": "400",
    "What happened to everything about `invoice-17`?": "dead_letter",
    "Which deliveries are dead letters, and why?": "rejected",
    "Send it again": "dlv_",
    "Pause it": "",
    "Resume it": "",
    "How many, per hour?": "",
}


def test_each_support_question_has_three_answers_that_answer_it(own_node, folder, hook):
    ids = make_dead_letter(own_node, "acme", hook)
    shell = shell_for(own_node, folder, {"{tenant}": "acme", **{f"{{{name}}}": value for name, value in ids.items()}})
    languages = {}
    for block in blocks_of("docs/support.md"):
        wanted = shell.fill(SUPPORT_ANSWERS[block.heading])
        assert wanted in shell.run(block), block.place
        languages.setdefault(block.heading, []).append(block.language)
    assert languages == {question: ["sql", "sh", "http"] for question in SUPPORT_ANSWERS}


def receiver_page(node, folder, hook):
    """The page's reader has a request: its body, headers and secret."""
    endpoint = node.api.create_endpoint("acme", hook.url, ["order.*"])
    node.api.publish("acme", "order.paid")
    [request] = hook.wait_for(1)
    (folder / "body.json").write_bytes(request.body)
    (folder / "headers.txt").write_text("".join(f"{name}: {value}\n" for name, value in request.headers.items()))
    (folder / "secret.txt").write_text(endpoint["secret"] + "\n")
    shell = shell_for(node, folder, {"{signature}": request.headers["webhook-signature"].removeprefix("v1,")})
    shell.variables |= {"secret": endpoint["secret"], "webhook_id": request.headers["webhook-id"],
                        "webhook_timestamp": request.headers["webhook-timestamp"]}
    return shell


def common_page(node, folder, hook):
    ids = make_dead_letter(node, "acme", hook)
    hook.reply(then=204)
    made = node.api.post("/v1/keys", {"role": "reader"}).expect(201)
    return shell_for(node, folder, {
        "dlv_…": ids["delivery"], "evt_…": ids["event"], "key_…": made["id"], "msg_…": "msg_" + 32 * "0",
        "whsec_…": "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX",
        "2026-04-08T10:00:00Z": time_of(node, "- interval '1 hour'"), "2026-04-08T11:00:00Z": time_of(node, ""),
    })


def command_line_page(node, folder, hook):
    """A tenant of its own, since the page creates it; two programs follow what happens until the page ends."""
    (folder / "key.txt").write_text(ADMIN_KEY)
    node.api.post("/v1/sources", {"id": "stripe", "provider": "stripe", "secret": "whsec_of_stripe"})
    shell = shell_for(node, folder, {"acme": "globex", "https://hooks.example.com/in": hook.url})
    shell.ready = {name: lambda name=name: "connected to" in shell.printed(name) for name in ("tail", "listen", "source")}
    return shell


def time_of(node, offset):
    return node.sql(f"select to_char(now() at time zone 'UTC' {offset}, 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')")[0][0]


# Every page with commands, and its stage; `test_every_page_with_commands_is_run` keeps this complete.
PAGES = {
    "docs/access.md": common_page,
    "docs/command-line.md": command_line_page,
    "docs/configuration-as-code.md": common_page,
    "docs/console.md": common_page,
    "docs/endpoints.md": common_page,
    "docs/event-types.md": common_page,
    "docs/inbox.md": common_page,
    "docs/notices.md": common_page,
    "docs/deploying.md": common_page,
    "docs/operating.md": common_page,
    "docs/receivers.md": receiver_page,
    "docs/recovery.md": common_page,
    "docs/replay.md": common_page,
    "docs/retention.md": common_page,
}


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work_in_order(page, own_node, folder, hook):
    with contextlib.closing(PAGES[page](own_node, folder, hook)) as shell:
        shell.run_page(page)


# ── docs/outbox.md: a Postgres with databases of applications ───────────────────────────────────────────────


@pytest.fixture
def servers():
    """A Postgres with postrider's own database and those of two applications; nothing is installed in them."""
    server = Postgres()
    for role in ("owner", "relay", "shop"):
        server.sql(f"create role {role} login", "postgres")
    server.create("postrider")
    for application in ("billing", "orders"):
        server.sql(f"create database {application} owner owner", "postgres")
    yield server
    server.close()


def test_the_commands_of_the_outbox_page_work_in_order(servers, start_node, folder):
    node = start_node(database_url=servers.url("postrider"))
    node.api.create_tenant("acme")
    node.sql("create table orders (id int, cents int)")
    (folder / "relay.url").write_text(servers.url("orders", "relay"))
    (folder / "key.txt").write_text(ADMIN_KEY)
    shell = shell_for(node, folder, {
        "postgresql://owner@db/billing": servers.url("billing", "owner"),
        "postgresql://owner@db/orders": servers.url("orders", "owner"),
        "postgresql://relay:…@db/billing": servers.url("billing", "relay"),
        "/run/secrets/billing.url": str(folder / "relay.url"),
        "https://postrider.example.com": node.api.url,
    })
    shell.database_url = lambda role: servers.url("billing", role) if role else node.database_url
    shell.ready = {"relay": lambda: "relay_active" in shell.printed("relay")}
    with contextlib.closing(shell):
        shell.run_page("docs/outbox.md")


# ── all pages ───────────────────────────────────────────────────────────────────────────────────────────────

RUN_ON_THEIR_OWN = {"README.md", "docs/support.md", "docs/outbox.md"}


def test_every_page_with_commands_is_run():
    pages = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
    with_commands = {page for page in pages for block in blocks_of(page)
                     if block.language in RUN and block.not_run is None and block.run_by is None}
    assert with_commands == PAGES.keys() | RUN_ON_THEIR_OWN
