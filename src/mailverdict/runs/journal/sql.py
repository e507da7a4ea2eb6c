"""The journal's SQL: schema and statements, and how the file is opened or converted.

A file that is not a journal, is damaged, or was made by a later version is an error, and is left as
it was. Opening takes the same time for a file of any size; damage further inside is found when it
is read.
"""

# ruff: noqa: S608 - statements are put together from texts of this module alone

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from ...atomic_write import atomic_write
from ...errors import JournalError
from ...model.address import address_key

APPLICATION_ID = 0x4D564A31  # "MVJ1", in the file's header
VERSION = 2
PRIVATE = 0o600  # the mode of the file
BUSY_TIMEOUT = 30.0  # seconds to wait for another process's transaction
# The low octet of an extended error code.
DAMAGE_CODES = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
)
ANOTHER_PATH = "give another path for the journal"
WAL_TRIES = 50
WAL_PAUSE = 0.05  # seconds

# `keys`, `outcomes` and `paces` are as in the first form.
TABLES = """
CREATE TABLE IF NOT EXISTS keys (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE counters (run INTEGER NOT NULL, change INTEGER NOT NULL);
INSERT INTO counters VALUES (0, 0);
CREATE TABLE IF NOT EXISTS outcomes (
    id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, label TEXT NOT NULL, body TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS paces (  -- how fast a service may be asked
    service TEXT PRIMARY KEY, per_second REAL, open_at_once REAL NOT NULL, at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE addresses (
    key INTEGER NOT NULL, address TEXT NOT NULL,
    -- the last answer
    outcome INTEGER, normalized TEXT, checked_at INTEGER, settled_at REAL,
    change INTEGER, settled_by INTEGER,
    -- what was sent since, with `email` as it was sent, and the run that it belongs to
    state TEXT, run INTEGER, email TEXT, sent_at REAL, job_id TEXT, validation_type TEXT,
    -- the batch, while it may be sent again as it was
    token TEXT, place INTEGER, size INTEGER, used_before INTEGER, losses INTEGER, free_at REAL,
    PRIMARY KEY (key, address)
) WITHOUT ROWID;
CREATE INDEX sent ON addresses (key, token) WHERE email IS NOT NULL;
"""
TABLE_NAMES = ("keys", "counters", "outcomes", "addresses", "paces")

# The first form had a table for each state, and `batches` with the order of the addresses. The
# first of its journals have neither `batches` nor `paces`. Its leases are of processes that cannot
# write any more.
CONVERSION = """
CREATE TABLE IF NOT EXISTS batches (key, token, sent_at, used_before, emails);
UPDATE counters SET change = (SELECT number FROM changes),
    run = coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'owners'), 0);
INSERT INTO addresses
        (key, address, outcome, normalized, checked_at, settled_at, change, settled_by)
    SELECT key, address, outcome, normalized, checked_at, settled_at, change, owner FROM settled;
INSERT INTO addresses (key, address, email, sent_at, token, place, size, used_before)
    SELECT b.key, address_key(e.value), e.value, b.sent_at, b.token, e.key,
        json_array_length(b.emails), b.used_before
    FROM batches b, json_each(b.emails) e WHERE true
    ON CONFLICT DO UPDATE SET email = excluded.email, sent_at = excluded.sent_at,
        token = excluded.token, place = excluded.place, size = excluded.size,
        used_before = excluded.used_before;
INSERT INTO addresses
        (key, address, state, run, email, sent_at, token, used_before, losses, free_at)
    SELECT key, address, iif(judged, 'held', 'sending'), iif(judged, NULL, owner), email, sent_at,
        token, used_before, losses, free_at
    FROM attempts WHERE true
    ON CONFLICT DO UPDATE SET state = excluded.state, run = excluded.run, email = excluded.email,
        sent_at = excluded.sent_at, size = iif(token = excluded.token, size, NULL),
        token = excluded.token, used_before = excluded.used_before, losses = excluded.losses,
        free_at = excluded.free_at;
INSERT INTO addresses (key, address, state, email, sent_at, job_id, validation_type)
    SELECT key, address, 'in_flight', email, submitted_at, job_id, validation_type
    FROM jobs WHERE true
    ON CONFLICT DO UPDATE SET state = 'in_flight', run = NULL, email = excluded.email,
        sent_at = excluded.sent_at, job_id = excluded.job_id,
        validation_type = excluded.validation_type, token = NULL;
DROP TABLE settled;
DROP TABLE jobs;
DROP TABLE attempts;
DROP TABLE batches;
DROP TABLE leases;
DROP TABLE owners;
DROP TABLE changes;
"""

