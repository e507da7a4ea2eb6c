"""The journal: what was paid for and what came of it, in one SQLite file.

Each event is written before the next step begins, so a run that dies at any time loses nothing and
pays for nothing twice; calling again resumes. Several runs may use one file at once, in one process
or in several.

An address has one row for each key (a validation type, and the service that was asked). The row has
the last answer, and beside it the state of what was sent since then:

=========  ====================================  ===================================================
state      meaning                               next state
=========  ====================================  ===================================================
none       nothing is on its way; the address    sending: `claim`, before the request leaves
           may be sent
sending    the request may have left; no answer  in_flight: `Submitted`
           was recorded                          none: `Settled`; `Deferred` that says "rejected" or
                                                 "uncounted"; a quota that shows that it was not
                                                 counted
                                                 held: `Deferred` that says "uncertain"; any other
                                                 quota
in_flight  paid for; its job is polled           none: `Settled`
                                                 waiting: `Settled` of an address to be asked again
waiting    refused by the service's limiter;     sending: `claim` by that run, or by any run when
           its run will send it again            that one has ended
held       perhaps paid for                      sending: `claim`, a day after it was sent, or after
                                                 two, four ... thirty days if it is lost each time
=========  ====================================  ===================================================

`sending`, `in_flight` and `waiting` belong to a run, which holds a lock (`locks`) until it is
closed or its process ends. Until then no other run sends the address or polls its job. Local
backends claim nothing: two runs may ask one mailbox twice, which costs nothing.

What a crash leaves, by the moment at which the process ends:

==========================================  ========================================================
before `claim` is committed                 the row as it was
after that, until `Submitted` is            sending: the next reading of the quota decides by
committed: the request was not sent, is     `classify_lost_submission`. Unchanged: not counted, the
on its way, or was answered                 address is free. Too early, 5 seconds: the next run
                                            waits. Otherwise: held for a day
after `Submitted`, until `Settled`          in_flight: the next run polls the job, which costs
                                            nothing
after `Settled`                             the answer
after `Settled` of what is asked again      waiting, which any run may send
after `Deferred` as uncertain               held
==========================================  ========================================================

A batch that is free or no longer held keeps its token and its order until one of its addresses is
sent otherwise: it is sent again as it was, with the same Idempotency-Key. Two cases follow from
this:

- A request that still waits in the service (for a lock of its database) when the next run reads the
  quota is sent again, and may be counted after that. A service that knows the key counts it once;
  `mailverdict serve` does. One that does not know it counts it twice. Only a hold would prevent
  that, and every run that was killed would then leave its last batch pending.
- The status 503 shows nothing: a unit counts as spent until the quota, read 5 seconds later, shows
  that it was not.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...backend import (
    GRACE,
    Deferred,
    Event,
    Job,
    KnownPace,
    Paced,
    QuotaSeen,
    Settled,
    Submitted,
    Submitting,
)
from ...model.address import address_key, address_keys
from ...model.paths import user_path
from ...model.words import count_of
from ..retry import MAX_HOLD, LostSubmission, classify_lost_submission, hold_seconds, reusable
from . import sql
from .locks import RunLock, delete_unlocked, is_locked, lock_path
from .recall import (
    JournalSummary,
    PackedRows,
    RecordedRun,
    digest_of,
    export_settled,
    find_known,
    pack,
    summarize,
)

STATES = ("sending", "in_flight", "waiting", "held")


def is_number(value: object) -> bool:
    """Whether a value of the journal is a number; SQLite keeps any value in any column."""
    return isinstance(value, int | float)


@dataclass(frozen=True, slots=True)
class Unclaimed:
    """Addresses that this run may not send now, as the journal stores them."""

    held: pa.StringArray  # their submission was lost; they may have been paid for
    free_at: float | None  # seconds since the epoch when the first of those may be sent again
    elsewhere: pa.StringArray  # another run sends them or polls their jobs

    def notice(self) -> str:
        """A message about the held addresses; empty if there are none."""
        if self.free_at is None:
            return ""
        addresses = count_of(len(self.held), "address stays", "addresses stay")
        when = datetime.fromtimestamp(self.free_at, UTC)
        return (
            f"{addresses} pending: the submission was lost and may have been paid for; "
            f"sent again from {when:%Y-%m-%d %H:%M} UTC"
        )


class Journal:
    """An open journal file, for one run, in any thread of its process.

    A missing file is created. A file that is not a journal, is damaged, or was made by a later
    version is a `JournalError`, as is every later error of SQLite or the file system.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Journal(f"{folder}/journal.db") as journal:
    ...     journal.summary()
    []
    """

    def __init__(self, path: Path | str, *, clock: Callable[[], float] = time.time) -> None:
        self.path = user_path(path)
        self.clock = clock
        self.connection = sql.open_file(self.path)
        self.lock = threading.RLock()
        self.run = 0  # its number, from its first change on
        self.run_lock: RunLock | None = None
        # Which runs have not ended, as seen by the present transaction.
        self.running: dict[int, bool] = {}
        self.connection.create_function("is_running", 1, self.is_running)
        self.connection.create_function("hold_seconds", 1, hold_seconds, deterministic=True)
        with self.transaction("DEFERRED"):
            self.seen = self.scalar(sql.SELECT_CHANGE)  # what has a higher number was settled since

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and leave what belongs to this run to others."""
        with self.lock, sql.journal_errors(self.path):
            self.connection.close()
            if self.run_lock is not None:
                self.run_lock.release()

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
        `refresh`, and temporary answers (`mailverdict.runs.retry`; some are temporary only where
        asking again costs no quota); but no answer settled at or after `answered_since`, when the
        run of which this is a part began, nor one that another run has settled since the journal
        was opened.
        """
        with self.transaction("DEFERRED"):
            parameters = {
                "key": self.key_id(key),
                "newer_than": newer_than,
                "seen": self.seen,
                "run": self.run,
            }
            known = find_known(self.connection, emails, parameters)
        ages = pc.subtract(self.clock(), known.settled_at)
        kept = pc.or_(reusable(known.rows, ages, refresh, costs_quota=costs_quota), known.is_new)
        if answered_since is not None:
            kept = pc.or_(kept, pc.greater_equal(known.settled_at, answered_since))
        return known.rows.filter(kept)

    def in_flight(self, key: str, emails: pa.StringArray) -> list[Job]:
        """Jobs of these addresses that are paid for and not final, oldest first."""
        with self.transaction("DEFERRED"):
            return [Job(*row[:4]) for row in self.jobs_of(self.key_id(key), emails)]

    def adopt(self, key: str, emails: pa.StringArray) -> list[Job]:
        """Take over the paid-for jobs of these addresses that no run polls; oldest first."""
        run = self.begin()
        with self.transaction():
            key_id = self.key_id(key)
            left = [row for row in self.jobs_of(key_id, emails) if not row[-1]]
            addresses = [(run, key_id, address) for *_, address, _ in left]
            self.connection.executemany(sql.ADOPT_JOB, addresses)
        return [Job(*row[:4]) for row in left]

    def jobs_of(self, key: int, emails: pa.StringArray) -> list[tuple[Any, ...]]:
        """Fields of the jobs of these addresses, the address, and whether a run polls them."""
        rows = self.connection.execute(sql.SELECT_JOBS, {"key": key}).fetchall()
        for job_id, email, validation_type, sent_at, address, _ in rows:
            texts = (job_id, email, validation_type)
            if not all(isinstance(text, str) and text for text in texts) or not is_number(sent_at):
                raise sql.damaged_address(address, "says that a job is polled, and not which")
        addresses = pa.array([row[-2] for row in rows], pa.string())
        is_asked = pc.is_in(addresses, value_set=address_keys(emails)).to_pylist()
        return [row for row, wanted in zip(rows, is_asked, strict=True) if wanted]

    def unclaimed(self, key: str, emails: pa.StringArray) -> Unclaimed:
        """Which of these addresses `claim` would leave out."""
        now = self.clock()
        elsewhere = set()
        held: dict[str, float] = {}  # from when on an address may be sent again
        with self.transaction("DEFERRED"):
            parameters = {"key": self.key_id(key)}
            states = self.connection.execute(sql.SELECT_STATES, parameters).fetchall()
            for address, state, run, free_at in states:
                if state not in STATES or (state != "in_flight" and not is_number(free_at)):
                    raise sql.damaged_address(address, f"has the state {state!s:.20}")
                if run != self.run and self.is_running(run):
                    elsewhere.add(address)
                elif state in ("sending", "held") and free_at > now:
                    held[address] = free_at
        wanted = address_keys(emails)
        is_held = pc.is_in(wanted, value_set=pa.array(held, pa.string()))
        is_elsewhere = pc.is_in(wanted, value_set=pa.array(elsewhere, pa.string()))
        wanted_held = wanted.filter(is_held)
        return Unclaimed(
            held=wanted_held,
            free_at=min(map(held.__getitem__, wanted_held.to_pylist()), default=None),
            elsewhere=wanted.filter(is_elsewhere),
        )

    def lost_batches(self, key: str) -> list[Submitting]:
        """Lost submissions all of whose addresses may be sent again, oldest first.

        A service that knows Idempotency-Keys counts each of them once, if it is sent again as it
        was.
        """
        now = self.clock()
        parameters = {"key": self.key_id(key), "since": now - MAX_HOLD, "now": now, "run": self.run}
        with self.transaction("DEFERRED"):
            rows = self.connection.execute(sql.SELECT_LOST, parameters).fetchall()
        batches = []
        for token, rows_of_batch in groupby(rows, lambda row: row[0]):
            _, emails, used_before, sizes, are_free = zip(*rows_of_batch, strict=True)
            if len(emails) == sizes[0] and all(are_free):
                batches.append(Submitting(token, emails, used_before[0]))
        return batches

    def seconds_to_resolve(self, key: str) -> float | None:
        """Seconds until a quota reading shows whether submissions of ended runs were counted."""
        with self.transaction("DEFERRED"):
            parameters = {"key": self.key_id(key)}
            unresolved = self.connection.execute(sql.SELECT_UNRESOLVED, parameters).fetchall()
        if not unresolved:
            return None
        last_sent_at: float = max(sent_at for _, sent_at, _ in unresolved)
        return max(0.0, last_sent_at + GRACE - self.clock())

    def claim(self, key: str, batch: Submitting) -> tuple[str, ...]:
        """Announce a submission, and return its addresses, which may be paid for from now on.

        If some may not be sent, nothing is written, and only the others are returned. An address
        may not be sent if another run sends it, if it is in flight or held, or if another run has
        settled it since the journal was opened.
        """
        run = self.begin()
        now = self.clock()
        claimed = []
        with self.transaction():
            row: dict[str, Any] = {
                "key": self.add_key(key),
                "run": run,
                "now": now,
                "seen": self.seen,
                "token": batch.token,
                "size": len(batch.emails),
                "used_before": batch.used_before,
            }
            self.connection.execute("SAVEPOINT claim")
            for place, email in enumerate(batch.emails):
                row |= {"address": address_key(email), "email": email, "place": place}
                if self.scalar(sql.CLAIM, row):
                    claimed.append(email)
            if len(claimed) < len(batch.emails):
                self.connection.execute("ROLLBACK TO claim")
        return tuple(claimed)

    def record(self, key: str, event: Event) -> None:
        """Write an event: it is on the disk when this returns, and not there if this raises."""
        if isinstance(event, Submitted | Settled):
            self.begin()
        with self.transaction():
            key_id = self.add_key(key)
            match event:
                case Submitted():
                    self.record_submitted(key_id, event)
                case Settled():
                    self.record_settled(key_id, event)
                case Deferred():
                    self.record_deferred(key_id, event)
                case QuotaSeen():
                    self.resolve_lost_submissions(key_id, event.quota.used)
                case Paced(known=KnownPace() as known):
                    row = (event.service, known.limit, known.window, known.at)
                    self.connection.execute(sql.REPLACE_PACE, row)

    def record_submitted(self, key: int, event: Submitted) -> None:
        """Paid for: the jobs are polled, by this run while it lasts and then by later ones."""
        rows = []
        for job in event.jobs:
            sent = (job.email, job.submitted_at, job.job_id, job.validation_type)
            rows.append((key, address_key(job.email), self.run, *sent))
        self.connection.executemany(sql.SUBMITTED, rows)

    def record_settled(self, key: int, event: Settled) -> None:
        """Final rows; addresses that are asked again stay with this run."""
        rows = event.rows
        packed = pack(rows)
        ids = self.save_outcomes(packed)
        emails = rows["email"].combine_chunks()
        addresses = address_keys(emails).to_pylist()
        now = self.clock()
        change = self.scalar(sql.NEXT_CHANGE)
        answers = zip(
            addresses,
            (ids[code] for code in packed.codes.tolist()),
            rows["normalized"].to_pylist(),
            rows["checked_at"].cast(pa.int64()).to_pylist(),
            strict=True,
        )
        settled = ((key, *answer, now, change, self.run) for answer in answers)
        self.connection.executemany(sql.SETTLE, settled)
        if event.is_asked_again:
            pairs = zip(emails.to_pylist(), addresses, strict=True)
            waiting = ((self.run, email, key, address) for email, address in pairs)
            self.connection.executemany(sql.WAIT, waiting)

    def save_outcomes(self, packed: PackedRows) -> list[int]:
        """Insert new outcomes; returns the number of each."""
        digests = [digest_of(body) for body in packed.bodies]
        outcomes = zip(digests, packed.labels, packed.bodies, strict=True)
        self.connection.executemany(sql.INSERT_OUTCOME, outcomes)
        return [self.scalar(sql.SELECT_OUTCOME_ID, (digest,)) for digest in digests]

    def record_deferred(self, key: int, event: Deferred) -> None:
        """Not settled now: free for other runs, except addresses that may have been paid for."""
        addresses = [(key, address_key(email)) for email in event.emails]
        self.connection.executemany(sql.LEAVE_JOB, addresses)
        if event.why == "uncertain":
            self.connection.executemany(sql.HOLD_ADDRESS, addresses)
        elif event.token:
            self.connection.execute(sql.FREE_BATCH, (key, event.token))
            if event.why == "rejected":
                self.connection.execute(sql.FORGET_BATCH, (key, event.token))

    def resolve_lost_submissions(self, key: int, used: int) -> None:
        """Decide by the quota's `used` whether submissions of ended runs were counted."""
        unresolved = self.connection.execute(sql.SELECT_UNRESOLVED, {"key": key}).fetchall()
        now = self.clock()
        for token, sent_at, used_before in unresolved:
            shown = classify_lost_submission(
                sent_at=sent_at, used_before=used_before, used=used, now=now
            )
            if shown is LostSubmission.NOT_COUNTED:
                self.connection.execute(sql.FREE_BATCH, (key, token))
            elif shown is LostSubmission.MAYBE_COUNTED:
                self.connection.execute(sql.HOLD_BATCH, (key, token))

    def known_pace(self, service: str) -> KnownPace | None:
        """What is known about how fast a service may be asked."""
        with self.transaction("DEFERRED"):
            row = self.connection.execute(sql.SELECT_PACE, (service,)).fetchone()
            if row is None:
                return None
            per_second, open_at_once, at = row
            has_limit = per_second is None or is_number(per_second)
            if not (has_limit and is_number(open_at_once) and is_number(at)):
                name = service.replace("'", "''")
                why = "holds a value of another kind"
                raise sql.DamagedRowError("paces", f"service = '{name}'", why)
        return KnownPace(*row)

    def summary(self) -> list[JournalSummary]:
        """What the file contains, by validation type and service."""
        with self.transaction("DEFERRED"):
            return list(summarize(self.connection))

    def runs(self, limit: int) -> list[RecordedRun]:
        """The last runs that settled addresses, newest first."""
        with self.transaction("DEFERRED"):
            rows = self.connection.execute(sql.SELECT_RUNS, (limit,)).fetchall()
        return [RecordedRun(*row) for row in rows]

    def answers_of(self, run: RecordedRun) -> pa.Table:
        """What a run found out, whatever its age, as rows with the source ``journal``."""
        with self.transaction("DEFERRED"):
            rows = self.connection.execute(
                sql.SELECT_ADDRESSES_OF_RUN, (self.key_id(run.key), run.number)
            )
            addresses = pa.array([address for (address,) in rows], pa.string())
        return self.settled(run.key, addresses, newer_than=0.0, answered_since=0.0)

    def export(self, path: Path | str) -> None:
        """Write every settled row to a Parquet file, with the columns `key` and `settled_at`."""
        with self.transaction("DEFERRED"):
            export_settled(self.connection, user_path(path))

    @contextmanager
    def transaction(self, kind: str = "IMMEDIATE") -> Iterator[None]:
        """Commit on success, roll back on an error; others cannot write until it ends."""
        with self.lock, sql.journal_errors(self.path):
            self.running.clear()
            self.connection.execute(f"BEGIN {kind}")
            try:
                yield
            except BaseException:
                self.connection.execute("ROLLBACK")
                raise
            self.connection.execute("COMMIT")

    def begin(self) -> int:
        """The number of this run; it gets one, and its lock, before its first change.

        A transaction of its own, since a number that is rolled back would be given to another run,
        too.
        """
        with self.lock:
            if self.run_lock is not None:
                return self.run
            journal = self.path.resolve()
            with self.transaction():
                delete_unlocked(journal)
                number = self.scalar(sql.NEXT_RUN)
                lock = RunLock(lock_path(journal, number))
                while not lock.is_held:  # a run of another journal that was here has it
                    number = self.scalar(sql.NEXT_RUN)
                    lock = RunLock(lock_path(journal, number))
            self.run = number
            self.run_lock = lock
            return self.run

    def is_running(self, run: int | None) -> bool:
        """Whether a run has not ended, this one included."""
        if run is None:
            return False
        if run not in self.running:
            self.running[run] = run == self.run or is_locked(lock_path(self.path.resolve(), run))
        return self.running[run]

    def add_key(self, key: str) -> int:
        """The number of a key, which is added if it is new."""
        self.connection.execute(sql.INSERT_KEY, (key,))
        return self.key_id(key)

    def key_id(self, key: str) -> int:
        """The number of a key; 0, which no row has, if the key is new."""
        return self.scalar(sql.SELECT_KEY_ID, (key,))

    def scalar(self, query: str, values: Sequence[Any] | dict[str, Any] = ()) -> int:
        """A single number; 0 if the query has no row."""
        row = self.connection.execute(query, values).fetchone()
        if not row:
            return 0
        return int(row[0])
