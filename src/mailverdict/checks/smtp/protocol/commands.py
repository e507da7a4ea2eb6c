"""SMTP commands as bytes, the extensions that the reply to EHLO announces, and windows of commands.

All functions are pure. A window is the commands that a session sends before it reads a reply, in
order; it knows whether the replies belong to them:

    MAIL FROM:<>
    RCPT TO:<a@x.example>
    RCPT TO:<b@x.example>
    RSET
    MAIL FROM:<>
    RCPT TO:<probe@x.example>
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from typing import NamedTuple

from ..replies import CLOSED, Reply

RSET = b"RSET\r\n"
QUIT = b"QUIT\r\n"
STARTTLS = b"STARTTLS\r\n"

MAX_PATH = 254  # RFC 5321 4.5.3.1.3 with erratum 1690: a path of 256 with its brackets
MAX_LOCAL = 64  # RFC 5321 4.5.3.1.1
# A Dot-string of visible characters, or a Quoted-string; the domain without anything that ends a
# path.
ASCII_PATH = re.compile(
    r"(?:[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]+|\"(?:[ !#-\[\]-~]|\\[ -~])*\")@[A-Za-z0-9._:\[\]-]+"
)
NON_ASCII_PATH = re.compile(r"(?:[^\s<>@\"]+|\"[^\"\\]*\")@[^\s<>@\"]+")
# Categories of Unicode: controls, format characters, surrogates, unassigned, line separators.
UNSENDABLE = frozenset({"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"})


@lru_cache(maxsize=1024)  # each recipient is checked when it is drawn, and when its command is made
def is_sendable(address: str) -> bool:
    r"""Whether `address` can be sent in a path.

    It may have no CR, LF, NUL, control, blank or bracket that would end the path.

    >>> is_sendable("ada@example.org"), is_sendable("ada@example.org>\r\nRSET")
    (True, False)
    """
    if address.isascii():
        is_short = len(address) <= MAX_PATH and address.rfind("@") <= MAX_LOCAL
        return is_short and ASCII_PATH.fullmatch(address) is not None
    local, _, _ = address.rpartition("@")
    if len(encoded(address)) > MAX_PATH or len(encoded(local)) > MAX_LOCAL:
        return False
    if not NON_ASCII_PATH.fullmatch(address):
        return False
    categories = set(map(unicodedata.category, address))
    return categories.isdisjoint(UNSENDABLE)


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
    path = b"<" + sender.encode("ascii") + b">"
    if smtputf8:
        return b"MAIL FROM:" + path + b" SMTPUTF8\r\n"
    return b"MAIL FROM:" + path + b"\r\n"


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
    """The parameters of each extension by keyword.

    The first line of the reply is the server's name.

    >>> parse_extensions(Reply(250, None, "", ("mx.example.org", "SIZE 1000", "PIPELINING")))
    {'SIZE': '1000', 'PIPELINING': ''}
    """
    extensions = {}
    for line in reply.lines[1:]:
        match = KEYWORD.fullmatch(line.strip())
        if match:
            keyword = match[1].upper()
            extensions[keyword] = match[2] or ""
    return extensions


def parse_limits(parameters: str) -> dict[str, int]:
    """Limits by name, from the parameters of LIMITS (RFC 9422).

    >>> parse_limits("RCPTMAX=20 RCPTDOMAINMAX=1")
    {'RCPTMAX': 20, 'RCPTDOMAINMAX': 1}
    """
    return {name.upper(): int(value) for name, value in LIMIT.findall(parameters)}


# --- windows --------------------------------------------------------------------------------------


class Recipient(NamedTuple):
    """An address to ask about."""

    address: str  # as it goes into RCPT, the domain in A-labels
    is_probe: bool = False  # a random local part: it gets a transaction of its own


class WindowCommand(NamedTuple):
    """One command of a window."""

    verb: str  # "RSET", "MAIL" or "RCPT"
    data: bytes
    recipient: Recipient | None = None  # of an RCPT
    companions: int = 0  # recipients of its transaction, itself included
    domains: int = 0  # domains of its transaction

    @property
    def phase(self) -> str:
        """How the reply to it is classified."""
        return "mail" if self.recipient is None else "rcpt"


class OpenTransaction(NamedTuple):
    """A transaction that can continue in the next window."""

    asked: int = 0
    domains: frozenset[str] = frozenset()


def domain_of(recipient: Recipient) -> str:
    """Everything after the last at sign, in lower case."""
    return recipient.address.rpartition("@")[2].lower()


def plan_window(
    recipients: Sequence[Recipient],
    *,
    mail_from: str,
    per_transaction: int,
    one_domain: bool,
    utf8: Set[Recipient],
    begins_with_rset: bool,
    transaction: OpenTransaction | None = None,
) -> list[WindowCommand]:
    """Lay out the commands that ask about `recipients`, all of them sendable.

    RSET separates transactions.

    `utf8` names those that need SMTPUTF8 although their address is ASCII. `begins_with_rset`: a
    transaction is under way; `transaction` is given where it can take more recipients. This saves
    one MAIL round trip when the server does not pipeline.

    >>> ask = [Recipient("a@x.example"), Recipient("zq7k@x.example", is_probe=True)]
    >>> how = {"mail_from": "", "per_transaction": 50, "one_domain": False, "utf8": set()}
    >>> how["begins_with_rset"] = False
    >>> [command.verb for command in plan_window(ask, **how)]
    ['MAIL', 'RCPT', 'RSET', 'MAIL', 'RCPT']
    """
    continued: list[Recipient] = []
    if transaction is not None and not one_domain:
        room = max(0, per_transaction - transaction.asked)
        for recipient in recipients:
            is_plain = recipient not in utf8 and recipient.address.isascii()
            if is_plain and not recipient.is_probe and len(continued) < room:
                continued.append(recipient)
    commands = rcpt_commands(continued, transaction or OpenTransaction())
    asked = set(continued)
    rest = [recipient for recipient in recipients if recipient not in asked]
    for group, needs_utf8 in transactions(rest, per_transaction, utf8, one_domain=one_domain):
        if commands or begins_with_rset:
            commands.append(WindowCommand("RSET", RSET))
        commands.append(WindowCommand("MAIL", mail(mail_from, smtputf8=needs_utf8)))
        commands += rcpt_commands(group, OpenTransaction())
    return commands


def rcpt_commands(group: Sequence[Recipient], before: OpenTransaction) -> list[WindowCommand]:
    """The RCPT commands of a transaction that may have had others before."""
    companions = len(group) + before.asked
    domains = before.domains.union(map(domain_of, group))
    commands = []
    for recipient in group:
        data = rcpt(recipient.address)
        commands.append(WindowCommand("RCPT", data, recipient, companions, len(domains)))
    return commands


def transactions(
    recipients: Iterable[Recipient], size: int, utf8: Set[Recipient], *, one_domain: bool
) -> Iterator[tuple[list[Recipient], bool]]:
    """Group recipients that may share a MAIL command.

    A probe stands alone, so that it affects no other recipient.
    """
    groups: dict[tuple[bool, str], list[Recipient]] = {}
    probes: list[Recipient] = []
    for recipient in recipients:
        if recipient.is_probe:
            probes.append(recipient)
            continue
        needs_utf8 = recipient in utf8 or not recipient.address.isascii()
        domain = domain_of(recipient) if one_domain else ""
        group = groups.setdefault((needs_utf8, domain), [])
        group.append(recipient)
    for (needs_utf8, _), group in groups.items():
        for start in range(0, len(group), size):
            yield group[start : start + size], needs_utf8
    for probe in probes:
        yield [probe], not probe.address.isascii()


def transaction_after(
    commands: Sequence[WindowCommand], before: OpenTransaction | None
) -> OpenTransaction | None:
    """The transaction under way after a window.

    None if it takes no more, as those of probes and SMTPUTF8.
    """
    last_mail = None
    asked: list[Recipient] = []
    for command in commands:
        if command.verb == "MAIL":
            last_mail = command
            asked = []
        elif command.recipient is not None:
            asked.append(command.recipient)
    transaction = before
    if last_mail is not None:
        needs_utf8 = last_mail.data.endswith(b"SMTPUTF8\r\n")
        if needs_utf8 or any(recipient.is_probe for recipient in asked):
            return None
        transaction = OpenTransaction()
    if transaction is None:
        return None
    domains = transaction.domains.union(map(domain_of, asked))
    return OpenTransaction(transaction.asked + len(asked), domains)


def is_misplaced(commands: Sequence[WindowCommand], replies: Sequence[Reply]) -> bool:
    """Whether a reply is that to another command.

    A refusal names another recipient of this window, or a reply belongs to the QUIT after it.

    A server that loses a reply under pipelining shifts all later ones, and a shifted 550 would be a
    wrong `mailbox_not_found`. There may be fewer replies than commands.
    """
    recipients = [command.recipient for command in commands if command.recipient is not None]
    for command, reply in zip(commands, replies, strict=False):
        if reply.code == CLOSED:
            return True
        if reply.is_positive or command.recipient is None or "@" not in reply.text:
            continue
        text = reply.text.lower()
        if command.recipient.address.lower() in text:
            continue
        if any(other.address.lower() in text for other in recipients):
            return True
    return False
