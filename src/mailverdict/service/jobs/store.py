"""Jobs and quota, durably: what is written here was on the disk before anyone was told.

Writes come as a list of operations and are one transaction; reads come as a list of questions. Both
are served by a thread each (see `mailverdict.service.jobs.group_committer`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, Row, Select, bindparam, delete, func, insert, select, update

from ...contract.envelope import JobStatus
from .schema import connect, job, own_file, parse_url, prepare, quota, upsert_quota

__all__ = [
    "Claim",
    "CountJobs",
    "Debit",
    "DebitResult",
    "DueJobs",
    "FindJob",
    "JobResult",
    "NewJob",
    "NextJobs",
    "Ping",
    "Postpone",
    "Purge",
    "QuotaUsed",
    "Release",
    "Settle",
    "Store",
    "StoredJob",
    "run_queries",
]

JobRow = dict[str, Any]
Key = tuple[str, str]  # client and day
USED = select(quota.c.client, quota.c.day, quota.c.used).where(
    quota.c.client.in_(bindparam("clients", expanding=True)), quota.c.day.in_(bindparam("days", expanding=True))
)
ENDED = (JobStatus.DONE, JobStatus.ERROR)


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job as it is submitted; one that is settled at once comes with its ending."""

    job_id: str
    email: str
    validation_type: str
    status: str = JobStatus.QUEUED
    attempt: int = 0
    due: float | None = None
    verification: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Debit:
    """Take `cost` from a client's quota of a day and queue its jobs: all of it, or nothing."""

    client: str
    day: str
    cost: int
    limit: int
    now: float = 0.0
    jobs: tuple[NewJob, ...] = ()


