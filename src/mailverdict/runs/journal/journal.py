"""The journal: what was paid for and what came of it, in one SQLite file.

Each event is written before the next step begins, so a run that dies at any time loses nothing and pays for nothing
twice; calling again resumes. Several runs may use one file at once, in one process or in several.

An address has one row for each key (a validation type, and the service that was asked). The row has the last answer,
and beside it the state of what was sent since then:

=========  ==================================================  =======================================================
state      meaning                                             next state
=========  ==================================================  =======================================================
none       nothing is on its way; the address may be sent      sending: `claim`, before the request leaves
sending    the request may have left; no answer was recorded   in_flight: `Submitted`
                                                               none: `Settled`; `Deferred` that says "rejected" or
                                                               "uncounted"; a quota that shows that it was not counted
                                                               held: `Deferred` that says "uncertain"; any other quota
in_flight  paid for; its job is polled                         none: `Settled`
                                                               waiting: `Settled` of an address that is asked again
waiting    refused by the service's limiter; its run will      sending: `claim` by that run, or by any run when that
           send it again                                       one has ended
held       perhaps paid for                                    sending: `claim`, a day after it was sent, or after two,
                                                               four ... thirty days if it is lost each time
=========  ==================================================  =======================================================

`sending`, `in_flight` and `waiting` belong to a run, which holds a lock (`locks`) until it is closed or its process
ends. Until then no other run sends the address or polls its job. Local backends claim nothing: two runs may ask one
mailbox twice, which costs nothing.

What a crash leaves, by the moment at which the process ends:

=============================================  =========================================================================
before `claim` is committed                    the row as it was
after that, until `Submitted` is committed:    sending: the next reading of the quota decides by
the request was not sent, is on its way, or    `classify_lost_submission`. Unchanged: not counted, the address is free.
was answered                                   Too early, 5 seconds: the next run waits. Otherwise: held for a day
after `Submitted`, until `Settled`             in_flight: the next run polls the job, which costs nothing
after `Settled`                                the answer
after `Settled` of what is asked again         waiting, which any run may send
after `Deferred` as uncertain                  held
=============================================  =========================================================================

A batch that is free or no longer held keeps its token and its order until one of its addresses is sent otherwise: it is
sent again as it was, with the same Idempotency-Key. Two cases follow from this:

- A request that still waits in the service (for a lock of its database) when the next run reads the quota is sent
  again, and may be counted after that. A service that knows the key counts it once; `mailverdict serve` does. One that
  does not know it counts it twice. Only a hold would prevent that, and every run that was killed would then leave its
  last batch pending.
- The status 503 shows nothing: a unit counts as spent until the quota, read 5 seconds later, shows that it was not.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...backend import GRACE, Deferred, Event, Job, KnownPace, Paced, QuotaSeen, Settled, Submitted, Submitting
from ...errors import JournalError
from ...model.address import address_key, address_keys
from ...model.paths import user_path
from ...model.words import count_of
from ..retry import MAX_HOLD, LostSubmission, classify_lost_submission, hold_seconds, reusable
from . import sql
from .owners import Owner, this_process
from .recall import (
    JournalSummary,
    PackedRows,
    RecordedRun,
    export_settled,
    find_known,
    load_asked,
    pack,
    summarize,
)

LEASE = 600.0  # seconds after which a lease ends without a renewal; a run renews its leases every minute


@dataclass(frozen=True, slots=True)
class Attempt:
    """A submission whose outcome is not known."""

    email: str  # as it was sent
    address: str  # as the journal stores it
    sent_at: float  # seconds since the epoch
    used_before: int | None  # the quota's `used` just before
    free_at: float  # when it may be sent again if nothing is found out until then


@dataclass(frozen=True, slots=True)
class Unclaimed:
    """Addresses that this process may not submit now, as the journal stores them."""

    held: pa.StringArray  # their submission was lost; they may have been paid for
    free_at: float | None  # seconds since the epoch when the first of those may be sent again
    elsewhere: pa.StringArray  # another running process submits them or polls their jobs

    def notice(self) -> str:
        """A message about the held addresses; empty if there are none."""
        if self.free_at is None:
            return ""
        when = datetime.fromtimestamp(self.free_at, UTC)
        return (
            f"{count_of(len(self.held), 'address stays', 'addresses stay')} pending: the submission was lost and may "
            f"have been paid for; sent again from {when:%Y-%m-%d %H:%M} UTC"
        )


class Journal:
    """An open journal file; can be used from any thread of its process, and as a context manager.

    A missing file is created. A file that is not a journal, is damaged, or was made by a later
    version is a `JournalError`, as is every later error of SQLite or the file system.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Journal(f"{folder}/journal.db") as journal:
    ...     journal.summary()
    []
    """

    def __init__(self, path: Path | str, *, clock: Callable[[], float] = time.time) -> None:
        self.path, self.clock = user_path(path), clock
        self.connection = sql.open_file(self.path)
        self.lock = threading.RLock()
        self.seen_change: dict[str, int] = {}  # by key, the last change that `settled` has read
        self.is_open = True
        self.process = this_process()
        try:
            with self.transaction():
                self.owner = 1 + self.scalar(sql.SELECT_LAST_OWNER)
                self.renew_leases()
        except BaseException:
            self.connection.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the leases of this process and close the file; closing twice does nothing."""
        with self.lock, sql.journal_errors(self.path):
            if not self.is_open:
                return
            self.is_open = False
            try:
                with self.transaction():
                    self.connection.execute(sql.DELETE_LEASES_OF_OWNER, (self.owner,))
                    self.connection.execute(sql.DELETE_OWNER, (self.owner,))
            finally:
                self.connection.close()

    def settled(
        self,
        key: str,
        emails: pa.StringArray,
        *,
        newer_than: float,
        refresh: frozenset[str] = frozenset(),
        answered_since: float | None = None,
        costs_quota: bool = True,
    ) -> pa.Table:
        """Known answers in the order of `emails`, as rows with the source ``journal``.

        Left out are answers settled before `newer_than` (seconds since the epoch), verdicts in
        `refresh`, and temporary answers (`mailverdict.runs.retry`; some are temporary only where asking again
        costs no quota); but no answer settled at or after `answered_since`, when the run of which this is a
        part began.
        """
        with self.transaction("DEFERRED"):
            self.seen_change[key] = self.scalar(sql.SELECT_CHANGE)
            known = find_known(self.connection, self.key_id(key), emails, newer_than)
        ages = pc.subtract(self.clock(), known.settled_at)
        kept = reusable(known.rows, ages, refresh, costs_quota=costs_quota)
        if answered_since is not None:
            kept = pc.or_(kept, pc.greater_equal(known.settled_at, answered_since))
        return known.rows.filter(kept)

    def in_flight(self, key: str, emails: pa.StringArray) -> list[Job]:
        """Jobs of these addresses that are paid for and not final, oldest first."""
        with self.transaction("DEFERRED"):
            rows = self.connection.execute(sql.SELECT_JOBS, (self.key_id(key),)).fetchall()
        return [Job(*row[:4]) for row in rows_of_addresses(rows, emails)]

    def adopt(self, key: str, emails: pa.StringArray) -> list[Job]:
        """Lease the paid-for jobs of these addresses that no other running process polls; oldest first."""
        with self.transaction():
            self.expire_owners()
            self.renew_leases()
            key_id = self.key_id(key)
            free = self.connection.execute(sql.SELECT_FREE_JOBS, {"key": key_id, "owner": self.owner}).fetchall()
            adopted = rows_of_addresses(free, emails)
            leases = ((key_id, address, self.owner) for *_, address in adopted)
            self.connection.executemany(sql.REPLACE_LEASE, leases)
        return [Job(*row[:4]) for row in adopted]

    def unclaimed(self, key: str, emails: pa.StringArray) -> Unclaimed:
        """Why `claim` left these addresses out; what is in neither group is free or settled by now."""
        wanted = address_keys(emails)
        with self.transaction("DEFERRED"):
            running, now = self.running_owners(), self.clock()
            leased = self.connection.execute(sql.SELECT_LEASES, (self.key_id(key),)).fetchall()
            attempts = self.connection.execute(sql.SELECT_UNCERTAIN, (self.key_id(key), now)).fetchall()
        elsewhere = {address for address, owner in leased if owner != self.owner and owner in running}
        free_at = {address: until for _, address, _, _, until in attempts if address not in elsewhere}
        held = wanted.filter(pc.is_in(wanted, value_set=pa.array(free_at, pa.string())))
        return Unclaimed(
            held=held,
            free_at=min((free_at[each] for each in held.to_pylist()), default=None),
            elsewhere=wanted.filter(pc.is_in(wanted, value_set=pa.array(elsewhere, pa.string()))),
        )

    def renew(self) -> None:
        """Extend the leases of this process."""
        with self.transaction():
            self.renew_leases()

    def uncertain(self, key: str) -> list[Attempt]:
        """Addresses whose submission was lost and that are still held, oldest first."""
        with self.transaction("DEFERRED"):
            rows = self.connection.execute(sql.SELECT_UNCERTAIN, (self.key_id(key), self.clock()))
            return [Attempt(*row) for row in rows]

    def lost_batches(self, key: str) -> list[Submitting]:
        """Lost submissions whose addresses are not held (any more), oldest first.

        A service that knows Idempotency-Keys counts each of them once, if it is sent again as it was.
        """
        now = self.clock()
        parameters = {"key": self.key_id(key), "since": now - MAX_HOLD, "now": now}
        with self.transaction("DEFERRED"):
            rows = self.connection.execute(sql.SELECT_LOST_BATCHES, parameters).fetchall()
        return [Submitting(token, tuple(json.loads(emails)), used_before) for token, emails, used_before in rows]

    def seconds_to_resolve(self, key: str) -> float | None:
        """Seconds until a quota reading can show whether submissions of ended processes were counted; None: no such."""
        with self.transaction("DEFERRED"):
            unresolved = self.connection.execute(sql.SELECT_LAST_UNRESOLVED, (self.key_id(key),)).fetchall()
            running = self.running_owners()
        sent = [sent_at for owner, sent_at in unresolved if owner not in running]
        return max(0.0, max(sent) + GRACE - self.clock()) if sent else None

    def claim(self, key: str, emails: Sequence[str] | pa.StringArray, *, limit: int | None = None) -> list[str]:
        """Lease addresses that are about to be submitted; returns those that may be, in order, each once.

        Left out are addresses leased to another running process, in flight, held, or settled by
        others since `settled` was last called. `limit` leases the first so many.
        """
        wanted = emails if isinstance(emails, pa.Array) else pa.array(emails, pa.string())
        with self.transaction():
            self.expire_owners()
            self.renew_leases()
            positions = self.on_key(key).lease(wanted, self.seen_change.get(key, 0), limit)
        claimed: list[str] = wanted.take(pa.array(positions, pa.int64())).to_pylist()
        return claimed

    def record(self, key: str, event: Event) -> None:
        """Write an event; it is on the disk when this returns, and not in the file at all if this raises."""
        with self.transaction():
            self.on_key(key).record(event)
            if self.clock() - self.renewed_at > LEASE / 4:
                self.renew_leases()

    def known_pace(self, service: str) -> KnownPace | None:
        """What is known about how fast a service may be asked."""
        with self.transaction("DEFERRED"):
            row = self.connection.execute(sql.SELECT_PACE, (service,)).fetchone()
        return KnownPace(*row) if row else None

    def summary(self) -> list[JournalSummary]:
        """What the file contains, by validation type and service."""
        with self.transaction("DEFERRED"):
            return list(summarize(self.connection))

    def runs(self, limit: int) -> list[RecordedRun]:
        """The last runs that settled addresses, newest first."""
        with self.transaction("DEFERRED"):
            return [RecordedRun(*row) for row in self.connection.execute(sql.SELECT_RUNS, (limit,))]

    def answers_of(self, run: RecordedRun) -> pa.Table:
        """What a run found out, whatever its age, as rows with the source ``journal``."""
        with self.transaction("DEFERRED"):
            rows = self.connection.execute(sql.SELECT_ADDRESSES_OF_RUN, (self.key_id(run.key), run.owner))
            addresses = pa.array([address for (address,) in rows], pa.string())
        return self.settled(run.key, addresses, newer_than=0.0, answered_since=0.0)

    def export(self, path: Path | str) -> None:
        """Write every settled row to a Parquet file, with the columns `key` and `settled_at` added."""
        with self.transaction("DEFERRED"):
            export_settled(self.connection, user_path(path))

    @contextmanager
    def transaction(self, kind: str = "IMMEDIATE") -> Iterator[None]:
        """Commit on success, roll back on an error; by default other processes cannot write until it ends."""
        with self.lock, sql.journal_errors(self.path):
            self.connection.execute(f"BEGIN {kind}")
            try:
                yield
            except BaseException:
                self.connection.execute("ROLLBACK")
                raise
            self.connection.execute("COMMIT")

    def on_key(self, key: str) -> JournalTransaction:
        """Within a transaction: what writes under `key`, which is added if it is new."""
        self.connection.execute(sql.INSERT_KEY, (key,))
        return JournalTransaction(self.connection, self.key_id(key), self.owner, self.clock(), self.running_owners)

    def key_id(self, key: str) -> int:
        """The number of a key; 0, which no row has, if the key is new."""
        return self.scalar(sql.SELECT_KEY_ID, key)

    def scalar(self, query: str, *values: object) -> int:
        """A single number; 0 if the query has no row."""
        row = self.connection.execute(query, values).fetchone()
        return int(row[0]) if row else 0

    def running_owners(self) -> frozenset[int]:
        """Processes that may still be running, this one included."""
        now = self.clock()
        owners = self.connection.execute(sql.SELECT_OWNERS).fetchall()
        return frozenset(
            number
            for number, until, *process in owners
            if number == self.owner or (until > now and not Owner(*process).has_ended())
        )

    def expire_owners(self) -> None:
        """Delete the leases of processes that have ended."""
        running = json.dumps(sorted(self.running_owners()))
        self.connection.execute(sql.DELETE_LEASES_OF_ENDED, (running,))
        self.connection.execute(sql.DELETE_ENDED_OWNERS, (running,))

    def renew_leases(self) -> None:
        """Extend the leases of this process; adds the process again if another one has removed it."""
        self.renewed_at = self.clock()
        self.connection.execute(
            sql.REPLACE_OWNER,
            (self.owner, self.process.host, self.process.pid, self.process.born, self.renewed_at + LEASE),
        )


