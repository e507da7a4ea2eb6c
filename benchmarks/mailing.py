"""Campaigns in made-up worlds: good contacts won against an oracle, and waves above the bounce budget.

Rows are chosen and bounces are learnt by the real code. Lists have 60,000 good and 20,000 doubtful rows at 3,000
domains of 12 operators, of which 4 % would bounce if all were mailed. The oracle knows the rate of each domain. The
values of a figure are those of the lists, and do not depend on the machine. Run it as ``python -m benchmarks mailing``.
"""

from __future__ import annotations

import multiprocessing

from tests.doubles.simulated_mailings import BUDGET, run_campaign

from .figures import OURS, read_options, record


def main() -> None:
    given = read_options(__doc__, lists=(200, 4))
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        results = pool.map(run_campaign, range(given.lists), chunksize=1)
    waves = [rate for each in results for rate in each.rates]
    record("made-up mailings, good contacts", OURS, [each.won * 100 for each in results], "%")
    record(
        "made-up mailings, waves above the budget",
        OURS,
        [100 * sum(rate > BUDGET for rate in waves) / len(waves)],
        "%",
    )
    record("made-up mailings, hard bounces", OURS, [each.rate * 100 for each in results], "%")


if __name__ == "__main__":
    main()
