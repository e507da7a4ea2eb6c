"""Blocks and complaints of the last mailing: whether the next one has to wait.

They say nothing about a mailbox, but receivers judge a sender by them, and mails that follow too
soon make it worse.

| limit | who asks for it |
|---|---|
| complaints below 0.1 %, never 0.3 % | Google, *Email sender guidelines*, since February 2024 |
| complaints below 0.3 % | Yahoo, *Sender best practices*, since February 2024 |
| refused mails below 5 % | Amazon SES, *Sending review process FAQs*: a review from 5 % on |

All read in November 2026. The receivers count over days and by their own users; of a wave there are
few counts. So a limit is exceeded if the rate is at the limit, its 95 % interval (Wilson 1927) is
above the level that is still good, and it was not a single mail.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..checks.operators import SELF
from ..model.words import count_of
from ..reports.outcomes import wilson_interval
from .experience import LearntMailing

COMPLAINTS_GOOD = 0.001
COMPLAINTS_LIMIT = 0.003
BLOCKED_GOOD = 0.025
BLOCKED_LIMIT = 0.05
FEWEST = 10  # mails to other operators, to say that only one of them blocks


@dataclass(frozen=True)
class Reputation:
    """What the last mailing means for the next one."""

    withheld: tuple[str, ...] = ()  # why the next wave has to wait; empty if it may be mailed
    operators: tuple[str, ...] = ()  # of which no row is mailed
    refusals: tuple[str, ...] = ()  # what each of them did
    complaints: tuple[str, ...] = ()  # a warning, if they are fewer than withhold the wave


def judge_reputation(last: LearntMailing | None) -> Reputation:
    """Judge blocks and complaints; blocks at one operator concern its rows alone."""
    if last is None:
        return Reputation()
    withheld, warned = judge_complaints(last)
    refusing = find_refusing(last)
    mailed = last.mailed
    rest = mailed - int(refusing["mailed"].sum())
    blocked_rest = last.total("blocked") - int(refusing["blocked"].sum())
    is_rest_blocked = is_above(blocked_rest, rest, BLOCKED_LIMIT, BLOCKED_GOOD)
    is_by_most = len(refusing) > 1 and rest < mailed / 2
    is_unknown = len(refusing) == 1 and rest < FEWEST
    if is_rest_blocked or is_by_most or is_unknown:
        blocked = last.total("blocked")
        where = "not by one operator alone"
        if is_unknown:
            where = f"and only {rest} went to others, too few to say that they accept you"
        withheld.append(
            f"{blocked:,} of {count_of(mailed, 'mail')} of {last} were "
            f"blocked{interval_text(blocked, mailed)}, {where}"
        )
        return Reputation(tuple(withheld), complaints=tuple(warned))

    refusals = []
    for operator, row in refusing.iterrows():
        text = interval_text(int(row["blocked"]), int(row["mailed"]))
        refusals.append(
            f"{operator} blocked {row['blocked']:,} of {count_of(row['mailed'], 'mail')} of "
            f"{last}{text}: its rows are withheld"
        )
    operators = tuple(map(str, refusing.index))
    return Reputation(tuple(withheld), operators, tuple(refusals), tuple(warned))


def judge_complaints(last: LearntMailing) -> tuple[list[str], list[str]]:
    """Why complaints withhold the next wave, or else a warning about them."""
    complaints = last.total("complaints")
    mailed = last.mailed
    if not complaints:
        return [], []
    people = count_of(complaints, "person", "people")
    interval = interval_text(complaints, mailed)
    complained = f"{people} of {mailed:,} complained about {last}{interval}"
    if is_above(complaints, mailed, COMPLAINTS_LIMIT, COMPLAINTS_GOOD):
        return [f"{complained}; receivers refuse senders from 0.3 % on"], []
    if complaints / mailed < COMPLAINTS_GOOD:
        return [], []
    warning = (
        f"{complained}; receivers ask for less than 0.1 %. Mail only people who asked for it, and "
        "let them unsubscribe with one click"
    )
    return [], [warning]


def find_refusing(last: LearntMailing) -> pd.DataFrame:
    """The operators that blocked too many of the mails to them, with `mailed` and `blocked`."""
    counts = last.counts.groupby("operator")[["mailed", "blocked"]].sum()
    counts = counts.drop(index=["", SELF], errors="ignore")
    counts = counts[counts["blocked"] > 0]
    is_refusing = []
    for blocked, sent in zip(counts["blocked"], counts["mailed"], strict=True):
        is_refusing.append(is_above(blocked, sent, BLOCKED_LIMIT, BLOCKED_GOOD))
    return counts[np.array(is_refusing, np.bool_)]


def is_above(hits: int, trials: int, limit: float, good: float) -> bool:
    """Whether a rate is at its limit, and its interval above what is still good."""
    if hits < 2 or hits / trials < limit:
        return False
    return wilson_interval(hits, trials)[0] > good


def interval_text(hits: int, trials: int) -> str:
    """A rate and its interval in brackets."""
    low, high = wilson_interval(hits, trials)
    return f" ({hits / trials:.2%}, {low:.2%} to {high:.2%})"
