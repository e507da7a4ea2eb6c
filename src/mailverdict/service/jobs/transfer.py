"""`copy_store`: moves jobs and quota from an SQLite file to a PostgreSQL database."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, Table, func, insert, select, text, update

from ...contract.envelope import JobStatus
from ...errors import SettingsError
from ..settings import ServiceSettings
from .backlog import fill_backlog
from .schema import JOB_ID_KEY, about, is_shared, job, lift_limits, parse_url, quota
from .store import Store

SET_SEQUENCE = text(
    "SELECT setval(pg_get_serial_sequence('job', 'seq'), coalesce(max(seq), 0) + 1, false) FROM job"
)
PIECE = 1000  # rows in one statement


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """How many rows were copied."""

    jobs: int
    quota: int


def copy_store(source: str, target: str) -> CopiedRows:
    """Copy all jobs and the quota, in one transaction; the source is not changed.

    `SettingsError` if a service uses the source, if the target has jobs or quota already, or if either cannot be
    opened. Jobs that were being verified are queued in the target.
    """
    if is_shared(source) or not is_shared(target):
        raise SettingsError(
            "copy from an SQLite file (sqlite:///jobs.db) to a PostgreSQL database (postgresql://...)"
        )
    path = parse_url(source)
    origin = Store(ServiceSettings(store=source))
    try:
        destination = Store(ServiceSettings(store=target))
        try:
            with origin.reader.connect() as reader, destination.writer.begin() as writer:
                lift_limits(writer)
                writer.execute(text("LOCK TABLE job, quota IN EXCLUSIVE MODE"))
                for table in (job, quota):
                    if writer.scalar(select(func.count()).select_from(table)):
                        raise SettingsError(
                            f"the target has rows in {table.name!r} already; give an empty database"
                        )
                copied = CopiedRows(
                    copy_table(reader, writer, job), copy_table(reader, writer, quota)
                )
                interrupted = (job.c.status == JobStatus.PROCESSING) & job.c.due.is_(None)
                writer.execute(
                    update(job).where(interrupted).values(status=JobStatus.QUEUED, worker=None)
                )
                fill_backlog(writer)
                writer.execute(SET_SEQUENCE)
                # So that a submission which is repeated after the move gets the jobs that it has.
                writer.execute(
                    update(about).where(about.c.name == JOB_ID_KEY).values(value=origin.secret)
                )
                check_counts(reader, writer, path.database or "")
        finally:
            destination.close()
    finally:
        origin.close()
    return copied


def copy_table(reader: Connection, writer: Connection, table: Table) -> int:
    """Copy the rows of a table in pieces."""
    count = 0
    rows = reader.execution_options(stream_results=True).execute(select(table)).mappings()
    for piece in rows.partitions(PIECE):
        writer.execute(insert(table), [dict(row) for row in piece])
        count += len(piece)
    return count


def check_counts(reader: Connection, writer: Connection, name: str) -> None:
    """Raise, which undoes everything, unless both have the same jobs by status and the same sum of quota."""
    units = select(func.count(), func.coalesce(func.sum(quota.c.used), 0))
    ended = select(func.count()).where(job.c.status.in_((JobStatus.DONE, JobStatus.ERROR)))
    for statement in (units, ended, select(func.count()).select_from(job)):
        if tuple(reader.execute(statement).one()) != tuple(writer.execute(statement).one()):
            raise SettingsError(f"the copy differs from {name!r}; nothing was written")
