"""Tidying a list and planning its check, as functions: the list as it is verified, and its cost.

`TidyColumn` holds what was found in each cell, `Choices` what a person wants done about it, and
`prepare` applies the one to the other. Each step runs again when what it is made from has changed;
`AuditState` sees to that::

    cell                        change          suggestion      text that is verified
    Ada <ada@example.org>       unwrapped                       ada@example.org
    bo@gmial.com                                bo@gmail.com    bo@gmial.com
    bo@gmial.com, accepted      suggestion                      bo@gmail.com
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.mailboxes import Mailboxes, find_mailboxes
from ..checks.syntax.column import observe_column
from ..errors import ColumnError, SettingsError
from ..frames.alike import REMARK
from ..frames.clean import find_cut, repair_column, show_blanks, without_repairs
from ..frames.duplicates import compare_mailboxes
from ..frames.explode import explode_table
from ..frames.planning import plan_addresses
from ..frames.reading import name_standing, with_column
from ..frames.suppress import SuppressionList
from ..model.address import lower_domain
from ..model.arrow import one_array, replace_where, texts_where, to_bools
from ..model.words import capitalize, count_of
from ..repair.repair import ACCEPTED, MAX_CELL, REPAIRS, repair_cell
from ..runs.execution import unique_addresses
from ..runs.options import Options
from ..runs.plan import Plan
from ..table.cells import cut_long, is_filled, read_cells, where_filled
from ..table.columns import (
    ACTION_COLUMNS,
    COLUMNS,
    DECISION_COLUMNS,
    DUPLICATE_COLUMNS,
    PART_COLUMNS,
    REPAIR_COLUMNS,
    SUPPRESS_COLUMNS,
    WAVE_COLUMNS,
    Column,
    check_column,
    label_of,
)
from ..table.overwrite import name_columns
from ..table.refusals import Refusal, WhereRule
from ..table.table import Table
from .choices import Choices, Pair
from .source import Source, short_text

# --- what can be repaired -------------------------------------------------------------------------


SAFE = tuple(repair.name for repair in REPAIRS if repair.is_safe)
EXAMPLES = 3
LONGEST_EXAMPLE = 120
WHOLE_EXAMPLE = 38  # characters that are shown without a cut beside the address that they become
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What was probably meant by some rows."""

    written: str
    meant: str
    rows: int


@dataclass(frozen=True, slots=True)
class Typo:
    """Suggestions with the same mistake: a domain that was typed, or a whole text."""

    typed: str
    meant: str
    pairs: frozenset[Pair]
    rows: int


