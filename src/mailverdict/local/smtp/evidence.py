"""What a reply, the end of a session or a closed exchange shows about a mailbox. Pure."""

from __future__ import annotations

import random
import re
import string
from dataclasses import replace
from functools import lru_cache

from ...checks.smtp.classify.classification import ABOUT_MAILBOX, OUT_OF_STEP
from ...checks.smtp.classify.classifier import catch_all_of
from ...checks.smtp.protocol.steps import SessionEnd
from ...checks.smtp.replies import Reply
from ...model.evidence import Classification, MailboxEvidence
from ...model.words import Reason
from .queues import Route

SHOWN = 400  # characters of a reply that are kept
LETTERS = string.ascii_lowercase + string.digits
UNCLEAR = Classification(Reason.INCONCLUSIVE, "refused_in_passing")
REFUSES_ACCEPTED = Classification(Reason.INCONCLUSIVE, "refuses_accepted_address")
NOT_CONFIRMED = Classification(Reason.INCONCLUSIVE, "refusal_not_confirmed")
NONE_ACCEPTED = Classification(Reason.INCONCLUSIVE, "no_address_accepted")
# Why the refusal shows nothing about the mailbox, for the message of the row.
NOT_BELIEVED = {
    REFUSES_ACCEPTED.rule: "the server then refused an address that it had accepted before",
    NOT_CONFIRMED.rule: "an address that the server had accepted before could not be asked again",
    NONE_ACCEPTED.rule: "the server accepted no address, not even postmaster",
    OUT_OF_STEP.rule: "the server sent more replies than there were commands",
}
REPORT_ORDER: dict[Reason | None, int] = {Reason.PORT_CLOSED: 1, Reason.NO_MX_RECORD: 2}


@lru_cache(maxsize=4096)
def reply_evidence(
    host: str, classification: Classification, reply: Reply | None
) -> MailboxEvidence:
    """What a reply to RCPT shows; there is none where the recipient could not be asked.

    Cached, since a server repeats its replies: making the value takes five times as long as finding it.
    """
    reason = classification.reason
    return MailboxEvidence(
        classification,
        host=host,
        port_open=True,
        connected=True,
        rcpt_accepted=None if reply is None else reason is None,
        # A mailbox that is refused as unknown shows by itself that not every address is accepted.
        catch_all=catch_all_of(classification) if reason is Reason.MAILBOX_NOT_FOUND else None,
        protected=reason is Reason.PROTECTED,
        reply=str(reply)[:SHOWN] if reply is not None else classification.rule.replace("_", " "),
    )


def end_evidence(host: str, end: SessionEnd) -> MailboxEvidence:
    """What the end of a session shows about the address being asked; never that the mailbox does not exist."""
    classification = end.classification
    assert classification is not None
    if classification.reason in ABOUT_MAILBOX:
        classification = UNCLEAR
    return MailboxEvidence(
        classification,
        host=host,
        port_open=end.phase != "connect",
        connected=end.reached in ("ehlo", "mail") if end.phase != "connect" else None,
        protected=True if classification.reason is Reason.PROTECTED else None,
        reply=end.detail[:SHOWN],
    )


def closed_evidence(route: Route) -> MailboxEvidence:
    """What the closed exchanges of a domain show about its addresses: the first one that was reached, else the first.

    That a domain takes no mail at all (RFC 7504) is established only if every exchange replies so.
    """
    found = [
        (end_evidence(each.name, each.closed), each) for each in route.exchanges if each.closed
    ]
    evidence, exchange = min(found, key=lambda pair: REPORT_ORDER.get(pair[0].reason, 0))
    return replace(evidence, inferred=exchange.is_inferred)


@lru_cache(maxsize=4096)
def with_catch_all(evidence: MailboxEvidence, *, catch_all: bool | None) -> MailboxEvidence:
    """The evidence with what is known of the domain; cached, since most addresses are accepted in the same words."""
    return replace(evidence, catch_all=catch_all)


def without_result(evidence: MailboxEvidence, classification: Classification) -> MailboxEvidence:
    """The evidence of a refusal that shows nothing about the mailbox."""
    reply = f"{evidence.reply} ({NOT_BELIEVED[classification.rule]})"
    return replace(
        evidence, classification=classification, rcpt_accepted=None, catch_all=None, reply=reply
    )


def same_for_anyone(evidence: MailboxEvidence) -> MailboxEvidence:
    """The evidence of a refusal that every address of the domain gets."""
    own = evidence.classification
    common = replace(own, reason=Reason.SENDER_BLOCKED, rule=f"{own.rule}+same_for_anyone")
    return replace(evidence, classification=common)


def is_same_refusal(reply: Reply | None, address: str, other: Reply | None, probe: str) -> bool:
    """Whether an ambiguous refusal has the same words as that of a random address: then it is about this client."""
    if reply is None or other is None or reply.is_positive:
        return False
    same_code = (reply.code, reply.enhanced_code) == (other.code, other.enhanced_code)
    return same_code and without_address(reply.text, address) == without_address(other.text, probe)


def without_address(text: str, address: str) -> str:
    """The words of a reply without the address, its parts and what changes with every reply."""
    local = address.rpartition("@")[0]
    plain = text.lower().replace(address.lower(), "").replace(local.lower(), "")
    return re.sub(r"[0-9a-f-]{6,}|\d+|\s+", " ", plain).strip()


def random_address(domain: str, rng: random.Random) -> str:
    """An address that does not exist: its local part is long and random.

    >>> len(random_address("example.org", random.Random(1)))
    28
    """
    return "".join(rng.choices(LETTERS, k=16)) + f"@{domain}"
