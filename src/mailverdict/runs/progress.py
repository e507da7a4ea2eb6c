"""How far a run is: `SettledRows` collects, `Progress` describes, `ProgressBar` shows.

    addresses   a    b    c    d        settle(rows, [2, 0]), then settle(rows, [3])
    row_of      1   -1    0    2        the row of each address in the tables; -1 is not settled
    progress    running: 3 of 4 addresses checked; valid 2, risky 0, invalid 1, unknown 0

A run of a type without a network settles its rows in order, and has no `row_of`. `Rate` says how
fast a run is, from what it settled in the last half minute.
"""

from __future__ import annotations

import math
import sys
import threading
import time
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
        # By position; None: the rows are in the order of the addresses.
        self.row_of: Positions | None = None
        # By position: a row that another one is to replace.
        self.asked_again: dict[int, pa.Table] = {}
        self.lock = threading.RLock()

    def settle_next(self, rows: pa.Table) -> None:
        """Add the rows of the next addresses; a run adds all of its rows so, or none."""
        with self.lock:
            self.tables.append(rows.select(self.fields))
            self.size += len(rows)
        self.count(rows, len(rows))

    def settle(self, rows: pa.Table, positions: Positions, *, is_asked_again: bool = False) -> None:
        """Add the rows of the addresses at `positions`.

        Rows of addresses that are asked again are in the table, but count only from
        `count_asked_again` on.
        """
        with self.lock:
            if self.row_of is None:
                self.row_of = np.full(len(self.addresses), UNSETTLED, np.int64)
            is_fresh = self.row_of[positions] == UNSETTLED
            self.row_of[positions] = self.size + np.arange(len(positions))
            self.tables.append(rows.select(self.fields))
            self.size += len(rows)
        if is_asked_again:
            for place, position in enumerate(positions.tolist()):
                self.asked_again[position] = rows.slice(place, 1)
            return
        fresh = int(is_fresh.sum())
        if self.asked_again:
            for position in positions.tolist():
                if self.asked_again.pop(position, None) is not None:
                    fresh += 1
        self.count(rows, fresh)

    def count(self, rows: pa.Table, fresh: int) -> None:
        """Count rows, `fresh` of which are of addresses that were not counted before."""
        self.counts["settled"] += fresh
        for name in COUNTED_FIELDS:
            for chunk in rows[name].chunks:
                self.counts.update(count_words(chunk))

    def count_asked_again(self) -> None:
        """Count rows that no other row has replaced: nothing more comes."""
        for row in self.asked_again.values():
            self.count(row, 1)
        self.asked_again = {}

    @cached_property
    def index(self) -> dict[str, int]:
        """Position by address; made once, since hashing the column often is quadratic."""
        addresses = self.addresses.to_pylist()
        return dict(zip(addresses, range(len(addresses)), strict=True))

    def positions_of(self, emails: pa.Array | pa.ChunkedArray) -> Positions:
        """The positions of addresses; one that is not in the column is an error of the backend."""
        keys = address_keys(one_array(emails)).to_pylist()
        try:
            return np.array([self.index[key] for key in keys], np.int64)
        except KeyError as exc:
            address = f"{exc.args[0]!r:.100}"
            message = f"the backend answered about {address}, which it was not asked about"
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
            tables = [table.select(names) for table in self.tables]
            size = self.size
            row_of = self.row_of
            if row_of is not None:
                row_of = row_of.copy()
            left = self.unsettled()
        if len(left) or not tables:
            addresses = self.addresses.take(pa.array(left))
            tables.append(pending_rows(addresses, validation_type).select(names))
        whole = pa.concat_tables(tables)
        if row_of is None:
            return whole
        row_of[left] = size + np.arange(len(left))
        return whole.unify_dictionaries().combine_chunks().take(pa.array(row_of))


