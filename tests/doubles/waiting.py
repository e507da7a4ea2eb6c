"""Waiting for what another thread or process does."""

from __future__ import annotations

import threading
from collections.abc import Callable

INTERVAL = 0.005  # seconds


def wait_until(condition: Callable[[], object]) -> None:
    """Return when a condition holds; pytest's own time-out ends what never does."""
    pause = threading.Event()
    while not condition():
        pause.wait(INTERVAL)