class TidyColumn:
    """What was found in the cells of a column.

    With `earlier`, each cell follows from one of an earlier column: `origin` has its row there.
    Only cells with another text than theirs are repaired, since a repair takes most of the time.
    """

    def __init__(
        self,
        values: Any,
        earlier: TidyColumn | None = None,
        origin: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self.values = values  # read again when needed, since their texts may be a copy
        cells = read_cells(values, longest=MAX_CELL)
        texts = cells["text"]
        self.stripped = cells["stripped"]
        self.is_cut = find_cut(texts)
        if earlier is None or origin is None:
            repaired = repair_column(texts, self.stripped)
        else:
            repaired = self.repair_others(texts, earlier, pa.array(origin))
        self.repaired = with_column(repaired, "text", cut_long(repaired["text"]))
        changes = repaired["change"].dictionary_encode()
        self.change_codes = changes.indices.to_numpy(zero_copy_only=False)
        self.change_sets: list[list[str]] = []
        for change in changes.dictionary.to_pylist():
            self.change_sets.append([name for name in change.split(";") if name])
        self.change_counts = np.bincount(self.change_codes, minlength=len(self.change_sets))
        count = repaired["count"].to_numpy()
        self.several_rows = np.flatnonzero(count > 1)
        self.added_rows = int((count[self.several_rows] - 1).sum())
        has_text = to_bools(is_filled(self.stripped))
        has_no_suggestion = to_bools(repaired["suggestion"].is_null())
        self.nothing_rows = int(np.count_nonzero((count == 0) & has_text & has_no_suggestion))
        self.find_suggestions()
        self.several_examples: list[Pair] = []
        for text in texts.take(pa.array(self.several_rows[:EXAMPLES])).to_pylist():
            addresses = "\n".join(repair_cell(text).addresses)
            self.several_examples.append((self.shown(text), self.shown(addresses)))
        self.examples = {name: self.find_examples(name, texts) for name in SAFE}

    def __len__(self) -> int:
        return len(self.stripped)

    def repair_others(
        self, texts: pa.StringArray, earlier: TidyColumn, origin: pa.Int64Array
    ) -> pa.RecordBatch:
        """The repairs of an earlier column, and those of the cells that have another text now."""
        before = read_cells(earlier.values, longest=MAX_CELL)["text"]
        is_other = pc.not_equal(texts, before.take(origin))
        others = repair_column(texts.filter(is_other), self.stripped.filter(is_other))
        known = earlier.repaired.take(origin)
        columns = {}
        for name in known.schema.names:
            columns[name] = replace_where(known[name], is_other, others[name])
        return pa.record_batch(columns)

    def rows_that_may_hold_several(self) -> npt.NDArray[np.int64]:
        """The rows with several addresses, and those that were too long to be repaired."""
        is_several = pc.greater(self.repaired["count"], 1)
        return np.flatnonzero(pc.or_(is_several, self.is_cut))

    def find_suggestions(self) -> None:
        """Group the suggestions by what is written and what was meant."""
        mask = self.repaired["suggestion"].is_valid()
        written = self.repaired["text"].filter(mask)
        meant = self.repaired["suggestion"].filter(mask)
        pairs = pc.binary_join_element_wise(written, meant, "\n").value_counts()
        self.suggestions = []
        for pair in pairs.to_pylist():
            text, _, address = pair["values"].rpartition("\n")
            self.suggestions.append(Suggestion(text, address, pair["counts"]))
        self.typos = group_typos(self.suggestions)

    def repaired_rows(self, name: str) -> int:
        """How many rows a repair changes."""
        rows = 0
        for names, count in zip(self.change_sets, self.change_counts.tolist(), strict=True):
            if name in names:
                rows += count
        return rows

    def find_examples(self, name: str, written: pa.StringArray) -> list[Pair]:
        """A few different cells that a repair changes, before and after.

        Those that need no other repair come first.
        """
        codes = [code for code, names in enumerate(self.change_sets) if name in names]
        codes.sort(key=lambda code: len(self.change_sets[code]))
        pairs: dict[Pair, None] = {}
        for code in codes:
            rows = np.flatnonzero(self.change_codes == code)[: 4 * EXAMPLES]
            for row in rows.tolist():
                before = self.shown(show_blanks(written[row].as_py()))
                after = self.shown(self.repaired["text"][row].as_py())
                pairs[before, after] = None
            if len(pairs) >= EXAMPLES:
                break
        return sorted(pairs, key=is_long_example)[:EXAMPLES]

    @staticmethod
    def shown(text: str) -> str:
        return short_text(text, LONGEST_EXAMPLE)

    def accepted_rows(self, choices: Choices) -> npt.NDArray[np.int64]:
        """Rows whose suggestion is accepted, and that have the repairs which it needs."""
        is_accepted = accepted_texts(self.repaired["text"], choices).is_valid()
        return np.flatnonzero(to_bools(is_accepted) & self.applied(choices))

    def count_repaired(self, choices: Choices) -> int:
        """How many rows are repaired."""
        needs = np.array([bool(names) for names in self.change_sets], np.bool_)
        return int(np.count_nonzero(self.applied(choices) & needs[self.change_codes]))

    def applied(self, choices: Choices) -> Flags:
        """Rows of which all repairs that they need are on."""
        is_on = [choices.off.isdisjoint(names) for names in self.change_sets]
        applied: Flags = np.array(is_on, np.bool_)[self.change_codes]
        return applied

    def addresses(self, choices: Choices) -> pa.RecordBatch:
        """The texts to verify as `read_addresses` gives them, with what was changed beside them.

        A cell whose repair is off stays as it is, and what was meant by an accepted suggestion
        takes the place of a text, wherever it is.
        """
        applied = without_repairs(self.repaired, choices.off, self.stripped)
        meant = accepted_texts(applied["text"], choices)
        is_accepted = meant.is_valid()
        meant = meant.drop_null()
        earlier = applied["change"].filter(is_accepted)
        accepted = pc.utf8_ltrim(pc.binary_join_element_wise(earlier, ACCEPTED, ";"), ";")
        change = replace_where(applied["change"], is_accepted, accepted)
        text = replace_where(applied["text"], is_accepted, meant)
        is_several = pc.and_not(pc.greater(applied["count"], 1), is_accepted)
        columns = {
            "text": text,
            "clean": replace_where(applied["clean"], is_accepted, meant),
            "suggestion": texts_where(pc.invert(is_accepted), applied["suggestion"]),
            "change": where_filled(self.stripped, change),
            "standing": name_standing(text, is_several),
        }
        return pa.record_batch(columns)


def is_long_example(pair: Pair) -> bool:
    """Whether one of two texts side by side would be cut."""
    return max(map(len, pair)) > WHOLE_EXAMPLE


def group_typos(suggestions: Sequence[Suggestion]) -> list[Typo]:
    """Suggestions by the domain that was typed, most rows first.

    >>> pairs = [("ada@gmial.com", "ada@gmail.com"), ("bob@GMIAL.com", "bob@gmail.com")]
    >>> group_typos([Suggestion(written, meant, 1) for written, meant in pairs])[0].rows
    2
    """
    groups: dict[Pair, list[Suggestion]] = {}
    for suggestion in suggestions:
        local, _, domain = suggestion.written.rpartition("@")
        meant_local, _, meant = suggestion.meant.rpartition("@")
        key = lower_domain(domain), lower_domain(meant)
        if local != meant_local or key[0] == key[1]:
            key = suggestion.written, suggestion.meant
        groups.setdefault(key, []).append(suggestion)
    typos = []
    for (typed, meant), group in groups.items():
        pairs = frozenset((suggestion.written, suggestion.meant) for suggestion in group)
        rows = sum(suggestion.rows for suggestion in group)
        typos.append(Typo(typed, meant, pairs, rows))
    return sorted(typos, key=lambda typo: -typo.rows)


def accepted_texts(texts: pa.StringArray, choices: Choices) -> pa.StringArray:
    """For each text what was meant by it, if that is accepted, else null."""
    if not choices.accepted:
        return pa.nulls(len(texts), pa.string())
    written, meant = zip(*sorted(choices.accepted), strict=True)
    places = pc.index_in(texts, value_set=pa.array(written, pa.string()))
    return pa.array(meant, pa.string()).take(places)


def duplicate_examples(first: pa.Int64Array, cells: pd.Series[Any]) -> list[Pair]:
    """A few cells whose mailbox is in an earlier row, that of the earlier row first.

    `first` has its position.
    """
    rows = np.flatnonzero(to_bools(first.is_valid()))[:EXAMPLES]
    pairs = []
    for row in rows.tolist():
        earlier = str(cells.iloc[first[row].as_py()])
        later = str(cells.iloc[row])
        pair = (short_text(earlier, LONGEST_EXAMPLE), short_text(later, LONGEST_EXAMPLE))
        pairs.append(pair)
    return pairs


# --- the list as it is verified -------------------------------------------------------------------


# The identity of a mailbox is not for people, and as large as the addresses.
ADDED_COLUMNS = (
    *(*COLUMNS, *REPAIR_COLUMNS, *ACTION_COLUMNS),
    *(*DUPLICATE_COLUMNS, *SUPPRESS_COLUMNS, *DECISION_COLUMNS, *PART_COLUMNS, *WAVE_COLUMNS),
)
COPY_COLUMNS = tuple(column for column in DUPLICATE_COLUMNS if column.name != "identity")


@dataclass(frozen=True, eq=False)
class Suppression:
    """A suppression list that was given."""

    name: str
    listed: SuppressionList
    path: Path
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Prepared:
    """The list as it is verified: the frame with the choices applied, and what they amount to."""

    base: TidyColumn  # what was found in the list as it was loaded
    rows: pd.DataFrame  # with a row for each of several addresses in a cell, if that was chosen
    frame: pd.DataFrame
    column: Hashable
    tidy: TidyColumn
    read: pa.RecordBatch  # as `read_addresses` gives it
    mailboxes: Mailboxes  # of the addresses of `read`
    repeated: int  # rows whose mailbox is in an earlier row
    repeated_examples: list[Pair]
    refused: int  # rows that are taken off since a column says no
    suppressed: int  # rows on the suppression list
    # Of those, rows whose very address is on it; of the others the domain is.
    suppressed_by_address: int
    # Rows that are removed whatever a check finds, and are not checked if that uses a network.
    skipped: int
    # Columns of the caller that have the names of result columns, and what they are called.
    renamed: dict[Any, str]


@dataclass(frozen=True, eq=False)
class Planned:
    """What a check of the prepared list costs."""

    plan: Plan
    skipped: int  # rows that need no check
    # Distinct ones with those of these rows, if that is more than the plan counts.
    addresses: int | None


@dataclass(frozen=True)
class ResultInfo:
    """What a result was made from, how and when."""

    name: str
    column: str
    depth: str
    backend: str
    when: datetime
    made_from: Choices
    is_complete: bool  # no row is pending

    def accepted_by(self, choices: Choices, backend: str) -> bool:
        """Whether a check with these choices gives this result.

        Suggestions accepted since do not count.
        """
        now = choices.for_check()
        if self.backend != backend or not self.made_from.accepted <= now.accepted:
            return False
        return replace(now, accepted=self.made_from.accepted) == self.made_from

    def to_json(self) -> dict[str, Any]:
        """Values that JSON can hold."""
        return {
            **self.__dict__,
            "when": self.when.isoformat(),
            "made_from": self.made_from.to_json(),
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> ResultInfo:
        """What was kept; an error for anything else."""
        when = datetime.fromisoformat(kept["when"])
        made_from = Choices.from_json(kept["made_from"])
        return cls(**{**kept, "when": when, "made_from": made_from})


def prepare(
    source: Source,
    choices: Choices,
    suppression: Suppression | None = None,
    earlier: Prepared | None = None,
) -> Prepared:
    """Apply the choices to a list.

    `earlier` is the same column of the same list with other choices.
    """
    assert choices.column is not None
    column = source.frame.columns[choices.column]
    check_column(column, list(source.frame.columns))
    renamed = find_new_names(source.frame, column)
    whole = source.frame
    if renamed:
        whole = whole.rename(columns=renamed)
    base = TidyColumn(column_of(whole, column)) if earlier is None else earlier.base
    rows = whole
    tidy = base
    if choices.split and len(base.several_rows):
        if earlier is not None and earlier.tidy is not base:
            rows = earlier.rows
            tidy = earlier.tidy
        else:
            rows, tidy = split_cells(whole, column, base)
    read = tidy.addresses(choices)
    has_same_rows = earlier is not None and earlier.rows is rows
    mailboxes = mailboxes_of(read["clean"], earlier if has_same_rows else None)
    unmailed = find_unmailed(source, choices, suppression, rows, column, mailboxes)
    frame = rows
    is_removed = np.zeros(len(rows), np.bool_)
    if unmailed.flags is not None:
        is_removed |= to_bools(unmailed.flags.fill_null(False))
        marks = pa.table({"suppressed": unmailed.flags})
        frame = attach(frame, column, marks, SUPPRESS_COLUMNS)
    # Of several rows of a mailbox the first that may be sent stays.
    has_remark = pc.match_substring(read["change"], REMARK).fill_null(False)
    groups = compare_mailboxes(mailboxes.names, is_removed | to_bools(has_remark))
    first = one_array(groups["duplicate_of"])
    if choices.merge:
        is_removed |= to_bools(first.is_valid())
        frame = attach(frame, column, groups, COPY_COLUMNS)
    if is_removed.any():
        read = with_column(read, "wanted", pa.array(~is_removed))
    return Prepared(
        base=base,
        rows=rows,
        frame=frame,
        column=column,
        tidy=tidy,
        read=read,
        mailboxes=mailboxes,
        repeated=len(first) - first.null_count,
        repeated_examples=duplicate_examples(first, column_of(rows, column)),
        refused=unmailed.refused,
        suppressed=unmailed.suppressed,
        suppressed_by_address=unmailed.suppressed_by_address,
        skipped=int(np.count_nonzero(is_removed)),
        renamed=renamed,
    )


def split_cells(
    whole: pd.DataFrame, column: Hashable, base: TidyColumn
) -> tuple[pd.DataFrame, TidyColumn]:
    """The list with a row for each of several addresses in a cell, and its column."""
    several = base.rows_that_may_hold_several()
    rows = explode_table(Table(whole, column), several=several)
    part = rows[label_of(column, None, "part")].to_numpy(np.int64)
    origin = np.cumsum(part == 1) - 1  # the row of the list that each row comes from
    return rows, TidyColumn(column_of(rows, column), base, origin)


@dataclass(frozen=True, eq=False)
class Unmailed:
    """Rows of people who must not be mailed: on the suppression list, or by a column."""

    flags: pa.BooleanArray | None  # None where nothing says so
    suppressed: int = 0
    suppressed_by_address: int = 0
    refused: int = 0


def find_unmailed(
    source: Source,
    choices: Choices,
    suppression: Suppression | None,
    rows: pd.DataFrame,
    column: Hashable,
    mailboxes: Mailboxes,
) -> Unmailed:
    """The rows of people who must not be mailed."""
    flags = []
    suppressed = 0
    by_address = 0
    if suppression is not None:
        is_listed = suppression.listed.find(mailboxes)
        suppressed = is_listed.true_count
        entries = pa.array(sorted(suppression.listed.mailboxes), pa.string())
        by_address = pc.is_in(mailboxes.names, value_set=entries).true_count
        if choices.suppress:
            flags.append(is_listed)
    refusals = source.refusals  # found here, in the background
    says_no = [refusals[at] for at in sorted(choices.refused) if at in refusals]
    refused = 0
    if says_no:
        is_refused = rows_that_say_no(rows, column, mailboxes, source, says_no)
        refused = is_refused.true_count
        flags.append(is_refused)
    marked = functools.reduce(pc.or_kleene, flags) if flags else None
    return Unmailed(marked, suppressed, by_address, refused)


def mailboxes_of(clean: pa.StringArray, earlier: Prepared | None) -> Mailboxes:
    """The mailbox of each address.

    Those of `earlier`, the same rows, stay where the address does.
    """
    if earlier is None:
        return find_mailboxes(clean)
    before = earlier.read["clean"].fill_null("")
    is_other = pc.not_equal(clean.fill_null(""), before)
    others = find_mailboxes(clean.filter(is_other))
    known = earlier.mailboxes
    return Mailboxes(
        names=replace_where(known.names, is_other, others.names),
        domains=replace_where(known.domains, is_other, others.domains),
    )


def rows_that_say_no(
    rows: pd.DataFrame,
    column: Hashable,
    mailboxes: Mailboxes,
    source: Source,
    says_no: Sequence[Refusal],
) -> pa.BooleanArray:
    """Which rows are of people who say no in a column, in that row or in another one of theirs."""
    people = SuppressionList()
    is_refused = pa.array(np.zeros(len(rows), np.bool_))
    for refusal in says_no:
        cells = rows.iloc[:, source.position(refusal.name)]
        flags = WhereRule(refusal.name, tuple(refusal.values)).find(cells)
        people.add_people(column_of(rows, column), flags)
        is_refused = pc.or_(is_refused, flags)
    return pc.or_kleene(people.find(mailboxes), is_refused)


def plan_check(prepared: Prepared, options: Options) -> Planned:
    """Work out the cost of a check; nothing is spent."""
    plan = plan_addresses([prepared.read], options)
    if options.is_free or not prepared.skipped:
        return Planned(plan, 0, None)
    return Planned(plan, prepared.skipped, count_addresses(prepared.read["text"]))


def read_suppression(path: Path, name: str) -> Suppression:
    """A suppression list from a file, and what is odd about it."""
    try:
        listed = SuppressionList.read(path)
    except ColumnError as exc:
        what_is_wrong = str(exc).partition(", as against_column=")[0]
        raise ColumnError(f"{what_is_wrong}: give a file with that column alone") from exc
    notes = [f"{capitalize(remark)}." for remark in listed.remarks]
    refused = listed.refused.total()
    if refused:
        entries = count_of(refused, "entry")
        verb = "is" if refused == 1 else "are"
        notes.append(f"{entries} in it {verb} neither an address nor a domain.")
    if listed.choice is not None and listed.choice.others:
        notes.append(f"It is read from {listed.choice.describe()}.")
    return Suppression(name, listed, path, notes)


def find_new_names(frame: pd.DataFrame, column: Hashable) -> dict[Any, str]:
    """New names for columns of the caller that have the names of result columns.

    A prefix cannot be given here.
    """
    labels = list(frame.columns)
    ours = {label_of(column, None, added.name) for added in ADDED_COLUMNS}
    new_names: dict[Any, str] = {}
    if frame.columns.nlevels > 1 or ours.isdisjoint(labels):
        return new_names
    # What is left may not be a complete set.
    while refused := find_refused(frame.rename(columns=new_names), column):
        for label in refused:
            numbered = (f"{label}_{number}" for number in itertools.count(2))
            new_names[label] = next(name for name in numbered if name not in labels)
    return new_names


def find_refused(frame: pd.DataFrame, column: Hashable) -> list[Any]:
    """The columns of the caller that have the name of a result column."""
    data = Table(frame, column)
    refused = []
    for added in ADDED_COLUMNS:
        try:
            name_columns(data, None, [added])
        except SettingsError:
            refused.append(label_of(column, None, added.name))
    return refused


def attach(
    frame: pd.DataFrame, column: Hashable, table: pa.Table, columns: Sequence[Column]
) -> pd.DataFrame:
    """The frame with columns about its rows."""
    data = Table(frame, column)
    labels = name_columns(data, None, columns)
    attached: pd.DataFrame = data.attach(table, labels, columns, {})
    return attached


def count_addresses(texts: pa.StringArray) -> int:
    """How many distinct well-formed addresses there are, as a report counts them."""
    is_address = observe_column(texts, lenient=True)["well_formed"]
    addresses, *_ = unique_addresses(texts.filter(is_address))
    return len(addresses)


def column_of(frame: pd.DataFrame, column: Hashable) -> pd.Series[Any]:
    """A column, without a copy."""
    names: list[Any] = list(frame.columns)
    cells: pd.Series[Any] = frame.iloc[:, names.index(column)]
    return cells
