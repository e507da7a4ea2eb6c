"""How often mails to a group of rows bounce: a hierarchical beta-binomial model.

Its strengths are estimated from the data (empirical Bayes), so that rates of small groups shrink
towards those of larger ones.

A cell is a verdict with its reason, an operator and a domain:

    risky, catch_all, microsoft365, firm.example     a cell         40 tried, 9 hard
    risky, catch_all, microsoft365                   its operator
    risky, catch_all                                 its reason
    doubtful rows                                    its kind

The rate of a cell is a Beta variable around that of its operator, this around that of its verdict
and reason, and this around that of all good or all doubtful rows. How much the rates of one level
differ is estimated from the counts by their likelihood (`estimate_strengths`). The counts are added
up from level to level (`Nodes`), and the rates follow from the kinds down (`Level`). The formulas
and their sources are in docs/explanation/mailing.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..model.arrow import Bools
from .beta import Floats, digamma, log_beta

Codes = npt.NDArray[np.int64]
NO_REASON = "none"
CELL = ("verdict", "why", "operator", "domain")


@dataclass(frozen=True)
class Prior:
    """What is assumed before anything is known, on the cautious side."""

    rate: float  # of hard bounces
    worth: float  # mails: so many of the user's own weigh as much
    strength: float  # how alike groups are: the rate above weighs so many mails in each of them


# Good: an address that a mail server has accepted; senders see 0.1 to 0.6 %, since some people
# leave after the check. Doubtful: the others; of catch-all and unanswered addresses 5 to 25 %
# bounce, and operators differ much.
PRIORS = {"good": Prior(0.006, 500, 150), "doubtful": Prior(0.12, 6, 8)}
STRENGTHS = 2.0 ** np.arange(10)  # that are compared: 1 to 512
DOUBT = 1.0  # of a strength that is assumed: a factor of two is one standard deviation
FIXED_POINT_STEPS = 10
SAME = 1e8  # the strength of a node that is the only one of its parent: both have one rate


@dataclass(frozen=True)
class Nodes:
    """The nodes of one level, and what was counted of each."""

    # Mails whose outcome is known; a parent has those that its children are worth together.
    tried: Floats
    hard: Floats
    count: Floats  # nodes that each stands for: more than 1 only in cells of small domains
    parent: Codes  # in the level above; empty for the last one


@dataclass(frozen=True)
class Level:
    """The nodes of one level: their rates, and how sure these are."""

    rate: Floats
    own: Floats  # variance of the rate if that of the parent were known
    variance: Floats  # with that of the parents
    share: Floats  # how much of an error of the parent's rate is in this one
    parent: Codes  # in the level above; empty for the last one


@dataclass(frozen=True)
class Rates:
    """The rates of all cells, and of the levels above them."""

    cells: Level
    operators: Level
    reasons: Level
    kinds: Level
    # How many domains each cell is about: more than one only in cells of small domains.
    domains: Floats

    @property
    def levels(self) -> tuple[Level, ...]:
        """From the cells up."""
        return self.cells, self.operators, self.reasons, self.kinds


def fit_rates(cells: pd.DataFrame) -> Rates:
    """Estimate the rate of each row of a table.

    It has the columns of `CELL` as text, `domains`, and the counts `tried` (mails whose outcome is
    known) and `hard`. Where it has `near_tried` and `near_hard`, these count for the cell alone,
    and not for the levels above it.
    """
    kind_of_cell = np.where(is_good_cell(cells), 0, 1)  # as in `PRIORS`
    reason, first_of_reason = number(cells, ["verdict", "why"])
    operator, first_of_operator = number(cells, ["verdict", "why", "operator"])
    kind_of_operator = kind_of_cell[first_of_operator]
    kind_of_reason = kind_of_cell[first_of_reason]
    # For each level above the cells: the kind of its nodes, and their parents.
    above = [
        (kind_of_operator, reason[first_of_operator]),
        (kind_of_reason, kind_of_reason),
        (np.arange(len(PRIORS)), np.empty(0, np.int64)),
    ]

    # Up: what the nodes of each level say about their parents.
    domains = cells["domains"].to_numpy(np.float64)
    tried = cells["tried"].to_numpy(np.float64)
    hard = cells["hard"].to_numpy(np.float64)
    nodes = Nodes(tried, hard, domains, operator)
    below = []
    strengths = []
    for kind, parent in above:
        size = len(kind)
        strength = estimate_strengths(nodes, kind)
        children = np.bincount(nodes.parent, nodes.count, size)
        strength[children <= 1] = SAME
        strength_above = strength[nodes.parent]
        below.append(nodes)
        strengths.append(strength_above)
        # Mails of one node are alike: they say less about the parent than those of many nodes.
        evidence = evidence_of(nodes, strength_above)
        rate = mean_below(nodes, evidence, strength)
        worth = np.bincount(nodes.parent, evidence, size).astype(np.float64)
        nodes = Nodes(worth, rate * worth, np.ones(size), parent)

    # Down: the rate of each node, between that of its parent and what it showed itself.
    is_pooled = domains > 1  # cells of small domains only say something together
    tried = np.where(is_pooled, 0, tried)
    hard = np.where(is_pooled, 0, hard)
    if "near_tried" in cells:
        tried = tried + cells["near_tried"].to_numpy(np.float64)
        hard = hard + cells["near_hard"].to_numpy(np.float64)
    below[0] = replace(below[0], tried=tried, hard=hard)
    levels = [posterior_of_kinds(nodes)]
    for nodes, strength_above in zip(reversed(below), reversed(strengths), strict=True):
        levels.append(posterior(nodes, strength_above, levels[-1]))
    kinds, reasons, operators, lowest = levels
    return Rates(lowest, operators, reasons, kinds, domains)


def is_good_cell(cells: pd.DataFrame) -> Bools:
    """Cells of valid rows about which a mail server was asked."""
    is_valid = cells["verdict"] == "valid"
    is_asked = cells["why"] == NO_REASON
    return (is_valid & is_asked).to_numpy(np.bool_)


def scale_rates(rates: Rates, factors: Floats) -> Rates:
    """All rates times a factor of their kind."""
    levels = []
    factor = factors
    for level in reversed(rates.levels):
        if len(level.parent):
            factor = factor[level.parent]
        scaled = replace(
            level,
            rate=np.minimum(level.rate * factor, 1 - 1e-9),
            own=level.own * factor**2,
            variance=level.variance * factor**2,
        )
        levels.append(scaled)
    kinds, reasons, operators, cells = levels
    return Rates(cells, operators, reasons, kinds, rates.domains)


def number(cells: pd.DataFrame, columns: list[str]) -> tuple[Codes, Codes]:
    """The number of each row's group, and the first row of each group."""
    groups = cells.groupby(columns, sort=False).ngroup().to_numpy(np.int64)
    _, first = np.unique(groups, return_index=True)
    return np.asarray(groups, np.int64), first


