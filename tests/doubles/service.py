"""The service in one process, without a socket: its application, its store in a temporary file, a client."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from starlette.applications import Starlette

from mailverdict.backend import Backend
from mailverdict.service import ServiceSettings, create_app
from mailverdict.service.jobs.schema import is_shared
from mailverdict.service.jobs.store import Store
from mailverdict.service.service_state import ServiceState
from tests.doubles.answering_backend import AnsweringBackend
from tests.doubles.clock import Clock

CLIENT = "192.0.2.1"
INTERVAL = 0.01  # seconds between two looks; each is a request, whose work delays the service
CHANGED: dict[
    str, Any
] = {}  # settings of every service, for fixtures that run a file's tests in several ways


def asynchronous(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test that is a coroutine."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


async def until(condition: Callable[[], object]) -> None:
    """Let the service work until something is so."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(INTERVAL)


@dataclass
class RunningService:
    """A running service."""

    app: Starlette
    backend: Backend
    clock: Clock
    lines: list[str] = field(default_factory=list)

    @property
    def state(self) -> ServiceState:
        return self.app.state.service

    def client(self, address: str = CLIENT) -> httpx.AsyncClient:
        """A client that calls from an address."""
        transport = httpx.ASGITransport(app=self.app, client=(address, 50_000))
        return httpx.AsyncClient(transport=transport, base_url="http://service.example")

    async def post(
        self, path: str, body: Any, *, address: str = CLIENT, **headers: str
    ) -> httpx.Response:
        # In ASCII: a lone surrogate is an escape, which httpx's own encoder cannot write.
        content = json.dumps(body)
        async with self.client(address) as client:
            return await client.post(
                path, content=content, headers={"content-type": "application/json", **headers}
            )

    async def get(self, path: str, *, address: str = CLIENT, **headers: str) -> httpx.Response:
        async with self.client(address) as client:
            return await client.get(path, headers=headers)

    async def check(
        self, email: Any = "ada@example.org", validation_type: Any = "regex", **more: Any
    ) -> httpx.Response:
        return await self.post(
            "/api/check-email", {"email": email, "validation_type": validation_type}, **more
        )

    async def submit(
        self, emails: Any, validation_type: Any = "regex", **more: Any
    ) -> httpx.Response:
        return await self.post(
            "/api/bulk-check-email", {"emails": emails, "validation_type": validation_type}, **more
        )

    async def submitted(
        self, *emails: str, validation_type: str = "regex", address: str = CLIENT
    ) -> list[str]:
        """Submit, and give the job identifiers."""
        reply = await self.submit(list(emails), validation_type, address=address)
        assert reply.status_code == 202, reply.text
        return [entry["job_id"] for entry in reply.json()["data"]["results"]]

    async def poll(self, job_id: str) -> dict[str, Any]:
        """The job record."""
        reply = await self.get(f"/api/verification-result/{job_id}")
        assert reply.status_code == 200, reply.text
        return reply.json()["data"]["result"]

    async def ended(self, job_id: str) -> dict[str, Any]:
        """The job record, once it is final."""
        async with asyncio.timeout(10):
            while (record := await self.poll(job_id))["status"] in ("queued", "processing"):
                await asyncio.sleep(INTERVAL)
        return record

    async def has_queue(self, **expected: int) -> None:
        """Wait until the queue has so many jobs in some states: waiting, verifying, postponed."""
        async with asyncio.timeout(10):
            while not expected.items() <= (await self.get("/healthz")).json()["queue"].items():
                await asyncio.sleep(INTERVAL)

    async def used(self, address: str = CLIENT) -> int:
        return (await self.get("/api/quota", address=address)).json()["used"]


def open_store(url: str, clock: Clock | None = None, **changed: Any) -> Store:
    """The store at a URL."""
    return Store(ServiceSettings(store=url, **changed), clock)


def settings_for(folder: Path, **changed: Any) -> ServiceSettings:
    """Settings with a store in a folder; jobs are taken at once."""
    given = {"store": f"sqlite:///{folder / 'jobs.db'}", "gather": 0, **CHANGED, **changed}
    return ServiceSettings(**given)


@asynccontextmanager
async def serving(
    folder: Path, backend: Backend | None = None, *, clock: Clock | None = None, **changed: Any
) -> AsyncIterator[RunningService]:
    """Run a service for as long as the block takes."""
    backend = backend or AnsweringBackend()
    clock = clock or Clock()
    lines: list[str] = []
    settings = settings_for(folder, **changed)
    app = create_app(settings, backend, clock=clock, log=lines.append)
    async with app.router.lifespan_context(app), working(settings, backend, clock):
        yield RunningService(app, backend, clock, lines)


@asynccontextmanager
async def working(
    settings: ServiceSettings, backend: Backend, clock: Clock, **abilities: Any
) -> AsyncIterator[Any]:
    """Run a worker beside the service if its store needs one: PostgreSQL."""
    if not is_shared(settings.store):
        yield None
        return
    from mailverdict.service.jobs.program import open_worker
    from mailverdict.service.jobs.worker import WorkerAbilities

    async with open_worker(settings, backend, WorkerAbilities(**abilities), clock) as worker:
        yield worker
