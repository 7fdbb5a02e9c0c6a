"""Waiting for conditions; nothing here sleeps for a guessed time."""

import time

PATIENCE_SECONDS = 30.0


def wait_until(holds, what, seconds=PATIENCE_SECONDS):
    """Returns the first true value of holds(); fails after `seconds`, saying what did not come."""
    deadline = time.monotonic() + seconds
    while True:
        value = holds()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:.0f} s in vain: {what}")
        time.sleep(0.02)
