"""The journal: what was paid for and what came of it, in one SQLite file.

Everything is written before the next step is taken, so a run that dies at any instant loses and
pays nothing twice; calling again goes on. Several processes may use one file: an address is
leased to the one that is about to submit it, and a lease ends with its owner.

What an address can be in, for one key (a validation type, and the service that was asked)::

    leased --Submitting--> attempted --Submitted--> in flight --Settled--> settled
                               |  (answer lost, or the process died)
                               +--> uncertain: free again if the quota shows that it was not
                                    counted, else held for a day or more before it is sent again
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...backend import Deferred, Event, Job, QuotaSeen, Settled, Submitted, Submitting
from ...errors import JournalError
from ...model.address import identities, identity
from ..retry import GRACE, Judgement, hold_seconds, judge_attempt, reusable
from .owners import Owner, this_process
from .recall import Entry, Packed, ask, export_settled, find_known, list_entries, pack
from .sql import open_file, own_errors

__all__ = ["Attempt", "Journal", "Page", "lease", "open_journal", "record_event"]

LEASE = 3_600.0  # seconds without a sign of life after which a lease ends where a process cannot be looked up

UNCERTAIN = """
SELECT email, address, sent_at, used_before, free_at FROM attempts WHERE key = ? AND free_at > ? ORDER BY sent_at, email
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A submission whose outcome is not known.

    Attributes
    ----------
    email, address : str
        The address as it was sent, and as the journal knows it.
    sent_at : float
        Seconds since the epoch.
    used_before : int or None
        The quota's `used` just before.
    free_at : float
        When it may be sent again, should nothing be learnt until then.
    """

    email: str
    address: str
    sent_at: float
    used_before: int | None
    free_at: float


def open_journal(path: Path | str, *, clock: Callable[[], float] = time.time) -> Journal:
    """Open a journal file, made if there is none.

    Parameters
    ----------
    path : Path or str
        The file; folders on the way are made.
    clock : callable
        Seconds since the epoch.

    Returns
    -------
    Journal
        To be closed, or used in a ``with`` statement.

    Raises
    ------
    JournalError
        If the file is something else, damaged, or made by a later version; it is left as it was.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, open_journal(f"{folder}/journal.db") as journal:
    ...     journal.runs()
    []
    """
    where = Path(path).expanduser()
    return Journal(open_file(where), where, clock=clock)


class Journal:
    """An open journal file; usable from any thread of its process.

    Parameters
    ----------
    connection : sqlite3.Connection
        As `open_file` gives it.
    path : Path
        For messages.
    clock : callable
        Seconds since the epoch.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path, *, clock: Callable[[], float]) -> None:
        self.connection, self.path, self.clock = connection, path, clock
        self.lock = threading.RLock()
        self.looked: dict[str, int] = {}
        self.is_open = True
        self.alive_at = clock()
        self.process = this_process()
        with self.transaction():
            self.owner = 1 + self.one("SELECT seq FROM sqlite_sequence WHERE name = 'owners'")
            self.show_alive()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the leases that are left and close the file; closing twice is fine."""
        with self.lock, own_errors(self.path):
            if not self.is_open:
                return
            self.is_open = False
            try:
                with self.transaction():
                    self.connection.execute("DELETE FROM leases WHERE owner = ?", (self.owner,))
                    self.connection.execute("DELETE FROM owners WHERE id = ?", (self.owner,))
            finally:
                self.connection.close()

    @contextmanager
    def transaction(self, kind: str = "IMMEDIATE") -> Iterator[None]:
        """All or nothing, and on the disk when it ends; no other process writes meanwhile."""
        with self.lock, own_errors(self.path):
            self.connection.execute(f"BEGIN {kind}")
            try:
                yield
            except BaseException:
                self.connection.execute("ROLLBACK")
                raise
            self.connection.execute("COMMIT")

    def settled(
        self, key: str, emails: pa.StringArray, *, newer_than: float, refresh: frozenset[str] = frozenset()
    ) -> pa.Table:
        """What is known of addresses, as rows of the one table with the source ``journal``.

        Parameters
        ----------
        key : str
            As `Backend.journal_key` gives it.
        emails : pyarrow.StringArray
            The addresses asked for.
        newer_than : float
            Seconds since the epoch; older answers are not given.
        refresh : frozenset of str
            Verdicts that are not given, to be asked again.

        Returns
        -------
        pyarrow.Table
            In the order of `emails`, `email` as given there. Answers that say "not now"
            (`mailverdict.runs.retry`) are left out.

        Raises
        ------
        JournalError
            If the file cannot be read.
        """
        with self.transaction("DEFERRED"):
            self.looked[key] = self.one("SELECT number FROM changes")
            known = find_known(self.connection, self.key_id(key), emails, newer_than)
        return known.rows.filter(reusable(known.rows, pc.subtract(self.clock(), known.settled_at), refresh))

    def in_flight(self, key: str, emails: pa.StringArray) -> list[Job]:
        """Jobs that are paid for and not over, of these addresses.

        Parameters
        ----------
        key : str
            As `Backend.journal_key` gives it.
        emails : pyarrow.StringArray
            The addresses asked for.

        Returns
        -------
        list of Job
            To be polled on, oldest first.

        Raises
        ------
        JournalError
            If the file cannot be read.
        """
        query = "SELECT job_id, email, validation_type, submitted_at, address FROM jobs WHERE key = ? ORDER BY 4, 1"
        with self.transaction("DEFERRED"):
            rows = self.connection.execute(query, (self.key_id(key),)).fetchall()
        addresses = pa.array([row[4] for row in rows], pa.string())
        is_asked = pc.is_in(addresses, value_set=identities(emails)).to_pylist()
        return [Job(*row[:4]) for row, wanted in zip(rows, is_asked, strict=True) if wanted]

    def uncertain(self, key: str) -> list[Attempt]:
        """Addresses whose submission was lost and that are not sent again yet.

        Parameters
        ----------
        key : str
            As `Backend.journal_key` gives it.

        Returns
        -------
        list of Attempt
            Oldest first.

        Raises
        ------
        JournalError
            If the file cannot be read.
        """
        with self.transaction("DEFERRED"):
            return [Attempt(*row) for row in self.connection.execute(UNCERTAIN, (self.key_id(key), self.clock()))]

    def judge_in(self, key: str) -> float | None:
        """When a reading of the quota can tell whether submissions of dead runs were counted.

        Parameters
        ----------
        key : str
            As `Backend.journal_key` gives it.

        Returns
        -------
        float or None
            Seconds from now; None where there is nothing to judge.

        Raises
        ------
        JournalError
            If the file cannot be read.
        """
        query = "SELECT owner, max(sent_at) FROM attempts WHERE key = ? AND judged = 0 GROUP BY owner"
        with self.transaction("DEFERRED"):
            unjudged = self.connection.execute(query, (self.key_id(key),)).fetchall()
            living = self.living()
        moments = [sent_at for owner, sent_at in unjudged if owner not in living]
        return max(0.0, max(moments) + GRACE - self.clock()) if moments else None

    def claim(self, key: str, emails: Sequence[str] | pa.StringArray, *, limit: int | None = None) -> list[str]:
        """Lease addresses that are about to be submitted.

        Parameters
        ----------
        key : str
            As `Backend.journal_key` gives it.
        emails : sequence of str or pyarrow.StringArray
            The addresses wanted.
        limit : int, optional
            How many are leased at most, the first ones that may be.

        Returns
        -------
        list of str
            Those that may be submitted, in order, each address once. Left out is what another
            living process has leased, what is in flight, what is uncertain, and what others have
            settled since `settled` was last called.

        Raises
        ------
        JournalError
            If the file cannot be written.
        """
        wanted = emails if isinstance(emails, pa.Array) else pa.array(emails, pa.string())
        with self.transaction():
            self.bury_owners()
            self.show_alive()
            page = self.page(key)
            free = lease(page, wanted, looked=self.looked.get(key, 0), limit=limit)
        claimed: list[str] = wanted.take(pa.array(free, pa.int64())).to_pylist()
        return claimed

    def record(self, key: str, event: Event) -> None:
        """Write an event down; it is on the disk when this returns.

        Parameters
        ----------
        key : str
            As `Backend.journal_key` gives it.
        event : Event
            Any; those that change nothing cost nothing.

        Raises
        ------
        JournalError
            If the file cannot be written; the event is not in it.
        """
        with self.transaction():
            record_event(self.page(key), event)
            if self.clock() - self.alive_at > LEASE / 4:
                self.show_alive()

    def runs(self) -> list[Entry]:
        """What the file holds, by validation type and service.

        Returns
        -------
        list of Entry
            Sorted by key.

        Raises
        ------
        JournalError
            If the file cannot be read.
        """
        with self.transaction("DEFERRED"):
            return list_entries(self.connection)

    def export(self, path: Path | str) -> None:
        """Write every settled row to a Parquet file, with the columns `key` and `settled_at` added.

        Parameters
        ----------
        path : Path or str
            The file; replaced when it is complete, never half written.

        Raises
        ------
        JournalError
            If the journal cannot be read or the file cannot be written.
        """
        with self.transaction("DEFERRED"):
            export_settled(self.connection, Path(path).expanduser())

    def page(self, key: str) -> Page:
        """Where to write for a key, which is made if it is new."""
        self.connection.execute("INSERT OR IGNORE INTO keys (name) VALUES (?)", (key,))
        return Page(self.connection, self.key_id(key), self.owner, self.clock(), self.living)

    def key_id(self, key: str) -> int:
        """The number of a key; one that no row has where the key is new."""
        return self.one("SELECT id FROM keys WHERE name = ?", key)

    def one(self, query: str, *values: object) -> int:
        """A single number; 0 where there is none."""
        row = self.connection.execute(query, values).fetchone()
        return int(row[0]) if row else 0

    def living(self) -> frozenset[int]:
        """Owners that may still be at work, this one included."""
        now = self.clock()
        others = self.connection.execute("SELECT id, until, host, pid, born FROM owners").fetchall()
        return frozenset(
            number
            for number, until, *process in others
            if number == self.owner or (until > now and not Owner(*process).is_dead())
        )

    def bury_owners(self) -> None:
        """End the leases of processes that live no more."""
        living = ", ".join(map(str, self.living()))
        self.connection.execute(f"DELETE FROM leases WHERE owner NOT IN ({living})")  # noqa: S608 - numbers of ours
        self.connection.execute(f"DELETE FROM owners WHERE id NOT IN ({living})")  # noqa: S608 - numbers of ours

    def show_alive(self) -> None:
        """Put off the end of this process's leases; enters it, also again should others have buried it."""
        self.alive_at = self.clock()
        self.connection.execute(
            "INSERT OR REPLACE INTO owners VALUES (?, ?, ?, ?, ?)",
            (self.owner, self.process.host, self.process.pid, self.process.born, self.alive_at + LEASE),
        )


