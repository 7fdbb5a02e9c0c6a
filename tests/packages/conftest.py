"""The packages are built once from POSTRIDER_TEST_BINARY, in two versions, so that one can be upgraded to the other."""

import os
import subprocess
import sys

import pytest

from harness.documents import ROOT
from harness.node import binary

VERSIONS = ("0.1.0", "0.1.1")


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """version → folder with its artefacts."""
    assert os.geteuid() == 0, "run this as root: it makes chroots and mounts"
    built = {}
    for version in VERSIONS:
        folder = tmp_path_factory.mktemp("packages") / version
        subprocess.run([sys.executable, ROOT / "tools" / "package.py", binary(), folder, "--version", version], check=True,
                       stdout=subprocess.DEVNULL)
        built[version] = folder
    return built
