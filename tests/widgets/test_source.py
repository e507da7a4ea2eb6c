"""Tables that come in: frames, uploads and paths, good and bad."""

import io
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xlsxwriter

from mailverdict.errors import InputError, SettingsError
from mailverdict.files.readers import ReadOptions
from mailverdict.widgets.source import LONGEST_LABEL, read_file, read_frame, read_pasted

CSV = b"name;E-Mail\nAda;ada@example.org\nBob;\n"


def workbook(rows: list[list[object]]) -> bytes:
    out = io.BytesIO()
    with xlsxwriter.Workbook(out, {"in_memory": True}) as book:
        sheet = book.add_worksheet()
        for at, cells in enumerate(rows):
            sheet.write_row(at, 0, cells)
    return out.getvalue()


def read_bytes(folder, name: str, content: bytes, encoding: str | None = None):
    """Read an upload, which lies in a file of another name with the same suffixes."""
    copy = folder / ("upload" + "".join(Path(name.replace("/", "_")).suffixes[-2:])[:20])
    copy.write_bytes(content)
    return read_file(copy, name, ReadOptions(encoding))


def test_an_upload_is_read_by_what_its_name_ends_with(tmp_path):
    source = read_bytes(tmp_path, "contacts.CSV", CSV)
    assert source.name == "contacts.CSV"
    assert source.frame["E-Mail"].tolist() == ["ada@example.org", ""]
    assert source.choice.name() == "E-Mail"
    assert source.stem() == "contacts"
    assert source.is_text


def test_a_workbook_keeps_whole_numbers_with_gaps_whole(tmp_path):
    rows = [["id", "mail"], [7, "ada@example.org"], [None, "bob@example.org"]]
    source = read_bytes(tmp_path, "a.xlsx", workbook(rows))
    assert source.frame["id"].tolist() == [7, pd.NA]
    assert str(source.frame["id"].dtype) == "Int64"
    assert not source.is_text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("picture.png", b"\x89PNG\r\n", "cannot tell what kind of table"),
        ("no ending", CSV, "cannot tell what kind of table"),
        (
            "picture.csv",
            b"\x89PNG\r\n\x1a\n\x00\x00",
            "picture.csv is not a text table but a picture",
        ),
        ("program.csv", b"MZ\x00\x01", "contains NUL"),
        ("empty.csv", b"", "empty.csv is empty"),
        ("blank.csv", b"\n\n", "no header line"),
        ("header.csv", b"name,mail\n", "header line but no rows"),
        ("not.xlsx", b"PK\x03\x04 but no workbook", "cannot be read as a workbook"),
        ("not.parquet", b"PAR1", "not.parquet"),
    ],
)
def test_a_non_table_is_reported_by_its_own_name(name, content, message, tmp_path):
    with pytest.raises(InputError, match=message) as caught:
        read_bytes(tmp_path, name, content)
    assert str(tmp_path) not in str(caught.value), "where the copy is means nothing to the user"


def test_an_encoding_can_be_given(tmp_path):
    content = "mail;wer\na@b.example;Jürgen\n".encode("cp1252")
    assert read_bytes(tmp_path, "old.csv", content, "cp1252").frame["wer"].tolist() == ["Jürgen"]


def test_remarks_say_what_was_found_and_nothing_of_the_command_line(tmp_path):
    source = read_bytes(
        tmp_path, "old.csv", "Jürgen;a@b.example\nZoë;b@b.example\n".encode("cp1252")
    )
    assert any(each.startswith("encoding: ") for each in source.remarks)
    assert any(
        each.startswith("no header line: the columns are column_1 to column_2")
        for each in source.remarks
    )
    assert not any("--" in each for each in source.remarks)
    assert not source.has_header


@pytest.mark.parametrize("name", ["../../etc/a.csv", "C:\\temp\\a.csv", "/a.csv"])
def test_a_name_from_a_browser_names_no_place(name, tmp_path):
    source = read_bytes(tmp_path, name, CSV)
    assert source.name == "a.csv"
    assert source.stem() == "a"


@pytest.mark.parametrize(
    "name",
    ["<img src=x onerror=alert(1)>.csv", "a\r\nb\x00.csv", "\u202ecsv.exe.csv", "x" * 500 + ".csv"],
)
def test_an_odd_name_is_one_bounded_printable_line(name, tmp_path):
    copy = tmp_path / "upload.csv"
    copy.write_bytes(CSV)
    source = read_file(copy, name)
    assert source.name.isprintable()
    assert len(source.name) <= LONGEST_LABEL
    assert not set(source.stem()) & set("<>/\\:\"'|?*\r\n\0")


def test_a_path_is_read(tmp_path):
    file = tmp_path / "contacts.csv"
    file.write_bytes(CSV)
    assert read_file(file).frame.shape == (2, 2)


@pytest.mark.parametrize(
    "path", ["nowhere.csv", "~no-such-user/a.csv", "a\0b.csv", "x" * 5000 + ".csv"]
)
def test_a_path_that_does_not_exist_is_reported(path):
    with pytest.raises(InputError):
        read_file(path)


def test_columns_are_distinguished_and_bounded():
    frame = pd.DataFrame([[1, 2, 3, 4, 5]], columns=["mail", "mail", "", ("a", "b"), "y" * 300])
    labels = read_frame(frame).labels
    assert labels[:4] == ["mail", "mail (2)", "(no name)", "a / b"]
    assert len(labels[4]) == LONGEST_LABEL


@pytest.mark.slow
def test_one_of_300_columns_is_found():
    frame = pd.DataFrame({f"c{n}": [n, n] for n in range(300)})
    frame["c217"] = ["ada@example.org", "bob@example.org"]
    assert read_frame(frame).choice.name() == "c217"


def test_no_column_is_guessed_where_none_looks_like_it():
    choice = read_frame(pd.DataFrame({"a": [1], "b": ["x"]})).choice
    assert (choice.chosen, choice.describe()) == (None, "")


def test_a_column_that_was_written_by_us_is_not_guessed():
    frame = pd.DataFrame(
        {"email_clean": ["a@x.org", "b@x.org"], "email": ["Ada <a@x.org>", "b at x.org"]}
    )
    assert read_frame(frame).choice.name() == "email"


@pytest.mark.parametrize(
    "data",
    [
        pa.table({"mail": ["a@b.example"]}),
        pa.table({"mail": ["a@b.example"]}).to_reader(),
        pl.DataFrame({"mail": ["a@b.example"]}),
        pl.Series("mail", ["a@b.example"]),
        pd.Series(["a@b.example"], name="mail"),
    ],
)
def test_other_kinds_of_data_become_frames(data):
    assert list(read_frame(data).frame.columns) == ["mail"]


@pytest.mark.parametrize("data", [3, ["a@b.example"], {"mail": ["x"]}])
def test_non_frames_are_refused(data):
    with pytest.raises(SettingsError, match="give a DataFrame, a Series, or the path"):
        read_frame(data)


def test_a_paste_beyond_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr("mailverdict.widgets.source.LONGEST_PASTE", 10)
    with pytest.raises(InputError, match="save them as a file"):
        read_pasted("ada@example.org")


def test_a_paste_with_lone_surrogates_is_read():
    assert read_pasted("a\ud800@b.example\nb@b.example").frame["email"].tolist()[1] == "b@b.example"
