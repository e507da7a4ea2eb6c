"""Workbooks for people: what a reader of the first sheet gets, and what is around it."""

import gc

import pandas as pd
import pyarrow as pa
import pytest
import xlsxwriter

from mailverdict.errors import InputError
from mailverdict.files.table_file import FileFormat
from mailverdict.files.workbook import ActionSheets
from mailverdict.files.writers import create_table
from tests.doubles.workbooks import MAIN, add_sheet, cells_of, change_parts, parts_of, sheet_xml

ACTION = "email_action"
SHEETS = ["Everything", "Summary", "Send list", "To review", "Ask again", "Remove", "Not checked"]
BY_ACTION = ActionSheets(ACTION, view=lambda piece: piece)
PIECES = [
    pa.table(
        {
            "email": ["ada@x.example", "=1+1"],
            "n": [1, 2],
            ACTION: pa.array(["send", "drop"]).dictionary_encode(),
        }
    ),
    pa.table({"email": ["bo@x.example", None], "n": [3, None], ACTION: ["send", "unchecked"]}),
]


def write(path, pieces, **options):
    with create_table(path, **options) as table:
        for piece in pieces:
            table.write(piece)
    return cells_of(path)


def frozen_rows(path, number):
    (pane,) = sheet_xml(path, number).iter(f"{MAIN}pane")
    return pane.get("topLeftCell"), pane.get("state")


def test_the_header_stays_in_view_with_filters_and_widths_that_fit(tmp_path):
    piece = pa.table(
        {
            "email": ["a" * 30 + "@x.example"],
            "note": ["x" * 500],
            "n": [1],
            "a long name of a column": [1],
        }
    )
    write(tmp_path / "x.xlsx", [piece])
    sheet = sheet_xml(tmp_path / "x.xlsx")
    assert frozen_rows(tmp_path / "x.xlsx", 1) == ("A2", "frozen")
    assert [each.get("ref") for each in sheet.iter(f"{MAIN}autoFilter")] == ["A1:D2"]
    heads = [cell.get("s") for cell in sheet.iter(f"{MAIN}c") if cell.get("r").endswith("1")]
    assert heads == ["1"] * 4  # the first format that was made, which is bold
    widths = [float(column.get("width")) for column in sheet.iter(f"{MAIN}col")]
    assert 40 <= widths[0] < 50  # as the address
    assert widths[1] < 60  # not as the note
    assert widths[2] < 12
    assert 24 <= widths[3] < 30  # as its name


