"""A column of any dtype as Arrow text: one text per row, empty where the cell is missing.

Python objects are read cell by cell only in a column that holds more than text.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.syntax.column import PIECE_ROWS
from ..checks.syntax.kernels import OFFSET_MAX, Bools, Octets, octets_of, offsets_of, to_bools
from ..errors import InputError
from ..model.table import one_array, texts_where
from ..repair.words import MISSING, SIGNS_AROUND
from .columns import map_columns
from .list_cells import SEQUENCES, is_missing, read_list_column, texts_of, to_json

# Text beyond this many characters is cut before any work: no address is longer than 254 octets
# (RFC 5321 section 4.5.3.1.3), and a 10 MB cell must not travel through every later step.
LONGEST_TEXT = 1_000

MISSING_TEXTS = pa.array(sorted(MISSING))
LONGEST_MISSING = (
    max(len(text.encode()) for text in MISSING) + 2
)  # octets, with a sign on each side


@dataclass(frozen=True)
class TextColumn:
    """A column as it was read: a text for each row, empty where the cell is missing."""

    texts: pa.StringArray  # without nulls; stripped, unless they were to keep the blanks
    stripped: pa.StringArray  # the same, stripped


def read_values(
    values: Any,
    *,
    for_repair: bool = False,
    longest: int = LONGEST_TEXT,
    instead: pa.StringArray | None = None,
) -> TextColumn:
    """Read a Series, an Arrow array or any list-like of cells; an `InputError` for texts of more than 2 GiB in all.

    With `for_repair` texts keep the blanks around them, unless they are far too long: `longest` characters or more.
    Texts of `instead` take the place of the cells beside them.

    >>> read_values([" ada@firm.com", None, "N/A", 5, ["ada@firm.com"]]).texts.to_pylist()
    ['ada@firm.com', '', '', '5', '["ada@firm.com"]']
    """
    written = as_text(values)
    written = written if instead is None else pc.coalesce(instead, written)
    stripped = drop_missing_words(cut_long(strip_texts(written), longest))
    if not for_repair or stripped is written:
        return TextColumn(stripped, stripped)
    is_kept = pc.and_(pc.less(pc.binary_length(written), longest), pc.not_equal(stripped, ""))
    return TextColumn(
        pc.if_else(is_kept, written, stripped) if is_kept.false_count else written, stripped
    )


def read_present(values: Any) -> pa.StringArray:
    """The texts of a column by row, stripped; null where there is none, as a CSV does not tell empty from missing."""
    texts = strip_texts(as_text(values))
    return where_filled(texts, texts)


def to_array(values: Any) -> pa.Array:
    """The cells of a column as an array of their own type; Python objects of several kinds as text."""
    if isinstance(values, pd.Series | list):
        with contextlib.suppress(pa.ArrowException, TypeError, ValueError):
            values = pa.array(values, from_pandas=True)
    return (
        decode(one_array(values))
        if isinstance(values, pa.Array | pa.ChunkedArray)
        else as_text(values)
    )


def is_filled(texts: pa.StringArray) -> pa.BooleanArray:
    """Which texts are not empty."""
    return pa.array(np.diff(offsets_of(texts)) > 0)


def where_filled(texts: pa.StringArray, values: pa.StringArray) -> pa.StringArray:
    """Values beside texts; null beside empty ones."""
    filled = is_filled(texts)
    return texts_where(filled, values) if filled.false_count else values


def describe_no_address(texts: pa.StringArray, column: object) -> str | None:
    """A warning about a column of a frame in which no text has an @; None if one has, or if all are empty.

    >>> describe_no_address(pa.array(["5", "", "2.5"]), "age")
    "no cell of column 'age' holds an @; is it the right column?"
    """
    is_named = column is not None and is_filled(texts).true_count > 0
    if not is_named or any(
        pc.any(pc.match_substring(piece, "@")).as_py() for piece in pieces_of(texts)
    ):
        return None
    return f"no cell of column {column!r:.80} holds an @; is it the right column?"


def empty_nulls(texts: pa.StringArray) -> pa.StringArray:
    """Empty texts in place of nulls; offsets and octets are shared if no null has octets, as is usual."""
    if not texts.null_count:
        return texts
    nulls, offsets = np.flatnonzero(to_bools(texts.is_null())), offsets_of(texts)
    if (offsets.take(nulls) != offsets.take(nulls + 1)).any():
        return texts.fill_null("")
    return pa.Array.from_buffers(
        texts.type, len(texts), [None, *texts.buffers()[1:]], 0, texts.offset
    )


def join_texts(columns: Sequence[pa.StringArray]) -> pa.StringArray:
    """The texts of all columns one after another."""
    return (
        columns[0] if len(columns) == 1 else to_string_array(pa.chunked_array(columns, pa.string()))
    )


def drop_missing_words(stripped: pa.StringArray) -> pa.StringArray:
    """The texts; those that stand for a missing value are empty."""
    sizes = np.diff(offsets_of(stripped))
    short = np.flatnonzero((sizes > 0) & (sizes <= LONGEST_MISSING))
    words = pc.utf8_trim(pc.utf8_lower(stripped.take(pa.array(short))), SIGNS_AROUND)
    gone = short[to_bools(pc.is_in(words, value_set=MISSING_TEXTS))]
    return replace_texts(stripped, gone, pa.array([""] * len(gone), pa.string()))


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
    rows = np.flatnonzero(
        np.concatenate(map_columns(may_have_blanks, pieces_of(texts), len(texts)))
    )
    written = texts.take(pa.array(rows))
    stripped = pc.utf8_trim_whitespace(written)
    return texts if stripped.equals(written) else replace_texts(texts, rows, stripped)


def may_have_blanks(texts: pa.StringArray) -> Bools:
    """Whether the first or last octet of each text may belong to a blank; of an empty text, octets beside it."""
    bounds, octets = offsets_of(texts), octets_of(texts)
    return is_edge_of_blank(octets.take(bounds[:-1], mode="clip")) | is_edge_of_blank(
        octets.take(bounds[1:] - 1, mode="clip")
    )


def replace_texts(
    texts: pa.StringArray, rows: npt.NDArray[np.intp], others: pa.StringArray
) -> pa.StringArray:
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


def as_text(values: Any) -> pa.StringArray:
    """A column of any dtype as Arrow text; that of a missing cell is empty."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return from_arrow(values)
    values = values if isinstance(values, pd.Series) else pd.Series(list(values), dtype=object)
    if not holds_objects(values.dtype):
        # Arrow does not have complex, sparse and some other dtypes.
        with contextlib.suppress(pa.ArrowNotImplementedError, pa.ArrowTypeError):
            return from_arrow(pa.array(values, from_pandas=True))
    cells = values.astype(object).to_numpy()
    with contextlib.suppress(
        UnicodeEncodeError, pa.ArrowException
    ):  # lone surrogates; something else than text
        return empty_nulls(to_string_array(pa.array(cells, pa.large_string(), from_pandas=True)))
    return from_cells(cells)


