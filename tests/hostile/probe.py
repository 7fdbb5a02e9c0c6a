"""What this machine itself makes a program wait: `python3 probe.py FOLDER` prints `TIME LATE SYNC` in seconds, ten times a
second: how late a short sleep ended, and how long it took to write a page to the disk. It has no part in the experiment, so
what gets slower for it is the machine."""

import os
import pathlib
import sys
import time

INTERVAL_SECONDS = 0.1
SLEEP_SECONDS = 0.002
PAGE = b"x" * 8192
PAGES = 2048


def lateness():
    due = time.monotonic() + SLEEP_SECONDS
    time.sleep(SLEEP_SECONDS)
    return time.monotonic() - due


def sync_time(file, number):
    os.pwrite(file, PAGE, number % PAGES * len(PAGE))
    start = time.monotonic()
    os.fdatasync(file)
    return time.monotonic() - start


def main():
    path = pathlib.Path(sys.argv[1]) / "probe"
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    os.write(file, PAGE * PAGES)     # as a log file of Postgres: it does not grow while it is written
    os.fsync(file)
    number = 0
    while os.getppid() != 1:
        number += 1
        print(time.monotonic(), lateness(), sync_time(file, number), flush=True)
        time.sleep(INTERVAL_SECONDS)


if __name__ == "__main__":
    main()
