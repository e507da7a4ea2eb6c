"""What a server is asked so that its other answers can be judged. Pure.

- A random address of a domain, once and only when it matters: a server that accepts it accepts every address.
- An address that the server accepted before, when it has refused several in a row: a server that refuses it now
  refuses everybody, as after too many unknown recipients, and its refusals show nothing about the mailboxes.
- `postmaster`, which every domain must accept (RFC 5321 section 4.5.1), in the same case where none was accepted.
"""

from __future__ import annotations

import random
import re
import string
from collections import Counter, defaultdict
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from ...checks.smtp.classify.classification import OUT_OF_STEP
from ...checks.smtp.classify.classifier import catch_all_of
from ...checks.smtp.replies import Reply
from ...model.evidence import Classification, MailboxEvidence
from ...model.words import Reason

TRIES = 2  # probes that get lost before what they ask is left undetermined
REFUSES_ACCEPTED = Classification(Reason.INCONCLUSIVE, "refuses_accepted_address")
NOT_CONFIRMED = Classification(Reason.INCONCLUSIVE, "refusal_not_confirmed")
NONE_ACCEPTED = Classification(Reason.INCONCLUSIVE, "no_address_accepted")
NOT_BELIEVED = {
    REFUSES_ACCEPTED.rule: "the server then refused an address that it had accepted before",
    NOT_CONFIRMED.rule: "an address that the server had accepted before could not be asked again",
    NONE_ACCEPTED.rule: "the server accepted no address, not even postmaster",
    OUT_OF_STEP.rule: "the server sent more replies than there were commands",
}  # why the refusal shows nothing about the mailbox, for the message of the row
SettledAnswers = list[tuple[int, MailboxEvidence]]  # positions of addresses, with their evidence
LETTERS = string.ascii_lowercase + string.digits


class Probe(NamedTuple):
    """One question to a server."""

    host: str  # whose answers it explains
    domain: int | None  # code of the domain whose random address is asked; None: one that should be accepted


class PendingAnswer(NamedTuple):
    """An answer that waits for the reply to the probe of its domain."""

    position: int
    address: str
    evidence: MailboxEvidence
    reply: Reply | None


def random_address(domain: str, rng: random.Random) -> str:
    """An address that does not exist: its local part is long and random.

    >>> len(random_address("example.org", random.Random(1)))
    28
    """
    return "".join(rng.choices(LETTERS, k=16)) + f"@{domain}"


