"""What a Debian system gets: the unit, the default configuration, the manual page, completion."""

import re
import subprocess

import pytest

from harness.documents import ROOT
from harness.node import binary

UNIT = ROOT / "deploy" / "systemd" / "postrider.service"
DROP_IN = ROOT / "deploy" / "systemd" / "private-postgres.conf"
CONFIGURATION = ROOT / "deploy" / "postrider.toml"
DOCUMENT = ROOT / "docs" / "deploying.md"


def run(*command, **more):
    return subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)


@pytest.fixture
def unit(tmp_path):
    """The unit, with the binary of the tests."""
    path = tmp_path / "postrider.service"
    path.write_text(UNIT.read_text().replace("/usr/bin/postrider", binary()))
    return path


@pytest.fixture
def private_unit(unit):
    folder = unit.with_name("postrider.service.d")
    folder.mkdir()
    (folder / DROP_IN.name).write_text(DROP_IN.read_text())
    return unit


def verify(unit):
    done = run("systemd-analyze", "verify", "--man=no", unit)
    assert done.returncode == 0 and str(unit.name) not in done.stdout, done.stdout


def exposure(unit):
    done = run("systemd-analyze", "security", "--offline=yes", "--no-pager", unit)
    return re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)[1]


def test_systemd_accepts_the_unit(unit):
    verify(unit)


def test_systemd_accepts_the_unit_for_the_private_postgres(private_unit):
    verify(private_unit)


def test_the_stated_exposure_is_the_measured_one(unit):
    assert f"exposure of {exposure(unit)} " in DOCUMENT.read_text()


def test_the_default_configuration_is_valid(tmp_path):
    done = run(binary(), "config", "--config", CONFIGURATION, env={"PATH": "/usr/bin:/bin"}, cwd=tmp_path)
    assert done.returncode == 0, done.stdout


def test_every_setting_that_the_default_configuration_suggests_is_valid(tmp_path):
    settings = re.findall(r"^#(\w+ = .*)$", CONFIGURATION.read_text(), re.MULTILINE)
    (tmp_path / "all.toml").write_text("\n".join(settings))
    done = run(binary(), "config", "--config", tmp_path / "all.toml", env={"PATH": "/usr/bin:/bin"}, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert len(settings) > 5


def test_the_manual_page_has_every_command_and_setting(tmp_path):
    page = run(ROOT / "tools" / "man_page.py", binary(), "man")
    assert page.returncode == 0, page.stdout
    path = tmp_path / "postrider.1"
    path.write_text(page.stdout)
    # Errors only: lines are not wrapped in the source of the page.
    linted = run("mandoc", "-T", "lint", "-W", "error", path)
    assert linted.returncode == 0, linted.stdout
    shown = run("mandoc", "-T", "utf8", "-O", "width=200", path).stdout
    shown = re.sub(r".\x08", "", shown)
    for text in ("postrider tenant create", "postrider endpoint secrets rotate", "--lease-seconds", "EXIT STATUS"):
        assert text in shown, text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_every_shell_of_the_package(shell):
    done = run(binary(), "completion", shell)
    assert done.returncode == 0 and "postrider" in done.stdout


@pytest.mark.parametrize("name", ["postinst", "postrm"])
def test_maintainer_scripts_are_valid_shell(name):
    done = run("sh", "-n", ROOT / "deploy" / "debian" / f"postrider.{name}")
    assert done.returncode == 0, done.stdout
