"""What all steps of an audit share: its data, its surroundings, and the list as it is prepared for a check.

What takes long runs on threads of `Background`. Each change of what is verified has a number, and a change of the user
that comes meanwhile wins.
"""

from __future__ import annotations

import ctypes
import itertools
import logging
import shutil
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from ..checks.syntax.column import observe_column
from ..errors import ColumnError, MailVerdictError, SettingsError
from ..files.table_file import ReadOptions
from ..frames.duplicates import compare_mailboxes
from ..frames.explode import explode
from ..frames.planning import plan_addresses, resolver_notices
from ..frames.policy import POLICIES, Policy, find_policy
from ..frames.suppress import SuppressionList
from ..frames.verify import AddressColumns
from ..model.table import one_array
from ..model.words import Status, Verdict
from ..runs.execution import unique_addresses
from ..runs.journal.recall import RecordedRun
from ..runs.options import Options, parse_validation_type
from ..runs.plan import Plan
from ..runs.progress import Progress
from ..runs.run import Run
from ..table.columns import (
    ACTION_COLUMNS,
    COLUMNS,
    DECISION_COLUMNS,
    DUPLICATE_COLUMNS,
    PART_COLUMNS,
    REPAIR_COLUMNS,
    SUPPRESS_COLUMNS,
    Column,
    check_column,
    label_of,
)
from ..table.options import check_options
from ..table.overwrite import name_columns
from ..table.table import Table
from .checking import Background, Rate, is_short
from .listing import Listing
from .source import Source, readable
from .tidy import Choices, Pair, TidyColumn, duplicate_examples
from .wording import sentence

__all__ = [
    "NOTHING_LOADED",
    "SECTIONS",
    "Prepared",
    "ResultInfo",
    "Setting",
    "SharedState",
    "Suppression",
]

logger = logging.getLogger("mailverdict")
SECTIONS = ("list", "tidy", "check", "decide", "page")
NOTHING_LOADED = "load a table and choose its column first"
Reader = Callable[[ReadOptions], Source]
Message = tuple[str, str]  # text and kind: plain, done, warned or failed
NO_MESSAGE: Message = ("", "plain")
UNCLEAR = (str(Verdict.UNKNOWN), str(Status.ERROR))  # what is asked again on request
# The identity of a mailbox is not for people, and as large as the addresses.
ADDED_COLUMNS = (
    *(*COLUMNS, *REPAIR_COLUMNS, *ACTION_COLUMNS),
    *(*DUPLICATE_COLUMNS, *SUPPRESS_COLUMNS, *DECISION_COLUMNS, *PART_COLUMNS),
)
COPY_COLUMNS = tuple(column for column in DUPLICATE_COLUMNS if column.name != "identity")


class Setting(NamedTuple):
    """All that decides about a result, to compare."""

    list_number: int
    at: int | None  # position of the column
    depth: str
    off: frozenset[str]  # repairs that are not applied
    split: bool
    merge: bool
    suppression: int  # number of the suppression list that is used; 0: none
    accepted: frozenset[Pair]

    @property
    def column(self) -> tuple[int, int | None]:
        """The list and the column in it."""
        return self.list_number, self.at


InputSetting = tuple[Setting, int]  # without the depth; and the number of the suppression list, used or not


@dataclass(frozen=True)
class Prepared:
    """The list as it is verified: the frame with the choices applied, and what they amount to."""

    made_for: InputSetting
    rows: pd.DataFrame  # with a row for each of several addresses in a cell, if that was chosen
    frame: pd.DataFrame
    column: Hashable
    tidy: TidyColumn
    read: AddressColumns
    repeated: int  # rows whose mailbox is in an earlier row
    repeated_examples: list[tuple[str, str]]
    suppressed: int  # rows on the suppression list
    skipped: int  # rows that are removed whatever a check finds, and are not checked if that uses a network
    renamed: dict[Any, str]  # columns of the caller that have the names of result columns, and what they are called


@dataclass(frozen=True)
class ResultInfo:
    """What a result was made from, how and when."""

    name: str
    column: str
    depth: str
    backend: str
    when: datetime
    setting: Setting
    is_complete: bool  # no row is pending


@dataclass
class Suppression:
    """The suppression list that was given."""

    name: str
    listed: SuppressionList
    notes: list[str] = field(default_factory=list)


