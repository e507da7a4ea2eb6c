"""What the sandbox's mail servers do, as data: made-up exchanges, then providers.

There is an exchange for every reason that SMTP can give, and for every hostile behaviour. The
providers are modelled on habits that large and small ones are known for; they say nothing about the
real ones whose domains lead to them. Texts may contain ``{host}``, ``{address}`` (the recipient)
and ``{client}`` (our IP address).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..model.words import Reason
from .zones import EXCHANGE_ADDRESSES

__all__ = ["EXCHANGES", "GREYLISTED", "PROVIDER_EXCHANGES", "Exchange", "People", "SmtpFault"]

NO_SUCH_USER = (
    "550 5.1.1 <{address}>: Recipient address rejected: User unknown in virtual mailbox table"
)
GREYLISTED = (
    "450 4.2.0 <{address}>: Recipient address rejected: "
    "Greylisted, please try again in {wait} seconds"
)


@dataclass(frozen=True, slots=True)
class SmtpFault:
    """Something that a server does wrong.

    Attributes
    ----------
    at : str
        When: ``EHLO``, ``HELO``, ``MAIL``, ``RCPT``, ``RSET``, ``STARTTLS``, ``QUIT``, or
        ``connect`` for instead of the greeting.
    does : str
        ``silence`` (no reply), ``drop`` (close the connection), ``reset`` (TCP RST), ``say`` (send
        `text`), ``shut`` (421 and close), ``endless`` (a multiline reply without end), ``flood``
        (10 MB without a line end), ``trickle`` (one byte at a time, slowly), ``lose`` (skip this
        one reply).
    after : int
        How many of these commands in a session are answered normally before.
    text : str
        For ``say``; the connection stays open.
    """

    at: str
    does: str
    after: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """The script of one mail server.

    Attributes
    ----------
    host : str
        Its name.
    why : str
        What it shows.
    expects : mapping of str to (Reason or None)
        Local parts to verify, with the expected reason; None: accepted.
    address : str
        Loopback address to listen on; empty: the next free one of 127.25.0.0/16.
    mailboxes : container of str, optional
        Local parts that exist; None: all of them, the exchange is a catch-all.
    special : mapping of str to str
        Replies to RCPT by local part.
    greeting : str
        The reply to a new connection.
    extensions : tuple of str
        In the reply to EHLO; STARTTLS and SMTPUTF8 have fields of their own.
    ehlo, mail, rcpt : str
        Replies instead of the usual ones; empty: the usual ones.
    unknown : str
        Reply to RCPT of a mailbox that does not exist.
    delay : float
        Seconds from a command to its reply: a round trip.
    starttls : str
        ``no``, ``offered``, ``demanded`` or ``broken`` (offered, and the handshake fails).
    smtputf8 : bool
        Whether internationalised addresses are accepted.
    greylist : float
        Seconds from the first RCPT of a recipient until it is accepted; 0: no greylisting.
    max_recipients, max_per_session : int
        Recipients accepted before ``452 4.5.3``, per transaction and per session; 0: no limit.
    one_domain : bool
        Whether all recipients of a transaction must be of one domain.
    slow_after, slow_by : int, float
        Refusals in a session after which each reply is delayed, and by how many seconds; 0: never.
    cut_after : int
        Refusals in a session after which it is closed with 421; 0: never.
    deny_after : int
        Refusals, over all sessions, after which every recipient is refused as unknown; 0: never.
    faults : tuple of SmtpFault
        What it does wrong.
    listens : bool
        False: connections to its address are refused.
    """

    host: str
    why: str
    expects: Mapping[str, Reason | None] = field(default_factory=dict)
    address: str = ""
    mailboxes: Container[str] | None = frozenset({"ada", "grace", "info"})
    special: Mapping[str, str] = field(default_factory=dict)
    greeting: str = "220 {host} ESMTP sandbox"
    extensions: tuple[str, ...] = ("PIPELINING", "SIZE 10240000", "ENHANCEDSTATUSCODES", "8BITMIME")
    ehlo: str = ""
    mail: str = ""
    rcpt: str = ""
    unknown: str = NO_SUCH_USER
    delay: float = 0.0
    starttls: str = "no"
    smtputf8: bool = False
    greylist: float = 0.0
    max_recipients: int = 0
    max_per_session: int = 0
    one_domain: bool = False
    slow_after: int = 0
    slow_by: float = 1.0
    cut_after: int = 0
    deny_after: int = 0
    faults: tuple[SmtpFault, ...] = ()
    listens: bool = True

    @property
    def domain(self) -> str:
        """The domain it serves: its name without the first label."""
        return self.host.partition(".")[2]


NOT_FOUND, FULL, GREY = Reason.MAILBOX_NOT_FOUND, Reason.MAILBOX_FULL, Reason.GREYLISTED
PROTECTED, SENDER, UNCLEAR = Reason.PROTECTED, Reason.SENDER_BLOCKED, Reason.INCONCLUSIVE
TIMEOUT, DROPPED, NO_DATA = Reason.TIMEOUT, Reason.CONNECTION_DROPPED, Reason.NO_SMTP_DATA
EITHER = {"ada": None, "nobody": NOT_FOUND}


def normal(name: str, why: str, **habits: Any) -> Exchange:
    """An exchange that accepts ada and refuses nobody."""
    return Exchange(f"mx.{name}.example", why, EITHER, **habits)


def refusing(name: str, why: str, becomes: Reason, **habits: Any) -> Exchange:
    """An exchange where ada cannot be verified."""
    return Exchange(f"mx.{name}.example", why, {"ada": becomes}, **habits)


def hostile(name: str, why: str, becomes: Reason, at: str, does: str, text: str = "") -> Exchange:
    """An exchange with one fault."""
    return refusing(name, why, becomes, faults=(SmtpFault(at, does, text=text),))


WELL_BEHAVED = (
    Exchange(
        "mx.plain.example",
        "the usual case, with a mailbox for every answer",
        {
            "ada": None,
            "nobody": NOT_FOUND,
            "left": NOT_FOUND,
            "full": FULL,
            "stuffed": FULL,
            "busy": None,
            "later": GREY,
            "odd": UNCLEAR,
        },
        special={
            "left": "550 5.2.1 <{address}>: This account is disabled",
            "full": "452 4.2.2 <{address}>: Mailbox full",
            "stuffed": "552 5.2.2 <{address}>: The user is over quota",
            "busy": (
                "450 4.2.1 The user you are trying to contact is receiving mail at a rate that "
                "prevents it"
            ),
            "later": "451 4.7.1 Please try again later",
            "odd": "550 Rejected",
        },
    ),
    normal("in-step", "no PIPELINING", extensions=("8BITMIME",)),
    normal("old", "supports HELO only", ehlo="502 5.5.2 Command not recognized"),
    Exchange(
        "mx.catch-all.example",
        "accepts every address",
        {"ada": None, "zq7k2v9x": None},
        mailboxes=None,
    ),
    normal("starttls", "offers STARTTLS", starttls="offered"),
    normal("tls-only", "requires STARTTLS before MAIL", starttls="demanded"),
    Exchange(
        "mx.smtputf8.example",
        "accepts internationalised addresses",
        {"zo\u00eb": None, "nobody": NOT_FOUND},
        mailboxes=frozenset({"zo\u00eb"}),
        smtputf8=True,
    ),
    Exchange(
        "mx.ascii.example",
        "does not accept internationalised addresses",
        {"zo\u00eb": UNCLEAR, "ada": None},
    ),
)

REFUSING = (
    refusing("greylisting", "greylists, with the delay in its reply", GREY, greylist=1.0),
    refusing(
        "blocklist",
        "blocks our IP address, at the greeting",
        PROTECTED,
        greeting="554 5.7.1 {client} is listed in dnsbl.example",
    ),
    Exchange(
        "mx.blocklist-late.example",
        "blocks our IP address, at RCPT",
        {"ada": PROTECTED, "nobody": PROTECTED},
        rcpt="554 5.7.1 Service unavailable; Client host [{client}] blocked using dnsbl.example",
    ),
    refusing("no-sender", "refuses our sender, at MAIL", SENDER, mail="550 5.7.1 Sender rejected"),
    refusing(
        "no-helo",
        "refuses our HELO name, at RCPT",
        SENDER,
        rcpt="504 5.5.2 <client>: Helo command rejected: need a name",
    ),
    refusing(
        "relay",
        "does not serve the domain",
        SENDER,
        rcpt="554 5.7.1 <{address}>: Relay access denied",
    ),
    Exchange(
        "mx.mute.example",
        "refuses every recipient without a reason",
        {"ada": UNCLEAR, "nobody": UNCLEAR},
        rcpt="550 Rejected",
    ),
    refusing(
        "no-mail",
        "accepts no mail (RFC 7504)",
        Reason.NO_MX_RECORD,
        greeting="521 {host} does not accept mail",
    ),
    refusing(
        "null-mx",
        "its domain accepts no mail (RFC 7505)",
        Reason.NO_MX_RECORD,
        rcpt="556 5.1.10 Recipient has null MX",
    ),
    refusing(
        "disk-full", "has no disk space left", UNCLEAR, mail="452 4.3.1 Insufficient system storage"
    ),
    refusing(
        "crowded",
        "too many connections",
        UNCLEAR,
        greeting="421 4.7.0 {host} Error: too many connections",
    ),
)

LIMITING = (
    normal("few-recipients", "three recipients per transaction", max_recipients=3),
    normal("one-recipient", "one recipient per transaction", max_recipients=1),
    normal("short-session", "five recipients per session", max_per_session=5),
    normal("one-domain", "one domain per transaction", one_domain=True),
    normal(
        "punishing", "slows down after 10 refusals, closes after 20", slow_after=10, cut_after=20
    ),
    normal("cutting", "closes the session after 3 refusals", cut_after=3),
)

HOSTILE = (
    refusing("closed", "the port is closed", Reason.PORT_CLOSED, listens=False),
    hostile("tarpit", "never greets", TIMEOUT, "connect", "silence"),
    hostile("tarpit-ehlo", "silent at EHLO", TIMEOUT, "EHLO", "silence"),
    hostile("tarpit-mail", "silent at MAIL", TIMEOUT, "MAIL", "silence"),
    hostile("tarpit-rcpt", "silent at RCPT", TIMEOUT, "RCPT", "silence"),
    hostile("trickle", "sends its greeting byte by byte", TIMEOUT, "connect", "trickle"),
    hostile("endless", "a greeting without end", UNCLEAR, "connect", "endless"),
    hostile("endless-ehlo", "an EHLO reply without end", UNCLEAR, "EHLO", "endless"),
    hostile("flood", "10 MB in one line", NO_DATA, "connect", "flood"),
    hostile("flood-rcpt", "10 MB in one line at RCPT", UNCLEAR, "RCPT", "flood"),
    hostile(
        "http", "answers in HTTP", NO_DATA, "connect", "say", "HTTP/1.1 400 Bad Request\r\n\r\n"
    ),
    hostile("binary", "sends binary data", NO_DATA, "connect", "say", "\x16\x03\x01\x00\xff\x00\n"),
    hostile("garbage-rcpt", "garbage at RCPT", UNCLEAR, "RCPT", "say", "\x00\x01 what?\r\n"),
    hostile(
        "mixed-codes",
        "a reply with two codes",
        UNCLEAR,
        "RCPT",
        "say",
        "250-Ok\r\n550 5.1.1 User unknown\r\n",
    ),
    hostile(
        "mixed-ehlo",
        "an EHLO reply with two codes",
        UNCLEAR,
        "EHLO",
        "say",
        "250-mx\r\n500 what\r\n",
    ),
    refusing(
        "two-greetings", "greets twice", UNCLEAR, greeting="220 {host} ESMTP\r\n220 {host} ESMTP"
    ),
    hostile("hang-up", "closes before the greeting", NO_DATA, "connect", "drop"),
    hostile("reset", "resets before the greeting", NO_DATA, "connect", "reset"),
    hostile("drop-ehlo", "closes the connection at EHLO", DROPPED, "EHLO", "drop"),
    hostile("reset-ehlo", "resets at EHLO", DROPPED, "EHLO", "reset"),
    hostile("drop-mail", "closes the connection at MAIL", DROPPED, "MAIL", "drop"),
    hostile("drop-rcpt", "closes the connection at RCPT", DROPPED, "RCPT", "drop"),
    hostile("reset-rcpt", "resets at RCPT", DROPPED, "RCPT", "reset"),
    normal("drop-quit", "closes the connection at QUIT", faults=(SmtpFault("QUIT", "drop"),)),
    normal("tarpit-quit", "silent at QUIT", faults=(SmtpFault("QUIT", "silence"),)),
    hostile("shut", "421 at the greeting", UNCLEAR, "connect", "shut"),
    hostile("shut-ehlo", "421 at EHLO", UNCLEAR, "EHLO", "shut"),
    hostile("shut-mail", "421 at MAIL", UNCLEAR, "MAIL", "shut"),
    hostile("shut-rcpt", "421 at RCPT", UNCLEAR, "RCPT", "shut"),
    hostile("loses-replies", "offers PIPELINING and loses a reply", TIMEOUT, "RCPT", "lose"),
    refusing("tls-broken", "offers STARTTLS, but the handshake fails", UNCLEAR, starttls="broken"),
)

EXCHANGES: tuple[Exchange, ...] = (*WELL_BEHAVED, *REFUSING, *LIMITING, *HOSTILE)
"""All of them, in an order that never changes: it gives them their addresses."""


# Words of letters, perhaps a number behind: names of people and offices; random probes never match.
NAME = re.compile(r"[^\W\d_]{1,11}(?:[._+-][^\W_]{1,14})*\d{0,4}")
ALWAYS = frozenset({"ada", "grace", "info", "postmaster"})
NEVER = frozenset({"nobody", "gone"})
UNKNOWN_IN_256 = 20  # about 8 %

GMAIL_UNKNOWN = (
    "550-5.1.1 The email account that you tried to reach does not exist. Please try\r\n"
    "550-5.1.1 double-checking the recipient's email address for typos or\r\n"
    "550 5.1.1 unnecessary spaces."
)
POSTFIX_UNKNOWN = (
    "550 5.1.1 <{address}>: Recipient address rejected: User unknown in virtual mailbox table"
)
EXCHANGE_UNKNOWN = "550 5.4.1 Recipient address rejected: Access denied. [{host}]"
OVER_QUOTA = "452 4.2.2 The email account that you tried to reach is over quota"
TOO_MUCH_MAIL = (
    "450 4.2.1 The user you are trying to contact is receiving mail at a rate that prevents "
    "delivery"
)


GMAIL_EHLO = "\r\n250".join(
    (
        "250-{host} at your service, [{client}]",
        "-SIZE 157286400",
        "-ENHANCEDSTATUSCODES",
        "-SMTPUTF8",
        " PIPELINING",
    )
)


class People:
    """A provider's mailboxes: plausible names but one in twelve, other ones for each.

    >>> people = People("bigmail")
    >>> "ada" in people, "nobody" in people, "x7k2v9q4m1z8r5t0" in people
    (True, False, False)
    """

    def __init__(self, provider: str) -> None:
        self.provider = provider

    def __contains__(self, local: object) -> bool:
        name = str(local).lower().partition("+")[0]
        if name in ALWAYS or name in NEVER:
            return name in ALWAYS
        drawn = hashlib.sha256(f"{name}@{self.provider}".encode()).digest()[0]
        return bool(NAME.fullmatch(name)) and drawn >= UNKNOWN_IN_256


def farm(provider: str, why: str, *labels: str, **habits: Any) -> tuple[Exchange, ...]:
    """The exchanges of one provider: the same people and habits on each."""
    habits = {"mailboxes": People(provider), **habits}
    hosts = [f"{label}.{provider}.example" for label in labels or ("mx1",)]
    return tuple(Exchange(host, why, address=EXCHANGE_ADDRESSES[host], **habits) for host in hosts)


PROVIDER_EXCHANGES: tuple[Exchange, ...] = (
    *farm(
        "bigmail",
        "refuses unknown users, accepts one domain per transaction",
        "mx1",
        "mx2",
        unknown=GMAIL_UNKNOWN,
        ehlo=GMAIL_EHLO,
        one_domain=True,
        smtputf8=True,
        special={"full": OVER_QUOTA, "popular": TOO_MUCH_MAIL},
    ),
    *farm(
        "skymail",
        "accepts ten recipients per transaction",
        "mx1",
        "mx2",
        unknown=EXCHANGE_UNKNOWN,
        max_recipients=10,
    ),
    *farm(
        "orchardmail",
        "refuses unknown users",
        special={"full": "552 5.2.2 <{address}>: user is over quota"},
    ),
    *farm("oldmail", "accepts every address, would send bounces later", mailboxes=None),
    *farm(
        "regionalmail",
        "slows down and closes after refusals, as Postfix does by default",
        "mx1",
        "mx2",
        slow_after=10,
        cut_after=20,
    ),
    *farm("privatemail", "offers STARTTLS", starttls="offered", smtputf8=True),
    *farm("throwaway", "accepts every address", mailboxes=None),
    *farm("hosting-one", "greylists", "mx1", "mx2", greylist=1.0),
    *farm("hosting-two", "one mailbox receives all mail", mailboxes=None),
    *farm(
        "office-suite",
        "does not support PIPELINING",
        "mx1",
        "mx2",
        extensions=("SIZE 37748736", "8BITMIME"),
    ),
    *farm(
        "cases", "serves the domains of the DNS cases", "mx1", "mx2", "mx3", unknown=POSTFIX_UNKNOWN
    ),
    Exchange("mx.listed.example", "on a DNS list", address=EXCHANGE_ADDRESSES["mx.listed.example"]),
    Exchange(
        "mx.pool.example",
        "on a list of dial-up pools",
        address=EXCHANGE_ADDRESSES["mx.pool.example"],
    ),
    Exchange(
        "mx.refusing-list.example",
        "on a list that refuses to answer",
        address=EXCHANGE_ADDRESSES["mx.refusing-list.example"],
    ),
    Exchange("implicit.example", "a domain without MX: its address is used", address="127.0.30.9"),
)
