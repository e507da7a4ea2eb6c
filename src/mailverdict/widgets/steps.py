"""The steps of an audit as functions: the list as it is verified, and what a check of it costs.

Each runs again when what it is made from has changed; `AuditState` sees to that.
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
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.mailboxes import Mailboxes
from ..checks.syntax.column import observe_column
from ..errors import ColumnError, SettingsError
from ..frames.duplicates import compare_mailboxes
from ..frames.explode import explode
from ..frames.planning import plan_addresses
from ..frames.policy import REMARK
from ..frames.reading import with_column
from ..frames.suppress import SuppressionList
from ..model.arrow import one_array, to_bools
from ..model.words import count_of
from ..runs.execution import unique_addresses
from ..runs.options import Options
from ..runs.plan import Plan
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
from .choices import Choices
from .source import Source
from .tidy import TidyColumn, duplicate_examples

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
    repeated: int  # rows whose mailbox is in an earlier row
    repeated_examples: list[tuple[str, str]]
    refused: int  # rows that are taken off since a column says no
    suppressed: int  # rows on the suppression list
    suppressed_by_address: (
        int  # of those, rows whose very address is on it; of the others the domain is
    )
    skipped: int  # rows that are removed whatever a check finds, and are not checked if that uses a network
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
        """Whether a check with these choices would give this result, but for suggestions accepted since."""
        now = choices.for_check()
        is_same = replace(now, accepted=frozenset()) == replace(
            self.made_from, accepted=frozenset()
        )
        return is_same and self.made_from.accepted <= now.accepted and self.backend == backend

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
        when, made_from = datetime.fromisoformat(kept["when"]), Choices.from_json(kept["made_from"])
        return cls(**{**kept, "when": when, "made_from": made_from})


def prepare(
    source: Source,
    choices: Choices,
    suppression: Suppression | None = None,
    earlier: Prepared | None = None,
) -> Prepared:
    """Apply the choices to a list; `earlier` is the same column of the same list with other choices."""
    assert choices.column is not None
    column = source.frame.columns[choices.column]
    check_column(column, list(source.frame.columns))
    renamed = find_new_names(source.frame, column)
    whole = source.frame.rename(columns=renamed) if renamed else source.frame
    base = TidyColumn(column_of(whole, column)) if earlier is None else earlier.base
    rows, tidy = whole, base
    if choices.split and len(base.several_rows):
        if earlier is not None and earlier.tidy is not base:
            rows, tidy = earlier.rows, earlier.tidy
        else:
            rows = explode(whole, column)
            tidy = TidyColumn(column_of(rows, column))
    read = tidy.addresses(choices)
    mailboxes = tidy.mailboxes(read)
    suppressed = by_address = 0
    marks = []  # of people who must not be mailed
    if suppression is not None:
        flags = suppression.listed.find(mailboxes)
        suppressed = flags.true_count
        entries = pa.array(sorted(suppression.listed.mailboxes), pa.string())
        by_address = pc.is_in(mailboxes.names, value_set=entries).true_count
        if choices.suppress:
            marks.append(flags)
    refusals = source.refusals  # found here, in the background
    says_no = [refusals[at] for at in sorted(choices.refused) if at in refusals]
    refused = 0
    if says_no:
        flags = rows_that_say_no(rows, column, mailboxes, source, says_no)
        refused = flags.true_count
        marks.append(flags)
    frame, is_removed = rows, np.zeros(len(rows), np.bool_)
    if marks:
        marked = functools.reduce(pc.or_kleene, marks)
        is_removed |= to_bools(marked.fill_null(False))
        frame = attach(frame, column, pa.table({"suppressed": marked}), SUPPRESS_COLUMNS)
    # Of several rows of a mailbox the first that may be sent stays.
    has_remark = to_bools(pc.match_substring(read["change"], REMARK).fill_null(False))
    groups = compare_mailboxes(mailboxes.names, is_removed | has_remark)
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
        repeated=len(first) - first.null_count,
        repeated_examples=duplicate_examples(first, column_of(rows, column)),
        refused=refused,
        suppressed=suppressed,
        suppressed_by_address=by_address,
        skipped=int(np.count_nonzero(is_removed)),
        renamed=renamed,
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
    skipped = 0 if options.is_free else prepared.skipped
    addresses = count_addresses(prepared.read["text"]) if skipped else None
    return Planned(plan_addresses([prepared.read], options), skipped, addresses)


def read_suppression(path: Path, name: str) -> Suppression:
    """A suppression list from a file, and what is odd about it."""
    try:
        listed = SuppressionList.read(path)
    except ColumnError as exc:
        what_to_do = "give a file with that column alone"
        raise ColumnError(
            str(exc).partition(", as against_column=")[0] + f": {what_to_do}"
        ) from exc
    refused = listed.refused.total()
    verb = "is" if refused == 1 else "are"
    notes = [f"{remark[:1].upper()}{remark[1:]}." for remark in listed.remarks]
    if refused:
        notes.append(f"{count_of(refused, 'entry')} in it {verb} neither an address nor a domain.")
    if listed.choice is not None and listed.choice.others:
        notes.append(f"It is read from {listed.choice.describe()}.")
    return Suppression(name, listed, path, notes)


def find_new_names(frame: pd.DataFrame, column: Hashable) -> dict[Any, str]:
    """New names for columns of the caller that have the names of result columns; a prefix cannot be given here."""
    labels = list(frame.columns)
    if frame.columns.nlevels > 1 or set(labels).isdisjoint(
        label_of(column, None, each.name) for each in ADDED_COLUMNS
    ):
        return {}
    found: dict[Any, str] = {}
    # What is left may not be a complete set.
    while refused := find_refused(frame.rename(columns=found), column):
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


def attach(
    frame: pd.DataFrame, column: Hashable, table: pa.Table, columns: Sequence[Column]
) -> pd.DataFrame:
    """The frame with columns about its rows."""
    data = Table(frame, column)
    attached: pd.DataFrame = data.attach(table, name_columns(data, None, columns), columns, {})
    return attached


def count_addresses(texts: pa.StringArray) -> int:
    """How many distinct well-formed addresses there are, as a report counts them."""
    return len(
        unique_addresses(texts.filter(observe_column(texts, lenient=True)["well_formed"]))[0]
    )


def column_of(frame: pd.DataFrame, column: Hashable) -> pd.Series[Any]:
    """A column, without a copy."""
    names: list[Any] = list(frame.columns)
    cells: pd.Series[Any] = frame.iloc[:, names.index(column)]
    return cells
