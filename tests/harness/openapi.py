"""Walks an OpenAPI 3.1 document: operations, their schemas, and validation of responses against them (python3-jsonschema)."""

import datetime
import json
import re

import jsonschema

FORMATS = jsonschema.FormatChecker()


@FORMATS.checks("date-time", raises=ValueError)
def is_time(value):
    """RFC 3339 in UTC: the format of every time in a response."""
    if isinstance(value, str):
        if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z", value):
            raise ValueError(value)
        datetime.datetime.fromisoformat(value.removesuffix("Z").split(".")[0])
    return True


METHODS = ("get", "put", "post", "patch", "delete")


class Document:
    def __init__(self, document):
        self.document = document
        # References are into the document itself.
        self.resolver = jsonschema.RefResolver("", document)
        self._operations = [Operation(self, method, path, item[method]) for path, item in document["paths"].items()
                            for method in METHODS if method in item]

    def at(self, value):
        """What a reference stands for."""
        while isinstance(value, dict) and "$ref" in value:
            value = self.resolver.resolve(value["$ref"])[1]
        return value

    def operations(self):
        return self._operations

    def operation_of(self, method, target):
        """The operation that a request is for, or None."""
        path = target.split("?")[0]
        fitting = [one for one in self.operations() if one.method == method.lower() and one.pattern.fullmatch(path)]
        return min(fitting, key=lambda one: one.path.count("{"), default=None)

    def find(self, operation_id):
        return next(operation for operation in self.operations() if operation.id == operation_id)

    def violations(self, schema, value):
        validator = jsonschema.Draft202012Validator(schema, resolver=self.resolver,
                                                    format_checker=FORMATS)
        return [f"/{'/'.join(map(str, error.path))}: {error.message}" for error in validator.iter_errors(value)]


class Operation:
    def __init__(self, document, method, path, fields):
        self.document, self.method, self.path, self.fields = document, method, path, fields
        self.id = fields["operationId"]
        self.access = fields["x-access"]
        self.pattern = re.compile(re.sub(r"{\w+(\*?)}", lambda match: ".+" if match[1] else "[^/]+",
                                         path.replace(".", r"\.")))

    def __repr__(self):
        return f"{self.method} {self.path}"

    def parameters(self, where):
        """Name to parameter, of those in `where`: path, query or header."""
        all_of_them = map(self.document.at, self.fields.get("parameters", []))
        return {parameter["name"]: parameter for parameter in all_of_them if parameter["in"] == where}

    def streams(self):
        """Its successful response does not end."""
        return "text/event-stream" in self.fields["responses"].get("200", {}).get("content", {})

    def target(self, values):
        return re.sub(r"{(\w+)\*?}", lambda match: values[match[1]], self.path)

    def json_body(self):
        """How a body in JSON looks, or None: there is none, or it is something else."""
        return self.fields.get("requestBody", {"content": {}})["content"].get("application/json")

    def body_schema(self):
        return self.json_body()["schema"] if self.json_body() else None

    def example_body(self):
        """The example of the request's body, or None."""
        media = self.json_body()
        if media is None:
            return None
        if "example" in media:
            return media["example"]
        return self.document.at(media["schema"]).get("examples", [None])[0]

    def judge(self, answer):
        """The errors in a response, as a list; empty if the document allows it."""
        if str(answer.status) not in self.fields["responses"]:
            return [f"{self}: status {answer.status} is not documented: {answer.body[:300]!r}"]
        response = self.document.at(self.fields["responses"][str(answer.status)])
        wrong = []
        content = response.get("content", {})
        given = answer.headers.get("content-type", "").split(";")[0]
        if not content:
            return [f"{self}: {answer.status} has a body"] if answer.body else []
        if given not in content:
            return [f"{self}: {answer.status} is {given!r}, not one of {list(content)}"]
        if given.endswith("/json") or given.endswith("+json"):
            wrong = self.document.violations(content[given]["schema"], json.loads(answer.body))
        if answer.status >= 400 and given == "application/problem+json":
            problem = json.loads(answer.body)
            if problem["status"] != answer.status:
                wrong.append("the problem's status is another")
            if answer.status == 422 and not problem.get("errors") and "detail" not in problem:
                wrong.append("422 without saying what is wrong")
        return [f"{self}: {answer.status}: {one}" for one in wrong]
