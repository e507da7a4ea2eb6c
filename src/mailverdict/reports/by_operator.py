"""A verified column by the operator of its mail servers: how many addresses got a clear answer, and why not more."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.operators import Operator, known_operators, name_operators
from ..errors import ColumnError, SettingsError
from ..frames.planning import SeenAddresses
from ..frames.results import Results
from ..model.arrow import to_bools
from ..model.words import Reason, Verdict
from ..table.columns import label_of
from ..table.notices import warn_deprecated
from ..table.table import Frame
from .counts import count_by_code, first_rows, keys_of
from .tables import CountTable

# What came out for an address; the first that holds. An address without a verdict is in none of them.
ANSWERS = ("dead", "catch_all", "live", "deferred", "refused", "no_answer")
DEFERRED = pa.array([str(Reason.GREYLISTED)])
REFUSED = pa.array([str(Reason.PROTECTED), str(Reason.SENDER_BLOCKED)])
COLUMNS = (
    "addresses",
    "clear",
    "share",
    "catch_all",
    "deferred",
    "refused",
    "no_answer",
    "dead",
    "note",
)
LITTLE = 0.5  # share of clear answers below which a sentence says why
CAUSES = {
    "catch_all": "accept every address, so an accepted one proves little",
    "deferred": "are to be verified again later: the mail server defers clients that it does not know",
    "refused": "are not answered to this computer: verify them from another one",
    "no_answer": "got no usable answer",
}
# What the table of operators may say about each cause.
HINTS = {
    "catch_all": {
        "accepts_all": "accept every recipient at RCPT",
        "depends": "let each customer choose whether unknown recipients are refused",
    },
    "deferred": {"defers": "defer clients"},
    "refused": {"blocks": "refuse clients for their address"},
    "no_answer": {"slow": "answer slowly", "blocks": "refuse clients for their address"},
}


def by_operator(
    out: Frame, column: Hashable | None = None, *, top: int = 20, prefix: str | None = None
) -> Frame:
    """Count a verified column by who runs the mail servers of the addresses.

    Deprecated: ``mailverdict.breakdown(out, "operator")`` has these figures, and the shares of people with intervals.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned: a pandas, Polars or Arrow frame, with the column `operator` or `mx_records`,
        as ``columns="all"`` has them.
    column : hashable, optional
        The column that was verified; by default the only one.
    top : int, default 20
        How many operators, by number of addresses.
    prefix : str, optional
        The prefix it was verified with, if not the default.

    Returns
    -------
    DataFrame
        Index `operator`, most addresses first, ties by name; distinct addresses (int64) in each:

        - `addresses`: all; those whose mail servers are not known are in no line
        - `clear`: the answer says whether the mailbox exists (for types without SMTP: whether the
          domain receives mail); `share` of `addresses` (float64)
        - `catch_all`: accepted by a server that accepts every address
        - `deferred`: the server asked for another attempt (greylisting)
        - `refused`: it refused the computer that checked, or the sender
        - `no_answer`: time-out, closed port, an answer that shows nothing
        - `dead`: of the clear ones those that cannot receive mail
        - `note`: where `share` is below one half, why not more is clear (object, else None). What the
          packaged table says of the operator is cited with its source and date.

        For a Polars or Arrow frame the same kind, where `operator` is the first column.

    Raises
    ------
    ColumnError
        If the frame has no such column, it has not been verified, or nothing shows the mail servers.
    InputError
        If a result column holds what `verify` never writes.
    SettingsError
        If `top` is not a number of operators.

    Warns
    -----
    FutureWarning
        That it is deprecated.

    Examples
    --------
    >>> import warnings
    >>> import mailverdict as mv
    >>> import pandas as pd
    >>> warnings.simplefilter("ignore", FutureWarning)
    >>> df = pd.DataFrame({"email": ["ada@gmail.com", "nobody@gmail.com", "ada@yahoo.com"]})
    >>> with mv.sandbox.World() as world:
    ...     out = mv.verify(df, "email", validation_type="smtp", backend=world.backend, columns="all")
    >>> mv.by_operator(out, "email")[["addresses", "clear", "share", "catch_all", "dead"]]
                     addresses  clear  share  catch_all  dead
    operator
    bigmail.example          2      2    1.0          0     1
    oldmail.example          1      0    0.0          1     0
    """
    warn_deprecated("by_operator", "mailverdict.breakdown(out, 'operator')")
    if isinstance(top, bool) or not isinstance(top, int) or top < 0:
        raise SettingsError(f"top={top!r}: give a number of operators")
    rows = Results(out, column, prefix)
    counts = OperatorCounts()
    counts.add(rows)
    found: Frame = rows.data.convert(CountTable(counts.table(top)))
    return found


class OperatorCounts:
    """Distinct addresses by operator and answer; pieces of a file add up."""

    def __init__(self) -> None:
        self.seen = SeenAddresses()
        self.by_name: dict[str, npt.NDArray[np.int64]] = {}  # by answer, and without one

    def add(self, rows: Results) -> None:
        """Count a piece; an address counts with the first of its rows."""
        operators, keys = operators_of(rows), keys_of(rows)
        at = pa.array(first_rows(keys, keys.is_valid(), self.seen))
        named = operators.take(at).dictionary_encode()
        counts = count_by_code(named, pa.array(answers_of(rows).take(at)), len(ANSWERS) + 1)
        for name, row in zip(named.dictionary.to_pylist(), counts, strict=True):
            self.by_name[name] = self.by_name.get(name, 0) + row

    def table(self, top: int) -> pd.DataFrame:
        """The table of `by_operator`."""
        order = sorted(self.by_name, key=lambda name: (-int(self.by_name[name].sum()), name))[:top]
        known = known_operators()
        lines = [operator_line(self.by_name[name], known.get(name, ())) for name in order]
        kinds: dict[str, Any] = {
            **dict.fromkeys(COLUMNS, "int64"),
            "share": "float64",
            "note": object,
        }
        columns = {
            name: pd.Series([line[at] for line in lines], dtype=kinds[name])
            for at, name in enumerate(COLUMNS)
        }
        return pd.DataFrame(columns).set_index(pd.Index(order, dtype=object, name="operator"))


def operators_of(rows: Results) -> pa.StringArray:
    """The operator of each row, from its column or from the mail servers."""
    if "operator" in rows:
        return rows["operator"]
    if "mx_records" not in rows:
        label = label_of(rows.column, rows.prefix, "operator")
        raise ColumnError(
            f"no column {label!r}: verify with columns='all', or with a list that has 'operator'"
        )
    hosts = pc.replace_substring_regex(rows["mx_records"], ";.*$", "")
    return name_operators(hosts, rows.addresses.fill_null(""))


def answers_of(rows: Results) -> pa.Int32Array:
    """The index in `ANSWERS` of each row; the one after the last where there is no verdict."""
    verdict, why = rows["verdict"], rows.why
    is_unknown = pc.equal(verdict, str(Verdict.UNKNOWN))
    holds = (
        pc.equal(verdict, str(Verdict.INVALID)),
        pc.and_(verdict.is_valid(), rows["catch_all"]),
        pc.and_(verdict.is_valid(), pc.invert(is_unknown)),
        pc.and_(is_unknown, pc.is_in(why, value_set=DEFERRED)),
        pc.and_(is_unknown, pc.is_in(why, value_set=REFUSED)),
        is_unknown,
    )
    masks = np.stack([to_bools(each.fill_null(False)) for each in holds])
    codes = np.where(masks.any(axis=0), masks.argmax(axis=0), len(ANSWERS))
    return pa.array(codes.astype(np.int32))


def operator_line(counts: npt.NDArray[np.int64], known: tuple[Operator, ...]) -> tuple[object, ...]:
    """The cells of an operator in the order of `COLUMNS`; `known` are its rows in the packaged table."""
    found = dict(zip(ANSWERS, counts.tolist(), strict=False))
    total, clear = int(counts.sum()), found["live"] + found["dead"]
    share = clear / total if total else float("nan")
    note = why_little(found, total, known) if share < LITTLE else None
    shown = (found[name] for name in ("catch_all", "deferred", "refused", "no_answer", "dead"))
    return (total, clear, share, *shown, note)


def why_little(found: Mapping[str, int], total: int, known: tuple[Operator, ...]) -> str | None:
    """The main cause in a sentence: what was seen in these rows, then what others say, with the source."""
    cause = max(CAUSES, key=lambda name: found[name])
    if not found[cause]:
        return None  # not verified yet
    said = f"{found[cause]:,} of {total:,} {CAUSES[cause]}"
    hints = [
        (row, word)
        for row in known
        for word in row.rcpt
        if word in HINTS[cause] and row.behaviour_seen
    ]
    if not hints:
        return said
    row, word = max(hints, key=lambda hint: str(hint[0].behaviour_seen))
    source = row.behaviour_source.partition(";")[0]
    return f"{said}; known to {HINTS[cause][word]} ({source}, {row.behaviour_seen})"
