"""Filtering, searching and paging in Python."""

import numpy as np
import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.frames.columns import ACTIONS
from mailverdict.reports.summary import BUCKETS
from mailverdict.widgets.listing import LONGEST_CELL, OTHER_COLUMNS, PAGE_ROWS, Listing

MAILS = ["ada@example.org", "info@gmial.com", "no at sign", None, "bob@mailinator.com"]


def listing(frame: pd.DataFrame, column: object = "mail", policy: str = "balanced") -> Listing:
    out = mv.verify(frame, column, validation_type="regex", columns="all")
    return Listing(out, column, policy)


@pytest.fixture
def small() -> Listing:
    names = ["Ada Lovelace", "Info", "<b>Bad</b>", "None", "Bob Ünal"]
    return listing(pd.DataFrame({"who": names, "mail": MAILS}, index=list("vwxyz")))


def test_counts_are_complete_and_in_order(small):
    verdicts, actions = small.counts("bucket"), small.counts("action")
    assert tuple(verdicts) == BUCKETS
    assert tuple(actions) == ACTIONS
    assert {name: count for name, count in verdicts.items() if count} == {"valid": 3, "invalid": 1, "missing": 1}
    assert actions == {"send": 1, "review": 1, "retry": 0, "drop": 2, "unchecked": 1}
    assert small.counts("reason") == {"not well formed": 1}


@pytest.mark.parametrize(
    ("wanted", "rows"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"bucket": "valid"}, [0, 1, 4]),
        ({"bucket": "missing"}, [3]),
        ({"reason": "not well formed"}, [2]),
        ({"action": "drop"}, [2, 4]),
        ({"bucket": "valid", "action": "drop"}, [4]),
        ({"bucket": "risky"}, []),
        ({"search": "LOVELACE"}, [0]),
        ({"search": "gmail.com"}, [1]),  # a suggestion
        ({"search": "ünal BOB"}, [4]),
        ({"search": "ada bob"}, []),
        ({"search": "<b>"}, [2]),
        ({"search": ".*"}, []),
        ({"search": "   "}, [0, 1, 2, 3, 4]),
    ],
)
def test_rows_are_found(small, wanted, rows):
    assert small.find(**wanted).tolist() == rows


def test_another_policy_moves_rows():
    frame = pd.DataFrame({"mail": MAILS})
    assert listing(frame, policy="lenient").counts("action") == {
        "send": 2,
        "review": 1,
        "retry": 0,
        "drop": 1,
        "unchecked": 1,
    }


def test_a_page_shows_the_address_first_then_what_was_found():
    page = listing(pd.DataFrame({"who": ["Ada"], "mail": ["ada@example.org"]})).page(np.array([0]), 1)
    assert list(page.columns) == ["row", "mail", "verdict", "action", "why", "did you mean", "who"]
    assert page.iloc[0].tolist() == ["1", "ada@example.org", "valid", "send", "no problem was found", "", "Ada"]


def test_a_page_shows_what_was_cleaned():
    out = mv.verify(
        pd.DataFrame({"mail": ["Ada <ada@example.org>", "bo@example.org"]}),
        "mail",
        validation_type="regex",
        columns="all",
        clean=True,
    )
    page = Listing(out, "mail", "balanced")
    assert page.page(np.array([0, 1]), 1)["cleaned"].tolist() == ["ada@example.org", ""]
    assert list(page.to_save().columns)[-4:-2] == ["mail_clean", "mail_change"]


def test_pages_hold_what_belongs_on_them():
    many = listing(pd.DataFrame({"mail": [f"a{n}@example.org" for n in range(PAGE_ROWS * 2 + 1)]}))
    rows = many.find()
    assert [len(many.page(rows, number)) for number in (1, 2, 3, 4)] == [PAGE_ROWS, PAGE_ROWS, 1, 0]
    assert many.page(rows, 2)["row"].iloc[0] == str(PAGE_ROWS + 1)


def test_of_300_columns_a_few_are_shown_and_all_are_saved():
    frame = pd.DataFrame({f"c{n}": ["x"] for n in range(299)} | {"mail": ["ada@example.org"]})
    wide = listing(frame)
    assert len(wide.page(wide.find(), 1).columns) == 6 + OTHER_COLUMNS
    assert wide.columns_left_out() == 299 - OTHER_COLUMNS
    assert list(wide.to_save().columns[:300]) == list(frame.columns)


def test_cells_of_any_kind_are_short_texts():
    cells = [1.5, ["a", None], {"k": 1}, b"\xff", "\ud800", pd.Timestamp("2026-01-02"), None, float("nan"), "y" * 9999]
    page = listing(pd.DataFrame({"odd": cells, "mail": ["ada@example.org"] * 9})).page(np.arange(9), 1)
    assert page["odd"].iloc[0] == "1.5"
    assert page["odd"].iloc[6:8].tolist() == ["", ""]
    assert all(isinstance(cell, str) and len(cell) <= LONGEST_CELL for cell in page["odd"])


def test_columns_named_like_ours_or_twice_are_all_shown():
    frame = pd.DataFrame([["ada@example.org", "theirs", 1, 2]], columns=["mail", "verdict", "x", "x"])
    page = listing(frame).page(np.array([0]), 1)
    assert [title.strip() for title in page.columns][-3:] == ["verdict", "x", "x"]
    assert page.iloc[0].tolist()[-3:] == ["theirs", "1", "2"]


def test_columns_on_several_levels_work():
    frame = pd.DataFrame(
        [["ada@example.org", "Ada"]], columns=pd.MultiIndex.from_tuples([("w", "mail"), ("w", "name")])
    )
    found = listing(frame, ("w", "mail"))
    assert found.page(found.find(), 1).iloc[0, 2] == "valid"
    assert ("w", "mail_action") in found.to_save().columns


def test_what_is_saved_is_what_was_found(small):
    saved = small.to_save(small.find(action="drop"))
    assert saved.index.tolist() == ["x", "z"]
    assert saved["mail_action"].tolist() == ["drop", "drop"]
    assert "mail_mx_records" not in saved.columns, "the file is for people; the frame has everything"


def test_a_column_without_any_answer_can_be_listed():
    out = mv.verify(pd.DataFrame({"mail": [None, ""]}), "mail", validation_type="regex", columns="all")
    empty = Listing(out, "mail", "strict")
    assert empty.counts("reason") == {}
    assert empty.find(reason="timeout").tolist() == []
    assert len(empty.page(empty.find(), 1)) == 2
