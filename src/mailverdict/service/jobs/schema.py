"""The store's tables and connections, on SQLite and PostgreSQL, and the lock of an SQLite file.

The backlog has how many unfinished jobs each client has, by state. Whoever changes jobs keeps it
right (`Changes`).

One process uses an SQLite file at a time, and has the only worker of it. The operating system
releases the lock when the process ends, however it ends. Any number of APIs and workers use a
PostgreSQL database.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
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
    TypeDecorator,
    bindparam,
    create_engine,
    event,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from ...contract.envelope import JobStatus
from ...errors import MissingExtraError, SettingsError

LOG = logging.getLogger(__name__)
METADATA = MetaData()
NUMBER = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers only an INTEGER by itself


def partial_index(name: str, *columns: str, where: str) -> Index:
    """An index of some rows.

    The databases use it only for a query that has the same condition as a constant.
    """
    return Index(name, *columns, sqlite_where=text(where), postgresql_where=text(where))


class JsonText(TypeDecorator[str]):
    """Any text, as JSON: an address may have NUL or lone surrogates, which the databases refuse."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: object) -> str:
        return json.dumps(value)

    def process_result_value(self, value: Any, dialect: object) -> str:
        text: str = json.loads(value)
        return text


job = Table(  # the queue
    "job",
    METADATA,
    Column("seq", NUMBER, primary_key=True),  # order of submission
    Column("job_id", String(64), nullable=False, unique=True),
    Column("client", String(64), nullable=False),
    Column("email", JsonText, nullable=False),
    Column("validation_type", String(16), nullable=False),
    Column("status", String(16), nullable=False),
    Column("attempt", Integer, nullable=False),  # how often the queue was found saturated
    Column("due", Float),  # when to try again; null unless a retry is pending
    Column("verification", Text),  # the payload as JSON text, in the current revision
    Column("message", Text),  # why the job ended in error
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    # The worker that has claimed the job; null while it waits for the owner of its mail servers.
    Column("worker", BigInteger),
    # Organisation whose mail servers are asked, on PostgreSQL; null until it is known.
    Column("owner", Text),
    # 1: a single check, whose client waits; 0: all others.
    Column("priority", Integer, nullable=False),
    Column("second_pass", Boolean, nullable=False),  # it was greylisted, and is asked once more
    partial_index("job_waiting", "client", "seq", "validation_type", where="status = 'queued'"),
    partial_index("job_due", "due", where="due IS NOT NULL"),
    partial_index("job_of_worker", "worker", where="worker IS NOT NULL"),
    partial_index("job_of_owner", "owner", "client", "seq", where="owner IS NOT NULL"),
    partial_index("job_check", "updated_at", where="priority > 0"),
    partial_index("job_ended", "updated_at", where="status IN ('done', 'error')"),
)
quota = Table(
    "quota",
    METADATA,
    Column("client", String(64), primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("used", Integer, nullable=False),
)
# The unfinished jobs of each client, and its pace; each transaction that changes jobs keeps it
# right.
backlog = Table(
    "backlog",
    METADATA,
    Column("client", String(64), primary_key=True),
    Column("waiting", Integer, nullable=False),  # queued
    Column("verifying", Integer, nullable=False),  # processing
    Column("postponed", Integer, nullable=False),  # processing, with a retry that is pending
    # How many bulk jobs of the client could be started when some were for the last time.
    Column("tokens", Float, nullable=False),
    Column("counted_at", Float, nullable=False),  # when that was
)
worker = Table(
    "worker",
    METADATA,
    Column("id", NUMBER, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("types", Text, nullable=False),
    Column("egress", Text),
    # Until when its jobs and owners are its own, by the database's clock.
    Column("lease", Float, nullable=False),
    sqlite_autoincrement=True,  # a number is never given again
)
owner = Table(  # the exclusive right of a worker to ask the mail servers of an organisation
    "owner",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("worker", BigInteger, nullable=False),
)
JOB_ID_KEY = "job_id_key"  # the row of `about` with the store's secret
about = Table(
    "about",
    METADATA,
    Column("name", String(32), primary_key=True),
    Column("value", Text, nullable=False),
)

INSERTS: dict[str, Callable[[Table], Any]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}

# --- the backlog ----------------------------------------------------------------------------------

STATES = ("waiting", "verifying", "postponed")
OPEN = backlog.c.waiting + backlog.c.verifying + backlog.c.postponed
LOCK_BACKLOG = (
    select(backlog.c.client)
    .where(backlog.c.client.in_(bindparam("clients", expanding=True)))
    .order_by(backlog.c.client)
    .with_for_update()
)
CHANGE_BACKLOG = (
    update(backlog)
    .where(backlog.c.client == bindparam("of"))
    .values({name: backlog.c[name] + bindparam(f"more_{name}") for name in STATES})
)


def lock_backlog(connection: Connection, clients: Collection[str]) -> None:
    """Lock the backlog of clients, before their jobs change."""
    connection.execute(LOCK_BACKLOG, {"clients": list(clients)})


def add_backlog(dialect: str) -> Any:
    """The statement that counts new jobs of clients.

    A new one has a full bucket. It returns their rows.
    """
    statement = INSERTS[dialect](backlog)
    more = {name: backlog.c[name] + statement.excluded[name] for name in STATES}
    return statement.on_conflict_do_update(index_elements=["client"], set_=more).returning(
        *backlog.c
    )


def fill_backlog(connection: Connection) -> None:
    """Count the unfinished jobs of each client; every bucket is full."""
    connection.execute(
        text("""
            INSERT INTO backlog (client, waiting, verifying, postponed, tokens, counted_at)
            SELECT client, sum(CASE WHEN status = 'queued' THEN 1 ELSE 0 END),
                sum(CASE WHEN status = 'processing' AND due IS NULL THEN 1 ELSE 0 END),
                sum(CASE WHEN status = 'processing' AND due IS NOT NULL THEN 1 ELSE 0 END), 0, 0
            FROM job WHERE status IN ('queued', 'processing') GROUP BY client
        """)
    )


class Changes:
    """How many jobs of each client come into a state and leave one."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()  # by client and column of `backlog`

    def add(self, client: str, status: str, due: float | None, count: int = 1) -> None:
        """Count jobs that have a state; with -1 one that had it."""
        if status == JobStatus.QUEUED:
            self.counts[client, "waiting"] += count
        elif status == JobStatus.PROCESSING:
            state = "verifying" if due is None else "postponed"
            self.counts[client, state] += count

    def rows(self, prefix: str = "") -> list[dict[str, Any]]:
        """The changes of each client, in the order in which clients are locked."""
        rows = []
        for client in sorted({client for client, _ in self.counts}):
            row: dict[str, Any] = {"of": client}
            for state in STATES:
                row[prefix + state] = self.counts[client, state]
            rows.append(row)
        return rows

    def write(self, connection: Connection) -> None:
        """Change the backlog, whose rows are locked."""
        if rows := self.rows("more_"):
            connection.execute(CHANGE_BACKLOG, rows)


# --- connections ----------------------------------------------------------------------------------

# Limits of a connection to PostgreSQL, unless the URL has others, in seconds and milliseconds. If
# the database's host loses its power, TCP alone would try for a quarter of an hour.
CONNECTION = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}

# Limits that the server of PostgreSQL keeps for each of our sessions, in milliseconds and seconds.
# A process that stops in the middle of a transaction, or whose host loses its power, would hold its
# locks without an end. It holds them for less time than a submission is tried again
# (`group_committer.PATIENCE`), so that no client notices.
SESSION = {
    "lock_timeout": "250",
    "idle_in_transaction_session_timeout": "4000",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "3",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "15000",
}
LOCK_NOT_AVAILABLE = "55P03"  # the SQLSTATE after `lock_timeout`


class RowsLocked(Exception):
    """Another process had rows locked for longer than `lock_timeout`.

    Nothing was written, and the store is well.
    """


def parse_url(text: str) -> URL:
    """The store's URL with the installed driver and time limits.

    The directory of an SQLite file must exist.
    """
    url = make_url(text)
    if url.get_backend_name() == "postgresql":
        limits = {name: value for name, value in CONNECTION.items() if name not in url.query}
        return url.set(drivername="postgresql+psycopg").update_query_dict(limits)
    if (
        url.get_backend_name() == "sqlite"
        and url.database
        and not Path(url.database).parent.is_dir()
    ):
        raise SettingsError(f"store: the directory of {url.database!r} does not exist")
    return url


def is_shared(text: str) -> bool:
    """Whether several processes can use the store: PostgreSQL."""
    return make_url(text).get_backend_name() == "postgresql"


def create_file(url: URL) -> None:
    """Create a missing SQLite file so that only its user can read it: it contains addresses.

    SQLite gives the files beside it the same mode. The mode of an existing file is not changed.
    Raises `SettingsError` if the file is read-only.
    """
    path = url.database or ""
    if not path.startswith("file:"):  # a URI, which SQLite opens itself
        with suppress(OSError):  # it exists, or SQLite's own error says more
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        # SQLite opens a file that it may not write for reading, without an error.
        if Path(path).exists() and not os.access(
            path, os.W_OK, effective_ids=os.access in os.supports_effective_ids
        ):
            raise SettingsError(
                f"store: {path!r} cannot be written; check its owner and mode, or its file system"
            )


def connect(url: URL, *, writes: bool) -> Engine:
    """An engine with one connection to an SQLite file.

    The writer's transactions begin as writing ones (``BEGIN IMMEDIATE``), and a commit is synced to
    disk: WAL with ``synchronous=NORMAL`` would lose the last commits at a power failure.
    """
    arguments = {"check_same_thread": False, "timeout": 30}
    engine = create_engine(
        url, connect_args=arguments, pool_size=1, max_overflow=0, hide_parameters=True
    )
    event.listen(engine, "connect", prepare_sqlite)
    if writes:
        event.listen(
            engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE")
        )
    return engine


def create_postgresql_engine(url: URL, connections: int = 1) -> Engine:
    """An engine whose connections are replaced if they were dropped.

    Nothing is prepared on the server: a plan made while the table of jobs was empty would read the
    whole table later.
    """
    common = {"pool_size": connections, "max_overflow": 0, "hide_parameters": True}
    try:
        engine = create_engine(
            url, pool_pre_ping=True, connect_args={"prepare_threshold": None}, **common
        )
    except ModuleNotFoundError as exc:
        raise MissingExtraError("a store on PostgreSQL", "postgres") from exc
    event.listen(engine, "connect", limit_session)
    event.listen(engine, "handle_error", convert_error)
    return engine


def limit_session(connection: Any, _: object) -> None:
    """Set the limits of a new session.

    Not when it is opened, since a pooler in between may refuse such options.
    """
    with connection.cursor() as cursor:
        for name, value in SESSION.items():
            cursor.execute("SELECT set_config(%s, %s, false)", (name, value))
    connection.commit()


def lift_limits(connection: Connection) -> None:
    """Let a transaction about whole tables wait for locks, and take its time."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL lock_timeout = 0"))
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))