@pytest.fixture
def small_files():
    """No file of this process may grow beyond 100 kB during the test."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_workbook_that_does_not_fit_is_an_error_with_its_name(tmp_path, small_files):
    piece = pa.table(
        {
            "email": [
                f"{number * 0x9E3779B97F4A7C15 % 2**64:x}@x.example" for number in range(20_000)
            ]
        }
    )
    with pytest.raises(OSError, match="too large") as caught:
        write(tmp_path / "a.xlsx", [piece])
    assert caught.value.filename == str(tmp_path / "a.xlsx")
    gc.collect()  # the zip file that was not finished closes itself without a further error
    assert list(tmp_path.iterdir()) == []


def test_a_table_without_rows_has_a_header(tmp_path):
    book = write(tmp_path / "x.xlsx", [PIECES[0].slice(0, 0)], by_action=BY_ACTION)
    assert book["Everything"] == [("email", "n", ACTION)]
    assert [
        each.get("ref") for each in sheet_xml(tmp_path / "x.xlsx").iter(f"{MAIN}autoFilter")
    ] == ["A1:C1"]


def test_each_row_is_on_the_first_sheet_and_on_that_of_its_action(tmp_path):
    book = write(tmp_path / "x.xlsx", PIECES, by_action=BY_ACTION)
    assert [*book] == SHEETS
    header, *whole = book["Everything"]
    assert whole == [
        ("ada@x.example", 1, "send"),
        ("=1+1", 2, "drop"),
        ("bo@x.example", 3, "send"),
        (None, None, "unchecked"),
    ]
    assert book["Send list"] == [header, whole[0], whole[2]]
    assert book["Remove"] == [header, whole[1]]
    # No formula.
    assert not list(sheet_xml(tmp_path / "x.xlsx", SHEETS.index("Remove") + 1).iter(f"{MAIN}f"))
    assert book["Not checked"] == [header, whole[3]]
    assert book["To review"] == book["Ask again"] == [header]
    tables = [number for number, name in enumerate(SHEETS, 1) if name != "Summary"]
    assert {frozen_rows(tmp_path / "x.xlsx", number) for number in tables} == {("A2", "frozen")}
    counts = {row[0]: row[1:3] for row in book["Summary"][2:]}
    assert counts == {
        "Send list": (2, 0.5),
        "To review": (0, 0),
        "Ask again": (0, 0),
        "Remove": (1, 0.25),
        "Not checked": (1, 0.25),
    }
    assert [name for name in parts_of(tmp_path / "x.xlsx") if name.startswith("xl/charts/")] == [
        "xl/charts/chart1.xml"
    ]


def test_pandas_reads_the_whole_table(tmp_path):
    write(tmp_path / "x.xlsx", PIECES, by_action=BY_ACTION)
    frame = pd.read_excel(tmp_path / "x.xlsx", engine="calamine")
    assert frame["email"].tolist()[:3] == ["ada@x.example", "=1+1", "bo@x.example"]
    assert len(frame) == 4


@pytest.mark.parametrize(
    "options", [{}, {"by_action": BY_ACTION}, {"like": FileFormat(sheet="people")}]
)
def test_it_replaces_its_own_workbook_as_a_whole(tmp_path, options):
    first = write(tmp_path / "x.xlsx", PIECES, **options)
    assert len(next(iter(first.values()))) == 5
    again = write(tmp_path / "x.xlsx", PIECES[:1], **options)
    assert [*again] == [*first]
    assert len(next(iter(again.values()))) == 3
    (tmp_path / "y.xlsx").touch()
    assert [*write(tmp_path / "y.xlsx", PIECES)] == ["verified"]  # an empty file has no sheet


def foreign(path, names):
    with xlsxwriter.Workbook(str(path)) as book:
        for name in names:
            book.add_worksheet(name).write(0, 0, "mine")


def renamed(path):
    write(path, PIECES, by_action=BY_ACTION)
    change_parts(path, "xl/workbook.xml", lambda octets: octets.replace(b"Summary", b"Figures"))


def added(path):
    write(path, PIECES, by_action=BY_ACTION)
    add_sheet(path)


def former(path):
    """As a former release marked its workbooks."""
    with xlsxwriter.Workbook(str(path)) as book:
        book.set_custom_property("mailverdict", "sheets by action")
        for name in SHEETS:
            book.add_worksheet(name)


OTHERS = {
    "of another program": (
        lambda path: foreign(path, ["people", "Budget"]),
        "has sheets that this version",
    ),
    "with our name": (lambda path: foreign(path, ["verified"]), "has sheets that this version"),
    "with a sheet more": (added, "has sheets that this version"),
    "with a sheet that was renamed": (renamed, "has sheets that this version"),
    "of a former release": (former, "has sheets that this version"),
    "not a workbook": (lambda path: path.write_bytes(b"mine"), "cannot be read as a workbook"),
    "with a password": (
        lambda path: path.write_bytes(b"\xd0\xcf\x11\xe0" * 200),
        "cannot be read as a workbook: it has a pass",
    ),
}


@pytest.mark.parametrize("other", OTHERS)
def test_it_does_not_replace_a_sheet_of_somebody_else(tmp_path, other):
    make, said = OTHERS[other]
    make(tmp_path / "x.xlsx")
    before = (tmp_path / "x.xlsx").read_bytes()
    with pytest.raises(InputError, match=r"x\.xlsx " + said) as caught:
        write(tmp_path / "x.xlsx", PIECES, by_action=BY_ACTION)
    assert str(caught.value).endswith("give another name, or remove it")
    assert (tmp_path / "x.xlsx").read_bytes() == before
    assert [*tmp_path.iterdir()] == [tmp_path / "x.xlsx"]


def test_a_table_named_like_a_sheet_of_ours_keeps_its_name(tmp_path):
    book = write(
        tmp_path / "x.xlsx", PIECES, by_action=BY_ACTION, like=FileFormat(sheet="send list")
    )
    assert [*book] == ["send list", "Summary", "Send list 2", *SHEETS[3:]]


@pytest.mark.parametrize(
    "text",
    [
        "<r></r>",
        "<r>&</r>",
        '<r></is></c><c r="Z9"><f>1+1</f></c><c r="Z8" t="inlineStr"><is><r></r>',
        "<r><t>bold</t></r>",
    ],
)
def test_markup_of_a_workbook_in_a_cell_stays_text(tmp_path, text):
    path = tmp_path / "out.xlsx"
    sheets = write(path, [pa.table({"email": ["ada@x.example"], text: [text]})])
    assert sheets["verified"] == [("email", text), ("ada@x.example", text)]
    assert not list(sheet_xml(path, 1).iter(f"{MAIN}f"))
