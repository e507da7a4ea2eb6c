"""Which rows are mailed now: the least likely to bounce, as many as fit in the budget.

A wave is as long as an upper credible bound of its bounces allows: what is expected of them, and a
margin of standard deviations. Its rows are chosen in this order:

    all rows that are left    open_rows           a part of the good ones, a few of each domain
    -> the order              order_by_forecast   good rows, then the lowest rates
    -> the length             longest_within      the longest beginning within the budget
    -> another order          order_by_cost       by what each row adds to the bound of that length
    -> the length again

A pilot has its size alone (`choose_pilot`). Arrays named `cell` have the cell of each row.
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
    """The positions of the rows to mail now, of those that are left.

    Good rows are spread over the waves that are left, and each wave takes a little more of them
    than the one before. Of a doubtful domain a few rows are mailed first; the last wave has nothing
    to wait for.
    """
    rows = open_rows(rates, cell, is_good, wave, waves)
    order = order_by_forecast(rates, cell[rows], is_good[rows], budget)
    rows = rows[order]
    length = longest_within(rates, cell[rows], budget)
    if length:
        order = order_by_cost(rates, cell[rows], length)
        rows = rows[order]
        length = longest_within(rates, cell[rows], budget)
    if length:
        return rows[:length]
    # One bounce more than expected is above the budget of a small wave: good rows are mailed if
    # their forecast is not.
    forecast = rates.cells.rate[cell[rows]]
    is_within = is_good[rows] & (forecast <= budget)
    return rows[is_within]


def open_rows(rates: Rates, cell: Codes, is_good: Bools, wave: int, waves: int) -> Codes:
    """The rows that may be in the wave: a part of the good ones, a few of each doubtful cell."""
    waves_left = range(wave, waves + 1)
    share = (waves + wave) / sum(waves + later for later in waves_left)
    # Of a short list at least one.
    target = np.ceil(np.cumsum(is_good) * share)
    is_good_part = is_good & (np.diff(target, prepend=0) > 0)
    openings = count_openings(rates, cell)
    is_opening = rank_within(cell) < openings[cell]
    if wave == waves:
        is_opening[:] = True
    is_open = is_good_part | (~is_good & is_opening)
    is_likely = rates.cells.rate[cell] > MOST_RATE
    return np.flatnonzero(is_open & ~is_likely)


def count_openings(rates: Rates, cell: Codes) -> Floats:
    """How many rows of each cell may be mailed in a wave that is not the last one."""
    left = np.bincount(cell, minlength=len(rates.domains))
    deviation = np.sqrt(rates.cells.variance)
    most = MOST_UNSURE / np.maximum(deviation, 1e-9)
    few = np.minimum(most, np.ceil(PART * left))
    # A small domain has nothing to wait for.
    return np.where(rates.domains > 1, left, few)


def order_by_forecast(rates: Rates, cell: Codes, is_good: Bools, budget: float) -> Codes:
    """Good rows first, then those of the lowest forecast.

    Of equal forecasts those of different domains and operators come first: they teach more.
    """
    by_domain = np.argsort(rank_within(cell), kind="stable")
    cell = cell[by_domain]
    operator = rates.cells.parent[cell]
    rank_in_operator = rank_within(operator)
    forecast = rates.cells.rate[cell]
    is_later = ~is_good[by_domain] | (forecast > budget)
    order = np.lexsort((rank_in_operator, forecast, is_later))
    return by_domain[order]


def order_by_cost(rates: Rates, cell: Codes, length: int) -> Codes:
    """In order of what each row adds to the bounces and to the margin of the first rows.

    Many rows of one operator or domain add more than as many of different ones.
    """
    _, variance = add_up(rates, cell)
    added = np.diff(variance, prepend=0.0)
    # The derivative of the square root.
    margin = MARGIN * added / (2 * np.sqrt(variance[length - 1]))
    cost = rates.cells.rate[cell] + margin
    return np.argsort(cost, kind="stable")


def longest_within(rates: Rates, cell: Codes, budget: float) -> int:
    """How many of the rows are the longest beginning within the budget."""
    fits = np.flatnonzero(below_budget(rates, cell, budget))
    if not len(fits):
        return 0
    return int(fits[-1]) + 1


def below_budget(rates: Rates, cell: Codes, budget: float) -> Bools:
    """Whether the upper credible bound of the first 1, 2, ... rows is within the budget."""
    expected, variance = add_up(rates, cell)
    bound = expected + MARGIN * np.sqrt(variance)
    rows = np.arange(1, len(cell) + 1)
    is_below: Bools = bound <= budget * rows
    return is_below


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
    operator = rates.cells.parent[cell[rows]]
    order = np.lexsort((cell[rows], operator))
    rows = rows[order]
    rate = rates.cells.rate[cell[rows]]
    variance = rate * (1 - rate) + rates.cells.variance[cell[rows]]
    weight = np.cumsum(np.sqrt(variance))
    steps = (np.arange(size) + 0.5) / size * weight[-1]
    chosen = np.searchsorted(weight, steps)
    return np.unique(rows[chosen])


def add_up(rates: Rates, cell: Codes) -> tuple[Floats, Floats]:
    """The expected bounces of the first 1, 2, ... rows, and their variance.

    The variance is that of chance, of each cell's rate, and of the rates of the levels above, which
    many cells share. A rate that n rows share adds its variance times the square of n.
    """
    rate = rates.cells.rate[cell]
    domains = rates.domains[cell]
    before = rank_within(cell).astype(np.float64)
    after = before + 1
    # Rows of a cell of many small domains share the rate of one of them only.
    square_before = before * np.maximum(1, before / domains)
    square_after = after * np.maximum(1, after / domains)
    squares = square_after - square_before
    by_chance = rate * (1 - rate)
    by_cell = rates.cells.own[cell] * squares
    variance = np.cumsum(by_chance + by_cell)

    node = cell
    share = np.ones(len(cell))
    for level, above in itertools.pairwise(rates.levels):
        share = level.share[node] * share
        node = level.parent[node]
        earlier = sum_within(node, share)
        by_level = above.own[node] * share * (2 * earlier + share)
        variance += np.cumsum(by_level)
    return np.cumsum(rate), variance


def rank_within(group: Codes) -> Codes:
    """For each row the number of earlier rows of its group.

    >>> rank_within(np.array([5, 7, 5, 5])).tolist()
    [0, 0, 1, 2]
    """
    ones = np.ones(len(group))
    return sum_within(group, ones).astype(np.int64)


def sum_within(group: Codes, value: Floats) -> Floats:
    """For each row the sum of the values of earlier rows of its group."""
    order = np.argsort(group, kind="stable")
    sorted_group = group[order]
    sums = np.cumsum(value[order]) - value[order]
    is_first = np.diff(sorted_group, prepend=-1) != 0
    first = np.where(is_first, np.arange(len(group)), 0)
    first = np.maximum.accumulate(first)
    earlier = np.empty(len(group))
    earlier[order] = sums - sums[first]
    return earlier
