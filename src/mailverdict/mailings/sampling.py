"""A stratified sample of a finite list, and what it says about the whole: pure functions of arrays.

The list is divided into strata, as the addresses at one operator. From each a simple random sample is drawn without
replacement, so that addresses of one domain may well be alike: the draw does not go by domain.

A share is the mean over strata by their weight. Its variance is that of simple random sampling in each stratum, with
the correction for a finite list (Cochran, Sampling Techniques, 3rd edition, 1977, sections 2.6 and 5.5); rows that one
address has are its weight (ratio estimator, section 6). The interval is Wilson's for the number of addresses that would
give this variance if they were drawn from the whole (Kott and Carr, Journal of Official Statistics 13, 1997).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..reports.outcomes import wilson_interval

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
FEWEST = 10  # addresses of the sample in a stratum of its own; smaller ones are pooled
PRIOR = 2.0  # addresses' worth of the whole list in the share of a stratum: few drawn alike do not prove that all are


def pool_strata(strata: Ints, kinds: Ints, sample: int) -> Ints:
    """Pool the strata of which fewer than `FEWEST` would be drawn; only with those of the same kind.

    `kinds` has the kind of each stratum. The result are codes from 0.
    """
    sizes = np.bincount(strata, minlength=len(kinds))
    is_small = sizes * min(sample, len(strata)) < FEWEST * max(len(strata), 1)
    pooled = np.where(is_small, -1 - kinds, np.arange(len(kinds)))
    codes: Ints = np.unique(pooled[strata], return_inverse=True)[1].astype(np.int64)
    return codes


def allocate(sizes: Ints, sample: int) -> Ints:
    """How many to draw from each stratum: in proportion, at least one, at most all.

    >>> allocate(np.array([1000, 200, 3]), 60).tolist()
    [49, 10, 1]
    """
    exact = sizes * min(1.0, sample / max(int(sizes.sum()), 1))
    counts: Ints = np.minimum(np.maximum(np.floor(exact), 1), sizes).astype(np.int64)
    rest = max(sample - int(counts.sum()), 0)
    counts[np.argsort(counts - exact, kind="stable")[:rest]] += 1
    return np.minimum(counts, sizes)


def draw(
    strata: Ints, ranks: npt.NDArray[np.uint64], sample: int, *, certain: npt.NDArray[np.bool_]
) -> Ints:
    """The positions that are drawn: those of the lowest ranks in each stratum, and all that are `certain`.

    They are in the order of the ranks. So the first of them are a random sample as well, of the same design, and a
    larger sample holds nearly all of a smaller one.
    """
    order = np.lexsort((ranks, strata))
    order = order[~certain[order]]
    sizes = np.bincount(strata[order], minlength=int(strata.max(initial=-1)) + 1)
    starts = np.cumsum(sizes) - sizes
    place = np.arange(len(order)) - np.repeat(starts, sizes)
    room = max(sample - int(certain.sum()), 0)
    drawn = order[place < np.repeat(allocate(sizes, room), sizes)]
    positions = np.concatenate([drawn, np.flatnonzero(certain)])
    return positions[np.argsort(ranks[positions], kind="stable")].astype(np.int64)


class Sample:
    """What was drawn from which stratum; `strata` and `weights` are of the whole list, `drawn` positions in it."""

    def __init__(self, strata: Ints, weights: Floats, drawn: Ints) -> None:
        width = int(strata.max(initial=-1)) + 1
        taken = np.bincount(strata[drawn], minlength=width)
        # A stratum of which nothing is there, as when the quota ended early, joins the one with the fewest.
        if (taken == 0).any() and len(drawn):
            fewest = int(np.argmin(np.where(taken == 0, len(drawn) + 1, taken)))
            strata = np.where(taken[strata] == 0, fewest, strata)
        self.weights, self.drawn, self.codes, self.width = weights, drawn, strata[drawn], width
        self.sizes = np.bincount(strata, minlength=width)
        self.taken = np.bincount(self.codes, minlength=width)
        self.of_stratum = np.bincount(strata, weights, minlength=width)
        self.total = float(weights.sum())
        squares = np.bincount(strata, weights**2, minlength=width)
        with np.errstate(invalid="ignore", divide="ignore"):
            # 1 if all weights are the same.
            spread = np.nan_to_num(squares * self.sizes / self.of_stratum**2)
            left = 1 - self.taken / self.sizes
            # What the variance of a stratum's share adds to that of the whole, for a share of one half times four.
            self.factors = np.nan_to_num(
                (self.of_stratum / self.total) ** 2 * left * spread / self.taken
            )

    @cached_property
    def drawn_weights(self) -> Floats:
        """The weights of what was drawn, by stratum."""
        return np.bincount(self.codes, self.weights[self.drawn], minlength=self.width).astype(
            np.float64
        )

    def share(self, hits: npt.NDArray[np.bool_]) -> tuple[float, float, float]:
        """The share of the whole weight for which something holds, low and high of its 95 % interval.

        `hits` says for each that was drawn whether it holds. Without a sample the share is NaN, between 0 and 1.
        """
        if not len(self.drawn) or not self.total:
            return np.nan, 0.0, 1.0
        mine = np.where(hits, self.weights[self.drawn], 0.0)
        found = np.bincount(self.codes, mine, minlength=self.width)
        parts = np.divide(
            found, self.drawn_weights, out=np.zeros(self.width), where=self.drawn_weights > 0
        )
        share = float(parts @ self.of_stratum / self.total)
        overall = (share * len(self.drawn) + 1) / (len(self.drawn) + 2)
        likely = (parts * self.taken + PRIOR * overall) / (self.taken + PRIOR)
        variance = float(self.factors @ (likely * (1 - likely)))
        mean = float(likely @ self.of_stratum / self.total)
        seen, other = (
            float(found.sum()) / self.total,
            float((self.drawn_weights - found).sum()) / self.total,
        )
        if variance <= 0:
            return share, share, share  # all were drawn
        trials = mean * (1 - mean) / variance
        low, high = wilson_interval(share * trials, trials)
        return share, max(low, seen), min(high, 1 - other)
