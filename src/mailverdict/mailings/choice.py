"""The rows of a wave, and why each other row is held.

ada@firm.example    valid, a mail server was asked     mailed now
bo@firm.example     the same                           kept for a later wave
cy@catch.example    risky: catch_all                   not sure enough for this wave
Ada@firm.example    valid                              its mailbox is in another row
dy@spam.example     spamtrap                           never mailed (`hold_rows`)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..frames.clean import DID_YOU_MEAN
from ..frames.policy import REMARKED, Policy, decide_rows
from ..frames.results import Results
from ..model.arrow import Bools, one_array, to_bools
from ..model.words import MEANING, SEVERAL_ADDRESSES, Verdict
from .cells import ListMailboxes
from .forecast import Expected, Forecast, expect
from .list_to_mail import Budget, ListToMail
from .rates import Codes
from .release import below_budget, choose_pilot, choose_rows
from .reputation import Reputation

# Which rows may be mailed at all; the words for the others are those of `decide`.
RELEASED = Policy(
    "mailing",
    send=("valid", "risky", "unknown"),
    retry=(),
    drop=("invalid", "risky:disposable", "risky:spamtrap", "flag:disposable", "flag:spamtrap"),
)
LATER = "kept for a later wave"
REPEATED = "its mailbox is in another row"
UNVERIFIED = "it has no verdict"
UNSURE = "not sure enough for this wave"
REFUSING = "withheld: its operator blocked the last wave"
WITHHELD = "withheld: the last wave was blocked or complained about"
VARIED = (DID_YOU_MEAN, REMARKED)  # what follows is another text in each row


@dataclass(frozen=True, eq=False)
class Choice:
    """The rows of a wave, and why the others wait."""

    now: Codes  # the rows to mail
    wave_of: Codes  # of each row, with this wave
    held: pa.StringArray  # why each row is held; null for those that are mailed, now or before
    left: int  # rows that might be mailed
    expected: Expected
    is_sure: bool  # whether the margin fits in the budget
    reputation: Reputation
    refusals: tuple[str, ...]  # operators whose rows are withheld
    withheld: str  # why all rows are
    can_resume: bool  # rows wait until resume=True
    is_pilot: bool


def choose_wave(
    listed: ListToMail,
    budget: Budget,
    forecast: Forecast,
    reputation: Reputation,
    pilot: int | None,
    *,
    resume: bool,
) -> Choice:
    """Choose the rows of the wave, and say why the others are held."""
    held = hold_rows(listed.rows, listed.cells.mailboxes, listed.wave_of)
    is_left = to_bools(held.is_null()) & (listed.wave_of == 0)
    is_refused = is_left & np.isin(listed.cells.operators, reputation.operators)
    refusals = reputation.refusals
    withheld = "; ".join(reputation.withheld)
    if resume:
        is_refused[:] = False
        refusals = ()
        withheld = ""
    is_open = is_left & ~is_refused
    if withheld:
        is_open[:] = False

    rates = forecast.rates
    cell = forecast.cell
    is_good = listed.cells.is_good
    rows = np.flatnonzero(is_open)
    if pilot is None:
        chosen = choose_rows(
            rates, cell[rows], is_good[rows], budget.rate, listed.wave, budget.waves
        )
    else:
        chosen = choose_pilot(rates, cell[rows], is_good[rows], pilot)
    now = rows[chosen]
    wave_of = listed.wave_of.copy()
    wave_of[now] = listed.wave

    is_waiting = is_left & (wave_of == 0)
    is_later = is_good & (rates.cells.rate[cell] <= budget.rate)
    if withheld:
        held = put_reason(held, is_waiting, WITHHELD)
    held = put_reason(held, is_waiting & is_refused, REFUSING)
    held = put_reason(held, is_waiting & is_later, LATER)
    held = put_reason(held, is_waiting, UNSURE)
    is_within = below_budget(rates, cell[now], budget.rate)
    return Choice(
        now=now,
        wave_of=wave_of,
        held=held,
        left=int(is_open.sum()),
        expected=expect(rates, cell[now]),
        is_sure=bool(is_within[-1:].all()),
        reputation=reputation,
        refusals=refusals,
        withheld=withheld,
        can_resume=bool(withheld) or bool(is_refused.any()),
        is_pilot=pilot is not None,
    )


def hold_rows(rows: Results, mailboxes: ListMailboxes, wave_of: Codes) -> pa.StringArray:
    """Why each row is never mailed, in words; null for rows that may be."""
    decided = decide_rows(rows, RELEASED)
    is_sent = pc.equal(decided["action"], "send")
    nothing = pa.scalar(None, pa.string())
    held = one_array(pc.if_else(is_sent, nothing, decided["action_why"]))
    verdicts = pa.array([str(verdict) for verdict in Verdict])
    has_verdict = pc.is_in(rows.buckets.cast(pa.string()), verdicts)
    never = {  # also if a person decided to send
        MEANING["invalid"]: pc.equal(rows.buckets, str(Verdict.INVALID)),
        "flagged spamtrap": rows["spamtrap"],
        "flagged disposable": rows["disposable"],
        MEANING[SEVERAL_ADDRESSES]: pa.array(rows.is_several),
        UNVERIFIED: pc.invert(has_verdict),
    }
    for reason, is_never in never.items():
        is_held = is_never.cast(pa.bool_()).fill_null(False)
        held = put_reason(held, to_bools(is_held), reason)
    is_repeated = find_repeated(mailboxes, wave_of, to_bools(held.is_valid()))
    return put_reason(held, is_repeated, REPEATED)


def find_repeated(mailboxes: ListMailboxes, wave_of: Codes, is_held: Bools) -> Bools:
    """Rows whose mailbox is mailed by another one: the one that was, or the first that may be."""
    is_new = wave_of == 0
    rank = 2 * is_new + is_held
    order = np.argsort(rank, kind="stable")
    in_order = pd.Series(mailboxes.code[order])
    is_repeated = np.zeros(len(order), np.bool_)
    is_repeated[order] = in_order.duplicated().to_numpy()
    return is_repeated & mailboxes.has_one


def put_reason(held: pa.StringArray, mask: Bools, reason: str) -> pa.StringArray:
    """Say a reason where the mask is true and none is said yet."""
    is_said = pc.and_(pa.array(mask), held.is_null())
    return pc.if_else(is_said, reason, held)


def count_reasons(held: pa.StringArray) -> dict[str, int]:
    """How many rows are held, by reason."""
    counts = dict[str, int]()
    for entry in held.value_counts().to_pylist():
        reason = reason_held(entry["values"] or "")
        counts[reason] = counts.get(reason, 0) + entry["counts"]
    return counts


def reason_held(why: str) -> str:
    """Why a row is held, without what is another text in each row.

    >>> reason_held(f"{DID_YOU_MEAN} ada@gmail.com?"), reason_held(LATER)
    ('probably mistyped', 'kept for a later wave')
    """
    if why.startswith(VARIED):
        return why.partition(":")[0]
    return why
