"""Servers that run for the time of a block."""

import contextlib
import pathlib
import socket
import subprocess

from harness.wait import wait_until

STOP_SECONDS = 60


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def running(command, folder, port):
    """A server that runs until the end of the block, and listens on the port when the block begins."""
    log_path = folder / f"{pathlib.Path(command[0]).name}.log"
    with open(log_path, "wb") as log:
        process = subprocess.Popen([str(word) for word in command], cwd=folder, stdout=log, stderr=log,
                                   env={"PATH": "/usr/bin:/bin", "HOME": str(folder)})
    try:
        wait_until(lambda: listens(port) or process.poll() is not None, f"{command[0]} listens")
        assert process.poll() is None, log_path.read_text()
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        finally:
            process.kill()
