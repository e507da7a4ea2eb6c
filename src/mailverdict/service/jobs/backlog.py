"""The backlog: how many unfinished jobs each client has, by state. Whoever changes jobs keeps it right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, bindparam, select, text, update

from ...contract.envelope import JobStatus
from .schema import INSERTS, backlog

STATES = ("waiting", "verifying", "postponed")
OPEN = backlog.c.waiting + backlog.c.verifying + backlog.c.postponed
LOCK_BACKLOG = (
    select(backlog.c.client)
    .where(backlog.c.client.in_(bindparam("clients", expanding=True)))
    .order_by(backlog.c.client)
    .with_for_update()
)
CHANGE_BACKLOG = (
    update(backlog)
    .where(backlog.c.client == bindparam("of"))
    .values({name: backlog.c[name] + bindparam(f"more_{name}") for name in STATES})
)


def lock_backlog(connection: Connection, clients: Collection[str]) -> None:
    """Lock the backlog of clients, before their jobs change."""
    connection.execute(LOCK_BACKLOG, {"clients": list(clients)})


def add_backlog(dialect: str) -> Any:
    """The statement that counts new jobs of clients; a new one has a full bucket. It returns their rows."""
    statement = INSERTS[dialect](backlog)
    more = {name: backlog.c[name] + statement.excluded[name] for name in STATES}
    return statement.on_conflict_do_update(index_elements=["client"], set_=more).returning(
        *backlog.c
    )


def fill_backlog(connection: Connection) -> None:
    """Count the unfinished jobs of each client; every bucket is full."""
    connection.execute(
        text("""
            INSERT INTO backlog (client, waiting, verifying, postponed, tokens, counted_at)
            SELECT client, sum(CASE WHEN status = 'queued' THEN 1 ELSE 0 END),
                sum(CASE WHEN status = 'processing' AND due IS NULL THEN 1 ELSE 0 END),
                sum(CASE WHEN status = 'processing' AND due IS NOT NULL THEN 1 ELSE 0 END), 0, 0
            FROM job WHERE status IN ('queued', 'processing') GROUP BY client
        """)
    )


class Changes:
    """How many jobs of each client come into a state and leave one."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()  # by client and column of `backlog`

    def add(self, client: str, status: str, due: float | None, count: int = 1) -> None:
        """Count jobs that have a state; with -1 one that had it."""
        if status == JobStatus.QUEUED:
            self.counts[client, "waiting"] += count
        elif status == JobStatus.PROCESSING:
            self.counts[client, "verifying" if due is None else "postponed"] += count

    def rows(self, prefix: str = "") -> list[dict[str, Any]]:
        """The changes of each client, in the order in which clients are locked."""
        clients = sorted({client for client, _ in self.counts})
        return [
            {"of": client, **{prefix + name: self.counts[client, name] for name in STATES}}
            for client in clients
        ]

    def write(self, connection: Connection) -> None:
        """Change the backlog, whose rows are locked."""
        if rows := self.rows("more_"):
            connection.execute(CHANGE_BACKLOG, rows)
