"""`upgrade`: takes over a store of an earlier version.

Those on SQLite had version 1 of the schema, those on PostgreSQL 1 to 3. Versions 2 and 3 distributed the jobs by
Procrastinate, whose tables, functions and types were in the same database.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, update
from sqlalchemy.exc import SQLAlchemyError

from ...errors import SettingsError
from .backlog import fill_backlog
from .schema import (
    METADATA,
    SCHEMA_VERSION,
    about,
    connect,
    create_or_read,
    create_postgresql_engine,
    job,
    lift_limits,
    lock_file,
    locked_version,
    parse_url,
    unusable,
)


def upgrade(url: str) -> tuple[int, int]:
    """Bring a store to the present schema, in one transaction; return the versions before (0: empty) and after.

    Its services must be stopped: a file is locked, and what they would add to a database is refused from then on.
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
                WHERE starts_with(relname::text, 'procrastinate_') AND relkind = 'r' AND pg_table_is_visible(oid)
            UNION ALL SELECT 'FUNCTION IF EXISTS ' || oid::regprocedure FROM pg_proc
                WHERE starts_with(proname::text, 'procrastinate_') AND pg_function_is_visible(oid)
            UNION ALL SELECT 'TYPE IF EXISTS ' || oid::regtype FROM pg_type
                WHERE starts_with(typname::text, 'procrastinate_') AND typrelid = 0 AND typelem = 0
                    AND pg_type_is_visible(oid)
            UNION ALL SELECT 'TYPE IF EXISTS ' || oid::regclass FROM pg_class
                WHERE starts_with(relname::text, 'procrastinate_') AND relkind = 'c' AND pg_table_is_visible(oid)
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
        *([asked_again] if "second_pass" in tables else []),
        "UPDATE job SET status = 'queued' WHERE status = 'processing' AND due IS NULL",
        *(f"DROP INDEX {name}" for name in indexes & {"job_by_status", "job_by_due", "job_queued"}),
        *(f"DROP TABLE {name}" for name in FORMER_TABLES if name in tables),
        "DELETE FROM about WHERE name = 'procrastinate'",
    ]
    if connection.dialect.name == "postgresql":
        # Without defaults, so that an API of a version before, which does not count its jobs, cannot add any.
        statements += [
            f"ALTER TABLE job ALTER COLUMN {name} DROP DEFAULT"
            for name in ("priority", "second_pass")
        ]
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
