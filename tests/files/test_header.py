"""Where a table begins, and the delimiter of a CSV."""

from __future__ import annotations

import pytest
import xlsxwriter

from mailverdict.files.header import find_start
from mailverdict.files.readers import ReadOptions, open_table
from mailverdict.files.writers import create_table
from tests.doubles.tables import assert_none_differ

A, B = "ada@example.org", "bob@example.org"

STARTS = [
    ([["name", "email"], ["Ada", A]], (0, True), "the usual file"),
    ([["Ada", A], ["Bob", B]], (0, False), "no header"),
    ([["Ada", f"{A}; {B}"], ["Cy", B]], (0, False), "several addresses in the first row"),
    ([["Ada", "ada [at] example.org"], ["Bob", B]], (0, False), "a written-out @ in the first row"),
    ([["Ada", "ada@firm"], ["Bob", B]], (0, False), "a malformed address in the first row"),
    ([["Ada", "n/a"], ["Bob", B]], (0, False), "a placeholder where others have an address"),
    ([["Ada", "unknown"], ["Bob", B]], (0, False), "another placeholder"),
    (
        [["Ada", "", "12"], ["Bob", B, "7"]],
        (0, False),
        "a gap where others have an address, and a number",
    ),
    ([["", "email"], ["1", A]], (0, True), "an index without a name"),
    ([["@timestamp", "email"], ["1", A]], (0, True), "a name that begins with @"),
    ([["Contacts"], ["name", "email"], ["Ada", A]], (1, True), "a title"),
    (
        [["Contacts", "", ""], ["", "", ""], ["name", "email", "n"], ["Ada", A, ""]],
        (2, True),
        "a title with delimiters",
    ),
    (
        [["# export"], ["# of 2026"], ["name", "email"], ["Ada", A]],
        (2, True),
        "as many title rows as others",
    ),
    (
        [["Club"], [f"Contact: {A}", "", ""], ["no", "name", "E-Mail"], ["1", "Ada", A]],
        (2, True),
        "a title with an address",
    ),
    (
        [[f"Contact: {A}", "", ""], ["no", "name", "E-Mail"], ["1", "Ada", A]],
        (1, True),
        "a first row with an address",
    ),
    (
        [[A, "", ""], ["no", "name", "E-Mail"], ["1", "Ada", B]],
        (0, False),
        "an address alone is a contact",
    ),
    (
        [[f"Bo <{A}>", "", ""], ["no", "name", "E-Mail"], ["1", "Ada", B]],
        (0, False),
        "a contact, with a name",
    ),
    (
        [[f"Ada: {A}", "", ""], ["Bo", B, "E-Mail"], ["1", "Ada", B]],
        (0, False),
        "a word in a row of data",
    ),
    (
        [["Contacts", "", "", ""], ["Name", "E-Mail", "", ""], ["Ada", A, B, ""]],
        (1, True),
        "one name over several columns",
    ),
    ([["email"], ["one, more"], [A]], (0, True), "one column"),
    (
        [["email", "", ""], ["x", "y", "z"], [A, "1", "2"]],
        (0, True),
        "unnamed columns beside the one of addresses",
    ),
    (
        [["Contacts"], ["name", "email"], ["Ada", "none"]],
        (0, True),
        "no address that shows where the data is",
    ),
    ([], (0, True), "nothing"),
]


def test_the_first_row_of_the_table():
    assert_none_differ(
        (why, start, find_start(rows)) for rows, start, why in STARTS if find_start(rows) != start
    )


CASES = [
    ("sep=;\r\nname;email\r\nAda, Dr.;{A}\r\n", ("name", "email"), []),
    ('"sep=;"\nname;email\nAda;{A}\n', ("name", "email"), []),
    ("\n\nSEP=|\nname|email\nAda|{A}\n", ("name", "email"), []),
    ("Name, first;email\nAda, L;{A}\n", ("Name, first", "email"), []),
    ("Contacts, 2026\n\nname;email\nAda;{A}\n", ("name", "email"), ["the header is line 3"]),
    ("# export\r\nname,email\r\nAda,{A}\r\n", ("name", "email"), ["the header is line 2"]),
    ("# export\n# of 2026\nname,email\nAda,{A}\n", ("name", "email"), ["the header is line 3"]),
    ("\ufeffname,email\nAda,{A}\n", ("name", "email"), []),
]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize(("content", "columns", "remarks"), CASES)
def test_what_is_before_the_header_is_copied(tmp_path, content, columns, remarks, encoding):
    path = tmp_path / "in.csv"
    whole = content.replace("{A}", A)
    path.write_bytes(whole.encode(encoding))
    with open_table(path) as source:
        assert source.columns == columns
        assert [
            remark[: len(begin)] for remark, begin in zip(source.remarks, remarks, strict=True)
        ] == remarks
        (piece,) = source.pieces(with_lines=True)
        assert piece.column("email").to_pylist() == [A]
        with create_table(tmp_path / "out.csv", like=source.format) as writer:
            writer.write(piece)
    assert (tmp_path / "out.csv").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(("has_header", "rows"), [(True, 2), (False, 3)])
def test_a_title_is_a_row_on_request(tmp_path, has_header, rows):
    path = tmp_path / "in.csv"
    path.write_text(f"Contacts,\nname,email\nAda,{A}\n")
    with open_table(path, ReadOptions(has_header=has_header)) as source:
        assert sum(map(len, source.pieces())) == rows


def test_tabs_are_not_required_in_a_tsv(tmp_path):
    path = tmp_path / "in.tsv"
    path.write_text(f"name,email\nAda,{A}\n")
    with open_table(path) as source:
        assert source.columns == ("name", "email")


def test_tabs_of_a_tsv_count_where_another_delimiter_is_between_addresses(tmp_path):
    path = tmp_path / "in.tsv"
    path.write_text(f"name\temail\nAda\t{A}; {B}\nBob\t{B}; {A}\n")
    with open_table(path) as source:
        assert source.columns == ("name", "email")


@pytest.mark.slow
def test_a_title_and_the_sheets_name_stay_in_a_workbook(tmp_path):
    path = tmp_path / "in.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        hidden, sheet = book.add_worksheet("Old"), book.add_worksheet("People")
        hidden.write(0, 0, "secret")
        hidden.hide()
        sheet.activate()
        for row, cells in enumerate([["Contacts"], [], ["name", "email"], ["Ada", A]]):
            sheet.write_row(row, 0, cells)
    with open_table(path) as source:
        assert source.columns == ("name", "email")
        assert source.format.sheet == "People"
        assert any(remark.startswith("the header is row 3") for remark in source.remarks)
        with create_table(tmp_path / "out.xlsx", like=source.format) as writer:
            for piece in source.pieces():
                writer.write(piece)
    with open_table(tmp_path / "out.xlsx", ReadOptions(has_header=False)) as again:
        (piece,) = again.pieces()
        assert [list(filter(None, row.values())) for row in piece.to_pylist()] == [
            ["Contacts"], [], ["name", "email"], ["Ada", A],
        ]  # fmt: skip
        assert again.format.sheet == "People"
