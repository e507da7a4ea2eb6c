"""The verification service beside a bare echo, 10,000 jobs with a ``kill -9``, and what polling costs its client.

1. ``regex`` single checks per second with durable quota, rate limiter, metrics and access log, compared with a bare
   JSON echo by Starlette and by FastAPI, and with FastAPI that validates the address with email-validator and keeps
   nothing: the same server (uvicorn with uvloop and httptools, one process), the same load, in turns.
2. How long a bulk submission of 100 addresses takes to be accepted, and how many jobs by ``regex`` end in a second.
3. 10,000 jobs from 50 clients at once, the service killed in the middle and started again: none may be lost or doubled,
   and the quota must be exact.
4. The client's processor time while it polls 2,000 jobs, beside as many requests by httpx alone, in turns. The jobs are
   older than two minutes, so that each is polled every 15 seconds, and none is done. The server is another process.

Run it as ``python -m benchmarks service``.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, aclosing, contextmanager
from pathlib import Path

import httpx
import pyarrow as pa
from tests.doubles.ports import free_port

from mailverdict.backend import Batch, Job
from mailverdict.remote.backend import RemoteBackend
from mailverdict.remote.events import PollSchedule

from .figures import OURS, read_options, record
from .service_load import requests_per_second

ECHO, FASTAPI_ECHO = "Starlette, bare echo", "FastAPI, bare echo"
FASTAPI = "FastAPI and email-validator, no store"
CLIENTS, BATCHES, LINES = 50, 2, 100
BATCH_SECONDS = 0.25  # of the engine, so that the kill interrupts batches
POLLED, AGE = 2_000, 200.0  # jobs, and seconds since each was submitted: beyond 120 the step is 15


@contextmanager
def program(*arguments: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """One of the servers, once it listens."""
    command = [sys.executable, "-m", "benchmarks.service_program", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if process.poll() is not None:
                raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait()


def compare_with_echo(folder: Path, seconds: int, turns: int) -> None:
    """Alternate, so that other load on this machine slows all."""
    servers = {
        ECHO: ("echo", "/echo"),
        OURS: ("service", "/api/check-email"),
        FASTAPI_ECHO: ("fastapi", "/echo"),
        FASTAPI: ("fastapi", "/check"),
    }
    ports = {name: free_port() for name in servers}
    rates: dict[str, list[float]] = {name: [] for name in servers}
    with ExitStack() as running:
        for name, (kind, path) in servers.items():
            more = (str(folder / "checks.db"), "0") if name == OURS else ()
            running.enter_context(program(kind, str(ports[name]), *more, port=ports[name]))
            requests_per_second(ports[name], path, 1)  # the first requests warm the server up
        for _ in range(turns):
            for name, (_, path) in servers.items():
                rates[name].append(requests_per_second(ports[name], path, seconds))
    for name, measured in rates.items():
        record("single checks by regex over HTTP", name, measured, "requests/s")


def measure_bulk(folder: Path, submissions: int) -> None:
    """One submission after the other, and eight clients at once; then as many jobs as fast as they end."""
    store, port = folder / "bulk.db", free_port()
    with program("service", str(port), str(store), "0", port=port):
        for clients, name in ((1, "alone"), (8, "8 clients at once")):
            seconds = asyncio.run(accept(port, clients, submissions))
            record(
                f"a bulk of 100 accepted, {name}", OURS, [each * 1e3 for each in seconds], "ms", 100
            )
        while count(store, "status NOT IN ('done', 'error')"):
            time.sleep(0.02)
        before, began = count(store, "1 = 1"), time.perf_counter()
        asyncio.run(accept(port, 8, submissions))
        while count(store, "status NOT IN ('done', 'error')"):
            time.sleep(0.02)
        jobs = count(store, "1 = 1") - before
        rate = jobs / (time.perf_counter() - began)
        record(
            "jobs by regex, from the first submission to the last result",
            OURS,
            [rate],
            "jobs/s",
            jobs,
        )


async def accept(port: int, clients: int, submissions: int) -> list[float]:
    """Seconds until each submission was accepted."""
    taken: list[float] = []

    async def one(number: int) -> None:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            for turn in range(submissions // clients):
                emails = [f"c{number}t{turn}n{n}@example{n}.org" for n in range(100)]
                began = time.perf_counter()
                reply = await client.post(
                    "/api/bulk-check-email", json={"emails": emails, "validation_type": "regex"}
                )
                taken.append(time.perf_counter() - began)
                assert reply.status_code == 202, reply.text

    await asyncio.gather(*(one(number) for number in range(clients)))
    return taken


def survive_a_kill(folder: Path) -> None:
    """Kill the service after a third of the jobs, start it again, and count."""
    store, port = folder / "jobs.db", free_port()
    accepted: dict[str, list[str]] = {}
    began = time.perf_counter()
    with program("service", str(port), str(store), str(BATCH_SECONDS), port=port) as process:
        asyncio.run(submit_all(port, accepted))
        submitted = time.perf_counter() - began
        while count(store, "status = 'done'") < CLIENTS * BATCHES * LINES // 3:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    ended = count(store, "status = 'done'")
    with program("service", str(port), str(store), "0", port=port):
        while count(store, "status NOT IN ('done', 'error')"):
            time.sleep(0.02)
        lost, wrong = asyncio.run(audit(port, store, accepted))
    jobs = [job_id for ids in accepted.values() for job_id in ids]
    doubled = len(jobs) - len(set(jobs)) + count(store, "1 = 1") - len(jobs)
    if len(jobs) != CLIENTS * BATCHES * LINES or ended >= len(jobs):
        raise SystemExit(f"{len(jobs):,} jobs were accepted, and {ended:,} had ended at the kill")
    size = len(jobs)
    record(
        "submissions of 50 clients at once, 100 addresses each, all accepted",
        OURS,
        [submitted],
        size=size,
    )
    record(
        "jobs of 50 clients and a kill -9: lost or doubled", OURS, [lost + doubled], "jobs", size
    )
    record(
        "jobs of 50 clients and a kill -9: clients whose quota is not exact",
        OURS,
        [wrong],
        "clients",
        size,
    )


async def submit_all(port: int, accepted: dict[str, list[str]]) -> None:
    """Every client submits at once."""

    async def one(address: str) -> None:
        headers = {"x-forwarded-for": address}
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60
        ) as client:
            for turn in range(BATCHES):
                emails = [f"a{turn}n{n}@example{n}.org" for n in range(LINES)]
                reply = await client.post(
                    "/api/bulk-check-email", json={"emails": emails, "validation_type": "regex"}
                )
                accepted.setdefault(address, []).extend(
                    each["job_id"] for each in reply.json()["data"]["results"]
                )

    await asyncio.gather(*(one(f"198.51.100.{number}") for number in range(CLIENTS)))


async def audit(port: int, store: Path, accepted: dict[str, list[str]]) -> tuple[int, int]:
    """Poll every job and ask for every quota: how many are lost, how many are wrong."""
    lost = wrong = 0
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        for address, jobs in accepted.items():
            for job_id in jobs:
                reply = await client.get(f"/api/verification-result/{job_id}")
                lost += (
                    reply.status_code != 200 or reply.json()["data"]["result"]["status"] != "done"
                )
            quota = (await client.get("/api/quota", headers={"x-forwarded-for": address})).json()
            wrong += quota["used"] != len(jobs) or count(store, f"client = '{address}'") != len(
                jobs
            )
    return lost, wrong


def count(store: Path, condition: str) -> int:
    """Count jobs in the store's file."""
    connection = sqlite3.connect(store)
    try:
        found: int = connection.execute(f"SELECT count(*) FROM job WHERE {condition}").fetchone()[0]
        return found
    finally:
        connection.close()


