"""Bytes to replies: multi-line rules, enhanced status codes, limits, and never an exception."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.smtp.replies import (
    MAX_LINE,
    MAX_LINES,
    MAX_REPLY,
    Reply,
    ReplyParser,
    find_enhanced_code,
)
from tests.checks.smtp.parsing import parse_reply
from tests.doubles.tables import each_row

ENHANCED = [
    (550, "5.1.1 User unknown", "5.1.1", "right after the basic code"),
    (550, "#5.1.0 Address rejected.", "5.1.0", "Cisco IronPort writes a sharp before it"),
    (450, "cuda_nsu 4.7.1 <x@example.com>", "4.7.1", "Barracuda: second token"),
    (
        553,
        "sorry, no mailbox here by that name. (#5.1.1)",
        "5.1.1",
        "qmail: in brackets at the end",
    ),
    (511, "sorry (#5.1.1 - chkuser)", "5.1.1", "chkuser: in brackets, with a name"),
    (550, "5.7.606 Access denied, banned sending IP", "5.7.606", "three digits of detail"),
    (550, "5.79.109.48 is listed", None, "an IP address"),
    (550, "listed 5.79.109.48", None, "an IP address as second token"),
    (550, "host 5.1.1.9 said no", None, "an IP address that begins like one"),
    (450, "5.1.1 User unknown", None, "class 5 with basic code 450 is dropped"),
    (550, "User unknown 5.1.1", None, "neither at the start nor in brackets"),
    (550, "5.1234.1 text", None, "more than three digits"),
    (550, "6.1.1 text", None, "no such class"),
    (250, "2.1.5 Ok", "2.1.5", "success"),
    (550, "5.1.1", "5.1.1", "nothing else"),
    (550, "", None, "nothing"),
]


@each_row(("code", "text", "expected", "why"), ENHANCED)
def test_find_enhanced_code_by_position(
    code: int, text: str, expected: str | None, why: str
) -> None:
    assert find_enhanced_code(code, text) == expected, why


REPLIES = [
    (["250 2.1.5 Ok"], Reply(250, "2.1.5", "Ok", ("2.1.5 Ok",)), "one line"),
    (["250"], Reply(250, None, "", ("",)), "a code alone is a whole reply"),
    (["250 "], Reply(250, None, "", ("",)), "a code and a blank"),
    (
        ["250-mx.example.org", "250-SIZE 1000", "250 PIPELINING"],
        Reply(
            250,
            None,
            "mx.example.org SIZE 1000 PIPELINING",
            ("mx.example.org", "SIZE 1000", "PIPELINING"),
        ),
        "the last line counts",
    ),
    (
        ["550-5.1.1 The account", "550-5.1.1 that you tried", "550 5.1.1 does not exist"],
        Reply(
            550,
            "5.1.1",
            "The account that you tried does not exist",
            ("5.1.1 The account", "5.1.1 that you tried", "5.1.1 does not exist"),
        ),
        "the enhanced code of every line goes",
    ),
    (["550-", "550 No"], Reply(550, None, "No", ("", "No")), "an empty line within"),
    (
        ["550 caf\xe9".encode("latin-1")],
        Reply(550, None, "café", ("café",)),
        "Latin-1 of an old server",
    ),
    (["550 café"], Reply(550, None, "café", ("café",)), "UTF-8"),
    (["550 a\x00b\x1bc\x85d"], Reply(550, None, "a b c d", ("a b c d",)), "controls become blanks"),
    (["550 a\rb"], Reply(550, None, "a b", ("a b",)), "so does a lone CR"),
]


@each_row(("lines", "expected", "why"), REPLIES)
def test_parse_reply_gives_value(lines: list[str | bytes], expected: Reply, why: str) -> None:
    assert parse_reply(lines) == expected, why


FAULTS = [
    (["250-one", "550 two"], "lines that differ in their code"),
    (["HTTP/1.1 400 Bad Request"], "another protocol"),
    (["25 short"], "two digits"),
    (["2500 long"], "four digits"),
    (["250_odd"], "neither blank nor hyphen after the code"),
    (["150 preliminary"], "RFC 5321 4.2.1: no 1yz replies"),
    (["650 what"], "no such class"),
    (["250-one"], "an end that never comes"),
    ([], "nothing"),
    (["250 one", "250 two"], "two replies"),
    (["250 " + "a" * MAX_LINE], "a line too long"),
    (["250-x"] * MAX_LINES + ["250 x"], "too many lines"),
    (["250-" + "a" * 8000] * 9 + ["250 x"], "too many bytes"),
    ([""], "an empty line"),
]


@each_row(("lines", "why"), FAULTS)
def test_parse_reply_refuses_other_text(lines: list[str], why: str) -> None:
    with pytest.raises(ValueError, match=r"line|reply"):
        parse_reply(lines)


def test_limits_are_those_of_the_design() -> None:
    assert (MAX_LINE, MAX_LINES, MAX_REPLY) == (8192, 100, 65536)


def test_parser_gives_replies_before_a_fault() -> None:
    parser = ReplyParser()

    assert [r.code for r in parser.feed(b"250 a\r\n550 b\r\nwhat?\r\n250 c\r\n")] == [250, 550]
    assert parser.fault
    assert parser.feed(b"250 d\r\n") == []


def test_parser_faults_on_an_endless_line_before_its_end() -> None:
    parser = ReplyParser()
    for _ in range(9):
        parser.feed(b"2" * 1024)

    assert "8192" in parser.fault
    assert not parser.heard_smtp


@each_row(
    ("data", "is_inside"),
    [(b"250-a\r\n", True), (b"25", True), (b"250 a\r\n", False), (b"250 a\r\n2", True)],
)
def test_parser_knows_whether_it_is_inside_a_reply(data: bytes, is_inside: bool) -> None:
    parser = ReplyParser()
    parser.feed(data)

    assert parser.is_inside is is_inside


def test_reply_reads_as_one_line() -> None:
    assert str(Reply(550, "5.1.1", "User unknown")) == "550 5.1.1 User unknown"
    assert str(Reply(250, None, "")) == "250"


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_parser_never_raises(pieces: list[bytes]) -> None:
    parser = ReplyParser()
    for piece in pieces:
        for reply in parser.feed(piece):
            assert 200 <= reply.code <= 599
            assert not set(reply.text) & {"\r", "\n", "\x00"}


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), max_size=60)


@given(st.integers(200, 599), st.lists(TEXTS, min_size=1, max_size=5), st.data())
def test_parser_gives_the_same_in_whatever_pieces(
    code: int, texts: list[str], data: st.DataObject
) -> None:
    raw = (
        "".join(f"{code}-{text}\r\n" for text in texts[:-1]).encode()
        + f"{code} {texts[-1]}\r\n".encode()
    )
    cut = data.draw(st.integers(0, len(raw)))
    whole, parts = ReplyParser(), ReplyParser()

    expected = whole.feed(raw)
    assert parts.feed(raw[:cut]) + parts.feed(raw[cut:]) == expected
    assert list(expected[0].lines) == [text.strip() for text in texts]


@given(st.integers(200, 599), st.text(max_size=200))
def test_find_enhanced_code_never_raises(code: int, text: str) -> None:
    found = find_enhanced_code(code, text)
    assert found is None or found[0] == str(code)[0]
