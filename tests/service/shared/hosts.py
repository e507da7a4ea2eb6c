"""A service on several hosts, as programs: APIs and workers on one PostgreSQL, and mail servers of the sandbox."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import create_engine, text

from mailverdict.sandbox import World
from mailverdict.sandbox.dns_table import DomainRecords
from mailverdict.sandbox.smtp_script import Exchange
from tests.doubles.ports import free_port
from tests.doubles.waiting import wait_until

ROOT = Path(__file__).parents[3]
LINES = 100  # addresses of a submission
PATIENCE = 180  # seconds until a program must reply or end, on a busy machine


@dataclass
class Host:
    """A program that can be killed and started again."""

    command: list[str]
    port: int
    environ: dict[str, str]
    log: Path
    process: subprocess.Popen | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, cwd=ROOT, env=self.environ, stdout=subprocess.DEVNULL, stderr=log
            )

    def wait(self) -> None:
        """Wait until it replies."""
        is_over = wait_until(lambda: self.process.poll() is not None or self.replies(), PATIENCE)
        assert is_over, f"{self.command} does not reply: {self.log.read_text()[-3000:]}"
        assert self.process.poll() is None, self.log.read_text()[-3000:]

    def replies(self) -> bool:
        """Whether it has started: it listens for a moment before, to see whether it can."""
        try:
            httpx.get(f"{self.url}/healthz", timeout=PATIENCE)
        except httpx.TransportError:
            return False
        return True

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Stop it as a supervisor does; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE)


def make_world(exchanges: int, domains: int, delay: float) -> World:
    """Mail servers that answer after a delay, each an owner of its own, and domains in equal shares."""
    servers = [
        Exchange(f"mx.owner{n}.example", "cluster", expects={}, mailboxes=None, delay=delay)
        for n in range(exchanges)
    ]
    zones = {
        f"d{n}.example": DomainRecords({"MX": (f"10 mx.owner{n % exchanges}.example",)})
        for n in range(domains)
    }
    return World(zones, exchanges=servers)


@dataclass
class Hosts:
    """The programs on one database and one world."""

    store: str
    world: World
    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    started: list[Host] = field(default_factory=list)

    def start(self, role: str, *options: str, ahead: float = 0.0) -> Host:
        """Start an API (`serve`) or a worker (`worker`) on a host whose clock is so many seconds ahead."""
        local = self.world.backend.settings
        port = free_port()
        command = [
            sys.executable,
            "-m",
            "tests.service.shared.clock_ahead",
            str(ahead),
            role,
            "--port",
            str(port),
        ]
        command += options
        given = {
            "MAILVERDICT_STORE": self.store,
            "MAILVERDICT_RESOLVER": str(local.resolver),
            "MAILVERDICT_SMTP_PORT": str(local.smtp_port),
            "MAILVERDICT_ALLOW_NETWORKS": ",".join(map(str, local.allow_networks)),
            "MAILVERDICT_RESOLVER_CHECK": "false",
            "MAILVERDICT_CATCH_ALL_PROBE": "false",
            "MAILVERDICT_TRUSTED_PROXIES": "127.0.0.1",
            "MAILVERDICT_RATE_LIMIT": "0",
            "MAILVERDICT_ACCESS_LOG": "false",
            **self.settings,
        }
        host = Host(
            command, port, {**os.environ, **given}, self.folder / f"{role}{len(self.started)}.log"
        )
        host.start()
        self.started.append(host)
        return host

    def end(self) -> None:
        """Kill what still runs."""
        for host in self.started:
            if host.process.poll() is None:
                host.kill()

    def rows(self, statement: str) -> list[tuple]:
        """Look into the database from outside."""
        engine = create_engine(self.store, isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                return [tuple(row) for row in connection.execute(text(statement))]
        finally:
            engine.dispose()

    def count(self, condition: str) -> int:
        return self.rows(f"SELECT count(*) FROM job WHERE {condition}")[0][0]


@contextmanager
def hosts(store: str, world: World, folder: Path, **settings: Any) -> Iterator[Hosts]:
    """Programs that are killed at the end."""
    given = {f"MAILVERDICT_{name.upper()}": str(value) for name, value in settings.items()}
    with world:
        running = Hosts(store, world, folder, given)
        try:
            yield running
        finally:
            running.end()


def client_address(number: int) -> str:
    return f"198.51.100.{number}"


async def check_until(
    apis: list[Host], clients: int, domains: int, is_over: Callable[[], bool]
) -> tuple[Counter[str], int]:
    """Clients that send one single check after the other, at the APIs in turn; one without an answer is repeated.

    Return the answers by their reason, and the number of requests.
    """
    answers: Counter[str] = Counter()
    sent = 0

    async def one(number: int) -> None:
        nonlocal sent
        async with httpx.AsyncClient(
            headers={"x-forwarded-for": check_client(number)}, timeout=60
        ) as client:
            turn = 0
            while not is_over():
                turn += 1
                body = {
                    "email": f"check{number}n{turn}@d{(turn + number) % domains}.example",
                    "validation_type": "smtp",
                }
                sent += 1
                try:
                    reply = await client.post(
                        f"{apis[(number + turn) % len(apis)].url}/api/check-email", json=body
                    )
                except httpx.TransportError:
                    reply = None
                # The API was killed or stopped, or has no store.
                if reply is None or reply.status_code in (
                    502,
                    503,
                ):
                    await asyncio.sleep(0.1)
                    continue
                assert reply.status_code == 200, reply.text
                answers[reply.json()["data"]["details"] or reply.json()["data"]["result"]] += 1
                await asyncio.sleep(0.05)

    await asyncio.gather(*(one(number) for number in range(clients)))
    return answers, sent


def check_client(number: int) -> str:
    return f"203.0.113.{number}"


async def submit_all(
    apis: list[Host], clients: int, batches: int, domains: int, validation_type: str = "smtp"
) -> tuple[dict[str, list[str]], list[float]]:
    """Every client submits at once, at the APIs in turn; one without an answer is asked again at the next.

    Return the accepted jobs by client, and the seconds of each accepted submission.
    """
    accepted: dict[str, list[str]] = {client_address(number): [] for number in range(clients)}
    taken: list[float] = []

    async def one(number: int) -> None:
        address = client_address(number)
        async with httpx.AsyncClient(headers={"x-forwarded-for": address}, timeout=30) as client:
            for turn in range(batches):
                emails = [
                    f"c{number}t{turn}n{n}@d{(n + 7 * number) % domains}.example"
                    for n in range(LINES)
                ]
                body = {"emails": emails, "validation_type": validation_type}
                key = {"idempotency-key": f"client-{number:04}-turn-{turn:04}"}
                for attempt in range(600):
                    api = apis[(number + turn + attempt) % len(apis)]
                    began = time.perf_counter()
                    try:
                        reply = await client.post(
                            f"{api.url}/api/bulk-check-email", json=body, headers=key
                        )
                    except httpx.TransportError:
                        await asyncio.sleep(0.1)
                        continue
                    if reply.status_code == 202:
                        taken.append(time.perf_counter() - began)
                        accepted[address] += [
                            entry["job_id"] for entry in reply.json()["data"]["results"]
                        ]
                        break
                    assert reply.status_code == 503, reply.text
                    await asyncio.sleep(0.1)
                else:
                    raise AssertionError(f"client {number} was never accepted")

    await asyncio.gather(*(one(number) for number in range(clients)))
    return accepted, taken
