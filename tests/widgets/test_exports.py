"""Files to take home: nothing is lost, nothing runs, the send list holds repaired addresses."""

from __future__ import annotations

import datetime
import html
import re
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from python_calamine import CalamineWorkbook

import mailverdict as mv
from mailverdict.errors import InputError
from mailverdict.files.readers import open_table
from mailverdict.widgets.exports import (
    rows_to_save,
    save_report,
    save_table,
    to_send_list,
    types_of_objects,
)
from mailverdict.widgets.state import AuditState
from tests.doubles.answering_backend import AnsweringBackend, unknown
from tests.widgets.conftest import finished, message, ready, result_of, shown

MAILS = ["Ada <ada@example.org>", "bob@example.org", "nobody", None, "cy@gmial.com"]


def download(audit: AuditState, which: str, kind: str = "csv") -> pd.DataFrame:
    """The file that the browser would get."""
    files: list[Path] = []
    audit.on_file = lambda name, path, by: files.append(path)
    audit.download(which, kind)
    audit.work.wait(30)
    assert message(audit, "decide") == ""
    (file,) = files
    readers = {"csv": pd.read_csv, "parquet": pd.read_parquet}
    if kind in readers:
        return readers[kind](file)
    return pd.read_excel(file, engine="calamine")


@pytest.mark.slow
def test_the_report_has_the_name_of_the_list_and_the_figures_of_the_page(tmp_path):
    file = tmp_path / "spring.csv"
    mails = [
        "a@example.org",
        "A@example.org",
        "b@mailinator.com",
        "c@example.org",
        "d@gmial.com",
        "e@example.org",
    ]
    pd.DataFrame({"mail": [*mails, "a@example.org"]}).to_csv(file, index=False)
    audit = ready(file, validation_type="regex")
    audit.suppress_pasted("e@example.org")
    audit.work.wait(30)
    audit.set_repair("merge", is_on=True)
    finished(audit)
    assert audit.result.listing.count("reason") == {
        "duplicate": 2,
        "suppressed": 1,
        "disposable": 1,
        "typo": 1,
    }
    files: list[Path] = []
    audit.on_file = lambda name, path, by: files.append(path)
    audit.download("report", "html")
    audit.download("report", "xlsx")
    audit.work.wait(30)
    page = next(each for each in files if each.suffix == ".html").read_text()
    sent = audit.result.listing.counts.actions["send"]
    assert sent == 2
    assert "E-mail audit of spring.csv" in page
    assert "2 people in 2 of 7 rows, by the policy" in page
    for reason in (
        "Duplicate of another row",
        "On your suppression list, or says no",
        "Disposable address",
        "Likely typo",
    ):
        assert reason in page
    book = CalamineWorkbook.from_path(next(each for each in files if each.suffix == ".xlsx"))
    assert len(book.get_sheet_by_name("Send list").to_python()) == 1 + sent
    buttons = [(each["label"], each["means"]) for each in shown(audit, "decide")["actions"]]
    names = ["Summary", *(label for label, _ in buttons), "Everything"]
    assert book.sheet_names == names, "an action has one name on page and report"
    assert all(label in page and means in page for label, means in buttons)


@pytest.mark.parametrize("depth", ["regex", "mx"])
def test_page_and_report_have_the_same_figures(depth):
    """With what makes counts differ: malformed and empty cells, duplicates, suppressed rows."""
    mails = [
        "a@example.org",
        "A@Example.org",
        "a@example.org",
        "b@example.org",
        "<c@example.org>",
        "nobody",
        None,
        "f@x",
    ]
    audit = ready(
        pd.DataFrame({"mail": mails}), AnsweringBackend(), validation_type=depth, journal=None
    )
    audit.suppress_pasted("b@example.org")
    audit.set_repair("merge", is_on=True)
    audit.work.wait(30)
    figures = {
        each["what"]: f"{each['number']} {each['unit']}"
        for each in shown(audit, "check")["plan"]["figures"]
    }
    finished(audit)
    files: list[Path] = []
    audit.on_file = lambda name, path, by: files.append(path)
    audit.download("report", "html")
    audit.work.wait(30)
    page = re.sub("<[^>]+>", " ", files[0].read_text())
    decide = shown(audit, "decide")
    assert (figures["in the list"], figures["without repetitions"]) == ("8 rows", "4 addresses")
    entries = shown(audit, "check")["progress"]["entries"]
    assert entries == (
        "" if depth == "regex" else "2 addresses, and 2 entries that are not addresses"
    )
    assert "8 rows · 4 distinct addresses" in page
    (share,) = re.findall(r"in .* \((.*)\)", decide["headline_rows"])
    assert f"{share} can be mailed" in page
    assert f"{decide['headline']} people in {decide['headline']} of 8 rows, by the policy" in page
    assert "1 cell is empty." in page
    assert re.search(rf"Send list .*?{decide['headline']}\s+{share}", page), (
        "the same figure in the table below"
    )


