"""Real nginx and Caddy of Debian, on ports and in folders of the test's own."""

import contextlib
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import tempfile

import pytest

from harness import debian
from harness.ports import lasting_port
from servers import running

TEMPORARY = ("client_body", "proxy", "fastcgi", "scgi", "uwsgi")


@pytest.fixture
def folder():
    path = pathlib.Path(tempfile.mkdtemp(prefix="pr-deploy-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def port():
    return lasting_port()


@pytest.fixture
def nginx(folder):
    """nginx(text, port): runs it with this text in its http block, and nothing else but paths and gzip, as Debian does."""
    with contextlib.ExitStack() as stack:

        def start(text, port):
            paths = "".join(f"  {name}_temp_path {folder}/{name};\n" for name in TEMPORARY)
            user = "user root;\n" if os.geteuid() == 0 else ""
            (folder / "nginx.conf").write_text(
                f"{user}daemon off;\npid {folder}/nginx.pid;\nevents {{}}\nhttp {{\n{paths}  access_log off;\n  gzip on;\n{text}\n}}\n")
            command = [debian.program("nginx", "usr/sbin/nginx"), "-e", "stderr", "-p", folder, "-c", folder / "nginx.conf"]
            stack.enter_context(running(command, folder, port))

        yield start


@pytest.fixture
def certificate(folder):
    """A certificate for hooks.example.com that signs itself: (certificate, key)."""
    made = folder / "hooks.pem", folder / "hooks.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=hooks.example.com", "-addext", "subjectAltName=DNS:hooks.example.com",
                    "-out", made[0], "-keyout", made[1]], check=True, stderr=subprocess.DEVNULL)
    return made


@pytest.fixture
def request_over_tls(certificate):
    """request_over_tls(port, "GET /path") sends one HTTP/1.1 request to hooks.example.com; the whole response as text."""

    def send(port, head, body="", key=None):
        context = ssl.create_default_context(cafile=str(certificate[0]))
        with socket.create_connection(("127.0.0.1", port), timeout=30) as plain:
            with context.wrap_socket(plain, server_hostname="hooks.example.com") as secure:
                lines = f"{head} HTTP/1.1\r\nhost: hooks.example.com\r\nconnection: close\r\n"
                if key:
                    lines += f"authorization: Bearer {key}\r\n"
                if body:
                    lines += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
                secure.sendall((lines + "\r\n" + body).encode())
                return b"".join(iter(lambda: secure.recv(65536), b"")).decode()

    return send
