"""The functions of the Beta distribution, against closed forms and binomial sums."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from mailverdict.mailings.beta import beta_quantile, log_gamma
from tests.doubles.tables import each_row

# Closed forms: Beta(1, b) has the quantile 1 - (1 - p)^(1/b), Beta(a, 1) has p^(1/a), and
# Beta(1/2, 1/2) has sin(pi p / 2)^2.
QUANTILES = [
    *((p, 1, b, 1 - (1 - p) ** (1 / b)) for p in (0.025, 0.5, 0.975) for b in (0.3, 1, 7, 500)),
    *((p, a, 1, p ** (1 / a)) for p in (0.025, 0.5, 0.975) for a in (0.2, 3, 40)),
    *((p, 0.5, 0.5, np.sin(np.pi * p / 2) ** 2) for p in (0.025, 0.3, 0.975)),
]


@each_row(("chance", "a", "b", "known"), QUANTILES)
def test_quantiles_of_beta_distributions(chance, a, b, known):
    assert beta_quantile(chance, np.array([float(a)]), np.array([float(b)]))[0] == pytest.approx(
        known, abs=1e-6
    )


@each_row(("a", "b"), [(1, 1), (11, 91), (3, 2000), (400, 30)])
@each_row("chance", [0.025, 0.5, 0.975])
def test_quantiles_of_whole_parameters_are_those_of_the_binomial_distribution(chance, a, b):
    x = beta_quantile(chance, np.array([float(a)]), np.array([float(b)]))[0]
    n = a + b - 1
    assert 1 - sum(comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(a)) == pytest.approx(
        chance, abs=1e-6
    )


@each_row(("x", "known"), [(0.5, np.log(np.pi) / 2), (1, 0), (5, np.log(24)), (0.001, 6.907178885)])
def test_the_gamma_function_agrees_with_a_table(x, known):
    assert log_gamma(np.array([float(x)]))[0] == pytest.approx(known, abs=1e-8)
