"""Jobs and quota across ``kill -9``, with the service as a process of its own."""

import asyncio
import math
import random
import re
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

import httpx
import pytest

from tests import ROOT
from tests.doubles.service import asynchronous, open_store
from tests.service.shared.hosts import client_address

PROGRAM = [sys.executable, "-m", "tests.service.program"]
URL = re.compile(rb"http://127\.0\.0\.1:[1-9]\d*")
CLIENTS = 20
LINES = 10  # addresses of each submission
SUBMISSIONS = 2  # of each client


@asynccontextmanager
async def program(
    store: Path, answered: float = math.inf, rate: float = 0.0
) -> AsyncIterator[tuple[subprocess.Popen, str]]:
    """The service as a process, once it answers."""
    command = [*PROGRAM, f"sqlite:///{store}", "0", str(answered), str(rate)]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)
    try:
        yield process, await asyncio.to_thread(read_url, process.stderr)
    finally:
        process.kill()
        process.communicate()


def read_url(stderr: IO[bytes]) -> str:
    """The address that the server announces once it listens."""
    seen = b""
    while line := stderr.readline():
        seen += line
        if found := URL.search(line):
            return found[0].decode()
    raise AssertionError(f"the service did not start: {seen.decode()}")


async def submit_all(url: str, accepted: dict[str, list[str]], kill: asyncio.Event) -> None:
    """All clients submit at once; what was accepted is noted, what got no answer is not."""

    async def one(number: int) -> None:
        address = client_address(number)
        async with httpx.AsyncClient(timeout=30, headers={"x-forwarded-for": address}) as client:
            for turn in range(SUBMISSIONS):
                emails = [f"c{number}t{turn}n{n}@example.org" for n in range(LINES)]
                body = {"emails": emails, "validation_type": random.choice(["mx", "smtp"])}
                try:
                    reply = await client.post(f"{url}/api/bulk-check-email", json=body)
                except httpx.TransportError:
                    return
                assert reply.status_code == 202, reply.text
                accepted[address] += [entry["job_id"] for entry in reply.json()["data"]["results"]]
                if sum(map(len, accepted.values())) > CLIENTS * LINES:
                    kill.set()

    await asyncio.gather(*(one(number) for number in range(CLIENTS)))


async def end_of(client: httpx.AsyncClient, job_id: str) -> dict:
    """The record of a job once it is final."""
    while True:
        reply = await client.get(f"/api/verification-result/{job_id}")
        assert reply.status_code == 200, f"{job_id} was lost"
        record = reply.json()["data"]["result"]
        if record["status"] not in ("queued", "processing"):
            return record
        await asyncio.sleep(0.05)


@pytest.mark.slow
@asynchronous
async def test_nothing_is_lost_or_doubled_by_a_kill_in_the_middle(tmp_path: Path) -> None:
    store = tmp_path / "jobs.db"
    accepted: dict[str, list[str]] = {client_address(number): [] for number in range(CLIENTS)}
    async with program(store, answered=2) as (process, url):
        kill = asyncio.Event()
        submitting = asyncio.create_task(submit_all(url, accepted, kill))
        await kill.wait()
        process.send_signal(signal.SIGKILL)
        await submitting
    job_ids = [job_id for jobs in accepted.values() for job_id in jobs]
    assert len(job_ids) > CLIENTS * LINES
    assert len(set(job_ids)) == len(job_ids)
    states = Counter(row[0] for row in rows(store, "SELECT status FROM job"))
    assert states["queued"] or states["processing"]

    async with program(store) as (_, url):
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            records = [await end_of(client, job_id) for job_id in job_ids]
        await no_job_open(store)
        async with httpx.AsyncClient(base_url=url) as client:
            for address, jobs in accepted.items():
                quota = (
                    await client.get("/api/quota", headers={"x-forwarded-for": address})
                ).json()
                stored = rows(store, "SELECT count(*) FROM job WHERE client = ?", address)[0][0]
                # A submission that was written but not answered may be there; half of one may not.
                assert quota["used"] == stored
                assert stored - len(jobs) in (0, LINES)
    assert {record["status"] for record in records} == {"done"}
    assert all(record["verification"]["email"] == record["email"] for record in records)


@pytest.mark.slow  # the test before it kills; test_pace.py restarts with a long queue
@asynchronous
async def test_kill_with_a_long_queue_loses_nothing_and_the_pace_goes_on(tmp_path: Path) -> None:
    store, done = tmp_path / "jobs.db", "SELECT count(*) FROM job WHERE status = 'done'"
    async with program(store, rate=0.001) as (process, url):
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            for turn in range(3):
                body = {
                    "emails": [f"t{turn}n{n}@example.org" for n in range(100)],
                    "validation_type": "smtp",
                }
                assert (await client.post("/api/bulk-check-email", json=body)).status_code == 202
        while rows(store, done)[0][0] < 100:
            await asyncio.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    assert rows(store, done) == [(100,)]
    assert rows(store, "SELECT count(*) FROM job WHERE status = 'queued'") == [(200,)]

    async with (
        program(store, rate=200) as (_, url),
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        await no_job_open(store)
        assert (await client.get("/api/quota")).json()["used"] == 300
    assert rows(store, "SELECT status, count(*) FROM job GROUP BY status") == [("done", 300)]


async def no_job_open(store: Path) -> None:
    """Wait for the jobs nobody knows of, too."""
    while rows(store, "SELECT count(*) FROM job WHERE status NOT IN ('done', 'error')")[0][0]:
        await asyncio.sleep(0.02)


def rows(store: Path, statement: str, *values: str) -> list[tuple]:
    """Look into the store from outside."""
    connection = sqlite3.connect(store)
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


@pytest.mark.slow  # tests/cli/test_commands.py stops `mailverdict serve`
@asynchronous
async def test_signal_to_stop_ends_the_service_cleanly(tmp_path: Path) -> None:
    async with program(tmp_path / "jobs.db", answered=0) as (process, url):
        async with httpx.AsyncClient(base_url=url) as client:
            reply = await client.post(
                "/api/bulk-check-email",
                json={"emails": ["a@example.org"], "validation_type": "smtp"},
            )
            [entry] = reply.json()["data"]["results"]
        process.send_signal(signal.SIGTERM)
        errors = await asyncio.to_thread(process.stderr.read)
        assert process.wait() in (0, -signal.SIGTERM)
        assert b"Traceback" not in errors
    async with program(tmp_path / "jobs.db") as (_, url), httpx.AsyncClient(base_url=url) as client:
        assert (await end_of(client, entry["job_id"]))["status"] == "done"


@pytest.mark.slow
def test_second_service_on_a_store_is_refused_at_once(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'jobs.db'}")
    try:
        command = [*PROGRAM, f"sqlite:///{tmp_path / 'jobs.db'}", "0", "inf"]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60)
    finally:
        store.close()
    assert ended.returncode != 0
    assert b"SettingsError: another service already works on this store" in ended.stderr
