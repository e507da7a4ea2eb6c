"""Verify a table of any size in pieces; after an interruption every row is still returned."""

from __future__ import annotations

import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn

import pyarrow as pa

from ...backend import Quota
from ...errors import BackendError, JournalError
from ...local.backend import LocalBackend
from ...model.table import SOURCE_LOCAL, SOURCE_REMOTE
from ...model.words import ValidationType
from ...runs.endings import REPORTED_ERRORS, describe_ending, describe_errors
from ...runs.options import parse_validation_type
from ...runs.progress import LONG_WAIT, Listener, Progress, delay_text
from ...runs.run import Run
from ..kinds import kind_of_data
from ..options import split_options
from ..verify import describe_several, name_results, prepare

REPEAT_SECONDS = 2.0  # in which another signal is taken for a copy of the first


class Stopper:
    """While it is open, the first Ctrl-C, SIGTERM or SIGHUP requests a stop, whenever it comes.

    A second one raises `KeyboardInterrupt` or `SystemExit`. `on_stop` is called at the first, within its handler. A
    signal that is ignored, as SIGHUP is under ``nohup``, stays ignored. The command ``timeout`` sends SIGTERM to the
    process and to its group: other signals than Ctrl-C count once within `REPEAT_SECONDS` seconds.
    """

    def __init__(self, on_stop: Callable[[], None] = lambda: None, clock: Callable[[], float] = time.monotonic) -> None:
        self.on_stop, self.clock = on_stop, clock
        self.requested_at = 0.0
        self.is_requested = False
        self.exit_status = 128 + signal.SIGINT  # as shells report a process that a signal ended
        self.run: Run[Any] | None = None

    def __enter__(self) -> Stopper:
        # Possible in the main thread only.
        self.previous_handlers = {number: signal.signal(number, self.on_signal) for number in handled_signals()}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
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
    known = (getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP"))  # Windows has no SIGHUP
    return [number for number in known if number is not None and signal.getsignal(number) is not signal.SIG_IGN]


def exit_on_signal(number: int, frame: FrameType | None) -> NoReturn:
    """Leave by an exception, so that every temporary file is removed; for `signal.signal`."""
    raise SystemExit(128 + number)


class PieceStream:
    """Verifies the pieces of one table with the same backend and journal. Options are those of `mailverdict.verify`.

    Each distinct address is asked once over all pieces: what the journal learned since the stream began is reused, and
    where answers cost quota or sessions and no journal is given, a temporary one is used.

    After a stop or a failure of the backend or the journal, the current piece comes with what was checked and the
    following ones as ``pending``, so that no row is lost.
    """

    def __init__(self, column: str, stopper: Stopper, *, listener: Listener | None = None, **options: Any) -> None:
        self.column, self.stopper, self.options = column, stopper, options
        self.listener = listener  # gets the progress of each run
        self.limit_left: int | None = options.get("limit")  # for all pieces together
        self.failure: BackendError | JournalError | None = None  # what ended the verification early
        self.notices: list[str] = []  # messages for the user, each once
        self.causes: Counter[str] = Counter()  # why addresses have no verdict, over all pieces
        self.errors: Counter[str] = Counter()  # addresses about which the service gave no verdict, by code
        self.has_temporary_journal = False
        self.is_resumable = False  # a journal keeps the answers for a later run
        self.is_short_of_quota = False  # the daily quota left rows pending
        self.is_unanswered = False  # the service left rows pending
        self.submitted = self.newly_verified = self.from_journal = 0  # addresses, over all pieces
        self.quota: Quota | None = None  # the last reading
        self.waited = 0.0  # seconds, over all pieces, for requests that a service had refused or not answered
        self.failed_requests: Counter[str] = Counter()
        self.began_at = time.time()
        self.several = 0  # rows that hold several addresses

    def check_columns(self, pieces: Iterable[pa.Table]) -> None:
        """Raise `SettingsError` if a piece has a column that must not be replaced, so that nothing is spent before."""
        _, frame_options = split_options("start", self.options)
        for piece in pieces:
            name_results([kind_of_data(piece, self.column)], self.column, frame_options)

    def several_notices(self) -> list[str]:
        """How many rows hold several addresses, none of which was verified."""
        return [describe_several(self.several, "with --explode each is")] if self.several else []

    @property
    def has_defective_answers(self) -> bool:
        """Whether the service gave answers that its interface does not allow."""
        return not self.errors.keys() <= REPORTED_ERRORS

    def delay_notices(self) -> list[str]:
        """How long the service was waited for, and why, if it was long."""
        return [delay_text(self.waited, self.failed_requests)] if self.waited >= LONG_WAIT else []

    def verify(self, pieces: Iterable[pa.Table]) -> Iterator[tuple[pa.Table, Progress]]:
        """Yield each piece with its result columns, and the progress of its run.

        Raises the error if nothing was checked before it.
        """
        settled = 0
        with self.journal_kept():
            for piece in pieces:
                out, progress = self.verify_piece(piece)
                settled += progress.settled
                if self.failure is not None and not settled:
                    raise self.failure
                yield out, progress

    def problem(self) -> str:
        """The technical cause for which most addresses have no verdict; empty if there is none."""
        backend = self.options.get("backend")
        is_local = backend is None or isinstance(backend, LocalBackend)
        return describe_ending(self.causes, SOURCE_LOCAL if is_local else SOURCE_REMOTE)

    @contextmanager
    def journal_kept(self) -> Iterator[None]:
        """Use a temporary journal if the caller wants none and answers are costly."""
        if self.options.get("journal", "auto") is not None or not self.is_costly():
            yield
            return
        with tempfile.TemporaryDirectory(prefix="mailverdict-") as folder:
            self.has_temporary_journal = True
            self.options = {**self.options, "journal": Path(folder, "journal.db")}
            yield

    def is_costly(self) -> bool:
        """Whether an address of a later piece must not be asked again; DNS answers are in the backend's cache."""
        kind = parse_validation_type(self.options.get("validation_type", ValidationType.MX))
        backend = self.options.get("backend")
        is_local = backend is None or isinstance(backend, LocalBackend)
        return kind == ValidationType.SMTP or not (is_local or kind == ValidationType.REGEX)

    def verify_piece(self, piece: pa.Table) -> tuple[pa.Table, Progress]:
        """Verify one piece; after a stop or failure, add its result columns without asking the backend."""
        has_ended = self.stopper.is_requested or self.failure is not None
        run = self.start_run(piece, has_ended=has_ended)
        try:
            out = run.result()
        except (BackendError, JournalError) as exc:
            self.failure, out = exc, exc.partial
        if not has_ended:
            self.is_resumable = run._execution.journal is not None and not self.has_temporary_journal
            if self.limit_left is not None:
                self.limit_left -= run._execution.newly_verified
        self.note_end(run)
        return out, run.progress

    def start_run(self, piece: pa.Table, *, has_ended: bool) -> Run[Any]:
        """Start the run of a piece; if the verification has ended, one that asks nothing."""
        changed = {"limit": self.limit_left}
        if has_ended:
            changed = {"limit": 0, "offline": True, "progress": False}
            if isinstance(self.failure, JournalError):
                changed["journal"] = None
        arguments = split_options("start", {**self.options, **changed}, progress=False)
        run: Run[Any] = prepare(piece, self.column, *arguments, answered_since=self.began_at)
        run._start()
        if not has_ended:
            self.stopper.watch(run)
            if self.listener is not None:
                run.subscribe(self.listener)
        return run

    def note_end(self, run: Run[Any]) -> None:
        """Add what a run cost and left open, and its notices, to those of the runs before it."""
        self.count_cost(run)
        self.is_short_of_quota |= bool(run._execution.short_of_quota)
        self.is_unanswered |= bool(run._execution.unanswered)
        self.causes += run._execution.causes
        self.errors += run._execution.errors
        build: Any = run._build
        several = 0 if build.is_several is None else build.is_several.true_count
        self.several += several
        summed = (
            delay_text(run.progress.waited, run.progress.failed_requests),
            describe_errors(run._execution.errors),
            describe_several(several),
        )
        known = (*self.notices, run.progress.problem, *summed)
        self.notices += [notice for notice in run.notices if notice not in known]

    def count_cost(self, run: Run[Any]) -> None:
        """Add up what was submitted to a service, settled in this run, and reused from the journal."""
        progress = run.progress
        self.submitted += progress.submitted
        self.newly_verified += progress.settled - progress.from_journal
        self.from_journal += progress.from_journal
        self.waited += progress.waited
        self.failed_requests.update(progress.failed_requests)
        self.quota = progress.quota or self.quota
