"""How the service speaks each revision of the contract: one row of a table per revision."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...contract.envelope import JobStatus, dump_job
from ...contract.payload import dump_payload, parse_payload
from ...contract.revisions import EARLIER_STATUS, Revision, dump_earlier_job, dump_earlier_payload
from ...model.verification import Verification
from ...model.words import ValidationType, Verdict
from ..jobs.lookup import StoredJob
from .replies import iso_moment

__all__ = ["DIALECTS", "MALFORMED", "QUEUED", "Dialect"]

QUEUED = "Queued for verification"
MALFORMED = "Invalid email format"
EARLIER_MESSAGE = {
    JobStatus.QUEUED: QUEUED,
    JobStatus.PROCESSING: "Verification in progress",
    "valid": "The address can receive mail",
    "invalid": "The address cannot receive mail",
    "error": "Nothing could be established about the address",
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the revisions do differently.

    Attributes
    ----------
    default_type : str or None
        Type of a single check that names none; None: it must name one.
    payload : callable
        A verification as JSON-ready `data`.
    record : callable
        A stored job as JSON-ready `data.result`.
    queues_malformed : bool
        Whether a malformed address of a bulk submission becomes a job (that ends in `error`) like
        any other, and is paid for like any other.
    """

    default_type: str | None
    payload: Callable[[Verification], dict[str, Any]]
    record: Callable[[StoredJob], dict[str, Any]]
    queues_malformed: bool


def current_record(stored: StoredJob) -> dict[str, Any]:
    payload: Mapping[str, Any] | None = json.loads(stored.verification) if stored.verification else None
    return dump_job(stored.email, stored.status, payload)


def earlier_record(stored: StoredJob) -> dict[str, Any]:
    """The verdict is the status there, so its message goes by the verdict too."""
    verification = parse_payload(json.loads(stored.verification)) if stored.verification else None
    status = EARLIER_STATUS[Verdict(verification.result)] if verification else stored.status
    return dump_earlier_job(
        stored.email,
        stored.status,
        verification,
        message=stored.message or EARLIER_MESSAGE[status],
        created_at=iso_moment(stored.created_at),
        updated_at=iso_moment(stored.updated_at),
    )


DIALECTS = {
    Revision.CURRENT: Dialect(None, dump_payload, current_record, queues_malformed=False),
    Revision.EARLIER: Dialect(ValidationType.SMTP, dump_earlier_payload, earlier_record, queues_malformed=True),
}
