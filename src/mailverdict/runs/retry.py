"""What is asked again, and when: temporary answers and lost submissions. Pure functions.

There are three kinds of retries, each in one place. `mailverdict.remote` repeats an HTTP request
within seconds, and `mailverdict.local` tries another mail server. The rules here are about the same
address minutes later or on another day.
"""

from __future__ import annotations

import math
from collections import Counter
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from ..backend import GRACE, is_same_day
from ..model.arrow import one_array
from ..model.words import Reason, Status, Verdict, count_of

DAY = 86_400.0
HOLD = DAY  # seconds: a second payment costs one unit of a daily quota
MAX_HOLD = 30 * HOLD  # the default `max_age` of an answer
ERROR_MAX_AGE = 3_600.0  # seconds for which a technical failure is reused instead of paid for again

# Temporary unknowns, which are never reused, and the seconds after which asking again makes sense.
# The other unknowns (time-out, closed port, full mailbox ...) are answers: asking for them daily
# would use up the quota of addresses that were never verified. They are kept for `max_age`, and
# refresh={"unknown"} asks for them again.
ASK_AGAIN: dict[str, float] = {
    Reason.THROTTLED: 900.0,  # the service itself tried for about 12 minutes
    # The window of a rate limit, which can affect a whole batch within seconds.
    Reason.RATE_LIMITED: 60.0,
    Reason.GREYLISTED: 300.0,  # mail servers ask for minutes; `LocalBackend` waits as long
}

# Error codes of rows whose DNS questions had no answer, if they are unknown.
FAILED_LOOK_UPS = ("DNS", "BLACKLIST")


def reusable(
    rows: pa.Table, ages: pa.DoubleArray, refresh: frozenset[str], *, costs_quota: bool = True
) -> pa.BooleanArray:
    """Which known rows may be reused.

    `refresh` names verdicts, or the status ``error``, that may not.

    `ages` are the seconds since each row was settled. Where asking costs no quota, a failure of the
    DNS is not an answer: a night without network must not be repeated from the journal for weeks.
    """
    status = as_text(rows["status"])
    result = as_text(rows["result"])
    is_unknown = pc.equal(result, Verdict.UNKNOWN).fill_null(False)
    has_no_answer = has_temporary_reason(as_text(rows["reasons"])).fill_null(False)
    if not costs_quota:
        codes = pa.array(FAILED_LOOK_UPS, pa.string())
        has_failed = pc.is_in(as_text(rows["error"]), value_set=codes)
        has_no_answer = pc.or_(has_no_answer, has_failed)
    is_temporary = pc.and_(is_unknown, has_no_answer)
    is_error = pc.equal(status, Status.ERROR).fill_null(False)
    is_old = pc.greater_equal(ages, ERROR_MAX_AGE).fill_null(False)
    is_old_error = pc.and_(is_error, is_old)
    words = pa.array(sorted(refresh), pa.string())
    is_refreshed = pc.or_(pc.is_in(result, value_set=words), pc.is_in(status, value_set=words))
    is_asked_again = pc.or_(pc.or_(is_temporary, is_old_error), is_refreshed)
    return pc.invert(is_asked_again)


def has_temporary_reason(reasons: pa.StringArray) -> pa.BooleanArray:
    """Whether the first reason of each row is one of `ASK_AGAIN`."""
    words = "|".join(sorted(ASK_AGAIN))
    return pc.match_substring_regex(reasons, f"^(?:{words})(?:;|$)")


def as_text(column: pa.ChunkedArray) -> pa.StringArray:
    """A column as one array of texts."""
    return one_array(column).cast(pa.string())


def retry_hint(rows: pa.Table, *, has_journal: bool = True) -> str:
    """How many answers are temporary, and when to call again; empty if there are none."""
    is_unknown = pc.equal(as_text(rows["result"]), Verdict.UNKNOWN).fill_null(False)
    counts: Counter[str] = Counter()
    for group in pc.value_counts(as_text(rows["reasons"]).filter(is_unknown)).to_pylist():
        first_reason, _, _ = (group["values"] or "").partition(";")
        counts[first_reason] += group["counts"]
    temporary = {word: counts[word] for word in ASK_AGAIN if counts[word]}
    if not temporary:
        return ""
    words = ", ".join(f"{count:,} {word}" for word, count in temporary.items())
    minutes = math.ceil(max(ASK_AGAIN[word] for word in temporary) / 60)
    hint = (
        f"some answers are temporary ({words}); call again in {count_of(minutes, 'minute')} or "
        "later to verify those addresses again"
    )
    if not has_journal:
        hint += "; without a journal all others are verified again, too"
    return hint


def hold_seconds(losses: int) -> float:
    """How long an address whose submission was lost is not sent again.

    It may have been paid for, and its job cannot be found. It is sent again after a day, and if
    that submission is lost as well, after two, four ... up to thirty days: this limits what can be
    paid twice.

    >>> hold_seconds(0) / HOLD, hold_seconds(1) / HOLD, hold_seconds(9) / HOLD
    (1.0, 2.0, 30.0)
    """
    return float(min(HOLD * 2 ** min(losses, 10), MAX_HOLD))


class LostSubmission(Enum):
    """What a quota reading shows of a submission whose process ended before the answer."""

    NOT_COUNTED = "its addresses may be sent"
    MAYBE_COUNTED = "its addresses are held"
    TOO_EARLY = "the service may still be counting"


def classify_lost_submission(
    *, sent_at: float, used_before: int | None, used: int, now: float
) -> LostSubmission:
    """Compare the quota's `used` before a lost submission with `used` now.

    Only an unchanged reading on the same day shows that it was not counted.

    >>> classify_lost_submission(sent_at=3600.0, used_before=40, used=40, now=3660.0).name
    'NOT_COUNTED'
    >>> classify_lost_submission(sent_at=3600.0, used_before=0, used=0, now=90_000.0).name
    'MAYBE_COUNTED'
    """
    if used_before is None or used != used_before or not is_same_day(sent_at, now):
        return LostSubmission.MAYBE_COUNTED
    if now - sent_at < GRACE:
        return LostSubmission.TOO_EARLY
    return LostSubmission.NOT_COUNTED