# Keys, runs and changes.
INSERT_KEY = "INSERT OR IGNORE INTO keys (name) VALUES (?)"
SELECT_KEY_ID = "SELECT id FROM keys WHERE name = ?"
SELECT_KEYS = "SELECT id, name FROM keys ORDER BY name"
NEXT_RUN = "UPDATE counters SET run = run + 1 RETURNING run"
SELECT_CHANGE = "SELECT change FROM counters"
NEXT_CHANGE = "UPDATE counters SET change = change + 1 RETURNING change"

# The pace of a service.
SELECT_PACE = "SELECT per_second, open_at_once, at FROM paces WHERE service = ?"
REPLACE_PACE = "INSERT OR REPLACE INTO paces VALUES (?, ?, ?, ?)"

# `is_new`: another run has settled it since this one began.
SELECT_KNOWN = """
SELECT asked.key, x.outcome, x.normalized, x.checked_at, x.settled_at,
    x.change > :seen AND x.settled_by != :run AS is_new
FROM json_each(:asked) asked CROSS JOIN addresses x ON x.key = :key AND x.address = asked.value
WHERE x.outcome IS NOT NULL AND (x.settled_at >= :newer_than OR is_new)
"""
SELECT_OUTCOMES = """
SELECT id, digest, body FROM outcomes WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id
"""

# Addresses that were sent. `is_running` tells whether a run, this one included, has not ended; it
# is false for NULL.
SENT = "FROM addresses INDEXED BY sent WHERE key = :key AND email IS NOT NULL"
IS_FREE = """
(state IS NULL
    OR state != 'in_flight' AND free_at <= :now AND (run = :run OR NOT is_running(run)))
"""
CLAIM = f"""
INSERT INTO addresses
    (key, address, state, run, email, sent_at, token, place, size, used_before, losses, free_at)
VALUES (:key, :address, 'sending', :run, :email, :now, :token, :place, :size, :used_before, 0,
    :now + hold_seconds(0))
ON CONFLICT DO UPDATE SET state = 'sending', run = :run, email = :email, sent_at = :now,
    job_id = NULL, token = :token, place = :place, size = :size, used_before = :used_before,
    losses = coalesce(losses + 1, 0), free_at = :now + hold_seconds(coalesce(losses + 1, 0))
WHERE {IS_FREE} AND (change IS NULL OR change <= :seen OR settled_by = :run)
RETURNING 1
"""
SELECT_STATES = f"SELECT address, state, run, free_at {SENT} AND state IS NOT NULL"
SELECT_LOST = f"""
SELECT token, email, used_before, size, {IS_FREE}
{SENT} AND token IS NOT NULL AND sent_at >= :since
ORDER BY sent_at, token, place
"""
SELECT_UNRESOLVED = f"""
SELECT token, min(sent_at), min(used_before)
{SENT} AND token IS NOT NULL AND state = 'sending' AND NOT is_running(run)
GROUP BY token
"""
# A batch is no longer on its way. FREE_BATCH: it is sent again as it was. FORGET_BATCH: its
# addresses may be sent in any batch. HOLD_BATCH: it may have been paid for.
FREE_BATCH = """
UPDATE addresses INDEXED BY sent SET state = NULL, run = NULL, losses = NULL, free_at = NULL
WHERE key = ? AND token = ? AND email IS NOT NULL AND state = 'sending'
"""
FORGET_BATCH = """
UPDATE addresses INDEXED BY sent SET token = NULL, email = NULL
WHERE key = ? AND token = ? AND email IS NOT NULL
"""
HOLD_BATCH = """
UPDATE addresses INDEXED BY sent SET state = 'held', run = NULL
WHERE key = ? AND token = ? AND email IS NOT NULL AND state = 'sending'
"""
HOLD_ADDRESS = """
UPDATE addresses SET state = 'held', run = NULL
WHERE key = ? AND address = ? AND state = 'sending'
"""
SUBMITTED = """
INSERT INTO addresses (key, address, state, run, email, sent_at, job_id, validation_type)
VALUES (?, ?, 'in_flight', ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET state = 'in_flight', run = excluded.run, email = excluded.email,
    sent_at = excluded.sent_at, job_id = excluded.job_id,
    validation_type = excluded.validation_type, token = NULL, losses = NULL, free_at = NULL
"""
SELECT_JOBS = f"""
SELECT job_id, email, validation_type, sent_at, address, is_running(run)
{SENT} AND state = 'in_flight'
ORDER BY sent_at, job_id
"""
ADOPT_JOB = "UPDATE addresses SET run = ? WHERE key = ? AND address = ?"
LEAVE_JOB = "UPDATE addresses SET run = NULL WHERE key = ? AND address = ? AND state = 'in_flight'"

