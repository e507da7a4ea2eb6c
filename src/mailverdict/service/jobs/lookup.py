"""Questions to the store. Those of one moment are answered on one connection, polls by one statement."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, Row, Select, func, select

from ...contract.envelope import JobStatus
from .schema import job, quota

__all__ = ["Counts", "Due", "FindJob", "Ping", "StoredJob", "Used", "Waiting", "answer_all"]


@dataclass(frozen=True, slots=True)
class FindJob:
    """The job of an identifier, or None."""

    job_id: str


@dataclass(frozen=True, slots=True)
class Used:
    """How much of a day's quota a client has used."""

    client: str
    day: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """The next jobs for the worker: one of each client in turn, each client's in order."""

    most: int


@dataclass(frozen=True, slots=True)
class Due:
    """Jobs whose retry is due."""

    now: float
    most: int


@dataclass(frozen=True, slots=True)
class Counts:
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


Question = FindJob | Used | Waiting | Due | Counts | Ping
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


def answer_all(engine: Engine, questions: Sequence[Question]) -> list[Any]:
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


def used(connection: Connection, each: Used) -> int:
    mine = (quota.c.client == each.client) & (quota.c.day == each.day)
    return connection.scalar(select(quota.c.used).where(mine)) or 0


def waiting(connection: Connection, each: Waiting) -> list[StoredJob]:
    """Jobs in the order of their turns: every client's first, then every client's second, and so on."""
    turn = func.row_number().over(partition_by=job.c.client, order_by=job.c.seq)
    queued = select(job.c.seq, turn.label("turn")).where(job.c.status == JobStatus.QUEUED).subquery()
    chosen = select(queued.c.seq, queued.c.turn).order_by(queued.c.turn, queued.c.seq).limit(each.most).subquery()
    rows = connection.execute(JOBS.join(chosen, job.c.seq == chosen.c.seq).order_by(chosen.c.turn, chosen.c.seq))
    return [stored(row) for row in rows]


def due(connection: Connection, each: Due) -> list[StoredJob]:
    """The longest due first."""
    rows = connection.execute(JOBS.where(job.c.due <= each.now).order_by(job.c.due).limit(each.most))
    return [stored(row) for row in rows]


def counts(connection: Connection, _: Counts) -> tuple[int, int]:
    queued = select(func.count()).select_from(job).where(job.c.status == JobStatus.QUEUED)
    postponed = select(func.count()).select_from(job).where(job.c.due.is_not(None))
    return connection.scalar(queued) or 0, connection.scalar(postponed) or 0


def ping(connection: Connection, _: Ping) -> bool:
    return connection.scalar(select(1)) == 1


READ: dict[type, Callable[[Connection, Any], Any]] = {
    Used: used,
    Waiting: waiting,
    Due: due,
    Counts: counts,
    Ping: ping,
}
