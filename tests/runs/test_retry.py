"""What to ask again, and when."""

import pyarrow as pa

from mailverdict.model.words import Reason
from mailverdict.runs.retry import (
    ASK_AGAIN,
    ERROR_MAX_AGE,
    HOLD,
    LostSubmission,
    classify_lost_submission,
    hold_seconds,
    retry_hint,
    reusable,
)
from tests.doubles.tables import each_row

CASES = [
    ("valid", "", False, "an answer"),
    ("unknown", "throttled", True, "the queue was full"),
    ("unknown", "rate_limited;role", True, "the dominant reason decides"),
    ("unknown", "greylisted", True, "the server said: later"),
    ("unknown", "timeout;throttled", False, "only the dominant reason decides"),
    ("risky", "disposable;throttled", False, "the verdict holds whatever a session would say"),
    ("unknown", "throttled_forever", False, "another word that begins the same"),
    ("unknown", "mailbox_full", False, "an answer that may change, but not now"),
    ("unknown", "", False, "no reason is given for mx"),
    ("unknown", "on_holiday", False, "a reason that no table knows"),
    (None, None, False, "no verdict at all"),
]


def rows(*entries: tuple[str, str | None, str | None]) -> pa.Table:
    names = ("status", "result", "reasons")
    return pa.table(
        {name: pa.array([e[i] for e in entries], pa.string()) for i, name in enumerate(names)}
    )


def usable(table: pa.Table, age: float = 0.0, refresh: frozenset[str] = frozenset()) -> list[bool]:
    return reusable(table, pa.array([age] * len(table)), refresh).to_pylist()


def test_temporary_answers_are_not_reused() -> None:
    table = rows(
        *(("done" if result else "error", result, reasons) for result, reasons, *_ in CASES)
    )
    reused = usable(table)
    assert {why: not reuse for (*_, why), reuse in zip(CASES, reused, strict=True)} == {
        why: again for *_, again, why in CASES
    }


def test_failed_look_ups_are_asked_again_where_that_costs_nothing() -> None:
    table = rows(
        ("done", "unknown", ""), ("done", "unknown", "inconclusive"), ("done", "invalid", "")
    )
    table = table.append_column("error", pa.array(["DNS", "DNS", "DNS"]))
    ages = pa.array([0.0] * 3)
    assert reusable(table, ages, frozenset(), costs_quota=False).to_pylist() == [False, False, True]
    assert reusable(table, ages, frozenset()).to_pylist() == [True, True, True]


def test_refresh_asks_a_verdict_again() -> None:
    table = rows(("done", "valid", ""), ("done", "unknown", "timeout"), ("error", None, None))
    assert usable(table, refresh=frozenset({"unknown"})) == [True, False, True]
    assert usable(table, refresh=frozenset({"error", "valid"})) == [False, True, False]


def test_a_technical_failure_is_asked_again_after_its_time_only() -> None:
    table = rows(("error", None, None))
    assert usable(table, age=ERROR_MAX_AGE - 1) == [True]
    assert usable(table, age=ERROR_MAX_AGE) == [False]


def test_dictionary_columns_and_no_rows_do() -> None:
    table = rows(("done", "unknown", "throttled"))
    encoded = pa.table({name: table[name].dictionary_encode() for name in table.column_names})
    assert usable(encoded) == [False]
    assert usable(table.slice(0, 0)) == []


def test_every_reason_asked_again_is_one_of_the_contract_s_unknowns() -> None:
    assert set(ASK_AGAIN) <= set(Reason)
    assert all(seconds > 0 for seconds in ASK_AGAIN.values())


def test_the_hint_counts_temporary_answers_and_names_the_time_to_call_again() -> None:
    table = rows(
        ("done", "unknown", "greylisted"),
        ("done", "unknown", "rate_limited;role"),
        ("done", "unknown", "rate_limited"),
        ("done", "unknown", "timeout"),
        ("done", "risky", "disposable;greylisted"),
        ("error", None, None),
    )
    assert retry_hint(table) == (
        "some answers are temporary (2 rate_limited, 1 greylisted); call again in 5 minutes or later to verify "
        "those addresses again"
    )
    assert retry_hint(table, has_journal=False) == (
        f"{retry_hint(table)}; without a journal all others are verified again, too"
    )


def test_there_is_no_hint_without_temporary_answers() -> None:
    assert (
        retry_hint(
            rows(("done", "unknown", "timeout"), ("done", "valid", ""), ("error", None, None))
        )
        == ""
    )
    assert retry_hint(rows().slice(0, 0)) == ""


def test_a_hold_doubles_up_to_a_month() -> None:
    assert [hold_seconds(n) / HOLD for n in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    assert hold_seconds(10**6) == 30 * HOLD


NOON = 43_200.0


@each_row(
    ("used_before", "used", "later", "expected"),
    [
        (5, 5, 100.0, LostSubmission.NOT_COUNTED),
        (5, 5, 1.0, LostSubmission.TOO_EARLY),
        (5, 6, 100.0, LostSubmission.MAYBE_COUNTED),
        (5, 4, 100.0, LostSubmission.MAYBE_COUNTED),
        (None, 5, 100.0, LostSubmission.MAYBE_COUNTED),
        (5, 5, 86_400.0 - NOON, LostSubmission.MAYBE_COUNTED),
        # The service's clock may be ahead.
        (
            5,
            5,
            86_400.0 - NOON - 5.0,
            LostSubmission.MAYBE_COUNTED,
        ),
        (5, 5, 86_400.0 - NOON - 65.0, LostSubmission.NOT_COUNTED),
    ],
)
def test_classifying_a_lost_submission(
    used_before: int | None, used: int, later: float, expected: LostSubmission
) -> None:
    found = classify_lost_submission(
        sent_at=NOON, used_before=used_before, used=used, now=NOON + later
    )
    assert found is expected
