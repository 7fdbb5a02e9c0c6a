"""The drill of docs/recovery.md: the queue and the history are lost, every event reaches every endpoint again."""

import collections
import gzip
import itertools
import json
import re
import signal
import subprocess

import pytest

from harness import node as node_module
from harness.documents import blocks_of
from harness.node import binary, environment
from harness.postgres import run_sql
from harness.wait import wait_until

NUMBERS = itertools.count(1)
EVENTS = 40
FROM = "2020-01-01T00:00:00Z"


def refanout(node, *words):
    return subprocess.run([binary(), "outbox", "refanout", *words], env=environment(**node.settings), cwd="/", text=True,
                          capture_output=True, timeout=120)


def made(done):
    assert done.returncode == 0, done.stderr
    return {place: int(count) for place, count in re.findall(r"^(\S+): \d+ \w+ scanned, (\d+)", done.stdout, re.M)}


def received(hooks):
    return [collections.Counter(request.headers["webhook-id"] for request in list(hook.requests)) for hook in hooks]


@pytest.fixture
def lossy(start_node, database_url, receiver):
    """A node whose events are all delivered, to one endpoint and a strict one."""
    node = start_node(database_url=database_url)
    node.api.create_tenant("acme")
    hooks = [receiver.hook(), receiver.hook()]
    node.api.create_endpoint("acme", hooks[0].url)
    node.api.create_endpoint("acme", hooks[1].url, ordering="strict", max_in_flight=1)
    events = [node.api.publish("acme", data={"n": n})["id"] for n in range(EVENTS)]
    wait_until(lambda: all(set(seen) == set(events) for seen in received(hooks)), "everything is delivered once")
    wait_until(lambda: node.sql("select count(*) from postrider.queue where bucket >= 0") == [(0,)], "it is settled")
    return node, hooks, events


def drills():
    """The commands of each drill, as the document has them."""
    blocks = [block for block in blocks_of("docs/recovery.md") if block.run_by == "tests/e2e/test_refanout.py"]
    return {block.heading + f" {number}": [line for line in block.text.splitlines() if line]
            for number, block in enumerate(blocks, 1)}


@pytest.mark.parametrize("name", ["The drill 1", "The drill 2"])
def test_the_documented_drill_brings_every_event_to_every_endpoint_again(name, lossy, start_node, tmp_path):
    node, hooks, events = lossy
    settings = node.settings
    (tmp_path / "postrider").symlink_to(binary())
    variables = {**environment(**settings), "PATH": f"{tmp_path}:/usr/bin:/bin"}
    again = None
    for command in drills()[name]:
        if command == "systemctl stop postrider":
            node.stop()
        elif command == "systemctl start postrider":
            again = start_node(**settings)
        else:
            done = subprocess.run(["sh", "-c", command], env=variables, cwd="/", text=True, capture_output=True,
                                  timeout=120)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
    assert node.process.poll() == 0 and again is not None
    wait_until(lambda: all(all(seen[event] >= 2 for event in events) for seen in received(hooks)),
               "every event reaches every endpoint again")
    wait_until(lambda: again.sql("select count(*) from postrider.queue where bucket >= 0") == [(0,)], "it is settled")
    # Now there is a history: nothing is sent a third time.
    assert made(refanout(again, "--from", FROM)) == {"events": 0}
    assert all(set(seen.values()) == {2} for seen in received(hooks))
    order = [request.headers["webhook-id"] for request in hooks[1].requests]
    assert order == events + events


def test_a_dry_run_lists_the_first_missing_deliveries(lossy):
    node, _, events = lossy
    node.stop()
    run_sql(node.database_url, "truncate postrider.queue, postrider.attempt")
    done = refanout(node, "--from", FROM, "--dry-run", "--without-history")
    assert made(done) == {"events": 2 * EVENTS}, done.stdout
    listed = re.findall(r"^  acme (\S+) -> (\S+)$", done.stdout, re.M)
    assert [event for event, _ in listed] == [event for event in events[:10] for _ in range(2)]
    assert len(set(listed)) == 20 and f"  and {2 * EVENTS - 20} more\n" in done.stdout
    assert run_sql(node.database_url, "select count(*) from postrider.queue where bucket >= 0") == [(0,)]


