"""`SharedStore`: the statements of workers on PostgreSQL. The API uses `jobs.store.Store` on the same database.

Each method is one transaction, on a thread of the pool; results are written by `settle`, many in one transaction.
Times of jobs come from the caller's clock, heartbeats from the database's.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ParamSpec, TypeVar

from sqlalchemy import Connection, Row, text

from ...contract.envelope import JobStatus
from ..jobs.schema import create_postgresql_engine, parse_url
from ..jobs.store import Purge, StoredJob, purge
from ..jobs.waiting import WaitingJobs
from ..limiter import RateLimiter
from ..outages import OutageLog
from ..settings import ServiceSettings, WhenSaturated
from .statements import (
    ACQUIRE,
    ADD_CHECK,
    ANSWER_CHECK,
    ANSWERED_CHECKS,
    ASSIGN,
    CHECK_TOKENS,
    CHECKS,
    CLAIM,
    COUNT_CLAIMED,
    COUNT_ENDED,
    DEPTH,
    ENDED,
    GIVE_BACK,
    GIVE_BACK_ABANDONED,
    HAS_CHECK_WORKER,
    HAS_QUEUED,
    HAS_WAITING_TASKS,
    HEARTBEAT,
    IS_ONLY_PURGE,
    LOCK_JOBS,
    NEXT_JOBS,
    OWNERS_WITHOUT_TASK,
    PACES,
    POSTPONE,
    PURGE_CHECK_PACE,
    PURGE_CHECKS,
    PURGE_PACE,
    PURGE_WORKERS,
    QUEUED_CLIENTS,
    QUEUED_TYPES,
    REGISTER,
    RELEASE_DUE,
    REMOVE_CHECKS,
    SAVE_PACE,
    SECOND_PASS,
    SET_OWNERS,
    SETTLE,
    TAKE,
    TAKE_CHECKS,
    TASKS_OF,
    WAITING_CHECKS,
    WORKERS,
)

P = ParamSpec("P")
T = TypeVar("T")
CONNECTIONS = 6  # of one worker
BATCH_LIMIT = 1000  # jobs that one task claims or takes at once
CLAIM_LOCK = 0x6D61696C7666  # advisory lock: claims are decided one after the other, in the whole cluster
PURGE_LOCK = 0x6D61696C7667  # advisory lock of a purge
SHARDS = 16  # of the tally, so that workers do not wait for each other's counters
SEEN_WITHIN = 30.0  # seconds since the last heartbeat of a worker that counts as running
CHECKS_CHANNEL = "mailverdict_checks"  # notifications: the identifier of a single check that was answered


@dataclass(frozen=True, slots=True)
class ClaimedJobs:
    """Jobs that a task has claimed, and whether others wait."""

    jobs: list[StoredJob]
    has_more: bool  # others may start now
    ready_in: float | None  # seconds until the pace lets others start; None if none wait for it


@dataclass(frozen=True, slots=True)
class EndedJob:
    """How a job ended, with what is counted about it."""

    seq: int
    status: str
    payload: str | None
    message: str | None
    validation_type: str = ""
    result: str = ""
    now: float = 0.0


@dataclass(frozen=True, slots=True)
class AnsweredCheck:
    """The answer to a single check: a payload as JSON text, or why there is none."""

    id: str
    email: str
    verification: str | None
    failure: str | None


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker that is running."""

    name: str
    version: str
    types: str
    egress: str | None


@dataclass(frozen=True, slots=True)
class SharedDepth:
    """What waits in the whole cluster, who works, and what has ended."""

    waiting: dict[str, int]  # by client
    verifying: int
    postponed: int
    checks: int  # single checks by `smtp` that are not answered
    oldest: float | None  # submission of the job that waits longest
    workers: list[WorkerRow]
    ended: dict[tuple[str, str, str], int]  # status, validation type and result: jobs


