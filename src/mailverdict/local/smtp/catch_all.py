"""Whether a domain accepts every address: asked once per domain, and only when it matters. Pure."""

from __future__ import annotations

import random
import re
import string
from collections import Counter, defaultdict
from dataclasses import dataclass, replace

from ...checks.smtp.classify.classification import Classification
from ...checks.smtp.classify.classifier import catch_all_of
from ...checks.smtp.replies import Reply
from ...model.evidence import MailboxEvidence
from ...model.words import Reason

__all__ = ["CatchAllProbes", "PendingAnswer", "probe_address"]

TRIES = 2  # probes that got lost before the domain is left undetermined
Settled = list[tuple[int, MailboxEvidence]]
LETTERS = string.ascii_lowercase + string.digits


@dataclass(frozen=True, slots=True)
class PendingAnswer:
    """An address whose answer waits for what the domain says to a random one.

    Attributes
    ----------
    position : int
        In the batch.
    address : str
        As it was asked.
    evidence : MailboxEvidence
        What its own reply amounts to.
    reply : Reply or None
        Its own reply.
    """

    position: int
    address: str
    evidence: MailboxEvidence
    reply: Reply | None


def probe_address(domain: str, rng: random.Random) -> str:
    """A local part that nobody has: long, random, and plain.

    >>> len(probe_address("example.org", random.Random(1)))
    28
    """
    return "".join(rng.choices(LETTERS, k=16)) + f"@{domain}"


class CatchAllProbes:
    """What is known of domains, and who waits for it."""

    def __init__(self) -> None:
        self.probes: dict[int, str] = {}  # the same one, should it be asked again: greylisting goes by address
        self.known: dict[int, bool | None] = {}
        self.held: defaultdict[int, list[PendingAnswer]] = defaultdict(list)
        self.due: set[int] = set()
        self.lost: Counter[int] = Counter()
        self.refusals: dict[int, Reply | None] = {}  # what a random address was told

    def probe_of(self, code: int, domain: str, rng: random.Random) -> str:
        """The random address of a domain."""
        if code not in self.probes:
            self.probes[code] = probe_address(domain, rng)
        return self.probes[code]

    def hold(self, code: int, held: PendingAnswer) -> Settled:
        """Settle at once where the domain is known, else hold until it is."""
        if code in self.known:
            return [self.release(held, code)]
        self.held[code].append(held)
        return []

    def wants_probe(self, code: int) -> bool:
        """Whether a probe is to be sent, told once per domain."""
        if code in self.due or code in self.known:
            return False
        self.due.add(code)
        return True

    def note(self, code: int, *, accepts_all: bool | None) -> None:
        """Know a domain without a probe."""
        self.known.setdefault(code, accepts_all)

    def answered(self, code: int, classification: Classification, reply: Reply | None) -> Settled:
        """Take the reply to a probe: it sets `catch_all`, and shows which refusals were about us."""
        self.known[code] = catch_all_of(classification)
        self.refusals[code] = reply if classification.reason is not None else None
        return [self.release(held, code) for held in self.held.pop(code, [])]

    def release(self, held: PendingAnswer, code: int) -> tuple[int, MailboxEvidence]:
        """What an address amounts to once its domain is known."""
        evidence = replace(held.evidence, catch_all=self.known[code])
        if is_same_refusal(held, self.refusals.get(code), self.probes.get(code, "")):
            own = evidence.classification
            common = replace(own, reason=Reason.SENDER_BLOCKED, rule=f"{own.rule}+same_for_anyone")
            evidence = replace(evidence, classification=common)
        return held.position, evidence

    def is_lost(self, code: int) -> bool:
        """Note that a probe got no answer; whether to give up on the domain."""
        self.lost[code] += 1
        return self.lost[code] >= TRIES

    def give_up(self, code: int) -> Settled:
        """The domain stays undetermined; its addresses are settled with what their own replies say."""
        self.known[code] = None
        return [self.release(held, code) for held in self.held.pop(code, [])]


def is_same_refusal(held: PendingAnswer, reply: Reply | None, probe: str) -> bool:
    """Whether an ambiguous refusal was given to a random address in the same words: then it is about us."""
    if held.evidence.reason is None or held.reply is None or reply is None:
        return False
    same_code = (held.reply.code, held.reply.enhanced_code) == (reply.code, reply.enhanced_code)
    return same_code and without_address(held.reply.text, held.address) == without_address(reply.text, probe)


def without_address(text: str, address: str) -> str:
    """The words of a reply without the address, its parts and what changes with every reply."""
    local = address.rpartition("@")[0]
    plain = text.lower().replace(address.lower(), "").replace(local.lower(), "")
    return re.sub(r"[0-9a-f-]{6,}|\d+|\s+", " ", plain).strip()