def test_a_node_whose_tables_are_gone_says_what_to_do(lossy):
    node, _, _ = lossy
    node.stop()
    run_sql(node.database_url, "drop table postrider.queue, postrider.attempt cascade")
    for command in ("serve", "migrate"):
        done = subprocess.run([binary(), command], env=environment(**node.settings), cwd="/", text=True, capture_output=True,
                              timeout=60)
        assert done.returncode != 0
        assert "attempt, attempt_day, attempt_kept, queue. `postrider migrate --repair`" in done.stdout + done.stderr, (done.stdout, done.stderr)
    repaired = subprocess.run([binary(), "migrate", "--repair"], env=environment(**node.settings), cwd="/", text=True,
                              capture_output=True, timeout=60)
    assert repaired.returncode == 0 and "CREATE TABLE postrider.queue" in repaired.stdout, repaired.stderr
    again = subprocess.run([binary(), "migrate", "--repair"], env=environment(**node.settings), cwd="/", text=True,
                           capture_output=True, timeout=60)
    assert again.stdout == "Nothing is missing.\n"


def test_repair_restores_the_rows_that_nodes_cannot_work_without(lossy, start_node):
    node, hooks, events = lossy
    node.stop()
    run_sql(node.database_url, "drop table postrider.session_lease, postrider.kept_since cascade; delete from postrider.bucket_lease;"
                               "delete from postrider.brakes; delete from postrider.outbox_setting; delete from postrider.outbox_slot;"
                               "delete from postrider.registry_version")
    repaired = subprocess.run([binary(), "migrate", "--repair"], env=environment(**node.settings), cwd="/", text=True,
                              capture_output=True, timeout=60)
    assert repaired.returncode == 0, repaired.stderr
    for table in ("session_lease", "kept_since", "bucket_lease", "brakes", "outbox_setting", "outbox_slot", "registry_version"):
        assert f"rows of postrider.{table}\n" in repaired.stdout
    again = start_node(**node.settings)
    again.sql("select postrider.publish('acme', 'a.b', '1')")
    for hook in hooks:
        hook.wait_for(len(events) + 1)
    wait_until(lambda: again.sql("select count(*) from postrider.queue where bucket >= 0") == [(0,)], "it is settled")
    assert made(refanout(again, "--from", FROM)) == {"events": 0}


def test_events_whose_history_was_removed_are_skipped_unless_asked_for(lossy):
    node, hooks, events = lossy
    # As retention with a shorter retain_attempts leaves it.
    node.sql("truncate postrider.attempt; update postrider.kept_since set since = now() + interval '1 minute' where name = 'attempts'")
    done = refanout(node, "--from", FROM, "--dry-run")
    assert made(done) == {"events": 0} and "--without-history" in done.stderr
    assert made(refanout(node, "--from", FROM, "--without-history", "--dry-run")) == {"events": 2 * EVENTS}


def test_a_dry_run_counts_and_one_tenant_is_enough(lossy):
    node, hooks, events = lossy
    node.api.create_tenant("other")
    node.sql("truncate postrider.attempt")
    assert made(refanout(node, "--from", FROM, "--dry-run")) == {"events": 2 * EVENTS}
    assert made(refanout(node, "--from", FROM, "--tenant", "other")) == {"events": 0}
    assert made(refanout(node, "--from", FROM, "--to", "2020-01-02T00:00:00Z", "--reason", "a drill")) == {"events": 0}
    assert all(set(seen.values()) == {1} for seen in received(hooks))
    entries = node.api.get("/v1/audit?action=refanout.start").expect(200)["data"]
    assert [entry["tenant_id"] for entry in entries] == [None, "other"], "a dry run changes nothing"
    latest = entries[0]
    assert latest["actor"]["kind"] == "command" and "@" in latest["actor"]["id"] and latest["reason"] == "a drill"
    assert (latest["after"]["since"], latest["after"]["until"]) == (FROM, "2020-01-02T00:00:00Z")
    misused = refanout(node, "--from", "some day")
    assert misused.returncode == 2 and "for --from: must be a time" in misused.stderr


def test_a_killed_run_goes_on_where_it_stood(start_node, database_url, hook):
    node = start_node(database_url=database_url)
    node.api.create_tenant("acme")
    endpoint = node.api.create_endpoint("acme", hook.url)["id"]
    node.api.post(f"/v1/tenants/acme/endpoints/{endpoint}/pause").expect(200)
    node.sql("""insert into postrider.event (id, tenant_id, type, body)
                select postrider.id_floor(now() - interval '1 s' + n * interval '1 ms'), 'acme', 'a.b', '{}'
                from generate_series(1, 900) n""")
    words = [binary(), "outbox", "refanout", "--from", FROM, "--rate", "20"]  # 500 at once, then it rests 25 s
    running = subprocess.Popen(words, env=environment(**node.settings), cwd="/", stdout=subprocess.DEVNULL)
    queued = "select count(*) from postrider.queue where bucket >= 0"
    wait_until(lambda: node.sql(queued) == [(500,)], "the first step is committed")
    running.send_signal(signal.SIGKILL)
    running.wait()
    resumed = refanout(node, "--from", FROM)
    assert "continuing after 500 scanned and 500 created" in resumed.stderr
    assert made(resumed) == {"events": 900}
    assert node.sql(queued) == [(900,)]