@pytest.fixture
def audit() -> AuditState:
    frame = pd.DataFrame({"id": range(5), "mail": MAILS, "note": ["=1+1", "b", "c", "d", "e"]})
    return finished(ready(frame, validation_type="regex"))


@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet"])
def test_one_click_gives_the_rows_of_an_action(audit, kind):
    sent = download(audit, "send", kind)
    assert sent["id"].tolist() == [0, 1]
    assert sent["mail"].tolist() == ["ada@example.org", "bob@example.org"], (
        "repaired, to be mailed as it is"
    )
    assert sent["mail_as_written"].tolist()[0] == "Ada <ada@example.org>"
    assert sent["note"].tolist() == ["=1+1", "b"]
    assert download(audit, "review", kind)["mail"].tolist() == ["cy@gmial.com"]
    assert download(audit, "drop", kind)["id"].tolist() == [2]


@pytest.mark.slow
def test_a_send_list_has_few_columns_besides_those_of_the_user():
    mails = ["Ada <ada@example.org>", "bob@example.org", "BOB@example.org", "cy@gmial.com"]
    frame = pd.DataFrame({"mail": mails, "mail_copies": "my own", "name": list("abcd")})
    audit = ready(frame, validation_type="regex")
    audit.set_repair("merge", is_on=True)
    audit.suppress_pasted("zoe@example.org")
    audit.work.wait(30)
    finished(audit)
    own, few = (
        ["mail", "mail_copies_2", "name"],
        ["mail_verdict", "mail_action_why", "mail_as_written"],
    )
    sent = download(audit, "send")
    assert sent.columns.tolist() == [*own, *few]
    assert sent["mail"].tolist() == ["ada@example.org", "bob@example.org"]
    assert {"mail_copies", "mail_clean", "mail_role", "mail_suppressed"} < set(
        download(audit, "everything").columns
    )
    audit.set_policy("lenient")
    assert download(audit, "send").columns.tolist() == [
        *own,
        "mail_verdict",
        "mail_suggestion",
        *few[1:],
    ]


def test_the_files_of_all_actions_hold_each_row_once(audit):
    parts = [
        download(audit, action)["id"].tolist()
        for action in ("send", "review", "retry", "drop", "unchecked")
    ]
    assert sorted(row for part in parts for row in part) == [0, 1, 2, 3, 4]


