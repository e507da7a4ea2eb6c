"""Which columns of a frame earlier calls wrote, so that a new call may replace them.

A call left its mark if the columns that show it (`MARKS`) hold only our words; no note is needed,
so this works for a CSV, too. Then the columns of that call are ours; those of `RARE` need the whole
set or a note. A column that a note of a call names is ours if its content can be. A column whose
content cannot be ours is never replaced: with ``--in-place`` the copy takes the place of the
caller's file.

    email_verdict (valid, invalid), email_role (true)     both are ours
    email_verdict (valid), email_why ("he asked for it")  email_why cannot be ours: an error if it
                                                          would be replaced
    email_role (true)                                     nothing shows that it is ours: an error

`read_existing` reads each column beside a verified one once, if it has the name of a result column:

    name     label          is_empty  foreign            is_noted
    verdict  email_verdict  false                        true
    why      email_why      false     'he asked for it'  false

All that is decided later is decided from what it found: which columns earlier calls wrote, which
repaired addresses are kept, and which new columns are refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ColumnError, SettingsError
from ..model.words import ACTIONS, DECISIONS, Status, ValidationType, Verdict
from ..repair.repair import ACCEPTED, REPAIRS
from .cells import as_text, distinct_values, holds_any, is_text, read_present
from .columns import (
    ACTION_COLUMNS,
    CLEAN_COLUMNS,
    COLUMNS,
    CONTRADICTION_COLUMNS,
    DECISION_COLUMNS,
    DUPLICATE_COLUMNS,
    HELD_COLUMNS,
    PART_COLUMNS,
    RESULT_NAMES,
    RISK_COLUMNS,
    SUPPRESS_COLUMNS,
    WAVE_COLUMNS,
    Column,
    check_column,
    is_short,
    label_of,
    listed,
)
from .table import Table, labels_of, notes_of
from .verifiers import verifier_layouts

# The columns of a call, and which of them show that it was made: all of one of these sets.
MARKS: tuple[tuple[Sequence[Column], Sequence[frozenset[str]]], ...] = (
    (COLUMNS, (frozenset({"verdict"}), frozenset({"status"}))),
    (CLEAN_COLUMNS, (frozenset({"clean", "change"}),)),
    # A file of the audit page has no identity.
    (DUPLICATE_COLUMNS, (frozenset({"duplicate_of", "copies"}),)),
    (SUPPRESS_COLUMNS, (frozenset({"suppressed"}),)),
    (DECISION_COLUMNS, (frozenset({"decision", "decided_address"}),)),
    (ACTION_COLUMNS, (frozenset({"action", "action_why"}),)),
    (CONTRADICTION_COLUMNS, (frozenset({"outcome", "contradiction"}),)),
    (WAVE_COLUMNS, (frozenset({"wave"}),)),
    (RISK_COLUMNS, (frozenset({"bounce_risk", "risk_low", "risk_high"}),)),
)
# What only the set "all" has, but for `source`, which is also written beside what another verifier
# said.
RARE = frozenset(column.name for column in COLUMNS if not column.in_core) - {"source"}
# Earlier releases did not write `why`.
WHOLE_SET = frozenset(column.name for column in COLUMNS) - {"why"}
EVERY = {column.name: column for column in (*PART_COLUMNS, *HELD_COLUMNS)}
for columns_of_call, _ in MARKS:
    EVERY |= {column.name: column for column in columns_of_call}


def one_of(words: Collection[str]) -> str:
    return f"({'|'.join(map(re.escape, words))})"


def some_of(pattern: str) -> str:
    return f"{pattern}(;{pattern})*"


# What the cells of a column are if it is ours, by its name; other columns of text are free text.
WORD = r"[^\s;=]+"  # a service may have reasons and codes of its own
HOST = r"[^\s@;]+"
ADDRESS = ".+@.+"
PATTERNS = {
    "verdict": one_of(list(Verdict)),
    "status": one_of(list(Status)),
    "action": one_of(ACTIONS),
    "decision": one_of(DECISIONS),
    "why": WORD,
    "details": WORD,
    "reasons": some_of(WORD),
    "validation_type": one_of(list(ValidationType)),
    "error": WORD,
    "checks": some_of(rf"{WORD}=(true|false)"),
    "mx_records": some_of(HOST),
    "operator": HOST,
    "smtp_host": HOST,
    "change": some_of(one_of([*(repair.name for repair in REPAIRS), ACCEPTED])),
    "outcome": "hard|delivered|complaint",
    "suggestion": ADDRESS,
    "normalized": ADDRESS,
    "clean": ADDRESS,
    "decided_address": ADDRESS,
}
SOURCES = ("local", "remote", "journal")  # and the names of other verifiers
# Of kinds that a file may turn into numbers or text: SQLite makes numbers of truth values.
LITERALS = {
    "bool": r"(?i:true|false)|[01](\.0)?",
    "count": r"\d+(\.0)?",
    "rate": r"[0-9.]+(e-\d+)?",
    "moment": r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?( ?(Z|UTC|[+-]\d\d:?\d\d))?",
}


@dataclass(frozen=True)
class ExistingColumn:
    """A column of the caller's frame that has the name of a result column."""

    label: Any
    column: Column
    cells: Any
    is_single: bool  # no other column has its label
    is_empty: bool
    foreign: str | None  # the first value that is never in this result column, for a message
    is_noted: bool  # a note says that a call wrote it

    def read(self) -> pa.StringArray:
        return read_present(self.cells)


