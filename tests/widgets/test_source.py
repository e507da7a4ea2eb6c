"""Tables that come in: frames, uploads and paths, good and bad."""

import datetime
import io

import pandas as pd
import pyarrow as pa
import pytest
import xlsxwriter

from mailverdict.errors import InputError, SettingsError
from mailverdict.widgets.source import LONGEST_LABEL, read_frame, read_path, read_upload

CSV = b"name;E-Mail\nAda;ada@example.org\nBob;\n"


def upload(name: str, content: bytes) -> dict[str, object]:
    """As the upload button hands it over."""
    moment = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    return {"name": name, "type": "", "size": len(content), "last_modified": moment, "content": memoryview(content)}


def workbook(rows: list[list[object]]) -> bytes:
    out = io.BytesIO()
    with xlsxwriter.Workbook(out, {"in_memory": True}) as book:
        sheet = book.add_worksheet()
        for at, cells in enumerate(rows):
            sheet.write_row(at, 0, cells)
    return out.getvalue()


def test_an_upload_is_read_by_what_its_name_ends_with():
    source = read_upload(upload("contacts.CSV", CSV))
    assert source.name == "contacts.CSV"
    assert source.frame["E-Mail"].tolist() == ["ada@example.org", ""]
    assert source.guess() == 1
    assert source.stem() == "contacts"


def test_a_workbook_keeps_whole_numbers_with_gaps_whole():
    source = read_upload(
        upload("a.xlsx", workbook([["id", "mail"], [7, "ada@example.org"], [None, "bob@example.org"]]))
    )
    assert source.frame["id"].tolist() == [7, pd.NA]
    assert str(source.frame["id"].dtype) == "Int64"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("picture.png", b"\x89PNG\r\n", "cannot tell what kind of table"),
        ("no ending", CSV, "cannot tell what kind of table"),
        ("picture.csv", b"\x89PNG\r\n\x1a\n\x00\x00", "picture.csv is not a text table but a picture"),
        ("program.csv", b"MZ\x00\x01", "contains NUL"),
        ("empty.csv", b"", "empty.csv is empty"),
        ("blank.csv", b"\n\n", "no header line"),
        ("header.csv", b"name,mail\n", "header line but no rows"),
        ("not.xlsx", b"PK\x03\x04 but no workbook", "cannot be read as XLSX"),
        ("not.parquet", b"PAR1", "not.parquet"),
    ],
)
def test_a_non_table_is_reported_by_its_own_name(name, content, message):
    with pytest.raises(InputError, match=message) as caught:
        read_upload(upload(name, content))
    assert "mailverdict-" not in str(caught.value), "the temporary copy is nobody's business"


def test_an_encoding_can_be_given():
    content = "mail;wer\na@b.example;Jürgen\n".encode("cp1252")
    assert read_upload(upload("old.csv", content), "cp1252").frame["wer"].tolist() == ["Jürgen"]


@pytest.mark.parametrize("name", ["../../etc/a.csv", "C:\\temp\\a.csv", "/a.csv"])
def test_a_name_from_a_browser_names_no_place(name):
    source = read_upload(upload(name, CSV))
    assert source.name == "a.csv"
    assert source.stem() == "a"


@pytest.mark.parametrize(
    "name", ["<img src=x onerror=alert(1)>.csv", "a\r\nb\x00.csv", "\u202ecsv.exe.csv", "x" * 500 + ".csv"]
)
def test_an_odd_name_is_one_bounded_printable_line(name):
    try:
        source = read_upload(upload(name, CSV))
    except InputError as exc:
        shown = str(exc).partition(": cannot tell")[0]
        assert len(shown) <= LONGEST_LABEL
        return
    assert source.name.isprintable()
    assert len(source.name) <= LONGEST_LABEL
    assert not set(source.stem()) & set("<>/\\:\"'|?*\r\n\0")


def test_a_path_is_read(tmp_path):
    file = tmp_path / "contacts.csv"
    file.write_bytes(CSV)
    assert read_path(file).frame.shape == (2, 2)


@pytest.mark.parametrize("path", ["nowhere.csv", ".", "~no-such-user/a.csv", "a\0b.csv", "x" * 5000 + ".csv"])
def test_a_path_that_does_not_exist_is_reported(path):
    with pytest.raises(InputError):
        read_path(path)


def test_columns_are_distinguished_and_bounded():
    frame = pd.DataFrame([[1, 2, 3, 4, 5]], columns=["mail", "mail", "", ("a", "b"), "y" * 300])
    labels = read_frame(frame).labels
    assert labels[:4] == ["mail", "mail (2)", "(no name)", "a / b"]
    assert len(labels[4]) == LONGEST_LABEL


def test_one_of_300_columns_is_found():
    frame = pd.DataFrame({f"c{n}": [n, n] for n in range(300)})
    frame["c217"] = ["ada@example.org", "bob@example.org"]
    assert read_frame(frame).guess() == 217


def test_no_column_is_guessed_where_none_looks_like_it():
    assert read_frame(pd.DataFrame({"a": [1], "b": ["x"]})).guess() is None


def test_a_column_that_was_written_by_us_is_not_guessed():
    frame = pd.DataFrame({"email_clean": ["a@x.org", "b@x.org"], "email": ["Ada <a@x.org>", "b at x.org"]})
    assert read_frame(frame).guess() == 1


def test_examples_are_the_first_texts():
    assert read_frame(pd.Series([None, 1.5, "a@b.example", "", "c", "d", "e"])).examples(0) == ["a@b.example", "c", "d"]


@pytest.mark.parametrize("data", [pa.table({"mail": ["a@b.example"]}), pd.Series(["a@b.example"], name="mail")])
def test_other_kinds_of_data_become_frames(data):
    assert list(read_frame(data).frame.columns) == ["mail"]


@pytest.mark.parametrize("data", [3, ["a@b.example"], {"mail": ["x"]}])
def test_non_frames_are_refused(data):
    with pytest.raises(SettingsError, match="give a DataFrame, a Series, or the path"):
        read_frame(data)
