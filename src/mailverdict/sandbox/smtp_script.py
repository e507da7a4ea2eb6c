"""What a made-up exchange does, as values, and the table of exchanges that the sandbox brings.

Texts may hold ``{host}``, ``{address}`` (the recipient) and ``{client}`` (our IP address).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..model.words import Reason

__all__ = ["EXCHANGES", "Exchange", "Fault", "ask"]

NO_SUCH_USER = "550 5.1.1 <{address}>: Recipient address rejected: User unknown in virtual mailbox table"
GREYLISTED = "450 4.2.0 <{address}>: Recipient address rejected: Greylisted, please try again in {wait} seconds"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong.

    Attributes
    ----------
    at : str
        ``connect``, ``EHLO``, ``HELO``, ``MAIL``, ``RCPT``, ``RSET``, ``STARTTLS`` or ``QUIT``; at ``connect`` it
        comes instead of the greeting.
    does : str
        ``silence`` (no reply), ``drop`` (end the connection), ``reset`` (TCP RST), ``say`` (the bytes of `text`),
        ``shut`` (421 and end), ``endless`` (lines of a reply that never ends), ``flood`` (10 MB without a line
        end), ``trickle`` (a byte now and then), ``lose`` (skip this one reply).
    after : int
        How many of these commands go well in a session before.
    text : str
        For ``say``: what is sent, and the connection stays open.
    """

    at: str
    does: str
    after: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One made-up exchange.

    Attributes
    ----------
    host : str
        Its name, in the greeting.
    why : str
        What it is here for.
    expects : mapping of str to (Reason or None)
        Local parts worth asking about, with what should become of each; None: accepted.
    address : str
        Loopback address to listen on; empty: the next free one of 127.25.0.0/16.
    mailboxes : frozenset of str, optional
        Local parts that exist; None: all of them, the exchange is a catch-all.
    special : mapping of str to str
        Replies to RCPT by local part.
    greeting : str
        Lines of the greeting.
    extensions : tuple of str
        Offered after EHLO; STARTTLS and SMTPUTF8 come from their own settings.
    ehlo, mail, rcpt : str
        Reply instead of the usual one; empty: the usual one.
    unknown : str
        Reply to RCPT of a mailbox that does not exist.
    delay : float
        Seconds from a command to its reply: a round trip.
    starttls : str
        ``no``, ``offered``, ``demanded`` or ``broken`` (offered, and the handshake fails).
    smtputf8 : bool
        Whether internationalised mailboxes can be asked about.
    greylist : float
        Seconds that a recipient must wait after it was first asked about; 0: no greylisting.
    max_recipients, max_per_session : int
        Accepted recipients after which ``452 4.5.3`` comes, per transaction and session.
    one_domain : bool
        Whether a transaction takes recipients of one domain only.
    slow_after, slow_by : int, float
        Refusals in a session after which each reply takes so many seconds more; 0: never.
    cut_after : int
        Refusals in a session after which it is ended with 421; 0: never.
    faults : tuple of Fault
        What goes wrong.
    listens : bool
        False: nobody listens on its address.
    """

    host: str
    why: str
    expects: Mapping[str, Reason | None] = field(default_factory=dict)
    address: str = ""
    mailboxes: frozenset[str] | None = frozenset({"ada", "grace", "info"})
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
    faults: tuple[Fault, ...] = ()
    listens: bool = True

    @property
    def domain(self) -> str:
        """A domain that this could be the exchange of: its name without the first label."""
        return self.host.partition(".")[2]


def ask(reason: Reason | None = None, local: str = "ada") -> dict[str, Reason | None]:
    """One local part and what should become of it."""
    return {local: reason}


NOT_FOUND, FULL, GREY = Reason.MAILBOX_NOT_FOUND, Reason.MAILBOX_FULL, Reason.GREYLISTED
PROTECTED, SENDER, UNCLEAR = Reason.PROTECTED, Reason.SENDER_BLOCKED, Reason.INCONCLUSIVE
TIMEOUT, DROPPED, NO_DATA = Reason.TIMEOUT, Reason.CONNECTION_DROPPED, Reason.NO_SMTP_DATA
IN_STEP = ("8BITMIME",)

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
    Exchange("mx.in-step.example", "no PIPELINING", {"ada": None, "nobody": NOT_FOUND}, extensions=IN_STEP),
    Exchange("mx.old.example", "knows HELO only", {"ada": None, "nobody": NOT_FOUND}, ehlo="502 5.5.2 Command not recognized"),
    Exchange("mx.catch-all.example", "accepts every address", {"ada": None, "zq7k2v9x": None}, mailboxes=None),
    Exchange("mx.starttls.example", "offers STARTTLS", {"ada": None, "nobody": NOT_FOUND}, starttls="offered"),
    Exchange("mx.tls-only.example", "demands STARTTLS before MAIL", {"ada": None, "nobody": NOT_FOUND}, starttls="demanded"),
    Exchange("mx.smtputf8.example", "takes internationalised mailboxes", {"zoë": None, "nobody": NOT_FOUND}, mailboxes=frozenset({"zoë"}), smtputf8=True),
    Exchange("mx.ascii.example", "does not take them", {"zoë": UNCLEAR, "ada": None}),
)

REFUSING = (
    Exchange("mx.greylisting.example", "greylists, and says for how long", ask(GREY), greylist=1.0),
    Exchange("mx.blocklist.example", "refuses our address at the greeting", ask(PROTECTED), greeting="554 5.7.1 {host} {client} is listed in dnsbl.example"),
    Exchange(
        "mx.blocklist-late.example",
        "refuses our address at RCPT",
        {"ada": PROTECTED, "nobody": PROTECTED},
        rcpt="554 5.7.1 Service unavailable; Client host [{client}] blocked using dnsbl.example",
    ),
    Exchange("mx.no-sender.example", "refuses our sender at MAIL", ask(SENDER), mail="550 5.7.1 Sender rejected"),
    Exchange("mx.no-helo.example", "refuses our HELO name at RCPT", ask(SENDER), rcpt="504 5.5.2 <client>: Helo command rejected: need fully-qualified hostname"),
    Exchange("mx.relay.example", "does not serve the domain", ask(SENDER), rcpt="554 5.7.1 <{address}>: Relay access denied"),
    Exchange("mx.mute.example", "refuses everyone without a word why", {"ada": UNCLEAR, "nobody": UNCLEAR}, rcpt="550 Rejected"),
    Exchange("mx.no-mail.example", "takes no mail at all (RFC 7504)", ask(Reason.NO_MX_RECORD), greeting="521 {host} does not accept mail"),
    Exchange("mx.null-mx.example", "knows that the domain takes none (RFC 7505)", ask(Reason.NO_MX_RECORD), rcpt="556 5.1.10 Recipient address has null MX"),
    Exchange("mx.disk-full.example", "has trouble of its own", ask(UNCLEAR), mail="452 4.3.1 Insufficient system storage"),
    Exchange("mx.crowded.example", "has too many connections", ask(UNCLEAR), greeting="421 4.7.0 {host} Error: too many connections from {client}"),
)

LIMITING = (
    Exchange("mx.few-recipients.example", "three recipients a transaction", {"ada": None, "nobody": NOT_FOUND}, max_recipients=3),
    Exchange("mx.one-recipient.example", "one recipient a transaction", {"ada": None, "nobody": NOT_FOUND}, max_recipients=1),
    Exchange("mx.short-session.example", "five recipients a session", {"ada": None, "nobody": NOT_FOUND}, max_per_session=5),
    Exchange("mx.one-domain.example", "one domain a transaction", {"ada": None, "nobody": NOT_FOUND}, one_domain=True),
    Exchange("mx.punishing.example", "slow after 10 refusals, cut at 20, as Postfix", {"ada": None, "nobody": NOT_FOUND}, slow_after=10, cut_after=20),
    Exchange("mx.cutting.example", "cuts the session after 3 refusals", {"ada": None, "nobody": NOT_FOUND}, cut_after=3),
)

HOSTILE = (
    Exchange("mx.closed.example", "nobody listens", ask(Reason.PORT_CLOSED), listens=False),
    Exchange("mx.tarpit.example", "never greets", ask(TIMEOUT), faults=(Fault("connect", "silence"),)),
    Exchange("mx.tarpit-ehlo.example", "silent at EHLO", ask(TIMEOUT), faults=(Fault("EHLO", "silence"),)),
    Exchange("mx.tarpit-mail.example", "silent at MAIL", ask(TIMEOUT), faults=(Fault("MAIL", "silence"),)),
    Exchange("mx.tarpit-rcpt.example", "silent at RCPT", ask(TIMEOUT), faults=(Fault("RCPT", "silence"),)),
    Exchange("mx.trickle.example", "a byte of greeting now and then", ask(TIMEOUT), faults=(Fault("connect", "trickle"),)),
    Exchange("mx.endless.example", "a greeting that never ends", ask(UNCLEAR), faults=(Fault("connect", "endless"),)),
    Exchange("mx.endless-ehlo.example", "an EHLO reply that never ends", ask(UNCLEAR), faults=(Fault("EHLO", "endless"),)),
    Exchange("mx.flood.example", "10 MB in one line", ask(NO_DATA), faults=(Fault("connect", "flood"),)),
    Exchange("mx.flood-rcpt.example", "10 MB in one line at RCPT", ask(UNCLEAR), faults=(Fault("RCPT", "flood"),)),
    Exchange("mx.http.example", "speaks HTTP", ask(NO_DATA), faults=(Fault("connect", "say", text="HTTP/1.1 400 Bad Request\r\n\r\n"),)),
    Exchange("mx.binary.example", "speaks nothing", ask(NO_DATA), faults=(Fault("connect", "say", text="\x16\x03\x01\x00\xff\x00\n"),)),
    Exchange("mx.garbage-rcpt.example", "garbage at RCPT", ask(UNCLEAR), faults=(Fault("RCPT", "say", text="\x00\x01 what?\r\n"),)),
    Exchange("mx.mixed-codes.example", "one reply with two codes", ask(UNCLEAR), faults=(Fault("RCPT", "say", text="250-2.1.5 Ok\r\n550 5.1.1 User unknown\r\n"),)),
    Exchange("mx.mixed-ehlo.example", "the same at EHLO", ask(UNCLEAR), faults=(Fault("EHLO", "say", text="250-mx\r\n500 what\r\n"),)),
    Exchange("mx.two-greetings.example", "greets twice", ask(UNCLEAR), greeting="220 {host} ESMTP\r\n220 {host} ESMTP again"),
    Exchange("mx.hang-up.example", "ends before the greeting", ask(NO_DATA), faults=(Fault("connect", "drop"),)),
    Exchange("mx.reset.example", "resets before the greeting", ask(NO_DATA), faults=(Fault("connect", "reset"),)),
    Exchange("mx.drop-ehlo.example", "ends at EHLO", ask(DROPPED), faults=(Fault("EHLO", "drop"), Fault("HELO", "drop"))),
    Exchange("mx.reset-ehlo.example", "resets at EHLO", ask(DROPPED), faults=(Fault("EHLO", "reset"),)),
    Exchange("mx.drop-mail.example", "ends at MAIL", ask(DROPPED), faults=(Fault("MAIL", "drop"),)),
    Exchange("mx.drop-rcpt.example", "ends at RCPT", ask(DROPPED), faults=(Fault("RCPT", "drop"),)),
    Exchange("mx.reset-rcpt.example", "resets at RCPT", ask(DROPPED), faults=(Fault("RCPT", "reset"),)),
    Exchange("mx.drop-quit.example", "ends at QUIT", {"ada": None, "nobody": NOT_FOUND}, faults=(Fault("QUIT", "drop"),)),
    Exchange("mx.tarpit-quit.example", "silent at QUIT", {"ada": None, "nobody": NOT_FOUND}, faults=(Fault("QUIT", "silence"),)),
    Exchange("mx.shut.example", "421 at the greeting", ask(UNCLEAR), faults=(Fault("connect", "shut"),)),
    Exchange("mx.shut-ehlo.example", "421 at EHLO", ask(UNCLEAR), faults=(Fault("EHLO", "shut"),)),
    Exchange("mx.shut-mail.example", "421 at MAIL", ask(UNCLEAR), faults=(Fault("MAIL", "shut"),)),
    Exchange("mx.shut-rcpt.example", "421 at RCPT", ask(UNCLEAR), faults=(Fault("RCPT", "shut"),)),
    Exchange("mx.loses-replies.example", "offers PIPELINING and loses a reply", ask(TIMEOUT), faults=(Fault("RCPT", "lose", after=0),)),
    Exchange("mx.tls-broken.example", "offers STARTTLS and cannot do it", ask(UNCLEAR), starttls="broken"),
)  # fmt: skip

EXCHANGES: tuple[Exchange, ...] = (*WELL_BEHAVED, *REFUSING, *LIMITING, *HOSTILE)
"""One exchange for every reason that SMTP can give, and for every hostile habit that was seen or feared."""
