"""Durations as people write them."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.errors import SettingsError
from mailverdict.model.settings import UNIT_SECONDS, parse_duration
from tests.doubles.tables import each_row


@each_row(
    ("value", "seconds"),
    [
        (0, 0.0),
        (300, 300.0),
        (1.5, 1.5),
        ("300", 300.0),
        ("90s", 90.0),
        (" 5 min ", 300.0),
        ("0.5h", 1_800.0),
        ("30D", 2_592_000.0),
        ("2w", 1_209_600.0),
        ("250ms", 0.25),
        (timedelta(days=1, seconds=1), 86_401.0),
        (math.inf, math.inf),
    ],
)
def test_it_is_seconds(value, seconds):
    assert parse_duration(value, name="max_age") == seconds


@each_row(
    "value",
    [
        "",
        "soon",
        "5 parsecs",
        "-5s",
        "5m5s",
        "1e3",
        "٣",
        -1,
        timedelta(days=-1),
        math.nan,
        True,
        None,
        [],
        b"5s",
    ],
)
def test_anything_else_is_refused_with_what_to_give(value):
    with pytest.raises(
        SettingsError, match=r"max_age=.* is not a duration; give seconds, or text such as '90s'"
    ):
        parse_duration(value, name="max_age")


@given(st.integers(0, 10**9), st.sampled_from(sorted(UNIT_SECONDS)))
def test_a_number_and_a_unit(number, unit):
    assert parse_duration(f"{number}{unit.upper()}", name="x") == number * UNIT_SECONDS[unit]


@given(st.text())
def test_any_text_is_a_duration_or_a_settings_error(text):
    try:
        assert parse_duration(text, name="x") >= 0
    except SettingsError as exc:
        assert repr(text) in str(exc)  # noqa: PT017 - either is fine
