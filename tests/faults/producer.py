"""The producers' ledger: what was sent, and what is known about it. Without a response it is `unknown`, neither
accepted nor rejected; then the same event is sent again with the same id or Idempotency-Key, as a careful producer does."""

import dataclasses
import http.client
import json
import random
import threading

from harness.node import ADMIN_KEY

ANSWER_SECONDS = 20
RETRY_PAUSE_SECONDS = 0.05


@dataclasses.dataclass
class Sent:
    token: str
    tenant: str
    event_id: str = None          # chosen by the producer
    key: str = None               # Idempotency-Key
    sends: int = 0
    unknown: int = 0              # sends without a response
    refused: int = 0              # sends that never reached a node
    answers: set = dataclasses.field(default_factory=set)  # the ids that were acknowledged

    @property
    def is_acknowledged(self):
        return bool(self.answers)

    @property
    def is_repeatable(self):
        return self.event_id is not None or self.key is not None


class Producer:
    """Some threads that publish to whatever nodes are there. `name` makes its ids and keys differ from others';
    `addresses()` gives the nodes' addresses."""

    def __init__(self, name, addresses, tenants, seed, per_second=100, threads=3, body_bytes=300):
        self.name, self.addresses, self.tenants = name, addresses, tenants
        self.sent = []
        self.acknowledged = 0
        self.errors = []             # responses that no fault explains
        self._body_bytes = body_bytes
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(random.Random(f"{seed}/{n}"), n, threads / per_second),
                                          daemon=True) for n in range(threads)]

    def start(self):
        for thread in self._threads:
            thread.start()
        return self

    def wait_acknowledged(self, more, seconds=60):
        """Waits until `more` events than now are acknowledged."""
        with self._changed:
            target = self.acknowledged + more
            if not self._changed.wait_for(lambda: self.acknowledged >= target, seconds):
                raise AssertionError(f"no {more} events were acknowledged within {seconds} s; {self.errors[:3]}")

    def stop(self):
        """Sends nothing new; repeats what is unknown until it is acknowledged."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(120)
            assert not thread.is_alive(), "a producer never got its answer"
        assert not self.errors, self.errors[:3]

    def _run(self, random_numbers, number, interval):
        count = 0
        while not self._stopping.wait(interval):
            count += 1
            sent = Sent(f"{self.name}-{number}-{count}", random_numbers.choice(self.tenants))
            kind = random_numbers.random()
            if kind < 0.4:
                sent.event_id = f"own-{sent.token}"
            elif kind < 0.7:
                sent.key = f"key-{sent.token}"
            size = random_numbers.randint(0, 2 * self._body_bytes)
            with self._changed:
                self.sent.append(sent)
            self._publish(sent, "x" * size, random_numbers)

    def _publish(self, sent, filler, random_numbers):
        body = {"type": "thing.happened", "data": {"token": sent.token, "filler": filler}}
        if sent.event_id:
            body["id"] = sent.event_id
        headers = {"authorization": f"Bearer {ADMIN_KEY}", "content-type": "application/json"}
        if sent.key:
            headers["idempotency-key"] = sent.key
        while True:
            answer = self._send(sent, json.dumps(body).encode(), headers, random_numbers)
            if answer is not None:
                status, content = answer
                if status in (200, 202):
                    with self._changed:
                        sent.answers.add(json.loads(content)["id"])
                        self.acknowledged += 1
                        self._changed.notify_all()
                    return
                if status != 503:
                    self.errors.append((sent.token, status, content))
                    return
                sent.unknown += 1    # it may have been committed before the database went away
            elif not sent.is_repeatable and sent.unknown:
                return               # unknown, and sending again could create a second event
            self._stopping.wait(RETRY_PAUSE_SECONDS)
            if self._stopping.is_set() and not sent.is_repeatable and sent.unknown:
                return

    def _send(self, sent, body, headers, random_numbers):
        """(status, body), or None without a response."""
        addresses = self.addresses()
        if not addresses:
            return None
        host, _, port = random_numbers.choice(addresses).rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=ANSWER_SECONDS)
        try:
            connection.connect()
        except OSError:
            sent.refused += 1
            return None
        sent.sends += 1
        try:
            connection.request("POST", f"/v1/tenants/{sent.tenant}/events", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            sent.unknown += 1
            return None
        finally:
            connection.close()
