"""Made-up lists on arrays, and whether the intervals of an estimate hold their true shares.

A list has 500 to 200,000 addresses at domains of very different sizes. A domain belongs to one of some operators, and
its addresses are alike: how much is drawn for each list, and so are the shares of the verdicts, of which one is rare
(0.5 % to 10 %). One address in ten has several rows. The sample has 100 to 800 addresses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mailverdict.mailings.sampling import Sample, draw, pool_strata

VERDICTS = 4
SIZES = (500, 200_000)
SAMPLES = (100, 200, 400, 800)
RAREST, RARE = 0.005, 0.1


@dataclass(frozen=True)
class SimulatedList:
    """The addresses of a list."""

    strata: npt.NDArray[np.int64]  # operator, and whether a list flags the address
    kinds: npt.NDArray[np.int64]  # of each stratum
    weights: npt.NDArray[np.float64]  # rows
    verdicts: npt.NDArray[np.int64]


def simulated_list(rng: np.random.Generator, size: int) -> SimulatedList:
    """Make up a list."""
    sizes = rng.zipf(1.6, size).clip(max=max(size // 5, 1))
    sizes = sizes[: np.searchsorted(np.cumsum(sizes), size) + 1]
    operators = int(rng.integers(3, 60))
    operator = np.minimum(rng.geometric(0.15, len(sizes)) - 1, operators - 1)
    shares = rng.dirichlet(np.ones(VERDICTS - 1))
    rare = np.exp(rng.uniform(np.log(RAREST), np.log(RARE)))
    shares = np.insert(shares * (1 - rare), rng.integers(VERDICTS), rare)
    of_operator = [
        rng.dirichlet(np.maximum(shares * rng.choice([2, 10, 50]), 1e-3)) for _ in range(operators)
    ]
    likeness = rng.choice([1.0, 5.0, 50.0])
    parts = rng.standard_gamma(np.maximum(np.array(of_operator)[operator] * likeness, 1e-3))
    of_domain = parts / np.maximum(parts.sum(axis=1, keepdims=True), 1e-300)
    domain = np.repeat(np.arange(len(sizes)), sizes)[:size]
    verdicts = (
        (of_domain.cumsum(axis=1)[domain] < rng.random((size, 1)))
        .sum(axis=1)
        .clip(max=VERDICTS - 1)
    )
    flagged = operators * (rng.random(size) < 0.1)
    rows = np.where(rng.random(size) < 0.1, rng.geometric(0.4, size) + 1, 1).astype(np.float64)
    return SimulatedList(operator[domain] + flagged, np.repeat([0, 1], operators), rows, verdicts)


def covered(rng: np.random.Generator) -> list[bool]:
    """Of one list: whether the interval of each verdict holds its share of the rows."""
    made = simulated_list(rng, int(np.exp(rng.uniform(*np.log(SIZES)))))
    size = int(rng.choice(SAMPLES))
    certain = (made.weights > 1) & (made.weights * size >= made.weights.sum())
    strata = np.where(certain, len(made.strata), pool_strata(made.strata, made.kinds, size))
    strata = np.unique(strata, return_inverse=True)[1]
    ranks = rng.integers(0, 2**63, len(strata)).astype(np.uint64)
    drawn = draw(strata, ranks, size, certain=certain)
    sample, held = Sample(strata, made.weights, drawn), []
    for verdict in range(VERDICTS):
        true = made.weights[made.verdicts == verdict].sum() / made.weights.sum()
        _, low, high = sample.share(made.verdicts[drawn] == verdict)
        held.append(bool(low - 1e-9 <= true <= high + 1e-9))
    return held
