"""Table files out: whole or not at all, readable by others, harmless in a spreadsheet."""

from __future__ import annotations

import csv
import datetime
import decimal
import json
import stat
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import python_calamine
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.errors import InputError
from mailverdict.files.readers import open_table
from mailverdict.files.table_file import FileFormat
from mailverdict.files.workbook import XLSX_ROWS
from mailverdict.files.writers import (
    CSV_ROWS,
    CsvTableWriter,
    FormulaColumns,
    create_table,
    neutralize,
    write_behind,
)
from tests.doubles.tables import each_row

MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
TABLE = pa.table(
    {
        "email": ["ada@example.org", None, 'say "hi"'],
        "n": [1, None, 3],
        "ok": [True, False, None],
        "when": [MOMENT, None, MOMENT],
        "verdict": pa.array(["valid", None, "risky"]).dictionary_encode(),
        "list": [["a"], None, []],
    }
)
# Text, and what it is where a spreadsheet might run it.
FORMULAS = [
    ("=1+1", "'=1+1"),
    ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
    ("+SUM(A1)", "'+SUM(A1)"),
    ("-2+3+cmd|x", "'-2+3+cmd|x"),
    ("@SUM(A1)", "'@SUM(A1)"),
    ("\t=1", "'\t=1"),
    ("\r=1", "'\r=1"),
    ("-", "'-"),
    ("-5", "-5"),
    ("+49 (0)30 / 12-34", "+49 (0)30 / 12-34"),
    ("-1,5", "-1,5"),
    ("-5.3e-05", "-5.3e-05"),
    ("-inf", "-inf"),
    ("-5 EUR", "'-5 EUR"),
    ("ada@example.org", "ada@example.org"),
    ("a=1", "a=1"),
    ("", ""),
]


def written(path, *pieces, **options):
    with create_table(path, **options) as table:
        for piece in pieces:
            table.write(piece)
    return path


@each_row(("text", "harmless"), FORMULAS)
def test_formulas_are_neutralised_and_numbers_left(text, harmless):
    assert neutralize(pa.array(["x", text, None, ""], pa.large_string()).slice(1)).to_pylist() == [
        harmless,
        None,
        "",
    ]


def test_cells_are_the_same_where_columns_repeat_few_values(tmp_path):
    rows = 3_000
    notes = ["", None, "a,b", 'say "hi"', "=1+1", "two\nlines"]
    columns = {
        "id": [f"x{n}" for n in range(rows)],
        "ok": [(True, False, None)[n % 3] for n in range(rows)],
        "none": pa.nulls(rows, pa.string()),
        "note": [notes[n % 5 - n % 2] for n in range(rows)],
        "verdict": pa.array(
            [("valid", None, "risky")[n % 3] for n in range(rows)]
        ).dictionary_encode(),
        # Few values in its first rows only.
        "late": [None if n < 2_000 else f"y{n}" for n in range(rows)],
        "empty": pa.nulls(rows, pa.bool_()),
    }
    with create_table(tmp_path / "x.csv", is_escaped=lambda name: name == "note") as writer:
        writer.write(pa.table(columns))
    texts = {None: "", True: "true", False: "false", "=1+1": "'=1+1"}
    expected = [[texts.get(v, v) for v in row.values()] for row in pa.table(columns).to_pylist()]
    with (tmp_path / "x.csv").open(newline="") as file:
        assert list(csv.reader(file))[1:] == expected


