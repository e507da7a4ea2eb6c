"""Going on where an earlier run ended: lost submissions, and what may not be submitted now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from ..backend import Backend, Job, Metered, QuotaSeen
from ..model.address import identities
from .journal.journal import Journal

__all__ = ["Unclaimed", "judge_lost", "look_at_unclaimed"]


async def judge_lost(
    journal: Journal, key: str, backend: Backend, sleep: Callable[[float], Awaitable[None]]
) -> QuotaSeen | None:
    """Find out by the quota whether submissions that dead runs left behind were counted.

    Must be done before this run submits anything: from then on the quota's `used` is its own, too.
    """
    wait = journal.judge_in(key)
    if wait is None or not isinstance(backend, Metered):
        return None
    await sleep(wait)
    seen = QuotaSeen(await backend.quota())
    journal.record(key, seen)
    return seen


@dataclass(frozen=True, slots=True)
class Unclaimed:
    """Why addresses may not be submitted by this run.

    Attributes
    ----------
    jobs : list of Job
        Submitted by another process meanwhile; polled here, too.
    held : int
        Addresses whose submission was lost; they may have been paid for.
    free_at : float or None
        When the first of those may be sent again, in seconds since the epoch.
    elsewhere : int
        Addresses that another process is about to submit.
    """

    jobs: list[Job]
    held: int
    free_at: float | None
    elsewhere: int

    def notices(self) -> Iterator[str]:
        """What to tell the user."""
        if self.held and self.free_at is not None:
            when = datetime.fromtimestamp(self.free_at, UTC)
            yield (
                f"{self.held:,} addresses stay pending: their submission was lost and may have been paid for; "
                f"they are sent again from {when:%Y-%m-%d %H:%M} UTC"
            )
        if self.elsewhere:
            yield f"{self.elsewhere:,} addresses are being verified by another process on this journal"


def look_at_unclaimed(journal: Journal, key: str, emails: pa.StringArray) -> Unclaimed:
    """See what is the matter with addresses that `Journal.claim` did not give."""
    wanted = frozenset(identities(emails).to_pylist())
    jobs = journal.in_flight(key, emails)
    attempts = [each for each in journal.uncertain(key) if each.address in wanted]
    return Unclaimed(
        jobs=jobs,
        held=len(attempts),
        free_at=min((each.free_at for each in attempts), default=None),
        elsewhere=max(0, len(wanted) - len(jobs) - len(attempts)),
    )
