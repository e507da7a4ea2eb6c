"""Workbooks for people: what a reader of the first sheet gets, and what is around it."""

import gc
import resource

import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
import xlsxwriter

from mailverdict.errors import InputError
from mailverdict.frames.files.table_file import FileFormat
from mailverdict.frames.files.writers import create_table

ACTION = "email_action"
SHEETS = ["verified", "Summary", "Send list", "To review", "Ask again", "Remove", "Not checked"]
PIECES = [
    pa.table({"email": ["ada@x.example", "=1+1"], "n": [1, 2], ACTION: pa.array(["send", "drop"]).dictionary_encode()}),
    pa.table({"email": ["bo@x.example", None], "n": [3, None], ACTION: ["send", "unchecked"]}),
]


def write(path, pieces, **options):
    with create_table(path, **options) as table:
        for piece in pieces:
            table.write(piece)
    return openpyxl.load_workbook(path)


def rows_of(sheet):
    return [list(row) for row in sheet.iter_rows(min_row=2, values_only=True)]


def test_the_header_stays_in_view_with_filters_and_widths_that_fit(tmp_path):
    piece = pa.table(
        {"email": ["a" * 30 + "@x.example"], "note": ["x" * 500], "n": [1], "a long name of a column": [1]}
    )
    sheet = write(tmp_path / "x.xlsx", [piece])["verified"]
    assert sheet.freeze_panes == "A2"
    assert sheet.auto_filter.ref == "A1:D2"
    assert sheet["A1"].font.b
    widths = [sheet.column_dimensions[letter].width for letter in "ABCD"]
    assert 40 <= widths[0] < 50  # as the address
    assert widths[1] < 60  # not as the note
    assert widths[2] < 12
    assert 24 <= widths[3] < 30  # as its name


@pytest.fixture
def small_files():
    """No file of this process may grow beyond 100 kB during the test."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_workbook_that_does_not_fit_is_an_error_with_its_name(tmp_path, small_files):
    piece = pa.table({"email": [f"{number * 0x9E3779B97F4A7C15 % 2**64:x}@x.example" for number in range(20_000)]})
    with pytest.raises(OSError, match="too large") as caught:
        write(tmp_path / "a.xlsx", [piece])
    assert caught.value.filename == str(tmp_path / "a.xlsx")
    gc.collect()  # the zip file that was not finished closes itself without a further error
    assert list(tmp_path.iterdir()) == []


def test_a_table_without_rows_has_a_header(tmp_path):
    sheet = write(tmp_path / "x.xlsx", [PIECES[0].slice(0, 0)], by_action=ACTION)["verified"]
    assert [cell.value for cell in sheet[1]] == ["email", "n", ACTION]
    assert sheet.auto_filter.ref == "A1:C1"


def test_each_row_is_on_the_first_sheet_and_on_that_of_its_action(tmp_path):
    book = write(tmp_path / "x.xlsx", PIECES, by_action=ACTION)
    assert book.sheetnames == SHEETS
    whole = rows_of(book["verified"])
    assert whole == [
        ["ada@x.example", 1, "send"],
        ["=1+1", 2, "drop"],
        ["bo@x.example", 3, "send"],
        [None, None, "unchecked"],
    ]
    assert rows_of(book["Send list"]) == [whole[0], whole[2]]
    assert rows_of(book["Remove"]) == [whole[1]]
    assert book["Remove"]["A2"].data_type == "s"  # not a formula
    assert rows_of(book["Not checked"]) == [whole[3]]
    assert rows_of(book["To review"]) == rows_of(book["Ask again"]) == []
    assert all(book[name].freeze_panes == "A2" for name in SHEETS if name != "Summary")
    counts = {row[0]: row[1:3] for row in book["Summary"].iter_rows(min_row=4, max_row=8, values_only=True)}
    assert counts == {
        "Send list": (2, 0.5),
        "To review": (0, 0),
        "Ask again": (0, 0),
        "Remove": (1, 0.25),
        "Not checked": (1, 0.25),
    }
    assert len(book["Summary"]._charts) == 1


def test_pandas_reads_the_whole_table(tmp_path):
    write(tmp_path / "x.xlsx", PIECES, by_action=ACTION)
    frame = pd.read_excel(tmp_path / "x.xlsx", engine="calamine")
    assert frame["email"].tolist()[:3] == ["ada@x.example", "=1+1", "bo@x.example"]
    assert len(frame) == 4


def test_it_replaces_its_own_workbook_as_a_whole(tmp_path):
    write(tmp_path / "x.xlsx", PIECES, by_action=ACTION)
    book = write(tmp_path / "x.xlsx", PIECES[:1], by_action=ACTION)
    assert book.sheetnames == SHEETS
    assert len(rows_of(book["verified"])) == 2


def test_it_does_not_replace_one_to_which_a_sheet_was_added(tmp_path):
    path = tmp_path / "x.xlsx"
    book = write(path, PIECES, by_action=ACTION)
    book.create_sheet("mine")
    book.save(path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="has 8 sheets, and writing one of them would lose its charts"):
        write(path, PIECES, by_action=ACTION)
    assert path.read_bytes() == before


def test_a_workbook_with_other_sheets_keeps_them_and_gets_none(tmp_path):
    path = tmp_path / "x.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        book.add_worksheet("people").write(0, 0, "old")
        book.add_worksheet("Budget").write(0, 0, 1)
    book = write(path, PIECES, by_action=ACTION, like=FileFormat(sheet="people"))
    assert book.sheetnames == ["people", "Budget"]
    assert len(rows_of(book["people"])) == 4
    assert book["people"].freeze_panes == "A2"
    assert book["people"].auto_filter.ref == "A1:C5"
    assert book["people"]["A1"].font.b
    assert book["people"].column_dimensions["A"].width > 12


def test_a_table_named_like_a_sheet_of_ours_keeps_its_name(tmp_path):
    book = write(tmp_path / "x.xlsx", PIECES, by_action=ACTION, like=FileFormat(sheet="send list"))
    assert book.sheetnames == ["send list", "Summary", "Send list 2", *SHEETS[3:]]
