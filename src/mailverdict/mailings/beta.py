"""The Beta distribution and its functions, with numpy alone.

scipy has them too, but is a large dependency for this. All are functions of arrays. Their accuracy
is tested against closed forms and binomial sums. DLMF is the Digital Library of Mathematical
Functions of NIST.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
HALF_LOG_2_PI = 0.9189385332046727
SHIFT = 8  # Stirling's series are exact to 1e-12 from here on
HALVINGS = 30  # of an interval of 1: to 1e-9
MOST_TERMS = 200  # of the continued fraction
TINY = 1e-300  # in place of a denominator of 0


def beta_of(mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """The parameters of the Beta distribution with a mean and a variance."""
    size = mean * (1 - mean) / np.maximum(variance, 1e-15) - 1
    size = np.maximum(size, 1e-3)
    a = mean * size
    b = (1 - mean) * size
    return a, b


def beta_quantile(chance: float, a: Floats, b: Floats) -> Floats:
    """The quantile of Beta distributions, by halving; to 1e-9.

    >>> beta_quantile(0.5, np.array([1.0, 2.0]), np.array([1.0, 3.0])).round(6).tolist()
    [0.5, 0.385728]
    """
    # Many cells are alike.
    pairs, place = np.unique(np.stack([a, b]), axis=1, return_inverse=True)
    a, b = pairs
    beta = log_beta(a, b)
    low = np.zeros_like(a)
    high = np.ones_like(a)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_below = incomplete_beta(middle, a, b, beta) < chance
        low = np.where(is_below, middle, low)
        high = np.where(is_below, high, middle)
    quantile = (low + high) / 2
    return np.asarray(quantile[place.ravel()])


def incomplete_beta(x: Floats, a: Floats, b: Floats, beta: Floats) -> Floats:
    """The regularized incomplete beta function; `beta` is the logarithm of the beta function."""
    # The continued fraction of the complement converges faster there.
    is_high = x > (a + 1) / (a + b + 2)
    x = np.where(is_high, 1 - x, x)
    first = np.where(is_high, b, a)
    second = np.where(is_high, a, b)
    log_x = np.log(np.maximum(x, TINY))
    log_rest = np.log1p(-np.minimum(x, 1 - 1e-16))
    front = np.exp(first * log_x + second * log_rest - beta) / first
    part = front * beta_fraction(x, first, second)
    return np.asarray(np.where(is_high, 1 - part, part), np.float64)


def beta_fraction(x: Floats, a: Floats, b: Floats) -> Floats:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    c = np.ones_like(x)
    d = 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, MOST_TERMS):
        middle = a + 2 * m
        even = m * (b - m) * x / ((middle - 1) * middle)
        odd = -(a + m) * (a + b + m) * x / (middle * (middle + 1))
        for factor in (even, odd):
            d = 1 / nonzero(1 + factor * d)
            c = nonzero(1 + factor / c)
            value = value * c * d
        change = np.abs(c * d - 1)
        if np.all(change < 1e-11):
            break
    return value


def nonzero(x: Floats) -> Any:
    return np.where(np.abs(x) < TINY, TINY, x)


def log_beta(a: Floats, b: Floats) -> Floats:
    """The logarithm of the beta function."""
    return log_gamma(a) + log_gamma(b) - log_gamma(a + b)


def digamma(x: Floats) -> Floats:
    """The derivative of the logarithm of the gamma function: its series (DLMF 5.11.2)."""
    below = np.zeros_like(x)
    for step in range(SHIFT):
        below = below + 1 / (x + step)
    y = x + SHIFT
    series: Floats = (
        np.log(y) - 1 / (2 * y) - 1 / (12 * y**2) + 1 / (120 * y**4) - 1 / (252 * y**6) - below
    )
    return series


def log_gamma(x: Floats) -> Floats:
    """The logarithm of the gamma function: Stirling's series (DLMF 5.11.1)."""
    product = x.copy()
    for step in range(1, SHIFT):
        product = product * (x + step)
    y = x + SHIFT
    series: Floats = (
        (y - 0.5) * np.log(y)
        - y
        + HALF_LOG_2_PI
        + 1 / (12 * y)
        - 1 / (360 * y**3)
        + 1 / (1260 * y**5)
    )
    return series - np.log(product)
