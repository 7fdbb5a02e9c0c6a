"""The documentation as a static site: it builds without warnings, finds its pages, and loads nothing from other hosts."""

import html
import json
import re
import subprocess
import sys

import pytest

from harness.documents import ROOT
from harness.node import binary

LOADED = re.compile(r"""<(?:script|img|iframe|source)[^>]*?\ssrc=["']?([^"'\s>]+)|<link[^>]*?\shref=["']?([^"'\s>]+)|url\(["']?(?!data:)([^"')]+)""")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    done = subprocess.run([sys.executable, ROOT / "tools" / "site.py", binary(), target], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return target


def test_pages_load_nothing_from_other_hosts(site):
    pages = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(pages) > 50
    for page in pages:
        for found in LOADED.findall(page.read_text()):
            target = next(filter(None, found))
            assert not re.match(r"(?:https?:)?//", target), f"{page.relative_to(site)} loads {target}"


def test_search_finds_a_setting_an_alert_and_an_operation(site):
    index = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    for text, place in (("lease_seconds", "reference/settings/"), ("PostriderRelayLagHigh", "runbooks/relay-lag/"),
                        ("Publish event", "reference/api/"), ("inbox_claim", "reference/sql/"),
                        ("rotate", "reference/commands/")):
        assert any(text in entry["text"] + entry["title"] and entry["location"].startswith(place) for entry in index), text


def test_there_is_a_dark_mode(site):
    assert 'data-md-color-scheme="slate"' in (site / "index.html").read_text()


def test_links_and_anchors_lead_somewhere(site):
    anchors = {}
    for page in site.rglob("*.html"):
        anchors[page] = set(re.findall(r'\sid="([^"]+)"', page.read_text()))
    for page in anchors:
        body = re.search(r"<article.*?</article>", page.read_text(), re.DOTALL)
        links = [html.unescape(link) for link in re.findall(r'href="([^"]+)"', body[0] if body else "")]
        for target, _, part in (link.partition("#") for link in links if not re.match(r"\w+:", link)):
            path = (page.parent / target).resolve() if target else page
            path = path / "index.html" if path.is_dir() else path
            assert path.exists(), f"{page.relative_to(site)} links to {target}"
            assert not part or path not in anchors or part in anchors[path], f"{page.relative_to(site)}: no #{part} in {target}"
