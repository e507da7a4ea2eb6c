"""Which columns of a frame an earlier call wrote, so that a new call may replace them.

The types and the content of a column must be those of a result column: a file changes the types, but not the words. A
column that any tool could have written, such as a text, counts only with a note of the earlier call or in a complete
set of result columns.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import SettingsError
from ..model.words import Status, ValidationType, Verdict
from .columns import (
    ACTION_COLUMNS,
    ACTIONS,
    BY_NAME,
    CATEGORIES,
    CLEAN_COLUMNS,
    COLUMNS,
    CONTRADICTION_COLUMNS,
    DUPLICATE_COLUMNS,
    REPAIR_COLUMNS,
    Column,
    check_column,
    label_of,
)
from .kinds import FrameKind
from .repair import ACCEPTED, REPAIRS
from .text_column import decode, is_text
from .verified import to_series

CORE_NAMES = tuple(c.name for c in COLUMNS if c.in_core)
# Columns that are written together.
NAME_SETS = (
    tuple(c.name for c in CLEAN_COLUMNS),
    tuple(c.name for c in REPAIR_COLUMNS),
    tuple(c.name for c in DUPLICATE_COLUMNS),
    ("duplicate_of", "copies"),  # of a file of the audit page
    tuple(c.name for c in CONTRADICTION_COLUMNS),
    tuple(c.name for c in ACTION_COLUMNS),
    CORE_NAMES,
    tuple(name for name in CORE_NAMES if name != "error_message"),  # the core of older files
    tuple(c.name for c in COLUMNS),
    tuple(c.name for c in COLUMNS if c.name != "version"),
)
WORD = r"[^\s;=]+"  # a service may have reasons and codes of its own
MOMENT = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?( ?(Z|UTC|[+-]\d\d:?\d\d))?"
FIRST_EPOCH = 1e9  # seconds: 2001, before any result
TRUTH = ("true", "false", "1", "0", "1.0", "0.0")  # SQLite makes numbers of truth values


def one_of(words: Collection[str]) -> str:
    return f"({'|'.join(map(re.escape, words))})"


def some_of(pattern: str) -> str:
    return f"{pattern}(;{pattern})*"


# What a text is if the column is ours; a text column without a pattern is free text.
PATTERNS = {
    "verdict": one_of(list(Verdict)),
    "status": one_of(list(Status)),
    "action": one_of(ACTIONS),
    "details": WORD,
    "reasons": some_of(WORD),
    "validation_type": one_of(list(ValidationType)),
    "error": WORD,
    "checks": some_of(rf"{WORD}=(true|false)"),
    "mx_records": some_of(r"[^\s@;]+"),
    "smtp_host": r"[^\s@;]+",
    "source": r"local|remote|journal",
    "change": some_of(one_of([*(each.name for each in REPAIRS), ACCEPTED])),
    **dict.fromkeys(("suggestion", "normalized", "clean"), r".+@.+"),
}
PAIR = frozenset(("verdict", "status"))
TELLING = ("verdict", "status", "action", "details", "reasons", "validation_type", "checks", "source", "change")


def check_overwritten(data: FrameKind, prefix: str | None, columns: Sequence[Column], *, overwrite: bool) -> None:
    """Raise a `SettingsError` if one of the columns is in the frame and not ours."""
    existing = existing_columns(data, prefix, columns)
    for label, each in existing.items():
        check_column(label, data.labels())
        if not overwrite:
            raise SettingsError(
                f"the frame already has a column {label!r}, and overwrite=False: give another prefix, or drop it"
            )
        if found := foreign_value(data.cells(label), each):
            raise SettingsError(refusal(label, f"it holds {found}, which mailverdict never writes there"))
    recognized = recognized_labels(data, prefix)
    doubtful = {label: c for label, c in existing.items() if label not in recognized}
    if not doubtful:
        return
    has_others = has_result_words(data, prefix)
    for label, each in doubtful.items():
        if has_values(data.cells(label)) and not (has_others and is_telling(each)):
            raise SettingsError(refusal(label, "neither a note nor the columns beside it show that it did"))


def result_labels(column: Any, prefix: str | None) -> set[Any]:
    """The labels of all columns that any function of this package adds for a column."""
    return {label_of(column, prefix, name) for names in NAME_SETS for name in names}


def refusal(label: Any, why: str) -> str:
    return (
        f"the frame already has a column {label!r} that mailverdict did not write; give another prefix, or drop it "
        f"({why})"
    )


def existing_columns(data: FrameKind, prefix: str | None, columns: Sequence[Column]) -> dict[Any, Column]:
    """Those of the columns whose label is in the frame, by label."""
    labels = data.labels()
    return {label: c for c in columns if (label := label_of(data.column, prefix, c.name)) in labels}


def earlier_columns(data: FrameKind, prefix: str | None, columns: Sequence[Column]) -> set[str]:
    """The names of these columns that are in the frame and that an earlier call added.

    Without a note or a complete set these are only verdict and status, and only if both have our words: beside a new
    verdict the older ones would be wrong.
    """
    recognized = recognized_labels(data, prefix)
    existing = existing_columns(data, prefix, columns)
    found = {c.name for label, c in existing.items() if label in recognized}
    ours = {
        c.name
        for label, c in existing.items()
        if (c.name in found or c.name in PAIR) and not foreign_value(data.cells(label), c)
    }
    return ours if ours >= PAIR else ours & found


def other_prefixes(data: FrameKind, prefix: str | None) -> list[str]:
    """Prefixes of verdicts that may be about this column although they have another prefix.

    Not those of another column: of its own name, or noted for it.
    """
    labels = [label for label in data.labels() if isinstance(label, str)]
    own, of_column = str(label_of(data.column, prefix, "")), set(data.notes().get("columns", ()))
    names = {f"{label}_" for label in labels if label != data.column}
    found = []
    for label in labels:
        other = label.removesuffix("verdict")
        is_of_another = other in names or (label in data.noted() and label not in of_column)
        if other in (label, own) or is_of_another:
            continue
        pair = {f"{other}{name}" for name in PAIR}
        if pair <= set(labels) and not any(foreign_value(data.cells(f"{other}{n}"), BY_NAME[n]) for n in PAIR):
            found.append(other)
    return found


def recognized_labels(data: FrameKind, prefix: str | None) -> set[Any]:
    """Labels that an earlier call noted, and those of complete sets of result columns."""
    labels, noted = set(data.labels()), data.noted()
    sets = ({label_of(data.column, prefix, name) for name in each} for each in NAME_SETS)
    return {label for label in labels if str(label) in noted}.union(*(each for each in sets if each <= labels))


def is_telling(column: Column) -> bool:
    """Whether its content shows what it is, beside another such column."""
    return column.name in TELLING or column.kind in ("bool", "moment")


def has_result_words(data: FrameKind, prefix: str | None) -> bool:
    """Whether two columns, or one with all our categories, have words that only our columns have under these names."""
    telling = 0
    for label, each in existing_columns(data, prefix, (*COLUMNS, *CLEAN_COLUMNS, *ACTION_COLUMNS)).items():
        cells = data.cells(label)
        if each.name in TELLING and has_values(cells) and not foreign_value(cells, each):
            telling += 2 if each.kind in CATEGORIES and has_categories(cells, CATEGORIES[each.kind]) else 1
    return telling >= 2


def has_categories(cells: Any, dtype: pd.CategoricalDtype) -> bool:
    """Whether the type of a column names all the words, as ours does; a caller's own names those in use."""
    if isinstance(cells, pd.Series):
        return isinstance(cells.dtype, pd.CategoricalDtype) and set(cells.dtype.categories) == set(dtype.categories)
    if not isinstance(cells, pa.Array | pa.ChunkedArray) or not pa.types.is_dictionary(cells.type):
        return False
    chunks = cells.chunks if isinstance(cells, pa.ChunkedArray) else [cells]
    return {word for chunk in chunks for word in chunk.dictionary.to_pylist()} == set(dtype.categories)


