"""How a list is checked: who checks it, what it costs, how far the run is, and how it ended.

`Check` is the run; the functions after it are its words and figures for the page. What is checked,
and what becomes of the result, is in `state`.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ..backend import Quota
from ..errors import ResolverError, TransportError
from ..frames.verify import prepare as prepare_run
from ..model.paths import user_path
from ..model.words import SOURCE_MEANING, Status, Verdict, count_of, percent
from ..runs.options import Options, default_journal
from ..runs.plan import Plan
from ..runs.progress import Progress, Rate
from ..runs.run import Run
from ..table.options import check_options
from .background import Background, logger
from .listing import AuditedRows
from .source import readable
from .steps import Planned, Prepared, ResultInfo
from .wording import duration_words, plain_words, sentence

UNSEEN = "Paused, since this page was closed for ten minutes."
KEPT = "What is checked so far is kept."
NO_ANSWER = "The verification service does not answer. Trying again; what is checked is kept."
UNCLEAR = (str(Verdict.UNKNOWN), str(Status.ERROR))  # what is asked again on request
INTERVAL = 0.1  # seconds between looks at a run; more often, and browsers become slow
SILENT_AFTER = 2.0  # seconds without an answer of a service after which that is said
IDLE_AFTER = 10.0  # seconds without progress after which the user is told so, again and again


class Check:
    """The last run on the list that is loaded, and how the next one is made."""

    def __init__(
        self,
        settings: dict[str, Any],
        work: Background,
        get_folder: Callable[[], Path],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings  # of `mailverdict.verify`
        self.work = work
        self.get_folder = get_folder
        self.clock = clock
        self.rates: dict[str, float] = {}  # addresses a second, by depth
        self.is_running = False
        self.is_unseen = False
        self.forget()

    def forget(self) -> None:
        """Forget the run: another list is loaded."""
        self.refresh(is_on=False)
        self.run: Run[Any] | None = None  # it has the frame of the list
        self.info: ResultInfo | None = None
        self.state = ""
        self.progress: Progress | None = None
        self.rate = Rate()
        self.moved_at = 0.0
        self.is_silent = False  # the service does not answer

    # --- the next run -----------------------------------------------------------------------------

    def refresh(self, *, is_on: bool) -> None:
        """Ask again about addresses without a clear answer in the next run.

        Otherwise the journal answers for them.
        """
        self.is_refreshing = is_on
        # When the run that did so began, if it is not over; seconds since 1970.
        self.asked_since: float | None = None

    def options(self, depth: str) -> Options:
        """The checked arguments of a run.

        It gets a journal for this audit where pausing would lose what is checked.
        """
        settings = {
            "validation_type": depth,
            **self.settings,
            "refresh": UNCLEAR if self.is_refreshing else (),
        }
        options = check_options("Audit", settings)
        is_auto = self.settings.get("journal", "auto") == "auto"
        if options.journal is None and is_auto and not options.is_free:
            settings["journal"] = self.get_folder() / "journal.db"
            options = check_options("Audit", settings)
        limits = replace(options.settings, answered_since=self.asked_since)
        return replace(options, settings=limits)

    def can_resume(self, depth: str) -> bool:
        """Whether the next run can go on where this one stopped."""
        return self.options(depth).journal is not None

    def journal_path(self) -> Path | None:
        """The journal whose runs are listed."""
        journal = self.settings.get("journal", "auto")
        if journal is None:
            return None
        if journal == "auto":
            return default_journal()
        return user_path(journal)

    def label(self) -> str:
        """Who checks, in words."""
        given = getattr(self.settings.get("backend"), "label", "")
        return readable(given or self.service(), 80) or "this computer"

    def service(self) -> str:
        """The address of the service that checks; empty for this computer."""
        backend = self.settings.get("backend")
        if isinstance(backend, str):
            return backend
        return str(getattr(backend, "base_url", ""))

    # --- the run ----------------------------------------------------------------------------------

    def start(self, prepared: Prepared, info: ResultInfo, limit: int | None = None) -> None:
        """Start a run, which submits at most `limit` addresses."""
        if self.is_refreshing and self.asked_since is None:
            self.asked_since = time.time()
        options = replace(self.options(info.depth), columns="all", clean=True, progress=False)
        if limit is not None:
            settings = replace(options.settings, limit=limit)
            options = replace(options, settings=settings)
        self.run = prepare_run(prepared.frame, prepared.column, options, read=prepared.read)
        self.run._start()
        self.is_running = True
        self.is_silent = False
        self.state = "running"
        self.info = info
        self.rate = Rate(self.clock)
        self.progress = self.run.progress
        self.moved_at = self.clock()
        self.work.say("check", "")
        self.work.spoken = "The check has started."

    def pause(self) -> None:
        """Stop the run; what is checked so far is kept."""
        if self.run is not None and self.is_running:
            self.run.cancel()
            self.state = "pausing"
            self.work.changed()

    def pause_unseen(self) -> None:
        """Stop the run, since nobody has looked at the page for long."""
        with self.work.lock:
            if self.is_running and not self.is_unseen:
                self.is_unseen = True
                self.pause()

    def follow(self) -> bool:
        """Show how far the run is; whether it is over."""
        assert self.run is not None
        with suppress(TimeoutError):
            self.run.wait(INTERVAL)
        is_over = self.run.done()
        self.look_for_trouble(is_over=is_over)
        progress = self.run.progress
        idle = self.clock() - self.moved_at
        if progress is not self.progress:
            self.show(progress)
        elif idle >= IDLE_AFTER and not self.is_silent:
            seconds = idle // IDLE_AFTER * IDLE_AFTER
            text = f"No progress for {seconds:.0f} seconds. Pause keeps what is checked."
            if self.work.messages["check"][0] != text:
                self.work.say("check", text, "idle")
                self.work.changed("check")
        return is_over

    def look_for_trouble(self, *, is_over: bool) -> None:
        """Say at once that the service does not answer, and take it back when it does."""
        execution = getattr(self.run, "_execution", None)
        get_silence = getattr(getattr(execution, "backend", None), "_silent_since", None)
        since = None if is_over or get_silence is None else get_silence()
        is_silent = since is not None and self.clock() - since >= SILENT_AFTER
        if is_silent == self.is_silent:
            return
        self.is_silent = is_silent
        if is_silent:
            self.work.say("check", NO_ANSWER, "warned")
        elif self.work.messages["check"][0] == NO_ANSWER:
            self.work.say("check", "")
        self.work.changed("check")

    def show(self, progress: Progress) -> None:
        """Show how far the run is."""
        before = 0
        if self.progress is not None:
            before = tenths(self.progress)
        self.progress = progress
        self.moved_at = self.clock()
        self.rate.add(progress)
        now = tenths(progress)
        if now != before and now < 10:
            self.work.spoken = f"{10 * now}% checked."
        if self.work.messages["check"][1] == "idle":
            self.work.say("check", "")
        self.work.changed("check")

    # --- its end ----------------------------------------------------------------------------------

    def take_rows(self) -> AuditedRows:
        """The rows of the run, which has them no longer itself."""
        assert self.run is not None
        assert self.info is not None
        rows = AuditedRows.of_run(
            self.run._build,  # type: ignore[arg-type]
            self.run._settled_table(),
            is_merged=self.info.made_from.merge,
        )
        self.run._replace_result(rows.to_frame)
        return rows

    def say_end(self) -> None:
        """Say how the run ended, and what to do next."""
        assert self.run is not None
        assert self.info is not None
        options = self.options(self.info.depth)
        progress = self.run.progress
        can_resume = options.journal is not None
        text, kind = describe_end(
            progress,
            self.run.notices,
            can_resume=can_resume,
            has_limit=options.settings.limit is not None,
        )
        future = self.run._future
        error = None
        if future is not None and progress.state == "failed":
            error = future.exception()
        if isinstance(error, TransportError):
            logger.warning("%s", error)
        if isinstance(error, TransportError | ResolverError):
            what_to_do = "Press Start again when it is back."
            if can_resume:
                what_to_do = f"{KEPT} Press Resume when it is back."
            text = f"{plain_words(error)} {what_to_do}"
        if self.is_unseen and progress.state in ("cancelled", "stopped"):
            text = f"{UNSEEN} {KEPT} Press Resume to go on."
            kind = "warned"
        self.work.say("check", text, kind)

    def end(self) -> None:
        """Note that the run is over."""
        assert self.run is not None
        assert self.info is not None
        self.is_running = False
        self.state = self.run.progress.state
        per_second = self.rate.per_second()
        if per_second:
            self.rates[self.info.depth] = per_second
        if self.state == "done":  # else the next run goes on with this one
            self.refresh(is_on=False)


# --- words and figures ----------------------------------------------------------------------------


QUOTA_RESET = "after 00:00 UTC"  # the contract: the day of a quota ends at midnight UTC


def describe_plan(planned: Planned, rate: float | None) -> dict[str, Any]:
    """What a check costs: figures with their units, and sentences."""
    plan = planned.plan
    addresses = planned.addresses
    if addresses is None:
        addresses = plan.unique
    figures = [
        figure(plan.rows, "row", "in the list"),
        figure(addresses, "address", "without repetitions"),
        figure(plan.to_submit, "address", "to check now"),
    ]
    notes = []
    if plan.missing:
        notes.append(f"{count_of(plan.missing, 'row is', 'rows are')} empty.")
    unusable = plan.malformed + plan.several
    if unusable:
        which = count_of(unusable, "row has", "rows have")
        notes.append(f"{which} no address that can be checked (free).")
    if planned.skipped:
        one = "row is suppressed or a duplicate"
        which = count_of(planned.skipped, one, "rows are suppressed or duplicates")
        notes.append(f"{which}: not checked (free).")
    if plan.known:
        notes.append(f"{count_of(plan.known, 'address')} {SOURCE_MEANING['journal']} (free).")
    if plan.in_flight:
        which = count_of(plan.in_flight, "address")
        notes.append(f"{which} already paid for; their answers are collected.")
    if plan.held:
        which = count_of(plan.held, "address")
        notes.append(f"{which} held back for a day: an earlier request for them was lost.")
    return {"figures": figures, "notes": notes, "cost": cost_of(plan), "time": time_of(plan, rate)}


def figure(number: int, noun: str, what: str) -> dict[str, str]:
    """A number, its unit in the right form, and what it counts."""
    _, _, unit = count_of(number, noun).partition(" ")
    return {"number": f"{number:,}", "unit": unit, "what": what}


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
        days = count_of(plan.days, "day")
        cost += f", on {days}: come back {QUOTA_RESET} each day and press Resume"
    most = plan.most_units or 0
    if most <= plan.to_submit:
        return f"{cost}."
    return f"{cost}. At most {most:,} if the service refuses some and is asked again."


def time_of(plan: Plan, rate: float | None) -> str:
    """The time that a check takes; empty where nothing is known about the pace."""
    today = plan.to_submit
    if plan.remaining is not None:
        today = min(today, plan.remaining)
    if not today or not rate:
        return ""
    words = duration_words(today / rate)
    if plan.days is not None and plan.days > 1:
        words += " today"
    return f"Takes {words}."


def is_short(plan: Plan) -> bool:
    """Whether the quota does not allow anything today, and nothing else can be done either."""
    return plan.remaining == 0 and plan.to_submit > 0 and not plan.in_flight


def next_day(now: datetime) -> datetime:
    """When the quota of a new day is available."""
    tomorrow = now.astimezone(UTC) + timedelta(days=1)
    return tomorrow.replace(hour=0, minute=0, second=0, microsecond=0)


def describe_progress(
    progress: Progress, rate: Rate, addresses: int | None = None
) -> dict[str, Any]:
    """How far a run is.

    `addresses` is how many of the different entries are addresses, where that is known.
    """
    unit = "row" if progress.unit == "rows" else "different entry"
    counts = dict(progress.verdicts)
    if progress.errors:
        counts["error"] = progress.errors
    pace = ""
    per_second = rate.per_second()
    if per_second is not None:
        pace = rate_text(per_second)
    known = ""
    if progress.from_journal:
        known = f"{count_of(progress.from_journal, unit)} {SOURCE_MEANING['journal']}"
    slow = time_left = message = ""
    if not progress.is_over:
        slow = slow_text(progress, rate)
        left = rate.seconds_left(progress)
        if left is not None:
            time_left = f"{duration_words(left)} left"
        if progress.message:
            message = sentence(progress.message)
    return {
        "settled": progress.settled,
        "total": progress.total,
        "percent": percent(progress.settled, progress.total),
        "label": f"{progress.settled:,} of {count_of(progress.total, unit)} checked",
        "counts": counts,
        "rate": pace,
        "slow": slow,
        "left": time_left,
        "entries": entries_text(progress, addresses),
        "known": known,
        "message": message,
        "quota": quota_text(progress.quota),
    }


GREYLISTED = re.compile(r"([\d,]+) greylisted, asked again in (\d+) s")


def slow_text(progress: Progress, rate: Rate) -> str:
    """What the run waits for; empty if it goes on."""
    greylisted = GREYLISTED.match(progress.message)
    if greylisted:
        count = int(greylisted[1].replace(",", ""))
        which = count_of(count, "address waits", "addresses wait")
        wait = duration_words(int(greylisted[2]))
        return f"{which}: the mail servers ask us to come again in {wait}."
    if progress.message:
        return sentence(progress.message)
    if not rate.is_slowing():
        return ""
    left = count_of(progress.total - progress.settled, "address")
    return f"The last {left} are at servers that answer slowly."


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
    if quota is None:
        return ""
    limit = count_of(quota.daily_limit, "address")
    return f"{quota.remaining:,} of {limit} of quota left today"


def tenths(progress: Progress) -> int:
    """How many tenths of a run are over."""
    return progress.settled * 10 // max(progress.total, 1)


def describe_end(
    progress: Progress, notices: list[str], *, can_resume: bool, has_limit: bool = False
) -> tuple[str, str]:
    """How a run ended and what to do next, and the kind of the message."""
    go_on = "Press Resume to go on." if can_resume else "Press Start again to check the whole list."
    left = count_of(progress.total - progress.settled, "address")
    text = ""
    kind = "done"
    if progress.state == "cancelled":
        text = f"Paused. {KEPT} {go_on}"
        kind = "warned"
    elif progress.state == "failed":
        text = f"{sentence(progress.message)} {KEPT} {go_on}"
        kind = "failed"
    elif progress.state == "stopped":
        kind = "warned"
        if progress.quota is not None and not progress.quota.remaining:
            text = f"Today's quota is used up. {left} left to check. Press Resume {QUOTA_RESET}."
        elif has_limit:
            text = f"Stopped as planned. {left} left to check. {go_on}"
        else:
            text = f"The service did not take or answer {left}. {KEPT} {go_on}"
    elif progress.problem:
        text = sentence(progress.problem)
        kind = "warned"
    return " ".join([text, *map(sentence, notices)]).strip(), kind
