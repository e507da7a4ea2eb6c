"""The store: jobs and quota in a database.

`Store.commit` executes a list of operations (`Debit`, `Claim`, ... `Purge`) in one transaction, on the
writer's thread; a client gets its reply only after the commit. `run_queries` executes a list of queries
(`FindJob`, `NextJobs`, ...) on one connection, on the reader's thread.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Connection,
    Engine,
    Integer,
    Row,
    Select,
    bindparam,
    cast,
    delete,
    func,
    select,
    text,
    update,
)
from sqlalchemy.exc import IntegrityError, OperationalError, SQLAlchemyError

from ...contract.envelope import JobStatus
from ...errors import SettingsError
from ..shared.commit import commit
from ..shared.schema import prepare
from .schema import add_quota, connect, create_file, create_tables, insert_jobs, job, lock_file, parse_url, quota

QuotaOwner = tuple[str, str, int]  # client, ISO date and daily limit


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job as it is submitted; one that has ended already comes with its result."""

    job_id: str
    email: str
    validation_type: str
    status: str = JobStatus.QUEUED
    attempt: int = 0
    due: float | None = None
    verification: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job as it is in the store."""

    seq: int
    job_id: str
    client: str
    email: str
    validation_type: str
    status: str
    attempt: int
    verification: str | None
    message: str | None
    created_at: float
    updated_at: float


@dataclass(frozen=True, slots=True)
class JobResult:
    """How a job ended: `done` with its payload as JSON text, or `error` with a message."""

    seq: int
    status: str
    verification: str | None = None
    message: str | None = None


# Operations, in the order of a job's life.


class Debit(NamedTuple):
    """Add `cost` to the quota that a client has used on a day, and queue jobs: all of it or nothing."""

    client: str
    day: str
    cost: int
    limit: int
    now: float = 0.0
    jobs: tuple[NewJob, ...] = ()


class DebitResult(NamedTuple):
    """Whether a `Debit` was granted, and how much quota remains."""

    granted: bool
    remaining: int


@dataclass(frozen=True, slots=True)
class Claim:
    """Jobs go to the worker: `processing`."""

    seqs: tuple[int, ...]
    now: float


@dataclass(frozen=True, slots=True)
class Postpone:
    """Jobs found the queue saturated: `processing`, to be tried again when `due`."""

    seqs: tuple[int, ...]
    attempt: int
    due: float
    now: float


@dataclass(frozen=True, slots=True)
class Release:
    """Jobs whose retry is due: `queued` again."""

    seqs: tuple[int, ...]
    now: float


@dataclass(frozen=True, slots=True)
class Settle:
    """Jobs have ended."""

    results: tuple[JobResult, ...]
    now: float


@dataclass(frozen=True, slots=True)
class Purge:
    """Delete jobs that ended before a moment, and the quota of days before one."""

    ended_before: float
    day_before: str


Operation = Debit | Claim | Postpone | Release | Settle | Purge


# Queries.


@dataclass(frozen=True, slots=True)
class FindJob:
    """The `StoredJob` with an identifier, or None."""

    job_id: str


@dataclass(frozen=True, slots=True)
class QuotaUsed:
    """How much quota a client has used on a day."""

    client: str
    day: str


@dataclass(frozen=True, slots=True)
class NextJobs:
    """The next queued jobs: one of each client in turn, each client's in order of submission."""

    shares: tuple[tuple[str, int], ...]  # client, and how many of its jobs


@dataclass(frozen=True, slots=True)
class DueJobs:
    """Postponed jobs whose retry is due."""

    now: float
    limit: int


@dataclass(frozen=True, slots=True)
class CountJobs:
    """How many jobs are queued, by client and by second of submission; and how many are postponed."""


@dataclass(frozen=True, slots=True)
class Ping:
    """Whether the database, which answers, accepts writes as far as it says."""


StoreQuery = FindJob | QuotaUsed | NextJobs | DueJobs | CountJobs | Ping


