"""Campaigns in made-up worlds: good contacts won, and waves and campaigns above the budget.

Each campaign calls `mailing` and `learn` as a user does, in six waves, within a budget of 2 %.
Three of four rows of a list are good; the others are at domains of 12 operators, and their rates
are not those that the model assumes. The worlds are in ``tests/doubles/simulated_mailings.py``: a
plain one, and ones in which the promise is not expected to hold. The oracle knows the rate of each
domain. The values of shares are those of the campaigns, and do not depend on the machine. At the
end one call on a million rows, in seconds of processor time and in memory above the frame. Run it
as ``python -m benchmarks mailing``.
"""

from __future__ import annotations

import gc
import multiprocessing
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import psutil
from tests.doubles.simulated_mailings import (
    BUDGET,
    WORLDS,
    CampaignResult,
    make_list,
    read_hard,
    run_campaign,
)

import mailverdict as mv

from .figures import OURS, read_options, record

FIRST_SEED = 20_000  # of campaigns that nothing was tuned on
ROWS = 40_000
SIZES = (ROWS, 300, 3_000, 80_000)
MORE = 3  # times as many campaigns in the plain world, where the promise holds
MIB = 2**20


def main() -> None:
    given = read_options(__doc__, lists=(12, 2), rows=(1_000_000, 20_000))
    seeds = range(FIRST_SEED, FIRST_SEED + given.lists)
    many = range(FIRST_SEED, FIRST_SEED + MORE * given.lists)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for rows in SIZES:
            campaign = partial(run_campaign, rows=rows)
            record_campaigns("plain", rows, pool.map(campaign, many, chunksize=1))
        for name, world in WORLDS.items():
            if name != "plain":
                campaign = partial(run_campaign, world=world, rows=ROWS)
                record_campaigns(name, ROWS, pool.map(campaign, seeds, chunksize=1))
    measure_call(given.rows)


def record_campaigns(name: str, rows: int, results: list[CampaignResult]) -> None:
    """The figures of all campaigns in a world."""
    waves = np.array([rate for campaign in results for rate in campaign.rates])
    campaigns = np.array([campaign.rate for campaign in results])
    first = [campaign.rates[0] / BUDGET for campaign in results if campaign.rates]
    record("made-up mailings, good contacts", name, [100 * each.won for each in results], "%", rows)
    if len(waves):
        over = 100 * float(np.mean(waves > BUDGET))
        record("made-up mailings, waves above the budget", name, [over], "%", rows)
        record("made-up mailings, bounces of a wave by the budget", name, waves / BUDGET, "", rows)
        record("made-up mailings, bounces of the first wave by the budget", name, first, "", rows)
    over = 100 * float(np.mean(campaigns > BUDGET))
    record("made-up mailings, campaigns above the budget", name, [over], "%", rows)


def measure_call(rows: int) -> None:
    """Two waves of a large list."""
    warnings.simplefilter("ignore")
    made = make_list(np.random.default_rng(1), WORLDS["plain"], rows)
    chance = np.random.default_rng(2)
    frame = made.out
    experience = mv.Experience()
    plan = measure("mailing", rows, lambda: mv.mailing(frame, "email", experience=experience))
    now = plan.frame["email_wave"].notna().to_numpy()
    reports = read_hard(frame["email"][now & (chance.random(len(frame)) < made.rate)])
    experience = measure("learn", rows, lambda: mv.learn(plan.frame, "email", reports))
    frame = plan.frame
    measure("mailing, second wave", rows, lambda: mv.mailing(frame, "email", experience=experience))


def measure(name: str, rows: int, call: Callable[[], object]) -> object:
    """Processor time of a call, and the most memory above what there was before."""
    process = psutil.Process()
    gc.collect()
    before = process.memory_info().rss
    sizes = [before]
    is_done = threading.Event()

    def watch() -> None:
        while not is_done.wait(0.01):
            sizes.append(process.memory_info().rss)

    thread = threading.Thread(target=watch)
    thread.start()
    began = time.process_time()
    result = call()
    seconds = time.process_time() - began
    is_done.set()
    thread.join()
    record(f"a call of {name}, processor time", OURS, [seconds], "s", rows)
    record(
        f"a call of {name}, memory above the frame",
        OURS,
        [(max(sizes) - before) / MIB],
        "MiB",
        rows,
    )
    return result


if __name__ == "__main__":
    main()
