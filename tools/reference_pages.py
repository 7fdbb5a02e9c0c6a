"""Reference pages of the docs site that are written from the code: the API from its OpenAPI document, and the SQL that
applications, consumers and support may use from sql/schema.sql."""

import json
import re
import subprocess
import sys

import tree

NOTE = "<!-- Written from the code. Do not edit. -->\n"
METHODS = ("get", "put", "post", "patch", "delete")


def cell(text):
    return re.sub(r"\s+", " ", text or "").replace("|", "\\|").strip()


# ── the API ──────────────────────────────────────────────────────────────────────────────────────────────────


def openapi(version):
    done = subprocess.run([sys.executable, "tools/embed_openapi.py", "src/postrider/api/openapi", version, "-"],
                          cwd=tree.ROOT, check=True, text=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


class Api:
    def __init__(self, document):
        self.document = document

    def resolve(self, thing):
        while "$ref" in thing:
            found = self.document
            for word in thing["$ref"].removeprefix("#/").split("/"):
                found = found[word]
            thing = found
        return thing

    def type_of(self, schema):
        if "$ref" in schema:
            return schema["$ref"].rsplit("/", 1)[-1]
        kind = schema.get("type", "any")
        if kind == "array":
            return f"{self.type_of(schema.get('items', {}))}[]"
        return " or ".join(kind) if isinstance(kind, list) else kind

    def fields(self, schema):
        """Rows of an object's fields: name, type, meaning."""
        required = schema.get("required", [])
        for name, field in schema.get("properties", {}).items():
            mark = " (required)" if name in required else ""
            yield f"| `{name}` | {self.type_of(field)} | {cell(self.resolve(field).get('description', ''))}{mark} |"

    def operation(self, method, path, found):
        lines = [f"### {found['summary']} {{#{found['operationId']}}}", "", f"`{method.upper()} {path}`", ""]
        if found.get("description"):
            lines += [found["description"], ""]
        parameters = [self.resolve(each) for each in found.get("parameters", [])]
        if parameters:
            lines += ["| parameter | in | meaning |", "|---|---|---|"]
            lines += [f"| `{each['name']}` | {each['in']} | {cell(each.get('description'))} |" for each in parameters] + [""]
        body = self.resolve(found.get("requestBody", {})).get("content", {}).get("application/json")
        if body:
            schema = self.resolve(body["schema"])
            rows = list(self.fields(schema))
            if rows:
                lines += ["| field of the body | type | meaning |", "|---|---|---|", *rows, ""]
            if "example" in body:
                lines += ["```json", json.dumps(body["example"], indent=2, ensure_ascii=False), "```", ""]
        lines += ["| status | meaning |", "|---|---|"]
        lines += [f"| {status} | {cell(self.resolve(each)['description'])} |" for status, each in found["responses"].items()]
        return [*lines, ""]

    def page(self):
        info = self.document["info"]
        lines = ["# API", "", NOTE, info.get("description", ""), ""]
        by_tag = {tag["name"]: [] for tag in self.document.get("tags", [])}
        for path, operations in self.document["paths"].items():
            for method in METHODS:
                if method in operations:
                    found = operations[method]
                    by_tag.setdefault(found["tags"][0], []).extend(self.operation(method, path, found))
        for tag in self.document.get("tags", []):
            lines += [f"## {tag['name']}", "", tag.get("description", ""), "", *by_tag[tag["name"]]]
        return "\n".join(lines) + "\n"


# ── SQL ──────────────────────────────────────────────────────────────────────────────────────────────────────

ROLES = {
    "postrider_publisher": "Applications that publish",
    "postrider_consumer": "Consumers of the inbox",
    "postrider_support": "Support: read, replay, pause",
}
INTERNAL = {"outbox_write"}  # called by publish() and emit()


def granted(schema):
    """role → names of the functions that it may call."""
    found = {role: set() for role in ROLES}
    for names, role in re.findall(r"grant execute on function\s+([^;]*?)\s+to (postrider_\w+)", schema):
        if role in found:
            found[role] |= set(re.findall(r"postrider\.(\w+)", names)) - INTERNAL
    listed = re.search(r"p\.proname in \(([^)]*)\)", schema)
    found["postrider_support"] |= set(re.findall(r"'(\w+)'", listed[1])) if listed else set()
    return found


def signatures(schema):
    for name, arguments, result in re.findall(r"^CREATE FUNCTION postrider\.(\w+)\((.*)\) RETURNS (.*)$", schema, re.MULTILINE):
        short = arguments.replace("timestamp with time zone", "timestamptz")
        short = re.sub(r"DEFAULT (NULL)::[\w ]+(?=,|$)", r"default null", short)
        yield name, f"{name}({short}) → {result.replace('timestamp with time zone', 'timestamptz')}"


def split_columns(text):
    depth, part = 0, ""
    for sign in text:
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            yield part
            part = ""
        else:
            part += sign
    yield part


def views(schema):
    for name, body in re.findall(r"^CREATE VIEW postrider\.(webhook_\w+) AS\n(.*?);$", schema, re.MULTILINE | re.DOTALL):
        columns = re.search(r"SELECT (?:DISTINCT (?:ON \(.*?\) )?)?(.*?)\n\s+FROM ", re.sub(r"^\s*WITH .*?\n \)\n", "", body, flags=re.DOTALL), re.DOTALL)
        names = [re.findall(r"\"?(\w+)\"?\s*$", each.strip())[0] for each in split_columns(columns[1])] if columns else []
        yield name, names


def sql_page():
    schema = tree.read("sql/schema.sql")
    lines = ["# SQL", "", NOTE, "Functions and views of the schema `postrider` that are meant for others, by the role that may use "
             "them. Everything else in the schema may change without notice.", ""]
    known = list(signatures(schema))
    for role, names in granted(schema).items():
        lines += [f"## {ROLES[role]}: `{role}`", "", "```text"]
        lines += [signature for name, signature in known if name in names] + ["```", ""]
    lines += ["## Views for support", "", "| view | columns |", "|---|---|"]
    lines += [f"| `{name}` | {', '.join(f'`{column}`' for column in columns)} |" for name, columns in views(schema)]
    return "\n".join(lines) + "\n"