class Store:
    """The database of a service.

    Raises `SettingsError` if it cannot be opened, or if it is a file that another process uses.
    """

    def __init__(self, url: str) -> None:
        parsed = parse_url(url)
        self.unlock: Callable[[], None] = lambda: None
        self.driver: sqlite3.Connection | None = None  # for `commit_debits`, which uses no other
        self.is_shared = parsed.get_backend_name() == "postgresql"
        if not self.is_shared:
            create_file(parsed)
            self.unlock = lock_file(parsed)
        self.writer = connect(parsed, writes=True)
        self.reader = connect(parsed, writes=False)
        try:
            self.secret = prepare(self.writer) if self.is_shared else create_tables(self.writer)
        except BaseException:
            self.close()
            raise
        self.add_used = add_quota(parsed.get_backend_name())
        if not self.is_shared:
            self.driver = detached_connection(self.writer)

    def close(self) -> None:
        """Close the connections and release the lock."""
        if self.driver is not None:
            self.driver.close()
        for engine in (self.writer, self.reader):
            engine.dispose()
        self.unlock()

    def recover(self, now: float) -> None:
        """Queue the jobs that a worker was verifying when its process ended; `SettingsError` if that fails."""
        interrupted = (job.c.status == JobStatus.PROCESSING) & job.c.due.is_(None)
        try:
            with self.writer.begin() as connection:
                connection.execute(update(job).where(interrupted).values(status=JobStatus.QUEUED, updated_at=now))
        except SQLAlchemyError as exc:
            path, cause = self.writer.url.database, exc.__cause__ or exc
            raise SettingsError(
                f"store: {path!r} cannot be written: {cause}; look whether its disk is full, then start again"
            ) from exc

    def commit(self, operations: Sequence[Operation]) -> list[DebitResult | int | Exception | None]:
        """Execute operations in one transaction: debits in order, then the others.

        If jobs exist already, because two processes wrote one submission at once, each operation gets a transaction,
        and the one that failed has the exception as its result.
        """
        debits = [each for each in operations if isinstance(each, Debit) and not each.jobs]
        if self.driver is not None and len(debits) == len(operations):
            return list(self.commit_debits(self.driver, debits))
        try:
            return list(self.commit_together(operations))
        except IntegrityError:
            if len(operations) == 1:
                raise
            return [self.commit_alone(each) for each in operations]

    def commit_alone(self, operation: Operation) -> DebitResult | int | Exception | None:
        """The result of one operation, or what it raised."""
        try:
            return self.commit_together([operation])[0]
        except SQLAlchemyError as exc:
            return exc

    def commit_together(self, operations: Sequence[Operation]) -> list[DebitResult | int | None]:
        """Execute operations in one transaction."""
        debits = [each for each in operations if isinstance(each, Debit)]
        with self.writer.connect() as connection:
            decided = self.debit(connection, debits)
            rest = iter(decided)
            results = [
                next(rest) if isinstance(each, Debit) else WRITE[type(each)](connection, each) for each in operations
            ]
            added = (
                new.job_id for each, result in zip(debits, decided, strict=True) if result.granted for new in each.jobs
            )
            commit(connection, next(added, None) if self.is_shared else None)
        return results

    def commit_debits(self, driver: sqlite3.Connection, debits: Sequence[Debit]) -> list[DebitResult | Exception]:
        """Debit quota where no jobs are written, as for single checks: one statement, which is one transaction.

        The driver needs a third of SQLAlchemy's time for it. Debits of clients whose limit does not cover all of
        theirs are decided by `debit`.
        """
        costs = costs_by_owner(debits)
        limits = {limit for _, _, limit in costs}
        rows = [(client, day, cost) for (client, day, limit), cost in costs.items() if cost <= limit]
        totals: dict[tuple[str, str], int] = {}
        if len(limits) == 1 and rows:
            statement = ADD_USED.format(", ".join(["(?, ?, ?)"] * len(rows)))
            try:
                found = driver.execute(statement, [value for row in rows for value in row] + [*limits]).fetchall()
            except sqlite3.Error as exc:
                raise OperationalError(statement, None, exc) from exc
            totals = {(client, day): used for client, day, used in found}
        results: dict[int, DebitResult | Exception] = {**grants(debits, costs, totals)}
        if len(results) < len(debits):
            left = [number for number in range(len(debits)) if number not in results]
            others: Sequence[DebitResult | Exception]
            try:
                with self.writer.begin() as connection:
                    others = self.debit(connection, [debits[number] for number in left])
            except SQLAlchemyError as exc:  # the debits above are on disk, and their callers get the results
                others = [exc] * len(left)
            results.update(zip(left, others, strict=True))
        return [results[number] for number in range(len(debits))]

    def debit(self, connection: Connection, debits: Sequence[Debit]) -> list[DebitResult]:
        """Debit the quota by one conditional UPDATE for each client and day, then write the granted jobs.

        All clients are updated in one order first, so that concurrent transactions cannot block each other for good.
        """
        if not debits:
            return []
        costs = costs_by_owner(debits)
        results = grants(debits, costs, self.try_debit(connection, sorted(costs.items())))
        left = [number for number in range(len(debits)) if number not in results]
        for number in sorted(left, key=lambda number: debits[number][:2]):
            results[number] = self.debit_one(connection, debits[number])
        granted = [debit for number, debit in enumerate(debits) if results[number].granted]
        if rows := [job_row(debit, new) for debit in granted for new in debit.jobs]:
            insert_jobs(connection, rows)
        return [results[number] for number in range(len(debits))]

    def debit_one(self, connection: Connection, debit: Debit) -> DebitResult:
        """Decide a debit of a client whose limit does not cover all of its debits."""
        owner = (debit.client, debit.day, debit.limit)
        used = self.try_debit(connection, [(owner, debit.cost)]).get(owner[:2])
        if used is not None:
            return DebitResult(granted=True, remaining=debit.limit - used)
        used = quota_used(connection, QuotaUsed(debit.client, debit.day))
        return DebitResult(granted=False, remaining=max(debit.limit - used, 0))

    def try_debit(self, connection: Connection, costs: Sequence[tuple[QuotaOwner, int]]) -> dict[tuple[str, str], int]:
        """Add costs to what clients have used where their limit covers it; return their new totals.

        A cost above the limit adds nothing, since a new row has no condition; its row is locked like the others.
        """
        by_limit: dict[int, list[dict[str, Any]]] = {}  # one statement has one limit
        for (client, day, limit), cost in costs:
            used = cost if cost <= limit else 0
            by_limit.setdefault(limit, []).append({"client": client, "day": day, "used": used, "most": limit})
        too_much = {owner[:2] for owner, cost in costs if cost > owner[2]}
        return {
            (client, day): used
            for rows in by_limit.values()
            for client, day, used in connection.execute(self.add_used, rows)
            if (client, day) not in too_much
        }


