"""Workbooks that ask for more than a table needs: refused by a line, and the process goes on."""

import re
import struct
import zipfile

import pandas as pd
import pytest
import xlsxwriter

import mailverdict as mv
from mailverdict.errors import InputError
from mailverdict.files.compression import ALWAYS_ALLOWED
from mailverdict.files.readers import open_table
from mailverdict.files.sheets import MOST_CELLS, read_sheet, run_program
from tests.doubles.tables import first_ones
from tests.doubles.workbooks import write_raw

MIB = 1 << 20
SMALL = (
    256 * MIB
)  # of memory: what the program takes without a workbook, and some millions of cells
ADDRESS = '<row><c r="A1" t="str"><v>email</v></c></row><row><c r="A2" t="str"><v>ada@example.org</v></c></row>'
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
        "x.xlsx cannot be read with 256 MiB of memory in 30 seconds (ended by signal 6), which a table"
    )
    assert said.endswith("delete what is outside the table, or save it as CSV")


def test_a_false_number_of_texts_does_not_end_this_process(tmp_path):
    """Releases of the reader that trust it run out of memory, older ones do not look at it."""
    path = write_raw(tmp_path / "x.xlsx", ADDRESS, strings=MANY)
    try:
        found = read_sheet(path, path.name, None, memory=SMALL)[4]
    except InputError as exc:
        found = str(exc)
    assert (
        found == [["email"], ["ada@example.org"]]
        or "cannot be read with 256 MiB of memory" in found
    )


@pytest.mark.slow
def test_more_cells_than_are_read_are_refused_and_not_one_is_read(tmp_path):
    path = write_raw(tmp_path / "x.xlsx", far('<c r="C4"><v>1</v></c>'))
    assert len(read_sheet(path, "x.xlsx", None, most_cells=12)[4]) == 4
    found, _links = run_program(path, "x.xlsx", 11)
    assert found[2:4] == (4, 3)
    assert refuse(path, most_cells=11) == (
        "x.xlsx has cells in 4 rows and 3 columns of sheet 's', which are more than the 11 cells that are read: delete "
        "what is outside the table, or save it as CSV"
    )
    assert MOST_CELLS >= 1_048_576 * 30


@pytest.mark.slow
def test_rows_without_cells_cost_next_to_nothing(tmp_path):
    path = write_raw(tmp_path / "x.xlsx", far('<c r="B1048576"><v>0</v></c>'))
    *_, rows = read_sheet(path, "x.xlsx", None, memory=SMALL)
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
        "x.xlsx cannot be read as XLSX: it unpacks to more than 16 MiB, much more than a table in a file"
    )
    read_sheet(blown_up(ALWAYS_ALLOWED), "x.xlsx", None)


@pytest.mark.slow
def test_a_text_counts_in_each_cell_that_has_it(tmp_path):
    path = write_raw(tmp_path / "x.xlsx", SHARED * 1_000, strings=LONG)
    assert "it unpacks to more than 16 MiB" in refuse(path)
    assert len(read_sheet(write_raw(path, SHARED * 400, strings=LONG), "x.xlsx", None)[4]) == 400


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
    assert "x.xlsx cannot be read as XLSX: Bad CRC-32" in refuse(path)


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
    assert said == "x.xlsx cannot be read as XLSX: at 0..0: unrecognized entity `&g;`"


def test_a_dimension_that_is_not_true_changes_nothing(tmp_path):
    sheet = '<worksheet xmlns="%s"><dimension ref="A1:XFD1048576"/><sheetData>%s</sheetData></worksheet>'
    path = write_raw(tmp_path / "x.xlsx", ADDRESS, sheet=sheet)
    assert read_sheet(path, "x.xlsx", None, memory=SMALL)[4] == [["email"], ["ada@example.org"]]


def test_what_takes_too_long_is_stopped(tmp_path):
    with pytest.raises(
        InputError,
        match=re.escape("in 0.001 seconds (it was stopped), which a table in a file of its"),
    ):
        run_program(write_raw(tmp_path / "x.xlsx", ADDRESS), "x.xlsx", seconds=0.001)


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
