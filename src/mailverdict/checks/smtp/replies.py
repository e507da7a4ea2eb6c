"""SMTP replies as values, and the parser that makes them from bytes (RFC 5321 section 4.2, RFC 2034)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["Reply", "ReplyParser", "find_enhanced_code", "parse_reply"]

MAX_LINE = 8 * 1024  # RFC 5321 4.5.3.1.5 says 512; real greetings are longer, a 10 MB line is an attack
MAX_LINES = 100  # stops a greeting that never ends
MAX_REPLY = 64 * 1024  # and one that ends late
CACHED_LINE = 256  # the replies worth remembering are short and many: "250 2.1.5 Ok"

LINE = re.compile(rb"([2-5][0-9][0-9])(?:([ -])(.*))?", re.DOTALL)
ENHANCED = r"([245]\.[0-9]{1,3}\.[0-9]{1,3})(?![0-9]|\.[0-9])"
AT_START = re.compile(rf"#?{ENHANCED}[ :;,.-]*")  # "5.1.1 No such user", and IronPort's "#5.1.0 Address rejected."
SECOND_TOKEN = re.compile(rf"[^\s#][^\s]{{0,63}} +#?{ENHANCED}(?=\s|$)")  # Barracuda: "cuda_nsu 4.7.1 <x@example.com>"
IN_BRACKETS = re.compile(rf"\(#{ENHANCED}")  # qmail: "sorry, no mailbox here by that name. (#5.1.1)"
CONTROLS = dict.fromkeys((*range(32), *range(127, 160), 0x2028, 0x2029), " ")


class ReplyError(Exception):
    """What arrived is no SMTP reply; the wire turns it into a value and never lets it out."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One complete reply of a server.

    Attributes
    ----------
    code : int
        Three-digit reply code.
    enhanced_code : str or None
        Enhanced status code (RFC 3463), as ``5.1.1``; None where the reply has none of its own class.
    text : str
        The lines' texts joined by a space, without codes and control characters.
    lines : tuple of str
        The same line by line, which EHLO needs; may be left out.

    Examples
    --------
    >>> Reply(550, "5.1.1", "User unknown").is_positive
    False
    """

    code: int
    enhanced_code: str | None
    text: str
    lines: tuple[str, ...] = ()

    @property
    def is_positive(self) -> bool:
        """Whether the command was done (2xx)."""
        return 200 <= self.code < 300

    def __str__(self) -> str:
        """Give the reply as one line."""
        return " ".join(part for part in (str(self.code), self.enhanced_code, self.text) if part)


def find_enhanced_code(code: int, text: str) -> str | None:
    """Find the enhanced status code of a reply: at the start, as second token, or in ``(#x.y.z)``.

    One whose class is not that of the basic code is dropped; an IP address is none.

    Parameters
    ----------
    code : int
        The basic code.
    text : str
        What follows it.

    Returns
    -------
    str or None
        As ``5.1.1``.

    Examples
    --------
    >>> find_enhanced_code(550, "sorry, no mailbox here by that name. (#5.1.1)")
    '5.1.1'
    >>> find_enhanced_code(550, "5.79.109.48 is listed") is None
    True
    """
    match = AT_START.match(text) or SECOND_TOKEN.match(text) or IN_BRACKETS.search(text)
    return match[1] if match and match[1][0] == str(code)[0] else None


def parse_reply(lines: Iterable[str | bytes]) -> Reply:
    """Parse the lines of one reply.

    Parameters
    ----------
    lines : iterable of str or bytes
        With or without their ends.

    Returns
    -------
    Reply
        The only one in them.

    Raises
    ------
    ReplyError
        If they are not one complete reply.

    Examples
    --------
    >>> parse_reply(["250-mx.example.org", "250 PIPELINING"]).lines
    ('mx.example.org', 'PIPELINING')
    """
    parser = ReplyParser()
    replies: list[Reply] = []
    for line in lines:
        raw = line.encode("utf-8", "surrogateescape") if isinstance(line, str) else line
        replies += parser.feed(raw.rstrip(b"\r\n") + b"\r\n")
    if parser.fault:
        raise ReplyError(parser.fault)
    if len(replies) != 1 or parser.is_inside:
        raise ReplyError("not exactly one complete reply")
    return replies[0]


class ReplyParser:
    """Turns bytes, in whatever pieces they arrive, into replies.

    The first byte that cannot belong to a reply ends it for good: what follows in the stream can
    no longer be told apart.

    Attributes
    ----------
    fault : str
        Why the stream is no SMTP; empty while it is.
    heard_smtp : bool
        Whether at least one line had the form of a reply.
    """

    __slots__ = ("buffer", "code", "fault", "heard_smtp", "lines", "size")

    def __init__(self) -> None:
        self.buffer = b""
        self.fault = ""
        self.heard_smtp = False
        self.code = b""
        self.lines: list[bytes] = []
        self.size = 0

    @property
    def is_inside(self) -> bool:
        """Whether a reply has begun and not ended."""
        return bool(self.buffer or self.lines)

    def feed(self, data: bytes) -> list[Reply]:
        """Take bytes, give the replies that they complete; never raises."""
        replies: list[Reply] = []
        if self.fault:
            return replies
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            reply = self.take_line(line.removesuffix(b"\r"))
            if self.fault:
                return replies
            if reply:
                replies.append(reply)
        if len(self.buffer) > MAX_LINE:
            self.fail(f"a line of more than {MAX_LINE} bytes")
        return replies

    def take_line(self, line: bytes) -> Reply | None:
        """Add one line; give the reply when it was the last of one."""
        if not self.lines and len(line) <= CACHED_LINE and (reply := single_line_reply(line)):
            self.heard_smtp = True
            return reply
        match = LINE.fullmatch(line)
        if why := self.objection(line, match):
            self.fail(why)
            return None
        assert match
        self.heard_smtp = True
        self.code = match[1]
        self.lines.append(match[3] or b"")
        self.size += len(line)
        return self.finish() if match[2] != b"-" else None

    def objection(self, line: bytes, match: re.Match[bytes] | None) -> str:
        """Why `line` cannot go on with this reply; empty if it can."""
        if match is None:
            return "a line that is no SMTP reply"
        if self.lines and match[1] != self.code:
            return "a reply whose lines differ in their code"
        if len(line) > MAX_LINE:
            return f"a line of more than {MAX_LINE} bytes"
        if len(self.lines) >= MAX_LINES or self.size + len(line) > MAX_REPLY:
            return f"a reply of more than {MAX_LINES} lines or {MAX_REPLY} bytes"
        return ""

    def finish(self) -> Reply:
        """Make the reply of the lines collected and begin anew."""
        reply = make_reply(int(self.code), [decode(line) for line in self.lines])
        self.lines, self.size = [], 0
        return reply

    def fail(self, why: str) -> None:
        """Give the stream up."""
        self.fault, self.buffer, self.lines = why, b"", []


@lru_cache(maxsize=4096)
def single_line_reply(line: bytes) -> Reply | None:
    """A reply of one line; servers say the same few over and over."""
    match = LINE.fullmatch(line)
    if match is None or match[2] == b"-":
        return None
    return make_reply(int(match[1]), [decode(match[3] or b"")])


def make_reply(code: int, lines: list[str]) -> Reply:
    """Join the lines and set the enhanced status code apart."""
    enhanced = next((found for line in lines if (found := find_enhanced_code(code, line))), None)
    words = " ".join(" ".join(without_enhanced(line, enhanced) for line in lines).split())
    return Reply(code, enhanced, words, tuple(lines))


def without_enhanced(line: str, enhanced: str | None) -> str:
    """Drop the enhanced code from the start of a line, where it repeats on every one."""
    match = AT_START.match(line)
    return line[match.end() :] if match and match[1] == enhanced else line


def decode(line: bytes) -> str:
    """UTF-8 where it is (RFC 6531), else Latin-1, which older servers send; controls become blanks."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        text = line.decode("latin-1")
    return text.translate(CONTROLS).strip()
