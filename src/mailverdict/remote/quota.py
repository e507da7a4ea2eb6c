"""How much may be spent: the quota record, and the size of the next batch. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ..backend import Quota, QuotaSeen
from ..contract.envelope import BULK_LIMIT, parse_quota
from .steps import Request, Steps, success_of

__all__ = ["QUOTA_REQUEST", "ask_quota", "batch_size", "read_quota", "was_counted"]

QUOTA_REQUEST = Request("GET", "/api/quota", is_enveloped=False)


def ask_quota() -> Steps[Quota]:
    """Ask how much is left; tells it as an event and gives it back."""
    answer = yield QUOTA_REQUEST
    quota = read_quota(success_of(answer).data)
    yield QuotaSeen(quota)
    return quota


def read_quota(body: object) -> Quota:
    """The record bare, as the contract has it, or in an envelope, as some servers wrap everything."""
    inner = body.get("data") if isinstance(body, Mapping) and "daily_limit" not in body else None
    return parse_quota(inner if isinstance(inner, Mapping) else body)


def batch_size(left: int, remaining: int, largest: int = BULK_LIMIT) -> int:
    """Addresses of the next batch; a batch beyond `remaining` would be refused as a whole.

    >>> batch_size(250, remaining=30)
    30
    """
    return max(0, min(left, remaining, largest))


def was_counted(before: Quota, after: Quota) -> bool:
    """Whether a submission whose answer was lost may have been paid for.

    Only an unchanged `used` under an unchanged limit says no. A smaller one means that a new day
    began in between, which says nothing.
    """
    return (before.used, before.daily_limit) != (after.used, after.daily_limit)
