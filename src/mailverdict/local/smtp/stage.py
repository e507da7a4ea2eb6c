"""The SMTP part of the local backend: sessions by exchange, answers by address, rows as they settle."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import replace
from datetime import datetime

import numpy as np

from ...backend import Event, Noticed, Settled, Waiting
from ...checks.smtp.providers import load_providers
from ...checks.smtp.transport.driver import Transcript
from ...model.evidence import DomainEvidence, MailboxEvidence
from ...model.settings import LocalSettings
from ...model.words import ValidationType
from ..batch import ColumnView
from ..domains import FLUSH_SECONDS, DomainRows, DomainStage, gather_groups
from .engine import Engine
from .identity import find_helo_name
from .results import Outbox, find_twins

__all__ = ["MailboxStage"]

FLUSH_ROWS = 5000  # rows that are handed on at once, though time is not up
NOT_ASKED = -1
PORT_CLOSED_NOTICE = (
    "no exchange could be connected to: outgoing connections to port 25 seem to be closed on this network, "
    "so that nothing could be established about any mailbox; mailverdict.audit_host() tells more"
)


class MailboxStage:
    """Asks the exchanges about mailboxes.

    Parameters
    ----------
    settings : LocalSettings
        Every limit and wait.
    domains : DomainStage
        Whose resolver is used.
    rng : random.Random, optional
        Jitter, names of probes, order of equal preferences.
    """

    def __init__(self, settings: LocalSettings, domains: DomainStage, rng: random.Random | None = None) -> None:
        self.settings = settings
        self.domains = domains
        self.rng = rng or random.Random()
        self.providers = load_providers()
        self.helo_name: str | None = None

    async def settle(self, view: ColumnView, clock: Callable[[], datetime]) -> AsyncGenerator[Event, None]:
        """Yield rows as they settle: dead domains first, then whatever an exchange has answered."""
        outbox = Outbox(view)
        engine = await self.engine(view, outbox)
        feeding = asyncio.create_task(self.feed(engine, view, outbox))
        feeding.add_done_callback(lambda _: engine.change.set())
        try:
            async for _ in self.pulse(engine, feeding):
                for event in self.drain(engine, outbox, clock):
                    yield event
            if engine.has_only_closed_ports() and len(view.texts) > 1:  # one closed port shows nothing of a network
                yield Noticed(PORT_CLOSED_NOTICE)
        finally:
            feeding.cancel()
            await engine.aclose()

    async def pulse(self, engine: Engine, feeding: asyncio.Task[None]) -> AsyncIterator[None]:
        """Keep an engine at work; beat when rows should be handed on, for the last time when it is done."""
        due = engine.clock() + FLUSH_SECONDS
        while not (feeding.done() and engine.is_done()):
            await engine.work(max(0.0, due - engine.clock()))
            if feeding.done():
                feeding.result()
            if engine.clock() >= due or len(engine.outbox) >= FLUSH_ROWS:
                yield
                due = engine.clock() + FLUSH_SECONDS
        yield

    async def engine(self, view: ColumnView, outbox: Outbox, transcript: Transcript | None = None) -> Engine:
        """An engine for one view; a lone address is not held back for minutes: whoever asks about one asks again."""
        settings = self.settings if len(view.texts) > 1 else replace(self.settings, retry_greylisted=0)
        if self.helo_name is None:
            self.helo_name = await find_helo_name(self.settings)
        resolver, name = self.domains.resolver, self.helo_name
        return Engine(
            settings, resolver, outbox, helo_name=name, providers=self.providers, rng=self.rng, transcript=transcript
        )

    async def ask_one(self, view: ColumnView, seen: DomainEvidence, transcript: Transcript) -> MailboxEvidence | None:
        """Ask about the only address of a view and keep every line of the dialogue."""
        outbox = Outbox(view)
        engine = await self.engine(view, outbox, transcript)
        try:
            engine.add_domain(0, seen, np.zeros(1, np.int64))
            while not engine.is_done():
                await engine.work(FLUSH_SECONDS)
        finally:
            await engine.aclose()
        return outbox.items[0][1]

    async def feed(self, engine: Engine, view: ColumnView, outbox: Outbox) -> None:
        """Look up every domain once; those with exchanges are queued, the others are settled."""
        positions, outbox.twins = find_twins(view, view.accepted())
        asked = np.full(len(view.texts), NOT_ASKED, np.int32)
        asked[positions] = outbox.codes[positions]
        rows = DomainRows(asked, len(view.syntax.domains))
        async for group in gather_groups(self.domains.observe(view.syntax.domains.to_pylist(), ValidationType.MX)):
            for code, seen, _ in group:
                engine.add_domain(code, seen, rows.of([code])[0])
            engine.change.set()

    def drain(self, engine: Engine, outbox: Outbox, clock: Callable[[], datetime]) -> list[Event]:
        """What has settled since the last look, and what is being waited for."""
        events: list[Event] = []
        if len(outbox):
            positions, table = outbox.take(clock())
            events.append(Settled(table, positions=positions))
        if (waiting := engine.waiting_for()) is not None:
            events.append(Waiting(*waiting))
        return events
