#!/usr/bin/python3
"""Writes what `postrider help` prints as a manual page, or as the page docs/reference/commands.md.

usage: man_page.py BINARY man|markdown
"""

import re
import subprocess
import sys

COLUMNS = "400"  # nothing is wrapped, so a row is one line, or two if its name is long


def read_help(binary, *words):
    done = subprocess.run([binary, "help", *words], check=True, text=True, stdout=subprocess.PIPE,
                          env={"PATH": "/usr/bin:/bin", "COLUMNS": COLUMNS})
    return done.stdout.rstrip("\n")


def rows(lines):
    """(name, text) of indented lines: `  NAME  TEXT`, or `  NAME` with the text below it."""
    found = []
    for line in lines:
        if line.startswith("   ") and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}".strip())
            continue
        name, _, text = line.strip().partition("  ")
        found.append((name, text.strip()))
    return found


class Help:
    """One help page: what it is for, its usage, and its sections of rows."""

    def __init__(self, text):
        self.intro, self.usage, self.sections, self.closing = [], "", [], []
        for block in re.split(r"\n\n+", text):
            lines = block.split("\n")
            if lines[0].startswith("Usage: "):
                self.usage = lines[0].removeprefix("Usage: ")
            elif len(lines) > 1 and all(line.startswith("  ") for line in lines[1:]):
                self.sections.append((lines[0], rows(lines[1:])))
            elif all(line.startswith("  ") for line in lines):
                self.sections.append(("", rows(lines)))
            else:
                (self.closing if self.sections or self.usage else self.intro).append(" ".join(lines))

    def rows_of(self, title):
        return next((found for name, found in self.sections if name == title), [])


def commands(binary, words, page):
    """(words, page) of every command that runs, in the order of the help."""
    below = [name for name, _ in page.rows_of("Commands")]
    if not below:
        yield words, page
    for name in below:
        deeper = [*words, name.split()[0].rstrip(",")]
        yield from commands(binary, deeper, Help(read_help(binary, *deeper)))


def all_commands(binary):
    overview = Help(read_help(binary))
    for title, found in overview.sections:
        if title == "Get started":
            continue
        for name, _ in found:
            words = [name.split()[0]]
            for each, page in commands(binary, words, Help(read_help(binary, *words))):
                yield title, each, page


# ── the manual page ──────────────────────────────────────────────────────────────────────────────────────────


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return "\\&" + text if text.startswith((".", "'")) else text


def roff_rows(found):
    return [line for name, text in found for line in (".TP", f".B {roff(name)}", roff(text) or "\\&")]


def man(binary, version):
    overview = Help(read_help(binary))
    lines = [f'.TH POSTRIDER 1 "" "postrider {version}" "User Commands"', ".SH NAME", "postrider \\- webhooks from Postgres",
             ".SH SYNOPSIS", ".B postrider", ".I command", "[options]", ".SH DESCRIPTION",
             *map(roff, overview.intro), ".PP", *map(roff, overview.closing), ".SH COMMANDS"]
    section = None
    for title, words, page in all_commands(binary):
        if title != section:
            lines.append(f".SS {roff(title)}")
            section = title
        lines += [".TP", f".B {roff(page.usage.removesuffix(' [options]'))}", *map(roff, page.intro)]
        if words == ["serve"]:
            continue  # its options are the settings below
        options = [row for name, found in page.sections if name in ("Arguments", "Options") for row in found]
        if options:
            lines += [".RS", *roff_rows(options), ".RE"]
    for title, topic in (("OPTIONS", "options"), ("SETTINGS", "settings")):
        page = Help(read_help(binary, topic))
        lines += [f".SH {title}", *map(roff, page.intro)]
        for name, found in page.sections:
            lines += ([f".SS {roff(name)}"] if name else []) + roff_rows(found)
        lines += [".PP", *map(roff, page.closing)] if page.closing else []
    lines += [".SH FILES", *roff_rows([
        ("/etc/postrider/postrider.toml", "Settings; also read from the working directory."),
        ("/etc/postrider/database.url, master.key, admin.key", "Secrets that the systemd unit passes to the service."),
        ("~/.config/postrider/profiles.json", "Servers and keys for commands.")]),
        ".SH EXIT STATUS", *roff_rows([
            ("0", "Success, or a clean stop."), ("1", "Failure; the last line on stderr gives the reason."),
            ("2", "Invalid command line or configuration."), ("3", "Stopped immediately by a second signal.")])]
    return "\n".join(lines) + "\n"


# ── the reference page ───────────────────────────────────────────────────────────────────────────────────────


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def markdown(binary, _version):
    lines = ["# Commands", "", "<!-- Written by tools/man_page.py from the help of the program. Do not edit. -->", "",
             "[The command line](../command-line.md) explains how to choose a server, output formats and exit codes. "
             "[Settings](settings.md) are the options of `postrider serve`.", ""]
    section = None
    for title, words, page in all_commands(binary):
        if title != section:
            lines += [f"## {title}", ""]
            section = title
        lines += [f"### postrider {' '.join(words)}", "", " ".join(page.intro), "", "```text", page.usage, "```", ""]
        found = [row for name, each in page.sections if name in ("Arguments", "Options") for row in each]
        if found and words != ["serve"]:
            lines += ["| | |", "|---|---|", *(f"| `{name}` | {cell(text)} |" for name, text in found), ""]
    return "\n".join(lines).rstrip() + "\n"


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in ("man", "markdown"):
        raise SystemExit(__doc__)
    binary, form = sys.argv[1:]
    version = subprocess.run([binary, "--version"], check=True, text=True, stdout=subprocess.PIPE).stdout.split()[-1]
    sys.stdout.write({"man": man, "markdown": markdown}[form](binary, version))


if __name__ == "__main__":
    main()
