"""Work beside the kernel's own thread, so that buttons are answered while it goes on."""

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

from ..backend import Backend, Quota
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

__all__ = ["INTERVAL", "Audit", "Background", "follow"]

INTERVAL = 0.1  # seconds between updates: ten a second is what a person sees and a browser bears
LONG = 100  # intervals without news after which a person wonders


class Background:
    """Threads that end by themselves and never keep a kernel from ending."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def start(self, work: Callable[[], object]) -> None:
        """Begin `work` on a thread of its own."""
        thread = threading.Thread(target=work, name="mailverdict-audit", daemon=True)
        self.threads = [earlier for earlier in self.threads if earlier.is_alive()] + [thread]
        thread.start()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until all is done, also what one piece of work has started.

        Raises
        ------
        TimeoutError
            If it is not after `timeout` seconds.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while alive := [thread for thread in self.threads if thread.is_alive()]:
            alive[0].join(INTERVAL)
            if until is not None and time.monotonic() > until:
                raise TimeoutError(f"not finished after {timeout} seconds")


def follow(
    run: Run[object], show: Callable[[Progress], None], idle: Callable[[float], None], interval: float = INTERVAL
) -> None:
    """Show a run's progress at intervals until it is over, and only what is new; tell when nothing is for long."""
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


logger = logging.getLogger("mailverdict")
NO_COLUMN = "No column looks like e-mail addresses: choose the one that holds them."
KINDS_OF_END = {"done": "done", "stopped": "warned", "cancelled": "warned", "failed": "failed"}