# Answers.
# A row with this digest and another body is damaged, and is written anew.
INSERT_OUTCOME = """
INSERT INTO outcomes (digest, label, body) VALUES (?, ?, ?)
ON CONFLICT (digest) DO UPDATE SET label = excluded.label, body = excluded.body
WHERE body IS NOT excluded.body
"""
SELECT_OUTCOME_ID = "SELECT id FROM outcomes WHERE digest = ?"
SETTLE = """
INSERT OR REPLACE INTO addresses
    (key, address, outcome, normalized, checked_at, settled_at, change, settled_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
WAIT = """
UPDATE addresses SET state = 'waiting', run = ?, email = ?, free_at = 0
WHERE key = ? AND address = ?
"""
SELECT_SETTLED = """
SELECT address, normalized, checked_at, settled_at, outcome
FROM addresses WHERE key = ? AND outcome IS NOT NULL ORDER BY address
"""
# A row that was asked for again belongs to the last run.
SELECT_RUNS = """
SELECT keys.name, s.settled_by, count(*), min(s.settled_at), max(s.settled_at)
FROM addresses s JOIN keys ON keys.id = s.key WHERE s.outcome IS NOT NULL
GROUP BY s.key, s.settled_by ORDER BY max(s.settled_at) DESC LIMIT ?
"""
SELECT_ADDRESSES_OF_RUN = (
    "SELECT address FROM addresses WHERE key = ? AND settled_by = ? ORDER BY change, address"
)
COUNT_BY_LABEL = """
SELECT label, count(*) FROM addresses JOIN outcomes ON id = outcome WHERE key = ? GROUP BY label
"""
SELECT_SETTLED_RANGE = "SELECT min(settled_at), max(settled_at) FROM addresses WHERE key = ?"
COUNT_BY_STATE = f"SELECT state, count(*) {SENT} GROUP BY state"


class DamagedRowError(Exception):
    """A row holds what no version of this package wrote; `table` and `condition` select it."""

    def __init__(self, table: str, condition: str, why: str) -> None:
        super().__init__(table, condition, why)
        self.table = table
        self.condition = condition
        self.why = why


def damaged_address(address: object, why: str) -> DamagedRowError:
    text = str(address).replace("'", "''")
    return DamagedRowError("addresses", f"address = '{text:.320}'", why)


DAMAGED_ROW = (
    "journal {path} is damaged: the row of the table {table} with {condition} {why}. "
    "Nothing was changed, and nothing is asked again. Restore the journal from a copy; or, if the "
    "addresses with this row may be asked again, which a service counts anew, forget it "
    "(in SQLite: {forget}); or {another}"
)
FORGET = {
    "addresses": "DELETE FROM addresses WHERE {condition}",
    "outcomes": "UPDATE addresses SET outcome = NULL WHERE outcome = {number}",
    "paces": "DELETE FROM paces WHERE {condition}",
}


def describe_damage(path: Path, row: DamagedRowError) -> str:
    """The message about a damaged row: which it is, and what to do."""
    number = row.condition.rpartition(" ")[2]
    forget = FORGET[row.table].format(condition=row.condition, number=number)
    return DAMAGED_ROW.format(
        path=path,
        table=row.table,
        condition=row.condition,
        why=row.why,
        forget=forget,
        another=ANOTHER_PATH,
    )


@contextmanager
def journal_errors(path: Path) -> Iterator[None]:
    """Raise errors of SQLite, the file system and damaged rows as a `JournalError`."""
    try:
        yield
    except DamagedRowError as exc:
        raise JournalError(describe_damage(path, exc)) from exc
    except sqlite3.Error as exc:
        message = f"journal {path}: {exc}"
        if getattr(exc, "sqlite_errorcode", 0) & 0xFF in DAMAGE_CODES:
            message = f"journal {path} is damaged ({exc}): "
            message += f"restore it from a copy, or {ANOTHER_PATH}"
        raise JournalError(message) from exc
    except OSError as exc:  # its own text has the path again
        raise JournalError(f"journal {path}: {exc.strerror or exc}") from exc


def open_file(path: Path) -> sqlite3.Connection:
    """Open the journal at `path`; create the file, and missing folders, if it does not exist."""
    with journal_errors(path):
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE))
        check_header(path)
        make_private(path)
        connection = connect(path)
        try:
            prepare(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection


def check_header(path: Path) -> None:
    """Raise an error for anything but a journal or an empty file.

    SQLite reads the file, since a process that opens and closes it loses all its locks on it;
    `immutable`, since SQLite may otherwise write. Pages may be missing while a log beside the file
    has them.
    """
    if not path.is_file():
        raise JournalError(f"journal {path} is not a file: give the path of a file")
    if path.stat().st_size == 0:
        return
    has_log = False
    for ending in ("-wal", "-journal"):
        log = path.with_name(path.name + ending)
        if log.exists() and log.stat().st_size:
            has_log = True
    uri = f"{path.absolute().as_uri()}?immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as reader:
            (application,) = reader.execute("PRAGMA application_id").fetchone()
            version = version_of(reader)
    except sqlite3.DatabaseError as exc:
        if exc.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
            raise JournalError(
                f"{path} is not a journal of mailverdict; it was not changed: {ANOTHER_PATH}"
            ) from exc
        if not has_log:
            raise
        return
    if application != APPLICATION_ID:
        raise JournalError(
            f"{path} is a SQLite file of another program; it was not changed: {ANOTHER_PATH}"
        )
    if version > VERSION:
        raise JournalError(
            f"journal {path} was made by a later version of mailverdict "
            f"(format {version}, known: {VERSION}): update mailverdict, or {ANOTHER_PATH}"
        )


def version_of(connection: sqlite3.Connection) -> int:
    """The format of a journal; 0 if it has no tables yet."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def make_private(path: Path) -> None:
    """Let only the user read and write a file of the user's, which contains addresses.

    SQLite creates the files beside it with the mode of the file itself.
    """
    if sys.platform == "win32":  # where the folder says who may read
        return
    for ending in ("", "-wal", "-shm"):
        file = path.with_name(path.name + ending)
        # SQLite removes the others when the last process closes the journal.
        with suppress(FileNotFoundError):
            status = file.stat()
            if status.st_uid == os.geteuid() and status.st_mode & 0o077:
                file.chmod(PRIVATE)


