"""One process per store: two would verify, and answer for, the same jobs.

Both locks are let go by the system when the process ends, in whatever way.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from sqlalchemy.engine import URL

from ...errors import SettingsError

__all__ = ["own_file", "own_session"]

TAKEN = "another service already works on this store; give each its own, or stop the other one"
ADVISORY_KEY = 0x6D61696C7664  # any fixed number: it names our lock within the database


def own_file(url: URL) -> Callable[[], None]:
    """Take an SQLite store: lock a file beside it, by SQLite's own means, which work on every system.

    Parameters
    ----------
    url : sqlalchemy.engine.URL
        The store's.

    Returns
    -------
    callable
        Gives the store back.

    Raises
    ------
    SettingsError
        If another process has it.
    """
    connection = sqlite3.connect(f"{url.database}-owner", timeout=0, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as exc:
        connection.close()
        raise SettingsError(TAKEN if "locked" in str(exc) else f"store: {exc}") from exc
    return connection.close


def own_session(connection: Any, _: object) -> None:
    """Take a PostgreSQL store for the session that writes to it.

    The lock belongs to the very connection that writes, so that one that was lost is never written past.

    Parameters
    ----------
    connection : psycopg.Connection
        As the pool has just opened it.

    Raises
    ------
    SettingsError
        If another process has the store; the connection is closed.
    """
    with connection.cursor() as cursor:
        [taken] = cursor.execute("SELECT pg_try_advisory_lock(%s)", (ADVISORY_KEY,)).fetchone()
    connection.commit()
    if not taken:
        connection.close()
        raise SettingsError(TAKEN)
