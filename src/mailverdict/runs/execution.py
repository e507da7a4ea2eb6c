"""One run over unique addresses: the journal, screening, the backend, and the events in between.

    addresses   a   b   c   d   e
    reuse_known     b                 a row of the journal, which is young enough
    run_screen          c             malformed, or a domain without mail
    adopt_jobs              d         an earlier run has paid for it: it is polled
    find_others                 e     another run is verifying it: waited for
    run_backend a                     claimed in the journal, submitted, settled

In order: reuse what the journal knows, screen, resolve submissions that an earlier run lost, poll
its jobs, give the rest to the backend, wait for what other runs are verifying. The backend claims
each batch in the journal before it is sent. Each event is written to the journal before it takes
effect and before the next event is requested.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..backend import (
    QUOTA_INTERVAL,
    Backend,
    Batch,
    Deferred,
    Event,
    Job,
    Noticed,
    Paced,
    QuotaSeen,
    Settled,
    Submitted,
    Submitting,
    Waiting,
)
from ..errors import JournalError, QuotaExceeded
from ..model.address import address_keys
from ..model.table import SCHEMA, SOURCE_LOCAL
from ..model.words import ValidationType, Verdict, count_of
from .endings import count_causes, count_errors, describe_ending, describe_errors
from .plan import day_when_done
from .progress import COUNTED_FIELDS, Listener, Positions, Progress, SettledRows
from .retry import retry_hint

if TYPE_CHECKING:
    from ..local.screen import Screener
    from .journal.journal import Journal

# The contract does not give the hour at which a quota starts again; for this service it is a
# setting.
NEXT_DAY = ", usually after 00:00 UTC"
logger = logging.getLogger("mailverdict")
# Rows at once if no network is used: bounds memory, keeps the progress bar moving.
FREE_BATCH = 1_000_000
MIN_QUOTA_INTERVAL = 10.0  # seconds, whatever a service suggests: a run may wait for hours
OTHERS_INTERVAL = 1.0  # seconds between two looks at what other runs on the journal have settled
# Fields that a run needs at its end, whatever its result has.
OWN_FIELDS = ("status", "result", "reasons", "error")
FREE_FIELDS = ("status", "result")  # the same for a run without a network


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The checked arguments that decide what a run does."""

    validation_type: ValidationType
    max_age: float = 30 * 86400.0  # seconds for which a known answer is reused
    refresh: frozenset[str] = field(default_factory=frozenset)  # verdicts that are not reused
    limit: int | None = None  # addresses newly verified, at most
    on_quota: str = "stop"  # "stop", "raise" or "wait"
    offline: bool = False
    lenient: bool = False  # accept two more forms of addresses, since cells were repaired
    # Answers settled from then on are reused, temporary ones too.
    answered_since: float | None = None