def test_everything_keeps_what_was_written(audit):
    whole = download(audit, "everything")
    assert whole["mail"].tolist()[:3] == MAILS[:3]
    assert whole["mail_clean"].tolist()[:2] == ["ada@example.org", "bob@example.org"]
    assert "mail_mx_records" not in whole.columns, (
        "the file is for people; the frame has everything"
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet"])
def test_a_report_on_the_file_of_everything_knows_the_check_and_the_day(kind, tmp_path):
    backend = AnsweringBackend()  # answers as of 2 January 2026
    frame = pd.DataFrame({"mail": ["ada@example.org", "bob@example.org", None]})
    audit = finished(ready(frame, backend=backend, validation_type="mx", journal=tmp_path / "j.db"))
    files: list[Path] = []
    audit.on_file = lambda name, path, by: files.append(path)
    audit.download("everything", kind)
    audit.work.wait(30)
    with open_table(files[0]) as table:
        (piece,) = table.pieces()
    page = mv.report(piece, "mail").to_html()
    assert "check: Domain can receive mail · " in page
    assert ">checked 2026-01-02<" in page
    assert "not recorded" not in page
    page = mv.report(result_of(audit), "mail", earlier=files[0]).to_html()
    assert "Since the earlier audit (2026-01-02)" in page
    sent = download(audit, "send", kind)
    assert not {"mail_validation_type", "mail_checked_at"} & set(sent.columns), (
        "a send list is for a mailing"
    )


@pytest.mark.slow
def test_the_report_of_a_file_has_the_command_that_asks_again(tmp_path):
    backend = AnsweringBackend({"ada": unknown("timeout")})
    pd.DataFrame({"mail": ["ada@example.org", "bob@example.org"]}).to_csv(
        tmp_path / "my list.csv", index=False
    )
    audit = finished(
        ready(tmp_path / "my list.csv", backend, validation_type="smtp", journal=tmp_path / "j.db")
    )
    files: list[Path] = []
    audit.on_file = lambda name, path, by: files.append(path)
    audit.download("report", "html")
    audit.work.wait(30)
    audit.load(pd.DataFrame({"mail": ["ada@example.org"]}))
    audit.work.wait(30)
    finished(audit)
    audit.download("report", "html")
    audit.work.wait(30)
    commands = [
        re.findall(r'<code class="mv-command">(.*?)</code>', html.unescape(f.read_text()))
        for f in files
    ]
    assert commands == [
        [
            "mailverdict verify 'my list.csv' --column mail --type smtp --output 'my list-verified.csv' --refresh unknown"
        ],
        ["mailverdict.verify(df, 'mail', validation_type='smtp', refresh={'unknown'})"],
    ]


@pytest.mark.slow
def test_columns_of_an_earlier_check_are_in_no_file_of_the_new_one(tmp_path):
    old = mv.verify(
        pd.DataFrame({"mail": ["ada@example.org"]}), "mail", validation_type="regex", columns="all"
    )
    audit = finished(ready(old, validation_type="mx", backend=AnsweringBackend(), column="mail"))
    whole = download(audit, "everything")
    assert whole["mail_validation_type"].tolist() == ["mx"]
    assert "mail_source" not in whole.columns
    assert "mail_validation_type" not in download(audit, "send").columns


def test_what_is_shown_can_be_downloaded_in_its_order(audit):
    audit.result.set_facet("verdict", "valid")
    audit.result.sort("column 0")
    audit.result.sort("column 0")
    assert download(audit, "shown")["id"].tolist() == [4, 1, 0]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "begin"), [("html", b"<!DOCTYPE html>"), ("xlsx", b"PK")])
def test_a_report_can_be_downloaded(audit, kind, begin):
    files: list[Path] = []
    audit.on_file = lambda name, path, by: files.append(path)
    audit.download("report", kind)
    audit.work.wait(60)
    assert files[0].name == f"emails-report.{kind}"
    assert files[0].read_bytes().startswith(begin)


