"""The command line around a node."""

import contextlib
import os
import pathlib
import socket
import struct
import subprocess
import threading

import psycopg2
import pytest
from harness.node import MASTER_KEY, binary, environment
from harness.postgres import run_sql
from harness.wait import wait_until


def run(*arguments, **settings):
    return subprocess.run([binary(), *arguments], env=environment(**settings), cwd="/", text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_psql_opens_the_database(node):
    url = run("database-url", **node.settings).stdout.strip()
    psql = subprocess.run(["psql", url, "-Atc", "select current_user, count(*) > 0 from postrider.bucket_lease"],
                          text=True, stdout=subprocess.PIPE)
    assert psql.stdout == "postrider|t\n"


def test_the_servers_environment_has_no_keys(start_node, data_dir):
    node = start_node(data_dir=data_dir)
    pid = node.wait_for_log("private_postgres_ready")["pid"]
    with open(f"/proc/{pid}/environ", "rb") as file:
        assert b"POSTRIDER" not in file.read()


def test_an_unknown_setting_stops_the_start_and_is_named(data_dir):
    done = run("serve", data_dir=data_dir, lease_secnds=3)
    assert done.returncode == 2
    assert "POSTRIDER_LEASE_SECNDS" in done.stderr and "POSTRIDER_LEASE_SECONDS" in done.stderr


def test_a_configured_database_needs_a_master_key():
    done = run("serve", database_url="postgresql://nobody@/nowhere")
    assert done.returncode == 2
    assert "POSTRIDER_MASTER_KEY" in done.stderr


def test_a_malformed_master_key_is_reported_before_a_cluster_is_created(data_dir):
    done = run("serve", data_dir=data_dir, master_key="abc")
    assert done.returncode == 2 and "master_key" in done.stderr and "openssl rand" in done.stderr, done.stderr
    assert not (pathlib.Path(data_dir) / "postgres").exists()


def test_the_wrong_master_key_refuses_to_start(start_node, database_url):
    node = start_node(database_url=database_url)
    assert node.stop() == 0
    wrong = start_node(ready=False, database_url=database_url, master_key="f" * 64)
    assert wrong.wait_exit() == 1
    assert any("master key" in line for line in wrong.text), wrong.describe()


def test_config_masks_secrets():
    done = run("config", admin_key="a-very-secret-admin-key-of-some-length")
    assert done.returncode == 0
    assert "a-very-secret" not in done.stdout
    assert "POSTRIDER_ADMIN_KEY" in done.stdout


def test_only_one_node_serves_from_a_data_directory(node):
    done = run("serve", **node.settings)
    assert done.returncode == 1
    assert "another postrider" in done.stderr


@contextlib.contextmanager
def refusing_postgres(state, message):
    """A server that sends that error to every connection; its URL."""
    fields = b"".join(part.encode() + b"\0" for part in ("SFATAL", f"C{state}", f"M{message}", "Fpostinit.c", "L1", "Rinit"))
    answer = b"E" + struct.pack("!i", len(fields) + 5) + fields + b"\0"
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"postgresql://me@127.0.0.1:{listener.getsockname()[1]}/mine?sslmode=disable"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


@pytest.mark.parametrize("state, message", [
    ("3D000", 'database "mine" does not exist'),
    ("28000", 'role "me" does not exist'),
    ("28P01", 'password authentication failed for user "me"'),
])
def test_a_database_that_says_no_is_not_asked_again(start_node, state, message):
    with refusing_postgres(state, message) as url:
        node = start_node(ready=False, database_url=url)
        assert node.wait_exit(20) == 1
    assert not any(entry["event"] == "database_unreachable" for entry in node.log), node.describe()
    assert node.text[-1].endswith(f"FATAL:  {message}"), node.describe()


def test_a_database_that_is_starting_up_is_waited_for(start_node):
    with refusing_postgres("57P03", "the database system is starting up") as url:
        node = start_node(ready=False, database_url=url)
        waiting = node.wait_for_log("database_unreachable", count=2)
        assert waiting["error"].endswith("FATAL:  the database system is starting up")
        assert node.stop(30) == 0


def test_a_signal_ends_the_wait_for_a_database(start_node, tmp_path):
    node = start_node(ready=False, database_url=f"postgresql://me@/mine?host={tmp_path}")
    node.wait_for_log("database_unreachable")
    assert node.stop(30) == 0
    assert node.wait_for_log("stopping")["signal"] == "SIGTERM"
    node.wait_for_log("stopped")


def test_a_signal_ends_the_wait_for_a_silent_database(start_node):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        node = start_node(ready=False, database_url=f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/mine")
        silent.accept()
        assert node.stop(5) == 0


def test_a_signal_ends_a_start_that_waits(start_node, database_url):
    with contextlib.closing(psycopg2.connect(database_url)) as other, other.cursor() as cursor:
        cursor.execute("lock table postrider.brakes")
        node = start_node(ready=False, database_url=database_url)
        waiting = """select count(*) from pg_stat_activity where wait_event_type = 'Lock'
            and application_name = 'postrider control' and datname = current_database()"""
        wait_until(lambda: run_sql(database_url, waiting) == [(1,)], "the node waits for its brakes")
        assert node.stop(30) == 0
    node.wait_for_log("stopped")


def test_a_signal_ends_the_wait_for_a_data_directory(node, start_node):
    second = start_node(ready=False, **node.settings)
    second.wait_for_log("data_directory_in_use")
    assert second.stop(30) == 0
    second.wait_for_log("stopped")
    assert node.api.get("/readyz").status == 200


def test_a_port_in_use_is_known_before_the_database_is_made(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        listen = f"127.0.0.1:{other.getsockname()[1]}"
        done = run("serve", data_dir=tmp_path / "data", listen=listen)
    assert done.returncode == 1
    assert f"cannot listen on {listen}" in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_role_without_rights_is_told_what_it_needs(postgres):
    postgres.create("owned")
    postgres.sql("create role visitor login", "postgres")
    done = run("serve", database_url=postgres.url("owned", "visitor"), master_key=MASTER_KEY)
    assert done.returncode == 1
    assert "the role must own the database" in done.stderr


def test_a_data_directory_that_is_a_file_is_called_so(tmp_path):
    (tmp_path / "file").write_text("")
    done = run("serve", data_dir=tmp_path / "file")
    assert done.returncode == 1
    assert f"{tmp_path}/file is not a directory" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_another_user_learns_whose_the_private_database_is(node):
    done = subprocess.run(["/usr/sbin/runuser", "-u", "nobody", "--", binary(), "database-url"], cwd="/", text=True,
                          env=environment(**node.settings), stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert "belongs to another user" in done.stderr


def test_a_wrong_entry_of_a_list_is_named_once():
    done = run("config", allow_networks="10.0.0.0/8,localhost")
    assert done.returncode == 2
    assert done.stderr.endswith('and "localhost" is none.\n')


def test_help_says_what_a_computed_default_means():
    assert "(default: half of the cores)" in " ".join(run("help", "serve").stdout.split())


def test_the_doctor_says_what_opens_a_refused_url_and_one_line_about_a_database(tmp_path):
    done = run("doctor", "--url", "http://127.0.0.1/", allow_http=None, master_key=MASTER_KEY,
               database_url=f"postgresql://me@/mine?host={tmp_path}")
    assert "POSTRIDER_ALLOW_HTTP=true" in done.stdout
    assert "failed: No such file or directory" in done.stdout and "\\u000a" not in done.stdout