# SQLite: the statement of `add_quota` for the driver, with the values of some rows and one limit.
ADD_USED = """
    INSERT INTO quota (client, day, used) VALUES {} ON CONFLICT (client, day)
    DO UPDATE SET used = used + excluded.used WHERE used + excluded.used <= ? RETURNING client, day, used
"""


def detached_connection(engine: Engine) -> sqlite3.Connection:
    """A connection of the driver, which its pool does not have any more."""
    pooled = engine.raw_connection()
    connection = pooled.driver_connection
    pooled.detach()
    assert isinstance(connection, sqlite3.Connection)
    return connection


def costs_by_owner(debits: Sequence[Debit]) -> dict[QuotaOwner, int]:
    """What each client is debited in all."""
    costs: dict[QuotaOwner, int] = {}
    for each in debits:
        owner = (each.client, each.day, each.limit)
        costs[owner] = costs.get(owner, 0) + each.cost
    return costs


def grants(
    debits: Sequence[Debit], costs: Mapping[QuotaOwner, int], totals: Mapping[tuple[str, str], int]
) -> dict[int, DebitResult]:
    """The results of debits whose client has a new total, by number; the limits of the others do not cover all."""
    left = {owner: owner[2] - totals[owner[:2]] + cost for owner, cost in costs.items() if owner[:2] in totals}
    results: dict[int, DebitResult] = {}
    for number, each in enumerate(debits):
        owner = (each.client, each.day, each.limit)
        if owner in left:
            left[owner] -= each.cost
            results[number] = DebitResult(granted=True, remaining=left[owner])
    return results


def job_row(debit: Debit, new: NewJob) -> dict[str, Any]:
    return {
        "job_id": new.job_id,
        "client": debit.client,
        "email": json.dumps(new.email),
        "validation_type": new.validation_type,
        "status": new.status,
        "attempt": new.attempt,
        "due": new.due,
        "verification": new.verification,
        "message": new.message,
        "created_at": debit.now,
        "updated_at": debit.now,
    }


def set_status(connection: Connection, seqs: tuple[int, ...], **values: Any) -> None:
    connection.execute(update(job).where(job.c.seq.in_(seqs)).values(**values))


def claim(connection: Connection, each: Claim) -> None:
    set_status(connection, each.seqs, status=JobStatus.PROCESSING, due=None, updated_at=each.now)


def postpone(connection: Connection, each: Postpone) -> None:
    values = {"attempt": each.attempt, "due": each.due, "updated_at": each.now}
    set_status(connection, each.seqs, status=JobStatus.PROCESSING, **values)


def release(connection: Connection, each: Release) -> None:
    set_status(connection, each.seqs, status=JobStatus.QUEUED, due=None, updated_at=each.now)


SETTLE = (
    update(job)
    .where(job.c.seq == bindparam("of"))
    .values(due=None, status=bindparam("to"), verification=bindparam("payload"), message=bindparam("text"))
)


def settle(connection: Connection, each: Settle) -> None:
    rows = [{"of": r.seq, "to": r.status, "payload": r.verification, "text": r.message} for r in each.results]
    if rows:
        connection.execute(SETTLE.values(updated_at=each.now), rows)


