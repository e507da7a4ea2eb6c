"""Workbooks that ask for more than a table needs: refused by a line, and the process goes on."""

import datetime
import re
import struct
import zipfile
from pathlib import Path
from typing import ClassVar

import pandas as pd
import pytest
import xlsxwriter

import mailverdict as mv
from mailverdict.errors import ColumnError, InputError
from mailverdict.files.compression import ALWAYS_ALLOWED
from mailverdict.files.readers import open_table
from mailverdict.files.sheets import MOST_CELLS, read_sheet, run_program
from mailverdict.files.table_file import ReadOptions
from tests.doubles.tables import first_ones
from tests.doubles.workbooks import ods_row, write_ods, write_raw, write_xlsb

MIB = 1 << 20
# Of memory: what the program takes without a workbook, and some millions of cells.
SMALL = 256 * MIB
ADDRESS = (
    '<row><c r="A1" t="str"><v>email</v></c></row>'
    '<row><c r="A2" t="str"><v>ada@example.org</v></c></row>'
)
WIDE = f"<row>{'<c><v>1</v></c>' * 16_384}</row>"
MANY = '<sst uniqueCount="100000000000"><si><t>x</t></si></sst>'
LONG = f"<sst><si><t>{'x' * 32_767}</t></si></sst>"
SHARED = '<row><c t="s"><v>0</v></c></row>'


def far(cell):
    return f"{ADDRESS}<row>{cell}</row>"


# Rows of a sheet, and shared texts, for which there is not enough memory.
ATTACKS = {
    "far apart": (far('<c r="XFD1048576"><v>1</v></c>'), None),
    "beyond the last row": (far('<c r="A4000000000"><v>1</v></c>'), None),
    "single quotes and blanks": (far("<c  r = 'XFD1048576' ><v>1</v></c >"), None),
    "lower case": (far('<c r="xfd1048576"><v>1</v></c>'), None),
    "the row alone is far": (f'{ADDRESS}<row r="1048576">{WIDE[5:]}', None),
    "without places": (f"{ADDRESS}{'<row/>' * 100_000}{WIDE}", None),
    "another prefix": (far('<x:c xmlns:x="y" r="XFD1048576"><x:v>1</x:v></x:c>'), None),
    "one text in many cells": (SHARED * 20_000, LONG),
}


def refuse(path, **limits):
    with pytest.raises(InputError) as caught:
        read_sheet(path, path.name, None, **limits)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("attack", first_ones(ATTACKS, 4))
def test_what_takes_too_much_memory_is_refused(tmp_path, attack):
    rows, strings = ATTACKS[attack]
    said = refuse(write_raw(tmp_path / "x.xlsx", rows, strings=strings), memory=SMALL)
    assert said.startswith(
        "x.xlsx cannot be read with 256 MiB of memory in 30 seconds (ended by signal 6), which a "
        "table"
    )
    assert said.endswith("delete what is outside the table, or save it as CSV")


def test_a_false_number_of_texts_does_not_end_this_process(tmp_path):
    """Releases of the reader that trust it run out of memory, older ones do not look at it."""
    path = write_raw(tmp_path / "x.xlsx", ADDRESS, strings=MANY)
    try:
        found = read_sheet(path, path.name, None, memory=SMALL).rows
    except InputError as exc:
        found = str(exc)
    assert (
        found == [["email"], ["ada@example.org"]]
        or "cannot be read with 256 MiB of memory" in found
    )


@pytest.mark.slow
def test_more_cells_than_are_read_are_refused_and_not_one_is_read(tmp_path):
    path = write_raw(tmp_path / "x.xlsx", far('<c r="C4"><v>1</v></c>'))
    assert len(read_sheet(path, "x.xlsx", None, most_cells=12).rows) == 4
    found, _links = run_program(path, "x.xlsx", "rows", 11)
    assert found[2:4] == (4, 3)
    assert refuse(path, most_cells=11) == (
        "x.xlsx has cells in 4 rows and 3 columns of sheet 's', which are more than the 11 cells "
        "that are read: delete "
        "what is outside the table, or save it as CSV"
    )
    assert MOST_CELLS >= 1_048_576 * 30


