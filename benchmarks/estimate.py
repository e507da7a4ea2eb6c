"""How often the 95 % interval of `estimate` holds the true share: made-up lists, and the real estimator on arrays.

The lists are those of ``tests/doubles/simulated_lists.py``. The values of a figure are one: the
percentage of lists for which the interval of a verdict holds its share of the rows. They do not
depend on the machine. Run it as ``python -m benchmarks estimate``.
"""

import numpy as np
from tests.doubles.simulated_lists import covered

from .figures import OURS, read_options, record


def main() -> None:
    given = read_options(__doc__, lists=(2_000, 50), seed=(1, 1))
    rng = np.random.default_rng(given.seed)
    held = np.array([covered(rng) for _ in range(given.lists)])
    for number, share in enumerate(held.mean(axis=0).tolist(), 1):
        record(
            f"made-up lists, interval holds the share, verdict {number}",
            OURS,
            [100 * share],
            "%",
            given.lists,
        )


if __name__ == "__main__":
    main()
