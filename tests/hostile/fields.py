"""The fields of a request's body, as the OpenAPI document describes them, and documents with one of them replaced."""

import copy

DEPTH_MAX = 3


def properties(document, schema):
    """Name to schema, over references and combinations."""
    schema = document.at(schema)
    if not isinstance(schema, dict):
        return {}
    found = dict(schema.get("properties", {}))
    for way in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(way, []):
            found.update(properties(document, part))
    return found


def items(document, schema):
    schema = document.at(schema)
    parts = [schema, *(document.at(part) for way in ("allOf", "anyOf", "oneOf") for part in schema.get(way, []))]
    return next((part["items"] for part in parts if isinstance(part.get("items"), dict)), None)


def places(document, schema, depth=0):
    """Where a body has fields: tuples of names, with 0 for the first element of an array."""
    if depth == DEPTH_MAX:
        return
    for name, below in properties(document, schema).items():
        yield (name,)
        yield from ((name, *rest) for rest in places(document, below, depth + 1))
    below = items(document, schema)
    if below is not None:
        yield (0,)
        yield from ((0, *rest) for rest in places(document, below, depth + 1))


def replaced(body, place, value):
    """A copy of the body with the value at that place; what is missing above it is made."""
    if not place:
        return value
    step, *rest = place
    if isinstance(step, int):
        made = copy.deepcopy(body) if isinstance(body, list) and body else [None]
    else:
        made = copy.deepcopy(body) if isinstance(body, dict) else {}
        made.setdefault(step, None)
    made[step] = replaced(made[step], rest, value)
    return made
