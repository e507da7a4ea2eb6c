"""`World`: the sandbox's DNS, SMTP and HTTP servers, and a backend that asks only them."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..backend import Batch, Event, Job, Settled
from ..checks.smtp.protocol.session import Session, SessionEnd
from ..checks.smtp.transport.driver import drive_session
from ..local.backend import LocalBackend, check_names, utc_now
from ..local.smtp.stage import MailboxStage
from ..loop import run_sync
from ..model.arrow import Bools
from ..model.settings import Lists, LocalSettings
from ..model.words import Reason, Verdict
from .dns import DnsServer
from .dns_table import DomainRecords
from .examples import ADDRESSES, SPAMTRAP_DOMAIN, Example
from .smtp import LOCALHOST, SmtpServer
from .smtp_script import EXCHANGES, PROVIDER_EXCHANGES, Exchange
from .zones import CLIENT, sandbox_zones

if TYPE_CHECKING:
    from .serving import ServiceThread

__all__ = ["SandboxBackend", "World"]

LOOPBACK = ("127.0.0.0/8",)
CLOSED_PORT = 9  # the discard port, where nothing listens
# Loopback answers at once, so that all timeouts can be short.
SHORT_TIMEOUTS: Mapping[str, Any] = {
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


# For addresses whose server was silent though its script does not say so: the machine was busy.
LONG_TIMEOUTS: Mapping[str, Any] = {
    "dns_timeout": 10.0,
    "dns_attempts": 3,
    "connect_timeout": 30.0,
    "command_timeout": 30.0,
    "deadline": 300.0,
    "session_deadline": 120.0,
}
# What a silence leads to; without a reason it was that of the resolver.
SILENT_REASONS = (
    *("", Reason.TIMEOUT, Reason.CONNECTION_DROPPED, Reason.NO_SMTP_DATA),
    *(Reason.PORT_CLOSED, Reason.INCONCLUSIVE),
)


class SandboxBackend(LocalBackend):
    """A local backend that asks a sandbox; its answers are not kept unless a journal is given.

    On a busy machine a server of the sandbox may answer too late. Such a silence does not count: an
    address without a clear answer that its script does not explain is asked again, with long
    timeouts.

    Parameters
    ----------
    **settings
        As of `mailverdict.LocalBackend`.
    """

    label = "the sandbox (made-up servers)"  # on the audit page
    ports: Mapping[str, int] = {}  # of mail servers by address, where all listen on 127.0.0.1
    world: World | None = None  # whose scripts say which silence is meant

    @property
    def mailboxes(self) -> MailboxStage:
        """The stage that asks the mail servers."""
        stage = super().mailboxes
        if self.ports:
            stage.drive = self.drive
        return stage

    async def drive(
        self, session: Session, addresses: Sequence[str], *rest: Any, **options: Any
    ) -> SessionEnd:
        """Run a session at the port that stands for an address."""
        options["port"] = self.ports.get(addresses[0], CLOSED_PORT)
        return await drive_session(session, [LOCALHOST], *rest, **options)

    async def verify(self, batch: Batch, in_flight: Sequence[Job] = ()) -> AsyncIterator[Event]:
        """Verify a batch; rows that a busy machine may have spoilt come last."""
        if self.world is None or self.is_free(batch.validation_type):
            async for event in super().verify(batch, in_flight):
                yield event
            return
        if batch.fields is not None:
            batch = replace(batch, fields=batch.fields | {"result", "reasons"})
        again: list[int] = []
        async for event in super().verify(batch, in_flight):
            if not isinstance(event, Settled) or event.positions is None:
                yield event
                continue
            is_spoilt = self.world.find_spoilt(event.rows)
            again += event.positions[is_spoilt].tolist()
            if not is_spoilt.all():
                rows = event.rows.filter(pa.array(~is_spoilt))
                yield replace(event, rows=rows, positions=event.positions[~is_spoilt])
        if not again:
            return
        positions = np.array(again, np.int64)
        addresses = batch.addresses.take(pa.array(positions))
        rest = replace(batch, addresses=addresses, syntax=None, clients=None)
        settings = replace(self.settings, **LONG_TIMEOUTS)
        async with SandboxBackend.from_settings(settings, clock=self.clock) as patient:
            patient.ports = self.ports
            async for event in patient.verify(rest):
                if isinstance(event, Settled) and event.positions is not None:
                    event = replace(event, positions=positions[event.positions])  # noqa: PLW2901
                yield event

    def wants_journal(self, validation_type: str) -> bool:
        """False: the answers are about made-up domains."""
        return False

    def journal_key(self, validation_type: str) -> str:
        """A key of their own, so that a journal keeps these answers apart from real ones."""
        return f"sandbox:{validation_type}"


class World:
    """DNS, SMTP and verification servers on loopback, with made-up domains.

    Use it as a context manager, in synchronous or asynchronous code. No packet leaves the machine.

    Parameters
    ----------
    zones : mapping of str to DomainRecords, optional
        Names to add, or to replace.
    exchanges : iterable of Exchange, optional
        Mail servers to add, or to replace; ``mx.shop.example`` is the mail server of
        ``shop.example``.
    daily_limit : int
        Quota of the world's verification service, in addresses per client and day.
    **settings
        Settings of the backend, as of `mailverdict.LocalBackend`. Those that lead to the sandbox's
        servers have other defaults here, and all timeouts are short.

    Attributes
    ----------
    dns : DnsServer
        Counts queries.
    smtp : SmtpServer
        Counts sessions and commands of each mail server.

    Warns
    -----
    UserWarning
        On start, if the addresses of the mail servers cannot be bound: ``smtp`` then finds every
        port closed.

    Examples
    --------
    >>> import mailverdict as mv
    >>> with mv.sandbox.World() as world:
    ...     emails = ["ada@gmail.com", "ada@gmial.com", "ada@gone.example"]
    ...     out = mv.verify(emails, backend=world.backend)
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
        scripts = {
            exchange.host: exchange for exchange in (*PROVIDER_EXCHANGES, *EXCHANGES, *exchanges)
        }
        self.smtp = SmtpServer(scripts.values())
        domains = {**exchange_domains(self.smtp), **sandbox_zones()}
        self.dns = DnsServer({**domains, **exchange_hosts(self.smtp), **(zones or {})})
        self.settings = settings
        self.daily_limit = daily_limit
        self._backend: SandboxBackend | None = None
        self._service: ServiceThread | None = None

    @property
    def backend(self) -> SandboxBackend:
        """The backend for `verify` and other functions, one for each world.

        Returns
        -------
        SandboxBackend
            Asks the sandbox's resolver and connects to loopback addresses only.
        """
        if self._backend is None:
            self._backend = self.make_backend()
        return self._backend

    @property
    def addresses(self) -> tuple[Example, ...]:
        """Addresses with their verdicts; ``pandas.DataFrame(world.addresses)`` shows them.

        Returns
        -------
        tuple of Example
            With `address`, `verdict`, `reasons` and `why`.
        """
        return ADDRESSES

    @property
    def url(self) -> str:
        """URL of the world's verification service, which is started when this is first read.

        Returns
        -------
        str
            For `backend=` of `verify`; every client has a quota of `daily_limit` addresses per day.
        """
        return self.service().url

    def service(self) -> ServiceThread:
        """The running service, started at the first call."""
        if self._service is None:
            # An extra, and a server that few worlds need.
            from .serving import ServiceThread  # noqa: PLC0415

            self._service = ServiceThread(
                self.make_backend(retry_greylisted=0), daily_limit=self.daily_limit
            )
        return self._service

    def next_day(self) -> None:
        """Move the service's clock forward by a day, so that every quota is reset."""
        self.service().next_day()

    def make_backend(self, **settings: Any) -> SandboxBackend:
        """Make another backend of this world.

        Parameters
        ----------
        **settings
            In addition to the world's own, or instead of them.

        Returns
        -------
        SandboxBackend
            With empty caches.
        """
        defaults = {
            **SHORT_TIMEOUTS,
            "resolver": self.dns.endpoint,
            "smtp_port": self.smtp.port or CLOSED_PORT,
            "allow_networks": LOOPBACK,
            "helo_name": CLIENT,
            "lists": Lists(spamtrap=(SPAMTRAP_DOMAIN,)),
        }
        wanted = {**defaults, **self.settings, **settings}
        clock = wanted.pop("clock", utc_now)
        check_names(wanted)
        backend = SandboxBackend.from_settings(LocalSettings(**wanted), clock=clock)
        backend.ports = self.smtp.ports
        backend.world = self
        return backend

    def find_spoilt(self, rows: pa.Table) -> Bools:
        """Rows without a clear answer for a silence that no script explains."""
        is_spoilt = np.zeros(len(rows), np.bool_)
        is_unknown = pc.equal(rows["result"].cast(pa.string()), str(Verdict.UNKNOWN))
        for at in pc.indices_nonzero(is_unknown.fill_null(False)).to_pylist():
            reason = (rows["reasons"][at].as_py() or "").partition(";")[0]
            domain = rows["email"][at].as_py().rpartition("@")[2].lower()
            is_spoilt[at] = reason in SILENT_REASONS and not self.explains(domain, reason)
        return is_spoilt

    def explains(self, domain: str, reason: str) -> bool:
        """Whether the DNS or a mail server of a domain gives no clear answer for this reason."""
        records = self.dns.records_of(domain)
        if records is None:
            return False
        if records.faults or records.delay or "CNAME" in records.records:
            return True
        hosts = [text.split()[-1].rstrip(".") for text in records.records.get("MX", ())]
        for host in hosts or [domain]:
            if host not in self.smtp.exchanges:
                return True  # one without a server, or with an address that is not contacted
            exchange = self.smtp.exchanges[host]
            if reason in exchange.expects.values():
                return True
            if exchange.faults and not exchange.expects:  # of the user's own
                return True
        return False

    async def start(self) -> World:
        """Start the servers on the running event loop.

        Returns
        -------
        World
            Itself.
        """
        await self.dns.start()
        try:
            await self.smtp.start()
        except OSError as exc:
            warnings.warn(
                f"the sandbox's mail servers cannot be started here: {exc}",
                UserWarning,
                stacklevel=2,
            )
        return self

    async def stop(self) -> None:
        """Stop the servers and close the backend."""
        if self._service is not None:
            await asyncio.to_thread(self._service.stop)
            self._service = None
        if self._backend is not None:
            await self._backend.aclose()
            self._backend = None
        await self.smtp.stop()
        await self.dns.stop()

    def __enter__(self) -> World:
        return run_sync(self.start())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        run_sync(self.stop())

    async def __aenter__(self) -> World:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()


def exchange_domains(smtp: SmtpServer) -> dict[str, DomainRecords]:
    """MX records of the scripted exchanges: ``mx.plain.example`` for ``plain.example``."""
    records = {}
    for exchange in smtp.exchanges.values():
        if exchange.host.startswith("mx."):
            records[exchange.domain] = DomainRecords({"MX": (f"10 {exchange.host}",)})
    return records


def exchange_hosts(smtp: SmtpServer) -> dict[str, DomainRecords]:
    return {host: DomainRecords({"A": (smtp.address_of(host),)}) for host in smtp.exchanges}