def rows_of_addresses(rows: Sequence[tuple[Any, ...]], emails: pa.StringArray) -> list[tuple[Any, ...]]:
    """Those of the rows of jobs, which end with their address, that are about these addresses."""
    addresses = pa.array([row[-1] for row in rows], pa.string())
    is_asked = pc.is_in(addresses, value_set=address_keys(emails)).to_pylist()
    return [row for row, wanted in zip(rows, is_asked, strict=True) if wanted]


@dataclass(frozen=True, slots=True)
class JournalTransaction:
    """What is written under one key, within a transaction."""

    connection: sqlite3.Connection
    key: int
    owner: int  # the process that writes
    now: float  # seconds since the epoch
    running_owners: Callable[[], frozenset[int]]

    def execute_each(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Run a statement for each row; its first parameter is the key."""
        self.connection.executemany(statement, ((self.key, *row) for row in rows))

    def lease(self, emails: pa.StringArray, seen_change: int, limit: int | None) -> list[int]:
        """Lease addresses that may be submitted; returns their positions in order."""
        load_asked(self.connection, emails)
        parameters = {"key": self.key, "owner": self.owner, "now": self.now, "seen": seen_change}
        self.connection.execute(sql.DELETE_BLOCKED, parameters)
        self.connection.execute(sql.DELETE_REPEATED)
        self.connection.execute(sql.DELETE_BEYOND_LIMIT, (-1 if limit is None else limit,))
        self.connection.execute(sql.LEASE_ASKED, (self.key, self.owner))
        positions = [position for (position,) in self.connection.execute(sql.SELECT_ASKED)]
        self.connection.execute(sql.DELETE_ASKED)
        return positions

    def release(self, addresses: Iterable[str]) -> None:
        """End leases of this process."""
        self.execute_each(sql.DELETE_LEASE, ((each, self.owner) for each in addresses))

    def record(self, event: Event) -> None:
        """Write `event`; waits and notices change nothing."""
        match event:
            case Submitting():
                self.record_submitting(event)
            case Submitted():
                self.record_submitted(event)
            case Settled():
                self.record_settled(event)
            case Deferred():
                self.record_deferred(event)
            case QuotaSeen():
                self.resolve_lost_submissions(event.quota.used)
            case Paced(known=KnownPace() as known):
                row = (event.service, known.limit, known.window, known.at)
                self.connection.execute(sql.REPLACE_PACE, row)

    def record_submitting(self, event: Submitting) -> None:
        """The addresses may be paid for from here on; only another event shows whether they are."""
        emails = json.dumps(event.emails)
        since = self.now - MAX_HOLD
        self.connection.execute(sql.DELETE_REPLACED_BATCHES, {"key": self.key, "since": since, "emails": emails})
        self.execute_each(sql.REPLACE_BATCH, [(event.token, self.now, event.used_before, emails)])
        losses_by_address = dict(self.connection.execute(sql.SELECT_LOSSES, (self.key,)))
        for email in event.emails:
            address = address_key(email)
            self.require_unclaimed(address)
            losses = losses_by_address.get(address, -1) + 1
            free_at = self.now + hold_seconds(losses)
            row = (address, email, event.token, self.now, event.used_before, self.owner, losses, free_at)
            self.connection.execute(sql.REPLACE_ATTEMPT, (self.key, *row))

    def require_unclaimed(self, address: str) -> None:
        """Raise before an address is paid for twice: a process that was suspended may have lost its leases."""
        parameters = {"key": self.key, "address": address, "owner": self.owner}
        if self.connection.execute(sql.IS_TAKEN, parameters).fetchone()[0]:
            raise JournalError("another process on this journal has taken over an address; call again to go on")

    def record_submitted(self, event: Submitted) -> None:
        """Paid for: from here on the jobs are polled, by this process while it runs and then by later ones."""
        rows = [
            (job.job_id, address_key(job.email), job.email, job.validation_type, job.submitted_at) for job in event.jobs
        ]
        self.execute_each(sql.REPLACE_JOB, rows)
        self.execute_each(sql.DELETE_ATTEMPT, [(address,) for _, address, *_ in rows])
        self.execute_each(sql.DELETE_BATCH, [(event.token,)])

    def record_settled(self, event: Settled) -> None:
        """Final rows; their jobs, leases and attempts end. Addresses that are asked again stay leased."""
        rows = event.rows
        packed = pack(rows)
        ids = self.save_outcomes(packed)
        addresses = address_keys(rows["email"].combine_chunks()).to_pylist()
        change = self.connection.execute(sql.NEXT_CHANGE).fetchone()[0]
        columns = zip(
            addresses,
            (ids[code] for code in packed.codes.tolist()),
            rows["normalized"].to_pylist(),
            rows["checked_at"].cast(pa.int64()).to_pylist(),
            strict=True,
        )
        self.execute_each(sql.REPLACE_SETTLED, ((*each, self.now, change, self.owner) for each in columns))
        self.execute_each(sql.DELETE_JOB, [(job_id,) for job_id in event.job_ids])
        self.execute_each(sql.DELETE_ATTEMPT, [(address,) for address in addresses])
        if event.is_asked_again:
            self.execute_each(sql.REPLACE_LEASE, [(address, self.owner) for address in addresses])
        else:
            self.release(addresses)

    def save_outcomes(self, packed: PackedRows) -> list[int]:
        """Insert new outcomes; returns the number of each."""
        digests = [hashlib.blake2b(body.encode(), digest_size=16).digest() for body in packed.bodies]
        self.connection.executemany(sql.INSERT_OUTCOME, zip(digests, packed.labels, packed.bodies, strict=True))
        return [self.connection.execute(sql.SELECT_OUTCOME_ID, (digest,)).fetchone()[0] for digest in digests]

    def record_deferred(self, event: Deferred) -> None:
        """Not settled now: free for other processes, except addresses that may have been paid for."""
        addresses = [address_key(email) for email in event.emails]
        self.release(addresses)
        if event.why == "rejected":
            self.execute_each(sql.DELETE_BATCH, [(event.token,)])
        if event.why == "uncertain":
            self.execute_each(sql.HOLD_ATTEMPT, [(each,) for each in addresses])
        elif event.token:
            self.execute_each(sql.DELETE_ATTEMPTS_BY_TOKEN, [(event.token,)])

    def resolve_lost_submissions(self, used: int) -> None:
        """Decide by the quota's `used` whether submissions of ended processes were counted."""
        unresolved = self.connection.execute(sql.SELECT_UNRESOLVED, (self.key,)).fetchall()
        running = self.running_owners() if unresolved else frozenset()
        for token, sent_at, used_before, owner in unresolved:
            if owner in running:
                continue
            outcome = classify_lost_submission(sent_at=sent_at, used_before=used_before, used=used, now=self.now)
            if outcome is LostSubmission.NOT_COUNTED:
                self.execute_each(sql.DELETE_ATTEMPTS_BY_TOKEN, [(token,)])
            elif outcome is LostSubmission.MAYBE_COUNTED:
                self.execute_each(sql.HOLD_ATTEMPTS_BY_TOKEN, [(token,)])
