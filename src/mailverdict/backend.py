"""The one door between *how* an address is verified and *how many* are.

A backend takes a batch of unique addresses and streams events. Whoever runs it (see
`mailverdict.runs`) records each event before asking for the next one, so that a crash between any
two events loses nothing and pays nothing twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

__all__ = [
    "Backend",
    "Batch",
    "Deferred",
    "Event",
    "Job",
    "Metered",
    "Noticed",
    "Quota",
    "QuotaSeen",
    "Settled",
    "Submitted",
    "Submitting",
    "Waiting",
]


@dataclass(frozen=True, slots=True)
class Batch:
    """Addresses to verify.

    Attributes
    ----------
    addresses : pyarrow.StringArray
        Stripped texts without nulls; unique unless the backend says that it does not care.
    validation_type : str
        ``regex``, ``mx``, ``mx_blacklist`` or ``smtp``.
    """

    addresses: pa.StringArray
    validation_type: str


@dataclass(frozen=True, slots=True)
class Job:
    """An address that a service has accepted and been paid for.

    Attributes
    ----------
    job_id : str
        The service's identifier.
    email : str
        The address as it was submitted.
    validation_type : str
        As submitted.
    submitted_at : float
        Seconds since the epoch, by this machine's clock.
    """

    job_id: str
    email: str
    validation_type: str
    submitted_at: float


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
    >>> Quota(daily_limit=100, used=40, remaining=60).remaining
    60
    """

    daily_limit: int
    used: int
    remaining: int


@dataclass(frozen=True, slots=True)
class Submitting:
    """A batch is about to be sent; what happens to it is not known before `Submitted`.

    Attributes
    ----------
    token : str
        Names this attempt; the `Submitted` or `Deferred` that ends it carries the same.
    emails : tuple of str
        What is being sent.
    used_before : int or None
        The quota's `used` just before, by which a lost answer is found out.
    """

    token: str
    emails: tuple[str, ...]
    used_before: int | None


@dataclass(frozen=True, slots=True)
class Submitted:
    """The service accepted these jobs and counted them against the quota."""

    jobs: tuple[Job, ...]
    token: str = ""


@dataclass(frozen=True, slots=True)
class Settled:
    """Rows that are final for this run (status `done` or `error`).

    Attributes
    ----------
    rows : pyarrow.Table
        In the schema of `mailverdict.model.table`.
    job_ids : tuple of str
        The jobs that these rows end, if any, row by row.
    positions : numpy.ndarray of int64, optional
        Which address of the batch each row answers; None where only `email` tells.
    """

    rows: pa.Table
    job_ids: tuple[str, ...] = ()
    positions: np.ndarray[Any, np.dtype[np.int64]] | None = None


@dataclass(frozen=True, slots=True)
class Deferred:
    """Addresses that stay `pending`: quota, give-up, an uncertain submission.

    Attributes
    ----------
    emails : tuple of str
        As they were in the batch.
    why : str
        ``quota``, ``gave_up``, ``uncertain``, ``rejected``: why they are not settled.
    retry_after : float or None
        Seconds after which asking again makes sense.
    token : str
        The submission this ends, if one was under way.
    """

    emails: tuple[str, ...]
    why: str
    retry_after: float | None = None
    token: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing to do for a while.

    Attributes
    ----------
    seconds : float
        How long from now.
    why : str
        In words, for a progress line.
    """

    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class QuotaSeen:
    """The service told how much quota is left."""

    quota: Quota


@dataclass(frozen=True, slots=True)
class Noticed:
    """Something the user should be told once: a warning, never an error."""

    message: str


Event = Submitting | Submitted | Settled | Deferred | Waiting | QuotaSeen | Noticed


class Backend(Protocol):
    """Turns addresses into verdicts; may take milliseconds or hours."""

    @property
    def source(self) -> str:
        """``local`` or ``remote``: where its rows say they come from."""
        ...

    def is_free(self, validation_type: str) -> bool:
        """Whether this type needs no network at all, so that duplicates cost nothing."""
        ...

    def wants_journal(self, validation_type: str) -> bool:
        """Whether ``journal="auto"`` means a file for this type."""
        ...

    def journal_key(self, validation_type: str) -> str:
        """Names what answers are comparable with: the type, and the service asked."""
        ...

    def verify(self, batch: Batch, in_flight: Sequence[Job] = ()) -> AsyncIterator[Event]:
        """Verify a batch and go on with jobs submitted by an earlier run.

        Parameters
        ----------
        batch : Batch
            What to verify.
        in_flight : sequence of Job
            Already paid for; they are polled, never submitted again.

        Yields
        ------
        Event
            Every address of the batch ends in exactly one `Settled` row or `Deferred` entry.
        """
        ...

    async def aclose(self) -> None:
        """Let go of sockets."""
        ...


@runtime_checkable
class Metered(Protocol):
    """A backend that counts addresses against a daily quota."""

    async def quota(self) -> Quota:
        """Ask how much is left; costs nothing."""
        ...
