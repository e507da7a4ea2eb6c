"""The state of an audit and the actions on it, without a browser: list, tidy, check, decide.

Each action changes the state and then calls the listener, which asks `snapshots` for what a page shows.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError, SettingsError
from ..files.readers import KINDS as FILE_KINDS
from ..frames.verify import prepare
from ..model.words import ACTIONS
from ..reports.facts import verify_command
from ..runs.journal.recall import parse_key
from ..runs.progress import Progress
from ..runs.run import Run
from ..theme import LABELS
from .checking import QUOTA_RESET, Rate, describe_end, follow
from .earlier import compare_with, open_run, place_of_run, read_audit
from .exports import KINDS, rows_to_save, save_report, save_table, types_of_objects
from .inputs import InputState
from .listing import CORE, FACETS, PAGE_ROWS, AuditedRows, Listing
from .shared_state import ResultInfo
from .source import Source, readable, short_text
from .wording import DEPTHS, count_of

LONGEST_SEARCH = 200
LONGEST_TEXT = 50_000_000  # characters of a text from the browser
OF_EARLIER = "Words beside an address, other columns and the suppression list are in your file, and not in a run."



class AuditState(InputState):
    """Everything that an audit page shows, and what can be done on it."""

    # --- from the page ------------------------------------------------------------------------------------------------

    def act(self, action: str, /, tab: str = "", **arguments: Any) -> None:
        """Do what a page asks for; an error is shown in the section that the action belongs to."""
        section, types = PAGE_ACTIONS[action]
        with self.guarded(section):
            checked = read_arguments(arguments, types)
            self.asked_by = tab
            getattr(self, action)(**checked)

    def use_file(self, path: Path, name: str, purpose: str) -> None:
        """Use a file that was uploaded, for the purpose that the browser gave with it."""
        section, use = PURPOSES.get(purpose, ("list", refuse_file))
        with self.guarded(section):
            use(self, path, name)

    @contextmanager
    def guarded(self, section: str) -> Iterator[None]:
        """Turn an error into a message: what a handler raises is shown nowhere."""
        try:
            yield
        except Exception as exc:  # noqa: BLE001 - shown on the page
            self.say_error(section, exc)
            self.changed(section)

    def accept_all(self) -> None:
        """Accept all likely typos."""
        self.accept_suggestion()

    def pause_unseen(self) -> None:
        """Stop the check, since nobody has looked at the page for long."""
        self.pause()

    # --- 3 check ------------------------------------------------------------------------------------------------------

    def set_depth(self, depth: str) -> None:
        """Choose how deep each address is checked."""
        self.require_idle()
        if depth not in DEPTHS:
            raise SettingsError(f"{depth!r} is not a check; there are {', '.join(DEPTHS)}")
        self.depth, self.asked_since = depth, None
        self.start_pipeline()

    def set_refresh(self, is_on: bool) -> None:  # noqa: FBT001 - a switch of the page
        """Ask again about addresses without a clear answer in the next run; else the journal answers for them."""
        self.require_idle()
        self.is_refreshing, self.asked_since = is_on, None
        self.start_pipeline()

    def ask_again(self) -> None:
        """Check the rows of the result without a clear answer again; the journal answers for the others."""
        self.require_idle()
        listing = self.require_listing()
        if not self.can_resume() or not listing.count_unclear():
            raise SettingsError("there is nothing to ask again; verify the list again")
        self.is_refreshing, self.asked_since = True, None
        self.say("decide", "")

        def work() -> None:
            self.make_plan(self.prepare(), self.number)
            if self.messages["check"][1] == "failed":
                self.say("decide", *self.messages["check"])
            elif self.is_out_of_quota():
                self.say("decide", f"Today's quota is used up. Press Ask again {QUOTA_RESET}.", "warned")
            else:
                self.verify()
                return
            self.is_refreshing = False
            self.start_pipeline_quietly()

        self.in_background("decide", work, "Asking again…")

    def make_plan_again(self) -> None:
        """Work out the cost again: the quota may be another, the service may be back."""
        self.start_pipeline()

    def verify(self) -> None:
        """Start the check, or go on where the last one stopped."""
        with self.lock:
            if self.is_running:
                return
            prepared = self.prepared
            if prepared is None or self.plan is None:
                prepared = self.prepare()
                self.prepared = prepared
            if self.is_refreshing and self.asked_since is None:
                self.asked_since = time.time()
            options = replace(self.options(), columns="all", clean=True, progress=False)
            self.run = prepare(prepared.frame, prepared.column, options, read=prepared.read)
            self.run._start()
            self.is_running, self.run_state = True, "running"
            self.rate, self.progress = Rate(), self.run.progress
            self.say("check", "")
            self.spoken = "The check has started."
            run, is_merged = self.run, self.choices.merge
            assert self.source is not None
            assert self.at is not None
            info = ResultInfo(
                name=self.source.name,
                column=self.source.labels[self.at],
                depth=self.depth,
                backend=self.backend_label(),
                when=datetime.now(UTC),
                setting=self.setting(),
                is_complete=False,
            )
        self.in_background("check", lambda: self.watch_run(run, info, is_merged=is_merged))

    resume = verify

    def pause(self) -> None:
        """Stop the check; what is checked so far is kept."""
        if self.run is not None and self.is_running:
            self.run.cancel()
            self.run_state = "pausing"
            self.changed("check")

    def watch_run(self, run: Run[Any], info: ResultInfo, *, is_merged: bool) -> None:
        """Show the progress of a run, then its result; `info` is as at the beginning of the run."""
        try:
            follow(run, self.show_progress, self.show_idle)
            self.show_progress(run.progress)
            per_second = self.rate.per_second()
            if per_second:
                self.rates[self.depth] = per_second
            self.busy["decide"] = "Putting the result together…"
            self.changed("decide")
            rows = AuditedRows.of_run(run._build, run._settled_table(), is_merged=is_merged)  # type: ignore[arg-type]
            run._replace_result(rows.to_frame)
            listing = Listing(rows, self.policy)
            is_complete = run.progress.state == "done"
            with self.lock:
                self.show_listing(listing, replace(info, when=datetime.now(UTC), is_complete=is_complete))
                self.say_end(run)
        finally:
            with self.lock:
                self.is_running, self.run_state, self.busy["decide"] = False, run.progress.state, ""
                if run.progress.state == "done":  # else the next run goes on with this one
                    self.is_refreshing, self.asked_since = False, None
        if run.progress.state != "failed":
            self.start_pipeline_quietly()

    def start_pipeline_quietly(self) -> None:
        """Work out the cost of what is left, without taking away the message of the end."""
        kept = self.messages["check"]
        self.start_pipeline()
        self.messages["check"] = kept

    def show_progress(self, progress: Progress) -> None:
        """Show how far the run is."""
        before = self.progress.settled * 10 // max(self.progress.total, 1) if self.progress else 0
        self.progress = progress
        self.rate.add(progress)
        now = progress.settled * 10 // max(progress.total, 1)
        if now != before and now < 10:
            self.spoken = f"{10 * now}% checked."
        if self.messages["check"][1] == "idle":
            self.say("check", "")
        self.changed("check")

    def show_idle(self, seconds: float) -> None:
        """Say that there is no progress: the service may be slow or unreachable."""
        self.say("check", f"No progress for {seconds:.0f} seconds. Pause keeps what is checked.", "idle")
        self.changed("check")

    def say_end(self, run: Run[Any]) -> None:
        """Say how the run ended, and what to do next."""
        text, kind = describe_end(run.progress, run.notices, can_resume=self.can_resume())
        self.say("check", text, kind)
        if run.progress.state == "done" and self.listing is not None:
            self.spoken = f"Done. {count_of(self.listing.counts.people, 'person', 'people')} can be mailed. {text}"

    # --- 4 decide -----------------------------------------------------------------------------------------------------

    def open_earlier(self, number: int) -> None:
        """Show the result of an earlier run; nothing is asked."""
        self.require_idle()
        journal = self.journal_path()
        if journal is None or not 0 <= number < len(self.runs):
            raise SettingsError("this run is not listed; list the runs again")
        recorded = self.runs[number]

        def work() -> None:
            rows = open_run(journal, recorded)
            listing = Listing(rows, self.policy)
            when = datetime.fromtimestamp(recorded.last, UTC)
            self.set_source(Source("earlier run", rows.frame, (OF_EARLIER,)), "email")
            with self.lock:
                self.depth = parse_key(recorded.key)[0]
                self.number += 1
                where = place_of_run(recorded)
                info = ResultInfo("Earlier run", "email", self.depth, where, when, self.setting(), is_complete=True)
                self.show_listing(listing, info)
            self.start_pipeline()

        self.in_background("list", work, "Opening the run…")

    def show_listing(self, listing: Listing, info: ResultInfo) -> None:
        """Show a result; filters of the result before it are kept only for the same list and column."""
        before, kept = self.result_info, self.listing
        if kept is not None and before is not None and before.setting.column == info.setting.column:
            listing.chosen = kept.chosen
            listing.search(kept.words)
        self.result_info, self.listing = info, listing
        self.last_result = lambda: None
        self.comparison = self.read_earlier = None
        self.find()

    def require_listing(self) -> Listing:
        if self.listing is None:
            raise SettingsError("there is no result yet; verify the list first")
        return self.listing

    def find(self) -> None:
        """Find the rows that match; the first page is shown."""
        self.found = self.require_listing().found()
        self.page_number = 1

    def set_facet(self, facet: str, value: str) -> None:
        """Choose a value of a facet, or no longer."""
        if facet not in FACETS:
            raise SettingsError(f"{facet!r} is not a facet; there are {', '.join(FACETS)}")
        self.require_listing().toggle(facet, value)
        self.show_found()

    def clear_facets(self) -> None:
        """Show all rows."""
        self.require_listing().clear()
        self.show_found()

    def search(self, text: str) -> None:
        """Show the rows that contain all words."""
        self.require_listing().search(text[:LONGEST_SEARCH])
        self.show_found()

    def sort(self, key: str) -> None:
        """Sort by a column of the table."""
        listing = self.require_listing()
        if key not in {head["key"] for head in listing.heads()}:
            raise SettingsError(f"{key!r} is not a column of the table")
        listing.sort(key)
        self.show_found()

    def show_found(self) -> None:
        self.find()
        self.spoken = f"{count_of(len(self.found), 'row')} found."
        self.changed("decide")

    def page(self, number: int) -> None:
        """Show a page of the table; pages are numbered from 1."""
        self.page_number = min(max(1, number), self.pages())
        self.changed("decide")

    def pages(self) -> int:
        return max(1, -(-len(self.found) // PAGE_ROWS))

    def set_policy(self, name: str) -> None:
        """Choose what is done with which verdict."""
        if name not in self.policies:
            raise SettingsError(f"{name!r} is not a policy; there are {', '.join(self.policies)}")
        self.policy = self.policies[name]
        if self.listing is not None:
            self.listing.set_policy(self.policy)
            self.find()
        self.changed("decide")

    def download(self, which: str, kind: str) -> None:
        """Write rows, or a report, to a file for the browser.

        `which` is an action, ``everything``, ``shown`` or ``report``.
        """
        listing, info = self.require_listing(), self.result_info
        assert info is not None
        if which not in (*ACTIONS, "everything", "shown", "report") or kind not in (*KINDS, "html"):
            raise SettingsError(f"{which!r} as {kind!r} is not a file that can be made")
        stem = self.source.stem() if self.source is not None else "emails"
        label = LABELS[which].lower().replace(" ", "-") if which in ACTIONS else which
        self.files += 1
        by = self.asked_by
        path = Path(self.folder, f"{self.files}", f"{stem}-{label}.{kind}")
        rows = self.found if which == "shown" else np.arange(len(listing.rows))
        if which in ACTIONS:
            rows = np.flatnonzero(listing.action == ACTIONS.index(which))

        def work() -> None:
            path.parent.mkdir(0o700)
            if which == "report":
                earlier = None if self.read_earlier is None else self.read_earlier()
                save_report(listing, self.policy, path, info.name, earlier, self.command_again(info))
            else:
                pieces = rows_to_save(listing, rows, which)
                remarks = save_table(pieces, path, types_of_objects(listing.rows.frame))
                self.say("decide", " ".join(remarks), "warned" if remarks else "plain")
            path.chmod(0o600)
            self.on_file(path.name, path, by)
            self.spoken = f"{path.name} is being downloaded."

        self.in_background("decide", work, f"Writing {stem}-{label}.{kind}…")

    def command_again(self, info: ResultInfo) -> str:
        """The command that verifies the file of a result again; empty where the list was not a file."""
        if not info.name.lower().endswith(tuple(FILE_KINDS)):
            return ""
        backend = self.settings.get("backend")
        url = backend if isinstance(backend, str) else getattr(backend, "base_url", None)
        options = ["--column", info.column, "--type", info.depth, *(() if url is None else ("--backend", str(url)))]
        return verify_command(info.name, [*options, "--output", f"{Path(info.name).stem}-verified.csv"])

    def compare(self, path: Path, name: str) -> None:
        """Compare the result with that of an earlier audit, from a file; the report then compares, too."""
        listing = self.require_listing()
        read = partial(read_audit, path, name, listing.column)

        def work() -> None:
            new = listing.rows.to_frame(columns=CORE)
            self.comparison = compare_with(read(), readable(name), new, listing.column)
            self.read_earlier = read
            self.say("decide", "")
            self.spoken = self.comparison["headline"]

        self.in_background("decide", work, f"Comparing with {readable(name)}…")

    @property
    def result(self) -> pd.DataFrame | None:
        """The rows of the last run with all result columns."""
        if self.listing is None:
            return None
        out = self.last_result()
        if out is None:
            out = self.listing.rows.to_frame()
            self.last_result = weakref.ref(out)
        return out


# The purpose of a file that the browser sends: the section in which an error is shown, and what is done with the file.
PURPOSES: dict[str, tuple[str, Callable[["AuditState", Path, str], None]]] = {
    "list": ("list", lambda state, path, name: state.load_file(path, name)),
    "suppress": ("tidy", lambda state, path, name: state.suppress_file(path, name)),
    "compare": ("decide", lambda state, path, name: state.compare(path, name)),
}
# The section in which an error of an action is shown, and the types of its arguments.
PAGE_ACTIONS: dict[str, tuple[str, dict[str, type]]] = {
    "load_path": ("list", {"path": str}),
    "load_pasted": ("list", {"text": str}),
    "read_again": ("list", {"encoding": str, "has_header": str, "sheet": str}),
    "choose_column": ("list", {"at": int}),
    "list_runs": ("list", {}),
    "open_earlier": ("list", {"number": int}),
    "set_repair": ("tidy", {"name": str, "is_on": bool}),
    "accept_suggestion": ("tidy", {"number": int}),
    "accept_all": ("tidy", {}),
    "undo": ("tidy", {}),
    "show_more": ("tidy", {}),
    "suppress_pasted": ("tidy", {"text": str}),
    "drop_suppression": ("tidy", {}),
    "set_depth": ("check", {"depth": str}),
    "set_refresh": ("check", {"is_on": bool}),
    "make_plan_again": ("check", {}),
    "verify": ("check", {}),
    "ask_again": ("decide", {}),
    "pause": ("check", {}),
    "set_facet": ("decide", {"facet": str, "value": str}),
    "clear_facets": ("decide", {}),
    "search": ("decide", {"text": str}),
    "sort": ("decide", {"key": str}),
    "page": ("decide", {"number": int}),
    "set_policy": ("decide", {"name": str}),
    "download": ("decide", {"which": str, "kind": str}),
}


def refuse_file(state: AuditState, path: Path, name: str) -> None:
    """Remove a file without a known purpose: it must not replace the list."""
    path.unlink(missing_ok=True)
    raise SettingsError(f"{name} came without a known purpose; choose it again")


def read_arguments(content: Mapping[str, Any], types: Mapping[str, type]) -> dict[str, Any]:
    """The arguments of an action, checked."""
    arguments = {}
    for name, kind in types.items():
        value = content.get(name)
        if type(value) is not kind:
            raise SettingsError(f"{name}={short_text(repr(value), 40)}: must be of type {kind.__name__}")
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            raise InputError(f"the text has more than {LONGEST_TEXT:,} characters; give it as a file")
        arguments[name] = value
    return arguments
