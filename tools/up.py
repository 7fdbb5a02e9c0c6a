#!/usr/bin/python3
"""`./dev up`: postrider on its private Postgres in ./.postrider (unless a setting names another database), a small receiver,
and a demo event.

usage: up.py POSTRIDER_BINARY [flags of postrider serve]
"""

import base64
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import secrets
import shlex
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

DATA_DIR = pathlib.Path(".postrider")
KEY_FILE = DATA_DIR / "dev-admin.key"
LOG_FILE = DATA_DIR / "postrider.log"
DEMO_FILE = DATA_DIR / "dev-demo.json"  # the demo's endpoint and its secret, for the next run
TENANT = "demo"
NETWORKS = "127.0.0.0/8,::1/128"
RECEIVER_PORT = 8091
START_SECONDS = 120


def say(text=""):
    print(text, flush=True)


class Receiver:
    """Receives webhooks on loopback, verifies their signatures and remembers the IDs of the valid ones."""

    def __init__(self):
        self.secret = None
        self.verified = set()
        self.changed = threading.Condition()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                good = receiver.verify(self.headers, body)
                self.send_response(204 if good else 401)
                self.send_header("content-length", "0")
                self.end_headers()
                say(f"   receiver: {self.headers['webhook-id']} attempt {self.headers['webhook-attempt']}: "
                    f"{'signature verified' if good else 'BAD SIGNATURE'}  {body.decode()[:200]}")
                if good:
                    with receiver.changed:
                        receiver.verified.add(self.headers["webhook-id"])
                        receiver.changed.notify_all()

            def log_message(self, *_):
                pass

        try:
            self.server = http.server.ThreadingHTTPServer(("127.0.0.1", RECEIVER_PORT), Handler)
        except OSError:
            self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/hooks"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def verify(self, headers, body):
        if self.secret is None:
            return False
        key = base64.b64decode(self.secret.removeprefix("whsec_"))
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        wanted = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        given = (headers["webhook-signature"] or "").split(" ")
        return any(hmac.compare_digest(wanted, one) for one in given)

    def wait_for(self, event, seconds):
        with self.changed:
            return self.changed.wait_for(lambda: event in self.verified, seconds)


class Api:
    def __init__(self, url, key):
        self.url, self.key = url, key

    def call(self, method, path, body=None):
        """(status, JSON); the status is 0 if there is no connection."""
        request = urllib.request.Request(self.url + path, method=method)
        request.add_header("authorization", f"Bearer {self.key}")
        data = None
        if body is not None:
            request.add_header("content-type", "application/json")
            data = json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, data, timeout=30) as answer:
                text, status = answer.read(), answer.status
        except urllib.error.HTTPError as error:
            text, status = error.read(), error.code
        except OSError:
            return 0, None
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text.decode(errors="replace")

    def must(self, method, path, body=None):
        status, answer = self.call(method, path, body)
        if status not in (200, 201, 202):
            raise RuntimeError(f"{method} {path} failed with {status}: {answer}")
        return answer


