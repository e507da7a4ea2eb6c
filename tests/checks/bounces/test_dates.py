"""Dates as mails and exports write them: right, or left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.bounces.dates import ZONES, date_of
from tests.doubles.tables import each_row

READ = [
    ("Tue, 03 Mar 2026 10:15:00 +0100", "RFC 5322"),
    ("Tue, 3 Mar 2026 10:15:00 +0100 (CET)", "with a comment"),
    ("3 Mar 26 04:15 EST", "the old form of RFC 5322, section 4.3"),
    ("03 Mar 2026 09:15:00 -0000", "a time in UTC of an unknown place"),
    ("Tue, 3 Mar 2026 10:15:00 (CET)", "the zone is in the comment alone"),
    ("Tue Mar  3 18:15:00 JST 2026", "the form of date(1)"),
    ("Tue Mar 03 2026 04:15:00 GMT-0500 (CST)", "JavaScript: the offset counts"),
    ("Tue Mar 03 2026 10:15:00 GMT+0100 (Central European Standard Time)", "JavaScript"),
    ("2026-03-03 10:15:00 GMT+1", "an offset of one digit"),
    ("Mar 3, 2026 9:15:00 AM", "spreadsheets in English"),
    ("Mar 2, 2026 9:15:00 PM -1200", "PM, twelve hours west"),
    ("Tuesday, March 3rd, 2026 at 9:15 a.m.", "as people write"),
    ("2026-03-03T09:15:00.000000000Z", "nanoseconds"),
    ("2026-03-03 09:15:00 +0000 UTC", "the form of Go"),
    ("2026/03/03 09:15:00", "year first"),
    ("Tue, 03-Mar-2026 09:15:00 GMT", "RFC 850"),
]
LEFT_OUT = [
    ("3 Mar 2026 09:15:00 BST", "Britain or Bangladesh"),
    ("2026-03-03 09:15:00 CST", "America, China or Cuba"),
    ("3 Mar 2026 09:15:00 (IST)", "India, Israel or Ireland"),
    ("3 Mar 2026 09:15:00 +0100 UTC", "contradicts itself"),
    ("Etc/GMT+1 2026-03-03 09:15", "its sign is the other way round"),
    ("Fri, 18 Oct 2002 16:03:06 PM", "no such hour"),
    ("Tue, 3 Mar 2026 09:15:00 A", "military letters were used both ways"),
    ("3/5/2026 10:00", "March or May"),
    ("31 Feb 2026 10:00:00 +0000", "no such day"),
    ("03 Mar 2026", "no time, and not ISO 8601"),
    ("yesterday", "no date"),
    ("Tue, 3 Mar 1926 09:15:00 +0000", "before there was mail"),
    ("x" * 1_000, "too long"),
    (None, "missing"),
]


@each_row(("text", "why"), READ)
def test_a_date_is_right(text, why):
    assert date_of(text).isoformat() == "2026-03-03T09:15:00+00:00", why


@each_row(("text", "why"), LEFT_OUT)
def test_a_date_that_may_be_off_is_left_out(text, why):
    assert date_of(text) is None, why


def test_no_zone_with_several_meanings_is_in_the_table():
    assert not {"bst", "cst", "ist", "ast", "gst", "sst", "wst", "ect"} & ZONES.keys()


@given(st.text(max_size=120))
def test_no_text_raises_an_error(text):
    date_of(text)


@pytest.mark.parametrize("token", ["(", "1 ", "Mar ", "+01", "a.m.", "2026-03-03 "])
def test_a_repeated_token_is_no_date(token):
    assert date_of(token * 40) is None
