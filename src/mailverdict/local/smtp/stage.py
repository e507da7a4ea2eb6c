"""`MailboxStage`: the SMTP part of the local backend.

It looks up domains, asks their mail servers and yields rows.

The runs of one backend on one event loop share an `SmtpPool`: the sessions with mail servers, their
limits and what was observed of them. Each run has its `Recipients`, which wait in the queues of the
`SmtpExchange`s of their domains.

    domain x.example, addresses 4, 7, 9
    -> look_up_domains: mx1.x.example, mx2.x.example -> Recipients.add
    -> run_to_end: sessions ask, addresses settle -> collect_events: rows every fifth of a second
"""

from __future__ import annotations

import asyncio
import random
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from weakref import WeakKeyDictionary

import numpy as np

from ...backend import Event, Noticed, Settled, Waiting
from ...checks.operators import load_behaviour
from ...checks.smtp.classify.classifier import prepare_rules
from ...checks.smtp.transport.driver import Transcript, drive_session
from ...model.evidence import DomainEvidence, MailboxEvidence, SyntaxEvidence
from ...model.settings import LocalSettings
from ...model.words import ValidationType
from ..batch import ObservedBatch
from ..domains import FLUSH_SECONDS, DomainRows, DomainStage, gather_groups
from .exchange import Client
from .pool import SmtpPool
from .recipients import (
    FLUSH_ROWS,
    SHORTEST_WAIT,
    OneResult,
    Recipients,
    ResultBuffer,
    find_aliases,
)

NOT_ASKED = -1
FULL_NAME = re.compile(r"(?=.{4,253}\Z)(?:(?!-)[A-Za-z0-9-]{1,63}(?<!-)\.)+[A-Za-z][A-Za-z0-9-]*")


class MailboxStage:
    """Asks the mail servers about mailboxes.

    With `is_part` a batch, even of one address, is part of a column.
    """

    def __init__(
        self, settings: LocalSettings, domains: DomainStage, *, is_part: bool = False
    ) -> None:
        self.settings = settings
        self.domains = domains
        self.is_part = is_part
        self.drive = drive_session
        self.rng = random.Random()
        self.operators = load_behaviour()
        self.helo_name: str | None = None
        self.pools: WeakKeyDictionary[asyncio.AbstractEventLoop, SmtpPool] = WeakKeyDictionary()

    async def settle(
        self,
        batch: ObservedBatch,
        clock: Callable[[], datetime],
        clients: Sequence[Client] | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Yield rows as they settle: domains without exchanges first, then the others.

        `clients` says for whom each address is; None: the run is a client of its own.
        """
        results = ResultBuffer(batch)
        is_column = self.is_part or len(batch) > 1
        async with self.open_run(results, clients, is_column=is_column) as run:
            look_ups = asyncio.create_task(self.look_up_domains(run, batch, results))
            look_ups.add_done_callback(lambda _: run.wake())
            try:
                async for _ in self.run_to_end(run, look_ups):
                    for event in self.collect_events(run, results, clock):
                        yield event
                for notice in [*self.domains.take_notices(), *run.notices()]:
                    yield Noticed(notice)
            finally:
                look_ups.cancel()

    async def ask_one(
        self,
        syntax: SyntaxEvidence,
        seen: DomainEvidence,
        client: Client = None,
        transcript: Transcript | None = None,
    ) -> MailboxEvidence | None:
        """Ask about one address; `transcript` receives the lines of the dialogue."""
        result = OneResult(syntax)
        clients = None
        if client is not None:
            clients = [client]
        async with self.open_run(result, clients, transcript) as run:
            run.add(0, seen, np.zeros(1, np.int64))
            while not run.is_done():
                await run.wait(FLUSH_SECONDS)
                run.settle_held()
        return result.evidence

    @asynccontextmanager
    async def open_run(
        self,
        results: ResultBuffer | OneResult,
        clients: Sequence[Client] | None,
        transcript: Transcript | None = None,
        *,
        is_column: bool = False,
    ) -> AsyncIterator[Recipients]:
        """A run; a single address is not asked again when greylisted, since its caller waits."""
        wait = 0.0
        if is_column:
            wait = self.settings.retry_greylisted
        pool = await self.find_pool(transcript)
        run = Recipients(pool, results, clients=clients, retry_greylisted=wait)
        try:
            yield run
        finally:
            await run.aclose()

    async def find_pool(self, transcript: Transcript | None) -> SmtpPool:
        """The pool of this event loop.

        A run with a transcript has its own, since it shows a whole dialogue.
        """
        if self.helo_name is None:
            self.helo_name = await find_helo_name(self.settings)
        prepare_rules()
        loop = asyncio.get_running_loop()
        if transcript is None and loop in self.pools:
            return self.pools[loop]
        pool = SmtpPool(
            self.settings,
            self.domains.resolver,
            helo_name=self.helo_name,
            operators=self.operators,
            rng=self.rng,
            transcript=transcript,
            drive=self.drive,
        )
        if transcript is None:
            self.pools[loop] = pool
        return pool

    async def look_up_domains(
        self, run: Recipients, batch: ObservedBatch, results: ResultBuffer
    ) -> None:
        """Look up every domain once; those with exchanges are queued, the others are settled."""
        positions, results.aliases = find_aliases(batch, batch.accepted())
        asked = np.full(len(batch), NOT_ASKED, np.int32)
        asked[positions] = results.codes[positions]
        rows = DomainRows(asked, len(batch.domains))
        look_ups = self.domains.observe(batch.domain_names(), ValidationType.MX)
        async for group in gather_groups(look_ups):
            for seen in group:
                addresses, _ = rows.of([seen.code])
                run.add(seen.code, seen.dns, addresses)
            run.wake()

    async def run_to_end(
        self, run: Recipients, look_ups: asyncio.Task[None]
    ) -> AsyncIterator[None]:
        """Ask until all is settled; yield when rows should be made, and once more at the end."""
        clock = run.pool.clock
        due = clock() + FLUSH_SECONDS
        while not (look_ups.done() and run.is_done()):
            await run.wait(max(SHORTEST_WAIT, due - clock()))
            if look_ups.done():
                look_ups.result()
                run.settle_held()
            if clock() >= due or len(run.results) >= FLUSH_ROWS:
                yield
                due = clock() + FLUSH_SECONDS
        yield

    def collect_events(
        self, run: Recipients, results: ResultBuffer, clock: Callable[[], datetime]
    ) -> list[Event]:
        """The rows that have settled since the last time, and what is being waited for."""
        events: list[Event] = []
        if len(results):
            positions, table = results.take(clock())
            events.append(Settled(table, positions=positions))
        waiting = run.waiting_for()
        if waiting is not None:
            seconds, why = waiting
            events.append(Waiting(seconds, why))
        return events


async def find_helo_name(settings: LocalSettings) -> str:
    """The name for EHLO: as set, else the host's full name.

    It is ``localhost`` if the host has none; many servers refuse that, and `audit_host` reports it.
    """
    if settings.helo_name is not None:
        return settings.helo_name
    name = await asyncio.to_thread(socket.getfqdn)
    return name if FULL_NAME.fullmatch(name) else "localhost"
