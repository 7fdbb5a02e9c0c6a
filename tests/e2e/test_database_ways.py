"""Ways to the database: a pooler in between, a server that is replaced, and who is notified."""

import asyncio
import collections
import pathlib
import re
import shutil
import tempfile
import threading

import psycopg2
import pytest

from harness.postgres import Postgres
from harness.wait import wait_until

SOCKET = ".s.PGSQL.5432"
# Session state cannot go through a pooler that gives the connection to another client after each transaction.
OF_A_SESSION = (b"listen ", b"set_config(name, value, false)", b"update session_lease")
ENGINE_SETTINGS = ("search_path = postrider", "timezone = 'UTC'", "jit = off", "statement_timeout = '30s'")


STATEMENT_NAME = re.compile(rb"\0[a-z_]+\.[a-z_]+\.[a-z_]+\.[0-9a-f]{16}\0")


class Recorder:
    """A unix socket in front of a server's; keeps what each client says, by the name of its application."""

    def __init__(self, target):
        self.target = pathlib.Path(target) / SOCKET
        self.folder = tempfile.mkdtemp(prefix="pr-rec-", dir="/tmp")
        self.said = collections.defaultdict(list)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        path = str(pathlib.Path(self.folder) / SOCKET)
        self._server = asyncio.run_coroutine_threadsafe(asyncio.start_unix_server(self._serve, path), self._loop).result(30)

    async def _serve(self, reader, writer):
        there_reader, there_writer = await asyncio.open_unix_connection(str(self.target))
        await asyncio.gather(self._pass_on(reader, there_writer, bytearray()), self._pass_on(there_reader, writer, None))

    async def _pass_on(self, reader, writer, said):
        is_known = False
        try:
            while data := await reader.read(65536):
                if said is not None:
                    said += data.lower()
                if said and not is_known:
                    words = bytes(said[8:]).split(b"\0")
                    self.said[dict(zip(words[::2], words[1::2])).get(b"application_name", b"").decode()].append(said)
                    is_known = True
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()

    def have_said(self, application, words):
        """Whether all connections of that application have, and there is one."""
        connections = list(self.said.get(application, ()))
        return bool(connections) and all(words in said for said in connections)

    def close(self):
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def recorder(postgres):
    made = Recorder(postgres.home)
    yield made
    made.close()


@pytest.fixture
def pooled_role(database_url, postgres):
    """What a session behind a pooler needs is set on the role, as docs/operating.md has it."""
    database = database_url.split("/")[3].split("?")[0]
    for setting in ENGINE_SETTINGS:
        postgres.sql(f"alter role postrider in database {database} set {setting}", "postgres")


def test_nothing_that_belongs_to_a_session_goes_through_the_pooler(start_node, database_url, pooled_role, postgres, recorder,
                                                                   hook):
    pooled = database_url.replace(str(postgres.home), recorder.folder)
    node = start_node(database_url=pooled, direct_database_url=database_url)
    node.api.create_tenant("t")
    node.api.create_endpoint("t", hook.url)
    node.api.publish("t")
    hook.wait_for(1)
    node.api.get("/v1/tenants/t/deliveries").expect(200)
    wait_until(lambda: {"postrider publish", "postrider delivery", "postrider api"} <= set(recorder.said), "all are connected")
    for application, connections in list(recorder.said.items()):
        for words in OF_A_SESSION:
            assert not any(words in said for said in connections), (application, words)
    assert node.stop() == 0


@pytest.mark.parametrize("keeps", [None, "false", "true"])
def test_statements_have_names_only_if_the_pooler_keeps_them(keeps, start_node, database_url, pooled_role, postgres, recorder, hook):
    pooled = database_url.replace(str(postgres.home), recorder.folder)
    node = start_node(database_url=pooled, direct_database_url=database_url, pooler_keeps_statements=keeps)
    node.api.create_tenant("t")
    node.api.create_endpoint("t", hook.url)
    node.api.publish("t")
    hook.wait_for(1)
    node.api.get("/v1/tenants/t/deliveries").expect(200)
    for application in ("postrider publish", "postrider delivery", "postrider api"):
        said = b"".join(wait_until(lambda: recorder.said.get(application), application))
        assert bool(STATEMENT_NAME.search(said)) == (keeps == "true"), application
    assert node.stop() == 0


