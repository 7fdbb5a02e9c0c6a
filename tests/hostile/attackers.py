"""The attackers of the experiment, in a process of their own that gives way to all others: applications that write outbox
rows, receivers, inbound senders, and a customer with a key. `python3 attackers.py CONFIG` runs until it gets SIGTERM and then
prints how much each did."""

import collections
import contextlib
import http.client
import itertools
import json
import os
import pathlib
import random
import signal
import socket
import socketserver
import sys
import threading
import time
import uuid

import psycopg2

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import senders  # noqa: E402
from harness.hostile import DOCUMENTS, HEADERS, INJECTED, LONG, TEXTS, VALUES  # noqa: E402
from priority import run_last  # noqa: E402

PAUSE_SECONDS = 0.02        # of each attacker between two of its acts
COLUMNS = ["public_id", "tenant_id", "type", "data", "version", "subject", "traceparent", "occurred_at", "created_at"]
SINGLETONS = ["outbox_relay", "outbox_setting", "outbox_slot"]


class Attack:
    """The base of all attackers: a stop flag and a count of their actions. They ignore responses."""

    def __init__(self, config):
        self.config = config
        self.stopping = threading.Event()
        self.counts = collections.Counter()
        self.random = random.Random(config["seed"])

    def takes_part(self, name):
        only = self.config.get("only")
        return not only or any(name.startswith(part) for part in only)

    def forever(self, name, act, pause=PAUSE_SECONDS):
        if not self.takes_part(name):
            return

        def run():
            while not self.stopping.wait(pause):
                status = None
                with contextlib.suppress(OSError, http.client.HTTPException, psycopg2.Error, ValueError):
                    status = act()
                self.counts[f"{name}: {status}" if status else name] += 1
        thread = threading.Thread(target=run, daemon=True)
        thread.start()

    def connect(self):
        host, _, port = self.config["address"].rpartition(":")
        return socket.create_connection((host, int(port)), 10)

    def call(self, method, path, body=None, headers=None, key=None, seconds=30):
        """The status of the response."""
        host, _, port = self.config["address"].rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=seconds)
        try:
            sent = {"authorization": f"Bearer {key or self.config['key']}", "content-type": "application/json", **(headers or {})}
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()


# ── applications ──


def attack_outboxes(attack):
    for number, url in enumerate(attack.config["outboxes"]):
        attack.forever(f"rows in outbox {number + 1}", Application(attack, url).write)


class Application:
    def __init__(self, attack, url):
        self.random, self.url, self.tenant = attack.random, url, attack.config["tenant"]
        self.connection = None
        self.numbers = itertools.count(1)

    def write(self):
        if self.connection is None or self.connection.closed:
            self.connection = psycopg2.connect(self.url)
            self.connection.autocommit = True
            with self.connection.cursor() as cursor:
                cursor.execute("drop trigger if exists outbox_event_form on postrider.outbox")
        with self.connection.cursor() as cursor:
            if next(self.numbers) % 200 == 0:
                self.empty(cursor)
            row = {"event_id": str(uuid.uuid4()), "tenant_id": self.tenant, "type": "a.b", "data": "{}"}
            texts = [text for text in (*TEXTS, LONG) if "\x00" not in text]
            row[self.random.choice(COLUMNS)] = self.random.choice(texts)
            marks = ", ".join(["%s"] * len(row))
            cursor.execute(f"insert into postrider.outbox ({', '.join(row)}) values ({marks})", list(row.values()))

    def empty(self, cursor):
        """A table that always has one row has none, for a moment."""
        table = self.random.choice(SINGLETONS)
        cursor.execute(f"create temporary table if not exists kept_{table} as table postrider.{table}")
        cursor.execute(f"delete from postrider.{table}")
        time.sleep(1.5)
        cursor.execute(f"insert into postrider.{table} select * from kept_{table} on conflict do nothing")


# ── receivers ──


def chunks(send):
    send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    piece = (b"1;" + b"a" * 16000 + b"\r\nx\r\n") * 64
    for _ in range(200):
        send(piece)


def trickle(send):
    for byte in b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n" + b"x" * 100:
        send(bytes([byte]))
        time.sleep(0.5)


