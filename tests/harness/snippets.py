"""Builds the programs of tests/e2e/snippets around the verification snippets that the portal shows, once for each language.

Each function takes the variant, "verify" (standard library) or "library" (Standard Webhooks library), and returns a
command; None where Debian 12 has nothing that could build it. Versions of libraries are those of examples/.
"""

import shutil

from . import toolchains
from .toolchains import EXAMPLES, ROOT, execute, is_current, keep_mark, locked

SHOWN = ROOT / "web" / "src" / "portal" / "snippets"
PROGRAMS = ROOT / "tests" / "e2e" / "snippets"


def javascript(variant):
    if variant == "verify":
        return ["node", PROGRAMS / "run.mjs", SHOWN / "verify.mjs"]
    toolchains.node()
    with locked("snippets-javascript") as folder:  # imports are looked up beside the file
        shutil.copy(SHOWN / "library.mjs", folder)
        packages = folder / "node_modules"
        if not packages.exists():
            packages.symlink_to(EXAMPLES / "node" / "node_modules")
    return ["node", PROGRAMS / "run.mjs", folder / "library.mjs"]


def python(variant):
    environment = toolchains.python()["receiver"][:2] if variant == "library" else []
    return [*environment, "/usr/bin/python3", PROGRAMS / "run.py", SHOWN / f"{variant}.py"]


def go(variant):
    if variant == "library" and toolchains.go_version() < toolchains.GO_OF_THE_LIBRARY:
        return None
    with locked(f"snippets-go-{variant}") as folder:
        (folder / "webhook").mkdir(exist_ok=True)
        shutil.copy(SHOWN / f"{variant}.go", folder / "webhook")
        shutil.copy(PROGRAMS / "run.go", folder)
        needed = EXAMPLES / "go" / "receiver"
        module = (needed / "go.mod").read_text().replace("postrider.example/receiver", "postrider.example/snippets")
        (folder / "go.mod").write_text(module if variant == "library" else "module postrider.example/snippets\n\ngo 1.19\n")
        if variant == "library":
            shutil.copy(needed / "go.sum", folder)
        execute("go", "vet", "./...", cwd=folder, GOTOOLCHAIN="local", GOFLAGS="-mod=readonly")
        execute("go", "build", "-buildvcs=false", "-o", "run", ".", cwd=folder, GOTOOLCHAIN="local", GOFLAGS="-mod=readonly")
    return [folder / "run"]


def java(variant):
    if variant == "library":
        toolchains.java()
    libraries = toolchains.BUILT / "java" / "lib" / "*"
    sources = [SHOWN / f"{variant}.java", PROGRAMS / "Run.java"]
    with locked(f"snippets-java-{variant}") as folder:
        if not is_current(folder / "compiled", sources):
            shutil.copy(sources[0], folder / "Verify.java")  # Java wants the file named as the class
            execute("javac", "-Xlint:all", "-Werror", "-cp", libraries, "-d", "classes", "Verify.java", sources[1], cwd=folder)
            keep_mark(folder / "compiled", sources)
    return ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{folder / 'classes'}:{libraries}", "Run"]


def rust(variant):
    features = ["--features", "library"] if variant == "library" else []
    with locked("snippets-rust") as folder:
        for file in (PROGRAMS / "Cargo.toml", PROGRAMS / "run.rs", SHOWN / f"{variant}.rs"):
            shutil.copy(file, folder)
        execute("cargo", "build", "--quiet", *features, cwd=folder, CARGO_TARGET_DIR=str(folder / variant), RUSTFLAGS="-Dwarnings")
    return [folder / variant / "debug" / "snippets"]


def php(variant):
    return ["php", PROGRAMS / "run.php", SHOWN / f"{variant}.php"]


def ruby(variant):
    return ["ruby", "-w", PROGRAMS / "run.rb", SHOWN / f"{variant}.rb"]


def csharp(variant):
    sources = [SHOWN / f"{variant}.cs", PROGRAMS / "Run.cs"]
    with locked("snippets-csharp") as folder:
        if not is_current(folder / "compiled", sources):
            execute("mcs", "-warnaserror", f"-out:{folder / 'run.exe'}", *sources, cwd=folder)
            keep_mark(folder / "compiled", sources)
    return ["mono", folder / "run.exe"]


STANDARD = {"javascript": javascript, "python": python, "go": go, "java": java, "rust": rust, "php": php, "ruby": ruby,
            "csharp": csharp}
LIBRARY = {name: STANDARD[name] for name in ("javascript", "python", "go", "java", "rust")}
PROGRAM_NAMES = [*((name, "verify") for name in STANDARD), *((name, "library") for name in LIBRARY)]


def command(name, variant):
    words = STANDARD[name](variant)
    return words and [str(word) for word in words]