@dataclass(frozen=True, slots=True)
class DebitResult:
    """The answer to a `Debit`: whether it was granted, and what the client has left."""

    granted: bool
    remaining: int


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker takes jobs on."""

    seqs: tuple[int, ...]
    now: float


@dataclass(frozen=True, slots=True)
class Release:
    """Jobs whose retry is due go into the queue again."""

    seqs: tuple[int, ...]
    now: float


@dataclass(frozen=True, slots=True)
class Postpone:
    """Jobs found the queue saturated; they are tried again when due."""

    seqs: tuple[int, ...]
    attempt: int
    due: float
    now: float


@dataclass(frozen=True, slots=True)
class JobResult:
    """How a job ended: `done` with its payload as JSON text, or `error` with a message."""

    seq: int
    status: str
    verification: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Settle:
    """Jobs have ended."""

    endings: tuple[JobResult, ...]
    now: float


@dataclass(frozen=True, slots=True)
class Purge:
    """Forget jobs that ended before a moment, and the quota of days before one."""

    ended_before: float
    day_before: str


Operation = Debit | Claim | Release | Postpone | Settle | Purge


class Store:
    """The database behind the service.

    Parameters
    ----------
    url : str
        As in `ServiceSettings.store`.

    Raises
    ------
    SettingsError
        If it cannot be opened, or another process works on it.
    """

    def __init__(self, url: str) -> None:
        parsed = parse_url(url)
        self.disown = own_file(parsed) if parsed.get_backend_name() == "sqlite" else do_nothing
        self.writer = connect(parsed, writes=True)
        self.reader = connect(parsed, writes=False)
        try:
            prepare(self.writer)
        except BaseException:
            self.close()
            raise
        self.set_used = upsert_quota(parsed.get_backend_name())
        self.known: dict[Key, int] = {}
        self.most_known = 50_000  # clients whose use is remembered between commits

    def close(self) -> None:
        """Let go of the connections and of the store."""
        for engine in (self.writer, self.reader):
            engine.dispose()
        self.disown()

    def recover(self, now: float) -> None:
        """Queue again what a worker had when the process ended."""
        interrupted = (job.c.status == JobStatus.PROCESSING) & job.c.due.is_(None)
        with self.writer.begin() as connection:
            connection.execute(update(job).where(interrupted).values(status=JobStatus.QUEUED, updated_at=now))

    def commit(self, operations: Sequence[Operation]) -> list[DebitResult | int | None]:
        """Carry out operations in one transaction: debits in order, then the others."""
        try:
            with self.writer.begin() as connection:
                debits = [each for each in operations if isinstance(each, Debit)]
                accounts = iter(self.debit(connection, debits))
                return [
                    next(accounts) if isinstance(each, Debit) else WRITE[type(each)](connection, each)
                    for each in operations
                ]
        except BaseException:
            self.known.clear()  # it counts debits that were not written
            raise

    def debit(self, connection: Connection, debits: Sequence[Debit]) -> list[DebitResult]:
        """Decide on debits one after the other, and write what they amount to in three statements."""
        if not debits:
            return []
        self.learn(connection, {(each.client, each.day) for each in debits})
        accounts = [decide(self.known, each) for each in debits]
        granted = [debit for debit, account in zip(debits, accounts, strict=True) if account.granted]
        if keys := sorted({(each.client, each.day) for each in granted}):
            totals = [{"client": client, "day": day, "used": self.known[client, day]} for client, day in keys]
            connection.execute(self.set_used, totals)
        if jobs := [job_row(debit, new) for debit in granted for new in debit.jobs]:
            connection.execute(insert(job), jobs)
        return accounts

    def learn(self, connection: Connection, keys: set[Key]) -> None:
        """Know what has been used of these days; nobody else writes here, so what is known stays true."""
        unknown = keys - self.known.keys()
        if not unknown:
            return
        if len(self.known) > self.most_known:
            self.known = {key: self.known[key] for key in keys & self.known.keys()}
        values = {"clients": sorted({c for c, _ in unknown}), "days": sorted({d for _, d in unknown})}
        found = {(client, day): used for client, day, used in connection.execute(USED, values)}
        self.known |= {key: found.get(key, 0) for key in unknown}


def do_nothing() -> None:
    """The session that writes owns a PostgreSQL store, and ends with its connection."""


def decide(used: dict[Key, int], debit: Debit) -> DebitResult:
    """Grant a debit that fits, and count it."""
    key = (debit.client, debit.day)
    remaining = max(debit.limit - used[key], 0)
    if debit.cost > remaining:
        return DebitResult(granted=False, remaining=remaining)
    used[key] += debit.cost
    return DebitResult(granted=True, remaining=remaining - debit.cost)


def job_row(debit: Debit, new: NewJob) -> JobRow:
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


def release(connection: Connection, each: Release) -> None:
    set_status(connection, each.seqs, status=JobStatus.QUEUED, due=None, updated_at=each.now)


def postpone(connection: Connection, each: Postpone) -> None:
    values = {"attempt": each.attempt, "due": each.due, "updated_at": each.now}
    set_status(connection, each.seqs, status=JobStatus.PROCESSING, **values)


SETTLE = (
    update(job)
    .where(job.c.seq == bindparam("of"))
    .values(due=None, status=bindparam("to"), verification=bindparam("payload"), message=bindparam("why"))
)


def settle(connection: Connection, each: Settle) -> None:
    """Write each job's ending."""
    rows = [{"of": e.seq, "to": e.status, "payload": e.verification, "why": e.message} for e in each.endings]
    if rows:
        connection.execute(SETTLE.values(updated_at=each.now), rows)


def purge(connection: Connection, each: Purge) -> int:
    """Delete, and say how many jobs went."""
    old = job.c.status.in_(ENDED) & (job.c.updated_at < each.ended_before)
    gone = connection.execute(delete(job).where(old)).rowcount
    connection.execute(delete(quota).where(quota.c.day < each.day_before))
    return gone


WRITE: dict[type, Callable[[Connection, Any], int | None]] = {
    Claim: claim,
    Release: release,
    Postpone: postpone,
    Settle: settle,
    Purge: purge,
}


@dataclass(frozen=True, slots=True)
class FindJob:
    """The job of an identifier, or None."""

    job_id: str


