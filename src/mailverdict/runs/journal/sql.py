"""The journal's SQL: the schema, every statement, and how the file is recognised, created and opened.

A file that is not a journal, is damaged, or was made by a later version is an error, and is left
as it was. So the header is read before SQLite opens the file, since opening may already write.
Opening takes the same time for a file of any size; damage further inside is found when it is read.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...errors import JournalError

APPLICATION_ID = 0x4D564A31  # "MVJ1", in the file's header
VERSION = 1
MAGIC = b"SQLite format 3\x00"
HEADER_SIZE = 100  # octets: page size at 16, number of pages at 28, user_version at 60, application_id at 68
PRIVATE = 0o600  # the mode of the file
BUSY_TIMEOUT = 30.0  # seconds to wait for another process's transaction
DAMAGE_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)  # the low octet of an extended error code
ANOTHER_PATH = "give another path for the journal"
WAL_TRIES = 50
WAL_PAUSE = 0.05  # seconds

TABLES = """
CREATE TABLE keys (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE owners (  -- processes that use the file
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: the attempts of a process that ended keep its number
    host TEXT NOT NULL, pid INTEGER NOT NULL, born TEXT NOT NULL, until REAL NOT NULL
);
CREATE TABLE changes (number INTEGER NOT NULL);
INSERT INTO changes VALUES (0);
CREATE TABLE outcomes (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, label TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE settled (
    key INTEGER NOT NULL, address TEXT NOT NULL, outcome INTEGER NOT NULL, normalized TEXT, checked_at INTEGER,
    settled_at REAL NOT NULL, change INTEGER NOT NULL, owner INTEGER NOT NULL, PRIMARY KEY (key, address)
) WITHOUT ROWID;
CREATE TABLE jobs (  -- paid for and not final
    key INTEGER NOT NULL, job_id TEXT NOT NULL, address TEXT NOT NULL, email TEXT NOT NULL,
    validation_type TEXT NOT NULL, submitted_at REAL NOT NULL, PRIMARY KEY (key, job_id)
) WITHOUT ROWID;
CREATE INDEX jobs_by_address ON jobs (key, address);
CREATE TABLE attempts (  -- sent, or about to be sent; the outcome is not known
    key INTEGER NOT NULL, address TEXT NOT NULL, email TEXT NOT NULL, token TEXT NOT NULL, sent_at REAL NOT NULL,
    used_before INTEGER, owner INTEGER NOT NULL, judged INTEGER NOT NULL, losses INTEGER NOT NULL,
    free_at REAL NOT NULL, PRIMARY KEY (key, address)
) WITHOUT ROWID;
CREATE INDEX attempts_by_token ON attempts (key, token);
CREATE TABLE leases (
    key INTEGER NOT NULL, address TEXT NOT NULL, owner INTEGER NOT NULL, PRIMARY KEY (key, address)
) WITHOUT ROWID;
"""
TABLE_NAMES = ("keys", "owners", "changes", "outcomes", "settled", "jobs", "attempts", "leases")
# Added after the first journals were written: made in any journal that has none, with the same version.
LATER_TABLES = (
    """CREATE TABLE IF NOT EXISTS paces (  -- how fast a service may be asked
    service TEXT PRIMARY KEY, per_second REAL, open_at_once REAL NOT NULL, at REAL NOT NULL
) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS batches (  -- submissions that were not answered, in their order
    key INTEGER NOT NULL, token TEXT NOT NULL, sent_at REAL NOT NULL, used_before INTEGER,
    emails TEXT NOT NULL, PRIMARY KEY (key, token)
) WITHOUT ROWID""",
)
TEMPORARY_TABLES = (
    "CREATE TEMP TABLE asked (position INTEGER NOT NULL, address TEXT NOT NULL)",
    "CREATE TEMP TABLE wanted (outcome INTEGER PRIMARY KEY)",
)

# Keys and processes.
INSERT_KEY = "INSERT OR IGNORE INTO keys (name) VALUES (?)"
SELECT_KEY_ID = "SELECT id FROM keys WHERE name = ?"
SELECT_KEYS = "SELECT id, name FROM keys ORDER BY name"
SELECT_LAST_OWNER = "SELECT seq FROM sqlite_sequence WHERE name = 'owners'"
SELECT_OWNERS = "SELECT id, until, host, pid, born FROM owners"
REPLACE_OWNER = "INSERT OR REPLACE INTO owners VALUES (?, ?, ?, ?, ?)"
DELETE_OWNER = "DELETE FROM owners WHERE id = ?"
DELETE_ENDED_OWNERS = "DELETE FROM owners WHERE id NOT IN (SELECT value FROM json_each(?))"
DELETE_LEASES_OF_ENDED = "DELETE FROM leases WHERE owner NOT IN (SELECT value FROM json_each(?))"
DELETE_LEASES_OF_OWNER = "DELETE FROM leases WHERE owner = ?"

# The pace of a service.
SELECT_PACE = "SELECT per_second, open_at_once, at FROM paces WHERE service = ?"
REPLACE_PACE = "INSERT OR REPLACE INTO paces VALUES (?, ?, ?, ?)"

# Columns of addresses are joined by way of the temporary table `asked`.
INSERT_ASKED = "INSERT INTO asked VALUES (?, ?)"
DELETE_ASKED = "DELETE FROM asked"
SELECT_KNOWN = """
SELECT asked.position, s.outcome, s.normalized, s.checked_at, s.settled_at
FROM asked JOIN settled s ON s.key = ? AND s.address = asked.address WHERE s.settled_at >= ?
"""
INSERT_WANTED = "INSERT INTO wanted VALUES (?)"
DELETE_WANTED = "DELETE FROM wanted"
SELECT_WANTED_OUTCOMES = "SELECT body FROM wanted JOIN outcomes ON id = outcome ORDER BY id"

# Leases. An address may be submitted unless it is leased to another process, in flight, held, or
# settled by another process after change number `:seen`, the last that this process has read.
DELETE_BLOCKED = """
DELETE FROM asked WHERE
    EXISTS (SELECT 1 FROM leases x WHERE x.key = :key AND x.address = asked.address AND x.owner != :owner)
    OR EXISTS (SELECT 1 FROM jobs x WHERE x.key = :key AND x.address = asked.address)
    OR EXISTS (SELECT 1 FROM attempts x WHERE x.key = :key AND x.address = asked.address AND x.free_at > :now)
    OR EXISTS (SELECT 1 FROM settled x WHERE x.key = :key AND x.address = asked.address
               AND x.change > :seen AND x.owner != :owner)
"""
DELETE_REPEATED = "DELETE FROM asked WHERE position NOT IN (SELECT min(position) FROM asked GROUP BY address)"
DELETE_BEYOND_LIMIT = "DELETE FROM asked WHERE position NOT IN (SELECT position FROM asked ORDER BY position LIMIT ?)"
LEASE_ASKED = "INSERT OR REPLACE INTO leases SELECT ?, address, ? FROM asked"
SELECT_ASKED = "SELECT position FROM asked ORDER BY position"
SELECT_LEASES = "SELECT address, owner FROM leases WHERE key = ?"
REPLACE_LEASE = "INSERT OR REPLACE INTO leases VALUES (?, ?, ?)"
DELETE_LEASE = "DELETE FROM leases WHERE key = ? AND address = ? AND owner = ?"
IS_TAKEN = """
SELECT EXISTS (SELECT 1 FROM leases WHERE key = :key AND address = :address AND owner != :owner)
    OR EXISTS (SELECT 1 FROM jobs WHERE key = :key AND address = :address)
"""

# Submissions: attempts and jobs.
SELECT_LOSSES = "SELECT address, losses FROM attempts WHERE key = ?"
REPLACE_ATTEMPT = "INSERT OR REPLACE INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, ?)"
DELETE_ATTEMPT = "DELETE FROM attempts WHERE key = ? AND address = ?"
HOLD_ATTEMPT = "UPDATE attempts SET judged = 1 WHERE key = ? AND address = ?"
DELETE_ATTEMPTS_BY_TOKEN = "DELETE FROM attempts WHERE key = ? AND token = ?"  # noqa: S105 - a token names a batch
HOLD_ATTEMPTS_BY_TOKEN = "UPDATE attempts SET judged = 1 WHERE key = ? AND token = ?"  # noqa: S105 - as above
SELECT_UNRESOLVED = """
SELECT token, min(sent_at), min(used_before), min(owner) FROM attempts WHERE key = ? AND judged = 0 GROUP BY token
"""
SELECT_LAST_UNRESOLVED = "SELECT owner, max(sent_at) FROM attempts WHERE key = ? AND judged = 0 GROUP BY owner"
SELECT_UNCERTAIN = """
SELECT email, address, sent_at, used_before, free_at FROM attempts WHERE key = ? AND free_at > ? ORDER BY sent_at, email
"""
REPLACE_BATCH = "INSERT OR REPLACE INTO batches VALUES (?, ?, ?, ?, ?)"
DELETE_BATCH = "DELETE FROM batches WHERE key = ? AND token = ?"
DELETE_REPLACED_BATCHES = """
DELETE FROM batches WHERE key = :key AND (sent_at < :since OR EXISTS (
    SELECT 1 FROM json_each(emails) WHERE value IN (SELECT value FROM json_each(:emails))
))
"""
SELECT_LOST_BATCHES = """
SELECT token, emails, used_before FROM batches b WHERE key = :key AND sent_at >= :since AND NOT EXISTS (
    SELECT 1 FROM attempts x WHERE x.key = b.key AND x.token = b.token AND x.free_at > :now
) ORDER BY sent_at, token
"""
REPLACE_JOB = "INSERT OR REPLACE INTO jobs VALUES (?, ?, ?, ?, ?, ?)"
DELETE_JOB = "DELETE FROM jobs WHERE key = ? AND job_id = ?"
SELECT_JOBS = "SELECT job_id, email, validation_type, submitted_at, address FROM jobs WHERE key = ? ORDER BY 4, 1"
SELECT_FREE_JOBS = """
SELECT job_id, email, validation_type, submitted_at, address FROM jobs WHERE key = :key AND NOT EXISTS (
    SELECT 1 FROM leases x WHERE x.key = :key AND x.address = jobs.address AND x.owner != :owner
) ORDER BY submitted_at, job_id
"""

# Settled rows.
SELECT_CHANGE = "SELECT number FROM changes"
NEXT_CHANGE = "UPDATE changes SET number = number + 1 RETURNING number"
INSERT_OUTCOME = "INSERT OR IGNORE INTO outcomes (digest, label, body) VALUES (?, ?, ?)"
SELECT_OUTCOME_ID = "SELECT id FROM outcomes WHERE digest = ?"
REPLACE_SETTLED = "INSERT OR REPLACE INTO settled VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
SELECT_SETTLED = """
SELECT s.address, s.normalized, s.checked_at, s.settled_at, o.body
FROM settled s JOIN outcomes o ON o.id = s.outcome WHERE s.key = ? ORDER BY s.address
"""
# A run is an owner; a row that was asked for again has the owner of the last run.
SELECT_RUNS = """
SELECT keys.name, s.owner, count(*), min(s.settled_at), max(s.settled_at)
FROM settled s JOIN keys ON keys.id = s.key GROUP BY s.key, s.owner ORDER BY max(s.settled_at) DESC LIMIT ?
"""
SELECT_ADDRESSES_OF_RUN = "SELECT address FROM settled WHERE key = ? AND owner = ? ORDER BY change, address"
COUNT_BY_LABEL = "SELECT label, count(*) FROM settled JOIN outcomes ON id = outcome WHERE key = ? GROUP BY label"
SELECT_SETTLED_RANGE = "SELECT min(settled_at), max(settled_at) FROM settled WHERE key = ?"
COUNT_JOBS = "SELECT count(*) FROM jobs WHERE key = ?"
COUNT_ATTEMPTS = "SELECT count(*) FROM attempts WHERE key = ?"


@contextmanager
def journal_errors(path: Path) -> Iterator[None]:
    """Raise errors of SQLite and of the file system as a `JournalError` that names the file."""
    try:
        yield
    except (sqlite3.Error, OSError) as exc:
        is_damaged = isinstance(exc, sqlite3.Error) and getattr(exc, "sqlite_errorcode", 0) & 0xFF in DAMAGE_CODES
        what = (exc.strerror if isinstance(exc, OSError) else None) or exc  # without the path again
        raise JournalError(describe_damage(path, str(exc)) if is_damaged else f"journal {path}: {what}") from exc


def describe_damage(path: Path, what: str) -> str:
    return f"journal {path} is damaged ({what}): restore it from a copy, or {ANOTHER_PATH}"


# The journals that this process has open, by device and inode. When a process closes any descriptor of a
# file, POSIX drops all its locks on that file, those of SQLite included; another process could then delete
# the write-ahead log that is still in use, and with it paid-for jobs. So while a journal is open, it is
# opened again by SQLite only, which keeps its descriptors until the last connection is closed.
OPEN_FILES: Counter[tuple[int, int]] = Counter()
OPENING = threading.Lock()


class JournalConnection(sqlite3.Connection):
    """A connection that is counted in `OPEN_FILES`."""

    file_id: tuple[int, int] | None = None

    def close(self) -> None:
        """Close the connection; the count goes down once."""
        super().close()
        if self.file_id is not None:
            OPEN_FILES[self.file_id] -= 1
            self.file_id = None


def open_file(path: Path) -> JournalConnection:
    """Open the journal at `path`; create the file, and missing folders, if it does not exist."""
    with journal_errors(path), OPENING:
        is_open = path.exists() and OPEN_FILES[file_id(path)] > 0
        is_new = not is_open and not is_journal(path)
        if is_new:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE))
        make_private(path)
        connection = connect(path)
        try:
            prepare(connection, is_new=is_new)
        except BaseException:
            connection.close()
            raise
        connection.file_id = file_id(path)
        OPEN_FILES[connection.file_id] += 1
        return connection


def file_id(path: Path) -> tuple[int, int]:
    """Identifies a file, whatever its path."""
    status = path.stat()
    return status.st_dev, status.st_ino


def forget_open_files() -> None:
    """Start empty in a forked process: it inherits descriptors, but neither locks nor the thread that was opening."""
    global OPENING  # noqa: PLW0603 - the inherited lock may never be released
    OPENING = threading.Lock()
    OPEN_FILES.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_open_files)


def is_journal(path: Path) -> bool:
    """Whether a journal exists, by its header; False for no file or an empty one, an error for anything else."""
    if not path.exists() or (path.is_file() and path.stat().st_size == 0):
        return False
    if not path.is_file():
        raise JournalError(f"journal {path} is not a file: give the path of a file")
    with path.open("rb") as file:
        head = file.read(HEADER_SIZE)
    if len(head) < HEADER_SIZE or not head.startswith(MAGIC):
        raise JournalError(f"{path} is not a journal of mailverdict; it was not changed: {ANOTHER_PATH}")
    version, application = (int.from_bytes(head[at : at + 4], "big") for at in (60, 68))
    if application != APPLICATION_ID:
        raise JournalError(f"{path} is a SQLite file of another program; it was not changed: {ANOTHER_PATH}")
    if version > VERSION:
        raise JournalError(
            f"journal {path} was made by a later version of mailverdict (format {version}, known: {VERSION}): "
            f"update mailverdict, or {ANOTHER_PATH}"
        )
    if is_truncated(path, head):
        raise JournalError(describe_damage(path, "its end is missing"))
    return True


def is_truncated(path: Path, head: bytes) -> bool:
    """Whether pages are missing at the end; a write-ahead log beside the file may still contain them."""
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        return False
    page_size = int.from_bytes(head[16:18], "big")  # never 1, which stands for 65,536: we use the default size
    pages = int.from_bytes(head[28:32], "big")
    return path.stat().st_size < page_size * pages


def make_private(path: Path) -> None:
    """Let only the user read and write the file, which contains addresses; files of other users keep their mode.

    SQLite creates the files beside it with the mode of the file itself.
    """
    if os.name != "posix":
        return
    for each in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        with suppress(FileNotFoundError):  # SQLite removes the others when the last process closes the journal
            status = each.stat()
            if status.st_uid == os.geteuid() and status.st_mode & 0o077:
                each.chmod(PRIVATE)


def connect(path: Path) -> JournalConnection:
    """A connection in autocommit mode; the caller serializes threads."""
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False, factory=JournalConnection
    )
    connection.execute("PRAGMA cache_size = -65536")  # KiB: look-ups of a whole column stay in memory
    connection.execute("PRAGMA temp_store = MEMORY")
    for statement in TEMPORARY_TABLES:
        connection.execute(statement)
    return connection


def prepare(connection: sqlite3.Connection, *, is_new: bool) -> None:
    """Create or check the tables and switch to WAL, where two processes work at once and commits are cheap."""
    if is_new:
        create_tables(connection)
    for table in TABLE_NAMES:  # a damaged root page is found before anything is written
        connection.execute(f"SELECT * FROM {table} LIMIT 1").fetchall()  # noqa: S608 - names of ours
    switch_to_wal(connection, time.sleep)
    for statement in LATER_TABLES:
        connection.execute(statement)
    connection.execute("PRAGMA synchronous = FULL")  # a commit is on the disk, even if the power fails


def create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables in one transaction, unless another process was first."""
    connection.execute("BEGIN EXCLUSIVE")
    if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
        for statement in TABLES.split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def switch_to_wal(connection: sqlite3.Connection, sleep: Callable[[float], None]) -> None:
    """Use WAL; refused while another process creates the tables. The journal also works without it, slower."""
    for _ in range(WAL_TRIES):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            sleep(WAL_PAUSE)
        else:
            return