def pending_rows(emails: pa.StringArray, validation_type: str) -> pa.Table:
    """Rows of the result schema for addresses that were not checked."""
    size = len(emails)
    status = pa.scalar(str(Status.PENDING))
    kind = pa.scalar(str(validation_type))
    columns: dict[str, Any] = {
        "email": emails,
        "status": pa.repeat(status, size).dictionary_encode(),
        "validation_type": pa.repeat(kind, size).dictionary_encode(),
    }
    return complete_table(columns, size)


def count_words(chunk: pa.DictionaryArray) -> dict[str, int]:
    """How often each word of a dictionary-encoded column occurs; there are only a few words."""
    codes = chunk.indices.drop_null().to_numpy(zero_copy_only=False)
    counts = {}
    for code, word in enumerate(chunk.dictionary.to_pylist()):
        count = int(np.count_nonzero(codes == code))
        if count and word:
            counts[word] = count
    return counts


@dataclass(frozen=True, slots=True)
class Progress:
    """A snapshot of a run in distinct addresses, or for ``regex`` in rows.

    Attributes
    ----------
    state : str
        ``running``, ``done``, ``stopped`` (quota or `limit`), ``paused``, ``cancelled`` or
        ``failed``.
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
        At the end, the technical cause for which most addresses have no verdict, and what helps;
        empty if there is none.
    quota : Quota or None
        The last reading from a service.
    unit : str
        What is counted: ``addresses`` (distinct ones) or ``rows``.
    asked_again : int
        How many of the submitted ones were submitted again, since the service's limiter had refused
        them; each of those cost another unit of quota.
    pace : float or None
        Addresses a second that are submitted at present; 0 while the service refuses everything;
        None if nothing limits it.
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
        line = f"{self.state}: {checked_text(self)}; {', '.join(parts)}"
        notes = ", ".join(filter(None, (self.message, pace_text(self))))
        if notes:
            line += f" ({notes})"
        return line


def checked_text(progress: Progress) -> str:
    """How many of all have a row.

    >>> checked_text(Progress(total=90, settled=40))
    '40 of 90 addresses checked'
    """
    total = count_of(progress.total, "row")
    if progress.unit == "addresses":
        total = count_of(progress.total, "address")
    return f"{progress.settled:,} of {total} checked"


def pace_text(progress: Progress) -> str:
    """The pace and the time left; empty if nothing limits the pace, and after the end.

    >>> pace_text(Progress(pace=50.0, seconds_left=24.0))
    '50 addresses a second, about 24 s left'
    """
    if progress.pace is None or progress.is_over:
        return ""
    if not progress.pace:
        return "the service refuses for its rate limit at present; trying again"
    pace = rate_text(progress.pace).replace(" a", " addresses a")
    if progress.seconds_left is None:
        return pace
    return f"{pace}, about {duration_text(progress.seconds_left)} left"


def duration_text(seconds: float) -> str:
    """A time for people.

    >>> duration_text(45), duration_text(200), duration_text(7500)
    ('45 s', '4 min', '2 h 5 min')
    """
    if seconds < 60:
        return f"{math.ceil(seconds)} s"
    hours, minutes = divmod(math.ceil(seconds / 60), 60)
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min"


# --- the rate -------------------------------------------------------------------------------------


class Rate:
    """How many addresses a second a run settles; unknown in its first seconds."""

    WINDOW = 30.0  # seconds
    LEAST_SECONDS = 3.0
    STEADY = 0.2  # the page shows another time left only if it differs by this share

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.points: list[tuple[float, int]] = []
        self.first: tuple[float, int] | None = None
        self.shown_end: float | None = None  # when the run ends, as it was shown last

    def add(self, progress: Progress) -> None:
        """Note a reading; what came from the journal is not counted."""
        point = (self.clock(), progress.settled - progress.from_journal)
        self.first = self.first or point
        self.points.append(point)
        while len(self.points) > 2 and self.points[1][0] < point[0] - self.WINDOW:
            del self.points[0]

    def per_second(self) -> float | None:
        """The rate of the last part; None while too little is known."""
        if not self.points:
            return None
        return between(self.points[0], self.points[-1], self.LEAST_SECONDS)

    def is_slowing(self) -> bool:
        """Whether the last part is much slower than the whole: what is left is at slow servers."""
        if self.first is None:
            return False
        whole = between(self.first, self.points[-1], self.WINDOW)
        recent = self.per_second()
        return whole is not None and (recent is None or recent < whole / 4)

    def seconds_left(self, progress: Progress) -> float | None:
        """The time that is left: by the rate, but not less than a service's limit says."""
        rate = self.per_second()
        if rate is None:
            return None
        now = self.clock()
        left = max((progress.total - progress.settled) / rate, progress.seconds_left or 0.0)
        if self.shown_end is not None and self.shown_end > now:
            shown = self.shown_end - now
            # A figure that goes up and down with each reading tells nothing.
            if abs(left - shown) <= self.STEADY * max(left, shown):
                return shown
        self.shown_end = now + left
        return left


