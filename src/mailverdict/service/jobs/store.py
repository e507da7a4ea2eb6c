"""`Store`: jobs, quota and backlog in a database, by the same statements on SQLite and PostgreSQL.

Each method but `write` and `read` is one transaction, on a thread of the store. It gets the time
from the database, so that hosts whose clocks differ agree; in SQLite that is the process's own.

Each transaction locks rows in one order, so that none waits for one that waits for it: `quota`,
then `backlog`, both by client, then `job` by `seq`. So who has the rows of some clients in
`backlog` may change the states of their jobs.
"""

from __future__ import annotations

import asyncio
import json
import math
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, compress
from typing import Any, NamedTuple, ParamSpec, TypeVar

from sqlalchemy import (
    Connection,
    Engine,
    Row,
    func,
    insert,
    literal_column,
    select,
    text,
)
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError

from ...contract.envelope import JobStatus
from ...errors import SettingsError
from ..settings import Clock, ServiceSettings, WhenSaturated
from .schema import (
    OPEN,
    STATES,
    Changes,
    RowsLocked,
    add_backlog,
    backlog,
    connect,
    create_file,
    create_postgresql_engine,
    job,
    lock_file,
    parse_url,
    prepare,
    quota,
    worker,
)

P = ParamSpec("P")
T = TypeVar("T")
Execute = Callable[[str, tuple[Any, ...]], Iterable[Any]]
WRITERS, READERS = 4, 2  # connections to PostgreSQL
# Seconds. A moment that lies further in the future was written before the clock was put back. A
# nearer one may be of another transaction, which read the clock later and ended earlier.
CLOCK_STEP = 10.0
# The database does not answer, or another process has a lock of it. Later attempts may succeed.
STORE_UNAVAILABLE = (SQLAlchemyError, SettingsError, RowsLocked)


class QueueFull(Exception):
    """The queue has no room for the jobs of a submission; nothing was written or debited."""


class NewJob(NamedTuple):
    """A job as it is submitted; one that has ended already comes with its result."""

    job_id: str
    email: str
    validation_type: str
    status: str = JobStatus.QUEUED
    attempt: int = 0
    due_in: float | None = None  # seconds
    verification: str | None = None
    message: str | None = None
    owner: str | None = None
    priority: int = 0


class StoredJob(NamedTuple):
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
    priority: int
    second_pass: bool


class Debit(NamedTuple):
    """Add `cost` to what a client has used today, and write jobs: all of it or nothing."""

    client: str
    cost: int
    jobs: tuple[NewJob, ...] = ()


class Account(NamedTuple):
    """What a client has left: quota of the day, and bulk jobs that would start at once."""

    now: float
    remaining: int
    tokens: float = math.inf
    granted: bool = True  # of a debit
    used: int = 0


class WorkerRow(NamedTuple):
    """A worker that is running."""

    name: str
    version: str
    types: str
    egress: str | None


@dataclass(frozen=True, slots=True)
class Depth:
    """The unfinished jobs, by what they wait for, and who works on them."""

    waiting: int = 0
    verifying: int = 0
    postponed: int = 0
    oldest_age: float = 0.0  # seconds since the submission of the job that waits longest
    workers: tuple[WorkerRow, ...] = ()

    @property
    def total(self) -> int:
        """What counts against `queue_limit`: a job whose retry is pending is not in the queue."""
        return self.waiting + self.verifying

    def queue(self) -> dict[str, int]:
        """The numbers by name."""
        return {"waiting": self.waiting, "verifying": self.verifying, "postponed": self.postponed}


# --- statements -----------------------------------------------------------------------------------

QUEUED: Any = literal_column(f"'{JobStatus.QUEUED}'")  # constants, so that partial indexes are used
IS_QUEUED = job.c.status == QUEUED
STORED = tuple(job.c[name] for name in StoredJob._fields)
SELECT_JOB = select(*STORED)
DATABASE_NOW: Any = literal_column("extract(epoch FROM clock_timestamp())")
COUNTS = [func.coalesce(func.sum(backlog.c[name]), 0) for name in STATES]
OLDEST = select(  # of each client, by an index; without the client there would be no index
    select(job.c.created_at)
    .where(IS_QUEUED, job.c.client == backlog.c.client)
    .order_by(job.c.seq)
    .limit(1)
    .scalar_subquery()
    .label("created_at")
).where(backlog.c.waiting > 0)


