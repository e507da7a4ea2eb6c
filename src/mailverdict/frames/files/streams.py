"""Verify a table of any size in pieces; after an interruption every row is still returned."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from types import FrameType, TracebackType
from typing import Any

import pyarrow as pa

from ...errors import BackendError
from ...runs.progress import Progress
from ...runs.run import Run
from ..verify import start

__all__ = ["PieceStream", "Stopper"]


class Stopper:
    """While it is open, the first Ctrl-C requests a stop, whenever it comes; a second one raises `KeyboardInterrupt`.

    `on_stop` is called at the first Ctrl-C, within the signal handler.
    """

    def __init__(self, on_stop: Callable[[], None] = lambda: None) -> None:
        self.on_stop = on_stop
        self.is_requested = False
        self.run: Run[Any] | None = None

    def __enter__(self) -> Stopper:
        self.previous_handler = signal.signal(signal.SIGINT, self.on_signal)  # possible in the main thread only
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self.previous_handler)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.is_requested:
            signal.default_int_handler(number, frame)
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


class PieceStream:
    """Verifies the pieces of one table with the same backend and journal. Options are those of `mailverdict.verify`.

    After a stop or a failure of the backend, the current piece comes with what was settled and the following ones as
    ``pending``, so that no row is lost.
    """

    def __init__(self, column: str, stopper: Stopper, **options: Any) -> None:
        self.column, self.stopper, self.options = column, stopper, options
        self.limit_left: int | None = options.get("limit")  # for all pieces together
        self.failure: BackendError | None = None  # what ended the verification early
        self.notices: list[str] = []  # messages for the user, each once
        self.is_short_of_quota = False  # the daily quota left rows pending

    def verify(self, pieces: Iterable[pa.Table]) -> Iterator[tuple[pa.Table, Progress]]:
        """Yield each piece with its result columns, and the progress of its run.

        Raises the `BackendError` if nothing was settled before it.
        """
        settled = 0
        for piece in pieces:
            out, progress = self.verify_piece(piece)
            settled += progress.settled
            if self.failure is not None and not settled:
                raise self.failure
            yield out, progress

    def verify_piece(self, piece: pa.Table) -> tuple[pa.Table, Progress]:
        """Verify one piece; after a stop or failure, add its result columns without asking the backend."""
        has_ended = self.stopper.is_requested or self.failure is not None
        changed = {"limit": self.limit_left}
        if has_ended:
            changed = {"limit": 0, "offline": True, "journal": None, "progress": False}
        run = start(piece, self.column, **{**self.options, **changed})
        if not has_ended:
            self.stopper.watch(run)
        try:
            out = run.result()
        except BackendError as exc:
            self.failure, out = exc, exc.partial
        if self.limit_left is not None and not has_ended:
            self.limit_left -= run._execution.newly_verified
        self.is_short_of_quota |= bool(run._execution.short_of_quota)
        self.notices += [notice for notice in run.notices if notice not in self.notices]
        return out, run.progress
