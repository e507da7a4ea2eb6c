"""Commands as bytes: an address can never become more than an address."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.smtp.protocol.commands import (
    ehlo,
    helo,
    is_sendable,
    mail,
    parse_extensions,
    parse_limits,
    rcpt,
)
from mailverdict.checks.smtp.replies import Reply
from tests.checks.smtp.parsing import parse_reply
from tests.doubles.tables import assert_none_differ, each_row

ADDRESSES = [
    ("ada@example.org", True, "plain"),
    ("a.d+a_1!#$%&'*/=?^`{|}~-@example.org", True, "every special of RFC 5321 atext"),
    ('"ada lovelace"@example.org', True, "a quoted string may hold a blank"),
    ('"a\\"b"@example.org', True, "and an escaped quote"),
    ("zoë@xn--bcher-kva.example", True, "an internationalised local part"),
    ("ada@[192.0.2.1]", True, "an address literal"),
    ("ada@example.org\r\nRSET", False, "CR LF"),
    ("ada@example.org\n", False, "LF"),
    ("ada\r@example.org", False, "CR"),
    ("ada\x00@example.org", False, "NUL"),
    ("ada\x7f@example.org", False, "DEL"),
    ("ada\x85@example.org", False, "NEL, a line end to some"),
    ("ada\u2028@example.org", False, "LINE SEPARATOR"),
    ("ada\u202e@example.org", False, "right-to-left override"),
    ("ada\ud800@example.org", False, "a lone surrogate"),
    ("ada@example.org> SIZE=1", False, "the end of a path"),
    ("ada<@example.org", False, "its beginning"),
    ("ada lovelace@example.org", False, "a blank outside of quotes"),
    ('"ada\r\n"@example.org', False, "CR LF within quotes"),
    ('"ada"b"@example.org', False, "a quote that ends early"),
    ("@example.org", False, "no local part"),
    ("ada@", False, "no domain"),
    ("ada", False, "no at sign"),
    ("", False, "nothing"),
    ("a" * 65 + "@example.org", False, "a local part of more than 64 octets"),
    ("ë" * 33 + "@example.org", False, "more than 64 octets in UTF-8"),
    ("ada@" + "a" * 251, False, "a path of more than 254 octets"),
]


def test_is_sendable_by_address() -> None:
    assert_none_differ(row for row in ADDRESSES if is_sendable(row[0]) is not row[1])


@each_row("address", [address for address, ok, _ in ADDRESSES if not ok])
def test_rcpt_refuses_what_is_not_sendable(address: str) -> None:
    with pytest.raises(ValueError, match="path"):
        rcpt(address)


def test_commands_are_those_of_the_rfc() -> None:
    assert ehlo("client.example") == b"EHLO client.example\r\n"
    assert helo("[192.0.2.1]") == b"HELO [192.0.2.1]\r\n"
    assert mail("v@example.com") == b"MAIL FROM:<v@example.com>\r\n"
    assert mail("", smtputf8=True) == b"MAIL FROM:<> SMTPUTF8\r\n"
    assert rcpt("zoë@example.org") == "RCPT TO:<zoë@example.org>\r\n".encode()


@given(st.text(max_size=80) | st.from_regex(r"[^@]{1,20}@[^@]{1,20}"))
def test_whatever_is_sendable_is_one_line_with_one_path(address: str) -> None:
    if not is_sendable(address):
        return
    data = rcpt(address)

    assert data.count(b"\r") == data.count(b"\n") == 1
    assert data.startswith(b"RCPT TO:<")
    assert data.endswith(b">\r\n")
    assert not any(byte < 32 or byte == 127 for byte in data[:-2])


EHLO = [
    (["250 mx"], {}, "a server without extensions"),
    (["250-mx", "250 PIPELINING"], {"PIPELINING": ""}, "the last line counts"),
    (
        ["250-mx Hello", "250-size 1000", "250 8bitmime"],
        {"SIZE": "1000", "8BITMIME": ""},
        "keywords in any case",
    ),
    (
        ["250-mx", "250-AUTH=LOGIN PLAIN", "250 X"],
        {"AUTH": "LOGIN PLAIN", "X": ""},
        "AUTH= of old servers",
    ),
    (["250-PIPELINING", "250 SIZE"], {"SIZE": ""}, "the first line is a name, whatever it holds"),
    (
        ["250-mx", "250-", "250-!odd", "250 STARTTLS "],
        {"STARTTLS": ""},
        "lines that are not keywords",
    ),
]


@each_row(("lines", "expected", "why"), EHLO)
def test_parse_extensions_by_line(lines: list[str], expected: dict[str, str], why: str) -> None:
    assert parse_extensions(parse_reply(lines)) == expected, why


@each_row(
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


@given(st.lists(st.text(max_size=40), max_size=8))
def test_parse_extensions_takes_any_lines(lines: list[str]) -> None:
    found = parse_extensions(Reply(250, None, "", tuple(lines)))

    assert len(found) < max(len(lines), 1)
