"""An API process that is stopped in the middle of a transaction on PostgreSQL, beside another that serves everybody.

Sixteen clients submit to the first process until it is stopped (SIGSTOP) while a transaction of it is open. Then each
client, and a new one, submits once to the second process: how long the slowest one waits, how many are refused, and
what ``/healthz`` says meanwhile. Needs Debian's PostgreSQL and the account of a superuser or of its server.

Run it as ``python -m benchmarks.hostile.frozen``.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
from sqlalchemy import create_engine, text
from tests.doubles.ports import free_port
from tests.doubles.waiting import wait_until
from tests.service.postgres import Cluster, binaries

from ..figures import OURS, read_options, record

STOPPED = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity USING (pid) WHERE state = 'idle in transaction'"
STOPPED += " AND relation = 'quota'::regclass AND mode = 'RowExclusiveLock'"
EMAILS = [f"n{number}@example.org" for number in range(50)]


def start(store: str, port: int) -> subprocess.Popen[bytes]:
    """An API on the store, once it listens."""
    settings = {
        "MAILVERDICT_STORE": store,
        "MAILVERDICT_TRUSTED_PROXIES": "127.0.0.1",
        "MAILVERDICT_DAILY_LIMIT": "1000000",
    }
    command = [sys.executable, "-m", "mailverdict", "serve", "--port", str(port)]
    process = subprocess.Popen(
        command,
        env={**os.environ, **settings},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def listens() -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
        except httpx.HTTPError:
            return False

    wait_until(listens, 60)
    return process


async def submit(port: int, client: str) -> tuple[float, int]:
    """Submit once: seconds until the reply, and its status; 0 if none came within 30 seconds."""
    body = {"emails": EMAILS, "validation_type": "mx"}
    began = time.perf_counter()
    try:
        async with httpx.AsyncClient(timeout=30) as http:
            reply = await http.post(
                f"http://127.0.0.1:{port}/api/bulk-check-email",
                json=body,
                headers={"x-forwarded-for": client},
            )
        return time.perf_counter() - began, reply.status_code
    except httpx.TimeoutException:
        return time.perf_counter() - began, 0


async def stop_in_a_transaction(
    port: int, process: subprocess.Popen[bytes], store: str, clients: list[str]
) -> None:
    """Stop the process again and again, until a transaction of it is open."""
    engine = create_engine(store, isolation_level="AUTOCOMMIT")

    async def load(client: str) -> None:
        while True:
            await submit(port, client)

    tasks = [asyncio.create_task(load(client)) for client in clients]
    while True:
        await asyncio.sleep(0.02)
        process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(0.05)  # what it has sent is executed
        with engine.connect() as connection:
            if connection.scalar(text(STOPPED)):
                break
        process.send_signal(signal.SIGCONT)
    for task in tasks:
        task.cancel()
    engine.dispose()


async def measure(port: int, clients: list[str]) -> None:
    """Let each client submit to the process that runs, and a new one too."""
    health = []

    async def probe() -> None:
        async with httpx.AsyncClient(timeout=30) as http:
            while True:
                health.append((await http.get(f"http://127.0.0.1:{port}/healthz")).status_code)
                await asyncio.sleep(0.2)

    probing = asyncio.create_task(probe())
    others = [f"203.0.113.{number}" for number in range(8)]
    both = await asyncio.gather(*(submit(port, client) for client in [*clients, *others]))
    again = await asyncio.gather(*(submit(port, client) for client in others))
    probing.cancel()
    ours, fresh = both[: len(clients)], both[len(clients) :]
    task = "an API stopped in a transaction"
    record(f"{task}: the slowest of its clients", OURS, [max(each[0] for each in ours)], "s")
    record(f"{task}: the slowest other client", OURS, [max(each[0] for each in fresh)], "s")
    record(f"{task}: the same, second request", OURS, [max(each[0] for each in again)], "s")
    refused = sum(status != 202 for _, status in [*both, *again])
    record(f"{task}: requests without success", OURS, [refused], "requests")
    record(f"{task}: /healthz other than 200", OURS, [sum(code != 200 for code in health)], "")


def main() -> None:
    read_options(__doc__)
    programs = binaries()
    if programs is None:
        raise SystemExit("PostgreSQL is not installed")
    clients = [f"198.51.100.{number}" for number in range(16)]
    with tempfile.TemporaryDirectory(prefix="mailverdict-bench-") as name, ExitStack() as running:
        Path(name).chmod(0o755)
        cluster = Cluster(Path(name) / "cluster", programs)
        cluster.start()
        running.callback(cluster.stop)
        store = cluster.prepared_database()
        ports = [free_port(), free_port()]
        processes = [start(store, port) for port in ports]
        for process in processes:
            running.callback(process.kill)
        asyncio.run(stop_in_a_transaction(ports[0], processes[0], store, clients))
        asyncio.run(measure(ports[1], clients))


if __name__ == "__main__":
    main()
