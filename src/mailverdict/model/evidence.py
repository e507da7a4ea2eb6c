"""What the checks saw, by owner: an address, a domain, a mailbox. Evidence never judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from .words import Reason

__all__ = [
    "NO_MAIL",
    "Action",
    "BlacklistEvidence",
    "Classification",
    "DnsOutcome",
    "DomainEvidence",
    "Evidence",
    "Flags",
    "MailExchange",
    "MailboxEvidence",
    "SyntaxEvidence",
]


class DnsOutcome(StrEnum):
    """What the DNS says about mail for a domain."""

    MX = "mx"  # an MX RRset with at least one exchange
    IMPLICIT_MX = "implicit_mx"  # no MX RRset, but an address (RFC 5321 section 5.1)
    NULL_MX = "null_mx"  # "MX 0 ." (RFC 7505)
    NXDOMAIN = "nxdomain"  # the name does not exist
    NODATA = "nodata"  # the name exists, with neither MX nor address
    UNDETERMINED = "undetermined"  # time-out, SERVFAIL, REFUSED, broken answers: nothing is known


NO_MAIL: Mapping[DnsOutcome, str] = {
    DnsOutcome.NXDOMAIN: "the domain does not exist (NXDOMAIN)",
    DnsOutcome.NULL_MX: "the domain accepts no mail (null MX, RFC 7505)",
    DnsOutcome.NODATA: "the domain has neither an MX record nor an address",
}
"""The outcomes that establish that a domain receives no mail, with their messages."""


@dataclass(frozen=True, slots=True)
class MailExchange:
    """One mail exchange of a domain.

    Attributes
    ----------
    preference : int
        As in the MX RRset, 0-65535, lowest first; 0 for an implicit MX.
    host : str
        Lower-case A-label host name without the final dot.
    """

    preference: int
    host: str


@dataclass(frozen=True, slots=True)
class SyntaxEvidence:
    """What the syntax check saw.

    Attributes
    ----------
    ok : bool
        Whether the address is accepted.
    normalized : str
        The normal form (NFC local part, lower-case domain in U-labels); empty when not ok.
    local, ascii_domain : str
        The normal form's local part, and its domain in A-labels; empty when not ok.
    message : str
        Why not, in a sentence; empty when ok.
    """

    ok: bool
    normalized: str = ""
    local: str = ""
    ascii_domain: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class DomainEvidence:
    """What the DNS answered for a domain.

    Attributes
    ----------
    domain : str
        A-label domain that was asked.
    outcome : DnsOutcome
        What the answers amount to.
    exchanges : tuple of MailExchange
        By preference, lowest first; the domain itself for an implicit MX; empty otherwise.
    message : str
        What was seen, in a sentence; empty when the domain has exchanges.
    """

    domain: str
    outcome: DnsOutcome
    exchanges: tuple[MailExchange, ...] = ()
    message: str = ""

    @property
    def is_undeliverable(self) -> bool:
        """Whether it is established that the domain receives no mail."""
        return self.outcome in NO_MAIL


@dataclass(frozen=True, slots=True)
class BlacklistEvidence:
    """Whether an exchange of the domain is on a configured blacklist.

    Attributes
    ----------
    listed : bool or None
        None: undetermined, a source could not be asked.
    message : str
        Which exchange on which list, or what failed; empty when clean.
    sources : tuple of str
        The lists that were consulted; empty when none is configured.
    """

    listed: bool | None
    message: str = ""
    sources: tuple[str, ...] = ()


class Action(StrEnum):
    """What the client can do to get another answer for a recipient."""

    NONE = "none"
    USE_TLS = "use_tls"  # STARTTLS, then the same again
    USE_SMTPUTF8 = "use_smtputf8"  # MAIL with the SMTPUTF8 parameter (RFC 6531)
    BACK_OFF = "back_off"  # capacity: fewer sessions, later
    FEWER_RECIPIENTS = "fewer_recipients"  # the same recipient in another transaction
    ONE_DOMAIN = "one_domain"  # the same recipient in a transaction of its own domain
    WITHOUT_TLS = "without_tls"  # a new session without STARTTLS
    IN_STEP = "in_step"  # a new session without pipelining


@dataclass(frozen=True, slots=True)
class Classification:
    """The meaning of a reply, or of a failure in place of one."""

    reason: Reason | None  # None: the recipient was accepted
    rule: str  # name of the rule that decided
    error_code: str = "SMTP"  # for the payload's `errors`
    action: Action = Action.NONE  # what would give another answer
    retry_after: float | None = None  # seconds that the server asked to wait, or that are known to help


@dataclass(frozen=True, slots=True)
class MailboxEvidence:
    """What SMTP showed about one mailbox."""

    classification: Classification  # of the reply or failure that decided
    host: str = ""  # the exchange that gave it; empty when none was reached
    port_open: bool | None = None  # TCP connection made; None here and below: not reached
    connected: bool | None = None  # the session got as far as MAIL
    rcpt_accepted: bool | None = None
    catch_all: bool | None = None  # reply to a random local part of the domain; None: not established
    protected: bool | None = None  # True: this client was refused; False: a session completed
    reply: str = ""  # the deciding reply, or what the transport reported, on one line
    inferred: bool = False  # concluded from other replies of the exchange, without asking

    @property
    def reason(self) -> Reason | None:
        """None: the recipient was accepted."""
        return self.classification.reason


@dataclass(frozen=True, slots=True)
class Flags:
    """Facts from lists; None where a flag was never determined."""

    role: bool | None = None
    spamtrap: bool | None = None
    disposable: bool | None = None
    free: bool | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything seen about one address; a part that was not reached is None."""

    syntax: SyntaxEvidence
    dns: DomainEvidence | None = None
    blacklist: BlacklistEvidence | None = None
    mailbox: MailboxEvidence | None = None
    flags: Flags = field(default_factory=Flags)
