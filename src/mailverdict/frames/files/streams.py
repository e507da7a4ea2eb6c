"""A table of any size, piece by piece; an interruption still gives every row back."""

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
    """While it is open, the first Ctrl-C only asks for an end, wherever it falls; a second one is felt as usual.

    Parameters
    ----------
    tell : callable
        Called at the first Ctrl-C, within the signal handler.
    """

    def __init__(self, tell: Callable[[], None] = lambda: None) -> None:
        self.tell = tell
        self.is_asked = False
        self.run: Run[Any] | None = None

    def __enter__(self) -> Stopper:
        """Take Ctrl-C over; works in the main thread only, as signals do."""
        self.earlier = signal.signal(signal.SIGINT, self.heed)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Give Ctrl-C back."""
        signal.signal(signal.SIGINT, self.earlier)

    def heed(self, number: int, frame: FrameType | None) -> None:
        """Ask for an end; the second time, interrupt."""
        if self.is_asked:
            signal.default_int_handler(number, frame)
        self.stop()
        self.tell()

    def stop(self) -> None:
        """Have the run at hand end early, and no other begin."""
        self.is_asked = True
        if self.run is not None:
            self.run.cancel()

    def follow(self, run: Run[Any]) -> None:
        """End this run when an end is asked for."""
        self.run = run
        if self.is_asked:
            run.cancel()


class PieceStream:
    """Verifies the pieces of one table with the same backend and journal.

    After a stop, or a failure of the backend, the piece at hand comes with what was settled and the
    others as ``pending``: no row is lost. Then `failure` says what happened.

    Parameters
    ----------
    column : str
        Which column.
    stopper : Stopper
        Who may ask for an end.
    **options
        As in `mailverdict.verify`; `limit` is for all pieces together.

    Attributes
    ----------
    failure : BackendError or None
        What ended the verifying early.
    notices : list of str
        What the user should be told, each once.
    is_short_of_quota : bool
        Whether the daily quota left rows pending.
    """

    def __init__(self, column: str, stopper: Stopper, **options: Any) -> None:
        self.column, self.stopper, self.options = column, stopper, options
        self.left: int | None = options.get("limit")
        self.failure: BackendError | None = None
        self.notices: list[str] = []
        self.is_short_of_quota = False

    def verify(self, pieces: Iterable[pa.Table]) -> Iterator[tuple[pa.Table, Progress]]:
        """Verify piece after piece.

        Parameters
        ----------
        pieces : iterable of pyarrow.Table
            All with the same columns.

        Yields
        ------
        tuple of pyarrow.Table and Progress
            The piece with result columns, and how its run ended.

        Raises
        ------
        BackendError
            At once, if nothing at all was settled before.
        """
        settled = 0
        for piece in pieces:
            out, progress = self.verify_piece(piece)
            settled += progress.settled
            if self.failure is not None and not settled:
                raise self.failure
            yield out, progress

    def verify_piece(self, piece: pa.Table) -> tuple[pa.Table, Progress]:
        """Verify one piece, or pass it through where an end has come."""
        is_over = self.stopper.is_asked or self.failure is not None
        passing = {"limit": 0, "offline": True, "journal": None, "progress": False} if is_over else {"limit": self.left}
        run = start(piece, self.column, **{**self.options, **passing})
        if not is_over:
            self.stopper.follow(run)
        try:
            out = run.result()
        except BackendError as exc:
            self.failure, out = exc, exc.partial
        if self.left is not None and not is_over:
            self.left -= run.execution.asked
        self.is_short_of_quota |= bool(run.execution.short_of_quota)
        self.notices += [notice for notice in run.notices if notice not in self.notices]
        return out, run.progress