def test_each_endpoint_gets_its_version_again(start_node, database_url, receiver):
    node = start_node(database_url=database_url)
    node.api.create_tenant("acme")
    hooks = [receiver.hook() for _ in range(3)]
    wanted = [None, ["2"], ["1", "2"]]
    for hook, versions in zip(hooks, wanted):
        endpoint = node.api.create_endpoint("acme", hook.url)["id"]
        subscription = {"pattern": "*"} if versions is None else {"pattern": "*", "versions": versions}
        node.api.call("PUT", f"/v1/tenants/acme/endpoints/{endpoint}/subscriptions", {"data": [subscription]}).expect(200)
    versions = {"3": {"n": "three"}, "2": {"n": "two"}, "1": {"n": "one"}}
    node.api.post("/v1/tenants/acme/events", {"type": "order.paid", "versions": versions}).expect(202)
    for hook in hooks:
        hook.wait_for(1)
    wait_until(lambda: node.sql("select count(*) from postrider.queue where bucket >= 0") == [(0,)], "it is settled")
    node.sql("truncate postrider.attempt")
    assert made(refanout(node, "--from", FROM)) == {"events": 3}
    for hook, version in zip(hooks, ("3", "2", "2")):
        first, again = hook.wait_for(2)
        assert first.body == again.body and json.loads(again.body)["version"] == version


def test_archived_events_are_brought_back_and_delivered(lossy, tmp_path):
    node, hooks, events = lossy
    rows = node.sql("select row_to_json(e)::text from postrider.event e where tenant_id = 'acme' order by id")
    file = tmp_path / "event_20260408.ndjson.gz"
    with gzip.open(file, "wt") as out:
        out.writelines(line + "\n" for (line,) in rows)
    node.sql("truncate postrider.event, postrider.attempt, postrider.event_key")
    assert made(refanout(node, "--archive", str(file))) == {f"archive:{file}": 2 * EVENTS}
    wait_until(lambda: all(all(seen[event] == 2 for event in events) for seen in received(hooks)), "all of them arrive")
    file.write_bytes(file.read_bytes()[:200])
    broken = refanout(node, "--archive", str(file))
    assert broken.returncode == 1 and "cannot be read" in broken.stderr


def test_events_that_are_gone_come_again_from_the_kept_rows_of_another_database(start_node, postgres, database_url, hook):
    name = f"refanout_{next(NUMBERS)}"
    postgres.create(name)
    application = postgres.url(name)
    subprocess.run([binary(), "outbox", "install", "--database-url", application], check=True, cwd="/",
                   env=node_module.environment(), stdout=subprocess.DEVNULL)
    node = start_node(database_url=database_url)
    node.api.create_tenant("acme")
    node.api.create_endpoint("acme", hook.url)
    node.api.call("PUT", "/v1/outboxes/billing", {"database_url": application}).expect(201)
    run_sql(application, "select postrider.publish('acme', 'order.paid', to_json(n)) from generate_series(1, 20) n")
    hook.wait_for(20)
    processed = "select count(*) from postrider.outbox where processed_at is not null"
    wait_until(lambda: run_sql(application, processed) == [(20,)], "all rows are marked")
    wait_until(lambda: node.sql("select count(*) from postrider.queue where bucket >= 0") == [(0,)], "it is settled")
    lost = node.sql("""with lost as (delete from postrider.event where id in (select id from postrider.event order by id
                       limit 5) returning public_id) select public_id from lost""")
    assert made(refanout(node, "--from", FROM)) == {"outbox:billing": 5, "events": 0}
    wait_until(lambda: received([hook])[0].total() == 25, "the lost ones come again")
    assert {event for event, count in received([hook])[0].items() if count == 2} == {event for (event,) in lost}
    wait_until(lambda: run_sql(application, processed) == [(20,)], "all rows are marked again")
    node.stop()
    postgres.drop(name)
