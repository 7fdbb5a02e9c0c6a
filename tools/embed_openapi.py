#!/usr/bin/env python3
"""Puts the OpenAPI document together from its fragments, and embeds it.

    embed_openapi.py FOLDER VERSION OUT     FOLDER/*.json as one document in a generated C++ header
    embed_openapi.py FOLDER VERSION -       the document on standard output

FOLDER/_document.json is the frame. Every other file is one area:

    {"tag": {"name", "description"}, "paths": {…}, "webhooks": {…}, "components": {"schemas": {…}, …}}

So that a fragment says only what is particular to it, each operation gets, unless it has its own: the tag of its file,
the parameters of its path from components.parameters, and the answers that every such call can give (400 and 503
always, 401, 403 and 429 where a key is needed, 404 where the path names something, 413, 415 and 422 where there is a
body, 422 where there are query parameters, 412 and 304 where If-Match or If-None-Match is one of its headers). What is
wrong with a fragment stops the build.
"""

import json
import pathlib
import re
import sys

METHODS = ("get", "put", "post", "patch", "delete")
ACCESS = ("everyone", "authenticated", "read", "publish", "operate", "operators", "administer")
WRAP = 4000  # characters of one string literal


class DocumentError(Exception):
    pass


def merge_components(whole, part, file):
    for kind, named in part.items():
        known = whole.setdefault(kind, {})
        for name, value in named.items():
            if name in known:
                raise DocumentError(f"{file}: components.{kind}.{name} is there twice")
            known[name] = value


def usual_answers(path, operation, parameters):
    """Status to component, for what was not said about an operation. `parameters` are components.parameters."""
    named = [parameters[given["$ref"].rsplit("/", 1)[-1]] if "$ref" in given else given
             for given in operation.get("parameters", [])]
    headers = {parameter["name"] for parameter in named if parameter["in"] == "header"}
    # Before anybody looks at what is asked for: a path that does not decode, and too many connections.
    answers = {"400": "Malformed", "503": "Unavailable"}
    if operation["x-access"] != "everyone":
        answers |= {"401": "Unauthorized", "403": "Forbidden", "429": "TooFast"}
        if "{" in path:
            answers["404"] = "NotFound"
    if "requestBody" in operation:
        answers |= {"413": "TooLarge", "415": "NotJson", "422": "Invalid"}
    if any(parameter["in"] == "query" for parameter in named):
        answers["422"] = "Invalid"
    if "If-Match" in headers:
        answers["412"] = "PreconditionFailed"
    if "If-None-Match" in headers:
        answers["304"] = "NotModified"
    return answers


def complete(path, operation, tag, parameters, where):
    for wanted in ("operationId", "summary", "x-access", "responses"):
        if wanted not in operation:
            raise DocumentError(f"{where}: no {wanted}")
    if operation["x-access"] not in ACCESS:
        raise DocumentError(f"{where}: x-access must be one of {', '.join(ACCESS)}")
    operation.setdefault("tags", [tag])
    if operation["x-access"] == "everyone":
        operation["security"] = []
    answers = usual_answers(path, operation, parameters)
    given = operation.setdefault("parameters", [])
    names = {parameter.get("name") or parameter["$ref"].rsplit("/", 1)[-1] for parameter in given}
    for name in reversed(re.findall(r"{(\w+)\*?}", path)):
        if name not in names:
            if name not in parameters:
                raise DocumentError(f"{where}: no components.parameters.{name}")
            given.insert(0, {"$ref": f"#/components/parameters/{name}"})
    for status, name in answers.items():
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
            raise DocumentError(f"nothing is at {reference}")
        at = at[part]
    return at


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
                    raise DocumentError(f"{file.name}: {method} {path} is there twice, or is no method")
                known[method] = operation
                tag_of[path, method] = part["tag"]["name"], file.name
        merge_components(document["components"], part.get("components", {}), file.name)

    seen = set()
    for (path, method), (tag, file) in tag_of.items():
        operation = document["paths"][path][method]
        complete(path, operation, tag, document["components"]["parameters"], f"{file}: {method} {path}")
        if operation["operationId"] in seen:
            raise DocumentError(f"{file}: {operation['operationId']} is there twice")
        seen.add(operation["operationId"])
    for reference in references(document):
        resolve(document, reference)
    order = document.pop("x-tag-order", [])
    document["tags"].sort(key=lambda tag: order.index(tag["name"]) if tag["name"] in order else len(order))
    return document


def header(text):
    pieces = [text[at : at + WRAP] for at in range(0, len(text), WRAP)]
    literals = "\n".join(f'    R"openapi({piece})openapi"' for piece in pieces)
    return (
        "// Made by tools/embed_openapi.py.\n#pragma once\n\n#include <string_view>\n\n"
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
