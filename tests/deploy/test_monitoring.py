"""Alerts and dashboards, with the Prometheus of Debian."""

import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest
import yaml

from harness import debian, senders
from harness.documents import ROOT
from harness.ports import lasting_port
from harness.wait import wait_until
from servers import running

RULES = ROOT / "deploy" / "prometheus" / "rules.yaml"
RUNBOOKS = ROOT / "docs" / "runbooks"
DASHBOARDS = sorted((ROOT / "deploy" / "grafana").glob("*.json"))
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
METRIC = re.compile(r"\bwebhook_\w+")
# Only present on nodes that use the feature, which the tests of that feature do.
NOT_SCRAPED = {"webhook_capture_retained_bytes"}


def promtool(*arguments, stdin=None):
    done = subprocess.run([debian.program("prometheus", "usr/bin/promtool"), *map(str, arguments)], text=True, input=stdin,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=RULES.parent)
    assert done.returncode == 0, done.stdout
    return done.stdout


def alerts():
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def queries():
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                yield f"{path.stem}: {panel['title']}", target["expr"]


def test_every_alert_fires_when_it_should_and_only_then():
    assert "SUCCESS" in promtool("check", "rules", RULES.name)
    assert "SUCCESS" in promtool("test", "rules", "rules_test.yaml")
    tested = (RULES.parent / "rules_test.yaml").read_text()
    for rule in alerts():
        name = rule["alert"]
        assert f"alertname: {name}\n" in tested and f"alertname: {name}, exp_alerts: []" in tested, name


def test_every_alert_has_a_severity_a_summary_and_a_runbook():
    for rule in alerts():
        assert rule["labels"]["severity"] in ("warning", "critical"), rule["alert"]
        page = RUNBOOKS / f"{rule['annotations']['runbook_url'].rstrip('/').rsplit('/', 1)[-1]}.md"
        assert f"`{rule['alert']}`" in page.read_text(), rule["alert"]
        assert f"`{rule['alert']}`" in (RUNBOOKS / "README.md").read_text()
        assert rule["annotations"]["summary"]


def test_runbooks_name_commands_that_exist(cli):
    used = {command for page in RUNBOOKS.glob("*.md") for command in re.findall(r"`postrider ([a-z][^`]*)`", page.read_text())}
    assert used
    for command in used:
        words = re.match(r"(?:[a-z][a-z-]*(?: |$))+", command)[0].split()
        done = cli(*words, "--help")
        assert done.returncode == 0 and f"Usage: postrider {' '.join(words)}" in done.stdout, f"postrider {command}: {done.stderr}"


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_dashboards_are_sound(path):
    dashboard = json.loads(path.read_text())
    panels = dashboard["panels"]
    assert dashboard["uid"] and dashboard["title"] and "id" not in dashboard
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels)
    for panel in panels:
        assert panel["title"] and panel["targets"] and panel["fieldConfig"]["defaults"]["unit"]


def test_rules_and_dashboards_use_metrics_that_exist():
    known = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    texts = [query for _, query in queries()] + [rule["expr"] for rule in alerts()]
    used = {re.sub(r"_bucket$", "", name) for text in texts for name in METRIC.findall(text)}
    assert used and not {name for name in used if f"`{name}`" not in known}


@pytest.fixture
def busy(start_node, database_url, hook):
    """A node that has done a bit of everything that the dashboards show."""
    node = start_node(database_url=database_url)
    api = node.api
    api.create_tenant("acme")
    api.create_endpoint("acme", hook.url)
    api.create_endpoint("acme", f"http://127.0.0.1:{lasting_port()}/", event_types=["lost"], max_attempts=1)
    api.post("/v1/sources", {"id": "shop", "provider": "standard", "secret": SECRET}).expect(201)
    return node


def exercise(node, number):
    api = node.api
    api.publish("acme")
    api.publish("acme", "lost")
    body = senders.event(n=number)
    api.call("POST", "/in/shop", body, {"content-type": "application/json", **senders.standard(SECRET, f"m{number}", body)})
    api.call("POST", "/in/shop", body, {"content-type": "application/json"})
    node.sql("select postrider.publish('acme', 'invoice.paid', '{}')")


def test_the_metrics_of_a_node_follow_the_conventions(busy):
    exercise(busy, 1)
    text = busy.api.exchange("GET", "/metrics").body.decode()
    assert promtool("check", "metrics", stdin=text) == ""


def test_every_panel_shows_data_of_a_real_node(busy, folder):
    """Prometheus scrapes every second, and rates are over a window that contains two scrapes."""
    port, exporter_port = lasting_port(), lasting_port()
    (folder / "prometheus.yml").write_text(yaml.safe_dump({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [
            {"job_name": "postrider", "static_configs": [{"targets": [busy.address]}]},
            {"job_name": "node", "static_configs": [{"targets": [f"127.0.0.1:{exporter_port}"]}]}]}))
    server = [debian.program("prometheus", "usr/bin/prometheus"), f"--config.file={folder}/prometheus.yml",
              f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}",
              f"--web.console.templates={folder}", f"--web.console.libraries={folder}"]
    exporter = [debian.program("prometheus-node-exporter", "usr/bin/prometheus-node-exporter"),
                "--collector.disable-defaults", "--collector.filesystem", f"--web.listen-address=127.0.0.1:{exporter_port}"]

    def ask(query):
        url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        try:
            with urllib.request.urlopen(url, timeout=30) as response:
                found = json.load(response)["data"]["result"]
        except urllib.error.HTTPError as error:
            assert error.code == 503, error.read()  # it is still starting
            return []
        return [sample for sample in found if sample["value"][1] != "NaN"]

    with running(exporter, folder, exporter_port), running(server, folder, port):
        wait_until(lambda: ask('up{job="postrider"} == 1') and ask('up{job="node"} == 1'), "both are scraped")
        numbers = iter(range(10_000))
        for title, query in queries():
            if NOT_SCRAPED & set(METRIC.findall(query)):
                continue

            def has_data(query=query):
                if ask(query):
                    return True
                exercise(busy, next(numbers))
                return False

            wait_until(has_data, f"data for {title}: {query}", 60)