def evidence_of(nodes: Nodes, strength: Floats) -> Floats:
    """Independent mails that a node is worth for its parent (Kish 1965): n (k + 1) / (n + k).

    A node of several small domains is worth what they are worth together.
    """
    mails = nodes.tried / nodes.count
    worth: Floats = nodes.count * mails * (strength + 1) / (mails + strength)
    return worth


def mean_below(nodes: Nodes, evidence: Floats, strength: Floats) -> Floats:
    """The rate of each parent that is the most likely one for the counts of its nodes.

    A mean of their rates would be too low where a node that bounces is tried no further. So it is
    only the beginning; the fixed point is that of the beta-binomial likelihood (Minka 2000).
    """
    size = len(strength)
    parent = nodes.parent
    is_pooled = nodes.count > 1
    hard = nodes.hard
    reached = nodes.tried - hard
    bounces = evidence * hard / np.maximum(nodes.tried, 1e-9)
    mails: Floats = np.maximum(np.bincount(parent, evidence, size), 1e-9)
    rate: Floats = np.bincount(parent, bounces, size) / mails
    for _ in range(FIXED_POINT_STEPS):
        rate = rate.clip(1e-6, 1 - 1e-6)
        a = (rate * strength)[parent]
        b = ((1 - rate) * strength)[parent]
        weight_of_hard = a * (digamma(a + hard) - digamma(a))
        weight_of_reached = b * (digamma(b + nodes.tried - hard) - digamma(b))
        weight_of_hard = np.where(is_pooled, hard, weight_of_hard)
        weight_of_reached = np.where(is_pooled, reached, weight_of_reached)
        both = np.bincount(parent, weight_of_hard + weight_of_reached, size)
        rate = np.bincount(parent, weight_of_hard, size) / np.maximum(both, 1e-9)
    return rate