@pytest.mark.slow
def test_rows_without_cells_cost_next_to_nothing(tmp_path):
    path = write_raw(tmp_path / "x.xlsx", far('<c r="B1048576"><v>0</v></c>'))
    rows = read_sheet(path, "x.xlsx", None, memory=SMALL).rows
    assert (len(rows), rows[1], rows[-1]) == (1_048_576, ["ada@example.org", ""], ["", 0])
    assert rows[2] is rows[-2]


@pytest.mark.slow
@pytest.mark.parametrize("part", ["sheet", "strings", "picture"])
def test_what_unpacks_to_more_than_such_a_file_does_is_refused(tmp_path, part):
    def blown_up(octets):
        blanks = " " * (octets - 10_000)
        path = tmp_path / "x.xlsx"
        strings = f"<sst><si><t>{blanks}</t></si></sst>" if part == "strings" else None
        write_raw(path, blanks if part == "sheet" else "" + ADDRESS, strings=strings)
        if part == "picture":
            with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as book:
                book.writestr("xl/media/image1.png", blanks)
        return path

    said = refuse(blown_up(ALWAYS_ALLOWED + 20_000))
    assert said.startswith(
        "x.xlsx cannot be read as a workbook: it unpacks to more than 16 MiB, much more than a "
        "table in a file"
    )
    read_sheet(blown_up(ALWAYS_ALLOWED), "x.xlsx", None)


@pytest.mark.slow
def test_a_text_counts_in_each_cell_that_has_it(tmp_path):
    path = write_raw(tmp_path / "x.xlsx", SHARED * 1_000, strings=LONG)
    assert "it unpacks to more than 16 MiB" in refuse(path)
    assert len(read_sheet(write_raw(path, SHARED * 400, strings=LONG), "x.xlsx", None).rows) == 400


@pytest.mark.slow
def test_of_two_parts_with_one_name_both_count(tmp_path):
    path = write_raw(tmp_path / "x.xlsx", ADDRESS)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as book:
        for octets in (" " * ALWAYS_ALLOWED, " "):
            with pytest.warns(UserWarning, match="Duplicate name"):
                book.writestr("xl/worksheets/sheet1.xml", octets)
    assert "it unpacks to more than 16 MiB" in refuse(path)


@pytest.mark.slow
def test_a_part_that_says_that_it_is_small_is_refused(tmp_path):
    path = write_raw(tmp_path / "x.xlsx", " " * (2 * ALWAYS_ALLOWED))
    octets = path.read_bytes()
    with zipfile.ZipFile(path) as book:
        size = struct.pack("<L", book.getinfo("xl/worksheets/sheet1.xml").file_size)
    assert octets.count(size) == 2  # before the part, and in the list of parts
    path.write_bytes(octets.replace(size, struct.pack("<L", 1_000)))
    assert "x.xlsx cannot be read as a workbook: Bad CRC-32" in refuse(path)


def test_entities_do_not_expand(tmp_path):
    lines = "".join(
        f'<!ENTITY {name} "{f"&{inner};" * 50}">'
        for name, inner in zip("bcdefg", "abcdef", strict=True)
    )
    sheet = f'<?xml version="1.0"?><!DOCTYPE w [<!ENTITY a "xxxxxxxxxx">{lines}]>'
    sheet += (
        '<worksheet><sheetData><row><c r="A1" t="str"><v>&g;</v></c></row></sheetData></worksheet>'
    )
    said = refuse(write_raw(tmp_path / "x.xlsx", sheet=sheet.encode()))
    assert said == "x.xlsx cannot be read as a workbook: at 0..0: unrecognized entity `&g;`"


def test_a_dimension_that_is_not_true_changes_nothing(tmp_path):
    sheet = (
        '<worksheet xmlns="%s"><dimension ref="A1:XFD1048576"/>'
        "<sheetData>%s</sheetData></worksheet>"
    )
    path = write_raw(tmp_path / "x.xlsx", ADDRESS, sheet=sheet)
    assert read_sheet(path, "x.xlsx", None, memory=SMALL).rows == [["email"], ["ada@example.org"]]


def test_what_takes_too_long_is_stopped(tmp_path):
    with pytest.raises(
        InputError,
        match=re.escape("in 0.001 seconds (it was stopped), which a table in a file of its"),
    ):
        run_program(write_raw(tmp_path / "x.xlsx", ADDRESS), "x.xlsx", "names", seconds=0.001)


