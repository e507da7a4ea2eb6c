"""Which columns of a frame earlier calls wrote, so that a new call may replace them.

A frame was verified before if its columns `verdict` and `status` hold only our words, whatever file it was in; `MARKS`
has the same for the other functions. Of fewer columns the note of the call is needed. A column whose content cannot be
ours is never replaced: with ``--in-place`` the copy takes the place of the caller's file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ColumnError, SettingsError
from ..model.words import ACTIONS, DECISIONS, Status, ValidationType, Verdict
from ..repair.repair import ACCEPTED, REPAIRS
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
from .text_column import is_text, read_present, to_array
from .verifiers import verifier_layouts

# The columns of each function, and those of them that show, if they are there with our words, that it was called.
MARKS: tuple[tuple[tuple[Column, ...], frozenset[str]], ...] = (
    (COLUMNS, frozenset(("verdict", "status"))),
    (CLEAN_COLUMNS, frozenset(("clean", "change"))),
    (
        DUPLICATE_COLUMNS,
        frozenset(("duplicate_of", "copies")),
    ),  # a file of the audit page has no identity
    (SUPPRESS_COLUMNS, frozenset(("suppressed",))),
    (DECISION_COLUMNS, frozenset(("decision", "decided_address"))),
    (ACTION_COLUMNS, frozenset(("action", "action_why"))),
    (CONTRADICTION_COLUMNS, frozenset(("outcome", "contradiction"))),
    (WAVE_COLUMNS, frozenset(("wave",))),
    (RISK_COLUMNS, frozenset(("bounce_risk", "risk_low", "risk_high"))),
)
EVERY = {
    each.name: each
    for columns in (PART_COLUMNS, HELD_COLUMNS, *(columns for columns, _ in MARKS))
    for each in columns
}
WORD = r"[^\s;=]+"  # a service may have reasons and codes of its own
ANY_TEXT = ".*"


@dataclass(frozen=True)
class KeptRepairs:
    """What was repaired before, by row."""

    clean: pa.StringArray  # the addresses; null where there is none
    change: (
        pa.StringArray | None
    )  # what was done; null for nothing; None if the column is not there
    notice: str  # for the user: that these addresses are verified


def one_of(words: Collection[str]) -> str:
    return f"({'|'.join(map(re.escape, words))})"


def some_of(pattern: str) -> str:
    return f"{pattern}(;{pattern})*"


# What the cells of a column are if it is ours, by its name or its kind; other columns of text are free text.
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
    "mx_records": some_of(r"[^\s@;]+"),
    **dict.fromkeys(("operator", "smtp_host"), r"[^\s@;]+"),
    "change": some_of(one_of([*(each.name for each in REPAIRS), ACCEPTED])),
    "outcome": "hard|delivered|complaint",
    **dict.fromkeys(("suggestion", "normalized", "clean", "decided_address"), ".+@.+"),
}
SOURCES = ("local", "remote", "journal")  # and the names of other verifiers
# Of kinds that a file may turn into numbers or text: SQLite makes numbers of truth values.
LITERALS = {
    "bool": r"(?i:true|false)|[01](\.0)?",
    "count": r"\d+(\.0)?",
    "rate": r"[0-9.]+(e-\d+)?",
    "moment": r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?( ?(Z|UTC|[+-]\d\d:?\d\d))?",
}


def name_columns(
    data: Table,
    prefix: str | None,
    columns: Sequence[Column],
    *,
    overwrite: bool = True,
    earlier: Collection[str] | None = None,
) -> list[Any]:
    """Labels of new result columns; a `SettingsError` if one would replace a column that is not ours.

    Without `overwrite` also if it would replace one of an earlier call. `earlier` are the names of `earlier_columns` if
    they are known.
    """
    labels = [label_of(data.column, prefix, each.name) for each in columns]
    existing = set(data.labels())
    if existing.isdisjoint(labels):
        return labels
    earlier = earlier_columns(data, prefix) if earlier is None else earlier
    doubtful: dict[Any, Column] = {}
    for label, each in zip(labels, columns, strict=True):
        if label in existing:
            check_column(label, data.labels())
            if not overwrite:
                raise SettingsError(
                    f"the frame already has a column {label!r}, and overwrite=False: give another prefix, or drop it"
                )
            if each.name not in earlier:
                doubtful[label] = each
    for label, each in doubtful.items():
        if found := foreign_value(data.cells(label), each):
            raise SettingsError(
                refusal(label, f"it holds {found}, which mailverdict never writes there")
            )
    marked = marked_names(earlier)
    for label, each in doubtful.items():
        if each.name not in marked and has_values(data.cells(label)):
            raise SettingsError(
                refusal(label, "neither a note nor the columns beside it show that it did")
            )
    return labels


def refusal(label: Any, why: str) -> str:
    return (
        f"the frame already has a column {label!r} that mailverdict did not write; give another prefix, or drop it "
        f"({why})"
    )


def earlier_columns(data: Table, prefix: str | None) -> dict[str, Column]:
    """The columns in the frame that earlier calls wrote, by name, and whose content can be ours.

    Of those of a verification the core set and `source`, which is beside it where another verifier was known; the
    others only if they are noted or the whole set is there: the caller may have a column with such a name.
    """
    labels = {name: label_of(data.column, prefix, name) for name in EVERY}
    existing, noted = set(data.labels()), data.notes().get("columns", ())
    present = {name: each for name, each in EVERY.items() if labels[name] in existing}
    ours = {
        name: each
        for name, each in present.items()
        if not foreign_value(data.cells(labels[name]), each)
    }
    marked = marked_names(ours)
    if not present.keys() >= {
        c.name for c in COLUMNS if c.name != "why"
    }:  # which earlier releases did not write
        marked -= {c.name for c in COLUMNS if not c.in_core and c.name != "source"}
    return {
        name: each for name, each in ours.items() if name in marked or str(labels[name]) in noted
    }


def kept_repairs(
    data: Table, prefix: str | None, earlier: Collection[str] | None = None
) -> KeptRepairs | None:
    """The addresses beside the column, by `clean`, an earlier call or the user's own hand; None if there are none.

    `earlier` are the names of `earlier_columns` if they are known.
    """
    earlier = earlier_columns(data, prefix) if earlier is None else earlier
    label, change = (label_of(data.column, prefix, name) for name in ("clean", "change"))
    if "clean" not in earlier and (
        data.labels().count(label) != 1 or foreign_value(data.cells(label), EVERY["clean"])
    ):
        return None
    return KeptRepairs(
        read_present(data.cells(label)),
        read_present(data.cells(change)) if "change" in earlier else None,
        f"column {data.column!r}: the addresses in {label!r} were verified as they stand; drop {label!r} to have the "
        "cells repaired again",
    )


def marked_names(ours: Collection[str]) -> set[str]:
    """The names of all columns of the functions that were called before, by those in the frame."""
    names = {each.name for columns, marks in MARKS if marks.issubset(ours) for each in columns}
    return {*names, "clean"} if is_short(ours) else names


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


def has_values(cells: Any) -> bool:
    return any(value != "" for value in distinct(cells).to_pylist())


def distinct(cells: Any) -> pa.Array:
    """The distinct values that are not missing; texts of those of several kinds."""
    return to_array(cells).unique().drop_null()


def pattern_of(name: str) -> str:
    if name == "source":
        return one_of([*SOURCES, *(each.service for each in verifier_layouts())])
    return PATTERNS.get(name, ANY_TEXT)


def foreign_value(cells: Any, column: Column) -> str | None:
    """The first value that is never in this column, as text for a message; None if there is none."""
    if column.kind == "row":
        return None
    values = distinct(cells)
    pattern = LITERALS.get(column.kind) or pattern_of(column.name)
    if column.kind in LITERALS or is_text(values.type):
        is_ours = pc.match_substring_regex(values.cast(pa.string()), f"^(?s:({pattern})?)$")
        values = values.filter(pc.invert(is_ours))
    if not len(values):
        return None
    first = values[0].as_py()
    return f"{first!r:.80}" if isinstance(first, str) else f"{first!s:.80}"
