"""What the checks saw, by owner: an address, a domain, a mailbox. Evidence never judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from .words import Reason


class DnsOutcome(StrEnum):
    """What the DNS says about mail for a domain."""

    MX = "mx"  # an MX RRset with at least one exchange
    IMPLICIT_MX = "implicit_mx"  # no MX RRset, but an address (RFC 5321 section 5.1)
    NULL_MX = "null_mx"  # "MX 0 ." (RFC 7505)
    # An MX RRset only of names that no other host has: localhost (RFC 6761, RFC 6762), or a number.
    NO_EXCHANGE = "no_exchange"
    NXDOMAIN = "nxdomain"  # the name does not exist
    NODATA = "nodata"  # the name exists, with neither MX nor address
    UNDETERMINED = "undetermined"  # time-out, SERVFAIL, REFUSED, broken answers: nothing is known


NO_MAIL: Mapping[DnsOutcome, str] = {
    DnsOutcome.NXDOMAIN: "the domain does not exist",
    DnsOutcome.NULL_MX: "the domain says that it accepts no mail (RFC 7505)",
    DnsOutcome.NO_EXCHANGE: "the only mail server has a name that no host on the Internet has",
    DnsOutcome.NODATA: "the domain exists, but has no mail server",
}
"""The outcomes that establish that a domain receives no mail, with their messages."""


class MailExchange(NamedTuple):
    """One mail exchange of a domain; sorted by preference, then host."""

    preference: int  # as in the MX RRset, 0-65535, lowest first; 0 for an implicit MX
    host: str  # lower-case A-label host name without the final dot


class SyntaxEvidence(NamedTuple):
    """What the syntax check saw; all texts but `message` are empty for a refused address."""

    ok: bool  # whether the address is accepted
    normalized: str = ""  # the normal form: NFC local part, lower-case domain in U-labels
    local: str = ""  # its local part
    ascii_domain: str = ""  # its domain in A-labels
    message: str = ""  # the fault, in a sentence; empty when ok


@dataclass(frozen=True, slots=True)
class DomainEvidence:
    """What the DNS answered for a domain."""

    domain: str  # in A-labels, as it was asked
    outcome: DnsOutcome
    exchanges: tuple[
        MailExchange, ...
    ] = ()  # lowest preference first; the domain itself for an implicit MX
    message: str = ""  # what was seen, in a sentence; empty when the domain has exchanges

    @property
    def is_undeliverable(self) -> bool:
        """Whether it is established that the domain receives no mail."""
        return self.outcome in NO_MAIL


@dataclass(frozen=True, slots=True)
class BlacklistEvidence:
    """Whether an exchange of the domain is on a configured blacklist."""

    listed: bool | None  # None: undetermined, since a source could not be asked
    message: str = ""  # which exchange on which list, or what failed; empty when not listed
    sources: tuple[str, ...] = ()  # the lists that were consulted; empty when none is configured


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
    retry_after: float | None = (
        None  # seconds that the server asked to wait, or that are known to help
    )


@dataclass(frozen=True, slots=True)
class MailboxEvidence:
    """What SMTP showed about one mailbox."""

    classification: Classification  # of the reply or failure that decided
    host: str = ""  # the exchange that gave it; empty when none was reached
    port_open: bool | None = None  # TCP connection made; None here and below: not reached
    connected: bool | None = None  # the session got as far as MAIL
    rcpt_accepted: bool | None = None
    catch_all: bool | None = (
        None  # reply to a random local part of the domain; None: not established
    )
    protected: bool | None = None  # True: this client was refused; False: a session completed
    reply: str = ""  # the deciding reply, or what the transport reported, on one line
    inferred: bool = False  # concluded from other replies of the exchange, without asking

    @property
    def reason(self) -> Reason | None:
        """None: the recipient was accepted."""
        return self.classification.reason


class Flags(NamedTuple):
    """Facts from lists; None where a flag was never determined."""

    role: bool | None = None
    spamtrap: bool | None = None
    disposable: bool | None = None
    free: bool | None = None


class Evidence(NamedTuple):
    """Everything seen about one address; a part that was not reached is None."""

    syntax: SyntaxEvidence
    dns: DomainEvidence | None = None
    blacklist: BlacklistEvidence | None = None
    mailbox: MailboxEvidence | None = None
    flags: Flags = Flags()
