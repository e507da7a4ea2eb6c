"""`Queue`: what workers do with the jobs of a store, on SQLite and PostgreSQL alike.

Each method is one transaction. `claim` waits for nobody: it skips what others have locked. What a
worker writes about its rights begins with `hold`. All clients get equal shares of what is claimed
and of the mail servers that are asked, as far as their pace allows.

    job 7, ada@web.de by smtp, of 192.0.2.1   status      worker  owner
    as it was submitted                       queued
    claim                                     processing  1
    route, on PostgreSQL                      processing          web.de
    lease_owners, take                        processing          web.de, which worker 2 may ask
    settle                                    done
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Connection,
    Integer,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.exc import SQLAlchemyError

from ...contract.envelope import JobStatus
from ...errors import SettingsError
from ...model.settings import parse_duration
from ..settings import DAY, WhenSaturated
from .schema import (
    INSERTS,
    LOCK_BACKLOG,
    OPEN,
    Changes,
    about,
    backlog,
    job,
    lock_backlog,
    owner,
    quota,
    worker,
)
from .store import (
    CLOCK_STEP,
    COUNTS,
    DATABASE_NOW,
    IS_QUEUED,
    QUEUED,
    SELECT_JOB,
    STORED,
    Store,
    StoredJob,
    WorkerRow,
    rows_of_marks,
)

LEASE = 20.0  # seconds for which a worker has its jobs and owners, unless it renews them
BATCH_LIMIT = 1000  # jobs that are claimed, settled or taken at once
KEPT = 10  # one in so many places is kept for clients that have nothing under way
CLIENTS_AT_ONCE = 250  # whose jobs are started together; each costs a query
# Owners that a worker begins with at once, at 6 ms each. Between two lots it claims the jobs of
# clients that have come meanwhile: with a hundred owners at once, these waited for seconds on a
# busy machine.
OWNERS_AT_ONCE = 10
ROUNDING = 1e-6  # tokens; after exactly the time that a token needs, the sum may be short of it


# --- whose jobs and whose mail servers come next --------------------------------------------------


class WaitingOwner(NamedTuple):
    """Mail servers that may be asked, and a client whose jobs wait for them."""

    name: str
    client: str
    is_check: bool  # the client waits for a single check


def shares(counts: Mapping[str, int], room: int) -> dict[str, int]:
    """How many jobs of which client to start: equal shares of `room`, as far as each has jobs.

    >>> shares({"192.0.2.1": 500, "192.0.2.2": 10}, 100)
    {'192.0.2.2': 10, '192.0.2.1': 90}
    >>> shares({"192.0.2.1": 500, "192.0.2.2": 500, "192.0.2.3": 500}, 2)
    {'192.0.2.1': 1, '192.0.2.2': 1}
    """
    chosen = list(counts.items())[: max(room, 0)]
    given = {}
    left = len(chosen)
    for client, count in sorted(chosen, key=itemgetter(1)):
        given[client] = min(count, room // left)
        room -= given[client]
        left -= 1
    return given


def choose_owners(
    waiting: Iterable[WaitingOwner], asked: Counter[str], free: int, places: int
) -> list[str]:
    """The owners that get one of the `free` of all `places`.

    First come those with single checks, then the clients in turn.

    `asked` counts the owners that are asked for each client. The last places are kept for clients
    that have none.

    >>> slow = [WaitingOwner(f"slow{n}", "many", is_check=False) for n in range(5)]
    >>> other = WaitingOwner("other", "few", is_check=False)
    >>> choose_owners([*slow, other], Counter(), 3, 10)
    ['slow0', 'other']
    >>> choose_owners([*slow, other], Counter(many=9), 1, 10)
    ['other']
    """
    clients: dict[str, list[str]] = {}  # by owner
    owners: dict[str, list[str]] = {}  # by client, the last one first
    chosen: dict[str, None] = {}
    for waiter in waiting:
        clients.setdefault(waiter.name, []).append(waiter.client)
        owners.setdefault(waiter.client, []).insert(0, waiter.name)
        if waiter.is_check and len(chosen) < free:
            chosen[waiter.name] = None
    kept = places // KEPT
    if free > kept:
        free -= kept
    else:
        owners = {client: names for client, names in owners.items() if not asked[client]}
    turns = asked.copy()
    for name in chosen:
        turns.update(clients[name])
    while owners and len(chosen) < free:
        client = min(owners, key=turns.__getitem__)
        name = owners[client].pop()
        if not owners[client]:
            del owners[client]
        if name not in chosen:
            chosen[name] = None
            turns.update(clients[name])
    return list(chosen)


class LeaseLost(Exception):
    """Others have freed what this worker had, which did not renew its lease in time."""


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """What becomes of a job that was in work.

    It is `done` with its payload as JSON text, `error` with a message, or `processing`: to be tried
    again.
    """

    seq: int
    client: str
    status: str
    verification: str | None = None
    message: str | None = None
    attempt: int = 0
    due_in: float | None = None  # seconds
    second_pass: bool = False


def client_of(outcomes: Sequence[JobOutcome]) -> str:
    """The client of outcomes that are written together."""
    return outcomes[0].client


class Claimed(NamedTuple):
    """Jobs of a worker; those whose retry was due and for which the queue still has no room."""

    jobs: list[StoredJob]
    refused: list[StoredJob]
    others: bool  # jobs were in work before, by whomever: owners may wait


# --- statements -----------------------------------------------------------------------------------

IS_UNFINISHED = job.c.status.in_((JobStatus.QUEUED, JobStatus.PROCESSING))
IS_CHECK = literal_column("job.priority > 0", Boolean)
HAS_ENDED = job.c.status.in_(
    [literal_column(f"'{status}'") for status in (JobStatus.DONE, JobStatus.ERROR)]
)
STATE = (job.c.seq, job.c.client, job.c.status, job.c.due)  # what `Changes` counts
HOLD = (
    select(worker.c.id)
    .where(worker.c.id == bindparam("number"))
    .with_for_update(read=True, key_share=True)
)
LOCK_JOBS = (
    select(*STATE)
    .where(job.c.seq.in_(bindparam("seqs", expanding=True)), IS_UNFINISHED)
    .order_by(job.c.seq)
    .with_for_update()
)
# One statement for all jobs takes a third of the time of one for each. Both databases name columns
# of VALUES like this.
SETTLE = """
    UPDATE job SET status = outcome.column2, verification = outcome.column3,
        message = outcome.column4, attempt = outcome.column5,
        due = CAST(outcome.column6 AS double precision), second_pass = outcome.column7,
        updated_at = outcome.column8, worker = NULL, owner = NULL
    FROM (VALUES {}) AS outcome WHERE job.seq = outcome.column1
