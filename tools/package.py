#!/usr/bin/python3
"""Builds the packages from a binary that exists: two .deb (postrider, and its debug symbols), a portable tarball, the
SBOM and the checksums. The same binary and commit always give the same bytes.

usage: package.py BINARY OUTPUT_FOLDER [--version VERSION]
"""

import argparse
import gzip
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile

import sbom
import tree

EXAMPLES = ["systemd/private-postgres.conf", "nginx/postrider.conf", "caddy/Caddyfile", "prometheus/rules.yaml"]
SHELLS = {"bash": "postrider", "zsh": "_postrider", "fish": "postrider.fish"}
# What the tarball does not bring: the parts of glibc, which must come from the system that it runs on.
GLIBC = re.compile(r"^(?:ld-linux.*|linux-vdso|lib(?:c|m|dl|rt|pthread|resolv|nss_\w+|util|anl))\.so")


def run(*command, **more):
    return subprocess.run([str(word) for word in command], check=True, text=True, **more)


def output(*command):
    return run(*command, stdout=subprocess.PIPE).stdout


def commit_time():
    """Of the commit that is packaged: the time of every file in the packages."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or output("git", "-C", tree.ROOT, "log", "-1", "--format=%ct"))


def stage(binary, version, folder):
    """Everything that is packaged, in the layout that deploy/debian expects."""
    folder.mkdir(parents=True)
    shutil.copy(binary, folder / "postrider")
    shutil.copy(tree.ROOT / "deploy" / "postrider.toml", folder)
    shutil.copy(tree.ROOT / "CHANGELOG.md", folder)
    shutil.copytree(tree.ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("internals", "decisions", "overrides"))
    for shell, name in SHELLS.items():
        target = folder / "completion" / shell / name
        target.parent.mkdir(parents=True)
        target.write_text(output(binary, "completion", shell))
    for name in EXAMPLES:
        target = folder / "examples" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tree.ROOT / "deploy" / name, target)
    (folder / "postrider.1").write_text(output(tree.ROOT / "tools" / "man_page.py", binary, "man"))
    sbom.write(binary, version, folder / "postrider.cdx.json")


def debian_changelog(version, time):
    date = output("date", "-u", "-R", "-d", f"@{time}").strip()
    return (f"postrider ({version}) stable; urgency=medium\n\n  * See changelog.gz in /usr/share/doc/postrider.\n\n"
            f" -- postrider maintainers <maintainers@postrider.invalid>  {date}\n")


def build_debs(staged, version, time, target):
    """postrider_VERSION_ARCH.deb and postrider-dbgsym_VERSION_ARCH.deb, by debhelper."""
    with tempfile.TemporaryDirectory(prefix="pr-deb-") as temporary:
        source = pathlib.Path(temporary) / f"postrider-{version}"
        shutil.copytree(tree.ROOT / "deploy" / "debian", source / "debian")
        shutil.copy(tree.ROOT / "deploy" / "systemd" / "postrider.service", source / "debian" / "postrider.service")
        shutil.copytree(staged, source / "staged")
        (source / "debian" / "changelog").write_text(debian_changelog(version, time))
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(time), "DEB_BUILD_OPTIONS": "nocheck"}
        done = subprocess.run(["dpkg-buildpackage", "-b", "-us", "-uc", "-d"], cwd=source, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise SystemExit(done.stdout)
        built = []
        for path in sorted(pathlib.Path(temporary).glob("*.*deb")):
            built.append(shutil.copy(path, target / path.with_suffix(".deb").name))
    return built


# ── the tarball ──────────────────────────────────────────────────────────────────────────────────────────────


def libraries(binary):
    """name → path of every library that the binary loads, directly or not, except glibc's."""
    found = {}
    for line in output("ldd", binary).splitlines():
        match = re.match(r"\s*(\S+) => (/\S+) ", line)
        if match and not GLIBC.match(match[1]):
            found[match[1]] = pathlib.Path(match[2]).resolve()
        elif "not found" in line:
            raise SystemExit(f"a library is missing: {line.strip()}")
    return found


def build_tree(binary, staged, folder):
    """bin/ and lib/ side by side: the loader finds the libraries relative to the binary."""
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "licences").mkdir()
    run("strip", "-o", folder / "bin" / "postrider", binary)
    # RPATH instead of RUNPATH, because it also holds for what the libraries load.
    run("patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/../lib", folder / "bin" / "postrider")
    for name, path in libraries(binary).items():
        shutil.copy(path, folder / "lib" / name)
        (folder / "lib" / name).chmod(0o755)
        package = sbom.package_of(path)
        shutil.copy(f"/usr/share/doc/{package}/copyright", folder / "licences" / package)
    for name in ("completion", "examples", "docs", "CHANGELOG.md", "postrider.1", "postrider.toml", "postrider.cdx.json"):
        copy = shutil.copytree if (staged / name).is_dir() else shutil.copy
        copy(staged / name, folder / name)
    shutil.copy(tree.ROOT / "LICENSE", folder)
    shutil.copy(tree.ROOT / "deploy" / "systemd" / "postrider.service", folder / "examples" / "systemd")


def pack(folder, archive, time):
    """A tarball that depends on nothing but names and contents."""

    def plain(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = time
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    with open(archive, "wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=time) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path in sorted([folder, *folder.rglob("*")]):
                tar.add(path, arcname=path.relative_to(folder.parent), recursive=False, filter=plain)
    return archive


def build_tarball(binary, staged, version, time, target):
    name = f"postrider-{version}-linux-{platform.machine()}"
    with tempfile.TemporaryDirectory(prefix="pr-tar-") as temporary:
        folder = pathlib.Path(temporary) / name
        build_tree(binary, staged, folder)
        return pack(folder, target / f"{name}.tar.gz", time)


def checksums(paths):
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(paths))


def build(binary, target, version):
    """All artefacts; their paths, SHA256SUMS last."""
    target.mkdir(parents=True, exist_ok=True)
    time = commit_time()
    with tempfile.TemporaryDirectory(prefix="pr-stage-") as temporary:
        staged = pathlib.Path(temporary) / "staged"
        stage(binary, version, staged)
        built = [pathlib.Path(path) for path in build_debs(staged, version, time, target)]
        built.append(build_tarball(binary, staged, version, time, target))
        built.append(pathlib.Path(shutil.copy(staged / "postrider.cdx.json", target / f"postrider-{version}.cdx.json")))
    sums = target / "SHA256SUMS"
    sums.write_text(checksums(built))
    return [*built, sums]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("target", type=pathlib.Path)
    parser.add_argument("--version")
    options = parser.parse_args()
    version = options.version or output(options.binary, "--version").split()[-1]
    for path in build(options.binary.resolve(), options.target.resolve(), version):
        print(path)


if __name__ == "__main__":
    main()
