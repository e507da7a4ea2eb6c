"""Rows of the one table out of what a service said. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ..backend import Job
from ..model.evidence import Evidence, SyntaxEvidence
from ..model.json_fields import shorten
from ..model.table import SCHEMA, SOURCE_REMOTE, dump_json, row_of
from ..model.verification import Fault, Verification, dump_errors
from ..model.words import Status, ValidationType
from ..verdicts import settle

__all__ = ["Trouble", "answer_row", "job_row", "rejected_row", "rows_table", "trouble_row"]

Row = dict[str, Any]
LONGEST_ADDRESS = 320  # characters: local part 64, "@", domain 255 (RFC 5321 section 4.5.3.1)
MALFORMED = "invalid email"  # "Invalid email format" is the contract's message for a malformed address


@dataclass(frozen=True, slots=True)
class Trouble:
    """A technical failure of one address: it has no verdict, and says nothing about the mailbox."""

    code: str
    message: str


def answer_row(verification: Verification, email: str) -> Row:
    """The service's verdict as it is, under the address that was asked.

    A verifier may give the address back in another form; that is kept as the normal form.
    """
    row = row_of(replace(verification, email=email), SOURCE_REMOTE)
    if verification.email != email and row["normalized"] is None:
        row["normalized"] = shorten(verification.email, LONGEST_ADDRESS)
    return row


def trouble_row(trouble: Trouble, email: str, validation_type: str) -> Row:
    """A row whose processing failed: status `error`, no verdict."""
    return {
        "email": email,
        "status": Status.ERROR,
        "validation_type": validation_type,
        "error": trouble.code,
        "errors": dump_json(dump_errors([Fault(trouble.code, trouble.message)])),
        "source": SOURCE_REMOTE,
    }


def rejected_row(email: str, validation_type: str, message: str) -> Row:
    """What the service refused to queue: malformed in its eyes, or refused for a reason of its own."""
    if MALFORMED not in message.lower():
        return trouble_row(Trouble("REJECTED", message or "the service refused the address"), email, validation_type)
    decision = settle(ValidationType(validation_type), Evidence(SyntaxEvidence(ok=False, message=message)))
    verification = Verification(
        email=email,
        validation_type=validation_type,
        result=decision.result,
        reasons=decision.reasons,
        checks=decision.checks,
        reason=decision.error,
        errors=decision.errors,
    )
    return row_of(verification, SOURCE_REMOTE)


def job_row(outcome: Verification | Trouble, job: Job) -> Row:
    """The row that ends a job."""
    if isinstance(outcome, Trouble):
        return trouble_row(outcome, job.email, job.validation_type)
    return answer_row(outcome, job.email)


def rows_table(rows: Sequence[Row]) -> pa.Table:
    """Rows as a table."""
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)
