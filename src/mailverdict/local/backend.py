"""`LocalBackend`: verification on this machine, of one address (`check`) or of a batch (`verify`).

Both use the same steps in the same order: syntax, lists, DNS, blacklists, SMTP, and
`verdicts.settle`.

    check("Ada@web.de")
    -> Evidence(syntax, flags, dns, blacklist, mailbox) -> settle -> Verification
    verify(Batch)
    -> ObservedBatch (`batch.py`) -> rows as they settle: `regex` at once, for `mx` by the stage of
       `domains.py`, for `smtp` by that of `smtp/stage.py`

Where a change goes: a setting, `model/settings.py`; a flag by a list, `checks/lists` and
`batch.py`; how domains are looked up together, `domains.py`.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
import warnings
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self, Unpack

import pyarrow as pa

from ..backend import Batch, Event, Job, Settled
from ..checks.lists.flags import LoadedLists, load_lists
from ..checks.lists.suggestions import suggest_domain
from ..checks.syntax.address import observe_syntax
from ..errors import BackendError, SettingsError
from ..loop import run_sync
from ..model.evidence import Evidence, Flags
from ..model.settings import (
    FUTURE_CONSTANTS,
    Lists,
    LocalOptions,
    LocalSettings,
    constant_notice,
    options_of,
)
from ..model.table import SOURCE_LOCAL
from ..model.verification import Verification
from ..model.words import ValidationType
from ..verdicts import Decision, settle
from .batch import ObservedBatch, evidence_metadata, observe_batch

# A process that only checks by regex does not import the modules for DNS and SMTP.
if TYPE_CHECKING:
    from ..checks.smtp.transport.driver import Transcript
    from .domains import DomainStage
    from .smtp.stage import MailboxStage

LISTS_MAX_AGE = 5.0  # seconds until a single check looks for changed list files again


def utc_now() -> datetime:
    """The time in UTC."""
    return datetime.now(UTC)


def iso_timestamp(seconds: float | None = None) -> str:
    """A time, the present one by default, as ISO 8601 with offset."""
    if seconds is not None:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    second, microseconds = divmod(time.time_ns() // 1000, 1_000_000)
    return f"{iso_second(second)}.{microseconds:06d}+00:00"


@lru_cache(maxsize=1)
def iso_second(second: int) -> str:
    """A second of UTC without its offset.

    A single check of the service has three timestamps. By `isoformat` they took 8 us of 104.
    """
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def shown_signature() -> inspect.Signature:
    """The settings as keyword-only parameters, without those that are deprecated."""
    parameters = []
    for parameter in inspect.signature(LocalSettings).parameters.values():
        if parameter.name not in FUTURE_CONSTANTS:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    return inspect.Signature(parameters)


# The settings that can change the answer for an address; the others are limits and time-outs.
ANSWER_SETTINGS = (
    "resolver",
    "resolver_check",
    "smtp_port",
    "allow_networks",
    "blacklist",
    "lists",
)


def check_names(names: Iterable[str]) -> None:
    """Raise for a setting that does not exist; the message has the nearest one."""
    for name in names:
        if name not in LocalSettings.__dataclass_fields__:
            close = get_close_matches(name, LocalSettings.__dataclass_fields__, 1)
            hint = ""
            if close:
                hint = f" (did you mean {close[0]!r}?)"
            raise SettingsError(f"LocalBackend has no setting {name!r}{hint}")


def changed_options(settings: LocalSettings) -> dict[str, Any]:
    """The settings that differ from the defaults, as keyword arguments of `LocalBackend`."""
    defaults = options_of(LocalSettings())
    options = options_of(settings)
    return {name: value for name, value in options.items() if value != defaults[name]}


def rebuild(
    kind: type[LocalBackend], clock: Callable[[], datetime], settings: LocalSettings
) -> LocalBackend:
    """Unpickle a backend."""
    return kind.from_settings(settings, clock=clock)


@dataclass(slots=True)
class CheckRecord:
    """What one check observed, for `mailverdict.explain`."""

    evidence: Evidence | None = None
    decision: Decision | None = None
    transcript: Transcript = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


class ListCache:
    """The loaded lists; looking for changed files costs more than a whole ``regex`` check."""

    def __init__(self, settings: Lists, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._monotonic = monotonic
        self._loaded: LoadedLists | None = None
        self._stale_at = 0.0

    def current(self) -> LoadedLists:
        """The lists, at most `LISTS_MAX_AGE` old."""
        now = self._monotonic()
        if self._loaded is None or now >= self._stale_at:
            self._loaded = load_lists(self._settings)
            self._stale_at = now + LISTS_MAX_AGE
        return self._loaded


class LocalBackend:
    """Verify on this machine: syntax, lists, DNS, blacklists and SMTP.

    ``regex`` needs no network; ``mx`` and ``mx_blacklist`` query the DNS; ``smtp`` also connects to
    port 25 of the domains' mail servers. No quota is spent.

    DNS sockets are opened by the first query. They are closed by `close`, at the end of a ``with``
    or ``async with`` block, or when the backend is garbage-collected.

    Parameters
    ----------
    **settings
        `resolver`, `smtp_port`, `helo_name`, `mail_from`, `dns_concurrency`,
        `max_sessions_per_exchange`, `connect_timeout`, `command_timeout`, `deadline`,
        `retry_greylisted`, `allow_networks`, `blacklist`, `lists` and more: the attributes of
        ``LocalBackend().settings``, whose values are the defaults.

    Raises
    ------
    SettingsError
        If a value is not allowed; the message names the setting, the value and what is allowed.

    Examples
    --------
    >>> import mailverdict as mv
    >>> with mv.LocalBackend(resolver="127.0.0.1:5353", deadline="2min") as backend:
    ...     mv.check("ada@example.org", validation_type="regex", backend=backend).result
    'valid'
    """

    __signature__ = shown_signature()
    source = SOURCE_LOCAL

    def __init__(
        self, *, clock: Callable[[], datetime] = utc_now, **settings: Unpack[LocalOptions]
    ) -> None:
        check_names(settings)
        for name in FUTURE_CONSTANTS:
            if name in settings:
                notice = constant_notice(f"LocalBackend({name}=...)", name)
                warnings.warn(notice, FutureWarning, stacklevel=2)
        # It converts durations and networks.
        self._set_up(LocalSettings(**settings), clock)  # type: ignore[arg-type]

    @classmethod
    def from_settings(
        cls, settings: LocalSettings, *, clock: Callable[[], datetime] = utc_now
    ) -> Self:
        """Make a backend from settings that were checked before.

        Parameters
        ----------
        settings : LocalSettings
            All settings.
        clock : callable
            Gives the time of an answer.

        Returns
        -------
        LocalBackend
            The backend.
        """
        if cls.__init__ is not LocalBackend.__init__:  # a subclass may have more to set up
            return cls(clock=clock, **changed_options(settings))
        backend = cls.__new__(cls)
        backend._set_up(settings, clock)
        return backend

    def _set_up(self, settings: LocalSettings, clock: Callable[[], datetime]) -> None:
        self.settings = settings
        self.clock = clock
        self._domains: DomainStage | None = None
        self._mailboxes: MailboxStage | None = None
        # Two event loops may use the network for the first time at once.
        self._lock = threading.RLock()
        self._lists = ListCache(self.settings.lists)
        self._is_closed = False

    def __repr__(self) -> str:
        """Show the settings that differ from the defaults."""
        changed = [f"{name}={value!r}" for name, value in changed_options(self.settings).items()]
        return f"LocalBackend({', '.join(changed)})"

    @property
    def domains(self) -> DomainStage:
        """The stage that asks the DNS, made when it is first needed."""
        with self._lock:
            if self._domains is None:
                from .domains import DomainStage  # noqa: PLC0415

                self._domains = DomainStage(self.settings)
            return self._domains

    @property
    def mailboxes(self) -> MailboxStage:
        """The stage that asks the mail servers, made when it is first needed."""
        with self._lock:
            if self._mailboxes is None:
                from .smtp.stage import MailboxStage  # noqa: PLC0415

                self._mailboxes = MailboxStage(self.settings, self.domains)
            return self._mailboxes

    def is_free(self, validation_type: str) -> bool:
        """Whether the type needs no network: only ``regex``."""
        return validation_type == ValidationType.REGEX

    def wants_journal(self, validation_type: str) -> bool:
        """Whether ``journal="auto"`` keeps the answers: only those of ``smtp``, which take long."""
        return validation_type == ValidationType.SMTP

    def journal_key(self, validation_type: str) -> str:
        """The type, and a digest of the settings that can change an answer."""
        return f"{self.source}:{validation_type}{self.settings_digest()}"

    def lists_version(self) -> str:
        """Names the lists that decide the flags."""
        return self._lists.current().version

    def settings_digest(self) -> str:
        """Empty for the defaults."""
        options = changed_options(self.settings)
        changed = {name: options[name] for name in ANSWER_SETTINGS if name in options}
        if not changed:
            return ""
        if "lists" in changed:  # files may change while their paths stay
            changed["lists"] = load_lists(self.settings.lists).version
        return f"#{sha256(repr(changed).encode()).hexdigest()[:12]}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the settings, without sockets and caches."""
        return rebuild, (type(self), self.clock, self.settings)

    # --- one address -------------------------------------------------------------------------

    async def check(
        self,
        email: str,
        validation_type: str = "smtp",
        *,
        client: Hashable = None,
        record: CheckRecord | None = None,
    ) -> Verification:
        """Verify one address.

        Parameters
        ----------
        email : str
            The address.
        validation_type : {"smtp", "mx", "mx_blacklist", "regex"}, default "smtp"
            As in `mailverdict.verify`. A greylisted address is not tried again.
        client : hashable, optional
            For whom: the clients of a backend get their SMTP sessions in turn. Without it, for
            itself.
        record : CheckRecord, optional
            Filled with what was observed.

        Returns
        -------
        Verification
            Equal to the address's row of a column.
        """
        self._require_open()
        email = email.strip()
        kind = validation_type
        if not isinstance(kind, ValidationType):  # to construct one takes longer than the syntax
            kind = ValidationType(kind)
        lists = self._lists.current()
        syntax = observe_syntax(email)
        flags = Flags()
        if syntax.ok:
            flags = lists.flags(syntax.local, syntax.ascii_domain)
        evidence = Evidence(syntax, flags=flags)
        if syntax.ok and kind is not ValidationType.REGEX:
            evidence = await self._observe_network(evidence, kind, client, record)
        decision = settle(kind, evidence)
        if record is not None:
            record.evidence = evidence
            record.decision = decision
        metadata = evidence_metadata(evidence)
        metadata["lists"] = lists.version
        if self.clock is utc_now:
            metadata["validated_at"] = iso_timestamp()
        else:
            metadata["validated_at"] = self.clock().isoformat()
        if syntax.ok and syntax.normalized != email:
            metadata["normalized"] = syntax.normalized
        meant = None
        if syntax.ok:
            meant = suggest_domain(syntax.ascii_domain)
        if meant:
            metadata["suggestion"] = f"{syntax.local}@{meant}"
        if not email.isascii():  # a lone surrogate could not be encoded
            email = email.encode("utf-8", "backslashreplace").decode()
        return decision.to_verification(
            email, kind, flags=flags, mailbox=evidence.mailbox, metadata=metadata
        )

    async def _observe_network(
        self, evidence: Evidence, kind: ValidationType, client: Hashable, record: CheckRecord | None
    ) -> Evidence:
        """Add what the DNS, the blacklists and the mail servers say."""
        syntax = evidence.syntax
        dns, blacklist = await self.domains.observe_one(syntax.ascii_domain, kind)
        if record is not None:
            record.notices += self.domains.take_notices()
        mailbox = None
        if kind is ValidationType.SMTP and dns.exchanges:
            transcript = None
            if record is not None:
                transcript = record.transcript
            mailbox = await self.mailboxes.ask_one(syntax, dns, client, transcript)
        return evidence._replace(dns=dns, blacklist=blacklist, mailbox=mailbox)

    # --- a batch -----------------------------------------------------------------------------

    async def verify(self, batch: Batch, in_flight: Sequence[Job] = ()) -> AsyncIterator[Event]:
        """Verify a batch; rows come as they settle, in any order (`Settled.positions`)."""
        self._require_open()
        validation_type = ValidationType(batch.validation_type)
        observed = await self.observe_batch(
            batch.addresses, batch.syntax, batch.fields, lenient=batch.lenient
        )
        if validation_type is ValidationType.REGEX:
            rows = await asyncio.to_thread(observed.regex_rows, self.clock(), batch.fields)
            yield Settled(rows)
            return
        if len(observed.domains):
            await self.domains.require_resolver()
        positions, rows = observed.malformed_rows(validation_type, self.clock())
        if len(positions):
            yield Settled(rows, positions=positions)
        if validation_type is ValidationType.SMTP:
            stage = self.mailboxes.settle(observed, self.clock, batch.clients)
        else:
            stage = self.domains.settle(observed, validation_type, self.clock)
        async with aclosing(stage) as events:
            async for event in events:
                yield event

    async def observe_batch(
        self,
        addresses: pa.StringArray,
        syntax: pa.RecordBatch | None = None,
        fields: Collection[str] | None = None,
        *,
        lenient: bool = False,
    ) -> ObservedBatch:
        """Run the checks that need no network and were not made already, off the event loop."""
        lists = load_lists(self.settings.lists)
        return await asyncio.to_thread(
            observe_batch, addresses, lists, syntax, fields, lenient=lenient
        )

    # --- closing -----------------------------------------------------------------------------

    def close(self) -> None:
        """Close the sockets. Using the backend afterwards raises `BackendError`."""
        run_sync(self.aclose())

    async def aclose(self) -> None:
        """Do as `close`, from async code."""
        self._is_closed = True
        if self._domains is not None:
            await self._domains.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _require_open(self) -> None:
        if self._is_closed:
            raise BackendError(f"{self!r} was closed; make a new one")
