#!/usr/bin/env python3
"""Merges the fragments of the OpenAPI document, and embeds it.

    embed_openapi.py FOLDER VERSION OUT     FOLDER/*.json as one document in a generated C++ header
    embed_openapi.py FOLDER VERSION -       the document on standard output

FOLDER/_document.json is the frame. Every other file is one area:

    {"tag": {"name", "description"}, "paths": {…}, "webhooks": {…}, "components": {"schemas": {…}, …}}

A fragment contains only what is specific to it. Unless it has its own, each operation gets the tag of its file, the
parameters of its path from components.parameters, and the usual error responses: 400 and 503 always; 401, 403 and 429
if a key is needed; 404 if the path has parameters; 413, 415 and 422 if there is a body; 422 if there are query
parameters; 412 and 304 if If-Match or If-None-Match is one of its headers.

Every JSON body gets an example: its own `example`, or that of its schema. `x-example` changes single fields of one:

    {"schema": {"$ref": "…/Endpoint"}, "x-example": {"status": "paused"}}          of a body: the schema's example
    "CreatedEndpoint": {…, "x-example-of": "Endpoint", "x-example": {"secret": "…"}}  of a schema: another schema's

Without `examples`, the example of a schema is made of the examples of its required properties. A body without an
example, or any other error in a fragment, stops the build.
"""

import json
import pathlib
import re
import sys

METHODS = ("get", "put", "post", "patch", "delete")
ACCESS = ("everyone", "authenticated", "read", "publish", "customer", "operate", "operators", "administer")
WRAP = 4000  # characters of one string literal


class DocumentError(Exception):
    pass


def merge_components(whole, part, file):
    for kind, named in part.items():
        known = whole.setdefault(kind, {})
        for name, value in named.items():
            if name in known:
                raise DocumentError(f"{file}: components.{kind}.{name} is defined twice")
            known[name] = value


def usual_responses(path, operation, parameters):
    """The error responses that every operation like this one has, as status to component."""
    named = [parameters[given["$ref"].rsplit("/", 1)[-1]] if "$ref" in given else given
             for given in operation.get("parameters", [])]
    headers = {parameter["name"] for parameter in named if parameter["in"] == "header"}
    # Before the route is known: a path that cannot be decoded, and too many connections.
    responses = {"400": "Malformed", "503": "Unavailable"}
    if operation["x-access"] != "everyone":
        responses |= {"401": "Unauthorized", "403": "Forbidden", "429": "TooFast"}
        if "{" in path:
            responses["404"] = "NotFound"
    if "requestBody" in operation:
        responses |= {"413": "TooLarge", "415": "NotJson", "422": "Invalid"}
    if any(parameter["in"] == "query" for parameter in named):
        responses["422"] = "Invalid"
    if "If-Match" in headers:
        responses["412"] = "PreconditionFailed"
    if "If-None-Match" in headers:
        responses["304"] = "NotModified"
    return responses


def complete(path, operation, tag, parameters, where):
    for wanted in ("operationId", "summary", "x-access", "responses"):
        if wanted not in operation:
            raise DocumentError(f"{where}: {wanted} is missing")
    if operation["x-access"] not in ACCESS:
        raise DocumentError(f"{where}: x-access must be one of {', '.join(ACCESS)}")
    operation.setdefault("tags", [tag])
    if operation["x-access"] == "everyone":
        operation["security"] = []
    responses = usual_responses(path, operation, parameters)
    given = operation.setdefault("parameters", [])
    names = {parameter.get("name") or parameter["$ref"].rsplit("/", 1)[-1] for parameter in given}
    for name in reversed(re.findall(r"{(\w+)\*?}", path)):
        if name not in names:
            if name not in parameters:
                raise DocumentError(f"{where}: components.parameters.{name} is missing")
            given.insert(0, {"$ref": f"#/components/parameters/{name}"})
    for status, name in responses.items():
        operation["responses"].setdefault(status, {"$ref": f"#/components/responses/{name}"})
    operation["responses"] = dict(sorted(operation["responses"].items()))


def references(value):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for member in value.values():
            yield from references(member)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def resolve(document, reference):
    at = document
    for part in reference.removeprefix("#/").split("/"):
        if not isinstance(at, dict) or part not in at:
            raise DocumentError(f"{reference} does not exist")
        at = at[part]
    return at


