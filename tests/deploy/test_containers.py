"""The files for Docker and Kubernetes: no engine runs here, so only their structure is checked."""

import re

import pytest
import yaml

from harness.documents import ROOT

DOCKER = ROOT / "deploy" / "docker"
MANIFESTS = list(yaml.safe_load_all((ROOT / "deploy" / "kubernetes" / "postrider.yaml").read_text()))
SETTINGS = (ROOT / "docs" / "reference" / "settings.md").read_text()


def check_settings(names):
    for name in names:
        setting = name.removeprefix("POSTRIDER_").removesuffix("_FILE").lower()
        assert f"| `{setting}` |" in SETTINGS, name


def test_the_dockerfile_is_in_order():
    text = re.sub(r"\\\n", " ", (DOCKER / "Dockerfile").read_text())
    words = [line.split()[0] for line in text.splitlines() if line and not line.startswith(("#", " "))]
    assert set(words) <= {"ARG", "FROM", "COPY", "RUN", "USER", "WORKDIR", "ENV", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
    assert words.index("FROM") < words.index("RUN") < words.index("USER") < words.index("ENTRYPOINT")
    assert "rm -rf" in text and "/etc/postrider/master.key" in text  # an image must not contain a key
    check_settings(re.findall(r"POSTRIDER_\w+", text))


def test_the_compose_file_has_a_database_and_two_nodes():
    compose = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    services = compose["services"]
    assert set(services) == {"postgres", "node-1", "node-2"}
    for name in ("node-1", "node-2"):
        node = services[name]
        assert node["depends_on"]["postgres"]["condition"] == "service_healthy"
        assert set(node["secrets"]) <= set(compose["secrets"])
        check_settings(node["environment"])
        for value in node["environment"].values():
            assert value.removeprefix("/run/secrets/") in node["secrets"]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: manifest["kind"])
def test_manifests_have_kind_version_and_name(manifest):
    assert manifest["apiVersion"] and manifest["kind"] and manifest["metadata"]["name"] == "postrider"


def test_manifests_belong_together():
    by_kind = {manifest["kind"]: manifest for manifest in MANIFESTS}
    deployment = by_kind["Deployment"]["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"].items() <= labels.items()
    assert by_kind["Service"]["spec"]["selector"].items() <= labels.items()
    assert by_kind["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"].items() <= labels.items()
    pod = deployment["template"]["spec"]
    [container] = pod["containers"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    check_settings(variable["name"] for variable in container["env"])
    assert pod["terminationGracePeriodSeconds"] > 30
    ports = {port["name"] for port in container["ports"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] in ports
    paths = [path["path"] for rule in by_kind["Ingress"]["spec"]["rules"] for path in rule["http"]["paths"]]
    assert "/metrics" not in paths and "/" not in paths
