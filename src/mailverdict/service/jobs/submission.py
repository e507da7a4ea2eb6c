"""New jobs: their first state and their identifiers.

`ServiceState.debit` writes them with the quota that they cost.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from ...contract.envelope import JobStatus
from ...model.words import Reason, ValidationType
from ..engine import saturated_verification
from ..settings import ServiceSettings
from .store import NewJob
from .worker import dump_verification

MALFORMED = "Invalid email format"
JOB_ID_OCTETS = 16  # random, so that nobody finds the job of another client by guessing
ID_LENGTH = 2 * JOB_ID_OCTETS  # characters


def new_job(
    settings: ServiceSettings,
    job_id: str,
    email: str,
    validation_type: str,
    *,
    is_rate_limited: bool = False,
    is_saturated: bool = False,
) -> NewJob:
    """The job of a well-formed address in its first state."""
    if is_rate_limited:  # never tried again
        refused = saturated_verification(email.strip(), validation_type, Reason.RATE_LIMITED)
        return NewJob(
            job_id, email, validation_type, JobStatus.DONE, verification=dump_verification(refused)
        )
    if is_saturated:
        wait = settings.saturation_backoff[0]
        return NewJob(job_id, email, validation_type, JobStatus.PROCESSING, attempt=1, due_in=wait)
    return NewJob(job_id, email, validation_type)


def check_job(email: str, owner: str) -> NewJob:
    """The job of a single check by `smtp`, which a worker answers before other jobs."""
    [job_id] = new_job_ids(1)
    return NewJob(job_id, email, ValidationType.SMTP, JobStatus.PROCESSING, owner=owner, priority=1)


def malformed_job(job_id: str, email: str, validation_type: str) -> NewJob:
    """The job of a malformed address, which only the earlier revision has."""
    return NewJob(job_id, email, validation_type, JobStatus.ERROR, message=MALFORMED)


def new_job_ids(count: int) -> list[str]:
    """Random identifiers, out of one call for random bytes."""
    digits = secrets.token_hex(JOB_ID_OCTETS * count)
    return [digits[start : start + ID_LENGTH] for start in range(0, len(digits), ID_LENGTH)]


def keyed_job_ids(secret: str, client: str, key: str, count: int) -> list[str]:
    """The identifiers of a submission with an Idempotency-Key: the same each time it is repeated.

    Others cannot compute them without the store's secret: if there are no client keys, an
    identifier is all that is needed to read the job.
    """
    job_ids = []
    for number in range(count):
        digest = hmac.digest(secret.encode(), name_of_line(client, key, number), "sha256")
        job_ids.append(digest.hex()[:ID_LENGTH])
    return job_ids


def former_job_ids(client: str, key: str, count: int) -> list[str]:
    """The identifiers as versions without a secret made them.

    Their jobs are looked for first, so that a submission that is repeated after an upgrade is not
    paid for twice.
    """
    job_ids = []
    for number in range(count):
        digest = hashlib.sha256(name_of_line(client, key, number))
        job_ids.append(digest.hexdigest()[:ID_LENGTH])
    return job_ids


def name_of_line(client: str, key: str, number: int) -> bytes:
    return f"{client}\n{key}\n{number}".encode()


def is_job_id(text: str) -> bool:
    """Whether a text has the form of our identifiers.

    The database is not queried for anything else.
    """
    return len(text) == ID_LENGTH and text.isalnum() and text.isascii()
