"""Counts of a verified column: `summary`, `by_domain` and `diff` of frames, and running counts of streamed pieces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..frames.clean import row_index, split_address
from ..frames.columns import to_string
from ..frames.kinds import Frame
from ..frames.text_column import read_values
from ..frames.verified import VerifiedColumn
from ..model.address import identities
from ..model.words import FLAGS, REASON_LABELS, Status, ValidationType, Verdict, count_of, printable_text

# The five buckets of the contract, then the rows that were not processed or have no address.
BUCKETS = (*map(str, Verdict), str(Status.ERROR), str(Status.PENDING), str(Status.MISSING))


def buckets(rows: VerifiedColumn) -> pd.Series[Any]:
    """For each row the verdict if there is one, else the status."""
    verdict = rows["verdict"].astype(object).where(rows.status == Status.DONE, rows.status)
    return pd.Series(pd.Categorical(verdict, categories=list(BUCKETS)))


def summary(out: Frame, column: Hashable, *, prefix: str | None = None) -> Frame:
    """Count a verified column: five buckets, and what is pending or missing.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned: a pandas, Polars or Arrow frame.
    column : hashable
        The column that was verified.
    prefix : str, optional
        The prefix it was verified with, if not the default.

    Returns
    -------
    DataFrame
        Index `bucket`: valid, risky, invalid, unknown, error, pending, missing, always all seven.
        `rows` (int64), `share` of all rows (float64), `addresses` (distinct, int64) and `top_reason`
        (object, the most frequent dominant reason; None for none). For a Polars or Arrow frame the
        same kind, where `bucket` is the first column.

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
    rows = VerifiedColumn(out, column, prefix, ("verdict", "status", "details"))
    bucket, details = buckets(rows), rows["details"]
    counts = bucket.value_counts().reindex(list(BUCKETS), fill_value=0)
    keys = address_keys(rows.addresses)
    addresses = keys.groupby(bucket.to_numpy(), observed=False).nunique().reindex(list(BUCKETS), fill_value=0)
    top = {name: top_value(details[bucket == name]) for name in BUCKETS}
    table = pd.DataFrame(
        {
            "rows": counts.astype("int64"),
            "share": counts / max(len(bucket), 1),
            "addresses": addresses.astype("int64"),
            "top_reason": pd.Series(top, dtype=object),
        }
    )
    found: Frame = rows.data.convert(table.rename_axis(index="bucket"))
    return found


def address_keys(cells: pd.Series[Any]) -> pd.Series[Any]:
    """By position, a key that is equal for cells with the same address; NA where there is no text."""
    texts = read_values(cells)
    distinct = identities(texts.texts).dictionary_encode()
    return pd.Series(to_string(pa.chunked_array([distinct.dictionary.take(row_index(distinct.indices, texts))])))


def top_value(values: pd.Series[Any]) -> str | None:
    counts = values.dropna().value_counts()
    return None if counts.empty else str(counts.index[0])


def by_domain(out: Frame, column: Hashable, *, top: int = 20, prefix: str | None = None) -> Frame:
    """Count a verified column by the domain of the address.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned: a pandas, Polars or Arrow frame.
    column : hashable
        The column that was verified.
    top : int, default 20
        How many domains, by number of rows.
    prefix : str, optional
        The prefix it was verified with, if not the default.

    Returns
    -------
    DataFrame
        Index `domain`; `rows` and one column per bucket (int64), most rows first, ties by name. For
        a Polars or Arrow frame the same kind, where `domain` is the first column.

    Raises
    ------
    ColumnError
        If the frame has no such column, or it has not been verified.
    InputError
        If a result column holds what `verify` never writes.

    Examples
    --------
    >>> import mailverdict as mv
    >>> import pandas as pd
    >>> df = pd.DataFrame({"email": ["a@x.example.org", "b@x.example.org", "c@y.example.org"]})
    >>> mv.by_domain(mv.verify(df, "email", validation_type="regex"), "email")["rows"].to_dict()
    {'x.example.org': 2, 'y.example.org': 1}
    """
    rows = VerifiedColumn(out, column, prefix, ("verdict", "status"))
    found: Frame = rows.data.convert(top_domains(domain_counts(rows), top))
    return found


def domain_counts(rows: VerifiedColumn) -> pd.DataFrame:
    """Rows of each domain by bucket."""
    domain = split_address(rows.addresses)["domain"].astype(object)
    return pd.crosstab(domain, buckets(rows), dropna=True).reindex(columns=list(BUCKETS), fill_value=0)


