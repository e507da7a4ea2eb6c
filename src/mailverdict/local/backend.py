"""`LocalBackend`: the engine on this machine, for one address or millions."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pyarrow as pa

from ..backend import Batch, Event, Job, Settled
from ..checks.lists.flags import load_lists
from ..model.settings import LocalSettings
from ..model.table import SOURCE_LOCAL
from ..model.words import ValidationType
from .batch import ColumnView, observe_view
from .domains import DomainStage
from .smtp.engine import MailboxStage

__all__ = ["LocalBackend"]


def utc_now() -> datetime:
    """The moment a row is checked at."""
    return datetime.now(UTC)


def keyword_only(signature: inspect.Signature) -> inspect.Signature:
    """The signature of the settings, as this class takes them."""
    only = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in signature.parameters.values()]
    return signature.replace(parameters=only, return_annotation=inspect.Signature.empty)


# Settings by which the same address may get another answer; the others are pace and patience.
SHAPING = ("resolver", "smtp_port", "allow_networks", "blacklist", "lists")


def rebuild(kind: type[LocalBackend], clock: Callable[[], datetime], settings: dict[str, Any]) -> LocalBackend:
    """Make a pickled backend again."""
    return kind(clock=clock, **settings)


class LocalBackend:
    """Verify on this machine: syntax, lists, DNS, blacklists and SMTP.

    ``regex`` needs no network; ``mx`` and ``mx_blacklist`` ask the DNS; ``smtp`` also connects to
    port 25 of the exchanges. No quota is spent.

    Parameters
    ----------
    **settings
        The attributes of `mailverdict.LocalSettings`, with its defaults: `resolver`, `smtp_port`,
        `helo_name`, `mail_from`, `dns_concurrency`, `max_sessions_per_exchange`,
        `connect_timeout`, `command_timeout`, `deadline`, `retry_greylisted`, `allow_networks`,
        `blacklist`, `lists` and more.

    Raises
    ------
    SettingsError
        If a value cannot work; the message names the setting, the value and what to give.

    Examples
    --------
    >>> import mailverdict as mv
    >>> backend = mv.LocalBackend(resolver="127.0.0.1:5353", dns_timeout=2)
    >>> backend.settings.dns_timeout
    2.0
    """

    __signature__ = keyword_only(inspect.signature(LocalSettings))
    source = SOURCE_LOCAL

    def __init__(self, *, clock: Callable[[], datetime] = utc_now, **settings: Any) -> None:
        self.settings = LocalSettings(**settings)
        self.clock = clock
        self.domains = DomainStage(self.settings)
        self.mailboxes = MailboxStage(self.settings, self.domains)

    def __repr__(self) -> str:
        """Show the settings that differ from the defaults."""
        default = LocalSettings()
        names = LocalSettings.__dataclass_fields__
        changed = [n for n in names if getattr(self.settings, n) != getattr(default, n)]
        return f"LocalBackend({', '.join(f'{n}={getattr(self.settings, n)!r}' for n in changed)})"

    def is_free(self, validation_type: str) -> bool:
        """Whether the type needs no network: only ``regex``."""
        return validation_type == ValidationType.REGEX

    def wants_journal(self, validation_type: str) -> bool:
        """Whether answers are dear enough to keep by default: only ``smtp``."""
        return validation_type == ValidationType.SMTP

    def journal_key(self, validation_type: str) -> str:
        """Local answers are comparable where the settings that shape them are the same."""
        return f"{self.source}:{validation_type}{self.settings_digest()}"

    def settings_digest(self) -> str:
        """Empty for the defaults; else a short name of whom is asked, what is blacklisted and which lists flag."""
        default = LocalSettings()
        shaping = {n: getattr(self.settings, n) for n in SHAPING if getattr(self.settings, n) != getattr(default, n)}
        if "lists" in shaping:  # files may change while their paths stay
            shaping["lists"] = load_lists(self.settings.lists).version
        return f"#{sha256(repr(shaping).encode()).hexdigest()[:12]}" if shaping else ""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the settings: sockets and caches stay behind."""
        names = LocalSettings.__dataclass_fields__
        return rebuild, (type(self), self.clock, {name: getattr(self.settings, name) for name in names})

    async def verify(self, batch: Batch, in_flight: Sequence[Job] = ()) -> AsyncIterator[Event]:
        """Verify a batch; rows come as they settle, in any order (`Settled.positions`)."""
        validation_type = ValidationType(batch.validation_type)
        view = await self.view(batch.addresses)
        if validation_type is ValidationType.REGEX:
            yield Settled(await asyncio.to_thread(view.regex_rows, self.clock()))
            return
        positions, rows = view.malformed_rows(validation_type, self.clock())
        if len(positions):
            yield Settled(rows, positions=positions)
        is_smtp = validation_type is ValidationType.SMTP
        stage = (
            self.mailboxes.settle(view, self.clock)
            if is_smtp
            else self.domains.settle(view, validation_type, self.clock)
        )
        async with aclosing(stage) as events:
            async for event in events:
                yield event

    async def view(self, addresses: pa.StringArray) -> ColumnView:
        """Look at addresses with the checks that need no network, off the event loop."""
        lists = load_lists(self.settings.lists)
        return await asyncio.to_thread(observe_view, addresses, lists)

    async def aclose(self) -> None:
        """Close the sockets; the backend opens new ones when it is used again."""
        await self.domains.aclose()
