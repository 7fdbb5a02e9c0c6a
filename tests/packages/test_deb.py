"""The life of the Debian package in a Debian 12 chroot, and what it leaves behind."""

import os
import signal
import socket
import stat
import subprocess

import pytest

from chroots import chroot, find
from harness.wait import wait_until

OLD, NEW = "0.1.0", "0.1.1"


@pytest.fixture
def system():
    with chroot("bookworm") as made:
        yield made


def files_of(system):
    """Everything below the folders that packages write to, with type and mode."""
    found = {}
    for top in ("etc", "usr", "var/lib"):
        for folder, _, names in os.walk(system.root / top):
            for name in names:
                path = os.path.join(folder, name)
                found[os.path.relpath(path, system.root)] = stat.filemode(os.lstat(path).st_mode)
    return found


def test_the_package_installs_upgrades_removes_and_purges(system, packages):
    deb = system.add(find(packages[OLD], "postrider_*.deb"))
    system.run("apt-get", "-qq", "update")
    system.run("apt-get", "-qq", "install", "-y", "--no-install-recommends", "adduser")
    before = files_of(system)

    printed = system.run("apt-get", "-qq", "install", "-y", "--no-install-recommends", deb)
    assert "write the URL of the database to /etc/postrider/database.url" in printed
    assert "statically linked" not in system.run("ldd", "/usr/bin/postrider")
    for path, mode in (("etc/postrider/master.key", "-rw-------"), ("etc/postrider/admin.key", "-rw-------"),
                       ("etc/postrider/postrider.toml", "-rw-r--r--"), ("lib/systemd/system/postrider.service", None),
                       ("usr/share/man/man1/postrider.1.gz", None), ("usr/share/bash-completion/completions/postrider", None),
                       ("usr/share/zsh/vendor-completions/_postrider", None),
                       ("usr/share/fish/vendor_completions.d/postrider.fish", None)):
        found = system.root / path
        assert found.exists(), path
        assert mode is None or stat.filemode(found.stat().st_mode) == mode, path
    keys = {name: (system.root / "etc/postrider" / name).read_bytes() for name in ("master.key", "admin.key")}
    assert len(set(keys.values())) == 2
    assert "not stripped" not in subprocess.run(["file", "-b", system.root / "usr/bin/postrider"], text=True,
                                                stdout=subprocess.PIPE).stdout

    # A changed setting and the keys survive an upgrade.
    with open(system.root / "etc/postrider/postrider.toml", "a") as settings:
        settings.write('log_level = "warn"\n')
    system.run("apt-get", "-qq", "install", "-y", system.add(find(packages[NEW], "postrider_*.deb")))
    assert system.run("dpkg-query", "-W", "-f=${Version}", "postrider") == NEW
    assert 'log_level = "warn"' in (system.root / "etc/postrider/postrider.toml").read_text()
    for name, content in keys.items():
        assert (system.root / "etc/postrider" / name).read_bytes() == content, name

    system.run("apt-get", "-qq", "remove", "-y", "postrider")
    assert not system.exists("/usr/bin/postrider")
    assert {"master.key", "admin.key", "postrider.toml"} <= set(os.listdir(system.root / "etc/postrider"))

    (system.root / "etc/postrider/database.url").write_text("postgresql:///shop")
    printed = system.run("apt-get", "-qq", "purge", "-y", "postrider")
    assert "kept the database" in printed and "/etc/postrider/master.key" in printed
    assert os.listdir(system.root / "etc/postrider") == ["master.key"]
    assert (system.root / "etc/postrider/master.key").read_bytes() == keys["master.key"]

    system.run("apt-get", "-qq", "autoremove", "--purge", "-y")
    left = {path for path in set(files_of(system)) - set(before)
            if not path.startswith(("var/lib/dpkg/", "var/lib/apt/", "etc/ssl/", "usr/lib/ssl/"))}
    allowed = {"etc/postrider/master.key"}
    assert {path for path in left if "postrider" in path} == allowed, left


def test_the_debug_symbols_belong_to_the_binary(system, packages):
    folder = packages[OLD]
    for pattern in ("postrider_*.deb", "postrider-dbgsym_*.deb"):
        subprocess.run(["dpkg-deb", "-x", find(folder, pattern), system.root / "unpacked"], check=True)
    notes = subprocess.run(["readelf", "-n", system.root / "unpacked/usr/bin/postrider"], text=True, check=True,
                           stdout=subprocess.PIPE).stdout
    build_id = notes.split("Build ID:")[1].split()[0]
    symbols = system.root / "unpacked/usr/lib/debug/.build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    assert symbols.stat().st_size > (system.root / "unpacked/usr/bin/postrider").stat().st_size


def test_the_installed_binary_serves_as_the_unit_starts_it(system, packages):
    """Without systemd: the test plays its part, with the user, credentials and socket of the unit."""
    system.install("postgresql-15", "ca-certificates")
    system.run("apt-get", "-qq", "install", "-y", system.add(find(packages[OLD], "postrider_*.deb")))
    credentials = system.root / "run/credentials"
    credentials.mkdir()
    for name in ("master_key", "admin_key"):
        key = (system.root / "etc/postrider" / name.replace("_", ".")).read_text()
        (credentials / f"postrider.{name}").write_text(key)
    (credentials / "postrider.database_url").write_text("postgresql:///postrider?host=/run/postgresql")
    system.run("chown", "-R", "postrider:", "/run/credentials")
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(system.root / "run/notify"))
    os.chmod(system.root / "run/notify", 0o666)
    manager.settimeout(60)

    system.run("pg_ctlcluster", "15", "main", "start")
    try:
        system.run("runuser", "-u", "postgres", "--", "psql", "-c", "create role postrider login",
                   "-c", "create database postrider owner postrider")
        node = system.start("/usr/bin/postrider", "serve", "--listen", "127.0.0.1:0", user="postrider:postrider",
                            CREDENTIALS_DIRECTORY="/run/credentials", NOTIFY_SOCKET="/run/notify", HOME="/nonexistent")
        try:
            assert manager.recv(512).startswith(b"READY=1")
            node.send_signal(signal.SIGTERM)
            assert manager.recv(512).startswith(b"STOPPING=1")
            wait_until(lambda: node.poll() is not None, "the node ends", 60)
            assert node.returncode == 0
        finally:
            if node.poll() is None:
                node.kill()
            node.stdout.read()
    finally:
        system.run("pg_ctlcluster", "15", "main", "stop", "-m", "immediate", check=False)
        manager.close()
