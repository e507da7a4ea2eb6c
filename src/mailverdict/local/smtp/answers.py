"""What replies, broken sessions and closed exchanges show about a mailbox: evidence, never a verdict. Pure."""

from __future__ import annotations

from dataclasses import replace

from ...checks.smtp.classify.classification import ABOUT_MAILBOX, Classification
from ...checks.smtp.classify.classifier import catch_all_of
from ...checks.smtp.protocol.steps import Ended
from ...checks.smtp.replies import Reply
from ...model.evidence import MailboxEvidence
from ...model.words import Reason
from .politeness import UNCLEAR, Closed
from .queues import ExchangeSet

__all__ = ["answer_evidence", "closed_evidence", "ended_evidence", "pick_closed"]

SHOWN = 400  # characters of a reply that are kept


def answer_evidence(host: str, classification: Classification, reply: Reply | None) -> MailboxEvidence:
    """What a reply to RCPT shows; a recipient that could not be asked has no reply.

    A mailbox that is refused as unknown shows by itself that not every address is accepted.
    """
    reason = classification.reason
    return MailboxEvidence(
        reason=reason,
        host=host,
        port_open=True,
        connected=True,
        rcpt_accepted=None if reply is None else reason is None,
        catch_all=catch_all_of(classification) if reason is Reason.MAILBOX_NOT_FOUND else None,
        protected=reason is Reason.PROTECTED,
        reply=str(reply)[:SHOWN] if reply is not None else classification.rule.replace("_", " "),
        rule=classification.rule,
        error_code=classification.error_code,
        retry_after=classification.retry_after,
    )


def ended_evidence(host: str, end: Ended) -> MailboxEvidence:
    """What a session that broke shows about the address whose turn it was; never that there is no mailbox."""
    classification = end.classification
    assert classification is not None
    if classification.reason in ABOUT_MAILBOX:
        classification = UNCLEAR
    return MailboxEvidence(
        reason=classification.reason,
        host=host,
        port_open=end.phase != "connect",
        connected=end.reached in ("ehlo", "mail") if end.phase != "connect" else None,
        protected=True if classification.reason is Reason.PROTECTED else None,
        reply=end.detail[:SHOWN],
        rule=classification.rule,
        error_code=classification.error_code,
        retry_after=classification.retry_after,
    )


def closed_evidence(host: str, closed: Closed) -> MailboxEvidence:
    """What is said of addresses whose exchange is left alone."""
    end = Ended(closed.classification, closed.phase, closed.detail, reached=closed.reached)
    return replace(ended_evidence(host, end), inferred=closed.is_inferred)


def pick_closed(exchanges: ExchangeSet) -> tuple[str, Closed]:
    """Which of the exchanges that are left alone speaks for all: the first that tells most, and claims least.

    That one takes no mail at all (RFC 7504) is established only if every other one says so too.
    """
    pairs = [(host.host, host.closed) for host in exchanges.hosts if host.closed]
    return min(pairs, key=lambda pair: WEIGHT.get(pair[1].classification.reason, 0))


WEIGHT: dict[Reason | None, int] = {Reason.PORT_CLOSED: 1, Reason.NO_MX_RECORD: 2}
