"""The third step of the audit: what a check costs, and how far a run is, in words and figures for the page."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from ..backend import Quota
from ..model.words import SOURCE_MEANING
from ..runs.plan import Plan
from ..runs.progress import Progress
from ..runs.run import Run
from .wording import DEPTHS, count_of, duration_words, percent, sentence

__all__ = [
    "IDLE_INTERVALS",
    "INTERVAL",
    "QUOTA_RESET",
    "Background",
    "Rate",
    "describe_end",
    "describe_plan",
    "describe_progress",
    "follow",
]

INTERVAL = 0.1  # seconds between updates; more often, and browsers become slow
IDLE_INTERVALS = 100  # intervals without progress after which the user is told so
QUOTA_RESET = "after 00:00 UTC"  # the contract: the day of a quota ends at midnight UTC


class Background:
    """Daemon threads, so that the kernel answers clicks in the meantime and can exit at any time."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self.lock = threading.Lock()  # or another start would leave out a thread that does not run yet

    def start(self, work: Callable[[], object]) -> None:
        """Run `work` on a new thread."""
        thread = threading.Thread(target=work, name="mailverdict-audit", daemon=True)
        with self.lock:
            self.threads = [earlier for earlier in self.threads if earlier.is_alive()] + [thread]
            thread.start()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until all threads have ended, or raise `TimeoutError` after `timeout` seconds."""
        until = None if timeout is None else time.monotonic() + timeout
        while alive := [thread for thread in self.threads if thread.is_alive()]:
            alive[0].join(INTERVAL)
            if until is not None and time.monotonic() > until:
                raise TimeoutError(f"not finished after {timeout} seconds")


def follow(
    run: Run[object], show: Callable[[Progress], None], idle: Callable[[float], None], interval: float = INTERVAL
) -> None:
    """Call `show` with each new progress of a run until its end, and `idle` when there is none for long."""
    shown, unchanged = None, 0
    while not run.done():
        if (progress := run.progress) is not shown:
            show(progress)
            shown, unchanged = progress, 0
        elif unchanged and unchanged % IDLE_INTERVALS == 0:
            idle(unchanged * interval)
        unchanged += 1
        try:
            run.wait(interval)
        except TimeoutError:
            continue


class Rate:
    """How many addresses a second a run settles, over its last part."""

    WINDOW = 20.0  # seconds

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.points: list[tuple[float, int]] = []

    def add(self, progress: Progress) -> None:
        """Note a reading; what came from the journal is not counted."""
        now = self.clock()
        self.points.append((now, progress.settled - progress.from_journal))
        while len(self.points) > 2 and self.points[1][0] < now - self.WINDOW:
            del self.points[0]

    def per_second(self) -> float | None:
        """The rate; None while too little is known."""
        if len(self.points) < 2:
            return None
        (start, before), (end, after) = self.points[0], self.points[-1]
        return (after - before) / (end - start) if end - start >= 1 and after > before else None

    def seconds_left(self, progress: Progress) -> float | None:
        """The time that is left: by the rate, and not less than the run itself says; None if neither is known."""
        rate = self.per_second()
        known = [] if progress.seconds_left is None else [progress.seconds_left]
        known += [] if rate is None else [(progress.total - progress.settled) / rate]
        return max(known, default=None)


def describe_plan(
    plan: Plan, backend: str, rate: float | None, depth: str, skipped: int = 0, addresses: int | None = None
) -> dict[str, Any]:
    """What a check costs: figures with their units, and sentences.

    `skipped` rows are not checked; `addresses` are the distinct ones with those of these rows, by default those of the
    plan.
    """
    figures = [
        figure(plan.rows, "row", "in the list"),
        figure(plan.unique if addresses is None else addresses, "address", "without repetitions"),
        figure(plan.to_submit, "address", "to check now"),
    ]
    notes = []
    if plan.missing:
        notes.append(f"{count_of(plan.missing, 'row is', 'rows are')} empty.")
    if unusable := plan.malformed + plan.several:
        notes.append(f"{count_of(unusable, 'row has', 'rows have')} no address that can be checked (free).")
    if skipped:
        which = count_of(skipped, "row is suppressed or a duplicate", "rows are suppressed or duplicates")
        notes.append(f"{which}: not checked (free).")
    if plan.known:
        notes.append(f"{count_of(plan.known, 'address')} {SOURCE_MEANING['journal']} (free).")
    if plan.in_flight:
        notes.append(f"{count_of(plan.in_flight, 'address')} already paid for; their answers are collected.")
    if plan.held:
        notes.append(f"{count_of(plan.held, 'address')} held back for a day: an earlier request for them was lost.")
    return {
        "figures": figures,
        "notes": notes,
        "cost": cost_of(plan),
        "time": time_of(plan, rate),
        "is_short": is_short(plan),
        "where": DEPTHS[depth][1],
        "backend": backend,
    }


def figure(number: int, noun: str, what: str) -> dict[str, str]:
    """A number, its unit in the right form, and what it counts."""
    return {"number": f"{number:,}", "unit": count_of(number, noun).partition(" ")[2], "what": what}


def cost_of(plan: Plan) -> str:
    """The cost in quota and days."""
    if plan.daily_limit is None:
        return "Costs nothing: this computer asks."
    left = f"{plan.remaining:,} of {count_of(plan.daily_limit, 'address')} left today"
    if not plan.to_submit:
        return f"Costs nothing more. Quota: {left}."
    cost = f"Costs {count_of(plan.to_submit, 'address')} of the quota ({left})"
    if plan.days is None:
        return f"{cost}. This service allows no addresses."
    if plan.days > 1:
        cost += f", on {count_of(plan.days, 'day')}: come back {QUOTA_RESET} each day and press Resume"
    extra = (plan.most_units or 0) > plan.to_submit
    most = f" At most {plan.most_units:,} if the service refuses some and is asked again." if extra else ""
    return f"{cost}.{most}"


def time_of(plan: Plan, rate: float | None) -> str:
    """The time that a check takes; empty where nothing is known about the pace."""
    today = plan.to_submit if plan.remaining is None else min(plan.to_submit, plan.remaining)
    if not today:
        return ""
    return "" if not rate else f"Takes {duration_words(today / rate)}{' today' if (plan.days or 0) > 1 else ''}."


def is_short(plan: Plan) -> bool:
    """Whether the quota does not allow anything today, and nothing else can be done either."""
    return plan.remaining == 0 and plan.to_submit > 0 and not plan.in_flight


def next_day(now: datetime) -> datetime:
    """When the quota of a new day is available."""
    return (now.astimezone(UTC) + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)


def describe_progress(progress: Progress, rate: Rate, addresses: int | None = None) -> dict[str, Any]:
    """How far a run is; `addresses` is how many of the different entries are addresses, where that is known."""
    per_second = rate.per_second()
    left = rate.seconds_left(progress)
    unit = "row" if progress.unit == "rows" else "different entry"
    counts = {**progress.verdicts, **({"error": progress.errors} if progress.errors else {})}
    return {
        "settled": progress.settled,
        "total": progress.total,
        "percent": percent(progress.settled, progress.total),
        "share": progress.settled / max(progress.total, 1),
        "label": f"{progress.settled:,} of {count_of(progress.total, unit)} checked",
        "counts": counts,
        "rate": "" if per_second is None else rate_text(per_second),
        "left": "" if left is None or progress.is_over else f"{duration_words(left)} left",
        "entries": entries_text(progress, addresses),
        "known": f"{count_of(progress.from_journal, unit)} {SOURCE_MEANING['journal']}"
        if progress.from_journal
        else "",
        "message": "" if progress.is_over or not progress.message else sentence(progress.message),
        "quota": quota_text(progress.quota),
    }


def entries_text(progress: Progress, addresses: int | None) -> str:
    """Why more entries are checked than there are addresses; empty if there are no more."""
    if addresses is None or progress.unit == "rows" or progress.total <= addresses:
        return ""
    others = progress.total - addresses
    verb = "is not an address" if others == 1 else "are not addresses"
    return f"{count_of(addresses, 'address')}, and {count_of(others, 'entry')} that {verb}"


def rate_text(per_second: float) -> str:
    """A rate per second, or per minute where it is small."""
    if per_second >= 1:
        return f"{round(per_second):,} a second"
    return f"{max(1, math.floor(60 * per_second)):,} a minute"


def quota_text(quota: Quota | None) -> str:
    return (
        "" if quota is None else f"{quota.remaining:,} of {count_of(quota.daily_limit, 'address')} of quota left today"
    )


def describe_end(progress: Progress, notices: list[str], *, can_resume: bool) -> tuple[str, str]:
    """How a run ended and what to do next, and the kind of the message."""
    kept = "What is checked so far is kept."
    go_on = "Press Resume to go on." if can_resume else "Press Start again to check the whole list."
    left = progress.total - progress.settled
    said, kind = "", "done"
    if progress.state == "cancelled":
        said, kind = f"Paused. {kept} {go_on}", "warned"
    elif progress.state == "failed":
        said, kind = f"{sentence(progress.message)} {kept} {go_on}", "failed"
    elif progress.state == "stopped":
        kind = "warned"
        if progress.quota is not None and not progress.quota.remaining:
            said = f"Today's quota is used up. {count_of(left, 'address')} left to check. Press Resume {QUOTA_RESET}."
        else:
            said = f"Stopped as planned. {count_of(left, 'address')} left to check. {go_on}"
    elif progress.problem:
        said, kind = sentence(progress.problem), "warned"
    return " ".join([said, *map(sentence, notices)]).strip(), kind
