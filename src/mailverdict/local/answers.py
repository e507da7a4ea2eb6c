"""What replies, broken sessions and closed exchanges show about a mailbox: evidence, never a verdict. Pure."""

from __future__ import annotations

from dataclasses import replace

from ..checks.smtp.finding import Finding
from ..checks.smtp.reply import Reply
from ..checks.smtp.steps import Ended
from ..model.evidence import MailboxEvidence
from ..model.words import Reason
from .plan import ExchangeSet
from .politeness import Closed

__all__ = ["answer_evidence", "closed_evidence", "ended_evidence", "pick_closed"]

SHOWN = 400  # characters of a reply that are kept


def answer_evidence(host: str, finding: Finding, reply: Reply | None) -> MailboxEvidence:
    """What a reply to RCPT shows; a recipient that could not be asked has no reply."""
    return MailboxEvidence(
        reason=finding.reason,
        host=host,
        port_open=True,
        connected=True,
        rcpt_accepted=None if reply is None else finding.reason is None,
        protected=finding.reason is Reason.PROTECTED,
        reply=str(reply)[:SHOWN] if reply is not None else finding.rule.replace("_", " "),
        rule=finding.rule,
        error_code=finding.error_code,
        retry_after=finding.retry_after,
    )


def ended_evidence(host: str, end: Ended) -> MailboxEvidence:
    """What a session that broke shows about the address whose turn it was."""
    assert end.finding is not None
    return MailboxEvidence(
        reason=end.finding.reason,
        host=host,
        port_open=end.phase != "connect",
        connected=end.reached in ("ehlo", "mail") if end.phase != "connect" else None,
        protected=True if end.finding.reason is Reason.PROTECTED else None,
        reply=end.detail[:SHOWN],
        rule=end.finding.rule,
        error_code=end.finding.error_code,
        retry_after=end.finding.retry_after,
    )


def closed_evidence(host: str, closed: Closed) -> MailboxEvidence:
    """What is said of addresses whose exchange is left alone."""
    end = Ended(closed.finding, closed.phase, closed.detail, reached="ehlo" if closed.phase in ("mail", "rcpt") else "")
    evidence = ended_evidence(host, end)
    return replace(evidence, inferred=closed.is_inferred)


def pick_closed(exchanges: ExchangeSet, closed: list[Closed]) -> tuple[str, Closed]:
    """The first exchange that was left alone for more than a closed port, else the first."""
    pairs = [(host.host, host.closed) for host in exchanges.hosts if host.closed in closed and host.closed]
    spoke = [pair for pair in pairs if pair[1].finding.reason is not Reason.PORT_CLOSED]
    return (spoke or pairs)[0]
