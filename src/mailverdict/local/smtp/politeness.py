"""What is owed to one exchange: how many sessions, how large, how soon again, and when to leave it alone.

Pure: the clock and the jitter come from outside.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ...checks.smtp.classify.classification import (
    ABOUT_MAILBOX,
    Action,
    Classification,
    Failure,
    FailureKind,
    classify_failure,
)
from ...checks.smtp.protocol.steps import LimitObserved, SessionEnd, SessionPlan
from ...checks.smtp.providers import Provider
from ...checks.smtp.replies import Reply
from ...model.settings import LocalSettings
from ...model.words import Reason

__all__ = ["ClosedExchange", "ExchangeState"]

REFUSED_US = frozenset({Reason.PROTECTED, Reason.SENDER_BLOCKED})
FRUITLESS = 2  # sessions in a row that ended badly without one answer: the next one would too
DEAD_ADDRESSES = 3  # IP addresses of one exchange that may fail before the next exchange is tried
TRIAL_STEP = 1  # refusals beyond the budget: to the number from which a default Postfix takes its time
TRIAL_WORTH = 20  # budgets of waiting addresses that make a trial worth its risk, a farewell that takes a second
UNCLEAR = Classification(Reason.INCONCLUSIVE, "refused_in_passing")


@dataclass(frozen=True, slots=True)
class ClosedExchange:
    """Why an exchange is left alone for the rest of the run.

    Attributes
    ----------
    classification : Classification
        What it stands for; never something that only a mailbox can cause.
    detail : str
        What was seen.
    phase : str
        Where.
    reached : str
        Furthest phase that went well before, as in `SessionEnd`.
    is_inferred : bool
        Whether addresses that were not asked are told this all the same.
    """

    classification: Classification
    detail: str
    phase: str
    reached: str = ""
    is_inferred: bool = False


@dataclass(slots=True, eq=False)
class ExchangeState:
    """One exchange host during a run.

    Attributes
    ----------
    host : str
        Its name.
    settings : LocalSettings
        Limits and waits.
    plan : SessionPlan
        How the next session is held; sharpened by what was learned.
    provider : Provider or None
        What is known of it beforehand.
    addresses : tuple of str or None
        IP addresses that may be dialled; None: not looked up yet.
    active, limit : int
        Sessions under way, and at most at once; halved by capacity replies.
    not_before : float
        Clock reading before which no session is opened.
    strikes, refusals : int
        Capacity replies, and refusals of this client, since the last answer.
    fruitless : int
        Sessions in a row that ended badly without an answer.
    closed : ClosedExchange or None
        Why it is left alone.
    is_undialled : bool
        Whether it is left alone because there was no address to dial.
    budget_is_known : bool
        Whether it showed that it minds refusals, or that it does not.
    is_on_trial : bool
        Whether a session is trying a larger budget.
    pause : float
        Longest farewell of a session within the budget, in seconds.
    """

    host: str
    settings: LocalSettings
    plan: SessionPlan
    provider: Provider | None = None
    addresses: tuple[str, ...] | None = None
    active: int = 0
    limit: int = 0
    not_before: float = 0.0
    strikes: int = 0
    refusals: int = 0
    fruitless: int = 0
    closed: ClosedExchange | None = None
    is_undialled: bool = False
    budget_is_known: bool = False
    pause: float = 0.0
    is_on_trial: bool = False
    dead_addresses: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin with the configured number of sessions, and with what is known."""
        self.limit = self.limit or self.settings.max_sessions_per_exchange
        if self.provider is not None:
            most, one_domain = self.provider.rcpt_per_transaction, self.provider.one_domain
            self.learn(LimitObserved(rcpt_per_transaction=most, one_domain=one_domain))

    def open_addresses(self) -> tuple[str, ...]:
        """IP addresses that have not failed."""
        if not self.dead_addresses:
            return self.addresses or ()
        return tuple(a for a in self.addresses or () if a not in self.dead_addresses)

    def close(self, end: SessionEnd, *, inferred: bool = False) -> None:
        """Leave it alone for what ended a session; the first reason stays."""
        assert end.classification is not None
        classification = UNCLEAR if end.classification.reason in ABOUT_MAILBOX else end.classification
        self.closed = self.closed or ClosedExchange(classification, end.detail, end.phase, end.reached, inferred)

    def close_undialled(self, detail: str, classification: Classification | None = None) -> None:
        """There is no address that may be dialled."""
        self.is_undialled = True
        nothing = classify_failure(Failure(FailureKind.NOT_DIALLED))
        self.close(SessionEnd(classification or nothing, "connect", detail))

    # --- what a session is allowed ------------------------------------------------------------

    def grant_budget(self, waiting: int, *, is_pipelining: bool) -> int:
        """Refusals that a session may meet: where much waits, one goes a step beyond, to see what happens.

        A larger budget makes larger windows, so that nothing is gained in step.
        """
        larger = min(self.plan.refusal_budget + TRIAL_STEP, self.settings.refusal_budget_max)
        if self.budget_is_known or self.is_on_trial or not is_pipelining or waiting < TRIAL_WORTH * larger:
            return self.plan.refusal_budget
        self.is_on_trial = True
        return larger

    # --- what a session taught ----------------------------------------------------------------

    def answered(self, classification: Classification, reply: Reply) -> None:
        """An RCPT reply: refusals of us count in a row, anything else proves that it talks to us."""
        self.strikes = self.fruitless = 0
        if classification.reason is not Reason.PROTECTED:
            self.refusals = 0
            return
        self.refusals += 1
        if self.refusals >= self.settings.protected_after:
            self.close(SessionEnd(classification, "rcpt", str(reply), reached="mail"), inferred=True)

    def learn(self, seen: LimitObserved) -> None:
        """Keep to a limit that it showed."""
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
                self.budget_is_known = True
                self.plan = replace(self.plan, refusal_budget=lower(self.plan.refusal_budget, count - 1))

    def ended(self, end: SessionEnd, budget: int, address: str, pause: float) -> None:
        """Take in how a session ended.

        Parameters
        ----------
        end : SessionEnd
            How.
        budget : int
            Refusals it was granted.
        address : str
            With which of its addresses.
        pause : float
            Seconds from its last answer to its end: QUIT and its reply.
        """
        is_trial = budget > self.plan.refusal_budget
        if is_trial:
            self.is_on_trial = False
        if end.classification is None and is_trial:
            self.judge_trial(end, budget, pause)
        elif end.classification is None:
            self.pause = max(self.pause, pause)
        elif end.classification.action is Action.WITHOUT_TLS:
            self.plan = replace(self.plan, starttls="never")
        elif end.classification.action is Action.IN_STEP:
            self.plan = replace(self.plan, pipelining=False)
        elif end.classification.action is not Action.BACK_OFF:
            self.record_failure(end, address)

    def judge_trial(self, end: SessionEnd, budget: int, pause: float) -> None:
        """Who minds refusals takes its time from then on, even over the reply to QUIT; else the budget grows."""
        if end.refused < budget or self.budget_is_known:
            return
        self.budget_is_known = True
        if pause <= self.pause + self.plan.slow_by:
            self.plan = replace(self.plan, refusal_budget=self.settings.refusal_budget_max)

    def back_off(self, end: SessionEnd, now: float, jitter: float) -> None:
        """Half the sessions, and a wait that doubles; after too many in a row there is no use.

        Parameters
        ----------
        end : SessionEnd
            What was replied.
        now : float
            Clock reading.
        jitter : float
            From 0 to 1.
        """
        self.strikes += 1
        self.limit = max(1, self.limit // 2)
        if self.strikes > self.settings.capacity_attempts:
            self.close(end)
        wait = min(self.settings.backoff_min * 2 ** (self.strikes - 1), self.settings.backoff_max)
        self.not_before = max(self.not_before, now + wait * (0.5 + jitter))

    def record_failure(self, end: SessionEnd, address: str) -> None:
        """A session that ended badly: dead connections at once, refusals of us after a few, the rest after two."""
        assert end.classification is not None
        self.fruitless = 0 if end.asked else self.fruitless + 1
        if end.phase == "connect":
            self.dead_addresses.add(address)
            if len(self.dead_addresses) >= DEAD_ADDRESSES or not self.open_addresses():
                self.close(end)
        elif end.classification.reason in REFUSED_US and not end.asked:
            self.refusals += 1
            if self.refusals >= self.settings.protected_after:
                self.close(end, inferred=True)
        elif self.fruitless >= FRUITLESS:
            self.close(end)


def lower(value: int, seen: int | None) -> int:
    """The smaller of a limit and what was seen of it; at least one."""
    return value if seen is None else max(1, min(value, seen))
