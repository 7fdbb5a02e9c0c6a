"""`postrider apply` and `postrider export`: configuration as code."""

import json

import pytest

VARIABLES = {"MANIFEST_SECRET": "whsec_" + "c2VjcmV0" * 4, "MANIFEST_OTHER": "whsec_" + "b3RoZXIh" * 4,
             "MANIFEST_TOKEN": "Bearer abc", "MANIFEST_STRIPE": "whsec_of_stripe"}

MANIFEST = """\
event_types:
- name: {name}.paid
  description: An invoice was paid
  validation: warn
  versions:
  - {{version: "1", example: {{total: 12}}}}
tenants:
- id: {name}
  name: Manifest
  max_in_flight: 7
  contacts: [ops@example.com]
  endpoints:
  - id: orders
    url: {url}
    event_types: ["{name}.*", order.created]
    timeout_ms: 5000
    retry_schedule: [5, 60]
    headers: {{x-team: billing, authorization: env:MANIFEST_TOKEN}}
    secret: env:MANIFEST_SECRET
sources:
- id: {name}-stripe
  provider: stripe
  secret: env:MANIFEST_STRIPE
"""


@pytest.fixture
def node(start_node, database_url):
    """One that may read endpoints' secrets from its environment."""
    return start_node(database_url=database_url, secret_environment_prefix="MANIFEST_", variables=VARIABLES)


@pytest.fixture
def manifest(tmp_path, hook, request):
    """A file, written from the template with some text replaced."""
    name = f"manifest-{abs(hash(request.node.name)) % 10**8}"
    path = tmp_path / "postrider.yaml"

    def write(*replacements):
        text = MANIFEST.format(name=name, url=hook.url)
        for before, after in replacements:
            assert before in text
            text = text.replace(before, after)
        path.write_text(text)
        return str(path)

    write.tenant = name
    return write


def applied(cli, path, *options):
    done = cli("apply", "-f", path, "--json", *options, more=VARIABLES)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def counts(result):
    return result["created"], result["updated"], result["unchanged"]


def test_a_second_time_changes_nothing(cli, node, manifest):
    first = applied(cli, manifest())
    assert counts(first) == (4, 0, 0)
    assert counts(applied(cli, manifest())) == (0, 0, 4)
    endpoint = node.api.get(f"/v1/tenants/{manifest.tenant}/endpoints/orders").json
    assert endpoint["timeout_ms"] == 5000 and endpoint["headers"] == {"x-team": "***", "authorization": "***"}
    [secret] = node.api.get(f"/v1/tenants/{manifest.tenant}/endpoints/orders/secrets").json["data"]
    assert secret["reference"] == "env:MANIFEST_SECRET"


def test_only_what_differs_is_changed_and_shown(cli, node, manifest):
    applied(cli, manifest())
    node.api.call("PATCH", f"/v1/tenants/{manifest.tenant}/endpoints/orders", {"description": "set by the customer"})
    path = manifest(("timeout_ms: 5000", "timeout_ms: 8000"), ("validation: warn", "validation: reject"),
                    ("env:MANIFEST_SECRET", "env:MANIFEST_OTHER"))
    shown = cli("apply", "-f", path, more=VARIABLES).stdout
    assert f"~ endpoint {manifest.tenant}/orders\n    timeout_ms: 5000 → 8000\n" in shown
    assert "    secret: env:MANIFEST_SECRET → env:MANIFEST_OTHER\n" in shown
    assert "    validation: warn → reject\n" in shown and "+ " not in shown
    endpoint = node.api.get(f"/v1/tenants/{manifest.tenant}/endpoints/orders").json
    assert (endpoint["timeout_ms"], endpoint["description"]) == (8000, "set by the customer")
    assert len(node.api.get(f"/v1/event-types/{manifest.tenant}.paid").json["versions"]) == 1
    assert counts(applied(cli, path)) == (0, 0, 4)


def test_a_dry_run_changes_nothing(cli, node, manifest):
    assert counts(applied(cli, manifest(), "--dry-run")) == (4, 0, 0)
    assert node.api.get(f"/v1/tenants/{manifest.tenant}").status == 404


def test_what_is_exported_can_be_applied(cli, manifest, tmp_path):
    applied(cli, manifest())
    exported = cli("export")
    assert exported.returncode == 0, exported.stderr
    assert f"The custom headers of {manifest.tenant}/orders are not exported" in exported.stderr
    file = tmp_path / "exported.yaml"
    file.write_text(exported.stdout)
    again = applied(cli, str(file))
    assert again["changes"] == [] and again["unchanged"] >= 4
    assert "billing" not in exported.stdout and "env:MANIFEST_SECRET" in exported.stdout
    one = json.loads(cli("export", "--tenant", manifest.tenant, "--json").stdout)
    assert [tenant["id"] for tenant in one["tenants"]] == [manifest.tenant]


@pytest.mark.parametrize("before, after, message", [
    ("tenants:", "tenant:", "`tenant` is not a section"),
    ("env:MANIFEST_SECRET", "whsec_c2VjcmV0c2VjcmV0c2VjcmV0", "a manifest contains no secrets"),
    ("  name: Manifest", "  name: [", "is invalid: line "),
    ("env:MANIFEST_STRIPE", "env:MANIFEST_MISSING", "the variable MANIFEST_MISSING is not set"),
    ("env:MANIFEST_TOKEN", "file:/nowhere/token", "/nowhere/token"),
])
def test_a_mistake_in_the_file_is_named_before_anything_is_changed(cli, node, manifest, before, after, message):
    done = cli("apply", "-f", manifest((before, after)), more=VARIABLES)
    assert done.returncode == 2 and message in done.stderr
    assert node.api.get(f"/v1/tenants/{manifest.tenant}").status == 404


def test_a_rejected_object_is_named_and_the_rest_can_be_applied_later(cli, manifest):
    done = cli("apply", "-f", manifest(("timeout_ms: 5000", "timeout_ms: -1")), more=VARIABLES)
    assert done.returncode != 0 and f"endpoint {manifest.tenant}/orders: " in done.stderr and "timeout_ms" in done.stderr
    assert counts(applied(cli, manifest())) == (2, 0, 2)
