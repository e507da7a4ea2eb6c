"""Any column as texts: one text for each row, empty where the cell is missing.

`read_texts` gives them without the blanks around them, `read_cells` for a repair twice, with and
without these; `read_present` reads a result column, where a missing cell is null. `as_text` below
them makes texts of a column of any type: as a whole by Arrow, or cell by cell with `cell_text`
where it holds something else (lists, octets that are not text, Python objects). What `read_texts`
makes of a cell:

    "ada@firm.com"          ada@firm.com
    " ada@firm.com"         ada@firm.com
    None, "N/A", "  ", []   (empty)
    5                       5
    ["ada@firm.com", None]  ["ada@firm.com"]
    b"ada@firm.com"         ada@firm.com
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError
from ..model.arrow import one_array, texts_where
from ..repair.words import MISSING, SIGNS_AROUND

# Text beyond this many characters is cut before any work: no address is longer than 254 octets
# (RFC 5321 section 4.5.3.1.3), and a 10 MB cell must not travel through every later step.
LONGEST_TEXT = 1_000
LARGEST_COLUMN = 2**31 - 1  # octets that one Arrow array of texts can hold
LOOK = 10_000  # rows that are looked at before all are

MISSING_TEXTS = pa.array(sorted(MISSING))
# In octets, with two signs on each side.
LONGEST_MISSING = max(len(text.encode()) for text in MISSING) + 4
TEXT_KINDS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
LIST_KINDS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
OCTET_KINDS = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_binary_view,
)
SEQUENCES = (
    list,
    tuple,
    set,
    frozenset,
    np.ndarray,
    pd.api.extensions.ExtensionArray,
    pd.Series,
    pd.Index,
)


def read_texts(values: Any, *, longest: int = LONGEST_TEXT) -> pa.StringArray:
    """The cells of a Series, an Arrow array or any list-like as texts.

    They are without the blanks around them.

    Texts are cut after `longest` characters. An `InputError` for texts of more than 2 GiB in all.

    >>> read_texts([" ada@firm.com", None, "N/A", 5, ["ada@firm.com"]]).to_pylist()
    ['ada@firm.com', '', '', '5', '["ada@firm.com"]']
    """
    written = as_text(values)
    stripped = cut_long(strip_texts(written), longest)
    return drop_missing_words(stripped)


def read_cells(
    values: Any, *, longest: int, instead: pa.StringArray | None = None
) -> pa.RecordBatch:
    """The cells for a repair.

    `text` has the blanks around it, `stripped` does not; both are empty where the cell is missing.

    A text of `longest` characters or more is stripped and cut in both. Texts of `instead` take the
    place of the cells beside them.

    >>> read_cells([" ada@firm.com", "N/A"], longest=100).to_pylist()
    [{'text': ' ada@firm.com', 'stripped': 'ada@firm.com'}, {'text': '', 'stripped': ''}]
    """
    written = as_text(values)
    if instead is not None:
        written = pc.coalesce(instead, written)
    stripped = cut_long(strip_texts(written), longest)
    stripped = drop_missing_words(stripped)
    text = written
    if stripped is not written:
        is_short = pc.less(pc.binary_length(written), longest)
        is_kept = pc.and_(is_short, is_filled(stripped))
        text = pc.if_else(is_kept, written, stripped)
    return pa.record_batch({"text": text, "stripped": stripped})


def read_present(values: Any) -> pa.StringArray:
    """The texts of a column by row, stripped.

    Null where there is none, as a CSV does not tell empty from missing.
    """
    texts = strip_texts(as_text(values))
    return where_filled(texts, texts)


def to_array(values: Any) -> pa.Array:
    """The cells of a column as an array of their own type.

    Python objects of several kinds become text.
    """
    if isinstance(values, pd.Series | list):
        with contextlib.suppress(pa.ArrowException, TypeError, ValueError):
            values = pa.array(values, from_pandas=True)
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return decode(one_array(values))
    return as_text(values)


def distinct_values(cells: Any) -> pa.Array:
    """The distinct values of a column without nulls; all of a type that Arrow cannot compare."""
    values = to_array(cells)
    with contextlib.suppress(pa.ArrowNotImplementedError):
        values = values.unique()
    return values.drop_null()


def holds_any(values: pa.Array) -> bool:
    """Whether one of some values without nulls is more than an empty text."""
    if is_text(values.type):
        values = values.filter(is_filled(values))
    return len(values) > 0


# --- texts ----------------------------------------------------------------------------------------


def is_filled(texts: pa.StringArray) -> pa.BooleanArray:
    """Which texts are not empty."""
    return pc.greater(pc.binary_length(texts), 0)


def where_filled(texts: pa.StringArray, values: pa.StringArray) -> pa.StringArray:
    """Values beside texts; null beside empty ones."""
    filled = is_filled(texts)
    if not filled.false_count:
        return values
    return texts_where(filled, values)


def strip_texts(texts: pa.StringArray) -> pa.StringArray:
    """The texts without the blanks around them; the same array if there are none."""
    stripped = pc.utf8_trim_whitespace(texts)
    if stripped.equals(texts):
        return texts
    return stripped


def cut_long(texts: pa.StringArray, longest: int = LONGEST_TEXT) -> pa.StringArray:
    """The texts, longer ones cut after `longest` characters."""
    most = pc.max(pc.binary_length(texts)).as_py() or 0
    if most <= longest:
        return texts
    return pc.utf8_slice_codeunits(texts, 0, longest)


def drop_missing_words(stripped: pa.StringArray) -> pa.StringArray:
    """The texts; those that stand for a missing value are empty."""
    is_short = pc.less_equal(pc.binary_length(stripped), LONGEST_MISSING)
    short = stripped.filter(is_short)
    lowered = pc.utf8_lower(short)
    words = pc.utf8_trim(lowered, SIGNS_AROUND)
    is_missing_word = pc.is_in(words, value_set=MISSING_TEXTS)
    if not is_missing_word.true_count:
        return stripped
    is_kept = pc.invert(is_missing_word)
    kept = texts_where(is_kept, short).fill_null("")
    return pc.replace_with_mask(stripped, is_short, kept)


def join_texts(columns: Sequence[pa.StringArray]) -> pa.StringArray:
    """The texts of all columns one after another."""
    if len(columns) == 1:
        return columns[0]
    return to_string_array(pa.chunked_array(columns, pa.string()))


def describe_no_address(texts: pa.StringArray, column: object) -> str | None:
    """A warning about a column of a frame in which no text has an @.

    None if one has, or if all are empty.

    >>> describe_no_address(pa.array(["5", "", "2.5"]), "age")
    "no cell of column 'age' holds an @; is it the right column?"
    """
    if column is None:
        return None
    for part in (texts.slice(0, LOOK), texts):
        has_at = pc.match_substring(part, "@")
        if pc.any(has_at).as_py():
            return None
    if not is_filled(texts).true_count:
        return None
    return f"no cell of column {column!r:.80} holds an @; is it the right column?"


def to_string_array(array: pa.Array | pa.ChunkedArray) -> pa.StringArray:
    """One array with 32-bit offsets; cells are cut first where the whole might not fit."""
    if array.nbytes > LARGEST_COLUMN // 2:
        whole = pc.utf8_trim_whitespace(array.cast(pa.large_string()))
        array = pc.utf8_slice_codeunits(whole, 0, LONGEST_TEXT)
        lengths = pc.binary_length(array)
        octets = pc.sum(lengths).as_py() or 0
        if octets > LARGEST_COLUMN:
            raise InputError(
                "the column holds more than 2 GiB of text; "
                "verify it in pieces, as df.iloc[:10_000_000]"
            )
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array.cast(pa.string())


# --- a column as text -----------------------------------------------------------------------------


def as_text(values: Any) -> pa.StringArray:
    """A column of any dtype as Arrow text; that of a missing cell is empty."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return from_arrow(values)
    if not isinstance(values, pd.Series):
        values = pd.Series(list(values), dtype=object)
    if not holds_objects(values.dtype):
        # Arrow does not have complex, sparse and some other dtypes.
        with contextlib.suppress(pa.ArrowNotImplementedError, pa.ArrowTypeError):
            return from_arrow(pa.array(values, from_pandas=True))
    cells = values.astype(object).to_numpy()
    try:
        texts = pa.array(cells, pa.large_string(), from_pandas=True)
    except (UnicodeEncodeError, pa.ArrowException):  # lone surrogates; something else than text
        return from_cells(cells)
    return to_string_array(texts).fill_null("")


