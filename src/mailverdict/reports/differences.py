"""The statistics of `breakdown`: whether groups differ, by how much, and whether by chance.

The data are two counts for each group: `people`, and how many of them are `bad`::

    people  1,512  412  76        a group in which the share is that of all others says nothing
    bad        90  128   9

`chance_of` asks whether one share explains all groups, `association` how strong the difference is,
`adjust` corrects for having looked at many columns, and `shrink` says how much of a group's own
difference is to be believed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Z_95 = 1.959963984540054  # 97.5 % quantile of the normal distribution
LEAST_EXPECTED = 1.0  # bad (and good) people that a group should have by chance, to be tested alone
FEW_BAD = 5  # fewer bad people than this, or fewer good ones, cannot show a difference


def wilson_intervals(hits: Any, trials: Any) -> tuple[Floats, Floats]:
    """The score intervals of proportions (Wilson 1927) at 95 %; NaN without trials.

    >>> low, high = wilson_intervals([10, 0], [100, 30])
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0552, 0.0], [0.1744, 0.1135])
    """
    hits = np.asarray(hits, np.float64)
    trials = np.asarray(trials, np.float64)
    trials = np.where(trials > 0, trials, np.nan)
    rate = hits / trials
    square = Z_95 * Z_95
    middle = (rate + square / (2 * trials)) / (1 + square / trials)
    variance = rate * (1 - rate) / trials
    spread = np.sqrt(variance + square / (4 * trials * trials))
    half = Z_95 / (1 + square / trials) * spread
    low = np.maximum(middle - half, 0.0)
    high = np.minimum(middle + half, 1.0)
    # Exact at the ends, in spite of rounding.
    low = np.where(hits == 0, 0.0 * trials, low)
    high = np.where(hits == trials, 1.0, high)
    return low, high


def chi_square(people: Counts, bad: Counts) -> float:
    """Pearson's statistic of the groups against one share for all; 0 where all or none are bad."""
    whole = people.sum()
    share = bad.sum() / whole
    if share in (0.0, 1.0):
        return 0.0
    expected = people * share
    variance = expected * (1 - share)
    return float(((bad - expected) ** 2 / variance).sum())


def pool_small(people: Counts, bad: Counts) -> tuple[Counts, Counts]:
    """The groups, with those merged for which chi-square is too rough (Cochran 1954)."""
    share = bad.sum() / max(people.sum(), 1)
    is_small = people * min(share, 1 - share) < LEAST_EXPECTED
    if is_small.sum() < 2:
        return people, bad
    pooled_people = np.append(people[~is_small], people[is_small].sum())
    pooled_bad = np.append(bad[~is_small], bad[is_small].sum())
    return pooled_people, pooled_bad


def chance_of(people: Counts, bad: Counts) -> float:
    """The probability of such differences between groups of one share, or of larger ones.

    It is that of Pearson's statistic for the given margins. Its mean and variance are known exactly
    (Haldane 1940, Dawson 1954), also where groups are small and bad people rare, and a gamma
    distribution with these takes the place of the chi-square distribution.
    """
    filled = people > 0
    people, bad = pool_small(people[filled], bad[filled])
    whole = float(people.sum())
    all_bad = float(bad.sum())
    all_good = whole - all_bad
    if len(people) < 2 or min(all_bad, all_good) < FEW_BAD:
        return 1.0
    margins = np.array([all_bad, all_good])
    mean = (len(people) - 1) * whole / (whole - 1)
    spread_1, rest_1 = margin_terms(people.astype(np.float64), whole)
    spread_2, rest_2 = margin_terms(margins, whole)
    variance = 2 * whole / (whole - 3) * (spread_1 - rest_1) * (spread_2 - rest_2)
    variance += whole * whole / (whole - 1) * rest_1 * rest_2
    shape = mean * mean / variance
    return gamma_tail(shape, chi_square(people, bad) * mean / variance)


def margin_terms(margin: Floats, whole: float) -> tuple[float, float]:
    """The two terms of one margin in the variance of the statistic (Dawson 1954)."""
    size = len(margin)
    spread = (size - 1) * (whole - size) / (whole - 1)
    inverse = float((whole / margin).sum())
    rest = (inverse - size * size) / (whole - 2)
    return spread, rest


