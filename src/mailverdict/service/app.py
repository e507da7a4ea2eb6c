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
from .http.access import AccessMiddleware, error_response
from .http.replies import RequestRefused, short_error
from .http.routes import Endpoints
from .jobs.group_committer import CommitterClosed
from .jobs.worker import STORE_UNAVAILABLE
from .service_state import ServiceState
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
    state = ServiceState(settings, backend, clock)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await state.ensure_open()
        try:
            yield
        finally:
            await state.close()

    app = Starlette(
        routes=Endpoints(settings, state).routes(),
        middleware=[
            Middleware(
                AccessMiddleware, settings=settings, metrics=state.metrics, open_state=state.ensure_open, log=log
            )
        ],
        exception_handlers={
            RequestRefused: refused,
            HTTPException: not_found,
            **dict.fromkeys((CommitterClosed, *STORE_UNAVAILABLE), away),
        },
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # a redirect is no answer in any envelope
    app.state.service = state
    return app


async def refused(request: Request, exc: Exception) -> Response:
    """Answer what an endpoint refused."""
    assert isinstance(exc, RequestRefused)
    return error_response(exc, request.scope["trace"])


async def not_found(request: Request, exc: Exception) -> Response:
    """No such path, or not with this method."""
    assert isinstance(exc, HTTPException)
    code, message = PLAIN.get(exc.status_code, PLAIN[404])
    return error_response(short_error(code, message, headers=exc.headers), request.scope["trace"])


PLAIN = {
    404: ("NOT_FOUND", "there is nothing at this path; /openapi.json lists what there is"),
    405: ("METHOD_NOT_ALLOWED", "this path does not take this method"),
}


async def away(request: Request, _: Exception) -> Response:
    """The store is away: nothing was promised, and asking again makes sense."""
    message = "the service's store is not available; ask again later"
    refusal = short_error("E1005", message, headers={"retry-after": "5"})
    return error_response(refusal, request.scope["trace"])