@dataclass(frozen=True, slots=True)
class Page:
    """Where an event is written, within a transaction.

    Attributes
    ----------
    connection : sqlite3.Connection
        In a transaction.
    key, owner : int
        Under which key, and who writes.
    now : float
        Seconds since the epoch.
    living : callable
        Gives the owners that may still be at work.
    """

    connection: sqlite3.Connection
    key: int
    owner: int
    now: float
    living: Callable[[], frozenset[int]]

    def each(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Run a statement for each row; its first parameter is the key."""
        self.connection.executemany(statement, ((self.key, *row) for row in rows))


def record_event(page: Page, event: Event) -> None:
    """Write `event` down; waits and notices change nothing."""
    write = WRITERS.get(type(event))
    if write is not None:
        write(page, event)


def write_submitting(page: Page, event: Submitting) -> None:
    """From here on nobody knows whether the addresses are paid for, until an event says so."""
    lost = dict(page.connection.execute("SELECT address, losses FROM attempts WHERE key = ?", (page.key,)))
    for email in event.emails:
        address = identity(email)
        refuse_taken(page, address)
        losses = lost.get(address, -1) + 1
        page.connection.execute(
            "INSERT OR REPLACE INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, ?)",
            (page.key, address, email, event.token, page.now, event.used_before, page.owner, losses,
             page.now + hold_seconds(losses)),
        )  # fmt: skip


def refuse_taken(page: Page, address: str) -> None:
    """Stop before an address is paid for twice: a process that slept for long may have lost its leases."""
    place = {"key": page.key, "address": address, "owner": page.owner}
    if page.connection.execute(TAKEN, place).fetchone()[0]:
        raise JournalError("another process on this journal has taken over an address; call again to go on")


def write_submitted(page: Page, event: Submitted) -> None:
    """Paid for: the jobs are followed from here on, whatever happens."""
    rows = [(job.job_id, identity(job.email), job.email, job.validation_type, job.submitted_at) for job in event.jobs]
    page.each("INSERT OR REPLACE INTO jobs VALUES (?, ?, ?, ?, ?, ?)", rows)
    release(page, [address for _, address, *_ in rows])
    page.each("DELETE FROM attempts WHERE key = ? AND address = ?", [(address,) for _, address, *_ in rows])


def write_settled(page: Page, event: Settled) -> None:
    """Final rows; their jobs, leases and attempts end."""
    rows = event.rows
    packed = pack(rows)
    ids = save_outcomes(page.connection, packed)
    addresses = identities(whole(rows["email"])).to_pylist()
    change = page.connection.execute("UPDATE changes SET number = number + 1 RETURNING number").fetchone()[0]
    columns = zip(
        addresses,
        (ids[code] for code in packed.codes.tolist()),
        rows["normalized"].to_pylist(),
        rows["checked_at"].cast(pa.int64()).to_pylist(),
        strict=True,
    )
    page.each(
        "INSERT OR REPLACE INTO settled VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        ((*each, page.now, change, page.owner) for each in columns),
    )
    page.each("DELETE FROM jobs WHERE key = ? AND job_id = ?", [(job_id,) for job_id in event.job_ids])
    page.each("DELETE FROM attempts WHERE key = ? AND address = ?", [(address,) for address in addresses])
    release(page, addresses)


def save_outcomes(connection: sqlite3.Connection, packed: Packed) -> list[int]:
    """Keep outcomes that are new; give the number of each."""
    digests = [hashlib.blake2b(body.encode(), digest_size=16).digest() for body in packed.bodies]
    connection.executemany(
        "INSERT OR IGNORE INTO outcomes (digest, label, body) VALUES (?, ?, ?)",
        zip(digests, packed.labels, packed.bodies, strict=True),
    )
    query = "SELECT id FROM outcomes WHERE digest = ?"
    return [connection.execute(query, (digest,)).fetchone()[0] for digest in digests]


def write_deferred(page: Page, event: Deferred) -> None:
    """Not settled now: the addresses are free for others, unless they may have been paid for."""
    addresses = [identity(email) for email in event.emails]
    release(page, addresses)
    if event.why == "uncertain":
        page.each("UPDATE attempts SET judged = 1 WHERE key = ? AND address = ?", [(each,) for each in addresses])
    elif event.token:
        page.each("DELETE FROM attempts WHERE key = ? AND token = ?", [(event.token,)])


def write_quota(page: Page, event: QuotaSeen) -> None:
    """A reading of the quota tells whether submissions of dead processes were counted."""
    unjudged = page.connection.execute(UNJUDGED, (page.key,)).fetchall()
    living = page.living() if unjudged else frozenset()
    for token, sent_at, used_before, owner in unjudged:
        if owner in living:
            continue
        judgement = judge_attempt(sent_at=sent_at, used_before=used_before, used=event.quota.used, now=page.now)
        page.each(JUDGED[judgement], [(token,)])


def release(page: Page, addresses: Iterable[str]) -> None:
    """End leases of this process."""
    page.each(
        "DELETE FROM leases WHERE key = ? AND address = ? AND owner = ?", ((each, page.owner) for each in addresses)
    )


def whole(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    return column.combine_chunks()


UNJUDGED = """
SELECT token, min(sent_at), min(used_before), min(owner) FROM attempts WHERE key = ? AND judged = 0 GROUP BY token
"""
TAKEN = """
SELECT EXISTS (SELECT 1 FROM leases WHERE key = :key AND address = :address AND owner != :owner)
    OR EXISTS (SELECT 1 FROM jobs WHERE key = :key AND address = :address)
"""
JUDGED = {
    Judgement.FREE: "DELETE FROM attempts WHERE key = ? AND token = ?",
    Judgement.HELD: "UPDATE attempts SET judged = 1 WHERE key = ? AND token = ?",
    Judgement.OPEN: "UPDATE attempts SET judged = 0 WHERE key = ? AND token = ?",
}
WRITERS: dict[type, Callable[[Page, Any], None]] = {
    Submitting: write_submitting,
    Submitted: write_submitted,
    Settled: write_settled,
    Deferred: write_deferred,
    QuotaSeen: write_quota,
}


# An address may be submitted unless one of these knows better. `:looked` is the change up to which
# the journal has been asked for answers: what others have settled since is an answer, too.
BLOCKED = """
DELETE FROM asked WHERE
    EXISTS (SELECT 1 FROM leases x WHERE x.key = :key AND x.address = asked.address AND x.owner != :owner)
    OR EXISTS (SELECT 1 FROM jobs x WHERE x.key = :key AND x.address = asked.address)
    OR EXISTS (SELECT 1 FROM attempts x WHERE x.key = :key AND x.address = asked.address AND x.free_at > :now)
    OR EXISTS (SELECT 1 FROM settled x WHERE x.key = :key AND x.address = asked.address
               AND x.change > :looked AND x.owner != :owner)
"""
REPEATED = "DELETE FROM asked WHERE position NOT IN (SELECT min(position) FROM asked GROUP BY address)"
BEYOND = "DELETE FROM asked WHERE position NOT IN (SELECT position FROM asked ORDER BY position LIMIT ?)"
LEASED = "INSERT OR REPLACE INTO leases SELECT ?, address, ? FROM asked"


def lease(page: Page, emails: pa.StringArray, *, looked: int, limit: int | None) -> list[int]:
    """Lease those that may be submitted, `limit` of them at most; give their positions in order."""
    connection = page.connection
    ask(connection, emails)
    connection.execute(BLOCKED, {"key": page.key, "owner": page.owner, "now": page.now, "looked": looked})
    connection.execute(REPEATED)
    connection.execute(BEYOND, (-1 if limit is None else limit,))
    connection.execute(LEASED, (page.key, page.owner))
    free = connection.execute("SELECT position FROM asked ORDER BY position").fetchall()
    connection.execute("DELETE FROM asked")
    return [position for (position,) in free]
