"""A column of anything: the text of each row, and which rows hold nothing."""

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
from mailverdict.model.arrow import replace_texts
from mailverdict.repair.words import MISSING, says_no_value
from mailverdict.table.cells import (
    LONGEST_TEXT,
    describe_no_address,
    read_cells,
    read_texts,
    strip_texts,
)
from tests.doubles.tables import each_row

ADDRESS = "ada@example.org"
LONG = 8_197
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
# A cell that is not text, and its text (empty: it is missing).
ODD_CELLS = [
    (None, ""),
    (float("nan"), ""),
    (np.float32("nan"), ""),
    (decimal.Decimal("NaN"), ""),
    (pd.NA, ""),
    (pd.NaT, ""),
    (np.datetime64("NaT"), ""),
    (0, "0"),
    (True, "True"),
    (np.bool_(True), "True"),
    (2.5, "2.5"),
    (1j, "1j"),
    (np.int8(3), "3"),
    (decimal.Decimal("1.5"), "1.5"),
    (b"\xff", r"\xff"),
    (bytearray(b"\xff"), r"\xff"),
    (pa.scalar(5), "5"),
    ([ADDRESS], f'["{ADDRESS}"]'),
    ((ADDRESS,), f'["{ADDRESS}"]'),
    ([ADDRESS, 7], f"['{ADDRESS}', 7]"),
    ({"email": ADDRESS}, f"{{'email': '{ADDRESS}'}}"),
    ({ADDRESS}, f'["{ADDRESS}"]'),
    (np.array([ADDRESS]), f'["{ADDRESS}"]'),
    (pd.Series([ADDRESS]), f'["{ADDRESS}"]'),
    (pd.Timestamp("2026-01-02"), "2026-01-02 00:00:00"),
    (datetime.date(2026, 1, 2), "2026-01-02"),
    (np.datetime64("2026-01-02"), "2026-01-02"),
    (pd.Timedelta("1D"), "1 days 00:00:00"),
    (range(3), "range(0, 3)"),
    ("\ud800@example.org", r"\ud800@example.org"),
    ("ada@example.org\udfff", r"ada@example.org\udfff"),
]
# A typed column, and which rows are missing.
TYPED_COLUMNS = [
    (pd.Series([1, 2]), ()),
    (pd.Series([1, None], dtype="Int64"), (1,)),
    (pd.Series([1, None], dtype="category"), (1,)),
    (pd.Series([1.5, np.nan]), (1,)),
    (pd.Series([np.nan, np.nan]), (0, 1)),
    (pd.Series([1j, 2]), ()),
    (pd.Series(pd.arrays.SparseArray([1.0, np.nan])), (1,)),
    (pd.Series([True, None], dtype="boolean"), (1,)),
    (pd.Series(pd.to_datetime(["2026-01-02", None])), (1,)),
    (pd.Series(pd.to_datetime(["2026-01-02", None])).dt.tz_localize("UTC"), (1,)),
    (pd.Series(pd.to_timedelta(["1D", None])), (1,)),
    (pa.array([decimal.Decimal(1), None]), (1,)),
    (pa.array([[1], None]), (1,)),
    (pa.array([{"a": 1}, None]), (1,)),
    (pa.array([[(1, 2)], None], pa.map_(pa.int8(), pa.int8())), (1,)),
    (pa.array([1.5, float("nan"), None]), (1, 2)),
    (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), ()),
    (pa.nulls(2), (0, 1)),
]


def texts_by_row(texts):
    """Row and text, for rows that are not missing."""
    return {row: text for row, text in enumerate(texts.to_pylist()) if text}


@each_row("dtype", TEXT_DTYPES, ids=str)
def test_every_text_dtype_reads_the_same(dtype):
    read = read_texts(pd.Series(CELLS, dtype=dtype, index=[9, 9, 1, 0, 5]))
    assert (texts_by_row(read), len(read)) == (AS_READ, 5)


