"""Replies in the code pages of their countries are read like the same replies in UTF-8."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.smtp.classify.classifier import classify
from mailverdict.checks.smtp.classify.encodings import MAX_OCTETS, find_encoding
from mailverdict.checks.smtp.replies import Reply, ReplyParser
from mailverdict.model.words import Reason
from tests import CASES
from tests.doubles.tables import each_row

ENCODINGS = {
    "Russian": ("cp1251", "koi8_r", "iso8859_5", "cp866"),
    "Ukrainian": ("cp1251", "koi8_u"),
    "Bulgarian": ("cp1251",),
    "Polish": ("iso8859_2", "cp1250"),
    "Czech": ("iso8859_2", "cp1250"),
    "Slovak": ("cp1250",),
    "Hungarian": ("iso8859_2", "cp1250"),
    "Swedish": ("latin-1",),
    "Danish": ("latin-1",),
    "Finnish": ("latin-1",),
    "Latvian": ("cp1257",),
    "Lithuanian": ("cp1257",),
    "Greek": ("cp1253", "iso8859_7"),
    "Turkish": ("cp1254",),
    "Hebrew": ("cp1255",),
    "Arabic": ("cp1256",),
    "Chinese": ("gbk", "gb2312"),
    "Traditional Chinese": ("big5",),
    "Japanese": ("cp932", "euc_jp", "iso2022_jp"),
    "Korean": ("cp949", "euc_kr"),
    "Thai": ("cp874",),
}


def encode(text: str, encoding: str) -> bytes | None:
    """Encode a text; None if that is not possible, or if the result is valid UTF-8 all the same."""
    try:
        octets = text.encode(encoding)
    except UnicodeEncodeError:
        return None
    try:
        octets.decode("utf-8")
    except UnicodeDecodeError:
        return octets
    return octets if b"\x1b$" in octets else None


def parse(octets: bytes) -> Reply:
    """One reply, as a session parses it."""
    (reply,) = ReplyParser(find_encoding).feed(octets + b"\r\n")
    return reply


def read_encoded() -> list[tuple[str, bytes, dict[str, str]]]:
    """Each row of the table in each encoding of its language."""
    with (CASES / "smtp_replies_languages.csv").open(encoding="utf-8", newline="") as file:
        return [
            (encoding, octets, row)
            for row in csv.DictReader(file)
            for encoding in ENCODINGS.get(row["language"], ())
            if (octets := encode(row["text"], encoding))
        ]


ENCODED = read_encoded()


@pytest.mark.slow
@each_row("encoding", sorted({encoding for encoding, _, _ in ENCODED}))
def test_replies_in_a_code_page_are_read_as_in_utf8(encoding: str) -> None:
    rows = [(octets, row) for each, octets, row in ENCODED if each == encoding]
    replies = [
        parse(f"{row['code']} {row['enhanced']}".encode() + b" " + octets) for octets, row in rows
    ]
    reasons = [classify(reply, phase="rcpt") for reply in replies]
    readable = [reply.text == row["text"] for reply, (_, row) in zip(replies, rows, strict=True)]
    expected = [Reason(row["expected_reason"]) for _, row in rows]

    assert sum(readable) >= 0.8 * len(rows)
    for found, wanted, reply in zip(reasons, expected, replies, strict=True):
        assert found is not Reason.MAILBOX_NOT_FOUND or wanted is Reason.MAILBOX_NOT_FOUND, (
            reply.text
        )
    missing = [
        found
        for found, wanted in zip(reasons, expected, strict=True)
        if wanted is Reason.MAILBOX_NOT_FOUND
    ]
    assert sum(found is Reason.MAILBOX_NOT_FOUND for found in missing) >= 0.97 * len(missing)


@pytest.mark.slow
@pytest.mark.parametrize("step", [10, 1])
def test_no_reply_is_read_in_a_code_page_of_another_script(step: int) -> None:
    for encoding, octets, row in ENCODED[::step]:
        found = find_encoding(octets)
        assert found == "latin-1" or octets.decode(found) == row["text"], (encoding, found)


def test_a_phrase_may_be_divided_between_lines() -> None:
    (reply,) = ReplyParser(find_encoding).feed(
        b"550-5.1.1 "
        + "Пользователь".encode("koi8_r")
        + b"\r\n550 5.1.1 "
        + "не найден".encode("koi8_r")
        + b"\r\n"
    )

    assert reply.text == "Пользователь не найден"
    assert classify(reply, phase="rcpt") is Reason.MAILBOX_NOT_FOUND


UNDECIDED = [
    ("Notandi er óþekktur".encode("latin-1"), "latin-1", "a language without words here"),
    (b"\xff\xfe\xfd", "latin-1", "no text"),
    (b"\x1b$B\xff\xff", "latin-1", "not ISO-2022-JP after all"),
    ("Empfänger unbekannt".encode("latin-1"), "latin-1", "ASCII words are not evidence"),
    (
        b"a" * MAX_OCTETS + "Пользователь".encode("cp1251"),
        "latin-1",
        "words after the part that is searched",
    ),
    (
        b"a" * (MAX_OCTETS - 21) + "用户不存在用户不存在用户".encode("gbk"),
        "gb18030",
        "half a letter at the end of that part",
    ),
]


@each_row(("octets", "encoding", "why"), UNDECIDED)
def test_latin_1_stays_without_evidence(octets: bytes, encoding: str, why: str) -> None:
    assert find_encoding(octets) == encoding, why


@given(st.binary(max_size=700))
def test_any_octets_have_an_encoding(octets: bytes) -> None:
    octets.decode(find_encoding(octets), "replace")
