"""What every hostile test has: a node, a healthy tenant that goes on publishing, and a receiver that looks at every byte."""

import threading

import pytest

from harness.strict_receiver import StrictReceiver

PUBLISH_INTERVAL_SECONDS = 0.1
DRAIN_SECONDS = 90


class Scene:
    """A node under attack. finish() asserts that no other tenant was affected."""

    def __init__(self, node):
        self.node, self.api = node, node.api
        self.receiver = StrictReceiver()
        self.published = []
        self.refusals = []       # the responses that the healthy tenant got instead of 202
        self._stopping = threading.Event()
        self._hook = self.receiver.hook()
        self.api.create_tenant("healthy")
        self._hook.secrets.append(self.api.create_endpoint("healthy", self._hook.url)["secret"])
        self._key = self.api.post("/v1/keys", {"role": "publisher", "tenant_id": "healthy"}).expect(201)["key"]
        self._thread = threading.Thread(target=self._publish, daemon=True)
        self._thread.start()

    def _publish(self):
        api = self.api.as_key(self._key)
        while not self._stopping.wait(PUBLISH_INTERVAL_SECONDS):
            try:
                answer = api.exchange("POST", "/v1/tenants/healthy/events", {"type": "invoice.paid", "data": {"n": len(self.published)}})
            except OSError as error:
                self.refusals.append(repr(error))
                continue
            if answer.status == 202:
                self.published.append(answer.json["id"])
            else:
                self.refusals.append((answer.status, answer.body))

    def hostile_tenant(self, name, is_plain=True):
        """A tenant with an endpoint that gets everything; the requests that arrive there are checked as well."""
        self.api.create_tenant(name)
        hook = self.receiver.hook(is_plain)
        created = self.api.create_endpoint(name, hook.url)
        if is_plain:
            hook.secrets.append(created["secret"])
        return hook

    def finish(self):
        self._stopping.set()
        self._thread.join(60)
        assert self.node.process.poll() is None, f"the node ended: {self.node.describe()}"
        assert not self.refusals, f"{len(self.refusals)} refusals of the healthy tenant: {self.refusals[:3]}"
        assert self.published, "the healthy tenant published nothing"
        self._hook.wait_for(self.published, DRAIN_SECONDS)
        assert not self.receiver.violations, self.receiver.violations[:5]
        assert not self.node.text, f"lines that are no log: {self.node.text[-5:]}"
        assert self.node.stop() == 0, self.node.describe()

    def close(self):
        self._stopping.set()
        self.receiver.close()


@pytest.fixture
def scene(start_node, database_url):
    made = Scene(start_node(database_url=database_url))
    yield made
    made.close()
