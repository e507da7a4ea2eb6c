"""Campaigns in a made-up world, driven by the code that chooses rows and learns: how many good contacts they win.

The list has good rows, and doubtful ones at domains of very different size. Each domain bounces at a rate of its own,
which is near that of its operator. An oracle knows all rates, and mails the best domains while the whole campaign
stays below the budget.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from mailverdict.mailings.experience import SMALL_DOMAIN
from mailverdict.mailings.rates import fit_rates
from mailverdict.mailings.release import choose_rows

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
OPERATORS = 12
BUDGET = 0.02


@dataclass(frozen=True)
class World:
    """The doubtful domains of a list, and its good rows."""

    size: Codes  # rows of each domain
    operator: Codes  # of each domain
    rate: Floats  # of bounces, of each domain
    good: int  # rows
    good_rate: float


@dataclass(frozen=True)
class CampaignResult:
    """What came of a campaign."""

    won: float  # good contacts among the doubtful rows that were mailed, as a part of those of the oracle
    rates: list[float]  # of hard bounces, of each wave
    rate: float  # of the whole campaign


def make_world(chance: np.random.Generator, *, good: int = 60_000, doubtful: int = 20_000) -> World:
    """Domain sizes by a power law; rates by a Beta distribution around that of an operator, which is one as well."""
    domains = max(3, 3 * doubtful // 20)
    size = chance.zipf(1.7, domains).clip(1, 1500)
    size = np.maximum(1, (size * doubtful / size.sum()).astype(np.int64))
    operator = chance.integers(OPERATORS, size=domains)
    mean = chance.beta(1.2, 7, OPERATORS).clip(0.005, 0.8)[operator]
    strength = chance.uniform(3, 30, OPERATORS)[operator]
    rate = chance.beta(mean * strength + 1e-3, (1 - mean) * strength + 1e-3)
    return World(size, operator, rate, good, float(chance.uniform(0.001, 0.006)))


def contacts_of_oracle(world: World, budget: float) -> float:
    order = np.argsort(world.rate)
    mailed = world.good + np.cumsum(world.size[order])
    bounced = world.good * world.good_rate + np.cumsum((world.size * world.rate)[order])
    best = order[
        : np.argmax(np.append(bounced / mailed > budget, True))
    ]  # up to the first above the budget
    return float((world.size * (1 - world.rate))[best].sum())


def make_cells(world: World) -> tuple[pd.DataFrame, Codes]:
    """The cells of the list as `mailing` makes them, and the cell of each domain and, last, of the good rows."""
    names = [
        f"o{operator} d{at}" if size >= SMALL_DOMAIN else f"o{operator} "
        for at, (size, operator) in enumerate(zip(world.size, world.operator, strict=True))
    ]
    cell, distinct = pd.factorize(np.array([*names, "good "], object))
    operators, domains = zip(*(each.split(" ") for each in distinct), strict=True)
    is_good = np.arange(len(distinct)) == cell[-1]
    words = {
        "verdict": np.where(is_good, "valid", "risky"),
        "why": np.where(is_good, "none", "catch_all"),
        "operator": operators,
        "domain": domains,
        "domains": np.bincount(cell),
    }
    return pd.DataFrame(words), cell


def run_campaign(
    seed: int, *, budget: float = BUDGET, waves: int = 6, good: int = 60_000, doubtful: int = 20_000
) -> CampaignResult:
    """Mail a list in waves, and learn after each."""
    chance = np.random.default_rng(seed)
    world = make_world(chance, good=good, doubtful=doubtful)
    cells, cell_of = make_cells(world)
    domain = chance.permutation(
        np.repeat(np.arange(len(cell_of)), np.append(world.size, world.good))
    )
    bounces = chance.random(len(domain)) < np.append(world.rate, world.good_rate)[domain]
    cell, is_good = cell_of[domain], domain == len(cell_of) - 1
    is_mailed = np.zeros(len(domain), np.bool_)
    rates = []
    for wave in range(1, waves + 1):
        cells["tried"] = np.bincount(cell[is_mailed], minlength=len(cells))
        cells["hard"] = np.bincount(cell[is_mailed], bounces[is_mailed], len(cells))
        left = np.flatnonzero(~is_mailed)
        now = left[choose_rows(fit_rates(cells), cell[left], is_good[left], budget, wave, waves)]
        is_mailed[now] = True
        rates.append(float(bounces[now].mean()) if len(now) else 0.0)
    won = int((is_mailed & ~bounces & ~is_good).sum())
    return CampaignResult(
        won / contacts_of_oracle(world, budget), rates, float(bounces[is_mailed].mean())
    )
