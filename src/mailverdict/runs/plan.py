"""`Plan`: what a call would do and cost, calculated without spending anything. Pure functions.

260 rows, 250 addresses, a quota of 100 a day of which 60 are left -> daily_portions: 60 once,
100 once, 90 once -> 3 days, 3 bulk requests, done on the day after tomorrow
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from ..backend import Quota
from ..contract.envelope import BULK_LIMIT
from ..errors import SettingsError
from ..model.words import SOURCE_MEANING

LABELS = {
    "rows": "rows",
    "missing": "rows without an address (never sent)",
    "malformed": "rows with a malformed address (never sent)",
    "several": "rows with several addresses (never sent)",
    "unique": "distinct well-formed addresses",
    "domains": "  distinct domains of those",
    "given": "  settled by another verifier (never sent)",
    "known": f"  {SOURCE_MEANING['journal']}",
    "in_flight": "  submitted before, answer expected",
    "held": "  held back (an earlier submission was lost)",
    "to_submit": "  to verify now",
    "repaired": "    of those, only in cells that were repaired",
    "most_units": "units of quota at most, if refused and submitted again",
    "batches": "bulk requests",
    "daily_limit": "daily quota, in addresses",
    "remaining": "left of it today, in addresses",
    "days": "days needed",
    "done_on": "day on which all is done, first rows first (UTC)",
    "outdated": "  older than max_age by then, so verified again",
}
QUOTA_LABELS = {**LABELS, "to_submit": "  to submit, one unit of quota each"}
WHEN_NOT_ZERO = ("several", "given", "in_flight", "held", "repaired", "outdated")
DAY = 86_400.0  # seconds


@dataclass(frozen=True, slots=True)
class Plan:
    """What verifying a column would do and cost.

    Attributes
    ----------
    rows : int
        Rows of the column.
    missing : int
        Empty cells.
    malformed : int
        Rows that hold no well-formed address; settled here, never sent.
    unique : int
        Distinct well-formed addresses.
    known : int
        Of those, answered by the journal.
    in_flight : int
        Of those, paid for by an earlier call and not over.
    held : int
        Of those, not sent because an earlier submission may have been paid for.
    to_submit : int
        Of those, to be verified newly; with a `limit`, by this call.
    batches : int
        Bulk requests needed; 0 for a backend without a quota.
    daily_limit, remaining : int or None
        The quota, in addresses; None for a backend without one.
    days : int or None
        Days on which something is submitted until all is done; None without a quota, or with one
        that never allows it.
    most_units : int or None
        Units of quota that this can cost at most: addresses that the service's limiter refuses are
        submitted again, twice at most. None without a quota. The printed table has it if it is more
        than `to_submit`.
    done_on : datetime.date or None
        The day in UTC on which all is done if the rest of the quota is used on each day; None as
        for `days`.
    domains : int or None
        Distinct domains of the well-formed addresses: what the DNS is asked about. None if they
        were not counted.
    repaired : int or None
        Of the addresses to submit, at most how many are in no cell as it stands, but only in
        repaired ones: the units that ``clean=False`` would save. None if they were not counted, and
        without a quota.
    several : int
        Rows that hold several addresses; not verified, never sent.
    given : int
        Of the distinct addresses, settled by what was given as `known`: the units that this saves,
        but for those of addresses that the journal has, too.
    outdated : int
        Of those to submit, whose answers will be older than `max_age` on the day on which all is
        done: the first rows, which then take the quota of the last ones. 0 if `max_age` is longer
        than the list takes, and without a journal, which keeps no answers.

    Examples
    --------
    >>> from mailverdict import Quota
    >>> from mailverdict.runs.plan import plan_run
    >>> plan = plan_run(rows=260, missing=5, malformed=5, unique=250, quota=Quota(100, 0, 100))
    >>> plan.to_submit, plan.batches, plan.days
    (250, 3, 3)
    """

    rows: int
    missing: int
    malformed: int
    unique: int
    known: int
    in_flight: int
    held: int
    to_submit: int
    batches: int
    daily_limit: int | None
    remaining: int | None
    days: int | None
    most_units: int | None = None
    domains: int | None = None
    done_on: date | None = None
    repaired: int | None = None
    several: int = 0
    given: int = 0
    outdated: int = 0

    def __str__(self) -> str:
        """A small table."""
        lines = plan_lines(self)
        width = max(len(label) for label, _ in lines)
        digits = max(len(value) for _, value in lines)
        return "\n".join(f"{label:<{width}}  {value:>{digits}}" for label, value in lines)

    def __repr__(self) -> str:
        """The same table, for a prompt."""
        return str(self)

    def _repr_html_(self) -> str:
        """The table for notebooks."""
        from ..theme import notebook  # noqa: PLC0415 - only notebooks need it

        rows = []
        for label, value in plan_lines(self):
            text = label.lstrip()
            style = f"padding-left:{8 * (len(label) - len(text))}px"
            head = f'<th scope="row" style="{style}">{text}</th>'
            rows.append(f'<tr>{head}<td class="mv-number">{value}</td></tr>')
        return notebook(f"<table>{''.join(rows)}</table>")


def plan_lines(plan: Plan) -> list[tuple[str, str]]:
    """Labels and values, line by line; lines that do not apply are left out."""
    values: dict[str, Any] = {name: getattr(plan, name) for name in LABELS}
    for name in WHEN_NOT_ZERO:
        values[name] = values[name] or None
    labels = QUOTA_LABELS
    if plan.daily_limit is None:
        labels = LABELS
        values["batches"] = None
    elif plan.days is None:
        values["days"] = "never enough quota"
    if plan.most_units is None or plan.most_units <= plan.to_submit:
        values["most_units"] = None
    lines = []
    for name, value in values.items():
        if isinstance(value, int):
            lines.append((labels[name], f"{value:,}"))
        elif value is not None:
            lines.append((labels[name], str(value)))
    return lines


def plan_run(
    *,
    rows: int,
    missing: int,
    malformed: int,
    several: int = 0,
    unique: int,
    given: int = 0,
    known: int = 0,
    in_flight: int = 0,
    held: int = 0,
    quota: Quota | None = None,
    limit: int | None = None,
    repeats: int = 0,
    domains: int | None = None,
    repaired: int | None = None,
    today: date | None = None,
    max_age: float | None = None,
) -> Plan:
    """Calculate a plan from counts; a `SettingsError` if they contradict each other.

    `today` is that of UTC; `max_age` is in seconds, None if no answer is kept.
    """
    counts: dict[str, Any] = {
        "rows": rows,
        "missing": missing,
        "malformed": malformed,
        "several": several,
        "unique": unique,
        "given": given,
        "known": known,
        "in_flight": in_flight,
        "held": held,
    }
    left = unique - given - known - in_flight - held
    least_rows = missing + malformed + several + min(unique, 1)
    if min(counts.values()) < 0 or left < 0 or least_rows > rows:
        raise SettingsError(f"these counts do not add up: {counts}")
    to_submit = left if limit is None else min(left, limit)
    plan = Plan(
        **counts,
        to_submit=to_submit,
        batches=0,
        daily_limit=None,
        remaining=None,
        days=None,
        domains=domains,
    )
    if quota is None:
        return plan
    plan = replace(
        plan,
        daily_limit=quota.daily_limit,
        remaining=quota.remaining,
        most_units=to_submit * (1 + repeats),
        repaired=None if repaired is None else min(repaired, to_submit),
    )
    portions = daily_portions(to_submit, quota)
    if portions is None:
        return plan
    days = sum(times for _, times in portions)
    batches = sum(math.ceil(size / BULK_LIMIT) * times for size, times in portions)
    plan = replace(plan, days=days, batches=batches)
    today = today or datetime.now(UTC).date()
    done_on = day_when_done(to_submit, quota, today)
    if done_on is None or not to_submit:
        return plan
    outdated = 0
    if max_age is not None:
        outdated = count_outdated(to_submit, quota, (done_on - today).days, max_age)
    return replace(plan, done_on=done_on, outdated=outdated)


def day_when_done(to_submit: int, quota: Quota, today: date) -> date | None:
    """The day on which the last address is submitted; None if the quota never allows it.

    >>> day_when_done(250, Quota(100, 100, 0), date(2026, 11, 26))
    datetime.date(2026, 11, 29)
    """
    left = to_submit - min(to_submit, quota.remaining)
    if not left:
        return today
    if quota.daily_limit <= 0:
        return None
    return today + timedelta(days=math.ceil(left / quota.daily_limit))


def count_outdated(to_submit: int, quota: Quota, days: int, max_age: float) -> int:
    """How many answers are older than `max_age` seconds when the last ones come.

    These come so many `days` after the first ones.

    >>> count_outdated(450, Quota(100, 0, 100), 4, 2 * DAY)
    200
    """
    too_early = math.ceil(days - max_age / DAY)  # days whose answers are too old by then
    if too_early <= 0:
        return 0
    return min(to_submit, quota.remaining + (too_early - 1) * quota.daily_limit)


def daily_portions(to_submit: int, quota: Quota) -> list[tuple[int, int]] | None:
    """Pairs of addresses per day and number of such days; None if the quota never allows all."""
    today = min(to_submit, quota.remaining)
    left = to_submit - today
    if left and quota.daily_limit <= 0:
        return None
    portions = [(today, 1)]
    if left:
        full_days, rest = divmod(left, quota.daily_limit)
        portions += [(quota.daily_limit, full_days), (rest, 1)]
    return [(size, times) for size, times in portions if size and times]
