"""The earlier revision of the contract, both ways. It is recognised by the shape of its payloads."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeGuard

from ..model.verification import Fault, Verification
from ..model.words import ValidationType, Verdict
from .read import take, take_optional

__all__ = [
    "EARLIER_STATUS",
    "Revision",
    "dump_earlier_payload",
    "is_earlier_payload",
    "parse_earlier_payload",
]


class Revision(StrEnum):
    """The two revisions of the contract."""

    CURRENT = "current"
    EARLIER = "earlier"


# The earlier revision knows yes and no only. A risky address can receive mail, hence yes; what
# could not be established is no verdict there, hence its poll status `error` and never `invalid`.
EARLIER_VALID = {Verdict.VALID: True, Verdict.RISKY: True, Verdict.INVALID: False, Verdict.UNKNOWN: False}
EARLIER_STATUS = {
    Verdict.VALID: "valid",
    Verdict.RISKY: "valid",
    Verdict.INVALID: "invalid",
    Verdict.UNKNOWN: "error",
}
EARLIER_REASONS = ("REGEX", "DNS", "BLACKLIST", "SMTP")


def is_earlier_payload(payload: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether a payload has the earlier shape: `valid` as true or false, and no `result`."""
    return isinstance(payload, Mapping) and "result" not in payload and isinstance(payload.get("valid"), bool)


def parse_earlier_payload(payload: Mapping[str, Any], path: str = "") -> Verification:
    """Read an earlier payload; it has no reasons and no flags, so none are made up."""
    known = {"email", "validation_type", "valid", "checks", "reason", "errors"}
    return Verification(
        email=take(payload, "email", str, path),
        validation_type=take_optional(payload, "validation_type", str, path) or ValidationType.SMTP,
        result=Verdict.VALID if take(payload, "valid", bool, path) else Verdict.INVALID,
        checks={str(k): v for k, v in (payload.get("checks") or {}).items() if isinstance(v, bool)}
        if isinstance(payload.get("checks"), Mapping)
        else {},
        reason=take_optional(payload, "reason", str, path),
        errors=tuple(earlier_fault(e) for e in payload.get("errors") or ()) or None,
        extra={key: value for key, value in payload.items() if key not in known},
    )


def earlier_fault(entry: object) -> Fault:
    """The earlier `errors` has no promised entry shape: keep what is there."""
    if isinstance(entry, Mapping):
        return Fault(str(entry.get("code") or ""), str(entry.get("message") or ""))
    return Fault("", str(entry))


def dump_earlier_payload(v: Verification) -> dict[str, Any]:
    """Give the earlier payload of `v`."""
    return {
        "email": v.email,
        "validation_type": v.validation_type,
        "valid": EARLIER_VALID[Verdict(v.result)],
        "checks": dict(v.checks),
        "reason": earlier_reason(v),
        "errors": [{"code": e.code, "message": e.message} for e in v.errors or ()],
    }


def earlier_reason(v: Verification) -> str | None:
    """Null when valid, else one of the four codes; what has no code of its own came of the session."""
    if EARLIER_VALID[Verdict(v.result)]:
        return None
    return v.reason if v.reason in EARLIER_REASONS else "SMTP"
