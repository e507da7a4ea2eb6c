"""What each event writes into the journal."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...backend import Deferred, Event, QuotaSeen, Settled, Submitted, Submitting
from ...errors import JournalError
from ...model.address import identities, identity
from ..later import Judgement, hold_seconds, judge_attempt
from .outcomes import Packed, pack

__all__ = ["Page", "record_event"]


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
