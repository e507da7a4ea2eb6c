"""Who holds a lease on an address, and whether that process still lives."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Owner", "this_process"]

START_TIME = 19  # field 22 of /proc/<pid>/stat, counted after the command's closing parenthesis


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that uses a journal.

    Attributes
    ----------
    host : str
        Machine, and process-id namespace where there is one: a pid means nothing elsewhere.
    pid : int
        Process id.
    born : str
        When the process started, by the kernel's count; empty where that cannot be read. Tells a
        process from a later one with the same id.
    """

    host: str
    pid: int
    born: str

    def has_ended(self) -> bool:
        """Whether the process certainly does not live any more."""
        if self.host != this_host() or os.name != "posix":
            return False  # os.kill(pid, 0) ends a process on Windows; leases expire there
        return not is_running(self.pid) or born_of(self.pid) != self.born


def this_process() -> Owner:
    """The process that runs this code, as an owner."""
    return Owner(this_host(), os.getpid(), born_of(os.getpid()))


def this_host() -> str:
    """The machine, within which process ids are unique."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return f"{socket.gethostname()} {namespace}".strip()


def is_running(pid: int) -> bool:
    """Whether a process of this id exists (POSIX only)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it exists, and is somebody else's
        return True
    return True


def born_of(pid: int) -> str:
    """The kernel's start time of a process; empty where there is no /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return fields[START_TIME] if len(fields) > START_TIME else ""
