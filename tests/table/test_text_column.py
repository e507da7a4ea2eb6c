"""A column of anything: which rows hold text, which hold something else, which hold nothing."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mailverdict as mv
from mailverdict.table.text_column import (
    LONGEST_MISSING,
    LONGEST_TEXT,
    MISSING_TEXTS,
    NOT_UTF8,
    PIECE_ROWS,
    SURROGATES,
    read_values,
    replace_texts,
    strip_texts,
)

ADDRESS = "ada@example.org"
CELLS = [ADDRESS, "  Bob@Example.org\t", None, "nope", ""]
AS_READ = {0: ADDRESS, 1: "Bob@Example.org", 3: "nope"}
TEXT_DTYPES = [
    "object",
    "category",
    "string[python]",
    "string[pyarrow]",
    *(["str"] if pd.__version__ >= "3" else []),
    pd.ArrowDtype(pa.string()),
    pd.ArrowDtype(pa.large_string()),
    pd.ArrowDtype(pa.string_view()),
    pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())),
]
# A cell, what it is said to hold (None: missing).
ODD_CELLS = [
    (None, None),
    (float("nan"), None),
    (np.float32("nan"), None),
    (decimal.Decimal("NaN"), None),
    (pd.NA, None),
    (pd.NaT, None),
    (np.datetime64("NaT"), None),
    (0, "a number"),
    (True, "true or false"),
    (np.bool_(True), "true or false"),
    (2.5, "a number"),
    (1j, "a number"),
    (np.int8(3), "a number"),
    (decimal.Decimal("1.5"), "a number"),
    (b"\xff", NOT_UTF8),
    (bytearray(b"\xff"), NOT_UTF8),
    (pa.scalar(5), "a number"),
    ([ADDRESS], "a list"),
    ((ADDRESS,), "a tuple"),
    ({"email": ADDRESS}, "a mapping"),
    ({ADDRESS}, "a set"),
    (np.array([ADDRESS]), "an array"),
    (pd.Series([ADDRESS]), "an array"),
    (pd.Timestamp("2026-01-02"), "a date"),
    (datetime.date(2026, 1, 2), "a date"),
    (np.datetime64("2026-01-02"), "a date"),
    (pd.Timedelta("1D"), "a duration"),
    (range(3), "a value of type range"),
    ("\ud800@example.org", SURROGATES),
    ("ada@example.org\udfff", SURROGATES),
]
# A typed column, what its cells are said to hold, and which rows are missing.
TYPED_COLUMNS = [
    (pd.Series([1, 2]), "a number", ()),
    (pd.Series([1, None], dtype="Int64"), "a number", (1,)),
    (pd.Series([1, None], dtype="category"), "a number", (1,)),
    (pd.Series([1.5, np.nan]), "a number", (1,)),
    (pd.Series([np.nan, np.nan]), None, (0, 1)),
    (pd.Series([1j, 2]), "a number", ()),
    (pd.Series(pd.arrays.SparseArray([1.0, np.nan])), "a number", (1,)),
    (pd.Series([True, None], dtype="boolean"), "true or false", (1,)),
    (pd.Series(pd.to_datetime(["2026-01-02", None])), "a date", (1,)),
    (pd.Series(pd.to_datetime(["2026-01-02", None])).dt.tz_localize("UTC"), "a date", (1,)),
    (pd.Series(pd.to_timedelta(["1D", None])), "a duration", (1,)),
    (pa.array([decimal.Decimal(1), None]), "a number", (1,)),
    (pa.array([[1], None]), "a list", (1,)),
    (pa.array([{"a": 1}, None]), "a mapping", (1,)),
    (pa.array([[(1, 2)], None], pa.map_(pa.int8(), pa.int8())), "a mapping", (1,)),
    (pa.array([1.5, float("nan"), None]), "a number", (1, 2)),
    (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "a date", ()),
    (pa.nulls(2), None, (0, 1)),
]


def texts_by_row(intake):
    """Row and text, for rows that hold one."""
    rows = range(intake.size) if intake.rows is None else intake.rows.tolist()
    return dict(zip(rows, intake.texts.to_pylist(), strict=True))


def nontext_by_row(intake):
    """Row and what it holds, for rows that hold no text."""
    return dict(zip(intake.nontext_rows.tolist(), intake.nontext_types.to_pylist(), strict=True))


@pytest.mark.parametrize("dtype", TEXT_DTYPES, ids=str)
def test_every_text_dtype_reads_the_same(dtype):
    intake = read_values(pd.Series(CELLS, dtype=dtype, index=[9, 9, 1, 0, 5]))
    assert texts_by_row(intake) == AS_READ
    assert (nontext_by_row(intake), intake.size) == ({}, 5)


@pytest.mark.parametrize(
    "values",
    [
        CELLS,
        tuple(CELLS),
        np.array(CELLS, dtype=object),
        pa.array(CELLS),
        pa.chunked_array([CELLS[:2], [], CELLS[2:]]),
        pa.chunked_array([pa.array(CELLS[:2]).dictionary_encode(), pa.array(CELLS[2:]).dictionary_encode()]),
        pa.RunEndEncodedArray.from_arrays([1, 2, 3, 4, 5], CELLS),
        pd.Series(CELLS).astype(pd.SparseDtype(object)),
    ],
    ids=lambda v: type(v).__name__,
)
def test_every_container_reads_the_same(values):
    assert texts_by_row(read_values(values)) == AS_READ


def test_a_slice_of_an_arrow_array_is_read_as_the_slice():
    assert texts_by_row(read_values(pa.array(["x", *CELLS, "y"]).slice(1, 5))) == AS_READ


@pytest.mark.parametrize(("cell", "kind"), ODD_CELLS, ids=lambda v: repr(v)[:30])
def test_cells_that_are_not_text_are_named_or_missing(cell, kind):
    column = pd.Series([ADDRESS, None, "b@example.org"], dtype=object)
    column.iat[1] = cell
    intake = read_values(column)
    assert texts_by_row(intake) == {0: ADDRESS, 2: "b@example.org"}
    assert nontext_by_row(intake) == ({} if kind is None else {1: kind})


def test_all_odd_cells_at_once_keep_their_rows():
    cells = [cell for cell, _ in ODD_CELLS]
    assert nontext_by_row(read_values(cells)) == {i: kind for i, (_, kind) in enumerate(ODD_CELLS) if kind}


@pytest.mark.parametrize(("values", "kind", "missing"), TYPED_COLUMNS, ids=lambda v: str(getattr(v, "dtype", v))[:30])
def test_typed_columns_have_no_text_where_they_hold_something(values, kind, missing):
    intake = read_values(values)
    assert len(intake.texts) == 0
    assert nontext_by_row(intake) == {row: kind for row in range(len(values)) if row not in missing}


OCTETS = [None if cell is None else cell.encode() for cell in CELLS]


@pytest.mark.parametrize(
    "values",
    [
        OCTETS,
        [cell and bytearray(cell) for cell in OCTETS],
        [cell and memoryview(cell) for cell in OCTETS],
        list(pa.array(CELLS)),
        pa.array(OCTETS),
        pa.array(OCTETS, pa.large_binary()),
        pa.array(OCTETS, pa.binary_view()),
        pa.array([cell if cell is None else cell.ljust(20, b"\0") for cell in OCTETS], pa.binary(20)),
        pa.array(["x", *CELLS, "y"]).cast(pa.binary()).slice(1, 5),
        pa.chunked_array([OCTETS[:2], OCTETS[2:]]),
        pd.Series(OCTETS, dtype=pd.ArrowDtype(pa.binary())),
        pd.Series(OCTETS).astype("category"),
    ],
    ids=lambda v: str(getattr(v, "type", getattr(v, "dtype", type(v[0])))),
)
def test_octets_in_utf8_are_text(values):
    assert texts_by_row(read_values(values)) == AS_READ
    assert nontext_by_row(read_values(values)) == {}


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2)], ids=str)
def test_octets_of_another_encoding_make_one_cell_invalid(kind):
    intake = read_values(pa.array([b"\xff\xfe", b"ok", None], kind))
    assert (texts_by_row(intake), nontext_by_row(intake)) == ({1: "ok"}, {0: NOT_UTF8})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1, None, 2.5], "each cell that is not empty holds a number"),
        (pa.array([[1], None]), "holds a list"),
        (pd.Series([1, datetime.date(2026, 1, 2)], dtype=object), "holds a number or a date"),
        ([1, "", "text"], None),
        ([None, " "], None),
        ([], None),
    ],
    ids=["numbers", "lists", "dates", "text", "blanks", "empty"],
)
def test_a_column_without_text_has_a_notice(values, said):
    notice = read_values(values).notice("id")
    assert notice is None if said is None else said in notice
    assert notice is None or notice.startswith("column 'id' has no text")


def test_categories_of_several_kinds_are_distinguished():
    column = pd.Series(["a@example.org", (1,), 3, None], dtype="category")
    assert texts_by_row(read_values(column)) == {0: "a@example.org"}
    assert nontext_by_row(read_values(column)) == {1: "a tuple", 2: "a number"}


def test_octets_that_are_not_utf8_make_one_cell_invalid():
    offsets = pa.py_buffer(np.array([0, 2, 2 + len(ADDRESS)], np.int32))
    trusted = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"\xff\xfe" + ADDRESS.encode())])
    for values in (trusted, pd.Series(trusted, dtype=pd.ArrowDtype(pa.string()))):
        intake = read_values(values)
        assert texts_by_row(intake) == {1: ADDRESS}
        assert nontext_by_row(intake) == {0: NOT_UTF8}


@pytest.mark.parametrize("dtype", ["object", "string[pyarrow]"])
def test_a_huge_cell_is_trimmed_first_and_cut_then(dtype):
    blanks = " " * 10_000_000
    cells = [blanks + ADDRESS, ADDRESS + blanks, ADDRESS + blanks + "x", "x" * 10_000_000]
    read = texts_by_row(read_values(pd.Series(cells, dtype=dtype)))
    assert (read[0], read[1]) == (ADDRESS, ADDRESS)
    # Cut before trimming, the third would have become an address.
    assert (len(read[2]), len(read[3])) == (LONGEST_TEXT, LONGEST_TEXT)


def test_blanks_alone_are_missing_whatever_blanks():
    assert texts_by_row(read_values([" ", "\t\r\n", "\u00a0\u2003", "\u3000", "x"])) == {4: "x"}


def test_blanks_are_kept_where_they_are_wanted():
    intake = read_values([" x ", "  ", "y", " " * 2000 + "z"], for_repair=True)
    assert texts_by_row(intake) == {0: " x ", 2: "y", 3: "z"}


@given(st.lists(st.one_of(st.none(), st.text(max_size=8), st.integers(), st.binary(max_size=3), st.floats())))
def test_every_row_is_text_something_else_or_missing_and_only_one_of_them(cells):
    intake = read_values(cells)
    texts, nontext = texts_by_row(intake), nontext_by_row(intake)
    assert intake.size == len(cells)
    assert not texts.keys() & nontext.keys()
    for row, cell in enumerate(cells):
        if isinstance(cell, bytes):
            cell = cell.decode(errors="surrogateescape")  # noqa: PLW2901 - octets that are not UTF-8 become surrogates
        if isinstance(cell, str) and not any(0xD800 <= ord(c) < 0xE000 for c in cell):
            text = cell.strip()
            assert texts.get(row, "") == ("" if text in MISSING_TEXTS.to_pylist() else text)
        else:
            assert row not in texts
            assert (row in nontext) == (cell is not None and cell == cell)


class TestMissingTexts:
    def test_they_are_those_of_pandas(self):
        from pandas._libs.parsers import STR_NA_VALUES  # private: only compared with

        assert {*MISSING_TEXTS.to_pylist(), ""} == STR_NA_VALUES
        assert max(len(each) for each in STR_NA_VALUES) == LONGEST_MISSING

    @pytest.mark.parametrize("wrap", [list, pd.Series, pa.array, lambda cells: pa.array(cells).dictionary_encode()])
    def test_they_are_missing_in_every_kind_of_column(self, wrap):
        cells = [*MISSING_TEXTS.to_pylist(), " N/A ", "n.a.", "None@x.example", "NONE", "-", "ada@x.example"]
        read = read_values(wrap(cells))
        assert read.texts.to_pylist() == ["n.a.", "None@x.example", "NONE", "-", "ada@x.example"]
        assert read.size == len(cells)
        assert len(read.nontext_rows) == 0

    def test_a_column_gives_what_pandas_gives_when_it_reads_the_file(self, tmp_path):
        path = tmp_path / "in.csv"
        path.write_text("email,n\nada@x.example,1\nN/A,2\nnobody,3\nNULL,4\nnone,5\n")
        texts = mv.verify(pd.read_csv(path, dtype=str, keep_default_na=False), "email", validation_type="regex")
        read = mv.verify(pd.read_csv(path), "email", validation_type="regex")
        assert (
            texts["email_status"].tolist()
            == read["email_status"].tolist()
            == ["done", "missing", "done", "missing", "done"]
        )
        assert texts["email_clean"].isna().tolist() == read["email_clean"].isna().tolist()


@given(
    st.lists(st.none() | st.text(" \t\n\x00\x1f!~\x7f\x85\xa0é\u3000a@", max_size=4), max_size=12), st.integers(0, 3)
)
def test_blanks_are_stripped_as_arrow_does(texts, start):
    column = pa.array(texts, pa.string()).slice(start)
    assert strip_texts(column).equals(pc.utf8_trim_whitespace(column))
    assert (strip_texts(column) is column) == pc.utf8_trim_whitespace(column).equals(column)


@pytest.mark.parametrize("start", [0, 3])
@pytest.mark.parametrize("size", [0, 1, 7, 200_000])
def test_texts_are_replaced_in_any_order_of_the_rows(size, start):
    texts = pa.array([None, "é", "", "ada"] * (size // 4 + 1) + ["x"] * 3, pa.string()).slice(start, size)
    rows = np.random.default_rng(1).permutation(size)[: size // 3]
    others = pa.array([f"new {row}" if row % 3 else None for row in rows.tolist()], pa.string())
    expected = texts.to_pylist()
    for row, text in zip(rows.tolist(), others.to_pylist(), strict=True):
        expected[row] = text
    assert replace_texts(texts, rows, others).to_pylist() == expected


LONG = 2 * PIECE_ROWS + 5  # three pieces


def long_column(changed: dict[int, object]) -> pd.Series:
    cells = np.tile(np.array([ADDRESS, "nope"], dtype=object), LONG // 2 + 1)[:LONG]
    for row, cell in changed.items():
        cells[row] = cell
    return pd.Series(cells)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {3: None, PIECE_ROWS: "N/A", LONG - 1: ""},
        {PIECE_ROWS + 1: 7, 2 * PIECE_ROWS: b"\xff", LONG - 1: [ADDRESS]},
        {0: f" {ADDRESS}", PIECE_ROWS: f"{ADDRESS} ", 2 * PIECE_ROWS: f"\t{ADDRESS}"},
        dict.fromkeys(range(PIECE_ROWS, PIECE_ROWS + 20_000), "x" * 900),
    ],
    ids=["all texts", "missing", "not text", "blanks", "long texts"],
)
@pytest.mark.parametrize("for_repair", [False, True])
@pytest.mark.parametrize("dtype", ["object", "string[pyarrow]"])
def test_a_long_column_is_read_as_its_rows_are(changed, for_repair, dtype):
    column = long_column(changed)
    if dtype != "object":
        column = column.mask(~column.map(lambda cell: isinstance(cell, str))).astype(dtype)
    found = read_values(column, for_repair=for_repair)
    texts, stripped, rows, nontext = [], [], [], {}
    for start in range(0, LONG, 100_000):
        part = read_values(column.iloc[start : start + 100_000], for_repair=for_repair)
        texts += part.texts.to_pylist()
        stripped += part.stripped.to_pylist()
        rows += [start + row for row in (range(part.size) if part.rows is None else part.rows.tolist())]
        kinds = part.nontext_types.to_pylist()
        nontext |= {start + row: kind for row, kind in zip(part.nontext_rows.tolist(), kinds, strict=True)}
    assert (found.size, found.texts.to_pylist(), found.stripped.to_pylist()) == (LONG, texts, stripped)
    assert (list(range(LONG)) if found.rows is None else found.rows.tolist()) == rows
    assert dict(zip(found.nontext_rows.tolist(), found.nontext_types.to_pylist(), strict=True)) == nontext


def test_the_texts_of_a_long_column_are_not_copied():
    column = pa.array(long_column({}))
    assert read_values(column).texts.buffers()[2].address == column.buffers()[2].address


@pytest.mark.parametrize("missing", [{}, {5: None}, {0: None, PIECE_ROWS: "", LONG - 1: None}])
def test_the_texts_beside_missing_cells_are_not_copied(missing):
    column = pa.array(long_column(missing))
    found = read_values(column)
    assert found.texts.buffers()[2].address == column.buffers()[2].address
    assert found.texts.to_pylist() == [cell for cell in column.to_pylist() if cell]


@pytest.mark.parametrize("start", [0, 3])
def test_octets_of_nulls_are_not_read(start):
    texts = pa.array([ADDRESS, "secret@example.org", " Bob@Example.org", "N/A", "x" * 5_000, "nope"])
    valid = pa.py_buffer(np.packbits([True, False, True, True, False, True], bitorder="little"))
    column = pa.Array.from_buffers(pa.string(), len(texts), [valid, *texts.buffers()[1:]]).slice(start)
    expected = {0: ADDRESS, 2: "Bob@Example.org", 5: "nope"}
    assert texts_by_row(read_values(column)) == {row - start: text for row, text in expected.items() if row >= start}
