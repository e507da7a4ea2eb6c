"""The mails of an mbox file, and how much of it is in memory at a time."""

from __future__ import annotations

import io

import pytest

from mailverdict.bounces.mailboxes import MAX_PIECE, read_mbox
from mailverdict.checks.bounces.parts import MAX_MESSAGE


class CountedFile(io.BytesIO):
    """A file that knows how much was asked of it, and how much it gave."""

    def __init__(self, data):
        super().__init__(data)
        self.sizes = []
        self.given = 0

    def readline(self, size=-1):
        self.sizes.append(size)
        piece = super().readline(size)
        self.given += len(piece)
        return piece


def test_mails_are_apart_at_lines_that_begin_with_from():
    file = io.BytesIO(b"From a\nSubject: 1\n\nFrom here\n>From b\nFrom c\nSubject: 2\n\nFromage\n")
    assert [mail.data for mail in read_mbox(file, "box")] == [
        b"Subject: 1\n\n",
        b">From b\n",
        b"Subject: 2\n\nFromage\n",
    ]


def test_a_separator_within_a_long_line_is_none():
    line = b"x" * MAX_PIECE + b"From x"
    (mail,) = read_mbox(io.BytesIO(b"From a\n\n" + line), "box")
    assert mail.data == b"\n" + line


@pytest.mark.parametrize(
    "data",
    [
        b"From a\nSubject: x\n\n" + b"x" * (4 * MAX_MESSAGE),
        b"From a\n" + b"x\n" * MAX_MESSAGE,
        b"From a\n\n" * 20_000,
        b"From a" + b"x" * (2 * MAX_MESSAGE),
    ],
    ids=["one long line", "many short lines", "many empty mails", "a long separator"],
)
def test_each_octet_is_read_once_in_pieces_and_a_mail_is_cut(data):
    file = CountedFile(data)
    mails = read_mbox(file, "box")
    assert all(len(mail.data) <= MAX_MESSAGE + 1 for mail in mails)
    assert file.given == len(data)
    assert set(file.sizes) == {MAX_PIECE}


def test_mails_are_given_while_the_file_is_read():
    file = CountedFile(b"From a\n\nHello\n" * 1_000)
    next(read_mbox(file, "box"))
    assert file.given < 100
