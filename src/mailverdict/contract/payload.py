"""The verification payload: `Verification` to JSON and back, key for key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ContractError
from ..model.verification import Verification
from ..model.words import Verdict
from .read import LONGEST_WORD, parse_checks, parse_errors, shorten, take, take_optional
from .revisions import is_earlier_payload, parse_earlier_payload

__all__ = ["KEYS", "dump_payload", "parse_payload"]

Presence = Callable[[Verification, Any], bool]


def always(_: Verification, __: Any) -> bool:
    return True


def when_determined(_: Verification, value: Any) -> bool:
    return value is not None


def when_smtp(v: Verification, _: Any) -> bool:
    return v.asked_mailbox


def when_non_empty(_: Verification, value: Any) -> bool:
    return bool(value)


# Every key of the contract in its order, and when it is there.
KEYS: dict[str, Presence] = {
    "email": always,
    "validation_type": always,
    "result": always,
    "details": always,
    "reasons": always,
    "checks": always,
    "role": when_determined,
    "spamtrap": when_determined,
    "disposable": when_determined,
    "free": when_determined,
    "catch_all": when_smtp,  # null means inconclusive, absent means not asked
    "protected": when_smtp,
    "reason": always,
    "errors": always,
    "metadata": when_non_empty,
}


def dump_payload(v: Verification) -> dict[str, Any]:
    """Give the payload of `v`; keys that a service added beyond the contract go last, as they came."""
    values = {key: getattr(v, key) for key in KEYS}
    values["reasons"] = list(v.reasons)
    values["checks"] = dict(v.checks)
    values["errors"] = None if v.errors is None else [{"code": e.code, "message": e.message} for e in v.errors]
    values["metadata"] = dict(v.metadata)
    return {key: value for key, value in values.items() if KEYS[key](v, value)} | dict(v.extra)


def parse_payload(payload: object, path: str = "") -> Verification:
    """Read a payload of either revision.

    Raises
    ------
    ContractError
        If it is neither; a `result` that is none of the four verdicts is no usable verdict.
    """
    if is_earlier_payload(payload):
        return parse_earlier_payload(payload, path)
    email = take(payload, "email", str, path)
    assert isinstance(payload, Mapping)
    return Verification(
        email=email,
        validation_type=shorten(take(payload, "validation_type", str, path), LONGEST_WORD),
        result=parse_result(payload, path),
        reasons=parse_reasons(payload, path),
        checks=parse_checks(payload.get("checks")),
        role=take_optional(payload, "role", bool, path),
        spamtrap=take_optional(payload, "spamtrap", bool, path),
        disposable=take_optional(payload, "disposable", bool, path),
        free=take_optional(payload, "free", bool, path),
        catch_all=take_optional(payload, "catch_all", bool, path),
        protected=take_optional(payload, "protected", bool, path),
        reason=clean_code(take_optional(payload, "reason", str, path)),
        errors=parse_errors(payload.get("errors")),
        metadata=dict(take_optional(payload, "metadata", dict, path) or {}),
        extra={key: value for key, value in payload.items() if key not in KEYS},
    )


def parse_result(payload: object, path: str) -> str:
    """One of the four verdicts, or a `ContractError`: there is no guessing a fifth."""
    result = take(payload, "result", str, path)
    if result not in tuple(Verdict):
        where = f"{path}.result" if path else "result"
        raise ContractError(f"{where} is {shorten(result)!r}, none of {', '.join(Verdict)}", path=where)
    return result


def parse_reasons(payload: Mapping[str, Any], path: str) -> tuple[str, ...]:
    """The list as it came; a lone `details` stands for a list of one."""
    details = take_optional(payload, "details", str, path)
    reasons = take_optional(payload, "reasons", list, path) or [details]
    return tuple(clean_reason(reason) for reason in reasons if reason)


def clean_code(code: str | None) -> str | None:
    """A foreign error code, bounded; null stays null."""
    return None if code is None else shorten(code, LONGEST_WORD)


def clean_reason(reason: object) -> str:
    """A foreign reason as one bounded word of a ``;``-joined list."""
    return shorten(str(reason), LONGEST_WORD).replace(";", ",")