WAYS = {
    "a table": open_table,
    "a list of people": lambda path: mv.suppress(
        pd.DataFrame({"email": ["ada@x.org"]}), "email", path
    ),
    "what became of mails": mv.read_bounces,
    "an earlier audit": lambda path: mv.report(verified(), "email", earlier=path),
    "a file of the page": lambda path: pytest.importorskip(
        "mailverdict.widgets.source", exc_type=ImportError
    ).read_file(path),
    "a report to replace": lambda path: mv.report(verified(), "email", path),
}


def verified():
    return mv.verify(pd.DataFrame({"email": ["ada@x.org"]}), "email", validation_type="regex")


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_it_is_the_same_error_on_each_way_in(tmp_path, way):
    path = write_raw(tmp_path / "x.xlsx", ADDRESS + " " * ALWAYS_ALLOWED)
    with pytest.raises(InputError, match="it unpacks to more than 16 MiB") as caught:
        WAYS[way](path)
    assert "\n" not in str(caught.value)


class TestLinks:
    """An address that only the link of a cell has, as mail programs and spreadsheets write it."""

    @pytest.fixture
    def path(self, tmp_path):
        path = tmp_path / "people.xlsx"
        with xlsxwriter.Workbook(path) as book:
            sheet = book.add_worksheet("People")
            sheet.write_row(1, 1, ["Name", "Email"])
            sheet.write(2, 1, "Ada")
            sheet.write_url(2, 2, "mailto:ada@firm.example?subject=Hello", string="write to Ada")
            sheet.write(3, 1, "Bo")
            sheet.write_formula(3, 2, '=HYPERLINK("mailto:bo@firm.example","Bo")', value="")
            sheet.write(4, 1, "Cy")
            sheet.write_url(4, 2, "mailto:other@firm.example", string="cy@firm.example")
            sheet.write(5, 1, "Di")
            sheet.write_url(5, 2, "https://firm.example", string="Di")
        return path

    def test_it_is_read_behind_the_text_of_the_cell(self, path):
        opened = open_table(path)
        (table,) = opened.read()
        assert table.column("Email").to_pylist() == [
            "write to Ada <ada@firm.example>",
            "bo@firm.example",
            "cy@firm.example",
            "Di",
        ]
        assert (
            "2 cells with an address in the link only: read as 'text <address>'" in opened.remarks
        )

    def test_a_workbook_without_links_has_no_such_remark(self, tmp_path):
        opened = open_table(write_raw(tmp_path / "x.xlsx", ADDRESS))
        assert [remark for remark in opened.remarks if "link" in remark] == []


def value_cell(kind, name, value, text):
    return (
        f'<table:table-cell office:value-type="{kind}" office:{name}="{value}">'
        f"<text:p>{text}</text:p></table:table-cell>"
    )


def empty_cells(count):
    return f'<table:table-cell table:number-columns-repeated="{count}"/>'


HEADER = ods_row("email", "name")
ADA = ods_row("ada@firm.example", "Ada")


def table_of(path, **options):
    with open_table(path, ReadOptions(**options)) as opened:
        return opened.table.to_pylist(), opened.remarks


