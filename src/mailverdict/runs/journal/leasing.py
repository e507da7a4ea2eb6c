"""Leasing addresses that are about to be submitted, so that no two processes pay for one."""

from __future__ import annotations

import pyarrow as pa

from .recall import ask
from .recording import Page

__all__ = ["lease"]

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
