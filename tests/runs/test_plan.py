"""The arithmetic of a plan."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.backend import Quota
from mailverdict.errors import SettingsError
from mailverdict.runs.plan import DAY, Plan, plan_run
from tests.doubles.tables import each_row


def plan(unique: int, quota: Quota | None = None, **more: Any) -> Plan:
    return plan_run(rows=unique, missing=0, malformed=0, unique=unique, quota=quota, **more)


@each_row(
    ("to_submit", "limit", "remaining", "batches", "days", "why"),
    [
        (250, 100, 100, 3, 3, "a fresh quota on the first of three days"),
        (250, 100, 30, 4, 4, "30 today, then 100, 100, 20"),
        (250, 100, 0, 3, 3, "nothing today, then 100, 100, 50"),
        (250, 1000, 1000, 3, 1, "100, 100, 50 today"),
        (250, 150, 150, 3, 2, "100 and 50 today, 100 tomorrow"),
        (450, 150, 150, 6, 3, "100 and 50 on each day"),
        (0, 100, 100, 0, 0, "nothing to do"),
        (1, 100, 100, 1, 1, "one"),
    ],
)
def test_a_plan_counts_batches_and_days(
    to_submit: int, limit: int, remaining: int, batches: int, days: int, why: str
) -> None:
    made = plan(to_submit, Quota(limit, limit - remaining, remaining))
    assert (made.batches, made.days) == (batches, days), why
    assert (made.daily_limit, made.remaining) == (limit, remaining)


@each_row(
    ("to_submit", "remaining", "day"),
    [(100, 100, "2026-12-30"), (101, 100, "2026-12-31"), (250, 30, "2027-01-02")],
)
def test_a_plan_names_the_day_on_which_all_is_done(
    to_submit: int, remaining: int, day: str
) -> None:
    made = plan(to_submit, Quota(100, 100 - remaining, remaining), today=date(2026, 12, 30))
    assert str(made.done_on) == day
    assert any(
        line.split()
        == [*["day", "on", "which", "all", "is", "done,", "first", "rows", "first", "(UTC)"], day]
        for line in str(made).splitlines()
    )
    assert day in made._repr_html_()


@each_row(
    ("to_submit", "remaining", "days", "outdated"),
    [
        (
            450,
            100,
            4.0,
            0,
        ),  # the last answers come on the fifth day, when the first are four days old
        (450, 100, 3.5, 100),
        (450, 100, 2.0, 200),
        (450, 30, 2.0, 230),  # a day longer: 30, 100 and 100 are older
        (450, 0, 4.0, 0),  # five days later, of which nothing was submitted on the first
        (450, 100, 0.0, 400),
        (100, 100, 0.0, 0),
    ],
)
def test_first_rows_are_verified_again_if_the_list_takes_longer_than_their_answers_count(
    to_submit: int, remaining: int, days: float, outdated: int
) -> None:
    made = plan(to_submit, Quota(100, 100 - remaining, remaining), max_age=days * DAY)
    assert made.outdated == outdated
    assert ("older than max_age by then, so verified again" in str(made)) == bool(outdated)


def test_without_a_journal_no_answer_is_too_old() -> None:
    assert plan(450, Quota(100, 0, 100)).outdated == 0


def test_where_nothing_is_to_do_no_day_is_named() -> None:
    assert plan(0, Quota(100, 0, 100)).done_on is None


def test_a_quota_of_nothing_never_ends() -> None:
    assert (plan(5, Quota(0, 0, 0)).days, plan(5, Quota(0, 0, 0)).done_on) == (None, None)
    assert "never enough quota" in str(plan(5, Quota(0, 0, 0)))


def test_what_is_known_in_flight_or_held_is_not_submitted() -> None:
    made = plan(100, known=60, in_flight=15, held=5)
    assert made.to_submit == 20


def test_a_limit_caps_what_this_call_submits() -> None:
    assert plan(100, known=60, limit=10).to_submit == 10
    assert plan(100, known=95, limit=10).to_submit == 5


def test_a_backend_without_a_quota_has_none() -> None:
    made = plan(100)
    assert (made.daily_limit, made.remaining, made.days, made.batches) == (None, None, None, 0)
    assert "quota" not in str(made)


def test_the_most_units_are_printed_where_asking_again_may_cost_more() -> None:
    made = plan(250, Quota(100, 0, 100), repeats=2)
    assert made.most_units == 750
    (line,) = [line for line in str(made).splitlines() if "at most" in line]
    assert line.endswith(" 750")
    assert "at most" not in str(plan(250, Quota(100, 0, 100)))
    assert "at most" not in str(plan(0, Quota(100, 0, 100), repeats=2))


@each_row(
    "wrong",
    [
        {"rows": 5, "missing": 6, "malformed": 0, "unique": 0},
        {"rows": 5, "missing": -1, "malformed": 0, "unique": 0},
        {"rows": 5, "missing": 0, "malformed": 0, "unique": 5, "known": 3, "in_flight": 3},
        {"rows": 5, "missing": 5, "malformed": 0, "unique": 1},
    ],
)
def test_counts_that_do_not_add_up_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingsError, match="add up"):
        plan_run(**wrong)


def test_it_prints_as_a_small_table() -> None:
    made = plan_run(
        rows=12_345, missing=5, malformed=40, unique=12_000, known=11_000, quota=Quota(100, 0, 100)
    )
    lines = str(made).splitlines()
    assert repr(made) == str(made)
    assert lines[0].split() == ["rows", "12,345"]
    assert len({len(line) for line in lines}) == 1, "values stand in one column"
    assert not any("held" in line for line in lines)
    assert any("held" in line for line in str(plan(5, held=1)).splitlines())


def test_it_shows_as_html_in_a_notebook() -> None:
    page = plan(1234, Quota(100, 0, 100))._repr_html_()
    assert page.startswith("<style>")
    assert "1,234" in page
    assert (
        page.count("<tr>")
        == page.count("</tr>")
        == len(str(plan(1234, Quota(100, 0, 100))).splitlines())
    )


COUNTS = st.integers(0, 5000)


@given(COUNTS, COUNTS, st.integers(0, 500), st.integers(0, 500))
def test_the_portions_add_up(unique: int, known: int, limit: int, remaining: int) -> None:
    known = min(known, unique)
    made = plan(unique, Quota(limit, 0, remaining), known=known)
    assert made.to_submit == unique - known
    if made.days is None:
        assert limit == 0
        assert made.to_submit > remaining
        return
    capacity = (
        min(remaining, made.to_submit)
        + max(0, made.days - bool(min(remaining, made.to_submit))) * limit
    )
    assert capacity >= made.to_submit
    assert made.batches * 100 >= made.to_submit
    assert made.batches <= made.days * (max(limit, remaining) // 100 + 1)
