#!/usr/bin/python3
"""Lists of log events, metrics and settings, written from the code to docs/reference. Without --fix it fails if a page is
out of date, or if docs/operating.md explains a log event that does not exist.

usage: lists.py [--fix]
"""

import re
import sys

import tree

SOURCE = "src/postrider/"
TESTS = re.compile(r"(?:_test|_pgtest)\.cpp$|(?:_testing|_test_support|_fixture)\.hpp$")
OPERATING = "docs/operating.md"
NOTE = "\n<!-- Written by tools/lists.py from the code. Do not edit; `./dev check --fix` rewrites it. -->\n"
STRING = r'"(?:\\.|[^"\\\n])*"'


class NotUnderstood(Exception):
    """The code has a form that this tool does not read. It must learn it: a list with gaps is worse than none."""


def sources():
    for path in tree.files(".cpp", ".hpp"):
        name = path.as_posix().removeprefix(SOURCE)
        if name != path.as_posix() and not TESTS.search(name):
            yield name, tree.code_only(tree.read(path), keep_strings=True)


def literal(text):
    """The value of adjacent C++ string literals."""
    return "".join(part[1:-1] for part in re.findall(STRING, text)).replace('\\"', '"')


def table(head, rows):
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join(lines + [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]) + "\n"


def code(words):
    return ", ".join(f"`{word}`" for word in words)


# ── log events ───────────────────────────────────────────────────────────────────────────────────────────────

LOG_CALL = re.compile(r"\blog_(debug|info|warn|error)\(\s*([^)\s]+)\s*\)")
LOG_LINE = re.compile(r"\bLogLine(?: (\w+))?\((?:telemetry::)?Level::(\w+),\s*\"(\w+)\"\)")
LOG_TEXT = re.compile(r'"level":"(\w+)","event":"(\w+)"')
STATEMENT = re.compile(r'(?:%s|[^;"])*' % STRING)
FIELD = re.compile(r'\.field\(\s*"(\w+)"')
LEVELS = ["debug", "info", "warn", "error"]


def passed_names(text, offset, argument):
    """Event names that callers in the same file pass to the function around `offset`, which logs its parameter."""
    functions = re.findall(r"^\S[^;{}]*?\b(\w+)\([^;{}]*\b%s\b[^;{}]*\{" % re.escape(argument), text[:offset], re.MULTILINE)
    names = re.findall(r'\b%s\(\s*"(\w+)"' % functions[-1], text) if functions else []
    if not names:
        raise NotUnderstood(f"log event from `{argument}`")
    return names


def statement_after(text, offset):
    return STATEMENT.match(text, offset)[0]


def fields_of_variable(text, offset, variable):
    body = text[offset:text.index("\n}", offset)]
    chains = re.findall(r"\b%s((?:\s*\.field\([^;]*)+);" % variable, body)
    return [field for chain in chains for field in FIELD.findall(chain)]


def log_lines(text):
    """Level, event and fields of every log line in a source file."""
    for match in LOG_CALL.finditer(text):
        argument = match[2]
        names = [argument.strip('"')] if argument.startswith('"') else passed_names(text, match.start(), argument)
        fields = FIELD.findall(statement_after(text, match.end()))
        line = text[text.rindex("\n", 0, match.start()) + 1:match.start()]
        if variable := re.search(r"\bauto (\w+) =", line):
            fields += fields_of_variable(text, match.end(), variable[1])
        for name in names:
            yield match[1], name, fields
    for match in LOG_LINE.finditer(text):
        fields = fields_of_variable(text, match.end(), match[1]) if match[1] else FIELD.findall(statement_after(text, match.end()))
        yield match[2], match[3], fields
    for match in LOG_TEXT.finditer(text):
        yield match[1], match[2], re.findall(r'"(\w+)":\{\}', text[match.end():text.index("\n", match.end())])


def log_events():
    events = {}
    for file, text in sources():
        if file == "telemetry/log.hpp":
            continue
        for level, name, fields in log_lines(text):
            levels, known, files = events.setdefault(name, (set(), {}, {}))
            levels.add(level)
            known.update(dict.fromkeys(fields))
            files[file] = True
    return events


def log_page(events):
    rows = [(f"`{name}`", ", ".join(sorted(levels, key=LEVELS.index)), code(fields), code(files))
            for name, (levels, fields, files) in sorted(events.items())]
    return (
        f"# Log events\n{NOTE}\nEvery line also has `time`, `level` and `event`. Some fields are only present when they apply. "
        f"[operating.md](../operating.md#the-log)\nexplains the events that need an explanation. Files are in `src/postrider`.\n\n"
        + table(["event", "level", "fields", "logged by"], rows)
    )


# ── metrics ──────────────────────────────────────────────────────────────────────────────────────────────────