def connect(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode; the caller serializes threads."""
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False
    )
    # KiB: look-ups of a whole column stay in memory.
    connection.execute("PRAGMA cache_size = -65536")
    return connection


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Create, convert or check the tables; switch to WAL, which lets two processes work."""
    version = version_of(connection)
    if version == 0:
        create_tables(connection)
    elif version < VERSION:
        convert(connection, path)
    for table in TABLE_NAMES:  # a damaged root page is found before anything is written
        connection.execute(f"SELECT * FROM {table} LIMIT 1").fetchall()
    switch_to_wal(connection, time.sleep)
    # A commit is on the disk, even if the power fails.
    connection.execute("PRAGMA synchronous = FULL")


def create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables in one transaction, unless another process was first."""
    connection.execute("BEGIN EXCLUSIVE")
    if version_of(connection) == 0:
        run_script(connection, TABLES)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def convert(connection: sqlite3.Connection, path: Path) -> None:
    """Bring a journal of the first form into the present one, unless another process was first.

    The old file is kept beside it. A run of the earlier version that is under way cannot write any
    more, and ends.
    """
    connection.create_function("address_key", 1, address_key, deterministic=True)
    connection.execute("BEGIN IMMEDIATE")
    if version_of(connection) < VERSION:
        old = path.with_name(f"{path.name}.format1")
        with (
            atomic_write(old) as copy,
            closing(sqlite3.connect(path)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            copy.chmod(PRIVATE)
            source.backup(target)
        run_script(connection, TABLES + CONVERSION)
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def run_script(connection: sqlite3.Connection, script: str) -> None:
    """Run statements within the transaction; `executescript` would commit it."""
    for statement in script.split(";\n"):
        connection.execute(statement)


def switch_to_wal(connection: sqlite3.Connection, sleep: Callable[[float], None]) -> None:
    """Use WAL. It may be refused; the journal then works without it, slower."""
    for _ in range(WAL_TRIES):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            sleep(WAL_PAUSE)
        else:
            return
