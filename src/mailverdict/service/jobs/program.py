"""`run_worker`: a worker as a program, with ``/healthz`` and ``/metrics`` over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...backend import Backend
from ...errors import SettingsError
from ..http.metrics import CONTENT_TYPE, Metrics
from ..http.replies import JsonReply
from ..outages import OutageLog
from ..server import serve
from ..service_state import make_engine
from ..settings import Clock, ServiceSettings
from .group_committer import GroupCommitter
from .queue import Queue, client_of
from .schema import is_shared
from .store import STORE_UNAVAILABLE, Depth, Store
from .worker import Worker, WorkerAbilities


def create_worker_app(
    settings: ServiceSettings,
    backend: Backend | None = None,
    abilities: WorkerAbilities | None = None,
    *,
    clock: Clock | None = None,
) -> Starlette:
    """Make a worker as an ASGI application, which works for as long as its lifespan."""
    if not is_shared(settings.store):
        raise SettingsError(
            "store: a worker needs PostgreSQL; with an SQLite file, 'mailverdict serve' has its own"
        )
    metrics = Metrics()
    running: dict[str, Worker] = {}

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with open_worker(settings, backend, abilities, clock, metrics) as worker:
            running["worker"] = worker
            yield

    async def healthz(_: Request) -> Response:
        """``GET /healthz``: 200 while the worker runs and reaches the database."""
        worker = running["worker"]
        status = "ok"
        code = 200
        if not worker.is_working():
            status = "failing"
            code = 503
        report = {
            "status": status,
            "worker": worker.row.name,
            "version": worker.row.version,
            "types": worker.row.types.split(","),
            "egress": worker.row.egress,
            "tasks": len(worker.batches),
        }
        return JsonReply(report, code)

    async def metrics_page(_: Request) -> Response:
        """``GET /metrics``: the numbers of the queue, and the jobs that ended here."""
        store = running["worker"].store
        try:
            depth: Depth = await store.read(store.depth)
        except STORE_UNAVAILABLE:
            return Response(
                "the store is not available\n", status_code=503, headers={"retry-after": "5"}
            )
        metrics.watch(lambda: depth, lambda: 0)
        return Response(
            metrics.render(), headers={"content-type": CONTENT_TYPE, "cache-control": "no-store"}
        )

    routes = [
        Route("/healthz", healthz, methods=["GET"]),
        Route("/metrics", metrics_page, methods=["GET"]),
    ]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.state.running = running
    return app


@asynccontextmanager
async def open_worker(
    settings: ServiceSettings,
    backend: Backend | None = None,
    abilities: WorkerAbilities | None = None,
    clock: Clock | None = None,
    metrics: Metrics | None = None,
) -> AsyncIterator[Worker]:
    """A worker with its connections."""
    engine, outages = make_engine(settings, backend), OutageLog()
    count = (metrics or Metrics()).count_finished_job
    store = Store(settings, clock)
    try:
        results = GroupCommitter(
            Queue(store).settle, store.writers, name="results", client_of=client_of
        )
        worker = Worker(
            store, results, engine, settings, abilities, outages=outages, on_finished=count
        )
        await worker.open()
        try:
            yield worker
        finally:
            await worker.close()
            await results.aclose()
    finally:
        await engine.aclose()
        store.close()


def run_worker(
    settings: ServiceSettings,
    abilities: WorkerAbilities | None = None,
    host: str = "127.0.0.1",
    port: int = 8001,
) -> None:
    """Work until a signal stops the process; unfinished jobs go to other workers."""
    serve(create_worker_app(settings, abilities=abilities), settings, host, port)
