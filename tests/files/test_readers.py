"""Table files in: what they are, what they hold, and what is wrong with them."""

from __future__ import annotations

import datetime
import gzip
import io
import os
import re
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet
import pytest
import xlsxwriter
from hypothesis import given
from hypothesis import strategies as st

import mailverdict as mv
from mailverdict.errors import ColumnError, InputError
from mailverdict.files import delimited
from mailverdict.files.delimited import BLOCK, guess_delimiter, parse_delimiter
from mailverdict.files.encodings import SAMPLE
from mailverdict.files.readers import ReadOptions, open_table
from mailverdict.files.writers import create_table
from mailverdict.table.choose_column import choose_column
from tests.doubles.other_system import needs_posix
from tests.doubles.workbooks import change_parts

ROWS = [["1", "ada@example.org"], ["2", ""]]
TABLE = pa.table({"id": [1, 2], "email": ["ada@example.org", None]})


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rows_of(path, **hints):
    """Every row of a file as lists, and its columns."""
    with open_table(path, ReadOptions(**hints)) as file:
        whole = [
            row
            for piece in file.pieces()
            for row in zip(*(c.to_pylist() for c in piece.columns), strict=True)
        ]
        return [list(row) for row in whole], list(file.columns)


def fault_of(path, **hints):
    """What is said when reading a file to its end."""
    with pytest.raises((InputError, ColumnError)) as caught:
        rows_of(path, **hints)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestDelimited:
    @pytest.mark.parametrize(
        ("name", "content", "hints"),
        [
            ("commas.csv", "id,email\n1,ada@example.org\n2,\n", {}),
            ("semicolons.csv", "id;email\n1;ada@example.org\n2;\n", {}),
            ("pipes.txt", "id|email\n1|ada@example.org\n2|\n", {}),
            ("tabs.csv", "id\temail\n1\tada@example.org\n2\t\n", {}),
            ("tabs.tsv", "id\temail\n1\tada@example.org\n2\t\n", {}),
            ("odd.csv", "id~email\n1~ada@example.org\n2~\n", {"delimiter": "~"}),
            ("named.csv", "id\temail\n1\tada@example.org\n2\t\n", {"delimiter": "tab"}),
            ("windows.csv", "id,email\r\n1,ada@example.org\r\n2,\r\n", {}),
            ("old mac.csv", "id,email\r1,ada@example.org\r2,\r", {}),
            ("no end.csv", 'id,email\n1,ada@example.org\n2,""', {}),
            ("quoted.csv", '"id","email"\n"1","ada@example.org"\n"2",""\n', {}),
            ("blank lines.csv", "id,email\n\n1,ada@example.org\n\n2,\n\n", {}),
            ("mark.csv", "\ufeffid,email\n1,ada@example.org\n2,\n", {}),
            ("mark, told.csv", "\ufeffid,email\n1,ada@example.org\n2,\n", {"encoding": "utf-8"}),
            ("utf-16.csv", "id,email\n1,ada@example.org\n2,\n".encode("utf-16"), {}),
            (
                "utf-16-le.csv",
                "id,email\n1,ada@example.org\n2,\n".encode("utf-16-le"),
                {"encoding": "utf-16-le"},
            ),
            ("UPPER.CSV", "id,email\n1,ada@example.org\n2,\n", {}),
        ],
    )
    def test_every_dialect_gives_the_same_rows(self, tmp_path, name, content, hints):
        assert rows_of(write(tmp_path, name, content), **hints) == (ROWS, ["id", "email"])

    def test_cells_are_text_and_stay_as_they_are(self, tmp_path):
        content = 'a,b\n007,NULL\n1e5, x \n"l1\nl2","say ""hi"""\n5" pipe,NA\ntrue,2026-01-02\n'
        wanted = [
            ["007", "NULL"],
            ["1e5", " x "],
            ["l1\nl2", 'say "hi"'],
            ['5" pipe', "NA"],
            ["true", "2026-01-02"],
        ]
        assert rows_of(write(tmp_path, "x.csv", content))[0] == wanted

    def test_names_may_be_twice_empty_or_over_two_lines(self, tmp_path):
        path = write(tmp_path, "x.csv", 'a,a,,"e\nmail"\n1,2,3,x@example.org\n')
        assert rows_of(path) == (
            [["1", "2", "3", "x@example.org"]],
            ["a", "a", "column_3", "e\nmail"],
        )

    def test_a_blank_line_is_a_row_where_a_row_is_one_cell(self, tmp_path):
        assert rows_of(write(tmp_path, "x.csv", "email\na@b.org\n\nc@d.org\n"))[0] == [
            ["a@b.org"],
            [""],
            ["c@d.org"],
        ]

    @pytest.mark.parametrize(
        "content", ["id,email\n", "id,email", "id,email\r\n", "\ufeffid,email\n", "id,email\n\n"]
    )
    def test_a_header_alone_is_a_table_without_rows(self, tmp_path, content):
        with open_table(write(tmp_path, "x.csv", content)) as file:
            assert [(len(piece), piece.column_names) for piece in file.pieces()] == [
                (0, ["id", "email"])
            ]

    def test_another_encoding_is_read_when_told(self, tmp_path):
        path = write(tmp_path, "x.csv", "name,email\nJörg €,a@b.org\n".encode("cp1252"))
        assert rows_of(path, encoding="cp1252")[0] == [["Jörg €", "a@b.org"]]

    def test_a_character_across_the_edge_of_the_sample_is_not_an_error(self, tmp_path):
        head = "note\n" + "x" * (SAMPLE - 6)
        assert rows_of(write(tmp_path, "x.csv", head + "ö\n"))[0] == [[head[5:] + "ö"]]

    def test_more_than_one_block_keeps_every_row_in_order(self, tmp_path):
        lines = [f"{i},{'x' * 1_000}" for i in range(BLOCK // 800)]
        read = rows_of(write(tmp_path, "x.csv", "id,note\n" + "\n".join(lines)))[0]
        assert [row[0] for row in read] == [str(i) for i in range(len(lines))]

    @pytest.mark.parametrize(
        ("content", "hints", "told"),
        [
            (b"", {}, " is empty"),
            ("\n\n", {}, " has no header line"),
            (",,\n1,2,3\n", {}, " has no header line"),
            ("id,email\n1\n", {"is_strict": True}, ", line 2: 1 cell where the header has 2"),
            (
                'id,email\n"a\nb",2\n1,2,3\n',
                {"is_strict": True},
                ", line 4: 3 cells where the header has 2",
            ),
            (
                'id,email\n1,"ada@example.org\n2,x\n',
                {},
                " ends inside quotes: it is truncated, or a quote is not doubled; the row begins "
                "in line 2",
            ),
            ('id,email\n1,"ada@example.org'.encode("utf-16"), {}, " ends inside quotes"),
            (
                "id,email\nJörg,x\n".encode("latin-1"),
                {"encoding": "utf-8", "is_strict": True},
                ", line 2: a byte is not utf-8; give another --encoding",
            ),
            (
                b"id,email\n" + b"1,x\n" * SAMPLE + "Jörg,ö\n".encode() * 9 + b"2,\xc3",
                {"is_strict": True},
                ", line 65547: a byte is not utf-8; give its encoding",
            ),
            (
                "id,email\n1,x\n",
                {"encoding": "utf-99"},
                "encoding 'utf-99' is not known; try utf-8",
            ),
            ("id,email\n1,x\n", {"encoding": "base64"}, "encoding 'base64' is not known"),
            ("id,email\n1,x\n", {"encoding": "utf-16"}, "is not utf-16-le: "),
            ("id,email\n1,ada@x.org\n".encode("utf-16") + b"\0", {}, "is not utf-16-le: "),
            (
                "id,email\n1,xy\n",
                {"encoding": "utf-16"},
                "nothing in it is readable as utf-16-le; give another --encoding",
            ),
            (
                "id,email\n1,x\n".encode("utf-32"),
                {},
                "x.csv is UTF-32, which is not read: save it as UTF-8",
            ),
            ("id,email\n1,x\n", {"encoding": "utf-32"}, "is UTF-32, which is not read"),
            (
                "id,email\n1,x\n",
                {"delimiter": "ab"},
                "delimiter 'ab': give one character, or one of tab",
            ),
            ("id,email\n1,x\n", {"delimiter": ""}, "delimiter ''"),
            ("id,email\n1,x\n", {"delimiter": "\n"}, "delimiter '\\n'"),
            ('id,"' + "x" * 140_000, {}, " ends inside quotes"),
            (
                b"PAR1 and more",
                {},
                " is not a text table but a Parquet file; give a table, with the ending of its "
                "kind",
            ),
            (
                "\n<!DOCTYPE html>\n<table><tr><td>a@b.org",
                {},
                " is not a text table but a web page; open it in",
            ),
            ("<TABLE border=1><tr><td>a@b.org", {}, " is not a text table but a web page"),
        ],
        ids=lambda v: repr(v)[:25],
    )
    def test_what_is_wrong_is_told_on_one_line(self, tmp_path, content, hints, told):
        assert told in fault_of(write(tmp_path, "x.csv", content), **hints)

    def test_a_first_line_too_long_for_memory_is_told(self, tmp_path, monkeypatch):
        monkeypatch.setattr(delimited, "LONGEST_LINE", 1 << 18)
        path = write(tmp_path, "x.csv", 'id,"' + "x" * (BLOCK + 1))
        assert (
            ": the first line is longer than 262,144 bytes, or a quote is not closed"
            in fault_of(path)
        )

    def test_a_long_cell_with_a_lone_quote_is_read(self, tmp_path):
        cell = 'x"' + "x" * 200_000
        assert rows_of(write(tmp_path, "x.csv", f"id,email\n1,{cell}\n"))[0] == [["1", cell]]

    @pytest.mark.slow
    @given(
        st.lists(
            st.lists(
                st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
                min_size=2,
                max_size=2,
            )
        )
    )
    def test_whatever_python_writes_is_read_back(self, tmp_path_factory, rows):
        import csv

        text = io.StringIO(newline="")
        csv.writer(text, quoting=csv.QUOTE_ALL).writerows([["id", "email"], *rows])
        path = write(tmp_path_factory.mktemp("csv"), "x.csv", text.getvalue())
        assert rows_of(path, delimiter=",")[0] == rows

    def test_the_delimiter_is_guessed_outside_quotes(self):
        assert guess_delimiter(b'"a,b,c";"d";"e"\n1,2', is_last=True) == ";"
        assert guess_delimiter(b"email", is_last=True) == ","
        assert parse_delimiter("\\t") == "\t"


class TestParquet:
    def test_types_are_kept(self, tmp_path):
        pa.parquet.write_table(TABLE, tmp_path / "x.parquet")
        with open_table(tmp_path / "x.parquet") as file:
            assert pa.concat_tables(file.pieces()).equals(TABLE)

    def test_no_rows_keep_their_types(self, tmp_path):
        pa.parquet.write_table(TABLE.slice(0, 0), tmp_path / "x.pq")
        with open_table(tmp_path / "x.pq") as file:
            assert [piece.schema for piece in file.pieces()] == [TABLE.schema]

    @pytest.mark.parametrize("part", [0.01, 0.5, 0.99])
    def test_a_file_cut_off_is_told(self, tmp_path, part):
        pa.parquet.write_table(TABLE, tmp_path / "x.parquet")
        whole = (tmp_path / "x.parquet").read_bytes()
        assert "x.parquet: " in fault_of(
            write(tmp_path, "x.parquet", whole[: int(len(whole) * part)])
        )

    def test_a_damaged_page_is_told_while_reading(self, tmp_path):
        pa.parquet.write_table(
            pa.table({"email": [f"{i}@example.org" for i in range(9_000)]}), tmp_path / "x.parquet"
        )
        whole = bytearray((tmp_path / "x.parquet").read_bytes())
        whole[100:9_000] = bytes(8_900)
        assert "x.parquet: " in fault_of(write(tmp_path, "x.parquet", bytes(whole)))


SHEETS = "xl/worksheets/sheet"


def prefix_cells(path, prefix):
    """Write the elements of a workbook's sheets with a namespace prefix, as other programs do."""

    def change(octets):
        named = re.sub(rb"<(/?)(?=[a-zA-Z])", rb"<\1" + prefix, octets)
        return named.replace(b"xmlns=", b"xmlns:" + prefix[:-1] + b"=")

    change_parts(path, SHEETS, change)


def write_book(path, rows, sheet="People"):
    book = xlsxwriter.Workbook(str(path), {"default_date_format": "yyyy-mm-dd hh:mm"})
    book.add_worksheet("Cover")
    for at, row in enumerate(rows):
        for column, cell in enumerate(row):
            (book.get_worksheet_by_name(sheet) or book.add_worksheet(sheet)).write(at, column, cell)
    book.close()
    return path


class TestWorkbook:
    MOMENT = datetime.datetime(2026, 1, 2, 3, 4)  # noqa: DTZ001 - a workbook has no time zones
    HEADER = ("email", "n", "share", "when", "ok", "mixed", 5)
    BODY = (
        ("ada@example.org", 1, 0.5, MOMENT, True, "a", "x"),
        ("", 2, 2, MOMENT, False, 1, None),
        (None, None, None, None, None, 2.5, None),
    )

    def test_columns_of_one_kind_keep_it(self, tmp_path):
        path = write_book(tmp_path / "x.xlsx", [self.HEADER, *self.BODY])
        rows, columns = rows_of(path, sheet="People")
        assert columns == ["email", "n", "share", "when", "ok", "mixed", "5"]
        assert rows == [
            ["ada@example.org", 1, 0.5, self.MOMENT, True, "a", "x"],
            [None, 2, 2.0, self.MOMENT, False, "1", None],
            [None, None, None, None, None, "2.5", None],
        ]

    def test_durations_are_shown_in_hours(self, tmp_path):
        path = tmp_path / "x.xlsx"
        with xlsxwriter.Workbook(str(path)) as book:
            sheet = book.add_worksheet()
            for at, row in enumerate((["email", "took"], ["a@b.org"], ["c@d.org", "long"])):
                sheet.write_row(at, 0, row)
            sheet.write_number(
                1, 1, (30 + 5 / 60) / 24, book.add_format({"num_format": "[h]:mm:ss"})
            )
        assert rows_of(path)[0] == [["a@b.org", "30:05:00"], ["c@d.org", "long"]]

    def test_a_sheet_of_a_header_alone_has_no_rows(self, tmp_path):
        assert rows_of(write_book(tmp_path / "x.xlsx", [["email"]]), sheet="People") == (
            [],
            ["email"],
        )

    @pytest.mark.parametrize(
        ("sheet", "told"),
        [
            (
                "Poeple",
                "has no sheet 'Poeple' (did you mean 'People'?); there are 'Cover', 'People'",
            ),
            (
                "1",
                "has no sheet '1' (give its name, not its position); there are 'Cover', 'People'",
            ),
            ("Cover", "has no header"),
        ],
    )
    def test_the_wrong_sheet_is_told(self, tmp_path, sheet, told):
        assert told in fault_of(write_book(tmp_path / "x.xlsx", [["email"]]), sheet=sheet)

    def test_the_first_sheet_that_is_not_empty_is_read_and_named(self, tmp_path):
        with open_table(write_book(tmp_path / "x.xlsx", [["email"], ["a@b.org"]])) as source:
            assert source.columns == ("email",)
            assert source.remarks == [
                "only sheet 'People' (the first with a column of addresses) is read, and not "
                "'Cover'; give another with --sheet"
            ]

    def test_a_sheet_whose_column_is_only_called_email_is_not_the_one(self, tmp_path):
        path = tmp_path / "x.xlsx"
        with xlsxwriter.Workbook(str(path)) as book:
            for name, rows in {
                "Empty": [["email", "n"], ["", 1]],
                "Notes": [["note", "n"], ["see ada@b.org", 1], ["none", 2], ["none", 3], ["no", 4]],
                "Two": [
                    ["work email", "home email"],
                    ["a@b.org", "a@c.org"],
                    ["d@b.org", "d@c.org"],
                ],
            }.items():
                sheet = book.add_worksheet(name)
                for at, row in enumerate(rows):
                    sheet.write_row(at, 0, row)
        with open_table(path) as source:
            assert source.format.sheet == "Two"

    def test_an_address_in_the_first_row_is_data(self, tmp_path):
        with open_table(
            write_book(tmp_path / "x.xlsx", [["a@b.org", 1], ["c@d.org", 2, "x"]])
        ) as source:
            assert source.columns == ("column_1", "column_2", "column_3")
            assert sum(map(len, source.pieces())) == 2

    @pytest.mark.parametrize("part", [0.1, 0.5, 0.99])
    def test_a_file_cut_off_is_told(self, tmp_path, part):
        whole = write_book(tmp_path / "x.xlsx", [["email"], ["a@b.org"]]).read_bytes()
        assert "cannot be read as a workbook" in fault_of(
            write(tmp_path, "x.xlsx", whole[: int(len(whole) * part)])
        )

    def test_a_workbook_with_a_password_is_told(self, tmp_path):
        path = write(tmp_path, "x.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600)
        assert "cannot be read as a workbook: it has a password, or is not a workbook" in fault_of(
            path
        )

    @pytest.mark.parametrize("mode", ["", "x:"])
    def test_formulas_without_a_saved_value_are_counted(self, tmp_path, mode):
        path = tmp_path / "x.xlsx"
        with xlsxwriter.Workbook(str(path)) as book:
            for name in ("Ünsorted & more", "other"):
                sheet = book.add_worksheet(name)
                for at, row in enumerate(
                    (["email", "n"], ["ada@example.org", "=1+1"], ['="cy@example.org"', 2])
                ):
                    for column, cell in enumerate(row):
                        sheet.write(
                            at, column, cell, None, *([""] if str(cell).startswith("=") else [])
                        )
        # As openpyxl writes it.
        change_parts(path, SHEETS, lambda octets: octets.replace(b"<v></v>", b"<v />"))
        if mode:
            prefix_cells(path, mode.encode())
        with open_table(path, ReadOptions(sheet="Ünsorted & more")) as source:
            assert source.formulas == 4
            (remark,) = source.remarks
            assert remark.startswith(
                "4 formulas without a saved value in its sheets, as programs write them: read as "
                "emp"
            )

    def test_formulas_with_a_value_and_an_empty_text_that_was_saved_are_not(self, tmp_path):
        path = tmp_path / "x.xlsx"
        with xlsxwriter.Workbook(str(path)) as book:
            sheet = book.add_worksheet()
            sheet.write_row(0, 0, ["email", "n"])
            sheet.write_formula(1, 0, '="ada@example.org"', None, "ada@example.org")
            sheet.write_formula(2, 0, '=IF(1,"","x")', None, "")
            sheet.write_formula(2, 1, "=1+1", None, 2)
        # As Excel writes it.
        change_parts(
            path, SHEETS, lambda octets: octets.replace(b'<c r="A3">', b'<c r="A3" t="str">')
        )
        with open_table(path) as source:
            assert (source.formulas, source.remarks) == (0, [])


class TestOpening:
    @pytest.mark.parametrize(
        ("name", "told"),
        [
            ("folder.csv", "folder.csv is a directory without Parquet files; give a file"),
            ("missing.csv", "missing.csv: no such file"),
            ("x.foo", "cannot tell what kind of table this is; known endings: .csv, .txt"),
            ("x", "cannot tell what kind"),
            ("empty.parquet", "empty.parquet is empty"),
            ("fake.parquet", "fake.parquet: Parquet magic bytes not found"),
            ("fake.xlsx", "fake.xlsx cannot be read as a workbook"),
        ],
    )
    def test_what_is_not_a_table_is_told(self, tmp_path, name, told):
        if name == "folder.csv":
            (tmp_path / name).mkdir()
        elif name != "missing.csv":
            write(tmp_path, name, "" if name.startswith("empty") else "email\na@b.org\n" * 3)
        assert told in fault_of(tmp_path / name)

    def test_a_table_that_is_named_as_another_is_told(self, tmp_path):
        path = write_book(tmp_path / "x.xlsx", [["email"]]).rename(tmp_path / "x.csv")
        assert "x.csv" in fault_of(path)

    def test_a_column_that_is_not_there_once_is_told_with_the_file(self, tmp_path):
        with open_table(write(tmp_path, "x.csv", "a,b,b\n")) as file:
            file.check_column("a")
            with pytest.raises(
                ColumnError, match=r"x\.csv: no column 'email'; there are 'a', 'b', 'b'"
            ):
                file.check_column("email")
            with pytest.raises(ColumnError, match=r"x\.csv: the column name 'b' occurs 2 times"):
                file.check_column("b")


def stdin_of(content, monkeypatch):
    """Standard input is the one argument that cannot be given otherwise."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def zipped(name, text):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(name, text)
    return made.getvalue()


class TestStandardInput:
    def test_a_closed_one_is_told(self, monkeypatch):
        monkeypatch.setattr(sys, "stdin", None)
        assert (
            fault_of("-") == "standard input is closed: give a file, or pipe a table to the command"
        )

    def test_it_is_read_as_csv_and_its_copy_goes(self, monkeypatch):
        stdin_of(b"\xef\xbb\xbfid;email\n1;ada@example.org\n2;\n", monkeypatch)
        with open_table("-") as file:
            assert file.path.exists()
            assert [piece.to_pylist() for piece in file.pieces()] == [
                [{"id": a, "email": b} for a, b in ROWS]
            ]
        assert not file.path.exists()

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            (b"", "standard input is empty"),
            (b'id\n"x\n', "standard input ends inside quotes"),
            (b"\n", "no header"),
            (
                gzip.compress(b"email\n"),
                "compressed with gzip; unpack it first, or give a file whose name ends as",
            ),
            (
                zipped("contacts.csv", "email\n"),
                "cannot be read as a workbook: it is a zip file without a workbook in it; give "
                "the table itself",
            ),
        ],
    )
    def test_what_is_wrong_is_told_and_its_copy_goes(self, monkeypatch, tmp_path, content, told):
        import tempfile

        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        stdin_of(content, monkeypatch)
        assert told in fault_of("-")
        assert list(tmp_path.iterdir()) == []

    def test_json_lines_arrays_and_an_object_are_read_and_other_json_is_refused(self, monkeypatch):
        stdin_of(b'\xef\xbb\xbf{"email": "ada@x.example"}\n{"email": null}\n', monkeypatch)
        with open_table("-") as file:
            assert file.columns == ("email",)
        stdin_of(b'[\n {"email":"ada@x.example"}\n]', monkeypatch)
        with open_table("-") as file:
            assert file.columns == ("email",)
        stdin_of(b'{\n"email":"a@x.example"\n}', monkeypatch)
        with open_table("-") as file:
            assert file.columns == ("email",)
        stdin_of(b'{\n"id":1\n}\n{\n"id":2\n}', monkeypatch)
        assert "convert the file, as with jq -c" in fault_of("-")

    def test_json_in_a_file_named_as_csv_is_refused(self, tmp_path):
        (tmp_path / "in.csv").write_text('[{"email": "ada@x.example"}]')
        assert "is not a text table but JSON" in fault_of(tmp_path / "in.csv")


@needs_posix
class TestPipe:
    def test_a_pipe_is_read_to_its_end_and_its_copy_goes(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        with ThreadPoolExecutor(1) as pool:
            pool.submit((tmp_path / "pipe").write_text, "id;email\n1;ada@example.org\n2;\n")
            with open_table(tmp_path / "pipe") as file:
                copy = file.path
                (piece,) = file.pieces()
        assert piece.column("email").to_pylist() == ["ada@example.org", ""]
        assert not copy.exists()

    def test_a_compressed_one_is_told(self, tmp_path):
        os.mkfifo(tmp_path / "x.csv.gz")
        assert "is a pipe: unpack what is written to it" in fault_of(tmp_path / "x.csv.gz")


PACKED = [".gz", ".bz2", ".xz", ".zst", ".zip"]


class TestCompressed:
    @pytest.mark.parametrize("ending", PACKED)
    def test_what_is_packed_is_read_and_its_copy_goes(self, tmp_path, ending):
        path = tmp_path / f"x.csv{ending}"
        with create_table(path) as writer:
            writer.write(pa.table({"id": ["1", "2"], "email": ["ada@example.org", None]}))
        assert path.read_bytes()[:2] != b"id"
        assert [each.name for each in tmp_path.iterdir()] == [path.name]
        with open_table(path) as source:
            assert source.path.exists()
            assert [piece.to_pylist() for piece in source.pieces()] == [
                [{"id": a, "email": b} for a, b in ROWS]
            ]
        assert not source.path.exists()

    @pytest.mark.slow
    @pytest.mark.parametrize("ending", PACKED)
    def test_a_bomb_is_refused_and_leaves_nothing(self, tmp_path, monkeypatch, ending):
        path = tmp_path / f"x.csv{ending}"
        with create_table(path) as writer:
            writer.write(pa.table({"email": ["x" * 1_000_000]}).take([0] * 30))
        self.check_refused(path, tmp_path, monkeypatch, "unpacks to more than 200 times its size")

    @pytest.mark.parametrize("ending", PACKED)
    def test_a_damaged_one_is_told_and_leaves_nothing(self, tmp_path, monkeypatch, ending):
        path = tmp_path / f"x.csv{ending}"
        with create_table(path) as writer:
            writer.write(pa.table({"email": [f"ada{n}@example.org" for n in range(9_000)]}))
        path.write_bytes(path.read_bytes()[:-900])
        self.check_refused(
            path, tmp_path, monkeypatch, "cannot be unpacked: it is damaged, or its ending is wrong"
        )

    def check_refused(self, path, folder, monkeypatch, told):
        scratch = folder / "scratch"
        scratch.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(scratch))
        assert told in fault_of(path)
        assert list(scratch.iterdir()) == []

    def test_a_zip_file_with_several_tables_is_told(self, tmp_path):
        path = tmp_path / "x.csv.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.csv", "email")
            archive.writestr("b.csv", "email")
        assert "holds 2 files ('a.csv', 'b.csv'); give a zip file with one table in it" in fault_of(
            path
        )

    def test_the_ending_of_the_file_in_a_zip_file_counts_too(self, tmp_path):
        path = tmp_path / "x.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.tsv", "id\temail\n1\tada@example.org\n2\t\n")
        assert rows_of(path) == (ROWS, ["id", "email"])

    def test_folders_in_a_zip_file_do_not_count(self, tmp_path):
        path = tmp_path / "x.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("inner/", "")
            archive.writestr("inner/contacts.csv", "id,email\n1,ada@example.org\n2,\n")
        assert rows_of(path) == (ROWS, ["id", "email"])

    @pytest.mark.parametrize(
        ("names", "told"), [(["a.png"], "holds 'a.png'"), ([], "holds no file")]
    )
    def test_a_zip_file_without_a_table_is_told(self, tmp_path, names, told):
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
            for name in names:
                archive.writestr(name, "x")
        assert f"x.zip: {told}; give a zip file with one table in it" in fault_of(
            tmp_path / "x.zip"
        )

    def test_a_workbook_is_not_packed_again(self, tmp_path):
        with (
            pytest.raises(InputError, match=r"a \.xlsx file is compressed already; leave out \.gz"),
            create_table(tmp_path / "x.xlsx.gz"),
        ):
            pass


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "folder"])
def test_a_sheet_of_a_file_that_is_not_a_workbook_is_an_error(tmp_path, name):
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
    else:
        path.write_text('{"email": "ada@firm.com"}\n')
    with pytest.raises(InputError, match="is not a workbook and has no sheet 'People'"):
        open_table(path, ReadOptions(sheet="People"))


def test_options_of_a_csv_are_remarked_on_for_another_file(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"email": "ada@firm.com"}\n')
    with open_table(path, ReadOptions(encoding="cp1252", delimiter=";")) as source:
        assert any("encoding and delimiter: only for CSV" in remark for remark in source.remarks)
    csv = tmp_path / "a.csv"
    csv.write_text("email\nada@firm.com\n")
    with open_table(csv, ReadOptions(encoding="utf-8")) as source:
        assert not any("only for CSV" in remark for remark in source.remarks)


@pytest.mark.parametrize(
    "row", ['{}   , Ada Lovelace  , "{{""old"": true}} ,', "{}; Ada, Countess", "{},Ada"]
)
def test_rows_with_more_cells_than_the_only_one_of_the_header_are_one_cell(tmp_path, row):
    content = "email    \n" + "".join(
        row.format(f"{name}@firm.example") + "\n" for name in ("ada", "bob", "cy")
    )
    with open_table(write(tmp_path, "x.csv", content)) as source:
        assert source.columns == ("email",)
        (piece,) = source.pieces(with_lines=True)
        assert choose_column({"email": piece["email"]}).name() == "email"
        with create_table(tmp_path / "out.csv", like=source.format) as writer:
            writer.write(piece)
        assert source.final_remarks() == []
    assert (tmp_path / "out.csv").read_text() == content
    assert mv.clean(piece.to_pandas(), "email")["email_clean"][0] == "ada@firm.example"


@pytest.mark.parametrize(
    ("line", "people"),
    [
        (
            '"Smith, Alice" <alice@firm.example>; "Jones, Bob" <bob@firm.example>; '
            "carol@firm.example",
            3,
        ),
        ("Alice Smith <alice@firm.example>, Bob Jones <bob@firm.example>", 2),
        ("alice@firm.example;bob@firm.example\r\n", 2),
        ("alice@firm.example, bob@firm.example, carol@firm.example", 3),
    ],
)
def test_a_pasted_to_field_gives_all_its_people(tmp_path, line, people):
    path = tmp_path / "to.txt"
    path.write_text(line, newline="")
    (table,) = open_table(path).read()
    assert (table.num_rows, table.num_columns) == (1, 1)
    assert len(mv.explode(table.to_pandas(), table.column_names[0])) == people
