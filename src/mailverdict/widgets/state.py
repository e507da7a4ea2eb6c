"""The state of an audit and the actions on it, without a browser: list, tidy, check, decide.

Each action changes the state and then calls the listener, which asks `snapshots` for what a page shows. What takes long
runs on threads of `Background`; an action of the user that comes meanwhile wins, since every change has a number.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..errors import ColumnError, InputError, MailVerdictError, SettingsError
from ..frames.columns import ACTIONS, DUPLICATE_COLUMNS, SUPPRESS_COLUMNS, check_column
from ..frames.duplicates import SuppressionList, group_rows, read_against
from ..frames.explode import explode
from ..frames.kinds import PandasFrame
from ..frames.options import split_options
from ..frames.planning import plan_addresses, resolver_notices
from ..frames.policy import POLICIES, Policy, find_policy
from ..frames.verify import AddressColumns, prepare
from ..reports.report import report
from ..runs.journal.recall import RecordedRun
from ..runs.options import Options, default_journal, parse_validation_type
from ..runs.plan import Plan
from ..runs.progress import Progress
from ..runs.run import Run
from .checking import Background, Rate, describe_end, follow, is_short
from .earlier import compare_with, list_runs, open_run, type_of_key
from .exports import KINDS, as_written, save_table, to_send_list
from .listing import FACETS, PAGE_ROWS, AuditedRows, Listing
from .source import Source, read_file, read_frame, read_pasted, readable
from .tidy import SAFE, Choices, TidyColumn, duplicate_examples
from .wording import ACTION_LABELS, DEPTHS, count_of, sentence

logger = logging.getLogger("mailverdict")
__all__ = ["SECTIONS", "AuditState", "Card", "Prepared"]

SECTIONS = ("list", "tidy", "check", "decide", "page")
LONGEST_SEARCH = 200
NOTHING_LOADED = "load a table and choose its column first"
Reader = Callable[[str | None, bool | None], Source]  # with an encoding, and whether there is a header line
Message = tuple[str, str]  # text and kind: plain, done, warned or failed
NO_MESSAGE: Message = ("", "plain")


@dataclass(frozen=True)
class Prepared:
    """The list as it is verified: the frame with the choices applied, and what they amount to."""

    frame: pd.DataFrame
    column: Hashable
    tidy: TidyColumn
    read: AddressColumns
    repeated: int  # rows whose mailbox is in an earlier row
    repeated_examples: list[tuple[str, str]]
    suppressed: int  # rows on the suppression list


@dataclass(frozen=True)
class Card:
    """What a result is of."""

    name: str
    column: str
    depth: str
    backend: str
    when: datetime
    setting: Any  # the choices it was made with
    is_complete: bool  # no row is pending


@dataclass
class Suppression:
    """The suppression list that was given."""

    name: str
    listed: SuppressionList
    notes: list[str] = field(default_factory=list)


class AuditState:
    """Everything that an audit page shows, and what can be done on it."""

    def __init__(
        self,
        settings: dict[str, Any],
        validation_type: str = "mx",
        policy: Policy | str = "balanced",
        *,
        folder: str | Path | None = None,
        allow_paths: bool = True,
        on_change: Callable[[tuple[str, ...]], None] = lambda names: None,
        on_file: Callable[[str, Path], None] = lambda name, path: None,
    ) -> None:
        self.settings = settings  # of `mailverdict.verify`
        check_options(validation_type, settings)
        self.depth = str(parse_validation_type(validation_type))
        first = find_policy(policy)
        self.policies, self.policy = {**POLICIES, first.name: first}, first
        self.allow_paths, self.on_change, self.on_file = allow_paths, on_change, on_file
        self.lock, self.background = threading.RLock(), Background()
        self.parent = folder
        self.messages: dict[str, Message] = dict.fromkeys(SECTIONS, NO_MESSAGE)
        self.busy: dict[str, str] = dict.fromkeys(SECTIONS, "")
        self.spoken = ""  # for screen readers: the last thing that happened
        self.number = 0  # of the last change of what is verified
        self.list_number = self.suppression_number = 0
        self.is_pipeline_running = False
        self.reader: Reader | None = None
        self.encoding, self.has_header = "", ""
        self.suppression: Suppression | None = None
        self.runs: list[RecordedRun] = []
        self.run: Run[Any] | None = None
        self.is_running = False
        self.files = 0
        self.rates: dict[str, float] = {}  # addresses a second, by depth
        self.forget()

    def forget(self) -> None:
        """Forget the list, and what was found in it."""
        self.list_number += 1
        self.source: Source | None = None
        self.at: int | None = None
        self.guess = ""
        self.choices = Choices()
        self.base: TidyColumn | None = None
        self.base_key = (-1, -1)
        self.prepared: Prepared | None = None
        self.plan: Plan | None = None
        self.notices: list[str] = []
        self.progress: Progress | None = None
        self.rate = Rate()
        self.run_state = ""
        self.shown_suggestions = 10
        self.forget_result()

    def forget_result(self) -> None:
        """Forget the result; with it go the filters."""
        self.card: Card | None = None
        self.listing: Listing | None = None
        self.found = np.empty(0, np.int64)
        self.page_number = 1
        self.comparison: dict[str, Any] | None = None
        self.last_result: Callable[[], pd.DataFrame | None] = lambda: None
        self.messages["decide"] = NO_MESSAGE

    # --- surroundings ------------------------------------------------------------------------------------------------

    def changed(self, *names: str) -> None:
        """Show sections anew."""
        self.on_change((*names, "page"))

    def say(self, section: str, text: str, kind: str = "plain") -> None:
        """Show a message in a section, or none."""
        self.messages[section] = (text, kind)
        if text:
            self.spoken = text

    def in_background(self, section: str, work: Callable[[], None], busy: str = "") -> None:
        """Run `work` on a thread; an error becomes a message of the section."""
        self.busy[section] = busy

        def guarded() -> None:
            try:
                work()
            except MailVerdictError as exc:
                self.say(section, sentence(str(exc)), "failed")
            except MemoryError:
                self.say(section, "There is not enough memory for this.", "failed")
            except Exception as exc:
                logger.exception("the audit met an error")
                self.say(section, f"{type(exc).__name__}: {exc}", "failed")
            finally:
                self.busy[section] = ""
                self.changed(*SECTIONS)

        self.changed(section)
        self.background.start(guarded)

    def close(self) -> None:
        """Stop the run and remove temporary files."""
        if self.run is not None:
            self.run.cancel()
        if "folder" in self.__dict__:
            shutil.rmtree(self.__dict__.pop("folder"), ignore_errors=True)

    @cached_property
    def folder(self) -> Path:
        """A private folder for files on their way, which is removed at the end."""
        made = Path(tempfile.mkdtemp(prefix="mailverdict-", dir=self.parent))
        weakref.finalize(self, shutil.rmtree, made, ignore_errors=True)
        return made

    # --- 1 list ------------------------------------------------------------------------------------------------------

    def load(self, data: Any, column: Hashable | None = None) -> None:
        """Load a frame, or a file by its path."""
        if isinstance(data, str | Path):
            reader: Reader = partial(read_table, data, None)
        else:
            reader = partial(read_in_memory, data)
        try:
            self.set_source(self.read(reader), column)
        finally:
            self.changed(*SECTIONS)

    def read(self, reader: Reader) -> Source:
        """Read a list; what was loaded before is forgotten first, so that it cannot be taken for this one."""
        self.require_idle()
        with self.lock:
            self.forget()
            self.number += 1
            if reader is not self.reader:  # an encoding chosen for another file could silently give wrong characters
                self.encoding = self.has_header = ""
            self.reader = reader
        header = {"yes": True, "no": False}.get(self.has_header)
        return reader(self.encoding or None, header)

    def load_file(self, path: str | Path, name: str | None = None) -> None:
        """Load a file in the background; `name` is what a browser calls it."""
        self.load_by(partial(read_table, path, name), name or str(path))

    def load_path(self, path: str) -> None:
        """Load a file of the kernel's machine, if that is allowed."""
        if not self.allow_paths:
            raise SettingsError("files cannot be opened by their path here; drop the file on the page")
        if path.strip():
            self.load_file(path.strip())

    def load_pasted(self, text: str) -> None:
        """Load a list that was pasted."""
        self.load_by(partial(read_paste, text), "the pasted list")

    def load_by(self, reader: Reader, name: str) -> None:
        self.require_idle()
        self.say("list", "")
        self.in_background(
            "list", lambda: self.set_source(self.read(reader)), f"Reading {readable(name.rpartition('/')[2])}…"
        )

    def read_again(self, encoding: str, has_header: str) -> None:
        """Read the same file with another encoding, or with or without a header line."""
        if self.reader is None:
            return
        self.require_idle()
        self.encoding, self.has_header = encoding, has_header
        self.load_by(self.reader, "the file again")

    def require_idle(self) -> None:
        """Raise an error during a run: what it verifies must not be replaced."""
        if self.is_running:
            raise SettingsError("a check is running; pause it first")

    def set_source(self, source: Source, column: Hashable | None = None) -> None:
        """Use a list, with its column chosen or guessed."""
        names: list[Any] = list(source.frame.columns)
        if column is not None:
            check_column(column, names)
        self.require_idle()
        with self.lock:
            self.forget()
            self.source = source
            self.at, self.guess = source.guess() if column is None else (names.index(column), "")
            self.say("list", "")
            rows = f"{source.name} is loaded: {count_of(len(source.frame), 'row')}"
            if self.at is None:
                self.say("list", "No column looks like e-mail addresses: choose the one that holds them.", "warned")
            else:
                self.spoken = f"{rows}, column {source.labels[self.at]}."
        self.start_pipeline()

    def choose_column(self, at: int) -> None:
        """Choose the column that holds the addresses, by its position."""
        self.require_idle()
        if self.source is None or not 0 <= at < len(self.source.labels):
            raise SettingsError(NOTHING_LOADED)
        with self.lock:
            if at == self.at:
                return
            self.at, self.guess, self.base, self.prepared, self.plan = at, "", None, None, None
            self.choices = Choices()
            self.say("list", "")
        self.start_pipeline()

    def list_runs(self) -> None:
        """Look up the earlier runs of the journal."""
        journal = self.journal_path()
        if journal is None:
            self.say("list", "No earlier runs: nothing is kept with these settings.", "warned")
            self.changed("list")
            return

        def work() -> None:
            self.runs = list_runs(journal)
            if not self.runs:
                self.say("list", "No earlier runs are recorded yet.", "plain")

        self.in_background("list", work, "Looking for earlier runs…")

    def journal_path(self) -> Path | None:
        """The journal whose runs are listed."""
        given = self.settings.get("journal", "auto")
        if given is None:
            return None
        return default_journal() if given == "auto" else Path(given).expanduser()

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
            self.set_source(Source("earlier run", rows.frame), "email")
            with self.lock:
                self.depth = type_of_key(recorded.key)
                self.number += 1
                where = (
                    "this computer" if recorded.key.startswith("local:") else readable(recorded.key.partition(" ")[2])
                )
                card = Card("Earlier run", "email", self.depth, where, when, self.setting(), is_complete=True)
                self.show_listing(listing, card)
            self.start_pipeline()

        self.in_background("list", work, "Opening the run…")

    # --- 2 tidy ------------------------------------------------------------------------------------------------------

    def set_repair(self, name: str, is_on: bool) -> None:  # noqa: FBT001 - a switch of the page
        """Turn a repair on or off; also `split`, `merge` and `suppress`."""
        self.require_idle()
        if name in ("split", "merge", "suppress"):
            setattr(self.choices, name, is_on)
        elif name in SAFE:
            (self.choices.off.discard if is_on else self.choices.off.add)(name)
        else:
            raise SettingsError(
                f"{name!r} is not a repair; there are {', '.join((*SAFE, 'split', 'merge', 'suppress'))}"
            )
        self.start_pipeline()

    def accept_suggestion(self, number: int | None = None) -> None:
        """Accept the likely typo with this number on the page, or all of them."""
        self.require_idle()
        tidy = self.current_tidy()
        if tidy is None:
            raise SettingsError(NOTHING_LOADED)
        chosen = tidy.suggestions if number is None else [tidy.suggestions[number]]
        self.choices.accept((each.written, each.meant) for each in chosen)
        self.spoken = f"{count_of(sum(each.rows for each in chosen), 'row')} corrected."
        self.start_pipeline()

    def undo(self) -> None:
        """Undo the last acceptance of likely typos."""
        self.require_idle()
        self.choices.undo()
        self.spoken = "Undone."
        self.start_pipeline()

    def show_more(self) -> None:
        """Show more likely typos."""
        self.shown_suggestions = min(self.shown_suggestions + 20, 50)
        self.changed("tidy")

    def suppress_file(self, path: Path, name: str) -> None:
        """Use a suppression list from a file."""
        self.use_suppression(lambda: path, readable(name))

    def suppress_pasted(self, text: str) -> None:
        """Use a suppression list that was pasted."""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines:
            raise InputError("nothing was pasted; paste addresses or domains, one per line")
        self.use_suppression(lambda: lines, "pasted suppression list")

    def use_suppression(self, find: Callable[[], Any], name: str) -> None:
        self.require_idle()

        def work() -> None:
            listed = SuppressionList()
            for cells in read_against(find(), None):
                listed.add(cells)
            refused = sum(listed.refused.values())
            notes = [f"{count_of(refused, 'entry')} in it are neither an address nor a domain."] if refused else []
            with self.lock:
                self.suppression = Suppression(name, listed, notes)
                self.suppression_number += 1
                self.choices.suppress = True
            self.say("tidy", "")
            self.start_pipeline()

        self.in_background("tidy", work, f"Reading {name}…")

    def drop_suppression(self) -> None:
        """Use no suppression list."""
        self.require_idle()
        self.suppression = None
        self.start_pipeline()

    def current_tidy(self) -> TidyColumn | None:
        """What was found in the list as it is verified."""
        return self.prepared.tidy if self.prepared is not None else self.base

    def setting(self) -> Any:
        """All that decides about a result, to compare."""
        chosen = self.choices
        return (
            self.list_number,
            self.at,
            self.depth,
            frozenset(chosen.off),
            *(chosen.split, chosen.merge),
            self.suppression_number if self.suppression and chosen.suppress else 0,
            frozenset(chosen.accepted),
        )

    def prepare(self) -> Prepared:
        """Apply the choices to the list."""
        source, at, choices = self.source, self.at, self.choices
        if source is None or at is None:
            raise SettingsError(NOTHING_LOADED)
        frame, column = source.frame, source.frame.columns[at]
        check_column(column, list(frame.columns))
        tidy = self.find_base(frame, column, (self.list_number, at))
        if choices.split and len(tidy.several_rows):
            frame = explode(frame, column)
            tidy = TidyColumn(PandasFrame(frame, column).values())
        read = tidy.addresses(choices)
        identities = tidy.identities(read)
        groups = group_rows(identities.identities)
        first = groups["duplicate_of"].combine_chunks()
        examples = duplicate_examples(first, frame.iloc[:, list(frame.columns).index(column)])
        if choices.merge:
            data = PandasFrame(frame, column)
            frame = data.attach(groups, data.names(None, DUPLICATE_COLUMNS), DUPLICATE_COLUMNS, {})
        suppressed = 0
        if self.suppression is not None:
            flags = self.suppression.listed.find(identities)
            suppressed = flags.true_count
            if choices.suppress:
                data = PandasFrame(frame, column)
                table = pa.table({"suppressed": flags})
                frame = data.attach(table, data.names(None, SUPPRESS_COLUMNS), SUPPRESS_COLUMNS, {})
        return Prepared(frame, column, tidy, read, len(first) - first.null_count, examples, suppressed)

    def find_base(self, frame: pd.DataFrame, column: Hashable, key: tuple[int, int]) -> TidyColumn:
        """What was found in a column of the list, which is looked at once."""
        if self.base is not None and self.base_key == key:
            return self.base
        base = TidyColumn(PandasFrame(frame, column).values())
        with self.lock:
            if key == (self.list_number, self.at):
                self.base, self.base_key = base, key
        return base

    # --- 3 check -----------------------------------------------------------------------------------------------------

    def options(self, depth: str | None = None) -> Options:
        """The checked arguments of a run; a journal for this session where pausing would lose what is checked."""
        options = check_options(depth or self.depth, self.settings)
        if options.journal is None and self.settings.get("journal", "auto") == "auto" and not options.is_free:
            options = check_options(depth or self.depth, {**self.settings, "journal": self.session_journal()})
        return options

    def session_journal(self) -> Path:
        """A journal that ends with this audit."""
        return Path(self.folder, "journal.db")

    def backend_label(self) -> str:
        """Who checks, in words."""
        backend = self.settings.get("backend")
        if backend is None:
            return "this computer"
        url = backend if isinstance(backend, str) else getattr(backend, "base_url", None)
        return readable(str(url), 80) if url else "this computer"

    def set_depth(self, depth: str) -> None:
        """Choose how deep each address is checked."""
        self.require_idle()
        if depth not in DEPTHS:
            raise SettingsError(f"{depth!r} is not a check; there are {', '.join(DEPTHS)}")
        self.depth = depth
        self.start_pipeline()

    def start_pipeline(self) -> None:
        """Prepare the list and work out the cost on a thread, again until nothing has changed meanwhile."""
        with self.lock:
            self.number += 1
            self.plan = None
            self.say("check", "")
            must_start = not self.is_pipeline_running and self.source is not None and self.at is not None
            self.is_pipeline_running = self.is_pipeline_running or must_start
        if must_start:
            self.in_background("tidy", self.run_pipeline, "Looking through the list…")
        self.changed(*SECTIONS)

    def run_pipeline(self) -> None:
        """Prepare and plan for the last change."""
        done = -1
        while self.has_changed_since(done):
            done = self.number
            try:
                self.prepare_and_plan(done)
            except MailVerdictError as exc:
                self.say("list" if isinstance(exc, ColumnError) else "tidy", sentence(str(exc)), "failed")
            except BaseException:
                self.is_pipeline_running = False
                raise
            finally:
                self.busy["check"] = ""

    def has_changed_since(self, number: int) -> bool:
        """Whether the list is to be prepared again; else the pipeline has ended."""
        with self.lock:
            self.is_pipeline_running = self.number != number and self.source is not None and self.at is not None
            return self.is_pipeline_running

    def prepare_and_plan(self, number: int) -> None:
        """Prepare the list for a change, and plan unless there is a later change."""
        prepared = self.prepare()
        with self.lock:
            if number != self.number:
                return
            self.prepared = prepared
        self.busy["tidy"], self.busy["check"] = "", "Working out the cost…"
        self.changed("tidy", "check")
        self.make_plan(prepared, number)

    def make_plan(self, prepared: Prepared, number: int) -> None:
        """Work out the cost; a service that cannot be reached is a message of this step."""
        try:
            options = self.options()
            found = plan_addresses([prepared.read], options)
        except MailVerdictError as exc:
            if number == self.number:
                self.say("check", sentence(str(exc)), "failed")
            return
        with self.lock:
            if number != self.number:
                return
            self.plan, self.notices = found, []
        self.changed("check")
        if found.unique > found.known and options.backend.source == "local":
            self.notices = resolver_notices(self.options())

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
            options = {**self.settings, "validation_type": self.depth, "journal": self.options().journal}
            arguments = split_options("Audit", {**options, "columns": "all", "clean": True}, progress=False)
            self.run = prepare(prepared.frame, prepared.column, *arguments, read=prepared.read)._start()
            self.is_running, self.run_state = True, "running"
            self.rate, self.progress = Rate(), self.run.progress
            self.say("check", "")
            self.spoken = "The check has started."
            run, setting = self.run, self.setting()
            assert self.source is not None
            assert self.at is not None
            card = (self.source.name, self.source.labels[self.at], self.depth, self.backend_label())
        self.in_background("check", lambda: self.watch_run(run, setting, card))

    resume = verify

    def pause(self) -> None:
        """Stop the check; what is checked so far is kept."""
        if self.run is not None and self.is_running:
            self.run.cancel()
            self.run_state = "pausing"
            self.changed("check")

    def watch_run(self, run: Run[Any], setting: Any, card: tuple[str, str, str, str]) -> None:
        """Show the progress of a run, then its result."""
        try:
            follow(run, self.show_progress, self.show_idle)
            self.show_progress(run.progress)
            per_second = self.rate.per_second()
            if per_second:
                self.rates[self.depth] = per_second
            self.busy["decide"] = "Putting the result together…"
            self.changed("decide")
            rows = AuditedRows.of_run(run._finish, run._execution.results.table(card[2]))  # type: ignore[arg-type]
            listing = Listing(rows, self.policy)
            is_complete = run.progress.state == "done"
            with self.lock:
                self.show_listing(listing, Card(*card, datetime.now(UTC), setting, is_complete))
                self.say_end(run)
        finally:
            with self.lock:
                self.is_running, self.run_state, self.busy["decide"] = False, run.progress.state, ""
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
            self.spoken = f"{10 * now} % checked."
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
            sent = self.listing.count_actions()["send"]
            self.spoken = f"Done. {count_of(sent, 'row')} of {len(self.listing.rows):,} on the send list. {text}"

    def can_resume(self) -> bool:
        """Whether the next run can go on where this one stopped."""
        return self.options().journal is not None

    def is_out_of_quota(self) -> bool:
        """Whether nothing can be checked today."""
        return self.plan is not None and is_short(self.plan)

    # --- 4 decide ----------------------------------------------------------------------------------------------------

    def show_listing(self, listing: Listing, card: Card) -> None:
        """Show a result; filters of the result before it are kept only for the same list and column."""
        before, kept = self.card, self.listing
        if kept is not None and before is not None and before.setting[:2] == card.setting[:2]:
            listing.chosen = kept.chosen
            listing.search(kept.words)
        self.card, self.listing = card, listing
        self.last_result = lambda: None
        self.comparison = None
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
        listing, card = self.require_listing(), self.card
        assert card is not None
        if which not in (*ACTIONS, "everything", "shown", "report") or kind not in (*KINDS, "html"):
            raise SettingsError(f"{which!r} as {kind!r} is not a file that can be made")
        stem = self.source.stem() if self.source is not None else "emails"
        label = ACTION_LABELS[which][0].lower().replace(" ", "-") if which in ACTION_LABELS else which
        self.files += 1
        path = Path(self.folder, f"{self.files}", f"{stem}-{label}.{kind}")

        def work() -> None:
            path.parent.mkdir()
            if which == "report":
                report(listing.rows.to_frame(), listing.column, path, policy=self.policy)
            else:
                save_table(self.rows_to_save(listing, which), path)
            self.on_file(path.name, path)
            self.spoken = f"{path.name} is being downloaded."

        self.in_background("decide", work, f"Writing {stem}-{label}.{kind}…")

    def rows_to_save(self, listing: Listing, which: str) -> pd.DataFrame:
        """The rows of a file; on the send list the repaired address is in the column itself."""
        rows = None if which == "everything" else self.found if which == "shown" else None
        if which in ACTIONS:
            rows = np.flatnonzero(listing.action == ACTIONS.index(which))
        out = as_written(listing.decide(rows), listing.column)
        return to_send_list(out, listing.column) if which == "send" else out

    def compare(self, path: Path, name: str) -> None:
        """Compare the result with that of an earlier audit, from a file."""
        listing = self.require_listing()

        def work() -> None:
            old = read_file(path, name).frame
            self.comparison = compare_with(old, readable(name), listing.rows.to_frame(), listing.column)
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


def read_table(path: str | Path, name: str | None, encoding: str | None, has_header: bool | None) -> Source:  # noqa: FBT001
    return read_file(path, name, encoding, has_header=has_header)


def read_paste(text: str, encoding: str | None, has_header: bool | None) -> Source:  # noqa: FBT001
    return read_pasted(text, has_header=has_header)


def read_in_memory(data: Any, encoding: str | None, has_header: bool | None) -> Source:  # noqa: FBT001
    return read_frame(data)


def check_options(validation_type: str, settings: dict[str, Any]) -> Options:
    """The checked arguments of `verify`, with its defaults for those that are not among the settings."""
    arguments = {"validation_type": validation_type, **settings}
    return Options.check(**split_options("Audit", arguments)[0])