class TestOds:
    def test_values_have_the_types_of_those_of_any_workbook(self, tmp_path):
        names = ["email", "whole", "part", "price", "day", "moment", "time", "took", "ok"]
        cells = [
            "ada@firm.example",
            value_cell("float", "value", "5", "5"),
            value_cell("float", "value", "5.5", "5,5"),
            value_cell("currency", "value", "12.25", "12,25 \u20ac"),
            value_cell("date", "date-value", "2024-01-02", "02.01.24"),
            value_cell("date", "date-value", "2024-01-02T10:11:12", "02.01.24 10:11"),
            value_cell("time", "time-value", "PT09H30M00S", "9:30"),
            value_cell("time", "time-value", "PT30H00M05S", "30:00"),
            value_cell("boolean", "boolean-value", "true", "WAHR"),
        ]
        path = write_ods(tmp_path / "a.ods", {"People": ods_row(*names) + ods_row(*cells)})
        (row,), _ = table_of(path)
        assert list(row.values()) == [
            "ada@firm.example",
            5,
            5.5,
            12.25,
            datetime.date(2024, 1, 2),
            datetime.datetime.fromisoformat("2024-01-02 10:11:12"),
            "09:30:00",
            "30:00:05",
            True,
        ]

    @pytest.mark.parametrize(
        ("inside", "text"),
        [
            ("<text:p>ada@x.org</text:p>\n<text:p>bo@x.org</text:p> ", "ada@x.org\nbo@x.org"),
            ("<text:p>ada@x.org<text:tab/>bo@x.org</text:p>", "ada@x.org\tbo@x.org"),
            ("<text:p>ada@x.org<text:line-break/>bo@x.org</text:p>", "ada@x.org\nbo@x.org"),
            ("<text:p>Ada<text:s text:c='2'/>L.\n  <text:span>x</text:span></text:p>", "Ada  L. x"),
            (
                "<office:annotation><text:p>old@x.org</text:p></office:annotation>\n"
                "<text:p>a</text:p>",
                "a",
            ),
            (
                "<text:p><text:a xlink:href='mailto:ada@x.org?subject=x'>Ada</text:a></text:p>",
                "Ada <ada@x.org>",
            ),
        ],
    )
    def test_the_text_of_a_cell_is_what_is_shown_in_it(self, tmp_path, inside, text):
        cell = f'<table:table-cell office:value-type="string">{inside}</table:table-cell>'
        rows = ods_row("email", "note") + ods_row("z@x.org", cell)
        assert table_of(write_ods(tmp_path / "a.ods", {"s": rows}))[0][0]["note"] == text

    def test_empty_rows_and_columns_around_the_table_cost_nothing(self, tmp_path):
        before = ods_row(empty_cells(16_384), repeats=1_000)
        table = ods_row(None, None, "email") + ods_row(None, None, "ada@x.org", empty_cells(10**9))
        after = ods_row(empty_cells(16_384), repeats=10**9)
        path = write_ods(tmp_path / "a.ods", {"s": before + table + after})
        assert table_of(path)[0] == [{"email": "ada@x.org"}]

    def test_rows_and_cells_that_repeat_are_as_many_as_they_say(self, tmp_path):
        rows = HEADER + ods_row("ada@x.org", None, repeats=2) + ods_row(None, repeats=2) + ADA
        found, _ = table_of(write_ods(tmp_path / "a.ods", {"s": rows}))
        assert [row["email"] for row in found] == ["ada@x.org"] * 2 + [None] * 2 + [
            "ada@firm.example"
        ]

    @pytest.mark.parametrize(
        ("rows", "told"),
        [
            (ods_row("ada@firm.example", "Ada", repeats=10**9), "1,000,000,001 rows and 2 columns"),
            (ods_row(empty_cells(10**9), "x"), "2 rows and 1,000,000,001 columns"),
            (
                ods_row("ada@firm.example", "x" * 100, repeats=1_000_000),
                "unpacks to more than 16 MiB",
            ),
            (
                ods_row(empty_cells(16_383), "x") + ods_row(None, repeats=1_000_000) + ADA,
                "which are more than",
            ),
            (
                ods_row(
                    f"{empty_cells(16_383)}<table:table-cell><text:p>x</text:p></table:table-cell>"
                )
                * 500,
                "16 MiB",
            ),
        ],
    )
    def test_what_repeats_more_often_than_a_table_does_is_refused(self, tmp_path, rows, told):
        path = write_ods(tmp_path / "a.ods", {"s": HEADER + rows})
        assert told in refuse(path, memory=SMALL)

    def test_a_number_of_repeats_below_one_does_not_undo_what_was_counted(self, tmp_path):
        less = (
            '<table:table-cell table:number-columns-repeated="-1000000000">'
            "<text:p>x</text:p></table:table-cell>"
        )
        rows = HEADER + ods_row(less) + ods_row("ada@firm.example", "x" * 100, repeats=1_000_000)
        assert "16 MiB" in refuse(write_ods(tmp_path / "a.ods", {"s": rows}), memory=SMALL)

    def test_a_formula_without_a_value_is_counted(self, tmp_path):
        cell = '<table:table-cell table:formula="of:=A1"/>'
        path = write_ods(tmp_path / "a.ods", {"s": HEADER + ods_row("ada@x.org", cell)})
        assert "1 formula without a saved value in its sheets" in table_of(path)[1][0]

    def test_one_with_a_password_is_told(self, tmp_path):
        path = tmp_path / "a.ods"
        with zipfile.ZipFile(path, "w") as book:
            book.writestr("content.xml", b"\x93\x11\x02")
            book.writestr("META-INF/manifest.xml", "<manifest:encryption-data/>")
        assert "it has a password: save it without one" in refuse(path)


