"""How far a run is: `SettledRows` collects its rows, `Progress` describes them, `ProgressBar` shows them."""

from __future__ import annotations

import math
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..backend import Quota
from ..errors import BackendError
from ..model.address import address_keys
from ..model.arrow import one_array
from ..model.table import SCHEMA, complete_table
from ..model.words import Status, Verdict, count_of

Positions = npt.NDArray[np.int64]
UNSETTLED = -1
COUNTED_FIELDS = ("status", "result", "source")  # fields of rows by which progress counts them


class SettledRows:
    """The rows settled so far; written by the loop's thread and read by any other.

    Only `fields` of the result schema are kept: the others are most of the memory of a large run.
    """

    def __init__(
        self, addresses: pa.StringArray, fields: Sequence[str] = tuple(SCHEMA.names)
    ) -> None:
        self.addresses = addresses
        self.fields = list(fields)
        self.counts: Counter[str] = Counter()
        self.tables: list[pa.Table] = []
        self.size = 0
        self.row_of: Positions | None = (
            None  # by position; None: the rows are in the order of the addresses
        )
        self.asked_again: dict[
            int, pa.Table
        ] = {}  # by position: a row that another one is to replace
        self.lock = threading.RLock()

    def settle_next(self, rows: pa.Table) -> None:
        """Add the rows of the addresses that come next; a run adds all of its rows so, or none."""
        with self.lock:
            self.tables.append(rows.select(self.fields))
            self.size += len(rows)
        self.count(rows, len(rows))

    def settle(self, rows: pa.Table, positions: Positions, *, is_asked_again: bool = False) -> None:
        """Add the rows of the addresses at `positions`.

        Rows of addresses that are asked again are in the table, but count only from `count_asked_again` on.
        """
        with self.lock:
            if self.row_of is None:
                self.row_of = np.full(len(self.addresses), UNSETTLED, np.int64)
            is_fresh = self.row_of[positions] == UNSETTLED
            self.row_of[positions] = self.size + np.arange(len(positions))
            self.tables.append(rows.select(self.fields))
            self.size += len(rows)
        if is_asked_again:
            self.asked_again.update(
                (at, rows.slice(i, 1)) for i, at in enumerate(positions.tolist())
            )
            return
        replaced = (
            [at for at in positions.tolist() if self.asked_again.pop(at, None)]
            if self.asked_again
            else []
        )
        self.count(rows, int(is_fresh.sum()) + len(replaced))

    def count(self, rows: pa.Table, fresh: int) -> None:
        """Count rows, `fresh` of which are of addresses that were not counted before."""
        self.counts["settled"] += fresh
        for name in COUNTED_FIELDS:
            for chunk in rows[name].chunks:
                self.counts.update(count_words(chunk))

    def count_asked_again(self) -> None:
        """Count rows that no other row has replaced: nothing more comes."""
        rows, self.asked_again = list(self.asked_again.values()), {}
        for row in rows:
            self.count(row, 1)

    @cached_property
    def index(self) -> dict[str, int]:
        """Position by address; made once, since hashing the column for every few rows is quadratic."""
        return {email: at for at, email in enumerate(self.addresses.to_pylist())}

    def positions_of(self, emails: pa.Array | pa.ChunkedArray) -> Positions:
        """The positions of addresses; an address that is not in the column is an error of the backend."""
        keys = address_keys(one_array(emails)).to_pylist()
        try:
            return np.array([self.index[key] for key in keys], np.int64)
        except KeyError as exc:
            message = (
                f"the backend answered about {exc.args[0]!r:.100}, which it was not asked about"
            )
            raise BackendError(message) from None

    def unsettled(self) -> Positions:
        """Positions without a row."""
        with self.lock:
            if self.row_of is None:
                return np.arange(self.size, len(self.addresses))
            return np.flatnonzero(self.row_of == UNSETTLED)

    def table(self, validation_type: str, columns: list[str] | None = None) -> pa.Table:
        """One row per address, in their order; those without a row are `pending`."""
        names = columns or self.fields
        with self.lock:
            tables, size = [t.select(names) for t in self.tables], self.size
            row_of = None if self.row_of is None else self.row_of.copy()
            left = self.unsettled()
        if len(left) or not tables:
            tables.append(
                pending_rows(self.addresses.take(pa.array(left)), validation_type).select(names)
            )
        whole = pa.concat_tables(tables)
        if row_of is None:
            return whole
        row_of[left] = size + np.arange(len(left))
        return whole.unify_dictionaries().combine_chunks().take(pa.array(row_of))


def pending_rows(emails: pa.StringArray, validation_type: str) -> pa.Table:
    """Rows of the result schema for addresses that were not checked."""
    columns: dict[str, Any] = {
        "email": emails,
        "status": pa.repeat(pa.scalar(str(Status.PENDING)), len(emails)).dictionary_encode(),
        "validation_type": pa.repeat(
            pa.scalar(str(validation_type)), len(emails)
        ).dictionary_encode(),
    }
    return complete_table(columns, len(emails))


def count_words(chunk: pa.DictionaryArray) -> dict[str, int]:
    """How often each word of a dictionary-encoded column occurs; there are only a few words."""
    codes = chunk.indices.drop_null().to_numpy(zero_copy_only=False)
    counts = (
        (word, int(np.count_nonzero(codes == code)))
        for code, word in enumerate(chunk.dictionary.to_pylist())
    )
    return {word: count for word, count in counts if count and word}


