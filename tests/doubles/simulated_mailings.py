"""Campaigns in made-up worlds through the public functions: how many good contacts they win, and
how many bounces.

A list has good rows, and doubtful ones at domains of very different size. Each domain bounces at a
rate of its own, which is near that of its operator. A campaign calls `mailing`, draws the bounces
of its rows, calls `learn`, and again, for each wave. An oracle knows all rates, and mails the best
domains while the whole campaign stays within the budget. What a campaign wins is compared with it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

import mailverdict as mv

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
BUDGET = 0.02
WAVES = 6
OPERATORS = 12
EARLIER = 25_000  # rows of another list
GOOD_PART = 0.75  # of the rows of a list


@dataclass(frozen=True)
class World:
    """How the lists of a world are made, and what becomes of the bounces."""

    operator_rate: tuple[float, float] = (1.2, 7)  # of the Beta distribution of operators' rates
    strength: tuple[float, float] = (3, 30)  # how alike the domains of one operator are
    good_rate: tuple[float, float] = (0.001, 0.006)
    drift: float = 1  # all rates are multiplied by it from wave 4 on
    late: float = 0  # the part of the bounces that comes one wave later
    missing: float = 0  # the part of the bounces that is in no export
    earlier: float | None = None  # another list was mailed before: the rate of its doubtful rows
    is_same_domains: bool = False  # the other list had other people of the same domains


WORLDS = {
    "plain": World(),
    "operators worse": World(operator_rate=(2, 5)),
    "operators alike": World(operator_rate=(240, 1760)),
    "domains very different": World(strength=(0.5, 1)),
    "domains of an operator alike": World(operator_rate=(0.4, 2), strength=(100, 300)),
    "rates triple in wave 4": World(drift=3),
    "30 % of the bounces late": World(late=0.3),
    "20 % of the bounces missing": World(missing=0.2),
    "50 % of the bounces missing": World(missing=0.5),
    "after customers at 0.4 %": World(operator_rate=(2, 5), earlier=0.004),
    "after a list at 1 %": World(earlier=0.01),
    "after a list at 20 %": World(earlier=0.2),
    "after customers at the same domains": World(earlier=0.004, is_same_domains=True),
}


@dataclass(frozen=True)
class MadeList:
    """A list, and the truth about each of its rows."""

    out: pd.DataFrame  # as `verify` returns it
    rate: Floats
    is_good: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class CampaignResult:
    """What came of a campaign."""

    won: float  # good contacts among the doubtful rows that were mailed, as a part of those of the oracle
    rates: list[float]  # of hard bounces, of each wave that had rows
    rate: float  # of the whole campaign


def make_list(chance: np.random.Generator, world: World, rows: int, name: str = "l") -> MadeList:
    """Domain sizes by a power law; rates by a Beta distribution around that of an operator, which is one as well."""
    doubtful = rows - int(GOOD_PART * rows)
    domains = max(3, 3 * doubtful // 20)
    size = chance.zipf(1.7, domains).clip(1, 1500)
    size = np.maximum(1, (size * doubtful / size.sum()).astype(np.int64))
    operator = chance.integers(OPERATORS, size=domains)
    mean = chance.beta(*world.operator_rate, OPERATORS).clip(0.005, 0.8)[operator]
    strength = chance.uniform(*world.strength, OPERATORS)[operator]
    rate = chance.beta(mean * strength + 1e-3, (1 - mean) * strength + 1e-3)
    good_rate = chance.uniform(*world.good_rate)
    good = int(GOOD_PART * rows)
    domain = chance.permutation(np.repeat(np.arange(domains + 1), np.append(size, good)))
    is_good = domain == domains
    names = np.array([*(f"{name}{at}.example" for at in range(domains)), "good.example"], object)
    operators = np.array([*(f"operator{at}.example" for at in operator), "good.example"], object)
    addresses = [f"{name}{at}@{domain}" for at, domain in enumerate(names[domain])]
    out = pd.DataFrame(
        {
            "email": pd.array(addresses, "string"),
            "email_verdict": np.where(is_good, "valid", "risky"),
            "email_why": pd.array(np.where(is_good, None, "catch_all"), "string"),
            "email_suggestion": pd.array([None] * len(domain), "string"),
            "email_status": "done",
            "email_role": False,
            "email_spamtrap": False,
            "email_disposable": False,
            "email_free": False,
            "email_catch_all": ~is_good,
            "email_operator": operators[domain],
            "email_validation_type": "smtp",
        }
    )
    return MadeList(out, np.append(rate, good_rate)[domain], is_good)


def contacts_of_oracle(made: MadeList, budget: float) -> float:
    doubtful = np.sort(made.rate[~made.is_good])
    good = made.rate[made.is_good]
    mailed = len(good) + np.arange(1, len(doubtful) + 1)
    is_over = (good.sum() + np.cumsum(doubtful)) / mailed > budget
    best = doubtful[: np.argmax(np.append(is_over, True))]
    return float((1 - best).sum())


def read_hard(addresses: pd.Series[str]) -> pd.DataFrame:
    table = pd.DataFrame({"who": addresses, "what": "hard"})
    return mv.read_bounces(table, columns={"address": "who", "outcome": "what"})


def experience_of(chance: np.random.Generator, world: World, made: MadeList) -> mv.Experience:
    """What was learnt from another list, all of which was mailed: 25,000 people, or some at the domains of this one."""
    earlier = made
    if not world.is_same_domains:
        earlier = make_list(chance, world, EARLIER, "earlier")
    addresses = "other-" + earlier.out["email"]
    rate = np.where(earlier.is_good, 0.004, world.earlier)
    reports = read_hard(addresses[chance.random(len(rate)) < rate])
    every = np.ones(len(rate), np.bool_)
    out = earlier.out.assign(email=addresses)
    return mv.learn(out, "email", reports, mailed=every, name="earlier")


def run_campaign(
    seed: int, world: World = WORLDS["plain"], rows: int = 40_000, budget: float = BUDGET
) -> CampaignResult:
    """Mail a list in waves, and learn after each."""
    chance = np.random.default_rng(seed)
    made = make_list(chance, world, rows)
    before = mv.Experience()
    if world.earlier is not None:
        before = experience_of(chance, world, made)
    frame = made.out
    experience = before
    bounced = np.zeros(len(frame), np.bool_)
    known_from = np.full(len(frame), WAVES + 1)  # the wave after which a bounce is in the export
    rates = []
    for wave in range(1, WAVES + 1):
        with warnings.catch_warnings(action="ignore"):
            plan = mv.mailing(
                frame, "email", max_bounce_rate=budget, waves=WAVES, experience=experience
            )
        frame = plan.frame
        now = (frame["email_wave"] == plan.wave).fillna(False).to_numpy(np.bool_)
        if not now.any():
            break
        factor = 1.0
        if wave >= 4:
            factor = world.drift
        bounced[now] = chance.random(now.sum()) < np.minimum(made.rate[now] * factor, 1)
        is_late = chance.random(now.sum()) < world.late
        is_missing = chance.random(now.sum()) < world.missing
        known_from[now] = np.where(is_missing, WAVES + 1, np.where(is_late, wave + 1, wave))
        rates.append(float(bounced[now].mean()))
        if wave == WAVES:
            break
        reports = read_hard(frame["email"][bounced & (known_from <= wave)])
        with warnings.catch_warnings(action="ignore"):
            try:
                experience = before + mv.learn(frame, "email", reports, name="spring")
            except mv.InputError:  # no bounce at all
                experience = before + mv.learn(
                    frame, "email", reports, name="spring", complete=True
                )
    is_mailed = frame["email_wave"].notna().to_numpy()
    won = int((is_mailed & ~bounced & ~made.is_good).sum())
    rate = 0.0
    if is_mailed.any():
        rate = float(bounced[is_mailed].mean())
    oracle = contacts_of_oracle(made, budget)
    return CampaignResult(won / max(oracle, 1), rates, rate)