class SharedState:
    """The data of an audit, and what its steps do in common."""

    def __init__(
        self,
        settings: dict[str, Any],
        validation_type: str = "mx",
        policy: Policy | str = "balanced",
        *,
        folder: str | Path | None = None,
        allow_paths: bool = True,
        on_change: Callable[[tuple[str, ...]], None] = lambda names: None,
        on_file: Callable[[str, Path, str], None] = lambda name, path, by: None,
    ) -> None:
        self.settings = settings  # of `mailverdict.verify`
        check_options("Audit", {"validation_type": validation_type, **settings})
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
        self.encoding = self.has_header = self.sheet = ""  # chosen for the file that is read; else found out
        self.sheets: tuple[str, ...] = ()  # of the workbook that was read last
        self.suppression: Suppression | None = None
        self.runs: list[RecordedRun] = []
        self.is_running = False
        self.files = 0
        self.asked_by = ""  # the tab whose action was the last one
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
        self.skipped = 0  # rows of the plan that need no check
        # Distinct ones with those of these rows, if that is more than the plan counts.
        self.addresses: int | None = None
        self.has_known = False  # whether earlier answers can be used, unless the next run asks again
        self.is_refreshing = False  # whether the next run asks again about addresses without a clear answer
        self.asked_since: float | None = None  # when the run that did so began, if it is not over; seconds since 1970
        self.notices: list[str] = []
        self.run: Run[Any] | None = None  # it has the frame of the list
        self.progress: Progress | None = None
        self.rate = Rate()
        self.run_state = ""
        self.shown_suggestions = 10
        self.forget_result()

    def forget_result(self) -> None:
        """Forget the result; with it go the filters."""
        self.result_info: ResultInfo | None = None
        self.listing: Listing | None = None
        self.found = np.empty(0, np.int64)
        self.page_number = 1
        self.comparison: dict[str, Any] | None = None
        self.read_earlier: Callable[[], pd.DataFrame] | None = None  # the audit that it is compared with
        self.last_result: Callable[[], pd.DataFrame | None] = lambda: None
        self.messages["decide"] = NO_MESSAGE

    def changed(self, *names: str) -> None:
        """Tell the page which sections have changed."""
        self.on_change((*names, "page"))
        if "decide" in names:  # each action on a result, and the end of what runs in the background
            release_memory()

    def say(self, section: str, text: str, kind: str = "plain") -> None:
        """Show a message in a section, or none."""
        self.messages[section] = (text, kind)
        if text:
            self.spoken = text

    def say_error(self, section: str, exc: Exception) -> None:
        """Show an error in a section; one that is not expected also goes to the log."""
        if isinstance(exc, MailVerdictError):
            self.say(section, sentence(str(exc)), "failed")
        elif isinstance(exc, MemoryError):
            self.say(section, "There is not enough memory for this.", "failed")
        else:
            logger.error("the audit met an error", exc_info=exc)
            self.say(section, f"{type(exc).__name__}: {exc}", "failed")

    def in_background(self, section: str, work: Callable[[], None], busy: str = "") -> None:
        """Run `work` on a thread; an error becomes a message of the section."""
        self.busy[section] = busy

        def guarded() -> None:
            try:
                work()
            except Exception as exc:  # noqa: BLE001 - shown on the page
                self.say_error(section, exc)
            finally:
                self.busy[section] = ""
                self.changed(*SECTIONS)

        self.changed(section)
        self.background.start(guarded)

    def require_idle(self) -> None:
        """Raise an error during a run: what it verifies must not be replaced."""
        if self.is_running:
            raise SettingsError("a check is running; pause it first")

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

    # --- the list as it is verified -----------------------------------------------------------------------------------

    def current_tidy(self) -> TidyColumn | None:
        """What was found in the list as it is verified."""
        return self.prepared.tidy if self.prepared is not None else self.base

    def setting(self) -> Setting:
        """All that decides about a result, as it is now."""
        chosen = self.choices
        return Setting(
            list_number=self.list_number,
            at=self.at,
            depth=self.depth,
            off=frozenset(chosen.off),
            split=chosen.split,
            merge=chosen.merge,
            suppression=self.suppression_number if self.suppression and chosen.suppress else 0,
            accepted=frozenset(chosen.accepted),
        )

    def input_setting(self) -> InputSetting:
        """All that decides about the list as it is verified, as it is now."""
        return self.setting()._replace(depth=""), self.suppression_number if self.suppression else 0

    def prepare(self) -> Prepared:
        """Apply the choices to the list, unless that was done for the same choices."""
        source, at, choices, chosen = self.source, self.at, self.choices, self.input_setting()
        if source is None or at is None:
            raise SettingsError(NOTHING_LOADED)
        earlier = self.prepared
        if earlier is not None and earlier.made_for == chosen:
            return earlier
        column = source.frame.columns[at]
        check_column(column, list(source.frame.columns))
        renamed = find_new_names(source.frame, column)
        whole = source.frame.rename(columns=renamed) if renamed else source.frame
        rows, tidy = whole, self.find_base(whole, column, (self.list_number, at))
        if choices.split and len(tidy.several_rows):
            is_same_column = earlier is not None and earlier.made_for[0].column == chosen[0].column
            if earlier is not None and is_same_column and earlier.tidy is not tidy:
                rows, tidy = earlier.rows, earlier.tidy
            else:
                rows = explode(whole, column)
                tidy = TidyColumn(column_of(rows, column))
        read = tidy.addresses(choices)
        mailboxes = tidy.mailboxes(read)
        groups = compare_mailboxes(mailboxes.names)
        first = one_array(groups["duplicate_of"])
        flags = None if self.suppression is None else self.suppression.listed.find(mailboxes)
        frame, is_removed = rows, np.zeros(len(rows), np.bool_)
        if choices.merge:
            is_removed |= first.is_valid().to_numpy(zero_copy_only=False)
            frame = attach(frame, column, groups, COPY_COLUMNS)
        if choices.suppress and flags is not None:
            is_removed |= flags.fill_null(False).to_numpy(zero_copy_only=False)
            frame = attach(frame, column, pa.table({"suppressed": flags}), SUPPRESS_COLUMNS)
        if is_removed.any():
            read = replace(read, is_wanted=pa.array(~is_removed))
        return Prepared(
            made_for=chosen,
            rows=rows,
            frame=frame,
            column=column,
            tidy=tidy,
            read=read,
            repeated=len(first) - first.null_count,
            repeated_examples=duplicate_examples(first, column_of(rows, column)),
            suppressed=0 if flags is None else flags.true_count,
            skipped=int(np.count_nonzero(is_removed)),
            renamed=renamed,
        )

    def find_base(self, frame: pd.DataFrame, column: Hashable, key: tuple[int, int]) -> TidyColumn:
        """What was found in a column of the list, which is looked at once."""
        if self.base is not None and self.base_key == key:
            return self.base
        base = TidyColumn(column_of(frame, column))
        with self.lock:
            if key == (self.list_number, self.at):
                self.base, self.base_key = base, key
        return base

    # --- who checks, and what it costs --------------------------------------------------------------------------------

    def options(self) -> Options:
        """The checked arguments of a run; a journal for this session where pausing would lose what is checked."""
        settings = {
            "validation_type": self.depth,
            **self.settings,
            "refresh": UNCLEAR if self.is_refreshing else (),
        }
        options = check_options("Audit", settings)
        if options.journal is None and self.settings.get("journal", "auto") == "auto" and not options.is_free:
            options = check_options("Audit", {**settings, "journal": self.session_journal()})
        return replace(options, settings=replace(options.settings, answered_since=self.asked_since))

    def session_journal(self) -> Path:
        """A journal that ends with this audit."""
        return Path(self.folder, "journal.db")

    def backend_label(self) -> str:
        """Who checks, in words."""
        backend = self.settings.get("backend")
        if backend is None:
            return "this computer"
        if label := getattr(backend, "label", ""):
            return str(label)
        url = backend if isinstance(backend, str) else getattr(backend, "base_url", None)
        return readable(str(url), 80) if url else "this computer"

    def can_resume(self) -> bool:
        """Whether the next run can go on where this one stopped."""
        return self.options().journal is not None

    def is_out_of_quota(self) -> bool:
        """Whether nothing can be checked today."""
        return self.plan is not None and is_short(self.plan)

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
            skipped = 0 if options.is_free else prepared.skipped
            addresses = count_addresses(prepared.read.texts) if skipped else None
        except MailVerdictError as exc:
            if number == self.number:
                self.say("check", sentence(str(exc)), "failed")
            return
        with self.lock:
            if number != self.number:
                return
            self.plan, self.notices = found, []
            self.skipped, self.addresses = skipped, addresses
            self.has_known = found.known > 0 or self.is_refreshing
        self.changed("check")
        if found.unique > found.known and options.backend.source == "local":
            self.notices = resolver_notices(self.options())


