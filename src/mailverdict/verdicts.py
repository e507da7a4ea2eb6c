"""From evidence to a decision: ordered reasons and a verdict.

Pure, and the only place that creates verdicts.

`settle` branches by validation type; the table `PRECEDENCE` orders the reasons and gives each its
verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from .model.evidence import NO_MAIL, DnsOutcome, DomainEvidence, Evidence, Flags, MailboxEvidence
from .model.verification import Fault, Verification
from .model.words import Reason, ValidationType, Verdict

# The first reason present decides. A reason that is not in the table (a service may send others)
# never decides.
PRECEDENCE: dict[Reason, Verdict] = {
    # Established refusals come first: nothing else matters for a mailbox that does not exist.
    Reason.SYNTAX_ERROR: Verdict.INVALID,
    Reason.NO_MX_RECORD: Verdict.INVALID,
    Reason.MAILBOX_NOT_FOUND: Verdict.INVALID,
    # True whether or not the mailbox exists, so a failed session does not hide them.
    Reason.SPAMTRAP: Verdict.RISKY,
    Reason.DISPOSABLE: Verdict.RISKY,
    # Nothing was established, in the order of the contract's table.
    Reason.GREYLISTED: Verdict.UNKNOWN,
    Reason.SENDER_BLOCKED: Verdict.UNKNOWN,
    Reason.TIMEOUT: Verdict.UNKNOWN,
    Reason.CONNECTION_DROPPED: Verdict.UNKNOWN,
    Reason.PORT_CLOSED: Verdict.UNKNOWN,
    Reason.MAILBOX_FULL: Verdict.UNKNOWN,  # may be emptied later: not an established refusal
    Reason.NO_SMTP_DATA: Verdict.UNKNOWN,
    Reason.INCONCLUSIVE: Verdict.UNKNOWN,
    Reason.PROTECTED: Verdict.UNKNOWN,
    Reason.THROTTLED: Verdict.UNKNOWN,
    Reason.RATE_LIMITED: Verdict.UNKNOWN,
    # These qualify an accepted recipient, so they need a completed session.
    Reason.CATCH_ALL: Verdict.RISKY,
    Reason.ROLE: Verdict.RISKY,
}
RANK = {reason: rank for rank, reason in enumerate(PRECEDENCE)}
SATURATION = {
    Reason.THROTTLED: "the verification queue stayed full; nothing was asked, ask again later",
    Reason.RATE_LIMITED: "the limiter refused the request; nothing was asked, ask again later",
}
NO_FLAGS = Flags()


class Decision(NamedTuple):
    """The verdict on one address, and what it follows from."""

    result: Verdict
    reasons: tuple[
        Reason, ...
    ] = ()  # in order of precedence; empty for types without an SMTP session
    checks: Mapping[str, bool] = MappingProxyType({})  # the sub-checks that gave an answer
    errors: tuple[Fault, ...] | None = None

    @property
    def reason(self) -> str | None:
        """The code of the first error: the payload key `reason`."""
        return self.errors[0].code if self.errors else None

    def to_verification(
        self,
        email: str,
        validation_type: str,
        *,
        flags: Flags = NO_FLAGS,
        mailbox: MailboxEvidence | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Verification:
        """The decision about one address as a value."""
        return Verification(
            email=email,
            validation_type=str(validation_type),
            result=str(self.result),
            reasons=tuple(map(str, self.reasons)),
            checks=self.checks,
            role=flags.role,
            spamtrap=flags.spamtrap,
            disposable=flags.disposable,
            free=flags.free,
            catch_all=mailbox.catch_all if mailbox else None,
            protected=mailbox.protected if mailbox else None,
            reason=self.reason,
            errors=self.errors,
            metadata=metadata or {},
        )


def order_reasons(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """Put reasons in order of precedence, each once.

    >>> [str(r) for r in order_reasons([Reason.ROLE, Reason.TIMEOUT])]
    ['timeout', 'role']
    """
    return tuple(sorted(set(reasons), key=RANK.__getitem__))


def verdict_of(reasons: tuple[Reason, ...]) -> Verdict:
    """The verdict of the first reason; `valid` when there is none.

    >>> str(verdict_of((Reason.TIMEOUT, Reason.ROLE)))
    'unknown'
    """
    return PRECEDENCE[reasons[0]] if reasons else Verdict.VALID


def contradiction_in(found: Verification) -> str:
    """Why the verdict of a service cannot follow from its own reasons and flags; empty if it can.

    A verdict stands if one of its reasons has it in `PRECEDENCE`, or if a reason is not in the
    table. `unknown` claims nothing, so nothing contradicts it. Types without an SMTP session are
    not decided by flags.

    >>> contradiction_in(Verification("ada@firm.com", "smtp", "invalid", ("greylisted",)))
    "'invalid', but by the contract greylisted means 'unknown'"
    >>> reasons = ("on_holiday", "greylisted")
    >>> contradiction_in(Verification("ada@firm.com", "smtp", "invalid", reasons))
    ''
    """
    if found.result == Verdict.UNKNOWN:
        return ""
    known = [Reason(each) for each in found.reasons if each in RANK]
    if not found.asked_mailbox:
        known = [each for each in known if PRECEDENCE[each] != Verdict.RISKY]
    may_be_another = found.result != Verdict.VALID and len(known) < len(found.reasons)
    if known and not may_be_another and found.result not in {PRECEDENCE[each] for each in known}:
        means = verdict_of(order_reasons(known))
        return f"{found.result!r}, but by the contract {', '.join(known)} means {str(means)!r}"
    if found.asked_mailbox and found.protected and found.result in (Verdict.VALID, Verdict.INVALID):
        return f"{found.result!r}, but by the contract the flag protected means 'unknown'"
    return ""


def settle(validation_type: ValidationType, evidence: Evidence) -> Decision:
    """Decide on one address from what the checks of its validation type observed.

    Raises ValueError if evidence that the type needs is missing although the checks before it
    passed.
    """
    if not evidence.syntax.ok:
        return settle_malformed(validation_type, evidence.syntax.message)
    if validation_type is ValidationType.REGEX:
        return Decision(Verdict.VALID, checks={"syntax": True})
    if evidence.dns is None:
        raise ValueError(f"{validation_type} needs DNS evidence")
    if validation_type is ValidationType.SMTP:
        return settle_mailbox(evidence.dns, evidence.mailbox, evidence.flags)
    return settle_domain(validation_type, evidence)


def settle_malformed(validation_type: ValidationType, message: str) -> Decision:
    """A malformed address: no further check applies."""
    reasons = (Reason.SYNTAX_ERROR,) if validation_type is ValidationType.SMTP else ()
    return Decision(Verdict.INVALID, reasons, {"syntax": False}, (Fault("REGEX", message),))


def settle_domain(validation_type: ValidationType, evidence: Evidence) -> Decision:
    """`mx` and `mx_blacklist`: whether the domain can receive mail, and is not listed."""
    dns = evidence.dns
    assert dns is not None
    if dns.outcome is DnsOutcome.UNDETERMINED:
        return Decision(Verdict.UNKNOWN, checks={"syntax": True}, errors=(dns_fault(dns),))
    checks = {"syntax": True, "dns": not dns.is_undeliverable}
    if dns.is_undeliverable:
        return Decision(Verdict.INVALID, checks=checks, errors=(dns_fault(dns),))
    if validation_type is ValidationType.MX:
        return Decision(Verdict.VALID, checks=checks)
    return settle_blacklist(evidence, checks)


def settle_blacklist(evidence: Evidence, checks: dict[str, bool]) -> Decision:
    """Listed is invalid, undetermined is unknown; without any list the check does not apply."""
    blacklist = evidence.blacklist
    if blacklist is None:
        raise ValueError("mx_blacklist needs blacklist evidence")
    if blacklist.listed is None:
        return Decision(
            Verdict.UNKNOWN, checks=checks, errors=(Fault("BLACKLIST", blacklist.message),)
        )
    if not blacklist.sources:
        return Decision(Verdict.VALID, checks=checks)
    checks = {**checks, "blacklist": not blacklist.listed}
    if blacklist.listed:
        return Decision(
            Verdict.INVALID, checks=checks, errors=(Fault("BLACKLIST", blacklist.message),)
        )
    return Decision(Verdict.VALID, checks=checks)


def settle_mailbox(dns: DomainEvidence, mailbox: MailboxEvidence | None, flags: Flags) -> Decision:
    """`smtp`: all reasons count, including those of the flags."""
    if mailbox is None and not dns.is_undeliverable and dns.outcome is not DnsOutcome.UNDETERMINED:
        raise ValueError("smtp needs mailbox evidence for a domain that has exchanges")
    found = flag_reasons(flags)
    faults: tuple[Fault, ...]
    if dns.outcome is DnsOutcome.UNDETERMINED:
        found.append(Reason.INCONCLUSIVE)
        checks, faults = {"syntax": True}, (dns_fault(dns),)
    elif dns.is_undeliverable or mailbox is None:
        found.append(Reason.NO_MX_RECORD)
        checks, faults = {"syntax": True, "dns": False}, (dns_fault(dns),)
    else:
        found += mailbox_reasons(mailbox)
        checks, faults = mailbox_checks(mailbox), mailbox_faults(mailbox)
    reasons = order_reasons(found)
    return Decision(verdict_of(reasons), reasons, checks, faults or None)


def flag_reasons(flags: Flags) -> list[Reason]:
    """The reasons from lists; `free` is a commercial signal and gives none."""
    by_flag = (
        (flags.spamtrap, Reason.SPAMTRAP),
        (flags.disposable, Reason.DISPOSABLE),
        (flags.role, Reason.ROLE),
    )
    return [reason for flag, reason in by_flag if flag]


def mailbox_reasons(mailbox: MailboxEvidence) -> list[Reason]:
    """The reasons from the session."""
    reasons = [] if mailbox.classification.reason is None else [mailbox.classification.reason]
    return [*reasons, Reason.CATCH_ALL] if mailbox.catch_all else reasons


def mailbox_checks(mailbox: MailboxEvidence) -> dict[str, bool]:
    """The contract's keys for the steps of a session that were reached; `smtp` sums them up."""
    steps = {
        "smtp_port": mailbox.port_open,
        "smtp_connection": mailbox.connected,
        "smtp_rcptto": mailbox.rcpt_accepted,
    }
    reached = {key: ok for key, ok in steps.items() if ok is not None}
    whole = {"smtp": mailbox.classification.reason is None} if reached else {}
    return {"syntax": True, "dns": True, **reached, **whole}


def mailbox_faults(mailbox: MailboxEvidence) -> tuple[Fault, ...]:
    """``SMTP`` first, as the contract requires; then the finer code if there is one."""
    if mailbox.classification.reason is None:
        return ()
    message = f"{mailbox.host}: {mailbox.reply}" if mailbox.host else mailbox.reply
    code = mailbox.classification.error_code
    finer = () if code == "SMTP" else (Fault(code, message),)
    return (Fault("SMTP", message), *finer)


def dns_fault(dns: DomainEvidence) -> Fault:
    """The error for a domain without a usable DNS answer."""
    return Fault("DNS", dns.message or NO_MAIL.get(dns.outcome, "the DNS gave no usable answer"))


def settle_saturated(reason: Reason) -> Decision:
    """`throttled` or `rate_limited`: this machine's queue or limiter refused.

    Nothing was asked.
    """
    return Decision(Verdict.UNKNOWN, (reason,), {}, (Fault(reason.upper(), SATURATION[reason]),))
