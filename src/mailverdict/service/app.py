"""`create_app`: the service as an ASGI application."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.types import ASGIApp

from ..backend import Backend
from .http.access import AccessMiddleware
from .http.routes import Endpoints
from .keys import KeyRing
from .service_state import ServiceState
from .settings import Clock, ServiceSettings

ACCESS_LOG = logging.getLogger("mailverdict.service.requests")


def create_app(
    settings: ServiceSettings | None = None,
    backend: Backend | None = None,
    *,
    clock: Clock | None = None,
    log: Callable[[str], object] = ACCESS_LOG.info,
) -> Starlette:
    """Make the service's ASGI application.

    It opens its store at the start of the lifespan, or with the first request if the server runs no
    lifespan, and closes it at the end of the lifespan.

    Parameters
    ----------
    settings : ServiceSettings, optional
        The settings; the defaults if not given.
    backend : Backend, optional
        What verifies addresses; a `mailverdict.LocalBackend` with ``settings.local`` by default. It
        is closed with the application.
    clock : callable, optional
        Returns seconds since the epoch; decides the quota's day and when retries are due. By
        default the clock of this process, or with PostgreSQL the clock of the database.
    log : callable, optional
        Gets each line of the access log; the logger ``mailverdict.service.requests`` by default.

    Returns
    -------
    starlette.applications.Starlette
        For any ASGI server. Only one process can use a store on SQLite.

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

    endpoints = Endpoints(settings, state)
    keys = None
    if settings.key_file is not None:
        keys = KeyRing(settings.key_file)
    app = ServiceApplication(routes=endpoints.routes(), lifespan=lifespan)
    app.router.redirect_slashes = False  # a redirect would have no envelope
    app.access = AccessMiddleware(
        app.router,
        settings=settings,
        state=state,
        log=log,
        endpoints=endpoints.by_path(),
        keys=keys,
    )
    app.state.service = state
    return app


class ServiceApplication(Starlette):
    """Starlette whose router is wrapped by `access`, and by the middleware that a user adds.

    Starlette's own two layers turn exceptions into replies; `access` does that with the envelopes
    of the contract, and without them a single check takes 2 % less time.
    """

    access: AccessMiddleware

    def build_middleware_stack(self) -> ASGIApp:
        """The layers around the router, from the inside."""
        app: ASGIApp = self.access
        for middleware, arguments, options in reversed(self.user_middleware):
            app = middleware(app, *arguments, **options)
        return app
