"""What earlier mailings say about the rows of a list: the rates of its cells, as `Forecast`.

Each list has rates of its own: customers who wrote last month bounce less than addresses that were
bought. In simulated campaigns every weight of other lists made waves worse, even where all lists
were of one kind. So they count only for the domains that are in both (`add_near`). What is known of
this list counts in full, with two corrections on the cautious side:

- a wave with far fewer bounces than expected is doubted, since its export may lack some (`doubt`);
- a wave with more bounces than its rates say, once they have been fitted, raises all rates
  (`surprise_of`).

    the mailings of this list   `split_mailings`, `doubt`    3 waves, 2,400 mails, 31 hard bounces
    -> counts by cell           `join_counts`, `add_near`    with those of the list's own rows
    -> rates of cells           `fit_rates`                  firm.example, catch_all: 0.14
    -> a wave of 400 rows       `expect`                     21 bounces, 12 to 33
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from ..model.words import count_of
from .beta import Floats, beta_of, beta_quantile
from .cells import ListCells
from .experience import COUNTS, Experience, LearntMailing, add_counts, tried_of
from .list_key import SAME_LIST, key_of_list, shared_part
from .rates import (
    CELL,
    PRIORS,
    Codes,
    Rates,
    fit_rates,
    is_good_cell,
    scale_rates,
)
from .release import add_up

INTERVAL = (0.025, 0.975)
SURELY = (0.005, 0.995)  # fewer bounces than the lower end of this interval are doubted
# Bounces that are added to those seen and expected, so that a few more are no surprise.
SURPRISE = 10


class Expected(NamedTuple):
    """The hard bounces to expect in a wave, and their 95 % interval."""

    bounces: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Forecast:
    """The rates of the cells of a list, and what they were made from."""

    rates: Rates
    cell: Codes  # of each row: its place among the rates
    mailings: tuple[LearntMailing, ...]  # of this list
    others: tuple[LearntMailing, ...]
    doubts: tuple[str, ...]  # warnings
    last: LearntMailing | None  # of this list
    surprise: float  # the factor by which the rates of doubtful rows were raised


def forecast_list(cells: ListCells, wave_of: Codes, known: Experience) -> Forecast:
    """Fit the rates of a list to all that is known."""
    own, others = split_mailings(cells, wave_of, known)
    believed, doubts = doubt(own)
    counts = add_counts([mailing.counts for mailing in believed])
    table, cell = join_counts(cells, counts)
    table = add_near(table, others)
    rates = fit_rates(table)
    last = last_mailing(believed, int(wave_of.max(initial=0)))
    surprise = 1.0
    if last is not None:
        factors = surprise_of(table, rates, last)
        rates = scale_rates(rates, factors)
        surprise = float(factors[list(PRIORS).index("doubtful")])
    return Forecast(rates, cell, tuple(believed), tuple(others), tuple(doubts), last, surprise)


def last_mailing(mailings: Sequence[LearntMailing], wave: int) -> LearntMailing | None:
    """The last one up to a wave; if there is none, of all: of an earlier campaign."""
    if not mailings:
        return None
    in_order = by_wave(mailings)
    up_to_wave = [mailing for mailing in in_order if (mailing.wave or 0) <= wave]
    return (up_to_wave or in_order)[-1]


def by_wave(mailings: Sequence[LearntMailing]) -> list[LearntMailing]:
    return sorted(mailings, key=lambda mailing: mailing.wave or 0)


def split_mailings(
    cells: ListCells, wave_of: Codes, known: Experience
) -> tuple[list[LearntMailing], list[LearntMailing]]:
    """The mailings of this list, and those of others."""
    own = []
    others = []
    for mailing in known.mailings:
        if is_of_list(mailing, cells, wave_of):
            own.append(mailing)
        else:
            others.append(mailing)
    return own, others


def is_of_list(mailing: LearntMailing, cells: ListCells, wave_of: Codes) -> bool:
    """Whether a mailing is one of this list: by its key; in earlier releases by its rows.

    The key may be that of the rows of the wave alone, if these were learnt without the others.
    """
    if shared_part(mailing.key, cells.key) >= SAME_LIST:
        return True
    wave = mailing.wave
    if wave is None or not (wave_of == wave).any():
        return False
    if not mailing.key:
        return has_wave(mailing, cells, wave_of, wave)
    is_in_wave = (wave_of == wave) & cells.mailboxes.has_one
    mailbox = np.unique(cells.mailboxes.code[is_in_wave])
    names = cells.mailboxes.names.take(pa.array(mailbox))
    return shared_part(mailing.key, key_of_list(names)) >= SAME_LIST


def has_wave(mailing: LearntMailing, cells: ListCells, wave_of: Codes, wave: int) -> bool:
    """Whether a mailing has at least the mailboxes of a wave, by verdict and reason."""
    is_in_wave = (wave_of == wave) & cells.mailboxes.has_one
    rows = cells.mailboxes.first_of(is_in_wave)
    groups = count_groups(cells, cells.cell[rows])
    return mailing.has_all(groups[groups > 0])


def is_within(mailing: LearntMailing, cells: ListCells) -> bool:
    """Whether a list has at least the rows of a mailing, by verdict and reason."""
    mailed = mailing.by_group()
    rows = count_groups(cells, cells.cell).reindex(mailed.index).fillna(0)
    return bool((rows >= mailed).all())


def count_groups(cells: ListCells, cell: Codes) -> pd.Series[int]:
    """How many of some rows, of which `cell` is the cell, are of each verdict and reason."""
    rows = np.bincount(cell, minlength=len(cells.table))
    table = cells.table.assign(rows=rows)
    return table.groupby(list(CELL[:2]))["rows"].sum()


def join_counts(cells: ListCells, counts: pd.DataFrame) -> tuple[pd.DataFrame, Codes]:
    """The cells of a list and of counts with what is known of each; and the line of each row."""
    listed = cells.table.rename(columns={"domains": "listed"})
    listed["place"] = np.arange(len(listed))
    table = listed.merge(counts, "outer", list(CELL), sort=False)
    names = ["listed", *COUNTS]
    table[names] = table[names].fillna(0).astype("int64")
    domains = table[["domains", "listed"]].max(axis=1).clip(lower=1)
    table["domains"] = domains.where(table["domain"] == "", 1)
    table["tried"] = tried_of(table).astype("float64")
    table["hard"] = table["hard"].astype("float64")

    line = np.zeros(len(listed), np.int64)
    is_listed = table["place"].notna().to_numpy()
    place = table["place"][is_listed].to_numpy(np.int64)
    line[place] = np.flatnonzero(is_listed)
    return table.drop(columns="place"), line[cells.cell]


def add_near(table: pd.DataFrame, others: Sequence[LearntMailing]) -> pd.DataFrame:
    """Add what other lists showed of the domains that are also in this one.

    The mails to a domain of another list are alike, so that n of them are worth n (k + 1) / (n +
    k), at most k + 1.
    """
    if not others:
        return table
    counts = add_counts([mailing.counts for mailing in others])
    counts = counts[counts["domain"] != ""]
    tried = tried_of(counts).astype("float64")
    strength = PRIORS["doubtful"].strength
    worth = (strength + 1) / (tried + strength)
    near = counts[list(CELL)]
    near = near.assign(near_tried=tried * worth, near_hard=counts["hard"] * worth)
    table = table.merge(near, "left", list(CELL), sort=False)
    names = ["near_tried", "near_hard"]
    table[names] = table[names].fillna(0.0)
    return table


def doubt(mailings: Sequence[LearntMailing]) -> tuple[list[LearntMailing], list[str]]:
    """Count a mailing with far too few bounces as so many mails as fit them.

    Too few are fewer than the interval of the forecast by the waves before: its export may lack
    some. Then its rate is the forecast, and it teaches no more than its bounces. A mailing that a
    person called complete counts in full.
    """
    believed = list[LearntMailing]()
    doubts = list[str]()
    for mailing in by_wave(mailings):
        if mailing.is_complete:
            believed.append(mailing)
            continue
        expected = forecast_mailing(believed, mailing)
        if mailing.hard >= int(expected.low):
            believed.append(mailing)
            continue
        doubts.append(
            f"{mailing} had {count_of(mailing.hard, 'hard bounce')} of "
            f"{count_of(mailing.mailed, 'mail')}, and {expected.low:,.0f} to {expected.high:,.0f} "
            "were expected: does its export lack some? Only so many of its mails count as fit its "
            "bounces, until it is learnt with more of them, or as complete: all bounces have come"
        )
        believed.append(lessen(mailing, mailing.hard / expected.bounces))
    return believed, doubts


def lessen(mailing: LearntMailing, part: float) -> LearntMailing:
    """A mailing of which only a part of the mails without a report counts."""
    counts = mailing.counts
    reported = counts["hard"] + counts["unclear"]
    silent = np.floor((counts["mailed"] - reported) * part).astype("int64")
    counts = counts.assign(mailed=reported + silent)
    return replace(mailing, counts=counts[counts["mailed"] > 0])


def forecast_mailing(known: Sequence[LearntMailing], mailing: LearntMailing) -> Expected:
    """The bounces to expect of a mailing from what those before it showed."""
    nothing = dict.fromkeys(("mailed", "hard", "unclear"), 0)
    counts = [before.counts for before in known]
    table = add_counts([*counts, mailing.counts.assign(**nothing)])
    table = table.assign(tried=tried_of(table))
    rates = fit_rates(table)
    line = lines_of(mailing, table)
    return expect(rates, np.repeat(line, tried_of(mailing.counts)), SURELY)


def lines_of(mailing: LearntMailing, table: pd.DataFrame) -> Codes:
    """The line of a table that each line of a mailing's counts is about."""
    cells = pd.MultiIndex.from_frame(table[list(CELL)])
    lines = pd.Series(np.arange(len(table)), cells)
    asked = pd.MultiIndex.from_frame(mailing.counts[list(CELL)])
    return lines.reindex(asked).to_numpy(np.int64)


