"""`World`: the sandbox's servers under one roof, with a backend that asks only them."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..local.backend import LocalBackend
from ..loop import run_sync
from ..model.settings import Lists
from .dns import DnsServer
from .dns_table import DomainRecords
from .examples import ADDRESSES, SPAMTRAP_DOMAIN, Example
from .smtp import SmtpServer
from .smtp_script import EXCHANGES, PROVIDER_EXCHANGES, Exchange
from .zones import CLIENT, sandbox_zones

if TYPE_CHECKING:
    from .serving import ServiceThread

__all__ = ["SandboxBackend", "World"]

LOOPBACK = ("127.0.0.0/8", "::1/128")
NOBODYS_PORT = 9  # discard: where nothing listens
# What loopback needs: a wait is over within seconds, and nothing hostile lasts.
QUICK: Mapping[str, Any] = {
    "dns_timeout": 0.5,
    "dns_attempts": 2,
    "connect_timeout": 1.0,
    "command_timeout": 2.0,
    "deadline": 8.0,
    "session_deadline": 5.0,
    "backoff_min": 0.05,
    "backoff_max": 0.5,
    "retry_greylisted": 2.0,
}


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
    exchanges : iterable of Exchange, optional
        Further exchanges, or others for the same hosts; a domain leads to ``mx.`` below it.
    daily_limit : int
        Quota of the world's verification service, in addresses per client and day.
    **settings
        Settings of the backend, as of `mailverdict.LocalBackend`; the resolver and the networks
        that may be contacted are the sandbox's own.

    Attributes
    ----------
    dns : DnsServer
        Counts the queries that came.
    smtp : SmtpServer
        Counts sessions and commands, exchange by exchange.

    Warns
    -----
    UserWarning
        On start, if the addresses of the exchanges cannot be bound, as outside Linux: ``smtp`` finds every port
        closed then.

    Examples
    --------
    >>> import mailverdict as mv
    >>> with mv.sandbox.World() as world:
    ...     out = mv.verify(["ada@gmail.com", "ada@gmial.com", "ada@gone.example"], backend=world.backend)
    >>> out["verdict"].tolist()
    ['valid', 'invalid', 'invalid']
    """

    def __init__(
        self,
        zones: Mapping[str, DomainRecords] | None = None,
        *,
        exchanges: Iterable[Exchange] = (),
        daily_limit: int = 100,
        **settings: Any,
    ) -> None:
        playing = {each.host: each for each in (*PROVIDER_EXCHANGES, *EXCHANGES, *exchanges)}
        self.smtp = SmtpServer(playing.values())
        domains = {**exchange_domains(self.smtp), **sandbox_zones()}
        self.dns = DnsServer({**domains, **exchange_hosts(self.smtp), **(zones or {})})
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
    def addresses(self) -> tuple[Example, ...]:
        """Addresses to try, with what becomes of each and why; ``pandas.DataFrame(world.addresses)`` shows them.

        Returns
        -------
        tuple of Example
            With `address`, `verdict`, `reasons` and `why`.
        """
        return ADDRESSES

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
        own = {
            **QUICK,
            "resolver": self.dns.endpoint,
            "smtp_port": self.smtp.port or NOBODYS_PORT,
            "allow_networks": LOOPBACK,
            "helo_name": CLIENT,
            "lists": Lists(spamtrap=(SPAMTRAP_DOMAIN,)),
        }
        return SandboxBackend(**{**own, **self.settings, **settings})

    async def start(self) -> World:
        """Start the servers on the running loop.

        Returns
        -------
        World
            Itself.
        """
        await self.dns.start()
        try:
            await self.smtp.start()
        except OSError as exc:
            warnings.warn(f"the sandbox's exchanges cannot be played here: {exc}", UserWarning, stacklevel=2)
        return self

    async def stop(self) -> None:
        """Stop the servers and close the backend's sockets."""
        if self._service is not None:
            await asyncio.to_thread(self._service.stop)
            self._service = None
        if self._backend is not None:
            await self._backend.aclose()
            self._backend = None
        await self.smtp.stop()
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


def exchange_domains(smtp: SmtpServer) -> dict[str, DomainRecords]:
    """Domains that lead to the scripted exchanges: ``plain.example`` to ``mx.plain.example``."""
    scripted = {each.domain: each.host for each in smtp.exchanges.values() if each.host.startswith("mx.")}
    return {domain: DomainRecords({"MX": (f"10 {host}",)}) for domain, host in scripted.items()}


def exchange_hosts(smtp: SmtpServer) -> dict[str, DomainRecords]:
    """Where each exchange listens."""
    return {host: DomainRecords({"A": (smtp.address_of(host),)}) for host in smtp.exchanges}