class TestCsv:
    def test_cells_as_people_read_them(self, tmp_path):
        assert written(tmp_path / "x.csv", TABLE).read_text() == (
            "email,n,ok,when,verdict,list\n"
            'ada@example.org,1,true,2026-01-02 03:04:05.000000Z,valid,"[""a""]"\n'
            ",,false,,,\n"
            '"say ""hi""",3,,2026-01-02 03:04:05.000000Z,risky,[]\n'
        )

    def test_pieces_have_one_header_and_no_rows_still_have_it(self, tmp_path):
        piece = pa.table({"a": ["1"], "b;": ["2"]})
        assert (
            written(tmp_path / "x.csv", piece, piece, like=FileFormat(delimiter=";")).read_text()
            == 'a;"b;"\n1;2\n1;2\n'
        )
        assert written(tmp_path / "x.tsv", piece.slice(0, 0)).read_text() == "a\tb;\n"

    def test_formulas_are_escaped_only_in_the_columns_that_are_named(self, tmp_path):
        texts = [text for text, _ in FORMULAS]
        path = written(
            tmp_path / "x.csv",
            pa.table({"=a": texts, "b": texts}),
            is_escaped=lambda name: name == "b",
        )
        with path.open(newline="") as file:
            header, *rows = csv.reader(file)
        assert header == ["=a", "b"]
        assert [tuple(row) for row in rows] == FORMULAS

    def test_messages_are_escaped_always_and_addresses_never(self):
        columns = (
            "email",
            "email_clean",
            "email_suggestion",
            "email_error_message",
            "email_reasons",
            "note",
        )
        for in_all, escaped in ((False, [0, 0, 0, 1, 1, 0]), (True, [0, 0, 0, 1, 1, 1])):
            is_escaped = FormulaColumns("email", None, in_all=in_all)
            assert [is_escaped(name) for name in columns] == [bool(each) for each in escaped]

    def test_a_missing_text_is_empty_whatever_bytes_it_has(self, tmp_path):
        texts = pa.array(["a,b", "c,d", ""])
        texts = pa.Array.from_buffers(pa.string(), 3, [pa.py_buffer(b"\x05"), *texts.buffers()[1:]])
        assert texts.to_pylist() == ["a,b", None, ""]
        assert written(
            tmp_path / "x.csv", pa.table({"a": texts, "b": ["1", "2", "3"]})
        ).read_text() == ('a,b\n"a,b",1\n,2\n,3\n')

    def test_a_byte_order_mark_where_the_input_had_one(self, tmp_path):
        path = written(
            tmp_path / "x.csv", pa.table({"a": ["ö"]}), like=FileFormat(head=b"\xef\xbb\xbf")
        )
        assert path.read_bytes() == b"\xef\xbb\xbfa\n\xc3\xb6\n"

    @given(
        st.lists(
            st.tuples(
                st.none()
                | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
                st.text(st.sampled_from(';",\r\n x'), max_size=4),
            ),
            min_size=1,
        ),
        st.sampled_from(",;\t|"),
    )
    def test_whatever_is_written_python_reads_back(self, tmp_path_factory, rows, delimiter):
        columns = [pa.array(values, pa.string()) for values in zip(*rows, strict=True)]
        path = tmp_path_factory.mktemp("csv") / "x.csv"
        with path.open("wb") as file:
            CsvTableWriter(file, delimiter).write(pa.table(columns, names=["a", "b"]))
        with path.open(newline="", encoding="utf-8") as file:
            read = list(csv.reader(file, delimiter=delimiter))
        assert read == [["a", "b"], *([a or "", b] for a, b in rows)]

    def test_more_rows_than_are_joined_at_once(self, tmp_path):
        numbers = [str(n) for n in range(CSV_ROWS * 2 + 3)]
        lines = written(tmp_path / "x.csv", pa.table({"n": numbers})).read_text().splitlines()
        assert lines == ["n", *numbers]

    def test_standard_output_gets_the_table_at_the_end(self, capfdbinary):
        with create_table("-") as table:
            table.write(TABLE.select(["email"]))
            assert capfdbinary.readouterr().out == b""
        assert capfdbinary.readouterr().out == b'email\nada@example.org\n\n"say ""hi"""\n'


