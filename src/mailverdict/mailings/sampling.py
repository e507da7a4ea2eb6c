"""A stratified sample of a finite list, and what it says about the whole: pure functions of arrays.

The list is divided into strata, as the addresses at one operator. From each a simple random sample
is drawn without replacement, so that addresses of one domain may well be alike: the draw does not
go by domain.

A share is the mean over strata by their weight. Its variance is that of simple random sampling in
each stratum, with the correction for a finite list (Cochran, Sampling Techniques, 3rd edition,
1977, sections 2.6 and 5.5); rows that one address has are its weight (ratio estimator, section 6).
The interval is Wilson's for the number of addresses that would give this variance if they were
drawn from the whole (Kott and Carr, Journal of Official Statistics 13, 1997).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..model.arrow import Bools
from ..reports.outcomes import wilson_interval
from .beta import Floats

Ints = npt.NDArray[np.int64]
# Addresses of the sample in a stratum of its own; smaller ones are pooled.
FEWEST = 10
# The share of a stratum is estimated as if so many addresses with the share of the whole list had
# been drawn, too: a few that are alike do not prove that all are.
PRIOR = 2.0


def pool_strata(strata: Ints, kinds: Ints, sample: int) -> Ints:
    """Pool the strata of which few would be drawn (`FEWEST`); only with those of the same kind.

    `kinds` has the kind of each stratum. The result are codes from 0.
    """
    sizes = np.bincount(strata, minlength=len(kinds))
    drawn = min(sample, len(strata))
    is_small = sizes * drawn < FEWEST * max(len(strata), 1)
    pooled = np.where(is_small, -1 - kinds, np.arange(len(kinds)))
    _, codes = np.unique(pooled[strata], return_inverse=True)
    return np.asarray(codes, np.int64)


def allocate(sizes: Ints, sample: int) -> Ints:
    """How many to draw from each stratum: in proportion, at least one, at most all.

    >>> allocate(np.array([1000, 200, 3]), 60).tolist()
    [49, 10, 1]
    """
    total = max(int(sizes.sum()), 1)
    exact = sizes * min(1.0, sample / total)
    counts = np.maximum(np.floor(exact), 1)
    counts = np.minimum(counts, sizes).astype(np.int64)
    left = max(sample - int(counts.sum()), 0)
    lacking_most = np.argsort(counts - exact, kind="stable")
    counts[lacking_most[:left]] += 1
    return np.asarray(np.minimum(counts, sizes), np.int64)


def draw(strata: Ints, ranks: npt.NDArray[np.uint64], sample: int, *, certain: Bools) -> Ints:
    """The positions that are drawn: the lowest ranks of each stratum, and all that are `certain`.

    They are in the order of the ranks. So the first of them are a random sample as well, of the
    same design, and a larger sample holds nearly all of a smaller one.
    """
    width = int(strata.max(initial=-1)) + 1
    order = np.lexsort((ranks, strata))
    order = order[~certain[order]]
    sizes = np.bincount(strata[order], minlength=width)
    starts = np.cumsum(sizes) - sizes
    place = np.arange(len(order)) - np.repeat(starts, sizes)
    room = max(sample - int(certain.sum()), 0)
    counts = allocate(sizes, room)
    is_drawn = place < np.repeat(counts, sizes)
    positions = np.concatenate([order[is_drawn], np.flatnonzero(certain)])
    by_rank = np.argsort(ranks[positions], kind="stable")
    return positions[by_rank].astype(np.int64)


class Sample:
    """What was drawn from which stratum.

    `strata` and `weights` are of the whole list, `drawn` are positions in it.
    """

    def __init__(self, strata: Ints, weights: Floats, drawn: Ints) -> None:
        width = int(strata.max(initial=-1)) + 1
        taken = np.bincount(strata[drawn], minlength=width)
        # A stratum of which nothing is there, as when the quota ended early, joins the one with the
        # fewest.
        is_empty = taken == 0
        if is_empty.any() and len(drawn):
            filled = np.flatnonzero(~is_empty)
            fewest = filled[np.argmin(taken[filled])]
            strata = np.where(is_empty[strata], fewest, strata)
        self.weights = weights
        self.drawn = drawn
        self.width = width
        self.codes = strata[drawn]
        self.taken = np.bincount(self.codes, minlength=width)
        self.of_stratum = np.bincount(strata, weights, minlength=width)
        self.total = float(weights.sum())

        sizes = np.bincount(strata, minlength=width)
        squares = np.bincount(strata, weights**2, minlength=width)
        with np.errstate(invalid="ignore", divide="ignore"):
            # 1 if all weights are the same.
            spread = np.nan_to_num(squares * sizes / self.of_stratum**2)
            left = 1 - self.taken / sizes
            part = self.of_stratum / self.total
            # The variance of a stratum's share, times this, is its part in the variance of the
            # whole. It is scaled: the variance of one half is 1.
            self.factors = np.nan_to_num(part**2 * left * spread / self.taken)

    @cached_property
    def drawn_weights(self) -> Floats:
        """The weights of what was drawn, by stratum."""
        sums = np.bincount(self.codes, self.weights[self.drawn], minlength=self.width)
        return sums.astype(np.float64)

    def share(self, hits: Bools) -> tuple[float, float, float]:
        """The share of the weight for which something holds, low and high of its 95 % interval.

        `hits` says for each that was drawn whether it holds. Without a sample the share is NaN,
        between 0 and 1.
        """
        if not len(self.drawn) or not self.total:
            return np.nan, 0.0, 1.0
        hit_weights = np.where(hits, self.weights[self.drawn], 0.0)
        sums = np.bincount(self.codes, hit_weights, minlength=self.width)
        parts = np.zeros(self.width)
        np.divide(sums, self.drawn_weights, out=parts, where=self.drawn_weights > 0)
        share = float(parts @ self.of_stratum / self.total)

        overall = (share * len(self.drawn) + 1) / (len(self.drawn) + 2)
        likely = (parts * self.taken + PRIOR * overall) / (self.taken + PRIOR)
        variance = float(self.factors @ (likely * (1 - likely)))
        if variance <= 0:
            return share, share, share  # all were drawn
        mean = float(likely @ self.of_stratum / self.total)
        trials = mean * (1 - mean) / variance
        low, high = wilson_interval(share * trials, trials)
        # What was seen is there.
        seen = float(sums.sum()) / self.total
        seen_without = float((self.drawn_weights - sums).sum()) / self.total
        return share, max(low, seen), min(high, 1 - seen_without)
