"""5,000 jobs of one client at 300 slow mail servers, and ten jobs of another client at fast ones meanwhile.

A slow mail server takes two seconds for each reply. Measured are the seconds from the submission of
the ten jobs until the last of them is done: the first jobs of a fresh service, those while the
5,000 are being submitted and those afterwards, then the first ones after all programs were stopped
(SIGTERM) and started again, and after they were killed. SQLite is used by one process, PostgreSQL
by an API and a worker. Jobs that a killed worker had claimed wait for the end of its lease, 20
seconds; the ten jobs are not among them. Run it as ``python -m benchmarks.hostile.fairness``.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
from tests.service.postgres import Cluster, binaries
from tests.service.shared.hosts import Host, hosts

from mailverdict.sandbox import World
from mailverdict.sandbox.dns_table import DomainRecords
from mailverdict.sandbox.smtp_script import Exchange

from ..figures import OURS, read_options, record

SLOW, FAST, DELAY = 300, 10, 2.0  # mail servers, and seconds for each reply of a slow one
MANY = "198.51.100.1"  # the client with the many jobs


def make_world() -> World:
    """Each mail server belongs to an organisation of its own, and has one domain."""
    servers: list[Exchange] = []
    zones: dict[str, DomainRecords] = {}
    kinds = (("slow", SLOW, DELAY), ("fast", FAST, 0.0))
    for kind, count, delay in kinds:
        for number in range(count):
            host = f"mx.{kind}owner{number}.example"
            servers.append(Exchange(host, kind, expects={}, mailboxes=None, delay=delay))
            zones[f"{kind}{number}.example"] = DomainRecords({"MX": (f"10 {host}",)})
    return World(zones, exchanges=servers)


async def submit(http: httpx.AsyncClient, client: str, emails: list[str]) -> list[str]:
    """The identifiers of new jobs."""
    reply = await http.post(
        "/api/bulk-check-email",
        json={"emails": emails, "validation_type": "smtp"},
        headers={"x-forwarded-for": client},
    )
    assert reply.status_code == 202, reply.text
    return [entry["job_id"] for entry in reply.json()["data"]["results"]]


async def submit_many(http: httpx.AsyncClient, jobs: int) -> None:
    for start in range(0, jobs, 100):
        emails = [f"n{number}@slow{number % SLOW}.example" for number in range(start, start + 100)]
        await submit(http, MANY, emails)


async def seconds_of_ten(http: httpx.AsyncClient, client: str) -> float:
    """How long ten jobs of a client take."""
    began = time.perf_counter()
    emails = [f"{client}@fast{number}.example" for number in range(FAST)]
    for job_id in await submit(http, client, emails):
        while True:
            reply = await http.get(f"/api/verification-result/{job_id}")
            result = reply.json()["data"]["result"]
            if result["status"] == "done":
                break
            await asyncio.sleep(0.02)
        assert result["verification"]["result"] == "valid", result
    return time.perf_counter() - began


async def measure(api: Host, name: str, jobs: int, rounds: int) -> None:
    async with httpx.AsyncClient(base_url=api.url, timeout=60) as http:
        fresh = await seconds_of_ten(http, "203.0.113.1")
        record(f"{name}: ten jobs, the first of a fresh service", OURS, [fresh], "s")
        submitting = asyncio.create_task(submit_many(http, jobs))
        first = await seconds_of_ten(http, "203.0.113.2")
        record(f"{name}: ten jobs while the others are submitted", OURS, [first], "s", jobs)
        await submitting
        taken = []
        for number in range(rounds):
            taken.append(await seconds_of_ten(http, f"203.0.113.{number + 3}"))
            await asyncio.sleep(1.0)
        record(f"{name}: ten jobs beside the others", OURS, taken, "s", jobs)
        queue = (await http.get("/healthz")).json()["queue"]
        print(f"{name}, at the end: {queue}", file=sys.stderr)


async def measure_restart(api: Host, name: str, jobs: int, end: str) -> None:
    client = {"stop": "203.0.113.200", "kill": "203.0.113.201"}[end]
    async with httpx.AsyncClient(base_url=api.url, timeout=60) as http:
        taken = await seconds_of_ten(http, client)
        record(f"{name}: ten jobs, the first after a {end}", OURS, [taken], "s", jobs)


def run(name: str, store: str, folder: Path, jobs: int, rounds: int) -> None:
    with hosts(store, make_world(), folder, daily_limit=1_000_000) as running:
        started = [running.start("serve")]
        if store.startswith("postgresql"):
            started.append(running.start("worker"))
        for host in started:
            host.wait()
        asyncio.run(measure(started[0], name, jobs, rounds))
        for end in ("stop", "kill"):
            for host in started:
                getattr(host, end)()
            for host in started:
                host.start()
            for host in started:
                host.wait()
            asyncio.run(measure_restart(started[0], name, jobs, end))


def main() -> None:
    given = read_options(__doc__, jobs=(5_000, 1_000), rounds=(5, 2))
    with tempfile.TemporaryDirectory(prefix="mailverdict-bench-") as name, ExitStack() as running:
        folder = Path(name)
        folder.chmod(0o755)
        run("SQLite", f"sqlite:///{folder / 'jobs.db'}", folder, given.jobs, given.rounds)
        programs = binaries()
        if programs is None:
            print("PostgreSQL is not installed", file=sys.stderr)
            return
        cluster = Cluster(folder / "cluster", programs)
        cluster.start()
        running.callback(cluster.stop)
        run("PostgreSQL", cluster.prepared_database(), folder, given.jobs, given.rounds)


if __name__ == "__main__":
    main()