def test_hot_statements_have_one_plan_and_lists_one_for_their_values(start_node, database_url, postgres, recorder):
    node = start_node(database_url=database_url.replace(str(postgres.home), recorder.folder))
    node.api.create_tenant("t")
    node.api.publish("t")
    for application in ("publish", "delivery", "relay", "leases", "control", "fanout"):
        wait_until(lambda: recorder.have_said(f"postrider {application}", b"force_generic_plan"), application)
    for application in ("api", "replay"):
        wait_until(lambda: recorder.have_said(f"postrider {application}", b"force_custom_plan"), application)
    for application in list(recorder.said):
        if application.startswith("postrider "):
            for words in (b"read committed", b"idle_in_transaction_session_timeout"):
                wait_until(lambda: recorder.have_said(application, words), (application, words))
    assert node.stop() == 0


def test_only_a_node_with_peers_notifies(start_node, database_url, hook):
    listener = psycopg2.connect(database_url)
    listener.autocommit = True
    listener.cursor().execute("listen postrider_publish")

    def heard():
        listener.poll()
        return len(listener.notifies)

    first = start_node(database_url=database_url)
    first.api.create_tenant("t")
    first.api.create_endpoint("t", hook.url)
    for _ in range(5):
        first.api.publish("t")
    hook.wait_for(5)
    start_node(database_url=database_url)
    wait_until(lambda: first.sql("select count(distinct owner) from postrider.bucket_lease")[0][0] == 2, "both have buckets")
    assert heard() == 0
    wait_until(lambda: first.api.publish("t") and heard() > 0, "the other one is woken")
    listener.close()


@pytest.fixture
def own_postgres():
    server = Postgres()
    yield server
    server.close()


def test_a_server_that_lacks_the_last_changes_is_believed(start_node, own_postgres, receiver):
    """What was committed last is lost with the server; a standby without it is promoted and goes on in a new timeline."""
    own_postgres.create("app")
    old, new, waiting = receiver.hook(), receiver.hook(), receiver.hook()
    node = start_node(database_url=own_postgres.url("app"), lease_seconds=3)
    node.api.create_tenant("t")
    endpoint = node.api.create_endpoint("t", old.url, event_types=["a.*"])["id"]
    node.api.create_endpoint("t", waiting.url, event_types=["b.*"], retry_schedule=[4, 3600])
    node.api.publish("t", "a.first")
    old.wait_for(1)
    data = own_postgres.home / "data"
    own_postgres.stop()
    shutil.copytree(data, own_postgres.home / "standby")
    own_postgres.start()
    wait_until(lambda: node.api.get("/readyz").status == 200, "the node is back")

    # Lost with the server: the endpoint's new URL, and an event that waits for its second attempt.
    node.api.call("PATCH", f"/v1/tenants/t/endpoints/{endpoint}", {"url": new.url}).expect(200)
    wait_until(lambda: node.api.publish("t", "a.second") and new.requests, "the new URL is used")
    waiting.reply(503, then=204)
    lost = node.api.publish("t", "b.lost")["id"]
    waiting.wait_for(1)
    own_postgres.stop()
    shutil.rmtree(data)
    (own_postgres.home / "standby").rename(data)
    (data / "standby.signal").touch()
    own_postgres.adopt(data)
    own_postgres.start()
    own_postgres.sql("select pg_promote()", "postgres")
    node.wait_for_log("database_changed")
    wait_until(lambda: node.api.get("/readyz").status == 200, "the node is back")

    wait_until(lambda: node.api.call("PATCH", f"/v1/tenants/t/endpoints/{endpoint}", {"description": "x"}).status == 200,
               "changes are taken")
    before = len(old.requests)
    node.api.publish("t", "a.third")
    old.wait_for(before + 1)
    waiting.reply(503, then=204)
    kept = node.api.publish("t", "b.kept")["id"]
    waiting.wait_for(3)  # its first attempt, and its second after the lost one's would have been due
    assert [request.headers["webhook-id"] for request in waiting.requests] == [lost, kept, kept]
