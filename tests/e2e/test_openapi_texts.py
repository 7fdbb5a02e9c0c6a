"""What people read in the OpenAPI document: names of operations, and examples."""

import pytest
from harness.openapi import Document

# What the name of an operation starts with.
VERBS = set("Acknowledge Add Cancel Claim Confirm Create Delete Disable Discard Erase Export Extend Get Import List Pause Publish "
            "Receive Release Replace Replay Request Resume Retry Return Revoke Rotate Search Stream Summarize Test "
            "Unsubscribe Update".split())


@pytest.fixture(scope="module")
def document(node):
    return Document(node.api.get("/openapi.json").expect(200))


def bodies(document):
    """Every JSON body in the document: (name, status or None, media type object)."""
    for operation in document.operations():
        if operation.json_body():
            yield f"{operation}: request", None, operation.json_body()
        for status, response in operation.fields["responses"].items():
            for content_type, media in document.at(response).get("content", {}).items():
                if content_type in ("application/json", "application/problem+json"):
                    yield f"{operation}: {status}", int(status), media


def values(example):
    """Every scalar in an example."""
    if isinstance(example, (dict, list)):
        for item in example.values() if isinstance(example, dict) else example:
            yield from values(item)
    else:
        yield example


def test_every_body_has_an_example_that_matches_its_schema(document):
    wrong = []
    for name, status, media in bodies(document):
        if "example" not in media:
            wrong.append(f"{name}: no example")
            continue
        wrong += [f"{name}: {one}" for one in document.violations(media["schema"], media["example"])]
        if status and status >= 400 and media["example"]["status"] != status:
            wrong.append(f"{name}: the example is a {media['example']['status']}")
    for name, schema in document.document["components"]["schemas"].items():
        for example in schema.get("examples", []):
            wrong += [f"{name}: {one}" for one in document.violations(schema, example)]
    assert not wrong, "\n".join(wrong)


def test_examples_are_realistic(document):
    """No placeholders, and no value that stands there only because it is the smallest allowed one."""
    wrong = [f"{name}: {value!r}" for name, _, media in bodies(document) for value in values(media["example"])
             if value in ("…", "...", 0.001)]
    assert not wrong, "\n".join(wrong)


def example_of(document, operation_id, status="200"):
    return document.find(operation_id).fields["responses"][status]["content"]["application/json"]["example"]


def test_examples_show_what_the_operation_did(document):
    shown = {operation: example_of(document, operation)["status"] for operation in
             ("pause_endpoint", "resume_endpoint", "disable_endpoint", "pause_tenant", "resume_tenant",
              "cancel_delivery", "cancel_replay")}
    assert shown == {"pause_endpoint": "paused", "resume_endpoint": "active", "disable_endpoint": "disabled",
                     "pause_tenant": "paused", "resume_tenant": "active", "cancel_delivery": "canceled",
                     "cancel_replay": "canceled"}
    for operation in document.operations():
        sent = operation.example_body() or {}
        if operation.method == "patch":
            returned = example_of(document, operation.id)
            assert {name: returned[name] for name in sent if name in returned} == sent, operation


def test_operations_have_short_names(document):
    """Titles such as "Pause endpoint": a verb first, no sentence, each one once."""
    names = [operation.fields["summary"] for operation in document.operations()]
    assert [name for name in names if len(name) > 45 or name.endswith(".") or ";" in name or ":" in name] == []
    assert sorted(names) == sorted(set(names))
    verbs = {name.split()[0] for name in names}
    assert verbs <= VERBS, verbs - VERBS
