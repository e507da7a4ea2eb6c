"""The Beta distribution and its functions, with numpy alone.

scipy has them too, but is a large dependency for this.
Accuracy is tested against closed forms and binomial sums. DLMF is the Digital Library of
Mathematical Functions of NIST.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
HALF_LOG_2_PI = 0.9189385332046727


def beta_of(mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """The parameters of the Beta distribution with a mean and a variance."""
    size = np.maximum(mean * (1 - mean) / np.maximum(variance, 1e-15) - 1, 1e-3)
    return mean * size, (1 - mean) * size


def beta_quantile(chance: float, a: Floats, b: Floats) -> Floats:
    """The quantile of Beta distributions, by halving; to 1e-9.

    >>> beta_quantile(0.5, np.array([1.0, 2.0]), np.array([1.0, 3.0])).round(6).tolist()
    [0.5, 0.385728]
    """
    pairs, place = np.unique(np.stack([a, b]), axis=1, return_inverse=True)  # many cells are alike
    a, b = pairs
    low, high, beta = np.zeros_like(a), np.ones_like(a), log_beta(a, b)
    for _ in range(30):
        middle = (low + high) / 2
        is_below = incomplete_beta(middle, a, b, beta) < chance
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return np.asarray((low + high) / 2)[place.ravel()]


def incomplete_beta(x: Floats, a: Floats, b: Floats, beta: Floats) -> Floats:
    """The regularized incomplete beta function: a continued fraction (DLMF 8.17.22), by Lentz."""
    is_high = x > (a + 1) / (a + b + 2)  # where the fraction of the complement converges faster
    x, a, b = np.where(is_high, 1 - x, x), np.where(is_high, b, a), np.where(is_high, a, b)
    front = (
        np.exp(a * np.log(np.maximum(x, 1e-300)) + b * np.log1p(-np.minimum(x, 1 - 1e-16)) - beta)
        / a
    )
    c, d = np.ones_like(x), 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 200):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / nonzero(1 + factor * d)
            c = nonzero(1 + factor / c)
            value = value * c * d
        if np.all(np.abs(c * d - 1) < 1e-11):
            break
    found = front * value
    return np.where(is_high, 1 - found, found)


def log_beta(a: Floats, b: Floats) -> Floats:
    """The logarithm of the beta function."""
    return log_gamma(a) + log_gamma(b) - log_gamma(a + b)


def digamma(x: Floats) -> Floats:
    """The derivative of the logarithm of the gamma function: its series (DLMF 5.11.2) at x + 8."""
    below = sum(1 / (x + step) for step in range(8))
    y = x + 8
    series: Floats = (
        np.log(y) - 1 / (2 * y) - 1 / (12 * y**2) + 1 / (120 * y**4) - 1 / (252 * y**6) - below
    )
    return series


def log_gamma(x: Floats) -> Floats:
    """The logarithm of the gamma function: Stirling's series (DLMF 5.11.1) at x + 8."""
    product = x.copy()
    for step in range(1, 8):
        product = product * (x + step)
    y = x + 8
    series: Floats = (
        (y - 0.5) * np.log(y)
        - y
        + HALF_LOG_2_PI
        + 1 / (12 * y)
        - 1 / (360 * y**3)
        + 1 / (1260 * y**5)
    )
    return series - np.log(product)


def nonzero(x: Floats) -> Any:
    return np.where(np.abs(x) < 1e-300, 1e-300, x)
