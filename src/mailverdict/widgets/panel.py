"""The panel of an audit: what its controls do, the estimate, the run, and the threads that both use."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import ipywidgets as w
import pandas as pd

from ..backend import Quota
from ..errors import MailVerdictError, SettingsError
from ..frames.columns import check_column
from ..frames.options import split_options
from ..frames.planning import plan
from ..frames.policy import Policy
from ..frames.verify import start
from ..model.words import ValidationType
from ..reports.summary import MEANING_OF_VALID
from ..runs.options import Options
from ..runs.plan import Plan
from ..runs.progress import Progress
from ..runs.run import Run
from .controls import Form, set_choices
from .render import (
    ROOT_CLASS,
    STYLE,
    render_asked,
    render_examples,
    render_notice,
    render_plan,
    render_progress,
    render_quota,
    render_state,
    sentence,
)
from .results import Results
from .source import FilePicker, Source, read_frame, read_path

__all__ = ["INTERVAL", "LONG", "Background", "Panel", "follow"]

INTERVAL = 0.1  # seconds between updates; more often, and browsers become slow
LONG = 100  # intervals without progress after which the user is told so
logger = logging.getLogger("mailverdict")
NO_COLUMN = "No column looks like e-mail addresses: choose the one that holds them."
MESSAGE_KINDS = {"done": "done", "stopped": "warned", "cancelled": "warned", "failed": "failed"}  # by state of a run


class Background:
    """Daemon threads, so that the kernel answers clicks in the meantime and can exit at any time."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def start(self, work: Callable[[], object]) -> None:
        """Run `work` on a new thread."""
        thread = threading.Thread(target=work, name="mailverdict-audit", daemon=True)
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
    shown, still = None, 0
    while not run.done():
        if (progress := run.progress) is not shown:
            show(progress)
            shown, still = progress, 0
        elif still % LONG == 0:
            idle(still * interval)
        still += 1
        try:
            run.wait(interval)
        except TimeoutError:
            continue


