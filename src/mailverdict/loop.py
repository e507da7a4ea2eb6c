"""Running async code from sync code: one daemon thread with an event loop per process.

In a notebook `asyncio.run` raises, since the kernel runs a loop in the main thread. This works
there, in scripts, in threads and in worker processes; a forked child gets a loop of its own.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import sys
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
# Seconds between checks for Ctrl-C; on Windows a plain Future.result() cannot be interrupted.
SLICE = 0.1


class LoopThread:
    """A daemon thread that runs an event loop for as long as the process lives."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = new_loop()
        self.thread = threading.Thread(
            target=self.loop.run_forever, name="mailverdict-loop", daemon=True
        )
        self.thread.start()

    def is_usable(self) -> bool:
        """Whether this is the thread of this process: a fork copies the object, not the thread."""
        return self.pid == os.getpid() and self.thread.is_alive()


def new_loop() -> asyncio.AbstractEventLoop:
    """An event loop.

    On Windows it is not the kind that stops at 512 sockets, which other packages choose as default.
    """
    if sys.platform == "win32":
        return asyncio.ProactorEventLoop()
    return asyncio.new_event_loop()


HOLDER: list[LoopThread] = []
LOCK = threading.Lock()


def loop_thread() -> LoopThread:
    """The process's loop thread, started at first use."""
    with LOCK:
        if not HOLDER or not HOLDER[0].is_usable():
            HOLDER[:] = [LoopThread()]
        return HOLDER[0]


def start_task(coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
    """Start `coroutine` on the loop thread and return its future."""
    return asyncio.run_coroutine_threadsafe(coroutine, loop_thread().loop)


def wait_until_done(future: concurrent.futures.Future[Any], timeout: float | None = None) -> None:
    """Wait until the future is done, interruptible by Ctrl-C.

    TimeoutError after `timeout` seconds.
    """
    left = timeout
    while not future.done():
        piece = SLICE if left is None else min(SLICE, left)
        concurrent.futures.wait([future], timeout=piece)
        if left is not None and not future.done():
            left -= piece
            if left <= 0:
                raise TimeoutError(f"not finished after {timeout} seconds")


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run `coroutine` to its end from synchronous code; Ctrl-C cancels it and is raised."""
    future = start_task(coroutine)
    try:
        wait_until_done(future)
    except KeyboardInterrupt:
        future.cancel()
        raise
    return future.result()
