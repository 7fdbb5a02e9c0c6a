"""docs/migrate-from-your-own-outbox.md: its statements, with writers and a worker of the application's own running on."""

import collections
import json
import threading

import psycopg2
import pytest

from harness.documents import blocks_of
from harness.postgres import run_sql
from harness.wait import wait_until

PAGE = "docs/migrate-from-your-own-outbox.md"
WRITERS = 3
BATCH = 20  # rows that are awaited in each phase


class Threads:
    """Background work on connections of its own; an error fails the test when it is stopped."""

    def __init__(self, url, count):
        self.url = url
        self.errors = []
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,), daemon=True) for number in range(count)]
        for thread in self._threads:
            thread.start()

    def _run(self, number):
        connection = psycopg2.connect(self.url)
        try:
            while not self._stopping.is_set():
                self.work(connection, number)
        except psycopg2.Error as error:
            self.errors.append(error)
        finally:
            connection.close()

    def stop(self):
        self._stopping.set()
        for thread in self._threads:
            thread.join(60)
        assert not self.errors


class Writers(Threads):
    """The application: every fifth transaction is rolled back."""

    def __init__(self, url):
        self.committed = []
        self._turns = collections.Counter()
        super().__init__(url, WRITERS)

    def work(self, connection, number):
        self._turns[number] += 1
        with connection.cursor() as cursor:
            cursor.execute("insert into public.outbox (aggregate_type, aggregate_id, event_type, payload) "
                           "values ('order', %s, 'order.paid', %s) returning id",
                           [str(number), json.dumps({"customer": "acme", "turn": self._turns[number]})])
            [row] = cursor.fetchone()
        if self._turns[number] % 5 == 0:
            connection.rollback()
        else:
            connection.commit()
            self.committed.append(row)


class Worker(Threads):
    """The worker that the application had before: it sends what is not marked, and marks it."""

    def __init__(self, url, sent):
        self.sent = sent
        super().__init__(url, 1)

    def work(self, connection, _):
        with connection, connection.cursor() as cursor:
            cursor.execute("select id from public.outbox where processed_at is null order by id limit 5 "
                           "for update skip locked")
            rows = [row for [row] in cursor.fetchall()]
            cursor.execute("update public.outbox set processed_at = now() where id = any(%s)", [rows])
        self.sent.extend(rows)


class Recipes:
    """The statements of the page, by heading."""

    def __init__(self, url):
        self.url = url
        self._blocks = collections.defaultdict(list)
        for block in blocks_of(PAGE):
            self._blocks[block.heading].append(block.text)

    def run(self, heading, number=0):
        return run_sql(self.url, self._blocks[heading][number])


@pytest.fixture
def scene(start_node, database_url, hook):
    node = start_node(database_url=database_url)
    node.api.create_tenant("acme")
    node.api.create_endpoint("acme", hook.url)
    recipes = Recipes(database_url)
    recipes.run("Migrate from your own outbox table")
    recipes.run("How a row becomes an event")
    return node, recipes


def rows_of(hook):
    return [int(request.headers["webhook-id"].removeprefix("outbox-")) for request in hook.requests]


def wait_for_more(rows, what):
    wanted = len(rows()) + BATCH
    wait_until(lambda: len(rows()) >= wanted, what)


def test_each_row_is_sent_once_through_a_trial_two_cuts_and_the_way_back(scene, database_url, receiver, hook):
    node, recipes = scene
    node.api.create_tenant("trial")
    trial = receiver.hook()
    node.api.create_endpoint("trial", trial.url)
    sent = []
    by_worker, by_postrider = (lambda: sent), (lambda: rows_of(hook))
    writers, worker = Writers(database_url), Worker(database_url, sent)

    wait_for_more(by_worker, "the worker sends")
    recipes.run("Try it")
    trial.wait_for(BATCH)
    recipes.run("Try it", 1)
    assert not hook.requests

    recipes.run("Cut over")
    wait_for_more(by_postrider, "postrider sends")
    wait_until(lambda: recipes.run("Rows that are left") == [(0,)], "the worker has sent its last row")
    recipes.run("Go back")
    wait_for_more(by_worker, "the worker sends again")

    worker.stop()
    wanted = len(writers.committed) + BATCH
    wait_until(lambda: len(writers.committed) >= wanted, "rows are left")
    recipes.run("Cut over")
    writers.stop()
    wait_until(lambda: not recipes.run("Rows that are left", 1), "no rows are left")

    hook.wait_for(len(writers.committed) - len(sent))
    counts = collections.Counter(sent + rows_of(hook))
    assert counts == collections.Counter(writers.committed)


def test_publishing_a_row_again_is_harmless(scene, hook):
    node, recipes = scene
    insert = ("insert into public.outbox (aggregate_type, aggregate_id, event_type, payload) "
              "select 'order', n::text, 'order.paid', '{\"customer\": \"acme\"}' from generate_series(1, 5) n")
    node.sql(insert)
    assert len(recipes.run("Rows that are left", 1)) == 5
    hook.wait_for(5)
    node.sql("select public.publish_outbox_row(entry) from public.outbox entry")
    node.api.publish("acme", id="outbox-6")
    hook.wait_for(6)
    wait_until(lambda: node.sql("select count(*) from postrider.outbox") == [(0,)], "the outbox is empty")
    assert sorted(rows_of(hook)) == [1, 2, 3, 4, 5, 6]
    assert json.loads(hook.requests[0].body)["data"] == {"customer": "acme"}
