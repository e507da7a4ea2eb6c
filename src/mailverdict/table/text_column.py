"""A column of any dtype as Arrow text: which cells are texts, which are missing, which hold something else.

Python objects are read cell by cell only in a column that holds more than text.
"""

from __future__ import annotations

import contextlib
import datetime
import numbers
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.syntax.kernels import OFFSET_MAX, Bools, Octets, build_strings, octets_of, offsets_of, to_bools
from ..errors import InputError
from ..model.table import one_array, texts_where
from .columns import map_columns
from .list_cells import SEQUENCES, read_list_column, texts_of, to_json

# Text beyond this many characters is cut before any work: no address is longer than 254 octets
# (RFC 5321 section 4.5.3.1.3), and a 10 MB cell must not travel through every later step.
LONGEST_TEXT = 1_000
SURROGATES = "text with lone surrogates, which are not characters"
NOT_UTF8 = "bytes that are not UTF-8"

# Texts that stand for a missing value: those that pandas.read_csv reads as one by default (argument `na_values`; pandas
# 3.1, 2026-11), so that a file gives the same statuses whether pandas or the command line reads it. Case counts.
MISSING_TEXTS = pa.array(
    [
        *("#N/A", "#N/A N/A", "#NA", "<NA>", "N/A", "NA", "NULL", "None", "n/a", "null"),
        *("NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
    ]
)
LONGEST_MISSING = 8  # octets
PIECE_ROWS = 131_072  # worked on at once; as in the syntax check

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TextColumn:
    """A column as it was read: rows with a text, rows with something else, and all others, which are missing."""

    texts: pa.StringArray  # in row order, without nulls; stripped, unless they were to keep the blanks
    stripped: pa.StringArray  # the same, stripped
    rows: Rows | None  # row of each text; None: every row is a text
    nontext_rows: Rows  # rows that hold something other than text, ascending
    nontext_types: pa.DictionaryArray  # what those hold, in words
    size: int  # number of rows

    def notice(self, column: object) -> str | None:
        """What the cells of a column without any text hold, as a warning; None if some cell is text, or all are empty.

        >>> read_values([5, None, 2.5]).notice("email")
        "column 'email' has no text: each cell that is not empty holds a number; is it the right column?"
        """
        if len(self.texts) or not len(self.nontext_rows):
            return None
        kinds = pc.unique(self.nontext_types).dictionary.to_pylist()
        if SURROGATES in kinds:  # that is text
            return None
        found = " or ".join(kinds)
        which = "the data" if column is None else f"column {column!r:.80}"
        right = "" if column is None else "; is it the right column?"
        return f"{which} has no text: each cell that is not empty holds {found}{right}"

    def warn(self, column: object, stacklevel: int) -> None:
        """Emit the notice; `stacklevel` is what the caller would give to `warnings.warn` itself."""
        if notice := self.notice(column):
            warnings.warn(notice, UserWarning, stacklevel=stacklevel + 1)


@dataclass(frozen=True)
class NonText:
    """Cells that hold something other than text."""

    rows: Rows  # ascending
    types: pa.DictionaryArray  # what they hold, in words


def read_values(
    values: Any, *, for_repair: bool = False, longest: int = LONGEST_TEXT, instead: pa.StringArray | None = None
) -> TextColumn:
    """Read a Series, an Arrow array or any list-like of cells; an `InputError` for texts of more than 2 GiB in all.

    With `for_repair` texts keep the blanks around them, unless they are far too long: `longest` characters or more; and
    a list of texts is a text, written as JSON. Texts of `instead` take the place of the cells beside them.
    """
    array, nontext = read_texts(values, for_repair=for_repair)
    if instead is not None:
        is_left = instead.is_null().take(pa.array(nontext.rows))
        array = pc.coalesce(instead, array)
        nontext = NonText(nontext.rows[to_bools(is_left)], nontext.types.filter(is_left))
    array = empty_nulls(array)
    stripped = strip(array, longest)
    present = find_present(stripped)
    rows = None if present.all() else np.flatnonzero(present)
    kept = stripped  # with the blanks around them only for a repair
    if for_repair and stripped is not array:
        is_short = pc.less(pc.binary_length(array), longest)
        kept = pc.if_else(is_short, array, stripped) if is_short.false_count else array

    def without_missing(cells: pa.StringArray) -> pa.StringArray:
        return cells if rows is None else take_present(cells, rows, present)

    texts = without_missing(kept)
    stripped_texts = texts if kept is stripped else without_missing(stripped)
    return TextColumn(texts, stripped_texts, rows, nontext.rows, nontext.types, len(stripped))


def read_present(values: Any) -> pa.StringArray:
    """The texts of a column by row, stripped; null where there is none."""
    texts = strip_texts(read_texts(values, for_repair=False)[0])
    return texts_where(pc.not_equal(texts, ""), texts)


def empty_nulls(texts: pa.StringArray) -> pa.StringArray:
    """Empty texts in place of nulls; offsets and octets are shared if no null has octets, as is usual."""
    if not texts.null_count:
        return texts
    nulls, offsets = np.flatnonzero(to_bools(texts.is_null())), offsets_of(texts)
    if (offsets.take(nulls) != offsets.take(nulls + 1)).any():
        return texts.fill_null("")
    return pa.Array.from_buffers(texts.type, len(texts), [None, *texts.buffers()[1:]], 0, texts.offset)


def take_present(texts: pa.StringArray, rows: Rows, present: Bools) -> pa.StringArray:
    """The texts of `rows`, those that are present; the octets are shared if no other row has any.

    >>> take_present(pa.array(["ada", "", "ben"]), np.array([0, 2]), np.array([True, False, True])).to_pylist()
    ['ada', 'ben']
    """
    offsets, absent = offsets_of(texts), np.flatnonzero(~present)
    if (offsets.take(absent) != offsets.take(absent + 1)).any():
        return texts.filter(pa.array(present))
    bounds = np.empty(len(rows) + 1, np.int32)
    offsets.take(rows, out=bounds[:-1], mode="clip")
    bounds[-1] = offsets[-1]
    return build_strings(octets_of(texts), bounds)


def join_texts(columns: Sequence[pa.StringArray]) -> pa.StringArray:
    """The texts of all columns one after another."""
    return columns[0] if len(columns) == 1 else to_string_array(pa.chunked_array(columns, pa.string()))


def find_present(stripped: pa.StringArray) -> Bools:
    """Which texts are not empty, and do not stand for a missing value."""
    sizes = np.diff(offsets_of(stripped))
    present: Bools = sizes > 0
    short = np.flatnonzero(present & (sizes <= LONGEST_MISSING))
    present[short] = ~to_bools(pc.is_in(stripped.take(pa.array(short)), value_set=MISSING_TEXTS))
    return present


def strip(array: pa.StringArray, longest: int) -> pa.StringArray:
    """Strip blanks, then cut what is far too long; in the other order leading blanks would push the text out."""
    return cut_long(strip_texts(array), longest)


def cut_long(texts: pa.StringArray, longest: int = LONGEST_TEXT) -> pa.StringArray:
    """The texts, longer ones cut after `longest` characters."""
    is_long = np.diff(offsets_of(texts)).max(initial=0) > longest
    return pc.utf8_slice_codeunits(texts, 0, longest) if is_long else texts


def strip_texts(texts: pa.StringArray) -> pa.StringArray:
    """The texts without the blanks around them; the same array if there are none.

    Only texts whose first or last octet may belong to a blank are read: a copy of a column is large.
    """
    if texts.null_count == len(texts) or not len(octets_of(texts)):
        return texts
    rows = np.flatnonzero(np.concatenate(map_columns(may_have_blanks, pieces_of(texts), len(texts))))
    written = texts.take(pa.array(rows))
    stripped = pc.utf8_trim_whitespace(written)
    return texts if stripped.equals(written) else replace_texts(texts, rows, stripped)


def may_have_blanks(texts: pa.StringArray) -> Bools:
    """Whether the first or last octet of each text may belong to a blank; of an empty text, octets beside it."""
    bounds, octets = offsets_of(texts), octets_of(texts)
    return is_edge_of_blank(octets.take(bounds[:-1], mode="clip")) | is_edge_of_blank(
        octets.take(bounds[1:] - 1, mode="clip")
    )


def replace_texts(texts: pa.StringArray, rows: npt.NDArray[np.intp], others: pa.StringArray) -> pa.StringArray:
    """The texts with other ones in some rows; twice as fast as `pc.replace_with_mask`.

    >>> replace_texts(pa.array(["ada", "ben", None]), np.array([2, 0]), pa.array(["eve", "dan"])).to_pylist()
    ['dan', 'ben', 'eve']
    """
    if not len(rows):
        return texts
    order = np.argsort(rows, kind="stable")
    rows, others = rows[order], others.take(pa.array(order))

    def replace_in(start: int) -> pa.StringArray:
        piece = texts.slice(start, PIECE_ROWS)
        first, last = np.searchsorted(rows, (start, start + PIECE_ROWS)).tolist()
        at = np.arange(len(piece))
        at[rows[first:last] - start] = np.arange(len(piece), len(piece) + last - first)
        return pa.concat_arrays([piece, others.slice(first, last - first)]).take(pa.array(at))

    return pa.concat_arrays(map_columns(replace_in, range(0, len(texts), PIECE_ROWS), len(texts)))


def is_edge_of_blank(octets: Octets) -> Bools:
    """Whether a blank may begin or end with an octet: it is not a visible ASCII character."""
    return np.subtract(octets, ord("!")) > ord("~") - ord("!")  # numbers without a sign wrap around


def read_texts(values: Any, *, for_repair: bool) -> tuple[pa.StringArray, NonText]:
    """A column of any dtype as Arrow text, with nulls for cells that are not text, and what those cells hold."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return from_arrow(values, for_repair=for_repair)
    values = values if isinstance(values, pd.Series) else pd.Series(list(values), dtype=object)
    if not holds_objects(values.dtype):
        # Arrow does not have complex, sparse and some other dtypes.
        with contextlib.suppress(pa.ArrowNotImplementedError, pa.ArrowTypeError):
            return from_arrow(pa.array(values, from_pandas=True), for_repair=for_repair)
    return from_objects(values.astype(object).to_numpy(), for_repair=for_repair)


def holds_objects(dtype: Any) -> bool:
    """Whether the cells are Python objects, of which each may be something else."""
    inner = dtype.categories.dtype if isinstance(dtype, pd.CategoricalDtype) else dtype
    return bool(inner == np.dtype(object))


def from_arrow(array: pa.Array | pa.ChunkedArray, *, for_repair: bool = False) -> tuple[pa.StringArray, NonText]:
    """An Arrow column: text as it is; of any other type all cells that are not null are not text."""
    values = decode(array)
    if is_octets(values.type):
        values = decode_octets(values)
    if is_list(values.type):
        return from_lists(values, for_repair=for_repair)
    if not is_text(values.type):
        return pa.nulls(len(values), pa.string()), nontext_column(values)
    try:
        map_columns(lambda piece: piece.validate(full=True), pieces_of(values), len(values))
    except pa.ArrowInvalid:  # Arrow does not check the octets of text, for example when it reads Parquet
        return from_cells(values.cast(pa.large_binary()).to_pylist(), is_octets=True)
    return to_string_array(values), NO_NONTEXT


def from_lists(array: pa.Array | pa.ChunkedArray, *, for_repair: bool) -> tuple[pa.StringArray, NonText]:
    """An Arrow column of lists; those without any item are missing."""
    lists = one_array(array).cast(pa.large_list(array.type.value_type))
    items = decode(lists.values)
    texts, is_other = read_list_column(lists, items, are_texts=is_text(items.type), for_repair=for_repair)
    rows = np.flatnonzero(is_other)
    return texts, NonText(rows, pa.repeat(pa.scalar("a list"), len(rows)).dictionary_encode())


def pieces_of(values: Any) -> list[Any]:
    """Slice an array into pieces, at least one, without copying."""
    return [values[start : start + PIECE_ROWS] for start in range(0, max(len(values), 1), PIECE_ROWS)]


def decode(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The array without a dictionary, run-end encoding, extension type or views around its values."""
    if isinstance(array.type, pa.BaseExtensionType):
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        return decode(pa.chunked_array([chunk.storage for chunk in chunks], array.type.storage_type))
    if pa.types.is_dictionary(array.type):
        return decode(array.cast(array.type.value_type))
    if pa.types.is_run_end_encoded(array.type):
        return decode(pc.run_end_decode(array))
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if pa.types.is_binary_view(array.type) else array


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is text; views too, though `decode` leaves none."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_octets(kind: pa.DataType) -> bool:
    is_plain = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    return bool(is_plain or pa.types.is_binary_view(kind))


def decode_octets(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Octets as text, whose encoding is not checked; cells of a fixed size without the zeros that fill them up."""
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    whole = [chunk.cast(pa.large_binary()) for chunk in chunks]
    texts = [pa.Array.from_buffers(pa.large_string(), len(c), c.buffers(), offset=c.offset) for c in whole]
    decoded = pa.chunked_array(texts, pa.large_string())
    return pc.ascii_rtrim(decoded, "\0") if pa.types.is_fixed_size_binary(array.type) else decoded


def to_string_array(array: pa.Array | pa.ChunkedArray) -> pa.StringArray:
    """One array with 32-bit offsets; cells are cut first where the whole might not fit."""
    if array.nbytes > OFFSET_MAX // 2:
        array = pc.utf8_slice_codeunits(pc.utf8_trim_whitespace(array.cast(pa.large_string())), 0, LONGEST_TEXT)
        if (pc.sum(pc.binary_length(array)).as_py() or 0) > OFFSET_MAX:
            raise InputError("the column holds more than 2 GiB of text; verify it in pieces, as df.iloc[:10_000_000]")
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return whole.cast(pa.string())


def show_where(texts: pa.StringArray, mask: pa.BooleanArray) -> pa.StringArray:
    """The texts where the mask is true, and null elsewhere; the characters are shared.

    >>> show_where(pa.array(["ada", "ben"]), pa.array([False, True])).to_pylist()
    [None, 'ben']
    """
    if texts.offset:
        return texts_where(mask, texts)
    mask = pc.and_(mask, texts.is_valid())
    _, offsets, characters = texts.buffers()
    return pa.Array.from_buffers(
        pa.string(), len(texts), [mask.buffers()[1], offsets, characters], null_count=mask.false_count
    )


def spread_texts(texts: pa.StringArray, rows: Rows | None, size: int) -> pa.StringArray:
    """The texts in their rows, which ascend, with null in all other rows; the characters are shared.

    >>> spread_texts(pa.array(["ada", None]), np.array([1, 2]), 4).to_pylist()
    [None, 'ada', None, None]
    """
    if rows is None:
        return texts
    is_row = np.zeros(size, np.bool_)
    is_row[rows] = True
    before = np.zeros(size + 1, np.int64)
    np.cumsum(is_row, out=before[1:])
    is_row[rows] = texts.is_valid().to_numpy(zero_copy_only=False)
    _, offsets, characters = texts.buffers()
    starts = np.frombuffer(offsets, np.int32)[texts.offset :][before] if len(texts) else np.zeros(size + 1, np.int32)
    validity = pa.array(is_row)
    return pa.Array.from_buffers(
        pa.string(), size, [validity.buffers()[1], pa.py_buffer(starts), characters], null_count=validity.false_count
    )


def nontext_column(values: pa.Array | pa.ChunkedArray) -> NonText:
    """Every cell that is not null, of a type that is not text."""
    other = pc.invert(pc.is_null(values, nan_is_null=pa.types.is_floating(values.type)))
    rows = np.flatnonzero(other.to_numpy(zero_copy_only=False) if isinstance(other, pa.Array) else other.to_numpy())
    word = next((word for is_kind, word in COLUMN_KINDS if is_kind(values.type)), value_of_type(values.type))
    return NonText(rows, pa.repeat(pa.scalar(word), len(rows)).dictionary_encode())


def from_objects(values: npt.NDArray[np.object_], *, for_repair: bool = False) -> tuple[pa.StringArray, NonText]:
    """Python objects: converted whole if all are text, octets of text or missing, else cell by cell."""
    with contextlib.suppress(UnicodeEncodeError, pa.ArrowException):  # lone surrogates; something else
        return to_string_array(pa.array(values, pa.large_string(), from_pandas=True)), NO_NONTEXT
    return from_cells(values, for_repair=for_repair)


def from_cells(values: Any, *, is_octets: bool = False, for_repair: bool = False) -> tuple[pa.StringArray, NonText]:
    """Read cell by cell; for columns that hold more than text."""
    texts: list[str | None] = [None] * len(values)
    other: dict[int, str] = {}
    for row, value in enumerate(values):
        text, kind = read_octets(value) if is_octets else read_cell(value, for_repair=for_repair)
        texts[row] = text
        if kind is not None:
            other[row] = kind
    kinds = pa.array(list(other.values()), pa.string()).dictionary_encode()
    return to_string_array(pa.array(texts, pa.large_string())), NonText(np.fromiter(other, np.int64, len(other)), kinds)


def read_cell(value: object, *, for_repair: bool = False) -> tuple[str | None, str | None]:
    """The text of a cell, or what else it holds; None for both if it is missing."""
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    if isinstance(value, bytes | bytearray | memoryview):
        return read_octets(bytes(value))
    if isinstance(value, SEQUENCES) and (texts := texts_of(value)) is not None and (for_repair or not texts):
        value = to_json(texts) if texts else None
    if not isinstance(value, str):
        return None, describe_cell(value)
    try:
        value.encode()
    except UnicodeEncodeError:
        return None, SURROGATES
    return str(value), None


def read_octets(value: bytes | None) -> tuple[str | None, str | None]:
    """The text of a cell given as octets, or that it is not UTF-8; None for both if it is missing."""
    try:
        return None if value is None else value.decode(), None
    except UnicodeDecodeError:
        return None, NOT_UTF8


def describe_cell(value: object) -> str | None:
    """What a cell holds, in words; None if it is missing."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, numbers.Number | Decimal | np.generic) and pd.isna(value):  # type: ignore[call-overload]
        return None
    return next((word for kinds, word in CELL_KINDS if isinstance(value, kinds)), value_of_type(type(value).__name__))


def value_of_type(kind: object) -> str:
    return f"a value of type {str(kind)[:40]}"


# Words for what is not text: by the class of a cell, or by the type of a typed column. The first match counts.
CELL_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    ((bool, np.bool_), "true or false"),
    ((numbers.Number, Decimal), "a number"),
    ((datetime.datetime, datetime.date, np.datetime64), "a date"),
    ((datetime.timedelta, np.timedelta64), "a duration"),
    (list, "a list"),
    (tuple, "a tuple"),
    (Mapping, "a mapping"),
    ((set, frozenset), "a set"),
    ((np.ndarray, pd.api.extensions.ExtensionArray, pd.Series, pd.Index), "an array"),
)
COLUMN_KINDS: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "true or false"),
    (pa.types.is_integer, "a number"),
    (pa.types.is_floating, "a number"),
    (pa.types.is_decimal, "a number"),
    (pa.types.is_duration, "a duration"),
    (pa.types.is_temporal, "a date"),
    (pa.types.is_map, "a mapping"),
    (pa.types.is_struct, "a mapping"),
    (pa.types.is_nested, "a list"),
)
NO_NONTEXT = NonText(np.empty(0, np.int64), pa.array([], pa.string()).dictionary_encode())
