"""The servers that `benchmarks.service` measures, each in a separate process.

``python -m benchmarks.service_program echo PORT``, ``... fastapi PORT`` or ``... service PORT STORE SECONDS``: a bare
Starlette application that echoes JSON, a FastAPI application that does so or validates the address, or the service,
whose engine takes SECONDS for each batch if that is more than 0.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence

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
    app = Starlette(routes=[Route("/echo", echo, methods=["POST"])])
    uvicorn.run(app, port=port, loop="uvloop", http="httptools", access_log=False, log_level="warning")


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
    uvicorn.run(app, port=port, loop="uvloop", http="httptools", access_log=False, log_level="warning")


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
    if sys.argv[1] == "echo":
        serve_echo(int(sys.argv[2]))
    elif sys.argv[1] == "fastapi":
        serve_fastapi(int(sys.argv[2]))
    else:
        serve(int(sys.argv[2]), sys.argv[3], float(sys.argv[4]))
