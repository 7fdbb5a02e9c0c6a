"""Every operation of the OpenAPI document, every parameter and every field of every body, with hostile values."""

import itertools
import json
import pathlib
import sys
import urllib.parse

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from client import Client  # noqa: E402
from fields import places, replaced  # noqa: E402
from harness.hostile import DOCUMENTS, HEADERS, LONG, TEXTS, VALUES, shown, some  # noqa: E402
from harness.node import ADMIN_KEY  # noqa: E402
from harness.openapi import Document  # noqa: E402
from test_openapi import World  # noqa: E402

PROBLEM_MEMBERS = {"type", "title", "status", "detail", "request_id"}
# Of any request, whatever it is for: the document describes them in one place.
OF_THE_CONNECTION = {400, 408, 413, 414, 415, 431}
# Responses that take as long as the caller says, and those without an end.
SHORT = {"claim_messages": {"wait_seconds": 0}}


class Walk:
    """One operation's requests. Each gets its values from another part of the corpus, so that together they use all."""

    def __init__(self, scene, document, operation, number):
        self.scene, self.document, self.operation = scene, document, operation
        self.client = Client(scene.node.address, ADMIN_KEY)
        self.numbers = itertools.count(number * 7)
        self.wrong = []
        self.sent = 0
        self.renew()

    def renew(self):
        self.world = World(self.scene.node, self.scene.receiver.hook(is_plain=False))
        self.values = self.world.values(self.operation)
        self.body = self.world.body(self.operation)
        if self.operation.id in SHORT:
            self.body = {**self.body, **SHORT[self.operation.id]}

    def send(self, what, value, target=None, body=None, fields=()):
        if body is None and self.body is not None:
            body = json.dumps(self.body).encode()
        target = target or self.operation.target(self.values)
        answer = self.client.request(self.operation.method.upper(), target, body, fields)
        self.sent += 1
        for one in self.judge(answer, target):
            self.wrong.append(f"{what} = {shown(value)}: {one}")
        if answer is not None and self.operation.method == "delete" and answer.status < 300:
            self.renew()

    def judge(self, answer, target):
        if answer is None:
            return ["the connection was closed without an answer"]
        if answer.status >= 500 and answer.status != 503:
            return [f"{answer.status}: {answer.body[:300]!r}"]
        # A hostile path may be another operation's, or none.
        operation = self.document.operation_of(self.operation.method, target)
        if operation is self.operation and answer.status not in OF_THE_CONNECTION:
            return operation.judge(answer)
        if answer.status < 400 or answer.headers.get("content-type", "").startswith("text/html"):
            return []
        if answer.headers.get("content-type") != "application/problem+json":
            return [f"{answer.status} is no problem document: {answer.headers}"]
        if not PROBLEM_MEMBERS <= json.loads(answer.body).keys():
            return [f"{answer.status} lacks members: {answer.body[:300]!r}"]
        return []

    def run(self):
        operation = self.operation
        for name in operation.parameters("path"):
            for text in some(TEXTS, next(self.numbers), 10):
                values = {**self.values, name: urllib.parse.quote(text, safe="")}
                self.send(f"path {name}", text, operation.target(values))
        for name in operation.parameters("query"):
            for text in some(TEXTS, next(self.numbers), 10):
                query = "?" + urllib.parse.urlencode({name: text})
                self.send(f"query {name}", text, operation.target(self.values) + query)
        for name in {"authorization", "traceparent", "x-request-id", *operation.parameters("header")}:
            for value in some(HEADERS, next(self.numbers), 6):
                self.send(f"header {name}", value, fields=[(name, value)])
        if operation.json_body() is not None:
            self.run_body()
        self.client.close()

    def run_body(self):
        for place in places(self.document, self.operation.body_schema()):
            for value in some(TEXTS, next(self.numbers), 8) + some(VALUES, next(self.numbers), 5):
                self.send_at(place, value)
        self.send_at(next(iter(places(self.document, self.operation.body_schema())), ()), LONG)
        for document in some(DOCUMENTS, next(self.numbers), 8):
            self.send("body", document, body=document)

    def send_at(self, place, value):
        body = replaced(self.body, place, value)
        if self.operation.id == "claim_messages" and place != ("wait_seconds",) and isinstance(body, dict):
            body["wait_seconds"] = 0
        self.send("/" + "/".join(map(str, place)), value, body=json.dumps(body).encode("utf-8", "surrogatepass"))


def restore(api):
    """What a hostile value that was accepted may have done to all tenants."""
    api.exchange("PATCH", "/v1/brakes", {"pause_all": False, "reason": "restored"})


def walk(scene, operations):
    document = Document(scene.api.get("/openapi.json").expect(200))
    wrong, sent = [], 0
    for number, operation in enumerate(document.operations()):
        if operation.streams() or not operations(number, operation):
            continue
        one = Walk(scene, document, operation, number)
        one.run()
        sent += one.sent
        wrong += [f"{operation}: {what}" for what in one.wrong]
        if operation.id in ("update_brakes", "put_outbox"):
            restore(scene.api)
    assert not wrong, f"{len(wrong)} of {sent} answers:\n" + "\n".join(wrong[:30])
    return sent


@pytest.mark.parametrize("part", range(4))
def test_no_value_in_any_field_harms_the_node_or_others(scene, part):
    assert walk(scene, lambda number, operation: number % 4 == part) > 100
    scene.finish()
