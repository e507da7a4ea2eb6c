"""Files to take home: nothing is lost, nothing runs, nothing is overwritten."""

import base64
import datetime
import io

import pandas as pd
import pytest
from python_calamine import CalamineWorkbook

from mailverdict.errors import InputError
from mailverdict.widgets.listing import MIME, save_table


def content_of(url: str, kind: str) -> bytes:
    head, _, body = url.partition(";base64,")
    assert head == f"data:{MIME[kind]}"
    return base64.b64decode(body)


def as_csv(frame: pd.DataFrame, tmp_path) -> pd.DataFrame:
    saved = save_table(frame, "x", "csv", tmp_path)
    return pd.read_csv(io.BytesIO(content_of(saved.url, "csv")), dtype=str, keep_default_na=False)


def test_a_small_file_comes_as_its_content(tmp_path):
    frame = pd.DataFrame({"id": pd.array([1, None], "Int64"), "mail": ["ada@example.org", 'ü,"x"\n']})
    saved = save_table(frame, "list", "csv", tmp_path)
    assert (saved.name, saved.rows, saved.path) == ("list.csv", 2, None)
    assert content_of(saved.url, "csv").decode() == 'id,mail\n1,ada@example.org\n,"ü,""x""\n"\n'
    assert list(tmp_path.iterdir()) == []


def test_a_workbook_holds_the_same(tmp_path):
    frame = pd.DataFrame({"n": [1.5], "ok": [True], "mail": ["=1+1"]})
    saved = save_table(frame, "list", "xlsx", tmp_path)
    book = CalamineWorkbook.from_filelike(io.BytesIO(content_of(saved.url, "xlsx")))
    assert book.get_sheet_by_index(0).to_python() == [["n", "ok", "mail"], [1.5, True, "=1+1"]]


@pytest.mark.parametrize("cell", ["=HYPERLINK(1)", "+cmd|' /C calc'!A0", "-2+3+cmd", "@SUM(A1)", "\tx", "\rx"])
def test_a_message_that_a_spreadsheet_would_run_is_neutralised_and_the_caller_s_cell_is_not(tmp_path, cell):
    frame = pd.DataFrame({"mail": [cell], "mail_error_message": [cell], "mail_suggestion": [cell]})
    frame.attrs["mailverdict"] = {"mail": {"columns": ["mail_error_message", "mail_suggestion"]}}
    assert as_csv(frame, tmp_path).iloc[0].tolist() == [cell, f"'{cell}", cell]


@pytest.mark.parametrize("cell", ["-5", "+49 30 1234", "ada@example.org"])
def test_what_calls_nothing_stays(tmp_path, cell):
    assert as_csv(pd.DataFrame({"mail": [cell]}), tmp_path).iloc[0, 0] == cell


def test_a_large_file_is_put_beside_the_notebook_and_overwrites_nothing(tmp_path):
    frame = pd.DataFrame({"mail": ["ada@example.org"] * 100})
    (tmp_path / "list.csv").write_text("mine")
    saved = [save_table(frame, "list", "csv", tmp_path, largest_link=100) for _ in range(2)]
    assert [each.path for each in saved] == [tmp_path / "list-2.csv", tmp_path / "list-3.csv"]
    assert all(each.url == "" for each in saved)
    assert (tmp_path / "list.csv").read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["list-2.csv", "list-3.csv", "list.csv"]
    assert len(pd.read_csv(saved[0].path)) == 100


def test_a_folder_that_cannot_be_written_is_reported(tmp_path):
    frame = pd.DataFrame({"mail": ["ada@example.org"] * 100})
    with pytest.raises(InputError, match="cannot be written"):
        save_table(frame, "list", "csv", tmp_path / "nowhere", largest_link=100)


ODD = {
    "mixed": [1, "a", None],
    "lists": [["a"], None, ["b", "c"]],
    "half": pd.Series(["\ud800", "b", None], dtype=object),
    "complex": [1 + 2j, 3j, 0j],
    "period": pd.period_range("2026-01", periods=3, freq="M"),
    "delta": pd.to_timedelta([1, 2, None], unit="s"),
    "moment": pd.to_datetime(["2026-01-02", None, "2026-01-03"], utc=True),
    "day": [datetime.date(2026, 1, 2), None, datetime.date(1800, 1, 1)],
    "numbers": pd.Categorical([3, 1, 3]),
    "words": pd.Categorical(["x", None, "y"]),
    "bytes": [b"\xff", None, b"x"],
    "nothing": [None, None, None],
    "decimals": pd.array(["1.10", None, "2"], dtype="string"),
}


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
@pytest.mark.parametrize("name", ODD)
def test_columns_of_any_dtype_can_be_written(tmp_path, name, kind):
    frame = pd.DataFrame({name: ODD[name]})
    saved = save_table(frame, "odd", kind, tmp_path)
    assert saved.rows == 3
    assert len(content_of(saved.url, kind)) == saved.size


def test_names_may_occur_twice_and_be_no_text(tmp_path):
    frame = pd.DataFrame([["a", "b", "c"]], columns=["x", "x", ("u", 1)])
    saved = save_table(frame, "x", "csv", tmp_path)
    assert content_of(saved.url, "csv").decode().splitlines()[0] == "x,x,u_1"
