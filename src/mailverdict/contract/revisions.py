"""`Revision`, and how verdicts and jobs are written in the earlier revision of the contract.

    now        {"result": "risky", "reasons": ["role"], "role": true, ...}
    earlier    {"valid": true, "reason": null, "checks": {...}, "errors": []}

It has yes and no only: risky is yes, and a job whose result is unknown has the status `error`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from ..model.verification import Verification, dump_errors
from ..model.words import Verdict


class Revision(StrEnum):
    """The two revisions of the contract."""

    CURRENT = "current"
    EARLIER = "earlier"


# The earlier revision has only valid and invalid. A risky address can receive mail, hence valid; an
# unknown one gets the poll status `error`, never `invalid`.
EARLIER_VALID = {
    Verdict.VALID: True,
    Verdict.RISKY: True,
    Verdict.INVALID: False,
    Verdict.UNKNOWN: False,
}
EARLIER_STATUS = {
    Verdict.VALID: "valid",
    Verdict.RISKY: "valid",
    Verdict.INVALID: "invalid",
    Verdict.UNKNOWN: "error",
}
EARLIER_REASONS = ("REGEX", "DNS", "BLACKLIST", "SMTP")


def dump_earlier_payload(v: Verification) -> dict[str, Any]:
    """The earlier payload of `v`.

    ``"valid": false`` also means that nothing was established; then no check is shown as failed.
    """
    checks = dict(v.checks)
    if v.result == Verdict.UNKNOWN:
        checks = {name: True for name, passed in v.checks.items() if passed}
    return {
        "email": v.email,
        "validation_type": v.validation_type,
        "valid": EARLIER_VALID[Verdict(v.result)],
        "checks": checks,
        "reason": earlier_reason(v),
        "errors": dump_errors(v.errors or ()),
    }


def earlier_reason(v: Verification) -> str | None:
    """Null when valid, else one of the four codes; any other code belongs to the SMTP session."""
    if EARLIER_VALID[Verdict(v.result)]:
        return None
    if v.reason in EARLIER_REASONS:
        return v.reason
    return "SMTP"


def dump_earlier_job(
    email: str,
    status: str,
    verification: Verification | None,
    *,
    message: str,
    created_at: str,
    updated_at: str,
) -> dict[str, Any]:
    """The earlier job record: its `status` is the verdict, and before it the state."""
    details: dict[str, Any] = {}
    if verification is not None:
        status = EARLIER_STATUS[Verdict(verification.result)]
        payload = dump_earlier_payload(verification)
        details = {key: payload[key] for key in ("validation_type", "checks", "reason", "errors")}
    return {
        "email": email,
        "status": status,
        "message": message,
        "details": details,
        "created_at": created_at,
        "updated_at": updated_at,
    }
