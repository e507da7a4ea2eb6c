"""Taking over the jobs of another store.

`upgrade` is for an earlier version, `copy_store` for a move to PostgreSQL.

Stores on SQLite had version 1 of the schema, those on PostgreSQL 1 to 3. Versions 2 and 3
distributed the jobs by Procrastinate, whose tables, functions and types were in the same database.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Table, func, insert, inspect, select, text, update
from sqlalchemy.exc import SQLAlchemyError

from ...contract.envelope import JobStatus
from ...errors import SettingsError
from ..settings import ServiceSettings
from .schema import (
    JOB_ID_KEY,
    METADATA,
    SCHEMA_VERSION,
    about,
    connect,
    create_or_read,
    create_postgresql_engine,
    fill_backlog,
    is_shared,
    job,
    lift_limits,
    lock_file,
    locked_version,
    parse_url,
    quota,
    unusable,
)
from .store import Store

# --- an earlier version ---------------------------------------------------------------------------


def upgrade(url: str) -> tuple[int, int]:
    """Bring a store to the present schema, in one transaction.

    Return the versions before (0: empty) and after.

    Its services must be stopped: a file is locked, and what they would add to a database is refused
    from then on.
    """
    parsed = parse_url(url)
    is_file = parsed.get_backend_name() == "sqlite"
    if is_file and not Path(str(parsed.database)).is_file():
        raise SettingsError(f"store={url!r}: there is no such file to upgrade; check the path")
    unlock = lock_file(parsed) if is_file else None
    engine = connect(parsed, writes=True) if is_file else create_postgresql_engine(parsed)
    try:
        with engine.begin() as connection:
            lift_limits(connection)
            found = locked_version(connection)
            if found is not None and found < SCHEMA_VERSION:
                migrate(connection)
            create_or_read(connection)
    except SQLAlchemyError as exc:
        raise unusable(engine, exc) from exc
    finally:
        engine.dispose()
        if unlock is not None:
            unlock()
    return found or 0, SCHEMA_VERSION


FORMER_TABLES = (
    "assignment",
    "pace",
    "worker",
    "tally",
    "single_check",
    "check_pace",
    "second_pass",
)
DROP_PROCRASTINATE = """
    DO $$ DECLARE names text[]; name text; BEGIN
        SELECT coalesce(array_agg(what), '{}') INTO names FROM (
            SELECT 'TABLE IF EXISTS ' || oid::regclass AS what FROM pg_class
                WHERE starts_with(relname::text, 'procrastinate_') AND relkind = 'r'
                    AND pg_table_is_visible(oid)
            UNION ALL SELECT 'FUNCTION IF EXISTS ' || oid::regprocedure FROM pg_proc
                WHERE starts_with(proname::text, 'procrastinate_') AND pg_function_is_visible(oid)
            UNION ALL SELECT 'TYPE IF EXISTS ' || oid::regtype FROM pg_type
                WHERE starts_with(typname::text, 'procrastinate_') AND typrelid = 0 AND typelem = 0
                    AND pg_type_is_visible(oid)
            UNION ALL SELECT 'TYPE IF EXISTS ' || oid::regclass FROM pg_class
                WHERE starts_with(relname::text, 'procrastinate_') AND relkind = 'c'
                    AND pg_table_is_visible(oid)
        ) AS of_procrastinate;
        FOREACH name IN ARRAY names LOOP EXECUTE 'DROP ' || name || ' CASCADE'; END LOOP;
    END $$
"""


def migrate(connection: Connection) -> None:
    """Take over the jobs of an earlier version; the ones that were in work wait again."""
    tables = set(inspect(connection).get_table_names())
    indexes = {index["name"] for index in inspect(connection).get_indexes(job.name)}
    asked_again = "UPDATE job SET second_pass = true WHERE seq IN (SELECT seq FROM second_pass)"
    statements = [
        "ALTER TABLE job ADD COLUMN worker bigint",
        "ALTER TABLE job ADD COLUMN owner text",
        "ALTER TABLE job ADD COLUMN priority integer NOT NULL DEFAULT 0",
        "ALTER TABLE job ADD COLUMN second_pass boolean NOT NULL DEFAULT false",
    ]
    if "second_pass" in tables:
        statements.append(asked_again)
    statements.append(
        "UPDATE job SET status = 'queued' WHERE status = 'processing' AND due IS NULL"
    )
    for name in indexes & {"job_by_status", "job_by_due", "job_queued"}:
        statements.append(f"DROP INDEX {name}")
    for name in FORMER_TABLES:
        if name in tables:
            statements.append(f"DROP TABLE {name}")
    statements.append("DELETE FROM about WHERE name = 'procrastinate'")
    if connection.dialect.name == "postgresql":
        # Without defaults, so that an API of a version before, which does not count its jobs,
        # cannot add any.
        for name in ("priority", "second_pass"):
            statements.append(f"ALTER TABLE job ALTER COLUMN {name} DROP DEFAULT")
        statements.append(DROP_PROCRASTINATE)
    for statement in statements:
        connection.exec_driver_sql(statement)
    METADATA.create_all(connection)
    for index in job.indexes:
        index.create(connection)
    fill_backlog(connection)
    connection.execute(
        update(about).where(about.c.name == "schema").values(value=str(SCHEMA_VERSION))
    )


# --- from a file to PostgreSQL --------------------------------------------------------------------

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

    `SettingsError` if a service uses the source, if the target has jobs or quota already, or if
    either cannot be opened. Jobs that were being verified are queued in the target.
    """
    if is_shared(source) or not is_shared(target):
        raise SettingsError(
            "copy from an SQLite file (sqlite:///jobs.db) to a PostgreSQL database "
            "(postgresql://...)"
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
    """Raise, which undoes everything, unless both have the same jobs by status and quota."""
    units = select(func.count(), func.coalesce(func.sum(quota.c.used), 0))
    ended = select(func.count()).where(job.c.status.in_((JobStatus.DONE, JobStatus.ERROR)))
    for statement in (units, ended, select(func.count()).select_from(job)):
        if tuple(reader.execute(statement).one()) != tuple(writer.execute(statement).one()):
            raise SettingsError(f"the copy differs from {name!r}; nothing was written")
