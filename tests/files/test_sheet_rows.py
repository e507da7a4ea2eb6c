"""Rows of a worksheet made from whole columns: the same cells as xlsxwriter makes one by one."""

import datetime

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mailverdict.files.workbook import FormattedBook, TableSheet, put_row
from tests.doubles.workbooks import MAIN, cells_of, sheet_xml

TEXTS = [
    "ada", "", None, " blank ", "line\nend", "tab\t", "a&b<c>\"d'", "=1+1", "_x0041_", "\x01\x1f",
    "\r", "\ufffe", "ä€😀", "<r></r>", "<r>&</r>", "0012", "_x005F_", "]]>", "\u2028", "null",
]  # fmt: skip


def by_columns(path, table):
    book = FormattedBook(path)
    sheet = TableSheet(book, "rows")
    sheet.write(table)
    sheet.finish()
    book.close()
    return cells_of(path)["rows"]


def by_cells(path, table):
    """As xlsxwriter writes each cell by itself."""
    book = FormattedBook(path)
    sheet = book.add_sheet("rows")
    put_row(sheet, 0, table.column_names)
    for row, cells in enumerate(table.to_pylist(), 1):
        put_row(sheet, row, list(cells.values()))
    book.close()
    return cells_of(path)["rows"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(TEXTS),
        pa.array(TEXTS).dictionary_encode(),
        pa.array([True, None, False]),
        pa.array([1, None, -(2**52)]),
        pa.array([2**60, 1, None]),
        pa.array([0.1, None, -2.5e300, 1e-7, 3.0]),
        pa.array([0.5, float("inf")]),
        pa.array([datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC), None]),
        pa.nulls(3),
        pa.array([], pa.string()),
        pa.array(["x" * 20_000, "y"]),
    ],
    ids=str,
)
def test_each_type_gives_the_same_cells_as_one_by_one(tmp_path, column):
    table = pa.table(
        {"a": column, "b": pa.array([f"r{at}" for at in range(len(column))], pa.string())}
    )
    table = table.append_column("c", column)
    assert by_columns(tmp_path / "x.xlsx", table) == by_cells(tmp_path / "y.xlsx", table)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"]), max_size=8), min_size=1))
def test_any_text_comes_back(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("book")
    table = pa.table({"a": texts, "b": ["end"] * len(texts)})
    assert by_columns(folder / "x.xlsx", table) == by_cells(folder / "y.xlsx", table)


def test_rows_of_both_ways_follow_one_another(tmp_path):
    book = FormattedBook(tmp_path / "x.xlsx")
    sheet = TableSheet(book, "rows", title=[["A title"]])
    for at in range(2):
        sheet.write(pa.table({"n": pa.array([at], pa.int64()), "t": pa.array(["x"])}))
        sheet.write(pa.table({"n": pa.array([2**60 + at], pa.int64()), "t": pa.array(["y"])}))
    sheet.finish()
    book.close()
    rows = cells_of(tmp_path / "x.xlsx")["rows"]
    assert [row[1] for row in rows] == [None, "t", "x", "y", "x", "y"]
    numbers = [row.get("r") for row in sheet_xml(tmp_path / "x.xlsx").iter(f"{MAIN}row")]
    assert numbers == ["1", "2", "3", "4", "5", "6"]
    (dimension,) = sheet_xml(tmp_path / "x.xlsx").iter(f"{MAIN}dimension")
    assert dimension.get("ref") == "A1:B6"