class Store:
    """The database of a service; `clock` replaces the database's time for jobs and quota.

    Raises `SettingsError` if it cannot be opened, or if it is a file that another process uses.
    """

    def __init__(self, settings: ServiceSettings, clock: Clock | None = None) -> None:
        parsed = parse_url(settings.store)
        self.settings = settings
        self.is_shared = parsed.get_backend_name() == "postgresql"
        self.clock = clock
        if clock is None and not self.is_shared:
            self.clock = time.time
        self.mark = "%s" if self.is_shared else "?"  # of a parameter, for the driver
        self.unlock: Callable[[], None] = lambda: None
        self.driver: sqlite3.Connection | None = None  # for `submit_debits`, which uses no other
        if self.is_shared:
            self.writer = self.reader = create_postgresql_engine(parsed, WRITERS + READERS)
        else:
            create_file(parsed)
            self.unlock = lock_file(parsed)
            self.writer = connect(parsed, writes=True)
            self.reader = connect(parsed, writes=False)
        writers = WRITERS if self.is_shared else 1
        readers = READERS if self.is_shared else 1
        self.writers = ThreadPoolExecutor(writers, "mailverdict-store-writer")
        self.readers = ThreadPoolExecutor(readers, "mailverdict-store-reader")
        try:
            self.secret = prepare(self.writer)
        except BaseException:
            self.close()
            raise
        self.add_open = add_backlog(parsed.get_backend_name())
        if not self.is_shared:
            self.driver = detached_connection(self.writer)
        can_wait = settings.when_saturated is WhenSaturated.WAIT
        # Bulk jobs of a client that are started in a second; 0: no limit.
        self.rate = settings.rate_limit if can_wait else 0.0
        # To make batches large enough to share SMTP sessions, a client's jobs start when the tokens
        # of a second have collected, or enough for all of them.
        self.start_tokens = max(1.0, min(self.rate, settings.rate_burst))

    async def write(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a method that writes, on a thread."""
        return await asyncio.get_running_loop().run_in_executor(
            self.writers, lambda: method(*args, **kwargs)
        )

    async def read(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a method that reads, on a thread."""
        return await asyncio.get_running_loop().run_in_executor(
            self.readers, lambda: method(*args, **kwargs)
        )

    def close(self) -> None:
        """Close the connections and release the lock."""
        self.writers.shutdown()
        self.readers.shutdown()
        if self.driver is not None:
            self.driver.close()
        for engine in (self.writer, self.reader):
            engine.dispose()
        self.unlock()

    def now(self, connection: Connection) -> float:
        """The present time, in seconds since the epoch."""
        if self.clock is not None:
            return self.clock()
        return float(connection.scalar(select(DATABASE_NOW)) or 0.0)

    # --- submission -------------------------------------------------------------------------------

    def submit(self, debits: Sequence[Debit]) -> Sequence[Account | Exception]:
        """Debit quota and write jobs, in one transaction.

        If jobs exist already, because two processes wrote one submission at once, each debit gets a
        transaction, and the one that failed has the exception as its result. `QueueFull` is a
        result, too.
        """
        if self.driver is not None and not any(debit.jobs for debit in debits):
            return self.submit_debits(self.driver, debits)
        try:
            return self.submit_together(debits)
        except IntegrityError:
            if len(debits) == 1:
                raise
            return [self.submit_alone(debit) for debit in debits]

    def submit_debits(
        self, driver: sqlite3.Connection, debits: Sequence[Debit]
    ) -> Sequence[Account]:
        """Debit quota without jobs, as for single checks, by the driver of SQLite alone.

        With SQLAlchemy a single check takes a tenth more processor time.
        """
        assert self.clock is not None
        try:
            with driver:
                driver.execute("BEGIN IMMEDIATE")
                return self.debit(driver.execute, debits, self.clock())
        except sqlite3.Error as exc:
            raise OperationalError(ADD_USED, None, exc) from exc

    def submit_alone(self, debit: Debit) -> Account | Exception:
        """The result of one debit, or what it raised."""
        try:
            return self.submit_together([debit])[0]
        except (SQLAlchemyError, RowsLocked) as exc:
            return exc

    def submit_together(self, debits: Sequence[Debit]) -> list[Account | Exception]:
        with self.writer.connect() as connection:
            now = self.now(connection)
            fits = self.find_room(connection, debits)
            with_room = list(compress(debits, fits))
            accounts = iter(self.debit(connection.exec_driver_sql, with_room, now))
            results: list[Account | Exception] = []
            granted: list[Debit] = []
            for debit, has_room in zip(debits, fits, strict=True):
                if not has_room:
                    results.append(QueueFull())
                    continue
                account = next(accounts)
                results.append(account)
                if account.granted and debit.jobs:
                    granted.append(debit)
            tokens = self.add_jobs(connection, granted, now)
            job_id = None
            if self.is_shared and granted:
                job_id = granted[0].jobs[0].job_id
            commit(connection, job_id)
        for number, debit in enumerate(debits):
            result = results[number]
            if isinstance(result, Account):
                results[number] = result._replace(tokens=tokens.get(debit.client, math.inf))
        return results

    def find_room(self, connection: Connection, debits: Sequence[Debit]) -> list[bool]:
        """Whether the queue has room for the jobs of each debit, if jobs wait.

        A client may have as many waiting jobs as there is room for others, so that one alone can
        fill half of the queue, and leaves room for others then.
        """
        sizes = [sum(new.status == JobStatus.QUEUED for new in debit.jobs) for debit in debits]
        if self.settings.when_saturated is not WhenSaturated.WAIT or not any(sizes):
            return [True] * len(debits)
        room = self.settings.queue_limit - int(connection.scalar(select(func.sum(OPEN))) or 0)
        of_clients = backlog.c.client.in_({debit.client for debit in debits})
        rows = connection.execute(select(backlog.c.client, backlog.c.waiting).where(of_clients))
        waiting = Counter({row.client: row.waiting for row in rows})
        fits = []
        for debit, size in zip(debits, sizes, strict=True):
            has_room = not size or waiting[debit.client] + size <= room
            fits.append(has_room)
            if has_room:
                waiting[debit.client] += size
                room -= size
        return fits

    def debit(self, execute: Execute, debits: Sequence[Debit], now: float) -> list[Account]:
        """Debit the quota of each client at once, or one by one if it does not cover all.

        The first statement locks the rows of all clients in one order, also of those whose quota
        does not cover all, so that concurrent transactions cannot block each other for good.
        """
        if not debits:
            return []
        day = self.settings.day_of(now)
        costs: dict[str, int] = {}
        for debit in debits:
            costs[debit.client] = costs.get(debit.client, 0) + debit.cost
        totals = self.try_debit(execute, costs, day)
        limit = self.settings.daily_limit
        left = {}
        for client, used in totals.items():
            left[client] = limit - used + costs[client]
        accounts = []
        for debit in debits:
            client = debit.client
            if client in left:
                left[client] -= debit.cost
                accounts.append(Account(now, left[client]))
                continue
            total = self.try_debit(execute, {client: debit.cost}, day).get(client)
            granted = total is not None
            if total is None:
                total = self.used(execute, client, day)
            accounts.append(Account(now, max(limit - total, 0), granted=granted))
        return accounts

    def used(self, execute: Execute, client: str, day: str) -> int:
        statement = SELECT_USED.format(self.mark, self.mark)
        for row in execute(statement, (client, day)):
            return int(row[0])
        return 0

    def try_debit(self, execute: Execute, costs: Mapping[str, int], day: str) -> dict[str, int]:
        """Add costs to what clients have used where the limit covers it; return their new totals.

        A cost above the limit adds nothing, since a new row has no condition; its row is locked
        like the others.
        """
        most = self.settings.daily_limit
        rows = []
        for client, cost in sorted(costs.items()):
            added = cost if cost <= most else 0
            rows.append((client, day, added))
        statement = ADD_USED.format(rows_of_marks(self.mark, rows), self.mark)
        values = (*chain.from_iterable(rows), min(most, 2**62))
        totals = execute(statement, values)
        return {client: used for client, used in totals if costs[client] <= most}

    def add_jobs(
        self, connection: Connection, debits: Sequence[Debit], now: float
    ) -> dict[str, float]:
        """Write the jobs of debits and count them.

        Return how many more of each client would start without a wait.
        """
        if not debits:
            return {}
        changes = Changes()
        for debit in debits:
            # A client all of whose jobs have ended has tokens, too.
            changes.counts[debit.client, "waiting"] += 0
            for new in debit.jobs:
                changes.add(debit.client, new.status, new.due_in)
        full = float(min(self.settings.rate_burst, 2**53))
        counts = []
        for row in changes.rows():
            client = row.pop("of")
            counts.append({"client": client, **row, "tokens": full, "counted_at": now})
        tokens = {}
        for standing in connection.execute(self.add_open, counts):
            tokens[standing.client] = self.tokens_of(standing, now) - standing.waiting
        rows = []
        for debit in debits:
            for new in debit.jobs:
                rows.append(job_row(debit.client, new, now))
        insert_jobs(connection, rows)
        return tokens

    # --- what is read -----------------------------------------------------------------------------

    def tokens_of(self, row: Row[Any], now: float) -> float:
        """The tokens for bulk jobs that a client has at present, by its row of `backlog`."""
        if not self.rate:
            return math.inf
        full = float(self.settings.rate_burst)
        if row.counted_at > now + CLOCK_STEP:  # the clock was put back
            return full
        tokens: float = row.tokens + max(now - row.counted_at, 0.0) * self.rate
        return min(full, tokens)

    def find_jobs(self, job_ids: Sequence[str]) -> list[StoredJob | None]:
        """The jobs with these identifiers, None where there is none, by one statement."""
        with self.reader.begin() as connection:
            rows = connection.execute(SELECT_JOB.where(job.c.job_id.in_(set(job_ids))))
            jobs = {row.job_id: StoredJob._make(row) for row in rows}
        return [jobs.get(job_id) for job_id in job_ids]

    def account(self, client: str) -> Account:
        """What a client has left."""
        with self.reader.begin() as connection:
            now = self.now(connection)
            used = quota_used(connection, client, self.settings.day_of(now))
            remaining = max(self.settings.daily_limit - used, 0)
            of_client = select(backlog).where(backlog.c.client == client)
            row = connection.execute(of_client).one_or_none()
            free = float(self.settings.rate_burst)
            if row is not None:
                free = self.tokens_of(row, now) - row.waiting
            return Account(now, remaining, free, used=used)

    def is_running(self) -> Any:
        """The condition for workers that have not died."""
        if self.is_shared:
            return worker.c.lease > DATABASE_NOW
        return worker.c.id.is_not(None)

    def has_worker(self, validation_type: str) -> bool:
        """Whether a worker is running that verifies a type."""
        with self.reader.begin() as connection:
            found = connection.scalars(select(worker.c.types).where(self.is_running()))
            return any(validation_type in types.split(",") for types in found)

    def depth(self) -> Depth:
        """What waits, and who works."""
        columns = [worker.c[name] for name in WorkerRow._fields]
        rows = select(*columns).where(self.is_running()).order_by(worker.c.id)
        age = 0.0
        workers: tuple[WorkerRow, ...] = ()
        with self.reader.begin() as connection:
            waiting, verifying, postponed = map(int, connection.execute(select(*COUNTS)).one())
            if waiting:
                oldest = [moment for moment in connection.scalars(OLDEST) if moment is not None]
                if oldest:
                    age = max(self.now(connection) - min(oldest), 0.0)
            if self.is_shared:
                workers = tuple(WorkerRow(*row) for row in connection.execute(rows))
        return Depth(waiting, verifying, postponed, age, workers)

    def accepts_writes(self) -> bool:
        """Whether the database, which answers, accepts writes as far as it says."""
        with self.reader.begin() as connection:
            if not self.is_shared:
                return connection.scalar(select(1)) == 1
            # A standby, or set so by an administrator.
            is_writable = text("SELECT current_setting('transaction_read_only') = 'off'")
            return bool(connection.scalar(is_writable))


def quota_used(connection: Connection, client: str, day: str) -> int:
    used = select(quota.c.used).where(quota.c.client == client, quota.c.day == day)
    return connection.scalar(used) or 0


def job_row(client: str, new: NewJob, now: float) -> dict[str, Any]:
    row = new._asdict()
    due_in = row.pop("due_in")
    due = None if due_in is None else now + due_in
    return {
        **row,
        "client": client,
        "due": due,
        "second_pass": False,
        "created_at": now,
        "updated_at": now,
    }


def insert_jobs(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows to `job`, on PostgreSQL by one INSERT for all of them."""
    if connection.dialect.name == "postgresql":
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        columns["email"] = list(map(json.dumps, columns["email"]))
        connection.execute(INSERT_ROWS, columns)
    else:
        connection.execute(insert(job), rows)


def rows_of_marks(mark: str, rows: Sequence[Sequence[object]]) -> str:
    """The rows of a VALUES, each value a mark for a parameter: what differs between the drivers."""
    row = ", ".join([mark] * len(rows[0]))
    return ", ".join([f"({row})"] * len(rows))


ADD_USED = """
    INSERT INTO quota (client, day, used) VALUES {} ON CONFLICT (client, day)
    DO UPDATE SET used = quota.used + excluded.used WHERE quota.used + excluded.used <= {}
    RETURNING client, used
"""
SELECT_USED = "SELECT used FROM quota WHERE client = {} AND day = {}"
INSERT_ROWS = text("""
    INSERT INTO job (
        job_id, client, email, validation_type, status, attempt, due, verification, message,
        created_at, updated_at, owner, priority, second_pass
    )
    SELECT * FROM unnest(
        CAST(:job_id AS text[]), CAST(:client AS text[]), CAST(:email AS text[]),
        CAST(:validation_type AS text[]),
        CAST(:status AS text[]), CAST(:attempt AS integer[]), CAST(:due AS double precision[]),
        CAST(:verification AS text[]), CAST(:message AS text[]),
        CAST(:created_at AS double precision[]), CAST(:updated_at AS double precision[]),
        CAST(:owner AS text[]), CAST(:priority AS integer[]),
        CAST(:second_pass AS boolean[])
    )
""")


def detached_connection(engine: Engine) -> sqlite3.Connection:
    """A connection of the driver, which its pool does not have any more."""
    pooled = engine.raw_connection()
    connection = pooled.driver_connection
    pooled.detach()
    assert isinstance(connection, sqlite3.Connection)
    return connection


# --- commits whose answer is lost -----------------------------------------------------------------

# The connection to PostgreSQL may break after COMMIT was sent. Such a transaction may have been
# carried out, and its client must not be told the opposite. A transaction that adds jobs therefore
# holds an advisory lock with the name of the first one. Who gets this lock later knows that the
# transaction has ended, and whether the job is there shows how.
COMMIT_WAIT = 10.0  # seconds in which the database may come back and the transaction may end
COMMIT_PAUSE = 0.2  # seconds between two attempts
LOCK_JOB = text("SELECT pg_try_advisory_xact_lock(hashtextextended(:job_id, 0))")


def commit(connection: Connection, job_id: str | None) -> None:
    """Commit a transaction; `job_id` is a job that it has added, or None if it has added none.

    After an error the job was not added, as far as it can be looked up. Without a job, or if the
    database does not come back in time, it is not known whether the transaction was written.
    """
    if job_id is not None:
        connection.execute(LOCK_JOB, {"job_id": job_id})
    try:
        connection.commit()
    except DBAPIError as exc:
        if job_id is None or not exc.connection_invalidated or not is_added(connection, job_id):
            raise


def is_added(connection: Connection, job_id: str) -> bool:
    """Whether the transaction that added a job was carried out.

    False if that could not be found out in time.
    """
    until = time.monotonic() + COMMIT_WAIT
    while time.monotonic() < until:
        try:
            connection.rollback()  # the next statement connects again
            if connection.scalar(LOCK_JOB, {"job_id": job_id}):
                added = select(job.c.seq).where(job.c.job_id == job_id)
                return connection.scalar(added) is not None
        except DBAPIError:
            pass  # the database is away
        time.sleep(COMMIT_PAUSE)
    return False