def estimate_strengths(nodes: Nodes, kind: Codes) -> Floats:
    """How alike the nodes of each parent are: the strength of the Beta distribution of their rates.

    Empirical Bayes: of each strength in `STRENGTHS` the likelihood is that of beta-binomial counts
    (Skellam 1948). Those of all parents of a kind together are weighed with what is assumed, and
    those of one parent with that result. Moments (Kleinman 1973) would be simpler, but they are
    wrong where a domain that bounces is mailed no further. Cells of small domains do not say.
    """
    size = len(kind)
    counted = np.flatnonzero((nodes.tried > 0) & (nodes.count == 1))
    tried = nodes.tried[counted]
    hard = nodes.hard[counted]
    parent = nodes.parent[counted]
    usual = np.array([prior.rate for prior in PRIORS.values()])[kind]
    likelihood = np.empty((len(STRENGTHS), size))
    for line, strength in enumerate(STRENGTHS):
        evidence = tried * (strength + 1) / (tried + strength)
        bounces = np.bincount(parent, evidence * hard / tried, size)
        mails = np.bincount(parent, evidence, size)
        mean = (bounces + usual) / (mails + 1)
        a = mean[parent] * strength
        b = (1 - mean[parent]) * strength
        of_node = log_beta(a + hard, b + tried - hard) - log_beta(a, b)
        likelihood[line] = np.bincount(parent, of_node, size)

    assumed = np.array([prior.strength for prior in PRIORS.values()])
    together = np.empty((len(STRENGTHS), len(PRIORS)))
    for code in range(len(PRIORS)):
        together[:, code] = likelihood[:, kind == code].sum(axis=1)
    of_kind = most_likely(together, assumed)
    return most_likely(likelihood, of_kind[kind])


def most_likely(likelihood: Floats, assumed: Floats) -> Floats:
    """The mean of the strengths, on a scale of logarithms with a normal prior around `assumed`."""
    scale = np.log2(STRENGTHS)[:, None]
    deviation = (scale - np.log2(assumed)) / DOUBT
    weight = likelihood - deviation**2 / 2
    weight = np.exp(weight - weight.max(axis=0))
    mean = (weight * scale).sum(axis=0) / weight.sum(axis=0)
    strength: Floats = 2**mean
    return strength


def posterior_of_kinds(nodes: Nodes) -> Level:
    """Good and doubtful rows as a whole: the prior and what was seen."""
    prior_rate = np.array([prior.rate for prior in PRIORS.values()])
    worth = np.array([prior.worth for prior in PRIORS.values()])
    a = prior_rate * worth + nodes.hard
    b = (1 - prior_rate) * worth + nodes.tried - nodes.hard
    rate = a / (a + b)
    variance = a * b / ((a + b) ** 2 * (a + b + 1))
    return Level(rate, variance, variance, np.ones_like(a), nodes.parent)


def posterior(nodes: Nodes, strength: Floats, above: Level) -> Level:
    """A level below another one, of the rate m: Beta(k m + hard, k (1 - m) + tried - hard)."""
    mean = above.rate[nodes.parent]
    size = nodes.tried + strength
    share = strength / size
    rate = (strength * mean + nodes.hard) / size
    own = rate * (1 - rate) / (size + 1)
    variance = own + share**2 * above.variance[nodes.parent]
    return Level(rate, own, variance, share, nodes.parent)