class TestXlsb:
    def test_values_are_those_of_any_workbook(self, tmp_path):
        rows = [["email", "n", "ok"], ["ada@x.org", 5, True], ["bo@x.org", 5.5, None]]
        found, _ = table_of(write_xlsb(tmp_path / "a.xlsb", {"s": rows}))
        assert found == [
            {"email": "ada@x.org", "n": 5.0, "ok": True},
            {"email": "bo@x.org", "n": 5.5, "ok": None},
        ]

    def test_cells_far_apart_are_refused(self, tmp_path):
        rows = [["email"], [None] * 16_383 + ["x"], *[[None]] * 5_000, ["ada@x.org"]]
        said = refuse(write_xlsb(tmp_path / "a.xlsb", {"s": rows}), memory=SMALL)
        assert "a.xlsb has cells in" in said or "cannot be read with 256 MiB" in said


class TestChoice:
    """The sheet that is read when none is given."""

    SHEETS: ClassVar = {
        "Cover": ods_row("Our customers") + ods_row("made in May"),
        "Figures": ods_row("id", "n") + ods_row("a", "5"),
        "People": HEADER + ADA,
        "Later": HEADER + ods_row("bo@firm.example", "Bo"),
    }

    def test_it_is_the_first_with_addresses_and_the_others_are_named(self, tmp_path):
        found, remarks = table_of(write_ods(tmp_path / "a.ods", self.SHEETS))
        assert found == [{"email": "ada@firm.example", "name": "Ada"}]
        assert remarks == [
            "only sheet 'People' (the first with a column of addresses) is read, and not 'Cover',"
            " 'Figures', 'Later'; "
            "give another with --sheet"
        ]

    def test_a_column_of_another_sheet_is_an_error_that_names_the_sheets(self, tmp_path):
        opened = open_table(write_ods(tmp_path / "a.ods", self.SHEETS))
        with pytest.raises(ColumnError) as caught:
            opened.check_column("Our customers")
        assert str(caught.value).endswith(
            "; this is sheet 'People', and there are also 'Cover', 'Figures', 'Later': give "
            "another with --sheet"
        )

    def test_a_hidden_sheet_is_the_last_choice(self, tmp_path):
        path = write_ods(tmp_path / "a.ods", self.SHEETS, hidden=["People"])
        assert table_of(path)[0] == [{"email": "bo@firm.example", "name": "Bo"}]

    def test_without_addresses_it_is_the_first_that_is_not_empty(self, tmp_path):
        sheets = {"Empty": "", **{name: self.SHEETS[name] for name in ("Cover", "Figures")}}
        found, remarks = table_of(write_ods(tmp_path / "a.ods", sheets))
        assert found == [{"Our customers": "made in May"}]
        assert remarks == [
            "only sheet 'Cover' is read, and not 'Empty', 'Figures'; give another with --sheet"
        ]

    def test_an_address_that_only_a_link_has_counts(self, tmp_path):
        path = tmp_path / "a.xlsx"
        with xlsxwriter.Workbook(path) as book:
            book.add_worksheet("Cover").write(0, 0, "Our customers")
            sheet = book.add_worksheet("People")
            sheet.write_row(0, 0, ["Contact", "n"])
            sheet.write_url(1, 0, "mailto:ada@firm.example", string="Ada")
        assert table_of(path)[0] == [{"Contact": "Ada <ada@firm.example>", "n": None}]

    @pytest.mark.parametrize("ending", [".xls", ".xlsx", ".xlsb", ".ods"])
    @pytest.mark.parametrize("kind", ["ods", "xlsb", "xlsx", "xls"])
    def test_a_workbook_is_read_as_what_it_is_whatever_its_name_says(self, tmp_path, kind, ending):
        path = tmp_path / f"a{ending}"
        if kind == "ods":
            write_ods(path, {"s": HEADER + ADA})
        elif kind == "xlsb":
            write_xlsb(path, {"s": [["email"], ["ada@firm.example"]]})
        elif kind == "xlsx":
            write_raw(path, ADDRESS)
        else:
            path.write_bytes(Path(__file__).with_name("people.xls").read_bytes())
        assert open_table(path).table.num_rows == (3 if kind == "xls" else 1)
