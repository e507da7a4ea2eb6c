"""A verified column in figures: `summary`, `diff`, and counts as text for a terminal.

    summary   invalid        rows 412   share 0.103   addresses 398   top_reason no_mx_record
    diff      ada@firm.com   changed   before unknown   details_before timeout   after valid

A cell with several addresses has a line of its own in both: nobody was asked about it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..frames.results import BUCKETS, Results
from ..model.words import (
    LONGEST_LABEL,
    SEVERAL_ADDRESSES,
    Status,
    ValidationType,
    Verdict,
    count_of,
    reason_label,
)
from ..table.table import Frame
from ..theme import LABELS
from .counts import Counts, count_by_code, keys_of
from .tables import CountTable

MEANING_OF_VALID = {
    ValidationType.REGEX: "valid means well formed; no network was used",
    ValidationType.MX: "valid means that the domain can receive mail, not that the mailbox exists",
    ValidationType.MX_BLACKLIST: (
        "valid means that the domain can receive mail, and no mail server of it is on a list"
    ),
    ValidationType.SMTP: "valid means that the mailbox exists and no problem was found",
}
LONGEST_BAR = 24  # characters
BAR = "█"
LONGEST_NAME = max(len(LABELS[name]) for name in BUCKETS)
TOP_REASONS = 6


def summary(out: Frame, column: Hashable | None = None, *, prefix: str | None = None) -> Frame:
    """Count a verified column: five buckets, and what is pending or missing.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned: a pandas, Polars or Arrow frame.
    column : hashable, optional
        The column that was verified; by default the only one.
    prefix : str, optional
        The prefix it was verified with, if not the default.

    Returns
    -------
    DataFrame
        Index `bucket`: valid, risky, invalid, unknown, error, pending, missing, always all seven;
        and several_addresses, if there are such rows, which are then not in the line unknown.
        `rows` (int64), `share` of all rows (float64), `addresses` (distinct, int64) and
        `top_reason` (object, the most frequent word of `why`; None for none). For a Polars or Arrow
        frame the same kind, where `bucket` is the first column.

    Raises
    ------
    ColumnError
        If the frame has no such column, or it has not been verified.
    InputError
        If a result column holds what `verify` never writes.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> df = pd.DataFrame({"email": ["ada@example.org", "Ada@", None, "bob@example.org"]})
    >>> mv.summary(mv.verify(df, "email", validation_type="regex"), "email")[["rows", "share"]]
             rows  share
    bucket
    valid       2   0.50
    risky       0   0.00
    invalid     1   0.25
    unknown     0   0.00
    error       0   0.00
    pending     0   0.00
    missing     1   0.25
    """
    rows = Results(out, column, prefix)
    counts = Counts()
    counts.add(rows)
    table = pd.Series(counts.lines, dtype="int64", name="rows").to_frame()
    table.index.name = "bucket"
    table["share"] = table["rows"] / max(counts.rows, 1)
    # In the order of `counts.lines`, whose last one are the cells with several addresses.
    several = pa.scalar(len(BUCKETS), pa.int32())
    is_several = pa.array(rows.is_several)
    line = pc.if_else(is_several, several, rows.buckets.indices)
    addresses = keys_of(rows).dictionary_encode()
    rows_of_address = count_by_code(addresses, line, len(table))
    table["addresses"] = (rows_of_address > 0).sum(axis=0)
    top_reasons: dict[str, str | None] = dict.fromkeys(counts.lines)
    for (name, why), _ in counts.by("line", "why").most_common():
        if why and top_reasons[name] is None:
            top_reasons[name] = why
    table["top_reason"] = pd.Series(top_reasons, dtype=object)
    counted: Frame = rows.data.convert(CountTable(table))
    return counted


DIFF_COLUMNS = ("before", "after", "details_before", "details_after")
CHANGE_DTYPE = pd.CategoricalDtype(["added", "removed", "changed"])


def diff(
    old: Any, new: Frame, column: Hashable | None = None, *, prefix: str | None = None
) -> Frame:
    """Compare two audits of one list, address by address.

    Parameters
    ----------
    old, new : DataFrame
        What `verify` returned, earlier and later; their rows may differ, and their kinds.
    column : hashable, optional
        The column that was verified in both; by default the only one of `new`.
    prefix : str, optional
        The prefix they were verified with, if not the default.

    Returns
    -------
    DataFrame
        Index `address`, one row per distinct address that differs, sorted: `change` (category:
        added, removed, changed), `before` and `after` (verdict, or status where there is none),
        `details_before` and `details_after` (the words of `why`); all texts are object, None where
        there is nothing. If `new` is a Polars or Arrow frame the same kind, where `address` is the
        first column.

    Raises
    ------
    ColumnError
        If a frame has no such column, or it has not been verified.
    InputError
        If a result column holds what `verify` never writes.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> def audit(*cells):
    ...     return mv.verify(pd.DataFrame({"email": cells}), "email", validation_type="regex")
    >>> old = audit("a@x.example", "b@x.example")
    >>> new = audit("a@x.example", "c@x.example")
    >>> mv.diff(old, new, "email")["change"].to_dict()
    {'b@x.example': 'removed', 'c@x.example': 'added'}
    """
    rows = Results(new, column, prefix)
    earlier = by_address(Results(old, rows.column, rows.prefix))
    both = join_verdicts(earlier, by_address(rows), DIFF_COLUMNS, how="outer")
    change = pd.Series("changed", index=both.index, dtype=object)
    change[both["before"].isna()] = "added"
    change[both["after"].isna()] = "removed"
    # An earlier release wrote no word for types without reasons.
    has_no_why = both["details_before"].isna() | both["details_after"].isna()
    same_why = has_no_why | both["details_before"].eq(both["details_after"])
    same = same_why & (both["before"] == both["after"])
    both.insert(0, "change", change.astype(CHANGE_DTYPE))
    differing = both[~same].rename_axis(index="address")
    differences: Frame = rows.data.convert(differing)
    return differences


def join_verdicts(
    one: pd.DataFrame, other: pd.DataFrame, names: Sequence[str], how: Literal["inner", "outer"]
) -> pd.DataFrame:
    """Two tables of `by_address` side by side, sorted; None where one has nothing.

    `names` are the verdicts of both, and then why.
    """
    verdict, other_verdict, why, other_why = names
    one = one.set_axis([verdict, why], axis=1)
    other = other.set_axis([other_verdict, other_why], axis=1)
    both = one.join(other, how=how).sort_index()
    both = both[list(names)].astype(object)
    return both.where(both.notna(), None)


def by_address(rows: Results) -> pd.DataFrame:
    """Bucket and why of each distinct address; empty cells are left out."""
    columns = {
        "address": keys_of(rows),
        "bucket": rows.buckets.cast(pa.string()),
        "details": rows.why,
    }
    table: pd.DataFrame = pa.table(columns).to_pandas().astype(object)
    table = table[table["bucket"] != Status.MISSING].dropna(subset="address")
    return table.drop_duplicates("address").set_index("address")


def render_counts(counts: Counts, validation_type: ValidationType) -> str:
    """A few lines for a terminal."""
    width = LONGEST_NAME
    if SEVERAL_ADDRESSES in counts.lines:
        width = len(LABELS[SEVERAL_ADDRESSES])
    largest = max(1, *counts.lines.values())
    lines = [f"  {'':<{width}} {'rows':>11}  {'of all':>6}"]
    for name, count in counts.lines.items():
        if not count and name not in set(Verdict):
            continue
        share = count / max(counts.rows, 1)
        bar = BAR * round(LONGEST_BAR * count / largest)
        line = f"  {LABELS[name]:<{width}} {count:>11,}  {share:>6.1%}  {bar}"
        lines.append(line.rstrip())
    reasons = counts.by("reason")
    if reasons:
        lines += ["", "rows that are not valid, by reason:"]
        for reason, count in reasons.most_common(TOP_REASONS):
            lines.append(f"  {reason_label(reason):<{LONGEST_LABEL}}  {count:>11,}")
    if len(reasons) > TOP_REASONS:
        lines.append(f"  and {count_of(len(reasons) - TOP_REASONS, 'more reason')}")
    flags = []
    for flag, count in counts.flags.items():
        if count:
            flags.append(f"{reason_label(flag)} {count:,}")
    if flags:
        lines.append(f"rows by flag: {', '.join(flags)}")
    if counts.suggestions:
        typos = count_of(counts.suggestions, "row has", "rows have")
        lines.append(f"likely typos: {typos} a suggestion")
    if counts.cleaned:
        cells = count_of(counts.cleaned, "cell was", "cells were")
        lines.append(f"{cells} cleaned before the check")
    if counts.suppressed is not None:
        lines.append(f"on the suppression list: {count_of(counts.suppressed, 'row')}")
    lines.append(f"({MEANING_OF_VALID[validation_type]})")
    return "\n".join(lines)