def measure_polling(seconds: int, turns: int) -> None:
    """The client's processor time for so many seconds; the median of the turns counts."""
    shares, ours, alone = [], [], []
    for _ in range(turns):
        port = free_port()
        with program("queue", str(port), port=port):
            url = f"http://127.0.0.1:{port}"
            began, cpu = time.perf_counter(), time.process_time()
            asyncio.run(poll_for(url, seconds))
            used = time.process_time() - cpu
            shares.append(used / (time.perf_counter() - began) * 100)
            polls = httpx.get(f"{url}/polls").json()
            ours.append(used / polls * 1e3)
            alone.append(asyncio.run(poll_alone(url, polls)) * 1e3)
    record("processor time of a poll", OURS, ours, "ms", POLLED)
    record(
        "processor time of a poll", "httpx alone, nothing parsed but the JSON", alone, "ms", POLLED
    )
    record("share of a core, polling", OURS, shares, "%", POLLED)


async def poll_for(url: str, seconds: float) -> None:
    """Poll old jobs that are never done."""
    submitted_at = time.time() - AGE
    jobs = [Job(f"{n}", f"user{n}@example.org", "mx", submitted_at) for n in range(POLLED)]
    backend = RemoteBackend(url, PollSchedule(give_up=10**9))
    try:
        async with (
            asyncio.timeout(seconds),
            aclosing(backend.verify(Batch(pa.array([], pa.string()), "mx"), jobs)) as events,
        ):
            async for _ in events:
                pass
    except TimeoutError:
        return


async def poll_alone(url: str, polls: int) -> float:
    """Processor seconds of one request by httpx, over as many requests, eight at a time."""
    numbers = iter(range(polls))
    async with httpx.AsyncClient(base_url=url) as client:

        async def work() -> None:
            for number in numbers:
                (await client.get(f"/api/verification-result/{number}")).json()

        began = time.process_time()
        await asyncio.gather(*(work() for _ in range(8)))
        return (time.process_time() - began) / polls


def main() -> None:
    given = read_options(
        __doc__, seconds=(4, 1), turns=(5, 1), submissions=(100, 24), polling=(30, 5)
    )
    with tempfile.TemporaryDirectory(prefix="mailverdict-bench-") as name:
        folder = Path(name)
        compare_with_echo(folder, given.seconds, given.turns)
        measure_bulk(folder, given.submissions)
        survive_a_kill(folder)
    measure_polling(given.polling, min(given.turns, 3))


if __name__ == "__main__":
    main()
