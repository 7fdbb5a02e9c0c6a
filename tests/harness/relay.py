"""`postrider relay`: the relay at the application's side, and databases of applications."""

import subprocess

from .node import Node, binary, environment


def install(url):
    done = subprocess.run([binary(), "outbox", "install", "--database-url", url], cwd="/", text=True, env=environment(),
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    return url


class RelayProcess(Node):
    """Started by the constructor; its log is read as a node's."""

    def __init__(self, application, to, key_file, *words, **settings):
        super().__init__(("relay", "--database-url", application, "--to", to, "--key-file", str(key_file),
                          "--log-format", "json", *words), **settings)