def convert_error(context: ExceptionContext) -> RowsLocked | None:
    """`RowsLocked` after a lock's time limit.

    Reduce any other error of the server to its first line.

    Errors are logged, and the details quote the row with its address.
    """
    error, wrapped = context.original_exception, context.sqlalchemy_exception
    if getattr(error, "sqlstate", None) == LOCK_NOT_AVAILABLE:
        return RowsLocked("another process has the rows locked")
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    if primary and wrapped is not None:
        error.args = (primary,)
        wrapped.args = (f"({type(error).__name__}) {primary}",)
    return None


def prepare_sqlite(connection: Any, _: object) -> None:
    """Turn off the driver's own transactions, and make commits durable."""
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")


SCHEMA_VERSION = 4
START_WAIT = 60.0  # seconds that a program waits for a server which cannot be used yet
START_PAUSE = 0.5  # seconds between two attempts
MIGRATION_LOCK = 0x6D61696C7665  # advisory lock of one who creates or changes tables


def prepare(engine: Engine) -> str:
    """Create the tables of an empty database, and return the store's secret.

    `SettingsError` if the database cannot be used or has another version. Waits up to `START_WAIT`
    for a server that cannot be used yet, as after a reboot of all hosts, and says so at once.
    """
    until = time.monotonic() + START_WAIT
    is_announced = False
    while True:
        try:
            with engine.begin() as connection:
                return create_or_read(connection)
        except SQLAlchemyError as exc:
            may_start = engine.dialect.name == "postgresql" and isinstance(exc, OperationalError)
            if not may_start or time.monotonic() >= until:
                raise unusable(engine, exc) from exc
            if not is_announced:
                LOG.warning(
                    "the store cannot be used; trying again for %.0f s: %s",
                    START_WAIT,
                    exc.__cause__,
                )
                is_announced = True
        time.sleep(START_PAUSE)


