"""Commits to PostgreSQL whose answer is lost, because the connection breaks after COMMIT was sent.

Such a transaction may have been carried out, and its client must not be told the opposite. A transaction that adds jobs
therefore holds an advisory lock with the name of the first one. Who gets this lock later knows that the transaction has
ended, and whether the job is there shows how.
"""

from __future__ import annotations

import time

from sqlalchemy import Connection, select, text
from sqlalchemy.exc import DBAPIError

from .schema import job

WAIT = 10.0  # seconds in which the database may come back and the transaction may end
PAUSE = 0.2  # seconds between two attempts
LOCK = text("SELECT pg_try_advisory_xact_lock(hashtextextended(:job_id, 0))")


def commit(connection: Connection, job_id: str | None) -> None:
    """Commit a transaction, which has added a job or else None; an error means that the job was not added.

    Unless a job tells, or if the database does not come back in time, it is not known what an error means.
    """
    if job_id is not None:
        connection.execute(LOCK, {"job_id": job_id})
    try:
        connection.commit()
    except DBAPIError as exc:
        if job_id is None or not exc.connection_invalidated or not is_added(connection, job_id):
            raise


def is_added(connection: Connection, job_id: str) -> bool:
    """Whether the transaction that added a job was carried out; False if that could not be found out in time."""
    until = time.monotonic() + WAIT
    while time.monotonic() < until:
        try:
            connection.rollback()  # the next statement connects again
            if connection.scalar(LOCK, {"job_id": job_id}):
                return (
                    connection.scalar(select(job.c.seq).where(job.c.job_id == job_id)) is not None
                )
        except DBAPIError:
            pass  # the database is away
        time.sleep(PAUSE)
    return False
