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

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.compute as pc

from ...backend import Event, Job
from ...model.address import identities
from ..later import GRACE, reusable
from .file import open_file, own_errors
from .inventory import Entry, export_settled, list_entries
from .leasing import lease
from .owners import Owner, this_process
from .recall import find_known
from .recording import Page, record_event

__all__ = ["Attempt", "Journal", "open_journal"]

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
            (`mailverdict.runs.later`) are left out.

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
