"""Ports that stay free while their server is away."""

import pathlib
import random
import socket

LOWEST = 10000
RANGE = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")


def lasting_port():
    """A free port below the system's ephemeral range, so that a server that restarts can use it again."""
    first_given = int(RANGE.read_text().split()[0])
    above = first_given if first_given > 2 * LOWEST else 65536
    while True:
        port = random.SystemRandom().randrange(LOWEST, above)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
