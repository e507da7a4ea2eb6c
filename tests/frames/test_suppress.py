"""Rows on a suppression list."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
from tests.doubles.tables import each_row

PEOPLE = [
    "Ada@firm.example",
    "<a.da+x@googlemail.com>",
    "bob@mail.shop.example",
    "cy@other.example",
    None,
    "nobody",
]


def suppressed(against, column=PEOPLE, **options):
    return mv.suppress(column, against=against, **options)["suppressed"].tolist()


@each_row(
    ("entry", "rows"),
    [
        ("ada@firm.example", [0]),
        ("mailto:ADA@Firm.example", [0]),
        ("adA+tag@gmail.com", [1]),
        ("firm.example", [0]),
        ("@firm.example", [0]),
        ("*@firm.example", [0]),
        ("*.Firm.Example.", [0]),
        ("shop.example", [2]),  # with all domains below it
        ("ail.shop.example", []),
        ("gmail.com", [1]),  # googlemail.com has the same mailboxes
        ("googlemail.com", [1]),
        ("mail.shop.example; cy@other.example", [2, 3]),
        ("Cy <cy@other.example>, Ada L. <ada@firm.example>", [0, 3]),
        ("<cy@other.example>; firm.example", [0, 3]),
        ("", []),
        (None, []),
    ],
)
def test_an_entry_marks_these_rows(entry, rows):
    expected = [row in rows for row in range(4)]
    assert suppressed([entry]) == [*expected, pd.NA, pd.NA]


def test_a_name_below_a_provider_s_domain_is_not_the_provider():
    assert suppressed(["ada.fastmail.com"], ["x@ada.fastmail.com", "bob@fastmail.com"]) == [
        True,
        False,
    ]
    assert suppressed(["ada@fastmail.com"], ["x@ada.fastmail.com", "bob@fastmail.com"]) == [
        True,
        False,
    ]


@pytest.mark.slow
@each_row(
    "entry", ["Ada Lovelace", "com", "co.uk", "10.5.2026", 7, "see firm.example", "ada@", "@"]
)
def test_an_entry_that_is_neither_is_counted_and_named(entry):
    with pytest.warns(
        UserWarning,
        match=r"2 of 3 entries of the suppression list are neither an address nor a domain",
    ):
        assert suppressed([entry, "ada@firm.example", entry])[:4] == [True, False, False, False]


def test_a_warning_is_short_and_printable():
    with pytest.warns(UserWarning, match="entries") as caught:
        suppressed(["\x1b[2J" + "x" * 10_000, "b b", "c c", "d d"])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    message = str(caught[0].message)
    assert len(message) < 400
    assert "\x1b" not in message
    assert message.endswith(" and 1 more")


@pytest.mark.slow
def test_a_list_may_be_of_any_kind(tmp_path):
    entries = ["ada@firm.example", "shop.example"]
    frame = pd.DataFrame({"name": ["A", "B"], "mail": entries, "n": [1, 2]})
    lists = [
        entries, set(entries), tuple(entries), pd.Series(entries), np.array(entries), pl.Series(entries),
        pa.array(entries), (each for each in entries), frame[["mail"]], frame, pl.from_pandas(frame),
        pa.Table.from_pandas(frame),
    ]  # fmt: skip
    for file, text in {
        "list.txt": "# unsubscribed\n\nada@firm.example\r\n*@shop.example\n",
        "list.csv": "name,mail\nA,ada@firm.example\nB,shop.example\n",
        "one.csv": "entry\nshop.example\nada@firm.example\n",
        "list.tsv": "name\tmail\nA\tada@firm.example\nB\tshop.example\n",
    }.items():
        tmp_path.joinpath(file).write_text(text, encoding="utf-8")
        lists += [tmp_path / file, str(tmp_path / file)]
    tmp_path.joinpath("wide.txt").write_text("\n".join(entries), encoding="utf-16")
    frame.to_parquet(tmp_path / "list.parquet")
    frame.to_excel(tmp_path / "list.xlsx", engine="xlsxwriter", index=False)
    for against in (
        *lists,
        tmp_path / "wide.txt",
        tmp_path / "list.parquet",
        tmp_path / "list.xlsx",
    ):
        assert suppressed(against) == [True, False, True, False, pd.NA, pd.NA]


def test_a_column_of_the_list_can_be_named(tmp_path):
    frame = pd.DataFrame({"from": ["cy@other.example"] * 2, "to": ["ada@firm.example"] * 2})
    frame.to_csv(tmp_path / "list.csv", index=False)
    for against in (frame, tmp_path / "list.csv"):
        assert suppressed(against, against_column="to")[:4] == [True, False, False, False]
        with pytest.raises(mv.ColumnError, match="no column 'at'"):
            suppressed(against, against_column="at")


@pytest.mark.slow
def test_of_several_columns_with_addresses_the_one_that_is_read_is_named(tmp_path):
    frame = pd.DataFrame(
        {
            "clerk": ["ada@firm.example"] * 2,
            "who": ["cy@other.example", "di@other.example"],
            "n": [1, 2],
        }
    )
    frame.to_csv(tmp_path / "list.csv", index=False)
    for against in (frame, pl.from_pandas(frame), tmp_path / "list.csv"):
        with pytest.warns(
            UserWarning,
            match=r"is read from column who: .*; addresses are also in clerk \(2 filled",
        ) as told:
            assert suppressed(against)[:4] == [False, False, False, True]
        assert [each.filename for each in told] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        suppressed(frame, against_column="clerk")
        suppressed(frame[["who", "n"]])


@pytest.mark.slow
@each_row("write", [str, lambda mark: str(mark).lower(), float, lambda mark: str(float(mark)), int])
def test_a_second_list_keeps_what_the_first_marked_in_a_file(write):
    once = mv.suppress(pd.DataFrame({"email": PEOPLE}), "email", ["firm.example"])
    marks = [None if mark is pd.NA else write(mark) for mark in once["email_suppressed"]]
    twice = mv.suppress(once.assign(email_suppressed=marks), "email", ["other.example"])
    assert twice["email_suppressed"].tolist()[:4] == [True, False, False, True]


def test_bad_lists_are_errors_that_say_what_to_give(tmp_path):
    with pytest.raises(mv.SettingsError, match="against=None: give the suppression list"):
        mv.suppress(PEOPLE)
    with pytest.raises(mv.SettingsError, match="against: data is of type int"):
        suppressed(7)
    with pytest.raises(
        mv.InputError, match=r"no such file; give entries as a list, as \['ada@firm.example'\]"
    ):
        suppressed("ada@firm.example")
    with pytest.raises(mv.InputError, match="is a directory"):
        suppressed(tmp_path)
    with pytest.raises(
        mv.ColumnError, match=r"the suppression list: no column looks like .*, as against_column="
    ):
        suppressed(pd.DataFrame({"a": ["x"], "b": ["y"]}))
    with pytest.raises(mv.ColumnError, match="no column 'mail'"):
        mv.suppress(pd.DataFrame({"email": PEOPLE}), "mail", [])
    with pytest.raises(mv.SettingsError, match="already has a column 'email_suppressed'"):
        mv.suppress(pd.DataFrame({"email": PEOPLE, "email_suppressed": "x"}), "email", [])


@each_row("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_second_list_keeps_what_the_first_marked(make):
    once = mv.suppress(make({"email": PEOPLE}), "email", ["firm.example"])
    twice = mv.suppress(once, "email", ["other.example"])
    marked = twice["email_suppressed"]
    values = marked.to_pylist() if isinstance(twice, pa.Table) else list(marked)
    assert [None if pd.isna(each) else each for each in values] == [
        True,
        False,
        False,
        True,
        None,
        None,
    ]


def test_an_empty_list_suppresses_nobody(tmp_path):
    tmp_path.joinpath("none.txt").touch()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert suppressed([]) == suppressed(tmp_path / "none.txt") == [False] * 4 + [pd.NA] * 2


@each_row("policy", ["strict", "balanced", "lenient"])
@each_row("order", ["before", "after"])
def test_suppressed_rows_are_dropped_whatever_their_verdict(policy, order):
    frame = pd.DataFrame({"email": ["ada@firm.example", "bob@gmial.com", "cy@other.example", None]})
    listed = ["firm.example", "gmial.com"]
    steps = [
        lambda df: mv.suppress(df, "email", listed),
        lambda df: mv.verify(df, "email", validation_type="regex"),
    ]
    for step in steps if order == "before" else reversed(steps):
        frame = step(frame)
    out = mv.decide(frame, "email", policy=policy)
    assert out["email_action"].tolist() == ["drop", "drop", "send", "unchecked"]
    assert (
        out["email_action_why"].tolist()[:2]
        == ["on your suppression list, or a column says no"] * 2
    )
    parts = mv.split(frame, "email", policy=policy)
    assert (len(parts.drop), len(parts.send), len(parts.unchecked)) == (2, 1, 1)
    assert mv.report(frame, "email", policy=policy)._facts.counts.actions["drop"] == 2
    # Read from a CSV.
    as_text = frame.assign(email_suppressed=frame["email_suppressed"].astype(object).map(str))
    assert (
        mv.decide(as_text, "email", policy=policy)["email_action"].tolist()
        == out["email_action"].tolist()
    )


CUSTOMERS = pd.DataFrame(
    {
        "email": ["p1@firm.example", "p2@firm.example", "p4@firm.example", "x@firm.example"],
        "opt_out": ["yes", None, "no", ""],
        "Status": ["subscribed", "Unsubscribed", "cleaned", "subscribed"],
    }
)


def test_the_people_of_a_list_are_taken_and_not_who_entered_them():
    entered = pd.DataFrame(
        {
            "email": ["p1@firm.example", "p2@firm.example", None],
            "reason": ["unsubscribed", "complaint", "by postal card"],
            "added_by": ["ann@shop.example", "ann@shop.example", "ben@shop.example"],
        }
    )
    with pytest.warns(
        UserWarning, match=r"read from column email: 2 of 3 rows filled, .* added_by"
    ):
        out = mv.suppress(CUSTOMERS, "email", entered)
    assert out["email_suppressed"].tolist() == [True, True, False, False]


def test_a_list_with_two_likely_columns_is_an_error_that_names_the_argument():
    doubtful = pd.DataFrame(
        {
            "work email": [f"p{number}@firm.example" for number in range(9)],
            "home email": [f"p{number}@home.example" for number in range(9)],
        }
    )
    with pytest.raises(
        mv.ColumnError, match=r"work email .* or home email .*against_column= \(--a"
    ):
        mv.suppress(CUSTOMERS, "email", doubtful)
    out = mv.suppress(CUSTOMERS, "email", doubtful, against_column="work email")
    assert out["email_suppressed"].tolist() == [True, True, True, False]


def test_a_list_of_addresses_of_our_own_people_is_an_error():
    staff = pd.DataFrame({"name": ["A", "B"], "added_by": ["ann@shop.example"] * 2})
    with pytest.raises(mv.ColumnError, match=r"added_by .* may be of somebody else"):
        mv.suppress(CUSTOMERS, "email", staff)


def write_sheets(path, **sheets):
    with pd.ExcelWriter(path) as book:
        for name, cells in sheets.items():
            pd.DataFrame(cells).to_excel(book, sheet_name=name, index=False)
    return path


def test_of_several_sheets_the_one_that_is_read_is_named_with_the_others(tmp_path):
    path = write_sheets(
        tmp_path / "list.xlsx",
        Notes={"note": ["kept by Ann"]},
        Unsubscribed={"email": ["p1@firm.example"]},
        Bounced={"email": ["p2@firm.example"]},
    )
    expected = (
        "the suppression list: only sheet 'Unsubscribed' (the first with a column of addresses) "
        "is read, and not 'Notes', 'Bounced'; to read another, save it as a file of its own"
    )
    with pytest.warns(UserWarning, match="only sheet") as caught:
        out = mv.suppress(CUSTOMERS, "email", path)
    assert [str(each.message) for each in caught] == [expected]
    assert out["email_suppressed"].tolist() == [True, False, False, False]


def test_an_error_about_the_columns_of_a_list_names_its_sheet(tmp_path):
    path = write_sheets(tmp_path / "list.xlsx", A={"x": [1], "y": [2]}, B={"x": [3], "y": [4]})
    with pytest.raises(mv.ColumnError, match=r"^only sheet 'A' is read, and not 'B'; .*no column"):
        mv.suppress(CUSTOMERS, "email", path)


def test_what_is_odd_about_the_file_of_a_list_is_said(tmp_path):
    path = tmp_path / "list.csv"
    path.write_bytes("name,email\nJosé,p1@firm.example\nb,p2@firm.example,x\n".encode("cp1252"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mv.suppress(CUSTOMERS, "email", path)
    told = [str(each.message) for each in caught]
    assert any("encoding: " in each and "save the file in UTF-8" in each for each in told)
    assert any("too many or too few cells" in each for each in told)
    assert not any("--" in each for each in told)


def test_a_list_with_one_obvious_column_is_read_without_a_word():
    listed = pd.DataFrame({"email": ["p1@firm.example"], "since": ["2026-01-01"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = mv.suppress(CUSTOMERS, "email", listed)
    assert out["email_suppressed"].tolist() == [True, False, False, False]


def test_rows_whose_own_column_says_no_are_marked():
    out = mv.suppress(CUSTOMERS, "email", where={"opt_out": True})
    assert out["email_suppressed"].tolist() == [True, False, False, False]
    out = mv.suppress(CUSTOMERS, "email", where={"Status": ["unsubscribed", "cleaned"]})
    assert out["email_suppressed"].tolist() == [False, True, True, False]
    both = mv.suppress(CUSTOMERS, "email", ["x@firm.example"], where={"opt_out": 1})
    assert both["email_suppressed"].tolist() == [True, False, False, True]


def test_who_says_no_in_one_row_is_marked_in_all_rows_of_the_mailbox():
    people = pd.DataFrame(
        {
            "email": [
                "Ada <a.da@gmail.com>",
                "ada@googlemail.com",
                "a@x.example; b@x.example",
                "b@x.example",
            ],
            "unsubscribed": ["", "true", "true", ""],
        }
    )
    out = mv.suppress(people, "email", where={"unsubscribed": True})
    assert out["email_suppressed"].tolist() == [True, True, True, True]


def test_a_column_or_value_that_is_not_there_is_an_error():
    with pytest.raises(mv.ColumnError, match="optout"):
        mv.suppress(CUSTOMERS, "email", where={"optout": True})
    with pytest.raises(mv.SettingsError, match=r"has 'gone'; it has 'subscribed', 'Unsubscribed'"):
        mv.suppress(CUSTOMERS, "email", where={"Status": ["cleaned", "gone"]})
    with pytest.raises(mv.ColumnError):
        mv.suppress(["a@x.example"], where={"opt_out": True})
