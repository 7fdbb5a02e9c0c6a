"""The API reference at /docs: how it is served, and how it works in a browser."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from harness.npm import npm_install

BROWSER = pathlib.Path(__file__).resolve().parents[1] / "browser"
SECONDS_MAX = 600


def get(node, path):
    return node.api.as_key(None).get(path)


def test_the_front_page_leads_to_the_console(node):
    response = get(node, "/")
    assert (response.status, response.headers["location"]) == (302, "/console")
    assert response.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["/docs", "/docs/"])
def test_the_page_is_served_with_and_without_a_slash(path, node):
    response = get(node, path)
    assert response.status == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert b"API reference" in response.body
    # Absolute, so that both paths find them.
    assert b'src="/docs/docs.js"' in response.body and b'href="/docs/docs.css"' in response.body


def test_every_file_of_the_page_is_served_and_allows_no_other_origin(node):
    document = get(node, "/openapi.json").json
    file = document["paths"]["/docs/{file}"]["get"]["parameters"][0]["schema"]["enum"]
    for path in ["/docs", "/favicon.ico", *(f"/docs/{name}" for name in file)]:
        response = get(node, path)
        assert response.status == 200 and response.body, path
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy and "connect-src 'self'" in policy, path
        assert "unsafe" not in policy and "http" not in policy, path
        assert response.headers["x-content-type-options"] == "nosniff", path
    assert get(node, "/docs/other.js").status == 404


def test_the_icon_is_an_image(node):
    response = get(node, "/favicon.ico")
    assert response.headers["content-type"] == "image/svg+xml"
    assert response.body.startswith(b"<svg ")


def run_samples(samples, node):
    """Creates a tenant with curl, updates it with Node and reads it with Python, as the page shows it."""
    commands = {"curl": ["sh", "-c"], "node": ["node", "--input-type=module", "-e"], "python": [sys.executable, "-c"]}
    environment = {**os.environ, "POSTRIDER_KEY": node.api.key}
    for language, command in commands.items():
        sample = samples[language].replace("acme", "sampled")
        ran = subprocess.run([*command, sample], env=environment, capture_output=True, text=True, timeout=SECONDS_MAX)
        assert ran.returncode == 0, (language, ran.stderr)
        yield ran.stdout


def test_the_page_and_its_samples_work(node):
    """All scenarios of tests/browser/docs_page.mjs in one browser, then the samples that it found on the page."""
    npm_install(BROWSER)
    run = subprocess.run(["node", "docs_page.mjs", node.api.url, node.api.key], cwd=BROWSER, capture_output=True,
                         timeout=SECONDS_MAX, text=True)
    assert run.returncode == 0, run.stderr
    ended = json.loads(run.stdout)
    failed = {name: error for name, error in ended["results"].items() if error is not None}
    assert not failed, "\n\n".join(f"{name}: {error}" for name, error in failed.items())
    assert len(ended["results"]) > 10
    created, updated, read = run_samples(ended["samples"], node)
    assert json.loads(created)["id"] == "sampled"
    assert "max_in_flight: 100" in updated
    assert "'max_in_flight': 100" in read
