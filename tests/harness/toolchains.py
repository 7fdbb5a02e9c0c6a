"""Builds the programs in examples/ with the toolchains of this machine, once: results are kept in build/examples.

Each function returns the commands of a language: {"orders": […], "receiver": […]}. A receiver is None where Debian 12 has
nothing that could build it.
"""

import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import warnings

from .npm import npm_install

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
BUILT = ROOT / "build" / "examples"
IVY = "/usr/share/java/ivy.jar"  # resolves a pom.xml in seconds; Maven would first download its own plugins
GO_OF_THE_LIBRARY = (1, 21)      # Debian 12 has 1.19


@contextlib.contextmanager
def locked(language):
    """One process at a time builds a language; the next one finds it built."""
    folder = BUILT / language
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def execute(*command, cwd, **environment):
    done = subprocess.run([str(word) for word in command], cwd=cwd, env={**os.environ, **environment}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, f"{command[0]} failed:\n{done.stdout[-4000:]}"
    return done.stdout


def is_current(mark, sources):
    """Whether the mark of a finished build has the present content of its sources."""
    wanted = "".join(path.read_text() for path in sources)
    return mark.exists() and mark.read_text() == wanted


def keep_mark(mark, sources):
    mark.write_text("".join(path.read_text() for path in sources))


def node():
    npm_install(EXAMPLES / "node")
    return {name: ["node", str(EXAMPLES / "node" / f"{name}.mjs")] for name in ("orders", "receiver")}


def python():
    wanted = EXAMPLES / "python" / "requirements.txt"
    with locked("python") as folder:
        if not is_current(folder / "installed", [wanted]):
            shutil.rmtree(folder / "packages", ignore_errors=True)
            execute("/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-input", "--target", folder / "packages",
                    "-r", wanted, cwd=folder)
            keep_mark(folder / "installed", [wanted])
    program = ["env", f"PYTHONPATH={folder / 'packages'}", "/usr/bin/python3"]
    return {name: [*program, str(EXAMPLES / "python" / f"{name}.py")] for name in ("orders", "receiver")}


def go_version():
    found = re.search(r"go(\d+)\.(\d+)", execute("go", "version", cwd="/", GOTOOLCHAIN="local"))
    return int(found[1]), int(found[2])


def go():
    names = ["orders", "receiver"] if go_version() >= GO_OF_THE_LIBRARY else ["orders"]
    with locked("go") as folder:
        for name in names:  # go itself knows what has changed
            execute("go", "build", "-buildvcs=false", "-o", folder / name, ".", cwd=EXAMPLES / "go" / name,
                    GOTOOLCHAIN="local", GOFLAGS="-mod=readonly")
    if "receiver" not in names:
        warnings.warn(f"NOT RUN: the Go receiver needs Go 1.21 for the Standard Webhooks library, and go is {go_version()}",
                      stacklevel=2)
    return {"orders": [str(folder / "orders")], "receiver": [str(folder / "receiver")] if "receiver" in names else None}


def java():
    source = EXAMPLES / "java"
    sources = sorted(source.glob("*.java")) + [source / "pom.xml"]
    with locked("java") as folder:
        if not is_current(folder / "compiled", sources):
            shutil.rmtree(folder / "lib", ignore_errors=True)
            execute("java", "-jar", IVY, "-ivy", source / "pom.xml", "-confs", "runtime", "-cache", folder / "ivy",
                    "-retrieve", folder / "lib" / "[artifact]-[revision].[ext]", cwd=folder)
            execute("javac", "-Xlint:all", "-Werror", "-cp", folder / "lib" / "*", "-d", folder / "classes",
                    *sources[:-1], cwd=folder)
            keep_mark(folder / "compiled", sources)
    program = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{folder / 'classes'}:{folder / 'lib' / '*'}"]
    return {"orders": [*program, "Orders"], "receiver": [*program, "Receiver"]}


def rust():
    """Built from a copy: cargo writes a lock file beside Cargo.toml, which names the registry."""
    with locked("rust") as folder:
        shutil.copytree(EXAMPLES / "rust", folder / "source", dirs_exist_ok=True)
        execute("cargo", "build", "--quiet", cwd=folder / "source", CARGO_TARGET_DIR=str(folder / "target"),
                RUSTFLAGS="-Dwarnings")
    return {name: [str(folder / "target" / "debug" / name)] for name in ("orders", "receiver")}


LANGUAGES = {"go": go, "java": java, "node": node, "python": python, "rust": rust}
