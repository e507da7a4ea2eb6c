"""The statistics of `breakdown`: tabulated values, exact moments, and what they do for small groups."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mailverdict.reports.differences import (
    adjust,
    association,
    chance_of,
    chi_square,
    elsewhere,
    gamma_tail,
    prior_people,
    shrink,
    surprise,
    wilson_intervals,
)
from tests.doubles.tables import each_row

# Upper points of the chi-square distribution: NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.4.
CHI_SQUARE = (  # degrees of freedom, chance, point
    (1, 0.10, 2.706),
    (1, 0.05, 3.841),
    (1, 0.01, 6.635),
    (1, 0.001, 10.828),
    (2, 0.05, 5.991),
    (5, 0.10, 9.236),
    (5, 0.001, 20.515),
    (10, 0.05, 18.307),
    (10, 0.01, 23.209),
    (30, 0.025, 46.979),
    (50, 0.05, 67.505),
    (100, 0.10, 118.498),
    (100, 0.001, 149.449),
)


@each_row(("freedom", "chance", "point"), CHI_SQUARE)
def test_the_tail_of_the_gamma_function_is_that_of_tables(freedom, chance, point):
    assert gamma_tail(freedom / 2, point / 2) == pytest.approx(chance, rel=2e-3)


def test_the_tail_is_exact_where_it_has_a_simple_form():
    for x in (0.01, 0.5, 1.0, 3.0, 20.0, 200.0):
        assert gamma_tail(1.0, x) == pytest.approx(math.exp(-x), rel=1e-12)
        assert gamma_tail(0.5, x) == pytest.approx(math.erfc(math.sqrt(x)), rel=1e-10)
        assert gamma_tail(3.0, x) == pytest.approx(math.exp(-x) * (1 + x + x * x / 2), rel=1e-12)
    assert gamma_tail(2.0, 0.0) == 1.0
    assert gamma_tail(150.0, 5_000.0) == pytest.approx(0.0)


def test_chances_are_uniform_where_groups_do_not_differ():
    rng = np.random.default_rng(7)
    chances = []
    for size in (2, 6, 40):
        groups = rng.choice(size, 900, p=rng.dirichlet(np.full(size, 1.5)))
        people = np.bincount(groups, minlength=size)
        for _ in range(300):
            bad = np.bincount(groups[rng.random(900) < 0.06], minlength=size)
            chances.append(chance_of(people, bad))
    assert 0.03 <= np.mean(np.array(chances) <= 0.05) <= 0.07
    assert np.mean(np.array(chances) <= 0.5) == pytest.approx(0.5, abs=0.06)


def test_a_bad_group_is_not_chance_among_few_or_many_groups():
    assert chance_of(np.array([100, 900]), np.array([31, 54])) < 1e-12
    people = np.array([100, *[10] * 90])
    bad = np.array([31, *[1] * 54, *[0] * 36])
    assert chance_of(people, bad) < 1e-6


def test_too_few_bad_or_good_people_show_nothing():
    for bad in ([0, 0], [3, 0], [50, 50], [47, 50]):
        assert chance_of(np.array([50, 50]), np.array(bad)) == 1.0
    assert chance_of(np.array([100]), np.array([30])) == 1.0
    assert chance_of(np.array([0, 100]), np.array([0, 30])) == 1.0


def test_the_strength_is_one_where_a_column_decides_and_none_where_it_says_nothing():
    assert association(np.array([50, 50]), np.array([50, 0])) == pytest.approx(1.0, abs=0.01)
    assert association(np.array([50, 50]), np.array([5, 5])) == 0.0
    assert association(np.array([1] * 50), np.array([1] * 10 + [0] * 40)) == pytest.approx(
        0, abs=0.2
    )
    assert association(np.array([50]), np.array([5])) == 0.0
    assert chi_square(np.array([100, 100]), np.array([30, 10])) == pytest.approx(12.5)


def test_many_columns_raise_every_chance():
    assert adjust([]) == []
    assert adjust([0.02]) == [0.02]
    # The example of Benjamini and Hochberg (1995), section 3.2: at 5 % the first four of fifteen.
    given = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240]
    given += [0.4262, 0.5719, 0.6528, 0.7590, 1.0000]
    assert sum(chance <= 0.05 for chance in adjust(given)) == 4
    assert adjust(given[::-1]) == adjust(given)[::-1]


def test_intervals_are_those_of_wilson():
    low, high = wilson_intervals([0, 10, 1, 30], [0, 100, 3, 30])
    assert np.isnan([low[0], high[0]]).all()
    assert (low[1:].round(4).tolist(), high[1:].round(4).tolist()) == (
        [0.0552, 0.0615, 0.8865],
        [0.1744, 0.7923, 1.0],
    )


def test_plain_intervals_cover_as_they_say():
    rng = np.random.default_rng(11)
    share = rng.uniform(0.02, 0.5, 40_000)
    people = rng.integers(30, 600, 40_000)
    low, high = wilson_intervals(rng.binomial(people, share), people)
    assert 0.93 <= np.mean((low <= share) & (share <= high)) <= 0.97


def test_a_small_group_is_believed_less_than_a_large_one_of_the_same_share():
    people = np.array([400, 4, 800, 900])
    bad = np.array([120, 2, 50, 55])
    differences = shrink(people, bad)
    others = elsewhere(people, bad)
    seen = bad / people - others
    assert 0.9 * seen[0] < differences[0] <= seen[0]
    assert 0 < differences[1] < 0.6 * seen[1]
    assert surprise(people, bad)[0] > surprise(people, bad)[1] > 0


def test_groups_that_do_not_differ_more_than_by_chance_have_no_difference():
    people = np.array([100, 100, 100])
    bad = np.array([6, 5, 7])
    assert prior_people(people, bad) == math.inf
    assert shrink(people, bad).tolist() == [0, 0, 0]


def test_one_group_has_no_others():
    assert np.isnan(elsewhere(np.array([10]), np.array([3]))).all()
    assert np.isnan(shrink(np.array([10]), np.array([3]))).all()
