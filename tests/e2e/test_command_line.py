"""The command line around a node."""

import subprocess

from harness.node import binary, environment


def run(*arguments, **settings):
    return subprocess.run([binary(), *arguments], env=environment(**settings), cwd="/", text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_psql_opens_the_private_database(node):
    url = run("database-url", **node.settings).stdout.strip()
    psql = subprocess.run(["psql", url, "-Atc", "select current_user, count(*) > 0 from postrider.bucket_lease"],
                          text=True, stdout=subprocess.PIPE)
    assert psql.stdout == "postrider|t\n"


def test_the_servers_environment_has_no_keys(node):
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