@each_row(
    "values",
    [
        CELLS,
        tuple(CELLS),
        np.array(CELLS, dtype=object),
        pa.array(CELLS),
        pa.chunked_array([CELLS[:2], [], CELLS[2:]]),
        pa.chunked_array(
            [pa.array(CELLS[:2]).dictionary_encode(), pa.array(CELLS[2:]).dictionary_encode()]
        ),
        pa.RunEndEncodedArray.from_arrays([1, 2, 3, 4, 5], CELLS),
        pd.Series(CELLS).astype(pd.SparseDtype(object)),
    ],
    ids=lambda v: type(v).__name__,
)
def test_every_container_reads_the_same(values):
    assert texts_by_row(read_texts(values)) == AS_READ


def test_a_slice_of_an_arrow_array_is_read_as_the_slice():
    assert texts_by_row(read_texts(pa.array(["x", *CELLS, "y"]).slice(1, 5))) == AS_READ


@each_row(("cell", "text"), ODD_CELLS, ids=lambda v: repr(v)[:30])
def test_a_cell_that_is_not_text_is_read_as_its_text_or_missing(cell, text):
    assert read_texts([ADDRESS, cell, "b@example.org"]).to_pylist() == [
        ADDRESS,
        text,
        "b@example.org",
    ]


def test_all_odd_cells_at_once_keep_their_rows():
    assert read_texts([cell for cell, _ in ODD_CELLS]).to_pylist() == [
        text for _, text in ODD_CELLS
    ]


@each_row(("values", "missing"), TYPED_COLUMNS, ids=lambda v: str(getattr(v, "dtype", v))[:30])
def test_typed_columns_are_missing_where_they_hold_nothing(values, missing):
    texts = read_texts(values).to_pylist()
    assert [row for row, text in enumerate(texts) if not text] == list(missing)
    assert not any("@" in text for text in texts)


OCTETS = [None if cell is None else cell.encode() for cell in CELLS]


@each_row(
    "values",
    [
        OCTETS,
        [cell and bytearray(cell) for cell in OCTETS],
        [cell and memoryview(cell) for cell in OCTETS],
        list(pa.array(CELLS)),
        pa.array(OCTETS),
        pa.array(OCTETS, pa.large_binary()),
        pa.array(OCTETS, pa.binary_view()),
        pa.array(
            [cell if cell is None else cell.ljust(20, b"\0") for cell in OCTETS], pa.binary(20)
        ),
        pa.array(["x", *CELLS, "y"]).cast(pa.binary()).slice(1, 5),
        pa.chunked_array([OCTETS[:2], OCTETS[2:]]),
        pd.Series(OCTETS, dtype=pd.ArrowDtype(pa.binary())),
        pd.Series(OCTETS).astype("category"),
    ],
    ids=lambda v: str(getattr(v, "type", getattr(v, "dtype", type(v[0])))),
)
def test_octets_in_utf8_are_text(values):
    assert texts_by_row(read_texts(values)) == AS_READ


