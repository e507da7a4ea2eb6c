"""The SQL statements of workers; `store.py` executes them. Values are parameters, states are constants.

All transactions lock rows in one order, so that none waits for one that waits for it: the rows of `job` first, all of
them in the order of `seq`, by `LOCK_JOBS` or a part `locked`; then those of `assignment` and `second_pass` that belong
to the locked jobs, and last those of `tally` in the order of their key. A purge begins with `job`, too, as the
migrations do, and skips what others have locked in the tables that have no order.
"""

from __future__ import annotations

from sqlalchemy import text

from ...contract.envelope import JobStatus
from ..jobs.store import CLOCKS_DIFFER, StoredJob

JOB_COLUMNS = ", ".join(f"job.{name}" for name in StoredJob.__dataclass_fields__)
UNFINISHED = f"job.status IN ('{JobStatus.QUEUED}', '{JobStatus.PROCESSING}')"
IS_DUE = f"due IS NOT NULL AND (due <= :now OR updated_at > :now + {CLOCKS_DIFFER})"  # as in `due_jobs`
DATABASE_NOW = "extract(epoch FROM clock_timestamp())"

LOCK_JOBS = text("SELECT FROM job WHERE seq = ANY(CAST(:seqs AS bigint[])) ORDER BY seq FOR NO KEY UPDATE")
RELEASE_DUE = text(f"""
    WITH locked AS (
        SELECT seq FROM job WHERE {IS_DUE} AND status = '{JobStatus.PROCESSING}' AND validation_type = :type
        ORDER BY seq FOR NO KEY UPDATE
    )
    UPDATE job SET status = '{JobStatus.QUEUED}', due = NULL, updated_at = :now
    FROM locked WHERE job.seq = locked.seq
""")
QUEUED_CLIENTS = text(f"""
    SELECT queued.client, queued.oldest, queued.jobs, pace.tokens, pace.counted_at
    FROM (
        SELECT client, min(created_at) AS oldest, count(*) AS jobs FROM job
        WHERE status = '{JobStatus.QUEUED}' AND validation_type = :type GROUP BY client
    ) AS queued LEFT JOIN pace USING (client)
    ORDER BY pace.counted_at NULLS FIRST, queued.oldest
""")
COUNT_CLAIMED = text(f"""
    SELECT (SELECT count(*) FROM worker WHERE seen_at > {DATABASE_NOW} - :within
                AND string_to_array(types, ',') @> ARRAY[CAST(:type AS text)]),
           (SELECT count(*) FROM assignment WHERE validation_type = :type)
""")
NEXT_JOBS = text(f"""
    SELECT {JOB_COLUMNS}
    FROM unnest(CAST(:clients AS text[]), CAST(:counts AS integer[])) AS share (client, jobs)
    CROSS JOIN LATERAL (
        SELECT * FROM job
        WHERE status = '{JobStatus.QUEUED}' AND validation_type = :type AND job.client = share.client
        ORDER BY seq LIMIT share.jobs
    ) AS job
    ORDER BY job.seq
""")
CLAIM = text(f"""
    UPDATE job SET status = '{JobStatus.PROCESSING}', due = NULL, updated_at = :now
    WHERE seq = ANY(CAST(:seqs AS bigint[])) AND status = '{JobStatus.QUEUED}' RETURNING seq
""")
ASSIGN = text("""
    INSERT INTO assignment (seq, validation_type, batch)
    SELECT seq, :type, :batch FROM unnest(CAST(:seqs AS bigint[])) AS seq
    ON CONFLICT (seq) DO UPDATE SET batch = excluded.batch, owner = NULL
""")
SAVE_PACE = text("""
    INSERT INTO pace (client, tokens, counted_at) VALUES (:client, :tokens, :at)
    ON CONFLICT (client) DO UPDATE SET tokens = excluded.tokens, counted_at = excluded.counted_at
""")
PACES = text("""
    SELECT client, tokens FROM (
        SELECT client, tokens + greatest(:now - counted_at, 0) * :rate AS tokens FROM pace
    ) AS present WHERE tokens < :burst
""")
SET_OWNERS = text("""
    UPDATE assignment SET owner = found.owner
    FROM unnest(CAST(:seqs AS bigint[]), CAST(:owners AS text[])) AS found (seq, owner)
    WHERE assignment.seq = found.seq
""")
TAKE = text(f"""
    SELECT {JOB_COLUMNS}, row_number() OVER (PARTITION BY job.client ORDER BY job.seq) AS turn
    FROM assignment JOIN job USING (seq)
    WHERE assignment.owner = :owner AND job.status = '{JobStatus.PROCESSING}' AND job.due IS NULL
    ORDER BY turn, job.seq LIMIT :limit
""")
SETTLE = text(f"""
    WITH ended AS (
        SELECT * FROM unnest(
            CAST(:seq AS bigint[]), CAST(:status AS text[]), CAST(:payload AS text[]), CAST(:message AS text[])
        ) AS ended (seq, status, payload, message)
    ), freed AS (
        DELETE FROM assignment USING ended WHERE assignment.seq = ended.seq
    )
    UPDATE job
    SET due = NULL, status = ended.status, verification = ended.payload, message = ended.message, updated_at = :now
    FROM ended WHERE job.seq = ended.seq AND {UNFINISHED}
    RETURNING job.seq
""")
COUNT_ENDED = text("""
    INSERT INTO tally (shard, status, validation_type, result, count) VALUES (:shard, :status, :type, :result, :count)
    ON CONFLICT (shard, status, validation_type, result) DO UPDATE SET count = tally.count + excluded.count
""")
POSTPONE = text(f"""
    WITH freed AS (DELETE FROM assignment WHERE seq = ANY(CAST(:seqs AS bigint[])))
    UPDATE job SET attempt = coalesce(CAST(:attempt AS integer), attempt), due = :due, updated_at = :now
    WHERE seq = ANY(CAST(:seqs AS bigint[])) AND status = '{JobStatus.PROCESSING}'
""")