# all.counter("name", "help", {{"label", value}, …}), all.counter_by("name", "help", "label", kNames), and
# all.counter_by("name", "help", {"label", kNames}, {"label", kNames}); histograms have boundaries after the help.
METRIC = re.compile(r'\ball\.((counter|gauge|histogram)(?:_by)?)\(\s*"(webhook_\w+)",\s*((?:%s\s*)+)' % STRING)
LABEL = re.compile(r'\{?"(\w+)",\s*(?:telemetry::Names)?(\{[^}]*\}|"\w+"|\w+)')
NAME_LIST = re.compile(r"\bNames (\w+) = \{([^}]*)\}")


def arguments_after(text, start):
    """The rest of a call's arguments, from `start` to its closing bracket."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return text[start:at]
    raise NotUnderstood("a call without an end")


def metric_labels(text, match, lists):
    """Label names with the values they can take; values that are only known at run time are left out."""
    labels = {}
    for name, value in LABEL.findall(arguments_after(text, match.end())):
        if value in lists:
            labels[name] = lists[value]
        else:
            labels[name] = re.findall(r'"(\w+)"', value)
    return labels


def metrics():
    found = {}
    for path, text in sources():
        lists = {name: re.findall(r'"(\w+)"', values) for name, values in NAME_LIST.findall(text)}
        named = set(re.findall(r'"(webhook_\w+)",', text)) - {"webhook_delivery_attempt"}
        for match in METRIC.finditer(text):
            kind, name, help_text = match[2], match[3], literal(match[4])
            labels = metric_labels(text, match, lists)
            if name not in found:
                found[name] = (kind, help_text, labels)
                continue
            if found[name][:2] != (kind, help_text):
                raise NotUnderstood(f"{name} has two descriptions")
            for label, values in labels.items():
                known = found[name][2].setdefault(label, [])
                known += [value for value in values if value not in known]
        if missed := named - found.keys():
            raise NotUnderstood(f"metrics {', '.join(sorted(missed))} in {path}")
    return found


def metrics_page():
    def label(name, values):
        return f"`{name}`: {', '.join(values)}" if values else f"`{name}`"

    rows = [(f"`{name}`", kind, "; ".join(label(*one) for one in labels.items()), text)
            for name, (kind, text, labels) in sorted(metrics().items())]
    return f"# Metrics\n{NOTE}\nServed at `/metrics` in the Prometheus text format.\n\n" + table(
        ["metric", "type", "labels", "meaning"], rows)


# ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────

SETTING = re.compile(r"\{(%s),\s*(%s),\s*(%s),\s*((?:%s\s*)+),\s*Secrecy::(\w+)," % ((STRING,) * 4))
SECTION = re.compile(r"^    // (.*)$", re.MULTILINE)


def settings_page():
    text = tree.read(SOURCE + "config/settings.cpp")
    rows_text = text[text.index("const Setting table[]"):text.index("\n};", text.index("const Setting table[]"))]
    settings = list(SETTING.finditer(rows_text))
    if len(settings) != rows_text.count("Secrecy::"):
        raise NotUnderstood("a row of config/settings.cpp")
    page = (f"# Settings\n{NOTE}\n[operating.md](../operating.md#settings) says where settings are read from. "
            "`postrider config` prints the effective values.\n")
    rows = []

    def flush():
        return "\n" + table(["setting", "default", "meaning"], rows) if rows else ""

    for match in sorted([*settings, *SECTION.finditer(rows_text)], key=lambda found: found.start()):
        if match.re is SECTION:
            page += flush() + f"\n## {match[1]}\n"
            rows = []
            continue
        default, note = literal(match[2]), literal(match[3])
        shown = note if not default or default == "0" and note else f"`{default}`" + (f" ({note})" if note else "")
        rows.append((f"`{literal(match[1])}`", shown, literal(match[4])))
    return page + flush()


# ── pages ────────────────────────────────────────────────────────────────────────────────────────────────────

def unknown_events(events):
    """Names in the table of docs/operating.md that explains log events, but that nothing logs."""
    text = tree.read(OPERATING)
    explained = text[text.index("| event | meaning |"):]
    explained = explained[:explained.index("\n\n")]
    cells = re.findall(r"^\| (`[^|]*) \|", explained, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`(\w+)`", cell) if name not in events]


def main():
    is_fix = "--fix" in sys.argv[1:]
    wrong = []
    try:
        events = log_events()
        pages = {"log-events": log_page(events), "metrics": metrics_page(), "settings": settings_page()}
    except NotUnderstood as error:
        print(f"tools/lists.py does not understand the code: {error}")
        return 1
    for name, text in pages.items():
        path = tree.ROOT / "docs" / "reference" / f"{name}.md"
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if is_fix:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        else:
            wrong.append(f"docs/reference/{name}.md is out of date: run ./dev check --fix")
    wrong += [f"{OPERATING} explains the log event {name}, which does not exist" for name in unknown_events(events)]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
