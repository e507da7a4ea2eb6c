"""The journal's file: recognised before it is opened, created whole or not at all."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ...errors import JournalError

__all__ = ["APPLICATION_ID", "VERSION", "open_file", "own_errors"]

APPLICATION_ID = 0x4D564A31  # "MVJ1", in the file's header
VERSION = 1
MAGIC = b"SQLite format 3\x00"
HEADER = 100  # octets of a SQLite header: page size at 16, pages at 28, user_version at 60, application_id at 68
BUSY = 30.0  # seconds to wait for another process's transaction
WAL_TRIES = 50
WAL_PAUSE = 0.05

TABLES = """
CREATE TABLE keys (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE owners (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again: a dead owner's attempts keep its number
    host TEXT NOT NULL, pid INTEGER NOT NULL, born TEXT NOT NULL, until REAL NOT NULL
);
CREATE TABLE changes (number INTEGER NOT NULL);
INSERT INTO changes VALUES (0);
CREATE TABLE outcomes (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, label TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE settled (
    key INTEGER NOT NULL, address TEXT NOT NULL, outcome INTEGER NOT NULL, normalized TEXT, checked_at INTEGER,
    settled_at REAL NOT NULL, change INTEGER NOT NULL, owner INTEGER NOT NULL, PRIMARY KEY (key, address)
) WITHOUT ROWID;
CREATE TABLE jobs (  -- paid for, not over
    key INTEGER NOT NULL, job_id TEXT NOT NULL, address TEXT NOT NULL, email TEXT NOT NULL,
    validation_type TEXT NOT NULL, submitted_at REAL NOT NULL, PRIMARY KEY (key, job_id)
) WITHOUT ROWID;
CREATE INDEX jobs_by_address ON jobs (key, address);
CREATE TABLE attempts (  -- sent, or about to be; what became of it is not known
    key INTEGER NOT NULL, address TEXT NOT NULL, email TEXT NOT NULL, token TEXT NOT NULL, sent_at REAL NOT NULL,
    used_before INTEGER, owner INTEGER NOT NULL, judged INTEGER NOT NULL, losses INTEGER NOT NULL,
    free_at REAL NOT NULL, PRIMARY KEY (key, address)
) WITHOUT ROWID;
CREATE INDEX attempts_by_token ON attempts (key, token);
CREATE TABLE leases (
    key INTEGER NOT NULL, address TEXT NOT NULL, owner INTEGER NOT NULL, PRIMARY KEY (key, address)
) WITHOUT ROWID;
"""


@contextmanager
def own_errors(path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system raise into ours, naming the file."""
    try:
        yield
    except (sqlite3.Error, OSError) as exc:
        raise JournalError(f"journal {path}: {exc}") from exc


def open_file(path: Path) -> sqlite3.Connection:
    """Open the journal at `path`, made if there is none.

    Raises
    ------
    JournalError
        If the file is something else, damaged, or made by a later version; it is left as it was.
    """
    with own_errors(path):
        is_new = not recognise(path)
        if is_new:
            path.parent.mkdir(parents=True, exist_ok=True)
        connection = connect(path)
        try:
            prepare(connection, path, is_new=is_new)
        except BaseException:
            connection.close()
            raise
        return connection


def recognise(path: Path) -> bool:
    """Whether a journal is there; looks at the header alone, since opening may already write."""
    if not path.exists() or (path.is_file() and path.stat().st_size == 0):
        return False
    if not path.is_file():
        raise JournalError(f"{path} is no file; a journal is one")
    with path.open("rb") as file:
        head = file.read(HEADER)
    if len(head) < HEADER or not head.startswith(MAGIC):
        raise JournalError(f"{path} is no journal of mailverdict; it was left as it is")
    version, application = (int.from_bytes(head[at : at + 4], "big") for at in (60, 68))
    if application != APPLICATION_ID:
        raise JournalError(f"{path} is a SQLite file of something else; it was left as it is")
    if version > VERSION:
        raise JournalError(f"{path} was made by a later version of mailverdict (format {version}, known: {VERSION})")
    if is_cut(path, head):
        raise JournalError(f"journal {path} is damaged (its end is missing); it was left as it is")
    return True


def is_cut(path: Path, head: bytes) -> bool:
    """Whether pages are missing at the end; a log beside the file may still hold them."""
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        return False
    page_size = int.from_bytes(head[16:18], "big")  # never 1, which would stand for 65,536: ours has the default
    pages = int.from_bytes(head[28:32], "big")
    return path.stat().st_size < page_size * pages


def connect(path: Path) -> sqlite3.Connection:
    """A connection that begins no transactions of its own; the caller keeps threads apart."""
    connection = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA cache_size = -65536")  # KiB: look-ups of a whole column stay in memory
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("CREATE TEMP TABLE asked (position INTEGER NOT NULL, address TEXT NOT NULL)")
    connection.execute("CREATE TEMP TABLE wanted (outcome INTEGER PRIMARY KEY)")
    return connection


def prepare(connection: sqlite3.Connection, path: Path, *, is_new: bool) -> None:
    """Create or check the tables; in WAL mode two processes work at once and commits are cheap."""
    if is_new:
        create(connection)
    with closing(connection.execute("PRAGMA quick_check(1)")) as cursor:
        found = cursor.fetchone()[0]
    if found != "ok":
        raise JournalError(f"journal {path} is damaged ({found}); it was left as it is")
    use_wal(connection, time.sleep)
    connection.execute("PRAGMA synchronous = FULL")  # a commit is on the disk, also when the power fails


def create(connection: sqlite3.Connection) -> None:
    """Make the tables in one transaction, unless another process was faster."""
    connection.execute("BEGIN EXCLUSIVE")
    if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
        for statement in TABLES.split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def use_wal(connection: sqlite3.Connection, sleep: Callable[[float], None]) -> None:
    """Switch to WAL, which is refused while another process is creating; without it all works, slower."""
    for _ in range(WAL_TRIES):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            sleep(WAL_PAUSE)
        else:
            return
