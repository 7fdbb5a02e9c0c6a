"""`./dev release` as a dry run: a clone is tagged, packages are built from a binary that exists, checksums are signed."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

import pytest

from harness.documents import ROOT
from harness.node import binary

sys.path.insert(0, str(ROOT / "tools"))

import package  # noqa: E402
import release  # noqa: E402

VERSION = "0.1.0"
TARGET = ROOT / "build" / f"release-{VERSION}"


@pytest.fixture(scope="module")
def keyring():
    """A GPG home with one key."""
    folder = tempfile.mkdtemp(prefix="pr-gpg-", dir="/tmp")
    environment = {**os.environ, "GNUPGHOME": folder}
    subprocess.run(["gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "release@postrider.invalid",
                    "ed25519", "sign", "never"], env=environment, check=True, stderr=subprocess.DEVNULL)
    yield environment
    subprocess.run(["gpgconf", "--kill", "all"], env=environment, check=True)
    shutil.rmtree(folder, ignore_errors=True)


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout


def cut(keyring, *more):
    return subprocess.run([sys.executable, ROOT / "tools" / "release.py", VERSION, "--key", "release@postrider.invalid", "--dry-run",
                           *more], env=keyring, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def test_a_dry_run_builds_signed_packages_and_leaves_the_tree_alone(keyring, tmp_path):
    stripped = tmp_path / "postrider"
    subprocess.run(["objcopy", "--strip-debug", binary(), stripped], check=True)  # symbols of the test binary are huge
    before = git("tag"), (ROOT / "CHANGELOG.md").read_bytes()
    done = cut(keyring, "--binary", stripped)
    assert done.returncode == 0, done.stdout
    assert (git("tag"), (ROOT / "CHANGELOG.md").read_bytes()) == before

    names = {path.name for path in TARGET.iterdir()}
    machine = os.uname().machine
    assert {f"postrider_{VERSION}_amd64.deb", f"postrider-{VERSION}-linux-{machine}.tar.gz", f"postrider-{VERSION}.cdx.json",
            "SHA256SUMS", "SHA256SUMS.asc"} <= names
    subprocess.run(["sha256sum", "--quiet", "--check", "SHA256SUMS"], cwd=TARGET, check=True)
    subprocess.run(["gpg", "--quiet", "--verify", "SHA256SUMS.asc", "SHA256SUMS"], cwd=TARGET, env=keyring, check=True,
                   stderr=subprocess.DEVNULL)

    with tarfile.open(TARGET / f"postrider-{VERSION}-linux-{machine}.tar.gz") as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
        assert {entry.uid for entry in archive.getmembers()} == {0}
    assert {"bin/postrider", "lib/libpq.so.5", "postrider.1", "LICENSE", "postrider.cdx.json"} <= inside
    assert not {name for name in inside if name.startswith(("lib/libc.so", "lib/ld-linux"))}

    components = {each["name"] for each in json.loads((TARGET / f"postrider-{VERSION}.cdx.json").read_text())["components"]}
    assert {"libpq5", "libssl3", "libc6", "libboost1.81-dev"} <= components


def test_packaging_twice_gives_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795000000")  # the time of a commit
    stripped = tmp_path / "postrider"
    subprocess.run(["objcopy", "--strip-debug", binary(), stripped], check=True)
    built = [package.build(stripped, tmp_path / str(number), VERSION) for number in (1, 2)]
    assert [path.name for path in built[0]] == [path.name for path in built[1]]
    for first, second in zip(*built):
        assert first.read_bytes() == second.read_bytes(), first.name


def test_only_a_dry_run_takes_a_binary(keyring):
    done = subprocess.run([sys.executable, ROOT / "tools" / "release.py", VERSION, "--key", "x", "--binary", binary()],
                          env=keyring, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert (done.returncode, done.stdout) == (1, "release: --binary is only for --dry-run: a release is built from its tag\n")


@pytest.fixture
def clone(tmp_path):
    subprocess.run(["git", "clone", "-q", "--local", ROOT, tmp_path / "clone"], check=True)
    return tmp_path / "clone"


def problem_of(clone, version=VERSION):
    with pytest.raises(release.Problem) as caught:
        release.check(clone, version)
    return str(caught.value)


def test_a_release_is_rejected_before_anything_changes(clone):
    release.check(clone, VERSION)
    assert problem_of(clone, "1.0") == "1.0 is not a version such as 0.1.0"
    assert problem_of(clone, "9.9.9") == "CMakeLists.txt has another version than 9.9.9"
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x", "tag", "-m", "x", f"v{VERSION}"], cwd=clone, check=True)
    assert problem_of(clone) == f"the tag v{VERSION} exists"
    (clone / "README.md").write_text("changed")
    assert problem_of(clone) == "there are changes that are not committed"


def test_the_changelog_gets_a_version_and_an_empty_unreleased_part():
    text = "# Changelog\n\nIntro.\n\n## Unreleased\n\nThe first version, 0.1.0. Nothing yet.\n\n### Added\n\n- x\n"
    dated, notes = release.date_changelog(text, "0.1.0", "2026-11-18")
    assert notes == "### Added\n\n- x"
    assert dated == "# Changelog\n\nIntro.\n\n## Unreleased\n\n## 0.1.0, 2026-11-18\n\n### Added\n\n- x\n"
