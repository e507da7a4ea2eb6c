"""Stopping a command by a signal: the first one asks, a second one ends it.

Ctrl-C          the run is cancelled; its rows are written, what is left is pending; status 130
Ctrl-C again    KeyboardInterrupt, where the command is
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, NoReturn

from ..runs.run import Run

REPEAT_SECONDS = 2.0  # in which another signal is taken for a copy of the first


class Stopper:
    """While it is open, the first Ctrl-C, SIGTERM or SIGHUP requests a stop, whenever it comes.

    A second one raises `KeyboardInterrupt` or `SystemExit`. `on_stop` is called at the first,
    within its handler. A signal that is ignored, as SIGHUP is under ``nohup``, stays ignored. The
    command ``timeout`` sends SIGTERM to the process and to its group: other signals than Ctrl-C
    count once within `REPEAT_SECONDS` seconds.
    """

    def __init__(
        self,
        on_stop: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.on_stop = on_stop
        self.clock = clock
        self.requested_at = 0.0
        self.is_requested = False
        self.exit_status = 128 + signal.SIGINT  # as shells report a process that a signal ended
        self.run: Run[Any] | None = None

    def __enter__(self) -> Stopper:
        # Possible in the main thread only.
        self.previous_handlers = {}
        for number in handled_signals():
            self.previous_handlers[number] = signal.signal(number, self.on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self.previous_handlers.items():
            signal.signal(number, handler)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.is_requested and number == signal.SIGINT:
            signal.default_int_handler(number, frame)
        if self.is_requested and self.clock() - self.requested_at < REPEAT_SECONDS:
            return
        if self.is_requested:
            exit_on_signal(number, frame)
        self.requested_at = self.clock()
        self.exit_status = 128 + number
        self.stop()
        self.on_stop()

    def stop(self) -> None:
        """Cancel the current run, and every later one at its start."""
        self.is_requested = True
        if self.run is not None:
            self.run.cancel()

    def watch(self, run: Run[Any]) -> None:
        """Make this the current run."""
        self.run = run
        if self.is_requested:
            run.cancel()


def handled_signals() -> list[signal.Signals]:
    """The signals that end a program, without those that this process was told to ignore."""
    numbers = []
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            numbers.append(number)
    return numbers


def exit_on_signal(number: int, frame: FrameType | None) -> NoReturn:
    """Leave by an exception, so that every temporary file is removed; for `signal.signal`."""
    raise SystemExit(128 + number)