def admin_key():
    """Created once. The database has only its hash, so the key is kept in a file."""
    DATA_DIR.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, exist_ok=True)
    if not KEY_FILE.exists():
        descriptor = os.open(KEY_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write("pr_" + secrets.token_hex(32) + "\n")
    return KEY_FILE.read_text().strip()


def listen_address(flags):
    """Where the node will listen: a flag overrides the environment variable."""
    for at, flag in enumerate(flags):
        if flag.startswith("--listen="):
            return flag.removeprefix("--listen=")
        if flag == "--listen" and at + 1 < len(flags):
            return flags[at + 1]
    return os.environ.get("POSTRIDER_LISTEN", "127.0.0.1:8090")


def node_environment():
    environment = dict(os.environ)
    environment.setdefault("POSTRIDER_DATA_DIR", str(DATA_DIR))
    environment.setdefault("POSTRIDER_ADMIN_KEY_FILE", str(KEY_FILE))
    environment.setdefault("POSTRIDER_ALLOW_HTTP", "true")
    environment.setdefault("POSTRIDER_ALLOW_NETWORKS", NETWORKS)
    return environment


def find_database(binary, flags):
    """Where the node will keep its data: a flag, a variable or a postrider.toml may name another database."""
    shown = subprocess.run([binary, "config", "--json", *flags], env=node_environment(), capture_output=True, text=True)
    if shown.returncode != 0:
        sys.exit(f"dev up: {shown.stderr.strip()}")
    settings = json.loads(shown.stdout)
    url = settings["database_url"]
    if url["value"]:
        return f"the database {url['value']} ({url['from']})"
    return f"its private Postgres in {settings['data_dir']['value']}"


def start(binary, flags):
    # A session of its own: Ctrl-C reaches only this script, which then stops the node once.
    log = open(LOG_FILE, "ab")
    return subprocess.Popen([binary, "serve", *flags], env=node_environment(), stdout=log, stderr=log,
                            start_new_session=True)


def wait_ready(node, api, log_start):
    """log_start: the size of the log before this start, so that an error shows only lines of this start."""
    deadline = time.monotonic() + START_SECONDS
    while api.call("GET", "/readyz")[0] != 200:
        if node.poll() is not None or time.monotonic() > deadline:
            said = LOG_FILE.read_bytes()[log_start:].decode(errors="replace").splitlines()[-5:]
            raise RuntimeError("postrider did not start:\n  " + "\n  ".join(said))
        time.sleep(0.1)


def demo_endpoint(api, receiver):
    """The demo's tenant and endpoint: created by the first run; later runs only update the URL."""
    if api.call("GET", f"/v1/tenants/{TENANT}")[0] != 200:
        api.must("POST", "/v1/tenants", {"id": TENANT, "name": "Demo"})
    known = json.loads(DEMO_FILE.read_text()) if DEMO_FILE.exists() else None
    if known and api.call("GET", f"/v1/tenants/{TENANT}/endpoints/{known['id']}")[0] == 200:
        api.must("PATCH", f"/v1/tenants/{TENANT}/endpoints/{known['id']}", {"url": receiver.url})
    else:
        known = api.must("POST", f"/v1/tenants/{TENANT}/endpoints", {"url": receiver.url, "event_types": ["*"]})
        DEMO_FILE.touch(mode=0o600)
        DEMO_FILE.write_text(json.dumps({"id": known["id"], "secret": known["secret"]}))
    receiver.secret = known["secret"]


def show(api, key, binary, command, database):
    say()
    say(f"postrider listens on {api.url}   (log: {LOG_FILE})")
    say(f"  admin key: {key}")
    say("  this is a development setup: http:// and loopback endpoints are allowed; `postrider serve` allows neither")
    say()
    say("publish another event:")
    say(f"  {binary} event publish {TENANT} invoice.paid '{{\"amount\":42}}' --server {api.url} --key-file {KEY_FILE}")
    say(f"  curl -sS {api.url}/v1/tenants/{TENANT}/events -H 'authorization: Bearer {key}' \\")
    say("""    -H 'content-type: application/json' -d '{"type":"invoice.paid","data":{"amount":42}}'""")
    say("look into the database:")
    say(f"""  psql "$({command})" """.rstrip())
    say()
    say(f"Ctrl-C stops everything; the data stays in {database}")


def stop(node):
    if node.poll() is None:
        node.send_signal(signal.SIGTERM)
        try:
            node.wait(60)
        except subprocess.TimeoutExpired:
            node.send_signal(signal.SIGTERM)
            node.wait(60)
    return node.returncode


def main():
    binary, *flags = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    try:
        key = admin_key()
    except OSError as error:  # created by another user, for example with sudo
        sys.exit(f"dev up: {error.filename}: {error.strerror}; run it as the user that created it, or remove ./{DATA_DIR}")
    listen = listen_address(flags)
    api = Api(f"http://{listen}", key)
    if api.call("GET", "/healthz")[0] != 0:
        sys.exit(f"dev up: another server listens on {listen}; stop it, or pass --listen 127.0.0.1:8095")
    database = find_database(binary, flags)
    receiver = Receiver()
    say(f"── starting postrider on {database}")
    log_start = LOG_FILE.stat().st_size if LOG_FILE.exists() else 0
    node = start(binary, flags)
    try:
        wait_ready(node, api, log_start)
        demo_endpoint(api, receiver)
        say(f"── a demo event for {receiver.url}")
        event = api.must("POST", f"/v1/tenants/{TENANT}/events",
                         {"type": "invoice.paid", "data": {"amount": 4200, "currency": "EUR"}})
        say(f"   published: {event['id']}, {event['deliveries']} delivery")
        if not receiver.wait_for(event["id"], 30):
            raise RuntimeError(f"the demo event did not arrive in 30 s; see {LOG_FILE}")
        show(api, key, binary, shlex.join([binary, "database-url", *flags]), database)
        while node.poll() is None:
            time.sleep(0.5)
        sys.exit(f"dev up: postrider stopped with exit code {node.returncode}; see {LOG_FILE}")
    except KeyboardInterrupt:
        say("\n── stopping")
        code = stop(node)
        say("stopped" if code == 0 else f"stopped with exit code {code}")
    except RuntimeError as error:
        stop(node)
        sys.exit(f"dev up: {error}")


if __name__ == "__main__":
    main()
