"""The exchanges that the sandbox brings: one for every reason that SMTP can give, and for every hostile habit."""

from __future__ import annotations

from typing import Any

from ..model.words import Reason
from .smtp_script import Exchange, Fault

__all__ = ["EXCHANGES"]

NOT_FOUND, FULL, GREY = Reason.MAILBOX_NOT_FOUND, Reason.MAILBOX_FULL, Reason.GREYLISTED
PROTECTED, SENDER, UNCLEAR = Reason.PROTECTED, Reason.SENDER_BLOCKED, Reason.INCONCLUSIVE
TIMEOUT, DROPPED, NO_DATA = Reason.TIMEOUT, Reason.CONNECTION_DROPPED, Reason.NO_SMTP_DATA
EITHER = {"ada": None, "nobody": NOT_FOUND}


def normal(name: str, why: str, **habits: Any) -> Exchange:
    """An exchange that knows ada, and tells her from nobody."""
    return Exchange(f"mx.{name}.example", why, EITHER, **habits)


def refusing(name: str, why: str, becomes: Reason, **habits: Any) -> Exchange:
    """An exchange where asking about ada comes to nothing."""
    return Exchange(f"mx.{name}.example", why, {"ada": becomes}, **habits)


def hostile(name: str, why: str, becomes: Reason, at: str, does: str, text: str = "") -> Exchange:
    """An exchange where something goes wrong."""
    return refusing(name, why, becomes, faults=(Fault(at, does, text=text),))


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
            "busy": "450 4.2.1 The user you are trying to contact is receiving mail at a rate that prevents it",
            "later": "451 4.7.1 Please try again later",
            "odd": "550 Rejected",
        },
    ),
    normal("in-step", "no PIPELINING", extensions=("8BITMIME",)),
    normal("old", "knows HELO only", ehlo="502 5.5.2 Command not recognized"),
    Exchange("mx.catch-all.example", "accepts all", {"ada": None, "zq7k2v9x": None}, mailboxes=None),
    normal("starttls", "offers STARTTLS", starttls="offered"),
    normal("tls-only", "demands STARTTLS before MAIL", starttls="demanded"),
    Exchange(
        "mx.smtputf8.example",
        "takes internationalised mailboxes",
        {"zo\u00eb": None, "nobody": NOT_FOUND},
        mailboxes=frozenset({"zo\u00eb"}),
        smtputf8=True,
    ),
    Exchange("mx.ascii.example", "does not take them", {"zo\u00eb": UNCLEAR, "ada": None}),
)

REFUSING = (
    refusing("greylisting", "greylists, and says for how long", GREY, greylist=1.0),
    refusing(
        "blocklist", "our address, at the greeting", PROTECTED, greeting="554 5.7.1 {client} is listed in dnsbl.example"
    ),
    Exchange(
        "mx.blocklist-late.example",
        "our address, at RCPT",
        {"ada": PROTECTED, "nobody": PROTECTED},
        rcpt="554 5.7.1 Service unavailable; Client host [{client}] blocked using dnsbl.example",
    ),
    refusing("no-sender", "our sender, at MAIL", SENDER, mail="550 5.7.1 Sender rejected"),
    refusing(
        "no-helo", "our HELO name, at RCPT", SENDER, rcpt="504 5.5.2 <client>: Helo command rejected: need a name"
    ),
    refusing("relay", "does not serve the domain", SENDER, rcpt="554 5.7.1 <{address}>: Relay access denied"),
    Exchange("mx.mute.example", "all, without a word why", {"ada": UNCLEAR, "nobody": UNCLEAR}, rcpt="550 Rejected"),
    refusing("no-mail", "takes no mail (RFC 7504)", Reason.NO_MX_RECORD, greeting="521 {host} does not accept mail"),
    refusing(
        "null-mx", "its domain takes none (RFC 7505)", Reason.NO_MX_RECORD, rcpt="556 5.1.10 Recipient has null MX"
    ),
    refusing("disk-full", "has trouble of its own", UNCLEAR, mail="452 4.3.1 Insufficient system storage"),
    refusing("crowded", "too many connections", UNCLEAR, greeting="421 4.7.0 {host} Error: too many connections"),
)

