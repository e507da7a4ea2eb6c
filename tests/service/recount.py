"""Whether the backlog of a store has the numbers that its jobs have."""

from __future__ import annotations

from sqlalchemy import create_engine, text

# One statement, and so one moment, also while others write.
DIFFERENCES = text("""
    SELECT * FROM (
        SELECT client, sum(waiting) AS waiting, sum(verifying) AS verifying, sum(postponed) AS postponed FROM (
            SELECT client, -waiting AS waiting, -verifying AS verifying, -postponed AS postponed FROM backlog
            UNION ALL
            SELECT client, CASE WHEN status = 'queued' THEN 1 ELSE 0 END,
                CASE WHEN status = 'processing' AND due IS NULL THEN 1 ELSE 0 END,
                CASE WHEN status = 'processing' AND due IS NOT NULL THEN 1 ELSE 0 END
            FROM job
        ) AS counted GROUP BY client
    ) AS summed WHERE waiting <> 0 OR verifying <> 0 OR postponed <> 0
""")


def assert_counted(url: str) -> None:
    """Recount the jobs of every client."""
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            assert connection.execute(DIFFERENCES).all() == []
    finally:
        engine.dispose()