def holds_objects(dtype: Any) -> bool:
    """Whether the cells are Python objects, of which each may be something else."""
    inner = dtype.categories.dtype if isinstance(dtype, pd.CategoricalDtype) else dtype
    return bool(inner == np.dtype(object))


def from_arrow(array: pa.Array | pa.ChunkedArray) -> pa.StringArray:
    """As `as_text`, of an Arrow column."""
    values = decode(array)
    if is_octets(values.type):
        values = decode_octets(values)
    if is_list(values.type):
        lists = one_array(values).cast(pa.large_list(values.type.value_type))
        items = decode(lists.values)
        return (
            empty_nulls(read_list_column(lists, items))
            if is_text(items.type)
            else from_cells(lists.to_pylist())
        )
    if not is_text(values.type):
        try:
            return empty_nulls(to_string_array(values.cast(pa.string())))
        except pa.ArrowNotImplementedError:  # as of mappings
            return from_cells(values.to_pylist())
    try:
        map_columns(lambda piece: piece.validate(full=True), pieces_of(values), len(values))
    except (
        pa.ArrowInvalid
    ):  # Arrow does not check the octets of text, for example when it reads Parquet
        return from_cells(values.cast(pa.large_binary()).to_pylist())
    return empty_nulls(to_string_array(values))


