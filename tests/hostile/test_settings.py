"""Hostile values in every setting, in the environment and in the file: a sentence, never a crash."""

import json
import subprocess

from harness import node as node_module
from harness.hostile import TEXTS, some, shown

SECONDS = 20


def run(words, **settings):
    return subprocess.run([node_module.binary(), *words], cwd="/", capture_output=True, timeout=SECONDS,
                          env=node_module.environment(**settings))


def names():
    return list(json.loads(run(["config", "--json"]).stdout))


def test_no_value_of_a_setting_crashes_the_program(tmp_path):
    wrong = []
    texts = [text for text in TEXTS if "\x00" not in text]
    file = tmp_path / "postrider.toml"
    for number, name in enumerate(names()):
        in_environment, in_file = some(texts, number, 2)
        file.write_text(f"{name} = {json.dumps(in_file)}\n")
        for text, done in ((in_environment, run(["config"], **{name: in_environment})), (in_file, run(["config", "--config", str(file)]))):
            if done.returncode < 0 or done.returncode > 100 or (done.returncode and not done.stderr.strip()):
                wrong.append(f"{name} = {shown(text)}: {done.returncode} {done.stderr[-200:]!r}")
    assert not wrong, "\n".join(wrong[:20])
