"""The third step of the audit: what a check costs, and how far a run is, in words and figures for the page."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from ..backend import Quota
from ..model.words import SOURCE_MEANING, count_of, percent
from ..runs.plan import Plan
from ..runs.progress import Progress
from .steps import Planned
from .wording import duration_words, sentence

QUOTA_RESET = "after 00:00 UTC"  # the contract: the day of a quota ends at midnight UTC


class Rate:
    """How many addresses a second a run settles. It needs some time to settle itself."""

    WINDOW = 30.0  # seconds
    LEAST_SECONDS = 3.0
    STEADY = 0.2  # the time left is another one on the page if it differs by this share

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.points: list[tuple[float, int]] = []
        self.first: tuple[float, int] | None = None
        self.shown_end: float | None = None  # when the run ends, as it was shown last

    def add(self, progress: Progress) -> None:
        """Note a reading; what came from the journal is not counted."""
        point = self.clock(), progress.settled - progress.from_journal
        self.first = self.first or point
        self.points.append(point)
        while len(self.points) > 2 and self.points[1][0] < point[0] - self.WINDOW:
            del self.points[0]

    def per_second(self) -> float | None:
        """The rate of the last part; None while too little is known."""
        return between(self.points[0], self.points[-1], self.LEAST_SECONDS) if self.points else None

    def is_slowing(self) -> bool:
        """Whether the last part is much slower than the whole run was: what is left is at slow servers."""
        whole = between(self.first, self.points[-1], self.WINDOW) if self.first else None
        recent = self.per_second()
        return whole is not None and (recent is None or recent < whole / 4)

    def seconds_left(self, progress: Progress) -> float | None:
        """The time that is left: by the rate, and not less than a service's limit says; None if neither is known."""
        rate, now = self.per_second(), self.clock()
        if rate is None:
            return None
        found = max((progress.total - progress.settled) / rate, progress.seconds_left or 0.0)
        # A figure that goes up and down with each reading tells nothing.
        shown = None if self.shown_end is None else self.shown_end - now
        if shown is None or shown <= 0 or abs(found - shown) > self.STEADY * max(found, shown):
            self.shown_end, shown = now + found, found
        return shown


def between(first: tuple[float, int], last: tuple[float, int], least: float) -> float | None:
    """The rate between two readings; None if less time passed, or nothing happened."""
    seconds, count = last[0] - first[0], last[1] - first[1]
    return count / seconds if seconds >= least and count > 0 else None


def describe_plan(planned: Planned, rate: float | None) -> dict[str, Any]:
    """What a check costs: figures with their units, and sentences."""
    plan, skipped = planned.plan, planned.skipped
    figures = [
        figure(plan.rows, "row", "in the list"),
        figure(
            plan.unique if planned.addresses is None else planned.addresses,
            "address",
            "without repetitions",
        ),
        figure(plan.to_submit, "address", "to check now"),
    ]
    notes = []
    if plan.missing:
        notes.append(f"{count_of(plan.missing, 'row is', 'rows are')} empty.")
    if unusable := plan.malformed + plan.several:
        notes.append(
            f"{count_of(unusable, 'row has', 'rows have')} no address that can be checked (free)."
        )
    if skipped:
        which = count_of(
            skipped, "row is suppressed or a duplicate", "rows are suppressed or duplicates"
        )
        notes.append(f"{which}: not checked (free).")
    if plan.known:
        notes.append(f"{count_of(plan.known, 'address')} {SOURCE_MEANING['journal']} (free).")
    if plan.in_flight:
        notes.append(
            f"{count_of(plan.in_flight, 'address')} already paid for; their answers are collected."
        )
    if plan.held:
        notes.append(
            f"{count_of(plan.held, 'address')} held back for a day: an earlier request for them was lost."
        )
    return {"figures": figures, "notes": notes, "cost": cost_of(plan), "time": time_of(plan, rate)}


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
        cost += (
            f", on {count_of(plan.days, 'day')}: come back {QUOTA_RESET} each day and press Resume"
        )
    extra = (plan.most_units or 0) > plan.to_submit
    most = (
        f" At most {plan.most_units:,} if the service refuses some and is asked again."
        if extra
        else ""
    )
    return f"{cost}.{most}"


def time_of(plan: Plan, rate: float | None) -> str:
    """The time that a check takes; empty where nothing is known about the pace."""
    today = plan.to_submit if plan.remaining is None else min(plan.to_submit, plan.remaining)
    if not today:
        return ""
    return (
        ""
        if not rate
        else f"Takes {duration_words(today / rate)}{' today' if (plan.days or 0) > 1 else ''}."
    )


def is_short(plan: Plan) -> bool:
    """Whether the quota does not allow anything today, and nothing else can be done either."""
    return plan.remaining == 0 and plan.to_submit > 0 and not plan.in_flight


def next_day(now: datetime) -> datetime:
    """When the quota of a new day is available."""
    return (now.astimezone(UTC) + timedelta(days=1)).replace(
        hour=0, minute=0, second=0, microsecond=0
    )


def describe_progress(
    progress: Progress, rate: Rate, addresses: int | None = None
) -> dict[str, Any]:
    """How far a run is; `addresses` is how many of the different entries are addresses, where that is known."""
    per_second = rate.per_second()
    left = rate.seconds_left(progress)
    unit = "row" if progress.unit == "rows" else "different entry"
    counts = {**progress.verdicts, **({"error": progress.errors} if progress.errors else {})}
    return {
        "settled": progress.settled,
        "total": progress.total,
        "percent": percent(progress.settled, progress.total),
        "label": f"{progress.settled:,} of {count_of(progress.total, unit)} checked",
        "counts": counts,
        "rate": "" if per_second is None else rate_text(per_second),
        "slow": "" if progress.is_over else slow_text(progress, rate),
        "left": "" if left is None or progress.is_over else f"{duration_words(left)} left",
        "entries": entries_text(progress, addresses),
        "known": f"{count_of(progress.from_journal, unit)} {SOURCE_MEANING['journal']}"
        if progress.from_journal
        else "",
        "message": "" if progress.is_over or not progress.message else sentence(progress.message),
        "quota": quota_text(progress.quota),
    }


GREYLISTED = re.compile(r"([\d,]+) greylisted, asked again in (\d+) s")


def slow_text(progress: Progress, rate: Rate) -> str:
    """What the run waits for; empty if it goes on."""
    if found := GREYLISTED.match(progress.message):
        count, seconds = int(found[1].replace(",", "")), int(found[2])
        verb = "waits" if count == 1 else "wait"
        return f"{count_of(count, 'address')} {verb}: the mail servers ask us to come again in {duration_words(seconds)}."
    if progress.message:
        return sentence(progress.message)
    left = progress.total - progress.settled
    return (
        f"The last {count_of(left, 'address')} are at servers that answer slowly."
        if rate.is_slowing()
        else ""
    )


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
        ""
        if quota is None
        else f"{quota.remaining:,} of {count_of(quota.daily_limit, 'address')} of quota left today"
    )


def describe_end(
    progress: Progress, notices: list[str], *, can_resume: bool, has_limit: bool = False
) -> tuple[str, str]:
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
        elif has_limit:
            said = f"Stopped as planned. {count_of(left, 'address')} left to check. {go_on}"
        else:
            said = f"The service did not take or answer {count_of(left, 'address')}. {kept} {go_on}"
    elif progress.problem:
        said, kind = sentence(progress.problem), "warned"
    return " ".join([said, *map(sentence, notices)]).strip(), kind