def between(first: tuple[float, int], last: tuple[float, int], least: float) -> float | None:
    """The rate between two readings; None if less time passed, or nothing happened."""
    seconds = last[0] - first[0]
    count = last[1] - first[1]
    if seconds < least or count <= 0:
        return None
    return count / seconds


def rate_text(rate: float) -> str:
    """A rate for people, in three digits.

    >>> rate_text(7583.2), rate_text(12.34), rate_text(0.1234)
    ('7,580 a second', '12.3 a second', '0.123 a second')
    """
    if rate < 100:
        return f"{rate:.3g} a second"
    unit = 10 ** (len(str(int(rate))) - 3)
    return f"{round(rate / unit) * unit:,} a second"


def speed_text(progress: Progress, rate: Rate) -> str:
    """How fast a run is, and how long it takes; empty at its beginning and after its end."""
    if progress.pace is not None:  # a limit of the service decides
        return pace_text(progress)
    per_second = rate.per_second()
    left = rate.seconds_left(progress)
    if progress.is_over or per_second is None:
        return ""
    if left is None:
        return rate_text(per_second)
    return f"{rate_text(per_second)}, about {duration_text(left)} left"


# --- a bar ----------------------------------------------------------------------------------------

Listener = Callable[[Progress], None]


def wants_bar(*, progress: bool | str, is_free: bool) -> bool:
    """Whether to show a bar; ``"auto"`` shows one for work that uses a network."""
    if progress != "auto":
        return bool(progress)
    return not is_free and (sys.stderr.isatty() or is_notebook())


def is_notebook() -> bool:
    """Whether a notebook's kernel runs this code; that IPython is imported does not show it."""
    if is_marimo():
        return True
    ipython = sys.modules.get("IPython")
    # The shell of a kernel has it: that of Jupyter, VS Code, Colab and Databricks, but not the one
    # of a terminal.
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def is_marimo() -> bool:
    """Whether a cell of marimo runs this code."""
    marimo = sys.modules.get("marimo")
    return marimo is not None and bool(marimo.running_in_notebook())


class ProgressBar:
    """A tqdm bar that shows a run; in a notebook the notebook's own.

    Rate and time left are ours, since those of tqdm count also what came from the journal at once.
    """

    FORMAT = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"

    def __init__(self, description: str) -> None:
        from tqdm.auto import tqdm  # noqa: PLC0415 - imports IPython if it is installed

        self.rate = Rate()
        self.bar: Any = tqdm(
            total=0, unit="addr", desc=description, dynamic_ncols=True, bar_format=self.FORMAT
        )

    def __call__(self, progress: Progress) -> None:
        """Show a snapshot."""
        if self.bar.total != progress.total:
            self.bar.reset(total=progress.total)
        self.bar.n = progress.settled
        self.rate.add(progress)
        texts = []
        for verdict, count in progress.verdicts.items():
            if count:
                texts.append(f"{verdict}={count}")
        texts += [progress.message, speed_text(progress, self.rate)]
        self.bar.set_postfix_str(", ".join(filter(None, texts)), refresh=False)
        self.bar.refresh()
        if progress.is_over:
            self.bar.close()
