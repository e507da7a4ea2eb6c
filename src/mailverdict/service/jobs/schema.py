"""The store's tables and connections, on SQLite and PostgreSQL, and the lock of an SQLite file.

One process uses an SQLite file at a time: two would verify the same jobs twice. The operating system releases the
lock when the process ends, however it ends. Several processes may use a PostgreSQL database; see `shared/`.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    bindparam,
    create_engine,
    event,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import SQLAlchemyError

from ...errors import MissingExtraError, SettingsError

SCHEMA_VERSION = "1"
METADATA = MetaData()

job = Table(
    "job",
    METADATA,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),  # order of submission
    Column("job_id", String(64), nullable=False, unique=True),
    Column("client", String(64), nullable=False),
    Column("email", Text, nullable=False),  # as JSON text: it may have NUL or lone surrogates, which databases refuse
    Column("validation_type", String(16), nullable=False),
    Column("status", String(16), nullable=False),
    Column("attempt", Integer, nullable=False),  # how often the queue was found saturated
    Column("due", Float),  # when to try again; null unless a retry is pending
    Column("verification", Text),  # the payload as JSON text, in the current revision
    Column("message", Text),  # why the job ended in error
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    Index("job_by_status", "status", "client", "seq"),  # for the next jobs in fair order, and for the purge
    Index("job_by_due", "due"),
)
quota = Table(
    "quota",
    METADATA,
    Column("client", String(64), primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("used", Integer, nullable=False),
)
JOB_ID_KEY = "job_id_key"  # the row of `about` with the store's secret
about = Table("about", METADATA, Column("name", String(32), primary_key=True), Column("value", Text, nullable=False))

INSERTS: dict[str, Callable[[Table], Any]] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


# Limits of a connection to PostgreSQL, unless the URL has others, in seconds and milliseconds. If the database's host
# loses its power, TCP alone would try for a quarter of an hour.
CONNECTION = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}


def parse_url(text: str) -> URL:
    """The store's URL with the installed driver and time limits; the directory of an SQLite file must exist."""
    url = make_url(text)
    if url.get_backend_name() == "postgresql":
        limits = {name: value for name, value in CONNECTION.items() if name not in url.query}
        return url.set(drivername="postgresql+psycopg").update_query_dict(limits)
    if url.get_backend_name() == "sqlite" and url.database and not Path(url.database).parent.is_dir():
        raise SettingsError(f"store: the directory of {url.database!r} does not exist")
    return url


def is_shared(text: str) -> bool:
    """Whether several processes can use the store: PostgreSQL."""
    return make_url(text).get_backend_name() == "postgresql"


def create_file(url: URL) -> None:
    """Create a missing SQLite file so that only its user can read it: it contains addresses.

    SQLite gives the files beside it the same mode. The mode of an existing file is not changed. Raises `SettingsError`
    if the file is read-only.
    """
    path = url.database or ""
    if not path.startswith("file:"):  # a URI, which SQLite opens itself
        with suppress(OSError):  # it exists, or SQLite's own error says more
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        # SQLite opens a file that it may not write for reading, without an error.
        if Path(path).exists() and not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            raise SettingsError(f"store: {path!r} cannot be written; check its owner and mode, or its file system")


def connect(url: URL, *, writes: bool) -> Engine:
    """An engine with one connection.

    In SQLite the writer's transactions begin as writing ones (``BEGIN IMMEDIATE``), and a commit is
    synced to disk: WAL with ``synchronous=NORMAL`` would lose the last commits at a power failure.
    """
    common: dict[str, Any] = {"pool_size": 1, "max_overflow": 0, "hide_parameters": True}
    if url.get_backend_name() == "postgresql":
        return create_postgresql_engine(url, **common)
    engine = create_engine(url, connect_args={"check_same_thread": False, "timeout": 30}, **common)
    event.listen(engine, "connect", prepare_sqlite)
    if writes:
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def create_postgresql_engine(url: URL, **common: Any) -> Engine:
    try:
        return create_engine(url, pool_pre_ping=True, **common)  # a connection that was dropped is replaced
    except ModuleNotFoundError as exc:
        raise MissingExtraError("a store on PostgreSQL", "postgres") from exc


