"""One process per store: two would verify, and answer for, the same jobs."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from sqlalchemy import create_engine, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from ..errors import SettingsError

__all__ = ["own"]

TAKEN = "another service already works on this store; give each its own, or stop the other one"
ADVISORY_KEY = 0x6D61696C7664  # any fixed number: it names our lock within the database
Release = Callable[[], None]


def own(url: URL) -> Release:
    """Take the store for this process.

    Both locks are let go by the system when the process ends, in whatever way.

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
    return own_server(url) if url.get_backend_name() == "postgresql" else own_file(url)


def own_file(url: URL) -> Release:
    """Lock a file beside the database, by SQLite's own means: they work on every system."""
    connection = sqlite3.connect(f"{url.database}-owner", timeout=0, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as exc:
        connection.close()
        raise SettingsError(TAKEN if "locked" in str(exc) else f"store: {exc}") from exc
    return connection.close


def own_server(url: URL) -> Release:
    """Hold an advisory lock of PostgreSQL on a connection of its own."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    try:
        connection = engine.connect()
        taken = connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": ADVISORY_KEY})
    except SQLAlchemyError as exc:
        engine.dispose()
        shown = url.render_as_string(hide_password=True)
        raise SettingsError(f"store={shown!r} cannot be opened: {exc.__cause__ or exc}") from exc
    release = closing(connection, engine)
    if not taken:
        release()
        raise SettingsError(TAKEN)
    return release


def closing(connection: Any, engine: Any) -> Release:
    def release() -> None:
        connection.close()
        engine.dispose()

    return release