class HostProbes:
    """The probes of one mail server: what it showed, and the answers that wait for it; by code of the domain."""

    def __init__(self) -> None:
        self.accepted = ""  # an address that it accepted, not a random one
        self.postmaster = ""  # the address that is asked as long as none was accepted
        self.is_selective = False  # whether it deferred an address: so it does not refuse everybody
        self.missing_in_a_row = 0  # mailboxes since then, over all sessions
        self.doubted: SettledAnswers = []  # missing mailboxes that wait for the reply to the accepted address
        self.addresses: dict[int, str] = {}  # kept, since greylisting needs the same address at the second attempt
        self.known: dict[int, bool | None] = {}
        self.pending: defaultdict[int, list[PendingAnswer]] = defaultdict(list)
        self.wanted: set[int] = set()
        self.lost: Counter[Probe] = Counter()
        self.refusals: dict[int, Reply | None] = {}  # the reply to a refused probe

    def address_of(self, code: int, domain: str, rng: random.Random) -> str:
        """The random address of a domain."""
        if code not in self.addresses:
            self.addresses[code] = random_address(domain, rng)
        return self.addresses[code]

    def add(self, code: int, answer: PendingAnswer) -> MailboxEvidence | None:
        """The final evidence if the domain is known; else keep the answer until it is."""
        if code in self.known:
            return self.complete(answer, code)
        self.pending[code].append(answer)
        return None

    def is_requested(self, code: int) -> bool:
        """Whether the probe of a domain was requested before, or is not needed."""
        return code in self.wanted or code in self.known

    def wants_probe(self, code: int) -> bool:
        """Whether a probe is to be sent; true once per domain."""
        if self.is_requested(code):
            return False
        self.wanted.add(code)
        return True

    def set_known(self, code: int, *, accepts_all: bool | None) -> None:
        """Settle a domain without a probe."""
        self.known.setdefault(code, accepts_all)

    def on_reply(self, code: int, classification: Classification, reply: Reply | None) -> SettledAnswers:
        """Take in the reply to a probe: it sets `catch_all`, and shows which refusals apply to every address."""
        self.known[code] = catch_all_of(classification)
        self.refusals[code] = reply if classification.reason is not None else None
        return self.release(code)

    def give_up(self, code: int) -> SettledAnswers:
        """Leave the domain undetermined; settle its answers without a probe result."""
        self.known[code] = None
        return self.release(code)

    def release(self, code: int) -> SettledAnswers:
        """The answers that waited for a domain."""
        return [(answer.position, self.complete(answer, code)) for answer in self.pending.pop(code, [])]

    def complete(self, answer: PendingAnswer, code: int) -> MailboxEvidence:
        """The evidence of an answer once its domain is known."""
        evidence = with_catch_all(answer.evidence, catch_all=self.known[code])
        if is_same_refusal(answer, self.refusals.get(code), self.addresses.get(code, "")):
            own = evidence.classification
            common = replace(own, reason=Reason.SENDER_BLOCKED, rule=f"{own.rule}+same_for_anyone")
            evidence = replace(evidence, classification=common)
        return evidence

    def count_loss(self, probe: Probe) -> bool:
        """Count a probe without an answer; return whether it is given up."""
        self.lost[probe] += 1
        return self.lost[probe] >= TRIES

    # --- an address that should be accepted ----------------------------------------------------------

    def doubt(self, missing: SettledAnswers, domain: str) -> bool:
        """Keep missing mailboxes until an address that should be accepted is asked; whether it has yet to be asked."""
        if not self.accepted:
            self.postmaster = self.postmaster or f"postmaster@{domain}"
        is_first = not self.doubted
        self.doubted += missing
        return is_first

    def release_doubted(self, doubt: Classification | None) -> SettledAnswers:
        """The mailboxes that waited: missing if there is no doubt, since the address that was asked is accepted."""
        doubted = self.take_doubted()
        if doubt is None:
            self.missing_in_a_row = 0
            return doubted
        return [(position, without_result(evidence, doubt)) for position, evidence in doubted]

    def take_doubted(self) -> SettledAnswers:
        """The mailboxes that waited, of which nothing is known yet."""
        doubted, self.doubted = self.doubted, []
        return doubted


@lru_cache(maxsize=4096)
def with_catch_all(evidence: MailboxEvidence, *, catch_all: bool | None) -> MailboxEvidence:
    """The evidence with what is known of the domain; cached, since most addresses are accepted in the same words."""
    return replace(evidence, catch_all=catch_all)


def without_result(evidence: MailboxEvidence, classification: Classification) -> MailboxEvidence:
    """The evidence of a refusal that shows nothing about the mailbox."""
    reply = f"{evidence.reply} ({NOT_BELIEVED[classification.rule]})"
    return replace(evidence, classification=classification, rcpt_accepted=None, catch_all=None, reply=reply)


def is_same_refusal(answer: PendingAnswer, reply: Reply | None, probe: str) -> bool:
    """Whether an ambiguous refusal has the same words as that of a random address: then it is about this client."""
    if answer.evidence.reason is None or answer.reply is None or reply is None:
        return False
    same_code = (answer.reply.code, answer.reply.enhanced_code) == (reply.code, reply.enhanced_code)
    return same_code and without_address(answer.reply.text, answer.address) == without_address(reply.text, probe)


def without_address(text: str, address: str) -> str:
    """The words of a reply without the address, its parts and what changes with every reply."""
    local = address.rpartition("@")[0]
    plain = text.lower().replace(address.lower(), "").replace(local.lower(), "")
    return re.sub(r"[0-9a-f-]{6,}|\d+|\s+", " ", plain).strip()
