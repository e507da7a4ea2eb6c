"""What a made-up exchange does, as values.

Texts may hold ``{host}``, ``{address}`` (the recipient) and ``{client}`` (our IP address).
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from ..model.words import Reason

__all__ = ["GREYLISTED", "Exchange", "Fault"]

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
    mailboxes : container of str, optional
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
    faults: tuple[Fault, ...] = ()
    listens: bool = True

    @property
    def domain(self) -> str:
        """A domain that this could be the exchange of: its name without the first label."""
        return self.host.partition(".")[2]