"""
DUE = (
    SELECT_JOB.where(job.c.due.is_not(None))
    .where((job.c.due <= bindparam("now")) | (job.c.due > bindparam("longest")))
    .order_by(job.c.due)
    .limit(BATCH_LIMIT)
)
RELEASE = update(job).where(job.c.seq == bindparam("of")).values(
    status=JobStatus.QUEUED, due=None, updated_at=bindparam("now")
)  # fmt: skip
NEXT = job.alias("next_job")
CLAIM = (  # whoever has locked the backlog of the client
    update(job)
    .where(
        job.c.seq.in_(
            select(NEXT.c.seq)
            .where(NEXT.c.status == QUEUED, NEXT.c.client == bindparam("of"))
            .where(NEXT.c.validation_type.in_(bindparam("types", expanding=True)))
            .order_by(NEXT.c.seq)
            .limit(bindparam("count", type_=Integer))
        )
    )
    .values(status=JobStatus.PROCESSING, worker=bindparam("by"), updated_at=bindparam("at"))
    .returning(*STORED)
)
TAKEN = (
    update(backlog)
    .where(backlog.c.client == bindparam("of"))
    .values(
        waiting=backlog.c.waiting - bindparam("count"),
        verifying=backlog.c.verifying + bindparam("count"),
        tokens=bindparam("left"),
        counted_at=bindparam("at"),
    )
)
ROUTE = (
    update(job)
    .where(job.c.seq == bindparam("of"), job.c.worker == bindparam("by"))
    .values(owner=bindparam("to"), worker=None)
)
WAITING_OWNERS = (  # jobs that have ended, or whose retry is pending, have no owner
    select(job.c.owner, job.c.client, func.max(job.c.priority))
    .where(job.c.owner.is_not(None), ~exists().where(owner.c.name == job.c.owner))
    .group_by(job.c.owner, job.c.client)
    .order_by(func.min(job.c.seq))
)
TURN = func.row_number().over(partition_by=job.c.client, order_by=job.c.seq)
TAKE = (  # single checks, then one job of each client in turn
    SELECT_JOB.where(job.c.owner == bindparam("of"))
    .order_by(job.c.priority.desc(), TURN, job.c.seq)
    .limit(bindparam("count", type_=Integer))
)


class Queue:
    """The jobs of a store, as workers see them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.settings = settings = store.settings
        second_pass = parse_duration(settings.local.retry_greylisted, name="retry_greylisted")
        self.longest_wait = max(*settings.saturation_backoff, second_pass)  # seconds until a retry
        self.add_owner = add_owner(store.writer.dialect.name)
        running = select(func.count()).select_from(worker).where(store.is_running())
        self.count = select(*COUNTS, running.scalar_subquery())

    # --- claims and results -----------------------------------------------------------------------

    def claim(
        self, number: int, types: Sequence[str], held: Collection[int] | None = None
    ) -> Claimed:
        """Claim the next jobs: a fair share for each client, within its pace and the room.

        It waits until a quarter of the concurrency is free instead of claiming jobs one by one. A
        tenth is kept for clients that have no jobs under way, so that none waits for slow mail
        servers of another. `held` are the jobs that the worker knows of, if it may have others: the
        answer to an earlier claim was lost.
        """
        with self.store.writer.begin() as connection:
            self.hold(connection, number)
            now = self.store.now(connection)
            waiting, verifying, postponed, workers = map(int, connection.execute(self.count).one())
            refused = self.release_due(connection, now) if postponed else []
            jobs = [] if held is None else self.jobs_of(connection, number, held)
            most = self.settings.concurrency * max(workers, 1)
            room = most - verifying
            kept = most // KEPT
            is_roomy = room - kept >= max(most // 4, 1)
            if is_roomy:
                room -= kept
            room = min(room, BATCH_LIMIT)
            if room > 0 and waiting + postponed:
                jobs += self.start(
                    connection, number, types, room, now, newcomers_only=not is_roomy
                )
        return Claimed(jobs, refused, bool(verifying))

    def start(
        self,
        connection: Connection,
        number: int,
        types: Sequence[str],
        room: int,
        now: float,
        *,
        newcomers_only: bool,
    ) -> list[StoredJob]:
        """Claim a share of the waiting jobs of each client."""
        ready = self.ready(types, now, newcomers_only=newcomers_only)
        tokens: dict[str, float] = {}
        counts: dict[str, int] = {}
        for row in connection.execute(ready).all():
            tokens[row.client] = self.store.tokens_of(row, now)
            counts[row.client] = int(min(row.waiting, tokens[row.client] + ROUNDING))
        jobs: list[StoredJob] = []
        taken = []
        for client, count in shares(counts, room).items():
            values = {"of": client, "count": count, "types": types, "by": number, "at": now}
            claimed = connection.execute(CLAIM, values).all()
            jobs += map(StoredJob._make, claimed)
            left = float(self.settings.rate_burst)
            if self.store.rate:
                left = tokens[client] - len(claimed)
            taken.append({"of": client, "count": len(claimed), "left": left, "at": now})
        if taken:
            connection.execute(TAKEN, taken)
        return sorted(jobs, key=lambda claimed: claimed.seq)

    def ready(self, types: Sequence[str], now: float, *, newcomers_only: bool) -> Any:
        """The query for clients whose jobs may start, the one that waited longest first."""
        of_client = exists().where(
            IS_QUEUED, job.c.client == backlog.c.client, job.c.validation_type.in_(types)
        )
        ready = select(backlog).where(backlog.c.waiting > 0, of_client)
        if newcomers_only:
            ready = ready.where(backlog.c.verifying == 0)
        if self.store.rate:
            tokens = backlog.c.tokens + (now - backlog.c.counted_at) * self.store.rate + ROUNDING
            is_enough = (tokens >= self.store.start_tokens) | (tokens >= backlog.c.waiting)
            is_full = backlog.c.counted_at > now + CLOCK_STEP
            ready = ready.where(is_enough | is_full)
        ready = ready.order_by(backlog.c.counted_at).limit(CLIENTS_AT_ONCE)
        return ready.with_for_update(of=backlog, skip_locked=True)

    def jobs_of(
        self, connection: Connection, number: int, held: Collection[int]
    ) -> list[StoredJob]:
        """The jobs of a worker that it does not know of."""
        rows = connection.execute(SELECT_JOB.where(job.c.worker == number))
        return [StoredJob._make(row) for row in rows if row.seq not in held]

    def release_due(self, connection: Connection, now: float) -> list[StoredJob]:
        """Queue jobs whose retry is due.

        Return those that were postponed because the queue had no room, and has none.

        A retry that is further away than the longest wait was written before the clock was put
        back, and is due. Their number is checked only with ``settle``; otherwise they are
        counted among the unfinished jobs already.
        """
        longest = now + self.longest_wait + CLOCK_STEP
        rows = connection.execute(DUE, {"now": now, "longest": longest})
        due = list(map(StoredJob._make, rows))
        if not due:
            return []
        clients = {postponed.client for postponed in due}
        locked = LOCK_BACKLOG.with_for_update(skip_locked=True)
        free = set(connection.scalars(locked, {"clients": clients}))
        due = [postponed for postponed in due if postponed.client in free]
        room = len(due)
        if self.settings.when_saturated is not WhenSaturated.WAIT:
            in_queue = select(func.sum(backlog.c.waiting + backlog.c.verifying))
            room = max(self.settings.queue_limit - int(connection.scalar(in_queue) or 0), 0)
        seqs = [postponed.seq for postponed in due[:room]]
        changes = Changes()
        released = []
        for row in connection.execute(LOCK_JOBS, {"seqs": seqs}).all():
            if row.due is None or now < row.due <= longest:
                continue  # another worker has released it meanwhile
            released.append({"of": row.seq, "now": now})
            changes.add(row.client, row.status, row.due, -1)
            changes.add(row.client, JobStatus.QUEUED, None)
        if released:
            connection.execute(RELEASE, released)
        changes.write(connection)
        return due[room:]

    def settle(self, groups: Sequence[Sequence[JobOutcome]]) -> list[set[int]]:
        """Write what became of jobs.

        One that has ended keeps its first result. Return those written of each group.
        """
        written: set[int] = set()
        outcomes = list(chain.from_iterable(groups))
        for start in range(0, len(outcomes), BATCH_LIMIT):
            written |= self.settle_piece(outcomes[start : start + BATCH_LIMIT])
        written_of_each = []
        for group in groups:
            written_of_each.append({outcome.seq for outcome in group} & written)
        return written_of_each

    def settle_piece(self, outcomes: Sequence[JobOutcome]) -> set[int]:
        by_seq = {outcome.seq: outcome for outcome in reversed(outcomes)}
        changes = Changes()
        rows = []
        with self.store.writer.begin() as connection:
            now = self.store.now(connection)
            lock_backlog(connection, {outcome.client for outcome in outcomes})
            for row in connection.execute(LOCK_JOBS, {"seqs": list(by_seq)}):
                outcome = by_seq[row.seq]
                changes.add(row.client, row.status, row.due, -1)
                changes.add(row.client, outcome.status, outcome.due_in)
                rows.append(settled_row(outcome, now))
            if rows:
                statement = SETTLE.format(rows_of_marks(self.store.mark, rows))
                connection.exec_driver_sql(statement, tuple(chain.from_iterable(rows)))
            changes.write(connection)
        return {seq for seq, *_ in rows}

    # --- workers and owners -----------------------------------------------------------------------

    def register(self, row: WorkerRow, former: int | None = None) -> int:
        """Add a worker, which gives up what it had under a former number; return its number."""
        with self.store.writer.begin() as connection:
            self.free(connection, worker.c.id == former)
            lease = DATABASE_NOW + LEASE if self.store.is_shared else 0.0
            add = insert(worker).values(**row._asdict(), lease=lease).returning(worker.c.id)
            return int(connection.scalar(add) or 0)

    def recover(self) -> None:
        """Queue the jobs that a worker had when its process ended.

        `SettingsError` if that fails. For SQLite.
        """
        try:
            with self.store.writer.begin() as connection:
                self.free(connection, worker.c.id.is_not(None))
                # Whether it can be written at all.
                connection.execute(update(about).values(value=about.c.value))
        except SQLAlchemyError as exc:
            path, cause = self.store.writer.url.database, exc.__cause__ or exc
            raise SettingsError(
                f"store: {path!r} cannot be written: {cause}; look whether its disk is full, "
                "then start again"
            ) from exc

    def renew(self, number: int) -> bool:
        """Renew the lease of a worker, and free what those have whose lease has lapsed.

        False if others have done so with this one's.
        """
        with self.store.writer.begin() as connection:
            mine = update(worker).where(worker.c.id == number).values(lease=DATABASE_NOW + LEASE)
            if not connection.execute(mine).rowcount:
                return False
        with self.store.writer.begin() as connection:  # if it fails, the lease is renewed
            # Of a worker that ended before the clock was put back.
            too_long = worker.c.lease > DATABASE_NOW + LEASE + CLOCK_STEP
            connection.execute(update(worker).where(too_long).values(lease=DATABASE_NOW + LEASE))
            self.free(connection, worker.c.lease < DATABASE_NOW, skip_locked=True)
        return True

    def leave(self, number: int) -> None:
        """Remove a worker that stops; others continue with its jobs."""
        with self.store.writer.begin() as connection:
            self.free(connection, worker.c.id == number)

    def free(
        self, connection: Connection, condition: ColumnElement[bool], *, skip_locked: bool = False
    ) -> None:
        """Remove workers that have ended: queue their jobs, and let others ask their owners."""
        ended = (
            select(worker.c.id)
            .where(condition)
            .order_by(worker.c.id)
            .with_for_update(skip_locked=skip_locked)
        )
        numbers = connection.scalars(ended).all()
        if not numbers:
            return
        of_them = job.c.worker.in_(numbers)
        clients = connection.scalars(select(job.c.client).where(of_them).distinct())
        lock_backlog(connection, set(clients))
        changes = Changes()
        states = select(*STATE).where(of_them).order_by(job.c.seq).with_for_update()
        for row in connection.execute(states):
            changes.add(row.client, row.status, row.due, -1)
            changes.add(row.client, JobStatus.QUEUED, None)
        now = self.store.now(connection)
        again = {"status": JobStatus.QUEUED, "worker": None, "updated_at": now}
        connection.execute(update(job).where(of_them).values(again))
        changes.write(connection)
        connection.execute(delete(owner).where(owner.c.worker.in_(numbers)))
        connection.execute(delete(worker).where(worker.c.id.in_(numbers)))

    def hold(self, connection: Connection, number: int) -> None:
        """Keep a worker from being declared dead during the transaction; `LeaseLost` if it was."""
        if connection.scalar(HOLD, {"number": number}) is None:
            raise LeaseLost

    def route(self, number: int, owners: Mapping[int, str]) -> None:
        """Write who owns the mail servers of a worker's jobs, by `seq`.

        The worker that has the owner verifies them.
        """
        routes = []
        for seq, name in sorted(owners.items()):
            routes.append({"of": seq, "by": number, "to": name})
        with self.store.writer.begin() as connection:
            self.hold(connection, number)
            connection.execute(ROUTE, routes)

    def lease_owners(
        self,
        number: int,
        egress: str | None,
        asked: Mapping[str, Iterable[str]],
        places: int,
        given_up: Iterable[str] = (),
    ) -> tuple[set[str], bool]:
        """Give a worker the right to ask owners whose jobs wait, and the clients in turn a place.

        `asked` are the clients of those that it asks already; those that it has `given_up` come
        last. Return the names of the others that it may ask, and whether more wait for a place.
        """
        routes = dict(route.split("=") for route in self.settings.egress_routes)
        with self.store.writer.begin() as connection:
            self.hold(connection, number)
            names_of_mine = select(owner.c.name).where(owner.c.worker == number)
            mine = set(connection.scalars(names_of_mine))
            waiting = []
            for name, client, priority in connection.execute(WAITING_OWNERS):
                if routes.get(name, egress) == egress:
                    waiting.append(WaitingOwner(name, client, priority > 0))
            last = {name: place for place, name in enumerate(given_up)}
            waiting.sort(key=lambda waiter: last.get(waiter.name, -1))
            turns = Counter(chain.from_iterable(asked.values()))
            chosen = choose_owners(waiting, turns, places - len(mine), places)
            names = sorted(chosen[:OWNERS_AT_ONCE])
            if names:
                values = [{"name": name, "worker": number} for name in names]
                mine |= set(connection.scalars(self.add_owner, values))
        more_wait = len({waiter.name for waiter in waiting}) > len(names)
        return mine - asked.keys(), more_wait

    def release_owner(self, number: int, name: str) -> None:
        """Give up the right to ask an owner."""
        with self.store.writer.begin() as connection:
            connection.execute(delete(owner).where(owner.c.name == name, owner.c.worker == number))

    def take(self, name: str, count: int) -> list[StoredJob]:
        """The next jobs of an owner: single checks, then each client's first, and so on."""
        with self.store.reader.begin() as connection:
            rows = connection.execute(TAKE, {"of": name, "count": count})
            return list(map(StoredJob._make, rows))

    # --- what is over -----------------------------------------------------------------------------

    def purge(self) -> int:
        """Remove jobs whose retention is over, quota of past days and clients without jobs.

        Return the jobs' number.

        Single checks that have ended are removed after a minute: whoever waited for one has read
        it.
        """
        with self.store.writer.begin() as connection:
            now = self.store.now(connection)
            ended_before = now - self.settings.seconds("result_retention")
            deleted = self.remove(connection, HAS_ENDED & (job.c.updated_at < ended_before))
            self.remove(connection, IS_CHECK & HAS_ENDED & (job.c.updated_at < now - 60))
            connection.execute(delete(quota).where(quota.c.day < self.settings.day_of(now - DAY)))
            full_after = 0.0  # seconds until a bucket is full
            if self.store.rate:
                full_after = self.settings.rate_burst / self.store.rate
            was_put_back = backlog.c.counted_at > now + CLOCK_STEP
            is_full = (backlog.c.counted_at < now - full_after) | was_put_back
            idle = select(backlog.c.client).where(OPEN == 0, is_full)
            idle = idle.with_for_update(skip_locked=True)
            connection.execute(delete(backlog).where(backlog.c.client.in_(idle)))
            return deleted

    def remove(self, connection: Connection, condition: ColumnElement[bool]) -> int:
        """Remove the jobs with a condition; return their number."""
        seqs = select(job.c.seq).where(condition).order_by(job.c.seq)
        seqs = seqs.with_for_update(skip_locked=True)
        return connection.execute(delete(job).where(job.c.seq.in_(seqs))).rowcount


def settled_row(outcome: JobOutcome, now: float) -> tuple[Any, ...]:
    due = None if outcome.due_in is None else now + outcome.due_in
    return (
        outcome.seq,
        outcome.status,
        outcome.verification,
        outcome.message,
        outcome.attempt,
        due,
        outcome.second_pass,
        now,
    )


def add_owner(dialect: str) -> Any:
    """The statement that gives a worker owners that nobody has; it returns them."""
    return INSERTS[dialect](owner).on_conflict_do_nothing().returning(owner.c.name)
