"""How a list is checked: who checks it, how far the run is, and how it ended.

What is checked, and what becomes of the result, is in `state`; the words and figures are in `checking`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..frames.verify import prepare as prepare_run
from ..model.paths import user_path
from ..model.words import Status, Verdict
from ..runs.options import Options, default_journal
from ..runs.progress import Progress
from ..runs.run import Run
from ..table.options import check_options
from .background import Background
from .checking import Rate, describe_end
from .listing import AuditedRows
from .source import readable
from .steps import Prepared, ResultInfo

UNSEEN = "Paused, since this page was closed for ten minutes."
UNCLEAR = (str(Verdict.UNKNOWN), str(Status.ERROR))  # what is asked again on request
INTERVAL = 0.1  # seconds between looks at a run; more often, and browsers become slow
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
        self.work, self.get_folder, self.clock = work, get_folder, clock
        self.rates: dict[str, float] = {}  # addresses a second, by depth
        self.is_running = self.is_unseen = False
        self.forget()

    def forget(self) -> None:
        """Forget the run: another list is loaded."""
        self.refresh(is_on=False)
        self.run: Run[Any] | None = None  # it has the frame of the list
        self.info: ResultInfo | None = None
        self.state = ""
        self.progress: Progress | None = None
        self.rate, self.moved_at = Rate(), 0.0

    # --- the next run -------------------------------------------------------------------------------------------------

    def refresh(self, *, is_on: bool) -> None:
        """Ask again about addresses without a clear answer in the next run; else the journal answers for them."""
        self.is_refreshing = is_on
        self.asked_since: float | None = (
            None  # when the run that did so began, if it is not over; seconds since 1970
        )

    def options(self, depth: str) -> Options:
        """The checked arguments of a run; a journal for this audit where pausing would lose what is checked."""
        settings = {
            "validation_type": depth,
            **self.settings,
            "refresh": UNCLEAR if self.is_refreshing else (),
        }
        options = check_options("Audit", settings)
        if (
            options.journal is None
            and self.settings.get("journal", "auto") == "auto"
            and not options.is_free
        ):
            options = check_options(
                "Audit", {**settings, "journal": self.get_folder() / "journal.db"}
            )
        return replace(options, settings=replace(options.settings, answered_since=self.asked_since))

    def can_resume(self, depth: str) -> bool:
        """Whether the next run can go on where this one stopped."""
        return self.options(depth).journal is not None

    def journal_path(self) -> Path | None:
        """The journal whose runs are listed."""
        given = self.settings.get("journal", "auto")
        if given is None:
            return None
        return default_journal() if given == "auto" else user_path(given)

    def label(self) -> str:
        """Who checks, in words."""
        return (
            readable(getattr(self.settings.get("backend"), "label", "") or self.service(), 80)
            or "this computer"
        )

    def service(self) -> str:
        """The address of the service that checks; empty for this computer."""
        backend = self.settings.get("backend")
        return backend if isinstance(backend, str) else str(getattr(backend, "base_url", ""))

    # --- the run ------------------------------------------------------------------------------------------------------

    def start(self, prepared: Prepared, info: ResultInfo, limit: int | None = None) -> None:
        """Start a run, which submits at most `limit` addresses."""
        if self.is_refreshing and self.asked_since is None:
            self.asked_since = time.time()
        options = replace(self.options(info.depth), columns="all", clean=True, progress=False)
        if limit is not None:
            options = replace(options, settings=replace(options.settings, limit=limit))
        self.run = prepare_run(prepared.frame, prepared.column, options, read=prepared.read)
        self.run._start()
        self.is_running, self.state, self.info = True, "running", info
        self.rate, self.progress, self.moved_at = Rate(self.clock), self.run.progress, self.clock()
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
        if (progress := self.run.progress) is not self.progress:
            self.show(progress)
        elif (idle := self.clock() - self.moved_at) >= IDLE_AFTER:
            text = f"No progress for {idle // IDLE_AFTER * IDLE_AFTER:.0f} seconds. Pause keeps what is checked."
            if self.work.messages["check"][0] != text:
                self.work.say("check", text, "idle")
                self.work.changed("check")
        return is_over

    def show(self, progress: Progress) -> None:
        """Show how far the run is."""
        before = self.progress.settled * 10 // max(self.progress.total, 1) if self.progress else 0
        self.progress, self.moved_at = progress, self.clock()
        self.rate.add(progress)
        now = progress.settled * 10 // max(progress.total, 1)
        if now != before and now < 10:
            self.work.spoken = f"{10 * now}% checked."
        if self.work.messages["check"][1] == "idle":
            self.work.say("check", "")
        self.work.changed("check")

    # --- its end ------------------------------------------------------------------------------------------------------

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
        options, progress = self.options(self.info.depth), self.run.progress
        has_limit = options.settings.limit is not None
        text, kind = describe_end(
            progress, self.run.notices, can_resume=options.journal is not None, has_limit=has_limit
        )
        if self.is_unseen and progress.state in ("cancelled", "stopped"):
            text, kind = (
                f"{UNSEEN} What is checked so far is kept. Press Resume to go on.",
                "warned",
            )
        self.work.say("check", text, kind)

    def end(self) -> None:
        """Note that the run is over."""
        assert self.run is not None
        assert self.info is not None
        self.is_running, self.state = False, self.run.progress.state
        self.rates[self.info.depth] = self.rate.per_second() or self.rates.get(self.info.depth, 0.0)
        if self.state == "done":  # else the next run goes on with this one
            self.refresh(is_on=False)
