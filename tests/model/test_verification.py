"""Payloads of both revisions, key for key."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.contract.revisions import dump_earlier_payload
from mailverdict.errors import ContractError
from mailverdict.model.table import table_to_rows
from mailverdict.model.verification import (
    KEYS,
    Fault,
    Verification,
    dump_payload,
    is_earlier_payload,
    parse_payload,
)
from mailverdict.model.words import Reason, ValidationType, Verdict
from mailverdict.verdicts import PRECEDENCE
from tests import CASES
from tests.doubles.tables import each_row, rows_to_table

CASES: list[dict[str, Any]] = json.loads((CASES / "payloads.json").read_text(encoding="utf-8"))
CURRENT = [case for case in CASES if case["revision"] == "current"]
EARLIER = [case for case in CASES if case["revision"] == "earlier"]


def named(cases: list[dict[str, Any]]) -> dict[str, Any]:
    return {"argvalues": cases, "ids": [case["why"].split(";")[0] for case in cases]}


@pytest.mark.parametrize("case", **named(CURRENT))
def test_a_current_payload_survives_both_ways_key_for_key(case: dict[str, Any]) -> None:
    verification = Verification.from_dict(case["payload"])
    dumped = verification.to_dict()
    assert dumped == case["payload"]
    known = [key for key in case["payload"] if key in KEYS]
    assert list(dumped)[: len(known)] == known, "the contract's keys come first, in its order"
    assert json.loads(json.dumps(dumped)) == dumped


@pytest.mark.parametrize("case", **named(EARLIER))
def test_an_earlier_payload_is_recognised_by_its_shape_and_survives_both_ways(
    case: dict[str, Any],
) -> None:
    assert is_earlier_payload(case["payload"])
    assert dump_earlier_payload(Verification.from_dict(case["payload"])) == case["payload"]


@pytest.mark.parametrize("case", **named(CASES))
def test_a_payload_survives_the_table(case: dict[str, Any]) -> None:
    verification = parse_payload(case["payload"])
    assert table_to_rows(rows_to_table([verification], source="remote")) == [verification]


def test_the_cases_cover_every_type_both_saturations_and_both_revisions() -> None:
    for cases in (CURRENT, EARLIER):
        assert {case["payload"]["validation_type"] for case in cases} == set(ValidationType)
    reasons = {reason for case in CURRENT for reason in case["payload"]["reasons"]}
    assert {Reason.THROTTLED, Reason.RATE_LIMITED} <= reasons
    assert all(case["why"] for case in CASES)


def smtp(**fields: Any) -> dict[str, Any]:
    return dump_payload(Verification("a@b.org", "smtp", "valid", **fields))


def test_absent_null_and_false_are_three_things() -> None:
    flags = ("role", "spamtrap", "disposable", "free")
    assert not set(flags) & set(smtp())
    assert all(smtp(**dict.fromkeys(flags, False))[flag] is False for flag in flags)
    assert (smtp()["catch_all"], smtp()["protected"]) == (None, None)
    assert smtp(catch_all=False)["catch_all"] is False
    mx = dump_payload(Verification("a@b.org", "mx", "valid", catch_all=True))
    assert not {"catch_all", "protected"} & set(mx)


def test_a_null_flag_from_a_careless_service_is_one_never_determined() -> None:
    payload = smtp() | {"role": None}
    assert parse_payload(payload).role is None
    assert "role" not in parse_payload(payload).to_dict()


def test_details_are_the_first_reason() -> None:
    assert smtp(reasons=("timeout", "role"))["details"] == "timeout"
    assert smtp()["details"] is None


def test_a_lone_details_stands_for_the_reasons() -> None:
    payload = smtp() | {"details": "timeout"}
    assert parse_payload(payload).reasons == ("timeout",)
    del payload["reasons"]
    assert parse_payload(payload).reasons == ("timeout",)


@each_row(
    ("changes", "path"),
    [
        ({"email": None}, "email"),
        ({"email": 5}, "email"),
        ({"validation_type": None}, "validation_type"),
        ({"result": None}, "result"),
        ({"result": "VALID"}, "result"),
        ({"result": "great"}, "result"),
        ({"result": True}, "result"),
        ({"reasons": "timeout"}, "reasons"),
        ({"role": "yes"}, "role"),
        ({"role": 1}, "role"),
        ({"catch_all": "no"}, "catch_all"),
        ({"metadata": []}, "metadata"),
        ({"reason": {}}, "reason"),
    ],
)
def test_what_breaks_the_contract_is_an_error_with_its_path(
    changes: dict[str, Any], path: str
) -> None:
    with pytest.raises(ContractError) as raised:
        parse_payload(smtp() | changes)
    assert raised.value.path == path
    with pytest.raises(ContractError) as nested:
        parse_payload(smtp() | changes, "data.result.verification")
    assert nested.value.path == f"data.result.verification.{path}"


@each_row("payload", [None, [], "text", 7, {}])
def test_a_non_payload_is_an_error(payload: Any) -> None:
    with pytest.raises(ContractError):
        parse_payload(payload)


def test_checks_that_are_not_yes_or_no_were_not_made() -> None:
    assert parse_payload(smtp() | {"checks": {"syntax": True, "dns": None, "x": "y"}}).checks == {
        "syntax": True
    }
    assert parse_payload(smtp() | {"checks": None}).checks == {}


@each_row(
    ("errors", "parsed"),
    [
        (None, None),
        ([], ()),
        ([{"code": "SMTP", "message": "no"}], (Fault("SMTP", "no"),)),
        ([{"message": None}], (Fault("", ""),)),
        (["plain text", 7], (Fault("", "plain text"), Fault("", "7"))),
        ("text", None),
    ],
)
def test_errors_of_any_shape_are_kept_as_texts(errors: Any, parsed: Any) -> None:
    assert parse_payload(smtp() | {"errors": errors}).errors == parsed
    earlier = {"email": "a@b.org", "valid": False, "checks": {}, "reason": "SMTP", "errors": errors}
    assert parse_payload(earlier).errors == (parsed or None)


def test_foreign_words_are_bounded_and_on_one_line() -> None:
    verification = parse_payload(
        smtp() | {"reasons": ["a;b", "x" * 500, "\x1b[31m", 5, "", None], "reason": "y" * 500}
    )
    assert verification.reasons[0] == "a,b"
    assert all(len(reason) <= 81 and reason.isprintable() for reason in verification.reasons)
    assert len(verification.reasons) == 4
    assert verification.reason is not None
    assert len(verification.reason) <= 81


def test_an_earlier_payload_without_a_type_was_asked_with_the_default() -> None:
    assert parse_payload({"email": "a@b.org", "valid": True}).validation_type == "smtp"


@each_row(
    ("result", "valid", "why"),
    [
        ("valid", True, ""),
        ("risky", True, "it can receive mail"),
        ("invalid", False, ""),
        ("unknown", False, "not a yes"),
    ],
)
def test_a_verdict_in_the_earlier_words(result: str, valid: bool, why: str) -> None:
    payload = dump_earlier_payload(Verification("a@b.org", "smtp", result))
    assert payload["valid"] is valid, why
    assert payload["reason"] == (None if valid else "SMTP")


VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=6)
    | st.lists(st.text(max_size=3), max_size=3)
)


@given(
    st.dictionaries(
        st.sampled_from([*KEYS, "valid", "odd"]),
        VALUES | st.dictionaries(st.text(max_size=3), VALUES),
    )
)
def test_parsing_raises_nothing_but_a_contract_error(payload: dict[str, Any]) -> None:
    try:
        verification = parse_payload(payload)
    except ContractError:
        return
    again = parse_payload(verification.to_dict())
    assert again.to_dict() == verification.to_dict(), "what was once understood is stable"


@each_row(
    ("checks", "reason", "result"),
    [
        ({}, "REGEX", "invalid"),
        ({"syntax": False}, "REGEX", "invalid"),
        ({"syntax": True, "dns": False}, "DNS", "invalid"),
        ({"syntax": True, "dns": True, "blacklist": False}, "BLACKLIST", "invalid"),
        ({"syntax": True, "dns": True, "smtp_rcptto": False, "smtp": False}, "SMTP", "invalid"),
        ({"syntax": True, "smtp": False}, "SMTP", "invalid"),  # all of `smtp` in one check
        ({}, "SMTP", "unknown"),  # a limiter refused, and nothing was asked
        ({"syntax": True}, "DNS", "unknown"),  # no answer from the DNS
        ({"syntax": True, "dns": True, "smtp_port": False, "smtp": False}, "SMTP", "unknown"),
        (
            {
                "syntax": True,
                "dns": True,
                "smtp_port": True,
                "smtp_connection": False,
                "smtp": False,
            },
            "SMTP",
            "unknown",
        ),
    ],
)
def test_what_is_not_valid_in_the_earlier_words_is_invalid_only_if_a_check_shows_it(
    checks: dict[str, bool], reason: str, result: str
) -> None:
    earlier = {
        "email": "a@b.org",
        "validation_type": "smtp",
        "valid": False,
        "checks": checks,
        "reason": reason,
    }
    assert Verification.from_dict({**earlier, "errors": []}).result == result


@each_row("reason", [each for each in Reason if PRECEDENCE[each] is Verdict.UNKNOWN])
def test_an_unknown_verdict_is_unknown_again_after_the_earlier_words(reason: Reason) -> None:
    checks = {
        "syntax": True,
        "dns": True,
        "smtp_port": True,
        "smtp_connection": True,
        "smtp_rcptto": False,
    }
    found = Verification("a@b.org", "smtp", "unknown", (reason,), checks, reason="SMTP")
    assert Verification.from_dict(dump_earlier_payload(found)).result == "unknown"


def test_an_earlier_payload_that_is_valid_for_a_reason_is_refused() -> None:
    earlier = {
        "email": "a@b.org",
        "validation_type": "smtp",
        "valid": True,
        "checks": {},
        "reason": "SMTP",
    }
    with pytest.raises(ContractError, match="reason is 'SMTP' although valid is true"):
        Verification.from_dict(earlier)


@each_row(
    ("details", "reasons", "expected"),
    [
        ("timeout", ["timeout", "role"], ("timeout", "role")),
        ("timeout", ["role"], ("timeout", "role")),
        ("role", ["timeout", "role"], ("timeout", "role")),
        ("timeout", [], ("timeout",)),
        (None, ["role"], ("role",)),
    ],
)
def test_the_dominant_reason_is_not_lost_where_the_list_does_not_have_it(
    details: str | None, reasons: list[str], expected: tuple[str, ...]
) -> None:
    payload = {"email": "a@b.org", "validation_type": "smtp", "result": "unknown"}
    assert parse_payload({**payload, "details": details, "reasons": reasons}).reasons == expected
