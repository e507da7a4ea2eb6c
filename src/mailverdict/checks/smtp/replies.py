"""SMTP replies as values, and their parser (RFC 5321 section 4.2, RFC 2034).

`ReplyParser.feed` takes the bytes of a server in any pieces, and gives each reply once its last
line is there:

    250-mx.example.org                Reply(250, None, "mx.example.org PIPELINING", lines of both)
    250 PIPELINING
    550 5.1.1 User unknown            Reply(550, "5.1.1", "User unknown", ...)
    550 sorry, no mailbox (#5.1.1)    Reply(550, "5.1.1", "sorry, no mailbox (#5.1.1)", ...)
    HTTP/1.1 400 Bad Request          none: the stream is not SMTP, as `fault` says
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

CLOSED = 221  # the reply to QUIT
CLOSING = 421  # to any command: the server ends the session

# RFC 5321 4.5.3.1.5: 512; real greetings are longer, a line of 10 MB is an attack.
MAX_LINE = 8 * 1024
MAX_LINES = 100  # stops a greeting that never ends
MAX_REPLY = 64 * 1024  # and one that ends late
CACHED_LINE = 256  # frequent replies are short: "250 2.1.5 Ok"

LINE = re.compile(rb"([2-5][0-9][0-9])(?:([ -])(.*))?", re.DOTALL)
ENHANCED = r"([245]\.[0-9]{1,3}\.[0-9]{1,3})(?![0-9]|\.[0-9])"
# "5.1.1 No such user", and IronPort's "#5.1.0 Address rejected."
AT_START = re.compile(rf"#?{ENHANCED}[ :;,.-]*")
# Barracuda: "cuda_nsu 4.7.1 <x@example.com>".
SECOND_TOKEN = re.compile(rf"[^\s#][^\s]{{0,63}} +#?{ENHANCED}(?=\s|$)")
# qmail: "sorry, no mailbox here by that name. (#5.1.1)"
IN_BRACKETS = re.compile(rf"\(#{ENHANCED}")
EncodingFinder = Callable[[bytes], str]
CONTROLS = dict.fromkeys((*range(32), *range(127, 160), 0x2028, 0x2029), " ")


@dataclass(frozen=True, slots=True)
class Reply:
    """One complete reply of a server.

    >>> Reply(550, "5.1.1", "User unknown").is_positive
    False
    """

    code: int
    # RFC 3463, as "5.1.1"; None where the reply has none of its own class.
    enhanced_code: str | None
    text: str  # the texts of the lines joined by a space, without codes and control characters
    lines: tuple[str, ...] = ()  # the same line by line, which EHLO needs; can be left out

    @property
    def is_positive(self) -> bool:
        """Whether the command succeeded (2xx)."""
        return 200 <= self.code < 300

    def __str__(self) -> str:
        """The reply on one line."""
        parts = (str(self.code), self.enhanced_code, self.text)
        return " ".join(filter(None, parts))


def find_enhanced_code(code: int, text: str) -> str | None:
    """Find the enhanced status code of a reply: at the start, as second token, or in ``(#x.y.z)``.

    A code of another class than the basic code is ignored, and so is an IP address.

    >>> find_enhanced_code(550, "sorry, no mailbox here by that name. (#5.1.1)")
    '5.1.1'
    >>> find_enhanced_code(550, "5.79.109.48 is listed") is None
    True
    """
    match = AT_START.match(text) or SECOND_TOKEN.match(text) or IN_BRACKETS.search(text)
    if match is None:
        return None
    enhanced_code = match[1]
    if enhanced_code[0] != str(code)[0]:
        return None
    return enhanced_code


class ReplyParser:
    """Turns bytes, in whatever pieces they arrive, into replies.

    Lines that are not UTF-8 are decoded by the encoding that `find_encoding` returns for their
    octets. The first byte that cannot belong to a reply ends parsing for good: what follows in the
    stream cannot be assigned to commands any more.
    """

    __slots__ = ("buffer", "code", "fault", "find_encoding", "heard_smtp", "lines", "size")

    def __init__(self, find_encoding: EncodingFinder | None = None) -> None:
        self.find_encoding = find_encoding  # None: Latin-1
        self.buffer = b""
        self.fault = ""  # why the stream is not SMTP
        self.heard_smtp = False  # at least one line had the form of a reply
        self.code = b""
        self.lines: list[bytes] = []
        self.size = 0

    @property
    def is_inside(self) -> bool:
        """Whether a reply is incomplete."""
        return bool(self.buffer or self.lines)

    def feed(self, data: bytes) -> list[Reply]:
        """Parse bytes; return the replies that they complete. Never raises."""
        replies: list[Reply] = []
        if self.fault:
            return replies
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            reply = self.parse_line(line.removesuffix(b"\r"))
            if self.fault:
                return replies
            if reply:
                replies.append(reply)
        if len(self.buffer) > MAX_LINE:
            self.fail(f"a line of more than {MAX_LINE} bytes")
        return replies

    def parse_line(self, line: bytes) -> Reply | None:
        """Add one line; return the reply if it is complete."""
        if not self.lines and len(line) <= CACHED_LINE:
            reply = single_line_reply(line, self.find_encoding)
            if reply is not None:
                self.heard_smtp = True
                return reply
        match = LINE.fullmatch(line)
        error = self.find_error(line, match)
        if error:
            self.fail(error)
            return None
        assert match
        self.heard_smtp = True
        self.code = match[1]
        self.lines.append(match[3] or b"")
        self.size += len(line)
        if match[2] == b"-":
            return None
        return self.finish()

    def find_error(self, line: bytes, match: re.Match[bytes] | None) -> str:
        """Why `line` cannot continue this reply; empty if it can."""
        if match is None:
            return "a line that is not an SMTP reply"
        if self.lines and match[1] != self.code:
            return "a reply whose lines differ in their code"
        if len(line) > MAX_LINE:
            return f"a line of more than {MAX_LINE} bytes"
        if len(self.lines) >= MAX_LINES or self.size + len(line) > MAX_REPLY:
            return f"a reply of more than {MAX_LINES} lines or {MAX_REPLY} bytes"
        return ""

    def finish(self) -> Reply:
        """Make the reply from the lines collected so far."""
        lines = decode_lines(self.lines, self.find_encoding)
        self.lines = []
        self.size = 0
        return make_reply(int(self.code), lines)

    def fail(self, fault: str) -> None:
        """Stop parsing."""
        self.fault = fault
        self.buffer = b""
        self.lines = []


@lru_cache(maxsize=4096)
def single_line_reply(line: bytes, find_encoding: EncodingFinder | None) -> Reply | None:
    """A reply of one line; cached, since a server sends the same few again and again."""
    match = LINE.fullmatch(line)
    if match is None or match[2] == b"-":
        return None
    lines = decode_lines([match[3] or b""], find_encoding)
    return make_reply(int(match[1]), lines)


def make_reply(code: int, lines: list[str]) -> Reply:
    """Join the lines and separate the enhanced status code."""
    enhanced_code = None
    for line in lines:
        enhanced_code = find_enhanced_code(code, line)
        if enhanced_code is not None:
            break
    words: list[str] = []
    for line in lines:
        text = line
        match = AT_START.match(line)
        if match and match[1] == enhanced_code:  # it is repeated on every line
            text = line[match.end() :]
        words += text.split()
    return Reply(code, enhanced_code, " ".join(words), tuple(lines))


def decode_lines(lines: list[bytes], find_encoding: EncodingFinder | None) -> list[str]:
    """UTF-8 where valid (RFC 6531), else the encoding that is found.

    Control characters become blanks.
    """
    texts = [decode_utf8(line) for line in lines]
    others = [line for line, text in zip(lines, texts, strict=True) if text is None]
    encoding = "latin-1"
    if others and find_encoding is not None:
        encoding = find_encoding(b" ".join(others))
    decoded = []
    for line, valid in zip(lines, texts, strict=True):
        text = line.decode(encoding, "replace") if valid is None else valid
        decoded.append(text.translate(CONTROLS).strip())
    return decoded


def decode_utf8(line: bytes) -> str | None:
    """Decode a line.

    None if it is not UTF-8, or if it switches to another character set (ISO 2022).
    """
    if b"\x1b$" in line:
        return None
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None
