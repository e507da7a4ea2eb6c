"""Counts that add up piece by piece, and how they read in a terminal."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..model.words import Status, ValidationType, Verdict

__all__ = ["MEANING_OF_VALID", "Tally", "render_tally"]

MEANING_OF_VALID = {
    ValidationType.REGEX: "valid means well formed; nothing was asked of any network",
    ValidationType.MX: "valid means that the domain can receive mail, not that the mailbox exists",
    ValidationType.MX_BLACKLIST: "valid means that the domain can receive mail, through exchanges on none of the lists",
    ValidationType.SMTP: "valid means that the mailbox exists and nothing speaks against it",
}
FLAGS = ("role", "disposable", "free", "spamtrap", "catch_all", "protected")
BAR = 24  # characters of the longest bar
TOP = 6  # reasons named


@dataclass
class Tally:
    """Running counts of verified rows.

    Attributes
    ----------
    rows : int
        Rows seen.
    buckets : Counter
        Rows by verdict, or by status where there is no verdict.
    why : Counter
        Rows that are not valid, by dominant reason or error code.
    flags : Counter
        Rows by flag that is true.
    suggestions : int
        Rows with a suggestion.
    """

    rows: int = 0
    buckets: Counter[str] = field(default_factory=Counter)
    why: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    suggestions: int = 0

    def add(self, table: pa.Table, prefix: str) -> None:
        """Count a verified piece; `prefix` is that of its result columns."""
        verdict, status = (text(table, prefix + name) for name in ("verdict", "status"))
        is_done = pc.equal(status, str(Status.DONE))
        bucket = pc.if_else(is_done, verdict, status)
        self.rows += len(table)
        self.buckets.update(counted(bucket))
        self.why.update(counted(why_not(table, prefix, verdict)))
        for flag in FLAGS:
            if prefix + flag in table.column_names:
                self.flags[flag] += pc.sum(table[prefix + flag]).as_py() or 0
        if prefix + "suggestion" in table.column_names:
            self.suggestions += pc.count(table[prefix + "suggestion"]).as_py()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; every bucket is there."""
        names = (*map(str, Verdict), str(Status.ERROR), str(Status.PENDING), str(Status.MISSING))
        return {
            "rows": self.rows,
            **{name: self.buckets[name] for name in names},
            "why": dict(self.why.most_common()),
            "flags": {flag: self.flags[flag] for flag in FLAGS},
            "suggestions": self.suggestions,
        }


def why_not(table: pa.Table, prefix: str, verdict: pa.ChunkedArray) -> pa.ChunkedArray:
    """Per row that is not valid, the dominant reason; else the error code, for types without reasons."""
    details = text(table, prefix + "details")
    known = pc.coalesce(details, text(table, prefix + "error")) if prefix + "error" in table.column_names else details
    return pc.if_else(pc.not_equal(verdict, str(Verdict.VALID)), known, pa.scalar(None, pa.string()))


def text(table: pa.Table, name: str) -> pa.ChunkedArray:
    return table[name].cast(pa.string())


def counted(values: pa.ChunkedArray) -> dict[str, int]:
    found = pc.value_counts(values.combine_chunks()).to_pylist()
    return {each["values"]: each["counts"] for each in found if each["values"] is not None}


# What an error code means where a type has no reasons; reasons speak for themselves.
SPOKEN = {
    "REGEX": "not well formed",
    "DNS": "domain without mail, or no answer from the DNS",
    "BLACKLIST": "exchange on a blacklist, or the list gave no answer",
}


def render_tally(tally: Tally, validation_type: ValidationType) -> str:
    """A few lines that a person understands."""
    widest = max(tally.buckets.values(), default=0)
    names = [*map(str, Verdict), *(s for s in ("error", "pending", "missing") if tally.buckets[s])]
    lines = [bucket_line(name, tally, widest) for name in names]
    if tally.why:
        named = ", ".join(f"{SPOKEN.get(w, w.replace('_', ' '))} {n:,}" for w, n in tally.why.most_common(TOP))
        lines += ["", f"not valid because: {named}"]
    if flagged := ", ".join(f"{flag} {tally.flags[flag]:,}" for flag in FLAGS if tally.flags[flag]):
        lines.append(f"flags: {flagged}")
    if tally.suggestions:
        lines.append(f"probably mistyped, with a suggestion: {tally.suggestions:,}")
    return "\n".join([*lines, f"({MEANING_OF_VALID[validation_type]})"])


def bucket_line(name: str, tally: Tally, widest: int) -> str:
    count = tally.buckets[name]
    bar = "█" * round(BAR * count / widest) if widest else ""
    return f"  {name:<8} {count:>11,}  {count / max(tally.rows, 1):>6.1%}  {bar}".rstrip()
