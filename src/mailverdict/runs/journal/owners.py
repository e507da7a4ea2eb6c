"""The process that holds leases in a journal, and whether it still runs."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

import psutil

CLOCK_TOLERANCE = 60.0  # seconds: start times are wall-clock times, which move when the system's clock is corrected


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that uses a journal."""

    host: str  # machine, and process-id namespace on Linux: a pid means nothing elsewhere
    pid: int
    born: str  # seconds since the epoch when it started: differs for a later process with the same pid; may be empty

    def has_ended(self) -> bool:
        """Whether the process certainly does not run any more."""
        if self.host != this_host():
            return False
        try:
            started: float = psutil.Process(self.pid).create_time()
        except psutil.NoSuchProcess:
            return True
        except psutil.Error:  # it exists and belongs to another user
            return False
        return bool(self.born) and abs(started - float(self.born)) > CLOCK_TOLERANCE


def this_process() -> Owner:
    """The process that runs this code."""
    return Owner(this_host(), os.getpid(), f"{psutil.Process().create_time():.2f}")


def this_host() -> str:
    """The machine, within which process ids are unique."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return f"{socket.gethostname()} {namespace}".strip()