def interims(send):
    for _ in range(10_000):
        send(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n")


def headers(send):
    send(b"HTTP/1.1 200 OK\r\n")
    for number in range(5_000):
        send(b"x-%d: " % number + b"a" * 1000 + b"\r\n")


REPLIES = {
    "hang": lambda send: time.sleep(120),
    "trickle": trickle,
    "chunk extensions": chunks,
    "interim answers": interims,
    "endless headers": headers,
    "garbage": lambda send: send(os.urandom(5000)),
    "huge body": lambda send: [send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n"), *(send(b"x" * 65536) for _ in range(500))],
    "late bytes": lambda send: send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno"),
    "redirect": lambda send: send(b"HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n"),
    "gone for a day": lambda send: send(b"HTTP/1.1 503 x\r\nretry-after: 99999999999\r\ncontent-length: 0\r\n\r\n"),
    "close": lambda send: None,
}


def attack_receivers(attack):
    """Endpoints of the hostile tenant that respond in each of these ways, and events for them."""
    urls = {}
    replies = {name: reply for name, reply in REPLIES.items() if attack.takes_part(f"answers: {name}")}
    if not replies:
        return
    for name, reply in replies.items():
        class Handler(socketserver.BaseRequestHandler):
            def handle(self, name=name, reply=reply):
                with contextlib.suppress(OSError):
                    self.request.recv(65536)
                    reply(self.request.sendall)
                attack.counts[f"answers: {name}"] += 1

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            request_queue_size = 128

        server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        urls[name] = f"http://127.0.0.1:{server.server_address[1]}/"
    of_tenant = f"/v1/tenants/{attack.config['tenant']}"
    for url in urls.values():
        attack.call("POST", f"{of_tenant}/endpoints", {"url": url, "event_types": ["*"], "retry_schedule": [1], "timeout_ms": 30000,
                                                     "max_in_flight": 100})
    attack.forever("events for hostile receivers", lambda: attack.call(
        "POST", f"{of_tenant}/events", {"type": "a.b", "data": {"filler": "x" * attack.random.choice([10, 200_000])}}))


# ── inbound senders ──


def attack_inbound(attack):
    source, secret = attack.config["source"], attack.config["source_secret"]
    recorded = senders.event(action="opened", number=1)

    def send(body, headers):
        return attack.call("POST", f"/in/{source}", body, headers={"authorization": "", **headers})

    def replay():
        return send(recorded, senders.github(secret, str(uuid.uuid4()), recorded))

    def forge():
        body = attack.random.choice(DOCUMENTS)
        name = attack.random.choice(["x-hub-signature-256", "x-github-delivery", "content-type", "x-github-event"])
        value = attack.random.choice([value for value in HEADERS if not set(value) & set(b"\r\n\x00")])
        return send(body, {**senders.github("another secret", "x", body), name: value.decode("latin-1")})

    def ed25519():
        many = " ".join(["v1a," + "A" * 86 + "=="] * 150)
        headers = {"webhook-id": "x", "webhook-timestamp": str(int(time.time())), "webhook-signature": many}
        return attack.call("POST", f"/in/{attack.config['ed25519_source']}", b"x" * 900_000, headers={"authorization": "", **headers})

    def upload():
        """Announces much, sends most of it at once and then nothing."""
        with attack.connect() as connection:
            connection.sendall(f"POST /in/{source} HTTP/1.1\r\nhost: h\r\ncontent-length: 1000000\r\n\r\n".encode() + b"x" * 900_000)
            attack.stopping.wait(20)

    attack.forever("recorded requests", replay)
    attack.forever("forged requests", forge)
    attack.forever("many signatures", ed25519, 0.5)
    for _ in range(10):
        attack.forever("stalled uploads", upload)


# ── a customer ──


def attack_api(attack):
    tenant = attack.config["tenant"]
    of_tenant = f"/v1/tenants/{tenant}"
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600))
    calls = {
        "dry-run replays": ("POST", f"{of_tenant}/replays", {"only": "all", "since": since, "dry_run": True}),
        "lists": ("GET", f"{of_tenant}/deliveries?limit=250&status=dead_letter", None),
        "events": ("GET", f"{of_tenant}/events?limit=250&since={since}", None),
        "stats": ("GET", f"{of_tenant}/stats?by=type&limit=250&since={since}", None),
        "exports": ("GET", f"{of_tenant}/deliveries?format=csv", None),
        "own limits": ("PATCH", of_tenant, {"publish_rate_per_second": None, "endpoints_max": 1_000_000}),
        "other tenants": ("GET", f"/v1/tenants/{attack.config['healthy']}/events", None),
    }
    for name, (method, path, body) in calls.items():
        for _ in range(3):
            attack.forever(name, lambda method=method, path=path, body=body: attack.call(
                method, path, body, headers={"accept-encoding": "gzip"}))

    def fuzz():
        field = attack.random.choice(["type", "data", "id", "version", "subject", "occurred_at", INJECTED])
        value = attack.random.choice([*TEXTS, *VALUES])
        return attack.call("POST", f"{of_tenant}/events", {"type": "a.b", "data": {}, field: value})

    def stream():
        with attack.connect() as connection:
            connection.sendall(f"GET {of_tenant}/stream HTTP/1.1\r\nhost: h\r\nauthorization: Bearer {attack.config['key']}\r\n\r\n".encode())
            attack.stopping.wait(10)  # never reads

    def unknown_key():
        return attack.call("GET", "/v1/tenants", key=uuid.uuid4().hex * 2)

    attack.forever("hostile fields", fuzz)
    attack.forever("unknown keys", unknown_key)
    for _ in range(20):
        attack.forever("streams that are not read", stream)


def main():
    attack = Attack(json.loads(pathlib.Path(sys.argv[1]).read_text()))
    if attack.config["is_timed"]:
        run_last()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])   # a handler could not set an event that is being waited on
    for begin in (attack_outboxes, attack_receivers, attack_inbound, attack_api):
        begin(attack)
    print("started", flush=True)
    signal.sigwait([signal.SIGTERM])
    attack.stopping.set()
    print(json.dumps(attack.counts))
    sys.stdout.flush()
    os._exit(0)  # without waiting for threads that wait for responses


if __name__ == "__main__":
    main()
