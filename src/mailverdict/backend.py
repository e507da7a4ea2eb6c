"""`Backend`, the interface between *how* an address is verified and *how many* are, and its events.

A backend verifies a batch of unique addresses and yields events. The caller (see
`mailverdict.runs`) records each event before it asks for the next one, so a crash between two
events loses nothing and costs no quota twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from .model.words import count_of

__all__ = [
    "GRACE",
    "QUOTA_INTERVAL",
    "Backend",
    "Batch",
    "Deferred",
    "Event",
    "Job",
    "KnownPace",
    "Noticed",
    "Paced",
    "Quota",
    "QuotaSeen",
    "Settled",
    "Submitted",
    "Submitting",
    "Waiting",
    "is_same_day",
]


@dataclass(frozen=True, slots=True)
class Batch:
    """Addresses to verify."""

    # Stripped, without nulls; unique unless the type is free (see `Backend.is_free`).
    addresses: pa.StringArray
    validation_type: str  # regex, mx, mx_blacklist or smtp
    # Whether two more forms of addresses are accepted, since cells were repaired (see
    # `accept_leniently`).
    lenient: bool = False
    syntax: Any = None  # what `observe_column` saw of the addresses, if they were checked already
    # Columns of the rows that are used; the rows may lack the others. None: all.
    fields: frozenset[str] | None = None
    # For whom each address is: clients get their SMTP sessions in turn.
    clients: Sequence[Hashable] | None = None
    # Lost submissions of ended runs, to be sent again as they were.
    lost_batches: tuple[Submitting, ...] = ()
    # How fast earlier runs could submit to the service (see `Paced`).
    known_pace: KnownPace | None = None
    claim: Callable[[Submitting], tuple[str, ...]] | None = None
    """Called before addresses are sent that cost quota; returns those that may be sent.

    They are in their order. If that is all of them, they are in the journal now. If not, nothing
    may be sent: another run on the journal has the others, which are `Deferred` as ``elsewhere``.
    """


@dataclass(frozen=True, slots=True)
class Job:
    """An address that a service has accepted and counted against the quota."""

    job_id: str  # the service's identifier
    email: str  # as it was submitted
    validation_type: str
    submitted_at: float  # seconds since the epoch, by this machine's clock


@dataclass(frozen=True, slots=True)
class Quota:
    """A client's daily quota, in addresses.

    Attributes
    ----------
    daily_limit, used, remaining : int
        As the service counts them.

    Examples
    --------
    >>> from mailverdict import Quota
    >>> print(Quota(daily_limit=100, used=40, remaining=60))
    60 of 100 addresses left today
    """

    daily_limit: int
    used: int
    remaining: int

    def __str__(self) -> str:
        """One line."""
        return f"{self.remaining:,} of {count_of(self.daily_limit, 'address')} left today"

    def _repr_html_(self) -> str:
        """The line and a bar, for a notebook."""
        from .theme import notebook  # noqa: PLC0415 - only notebooks need it

        used = 100 * min(max(self.used / max(self.daily_limit, 1), 0), 1)
        part = f'<span style="width:{used:.1f}%"></span>'
        bar = f'<span class="mv-meter" aria-hidden="true">{part}</span>'
        return notebook(f"<p>{self}, {self.used:,} used</p>{bar}")


@dataclass(frozen=True, slots=True)
class Submitting:
    """A batch that is about to be sent, for `Batch.claim`.

    An event with its token tells the outcome.
    """

    token: str  # identifies this attempt
    emails: tuple[str, ...]
    # The quota's `used` just before; shows whether a lost answer was counted.
    used_before: int | None


@dataclass(frozen=True, slots=True)
class Submitted:
    """The service accepted these jobs and counted them against the quota."""

    jobs: tuple[Job, ...]
    token: str = ""


@dataclass(frozen=True, slots=True)
class Settled:
    """Rows that are final for this run (status `done` or `error`)."""

    rows: pa.Table  # in the schema of mailverdict.model.table
    job_ids: tuple[str, ...] = ()  # the jobs that these rows end, row by row
    # Index in the batch of each row. None: the rows name their addresses in `email`; for a type
    # that needs no network they are in the order of the batch.
    positions: np.ndarray[Any, np.dtype[np.int64]] | None = None
    is_asked_again: bool = (
        False  # whether these addresses are submitted again; their next row replaces this one
    )


@dataclass(frozen=True, slots=True)
class Deferred:
    """Addresses that stay `pending`."""

    emails: tuple[str, ...]  # as they were in the batch
    # quota, gave_up, uncertain, rejected, elsewhere, or uncounted (no answer; the service may still
    # count it)
    why: str
    retry_after: float | None = None  # seconds after which another attempt makes sense
    token: str = ""  # the submission that this ends, if one was sent


@dataclass(frozen=True, slots=True)
class Waiting:
    """The backend has nothing to do for a while."""

    seconds: float  # from now
    why: str  # text for a progress line


DAY = 86_400.0  # seconds
# Seconds that a service may need to count a submission; an unchanged quota means nothing before.
GRACE = 5.0
QUOTA_INTERVAL = (
    900.0  # seconds between readings of a used-up quota; services do not announce when it is reset
)
CLOCKS_DIFFER = (
    60.0  # seconds by which a service's clock may be ahead of this machine's, or behind it
)


def is_same_day(since: float, until: float) -> bool:
    """Whether two readings of a quota are about one day.

    It usually ends at 00:00 UTC by the service's clock.

    On another day `used` may be the same number by chance.
    """
    return (since - CLOCKS_DIFFER) // DAY == (until + CLOCKS_DIFFER) // DAY


@dataclass(frozen=True, slots=True)
class QuotaSeen:
    """The service reported how much quota is left."""

    quota: Quota


@dataclass(frozen=True, slots=True)
class Noticed:
    """A warning for the user; it is shown once."""

    message: str


@dataclass(frozen=True, slots=True)
class KnownPace:
    """What is known about how fast a service may be asked."""

    limit: float | None  # addresses a second; None: it has refused nothing so far
    window: float  # addresses whose outcome was open at once, without a refusal
    at: float  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class Paced:
    """The present pace of submissions."""

    service: str  # its base URL
    # Addresses; None: not limited; 0: the service refuses, and a trial is under way.
    per_second: float | None
    seconds_left: float | None  # until all is submitted; None: not known
    known: KnownPace | None = None  # what a later run should know; None: nothing


Event = Submitted | Settled | Deferred | Waiting | QuotaSeen | Noticed | Paced


class Backend(Protocol):
    """Verifies addresses, in milliseconds or hours.

    A backend may also have an async method ``check(email, validation_type)`` that returns the
    `Verification` of one address; without it a single address is verified as a batch of one. One
    that counts addresses against a daily quota has an async method ``quota()`` that returns its
    `Quota`; asking for it costs nothing.
    """

    @property
    def source(self) -> str:
        """``local`` or ``remote``: the `source` of its rows.

        Asking a local backend again costs no quota.
        """
        ...

    def is_free(self, validation_type: str) -> bool:
        """Whether this type needs no network, so that duplicates cost nothing."""
        ...

    def wants_journal(self, validation_type: str) -> bool:
        """Whether ``journal="auto"`` keeps a journal for this type."""
        ...

    def journal_key(self, validation_type: str) -> str:
        """Answers with the same key are comparable: same type, same service or settings."""
        ...

    def verify(self, batch: Batch, in_flight: Sequence[Job] = ()) -> AsyncIterator[Event]:
        """Verify a batch, and poll jobs that an earlier run submitted.

        Those are not submitted again.

        Every address of the batch ends in exactly one `Settled` row or `Deferred` entry. Rows with
        `is_asked_again` may come before; the last row of an address is the one that counts.
        """
        ...

    async def aclose(self) -> None:
        """Close sockets."""
        ...
