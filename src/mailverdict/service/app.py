"""`create_app`: the service as an ASGI application."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from ..backend import Backend
from .http.access import Access, answer_refusal
from .http.replies import Refusal, short
from .http.routes import Endpoints
from .jobs.group_committer import Closed
from .jobs.worker import AWAY
from .service_state import Parts
from .settings import Clock, ServiceSettings

__all__ = ["create_app"]

ACCESS_LOG = logging.getLogger("mailverdict.service.requests")


def create_app(
    settings: ServiceSettings | None = None,
    backend: Backend | None = None,
    *,
    clock: Clock = time.time,
    log: Callable[[str], object] = ACCESS_LOG.info,
) -> Starlette:
    """Make the service's ASGI application.

    It opens its store when the server starts it, or with the first request where the server runs no
    lifespan, and closes it with the lifespan.

    Parameters
    ----------
    settings : ServiceSettings, optional
        What the service goes by.
    backend : Backend, optional
        What verifies; a `mailverdict.LocalBackend` with ``settings.local`` by default. It is closed
        with the application.
    clock : callable, optional
        Seconds since the epoch; decides on the quota's day and on retries.
    log : callable, optional
        Takes each line of the access log; the logger ``mailverdict.service.requests`` by default.

    Returns
    -------
    starlette.applications.Starlette
        For any ASGI server. One process per store.

    Examples
    --------
    >>> from mailverdict.service import ServiceSettings, create_app
    >>> app = create_app(ServiceSettings(daily_limit=500))
    >>> sorted(route.path for route in app.routes)[:3]
    ['/', '/api/bulk-check-email', '/api/check-email']
    """
    settings = settings or ServiceSettings()
    parts = Parts(settings, backend, clock)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await parts.ensure_open()
        try:
            yield
        finally:
            await parts.close()

    app = Starlette(
        routes=Endpoints(settings, parts).routes(),
        middleware=[
            Middleware(Access, settings=settings, metrics=parts.metrics, open_parts=parts.ensure_open, log=log)
        ],
        exception_handlers={Refusal: refused, HTTPException: not_found, **dict.fromkeys((Closed, *AWAY), away)},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # a redirect is no answer in any envelope
    app.state.parts = parts
    return app


async def refused(request: Request, exc: Exception) -> Response:
    """Answer what an endpoint refused."""
    assert isinstance(exc, Refusal)
    return answer_refusal(exc, request.scope["trace"])


async def not_found(request: Request, exc: Exception) -> Response:
    """No such path, or not with this method."""
    assert isinstance(exc, HTTPException)
    code, message = PLAIN.get(exc.status_code, PLAIN[404])
    return answer_refusal(short(code, message, headers=exc.headers), request.scope["trace"])


PLAIN = {
    404: ("NOT_FOUND", "there is nothing at this path; /openapi.json lists what there is"),
    405: ("METHOD_NOT_ALLOWED", "this path does not take this method"),
}


async def away(request: Request, _: Exception) -> Response:
    """The store is away: nothing was promised, and asking again makes sense."""
    refusal = short("E1005", "the service's store is not available; ask again later", headers={"retry-after": "5"})
    return answer_refusal(refusal, request.scope["trace"])
