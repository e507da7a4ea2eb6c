"""The SMTP part of the local backend: sessions by exchange, answers by address, rows as they settle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from datetime import datetime

import numpy as np

from ..backend import Event, Noticed, Settled, Waiting
from ..checks.smtp.wire import Transcript
from ..model.evidence import DomainEvidence, MailboxEvidence
from ..model.settings import LocalSettings
from ..model.words import ValidationType
from .domains import FLUSH_SECONDS, DomainRows, DomainStage, gather_groups
from .engine import Engine
from .outbox import Outbox
from .view import ColumnView

__all__ = ["MailboxStage"]

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
    """

    def __init__(self, settings: LocalSettings, domains: DomainStage) -> None:
        self.settings = settings
        self.domains = domains

    async def settle(self, view: ColumnView, clock: Callable[[], datetime]) -> AsyncGenerator[Event, None]:
        """Yield rows as they settle: dead domains first, then whatever an exchange has answered."""
        rows = DomainRows(view.domain_codes(), len(view.syntax.domains))
        outbox = Outbox(view)
        engine = Engine(self.settings_for(view), self.domains.resolver, view, outbox)
        feeding = asyncio.create_task(self.feed(engine, view, rows))
        try:
            while not (feeding.done() and engine.is_idle()):
                await engine.changed(FLUSH_SECONDS)
                if feeding.done():
                    feeding.result()
                for event in self.drain(engine, outbox, clock):
                    yield event
            if engine.has_only_closed_ports():
                yield Noticed(PORT_CLOSED_NOTICE)
        finally:
            feeding.cancel()
            await engine.aclose()

    def settings_for(self, view: ColumnView) -> LocalSettings:
        """A lone address is not held back for minutes: whoever asks about one asks again."""
        return self.settings if len(view.texts) > 1 else replace(self.settings, retry_greylisted=0)

    async def ask_one(self, view: ColumnView, seen: DomainEvidence, transcript: Transcript) -> MailboxEvidence | None:
        """Ask about the only address of a view and keep every line of the dialogue."""
        outbox = Outbox(view)
        engine = Engine(self.settings_for(view), self.domains.resolver, view, outbox, transcript=transcript)
        try:
            engine.add_domain(0, seen, np.zeros(1, np.int64))
            while not len(outbox) or engine.tasks:
                await engine.changed(FLUSH_SECONDS)
        finally:
            await engine.aclose()
        return outbox.items[0][1]

    async def feed(self, engine: Engine, view: ColumnView, rows: DomainRows) -> None:
        """Look up every domain once; those with exchanges are queued, the others are settled."""
        domains = view.syntax.domains.to_pylist()
        async for group in gather_groups(self.domains.observe(domains, ValidationType.MX)):
            for code, seen, _ in group:
                engine.add_domain(code, seen, rows.of([code])[0])
            engine.pump()

    def drain(self, engine: Engine, outbox: Outbox, clock: Callable[[], datetime]) -> list[Event]:
        """What has settled since the last look, and what is being waited for."""
        events: list[Event] = []
        if len(outbox):
            positions, table = outbox.take(clock())
            events.append(Settled(table, positions=positions))
        if (waiting := engine.waiting_for()) is not None:
            events.append(Waiting(*waiting))
        return events
