"""Answers as exceptions."""

import json
from dataclasses import replace
from typing import Any

import pytest

from mailverdict.backend import Job
from mailverdict.contract.envelope import ErrorEnvelope, SuccessEnvelope
from mailverdict.errors import QuotaExceeded, RateLimited, ServiceError, TransportError
from mailverdict.model.table import SCHEMA, table_to_rows
from mailverdict.model.verification import Verification
from mailverdict.remote.api import (
    JobFailure,
    NoAnswer,
    error_of,
    is_quota_refusal,
    job_row,
    rejected_row,
    rows_table,
    success_of,
)
from tests.doubles.tables import each_row

DETAILS = {"limit": 100, "remaining": 3, "requested": 50}


@each_row(
    ("code", "status", "details", "kind"),
    [
        ("QUOTA_EXCEEDED", 429, DETAILS, QuotaExceeded),
        ("QUOTA_EXCEEDED", 429, {}, QuotaExceeded),
        ("NEVER_HEARD_OF", 429, DETAILS, QuotaExceeded),
        ("NEVER_HEARD_OF", 429, {}, RateLimited),
        ("", 429, {}, RateLimited),
        ("INTERNAL_ERROR", 500, {}, ServiceError),
        ("E1003", 400, {}, ServiceError),
        ("NEVER_HEARD_OF", 418, {}, ServiceError),
    ],
)
def test_error_by_status_and_details_never_by_a_known_code_alone(
    code: str, status: int, details: dict[str, Any], kind: type[Exception]
) -> None:
    assert type(error_of(ErrorEnvelope(code, "m", status, details))) is kind


def test_errors_carry_what_was_said() -> None:
    quota = error_of(ErrorEnvelope("QUOTA_EXCEEDED", "m", 429, DETAILS))
    assert isinstance(quota, QuotaExceeded)
    assert (quota.limit, quota.remaining, quota.requested) == (100, 3, 50)
    limited = error_of(ErrorEnvelope("", "m", 429, {}, retry_after=7.0))
    assert isinstance(limited, RateLimited)
    assert limited.retry_after == 7.0
    service = error_of(ErrorEnvelope("ODD", "m", 418, {}))
    assert isinstance(service, ServiceError)
    assert (service.code, service.status, str(service)) == ("ODD", 418, "m")


def test_a_lost_answer_is_its_own_error() -> None:
    error = TransportError("gone")
    assert error_of(NoAnswer(error, was_sent=True)) is error


def test_details_of_another_type_are_not_numbers() -> None:
    refusal = error_of(
        ErrorEnvelope(
            "QUOTA_EXCEEDED", "m", 429, {"limit": "100", "remaining": True, "requested": None}
        )
    )
    assert isinstance(refusal, QuotaExceeded)
    assert (refusal.limit, refusal.remaining, refusal.requested) == (None, None, None)


def test_success_is_handed_on_and_failure_raised() -> None:
    answer = SuccessEnvelope({}, {})
    assert success_of(answer) is answer
    with pytest.raises(ServiceError):
        success_of(ErrorEnvelope("X", "m", 500, {}))


def test_a_rate_limit_is_not_a_quota() -> None:
    assert not is_quota_refusal(ErrorEnvelope("RATE_LIMITED", "m", 429, {}))


JOB = Job("j", "ada@example.org", "smtp", 0.0)


def test_a_verdict_is_taken_as_it_is_with_reasons_that_no_table_knows() -> None:
    odd = Verification(
        "ada@example.org", "smtp", "risky", reasons=("on_holiday", "role"), extra={"score": 7}
    )
    table = rows_table([job_row(odd, JOB)])
    assert table.schema == SCHEMA
    assert table_to_rows(table) == [odd]


def test_the_row_answers_the_address_that_was_asked() -> None:
    row = job_row(
        Verification("Ada@EXAMPLE.org", "smtp", "valid"), replace(JOB, email="Ada@example.org")
    )
    assert (row["email"], row["normalized"], row["source"]) == (
        "Ada@example.org",
        "Ada@EXAMPLE.org",
        "remote",
    )


