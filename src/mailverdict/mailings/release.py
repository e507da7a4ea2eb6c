"""Which rows are mailed now: the least likely to bounce, as many as fit in the budget.

A wave is as long as an upper credible bound of its bounces, the expected ones and a margin, allows;
a pilot has its size alone.
"""

from __future__ import annotations

import itertools

import numpy as np

from ..model.arrow import Bools
from .beta import Floats
from .rates import Codes, Rates

# Standard deviations above the expected bounces. Bounces are skewed, and strengths are estimated:
# fewer would be enough for 95 % of waves if they were normal.
MARGIN = 1.9
# Of a domain that is not known well, a wave takes so few rows that its bounces differ by three from
# what is expected (one standard deviation), and never more than a quarter: the bounces of these
# decide about the others.
MOST_UNSURE = 3.0
PART = 0.25
# Rows that are more likely to bounce than not are never mailed, even where the budget has room.
MOST_RATE = 0.5


def choose_rows(
    rates: Rates, cell: Codes, is_good: Bools, budget: float, wave: int, waves: int
) -> Codes:
    """The positions of the rows to mail now, of those that are left; `cell` is the one of each row.

    Good rows are spread over the waves that are left, and each wave takes a little more of them
    than the one before. Of a doubtful domain a few rows are mailed first; the last wave has nothing
    to wait for.
    """
    rows = open_rows(rates, cell, is_good, wave, waves)
    rows = rows[order_by_forecast(rates, cell[rows], is_good[rows], budget)]
    end = longest_within(rates, cell[rows], budget)
    if end:
        rows = rows[order_by_cost(rates, cell[rows], end)]
        end = longest_within(rates, cell[rows], budget)
    if end:
        return rows[:end]
    # One bounce more than expected is above the budget of a small wave: good rows are mailed if
    # their forecast is not.
    return rows[is_good[rows] & (rates.cells.rate[cell[rows]] <= budget)]


def open_rows(rates: Rates, cell: Codes, is_good: Bools, wave: int, waves: int) -> Codes:
    """The rows that may be in the wave: a part of the good ones, and a few of each doubtful cell."""
    share = (waves + wave) / sum(waves + later for later in range(wave, waves + 1))
    part = np.ceil(np.cumsum(is_good) * share)  # of a short list at least one
    is_good_part = is_good & (np.diff(part, prepend=0) > 0)
    is_opening = rank_within(cell) < count_openings(rates, cell)[cell]
    if wave == waves:
        is_opening[:] = True
    is_likely = rates.cells.rate[cell] > MOST_RATE
    return np.flatnonzero((is_good_part | (~is_good & is_opening)) & ~is_likely)


def order_by_forecast(rates: Rates, cell: Codes, is_good: Bools, budget: float) -> Codes:
    """Good rows first, then those of the lowest forecast.

    Of equal forecasts those of different domains and operators come first: they teach more.
    """
    by_domain = np.argsort(rank_within(cell), kind="stable")
    cell = cell[by_domain]
    in_operator = rank_within(rates.cells.parent[cell])
    forecast = rates.cells.rate[cell]
    is_later = ~is_good[by_domain] | (forecast > budget)
    return by_domain[np.lexsort((in_operator, forecast, is_later))]


def order_by_cost(rates: Rates, cell: Codes, end: int) -> Codes:
    """In order of what each row adds to the bounces and to the margin of the first `end` rows.

    Many rows of one operator or domain add more than as many of different ones.
    """
    variance = add_up(rates, cell)[1]
    margin = MARGIN * np.diff(variance, prepend=0.0) / (2 * np.sqrt(variance[end - 1]))
    return np.argsort(rates.cells.rate[cell] + margin, kind="stable")


def longest_within(rates: Rates, cell: Codes, budget: float) -> int:
    """How many of the rows are the longest beginning within the budget."""
    fits = np.flatnonzero(below_budget(rates, cell, budget))
    if not len(fits):
        return 0
    return int(fits[-1]) + 1


def choose_pilot(rates: Rates, cell: Codes, is_good: Bools, size: int) -> Codes:
    """The positions of at most `size` doubtful rows that teach the most.

    Good rows are taken only if there are no others. Each operator and domain has a part in
    proportion to its rows and to the standard deviation of a mail's outcome (Neyman 1934), by a
    systematic sample of the rows in the order of operators and domains.
    """
    is_open = rates.cells.rate[cell] <= MOST_RATE
    rows = np.flatnonzero(is_open & ~is_good)
    if not len(rows):
        rows = np.flatnonzero(is_open)
    if len(rows) <= size:
        return rows
    rows = rows[np.lexsort((cell[rows], rates.cells.parent[cell[rows]]))]
    rate = rates.cells.rate[cell[rows]]
    weight = np.cumsum(np.sqrt(rate * (1 - rate) + rates.cells.variance[cell[rows]]))
    steps = (np.arange(size) + 0.5) / size * weight[-1]
    return np.unique(rows[np.searchsorted(weight, steps)])


def below_budget(rates: Rates, cell: Codes, budget: float) -> Bools:
    """Whether the bounces of the first 1, 2, ... rows are below the budget, with the margin."""
    expected, variance = add_up(rates, cell)
    is_below: Bools = expected + MARGIN * np.sqrt(variance) <= budget * np.arange(1, len(cell) + 1)
    return is_below


def count_openings(rates: Rates, cell: Codes) -> Floats:
    """How many rows of each cell may be mailed in a wave that is not the last one."""
    left = np.bincount(cell, minlength=len(rates.domains))
    unsure = np.sqrt(rates.cells.variance)
    few = np.minimum(MOST_UNSURE / np.maximum(unsure, 1e-9), np.ceil(PART * left))
    return np.where(rates.domains > 1, left, few)  # a small domain has nothing to wait for


def add_up(rates: Rates, cell: Codes) -> tuple[Floats, Floats]:
    """The expected bounces of the first 1, 2, ... rows, and their variance.

    The variance is that of chance, of each cell's rate, and of the rates of the levels above, which
    many cells share.
    """
    rate, domains = rates.cells.rate[cell], rates.domains[cell]
    before = rank_within(cell).astype(np.float64)
    after = before + 1
    squares = after * np.maximum(1, after / domains) - before * np.maximum(1, before / domains)
    variance = np.cumsum(rate * (1 - rate) + rates.cells.own[cell] * squares)
    node, share = cell, np.ones(len(cell))
    for level, above in itertools.pairwise(rates.levels):
        share, node = share * level.share[node], level.parent[node]
        variance += np.cumsum(above.own[node] * share * (2 * sum_within(node, share) + share))
    return np.cumsum(rate), variance


def rank_within(group: Codes) -> Codes:
    """For each row the number of earlier rows of its group.

    >>> rank_within(np.array([5, 7, 5, 5])).tolist()
    [0, 0, 1, 2]
    """
    return sum_within(group, np.ones(len(group))).astype(np.int64)


def sum_within(group: Codes, value: Floats) -> Floats:
    """For each row the sum of the values of earlier rows of its group."""
    order = np.argsort(group, kind="stable")
    sums = np.cumsum(value[order]) - value[order]
    is_first = np.diff(group[order], prepend=-1) != 0
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(group)), 0))
    found = np.empty(len(group))
    found[order] = sums - sums[first]
    return found
