"""One pass over a column: journal, screening, backend, and the events in between."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..backend import Backend, Batch, Deferred, Event, Job, Metered, Noticed, QuotaSeen, Settled, Submitted, Waiting
from ..errors import QuotaExceeded
from ..model.address import identities
from ..model.table import SCHEMA
from ..model.words import ValidationType, Verdict
from .progress import Listener, Progress
from .results import Ledger
from .retry import say_not_now

__all__ = ["Execution", "Request", "Unclaimed", "judge_lost", "look_at_unclaimed", "unique_addresses"]

if TYPE_CHECKING:
    from ..local.screen import Screener
    from .journal.journal import Journal


logger = logging.getLogger("mailverdict")
FREE_BATCH = 1_000_000  # rows at once where nothing is asked of a network: bounds memory, keeps the bar moving
QUOTA_LOOK = 900.0  # seconds between looks at a used-up quota; when its day turns over is not told
SHORTEST_LOOK = 10.0  # whatever a service hints at: a run that waits for hours must not hammer it
LOOKED_AT = ("status", "result", "reasons")  # fields of the one table that a run itself asks for at its end
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Request:
    """What a caller wants of a run.

    Attributes
    ----------
    validation_type : ValidationType
        How deep.
    max_age : float
        Seconds for which a journalled answer is good.
    refresh : frozenset of str
        Verdicts to ask again although they are known.
    limit : int or None
        Addresses newly verified at most.
    on_quota : str
        ``stop``, ``raise`` or ``wait``.
    offline : bool
        Whether the network is out of bounds.
    """

    validation_type: ValidationType
    max_age: float = 30 * 86400.0
    refresh: frozenset[str] = field(default_factory=frozenset)
    limit: int | None = None
    on_quota: str = "stop"
    offline: bool = False


class Execution:
    """Takes unique addresses through journal, screening and backend; tells listeners how far it is.

    Parameters
    ----------
    addresses : pyarrow.StringArray
        Stripped, without nulls; unique unless the type is free.
    backend : Backend
        Who answers.
    request : Request
        What is wanted.
    journal : Journal or None
        Where answers are kept.
    screen : Screener or None
        Settles what needs no spending, before the backend sees the rest.
    owns_backend : bool
        Whether the backend serves this run alone, so that its sockets are closed at the end.
    fields : sequence of str
        Fields of the one table that the result is made from.
    clock, sleep : callable
        Seconds since the epoch, and how to wait.
    """

    def __init__(
        self,
        addresses: pa.StringArray,
        backend: Backend,
        request: Request,
        *,
        journal: Journal | None = None,
        screen: Screener | None = None,
        owns_backend: bool = False,
        fields: Sequence[str] = tuple(SCHEMA.names),
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.addresses, self.backend, self.request = addresses, backend, request
        self.journal, self.screen, self.owns_backend = journal, screen, owns_backend
        self.clock, self.sleep = clock, sleep
        self.ledger = Ledger(addresses, tuple(dict.fromkeys((*fields, *LOOKED_AT))))
        self.progress = Progress(total=len(addresses))
        self.listeners: list[Listener] = []
        self.notices: list[str] = []
        self.short_of_quota: list[Deferred] = []
        self.asked = 0  # addresses handed to the backend; what `limit` counts

    @property
    def key(self) -> str:
        """Under which the journal keeps these answers."""
        return self.backend.journal_key(self.request.validation_type)

    async def run(self) -> None:
        """Go through to the end; on any way out the state is told."""
        try:
            await self.stages()
        except asyncio.CancelledError:
            self.tell(state="cancelled", message="stopped; what is settled is kept")
            raise
        except Exception as exc:
            self.tell(state="failed", message=str(exc)[:300])
            raise
        finally:
            if self.journal is not None:
                self.journal.close()
            if self.owns_backend:
                await self.backend.aclose()

    async def stages(self) -> None:
        """Free types need none of the care that paid and polite ones do."""
        if self.backend.is_free(self.request.validation_type):
            await self.run_free()
        else:
            await self.run_careful()
        stopped = self.progress.settled < self.progress.total
        self.tell(state="stopped" if stopped else "done", message=self.why_stopped() if stopped else self.not_now())

    async def run_free(self) -> None:
        """Batch after batch, in order."""
        self.asked = self.within_limit(len(self.addresses))
        for start in range(0, self.asked, FREE_BATCH):
            size = min(FREE_BATCH, self.asked - start)
            batch = Batch(self.addresses.slice(start, size), self.request.validation_type)
            await self.follow(self.backend.verify(batch), start + np.arange(size))

    def within_limit(self, wanted: int) -> int:
        """How many of so many addresses may be asked about."""
        return wanted if self.request.limit is None else min(wanted, self.request.limit)

    async def run_careful(self) -> None:
        """What is known first, then what can be settled here, then the backend."""
        self.recall(self.addresses)
        await self.run_screen()
        if self.request.offline:
            return
        await self.judge_lost()
        jobs, todo = self.split_in_flight(self.ledger.unsettled())
        todo = todo if self.within_limit(len(todo)) else todo[:0]
        while len(todo) or jobs:
            self.short_of_quota = []
            claimed, others = self.claim(todo)
            self.asked = self.asked or len(claimed)
            await self.run_backend(claimed, [*jobs, *others])
            jobs = []
            if not self.short_of_quota or self.request.on_quota != "wait":
                break
            todo = await self.wait_for_quota()
        self.raise_if_short()

    def recall(self, addresses: pa.StringArray) -> None:
        """Take what the journal knows."""
        if self.journal is None:
            return
        newer_than = self.clock() - self.request.max_age
        known = self.journal.settled(self.key, addresses, newer_than=newer_than, refresh=self.request.refresh)
        if len(known):
            self.ledger.settle(known)
            self.tell(from_journal=self.progress.from_journal + len(known))

    async def judge_lost(self) -> None:
        """See whether submissions that an earlier run left behind were counted; else they would be held for long."""
        if self.journal is None:
            return

        seen = await judge_lost(self.journal, self.key, self.backend, self.sleep)
        if seen is not None:
            self.apply(seen)

    async def run_screen(self) -> None:
        """Settle here what would only waste quota."""
        if self.screen is None:
            return
        left = self.ledger.unsettled()
        events = self.screen.settle(self.addresses.take(pa.array(left)), left, self.request.validation_type)
        async with aclosing(events):  # type: ignore[type-var]
            async for event in events:
                self.take(event)

    def split_in_flight(self, todo: Positions) -> tuple[list[Job], Positions]:
        """Jobs an earlier run has paid for are polled on, not submitted again."""
        if self.journal is None or not len(todo):
            return [], todo
        jobs = self.journal.in_flight(self.key, self.addresses.take(pa.array(todo)))
        if not jobs:
            return [], todo
        taken = self.ledger.positions_of(pa.array([job.email for job in jobs], pa.string()))
        return jobs, np.setdiff1d(todo, taken, assume_unique=True)

    def claim(self, todo: Positions) -> tuple[Positions, list[Job]]:
        """What this run may submit, and jobs that another process has submitted meanwhile.

        The limit counts what is claimed: addresses that are held do not stand in the way of the others.
        """
        room = self.within_limit(len(todo))
        if self.journal is None or not room:
            return todo[:room], []
        claimed = self.journal.claim(self.key, self.addresses.take(pa.array(todo)), limit=room)
        mine = np.sort(self.ledger.positions_of(pa.array(claimed, pa.string()))) if claimed else todo[:0]
        looked_at = todo if len(mine) < room else todo[: np.searchsorted(todo, mine[-1]) + 1]
        left = np.setdiff1d(looked_at, mine, assume_unique=True)
        return mine, self.take_unclaimed(left) if len(left) else []

    def take_unclaimed(self, left: Positions) -> list[Job]:
        """What others did meanwhile is an answer, or a job to poll; the rest is told."""
        assert self.journal is not None
        self.recall(self.addresses.take(pa.array(left)))
        still = np.intersect1d(left, self.ledger.unsettled(), assume_unique=True)
        unclaimed = look_at_unclaimed(self.journal, self.key, self.addresses.take(pa.array(still)))
        for notice in unclaimed.notices():
            self.notice(notice)
        return unclaimed.jobs

    async def run_backend(self, todo: Positions, jobs: Sequence[Job]) -> None:
        """Feed the backend; the addresses keep their positions in the column."""
        batch = Batch(self.addresses.take(pa.array(todo)), self.request.validation_type)
        await self.follow(self.backend.verify(batch, jobs), todo)

    async def follow(self, events: AsyncIterator[Event], positions: Positions) -> None:
        """Take event after event; whatever ends this, the backend's sessions are closed."""
        async with aclosing(events) as stream:  # type: ignore[type-var]
            async for event in stream:
                self.take(self.placed(event, positions))

    def take(self, event: Event) -> None:
        """Write an event down before anything comes of it, and before the next is asked for."""
        if self.journal is not None:
            self.journal.record(self.key, event)
        self.apply(event)

    def placed(self, event: Event, positions: Positions) -> Event:
        """Turn positions in the batch into positions in the column, and fill in what is known here."""
        if not isinstance(event, Settled):
            return event
        if event.positions is not None:
            found = positions[event.positions]
        elif self.backend.is_free(self.request.validation_type):
            found = positions
        else:
            found = self.ledger.positions_of(event.rows["email"])
        rows = event.rows if self.screen is None else self.screen.fill(event.rows, found)
        return replace(event, rows=rows, positions=found)

    def apply(self, event: Event) -> None:
        """Take an event in and tell the listeners."""
        match event:
            case Settled():
                self.ledger.settle(event.rows, event.positions)
                self.tell(message="")
            case Submitted():
                self.tell(submitted=self.progress.submitted + len(event.jobs), message="")
            case Deferred(why="quota"):
                self.short_of_quota.append(event)
            case QuotaSeen():
                self.tell(quota=event.quota)
            case Waiting():
                self.tell(message=event.why)
            case Noticed():
                self.notice(event.message)

    async def wait_for_quota(self) -> Positions:
        """Sleep until it is worth looking at the quota again."""
        hints = [d.retry_after for d in self.short_of_quota if d.retry_after is not None]
        self.tell(message="waiting for the daily quota to turn over")
        await self.sleep(max(min(hints, default=QUOTA_LOOK), SHORTEST_LOOK))
        emails = [email for each in self.short_of_quota for email in each.emails]
        return np.sort(self.ledger.positions_of(pa.array(emails, pa.string())))

    def raise_if_short(self) -> None:
        """`on_quota="raise"`: an error instead of pending rows; the partial result travels on it."""
        if self.short_of_quota and self.request.on_quota == "raise":
            left = sum(len(each.emails) for each in self.short_of_quota)
            quota = self.progress.quota
            raise QuotaExceeded(
                f"the daily quota ends before the column: {left:,} addresses are left; call again tomorrow to go on, "
                "or use on_quota='stop' to get them as pending",
                limit=quota.daily_limit if quota else None,
                remaining=quota.remaining if quota else None,
                requested=left,
            )

    def not_now(self) -> str:
        """Whether some answers are none, and when to ask again; only `smtp` has such."""
        if self.request.validation_type is not ValidationType.SMTP:
            return ""
        return say_not_now(self.ledger.table(self.request.validation_type, ["result", "reasons"])) or ""

    def why_stopped(self) -> str:
        """Why rows are left, in words."""
        left = self.progress.total - self.progress.settled
        if self.short_of_quota:
            return f"{left:,} left: the daily quota is used up; call again later to go on"
        if self.request.offline:
            return f"{left:,} left: offline, and not in the journal"
        return f"{left:,} left; call again to go on"

    def notice(self, message: str) -> None:
        """Keep a warning for the caller, once."""
        if message not in self.notices:
            self.notices.append(message)
            logger.info("%s", message)

    def tell(self, **changes: object) -> None:
        """Update the snapshot and hand it to the listeners."""
        counts = self.ledger.counts
        verdicts = {str(verdict): counts[verdict] for verdict in Verdict}
        self.progress = replace(
            self.progress,
            settled=counts["settled"],
            verdicts=verdicts,
            errors=counts["error"],
            **changes,  # type: ignore[arg-type]
        )
        for listener in list(self.listeners):
            self.notify(listener)

    def listen(self, listener: Listener) -> None:
        """Tell `listener` the present state, and each that follows."""
        self.listeners.append(listener)
        self.notify(listener)

    def notify(self, listener: Listener) -> None:
        """Hand over the snapshot; a listener that fails is dropped, not the run."""
        try:
            listener(self.progress)
        except Exception:
            logger.exception("a progress listener failed and was dropped")
            self.listeners.remove(listener)


def unique_addresses(texts: pa.StringArray) -> tuple[pa.StringArray, npt.NDArray[np.int32]]:
    """The distinct addresses of a column without nulls, and per row which one it is."""
    encoded = identities(texts).dictionary_encode()
    codes: npt.NDArray[np.int32] = encoded.indices.to_numpy(zero_copy_only=False)
    return encoded.dictionary, codes


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
