"""The store's tables, and connections to them: one schema on SQLite and PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Engine,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
    insert,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import SQLAlchemyError

from ...errors import MissingExtraError, SettingsError

__all__ = [
    "SCHEMA_VERSION",
    "connect",
    "job",
    "own_file",
    "own_session",
    "parse_url",
    "prepare",
    "quota",
    "upsert_quota",
]

SCHEMA_VERSION = "1"
METADATA = MetaData()

job = Table(
    "job",
    METADATA,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),  # order of submission
    Column("job_id", String(64), nullable=False, unique=True),
    Column("client", String(64), nullable=False),
    Column("email", Text, nullable=False),  # as JSON text: it may hold what a database cannot (NUL, lone surrogates)
    Column("validation_type", String(16), nullable=False),
    Column("status", String(16), nullable=False),
    Column("attempt", Integer, nullable=False),  # how often the queue was found saturated
    Column("due", Float),  # when to try again; null where no retry is pending
    Column("verification", Text),  # the payload as JSON text, in the current revision
    Column("message", Text),  # why the job ended in error
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    # Serves the fair choice of waiting jobs, and the sweep of ended ones.
    Index("job_by_status", "status", "client", "seq"),
    Index("job_by_due", "due"),
)
quota = Table(
    "quota",
    METADATA,
    Column("client", String(64), primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("used", Integer, nullable=False),
)
about = Table("about", METADATA, Column("name", String(32), primary_key=True), Column("value", Text, nullable=False))

INSERTS: dict[str, Callable[[Table], Any]] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


def parse_url(text: str) -> URL:
    """The store's URL, with the driver that is installed by the extra; an SQLite file needs its directory."""
    url = make_url(text)
    if url.drivername == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() == "sqlite" and url.database and not Path(url.database).parent.is_dir():
        raise SettingsError(f"store: the directory of {url.database!r} does not exist")
    return url


def connect(url: URL, *, writes: bool) -> Engine:
    """An engine with one connection: the writer's thread and the reader's have one each.

    The writer's owns the store.

    An SQLite transaction of the writer begins as a writing one, and its commit is on the disk (WAL
    alone would keep the database whole after a power cut, but forget the last commits).

    Raises
    ------
    MissingExtraError
        If PostgreSQL's driver is not installed.
    """
    common: dict[str, Any] = {"pool_size": 1, "max_overflow": 0, "hide_parameters": True}
    if url.get_backend_name() == "postgresql":
        engine = create_server_engine(url, **common)
        if writes:
            event.listen(engine, "connect", own_session)
        return engine
    engine = create_engine(url, connect_args={"check_same_thread": False, "timeout": 30}, **common)
    event.listen(engine, "connect", prepare_sqlite)
    if writes:
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def create_server_engine(url: URL, **common: Any) -> Engine:
    """An engine that notices a connection that was dropped before it uses it."""
    try:
        return create_engine(url, pool_pre_ping=True, **common)
    except ModuleNotFoundError as exc:
        raise MissingExtraError("a store on PostgreSQL", "postgres") from exc


def prepare_sqlite(connection: Any, _: object) -> None:
    """Leave transactions to us, and make commits durable."""
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")


def prepare(engine: Engine) -> None:
    """Create the tables where they are missing.

    Raises
    ------
    SettingsError
        If the database cannot be opened, or was written by a version that this one does not read.
    """
    try:
        with engine.begin() as connection:
            METADATA.create_all(connection)
            found = connection.scalar(select(about.c.value).where(about.c.name == "schema"))
            if found is None:
                connection.execute(insert(about).values(name="schema", value=SCHEMA_VERSION))
    except SQLAlchemyError as exc:
        shown = engine.url.render_as_string(hide_password=True)
        raise SettingsError(f"store={shown!r} cannot be opened: {exc.__cause__ or exc}") from exc
    if found not in (None, SCHEMA_VERSION):
        raise SettingsError(f"the store has schema {found}, this version reads {SCHEMA_VERSION}")


def upsert_quota(dialect: str) -> Any:
    """Set a client's `used` of a day, whether or not there is a row."""
    statement = INSERTS[dialect](quota)
    return statement.on_conflict_do_update(index_elements=["client", "day"], set_={"used": statement.excluded.used})


TAKEN = "another service already works on this store; give each its own, or stop the other one"
ADVISORY_KEY = 0x6D61696C7664  # any fixed number: it names our lock within the database


def own_file(url: URL) -> Callable[[], None]:
    """Take an SQLite store: lock a file beside it, by SQLite's own means, which work on every system.

    Parameters
    ----------
    url : sqlalchemy.engine.URL
        The store's.

    Returns
    -------
    callable
        Gives the store back.

    Raises
    ------
    SettingsError
        If another process has it.
    """
    connection = sqlite3.connect(f"{url.database}-owner", timeout=0, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as exc:
        connection.close()
        raise SettingsError(TAKEN if "locked" in str(exc) else f"store: {exc}") from exc
    return connection.close


def own_session(connection: Any, _: object) -> None:
    """Take a PostgreSQL store for the session that writes to it.

    The lock belongs to the very connection that writes, so that one that was lost is never written past.

    Parameters
    ----------
    connection : psycopg.Connection
        As the pool has just opened it.

    Raises
    ------
    SettingsError
        If another process has the store; the connection is closed.
    """
    with connection.cursor() as cursor:
        [taken] = cursor.execute("SELECT pg_try_advisory_lock(%s)", (ADVISORY_KEY,)).fetchone()
    connection.commit()
    if not taken:
        connection.close()
        raise SettingsError(TAKEN)