class Panel:
    """The controls of an audit, the table that was loaded, and its last estimate, run and result."""

    def __init__(
        self,
        validation_type: str,
        settings: dict[str, Any],
        policy: Policy | str,
        folder: str | Path | None,
        *,
        allow_paths: bool,
    ) -> None:
        self.settings = settings  # of `mailverdict.verify`
        self.options = check_options(validation_type, self.settings)
        self.source: Source | None = None
        self.plan: Plan | None = None
        self.run: Run[Any] | None = None
        self.result: pd.DataFrame | None = None
        self.lock = threading.RLock()
        self.background = Background()
        self.estimates = 0
        self.is_running = False
        self.picker = FilePicker(self.show_source, self.show_message, allow_paths=allow_paths)
        self.form = Form()
        self.results = Results(
            policy, Path.cwd() if folder is None else Path(folder), self.as_callback, self.run_in_background
        )
        self.box = w.VBox([w.HTML(STYLE), self.picker.box, self.form.box, self.results.box])
        self.box.add_class(ROOT_CLASS)
        self.form.kind.value = str(self.options.validation_type)
        self.connect()
        self.show_type()

    def connect(self) -> None:
        """Connect the controls with what they do."""
        form, callback = self.form, self.as_callback
        self.picker.connect(callback)
        for control in (form.column, form.kind):
            control.observe(callback(form.quiet.unless(self.on_choice)), "value")
        form.go.on_click(callback(self.on_start))
        form.stop.on_click(callback(self.cancel))

    def as_callback(self, work: Callable[[], None]) -> Callable[..., None]:
        """Make a callback of `work`: one runs at a time, and an error becomes a message."""

        def alone() -> None:
            with self.lock:
                work()

        return self.show_errors_of(alone)

    def show_errors_of(self, work: Callable[[], None]) -> Callable[..., None]:
        """Turn an error into a message: what a callback or a thread raises is not shown anywhere."""

        @functools.wraps(work)
        def run(*_: Any) -> None:
            try:
                work()
            except MailVerdictError as exc:
                self.show_message(str(exc), "failed")
            except Exception as exc:
                logger.exception("the audit met an error")
                self.show_message(f"{type(exc).__name__}: {exc}", "failed")

        return run

    def run_in_background(self, work: Callable[[], None]) -> None:
        """Run `work` on a thread; an error becomes a message."""
        self.background.start(self.show_errors_of(work))

    def show_message(self, message: str, kind: str = "plain") -> None:
        """Show a message, or none."""
        self.form.notice.value = render_notice(message, kind)

    def load(self, data: Any, column: Hashable | None = None) -> None:
        """Load a frame or a file."""
        source = read_path(data) if isinstance(data, str | Path) else read_frame(data)
        names: list[Any] = list(source.frame.columns)
        if column is not None:
            check_column(column, names)
        self.show_source(source, None if column is None else names.index(column))

    def show_source(self, source: Source, at: int | None = None) -> None:
        """Show a table that was read, with its column chosen or guessed."""
        if self.is_running:
            raise SettingsError("a run is in progress; cancel it first")
        with self.lock, self.form.quiet:
            self.source, self.result, self.plan = source, None, None
            self.results.clear()
            chosen = source.guess() if at is None else at
            set_choices(self.form.column, [(label, i) for i, label in enumerate(source.labels)], chosen)
            self.picker.show_source(source)
            self.form.progress.value = self.form.state.value = ""
            self.form.go.description = "Verify"
        self.on_choice()

    def on_choice(self) -> None:
        """After a change of column or type: show what the type checks, and start the estimate."""
        self.show_type()
        self.plan = None
        self.form.estimate.value = self.form.examples.value = ""
        self.form.go.disabled = True
        at = self.form.column.value
        if self.source is None:
            return
        if at is None:
            self.show_message(NO_COLUMN, "warned")
            return
        self.show_message("")
        self.form.examples.value = render_examples(self.source.examples(at))
        self.start_estimate()

    def show_type(self) -> None:
        """Show what the chosen type checks, by which backend, and what its `valid` means."""
        kind = ValidationType(self.form.kind.value)
        self.form.asked.value = render_asked(kind, MEANING_OF_VALID[kind])
        if self.plan is None:
            self.form.quota.value = render_quota(self.backend_label(), None, is_known=False)

    def backend_label(self) -> str:
        """The backend in words."""
        if self.settings["backend"] is None:
            return "this machine"
        return str(getattr(self.options.backend, "base_url", None) or repr(self.options.backend))

    def start_estimate(self) -> None:
        """Estimate the cost on a thread: a service may be slow to return the quota."""
        self.estimates += 1
        number, call = self.estimates, self.arguments()
        if self.plan is None:
            self.form.estimate.value = render_notice("Estimating the cost…")
        self.run_in_background(lambda: self.compute_estimate(number, call))

    def compute_estimate(self, number: int, call: dict[str, Any]) -> None:
        """Make the estimate, and show it unless a newer one was started."""
        found: Plan | None = None
        try:
            found = plan(**call)
        finally:
            with self.lock:
                if number == self.estimates:
                    self.show_estimate(found)

    def show_estimate(self, found: Plan | None) -> None:
        """Show an estimate; without one the button estimates again instead of starting a run of unknown cost."""
        self.plan = found or self.plan
        form = self.form
        form.estimate.value = render_plan(self.plan) if self.plan else ""
        if self.plan:
            form.quota.value = render_quota(self.backend_label(), quota_of(self.plan), is_known=True)
        if not self.is_running:
            form.go.disabled = False
            form.go.description = "Try again" if self.plan is None else self.start_label()

    def arguments(self) -> dict[str, Any]:
        """The arguments that the estimate and the run share."""
        if self.source is None or self.form.column.value is None:
            raise SettingsError("load a table and choose its column first")
        frame, at = self.source.frame, self.form.column.value
        return {
            "data": frame,
            "column": frame.columns[at],
            "validation_type": self.form.kind.value,
            "columns": "all",
            "clean": True,
            **self.settings,
        }

    def on_start(self) -> None:
        """Start the run if its cost is shown; otherwise estimate again."""
        if self.plan is None:
            self.show_message("")
            self.start_estimate()
        else:
            self.verify()

    def verify(self) -> None:
        """Start the run, or go on where the last one stopped."""
        with self.lock:
            if self.is_running:
                return
            call = self.arguments()
            self.run = start(**call)
            self.set_running(is_running=True)
            self.show_message("")
            run = self.run
        self.run_in_background(lambda: self.watch_run(run, call["column"]))

    def set_running(self, *, is_running: bool) -> None:
        """Enable or disable the controls for the time of a run."""
        self.is_running = is_running
        self.picker.set_running(is_running=is_running)
        self.form.set_running(is_running=is_running)

    def cancel(self) -> None:
        """Stop the run; what is settled is kept."""
        if self.run is not None and self.is_running:
            self.run.cancel()
            self.form.stop.disabled = True

    def watch_run(self, run: Run[Any], column: Hashable) -> None:
        """Show the progress of a run, then its result."""
        follow(run, self.show_progress, self.show_idle)
        with self.lock:
            self.set_running(is_running=False)
            self.form.go.description = self.start_label()
            self.show_end(run)
            self.result = run.partial()
            assert self.source is not None
            self.results.fill(self.result, column, self.source.stem())
            if run.progress.state != "failed":
                self.start_estimate()

    def show_progress(self, progress: Progress) -> None:
        """Show the progress, the quota and the latest message."""
        form = self.form
        form.state.value = render_notice(render_state(progress))
        form.progress.value = render_progress(progress)
        if progress.quota is not None:
            form.quota.value = render_quota(self.backend_label(), progress.quota, is_known=True)
        if not progress.is_over:
            self.show_message(progress.message)

    def show_idle(self, seconds: float) -> None:
        """Say that there is no progress: the service may be slow or unreachable."""
        self.show_message(f"No progress for {seconds:.0f} seconds. Cancel keeps what is settled.")

    def show_end(self, run: Run[Any]) -> None:
        """Show how the run ended, and what to do next."""
        progress = run.progress
        self.show_progress(progress)
        kept = "What is settled is kept; press the button to go on." if progress.state == "failed" else ""
        said = [progress.message, kept, *run.notices]
        kind = "warned" if progress.problem and progress.state == "done" else MESSAGE_KINDS.get(progress.state, "plain")
        self.show_message(" ".join(sentence(each) for each in said if each), kind)

    def start_label(self) -> str:
        """The caption of the start button."""
        over = self.run.progress if self.run is not None else None
        is_part = over is not None and over.state in ("stopped", "cancelled", "failed")
        return "Resume" if is_part and self.has_journal() else "Verify"

    def has_journal(self) -> bool:
        """Whether the next run can go on where this one stopped."""
        options = check_options(self.form.kind.value, self.settings)
        return options.journal is not None


def check_options(validation_type: str, settings: dict[str, Any]) -> Options:
    """The checked arguments of `verify`, with its defaults for those that are not among the settings."""
    return Options.check(**split_options("Audit", {"validation_type": validation_type, **settings})[0])


def quota_of(found: Plan) -> Quota | None:
    """The quota that an estimate was computed with."""
    if found.daily_limit is None or found.remaining is None:
        return None
    return Quota(found.daily_limit, found.daily_limit - found.remaining, found.remaining)