@dataclass(frozen=True)
class ExistingResults:
    """The columns beside a verified column that have the names of result columns."""

    table: Table
    prefix: str | None
    columns: Mapping[str, ExistingColumn]  # by name
    earlier: Mapping[str, Column]  # by name, those that earlier calls wrote and that can be ours

    def kept_repairs(self) -> pa.RecordBatch | None:
        """The addresses beside the column, by `clean`, an earlier call or the user's own hand.

        They are in `clean`, null where there is none; what was done is in `change`, null for
        nothing, if that column is there. None if there is no such column.
        """
        clean = self.columns.get("clean")
        if clean is None:
            return None
        is_theirs = clean.is_single and clean.foreign is None
        if not is_theirs and "clean" not in self.earlier:
            return None
        repairs = {"clean": clean.read()}
        if "change" in self.earlier:
            repairs["change"] = self.columns["change"].read()
        return pa.record_batch(repairs)

    def name_columns(
        self, columns: Sequence[Column], earlier: Collection[str] | None = None
    ) -> list[Any]:
        """Labels of new result columns; a `SettingsError` if one would replace somebody else's.

        `earlier` are the names of the columns that may be replaced; by default those of earlier
        calls.
        """
        if earlier is None:
            earlier = self.earlier
        written = columns_of_calls(earlier)
        labels = new_labels(self.table, self.prefix, columns)
        for label, column in zip(labels, columns, strict=True):
            existing = self.columns.get(column.name)
            if existing is None:
                continue
            check_column(label, self.table.labels())
            if column.name in earlier:
                continue
            why = None
            if existing.foreign is not None:
                why = f"it holds {existing.foreign}, which mailverdict never writes there"
            elif column.name not in written and not existing.is_empty:
                why = "neither a note nor the columns beside it show that it did"
            if why is not None:
                raise SettingsError(
                    f"the frame already has a column {label!r} that mailverdict did not write; "
                    f"give another prefix, or drop it ({why})"
                )
        return labels


def read_existing(
    table: Table, prefix: str | None, extra: Iterable[Column] = ()
) -> ExistingResults:
    """Read the columns beside a verified one that have the names of result or `extra` columns."""
    named = {column.name: column for column in extra} | EVERY
    labels = new_labels(table, prefix, named.values())
    counts = Counter(table.labels())
    noted = table.notes().get("columns", ())
    columns = {}
    for label, column in zip(labels, named.values(), strict=True):
        if label not in counts:
            continue
        cells = table.cells(label)
        values = distinct_values(cells)
        columns[column.name] = ExistingColumn(
            label=label,
            column=column,
            cells=cells,
            is_single=counts[label] == 1,
            is_empty=not holds_any(values),
            foreign=foreign_value(values, column),
            is_noted=str(label) in noted,
        )
    return ExistingResults(table, prefix, columns, find_earlier(columns))


def find_earlier(existing: Mapping[str, ExistingColumn]) -> dict[str, Column]:
    """The columns in the frame that earlier calls wrote, by name, and whose content can be ours.

    Of the columns that only the set "all" has, the caller may have some of the same names: they are
    left out unless the whole set is there, or a note names them.
    """
    possible = [name for name, column in existing.items() if column.foreign is None]
    written = columns_of_calls(possible)
    if not existing.keys() >= WHOLE_SET:
        written -= RARE
    earlier = {}
    for name in possible:
        if name in written or existing[name].is_noted:
            earlier[name] = existing[name].column
    return earlier


def columns_of_calls(names: Collection[str]) -> set[str]:
    """The names of all columns of the calls that these names show to have been made."""
    written: set[str] = set()
    for columns, marks in MARKS:
        if any(mark.issubset(names) for mark in marks):
            written.update(column.name for column in columns)
    if is_short(names):
        written.add("clean")
    return written


def name_columns(table: Table, prefix: str | None, columns: Sequence[Column]) -> list[Any]:
    """Labels of new result columns; a `SettingsError` if one would replace somebody else's."""
    labels = new_labels(table, prefix, columns)
    if set(table.labels()).isdisjoint(labels):
        return labels
    return read_existing(table, prefix, columns).name_columns(columns)


