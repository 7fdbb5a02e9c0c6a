#!/usr/bin/python3
"""Builds docs/ into a static site with search and dark mode, without anything from other hosts: mkdocs and its material
theme, both of Debian. Reference pages are written from the code and from the help of the binary.

usage: site.py BINARY TARGET
"""

import pathlib
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile

import reference_pages
import tree

# Section → pages. Every page below docs/ must be listed or match one of the folders.
NAVIGATION = [
    ("Tour", ["README.md"]),
    ("Guides", ["docs/outbox.md", "docs/event-types.md", "docs/endpoints.md", "docs/receivers.md", "docs/for-your-customers.md",
                "docs/inbox.md", "docs/replay.md", "docs/support.md", "docs/notices.md", "docs/console.md",
                "docs/migrate-from-your-own-outbox.md"]),
    ("Operations", ["docs/deploying.md", "docs/operating.md", "docs/configuration-as-code.md", "docs/retention.md",
                    "docs/recovery.md", "docs/access.md", "docs/promises.md", "docs/security.md", "docs/benchmarks.md", "docs/comparison.md"]),
    ("Runbooks", ["docs/runbooks/"]),
    ("Reference", ["docs/reference/", "docs/command-line.md", "docs/glossary.md"]),
    ("Inside", ["ARCHITECTURE.md", "docs/internals/", "docs/decisions/"]),
    ("Project", ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]),
]
CONFIGURATION = """
site_name: postrider
site_url: ""
docs_dir: {source}
site_dir: {target}
use_directory_urls: true
theme:
  name: material
  font: false
  features: [navigation.tabs, navigation.top, search.highlight]
  palette:
    - media: "(prefers-color-scheme: light)"
      scheme: default
      toggle: {{icon: material/weather-night, name: Dark mode}}
    - media: "(prefers-color-scheme: dark)"
      scheme: slate
      toggle: {{icon: material/weather-sunny, name: Light mode}}
plugins: [search]
markdown_extensions: [tables, fenced_code, attr_list, admonition]
nav:
{navigation}
"""
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:)([^)#\s]*)(#[^)\s]*)?\)")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(#+ +)(.*?) *$", re.MULTILINE)


def site_path(path):
    """Where a file of the project is in the site, or None if it is not part of it."""
    path = str(path)
    if path == "README.md":
        return "index.md"
    if path.startswith("docs/"):
        return re.sub(r"(^|/)README\.md$", r"\1index.md", path.removeprefix("docs/"))
    if path in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
        return path.lower()
    if path in ("LICENSE",) or path.startswith("deploy/") or path.startswith("examples/"):
        return f"files/{path}"
    return None


def anchor(title):
    """As forges make them of headings, so that links work in both places."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


class Source:
    """The folder that mkdocs reads."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.known = {str(path) for path in tree.files()}

    def write(self, path, text):
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def link(self, page, match):
        mark, text, target, part = match.groups()
        if not target:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        found = site_path(path) if path in self.known else None
        if found is None:
            return text  # a folder or a source file: the name stays, the link goes
        here = posixpath.dirname(site_path(page))
        return f"{mark}[{text}]({posixpath.relpath(found, here or '.')}{part or ''})"

    def convert(self, page, text):
        """Links for the site, anchors that are spelled out, no notes to the tests."""
        parts = FENCE.split(text)
        for index in range(0, len(parts), 2):
            part = re.sub(r"<!--.*?-->\n?", "", parts[index], flags=re.DOTALL)
            part = LINK.sub(lambda match: self.link(page, match), part)
            parts[index] = HEADING.sub(lambda match: f"{match[1]}{match[2]} {{#{anchor(match[2])}}}", part)
        return "".join(parts)

    def fill(self):
        for path in sorted(self.known):
            target = site_path(path)
            if target is None:
                continue
            if path.endswith(".md") and not target.startswith("files/"):
                self.write(target, self.convert(path, tree.read(path)))
            else:
                (self.folder / target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(tree.ROOT / path, self.folder / target)


def title_of(text):
    return HEADING.search(text)[2].replace("`", "")


def navigation(source):
    lines, listed = [], set()
    for section, entries in NAVIGATION:
        lines.append(f"  - {section}:")
        for entry in entries:
            pages = [site_path(entry)] if not entry.endswith("/") else sorted(
                path.relative_to(source).as_posix() for path in (source / entry.removeprefix("docs/")).glob("*.md"))
            for page in sorted(pages, key=lambda name: not name.endswith("index.md")):
                listed.add(page)
                title = re.sub(r" *\{#.*?\}$", "", title_of((source / page).read_text()))
                lines.append(f'      - "{title}": {page}')
    missing = {path.relative_to(source).as_posix() for path in source.rglob("*.md")} - listed
    if missing:
        raise SystemExit(f"pages that are not in the navigation (tools/site.py): {', '.join(sorted(missing))}")
    return "\n".join(lines)


def build(binary, target):
    version = subprocess.run([binary, "--version"], check=True, text=True, stdout=subprocess.PIPE).stdout.split()[-1]
    commands = subprocess.run([sys.executable, tree.ROOT / "tools" / "man_page.py", binary, "markdown"], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
    with tempfile.TemporaryDirectory(prefix="pr-site-") as temporary:
        source = Source(pathlib.Path(temporary) / "source")
        source.fill()
        source.write("reference/commands.md", source.convert("docs/reference/commands.md", commands))
        source.write("reference/api.md", reference_pages.Api(reference_pages.openapi(version)).page())
        source.write("reference/sql.md", reference_pages.sql_page())
        configuration = pathlib.Path(temporary) / "mkdocs.yml"
        configuration.write_text(CONFIGURATION.format(source=source.folder, target=target, navigation=navigation(source.folder)))
        done = subprocess.run(["mkdocs", "build", "--strict", "--quiet", "--clean", "-f", configuration], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise SystemExit(done.stdout)


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    build(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve())


if __name__ == "__main__":
    main()