class DatabaseClock:
    """The database's time, so that hosts whose clocks differ agree: the local clock plus a measured offset.

    An answer shows only that the offset is in a range as wide as the query took. The offset changes if it is not in
    that range, so that a query that waited for a minute, as for a frozen database, does not move it by half a minute.
    """

    def __init__(self, local: Callable[[], float] = time.time) -> None:
        self.local = local
        self.offset = 0.0

    def __call__(self) -> float:
        return self.local() + self.offset

    def measure(self, connection: Connection) -> None:
        """Compare with the database."""
        before = self.local()
        now = float(connection.scalar(text("SELECT extract(epoch FROM clock_timestamp())")) or before)
        self.offset = min(max(self.offset, now - self.local()), now - before)


class SharedStore:
    """A worker's connections to the database."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        common: dict[str, Any] = {"pool_size": CONNECTIONS, "max_overflow": 0, "hide_parameters": True}
        self.engine = create_postgresql_engine(parse_url(settings.store), **common)
        self.threads = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="mailverdict-shared-store")
        self.clock = DatabaseClock()
        self.outages = OutageLog()

    async def run(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call one of the methods below on a thread."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, lambda: method(*args, **kwargs))

    def close(self) -> None:
        """Close the connections."""
        self.threads.shutdown()
        self.engine.dispose()

    # --- the life of a job ----------------------------------------------------------------------

    def claim(self, validation_type: str, batch: int, now: float) -> ClaimedJobs:
        """Claim the next jobs of a type: a fair share for each client, within its pace and the room of all workers."""
        with self.engine.begin() as connection:  # a transaction of its own: the one below locks other jobs
            connection.execute(RELEASE_DUE, {"type": validation_type, "now": now})
        with self.engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": CLAIM_LOCK})
            waiting = self.load_waiting(connection, validation_type, now)
            if not waiting.counts:
                return ClaimedJobs([], has_more=False, ready_in=None)
            room = self.room(connection, validation_type)
            shares = waiting.shares(min(room, BATCH_LIMIT))
            found = self.next_jobs(connection, validation_type, shares)
            lock_jobs(connection, [each.seq for each in found])
            claimed = set(connection.scalars(CLAIM, {"seqs": [each.seq for each in found], "now": now}))
            jobs = [each for each in found if each.seq in claimed]  # the others have just ended
            seqs = [each.seq for each in jobs]
            connection.execute(ASSIGN, {"seqs": seqs, "type": validation_type, "batch": batch})
            for client, count in shares.items():
                waiting.start(client, count)
            self.save_pace(connection, waiting, shares)
            left = waiting.seconds_until_ready() if waiting.counts else None
            is_full = room <= len(jobs)  # a task that ends makes room, and wakes the look-up
            return ClaimedJobs(jobs, has_more=left == 0.0 and not is_full, ready_in=left or None)

    def load_waiting(self, connection: Connection, validation_type: str, now: float) -> WaitingJobs:
        """Whose jobs are queued, the client whose jobs were started longest ago first, and the pace of each."""
        can_wait = self.settings.when_saturated is WhenSaturated.WAIT
        rate = self.settings.rate_limit if can_wait else 0.0
        pace = RateLimiter(rate, self.settings.rate_burst, clock=lambda: now)
        waiting = WaitingJobs(pace)
        for row in connection.execute(QUEUED_CLIENTS, {"type": validation_type}):
            if row.tokens is not None:
                pace.buckets[row.client] = (row.tokens, min(row.counted_at, now))
            waiting.add(row.client, row.oldest, row.jobs)
        return waiting

    def room(self, connection: Connection, validation_type: str) -> int:
        """How many more jobs of a type may be claimed by all workers together."""
        values = {"type": validation_type, "within": SEEN_WITHIN}
        workers, claimed = connection.execute(COUNT_CLAIMED, values).one()
        return max(self.settings.concurrency * max(int(workers), 1) - int(claimed), 0)

    def next_jobs(self, connection: Connection, validation_type: str, shares: dict[str, int]) -> list[StoredJob]:
        """The first queued jobs of each client."""
        values = {"type": validation_type, "clients": list(shares), "counts": list(shares.values())}
        return [stored_job(row) for row in connection.execute(NEXT_JOBS, values)]

    def save_pace(self, connection: Connection, waiting: WaitingJobs, shares: dict[str, int]) -> None:
        """Write the buckets of the clients whose jobs were started; without a rate they only keep the turn."""
        bucket, empty = waiting.pace.buckets.get, (0.0, waiting.pace.clock())
        rows = [
            {"client": client, "tokens": tokens, "at": at}
            for client in sorted(shares)
            for tokens, at in [bucket(client, empty)]
        ]
        if rows:
            connection.execute(SAVE_PACE, rows)

    def paces(self, now: float) -> dict[str, float]:
        """The tokens for bulk jobs of the clients whose bucket is not full."""
        values = {"now": now, "rate": self.settings.rate_limit, "burst": float(self.settings.rate_burst)}
        with self.engine.connect() as connection:
            return {row.client: row.tokens for row in connection.execute(PACES, values)}

    def assign_owners(self, owners: dict[str, list[int]]) -> None:
        """Write whose mail servers are asked about claimed jobs."""
        pairs = [(seq, owner) for owner, seqs in owners.items() for seq in seqs]
        with self.engine.begin() as connection:
            lock_jobs(connection, [seq for seq, _ in pairs])
            connection.execute(SET_OWNERS, {"seqs": [p[0] for p in pairs], "owners": [p[1] for p in pairs]})

    def take(self, owner: str, limit: int) -> list[StoredJob]:
        """The unfinished jobs of an owner: each client's first, then each client's second, and so on."""
        with self.engine.begin() as connection:
            return [stored_job(row) for row in connection.execute(TAKE, {"owner": owner, "limit": limit})]

    def settle(self, groups: Sequence[tuple[int, Sequence[EndedJob]]]) -> list[int]:
        """Write results once: a job that has ended keeps its first result. Return the jobs written by each group.

        A group is a worker's number and its results; all of them are one transaction.
        """
        counts: Counter[tuple[int, str, str, str]] = Counter()
        with self.engine.begin() as connection:
            lock_jobs(connection, [each.seq for _, ended in groups for each in ended])
            results = [self.settle_group(connection, worker, ended, counts) for worker, ended in groups]
            for (shard, status, validation_type, result), count in sorted(counts.items()):
                values = {"status": status, "type": validation_type, "result": result, "count": count}
                connection.execute(COUNT_ENDED, {"shard": shard, **values})
        return results

    def settle_group(
        self,
        connection: Connection,
        worker: int,
        ended: Sequence[EndedJob],
        counts: Counter[tuple[int, str, str, str]],
    ) -> int:
        """Write the results of one group, and add what was written to the counts by the key of `tally`."""
        columns = {name: [getattr(each, name) for each in ended] for name in ("seq", "status", "payload", "message")}
        now = max((each.now for each in ended), default=0.0)
        written = set(connection.scalars(SETTLE, {**columns, "now": now}))
        for each in ended:
            if each.seq in written:
                counts[worker % SHARDS, each.status, each.validation_type, each.result] += 1
        return len(written)

    def postpone(self, seqs: Sequence[int], attempt: int, due: float, now: float) -> None:
        """Give up the claim of jobs that found the engine saturated; they are tried again when `due`."""
        with self.engine.begin() as connection:
            lock_jobs(connection, seqs)
            connection.execute(POSTPONE, {"seqs": list(seqs), "attempt": attempt, "due": due, "now": now})

    def begin_second_pass(self, seqs: Sequence[int], due: float, now: float) -> set[int]:
        """Postpone those of some greylisted jobs that were asked only once; return them, also when called again."""
        with self.engine.begin() as connection:
            lock_jobs(connection, seqs)
            first = sorted(connection.scalars(SECOND_PASS, {"seqs": list(seqs), "due": due}))
            connection.execute(POSTPONE, {"seqs": first, "attempt": None, "due": due, "now": now})
            return set(first)

    def give_back(self, batch: int, now: float) -> None:
        """Queue the jobs that a look-up claimed and did not finish."""
        with self.engine.begin() as connection:
            connection.execute(GIVE_BACK, {"batch": batch, "now": now})

    # --- single checks --------------------------------------------------------------------------

    def add_check(self, number: str, owner: str, email: str, seconds: float) -> None:
        """Write a check that a client waits for, at most so many seconds."""
        with self.engine.begin() as connection:
            values = {"id": number, "owner": owner, "email": json.dumps(email), "seconds": seconds}
            connection.execute(ADD_CHECK, values)

    def take_checks(self, owner: str) -> dict[str, str]:
        """The checks of an owner that wait: identifier and address, the oldest first."""
        with self.engine.begin() as connection:
            rows = connection.execute(TAKE_CHECKS, {"owner": owner, "limit": BATCH_LIMIT})
            return {row.id: json.loads(row.email) for row in rows}

    def answer_checks(self, answers: Sequence[AnsweredCheck]) -> None:
        """Write answers, and notify those who wait."""
        answers = sorted(answers, key=attrgetter("id"))  # in the order in which every worker locks them
        rows = [{"id": each.id, "verification": each.verification, "failure": each.failure} for each in answers]
        with self.engine.begin() as connection:
            connection.execute(ANSWER_CHECK, rows)
            notify = text("SELECT pg_notify(:channel, :id)")
            for each in answers:
                connection.execute(notify, {"channel": CHECKS_CHANNEL, "id": each.id})

    def answered_checks(self, numbers: Sequence[str]) -> list[AnsweredCheck]:
        """Those of some checks that were answered."""
        with self.engine.connect() as connection:
            rows = connection.execute(ANSWERED_CHECKS, {"ids": list(numbers)})
            return [AnsweredCheck(row.id, json.loads(row.email), row.verification, row.failure) for row in rows]

    def remove_checks(self, numbers: Sequence[str]) -> None:
        """Remove checks that nobody waits for any more."""
        with self.engine.begin() as connection:
            connection.execute(REMOVE_CHECKS, {"ids": list(numbers)})

    def has_check_worker(self, validation_type: str) -> bool:
        """Whether a worker is running that answers single checks of a type."""
        with self.engine.connect() as connection:
            return bool(connection.scalar(HAS_CHECK_WORKER, {"type": validation_type, "within": SEEN_WITHIN}))

    def acquire(self, client: str, cost: int, rate: float, burst: float) -> tuple[bool, float]:
        """Take tokens for single checks by one conditional UPDATE; whether it was granted, and the tokens left."""
        values = {"client": client, "rate": rate, "burst": burst}
        with self.engine.begin() as connection:
            left = connection.scalar(ACQUIRE, {**values, "cost": cost})
            if left is not None:
                return True, float(left)
            return False, float(connection.scalar(CHECK_TOKENS, values) or 0.0)

    # --- what was left behind -------------------------------------------------------------------

    def abandoned(self, now: float) -> tuple[list[str], list[str]]:
        """Queue the claims of look-ups that do not run any more.

        Return the owners that have jobs and no task, and the types of queued or due jobs.
        """
        with self.engine.begin() as connection:
            connection.execute(GIVE_BACK_ABANDONED, {"now": now})
            owners = list(connection.scalars(OWNERS_WITHOUT_TASK))
            return owners, list(connection.scalars(QUEUED_TYPES, {"now": now}))

    def checks_without_task(self) -> list[str]:
        """The owners of single checks that wait, and that no task will answer soon."""
        with self.engine.connect() as connection:
            return list(connection.scalars(WAITING_CHECKS))

    def has_queued(self, validation_type: str) -> bool:
        """Whether a job of a type is queued."""
        with self.engine.connect() as connection:
            return bool(connection.scalar(HAS_QUEUED, {"type": validation_type}))

    def has_waiting_tasks(self, queues: Sequence[str]) -> bool:
        """Whether a task of some queues waits only for a worker that has room."""
        with self.engine.connect() as connection:
            return bool(connection.scalar(HAS_WAITING_TASKS, {"queues": list(queues)}))

    def tasks_of(self, worker: int) -> set[int]:
        """The tasks that are marked as running in one of Procrastinate's workers."""
        with self.engine.connect() as connection:
            return set(connection.scalars(TASKS_OF, {"worker": worker}))

    def purge(self, ended_before: float, day_before: str) -> int:
        """Remove old jobs, past quota, full buckets, expired checks and workers that have ended."""
        rate, burst = self.settings.rate_limit, self.settings.rate_burst
        with self.engine.begin() as connection:
            if not connection.scalar(IS_ONLY_PURGE, {"key": PURGE_LOCK}):
                return 0
            removed = purge(connection, Purge(ended_before, day_before))
            connection.execute(PURGE_PACE, {"before": ended_before})
            connection.execute(PURGE_CHECK_PACE, {"seconds": burst / rate if rate else 0.0})
            connection.execute(PURGE_CHECKS)
            connection.execute(PURGE_WORKERS, {"within": 10 * SEEN_WITHIN})
            return removed

    def depth(self) -> SharedDepth:
        """What waits, who works, what has ended: a few queries over the unfinished jobs."""
        waiting: dict[str, int] = {}
        verifying = postponed = 0
        oldest: float | None = None
        with self.engine.begin() as connection:
            self.clock.measure(connection)
            for row in connection.execute(DEPTH):
                if row.status == JobStatus.QUEUED:
                    waiting[row.client] = row.jobs
                    oldest = row.oldest if oldest is None else min(oldest, row.oldest)
                else:
                    postponed += row.postponed
                    verifying += row.jobs - row.postponed
            checks = int(connection.scalar(CHECKS) or 0)
            workers = [WorkerRow(*row) for row in connection.execute(WORKERS, {"within": SEEN_WITHIN})]
            ended = {(row.status, row.validation_type, row.result): int(row.jobs) for row in connection.execute(ENDED)}
        return SharedDepth(waiting, verifying, postponed, checks, oldest, workers, ended)

    # --- heartbeats -----------------------------------------------------------------------------

    def register(self, row: WorkerRow) -> int:
        """Add a worker; return its number."""
        with self.engine.begin() as connection:
            self.clock.measure(connection)
            values = {"name": row.name, "version": row.version, "types": row.types, "egress": row.egress}
            return int(connection.scalar(REGISTER, values) or 0)

    def heartbeat(self, worker: int) -> bool:
        """Write that a worker is running, and compare the clocks; False if others have removed it meanwhile."""
        with self.engine.begin() as connection:
            self.clock.measure(connection)
            return bool(connection.execute(HEARTBEAT, {"id": worker}).rowcount)

    def unregister(self, worker: int) -> None:
        """Remove a worker."""
        with self.engine.begin() as connection:
            connection.execute(text("DELETE FROM worker WHERE id = :id"), {"id": worker})


def lock_jobs(connection: Connection, seqs: Sequence[int]) -> None:
    """Lock jobs that the transaction changes, before it locks anything else; see `statements`."""
    connection.execute(LOCK_JOBS, {"seqs": list(seqs)})


def stored_job(row: Row[Any]) -> StoredJob:
    values = {name: getattr(row, name) for name in StoredJob.__dataclass_fields__}
    return StoredJob(**{**values, "email": json.loads(values["email"])})
