"""The software bill of materials: CycloneDX 1.4 JSON with every Debian package whose code is in the binary or loaded by
it, in the versions of the machine that built it."""

import hashlib
import json
import pathlib
import re
import subprocess

# Libraries that are compiled in from their headers, so that the binary does not load them.
HEADERS = ["libboost1.81-dev", "libtomlplusplus-dev"]


def output(*command):
    return subprocess.run([str(word) for word in command], check=True, text=True, stdout=subprocess.PIPE).stdout


def package_of(path):
    """The Debian package that a file belongs to. dpkg knows it with or without /usr."""
    path = str(path)
    for name in (path, path.removeprefix("/usr"), f"/usr{path}"):
        done = subprocess.run(["dpkg-query", "-S", name], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    raise SystemExit(f"no Debian package has {path}")


def loaded(binary):
    paths = re.findall(r"=> (/\S+) ", output("ldd", binary))
    return {package_of(pathlib.Path(path).resolve()) for path in paths}


def component(package):
    version, source, architecture = output(
        "dpkg-query", "-W", "-f=${Version}\t${source:Package}\t${Architecture}\n", package).splitlines()[0].split("\t")
    return {"type": "library", "name": package, "version": version,
            "purl": f"pkg:deb/debian/{package}@{version}?arch={architecture}&distro=debian-12",
            "properties": [{"name": "debian:source", "value": source}]}


def write(binary, version, target):
    packages = sorted(loaded(binary) | set(HEADERS))
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.4", "version": 1,
        "metadata": {"component": {
            "type": "application", "name": "postrider", "version": version, "bom-ref": f"postrider@{version}",
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(pathlib.Path(binary).read_bytes()).hexdigest()}],
            "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": [component(package) for package in packages],
    }
    target.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