class TestParquet:
    def test_types_are_kept_over_pieces(self, tmp_path):
        path = written(tmp_path / "x.parquet", TABLE.slice(0, 1), TABLE.slice(1))
        assert pa.parquet.read_table(path).cast(TABLE.schema).equals(TABLE)

    def test_no_rows_are_a_readable_file(self, tmp_path):
        assert (
            pd.read_parquet(written(tmp_path / "x.parquet", TABLE.slice(0, 0))).columns.tolist()
            == TABLE.column_names
        )


class TestWorkbook:
    def test_text_stays_text_and_types_are_kept(self, tmp_path):
        piece = TABLE.append_column("formula", pa.array(["=1+1", "https://x.org", "007"]))
        piece = piece.append_column("odd", pa.array([float("nan"), float("inf"), 0.5]))
        path = written(tmp_path / "x.xlsx", piece)
        header, *rows = (
            python_calamine.CalamineWorkbook.from_path(str(path)).get_sheet_by_index(0).to_python()
        )
        assert header == piece.column_names
        naive = MOMENT.replace(tzinfo=None)
        assert rows[0][:7] == ["ada@example.org", 1.0, True, naive, "valid", '["a"]', "=1+1"]
        assert rows[1][:7] == ["", "", False, "", "", "", "https://x.org"]
        assert rows[2][5:] == ["[]", "007", 0.5]

    def test_dates_before_those_of_workbooks_and_long_cells_are_text(self, tmp_path):
        early = datetime.datetime(1066, 10, 14, tzinfo=datetime.UTC)
        path = written(tmp_path / "x.xlsx", pa.table({"when": [early], "long": ["x" * 40_000]}))
        _, row = (
            python_calamine.CalamineWorkbook.from_path(str(path)).get_sheet_by_index(0).to_python()
        )
        assert row == ["1066-10-14 00:00:00+00:00", "x" * 32_767]

    def test_cells_that_a_workbook_cuts_are_counted(self, tmp_path):
        with create_table(tmp_path / "x.xlsx") as table:
            for texts in (["x" * 32_768, "y" * 32_767, None], ["z" * 40_000, "", "a"]):
                table.write(pa.table({"id": [1, 2, 3], "text": texts}))
        assert table.remarks == [
            "2 cells cut to 32,767 characters, the most that a workbook allows, in rows 2, 5"
        ]

    def test_more_columns_than_a_workbook_holds_are_refused_before_the_first_row(self, tmp_path):
        names = [f"c{n}" for n in range(16_385)]
        with (
            pytest.raises(InputError, match="more than 16,384 columns do not fit a workbook"),
            create_table(tmp_path / "x.xlsx", columns=names),
        ):
            raise AssertionError("not reached")

    def test_columns_that_json_cannot_have_are_refused_before_the_first_row(self, tmp_path):
        with (
            pytest.raises(
                InputError, match="2 columns are named 'a', which an object of JSON cannot have"
            ),
            create_table(tmp_path / "x.jsonl", columns=["a", "b", "a"]),
        ):
            raise AssertionError("not reached")

    def test_more_rows_than_a_workbook_holds_are_refused(self, tmp_path):
        piece = pa.table({"n": pa.nulls(XLSX_ROWS, pa.int8())})
        with pytest.raises(
            InputError, match="more than 1,048,575 rows do not fit a workbook; write CSV or Parquet"
        ):
            written(tmp_path / "x.xlsx", piece)
        assert list(tmp_path.iterdir()) == []


