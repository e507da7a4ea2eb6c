"""The servers that `benchmarks.service` measures, each in a separate process.

``python -m benchmarks.service_program echo PORT``, ``... fastapi PORT``, ``... queue PORT`` or ``... service PORT STORE
SECONDS``: a bare Starlette application that echoes JSON, a FastAPI application that does so or validates the address, a
Starlette application whose jobs are never done, or the service, whose engine takes SECONDS for each batch if that is
more than 0.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from mailverdict.backend import Batch, Event, Job
from mailverdict.local.backend import LocalBackend
from mailverdict.service import ServiceSettings, run

NO_LIMIT = 10**9


async def echo(request: Request) -> JSONResponse:
    return JSONResponse(await request.json())


def serve_echo(port: int) -> None:
    serve_app(Starlette(routes=[Route("/echo", echo, methods=["POST"])]), port)


def serve_app(app: Any, port: int) -> None:
    uvicorn.run(
        app, port=port, loop="uvloop", http="httptools", access_log=False, log_level="warning"
    )


def serve_fastapi(port: int) -> None:
    """What its documentation shows for JSON, and for an address in a body."""
    from fastapi import FastAPI
    from pydantic import BaseModel, EmailStr

    class Check(BaseModel):
        email: EmailStr
        validation_type: str

    async def check(given: Check) -> dict[str, str]:
        return {"email": given.email, "result": "valid"}

    check.__annotations__["given"] = Check  # annotations are texts here, and the class is local

    async def echo(given: dict[str, str]) -> dict[str, str]:
        return given

    app = FastAPI()
    app.post("/check")(check)
    app.post("/echo")(echo)
    serve_app(app, port)


def serve_queue(port: int) -> None:
    """Answer each poll as the contract has it for a job that waits, and count the polls."""
    meta = {"request_id": "r", "timestamp": "2026-01-02T03:04:05+00:00", "version": "v1"}
    polls = itertools.count()

    async def result(request: Request) -> JSONResponse:
        next(polls)
        record = {"email": "a@b.org", "status": "queued", "verification": None}
        data = {"job_id": request.path_params["job_id"], "result": record}
        return JSONResponse({"success": True, "data": data, "meta": meta})

    async def count(request: Request) -> JSONResponse:
        return JSONResponse(next(polls))

    serve_app(
        Starlette(
            routes=[Route("/api/verification-result/{job_id}", result), Route("/polls", count)]
        ),
        port,
    )


class SlowBackend(LocalBackend):
    """The local backend with a delay, so that a kill interrupts batches."""

    seconds = 0.0

    async def verify(self, batch: Batch, in_flight: Sequence[Job] = ()) -> AsyncIterator[Event]:
        """Wait, then verify."""
        await asyncio.sleep(self.seconds)
        async for event in super().verify(batch, in_flight):
            yield event


def serve(port: int, store: str, seconds: float) -> None:
    """The service with durable quota, rate limiter and access log; no limit is ever reached."""
    backend = SlowBackend() if seconds else LocalBackend()
    if isinstance(backend, SlowBackend):
        backend.seconds = seconds
    settings = ServiceSettings(
        store=f"sqlite:///{store}",
        daily_limit=NO_LIMIT,
        rate_limit=float(NO_LIMIT),
        rate_burst=NO_LIMIT,
        queue_limit=NO_LIMIT,
        trusted_proxies=("127.0.0.1",),  # type: ignore[arg-type]
    )
    run(settings, "127.0.0.1", port, backend=backend)


if __name__ == "__main__":
    kind, port = sys.argv[1], int(sys.argv[2])
    if kind == "service":
        serve(port, sys.argv[3], float(sys.argv[4]))
    else:
        {"echo": serve_echo, "fastapi": serve_fastapi, "queue": serve_queue}[kind](port)
