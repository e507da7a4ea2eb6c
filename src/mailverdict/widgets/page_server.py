"""The audit as a page of its own, for one person on this machine: Voila on 127.0.0.1 behind a token.

Requests without the token are refused, also those to the kernel and its WebSocket; other users of the machine can reach
a port of 127.0.0.1 as well. The page may load nothing from other hosts (Content-Security-Policy). The kernel's own
sockets are files in a private folder where the system has such sockets.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import ipykernel  # noqa: F401 - the kernel of each page; without it every visit fails
import zmq
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_core.utils import ensure_async
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop, PeriodicCallback
from tornado.web import HTTPError
from tornado.websocket import WebSocketClosedError
from traitlets.config import Config
from voila.app import Voila

from ..errors import SettingsError

__all__ = ["PageServer", "serve_page"]

HOST = "127.0.0.1"
LOOK_EVERY = 5.0  # seconds between looks at which pages are open
ABANDONED_AFTER = 60.0  # seconds; a page connects again within a few after a break
LOADING_AT_MOST = 900.0  # seconds until the page of a new kernel connects; it reads the file first
# Of the kernels, unless the user has set them. Arrow's own allocator, and that of the GNU C library with an arena for
# each thread, keep what a large list needed for a moment: twice the list at a million rows.
ALLOCATION = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
LONGEST_SOCKET_PATH = 103  # bytes on macOS, 107 on Linux
# Scripts: Voila's are inline, its loader uses `eval`, and anywidget imports a widget's script from a blob.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob: data:; "
    "style-src 'self' 'unsafe-inline' blob: data:; img-src 'self' blob: data:; font-src 'self' data:; "
    "connect-src 'self' ws://{host} blob: data:; frame-src 'self' blob: data:; object-src 'none'; "
    "base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
LastSeen = dict[str, tuple[float, float]]  # by kernel: when it had a page, and the seconds it may be without one
# Opened instead of the address itself, since all users of the machine can read the arguments of a browser's process.
OPENER = """<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>mailverdict</title>
<script>
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  location.replace(URL_OF_PAGE + (isDark ? "&theme=dark" : ""));
</script>
"""


class ThisPython(KernelSpecManager):
    """Kernels run the Python of this process, whatever kernels are installed; they keep no history of the cells."""

    def _kernel_dirs_default(self) -> list[str]:
        return []

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        spec = super().get_kernel_spec(kernel_name)
        spec.argv = [*spec.argv, "--HistoryManager.enabled=False"]
        spec.env = {**spec.env, **{name: value for name, value in ALLOCATION.items() if name not in os.environ}}
        return spec


class PageServer(Voila):  # type: ignore[misc]
    """Voila that listens on 127.0.0.1 only, on a port that is free, and ends its kernels when it is stopped."""

    listener: socket.socket
    ioloop: IOLoop | None = None
    on_ready: Callable[[str], None] = staticmethod(lambda url: None)

    def listen(self) -> None:
        """Serve until a signal ends it. Voila would announce an address without the token."""
        host = f"{HOST}:{self.port}"
        self.app.settings["headers"] = {
            "Content-Security-Policy": POLICY.format(host=host),
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        HTTPServer(self.app).add_socket(self.listener)
        self.ioloop = IOLoop.current()
        asyncio.get_event_loop().set_exception_handler(report_error)
        self.last_seen: LastSeen = {}
        look = PeriodicCallback(self.end_abandoned, 1000 * LOOK_EVERY)
        try:
            self.on_ready(f"http://{host}/?token={self.token}")
            look.start()
            self.ioloop.start()
        finally:
            look.stop()
            self.stop()

    async def end_abandoned(self) -> None:
        """End the kernels of pages that were closed: their runs would go on, and nobody could reach the results."""
        for kernel in find_abandoned(self.kernel_manager.list_kernels(), self.last_seen, time.monotonic()):
            await ensure_async(self.kernel_manager.shutdown_kernel(kernel))

    def on_signal(self, number: int, frame: Any) -> None:
        if self.ioloop is None:
            raise SystemExit(128 + number)
        self.ioloop.add_callback_from_signal(self.ioloop.stop)

    def stop(self) -> None:
        """End all kernels, then remove their connection files. Voila removes the files first."""
        assert self.ioloop is not None
        self.ioloop.run_sync(self.end_kernels)  # in the loop in which they were started, or started only now
        shutil.rmtree(self.connection_dir, ignore_errors=True)

    async def end_kernels(self) -> None:
        """End all kernels. One that is being started is not known yet; it can be ended a moment later."""
        for _ in range(40):
            with suppress(HTTPError, KeyError):
                await ensure_async(self.kernel_manager.shutdown_all())
                return
            await asyncio.sleep(0.25)


@contextmanager
def private_files() -> Iterator[None]:
    """All files and sockets that this process and its kernels make are for their user alone."""
    previous = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(previous)


def serve_page(code: str, title: str, port: int, on_ready: Callable[[str, Path], None]) -> None:
    """Serve a page that shows what one cell of code shows, until SIGINT, SIGTERM or SIGHUP.

    Parameters
    ----------
    code : str
        The cell. Each visit of the page runs it in a kernel of its own, which ends when the page is closed.
    title : str
        The title of the page.
    port : int
        0 for any port that is free.
    on_ready : callable
        Called with the address of the page, token included, and a private file that opens it in a browser.
    """
    with (
        private_files(),
        open_port(port) as listener,
        tempfile.TemporaryDirectory(prefix="mailverdict-", ignore_cleanup_errors=True) as made,
    ):
        folder = Path(made).resolve()
        notebook, redirect = folder / "mailverdict.ipynb", folder / "open.html"
        notebook.write_text(json.dumps(make_notebook(code, title)), encoding="utf-8")

        def announce(url: str) -> None:
            redirect.write_text(OPENER.replace("URL_OF_PAGE", json.dumps(url)), encoding="utf-8")
            on_ready(url, redirect)

        # No configuration file is read: Voila would also run a voila.py in the current folder.
        server = PageServer(
            config=make_config(folder),
            config_file_paths=[],
            port=listener.getsockname()[1],
            token=secrets.token_urlsafe(32),
            connection_dir_root=str(folder),
            notebook_path=str(notebook),
            log_level="ERROR",
        )
        server.listener, server.on_ready = listener, announce
        for name in ("access", "application", "general"):  # every refused request would be a traceback in the terminal
            logging.getLogger(f"tornado.{name}").setLevel(logging.CRITICAL)
        known = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
        previous_handlers = {number: signal.getsignal(number) for number in known}
        try:
            server.initialize([])  # handles SIGTERM itself
            for number in known:
                signal.signal(number, server.on_signal)
            server.start()
        finally:
            for number, handler in previous_handlers.items():
                signal.signal(number, handler)


def report_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report an error that nobody waited for, but not that a page was closed while it was written to."""
    if not isinstance(context.get("exception"), WebSocketClosedError):
        loop.default_exception_handler(context)


