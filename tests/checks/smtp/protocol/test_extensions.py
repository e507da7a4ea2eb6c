"""Extensions out of the reply to EHLO."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mailverdict.checks.smtp.protocol.extensions import parse_extensions, parse_limits
from mailverdict.checks.smtp.replies import Reply, parse_reply

EHLO = [
    (["250 mx"], {}, "a server without extensions"),
    (["250-mx", "250 PIPELINING"], {"PIPELINING": ""}, "the last line counts"),
    (["250-mx Hello", "250-size 1000", "250 8bitmime"], {"SIZE": "1000", "8BITMIME": ""}, "keywords in any case"),
    (["250-mx", "250-AUTH=LOGIN PLAIN", "250 X"], {"AUTH": "LOGIN PLAIN", "X": ""}, "AUTH= of old servers"),
    (["250-PIPELINING", "250 SIZE"], {"SIZE": ""}, "the first line is a name, whatever it holds"),
    (["250-mx", "250-", "250-!odd", "250 STARTTLS "], {"STARTTLS": ""}, "lines that are no keyword"),
]


@pytest.mark.parametrize(("lines", "expected", "why"), EHLO)
def test_parse_extensions_by_line(lines: list[str], expected: dict[str, str], why: str) -> None:
    assert parse_extensions(parse_reply(lines)) == expected, why


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("RCPTMAX=20 RCPTDOMAINMAX=1", {"RCPTMAX": 20, "RCPTDOMAINMAX": 1}),
        ("rcptmax=5", {"RCPTMAX": 5}),
        ("RCPTMAX=0 MAILMAX=x RCPTMAX", {}),
        ("", {}),
    ],
)
def test_parse_limits_by_name(parameters: str, expected: dict[str, int]) -> None:
    assert parse_limits(parameters) == expected


@settings(deadline=None)
@given(st.lists(st.text(max_size=40), max_size=8))
def test_parse_extensions_takes_any_lines(lines: list[str]) -> None:
    found = parse_extensions(Reply(250, None, "", tuple(lines)))

    assert len(found) < max(len(lines), 1)