ENDED = (JobStatus.DONE, JobStatus.ERROR)
# Seconds by which the clocks of processes may differ. A job that was postponed at a time which is further ahead than
# that was postponed before the clock was set back; it is due at once, and not when the old time comes again.
CLOCKS_DIFFER = 60.0


def purge(connection: Connection, each: Purge) -> int:
    """Return the number of deleted jobs."""
    old = job.c.status.in_(ENDED) & (job.c.updated_at < each.ended_before)
    locked = select(job.c.seq).where(old).order_by(job.c.seq).with_for_update()  # in the order of `shared.statements`
    deleted = connection.execute(delete(job).where(job.c.seq.in_(locked))).rowcount
    connection.execute(delete(quota).where(quota.c.day < each.day_before))
    return deleted


WRITE: dict[type, Callable[[Connection, Any], int | None]] = {
    Claim: claim,
    Postpone: postpone,
    Release: release,
    Settle: settle,
    Purge: purge,
}


SELECT_JOB: Select[Any] = select(*(job.c[name] for name in StoredJob.__dataclass_fields__))


def run_queries(engine: Engine, queries: Sequence[StoreQuery]) -> list[Any]:
    """The results of queries, in their order; all `FindJob` queries are one statement."""
    with engine.connect() as connection:
        found = find_jobs(connection, {each.job_id for each in queries if isinstance(each, FindJob)})
        return [
            found.get(each.job_id) if isinstance(each, FindJob) else READ[type(each)](connection, each)
            for each in queries
        ]


def stored_job(row: Row[Any]) -> StoredJob:
    values = row._asdict()
    return StoredJob(**{**values, "email": json.loads(values["email"])})


def find_jobs(connection: Connection, job_ids: set[str]) -> dict[str, StoredJob]:
    """The jobs that exist, by identifier."""
    if not job_ids:
        return {}
    rows = connection.execute(SELECT_JOB.where(job.c.job_id.in_(job_ids)))
    return {each.job_id: each for each in map(stored_job, rows)}


def quota_used(connection: Connection, each: QuotaUsed) -> int:
    of_client = (quota.c.client == each.client) & (quota.c.day == each.day)
    return connection.scalar(select(quota.c.used).where(of_client)) or 0


SELECT_NEXT = (  # the index `job_by_status` gives them in this order
    SELECT_JOB.where(job.c.status == JobStatus.QUEUED, job.c.client == bindparam("of"))
    .order_by(job.c.seq)
    .limit(bindparam("count", type_=Integer))
)


def next_jobs(connection: Connection, each: NextJobs) -> list[StoredJob]:
    """Queued jobs in fair order: every client's first job, then every client's second, and so on."""
    turns = [
        (turn, stored_job(row))
        for client, count in each.shares
        for turn, row in enumerate(connection.execute(SELECT_NEXT, {"of": client, "count": count}))
    ]
    turns.sort(key=lambda item: (item[0], item[1].seq))
    return [stored for _, stored in turns]


def due_jobs(connection: Connection, each: DueJobs) -> list[StoredJob]:
    """The jobs that are overdue longest come first, those that were postponed before the clock was set back last."""
    is_due = job.c.due.is_not(None) & ((job.c.due <= each.now) | (job.c.updated_at > each.now + CLOCKS_DIFFER))
    rows = connection.execute(SELECT_JOB.where(is_due).order_by(job.c.due).limit(each.limit))
    return [stored_job(row) for row in rows]


def count_jobs(connection: Connection, _: CountJobs) -> tuple[list[tuple[str, float, int]], int]:
    """Client, earliest submission and number of jobs of each group of queued jobs; the number of postponed jobs."""
    second = cast(job.c.created_at, BigInteger)
    groups = (
        select(job.c.client, func.min(job.c.created_at), func.count())
        .where(job.c.status == JobStatus.QUEUED)
        .group_by(job.c.client, second)
        .order_by(func.min(job.c.seq))
    )
    postponed = select(func.count()).select_from(job).where(job.c.due.is_not(None))
    return [tuple(row) for row in connection.execute(groups)], connection.scalar(postponed) or 0


def ping(connection: Connection, _: Ping) -> bool:
    if connection.dialect.name == "postgresql":  # a standby, or set so by an administrator
        return bool(connection.scalar(text("SELECT current_setting('transaction_read_only') = 'off'")))
    return connection.scalar(select(1)) == 1


READ: dict[type, Callable[[Connection, Any], Any]] = {
    QuotaUsed: quota_used,
    NextJobs: next_jobs,
    DueJobs: due_jobs,
    CountJobs: count_jobs,
    Ping: ping,
}
