"""The verification service: its speed compared with a bare echo, and 10,000 jobs with a ``kill -9``.

1. ``regex`` single checks per second with durable quota, rate limiter, metrics and access log, compared with a bare
   Starlette JSON echo, and with FastAPI that validates the address with email-validator and keeps nothing: the same
   server (uvicorn with uvloop and httptools, one process), the same load tool (wrk if it is installed), in turns.
2. How long a bulk submission of 100 addresses takes to be accepted.
3. 10,000 jobs from 50 clients at once, the service killed in the middle and started again: none may be
   lost or doubled, and the quota must be exact.

Run it as ``python -m benchmarks.service``, optionally with the number of seconds for each turn.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from .figures import OURS, record
from .service_load import CONNECTIONS, requests_per_second, tool

ECHO, FASTAPI = "Starlette, bare echo", "FastAPI and email-validator, no store"
TURNS = 5
SECONDS = 4
GOAL_RATIO = 0.6
GOAL_ACCEPTED = 0.050
SUBMISSIONS = 100
CLIENTS, BATCHES, LINES = 50, 2, 100
BATCH_SECONDS = 0.25  # of the engine, so that the kill interrupts batches


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


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


def compare_with_echo(folder: Path, seconds: int) -> bool:
    """Alternate, so that other load on this machine slows all."""
    servers = {ECHO: ("echo", "/echo"), OURS: ("service", "/api/check-email")}
    if importlib.util.find_spec("fastapi"):
        servers[FASTAPI] = ("fastapi", "/check")
    ports = {name: free_port() for name in servers}
    rates: dict[str, list[float]] = {name: [] for name in servers}
    with ExitStack() as running:
        for name, (kind, path) in servers.items():
            more = (str(folder / "checks.db"), "0") if name == OURS else ()
            running.enter_context(program(kind, str(ports[name]), *more, port=ports[name]))
            requests_per_second(ports[name], path, 1)  # the first requests warm the server up
        for _ in range(TURNS):
            for name, (_, path) in servers.items():
                rates[name].append(requests_per_second(ports[name], path, seconds))
    ratio = statistics.median(ours / echo for ours, echo in zip(rates[OURS], rates[ECHO], strict=True))
    for name, measured in rates.items():
        record("single checks by regex over HTTP", name, measured, "requests/s")
        print(f"  {name:40} {statistics.median(measured):8,.0f}/s ({min(measured):,.0f} to {max(measured):,.0f})")
    print(f"compared with a bare echo ({tool()}, {CONNECTIONS} connections): {ratio:.2f}, goal {GOAL_RATIO}")
    return ratio >= GOAL_RATIO


def measure_acceptance(folder: Path) -> bool:
    """One submission after the other, and eight clients at once."""
    port = free_port()
    with program("service", str(port), str(folder / "bulk.db"), "0", port=port):
        alone = asyncio.run(accept(port, clients=1))
        together = asyncio.run(accept(port, clients=8))
    for name, seconds in (("alone", alone), ("8 clients at once", together)):
        tail = statistics.quantiles(seconds, n=20)[-1]
        record(f"a bulk of 100 accepted, {name}", OURS, [each * 1e3 for each in seconds], "ms")
        print(
            f"bulk of 100 accepted, {name}: median {statistics.median(seconds) * 1e3:.1f} ms, 95 % {tail * 1e3:.1f} ms"
        )
    return statistics.median(alone) < GOAL_ACCEPTED


async def accept(port: int, *, clients: int) -> list[float]:
    """Seconds until each submission was accepted."""
    taken: list[float] = []

    async def one(number: int) -> None:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            for turn in range(SUBMISSIONS // clients):
                emails = [f"c{number}t{turn}n{n}@example{n}.org" for n in range(100)]
                began = time.perf_counter()
                reply = await client.post("/api/bulk-check-email", json={"emails": emails, "validation_type": "regex"})
                taken.append(time.perf_counter() - began)
                assert reply.status_code == 202, reply.text

    await asyncio.gather(*(one(number) for number in range(clients)))
    return taken


def survive_a_kill(folder: Path) -> bool:
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
    print(f"{len(jobs):,} jobs of {CLIENTS} clients in {submitted:.1f} s; killed when {ended:,} had ended:")
    print(f"  lost {lost}, doubled {doubled}, clients whose quota is not exact {wrong}")
    return not (lost or doubled or wrong) and len(jobs) == CLIENTS * BATCHES * LINES and ended < len(jobs)


async def submit_all(port: int, accepted: dict[str, list[str]]) -> None:
    """Every client submits at once."""

    async def one(address: str) -> None:
        headers = {"x-forwarded-for": address}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
            for turn in range(BATCHES):
                emails = [f"a{turn}n{n}@example{n}.org" for n in range(LINES)]
                reply = await client.post("/api/bulk-check-email", json={"emails": emails, "validation_type": "regex"})
                accepted.setdefault(address, []).extend(each["job_id"] for each in reply.json()["data"]["results"])

    await asyncio.gather(*(one(f"198.51.100.{number}") for number in range(CLIENTS)))


async def audit(port: int, store: Path, accepted: dict[str, list[str]]) -> tuple[int, int]:
    """Poll every job and ask for every quota: how many are lost, how many are wrong."""
    lost = wrong = 0
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        for address, jobs in accepted.items():
            for job_id in jobs:
                reply = await client.get(f"/api/verification-result/{job_id}")
                lost += reply.status_code != 200 or reply.json()["data"]["result"]["status"] != "done"
            quota = (await client.get("/api/quota", headers={"x-forwarded-for": address})).json()
            wrong += quota["used"] != len(jobs) or count(store, f"client = '{address}'") != len(jobs)
    return lost, wrong


def count(store: Path, condition: str) -> int:
    """Count jobs in the store's file."""
    connection = sqlite3.connect(store)
    try:
        found: int = connection.execute(f"SELECT count(*) FROM job WHERE {condition}").fetchone()[0]
        return found
    finally:
        connection.close()


def main() -> int:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    with tempfile.TemporaryDirectory(prefix="mailverdict-bench-") as name:
        folder = Path(name)
        outcomes = [compare_with_echo(folder, seconds), measure_acceptance(folder), survive_a_kill(folder)]
    print("goals reached" if all(outcomes) else "a goal was MISSED")
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