def test_a_file_that_cannot_be_written_is_reported(audit, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    audit.folder = blocked
    audit.download("send", "csv")
    audit.work.wait(30)
    assert "NotADirectoryError" in message(audit, "decide")


def test_a_column_named_like_the_one_for_what_was_written_stays():
    out = pd.DataFrame(
        {"mail": ["<a@b.org>"], "mail_as_written": ["mine"], "mail_clean": ["a@b.org"]}
    )
    sent = to_send_list(out, "mail", is_repaired=True, is_suggested=False)
    assert sent["mail_as_written"].tolist() == ["mine"]
    assert sent["mail_as_written_2"].tolist() == ["<a@b.org>"]
    assert out["mail"].tolist() == ["<a@b.org>"]


def as_csv(frame: pd.DataFrame, folder: Path) -> pd.DataFrame:
    save_table([frame], folder / "x.csv")
    return pd.read_csv(folder / "x.csv", dtype=str, keep_default_na=False)


def test_cells_are_written_as_they_are(tmp_path):
    frame = pd.DataFrame(
        {"id": pd.array([1, None], "Int64"), "mail": ["ada@example.org", 'ü,"x"\n']}
    )
    save_table([frame], tmp_path / "list.csv")
    assert (tmp_path / "list.csv").read_text() == 'id,mail\n1,ada@example.org\n,"ü,""x""\n"\n'


def test_a_workbook_holds_the_same(tmp_path):
    save_table([pd.DataFrame({"n": [1.5], "ok": [True], "mail": ["=1+1"]})], tmp_path / "list.xlsx")
    book = CalamineWorkbook.from_path(str(tmp_path / "list.xlsx"))
    assert book.get_sheet_by_index(0).to_python() == [["n", "ok", "mail"], [1.5, True, "=1+1"]]


@pytest.mark.parametrize(
    "cell", ["=HYPERLINK(1)", "+cmd|' /C calc'!A0", "-2+3+cmd", "@SUM(A1)", "\tx", "\rx"]
)
def test_a_message_that_a_spreadsheet_would_run_is_neutralised_and_the_caller_s_cell_is_not(
    tmp_path, cell
):
    frame = pd.DataFrame({"mail": [cell], "mail_error_message": [cell], "mail_suggestion": [cell]})
    frame.attrs["mailverdict"] = {"mail": {"columns": ["mail_error_message", "mail_suggestion"]}}
    assert as_csv(frame, tmp_path).iloc[0].tolist() == [cell, f"'{cell}", cell]


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        save_table([pd.DataFrame({"mail": ["ada@example.org"]})], tmp_path / "nowhere" / "x.csv")


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


@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet"])
@pytest.mark.parametrize("name", ODD)
def test_columns_of_any_dtype_can_be_written(tmp_path, name, kind):
    save_table([pd.DataFrame({name: ODD[name], "mail": ["x"] * 3})], tmp_path / f"odd.{kind}")
    readers = {
        "csv": pd.read_csv,
        "parquet": pd.read_parquet,
        "xlsx": partial(pd.read_excel, engine="calamine"),
    }
    assert len(readers[kind](tmp_path / f"odd.{kind}")) == 3


def test_names_may_occur_twice_and_be_no_text(tmp_path):
    save_table([pd.DataFrame([["a", "b", "c"]], columns=["x", "x", ("u", 1)])], tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text().splitlines()[0] == "x,x,u_1"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_written_in_pieces_have_one_type(kind, tmp_path):
    """The first piece alone would have whole numbers, and no address that differs from what was written."""
    frame = pd.DataFrame(
        {
            "mail": ["a@b.org", "c@b.org", "D <d@b.org>"],
            "n": [1, 2, "three"],
            "m": [True, None, False],
        }
    )
    listing = finished(ready(frame, validation_type="regex")).result.listing
    pieces = rows_to_save(listing, np.arange(3), "send", size=1)
    save_table(pieces, tmp_path / f"list.{kind}", types_of_objects(frame))
    found = (
        pd.read_csv(tmp_path / "list.csv")
        if kind == "csv"
        else pd.read_parquet(tmp_path / "list.parquet")
    )
    assert found["mail"].tolist() == ["a@b.org", "c@b.org", "d@b.org"]
    assert found["mail_as_written"].dropna().tolist() == ["D <d@b.org>"]
    assert found["n"].tolist() == ["1", "2", "three"]
    assert found["m"].dropna().tolist() == [True, False]


def test_the_report_of_the_page_is_that_of_the_frame(audit, tmp_path):
    save_report(audit.result.listing, tmp_path / "page.html", "list.csv")
    whole = mv.report(result_of(audit), "mail", name="list.csv").to_html()
    pages = [
        re.sub(r"report of [0-9: -]+ UTC", "", text)
        for text in (whole, (tmp_path / "page.html").read_text())
    ]
    assert pages[0] == pages[1]


@pytest.mark.slow
def test_a_parquet_file_has_each_name_once_and_the_page_says_so():
    frame = pd.DataFrame([["ada@example.org", 1, 2, 3]], columns=["mail", "x", "x", "x_2"])
    audit = finished(ready(frame, validation_type="regex"))
    files: list[Path] = []
    audit.on_file = lambda name, path, by: files.append(path)
    for kind in ("parquet", "csv"):
        audit.download("send", kind)
        audit.work.wait(30)
        said = "Another column x is called x_3 in the file." if kind == "parquet" else ""
        assert message(audit, "decide") == said
    found = pd.read_parquet(files[0])
    assert found[["x", "x_3", "x_2"]].to_numpy().tolist() == [[1, 2, 3]]
    assert files[1].read_text().startswith("mail,x,x,x_2,")


@pytest.mark.slow
def test_cells_that_a_workbook_cuts_are_named_on_the_page():
    frame = pd.DataFrame(
        {
            "mail": [f"a{n}@example.org" for n in range(4)],
            "note": ["x", "y" * 40_000, "z", "y" * 40_000],
        }
    )
    audit = finished(ready(frame, validation_type="regex"))
    audit.on_file = lambda name, path, by: None
    audit.download("send", "xlsx")
    audit.work.wait(30)
    expected = "2 cells cut to 32,767 characters, the most that a workbook allows, in rows 3, 5."
    assert message(audit, "decide") == expected
    audit.download("report", "xlsx")
    audit.work.wait(30)
    assert message(audit, "decide") == expected.replace(".", " of sheet Everything.")
