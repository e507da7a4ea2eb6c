"""What to ask again, and when: answers that are none, lost submissions, used-up quota. Pure.

Three kinds of "again" exist, each with one owner. The same request in seconds is the client's,
another exchange is the local engine's; the same address in minutes or on another day is decided
here.
"""

from __future__ import annotations

import math
from collections import Counter
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from ..model.words import Reason, Status, Verdict

__all__ = [
    "ASK_AGAIN",
    "ERROR_GOOD_FOR",
    "GRACE",
    "HOLD",
    "Judgement",
    "hold_seconds",
    "is_retryable",
    "judge_attempt",
    "reusable",
    "say_not_now",
]

DAY = 86_400.0
HOLD = DAY  # seconds: a day's quota is what a second payment is weighed against
LONGEST_HOLD = 30 * HOLD  # as long as an answer is good for by default
GRACE = 5.0  # seconds a service gets to count a submission, before an unchanged quota says that it was not
ERROR_GOOD_FOR = 3_600.0  # seconds for which a technical failure is handed out again, not paid for again


# The unknowns that say "not now": they are never handed out as known. The others (a time-out, a
# closed port, a full mailbox ...) are answers: asking daily would eat the quota of addresses that
# were never asked, so they are kept for max_age, and refresh={"unknown"} asks them again.
# Seconds after which asking again makes sense.
ASK_AGAIN: dict[str, float] = {
    Reason.THROTTLED: 900.0,  # the service itself went on trying for about 12 minutes
    Reason.RATE_LIMITED: 60.0,  # a limiter's window; it can hit a whole batch within seconds
    Reason.GREYLISTED: 300.0,  # minutes is what servers ask for; the local engine waits as long
}


def is_retryable(result: str | None, reasons: str | None) -> bool:
    """Whether an answer (its reasons ``;``-joined) settles nothing and is to be asked for again.

    >>> is_retryable("unknown", "throttled"), is_retryable("risky", "disposable;throttled")
    (True, False)
    """
    return result == Verdict.UNKNOWN and dominant(reasons) in ASK_AGAIN


def dominant(reasons: str | None) -> str:
    """The first reason; empty when there is none."""
    return (reasons or "").partition(";")[0]


def reusable(rows: pa.Table, ages: pa.DoubleArray, refresh: frozenset[str]) -> pa.BooleanArray:
    """Which known rows answer for themselves, and which are to be asked again.

    Parameters
    ----------
    rows : pyarrow.Table
        At least the columns `status`, `result` and `reasons` of the one table; n rows.
    ages : pyarrow.DoubleArray
        Seconds since each was settled; n.
    refresh : frozenset of str
        Verdicts, or the status ``error``, to ask again in any case.
    """
    status, result, reasons = (plain(rows[name]) for name in ("status", "result", "reasons"))
    asked_again = pc.and_(pc.equal(result, Verdict.UNKNOWN), is_not_now(reasons))
    is_error = pc.equal(status, Status.ERROR)
    stale_error = pc.and_(is_error, pc.greater_equal(ages, ERROR_GOOD_FOR))
    wanted = pa.array(sorted(refresh), pa.string())
    refreshed = pc.or_(pc.is_in(result, value_set=wanted), pc.is_in(status, value_set=wanted))
    unusable = pc.or_(pc.or_(asked_again.fill_null(False), stale_error.fill_null(False)), refreshed)
    return pc.invert(unusable)


def is_not_now(reasons: pa.StringArray) -> pa.BooleanArray:
    """Whether the dominant reason of each row is one to ask again for."""
    words = "|".join(sorted(ASK_AGAIN))
    return pc.match_substring_regex(reasons, f"^(?:{words})(?:;|$)")


def plain(column: pa.ChunkedArray) -> pa.StringArray:
    """A column as one array of texts."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return whole.cast(pa.string())


def say_not_now(rows: pa.Table) -> str | None:
    """Tell how many answers say "not now", and when to call again; None where there are none.

    Parameters
    ----------
    rows : pyarrow.Table
        At least the columns `result` and `reasons` of the one table.
    """
    unknown = pc.equal(plain(rows["result"]), Verdict.UNKNOWN).fill_null(False)
    tally = pc.value_counts(plain(rows["reasons"]).filter(unknown)).to_pylist()
    counts = Counter[str]()
    for entry in tally:
        counts[dominant(entry["values"])] += entry["counts"]
    found = {word: counts[word] for word in ASK_AGAIN if counts[word]}
    if not found:
        return None
    words = ", ".join(f"{count:,} {word}" for word, count in found.items())
    minutes = math.ceil(max(ASK_AGAIN[word] for word in found) / 60)
    return f"some answers say 'not now' ({words}); call again in {minutes} minutes or later to ask those again"


def hold_seconds(losses: int) -> float:
    """How long an address whose submission was lost is not sent again.

    It may have been paid for, and its job cannot be found. It is sent again after a day, and where
    that is lost too after two, four ... up to thirty: this bounds what can be paid twice.

    >>> hold_seconds(0) / HOLD, hold_seconds(1) / HOLD, hold_seconds(9) / HOLD
    (1.0, 2.0, 30.0)
    """
    return float(min(HOLD * 2 ** min(losses, 10), LONGEST_HOLD))


class Judgement(Enum):
    """What a quota reading says of a submission that a dead process left behind."""

    FREE = "it was not counted: its addresses may be sent"
    HELD = "it may have been counted: its addresses are held"
    OPEN = "too early to tell"


def judge_attempt(*, sent_at: float, used_before: int | None, used: int, now: float) -> Judgement:
    """Judge a lost submission by the quota's `used` before it and now.

    Only an unchanged reading within the same day (00:00 UTC, where a service's day usually turns
    over) says that it was not counted; after the turn `used` may be the same by chance.

    >>> judge_attempt(sent_at=0.0, used_before=40, used=40, now=60.0).name
    'FREE'
    >>> judge_attempt(sent_at=0.0, used_before=0, used=0, now=90_000.0).name
    'HELD'
    """
    if used_before is None or used != used_before or now // DAY != sent_at // DAY:
        return Judgement.HELD
    return Judgement.FREE if now - sent_at >= GRACE else Judgement.OPEN
