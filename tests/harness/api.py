"""A small client of the HTTP API."""

import dataclasses
import http.client
import json
import urllib.parse

from harness.openapi import Document


@dataclasses.dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    def expect(self, *statuses):
        assert self.status in statuses, f"{self.status}: {self.body.decode(errors='replace')}"
        return self.json if self.body else None


class Judge:
    """Every response is validated against the OpenAPI document: one that it does not describe fails the test that got it."""

    is_asked = False  # not where nodes are killed: asking for the document could fail a call that went well
    document = None   # read from the first node that responds

    @classmethod
    def look(cls, api, method, path, answer):
        if cls.document is None:
            cls.document = Document(api.exchange("GET", "/openapi.json").json)
        operation = cls.document.operation_of(method, path)
        if operation is None or operation.streams() or answer.status == 405:  # a role that a node does not have
            return
        wrong = operation.judge(answer)
        assert not wrong, "the document says otherwise: " + "\n".join(wrong)


class Api:
    def __init__(self, url, key):
        self.url, self.key = url, key
        self.source = None  # the address that requests come from; None: whatever the system takes
        self._target = urllib.parse.urlsplit(url)

    def as_key(self, key):
        return Api(self.url, key)

    def call(self, method, path, body=None, headers=None, timeout=60):
        """`body` is bytes as they are, or something to be sent as JSON."""
        answer = self.exchange(method, path, body, headers, timeout)
        if Judge.is_asked:
            Judge.look(self, method, path, answer)
        return answer

    def exchange(self, method, path, body=None, headers=None, timeout=60):
        source = None if self.source is None else (self.source, 0)
        connection = http.client.HTTPConnection(self._target.hostname, self._target.port, timeout, source)
        try:
            sent = dict(headers or {})
            if self.key is not None:
                sent.setdefault("authorization", f"Bearer {self.key}")
            if body is not None:
                sent.setdefault("content-type", "application/json")
                body = body if isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path, **more):
        return self.call("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.call("POST", path, {} if body is None else body, **more)

    # ── what most tests do ──

    def create_tenant(self, tenant, **fields):
        return self.post("/v1/tenants", {"id": tenant, **fields}).expect(200, 201)

    def create_endpoint(self, tenant, url, event_types=("*",), **fields):
        body = {"url": url, "event_types": list(event_types), **fields}
        return self.post(f"/v1/tenants/{tenant}/endpoints", body).expect(201)

    def endpoint(self, tenant, endpoint):
        return self.get(f"/v1/tenants/{tenant}/endpoints/{endpoint}").expect(200)

    def publish(self, tenant, event_type="invoice.paid", data=None, headers=None, **fields):
        body = {"type": event_type, "data": {} if data is None else data, **fields}
        return self.post(f"/v1/tenants/{tenant}/events", body, headers=headers).expect(200, 202)