UTC_MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5, 600_000)  # noqa: DTZ001 - as Arrow has it
# A value of a type that a text file does not have, and its cell in CSV and XLSX, and in JSON lines;
# None: as in CSV.
TYPED = [
    ({"a": "ä", "b": [1.5, float("nan")]}, None,
     '{"a": "ä", "b": [1.5, null]}', {"a": "ä", "b": [1.5, None]}),
    ([], pa.list_(pa.int8()), "[]", []),
    ([{"at": UTC_MOMENT, "left": datetime.timedelta(hours=1)}], None,
     '[{"at": "2026-01-02T03:04:05.600000", "left": "P0DT1H0M0S"}]',
     [{"at": "2026-01-02T03:04:05.600000", "left": "P0DT1H0M0S"}]),
    ([("k", "v")], pa.map_(pa.string(), pa.string()), '[["k", "v"]]', [["k", "v"]]),
    (datetime.timedelta(days=1, seconds=5), pa.duration("s"), "P1DT0H0M5S", None),
    (1_500_000_001, pa.duration("ns"), "P0DT0H0M1.500000001S", None),
    ((1, 2, 3), pa.month_day_nano_interval(), "[1, 2, 3]", [1, 2, 3]),
    (UTC_MOMENT, pa.timestamp("ms", "Europe/Berlin"),
     "2026-01-02 04:04:05.600+01:00", "2026-01-02T04:04:05.600000+01:00"),
    (UTC_MOMENT, pa.timestamp("ms", "UTC"),
     "2026-01-02 03:04:05.600Z", "2026-01-02T03:04:05.600000+00:00"),
    (datetime.time(1, 2, 3), pa.time32("s"), "01:02:03", None),
    (decimal.Decimal("1.50"), pa.decimal128(10, 2), "1.50", None),
    ("Köln".encode(), pa.binary(), "Köln", None),
    (b"\xff\x00", pa.binary(), r"\xff00", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "kind", "cell", "member"), TYPED, ids=[str(each[2])[:30] for each in TYPED]
)
def test_values_that_a_text_file_does_not_have_are_json_and_iso_8601(
    tmp_path, value, kind, cell, member
):
    piece = pa.table({"email": ["a@x.org", "b@x.org"], "n": pa.array([value, None], kind)})
    rows = csv.reader(written(tmp_path / "x.csv", piece).read_text("utf-8").splitlines())
    assert [row[1] for row in rows] == ["n", cell, ""]
    lines = written(tmp_path / "x.jsonl", piece).read_text("utf-8").splitlines()
    assert [json.loads(line)["n"] for line in lines] == [cell if member is None else member, None]
    (read, empty) = cells_of_workbook(written(tmp_path / "x.xlsx", piece))
    assert str(read) in (cell, "2026-01-02 04:04:05.600000", "2026-01-02 03:04:05.600000", "1.5")
    assert empty == ""


def cells_of_workbook(path):
    return [
        row[1]
        for row in python_calamine.CalamineWorkbook.from_path(str(path))
        .get_sheet_by_index(0)
        .to_python()[1:]
    ]


@pytest.mark.parametrize(
    ("number", "cell"), [("12.50", 12.5), ("1234567890123456.78", "1234567890123456.78")]
)
def test_decimals_are_numbers_in_a_workbook_if_it_holds_them_exactly(tmp_path, number, cell):
    piece = pa.table(
        {"email": ["a@x.org"], "n": pa.array([decimal.Decimal(number)], pa.decimal128(18, 2))}
    )
    assert cells_of_workbook(written(tmp_path / "x.xlsx", piece)) == [cell]


