"""Words become one pattern."""

from __future__ import annotations

import re

from mailverdict.checks.smtp.classify.patterns import phrases


def test_phrases_are_separated_by_two_blanks() -> None:
    pattern = phrases("\n  no such user  unknown\n  not found  \\bfull\\b\n")

    assert pattern == r"(?:(?:n(?:o such user|ot found)|u(?:nknown))|\b(?:f(?:ull\b)))"


def test_a_quantified_initial_is_kept() -> None:
    assert [bool(re.search(phrases("x?a  bc"), text)) for text in ("a", "xa", "bc", "x")] == [
        True,
        True,
        True,
        False,
    ]
