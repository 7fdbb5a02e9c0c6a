"""Debian systems to install into: a base that debootstrap makes once for each release, and a writable layer above it for
each test. Needs root."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

from harness.documents import ROOT

BASES = ROOT / "build" / "chroots"
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "HOME": "/root"}


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-5000:]}"
    return done.stdout


def mirror():
    """The Debian mirror that this machine uses."""
    listed = run("apt-get", "indextargets", "--format", "$(SITE) $(CODENAME) $(ORIGIN)", "Created-By: Packages")
    return next(line.split()[0] for line in listed.splitlines() if line.endswith(" bookworm Debian"))


def base(suite, packages=()):
    """The folder of an untouched Debian, made when it is needed first; with packages, of one that has them."""
    folder = BASES / (f"{suite}-packages" if packages else suite)
    if not folder.exists():
        BASES.mkdir(parents=True, exist_ok=True)
        new = BASES / f"{folder.name}.new"
        shutil.rmtree(new, ignore_errors=True)
        if packages:
            with chroot(suite) as system:
                system.install(*packages)
                run("cp", "-a", "--one-file-system", system.root, new)
        else:
            run("debootstrap", "--variant=minbase", suite, new, mirror())
        new.rename(folder)
    return folder


class Chroot:
    def __init__(self, root):
        self.root = pathlib.Path(root)

    def run(self, *command, check=True, user=None, **environment):
        words = ["chroot", *([f"--userspec={user}"] if user else []), str(self.root), *map(str, command)]
        done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/",
                              env={**ENVIRONMENT, **environment})
        assert done.returncode == 0 or not check, f"{' '.join(words)}\n{done.stdout[-5000:]}"
        return done.stdout

    def start(self, *command, user=None, **environment):
        words = ["chroot", *([f"--userspec={user}"] if user else []), str(self.root), *map(str, command)]
        return subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/",
                                env={**ENVIRONMENT, **environment})

    def add(self, path, folder="/root"):
        shutil.copy(path, self.root / folder.lstrip("/"))
        return f"{folder}/{pathlib.Path(path).name}"

    def exists(self, path):
        return os.path.lexists(self.root / path.lstrip("/"))

    def install(self, *packages):
        self.run("apt-get", "-qq", "update")
        self.run("apt-get", "-qq", "install", "-y", "--no-install-recommends", *packages)


@contextlib.contextmanager
def chroot(suite, packages=()):
    """A fresh system of that release; changes go to a layer that is deleted afterwards."""
    lower = base(suite, packages)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="pr-chroot-", dir="/tmp"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        for name in ("upper", "work", "root"):
            (folder / name).mkdir()
        root = folder / "root"
        run("mount", "-t", "overlay", "overlay", "-o",
            f"lowerdir={lower},upperdir={folder / 'upper'},workdir={folder / 'work'}", root)
        stack.callback(run, "umount", root)
        run("mount", "-t", "proc", "proc", root / "proc")
        stack.callback(run, "umount", root / "proc")
        run("mount", "--bind", "/dev", root / "dev")
        stack.callback(run, "umount", root / "dev")
        shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")
        # Nothing is started by packages: there is no init in a chroot.
        (root / "usr" / "sbin" / "policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
        (root / "usr" / "sbin" / "policy-rc.d").chmod(0o755)
        yield Chroot(root)


def find(folder, pattern):
    [path] = pathlib.Path(folder).glob(pattern)
    return path