def has_values(cells: Any) -> bool:
    return any(value != "" for value in distinct(cells))


def distinct(cells: Any) -> list[Any]:
    """The distinct values that are not missing."""
    values = to_series(cells).dropna()
    try:
        return list(values.unique())
    except TypeError:  # lists and other cells that have no hash
        return list(values)


def foreign_value(cells: Any, column: Column) -> str | None:
    """The first value that is never in this column, as text for a message; None if there is none."""
    if column.kind == "row":
        return None  # labels of the index, of any type
    is_ours = CHECKS.get(column.kind)
    texts = None if is_ours else text_values(cells)
    if texts is None:
        if column.kind == "moment" and is_moments(cells):
            return None
        values = [value for value in distinct(cells) if value != ""]
        foreign = [value for value in values if not (is_ours(value) if is_ours else isinstance(value, str))]
        if foreign or is_ours:
            return f"{plain(foreign[0])!r:.80}" if foreign else None
        texts = pa.array(values, pa.string())
    if column.name not in PATTERNS:
        return None
    is_known = pc.match_substring_regex(texts, f"(?s)^(?:(?:{PATTERNS[column.name]})|)$")
    found = pc.index(is_known, False).as_py()
    return None if found < 0 else f"{texts[found].as_py()!r:.80}"


def text_values(cells: Any) -> pa.Array | pa.ChunkedArray | None:
    """The cells of a typed text column as Arrow text; None for any other column."""
    if isinstance(cells, pd.Series):
        if not isinstance(cells.dtype, pd.StringDtype | pd.ArrowDtype):
            return None
        cells = pa.array(cells, from_pandas=True)
    if not isinstance(cells, pa.Array | pa.ChunkedArray) or pa.types.is_dictionary(cells.type):
        return None
    plain_cells = decode(cells)
    return plain_cells if is_text(plain_cells.type) else None


def is_moments(cells: Any) -> bool:
    """Whether the type of a column has times only."""
    if isinstance(cells, pd.Series):
        return pd.api.types.is_datetime64_any_dtype(cells.dtype)
    return isinstance(cells, pa.Array | pa.ChunkedArray) and pa.types.is_timestamp(cells.type)


def plain(value: Any) -> Any:
    """A NumPy number as that of Python, which is shorter in a message."""
    return value.item() if isinstance(value, np.generic) else value


def is_epoch(value: Any) -> bool:
    """Whether a number can be a time since 1970 in seconds or a smaller unit, as pandas writes times to JSON."""
    return isinstance(value, numbers.Real) and float(value) >= FIRST_EPOCH


CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "bool": lambda value: str(value).lower() in TRUTH,
    "count": lambda value: re.fullmatch(r"\d+(\.0)?", str(value)) is not None,
    "moment": lambda value: hasattr(value, "year") or is_epoch(value) or re.fullmatch(MOMENT, str(value)) is not None,
}
