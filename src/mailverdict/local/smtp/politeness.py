"""Limits of one exchange: how many sessions at once, how large, how soon again, and when to close it.

Pure: the clock and the jitter are parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from ...checks.smtp.classify.classification import ABOUT_MAILBOX, ConnectionFailure, FailureKind, classify_failure
from ...checks.smtp.protocol.steps import LimitObserved, SessionEnd, SessionPlan, WindowRequest
from ...checks.smtp.providers import Provider
from ...checks.smtp.replies import Reply
from ...model.evidence import Action, Classification
from ...model.settings import LocalSettings
from ...model.words import Reason

CLIENT_REFUSED = frozenset({Reason.PROTECTED, Reason.SENDER_BLOCKED})
MAX_FAILED_SESSIONS = 2  # sessions in a row that failed without an answer: the next one would fail too
DEAD_ADDRESSES = 3  # IP addresses of one exchange that may fail before the next exchange is tried
# Standard deviations by which the refusals of a window may exceed the expected number within the budget; a reply beyond
# the budget may be delayed by a second.
SURE = 3.5
UNCLEAR = Classification(Reason.INCONCLUSIVE, "refused_in_passing")


@dataclass(frozen=True, slots=True)
class ClosedExchange:
    """Why an exchange is not asked any more in this run."""

    classification: Classification  # never one that only a mailbox can cause
    detail: str  # the reply or failure
    phase: str
    reached: str = ""  # last phase that succeeded before, as in `SessionEnd`
    is_inferred: bool = False  # the classification also applies to addresses that were not asked


@dataclass(slots=True, eq=False)
class ExchangeState:
    """What was observed of one exchange."""

    name: str  # its host name
    settings: LocalSettings
    plan: SessionPlan  # of the next session; adapted to the limits that were observed
    provider: Provider | None = None
    addresses: tuple[str, ...] | None = None  # IP addresses that may be contacted; None: not looked up yet
    began: float = 0.0  # clock reading of the first observation
    runs: int = 0  # under way that use it
    limit: int = 0  # of sessions at once; halved by capacity replies
    not_before: float = 0.0  # clock reading before which no session is opened
    capacity_replies: int = 0  # since the last answer
    refusals: int = 0  # of this client, since the last other answer
    answers: int = 0  # to RCPT
    refused: int = 0  # of these answers
    failed_sessions: int = 0  # in a row, without an answer
    closed: ClosedExchange | None = None
    has_no_address: bool = False  # closed because there was no address to contact
    dead_addresses: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin with the configured number of sessions, and with what is known of the provider."""
        self.limit = self.limit or self.settings.max_sessions_per_exchange
        if self.provider is not None:
            most, one_domain = self.provider.rcpt_per_transaction, self.provider.one_domain
            self.observe_limit(LimitObserved(rcpt_per_transaction=most, one_domain=one_domain))

    def open_addresses(self) -> tuple[str, ...]:
        """IP addresses that have not failed."""
        if not self.dead_addresses:
            return self.addresses or ()
        return tuple(a for a in self.addresses or () if a not in self.dead_addresses)

    def close(self, end: SessionEnd, *, inferred: bool = False) -> None:
        """Stop asking this exchange because of what ended a session; the first reason stays."""
        assert end.classification is not None
        classification = UNCLEAR if end.classification.reason in ABOUT_MAILBOX else end.classification
        self.closed = self.closed or ClosedExchange(classification, end.detail, end.phase, end.reached, inferred)

    def close_without_address(self, detail: str, classification: Classification | None = None) -> None:
        """Close because the exchange has no address that may be contacted."""
        self.has_no_address = True
        not_dialled = classify_failure(ConnectionFailure(FailureKind.NOT_DIALLED))
        self.close(SessionEnd(classification or not_dialled, "connect", detail))

    def forget_failures(self) -> None:
        """Before the next run: the addresses may have changed, and may be reachable again; refusals are kept."""
        self.addresses, self.has_no_address, self.failed_sessions = None, False, 0
        self.dead_addresses.clear()
        if self.closed is not None and self.closed.classification.action is not Action.BACK_OFF:
            self.closed = self.closed if self.closed.classification.reason in CLIENT_REFUSED else None

    # --- what a session is allowed ------------------------------------------------------------

    def window_size(self, request: WindowRequest) -> int:
        """Return how many recipients to ask at once, such that their refusals almost never exceed the budget.

        Refusals are assumed to be as frequent as they were at this exchange or in this session, whichever is more,
        and to vary as the Poisson distribution does. Without PIPELINING, a larger window is not faster.
        """
        if not request.can_pipeline:
            return request.size
        share = max((self.refused + 1) / (self.answers + 1), request.refused / max(1, request.asked))
        root = (math.sqrt(SURE**2 + 4 * request.size) - SURE) / 2  # expected + SURE * sqrt(expected) = size
        return max(request.size, min(request.most, int(root**2 / share)))

    # --- what a session showed ----------------------------------------------------------------

    def on_reply(self, classification: Classification, reply: Reply, recipients: int = 1) -> None:
        """Take in the same reply about recipients: several refusals of this client in a row close the exchange."""
        self.capacity_replies = self.failed_sessions = 0
        self.answers += recipients
        if not reply.is_positive:
            self.refused += recipients
        if classification.reason is not Reason.PROTECTED:
            self.refusals = 0
            return
        self.refusals += recipients
        if self.refusals >= self.settings.protected_after:
            self.close(SessionEnd(classification, "rcpt", str(reply), reached="mail"), inferred=True)

    def observe_limit(self, seen: LimitObserved) -> None:
        """Lower the limits to what the server showed."""
        plan = self.plan
        self.plan = replace(
            plan,
            rcpt_per_transaction=lower(plan.rcpt_per_transaction, seen.rcpt_per_transaction),
            rcpt_per_session=lower(plan.rcpt_per_session, seen.rcpt_per_session),
            one_domain=plan.one_domain or seen.one_domain,
            pipelining=plan.pipelining and not seen.loses_replies,
        )
        for count in (seen.slowed_after, seen.cut_after):
            if count is not None:
                self.plan = replace(self.plan, refusal_budget=lower(self.plan.refusal_budget, count - 1))

    def on_session_end(self, end: SessionEnd, address: str) -> None:
        """Take in how a session at an IP address ended."""
        if end.classification is None:
            return
        if end.classification.action is Action.WITHOUT_TLS:
            self.plan = replace(self.plan, starttls="never")
        elif end.classification.action is Action.IN_STEP:
            self.plan = replace(self.plan, pipelining=False)
        elif end.classification.action is not Action.BACK_OFF:
            self.record_failure(end, address)

    def back_off(self, end: SessionEnd, now: float, jitter: float) -> None:
        """Halve the sessions and double the wait, with jitter (0 to 1); close after too many capacity replies."""
        self.capacity_replies += 1
        self.limit = max(1, self.limit // 2)
        if self.capacity_replies > self.settings.capacity_attempts:
            self.close(end)
        wait = min(self.settings.backoff_min * 2 ** (self.capacity_replies - 1), self.settings.backoff_max)
        self.not_before = max(self.not_before, now + wait * (0.5 + jitter))

    def record_failure(self, end: SessionEnd, address: str) -> None:
        """Close the exchange if three or all of its addresses are dead, or after repeated refusals or failures.

        These are `protected_after` refusals of this client, or two sessions in a row that failed without an answer.
        If the exchange has answered before, a single failed connection to its only address left closes nothing.
        """
        assert end.classification is not None
        self.failed_sessions = 0 if end.asked else self.failed_sessions + 1
        if end.phase == "connect":
            if self.answers and self.failed_sessions < MAX_FAILED_SESSIONS and self.open_addresses() == (address,):
                return
            self.dead_addresses.add(address)
            if len(self.dead_addresses) >= DEAD_ADDRESSES or not self.open_addresses():
                self.close(end)
        elif end.classification.reason in CLIENT_REFUSED and not end.asked:
            self.refusals += 1
            if self.refusals >= self.settings.protected_after:
                self.close(end, inferred=True)
        elif self.failed_sessions >= MAX_FAILED_SESSIONS:
            self.close(end)


def lower(value: int, seen: int | None) -> int:
    """The smaller of a limit and an observed one; at least 1."""
    return value if seen is None else max(1, min(value, seen))