def give_back(which: str) -> str:
    """The statement that queues claimed jobs that have no owner yet; `which` are conditions on `assignment`."""
    return f"""
        WITH locked AS (
            SELECT job.seq, assignment.batch FROM assignment JOIN job USING (seq)
            WHERE assignment.owner IS NULL AND {which} ORDER BY job.seq FOR NO KEY UPDATE OF job
        ), freed AS (
            DELETE FROM assignment USING locked WHERE assignment.owner IS NULL
                AND assignment.seq = locked.seq AND assignment.batch = locked.batch RETURNING assignment.seq
        )
        UPDATE job SET status = '{JobStatus.QUEUED}', updated_at = :now
        FROM freed WHERE job.seq = freed.seq AND job.status = '{JobStatus.PROCESSING}' AND job.due IS NULL
    """


GIVE_BACK = text(give_back("assignment.batch = :batch"))
GIVE_BACK_ABANDONED = text(
    give_back("NOT EXISTS (SELECT FROM procrastinate_jobs WHERE id = assignment.batch AND status = 'doing')")
)
SECOND_PASS = text("""
    WITH first AS (
        INSERT INTO second_pass SELECT seq FROM unnest(CAST(:seqs AS bigint[])) AS seq ORDER BY seq
        ON CONFLICT DO NOTHING RETURNING seq
    )
    SELECT seq FROM first UNION SELECT seq FROM job WHERE seq = ANY(CAST(:seqs AS bigint[])) AND due = :due
""")
OWNERS_WITHOUT_TASK = text("""
    SELECT DISTINCT owner FROM assignment WHERE owner IS NOT NULL AND NOT EXISTS (
        SELECT FROM procrastinate_jobs WHERE lock = assignment.owner AND status IN ('todo', 'doing')
    )
""")
HAS_WAITING_TASKS = text("""
    SELECT EXISTS (
        SELECT FROM procrastinate_jobs AS waiting
        WHERE waiting.status = 'todo' AND waiting.queue_name = ANY(CAST(:queues AS text[]))
            AND (waiting.scheduled_at IS NULL OR waiting.scheduled_at <= now()) AND NOT EXISTS (
                SELECT FROM procrastinate_jobs WHERE lock = waiting.lock AND status = 'doing'
            )
    )
""")
QUEUED_TYPES = text(f"""
    SELECT DISTINCT validation_type FROM job
    WHERE status = '{JobStatus.QUEUED}' OR (status = '{JobStatus.PROCESSING}' AND {IS_DUE})
""")
HAS_QUEUED = text(f"SELECT EXISTS (SELECT FROM job WHERE status = '{JobStatus.QUEUED}' AND validation_type = :type)")
TASKS_OF = text("SELECT id FROM procrastinate_jobs WHERE status = 'doing' AND worker_id = :worker")
IS_ONLY_PURGE = text("SELECT pg_try_advisory_xact_lock(:key)")
PURGE_PACE = text("""
    DELETE FROM pace
    WHERE client IN (SELECT client FROM pace WHERE counted_at < :before FOR UPDATE SKIP LOCKED)
""")
PURGE_WORKERS = text(f"DELETE FROM worker WHERE seen_at < {DATABASE_NOW} - :within")
REGISTER = text(f"""
    INSERT INTO worker (name, version, types, egress, seen_at, answers_checks)
    VALUES (:name, :version, :types, :egress, {DATABASE_NOW}, true) RETURNING id
""")
HEARTBEAT = text(f"UPDATE worker SET seen_at = {DATABASE_NOW} WHERE id = :id")
DEPTH = text(f"""
    SELECT status, client, count(*) AS jobs, count(due) AS postponed, min(created_at) AS oldest
    FROM job WHERE {UNFINISHED} GROUP BY status, client
""")
WORKERS = text(f"""
    SELECT name, version, types, egress FROM worker WHERE seen_at > {DATABASE_NOW} - :within ORDER BY id
""")
ENDED = text("SELECT status, validation_type, result, sum(count) AS jobs FROM tally GROUP BY 1, 2, 3")

