"""The portable tarball delivers an event in Debian systems that have none of its libraries."""

import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from chroots import chroot, find
from harness.api import Api
from harness.node import ADMIN_KEY, MASTER_KEY
from harness.ports import lasting_port
from harness.postgres import Postgres
from harness.receiver import Receiver
from harness.wait import wait_until

VERSION = "0.1.0"


@pytest.fixture
def server():
    """A Postgres of the test, in a folder that is mounted into the chroot."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pr-shared-", dir="/tmp"))
    folder.chmod(0o755)
    started = Postgres(folder=str(folder))
    yield started
    started.close()
    shutil.rmtree(folder, ignore_errors=True)


def test_the_tarball_brings_all_but_glibc(packages, tmp_path):
    shutil.unpack_archive(find(packages[VERSION], "*.tar.gz"), tmp_path)
    [folder] = tmp_path.iterdir()
    loaded = subprocess.run(["ldd", folder / "bin" / "postrider"], text=True, check=True, stdout=subprocess.PIPE).stdout
    outside = [line.split()[0] for line in loaded.splitlines() if str(folder) not in line]
    assert all(re.match(r"(/lib64/)?ld-linux|linux-vdso|lib(c|m|resolv|dl|pthread|rt)\.so", name) for name in outside), outside
    assert len(list((folder / "licences").iterdir())) >= 20


@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
def test_the_tarball_delivers(suite, packages, server):
    server.create("portable")
    receiver = Receiver()
    hook = receiver.hook()
    port = lasting_port()
    with chroot(suite) as system:
        shutil.unpack_archive(find(packages[VERSION], "*.tar.gz"), system.root / "opt")
        [program] = (system.root / "opt").glob("*/bin/postrider")
        shared = system.root / str(server.home).lstrip("/")
        shared.mkdir(parents=True)
        subprocess.run(["mount", "--bind", server.home, shared], check=True)
        try:
            node = system.start(f"/{program.relative_to(system.root)}", "serve", "--listen", f"127.0.0.1:{port}",
                                POSTRIDER_DATABASE_URL=server.url("portable"), POSTRIDER_MASTER_KEY=MASTER_KEY,
                                POSTRIDER_ADMIN_KEY=ADMIN_KEY, POSTRIDER_ALLOW_HTTP="true",
                                POSTRIDER_ALLOW_NETWORKS="127.0.0.0/8")
            try:
                api = Api(f"http://127.0.0.1:{port}", ADMIN_KEY)

                def is_ready():
                    try:
                        return node.poll() is not None or api.exchange("GET", "/readyz").status == 200
                    except OSError:
                        return False

                wait_until(is_ready, "the node is ready", 120)
                assert node.poll() is None, node.stdout.read()
                api.create_tenant("acme")
                api.create_endpoint("acme", hook.url)
                api.publish("acme")
                hook.wait_for(1)
            finally:
                node.terminate()
                node.wait(60)
                node.stdout.close()
        finally:
            subprocess.run(["umount", shared], check=True)
            receiver.close()
    assert node.returncode == 0
