"""The draw and the intervals: on arrays, against lists whose shares are known."""

from __future__ import annotations

import numpy as np
import pytest

from mailverdict.mailings.sampling import FEWEST, Sample, allocate, draw, pool_strata
from tests.doubles.simulated_lists import VERDICTS, covered, simulated_list
from tests.doubles.tables import each_row

LISTS = 100


def ranks(size, seed=0):
    return np.random.default_rng(seed).integers(0, 2**63, size).astype(np.uint64)


def nothing(size):
    return np.zeros(size, np.bool_)


class TestDraw:
    def test_strata_get_their_part_and_at_least_one(self):
        assert allocate(np.array([700, 200, 99, 1]), 100).tolist() == [70, 20, 9, 1]
        assert allocate(np.array([3, 2]), 100).tolist() == [3, 2]
        assert allocate(np.array([], np.int64), 100).tolist() == []

    @each_row("sample", [1, 10, 100, 399, 400])
    def test_a_sample_has_the_size_that_was_asked_for(self, sample):
        strata = np.repeat([0, 1, 2], [250, 110, 40])
        found = draw(strata, ranks(400), sample, certain=nothing(400))
        assert len(found) == max(sample, 3)
        assert len(set(found.tolist())) == len(found)

    def test_small_strata_are_pooled_with_those_of_their_kind(self):
        strata = np.repeat([0, 1, 2, 3, 4], [800, 50, 50, 50, 50])
        pooled = pool_strata(strata, np.array([0, 0, 0, 1, 1]), 100)
        groups = {tuple(np.unique(strata[pooled == code]).tolist()) for code in np.unique(pooled)}
        assert groups == {(0,), (1, 2), (3, 4)}
        assert np.unique(pooled).tolist() == [0, 1, 2]
        assert FEWEST == 10

    def test_the_order_of_the_list_does_not_matter(self):
        strata, order = np.repeat([0, 1], [300, 100]), np.random.default_rng(1).permutation(400)
        found = draw(strata, ranks(400), 40, certain=nothing(400))
        again = draw(strata[order], ranks(400)[order], 40, certain=nothing(400))
        assert order[again].tolist() == found.tolist()

    def test_the_first_of_a_sample_are_a_sample_of_the_same_strata(self):
        strata = np.repeat([0, 1], [3000, 1000])
        found = draw(strata, ranks(4000), 400, certain=nothing(4000))
        assert 0.6 < np.mean(strata[found[:200]] == 0) < 0.9

    def test_what_is_certain_is_drawn(self):
        certain = nothing(400)
        certain[[7, 300]] = True
        found = draw(np.zeros(400, np.int64), ranks(400), 20, certain=certain)
        assert {7, 300} <= set(found.tolist())
        assert len(found) == 20


class TestShare:
    def test_a_whole_list_is_exact(self):
        hits = np.arange(50) < 10
        found = Sample(np.repeat([0, 1], 25), np.ones(50), np.arange(50)).share(hits)
        assert found == pytest.approx((0.2, 0.2, 0.2))

    def test_one_of_ten_thousand_has_an_interval_as_wide_as_wilsons(self):
        sample = Sample(np.zeros(1_000_000, np.int64), np.ones(1_000_000), np.arange(400))
        share, low, high = sample.share(np.arange(400) < 40)
        assert share == pytest.approx(0.1)
        assert (low, high) == pytest.approx((0.0743, 0.1332), abs=0.001)

    def test_what_was_not_seen_may_be_there(self):
        share, low, high = Sample(
            np.zeros(10_000, np.int64), np.ones(10_000), np.arange(400)
        ).share(nothing(400))
        assert (share, low) == (0.0, 0.0)
        assert 0.003 < high < 0.02

    def test_bounds_hold_what_was_seen(self):
        sample = Sample(np.zeros(10, np.int64), np.ones(10), np.arange(8))
        share, low, high = sample.share(np.arange(8) < 4)
        assert low >= 0.4
        assert high <= 0.6
        assert low <= share <= high

    def test_strata_that_tell_all_make_it_narrow(self):
        strata = np.repeat([0, 1], [5000, 5000])
        drawn = np.concatenate([np.arange(200), 5000 + np.arange(200)])
        hits = strata[drawn] == 0
        _, low, high = Sample(strata, np.ones(10_000), drawn).share(hits)
        _, one_low, one_high = Sample(np.zeros(10_000, np.int64), np.ones(10_000), drawn).share(
            hits
        )
        assert high - low < 0.5 * (one_high - one_low)

    def test_rows_are_the_weight(self):
        weights = np.where(np.arange(100) < 10, 11.0, 1.0)
        found = Sample(np.zeros(100, np.int64), weights, np.arange(100)).share(np.arange(100) < 10)
        assert found == pytest.approx((0.55, 0.55, 0.55))

    def test_a_stratum_without_a_turn_joins_another(self):
        strata = np.repeat([0, 1], [900, 100])
        share, low, high = Sample(strata, np.ones(1000), np.arange(100)).share(np.arange(100) < 50)
        assert share == pytest.approx(0.5)
        assert low < 0.45 < 0.55 < high

    def test_nothing_drawn_says_nothing(self):
        share, low, high = Sample(
            np.zeros(10, np.int64), np.ones(10), np.array([], np.int64)
        ).share(nothing(0))
        assert np.isnan(share)
        assert (low, high) == (0.0, 1.0)


@pytest.mark.slow
def test_the_interval_holds_the_true_share_in_95_of_100_lists():
    rng = np.random.default_rng(20261127)
    held = np.array([covered(rng) for _ in range(LISTS)])
    assert 0.93 <= held.mean() <= 0.99
    assert held.shape == (LISTS, VERDICTS)
    assert (
        held.mean(axis=0) >= 0.9
    ).all()  # of 100 lists, of which 95 are expected, give or take twice 2.2


def test_simulated_lists_are_of_the_promised_kind():
    rng = np.random.default_rng(1)
    found = [simulated_list(rng, 5000) for _ in range(20)]
    shares = np.array([np.bincount(each.verdicts, minlength=VERDICTS) / 5000 for each in found])
    assert np.median(shares.min(axis=1)) < 0.05
    assert (shares > 0).mean() > 0.9
