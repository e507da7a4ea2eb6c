"""Whether a run has ended: it locks a file, which the system frees with the process.

The locks belong to open files and not to processes: two runs of one process have one each, and
opening and closing the file elsewhere frees nothing. They hold across containers that share the
file. A forked process would share them, and is kept from that.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

HELD: set[BinaryIO] = set()  # the locked files of this process


class RunLock:
    """The lock of a run, until `release`; `is_held` is False if another run has it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: BinaryIO = open(os.fspath(path), "ab", opener=open_private)  # noqa: SIM115
        self.is_held = try_lock(self.file)
        if self.is_held:
            HELD.add(self.file)
        else:
            self.file.close()

    def unlock(self) -> None:
        """Free the lock, and leave its file to whoever locks it next."""
        HELD.discard(self.file)
        self.file.close()

    def release(self) -> None:
        """Free the lock and delete its file; not in a forked process, which does not have it."""
        if not self.file.closed:
            HELD.discard(self.file)
            self.file.close()
            delete(self.path)


def open_private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def lock_path(journal: Path, run: int) -> Path:
    return journal.with_name(f"{journal.name}-run{run}.lock")


def is_locked(path: Path) -> bool:
    """Whether a run has its lock still."""
    try:
        with path.open("rb") as file:
            return not try_lock(file)
    except FileNotFoundError:
        return False
    except PermissionError:  # of another user, who may still run
        return True


def is_ours(path: Path) -> bool:
    """Whether this process has the lock of a file."""
    return any(file.name == os.fspath(path) for file in HELD)


def delete_unlocked(journal: Path) -> None:
    """Delete the files of killed runs, where no run can make its file at the same time."""
    name = re.compile(re.escape(journal.name) + r"-run\d+\.lock")
    for file in journal.parent.iterdir():
        if name.fullmatch(file.name) and not is_locked(file):
            delete(file)


def delete(path: Path) -> None:
    with suppress(PermissionError):  # Windows: another run is looking at it; a later one deletes it
        path.unlink(missing_ok=True)


def try_lock(file: BinaryIO) -> bool:
    """Lock a file until it is closed; False if another open file has the lock."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def close_in_fork() -> None:
    """Close the files in a forked process, which would hold the locks for as long as it runs."""
    for file in HELD:
        file.close()
    HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=close_in_fork)
