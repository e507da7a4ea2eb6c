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

__all__ = ["CLIENT_REFUSED", "UNCLEAR", "ClosedExchange", "ExchangeState"]

CLIENT_REFUSED = frozenset({Reason.PROTECTED, Reason.SENDER_BLOCKED})
MAX_FAILED_SESSIONS = 2  # sessions in a row that failed without an answer: the next one would fail too
DEAD_ADDRESSES = 3  # IP addresses of one exchange that may fail before the next exchange is tried
TRIAL_STEP = 1  # refusals added in a trial session: 9 + 1 is where a default Postfix begins to delay replies
TRIAL_WORTH = 20  # budgets of addresses that must wait for a trial, since a delayed QUIT costs about a second
# Standard deviations by which the refusals of a window may exceed the expected number within the budget:
SURE = 3.5  # a reply beyond the budget may be delayed by a second
SURE_IF_TOLERATED = 2.5  # where a session beyond it was not delayed
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
    budget_is_known: bool = False  # it has shown whether refusals delay its replies
    tolerates_refusals: bool = False  # it has shown that they do not
    is_on_trial: bool = False  # a session is trying a larger budget
    longest_quit: float = 0.0  # seconds from the last answer to the end of a session within the budget
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

    def grant_budget(self, waiting: int, *, is_pipelining: bool) -> int:
        """Return the refusal budget of a session; one session at a time tries a higher one if many addresses wait.

        A larger budget allows larger windows, so it only helps where the server pipelines.
        """
        larger = min(self.plan.refusal_budget + TRIAL_STEP, self.settings.refusal_budget_max)
        if self.budget_is_known or self.is_on_trial or not is_pipelining or waiting < TRIAL_WORTH * larger:
            return self.plan.refusal_budget
        self.is_on_trial = True
        return larger

    def window_size(self, request: WindowRequest) -> int:
        """Return how many recipients to ask at once, such that their refusals almost never exceed the budget.

        Refusals are assumed to be as frequent as they were at this exchange or in this session, whichever is more,
        and to vary as the Poisson distribution does. Without PIPELINING, a larger window is not faster.
        """
        if not request.can_pipeline:
            return request.size
        sure = SURE_IF_TOLERATED if self.tolerates_refusals else SURE
        share = max((self.refused + 1) / (self.answers + 1), request.refused / max(1, request.asked))
        root = (math.sqrt(sure**2 + 4 * request.size) - sure) / 2  # expected + sure * sqrt(expected) = size
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
                self.budget_is_known, self.tolerates_refusals = True, False
                self.plan = replace(self.plan, refusal_budget=lower(self.plan.refusal_budget, count - 1))

    def on_session_end(
        self, end: SessionEnd, budget: int, address: str, quit_seconds: float, late: float = 0.0
    ) -> None:
        """Take in how a session ended: its budget of refusals, its IP address, seconds from last answer to end.

        So many of these seconds as `late` may be a pause of this process.
        """
        if budget > self.plan.refusal_budget:
            self.is_on_trial = False
        if end.classification is None:
            self.assess_latency(end, quit_seconds, late)
        elif end.classification.action is Action.WITHOUT_TLS:
            self.plan = replace(self.plan, starttls="never")
        elif end.classification.action is Action.IN_STEP:
            self.plan = replace(self.plan, pipelining=False)
        elif end.classification.action is not Action.BACK_OFF:
            self.record_failure(end, address)

    def assess_latency(self, end: SessionEnd, quit_seconds: float, late: float) -> None:
        """Raise the budget if a session beyond it showed no extra latency, not even for the reply to QUIT.

        It was beyond the budget as a trial, or since more of a window were refused than expected. It shows nothing if
        the latency may be a pause of this process.
        """
        limit = self.longest_quit + self.plan.slow_by
        if end.refused <= self.plan.refusal_budget:
            self.longest_quit = max(self.longest_quit, quit_seconds - late)
        elif not self.budget_is_known and (quit_seconds <= limit or quit_seconds - late > limit):
            self.budget_is_known = True
            if quit_seconds <= limit:
                self.tolerates_refusals = True
                self.plan = replace(self.plan, refusal_budget=self.settings.refusal_budget_max)

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
