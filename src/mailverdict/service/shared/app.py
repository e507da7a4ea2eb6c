"""`run_worker`: a worker as a program, with ``/healthz`` and ``/metrics`` over HTTP."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...backend import Backend
from ...errors import SettingsError
from ..http.metrics import CONTENT_TYPE, Metrics
from ..http.replies import JsonReply
from ..jobs.schema import is_shared
from ..jobs.store import Store
from ..jobs.worker import STORE_UNAVAILABLE
from ..server import serve
from ..service_state import make_engine
from ..settings import Clock, ServiceSettings
from .store import SharedStore
from .tasks import TaskQueue
from .worker import SharedWorker, WorkerAbilities

LOG = logging.getLogger(__name__)


def create_worker_app(
    settings: ServiceSettings,
    backend: Backend | None = None,
    abilities: WorkerAbilities | None = None,
    *,
    clock: Clock = time.time,
) -> Starlette:
    """Make a worker as an ASGI application, which works for as long as its lifespan."""
    if not is_shared(settings.store):
        raise SettingsError("store: a worker needs PostgreSQL; with an SQLite file, 'mailverdict serve' has its own")
    metrics = Metrics()
    running: dict[str, SharedWorker] = {}

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with open_worker(settings, backend, abilities or WorkerAbilities(), clock) as worker:
            running["worker"] = worker
            yield

    async def healthz(_: Request) -> Response:
        """``GET /healthz``: 200 while the worker runs and reaches the database."""
        worker = running["worker"]
        healthy = worker.is_working()
        report = {
            "status": "ok" if healthy else "failing",
            "worker": worker.row.name,
            "version": worker.row.version,
            "types": worker.row.types.split(","),
            "egress": worker.row.egress,
            "tasks": len(worker.tasks.running),
        }
        return JsonReply(report, 200 if healthy else 503)

    async def metrics_page(_: Request) -> Response:
        """``GET /metrics``: the same numbers of the queue as those of the API."""
        store = running["worker"].store
        try:
            depth = await store.run(store.depth)
        except STORE_UNAVAILABLE:
            return Response("the store is not available\n", status_code=503, headers={"retry-after": "5"})
        metrics.set_ended_jobs(depth.ended)
        jobs = {"waiting": sum(depth.waiting.values()), "verifying": depth.verifying, "postponed": depth.postponed}
        oldest = 0.0 if depth.oldest is None else max(running["worker"].clock() - depth.oldest, 0.0)
        metrics.watch(lambda: jobs, lambda: oldest, lambda: depth.checks)
        return Response(metrics.render(), headers={"content-type": CONTENT_TYPE, "cache-control": "no-store"})

    routes = [Route("/healthz", healthz, methods=["GET"]), Route("/metrics", metrics_page, methods=["GET"])]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.state.running = running
    return app


@asynccontextmanager
async def open_worker(
    settings: ServiceSettings, backend: Backend | None, abilities: WorkerAbilities, clock: Clock
) -> AsyncIterator[SharedWorker]:
    """A worker with its connections."""
    Store(settings.store).close()  # creates the tables of an empty database, or refuses another schema
    # Greylisted jobs get their second attempt by a scheduled task, so that no task waits for it.
    engine = make_engine(replace(settings, local=replace(settings.local, retry_greylisted=0)), backend)
    store = SharedStore(settings)
    tasks = TaskQueue(settings, store.clock, store.outages)
    try:
        await tasks.open()
        used = store.clock if clock is time.time else clock
        worker = SharedWorker(engine, settings, abilities, store=store, tasks=tasks, clock=used)
        await worker.open()
        try:
            yield worker
        finally:
            await worker.close()
    finally:
        await engine.aclose()
        await tasks.close()
        store.close()


def run_worker(
    settings: ServiceSettings,
    abilities: WorkerAbilities | None = None,
    host: str = "127.0.0.1",
    port: int = 8001,
) -> None:
    """Work until a signal stops the process; unfinished jobs go to other workers."""
    Store(settings.store).close()  # an error here is one clear line; uvicorn would show a traceback
    serve(create_worker_app(settings, abilities=abilities), settings, host, port)