@each_row("other", ["bob@example.org", "ada@example.com", "", "ada"])
def test_an_answer_about_another_address_is_not_a_verdict(other: str) -> None:
    row = rows_table(
        [job_row(Verification(other, "smtp", "invalid", reasons=("mailbox_not_found",)), JOB)]
    ).to_pylist()[0]
    assert (row["email"], row["status"], row["result"], row["error"]) == (
        JOB.email,
        "error",
        None,
        "OTHER_ADDRESS",
    )


@each_row(
    ("asked", "answered"),
    [
        ("Ada.L+x@GoogleMail.com", "adal@gmail.com"),
        ("ada@BÜCHER.example", "ada@xn--bcher-kva.example"),
        ("ｊosé@example.org", "José@example.org."),
    ],
)
def test_an_address_may_come_back_in_another_form(asked: str, answered: str) -> None:
    row = job_row(Verification(answered, "smtp", "valid"), replace(JOB, email=asked))
    assert (row["email"], row["result"]) == (asked, "valid")


@each_row(
    ("asked", "used", "result", "status"),
    [
        ("smtp", "regex", "valid", "error"),
        ("smtp", "mx", "valid", "error"),
        ("smtp", "mx", "risky", "error"),
        ("smtp", "mx_blacklist", "valid", "error"),
        # On a blacklist, which a mailbox check does not ask.
        (
            "smtp",
            "mx_blacklist",
            "invalid",
            "error",
        ),
        ("smtp", "deep", "valid", "error"),
        ("mx_blacklist", "mx", "valid", "error"),
        ("mx_blacklist", "smtp", "valid", "error"),
        ("mx_blacklist", "smtp", "invalid", "error"),
        ("smtp", "regex", "invalid", "done"),
        ("smtp", "mx", "unknown", "done"),
        ("mx_blacklist", "mx", "invalid", "done"),
        ("mx", "regex", "invalid", "done"),
        ("mx", "smtp", "valid", "done"),
        ("mx", "smtp", "invalid", "done"),
        ("regex", "mx", "invalid", "done"),
    ],
)
def test_a_verdict_by_another_type_counts_where_it_answers_what_was_asked(
    asked: str, used: str, result: str, status: str
) -> None:
    row = job_row(Verification(JOB.email, used, result), replace(JOB, validation_type=asked))
    assert row["status"] == status
    assert row["validation_type"] == (used if status == "done" else asked)
    if status == "error":
        assert row["error"] == "OTHER_TYPE"
        assert (
            f"by '{used}', not by '{asked}' as asked; by '{used}' the address is {result}"
            in row["errors"]
        )


def test_a_verdict_that_contradicts_its_reasons_is_an_error_that_quotes_it() -> None:
    found = Verification(JOB.email, "smtp", "invalid", ("greylisted", "role"))
    row = rows_table([job_row(found, JOB)]).to_pylist()[0]
    assert (row["status"], row["result"], row["error"]) == ("error", None, "CONTRADICTION")
    assert "'invalid', but by the contract greylisted, role means 'unknown'" in row["errors"]


def test_a_technical_failure_has_no_verdict() -> None:
    row = rows_table([job_row(JobFailure("ERROR", "disk on fire"), JOB)]).to_pylist()[0]
    assert (row["status"], row["result"], row["reasons"], row["error"]) == (
        "error",
        None,
        None,
        "ERROR",
    )
    assert json.loads(row["errors"]) == [{"code": "ERROR", "message": "disk on fire"}]


def test_a_malformed_address_is_refused_as_one() -> None:
    row = rejected_row("no at", "smtp", "Invalid email format")
    assert (row["status"], row["result"], row["reasons"], row["error"]) == (
        "done",
        "invalid",
        "syntax_error",
        "REGEX",
    )
    assert rejected_row("no at", "mx", "Invalid email format")["reasons"] == ""


def test_a_rejection_for_another_reason_has_no_verdict() -> None:
    row = rejected_row("ada@example.org", "smtp", "Domain not served")
    assert (row["status"], row.get("result"), row["error"]) == ("error", None, "REJECTED")