LIMITING = (
    normal("few-recipients", "three recipients a transaction", max_recipients=3),
    normal("one-recipient", "one recipient a transaction", max_recipients=1),
    normal("short-session", "five recipients a session", max_per_session=5),
    normal("one-domain", "one domain a transaction", one_domain=True),
    normal("punishing", "slow after 10 refusals, cut at 20, as Postfix", slow_after=10, cut_after=20),
    normal("cutting", "cuts the session after 3 refusals", cut_after=3),
)

HOSTILE = (
    refusing("closed", "nobody listens", Reason.PORT_CLOSED, listens=False),
    hostile("tarpit", "never greets", TIMEOUT, "connect", "silence"),
    hostile("tarpit-ehlo", "silent at EHLO", TIMEOUT, "EHLO", "silence"),
    hostile("tarpit-mail", "silent at MAIL", TIMEOUT, "MAIL", "silence"),
    hostile("tarpit-rcpt", "silent at RCPT", TIMEOUT, "RCPT", "silence"),
    hostile("trickle", "a byte of greeting now and then", TIMEOUT, "connect", "trickle"),
    hostile("endless", "a greeting that never ends", UNCLEAR, "connect", "endless"),
    hostile("endless-ehlo", "an EHLO reply that never ends", UNCLEAR, "EHLO", "endless"),
    hostile("flood", "10 MB in one line", NO_DATA, "connect", "flood"),
    hostile("flood-rcpt", "10 MB in one line at RCPT", UNCLEAR, "RCPT", "flood"),
    hostile("http", "speaks HTTP", NO_DATA, "connect", "say", "HTTP/1.1 400 Bad Request\r\n\r\n"),
    hostile("binary", "speaks nothing", NO_DATA, "connect", "say", "\x16\x03\x01\x00\xff\x00\n"),
    hostile("garbage-rcpt", "garbage at RCPT", UNCLEAR, "RCPT", "say", "\x00\x01 what?\r\n"),
    hostile("mixed-codes", "a reply with two codes", UNCLEAR, "RCPT", "say", "250-Ok\r\n550 5.1.1 User unknown\r\n"),
    hostile("mixed-ehlo", "the same at EHLO", UNCLEAR, "EHLO", "say", "250-mx\r\n500 what\r\n"),
    refusing("two-greetings", "greets twice", UNCLEAR, greeting="220 {host} ESMTP\r\n220 {host} ESMTP"),
    hostile("hang-up", "ends before the greeting", NO_DATA, "connect", "drop"),
    hostile("reset", "resets before the greeting", NO_DATA, "connect", "reset"),
    hostile("drop-ehlo", "ends at EHLO", DROPPED, "EHLO", "drop"),
    hostile("reset-ehlo", "resets at EHLO", DROPPED, "EHLO", "reset"),
    hostile("drop-mail", "ends at MAIL", DROPPED, "MAIL", "drop"),
    hostile("drop-rcpt", "ends at RCPT", DROPPED, "RCPT", "drop"),
    hostile("reset-rcpt", "resets at RCPT", DROPPED, "RCPT", "reset"),
    normal("drop-quit", "ends at QUIT", faults=(Fault("QUIT", "drop"),)),
    normal("tarpit-quit", "silent at QUIT", faults=(Fault("QUIT", "silence"),)),
    hostile("shut", "421 at the greeting", UNCLEAR, "connect", "shut"),
    hostile("shut-ehlo", "421 at EHLO", UNCLEAR, "EHLO", "shut"),
    hostile("shut-mail", "421 at MAIL", UNCLEAR, "MAIL", "shut"),
    hostile("shut-rcpt", "421 at RCPT", UNCLEAR, "RCPT", "shut"),
    hostile("loses-replies", "offers PIPELINING and loses a reply", TIMEOUT, "RCPT", "lose"),
    refusing("tls-broken", "offers STARTTLS and cannot do it", UNCLEAR, starttls="broken"),
)

EXCHANGES: tuple[Exchange, ...] = (*WELL_BEHAVED, *REFUSING, *LIMITING, *HOSTILE)
"""All of them, in an order that never changes: it gives them their addresses."""
