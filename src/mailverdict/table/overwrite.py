"""Which columns of a frame earlier calls wrote, so that a new call may replace them.

A call left its mark if the columns that show it (`MARKS`) hold only our words, whatever file the frame was in: then all
columns of that call are ours. So is each column that a note of a call names. A column whose content cannot be ours is never replaced: with
``--in-place`` the copy takes the place of the caller's file.

    email, email_verdict (valid, invalid), email_role (true)    email_verdict and email_role are ours
    email, email_verdict (valid), email_why ("he asked for it") email_why cannot be ours: an error if it would be replaced
    email, email_role (true)                                    nothing shows that it is ours: an error, too
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ColumnError, SettingsError
from ..model.words import ACTIONS, DECISIONS, Status, ValidationType, Verdict
from ..repair.repair import ACCEPTED, REPAIRS
from .cells import is_text, read_present, to_array
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
# What only the set "all" has, but for `source`, which is also written beside what another verifier said.
RARE = frozenset(column.name for column in COLUMNS if not column.in_core) - {"source"}
# Earlier releases did not write `why`.
WHOLE_SET = frozenset(column.name for column in COLUMNS) - {"why"}
EVERY = {
    column.name: column
    for columns in (PART_COLUMNS, HELD_COLUMNS, *(columns for columns, _ in MARKS))
    for column in columns
}


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


def earlier_columns(data: Table, prefix: str | None) -> dict[str, Column]:
    """The columns in the frame that earlier calls wrote, by name, and whose content can be ours.

    Of the columns that only the set "all" has, the caller may have some of the same names: they are left out unless the
    whole set is there, or a note names them.
    """
    existing = set(data.labels())
    noted = data.notes().get("columns", ())
    present = set()
    ours: dict[str, Column] = {}
    is_noted: set[str] = set()
    for name, column in EVERY.items():
        label = label_of(data.column, prefix, name)
        if label not in existing:
            continue
        present.add(name)
        if foreign_value(data.cells(label), column) is not None:
            continue
        ours[name] = column
        if str(label) in noted:
            is_noted.add(name)
    written = columns_of_calls(ours)
    if not present >= WHOLE_SET:
        written -= RARE
    written |= is_noted
    return {name: column for name, column in ours.items() if name in written}


def columns_of_calls(names: Collection[str]) -> set[str]:
    """The names of all columns of the calls that were made, as the columns with these names show."""
    written: set[str] = set()
    for columns, marks in MARKS:
        if any(mark.issubset(names) for mark in marks):
            written.update(column.name for column in columns)
    if is_short(names):
        written.add("clean")
    return written


def name_columns(
    data: Table,
    prefix: str | None,
    columns: Sequence[Column],
    *,
    overwrite: bool = True,
    earlier: Mapping[str, Column] | None = None,
) -> list[Any]:
    """Labels of new result columns; a `SettingsError` if one would replace a column that is not ours.

    Without `overwrite` also if it would replace one of an earlier call. `earlier` are the columns that
    `earlier_columns` gives, if they are known.
    """
    labels = [label_of(data.column, prefix, column.name) for column in columns]
    existing = set(data.labels())
    if existing.isdisjoint(labels):
        return labels
    if earlier is None:
        earlier = earlier_columns(data, prefix)
    written = columns_of_calls(earlier)
    for label, column in zip(labels, columns, strict=True):
        if label not in existing:
            continue
        check_column(label, data.labels())
        if not overwrite:
            raise SettingsError(
                f"the frame already has a column {label!r}, and overwrite=False: "
                "give another prefix, or drop it"
            )
        if column.name in earlier:
            continue
        cells = data.cells(label)
        why = None
        if found := foreign_value(cells, column):
            why = f"it holds {found}, which mailverdict never writes there"
        elif column.name not in written and has_values(cells):
            why = "neither a note nor the columns beside it show that it did"
        if why is not None:
            raise SettingsError(
                f"the frame already has a column {label!r} that mailverdict did not write; "
                f"give another prefix, or drop it ({why})"
            )
    return labels


def foreign_value(cells: Any, column: Column) -> str | None:
    """The first value that is never in this column, as text for a message; None if there is none."""
    if column.kind == "row":
        return None
    values = to_array(cells).unique().drop_null()
    pattern = LITERALS.get(column.kind) or pattern_of(column.name)
    if column.kind in LITERALS or is_text(values.type):
        is_ours = pc.match_substring_regex(values.cast(pa.string()), f"^(?s:({pattern})?)$")
        values = values.filter(pc.invert(is_ours))
    if not len(values):
        return None
    first = values[0].as_py()
    return f"{first!r:.80}" if isinstance(first, str) else f"{first!s:.80}"


def pattern_of(name: str) -> str:
    if name == "source":
        return one_of([*SOURCES, *(layout.service for layout in verifier_layouts())])
    return PATTERNS.get(name, ".*")


def has_values(cells: Any) -> bool:
    return any(value != "" for value in to_array(cells).unique().drop_null().to_pylist())


# --- what was repaired before ---------------------------------------------------------------------------------------


def kept_repairs(
    data: Table, prefix: str | None, earlier: Collection[str] | None = None
) -> pa.RecordBatch | None:
    """The addresses beside the column, by `clean`, an earlier call or the user's own hand; None if there are none.

    They are in `clean`, null where there is none; what was done is in `change`, null for nothing, if that column is
    there. `earlier` are the names of `earlier_columns` if they are known.
    """
    if earlier is None:
        earlier = earlier_columns(data, prefix)
    label = label_of(data.column, prefix, "clean")
    if "clean" not in earlier:
        if data.labels().count(label) != 1:
            return None
        if foreign_value(data.cells(label), EVERY["clean"]) is not None:
            return None
    repairs = {"clean": read_present(data.cells(label))}
    if "change" in earlier:
        change = label_of(data.column, prefix, "change")
        repairs["change"] = read_present(data.cells(change))
    return pa.record_batch(repairs)


def describe_kept(data: Table, prefix: str | None) -> str:
    """What a user must know about repaired addresses that were there already."""
    label = label_of(data.column, prefix, "clean")
    return (
        f"column {data.column!r}: the addresses in {label!r} were verified as they stand; "
        f"drop {label!r} to have the cells repaired again"
    )


# --- what was verified before ---------------------------------------------------------------------------------------


def find_verified(frame: Any, prefix: str | None = None) -> tuple[Any, str | None]:
    """The only verified column of a frame, and its prefix, None for the default.

    It was verified if a `verdict` and a `status` with our words alone are named after it, or noted as made for it.
    """
    labels, notes = labels_of(frame), notes_of(frame)
    found: dict[Any, list[tuple[Any, str | None]]] = {}
    for verdict in labels:
        *upper, last = verdict if isinstance(verdict, tuple) else (verdict,)
        lead = str(last).removesuffix("verdict")
        if lead == last or prefix not in (None, lead):
            continue
        status = (*upper, f"{lead}status") if upper else f"{lead}status"
        pairs = ((verdict, "verdict"), (status, "status"))
        if any(
            labels.count(at) != 1 or foreign_value(Table(frame, at).values(), EVERY[name])
            for at, name in pairs
        ):
            continue
        named = [each for each in labels if label_of(each, None, "verdict") == verdict]
        noted = [
            each for each in labels if str(verdict) in notes.get(str(each), {}).get("columns", ())
        ]
        found[verdict] = [*((each, None) for each in named), *((each, lead) for each in noted)]
    if not found:
        raise ColumnError(f"no column was verified: verify one first; there are {listed(labels)}")
    if len(found) > 1:
        columns = [each[0][0] if each else verdict for verdict, each in found.items()]
        raise ColumnError(f"several columns were verified: give one of {listed(columns)}")
    ((verdict, columns),) = found.items()
    if columns:
        return columns[0]
    lead = str(verdict).removesuffix("verdict")
    others = [each for each in labels if str(each).removeprefix(lead) not in RESULT_NAMES]
    if not others and f"{lead}clean" in labels:  # of a list or a Series
        return f"{lead}clean", lead
    if not others:
        raise ColumnError(
            "this is the result of a list or a Series, without its addresses: verify a frame, as in "
            "mv.verify(pd.DataFrame({'email': addresses}), 'email')"
        )
    raise ColumnError(
        f"give the column that {verdict!r} is about, and its prefix={lead!r}: one of {listed(others)}"
    )


def result_labels(column: Any, prefix: str | None) -> set[Any]:
    """The labels of all columns that any function of this package adds for a column."""
    return {label_of(column, prefix, name) for name in RESULT_NAMES}
