"""Envelopes, entries and job records, both revisions."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.backend import Quota
from mailverdict.contract.envelope import (
    ERROR_STATUS,
    SHORT_STATUS,
    ErrorEnvelope,
    JobStatus,
    SuccessEnvelope,
    dump_failure,
    dump_quota,
    dump_short_failure,
    dump_success,
    parse_entry,
    parse_envelope,
    parse_job,
    parse_quota,
)
from mailverdict.errors import ContractError
from mailverdict.model.verification import Verification
from tests.doubles.tables import each_row

STAMP = {"request_id": "r1", "timestamp": "2026-01-02T03:04:05+00:00"}
PAYLOAD = Verification("a@b.org", "mx", "valid", checks={"syntax": True}).to_dict()


def test_a_success_both_ways() -> None:
    dumped = dump_success({"n": 1}, **STAMP)
    assert dumped == {"success": True, "data": {"n": 1}, "meta": {**STAMP, "version": "v1"}}
    assert parse_envelope(dumped, 200) == SuccessEnvelope({"n": 1}, dumped["meta"])


@each_row("code", ERROR_STATUS)
def test_a_failure_both_ways(code: str) -> None:
    dumped = dump_failure(code, "why", **STAMP, details={"limit": 100})
    assert dumped["success"] is False
    assert parse_envelope(dumped, ERROR_STATUS[code]) == ErrorEnvelope(
        code, "why", ERROR_STATUS[code], {"limit": 100}
    )


def test_details_are_there_only_when_there_is_something_to_add() -> None:
    assert "details" not in dump_failure("X", "m", **STAMP)["error"]
    assert "details" not in dump_failure("X", "m", **STAMP, details={})["error"]


@each_row("code", SHORT_STATUS)
def test_a_short_failure_both_ways(code: str) -> None:
    dumped = dump_short_failure(code, "why")
    assert set(dumped) == {"error"}
    assert parse_envelope(dumped, 400) == ErrorEnvelope(code, "why", 400, {})


@each_row(
    ("error", "failure"),
    [
        ({}, ErrorEnvelope("", "", 418, {})),
        ({"code": "NEVER_HEARD_OF", "message": "m"}, ErrorEnvelope("NEVER_HEARD_OF", "m", 418, {})),
        ({"code": 5, "message": None, "details": []}, ErrorEnvelope("5", "", 418, {})),
    ],
)
def test_codes_that_no_table_knows_are_taken_as_they_are(
    error: Any, failure: ErrorEnvelope
) -> None:
    assert parse_envelope({"error": error}, 418) == failure


@each_row(
    "body",
    [
        None,
        [],
        "x",
        7,
        {},
        {"success": True},
        {"success": False},
        {"success": "true", "data": 1},
        {"error": "text"},
        {"data": 1},
    ],
)
def test_what_is_neither_is_an_error(body: Any) -> None:
    with pytest.raises(ContractError):
        parse_envelope(body, 200)


def test_foreign_words_are_bounded() -> None:
    failure = parse_envelope({"error": {"code": "x" * 999, "message": "\n" * 9999}}, 500)
    assert isinstance(failure, ErrorEnvelope)
    assert len(failure.code) < 100
    assert len(failure.message) < 600
    assert failure.message.isprintable()


@each_row(
    ("value", "number"), [(5, 5), (0, 0), (True, None), ("5", None), (None, None), (5.0, None)]
)
def test_whole_numbers_in_details(value: Any, number: int | None) -> None:
    assert ErrorEnvelope("X", "m", 429, {"remaining": value}).whole_number("remaining") == number


def test_a_quota_both_ways() -> None:
    quota = Quota(100, 40, 60)
    assert dump_quota(quota) == {"daily_limit": 100, "used": 40, "remaining": 60}
    assert parse_quota(dump_quota(quota)) == quota


def entry(**fields: Any) -> dict[str, Any]:
    return {
        "email": "a@b.org",
        "status": "queued",
        "message": "Queued for verification",
        "job_id": "j",
        **fields,
    }


def test_an_entry_names_the_job_of_its_address() -> None:
    parsed = parse_entry(entry(), "")
    assert (parsed.email, parsed.job_id, parsed.is_queued) == ("a@b.org", "j", True)


def test_only_error_says_that_no_job_was_made() -> None:
    assert not parse_entry(entry(status="error"), "").is_queued
    assert parse_entry(entry(status="accepted"), "").is_queued


def test_a_rejected_line_needs_no_usable_id() -> None:
    assert parse_entry(entry(status="error", job_id=None), "").job_id == ""


@each_row("job_id", [None, "", ".", "..", 7, "x" * 201, "a\nb", "a\x00"])
def test_a_job_needs_an_id_that_can_be_polled(job_id: Any) -> None:
    with pytest.raises(ContractError) as raised:
        parse_entry(entry(job_id=job_id), "data.results[0]")
    assert raised.value.path == "data.results[0].job_id"


def job(**fields: Any) -> dict[str, Any]:
    return {
        "job_id": "j",
        "result": {"email": "a@b.org", "status": "queued", "verification": None, **fields},
    }


@each_row("status", ["queued", "processing", "error"])
def test_a_record_without_a_verdict(status: str) -> None:
    record = parse_job(job(status=status))
    assert (record.status, record.verification) == (status, None)
    assert record.is_final is (status == "error")


def test_a_finished_record_has_the_whole_payload() -> None:
    record = parse_job(job(status="done", verification=PAYLOAD))
    assert record.is_final
    assert record.verification is not None
    assert record.verification.to_dict() == PAYLOAD


@each_row("verification", [None, {}, "text", {**PAYLOAD, "result": "great"}])
def test_a_finished_record_without_a_usable_payload_is_an_error(verification: Any) -> None:
    with pytest.raises(ContractError) as raised:
        parse_job(job(status="done", verification=verification))
    assert raised.value.path.startswith("data.result.verification")


def test_an_unknown_status_is_not_final() -> None:
    assert not parse_job(job(status="paused")).is_final


EARLIER = {
    "email": "a@b.org",
    "message": "m",
    "details": {"checks": {"syntax": True}, "reason": None},
    "created_at": "2026-01-02T03:04:05Z",
    "updated_at": "2026-01-02T03:04:05Z",
}


@each_row(
    ("status", "final", "result"),
    [
        ("queued", False, None),
        ("processing", False, None),
        ("valid", True, "valid"),
        ("invalid", True, "invalid"),
        ("error", True, None),
    ],
)
def test_an_earlier_record_s_status_is_the_verdict(
    status: str, final: bool, result: str | None
) -> None:
    record = parse_job({"job_id": "j", "result": {**EARLIER, "status": status}}, "mx_blacklist")
    assert record.is_final is final
    assert record.message == "m"
    assert (record.verification and record.verification.result) == result
    if record.verification:
        assert record.verification.validation_type == "mx_blacklist"
        assert record.verification.checks == {"syntax": True}


def test_an_earlier_record_may_name_its_type_in_the_details() -> None:
    record = parse_job(
        {"result": {**EARLIER, "status": "valid", "details": {"validation_type": "mx"}}}, "smtp"
    )
    assert record.verification is not None
    assert record.verification.validation_type == "mx"


@each_row(
    "details", [None, [], "text", {"errors": 5}, {"checks": 5}, {"result": "valid", "valid": 7}]
)
def test_odd_details_of_an_earlier_record_do_no_harm(details: Any) -> None:
    record = parse_job({"result": {**EARLIER, "status": "invalid", "details": details}})
    assert record.verification is not None
    assert record.verification.result == "invalid"


def test_only_done_and_error_are_final() -> None:
    assert [status for status in JobStatus if status.is_final] == [JobStatus.DONE, JobStatus.ERROR]


KEYS = ["success", "data", "error", "code", "result", "results", "status", "email"]
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["success", "data", "error", "code", "result", "results", "status", "email"]
            ),
            inner,
        )
    ),
    max_leaves=12,
)


@given(ANY)
def test_parsing_raises_nothing_but_a_contract_error(body: Any) -> None:
    for parse in (
        lambda b: parse_envelope(b, 200),
        parse_quota,
        parse_job,
        lambda b: parse_entry(b, ""),
    ):
        message = ""
        try:
            parse(body)
        except ContractError as exc:
            message = str(exc)
        assert message.isprintable()