def prepare_sqlite(connection: Any, _: object) -> None:
    """Turn off the driver's own transactions, and make commits durable."""
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")


def create_tables(engine: Engine) -> str:
    """Create missing tables, return the store's secret; `SettingsError` if it cannot be used or has another version."""
    try:
        with engine.begin() as connection:
            if engine.dialect.name == "sqlite":
                check_owner(connection, engine.url.database)
            METADATA.create_all(connection)
            found = connection.scalar(select(about.c.value).where(about.c.name == "schema"))
            if found is None:
                connection.execute(insert(about).values(name="schema", value=SCHEMA_VERSION))
            elif found != SCHEMA_VERSION:
                raise SettingsError(f"the store has schema {found}, this version reads {SCHEMA_VERSION}")
            return ensure_secret(connection)
    except SQLAlchemyError as exc:
        shown = engine.url.render_as_string(hide_password=True)
        raise SettingsError(f"store={shown!r} cannot be opened: {exc.__cause__ or exc}") from exc


def ensure_secret(connection: Connection) -> str:
    """The store's secret, for job identifiers that nobody else can compute; the first process makes it.

    The caller's transaction excludes other processes.
    """
    found: str | None = connection.scalar(select(about.c.value).where(about.c.name == JOB_ID_KEY))
    if found is None:
        found = secrets.token_hex(32)
        connection.execute(insert(about).values(name=JOB_ID_KEY, value=found))
    return found


def check_owner(connection: Connection, path: str | None) -> None:
    """Raise `SettingsError` if an SQLite file has only tables of another program, for example those of a journal."""
    names = set(inspect(connection).get_table_names())
    if names and names.isdisjoint(METADATA.tables):
        raise SettingsError(f"store: {path!r} has other tables, as a journal has; name another file")


def add_quota(dialect: str) -> Any:
    """The statement that adds to `used` of a client and day if the sum is at most `most`; it returns the new sums."""
    statement = INSERTS[dialect](quota).values(client=bindparam("client"), day=bindparam("day"), used=bindparam("used"))
    total = quota.c.used + statement.excluded.used
    return statement.on_conflict_do_update(
        index_elements=["client", "day"], set_={"used": total}, where=total <= bindparam("most")
    ).returning(quota.c.client, quota.c.day, quota.c.used)


# PostgreSQL executes an INSERT for each row of several; this is one for all of them.
INSERT_ROWS = text("""
    INSERT INTO job (
        job_id, client, email, validation_type, status, attempt, due, verification, message, created_at, updated_at
    )
    SELECT * FROM unnest(
        CAST(:job_id AS text[]), CAST(:client AS text[]), CAST(:email AS text[]), CAST(:validation_type AS text[]),
        CAST(:status AS text[]), CAST(:attempt AS integer[]), CAST(:due AS double precision[]),
        CAST(:verification AS text[]), CAST(:message AS text[]), CAST(:created_at AS double precision[]),
        CAST(:updated_at AS double precision[])
    )
""")


def insert_jobs(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows to `job`."""
    if connection.dialect.name == "postgresql":
        connection.execute(INSERT_ROWS, {name: [row[name] for row in rows] for name in rows[0]})
    else:
        connection.execute(insert(job), rows)


LOCKED = "another service already works on this store; give each its own, or stop the other one"


def lock_file(url: URL) -> Callable[[], None]:
    """Lock an SQLite store with a second SQLite file beside it, which works on every system.

    Returns the function that releases the lock; raises `SettingsError` if another process has it.
    """
    file = f"{url.database}-owner"
    try:
        connection = sqlite3.connect(file, timeout=0, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as exc:
        raise SettingsError(f"store: {file!r} cannot be created or opened; check its folder: {exc}") from exc
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as exc:
        connection.close()
        raise SettingsError(LOCKED if "locked" in str(exc) else f"store: {file!r}: {exc}") from exc
    return connection.close