def from_cells(cells: Iterable[Any]) -> pa.StringArray:
    """Read cell by cell; for columns that hold more than text."""
    return to_string_array(pa.array(map(cell_text, cells), pa.large_string()))


def cell_text(cell: Any) -> str:
    r"""The text of any cell; empty if it is missing. What is not a character, in octets or text, shows its code.

    >>> cell_text(["ada@firm.com"]), cell_text({"email": "ada@firm.com"}), cell_text(b"\xff@firm.com"), cell_text(None)
    ('["ada@firm.com"]', "{'email': 'ada@firm.com'}", '\\xff@firm.com', '')
    """
    if isinstance(cell, pa.Scalar):
        cell = cell.as_py()
    if isinstance(cell, bytes | bytearray | memoryview):
        return bytes(cell).decode(errors="backslashreplace")
    if isinstance(cell, SEQUENCES) and (texts := texts_of(cell)) is not None:
        return to_json(texts) if texts else ""
    if is_missing(cell):
        return ""
    text = cell if isinstance(cell, str) else str(cell).strip()[:LONGEST_TEXT]
    return text.encode(errors="backslashreplace").decode()


def pieces_of(values: Any) -> list[Any]:
    """Slice an array into pieces, at least one, without copying."""
    return [
        values[start : start + PIECE_ROWS] for start in range(0, max(len(values), 1), PIECE_ROWS)
    ]


def decode(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The array without a dictionary, run-end encoding, extension type or views around its values."""
    if isinstance(array.type, pa.BaseExtensionType):
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        return decode(
            pa.chunked_array([chunk.storage for chunk in chunks], array.type.storage_type)
        )
    if pa.types.is_dictionary(array.type):
        return decode(array.cast(array.type.value_type))
    if pa.types.is_run_end_encoded(array.type):
        return decode(pc.run_end_decode(array))
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if pa.types.is_binary_view(array.type) else array


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is text; views too, though `decode` leaves none."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def is_octets(kind: pa.DataType) -> bool:
    is_plain = (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
    return bool(is_plain or pa.types.is_binary_view(kind))


def decode_octets(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Octets as text, whose encoding is not checked; cells of a fixed size without the zeros that fill them up."""
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    whole = [chunk.cast(pa.large_binary()) for chunk in chunks]
    texts = [
        pa.Array.from_buffers(pa.large_string(), len(c), c.buffers(), offset=c.offset)
        for c in whole
    ]
    decoded = pa.chunked_array(texts, pa.large_string())
    return pc.ascii_rtrim(decoded, "\0") if pa.types.is_fixed_size_binary(array.type) else decoded


def to_string_array(array: pa.Array | pa.ChunkedArray) -> pa.StringArray:
    """One array with 32-bit offsets; cells are cut first where the whole might not fit."""
    if array.nbytes > OFFSET_MAX // 2:
        array = pc.utf8_slice_codeunits(
            pc.utf8_trim_whitespace(array.cast(pa.large_string())), 0, LONGEST_TEXT
        )
        if (pc.sum(pc.binary_length(array)).as_py() or 0) > OFFSET_MAX:
            raise InputError(
                "the column holds more than 2 GiB of text; verify it in pieces, as df.iloc[:10_000_000]"
            )
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
        pa.string(),
        len(texts),
        [mask.buffers()[1], offsets, characters],
        null_count=mask.false_count,
    )
