"""The schema of a store on PostgreSQL: its versions, and how one becomes the next.

Version 1 are the tables of `jobs.schema`. A migration is an SQL file in `migrations/`, named by the version that it
leads to; it only adds, so that processes of the version before can go on. Procrastinate's own tables have
their own migrations, which its package brings; the last one that was applied is in the table `about`, too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, insert, inspect, select, text, update
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from ...errors import MissingExtraError, SettingsError
from ..jobs.schema import CONNECTION, METADATA, about, ensure_secret

LOG = logging.getLogger(__name__)
START_WAIT = 60.0  # seconds that a program waits for a database which does not accept connections yet
START_PAUSE = 0.5  # seconds between two attempts
FIRST_VERSION = 1  # the tables of `jobs.schema`
SHARED_VERSION = 3
MIGRATION_LOCK = 0x6D61696C7665  # advisory lock of one who creates or changes tables
PROCRASTINATE = "procrastinate"  # the row of `about` with the name of its last migration


def prepare(engine: Engine) -> str:
    """Create the tables of an empty database, and return the store's secret.

    `SettingsError` if the database has another version.

    Waits up to `START_WAIT` for a database that does not accept connections yet, as after a reboot of all hosts.
    """
    until = time.monotonic() + START_WAIT
    accepts = is_announced = False
    while True:
        try:
            found, last, secret = create_or_read(engine)
            break
        except OperationalError as exc:
            accepted, accepts = accepts, accepts_connections(engine)
            if (accepted and accepts) or time.monotonic() >= until:  # it refuses this program, or is away
                raise unusable(engine, exc) from exc
            if not is_announced:
                LOG.warning("the store cannot be reached; trying again for %.0f s: %s", START_WAIT, exc.__cause__)
                is_announced = True
            time.sleep(START_PAUSE)
        except SQLAlchemyError as exc:
            raise unusable(engine, exc) from exc
    if found < SHARED_VERSION or last != newest_procrastinate():
        have = f"schema {found}" if found < SHARED_VERSION else f"tables of Procrastinate {last}"
        raise SettingsError(f"the store has {have}, this version needs newer ones: run 'mailverdict store upgrade'")
    if found > SHARED_VERSION:
        raise SettingsError(
            f"the store has schema {found}, this version knows {SHARED_VERSION}: update mailverdict here"
        )
    return secret


def create_or_read(engine: Engine) -> tuple[int, str | None, str]:
    """The versions of the schema and of Procrastinate's tables, and the secret; all is created in an empty database."""
    with engine.begin() as connection:
        found = locked_version(connection)
        if found is None:
            create_first(connection)
            migrate(connection, FIRST_VERSION)
            found = SHARED_VERSION
        return found, last_procrastinate(connection), ensure_secret(connection)


def accepts_connections(engine: Engine) -> bool:
    """Whether the server accepts connections at all, whatever the user, the password and the database."""
    from psycopg import pq  # noqa: PLC0415 - an extra
    from psycopg.conninfo import make_conninfo  # noqa: PLC0415 - an extra

    _, options = engine.dialect.create_connect_args(engine.url)
    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}  # the others are of the driver
    target = make_conninfo("", **{name: value for name, value in options.items() if name in known})
    return pq.PGconn.ping(target.encode()) == pq.Ping.OK


def upgrade(engine: Engine) -> tuple[int, int]:
    """Bring a database to the newest schema, in one transaction; return the versions before and after."""
    try:
        with engine.begin() as connection:
            found = locked_version(connection)
            if found is None:
                create_first(connection)
            migrate(connection, found or FIRST_VERSION)
    except SQLAlchemyError as exc:
        raise unusable(engine, exc) from exc
    return found or 0, SHARED_VERSION


def unusable(engine: Engine, exc: SQLAlchemyError) -> SettingsError:
    shown = engine.url.difference_update_query(CONNECTION).render_as_string(hide_password=True)
    return SettingsError(f"store={shown!r} cannot be opened: {exc.__cause__ or exc}")


def locked_version(connection: Connection) -> int | None:
    """The schema's version, None if the database is empty; nobody else changes it during the transaction."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
    if not inspect(connection).has_table(about.name):
        return None
    found = connection.scalar(select(about.c.value).where(about.c.name == "schema"))
    if found is None or not str(found).isdecimal():
        raise SettingsError(f"the store has schema {found!r}, which no version of mailverdict wrote")
    return int(found)


def create_first(connection: Connection) -> None:
    METADATA.create_all(connection)
    connection.execute(insert(about).values(name="schema", value=str(FIRST_VERSION)))


def migrate(connection: Connection, found: int) -> None:
    """Apply what a database of a version lacks: the migrations of this package and of Procrastinate."""
    for version, statements in migrations():
        if version > found:
            run_script(connection, statements)
    last = last_procrastinate(connection)
    if last is None:
        run_script(connection, procrastinate_schema())
        connection.execute(insert(about).values(name=PROCRASTINATE, value=newest_procrastinate()))
    else:
        for path in procrastinate_migrations():
            if path.name > last:
                run_script(connection, path.read_text(encoding="utf-8"))
        connection.execute(update(about).where(about.c.name == PROCRASTINATE).values(value=newest_procrastinate()))
    if found < SHARED_VERSION:
        connection.execute(update(about).where(about.c.name == "schema").values(value=str(SHARED_VERSION)))


def run_script(connection: Connection, statements: str) -> None:
    """Run several statements as they are, without parameters."""
    driver: Any = connection.connection.driver_connection
    try:
        with driver.cursor() as cursor:
            cursor.execute(statements)
    except connection.dialect.loaded_dbapi.Error as exc:
        raise SQLAlchemyError(str(exc)) from exc


def migrations() -> Iterator[tuple[int, str]]:
    """Version and statements of each migration, in order."""
    for each in sorted(files(__package__).joinpath("migrations").iterdir(), key=lambda path: path.name):
        if each.name.endswith(".sql"):
            yield int(each.name[:4]), each.read_text(encoding="utf-8")


def last_procrastinate(connection: Connection) -> str | None:
    found: str | None = connection.scalar(select(about.c.value).where(about.c.name == PROCRASTINATE))
    return found


def procrastinate_migrations() -> list[Path]:
    """The migrations of the installed Procrastinate, in order."""
    try:
        from procrastinate.schema import SchemaManager  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as exc:
        raise MissingExtraError("a store on PostgreSQL", "postgres") from exc
    return sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"), key=lambda path: path.name)


def newest_procrastinate() -> str:
    return procrastinate_migrations()[-1].name


def procrastinate_schema() -> str:
    from procrastinate.schema import SchemaManager  # noqa: PLC0415 - an extra

    return str(SchemaManager.get_schema())
