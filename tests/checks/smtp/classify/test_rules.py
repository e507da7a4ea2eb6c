"""The forms of a reply that rules search."""

from __future__ import annotations

from mailverdict.checks.smtp.classify.classifier import normalize_text
from mailverdict.checks.smtp.classify.rules import SearchedReply
from tests.doubles.tables import each_row

ADVICE_ROWS = [
    ("User unknown. Please check your settings", "user unknown.", "a sentence"),
    ("User unknown; see our policy.", "user unknown;", "a clause"),
    ("User unknown (contact the sender)", "user unknown", "brackets"),
    ("User unknown. Your host is blocked", "user unknown. your host is blocked", "not advice"),
    (
        "User unknown. Please see why your IP is blocked",
        "user unknown. please see why your ip is blocked",
        "a refusal",
    ),
    (
        "User unknown. Please turn on authentication",
        "user unknown. please turn on authentication",
        "a demand",
    ),
]


@each_row(("text", "expected", "why"), ADVICE_ROWS)
def test_statement_has_no_advice(text: str, expected: str, why: str) -> None:
    assert SearchedReply(normalize_text(text)).statement.text == expected, why