class Execution:
    """Runs unique addresses through journal, screening and backend, and reports progress.

    `addresses` are stripped and have no nulls; for types that use a network they are unique.
    `fields` are the columns of the result schema that the result is made from. `syntax` is the
    check of the addresses, if it was made already; only types that use no network need it. With
    `owns_backend` the backend is closed at the end.
    """

    def __init__(
        self,
        addresses: pa.StringArray,
        backend: Backend,
        settings: RunSettings,
        *,
        journal: Journal | None = None,
        screen: Screener | None = None,
        owns_backend: bool = False,
        fields: Sequence[str] = tuple(SCHEMA.names),
        syntax: pa.RecordBatch | None = None,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.addresses = addresses
        self.backend = backend
        self.settings = settings
        self.journal = journal
        self.screen = screen
        self.owns_backend = owns_backend
        self.syntax = syntax
        self.clock = clock
        self.sleep = sleep
        needed: tuple[str, ...] = OWN_FIELDS
        unit = "addresses"
        if backend.is_free(settings.validation_type):
            needed = FREE_FIELDS
            unit = "rows"
        self.results = SettledRows(addresses, tuple(dict.fromkeys((*fields, *needed))))
        self.progress = Progress(total=len(addresses), unit=unit)
        self.listeners: list[Listener] = []
        self.noticed: list[str] = []  # during the run
        self.conclusions: list[str] = []  # at its end, about the whole run
        self.short_of_quota: list[Deferred] = []
        # Addresses of the present batch that another run on the journal has.
        self.elsewhere: list[str] = []
        # Addresses that the service's limiter refused, and that are asked again.
        self.refused: set[str] = set()
        # Why settled addresses have no verdict; counted at the end.
        self.causes: Counter[str] = Counter()
        # Addresses with the status `error`, by code; counted at the end.
        self.errors: Counter[str] = Counter()
        self.newly_verified = 0  # addresses that the backend verifies; `limit` is about these
        # Addresses that stay pending though neither quota nor `limit` nor `offline` is the reason.
        self.unanswered = 0

    @property
    def key(self) -> str:
        """The journal's key for these answers."""
        return self.backend.journal_key(self.settings.validation_type)

    async def run(self) -> None:
        """Run to the end; the last progress shows how it ended, also after an error."""
        try:
            await self.run_stages()
        except asyncio.CancelledError:
            self.results.count_asked_again()
            self.emit_progress(state="cancelled", message="stopped; what is settled is kept")
            raise
        except Exception as exc:
            self.results.count_asked_again()
            self.emit_progress(state="failed", message=str(exc)[:300])
            raise
        finally:
            if self.journal is not None:
                self.journal.close()
            if self.owns_backend:
                await self.backend.aclose()

    async def run_stages(self) -> None:
        """Run, then report whether everything is settled."""
        if self.backend.is_free(self.settings.validation_type):
            await self.run_without_network()
        else:
            await self.run_with_network()
            self.results.count_asked_again()
            self.report_cause()
        if self.progress.settled < self.progress.total:
            self.emit_progress(state="stopped", message=self.stop_reason())
        else:
            self.emit_progress(state="done", message=self.retry_hint())

    async def run_without_network(self) -> None:
        """Verify without journal and screening, in batches and in order."""
        self.newly_verified = self.within_limit(len(self.addresses))
        fields = frozenset((*self.results.fields, *COUNTED_FIELDS))
        for start in range(0, self.newly_verified, FREE_BATCH):
            size = min(FREE_BATCH, self.newly_verified - start)
            syntax = self.syntax
            if syntax is not None:
                syntax = syntax.slice(start, size)
            batch = Batch(
                self.addresses.slice(start, size),
                self.settings.validation_type,
                lenient=self.settings.lenient,
                syntax=syntax,
                fields=fields,
            )
            async with aclosing(self.backend.verify(batch)) as events:  # type: ignore[type-var]
                async for event in events:
                    self.apply(event)

    def drop_rows(self) -> None:
        """Give the memory of the rows back after the run; its progress stays."""
        self.addresses = pa.array([], pa.string())
        self.syntax = None
        self.results = SettledRows(self.addresses, self.results.fields)

    def within_limit(self, count: int) -> int:
        """How many of `count` addresses may be verified newly."""
        if self.settings.limit is None:
            return count
        return min(count, self.settings.limit)

    async def run_with_network(self) -> None:
        """Use the journal and the screening first, then the backend."""
        self.reuse_known(self.addresses)
        await self.run_screen()
        if self.settings.offline:
            return
        todo = self.results.unsettled()
        while len(todo):
            await self.resolve_lost_submissions()
            jobs, todo = self.adopt_jobs(todo)
            todo, others = self.find_others(todo)
            todo, beyond, others = self.apply_limit(todo, others)
            if len(todo) or jobs:
                await self.run_backend(todo, jobs)
            if self.elsewhere:
                others = np.concatenate([others, self.take_elsewhere(), beyond])
            short = await self.wait_for_quota()
            waited = await self.wait_for_others(others)
            todo = np.union1d(short, waited)
            self.reuse_known(self.addresses.take(pa.array(todo)))
            todo = np.intersect1d(todo, self.results.unsettled(), assume_unique=True)
        self.raise_if_short()

    def reuse_known(self, addresses: pa.StringArray) -> None:
        """Settle what the journal knows, and what other runs have settled since this one began."""
        if self.journal is None or not len(addresses):
            return
        known = find_known(self.journal, self.backend, self.settings, addresses, self.clock())
        if len(known):
            self.results.settle(known, self.results.positions_of(known["email"]))
            self.emit_progress(from_journal=self.progress.from_journal + len(known))

    async def run_screen(self) -> None:
        """Settle on this machine what does not need the backend's quota."""
        if self.screen is None:
            return
        left = self.results.unsettled()
        addresses = self.addresses.take(pa.array(left))
        events = self.screen.settle(addresses, left, self.settings.validation_type)
        await self.process_events(events, left)

    async def resolve_lost_submissions(self) -> None:
        """Find out by the quota whether submissions that ended runs left were counted.

        If not, they are free again. Best done before this run submits anything: from then on the
        quota's `used` includes its own.
        """
        if self.journal is None or not hasattr(self.backend, "quota"):
            return
        wait = self.journal.seconds_to_resolve(self.key)
        if wait is not None:
            await self.sleep(wait)
            self.record(QuotaSeen(await self.backend.quota()))

    def adopt_jobs(self, todo: Positions) -> tuple[list[Job], Positions]:
        """Jobs that are paid for and that no other run polls, and the addresses left to submit."""
        if self.journal is None:
            return [], todo
        jobs = self.journal.adopt(self.key, self.addresses.take(pa.array(todo)))
        if not jobs:
            return [], todo
        emails = pa.array([job.email for job in jobs], pa.string())
        in_flight = self.results.positions_of(emails)
        return jobs, np.setdiff1d(todo, in_flight, assume_unique=True)

    def find_others(self, todo: Positions) -> tuple[Positions, Positions]:
        """What this run may submit, and what another run is verifying.

        Held addresses are reported.
        """
        if self.journal is None:
            return todo, todo[:0]
        addresses = self.addresses.take(pa.array(todo))
        unclaimed = self.journal.unclaimed(self.key, addresses)
        notice = unclaimed.notice()
        if notice:
            self.unanswered += len(unclaimed.held)
            self.add_notice(notice)
        keys = address_keys(addresses)
        is_held = pc.is_in(keys, value_set=unclaimed.held).to_numpy(zero_copy_only=False)
        is_elsewhere = pc.is_in(keys, value_set=unclaimed.elsewhere).to_numpy(zero_copy_only=False)
        return todo[~(is_held | is_elsewhere)], todo[is_elsewhere]

    def apply_limit(
        self, todo: Positions, others: Positions
    ) -> tuple[Positions, Positions, Positions]:
        """Which to submit now, which are beyond the limit, and which of `others` are within it."""
        room = len(todo)
        if self.settings.limit is not None:
            room = min(room, self.settings.limit - self.newly_verified)
        self.newly_verified += room
        if 0 < room < len(todo):
            others = others[others < todo[room]]
        return todo[:room], todo[room:], others

    def take_elsewhere(self) -> Positions:
        """The addresses that another run had when they were to be submitted.

        `limit` is not used.
        """
        emails = self.elsewhere
        self.elsewhere = []
        self.newly_verified -= len(emails)
        return self.results.positions_of(pa.array(emails, pa.string()))

    async def wait_for_others(self, others: Positions) -> Positions:
        """Sleep before another look at what other runs are verifying; returns these addresses."""
        if len(others):
            count = count_of(len(others), "address is", "addresses are")
            message = f"{count} being verified by another process on this journal; waiting"
            self.emit_progress(message=message)
            await self.sleep(OTHERS_INTERVAL)
        return others

    async def run_backend(self, todo: Positions, jobs: Sequence[Job]) -> None:
        """Give addresses and jobs to the backend and process its events."""
        batch = Batch(
            self.addresses.take(pa.array(todo)),
            self.settings.validation_type,
            lenient=self.settings.lenient,
        )
        if self.journal is not None:
            service = getattr(self.backend, "base_url", "")
            batch = replace(
                batch,
                lost_batches=self.find_lost_batches(self.journal, batch.addresses),
                known_pace=self.journal.known_pace(service),
                claim=partial(self.journal.claim, self.key),
            )
        await self.process_events(self.backend.verify(batch, jobs), todo)

    def find_lost_batches(
        self, journal: Journal, addresses: pa.StringArray
    ) -> tuple[Submitting, ...]:
        """Lost submissions whose addresses are all to be submitted now."""
        lost = journal.lost_batches(self.key)
        if not lost:
            return ()
        wanted = frozenset(addresses.to_pylist())
        return tuple(batch for batch in lost if wanted.issuperset(batch.emails))

    async def process_events(self, events: AsyncIterator[Event], positions: Positions) -> None:
        """Record events about the addresses at `positions`.

        Sessions are closed however this ends.
        """
        async with aclosing(events) as stream:  # type: ignore[type-var]
            async for event in stream:
                if isinstance(event, Settled):
                    self.record(self.in_column(event, positions))
                else:
                    self.record(event)

    def record(self, event: Event) -> None:
        """Write an event to the journal before it takes effect and before the next is requested."""
        if self.journal is not None:
            try:
                self.journal.record(self.key, event)
            except JournalError:
                # Perhaps paid for: the partial result has it at least.
                if isinstance(event, Settled):
                    self.apply(event)
                raise
        self.apply(event)

    def in_column(self, event: Settled, positions: Positions) -> Settled:
        """The rows of a batch with their positions in the column, and with what screening knows."""
        rows = event.rows
        if event.positions is None:
            in_column = self.results.positions_of(rows["email"])
        else:
            in_column = positions[event.positions]
        if self.screen is not None:
            rows = self.screen.fill(rows, in_column)
        return replace(event, rows=rows, positions=in_column)

    def apply(self, event: Event) -> None:
        """Update the results and the progress."""
        match event:
            case Settled(rows=rows, positions=positions):
                if positions is None:
                    self.results.settle_next(rows)
                else:
                    self.results.settle(rows, positions, is_asked_again=event.is_asked_again)
                if event.is_asked_again:
                    self.refused.update(event.rows["email"].to_pylist())
                self.emit_progress(message="")
            case Submitted():
                again = sum(1 for job in event.jobs if job.email in self.refused)
                self.emit_progress(
                    submitted=self.progress.submitted + len(event.jobs),
                    asked_again=self.progress.asked_again + again,
                    message="",
                )
            case Paced():
                self.emit_progress(pace=event.per_second, seconds_left=event.seconds_left)
            case Deferred():
                self.keep_pending(event)
            case QuotaSeen():
                self.emit_progress(quota=event.quota)
            case Waiting():
                self.emit_progress(message=event.why)
            case Noticed():
                self.add_notice(event.message)

    def keep_pending(self, event: Deferred) -> None:
        """Remember which addresses are given to the backend again, and how many stay pending."""
        if event.why == "quota":
            self.short_of_quota.append(event)
        elif event.why == "elsewhere":
            self.elsewhere.extend(event.emails)
        else:
            self.unanswered += len(event.emails)

    async def wait_for_quota(self) -> Positions:
        """With ``on_quota="wait"``, sleep until the quota may have changed.

        Returns what is to be submitted then.
        """
        if not self.short_of_quota or self.settings.on_quota != "wait":
            return np.zeros(0, np.int64)
        emails: list[str] = []
        hints = []
        for deferred in self.short_of_quota:
            emails.extend(deferred.emails)
            if deferred.retry_after is not None:
                hints.append(deferred.retry_after)
        waiting = "today's quota is used up; waiting until there is quota again"
        self.emit_progress(message=waiting + self.day_when_done())
        await self.sleep(max(min(hints, default=QUOTA_INTERVAL), MIN_QUOTA_INTERVAL))
        self.short_of_quota = []
        self.newly_verified -= len(emails)  # they are claimed again
        return np.sort(self.results.positions_of(pa.array(emails, pa.string())))

    def raise_if_short(self) -> None:
        """Raise `QuotaExceeded` for `on_quota="raise"` instead of leaving rows pending."""
        if self.short_of_quota and self.settings.on_quota == "raise":
            left = sum(len(deferred.emails) for deferred in self.short_of_quota)
            count = count_of(left, "address is", "addresses are")
            quota = self.progress.quota
            raise QuotaExceeded(
                f"today's quota ends before the column: {count} left; "
                f"{self.how_to_go_on(NEXT_DAY)}, or use on_quota='stop' to get them as pending",
                limit=quota.daily_limit if quota else None,
                remaining=quota.remaining if quota else None,
                requested=left,
            )

    def retry_hint(self) -> str:
        """How many answers are temporary, and when to call again; only `smtp` has such answers."""
        if self.settings.validation_type is not ValidationType.SMTP:
            return ""
        rows = self.results.table(self.settings.validation_type, ["result", "reasons"])
        return retry_hint(rows, has_journal=self.journal is not None)

    def report_cause(self) -> None:
        """Warn if most addresses have no verdict for one technical cause."""
        if not (self.results.counts[Verdict.UNKNOWN] or self.results.counts["error"]):
            return
        rows = self.results.table(self.settings.validation_type, list(OWN_FIELDS))
        self.causes = count_causes(rows)
        if self.results.counts["error"] and self.backend.source != SOURCE_LOCAL:
            self.errors = count_errors(rows)
            self.conclude(describe_errors(self.errors))
        problem = describe_ending(self.causes, self.backend.source)
        if problem:
            self.conclude(problem)
            self.emit_progress(problem=problem)

    def stop_reason(self) -> str:
        """Why rows are left, as a message."""
        unit = "address" if self.progress.unit == "addresses" else "row"
        left = f"{count_of(self.progress.total - self.progress.settled, unit)} left"
        if self.short_of_quota:
            how = self.how_to_go_on(NEXT_DAY) + self.day_when_done()
            return f"{left}: today's quota is used up; {how}"
        if self.settings.offline:
            where = "not in the journal" if self.journal is not None else "without a journal"
            return f"{left}: offline, and {where}"
        return f"{left}; {self.how_to_go_on()}"

    def day_when_done(self) -> str:
        """On which day all is done at the quota, if the service said what the quota is."""
        quota = self.progress.quota
        if quota is None:
            return ""
        left = self.progress.total - self.progress.settled
        today = datetime.fromtimestamp(self.clock(), UTC).date()
        day = day_when_done(left, replace(quota, remaining=0), today)
        return "" if day is None else f"; at this quota all is done on {day}"

    def how_to_go_on(self, when: str = "") -> str:
        """Only a journal keeps what is settled for the next call."""
        if self.journal is not None:
            return f"call again to go on{when}"
        if self.backend.is_free(self.settings.validation_type):
            return "the next call begins again, since this type keeps no journal"
        return "give journal=, since without a journal the next call begins again"

    @property
    def notices(self) -> list[str]:
        """Warnings for the caller, each once."""
        return [*self.noticed, *self.conclusions]

    def add_notice(self, message: str) -> None:
        """Keep a warning for the caller, once."""
        if message not in self.noticed:
            self.noticed.append(message)
            logger.info("%s", message)

    def conclude(self, message: str) -> None:
        """Keep a warning about the whole run."""
        if message:
            self.conclusions.append(message)
            logger.info("%s", message)

    def emit_progress(self, **changes: object) -> None:
        """Update the progress and pass it to the listeners."""
        counts = self.results.counts
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

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` with the present progress, and with each one that follows."""
        self.listeners.append(listener)
        self.notify(listener)

    def notify(self, listener: Listener) -> None:
        """Call a listener; one that raises is removed, and the run continues."""
        try:
            listener(self.progress)
        except Exception:
            logger.exception("a progress listener failed and was dropped")
            self.listeners.remove(listener)


def find_known(
    journal: Journal, backend: Backend, settings: RunSettings, addresses: pa.StringArray, now: float
) -> pa.Table:
    """The answers in a journal that a run may reuse.

    Always those settled at or after `answered_since`.
    """
    since = settings.answered_since
    newer_than = now - settings.max_age
    if since is not None:
        newer_than = min(newer_than, since)
    return journal.settled(
        backend.journal_key(settings.validation_type),
        addresses,
        newer_than=newer_than,
        refresh=settings.refresh,
        answered_since=since,
        costs_quota=backend.source != SOURCE_LOCAL,
    )


def unique_addresses(texts: pa.StringArray) -> tuple[pa.StringArray, npt.NDArray[np.int32]]:
    """The distinct addresses of a column without nulls, and per row the position of its address."""
    encoded = address_keys(texts).dictionary_encode()
    codes: npt.NDArray[np.int32] = encoded.indices.to_numpy(zero_copy_only=False)
    return encoded.dictionary, codes
