"""SMTP commands as bytes, and the extensions that the reply to EHLO announces."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from ..replies import Reply

RSET = b"RSET\r\n"
QUIT = b"QUIT\r\n"
STARTTLS = b"STARTTLS\r\n"

MAX_PATH = 254  # RFC 5321 4.5.3.1.3 with erratum 1690: a path of 256 with its brackets
MAX_LOCAL = 64  # RFC 5321 4.5.3.1.1
# A Dot-string of visible characters, or a Quoted-string; the domain without anything that ends a path.
ASCII_PATH = re.compile(
    r"(?:[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]+|\"(?:[ !#-\[\]-~]|\\[ -~])*\")@[A-Za-z0-9._:\[\]-]+"
)
NON_ASCII_PATH = re.compile(r"(?:[^\s<>@\"]+|\"[^\"\\]*\")@[^\s<>@\"]+")


@lru_cache(maxsize=1024)  # each recipient is checked when it is drawn, and when its command is made
def is_sendable(address: str) -> bool:
    r"""Whether `address` can be sent in a path: no CR, LF, NUL, control, blank or bracket that would end it.

    >>> is_sendable("ada@example.org"), is_sendable("ada@example.org>\r\nRSET")
    (True, False)
    """
    if address.isascii():
        is_short = len(address) <= MAX_PATH and address.rfind("@") <= MAX_LOCAL
        return is_short and ASCII_PATH.fullmatch(address) is not None
    local, _, _ = address.rpartition("@")
    if len(encoded(address)) > MAX_PATH or len(encoded(local)) > MAX_LOCAL:
        return False
    return NON_ASCII_PATH.fullmatch(address) is not None and not any(is_control(c) for c in address)


def is_control(character: str) -> bool:
    """Controls, format characters, surrogates, line separators, unassigned."""
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}


def encoded(text: str) -> bytes:
    """The text in UTF-8; a lone surrogate makes the address unsendable later."""
    return text.encode("utf-8", "surrogatepass")


def ehlo(name: str) -> bytes:
    """EHLO with the client's name."""
    return b"EHLO " + name.encode("ascii") + b"\r\n"


def helo(name: str) -> bytes:
    """HELO with the client's name, for servers without EHLO."""
    return b"HELO " + name.encode("ascii") + b"\r\n"


def mail(sender: str, *, smtputf8: bool = False) -> bytes:
    r"""MAIL with the sender; an empty one is the null reverse-path.

    >>> mail("")
    b'MAIL FROM:<>\r\n'
    """
    return b"MAIL FROM:<" + sender.encode("ascii") + (b"> SMTPUTF8\r\n" if smtputf8 else b">\r\n")


def rcpt(address: str) -> bytes:
    r"""RCPT of a sendable address.

    >>> rcpt("ada@example.org")
    b'RCPT TO:<ada@example.org>\r\n'
    """
    if not is_sendable(address):
        raise ValueError(f"{address!r} cannot be sent in a path")
    return b"RCPT TO:<" + address.encode("utf-8") + b">\r\n"


# Some old servers write AUTH=LOGIN.
KEYWORD = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*)(?:[ =](.*))?")
LIMIT = re.compile(r"([A-Za-z]+)=([1-9][0-9]{0,5})")


def parse_extensions(reply: Reply) -> dict[str, str]:
    """The parameters of each extension by keyword; the first line of the reply is the server's name.

    >>> parse_extensions(Reply(250, None, "", ("mx.example.org", "SIZE 1000", "PIPELINING")))
    {'SIZE': '1000', 'PIPELINING': ''}
    """
    matches = (KEYWORD.fullmatch(line.strip()) for line in reply.lines[1:])
    return {match[1].upper(): match[2] or "" for match in matches if match}


def parse_limits(parameters: str) -> dict[str, int]:
    """Limits by name, from the parameters of LIMITS (RFC 9422).

    >>> parse_limits("RCPTMAX=20 RCPTDOMAINMAX=1")
    {'RCPTMAX': 20, 'RCPTDOMAINMAX': 1}
    """
    return {name.upper(): int(value) for name, value in LIMIT.findall(parameters)}