def holds_objects(dtype: Any) -> bool:
    """Whether the cells are Python objects, of which each may be something else."""
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    return bool(dtype == np.dtype(object))


def from_arrow(array: pa.Array | pa.ChunkedArray) -> pa.StringArray:
    """As `as_text`, of an Arrow column."""
    values = decode(array)
    if is_list(values.type):
        return from_cells(values.to_pylist())
    if is_octets(values.type):
        values = decode_octets(values)
    elif not is_text(values.type):
        try:
            return to_string_array(values.cast(pa.string())).fill_null("")
        except pa.ArrowNotImplementedError:  # as of mappings
            return from_cells(values.to_pylist())
    try:
        # Arrow does not check the octets of text, for example when it reads Parquet.
        values.validate(full=True)
    except pa.ArrowInvalid:
        return from_cells(values.cast(pa.large_binary()).to_pylist())
    return to_string_array(values).fill_null("")


def decode(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The array without dictionary, run-end encoding, extension type or views of its values."""
    if isinstance(array.type, pa.BaseExtensionType):
        storage = [chunk.storage for chunk in chunks_of(array)]
        return decode(pa.chunked_array(storage, array.type.storage_type))
    if pa.types.is_dictionary(array.type):
        return decode(array.cast(array.type.value_type))
    if pa.types.is_run_end_encoded(array.type):
        return decode(pc.run_end_decode(array))
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    if pa.types.is_binary_view(array.type):
        return array.cast(pa.large_binary())
    return array


def chunks_of(array: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    if isinstance(array, pa.ChunkedArray):
        return list(array.chunks)
    return [array]


def decode_octets(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Octets as text, whose encoding is not checked.

    Cells of a fixed size are without the zeros that fill them up.
    """
    texts = []
    for chunk in chunks_of(array):
        octets = chunk.cast(pa.large_binary())
        texts.append(octets.view(pa.large_string()))
    decoded = pa.chunked_array(texts, pa.large_string())
    if pa.types.is_fixed_size_binary(array.type):
        return pc.ascii_rtrim(decoded, "\0")
    return decoded


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is text; views too, though `decode` leaves none."""
    return any(is_kind(kind) for is_kind in TEXT_KINDS)


def is_list(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in LIST_KINDS)


def is_octets(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in OCTET_KINDS)


# --- cell by cell ---------------------------------------------------------------------------------


def from_cells(cells: Iterable[Any]) -> pa.StringArray:
    """The texts of cells of any kind."""
    texts = pa.array(map(cell_text, cells), pa.large_string())
    return to_string_array(texts)


def cell_text(cell: Any) -> str:
    r"""The text of any cell; empty if it is missing.

    What is not a character, in octets or text, shows its code.

    A list of texts is written as JSON, and one without any text is missing.

    >>> cell_text(["ada@firm.com"]), cell_text({"email": "ada@firm.com"})
    ('["ada@firm.com"]', "{'email': 'ada@firm.com'}")
    >>> cell_text(b"\xff@firm.com"), cell_text(None)
    ('\\xff@firm.com', '')
    """
    if isinstance(cell, pa.Scalar):
        cell = cell.as_py()
    if isinstance(cell, bytes | bytearray | memoryview):
        return bytes(cell).decode(errors="backslashreplace")
    if isinstance(cell, SEQUENCES):
        texts = texts_of(cell)
        if texts == []:
            return ""
        if texts is not None:
            return json.dumps(texts, ensure_ascii=False)
    if is_missing(cell):
        return ""
    text: str = cell
    if not isinstance(cell, str):
        text = str(cell).strip()[:LONGEST_TEXT]
    return text.encode(errors="backslashreplace").decode()


def texts_of(cell: Any) -> list[str] | None:
    """The texts of a list, without missing and blank ones; None if it holds anything else.

    >>> texts_of(["ada@firm.com", None, ""]), texts_of([1])
    (['ada@firm.com'], None)
    """
    if isinstance(cell, np.ndarray) and cell.ndim != 1:
        return None
    texts = []
    for item in cell:
        if isinstance(item, str):
            if item.strip():
                texts.append(item)
        elif not is_missing(item):
            return None
    if isinstance(cell, set | frozenset):
        texts.sort()
    return texts


def is_missing(item: Any) -> bool:
    if item is None:
        return True
    return pd.api.types.is_scalar(item) and bool(pd.isna(item))