def find_new_names(frame: pd.DataFrame, column: Hashable) -> dict[Any, str]:
    """New names for columns of the caller that have the names of result columns; a prefix cannot be given here."""
    labels = list(frame.columns)
    if frame.columns.nlevels > 1 or set(labels).isdisjoint(label_of(column, None, each.name) for each in ADDED_COLUMNS):
        return {}
    found: dict[Any, str] = {}
    while refused := find_refused(frame.rename(columns=found), column):  # what is left may not be a complete set
        for label in refused:
            numbers = (f"{label}_{number}" for number in itertools.count(2))
            found[label] = next(name for name in numbers if name not in labels)
    return found


def find_refused(frame: pd.DataFrame, column: Hashable) -> list[Any]:
    """The columns of the caller that have the name of a result column."""
    data, found = Table(frame, column), []
    for each in ADDED_COLUMNS:
        try:
            name_columns(data, None, [each])
        except SettingsError:
            found.append(label_of(column, None, each.name))
    return found


def attach(frame: pd.DataFrame, column: Hashable, table: pa.Table, columns: Sequence[Column]) -> pd.DataFrame:
    """The frame with columns about its rows."""
    data = Table(frame, column)
    attached: pd.DataFrame = data.attach(table, name_columns(data, None, columns), columns, {})
    return attached


def count_addresses(texts: pa.StringArray) -> int:
    """How many distinct well-formed addresses there are, as a report counts them."""
    return len(unique_addresses(texts.filter(observe_column(texts).ok))[0])


def release_memory() -> None:
    """Give back to the system what Arrow's allocator and that of the GNU C library keep of freed memory.

    At a million rows that is as much as the list, and takes 1 to 10 ms.
    """
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


def column_of(frame: pd.DataFrame, column: Hashable) -> pd.Series[Any]:
    """A column, without a copy."""
    names: list[Any] = list(frame.columns)
    cells: pd.Series[Any] = frame.iloc[:, names.index(column)]
    return cells
