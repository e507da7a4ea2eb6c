"""Verify a column of a table of any size; after an interruption every row is still returned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import pyarrow as pa

from ..backend import Quota
from ..errors import BackendError, JournalError
from ..loop import run_sync
from ..model.address import address_keys
from ..model.arrow import one_array
from ..model.table import SOURCE_LOCAL
from ..model.words import ValidationType
from ..runs.endings import REPORTED_ERRORS, describe_ending
from ..runs.options import open_execution
from ..runs.progress import Listener
from ..runs.run import Run
from ..table.options import check_options
from .reading import SEVERAL, Reading, count_standing, describe_columns
from .verify import describe_several, origin_of, read_frame, show_progress, with_known


class Stop(Protocol):
    """What may request a stop at any time, as a signal does."""

    is_requested: bool

    def watch(self, run: Run[Any]) -> None:
        """Cancel this run when a stop is requested, at once if it was."""


class FileRun:
    """Verifies one column of a table that comes in pieces.

    Options are those of `mailverdict.verify`.

    What is wrong with the table shows before anything is asked. Where answers cost quota or
    sessions, one run asks about the distinct addresses of the whole table in the order of the rows,
    which are held in memory then. What the DNS answers is in the backend's cache: the other types
    verify piece by piece, so that memory is bounded.

    After a stop or a failure of the backend or the journal what is not checked is ``pending``, so
    that no row is lost.
    """

    def __init__(
        self, column: str, stopper: Stop, *, listener: Listener | None = None, **options: Any
    ) -> None:
        self.options = with_known(check_options("verify", options))
        self.column = column
        self.stopper = stopper
        self.listener = listener
        self.limit_left = self.options.settings.limit  # for all pieces together
        self.failure: BackendError | JournalError | None = None  # what ended the verification early
        self.notices: list[str] = []  # messages for the user, each once
        self.causes: Counter[str] = Counter()  # why addresses have no verdict
        # Addresses about which the service gave no verdict, by code.
        self.errors: Counter[str] = Counter()
        self.several = 0  # rows that hold several addresses
        self.is_short_of_quota = False  # the daily quota left rows pending
        self.is_unanswered = False  # the service left rows pending
        # Addresses:
        self.submitted = 0
        self.newly_verified = 0
        self.from_journal = 0
        self.quota: Quota | None = None  # the last reading
        self.about_text: list[str] = []  # a warning, if no cell holds an @
        self.has_text = False

    @property
    def is_resumable(self) -> bool:
        """Whether a journal keeps the answers for a later run."""
        return self.options.journal is not None

    @property
    def has_defective_answers(self) -> bool:
        """Whether the service gave answers that its interface does not allow."""
        return not self.errors.keys() <= REPORTED_ERRORS

    def several_notices(self) -> list[str]:
        """How many rows hold several addresses, none of which was verified."""
        if not self.several:
            return []
        return [describe_several(self.several, "--explode gives each a row of its own")]

    def problem(self) -> str:
        """The technical cause for which most addresses have no verdict; empty if there is none."""
        return describe_ending(self.causes, self.options.backend.source)

    def verify(self, pieces: Callable[[], Iterable[pa.Table]]) -> Iterator[pa.Table]:
        """Yield each piece with its result columns; `pieces` gives all pieces anew at each call.

        Raises the error of the run if nothing was checked before it.
        """
        if self.is_costly:
            yield from self.ask_once(pieces)
        else:
            if not self.options.is_free:
                for piece in pieces():
                    self.read(piece)
            yield from self.ask_by_piece(pieces())
        if not self.has_text:
            self.notices = [*self.about_text, *self.notices]

    @property
    def is_costly(self) -> bool:
        """Whether answers cost quota or sessions."""
        if self.options.validation_type == ValidationType.SMTP:
            return True
        is_local = self.options.backend.source == SOURCE_LOCAL
        return not is_local and not self.options.is_free

    def ask_by_piece(self, pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Verify each piece by itself, all with one backend."""
        try:
            for piece in pieces:
                frame = self.read(piece, is_free=self.options.is_free)
                yield frame(self.ask(frame.asked, frame))
                self.several += count_standing(frame.rows, SEVERAL)
        finally:
            if self.options.owns_backend:
                run_sync(self.options.backend.aclose())

    def ask_once(self, pieces: Callable[[], Iterable[pa.Table]]) -> Iterator[pa.Table]:
        """Read the column, verify its distinct addresses, and read the pieces again."""
        texts = [self.read(piece).asked for piece in pieces()]
        keys = pa.chunked_array(map(address_keys, texts), pa.string())
        encoded = one_array(keys.dictionary_encode())
        distinct = encoded.dictionary
        codes = encoded.indices
        answers = None
        for piece in pieces():
            frame = self.read(piece)
            if answers is None:
                answers = self.ask(distinct, frame).unify_dictionaries().combine_chunks()
            size = len(frame.asked)
            numbers = codes.slice(0, size)
            codes = codes.slice(size)
            yield frame.renumbered(numbers)(answers)
            self.several += count_standing(frame.rows, SEVERAL)

    def read(self, piece: pa.Table, *, is_free: bool = True) -> Reading:
        """Read the column of a piece.

        With all of its texts if `is_free`, else with the distinct ones.

        An error if a result would replace a column of somebody else.
        """
        frame = read_frame(
            piece, self.column, self.options, origin_of(self.options), is_free=is_free
        )
        self.about_text = describe_columns(frame.rows, self.column)
        self.has_text |= not self.about_text
        self.add_notices(frame.notices)
        return frame

    def ask(self, addresses: pa.StringArray, frame: Reading) -> pa.Table:
        """Verify addresses in one run, and return their rows.

        After a stop or a failure, all of them are pending.
        """
        limit = self.limit_left
        progress = self.options.progress
        if self.stopper.is_requested or self.failure is not None:
            limit = 0
            progress = False
        options = replace(
            self.options,
            settings=replace(self.options.settings, limit=limit),
            owns_backend=self.options.owns_backend and self.is_costly,
        )
        if isinstance(self.failure, JournalError):
            options = replace(options, journal=None)
        syntax = None
        if addresses is frame.asked:
            syntax = frame.syntax()
        execution = open_execution(addresses, options, frame.fields(), syntax)
        run = Run(execution, lambda table: table)
        show_progress(run, self.column, progress, is_free=options.is_free)
        run._start()
        self.stopper.watch(run)
        if self.listener is not None:
            run.subscribe(self.listener)
        try:
            rows = run.result()
        except (BackendError, JournalError) as exc:
            if not self.settled + run.progress.settled:
                raise
            self.failure = exc
            rows = exc.partial
        self.note_end(run)
        return rows

    @property
    def settled(self) -> int:
        """How many addresses, or rows of a free type, are settled so far."""
        return self.newly_verified + self.from_journal

    def note_end(self, run: Run[Any]) -> None:
        """Add what a run cost and left open, and its notices."""
        execution = run._execution
        progress = run.progress
        if self.limit_left is not None:
            self.limit_left -= execution.newly_verified
        self.submitted += progress.submitted
        self.newly_verified += progress.settled - progress.from_journal
        self.from_journal += progress.from_journal
        self.quota = progress.quota or self.quota
        self.is_short_of_quota |= bool(execution.short_of_quota)
        self.is_unanswered |= bool(execution.unanswered)
        self.causes += execution.causes
        self.errors += execution.errors
        self.add_notices(execution.noticed)  # what it says at its end is counted over all runs here

    def add_notices(self, notices: Sequence[str]) -> None:
        self.notices += [notice for notice in notices if notice not in self.notices]
