"""Ports for programs that cannot be told to choose one, or whose port must be known before they start."""

from __future__ import annotations

import os
import random
import socket

LOW, HIGH = 20_000, 32_000  # below the range from which systems take ports for outgoing connections
PORTS = random.Random(os.getpid())


def free_port() -> int:
    """A port on which nothing listens, and that no outgoing connection can take until a program listens on it."""
    while True:
        port = PORTS.randrange(LOW, HIGH)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
