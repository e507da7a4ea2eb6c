"""The quota record and the size of a batch."""

from typing import Any

import pytest

from mailverdict.backend import Quota, QuotaSeen
from mailverdict.contract.envelope import Failure, Success
from mailverdict.errors import ContractError, ServiceError
from mailverdict.remote.quota import QUOTA_REQUEST, ask_quota, batch_size, read_quota, was_counted

RECORD = {"daily_limit": 100, "used": 40, "remaining": 60}


def test_asking_tells_the_quota_and_gives_it_back() -> None:
    steps = ask_quota()
    assert next(steps) == QUOTA_REQUEST
    assert steps.send(Success(RECORD, {})) == QuotaSeen(Quota(100, 40, 60))
    with pytest.raises(StopIteration) as over:
        next(steps)
    assert over.value.value == Quota(100, 40, 60)


def test_asking_raises_what_the_service_said() -> None:
    steps = ask_quota()
    next(steps)
    with pytest.raises(ServiceError, match="down"):
        steps.send(Failure("INTERNAL_ERROR", "down", 500, {}))


def test_the_record_is_read_bare_and_in_an_envelope() -> None:
    assert read_quota(RECORD) == read_quota({"data": RECORD}) == Quota(100, 40, 60)


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"data": {}},
        {**RECORD, "used": None},
        {**RECORD, "used": "40"},
        {**RECORD, "used": True},
        {**RECORD, "remaining": -1},
        {**RECORD, "daily_limit": 10**30},
    ],
)
def test_what_is_no_record_is_refused(body: Any) -> None:
    with pytest.raises(ContractError):
        read_quota(body)


@pytest.mark.parametrize(
    ("left", "remaining", "largest", "size", "why"),
    [
        (250, 10_000, 100, 100, "the contract's limit"),
        (30, 10_000, 100, 30, "no more is left"),
        (250, 7, 100, 7, "a batch beyond the quota is refused as a whole"),
        (250, 0, 100, 0, "nothing is left to spend"),
        (250, 500, 25, 25, "this service takes less at once"),
        (250, -5, 100, 0, "an overdrawn quota is an empty one"),
    ],
)
def test_batch_size(left: int, remaining: int, largest: int, size: int, why: str) -> None:
    assert batch_size(left, remaining, largest) == size, why


@pytest.mark.parametrize(
    ("after", "counted", "why"),
    [
        (Quota(100, 40, 60), False, "nothing changed"),
        (Quota(100, 90, 10), True, "it rose by the batch"),
        (Quota(100, 41, 59), True, "it rose by something: it may have been others, and may not"),
        (Quota(100, 0, 100), True, "a new day began: nothing can be told"),
        (Quota(200, 40, 160), True, "another limit: not the same record"),
    ],
)
def test_whether_a_lost_submission_may_have_been_counted(after: Quota, counted: bool, why: str) -> None:
    assert was_counted(Quota(100, 40, 60), after) is counted, why
