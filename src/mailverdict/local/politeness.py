"""What is owed to one exchange: how many sessions, how large, how soon again, and when to leave it alone.

Pure: the clock and the jitter come from outside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ..checks.smtp.failure import Failure, FailureKind, explain_failure
from ..checks.smtp.finding import Action, Finding
from ..checks.smtp.steps import Ended, Learned, SessionPlan
from ..model.settings import LocalSettings
from ..model.words import Reason

__all__ = ["Closed", "ExchangeState"]

REFUSED_US = frozenset({Reason.PROTECTED, Reason.SENDER_BLOCKED})
FRUITLESS = 2  # sessions in a row that ended badly without one answer: the next one would too


@dataclass(frozen=True, slots=True)
class Closed:
    """Why an exchange is left alone for the rest of the run.

    Attributes
    ----------
    finding : Finding
        What it stands for.
    detail : str
        What was seen.
    phase : str
        Where.
    is_inferred : bool
        Whether addresses that were not asked are told this all the same.
    """

    finding: Finding
    detail: str
    phase: str
    is_inferred: bool = False


@dataclass
class ExchangeState:
    """One exchange host during a run.

    Attributes
    ----------
    host : str
        Its name.
    settings : LocalSettings
        Limits and waits.
    addresses : tuple of str or None
        IP addresses that may be dialled; None: not looked up yet.
    active : int
        Sessions under way.
    limit : int
        Sessions at once; halved by capacity replies.
    not_before : float
        Clock reading before which no session is opened.
    strikes : int
        Capacity replies since the last answer.
    refusals : int
        Refusals of this client since the last answer.
    fruitless : int
        Sessions in a row that ended badly without an answer.
    closed : Closed or None
        Why it is left alone.
    plan : SessionPlan
        How the next session is held; sharpened by what was learned.
    budget_is_known : bool
        Whether it slowed or cut, so that the budget grows no more.
    """

    host: str
    settings: LocalSettings
    plan: SessionPlan
    addresses: tuple[str, ...] | None = None
    active: int = 0
    limit: int = 0
    not_before: float = 0.0
    strikes: int = 0
    refusals: int = 0
    fruitless: int = 0
    closed: Closed | None = None
    budget_is_known: bool = False
    dead_addresses: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin with the configured number of sessions."""
        self.limit = self.limit or self.settings.max_sessions_per_exchange

    def open_addresses(self) -> tuple[str, ...]:
        """IP addresses that have not failed."""
        return tuple(a for a in self.addresses or () if a not in self.dead_addresses)

    def close(self, finding: Finding, detail: str, phase: str = "connect", *, inferred: bool = False) -> None:
        """Leave it alone; the first reason stays."""
        self.closed = self.closed or Closed(finding, detail, phase, inferred)

    def close_undialled(self, detail: str) -> None:
        """There is no address that may be dialled."""
        self.close(explain_failure(Failure(FailureKind.NOT_DIALLED)), detail)

    # --- what a session taught ----------------------------------------------------------------

    def answered(self, finding: Finding) -> None:
        """An RCPT reply: refusals of us count in a row, anything else proves that it talks to us."""
        self.strikes = self.fruitless = 0
        self.refusals = self.refusals + 1 if finding.reason is Reason.PROTECTED else 0
        if self.refusals >= self.settings.protected_after:
            self.close(finding, "it refused this client several times in a row", "rcpt", inferred=True)

    def learn(self, seen: Learned) -> None:
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
                self.plan = replace(self.plan, refusal_budget=max(1, min(self.plan.refusal_budget, count - 1)))

    def ended(self, end: Ended, address: str, now: float, jitter: Callable[[], float]) -> None:
        """Take in how a session with one of its addresses ended."""
        if end.finding is None:
            self.earn(end)
            return
        self.fruitless = 0 if end.asked else self.fruitless + 1
        match end.finding.action:
            case Action.BACK_OFF:
                self.back_off(end, now, jitter)
            case Action.WITHOUT_TLS:
                self.plan = replace(self.plan, starttls="never")
            case Action.IN_STEP:
                self.plan = replace(self.plan, pipelining=False)
            case _:
                self.suffer(end, address)

    def earn(self, end: Ended) -> None:
        """A whole budget of refusals without slowing or cutting earns a larger one."""
        if end.refused >= self.plan.refusal_budget and not self.budget_is_known:
            larger = max(self.plan.refusal_budget, self.settings.refusal_budget_max)
            self.plan = replace(self.plan, refusal_budget=larger)

    def back_off(self, end: Ended, now: float, jitter: Callable[[], float]) -> None:
        """Half the sessions, and a wait that doubles; after too many in a row there is no use."""
        self.strikes += 1
        self.limit = max(1, self.limit // 2)
        if self.strikes > self.settings.capacity_attempts:
            assert end.finding is not None
            self.close(end.finding, end.detail, end.phase)
        wait = min(self.settings.backoff_min * 2 ** (self.strikes - 1), self.settings.backoff_max)
        self.not_before = now + wait * (0.5 + jitter())

    def suffer(self, end: Ended, address: str) -> None:
        """A session that ended badly: dead connections at once, refusals of us after a few, the rest after two."""
        assert end.finding is not None
        if end.phase == "connect":
            self.dead_addresses.add(address)
            if not self.open_addresses():
                self.close(end.finding, end.detail, end.phase)
            return
        if end.finding.reason in REFUSED_US and not end.asked:
            self.refusals += 1
            if self.refusals >= self.settings.protected_after:
                self.close(end.finding, end.detail, end.phase, inferred=True)
        elif self.fruitless >= FRUITLESS:
            self.close(end.finding, end.detail, end.phase)


def lower(value: int, seen: int | None) -> int:
    """The smaller of a limit and what was seen of it; at least one."""
    return value if seen is None else max(1, min(value, seen))
