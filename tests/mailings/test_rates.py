"""The hierarchical beta-binomial model.

Strengths that are in the data, and rates between levels.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mailverdict.mailings.rates import PRIORS, Nodes, estimate_strengths, fit_rates, scale_rates
from tests.doubles.tables import each_row


def cells(*lines, verdict="risky", why="catch_all"):
    """A table of cells.

    Operator, domain, tried, hard; an empty domain stands for as many small ones as mails.
    """
    table = pd.DataFrame(lines, columns=["operator", "domain", "tried", "hard"])
    domains = np.where(table["domain"] == "", table["tried"].clip(lower=1), 1)
    return table.assign(verdict=verdict, why=why, domains=domains)


def rates_of(table):
    return fit_rates(table).cells.rate


def test_without_experience_the_rates_are_those_that_are_assumed():
    table = pd.concat(
        [cells(("o", "d", 0, 0)), cells(("o", "d", 0, 0), verdict="valid", why="none")]
    )
    assert rates_of(table).tolist() == pytest.approx([PRIORS["doubtful"].rate, PRIORS["good"].rate])


def test_a_domain_is_between_its_operator_and_what_it_showed():
    others = [("bad", f"d{n}", 10, 4) for n in range(20)] + [
        ("fine", f"f{n}", 10, 0) for n in range(20)
    ]
    rate = rates_of(
        cells(*others, ("bad", "clean", 10, 0), ("bad", "new", 0, 0), ("fine", "new", 0, 0))
    )
    clean, new_at_bad, new_at_fine = rate[-3:]
    assert 0 < new_at_fine < 0.05 < clean < new_at_bad
    assert new_at_bad == pytest.approx(0.4, abs=0.06)


def test_an_operator_that_was_never_mailed_is_less_sure_than_one_that_was():
    table = cells(
        *(("o", f"d{n}", 8, 1) for n in range(30)), ("o", "new", 0, 0), ("other", "new", 0, 0)
    )
    variance = fit_rates(table).cells.variance
    assert variance[-2] < variance[-1]


def test_small_domains_say_as_much_about_their_operator_as_they_are():
    many = fit_rates(cells(("o", "", 60, 30), ("p", "x", 0, 0))).operators.rate[0]
    one = fit_rates(cells(("o", "x", 60, 30), ("p", "x", 0, 0))).operators.rate[0]
    assert 0.4 < many < 0.5
    assert one < many


@each_row("strength", [2, 8, 30])
def test_the_strength_is_found_although_domains_that_bounce_are_mailed_no_further(strength):
    chance = np.random.default_rng(strength)
    rate = chance.beta(0.15 * strength, 0.85 * strength, 3000)
    first = chance.random(3000) < rate
    more = np.where(first, 0, 12)
    tried, hard = 1.0 + more, first + chance.binomial(more, rate).astype(float)
    zeros = np.zeros(3000, np.int64)
    nodes = Nodes(tried, hard, np.ones(3000), zeros)
    found = estimate_strengths(nodes, np.array([list(PRIORS).index("doubtful")]))
    assert strength / 1.6 < found[0] < strength * 1.6


def test_scaled_rates_are_higher_on_all_levels_of_their_kind():
    table = pd.concat(
        [cells(("o", "d", 20, 12)), cells(("o", "d", 900, 3), verdict="valid", why="none")]
    )
    rates = fit_rates(table)
    scaled = scale_rates(rates, np.array([1.0, 1.5]))
    assert scaled.cells.rate[1] == rates.cells.rate[1]
    assert scaled.cells.rate[0] == pytest.approx(1.5 * rates.cells.rate[0])
    assert scaled.kinds.rate[1] == pytest.approx(1.5 * rates.kinds.rate[1])
    assert scaled.kinds.variance[1] == pytest.approx(2.25 * rates.kinds.variance[1])


def test_mails_near_a_domain_count_for_it_and_not_for_its_operator():
    table = cells(("o", "d", 2, 0), ("o", "e", 2, 0))
    near = table.assign(near_tried=[9, 0], near_hard=[9, 0])
    plain, moved = fit_rates(table), fit_rates(near)
    assert moved.operators.rate.tolist() == plain.operators.rate.tolist()
    assert moved.cells.rate[0] > 0.4
    assert moved.cells.rate[1] == plain.cells.rate[1]
