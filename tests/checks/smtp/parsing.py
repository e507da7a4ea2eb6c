"""Whole replies for tests."""

from __future__ import annotations

from collections.abc import Iterable

from mailverdict.checks.smtp.replies import Reply, ReplyParser


def parse_reply(lines: Iterable[str | bytes]) -> Reply:
    """Parse the lines of one reply, without their line ends; ValueError if they are not one complete reply."""
    parser = ReplyParser()
    raw = [line.encode() if isinstance(line, str) else line for line in lines]
    replies = parser.feed(b"".join(line + b"\r\n" for line in raw))
    if parser.fault or len(replies) != 1 or parser.is_inside:
        raise ValueError(parser.fault or "not exactly one complete reply")
    return replies[0]