def find_abandoned(
    kernels: Sequence[Mapping[str, Any]], last_seen: dict[str, tuple[float, float]], now: float
) -> list[str]:
    """The ids of kernels that have been without a page for too long; brings `last_seen` up to date."""
    for kernel in kernels:
        if kernel["connections"]:
            last_seen[kernel["id"]] = now, ABANDONED_AFTER
        else:
            last_seen.setdefault(kernel["id"], (now, LOADING_AT_MOST))
    known = {kernel["id"] for kernel in kernels}
    for identity in [*last_seen.keys() - known]:
        del last_seen[identity]
    return [identity for identity, (seen, patience) in last_seen.items() if now - seen > patience]


def open_port(port: int) -> socket.socket:
    """A socket that listens on 127.0.0.1."""
    try:
        listener = socket.create_server((HOST, port), backlog=128)
    except OSError as exc:
        raise SettingsError(f"port {port} cannot be opened: {os.strerror(exc.errno or 0)}") from exc
    listener.setblocking(False)
    return listener


def make_config(folder: Path) -> Config:
    """Settings of Voila and of the kernels' connections."""
    config = Config()
    config.VoilaConfiguration.kernel_spec_manager_class = ThisPython
    config.VoilaConfiguration.file_allowlist = []  # no file of the folder is served
    config.VoilaConfiguration.allow_template_override = "NO"
    # On TCP every user of the machine could read what a kernel publishes.
    longest = folder / "voila_12345678" / f"kernel-{'0' * 36}-ipc-1"
    if sys.platform != "win32" and len(os.fsencode(longest)) <= LONGEST_SOCKET_PATH:
        config.KernelManager.transport = "ipc"
    elif zmq.has("curve"):
        config.KernelManager.transport_encryption = "auto"  # older versions of jupyter_client ignore it
    return config


def make_notebook(code: str, title: str) -> dict[str, Any]:
    """A notebook with one cell."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    cell: dict[str, Any] = {"cell_type": "code", "id": "audit", "metadata": {}, "source": code, "outputs": []}
    cell["execution_count"] = None
    return {"cells": [cell], "metadata": {"kernelspec": kernel, "title": title}, "nbformat": 4, "nbformat_minor": 5}