def surprise_of(table: pd.DataFrame, rates: Rates, last: LearntMailing) -> Floats:
    """By which factor good and doubtful rows of the last wave bounced more than their rates say.

    The rates are fitted to it, too. So a factor above 1 says that rates have changed since the
    waves before, or that the rows of this wave were worse than those that were mailed first.
    """
    counts = last.counts
    tried = tried_of(counts).to_numpy(np.float64)
    rate = rates.cells.rate[lines_of(last, table)]
    kind = np.where(is_good_cell(counts), 0, 1)
    seen = np.bincount(kind, counts["hard"], len(PRIORS))
    expected = np.bincount(kind, rate * tried, len(PRIORS))
    return np.maximum(1.0, (seen + SURPRISE) / (expected + SURPRISE))


def expect(rates: Rates, cell: Codes, interval: tuple[float, float] = INTERVAL) -> Expected:
    """The bounces of some rows; the interval is that of a Beta distribution of their rate."""
    if not len(cell):
        return Expected(0.0, 0.0, 0.0)
    bounces, variance = add_up(rates, cell)
    expected = bounces[-1:]
    size = len(cell)
    a, b = beta_of(expected / size, variance[-1:] / size**2)
    low, high = [beta_quantile(chance, a, b) * size for chance in interval]
    return Expected(float(expected[0]), float(low[0]), float(high[0]))