@dataclass(frozen=True, slots=True)
class QuotaUsed:
    """How much of a day's quota a client has used."""

    client: str
    day: str


@dataclass(frozen=True, slots=True)
class NextJobs:
    """The next jobs for the worker: one of each client in turn, each client's in order."""

    most: int


@dataclass(frozen=True, slots=True)
class DueJobs:
    """Jobs whose retry is due."""

    now: float
    most: int


@dataclass(frozen=True, slots=True)
class CountJobs:
    """How many jobs wait in the queue, and how many for a retry."""


@dataclass(frozen=True, slots=True)
class Ping:
    """Whether the store answers at all."""


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job as the store has it."""

    seq: int
    job_id: str
    email: str
    validation_type: str
    status: str
    attempt: int
    verification: str | None
    message: str | None
    created_at: float
    updated_at: float


StoreQuery = FindJob | QuotaUsed | NextJobs | DueJobs | CountJobs | Ping
COLUMNS = (
    job.c.seq,
    job.c.job_id,
    job.c.email,
    job.c.validation_type,
    job.c.status,
    job.c.attempt,
    job.c.verification,
    job.c.message,
    job.c.created_at,
    job.c.updated_at,
)


JOBS: Select[Any] = select(*COLUMNS)


def stored(row: Row[Any]) -> StoredJob:
    """A row as a value; the address is kept as JSON text."""
    values = row._asdict()
    return StoredJob(**{**values, "email": json.loads(values["email"])})


def run_queries(engine: Engine, questions: Sequence[StoreQuery]) -> list[Any]:
    """Answer questions in their order."""
    with engine.connect() as connection:
        wanted = {each.job_id for each in questions if isinstance(each, FindJob)}
        found = find_jobs(connection, wanted)
        return [
            found.get(each.job_id) if isinstance(each, FindJob) else READ[type(each)](connection, each)
            for each in questions
        ]


def find_jobs(connection: Connection, job_ids: set[str]) -> dict[str, StoredJob]:
    """Those of the jobs that there are."""
    if not job_ids:
        return {}
    rows = connection.execute(JOBS.where(job.c.job_id.in_(job_ids)))
    return {each.job_id: each for each in map(stored, rows)}


def used(connection: Connection, each: QuotaUsed) -> int:
    mine = (quota.c.client == each.client) & (quota.c.day == each.day)
    return connection.scalar(select(quota.c.used).where(mine)) or 0


def waiting(connection: Connection, each: NextJobs) -> list[StoredJob]:
    """Jobs in the order of their turns: every client's first, then every client's second, and so on."""
    turn = func.row_number().over(partition_by=job.c.client, order_by=job.c.seq)
    queued = select(job.c.seq, turn.label("turn")).where(job.c.status == JobStatus.QUEUED).subquery()
    chosen = select(queued.c.seq, queued.c.turn).order_by(queued.c.turn, queued.c.seq).limit(each.most).subquery()
    rows = connection.execute(JOBS.join(chosen, job.c.seq == chosen.c.seq).order_by(chosen.c.turn, chosen.c.seq))
    return [stored(row) for row in rows]


def due(connection: Connection, each: DueJobs) -> list[StoredJob]:
    """The longest due first."""
    rows = connection.execute(JOBS.where(job.c.due <= each.now).order_by(job.c.due).limit(each.most))
    return [stored(row) for row in rows]


def counts(connection: Connection, _: CountJobs) -> tuple[int, int]:
    queued = select(func.count()).select_from(job).where(job.c.status == JobStatus.QUEUED)
    postponed = select(func.count()).select_from(job).where(job.c.due.is_not(None))
    return connection.scalar(queued) or 0, connection.scalar(postponed) or 0


def ping(connection: Connection, _: Ping) -> bool:
    return connection.scalar(select(1)) == 1


READ: dict[type, Callable[[Connection, Any], Any]] = {
    QuotaUsed: used,
    NextJobs: waiting,
    DueJobs: due,
    CountJobs: counts,
    Ping: ping,
}
