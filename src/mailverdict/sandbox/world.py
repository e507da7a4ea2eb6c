"""`World`: the sandbox's servers under one roof, with a backend that asks only them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..local.backend import LocalBackend
from ..loop import run_sync
from .dns import DnsServer
from .dns_table import DomainRecords
from .zones import sandbox_zones

if TYPE_CHECKING:
    from .serving import ServiceThread

__all__ = ["SandboxBackend", "World"]

LOOPBACK = ("127.0.0.0/8", "::1/128")


class SandboxBackend(LocalBackend):
    """A local backend that asks a sandbox; what it learns of made-up domains is never kept.

    Parameters
    ----------
    **settings
        As of `mailverdict.LocalBackend`.
    """

    def wants_journal(self, validation_type: str) -> bool:
        """Whether answers are kept by default: never, they are about nobody."""
        return False

    def journal_key(self, validation_type: str) -> str:
        """Keep these answers apart from those about the real world, where a journal is asked for."""
        return f"sandbox:{validation_type}"


class World:
    """A mail world in a box: real servers on loopback, made-up domains, no packet leaves the machine.

    Use it as a context manager, in synchronous or asynchronous code.

    Parameters
    ----------
    zones : mapping of str to DomainRecords, optional
        Further names, or others for the same names.
    daily_limit : int
        Quota of the world's verification service, in addresses per client and day.
    **settings
        Settings of the backend, as of `mailverdict.LocalBackend`; the resolver and the networks
        that may be contacted are the sandbox's own.

    Attributes
    ----------
    dns : DnsServer
        Counts the queries that came.

    Examples
    --------
    >>> import mailverdict as mv
    >>> with mv.sandbox.World() as world:
    ...     out = mv.verify(["ada@gmail.com", "ada@gmial.com", "ada@gone.example"], backend=world.backend)
    >>> out["verdict"].tolist()
    ['valid', 'invalid', 'invalid']
    """

    def __init__(
        self, zones: Mapping[str, DomainRecords] | None = None, *, daily_limit: int = 100, **settings: Any
    ) -> None:
        self.dns = DnsServer({**sandbox_zones(), **(zones or {})})
        self.settings = settings
        self.daily_limit = daily_limit
        self._backend: SandboxBackend | None = None
        self._service: ServiceThread | None = None

    @property
    def backend(self) -> SandboxBackend:
        """A backend for `verify` and its siblings; one for the life of the world.

        Returns
        -------
        SandboxBackend
            Asks the sandbox's resolver, and loopback addresses only.
        """
        if self._backend is None:
            self._backend = self.make_backend()
        return self._backend

    @property
    def url(self) -> str:
        """Where the world's verification service listens; it is started when first asked for.

        Returns
        -------
        str
            For `backend=` of `verify`; every client there has `daily_limit` addresses a day.
        """
        return self.service().url

    def service(self) -> ServiceThread:
        """Start the service, once."""
        if self._service is None:
            from .serving import ServiceThread  # noqa: PLC0415 - an extra, and a server that few worlds need

            self._service = ServiceThread(self.make_backend(retry_greylisted=0), daily_limit=self.daily_limit)
        return self._service

    def next_day(self) -> None:
        """Move the service's clock on by a day, so that every quota is new."""
        self.service().next_day()

    def make_backend(self, **settings: Any) -> SandboxBackend:
        """Make another backend of this world.

        Parameters
        ----------
        **settings
            Beyond, or instead of, the world's own.

        Returns
        -------
        SandboxBackend
            A fresh one, with caches of its own.
        """
        own = {"resolver": self.dns.endpoint, "allow_networks": LOOPBACK, "dns_timeout": 0.5, "dns_attempts": 2}
        return SandboxBackend(**{**own, **self.settings, **settings})

    async def start(self) -> World:
        """Start the servers on the running loop.

        Returns
        -------
        World
            Itself.
        """
        await self.dns.start()
        return self

    async def stop(self) -> None:
        """Stop the servers and close the backend's sockets."""
        if self._service is not None:
            await asyncio.to_thread(self._service.stop)
            self._service = None
        if self._backend is not None:
            await self._backend.aclose()
            self._backend = None
        await self.dns.stop()

    def __enter__(self) -> World:
        """Start on the background loop."""
        return run_sync(self.start())

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop."""
        run_sync(self.stop())

    async def __aenter__(self) -> World:
        """Start on the caller's loop."""
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop."""
        await self.stop()