def name_new_columns(table: Table, prefix: str | None, columns: Sequence[Column]) -> list[Any]:
    """Labels of new result columns; a `SettingsError` if one would replace any column."""
    labels = new_labels(table, prefix, columns)
    existing = table.labels()
    for label in labels:
        if label not in existing:
            continue
        check_column(label, existing)
        raise SettingsError(
            f"the frame already has a column {label!r}, and overwrite=False: "
            "give another prefix, or drop it"
        )
    return labels


def new_labels(table: Table, prefix: str | None, columns: Iterable[Column]) -> list[Any]:
    return [label_of(table.column, prefix, column.name) for column in columns]


# --- what a column holds --------------------------------------------------------------------------


def foreign_value(values: pa.Array, column: Column) -> str | None:
    """The first of distinct values that is never in this column, for a message; None for none."""
    if column.kind == "row":
        return None
    pattern = LITERALS.get(column.kind) or pattern_of(column.name)
    if column.kind in LITERALS or is_text(values.type):
        whole = f"^(?s:({pattern})?)$"
        is_ours = pc.match_substring_regex(as_text(values), whole)
        values = values.filter(pc.invert(is_ours))
    if not len(values):
        return None
    first = values[0].as_py()
    if isinstance(first, str):
        return f"{first!r:.80}"
    return f"{first!s:.80}"


def pattern_of(name: str) -> str:
    if name == "source":
        services = [layout.service for layout in verifier_layouts()]
        return one_of([*SOURCES, *services])
    return PATTERNS.get(name, ".*")


def describe_kept(data: Table, prefix: str | None) -> str:
    """What a user must know about repaired addresses that were there already."""
    label = label_of(data.column, prefix, "clean")
    return (
        f"column {data.column!r}: the addresses in {label!r} were verified as they stand; "
        f"drop {label!r} to have the cells repaired again"
    )


# --- what was verified before ---------------------------------------------------------------------


def find_verified(frame: Any, prefix: str | None = None) -> tuple[Any, str | None]:
    """The only verified column of a frame, and its prefix, None for the default.

    It was verified if a `verdict` and a `status` with our words alone are named after it, or noted
    as made for it.
    """
    labels = labels_of(frame)
    notes = notes_of(frame)
    # By the label of each verdict the columns that it may be about, each with its prefix.
    candidates: dict[Any, list[tuple[Any, str | None]]] = {}
    for verdict in labels:
        *upper, last = verdict if isinstance(verdict, tuple) else (verdict,)
        lead = str(last).removesuffix("verdict")
        if lead == last or prefix not in (None, lead):
            continue
        status = (*upper, f"{lead}status") if upper else f"{lead}status"
        if not holds_only(frame, verdict, "verdict") or not holds_only(frame, status, "status"):
            continue
        named = []
        noted = []
        for label in labels:
            if label_of(label, None, "verdict") == verdict:
                named.append((label, None))
            if str(verdict) in notes.get(str(label), {}).get("columns", ()):
                noted.append((label, lead))
        candidates[verdict] = [*named, *noted]
    if not candidates:
        raise ColumnError(f"no column was verified: verify one first; there are {listed(labels)}")
    if len(candidates) > 1:
        several = []
        for verdict, columns in candidates.items():
            label = verdict
            if columns:
                label, _ = columns[0]
            several.append(label)
        raise ColumnError(f"several columns were verified: give one of {listed(several)}")
    ((verdict, columns),) = candidates.items()
    if columns:
        return columns[0]
    lead = str(verdict).removesuffix("verdict")
    others = [label for label in labels if str(label).removeprefix(lead) not in RESULT_NAMES]
    if not others and f"{lead}clean" in labels:  # of a list or a Series
        return f"{lead}clean", lead
    if not others:
        raise ColumnError(
            "this is the result of a list or a Series, without its addresses: verify a frame, as "
            "in mv.verify(pd.DataFrame({'email': addresses}), 'email')"
        )
    raise ColumnError(
        f"give the column that {verdict!r} is about, and its prefix={lead!r}: one of "
        f"{listed(others)}"
    )


def holds_only(frame: Any, label: Any, name: str) -> bool:
    """Whether a column is there once, and holds only what we write into a result column."""
    if labels_of(frame).count(label) != 1:
        return False
    values = distinct_values(Table(frame, label).values())
    return foreign_value(values, EVERY[name]) is None


def result_labels(column: Any, prefix: str | None) -> set[Any]:
    """The labels of all columns that any function of this package adds for a column."""
    return {label_of(column, prefix, name) for name in RESULT_NAMES}