class Audit:
    """Verify a column interactively, in JupyterLab or as a page under Voila.

    Show it as the last line of a cell. The kernel stays free while a run goes on. What a service
    was paid for is journalled: pressing the button again goes on where the last run stopped, also
    in a new kernel.

    Parameters
    ----------
    df : DataFrame, Series or path, optional
        The rows, or a table file; without, the user chooses a file.
    backend : backend, str or None
        As in `mailverdict.verify`: None for this machine, or the URL of a verification service.
    column : hashable, optional
        The column to begin with; without, it is guessed.
    validation_type : {"mx", "regex", "mx_blacklist", "smtp"}
        The type to begin with.
    journal : ``"auto"``, path or None
        As in `mailverdict.verify`.
    screen : {"mx", None}
        As in `mailverdict.verify`.
    limit : int, optional
        As in `mailverdict.verify`, for each press of the button.
    policy : Policy or {"balanced", "strict", "lenient"}
        The policy to begin with.
    folder : path, optional
        Where files go that are too large for a link; the notebook's folder by default.
    allow_paths : bool, default True
        Whether files can be opened by their path. Turn it off where strangers use the page: they
        would read tables on the machine where the kernel runs.

    Attributes
    ----------
    result : DataFrame or None
        The rows of the last run with all result columns; rows that are not settled are ``pending``.
    plan : Plan or None
        The estimate that is shown.
    run : Run or None
        The last run.

    Raises
    ------
    SettingsError, InputError, ColumnError
        If an argument cannot work; no network is used.

    Examples
    --------
    >>> import pandas as pd
    >>> from mailverdict.widgets import Audit
    >>> audit = Audit(pd.DataFrame({"mail": ["ada@example.org", "nobody"]}), validation_type="regex")
    >>> audit.verify()
    >>> audit.wait()
    >>> audit.result["mail_verdict"].tolist()
    ['valid', 'invalid']
    """

    def __init__(
        self,
        df: Any = None,
        backend: Backend | str | None = None,
        *,
        column: Hashable | None = None,
        validation_type: str = "mx",
        journal: str | Path | None = "auto",
        screen: str | None = None,
        limit: int | None = None,
        policy: Policy | str = "balanced",
        folder: str | Path | None = None,
        allow_paths: bool = True,
    ) -> None:
        self.settings: dict[str, Any] = {"backend": backend, "journal": journal, "screen": screen, "limit": limit}
        self.options = check_options(validation_type, self.settings)
        self.source: Source | None = None
        self.plan: Plan | None = None
        self.run: Run[Any] | None = None
        self.result: pd.DataFrame | None = None
        self.lock = threading.RLock()
        self.background = Background()
        self.estimates = 0
        self.is_running = False
        self.picker = FilePicker(self.take, self.tell, allow_paths=allow_paths)
        self.form = Form()
        self.results = Results(policy, Path.cwd() if folder is None else Path(folder), self.guard, self.apart)
        self.panel = w.VBox([w.HTML(STYLE), self.picker.box, self.form.box, self.results.box])
        self.panel.add_class(ROOT_CLASS)
        self.form.kind.value = str(self.options.validation_type)
        self.wire()
        self.describe_type()
        if df is not None:
            self.load(df, column=column)

    def wire(self) -> None:
        """Say what happens when."""
        form, guard = self.form, self.guard
        self.picker.wire(guard)
        for control in (form.column, form.kind):
            control.observe(guard(form.quiet.unless(self.changed)), "value")
        form.go.on_click(guard(self.press))
        form.stop.on_click(guard(self.cancel))

    def guard(self, work: Callable[[], None]) -> Callable[..., None]:
        """Make a callback of it: one at a time, and an error becomes a message."""

        def alone() -> None:
            with self.lock:
                work()

        return self.reporting(alone)

    def reporting(self, work: Callable[[], None]) -> Callable[..., None]:
        """Turn an error into a message: nobody sees what a callback or a thread raises."""

        @functools.wraps(work)
        def run(*_: Any) -> None:
            try:
                work()
            except MailVerdictError as exc:
                self.tell(str(exc), "failed")
            except Exception as exc:
                logger.exception("the audit met an error")
                self.tell(f"{type(exc).__name__}: {exc}", "failed")

        return run

    def apart(self, work: Callable[[], None]) -> None:
        """Do it beside the kernel's own thread."""
        self.background.start(self.reporting(work))

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Show the controls."""
        return self.panel._repr_mimebundle_(**options)

    def tell(self, message: str, kind: str = "plain") -> None:
        """Show a message, or none."""
        self.form.notice.value = render_notice(message, kind)

    def load(self, data: Any, column: Hashable | None = None) -> None:
        """Take in a frame or a file, as choosing one on the page does.

        Parameters
        ----------
        data : DataFrame, Series or path
            The rows.
        column : hashable, optional
            The column; guessed if not given.

        Raises
        ------
        InputError, ColumnError, SettingsError
            If that cannot be read, has no such column, or a run is under way.
        """
        source = read_path(data) if isinstance(data, str | Path) else read_frame(data)
        names: list[Any] = list(source.frame.columns)
        if column is not None:
            check_column(column, names)
        self.take(source, None if column is None else names.index(column))

    def take(self, source: Source, at: int | None = None) -> None:
        """Show a table that was read, with its column chosen or guessed."""
        if self.is_running:
            raise SettingsError("a run is under way; cancel it first")
        with self.lock, self.form.quiet:
            self.source, self.result, self.plan = source, None, None
            self.results.clear()
            chosen = source.guess() if at is None else at
            set_choices(self.form.column, [(label, i) for i, label in enumerate(source.labels)], chosen)
            self.picker.show_taken(source)
            self.form.progress.value = self.form.state.value = ""
            self.form.go.description = "Verify"
        self.changed()

    def changed(self) -> None:
        """Another column or type: say what it means, and what it costs."""
        self.describe_type()
        self.plan = None
        self.form.estimate.value = self.form.examples.value = ""
        self.form.go.disabled = True
        at = self.form.column.value
        if self.source is None:
            return
        if at is None:
            self.tell(NO_COLUMN, "warned")
            return
        self.tell("")
        self.form.examples.value = render_examples(self.source.examples(at))
        self.estimate()

    def describe_type(self) -> None:
        """What the type asks, whom, and what its `valid` means."""
        kind = ValidationType(self.form.kind.value)
        self.form.asked.value = render_asked(kind, MEANING_OF_VALID[kind])
        if self.plan is None:
            self.form.quota.value = render_quota(self.asked(), None, is_known=False)

    def asked(self) -> str:
        """Whom the addresses are asked of, in words."""
        if self.settings["backend"] is None:
            return "this machine"
        return str(getattr(self.options.backend, "base_url", None) or repr(self.options.backend))

    def estimate(self) -> None:
        """Work out the cost beside the kernel: a service may take its time to tell the quota."""
        self.estimates += 1
        number, call = self.estimates, self.call()
        if self.plan is None:
            self.form.estimate.value = render_notice("Working out what it costs…")
        self.apart(lambda: self.work_out(number, call))

    def work_out(self, number: int, call: dict[str, Any]) -> None:
        """Make the estimate, and show it unless something has changed meanwhile."""
        found: Plan | None = None
        try:
            found = plan(**call)
        finally:
            with self.lock:
                if number == self.estimates:
                    self.show_plan(found)

    def show_plan(self, found: Plan | None) -> None:
        """Show an estimate; without one the button asks for it again instead of spending blindly."""
        self.plan = found or self.plan
        form = self.form
        form.estimate.value = render_plan(self.plan) if self.plan else ""
        if self.plan:
            form.quota.value = render_quota(self.asked(), quota_of(self.plan), is_known=True)
        if not self.is_running:
            form.go.disabled = False
            form.go.description = "Try again" if self.plan is None else self.go_label()

    def call(self) -> dict[str, Any]:
        """The arguments that the estimate and the run share."""
        if self.source is None or self.form.column.value is None:
            raise SettingsError("take in a table and choose its column first")
        frame, at = self.source.frame, self.form.column.value
        return {
            "data": frame,
            "column": frame.columns[at],
            "validation_type": self.form.kind.value,
            "columns": "all",
            **self.settings,
        }

    def press(self) -> None:
        """Start once the cost is shown; else ask for it again."""
        if self.plan is None:
            self.tell("")
            self.estimate()
        else:
            self.verify()

    def verify(self) -> None:
        """Start the run, or go on where the last one stopped, as the button does.

        Raises
        ------
        SettingsError, ColumnError, JournalError
            If nothing is chosen, or as `mailverdict.start`; nothing was asked then.
        """
        with self.lock:
            if self.is_running:
                return
            call = self.call()
            self.run = start(**call)
            self.set_running(is_running=True)
            self.tell("")
            run = self.run
        self.apart(lambda: self.watch(run, call["column"]))

    def set_running(self, *, is_running: bool) -> None:
        """Whether a run goes on."""
        self.is_running = is_running
        self.picker.set_running(is_running=is_running)
        self.form.set_running(is_running=is_running)

    def cancel(self) -> None:
        """Stop the run, as the button does; what is settled is kept."""
        if self.run is not None and self.is_running:
            self.run.cancel()
            self.form.stop.disabled = True

    def wait(self, timeout: float | None = None) -> None:
        """Wait until nothing goes on any more.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait at most.

        Raises
        ------
        TimeoutError
            If something still goes on after `timeout` seconds.
        """
        self.background.wait(timeout)

    def watch(self, run: Run[Any], column: Hashable) -> None:
        """Show how far a run is, then what came of it."""
        follow(run, self.show_progress, self.show_idle)
        with self.lock:
            self.set_running(is_running=False)
            self.form.go.description = self.go_label()
            self.show_end(run)
            self.result = run.partial()
            assert self.source is not None
            self.results.fill(self.result, column, self.source.stem())
            if run.progress.state != "failed":
                self.estimate()

    def show_progress(self, progress: Progress) -> None:
        """Show a snapshot."""
        form = self.form
        form.state.value = render_notice(render_state(progress))
        form.progress.value = render_progress(progress)
        if progress.quota is not None:
            form.quota.value = render_quota(self.asked(), progress.quota, is_known=True)
        if not progress.is_over:
            self.tell(progress.message)

    def show_idle(self, seconds: float) -> None:
        """Say that nothing happens: a service may be slow, or away."""
        self.tell(f"No news for {seconds:.0f} seconds. Cancel keeps what is settled.")

    def show_end(self, run: Run[Any]) -> None:
        """Say how it ended, and what to do next."""
        progress = run.progress
        self.show_progress(progress)
        kept = "What is settled is kept; press the button to go on." if progress.state == "failed" else ""
        said = [progress.message, kept, *run.notices]
        self.tell(" ".join(sentence(each) for each in said if each), KINDS_OF_END.get(progress.state, "plain"))

    def go_label(self) -> str:
        """What the button does next."""
        over = self.run.progress if self.run is not None else None
        is_part = over is not None and over.state in ("stopped", "cancelled", "failed")
        return "Resume" if is_part and self.is_journalled() else "Verify"

    def is_journalled(self) -> bool:
        """Whether what was found is there for the next run."""
        options = check_options(self.form.kind.value, self.settings)
        return options.journal is not None


def check_options(validation_type: str, settings: dict[str, Any]) -> Options:
    """The checked arguments of `verify`, with its defaults for those that are not among the settings."""
    return Options.check(**split_options("Audit", {"validation_type": validation_type, **settings})[0])


def quota_of(found: Plan) -> Quota | None:
    """The quota that an estimate was made with."""
    if found.daily_limit is None or found.remaining is None:
        return None
    return Quota(found.daily_limit, found.daily_limit - found.remaining, found.remaining)