def add_domain_counts(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The sum over the pieces of a column."""
    if len(tables) == 1:
        return tables[0]
    return pd.concat([pd.DataFrame(columns=list(BUCKETS), dtype="int64"), *tables]).groupby(level=0, sort=False).sum()


def top_domains(counts: pd.DataFrame, top: int) -> pd.DataFrame:
    """The table of `by_domain`."""
    table = counts.copy(deep=False)
    table.insert(0, "rows", table.sum(axis=1))
    table = table.sort_index().sort_values("rows", ascending=False, kind="stable").head(top)
    return table.astype("int64").rename_axis(index="domain", columns=None)


DIFF_COLUMNS = ("before", "after", "details_before", "details_after")
CHANGE_DTYPE = pd.CategoricalDtype(["added", "removed", "changed"])


def diff(old: Any, new: Frame, column: Hashable, *, prefix: str | None = None) -> Frame:
    """Compare two audits of one list, address by address.

    Parameters
    ----------
    old, new : DataFrame
        What `verify` returned, earlier and later; their rows may differ, and their kinds.
    column : hashable
        The column that was verified in both.
    prefix : str, optional
        The prefix they were verified with, if not the default.

    Returns
    -------
    DataFrame
        Index `address`, one row per distinct address that differs, sorted: `change` (category:
        added, removed, changed), `before` and `after` (verdict, or status where there is none),
        `details_before` and `details_after`; all texts are object, None where there is nothing. If
        `new` is a Polars or Arrow frame the same kind, where `address` is the first column.

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
    >>> mv.diff(audit("a@x.example", "b@x.example"), audit("a@x.example", "c@x.example"), "email")["change"].to_dict()
    {'b@x.example': 'removed', 'c@x.example': 'added'}
    """
    rows = VerifiedColumn(new, column, prefix, ("verdict", "status", "details"))
    before = by_address(VerifiedColumn(old, column, prefix, ("verdict", "status", "details")))
    after = by_address(rows)
    before.columns, after.columns = pd.Index(["before", "details_before"]), pd.Index(["after", "details_after"])
    both = before.join(after, how="outer").sort_index()[list(DIFF_COLUMNS)]
    both = both.astype(object).where(both.notna(), None)
    change = pd.Series("changed", index=both.index, dtype=object)
    change = change.mask(both["before"].isna(), "added").mask(both["after"].isna(), "removed")
    same = (both["before"] == both["after"]) & (both["details_before"].eq(both["details_after"]) | no_details(both))
    both.insert(0, "change", change.astype(CHANGE_DTYPE))
    found: Frame = rows.data.convert(both[~same].rename_axis(index="address"))
    return found


def no_details(both: pd.DataFrame) -> pd.Series[Any]:
    return both["details_before"].isna() & both["details_after"].isna()


def by_address(rows: VerifiedColumn) -> pd.DataFrame:
    """Bucket and dominant reason of each distinct address; empty cells are left out."""
    table = pd.DataFrame(
        {
            "address": address_keys(rows.addresses),
            "bucket": buckets(rows).astype(object),
            "details": rows["details"].astype(object),
        }
    )
    table = table[table["bucket"] != "missing"].dropna(subset="address")
    return table.drop_duplicates("address").set_index("address")


MEANING_OF_VALID = {
    ValidationType.REGEX: "valid means well formed; no network was used",
    ValidationType.MX: "valid means that the domain can receive mail, not that the mailbox exists",
    ValidationType.MX_BLACKLIST: "valid means that the domain can receive mail, and no mail server of it is on a list",
    ValidationType.SMTP: "valid means that the mailbox exists and no problem was found",
}
LONGEST_BAR = 24  # characters
TOP_REASONS = 6


@dataclass
class RunningCounts:
    """Counts of verified rows that add up piece by piece, for tables larger than memory."""

    rows: int = 0
    buckets: Counter[str] = field(default_factory=Counter)  # rows by verdict, or by status where there is no verdict
    # Rows that are not valid, by dominant reason or error code; a code that can mean two things has the verdict.
    reasons: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)  # rows by flag that is true
    suggestions: int = 0
    cleaned: int = 0  # cells whose verdict is that of a repaired address
    suppressed: int | None = None  # rows on the suppression list; None without one

    def add(self, table: pa.Table, prefix: str) -> None:
        """Count a verified piece; `prefix` is that of its result columns."""
        verdict, status = (encode(table, prefix + name) for name in ("verdict", "status"))
        is_done = is_word(status, Status.DONE)
        self.rows += len(table)
        self.buckets.update(count_values(verdict if is_done.true_count == len(table) else verdict.filter(is_done)))
        self.buckets.update(count_values(status.filter(pc.invert(is_done))))
        is_other = pc.invert(is_word(verdict, Verdict.VALID))
        reason = reason_or_error(table, prefix, is_other)
        with_verdict = pc.binary_join_element_wise(reason, verdict.filter(is_other).cast(pa.string()), ":")
        is_labelled = pc.is_in(with_verdict, pa.array(list(REASON_LABELS), pa.string()), skip_nulls=True)
        self.reasons.update(count_values(pc.if_else(is_labelled, with_verdict, reason)))
        for flag in FLAGS:
            if prefix + flag in table.column_names:
                self.flags[flag] += pc.sum(table[prefix + flag]).as_py() or 0
        if prefix + "suggestion" in table.column_names:
            self.suggestions += pc.count(table[prefix + "suggestion"]).as_py()
        if prefix + "change" in table.column_names:
            self.cleaned += pc.sum(pc.not_equal(text(table, prefix + "change"), "")).as_py() or 0
        if prefix + "suppressed" in table.column_names and pa.types.is_boolean(table[prefix + "suppressed"].type):
            self.suppressed = (self.suppressed or 0) + (pc.sum(table[prefix + "suppressed"]).as_py() or 0)

    @property
    def judged(self) -> int:
        """Rows with a verdict."""
        return sum(self.buckets[verdict] for verdict in Verdict)

    def why(self) -> Counter[str]:
        """Rows that are not valid, by dominant reason or error code."""
        found: Counter[str] = Counter()
        for reason, count in self.reasons.items():
            found[reason.partition(":")[0] if reason in REASON_LABELS else reason] += count
        return found

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; every bucket is there; `suppressed` only with a suppression list."""
        return {
            "rows": self.rows,
            **{name: self.buckets[name] for name in BUCKETS},
            "why": dict(self.why().most_common()),
            "flags": {flag: self.flags[flag] for flag in FLAGS},
            "suggestions": self.suggestions,
            "cleaned": self.cleaned,
            **({} if self.suppressed is None else {"suppressed": self.suppressed}),
        }


def reason_or_error(table: pa.Table, prefix: str, is_other: pa.BooleanArray) -> pa.ChunkedArray:
    """The dominant reason, else the error code, of the rows that have another verdict than valid."""
    names = [name for name in ("details", "error") if prefix + name in table.column_names]
    return pc.coalesce(*(text(table, prefix + name).filter(is_other) for name in names))


def encode(table: pa.Table, name: str) -> pa.DictionaryArray:
    """A column of few words as codes."""
    column = table[name].unify_dictionaries().combine_chunks()
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


def is_word(column: pa.DictionaryArray, word: str) -> pa.BooleanArray:
    """Whether each value is `word`; null for a missing one."""
    at = column.dictionary.index(str(word)).as_py()
    return pc.equal(column.indices, pa.scalar(at, column.indices.type))


def text(table: pa.Table, name: str) -> pa.ChunkedArray:
    return table[name].cast(pa.string())


def count_values(values: pa.Array | pa.ChunkedArray) -> dict[str, int]:
    found = pc.value_counts(values).to_pylist()
    return {each["values"]: each["counts"] for each in found if each["values"] is not None}


def render_counts(counts: RunningCounts, validation_type: ValidationType) -> str:
    """A few lines for a terminal."""
    largest = max(counts.buckets.values(), default=0)
    names = [*map(str, Verdict), *(s for s in ("error", "pending", "missing") if counts.buckets[s])]
    lines = [f"  {'':<8} {'rows':>11}  {'of all':>6}", *(render_bucket(name, counts, largest) for name in names)]
    if counts.reasons:
        top = counts.reasons.most_common(TOP_REASONS)
        lines += ["", "rows that are not valid, by reason:", *(render_reason(reason, n) for reason, n in top)]
        if len(counts.reasons) > len(top):
            lines.append(f"  and {count_of(len(counts.reasons) - len(top), 'more reason')}")
    if flagged := ", ".join(f"{flag} {counts.flags[flag]:,}" for flag in FLAGS if counts.flags[flag]):
        lines.append(f"rows by flag: {flagged}")
    if counts.suggestions:
        lines.append(f"likely typos: {count_of(counts.suggestions, 'row has', 'rows have')} a suggestion")
    if counts.cleaned:
        lines.append(f"{count_of(counts.cleaned, 'cell was', 'cells were')} cleaned before the check")
    if counts.suppressed is not None:
        lines.append(f"on the suppression list: {count_of(counts.suppressed, 'row')}")
    return "\n".join([*lines, f"({MEANING_OF_VALID[validation_type]})"])


def render_reason(reason: str, count: int) -> str:
    """A reason that only a service knows is shown as it is, cut and without control characters."""
    label = REASON_LABELS.get(reason) or printable_text(reason, 48)
    return f"  {label:<48}  {count:>11,}"


def render_bucket(name: str, counts: RunningCounts, largest: int) -> str:
    count = counts.buckets[name]
    bar = "█" * round(LONGEST_BAR * count / largest) if largest else ""
    return f"  {name:<8} {count:>11,}  {count / max(counts.rows, 1):>6.1%}  {bar}".rstrip()