# ── examples ──


def schema_example(document, schema):
    """The example of a schema; None if it has none."""
    if "$ref" in schema:
        schema = resolve(document, schema["$ref"])
    if "examples" in schema:
        return schema["examples"][0]
    if "x-example-of" in schema:
        other = schema_example(document, document["components"]["schemas"][schema["x-example-of"]])
        return other | schema.get("x-example", {})
    if "const" in schema:
        return schema["const"]
    if schema.get("type") == "array" and "items" in schema:
        item = schema_example(document, schema["items"])
        return None if item is None else [item]
    if schema.get("type") == "object" and schema.get("required"):
        members = {name: schema_example(document, schema["properties"].get(name, {})) for name in schema["required"]}
        return None if None in members.values() else members
    return None


def add_body_example(document, media, where):
    """Gives a JSON body its example."""
    if "example" not in media:
        example = schema_example(document, media["schema"])
        if example is None:
            raise DocumentError(f"{where}: no example")
        media["example"] = {**example, **media["x-example"]} if "x-example" in media else example
    media.pop("x-example", None)


def json_bodies(operation):
    """What an operation sends and returns in JSON, as (name, media type object)."""
    bodies = {"request": operation.get("requestBody", {})} | operation["responses"]
    for name, body in bodies.items():
        if "application/json" in body.get("content", {}):
            yield name, body["content"]["application/json"]


def add_examples(document):
    items = [*document["paths"].items(), *document["webhooks"].items()]
    for path, item in items:
        for method, operation in item.items():
            for name, media in json_bodies(operation):
                add_body_example(document, media, f"{method} {path}: {name}")
    for schema in document["components"]["schemas"].values():
        if "x-example-of" in schema:
            schema["examples"] = [schema_example(document, schema)]
            del schema["x-example-of"]
            schema.pop("x-example", None)


def merge(folder, version):
    document = json.loads((folder / "_document.json").read_text(encoding="utf-8"))
    document["info"]["version"] = version
    document |= {"tags": [], "paths": {}, "webhooks": {}}
    tag_of = {}
    for file in sorted(folder.glob("*.json")):
        if file.name == "_document.json":
            continue
        try:
            part = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise DocumentError(f"{file.name}: {error}") from None
        document["tags"].append(part["tag"])
        document["webhooks"] |= part.get("webhooks", {})
        for path, item in part["paths"].items():
            known = document["paths"].setdefault(path, {})
            for method, operation in item.items():
                if method not in METHODS or method in known:
                    raise DocumentError(f"{file.name}: {method} {path} is defined twice, or is not a method")
                known[method] = operation
                tag_of[path, method] = part["tag"]["name"], file.name
        merge_components(document["components"], part.get("components", {}), file.name)

    seen = set()
    for (path, method), (tag, file) in tag_of.items():
        operation = document["paths"][path][method]
        complete(path, operation, tag, document["components"]["parameters"], f"{file}: {method} {path}")
        if operation["operationId"] in seen:
            raise DocumentError(f"{file}: {operation['operationId']} is defined twice")
        seen.add(operation["operationId"])
    for reference in references(document):
        resolve(document, reference)
    add_examples(document)
    order = document.pop("x-tag-order", [])
    document["tags"].sort(key=lambda tag: order.index(tag["name"]) if tag["name"] in order else len(order))
    return document


def header(text):
    pieces = [text[at : at + WRAP] for at in range(0, len(text), WRAP)]
    literals = "\n".join(f'    R"openapi({piece})openapi"' for piece in pieces)
    return (
        "// Generated by tools/embed_openapi.py.\n#pragma once\n\n#include <string_view>\n\n"
        "namespace postrider::api {\n\ninline constexpr std::string_view openapi_json =\n"
        f"{literals};\n\n}}  // namespace postrider::api\n"
    )


def main():
    folder, version, out = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    try:
        text = json.dumps(merge(folder, version), ensure_ascii=False, separators=(",", ":"))
    except DocumentError as error:
        sys.exit(f"openapi: {error}")
    if out == "-":
        print(text)
    else:
        pathlib.Path(out).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(out).write_text(header(text), encoding="utf-8")


if __name__ == "__main__":
    main()
