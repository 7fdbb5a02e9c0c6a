"""The command blocks of Markdown pages: finding them, and running them as a reader would.

An HTML comment directly above a block speaks to the tests:
  <!-- not run: REASON -->         no test runs the block
  <!-- run by: FILE -->            another test runs it
  <!-- test: STEP; STEP … -->      for `Shell`:
      terminal NAME                run it in the background, until `stop NAME`
      stop NAME, start NAME        before the block
      prints TEXT                  its output contains TEXT; repeat the block until it does
      as USER                      SQL: connect as that role
"""

import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess

from .wait import wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = ("sh", "sql", "http", "toml")   # languages of blocks that are run
SHOWN = ("text", "json", "yaml", "ini")       # languages of blocks that show something and are no commands
BLOCK_SECONDS = 120

_BLOCK = re.compile(r"(?:^<!--[ ]*(?P<comment>[^\n]*?)[ ]*-->\n)?^```(?P<language>[^\n]*)\n(?P<text>.*?)^```$",
                    re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)


@dataclasses.dataclass
class Block:
    page: str
    line: int
    language: str
    text: str
    heading: str
    not_run: str | None = None
    run_by: str | None = None
    steps: list = dataclasses.field(default_factory=list)

    @property
    def place(self):
        return f"{self.page}:{self.line}"


def parse(page, text):
    blocks, heading, end = [], "", 0
    for match in _BLOCK.finditer(text):
        for title in _HEADING.findall(text[end:match.start()]):
            heading = title
        end = match.end()
        line = text.count("\n", 0, match.start("language")) + 1
        block = Block(page, line, match["language"], match["text"], heading)
        kind, _, rest = (match["comment"] or "").partition(":")
        if kind == "not run":
            block.not_run = rest.strip()
        elif kind == "run by":
            block.run_by = rest.strip()
        elif kind == "test":
            block.steps = [step.strip() for step in rest.split(";")]
        blocks.append(block)
    return blocks


def blocks_of(page):
    return parse(page, (ROOT / page).read_text())


def heed_interrupts():
    """Programs that are started in the background may have inherited that SIGINT is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Shell:
    """A reader's shell in one folder. What a block sets is there for the later ones."""

    def __init__(self, folder, variables, replace=None):
        """`replace`: what the page says → what is there in the test, such as addresses and IDs."""
        self.folder = pathlib.Path(folder)
        self.variables = variables
        self.replace = dict(replace or {})
        self.database_url = None   # function of the role; otherwise as `postrider database-url` has it
        self.api = None            # for http blocks
        self.ready = {}            # terminal → function: is it ready?
        self.terminals = {}        # name → process, or None while it is stopped
        self.texts = {}

    def run_page(self, page):
        """Every block that is for this runner, in order."""
        for block in blocks_of(page):
            if block.language in RUN and block.not_run is None and block.run_by is None:
                self.run(block)

    def run(self, block):
        """Runs one block and returns what it printed."""
        wanted, role = None, None
        text = self.fill(block.text)
        for step in block.steps:
            word, _, rest = step.partition(" ")
            if word == "terminal":
                self.texts[rest] = text
                return self.start(rest)
            if word == "stop":
                self.stop(rest)
            elif word == "start":
                self.start(rest)
            elif word == "prints":
                wanted = self.fill(rest)
            elif word == "as":
                role = rest
            else:
                raise ValueError(f"{block.place}: unknown step {step!r}")
        run = {"sh": self.run_sh, "http": self.run_http, "toml": self.run_toml}.get(block.language)
        attempt = (lambda: run(text)) if run else (lambda: self.run_sql(text, role))
        return self.repeat(attempt, wanted, block)

    def repeat(self, attempt, wanted, block):
        printed = ""

        def succeeds():
            nonlocal printed
            good, printed = attempt()
            assert good or wanted, f"{block.place} failed:\n{block.text}\n{printed}"
            return good and (wanted is None or wanted in printed)

        try:
            wait_until(succeeds, f"it prints {wanted!r}")
        except AssertionError as error:
            raise AssertionError(f"{block.place}: {error}\n{printed}") from None
        return printed

    def fill(self, text):
        for shown, real in self.replace.items():
            text = text.replace(shown, real)
        return text

    def script(self, text, is_kept=True):
        """`is_kept`: what it sets is there for the next script."""
        state = self.folder / ".shell-state"
        keep = f"trap 'export -p > {state}' EXIT\n" if is_kept else ""
        # curl fails when the server rejects the request; a reader would see that.
        curl = 'curl() { command curl --fail-with-body "$@"; }\n'
        return f"[ ! -e '{state}' ] || . '{state}'\nset -aeuo pipefail\n{curl}{keep}{text}"

    def execute(self, command, stdin=None):
        done = subprocess.run(command, cwd=self.folder, env=self.variables, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=BLOCK_SECONDS,
                              **({"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}))
        return done.returncode == 0, done.stdout

    def run_sh(self, text):
        return self.execute(["bash", "-c", self.script(text)])

    def run_sql(self, text, role=None):
        url = self.database_url(role) if self.database_url else None
        psql = "psql -X -v ON_ERROR_STOP=1"
        if url:
            return self.execute([*psql.split(), url], text)
        return self.execute(["bash", "-c", self.script(f'{psql} "$(postrider database-url)"')], text)

    def run_http(self, text):
        """One request: method, target and, after them or in the lines below, the body."""
        method, target, *body = text.split(None, 2)
        answer = self.api.call(method, target, json.loads(body[0]) if body else None)
        return 200 <= answer.status < 300, f"{answer.status} {answer.body.decode()}"

    def run_toml(self, text):
        (self.folder / "postrider.toml").write_text(text)
        try:
            return self.execute(["bash", "-c", self.script("postrider config --config postrider.toml")])
        finally:
            (self.folder / "postrider.toml").unlink()

    def start(self, name):
        log = open(self.folder / f"terminal-{name}.log", "ab")
        process = subprocess.Popen(["bash", "-c", self.script(self.texts[name], is_kept=False)], cwd=self.folder, env=self.variables,
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                   preexec_fn=heed_interrupts)
        log.close()
        self.terminals[name] = process
        wait_until(lambda: self.ready[name]() or process.poll() is not None, f"{name} is ready", BLOCK_SECONDS)
        assert process.poll() is None, f"{name} ended:\n{self.printed(name)}"

    def printed(self, name):
        return (self.folder / f"terminal-{name}.log").read_text()

    def stop(self, name):
        """As Ctrl-C in that terminal."""
        process = self.terminals.pop(name)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(60)

    def close(self):
        for name in list(self.terminals):
            self.stop(name)
