"""The service on several hosts, on PostgreSQL and with mail servers of the sandbox that answer after a delay.

1. How long a bulk submission of 100 addresses takes to be accepted.
2. How many SMTP jobs a second one worker verifies, and how many two.

PostgreSQL must be installed. Run it as ``python -m benchmarks cluster``.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from tests.service.postgres import Cluster, binaries
from tests.service.shared.hosts import LINES, hosts, make_world, submit_all

from .figures import read_options, record

CLIENTS = 10
EXCHANGES, DOMAINS = 32, 96
DELAY = 0.15  # seconds from a command to its reply
TASKS = 8  # of one worker; with half of the owners at most, so that mail servers are the limit and not this machine
LIMITS = {"daily_limit": 10**6, "concurrency": 100_000, "rcpt_per_transaction": 10}


def measure_acceptance(cluster: Cluster, folder: Path, batches: int) -> None:
    """One submission after the other, and ten clients at once; nobody verifies meanwhile."""
    with hosts(
        cluster.empty_database(), make_world(EXCHANGES, DOMAINS, 0.0), folder, **LIMITS
    ) as running:
        api = running.start("serve")
        api.wait()
        _, alone = asyncio.run(submit_all([api], 1, 100, DOMAINS))
        _, together = asyncio.run(submit_all([api], CLIENTS, batches, DOMAINS))
    for name, seconds in (("alone", alone), (f"{CLIENTS} clients at once", together)):
        record(
            "a bulk of 100 accepted, PostgreSQL", name, [each * 1e3 for each in seconds], "ms", 100
        )


def jobs_per_second(cluster: Cluster, folder: Path, workers: int, batches: int) -> float:
    """Submit all jobs, start the workers, and wait for the last result."""
    with hosts(
        cluster.empty_database(), make_world(EXCHANGES, DOMAINS, DELAY), folder, **LIMITS
    ) as running:
        api = running.start("serve")
        api.wait()
        asyncio.run(submit_all([api], CLIENTS, batches, DOMAINS))
        started = [running.start("worker", "--tasks", str(TASKS)) for _ in range(workers)]
        for worker in started:
            worker.wait()
        while not running.count("status = 'done'"):
            time.sleep(0.02)
        began, before = time.perf_counter(), running.count("status = 'done'")
        while running.count("status = 'done'") < running.count("true"):
            time.sleep(0.1)
        return (running.count("true") - before) / (time.perf_counter() - began)


def measure_workers(cluster: Cluster, folder: Path, batches: int, turns: int) -> None:
    """In turns, so that other load on this machine slows both."""
    rates: dict[str, list[float]] = {"one worker": [], "two workers": []}
    for _ in range(turns):
        for workers, values in enumerate(rates.values(), 1):
            values.append(jobs_per_second(cluster, folder, workers, batches))
    for who, values in rates.items():
        record(
            "jobs by smtp, mail servers that answer after 150 ms",
            who,
            values,
            "jobs/s",
            CLIENTS * batches * LINES,
        )


def main() -> None:
    given = read_options(__doc__, batches=(10, 2), turns=(2, 1))
    programs = binaries()
    if programs is None:
        raise SystemExit("PostgreSQL is not installed; nothing was measured")
    with tempfile.TemporaryDirectory(prefix="mailverdict-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        cluster = Cluster(folder / "cluster", programs)
        cluster.start()
        try:
            measure_acceptance(cluster, folder, given.batches)
            measure_workers(cluster, folder, given.batches, given.turns)
        finally:
            cluster.stop()


if __name__ == "__main__":
    main()
