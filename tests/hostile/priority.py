"""Which parts of the experiment get the processor first. In production they are on different machines: attackers take no
processor time from the node, and clients and receivers do not wait for one that the node or Postgres uses."""

import contextlib
import os


def run_last(process=0):
    """Whatever else wants to run does so at once. For a process, what it starts included."""
    os.sched_setscheduler(process, os.SCHED_IDLE, os.sched_param(0))


def run_first():
    """The calling thread, and nothing that it starts. Without the right to do that it stays as it is."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