@dataclass(frozen=True, slots=True)
class Progress:
    """A snapshot of a run, in distinct addresses; for ``regex``, which does not make them distinct, in rows.

    Attributes
    ----------
    state : str
        ``running``, ``done``, ``stopped`` (quota or `limit`), ``paused``, ``cancelled`` or ``failed``.
    total : int
        Distinct addresses of the column; for ``regex``, its rows that are not empty.
    settled : int
        How many are checked: they have a verdict, or failed for a technical reason.
    verdicts : dict of str to int
        Checked addresses by verdict, always all four.
    from_journal : int
        How many of the checked ones were reused from an earlier run.
    submitted : int
        How many this run has submitted to a service.
    errors : int
        How many ended in a technical failure, without a verdict.
    message : str
        What is being waited for, or why the run ended.
    problem : str
        At the end, the technical cause for which most addresses have no verdict, and what helps; empty if there
        is none.
    quota : Quota or None
        The last reading from a service.
    unit : str
        What is counted: ``addresses`` (distinct ones) or ``rows``.
    asked_again : int
        How many of the submitted ones were submitted again, since the service's limiter had refused
        them; each of those cost another unit of quota.
    pace : float or None
        Addresses a second that are submitted at present; 0 while the service refuses everything; None
        if nothing limits it.
    seconds_left : float or None
        Until everything is submitted at this pace; None if that is not known.

    Examples
    --------
    >>> import mailverdict as mv
    >>> print(mv.start(["ada@example.org"], validation_type="regex").wait().progress)
    done: 1 of 1 row checked; valid 1, risky 0, invalid 0, unknown 0
    """

    state: str = "running"
    total: int = 0
    settled: int = 0
    verdicts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(map(str, Verdict), 0))
    from_journal: int = 0
    submitted: int = 0
    errors: int = 0
    message: str = ""
    problem: str = ""
    quota: Quota | None = None
    unit: str = "addresses"
    asked_again: int = 0
    pace: float | None = None
    seconds_left: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether the run has ended, well or not."""
        return self.state != "running"

    def __str__(self) -> str:
        """One line for a log."""
        parts = [f"{verdict} {count:,}" for verdict, count in self.verdicts.items()]
        shown = ", ".join(filter(None, (self.message, pace_text(self))))
        tail = f" ({shown})" if shown else ""
        return f"{self.state}: {checked_text(self)}; {', '.join(parts)}{tail}"


def checked_text(progress: Progress) -> str:
    """How many of all have a row.

    >>> checked_text(Progress(total=90, settled=40))
    '40 of 90 addresses checked'
    """
    unit = "address" if progress.unit == "addresses" else "row"
    return f"{progress.settled:,} of {count_of(progress.total, unit)} checked"


def pace_text(progress: Progress) -> str:
    """The pace and the time left; empty if nothing limits the pace, and after the end.

    >>> pace_text(Progress(pace=50.0, seconds_left=24.0))
    '50 addresses a second, about 24 s left'
    """
    if progress.pace is None or progress.is_over:
        return ""
    if not progress.pace:
        return "the service refuses for its rate limit at present; trying again"
    left = (
        ""
        if progress.seconds_left is None
        else f", about {duration_text(progress.seconds_left)} left"
    )
    return f"{progress.pace:,.3g} addresses a second{left}"


def duration_text(seconds: float) -> str:
    """A time for people.

    >>> duration_text(45), duration_text(200), duration_text(7500)
    ('45 s', '4 min', '2 h 5 min')
    """
    if seconds < 60:
        return f"{math.ceil(seconds)} s"
    hours, minutes = divmod(math.ceil(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


Listener = Callable[[Progress], None]


def wants_bar(*, progress: bool | str, is_free: bool) -> bool:
    """Whether to show a bar; ``"auto"`` shows one for work that uses a network, in a terminal or a notebook."""
    if progress != "auto":
        return bool(progress)
    return not is_free and (sys.stderr.isatty() or is_notebook())


def is_notebook() -> bool:
    """Whether a notebook's kernel runs this code; that IPython is imported does not show it."""
    ipython = sys.modules.get("IPython")
    # The shell of a kernel has it: that of Jupyter, VS Code, Colab and Databricks, but not the one of a terminal.
    return is_marimo() or (ipython is not None and hasattr(ipython.get_ipython(), "kernel"))


def is_marimo() -> bool:
    """Whether a cell of marimo runs this code."""
    marimo = sys.modules.get("marimo")
    return marimo is not None and bool(marimo.running_in_notebook())


class ProgressBar:
    """A tqdm bar that shows a run; in a notebook the notebook's own."""

    def __init__(self, description: str) -> None:
        from tqdm.auto import tqdm  # noqa: PLC0415 - imports IPython if it is installed

        self.bar: Any = tqdm(total=0, unit="addr", desc=description, dynamic_ncols=True)

    def __call__(self, progress: Progress) -> None:
        """Show a snapshot."""
        if self.bar.total != progress.total:
            self.bar.reset(total=progress.total)
        self.bar.n = progress.settled
        shown = {k: v for k, v in progress.verdicts.items() if v}
        self.bar.set_postfix(shown, refresh=False)
        if texts := [text for text in (progress.message, pace_text(progress)) if text]:
            self.bar.set_postfix_str(
                ", ".join([*(f"{k}={v}" for k, v in shown.items()), *texts]), refresh=False
            )
        self.bar.refresh()
        if progress.is_over:
            self.bar.close()
