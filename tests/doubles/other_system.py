"""Another operating system, pretended in this process: what Windows or macOS does not have is gone.

Neither system is at hand where the tests usually run. `pretend` takes away what Linux alone has and makes files behave
as they do elsewhere, so that code that relies on it fails here and not on the desk of a user:

=========  ==================================================================================================
``win32``  no ``fcntl``, ``resource``, ``pwd`` ... and nothing of `os`, `signal`, `socket` and `time` that is POSIX;
           a file that is open cannot be replaced, renamed or removed, one that is open for reading not be synced
``darwin`` of 127.0.0.0/8 only 127.0.0.1 can be bound
=========  ==================================================================================================

`sys.platform` says the name of the system, but `os.name` stays, since paths are those of this system. What other packages
choose by the platform they have chosen before, when they were imported.

``python -m tests.doubles.other_system win32 verify contacts.csv`` runs the command line on the pretended system.
"""

from __future__ import annotations

import asyncio
import errno
import importlib
import importlib.abc
import os
import signal
import socket
import stat
import sys
import time
import types
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

needs_posix = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has neither modes and owners of files nor named pipes"
)
POSIX_MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty", "uvloop")
POSIX_NAMES = {
    os: (
        *("chown", "fchmod", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid", "getuid"),
        *("killpg", "mkfifo", "nice", "pread", "pwrite", "register_at_fork", "sched_getaffinity"),
        *("setsid", "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_SYNC"),
    ),
    signal: ("SIGCHLD", "SIGHUP", "SIGUSR1", "SIGUSR2"),
    socket: ("SO_REUSEPORT",),
    time: ("tzset",),
}
# Which branch by the platform when they are imported, or import what is taken away.
OTHER_PACKAGES = (
    "concurrent.futures.process",
    "dns.resolver",
    "httpx",
    "multiprocessing.popen_spawn_posix",
    "multiprocessing.resource_tracker",
    "pandas",
    "platformdirs",
    "psutil",
    "pyarrow.parquet",
    "sqlalchemy.dialects.sqlite",
    "tqdm.auto",
    "typer.testing",
    "uvicorn.server",
    "webbrowser",
)


def pretend(platform: str) -> None:
    """Make this process look as on another system, until it ends."""
    for name in OTHER_PACKAGES:
        importlib.import_module(name)
    for name in [each for each in sys.modules if each.partition(".")[0] == "mailverdict"]:
        del sys.modules[name]
    if platform == "win32":
        lock = sys.modules.get("fcntl") or importlib.import_module("fcntl")
        sys.modules["msvcrt"] = windows_locks(lock)
        take_away()
        hold_open_files()
    if platform == "darwin":
        allow_one_address()
    sys.platform = platform
    warnings.filterwarnings("error", category=EncodingWarning, module="mailverdict")


def take_away() -> None:
    """Remove what only POSIX has."""
    for name in POSIX_MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, NoPosix())
    for module, names in POSIX_NAMES.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    asyncio.ProactorEventLoop = asyncio.SelectorEventLoop  # type: ignore[attr-defined]


class NoPosix(importlib.abc.MetaPathFinder):
    """Finds that a module of POSIX is not there."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> None:
        if name in POSIX_MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def windows_locks(lock: Any) -> types.ModuleType:
    """The module `msvcrt`, with locks that belong to open files as those of Windows do."""
    module = types.ModuleType("msvcrt")

    def locking(descriptor: int, mode: int, octets: int) -> None:
        assert (mode, octets) == (module.LK_NBLCK, 1), "what the module can do here"
        try:
            lock.flock(descriptor, lock.LOCK_EX | lock.LOCK_NB)
        except BlockingIOError as exc:
            raise PermissionError(errno.EACCES, "Permission denied") from exc

    module.LK_NBLCK = 2  # type: ignore[attr-defined]
    module.locking = locking  # type: ignore[attr-defined]
    return module


def hold_open_files() -> None:
    """Let no file be replaced, renamed or removed while this process has it open, as on Windows."""
    for name in ("remove", "rename", "replace", "unlink"):
        setattr(os, name, refusing_open_files(getattr(os, name)))
    sync = os.fsync

    def fsync(file: Any) -> None:
        descriptor = file if isinstance(file, int) else file.fileno()
        flags = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii").split()[3]
        if int(flags, 8) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        sync(descriptor)

    os.fsync = fsync


def refusing_open_files(change: Callable[..., None]) -> Callable[..., None]:
    def changed(*paths: Any, **options: Any) -> None:
        in_folder = options.get("dir_fd")
        for path in paths:
            if sys._getframe(1).f_globals.get("__name__") != "tempfile" and is_open(
                path, in_folder
            ):
                message = "the process cannot access the file because it is being used"
                raise PermissionError(errno.EACCES, message, str(path))
        change(*paths, **options)

    return changed


def is_open(path: Any, in_folder: int | None) -> bool:
    """Whether this process has a file open, or in its memory."""
    try:
        found = os.stat(path, dir_fd=in_folder, follow_symlinks=False)
    except (OSError, ValueError):
        return False
    if not stat.S_ISREG(found.st_mode):
        return False
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            if os.path.samestat(found, descriptor.stat()):
                return True
        except OSError:
            continue
    mapped = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    return f" {found.st_ino} " in mapped and str(path).rpartition("/")[2] in mapped


def allow_one_address() -> None:
    """Let 127.0.0.1 be the only address of IPv4 that sockets are bound to, as on macOS."""
    bind = socket.socket.bind

    def bind_one(self: socket.socket, address: Any) -> None:
        is_other = self.family == socket.AF_INET and address[0].startswith("127.")
        if is_other and address[0] != "127.0.0.1":
            raise OSError(errno.EADDRNOTAVAIL, "Can't assign requested address")
        bind(self, address)

    socket.socket.bind = bind_one  # type: ignore[method-assign]


def pytest_load_initial_conftests() -> None:
    """As a plugin of pytest, with the name of the system in the environment: all tests on that system."""
    pretend(os.environ["PRETENDED_SYSTEM"])


if __name__ == "__main__":
    pretend(sys.argv[1])
    del sys.argv[1]
    importlib.import_module("mailverdict.__main__").run()