# Single checks.

ADD_CHECK = text(f"""
    INSERT INTO single_check (id, owner, email, expires_at) VALUES (:id, :owner, :email, {DATABASE_NOW} + :seconds)
""")
WAITING_CHECK = f"NOT is_answered AND expires_at > {DATABASE_NOW}"
TAKE_CHECKS = text(f"""
    SELECT id, email FROM single_check WHERE owner = :owner AND {WAITING_CHECK} ORDER BY expires_at LIMIT :limit
""")
ANSWER_CHECK = text("""
    UPDATE single_check SET is_answered = true, verification = :verification, failure = :failure
    WHERE id = :id AND NOT is_answered
""")
ANSWERED_CHECKS = text("""
    SELECT id, email, verification, failure FROM single_check WHERE id = ANY(CAST(:ids AS text[])) AND is_answered
""")
REMOVE_CHECKS = text("DELETE FROM single_check WHERE id = ANY(CAST(:ids AS text[]))")
WAITING_CHECKS = text(f"""
    SELECT owner FROM single_check WHERE {WAITING_CHECK} AND NOT EXISTS (
        SELECT FROM procrastinate_jobs
        WHERE lock = single_check.owner AND (status = 'doing' OR (status = 'todo' AND priority > 0))
    ) GROUP BY owner
""")
CHECKS = text(f"SELECT count(*) FROM single_check WHERE {WAITING_CHECK}")
PURGE_CHECKS = text(f"""
    DELETE FROM single_check
    WHERE id IN (SELECT id FROM single_check WHERE expires_at < {DATABASE_NOW} - 60 FOR UPDATE SKIP LOCKED)
""")
HAS_CHECK_WORKER = text(f"""
    SELECT EXISTS (
        SELECT FROM worker WHERE answers_checks AND seen_at > {DATABASE_NOW} - :within
            AND string_to_array(types, ',') @> ARRAY[CAST(:type AS text)]
    )
""")
# The tokens of a bucket at the present time. An UPDATE that waited for another one may be older than it. A bucket that
# is newer by more than a minute was counted before the database's clock was set back. It is full, since it would not
# refill until that time comes again.
IS_AHEAD = f"bucket.counted_at > {{now}} + {CLOCKS_DIFFER}"
TOKENS = f"""CASE WHEN {IS_AHEAD} THEN CAST(:burst AS double precision) ELSE least(
    CAST(:burst AS double precision),
    bucket.tokens + greatest({{now}} - bucket.counted_at, 0) * CAST(:rate AS double precision)
) END"""
REFILLED = TOKENS.format(now="excluded.counted_at")
ACQUIRE = text(f"""
    INSERT INTO check_pace AS bucket (client, tokens, counted_at)
    VALUES (:client, CAST(:burst AS double precision) - :cost, {DATABASE_NOW})
    ON CONFLICT (client) DO UPDATE SET
        tokens = {REFILLED} - :cost,
        counted_at = CASE WHEN {IS_AHEAD.format(now="excluded.counted_at")} THEN excluded.counted_at
            ELSE greatest(bucket.counted_at, excluded.counted_at) END
    WHERE {REFILLED} >= :cost
    RETURNING tokens
""")
CHECK_TOKENS = text(f"SELECT {TOKENS.format(now=DATABASE_NOW)} FROM check_pace AS bucket WHERE client = :client")
PURGE_CHECK_PACE = text(f"DELETE FROM check_pace WHERE counted_at < {DATABASE_NOW} - :seconds")