def gamma_tail(shape: float, x: float) -> float:
    """The regularized upper incomplete gamma function Q(shape, x) (DLMF 8.11, 8.9).

    >>> round(gamma_tail(0.5, 3.841458821 / 2), 6)        # chi-square with one degree of freedom
    0.05
    """
    if x <= 0:
        return 1.0
    front = math.exp(shape * math.log(x) - x - math.lgamma(shape))
    if x < shape + 1:
        term = total = 1 / shape
        step = shape
        while term > total * 1e-16:
            step += 1
            term *= x / step
            total += term
        return max(0.0, 1 - front * total)
    b = x + 1 - shape
    c = 1e300
    d = 1 / b
    fraction = d
    for n in range(1, 10_000):
        factor = n * (shape - n)
        b += 2
        d = 1 / nonzero(factor * d + b)
        c = nonzero(b + factor / c)
        fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * fraction


def nonzero(x: float) -> float:
    if abs(x) > 1e-300:
        return x
    return 1e-300


def association(people: Counts, bad: Counts) -> float:
    """Cramér's V of groups and being bad, 0 to 1, without its bias (Bergsma 2013)."""
    filled = people > 0
    people = people[filled]
    bad = bad[filled]
    groups = len(people)
    whole = float(people.sum())
    if groups < 2 or whole < 3:
        return 0.0
    by_chance = (groups - 1) / (whole - 1)
    surplus = chi_square(people, bad) / whole - by_chance
    width = min(groups - (groups - 1) * by_chance, 2 - 1 / (whole - 1))
    if width <= 1:
        return 0.0
    return math.sqrt(max(surplus, 0.0) / (width - 1))


def adjust(chances: list[float]) -> list[float]:
    """The chances as false discovery rates (Benjamini and Hochberg 1995).

    >>> [round(chance, 3) for chance in adjust([0.01, 0.04, 0.03, 0.5])]
    [0.04, 0.053, 0.053, 0.5]
    """
    values = np.asarray(chances, np.float64)
    order = np.argsort(-values, kind="stable")
    ranks = np.arange(len(values), 0, -1)
    raised = np.minimum.accumulate(values[order] * len(values) / ranks)
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(raised, 1.0)
    return [float(chance) for chance in adjusted]


def prior_people(people: Counts, bad: Counts) -> float:
    """How many people a group needs for its share to count half; infinite if all are alike.

    It is the strength of the beta distribution of the groups' shares, by the moments of the
    beta-binomial distribution (Kleinman 1973).
    """
    filled = people > 0
    if not filled.any():
        return math.inf
    people = people[filled]
    bad = bad[filled]
    share_of_others = 1 - people / people.sum()
    room = float(((people - 1) * share_of_others).sum())
    surplus = chi_square(people, bad) - (len(people) - 1)
    if room <= 0 or surplus <= 0:
        return math.inf
    alike = min(surplus / room, 1.0)  # the correlation of two people of a group
    return (1 - alike) / alike


def elsewhere(people: Counts, bad: Counts) -> Floats:
    """For each group the share of all others; NaN where there are none."""
    others = people.sum() - people
    bad_others = bad.sum() - bad
    share: Floats = bad_others / np.where(others > 0, others, np.nan)
    return share


def shrink(people: Counts, bad: Counts) -> Floats:
    """Each group's difference to all others, as far as to be believed (empirical Bayes).

    The share of the others is worth `prior_people` people: a group with as many shows half of what
    was seen.
    """
    others = elsewhere(people, bad)
    share = bad / np.where(people > 0, people, np.nan)
    prior = prior_people(people, bad)
    if math.isinf(prior):
        weight = np.zeros(len(people))
    else:
        weight = people / np.maximum(people + prior, 1e-9)
    believed: Floats = weight * (share - others)
    return believed


def surprise(people: Counts, bad: Counts) -> Floats:
    """For each group its standard deviations from the share of all (Haberman 1973)."""
    whole = max(float(people.sum()), 1.0)
    share = bad.sum() / whole
    variance = people * share * (1 - share) * (1 - people / whole)
    spread = np.sqrt(np.where(variance > 0, variance, np.inf))
    deviations: Floats = (bad - people * share) / spread
    return deviations