@each_row("kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2)], ids=str)
def test_octets_of_another_encoding_make_one_cell_invalid(kind):
    assert read_texts(pa.array([b"\xff\xfe", b"ok", None], kind)).to_pylist() == [
        r"\xff\xfe",
        "ok",
        "",
    ]


@pytest.mark.parametrize(
    ("values", "is_told"),
    [
        ([1, None, 2.5], True),
        (["nobody"], True),
        (["nobody", ADDRESS], False),
        (["nobody"] * 20_000 + [ADDRESS], False),
        ([None, " "], False),
        ([], False),
    ],
    ids=["numbers", "text", "address", "late address", "blanks", "empty"],
)
def test_a_column_of_a_frame_without_an_address_has_a_notice(values, is_told):
    texts = read_texts(values)
    notice = describe_no_address(texts, "id")
    assert notice == (
        "no cell of column 'id' holds an @; is it the right column?" if is_told else None
    )
    assert describe_no_address(texts, None) is None


def test_categories_of_several_kinds_are_distinguished():
    column = pd.Series(["a@example.org", (1,), 3, None], dtype="category")
    assert read_texts(column).to_pylist() == ["a@example.org", "(1,)", "3", ""]


def test_octets_that_are_not_utf8_make_one_cell_invalid():
    offsets = pa.py_buffer(np.array([0, 2, 2 + len(ADDRESS)], np.int32))
    trusted = pa.Array.from_buffers(
        pa.string(), 2, [None, offsets, pa.py_buffer(b"\xff\xfe" + ADDRESS.encode())]
    )
    for values in (trusted, pd.Series(trusted, dtype=pd.ArrowDtype(pa.string()))):
        assert texts_by_row(read_texts(values)) == {0: r"\xff\xfe", 1: ADDRESS}


@pytest.mark.slow
@each_row("dtype", ["object", "string[pyarrow]"])
def test_a_huge_cell_is_trimmed_first_and_cut_then(dtype):
    blanks = " " * 10_000_000
    cells = [blanks + ADDRESS, ADDRESS + blanks, ADDRESS + blanks + "x", "x" * 10_000_000]
    read = texts_by_row(read_texts(pd.Series(cells, dtype=dtype)))
    assert (read[0], read[1]) == (ADDRESS, ADDRESS)
    # Cut before trimming, the third would have become an address.
    assert (len(read[2]), len(read[3])) == (LONGEST_TEXT, LONGEST_TEXT)


def test_the_text_of_a_huge_cell_that_is_not_text_is_cut_and_not_repaired():
    cell = {"note": "x" * LONGEST_TEXT, "email": ADDRESS}
    assert [len(text) for text in read_texts([cell]).to_pylist()] == [LONGEST_TEXT]
    out = mv.clean(pd.Series([{"email": ADDRESS, "note": "x" * LONGEST_TEXT}, {"email": ADDRESS}]))
    assert out["clean"].tolist() == [pd.NA, ADDRESS]


def test_blanks_alone_are_missing_whatever_blanks():
    assert texts_by_row(read_texts([" ", "\t\r\n", "\u00a0\u2003", "\u3000", "x"])) == {4: "x"}


def test_blanks_are_kept_where_they_are_wanted():
    read = read_cells([" x ", "  ", "y", " " * 2000 + "z"], longest=1_000)
    assert read["text"].to_pylist() == [" x ", "", "y", "z"]
    assert read["stripped"].to_pylist() == ["x", "", "y", "z"]


@given(
    st.lists(
        st.one_of(st.none(), st.text(max_size=8), st.integers(), st.binary(max_size=3), st.floats())
    )
)
def test_every_row_is_the_text_of_its_cell_or_missing(cells):
    for cell, text in zip(cells, read_texts(cells).to_pylist(), strict=True):
        if isinstance(cell, bytes):
            cell = cell.decode(errors="backslashreplace")  # noqa: PLW2901 - as text
        if cell is None or cell != cell:
            assert text == ""
        else:
            written = str(cell).strip()
            assert text == ("" if says_no_value(written) else written)


class TestMissingTexts:
    def test_those_of_pandas_are_among_them(self):
        from pandas._libs.parsers import STR_NA_VALUES  # private: only compared with

        assert [text for text in STR_NA_VALUES if not says_no_value(text)] == []

    @each_row(
        "text", ["kA", "N/A.", "none.", "(none)", "<none>", "s/n", "nd", "sin datos", "[]", "(.)"]
    )
    def test_signs_around_a_word_for_no_value_do_not_count(self, text):
        assert read_texts([text, f"{text} x"]).to_pylist() == ["", f"{text} x"]

    def test_none_is_longer_than_most_addresses(self):
        assert max(len(text.encode()) for text in MISSING) <= 16  # longer cells are not looked up

    @each_row(
        "wrap", [list, pd.Series, pa.array, lambda cells: pa.array(cells).dictionary_encode()]
    )
    def test_they_are_missing_in_every_kind_of_column(self, wrap):
        cells = [
            *sorted(MISSING),
            " N/A ",
            "XXX",
            "On leave",
            "Keine Angabe",
            "\u041d\u0415\u0422",
            "None@x.example",
            "nobody",
        ]
        read = read_texts(wrap(cells))
        assert read.to_pylist() == [""] * (len(cells) - 2) + ["None@x.example", "nobody"]

    def test_a_column_gives_what_pandas_gives_when_it_reads_the_file(self, tmp_path):
        path = tmp_path / "in.csv"
        path.write_text("email,n\nada@x.example,1\nN/A,2\nnobody,3\nNULL,4\nnone,5\n")
        texts = mv.verify(
            pd.read_csv(path, dtype=str, keep_default_na=False), "email", validation_type="regex"
        )
        read = mv.verify(pd.read_csv(path), "email", validation_type="regex")
        assert (
            texts["email_status"].tolist()
            == read["email_status"].tolist()
            == ["done", "missing", "done", "missing", "missing"]
        )
        assert texts["email_clean"].isna().tolist() == read["email_clean"].isna().tolist()


@given(
    st.lists(st.none() | st.text(" \t\n\x00\x1f!~\x7f\x85\xa0é\u3000a@", max_size=4), max_size=12),
    st.integers(0, 3),
)
def test_blanks_are_stripped_as_arrow_does(texts, start):
    column = pa.array(texts, pa.string()).slice(start)
    assert strip_texts(column).equals(pc.utf8_trim_whitespace(column))
    assert (strip_texts(column) is column) == pc.utf8_trim_whitespace(column).equals(column)


@pytest.mark.slow
@each_row("start", [0, 3])
@each_row("size", [0, 1, 7, 200_000])
def test_texts_are_replaced_in_any_order_of_the_rows(size, start):
    texts = pa.array([None, "é", "", "ada"] * (size // 4 + 1) + ["x"] * 3, pa.string()).slice(
        start, size
    )
    rows = np.random.default_rng(1).permutation(size)[: size // 3]
    others = pa.array([f"new {row}" if row % 3 else None for row in rows.tolist()], pa.string())
    expected = texts.to_pylist()
    for row, text in zip(rows.tolist(), others.to_pylist(), strict=True):
        expected[row] = text
    assert replace_texts(texts, rows, others).to_pylist() == expected


def long_column(changed: dict[int, object]) -> pd.Series:
    cells = np.tile(np.array([ADDRESS, "nope"], dtype=object), LONG // 2 + 1)[:LONG]
    for row, cell in changed.items():
        cells[row] = cell
    return pd.Series(cells)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {3: None, 4_096: "N/A", LONG - 1: ""},
        {4_097: 7, 8_192: b"\xff", LONG - 1: [ADDRESS]},
        {0: f" {ADDRESS}", 4_096: f"{ADDRESS} ", 8_192: f"\t{ADDRESS}"},
        dict.fromkeys(range(4_096, 5_096), "x" * 900),
    ],
    ids=["all texts", "missing", "not text", "blanks", "long texts"],
)
@pytest.mark.parametrize("dtype", ["object", "string[pyarrow]"])
def test_a_long_column_is_read_as_its_rows_are(changed, dtype):
    column = long_column(changed)
    if dtype != "object":
        column = column.mask(~column.map(lambda cell: isinstance(cell, str))).astype(dtype)
    rows = []
    for start in range(0, LONG, 3_000):
        part = column.iloc[start : start + 3_000]
        rows += read_cells(part, longest=LONGEST_TEXT).to_pylist()
    assert read_cells(column, longest=LONGEST_TEXT).to_pylist() == rows
    assert read_texts(column).to_pylist() == [row["stripped"] for row in rows]


def test_the_texts_of_a_long_column_are_not_copied():
    column = pa.array(long_column({}))
    assert read_texts(column).buffers()[2].address == column.buffers()[2].address


@each_row("start", [0, 3])
def test_octets_of_nulls_are_not_read(start):
    texts = pa.array(
        [ADDRESS, "secret@example.org", " Bob@Example.org", "N/A", "x" * 5_000, "nope"]
    )
    valid = pa.py_buffer(np.packbits([True, False, True, True, False, True], bitorder="little"))
    column = pa.Array.from_buffers(pa.string(), len(texts), [valid, *texts.buffers()[1:]]).slice(
        start
    )
    expected = {0: ADDRESS, 2: "Bob@Example.org", 5: "nope"}
    assert texts_by_row(read_texts(column)) == {
        row - start: text for row, text in expected.items() if row >= start
    }