def create_or_read(connection: Connection) -> str:
    """The store's secret, which makes job identifiers that nobody can guess.

    An empty database gets all tables.
    """
    found = locked_version(connection)
    if found is None:
        METADATA.create_all(connection)
        connection.execute(insert(about).values(name="schema", value=str(SCHEMA_VERSION)))
    elif found != SCHEMA_VERSION:
        what = (
            "stop its services and run 'mailverdict store upgrade'"
            if found < SCHEMA_VERSION
            else "update mailverdict"
        )
        raise SettingsError(
            f"the store has schema {found}, this version needs {SCHEMA_VERSION}: {what}"
        )
    secret: str | None = connection.scalar(select(about.c.value).where(about.c.name == JOB_ID_KEY))
    if secret is None:
        secret = secrets.token_hex(32)
        connection.execute(insert(about).values(name=JOB_ID_KEY, value=secret))
    return secret


def unusable(engine: Engine, exc: SQLAlchemyError) -> SettingsError:
    shown = engine.url.difference_update_query(CONNECTION).render_as_string(hide_password=True)
    return SettingsError(f"store={shown!r} cannot be opened: {exc.__cause__ or exc}")


def locked_version(connection: Connection) -> int | None:
    """The schema's version, None if the database is empty.

    Nobody else changes it during the transaction.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL lock_timeout = 0"))  # of an upgrade
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
    names = set(inspect(connection).get_table_names())
    if about.name not in names:
        if connection.dialect.name == "sqlite" and names and names.isdisjoint(METADATA.tables):
            path = connection.engine.url.database
            raise SettingsError(
                f"store: {path!r} has other tables, as a journal has; name another file"
            )
        return None
    found = connection.scalar(select(about.c.value).where(about.c.name == "schema"))
    if found is None or not str(found).isdecimal():
        raise SettingsError(
            f"the store has schema {found!r}, which no version of mailverdict wrote"
        )
    return int(found)


LOCKED = "another service already works on this store; give each its own, or stop the other one"


def lock_file(url: URL) -> Callable[[], None]:
    """Lock an SQLite store with a second SQLite file beside it, which works on every system.

    Returns the function that releases the lock; raises `SettingsError` if another process has it.
    """
    file = f"{url.database}-owner"
    with suppress(OSError):  # SQLite's own error says more
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        Path(file).chmod(0o600)  # of a version that left it to the umask
    try:
        connection = sqlite3.connect(file, timeout=0, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as exc:
        raise SettingsError(
            f"store: {file!r} cannot be created or opened; check its folder: {exc}"
        ) from exc
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as exc:
        connection.close()
        message = f"store: {file!r}: {exc}"
        if "locked" in str(exc):
            message = LOCKED
        raise SettingsError(message) from exc
    return connection.close
