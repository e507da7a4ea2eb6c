"""Which rows are chosen.

Few at first, within the budget; and whole campaigns in a made-up world.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from mailverdict.mailings.rates import fit_rates
from mailverdict.mailings.release import add_up, choose_pilot, choose_rows


def make(domains=40, rows=100, good=10_000, tried=0, hard=0):
    """Good rows, and doubtful ones at some domains of one operator.

    Of each domain so many were tried and bounced.
    """
    words = {
        "verdict": ["valid"] + ["risky"] * domains,
        "why": ["none"] + ["catch_all"] * domains,
        "operator": "o",
    }
    counts = {"domains": 1, "tried": [0] + [tried] * domains, "hard": [0] + [hard] * domains}
    table = pd.DataFrame({**words, "domain": [f"d{n}" for n in range(domains + 1)], **counts})
    cell = np.append(np.repeat(np.arange(1, domains + 1), rows), np.zeros(good, np.int64))
    return fit_rates(table), cell, cell == 0


def test_a_wave_opens_with_a_few_rows_of_many_domains():
    rates, cell, is_good = make()
    now = choose_rows(rates, cell, is_good, 0.02, 1, 6)
    doubtful = np.bincount(cell[now])[1:]
    assert 0 < doubtful.max() <= 4
    assert (doubtful > 0).all()
    assert 1000 < is_good[now].sum() < 2000


def test_what_does_not_bounce_is_opened_further_and_what_does_is_not():
    fine, bad = (len(choose_rows(*make(tried=20, hard=hard), 0.02, 2, 6)) for hard in (0, 6))
    first = len(choose_rows(*make(), 0.02, 2, 6))
    assert bad <= first < fine


def test_the_expected_bounces_and_their_margin_are_within_the_budget():
    rates, cell, is_good = make(tried=5)
    for budget, wave in itertools.product((0.02, 0.03, 0.05), (1, 3, 6)):
        now = choose_rows(rates, cell, is_good, budget, wave, 6)
        expected, variance = add_up(rates, cell[now])
        assert len(now)
        assert expected[-1] + 1.9 * np.sqrt(variance[-1]) <= budget * len(now)


def test_the_variance_is_that_of_simulated_rates():
    rates, cell, _ = make(domains=5, rows=10, good=0, tried=6, hard=1)
    _, variance = add_up(rates, cell)
    chance = np.random.default_rng(1)
    kind = chance.normal(0, np.sqrt(rates.kinds.own), (200_000, len(rates.kinds.own)))
    total = np.zeros(200_000)
    for d in range(1, 6):
        own = chance.normal(0, np.sqrt(rates.cells.own[d]), 200_000)
        operator = rates.cells.parent[d]
        share = (
            rates.cells.share[d]
            * rates.operators.share[operator]
            * rates.reasons.share[rates.operators.parent[operator]]
        )
        rate = rates.cells.rate[d] + own + share * kind[:, 1]
        total += 10 * rate + chance.normal(
            0, np.sqrt(10 * rates.cells.rate[d] * (1 - rates.cells.rate[d])), 200_000
        )
    assert np.var(total) / variance[-1] == np.clip(np.var(total) / variance[-1], 0.97, 1.03)


def test_good_rows_of_a_small_list_are_mailed_although_one_bounce_is_above_the_budget():
    rates, cell, is_good = make(domains=1, rows=5, good=60)
    now = choose_rows(rates, cell, is_good, 0.02, 1, 6)
    assert len(now)
    assert is_good[now].all()


def test_without_good_rows_nothing_is_mailed():
    rates, cell, is_good = make(good=0)
    assert len(choose_rows(rates, cell, is_good, 0.02, 1, 6)) == 0


def test_every_good_row_is_mailed_in_one_wave():
    rates, cell, is_good = make(domains=1, rows=0, good=1003)
    left, seen = np.arange(1003), []
    for wave in range(1, 7):
        now = choose_rows(rates, cell[left], is_good[left], 0.02, wave, 6)
        seen += left[now].tolist()
        left = np.delete(left, now)
    assert sorted(seen) == list(range(1003))


def test_a_pilot_takes_rows_of_all_domains_in_proportion():
    rates, cell, is_good = make(domains=40, rows=100)
    now = choose_pilot(rates, cell, is_good, 200)
    assert np.bincount(cell[now])[1:].tolist() == [5] * 40


def test_a_pilot_takes_what_there_is_and_good_rows_only_without_others():
    rates, cell, is_good = make(domains=2, rows=10, good=50)
    assert choose_pilot(rates, cell, is_good, 200).tolist() == list(range(20))
    rates, cell, is_good = make(domains=1, rows=0, good=50)
    assert len(choose_pilot(rates, cell, is_good, 7)) == 7
