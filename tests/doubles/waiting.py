"""Waiting for what another thread or process does."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path

from mailverdict.errors import JournalError
from mailverdict.runs.journal.journal import Journal

INTERVAL = 0.005  # seconds


def wait_until(condition: Callable[[], object], timeout: float = math.inf) -> bool:
    """Return whether a condition holds within `timeout` seconds; without one, pytest's own time-out applies."""
    pause = threading.Event()
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        pause.wait(INTERVAL)
    return True


def settled_in(journal: Path) -> int:
    """How many addresses a journal has an answer for; none where it is being made."""
    try:
        with Journal(journal) as seen:
            return sum(entry.settled for entry in seen.summary())
    except JournalError:
        return 0