def test_a_closed_standard_output_is_told_before_the_first_row(monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    with (
        pytest.raises(InputError, match="standard output is closed: give a file with --output"),
        create_table("-"),
    ):
        raise AssertionError("not reached")


ENDINGS = [
    ".csv",
    ".tsv",
    ".jsonl",
    ".parquet",
    ".feather",
    ".xlsx",
    ".csv.gz",
    ".jsonl.zst",
    ".tsv.zip",
]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_table_without_rows_can_be_read_back(tmp_path, ending):
    path = written(tmp_path / f"x{ending}", TABLE.slice(0, 0))
    with open_table(path) as found:
        found.check_column("email")
        assert [len(piece) for piece in found.pieces(["email"])] == [0]
        assert "email" in next(found.pieces()).column_names


class Broken:
    """A piece that cannot be written, of whatever kind the file is."""

    def __getattr__(self, name):
        raise InputError("not a table")

    def __len__(self):
        return 1


class TestAtomic:
    @pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.xlsx"])
    def test_nothing_appears_when_the_work_fails(self, tmp_path, name):
        before = written(tmp_path / name, TABLE).read_bytes()
        with pytest.raises(InputError, match="not a table"):
            written(tmp_path / name, TABLE, Broken())
        assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [(name, before)]

    def test_the_file_takes_its_name_at_the_end(self, tmp_path):
        path = tmp_path / "x.csv"
        with create_table(path) as table:
            table.write(TABLE)
            assert not path.exists()
        assert [each.name for each in tmp_path.iterdir()] == ["x.csv"]
        reference = tmp_path / "reference"
        reference.touch()
        assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(reference.stat().st_mode)

    def test_a_name_as_long_as_names_can_be(self, tmp_path):
        assert written(tmp_path / ("x" * 251 + ".csv"), TABLE).exists()

    @pytest.mark.parametrize(
        ("name", "told"),
        [
            ("x", "cannot tell what kind of table to write; known endings: .csv"),
            ("x.xlsm", "x.xlsm: .xlsm files are read and not written: name another file, as "),
            ("folder.csv", "folder.csv is a directory; name a file to write"),
            ("nowhere/x.csv", "nowhere/x.csv cannot be written: there is no directory "),
        ],
    )
    def test_a_target_that_cannot_be_is_told(self, tmp_path, name, told):
        (tmp_path / "folder.csv").mkdir()
        with pytest.raises(InputError, match=told), create_table(tmp_path / name):
            pass

    @pytest.mark.skipif(
        not Path("/proc").is_dir(), reason="nothing here that not even root may write to"
    )
    def test_a_folder_that_may_not_be_written_is_told(self, tmp_path):
        with (
            pytest.raises(InputError, match=r"/proc/x\.csv cannot be written: "),
            create_table("/proc/x.csv"),
        ):
            pass


def test_odd_columns_are_written_and_long_identifiers_stay_themselves(tmp_path):
    from mailverdict.files.readers import open_table

    table = pa.table(
        {
            "email": ["a@b.example"],
            "id": pa.array([1234567890123456789]),
            "huge": pa.array([2**64 - 1], pa.uint64()),
            "raw": pa.array([b"\xff\xfe"], pa.binary(2)),
            "coded": pa.array([b"\xff"]).dictionary_encode(),
            "big": pa.array([1e20]),
        }
    )
    for name in ("out.csv", "out.xlsx"):
        with create_table(tmp_path / name) as writer:
            writer.write(table)
        with open_table(tmp_path / name) as source:
            back = pa.concat_tables(source.pieces()).to_pylist()[0]
        assert (str(back["id"]), str(back["huge"])) == (
            "1234567890123456789",
            "18446744073709551615",
        )
        assert float(back["big"]) == 1e20


def test_pieces_are_written_in_their_order_while_others_are_made():
    written = []
    with write_behind(written.append) as write:
        for number in range(5):
            write(pa.table({"n": [number]}))
    assert [piece["n"][0].as_py() for piece in written] == [0, 1, 2, 3, 4]


@each_row("pieces", [2, 3])
def test_an_error_of_the_disk_leaves_the_older_file(tmp_path, pieces):
    """It is raised by the next piece, or at the end."""
    path = tmp_path / "out.csv"
    path.write_text("older\n")
    calls = []

    def fail_at_second(piece):
        calls.append(piece)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")

    def write_pieces():
        with create_table(path), write_behind(fail_at_second) as write:
            for _ in range(pieces):
                write(TABLE)

    with pytest.raises(OSError, match="No space left"):
        write_pieces()
    assert len(calls) == 2
    assert path.read_text() == "older\n"
    assert list(tmp_path.iterdir()) == [path]
