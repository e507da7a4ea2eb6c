"""The rows of a workbook for people: who it is, the address to mail, and what to do."""

import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.frames.results import Results
from mailverdict.reports.person_sheet import PersonSheet
from tests.doubles.workbooks import cells_of


def sheet_of(frame, column="Email"):
    out = mv.verify(frame, column, validation_type="regex")
    return PersonSheet().rows(Results(mv.decide(out, column), column, None)).to_pydict()


def test_it_has_the_repaired_address_the_verdict_and_what_to_do_in_words():
    cells = ["Ada <ada@x.org>", "bob@gmial.com", "nobody", None]
    assert sheet_of(pd.DataFrame({"Email": cells})) == {
        "Address": ["ada@x.org", "bob@gmial.com", "nobody", None],
        "Verdict": ["Valid", "Valid", "Invalid", "Empty cell"],
        "Why": [
            "no problem found",
            "no problem found",
            "not a well-formed address",
            "the cell holds no address",
        ],
        "What to do": [
            "Send",
            "Look at it: probably mistyped: did you mean bob@gmail.com?",
            "Take it off the list",
            "Not checked",
        ],
        "Suggestion": [None, "bob@gmail.com", None, None],
    }


def test_a_row_on_the_suppression_list_says_so():
    frame = pd.DataFrame({"Email": ["ada@x.org"]})
    out = mv.suppress(mv.verify(frame, "Email", validation_type="regex"), "Email", ["x.org"])
    rows = PersonSheet().rows(Results(mv.decide(out, "Email"), "Email", None))
    assert rows["What to do"].to_pylist() == [
        "Take it off the list: on your suppression list, or a column says no"
    ]


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (["Record ID", "First Name", "Owner ID", "Email", "City"], ["Record ID", "First Name"]),
        (["Kundennummer", "Vorname", "Nachname", "Email"], ["Kundennummer", "Vorname", "Nachname"]),
        (["city", "phone", "Email"], ["phone"]),  # nearly every row has its own
        (["city", "Email"], []),
    ],
)
def test_it_has_the_columns_that_say_who_it_is(columns, shown):
    own = {"Record ID", "Kundennummer", "phone"}
    frame = pd.DataFrame(
        {
            name: [f"{name} {row if name in own else row % 2}" for row in range(10)]
            for name in columns
        }
    )
    frame["Email"] = [f"p{row}@x.org" for row in range(10)]
    assert (
        list(sheet_of(frame))[: -len(["Address", "Verdict", "Why", "What", "Suggestion"])] == shown
    )


def test_a_report_has_these_sheets_and_all_columns_on_one_more(tmp_path):
    frame = pd.DataFrame({"id": [1, 2], "Email": ["<ada@x.org>", "nobody"], "note": ["a", "b"]})
    mv.report(mv.verify(frame, "Email", validation_type="regex"), "Email", tmp_path / "r.xlsx")
    book = cells_of(tmp_path / "r.xlsx")
    assert book["Send list"][1][:3] == (1, "ada@x.org", "Valid")
    assert book["Remove"][1][:3] == (2, "nobody", "Invalid")
    header, *rows = book["Everything"]
    assert header[:3] == ("id", "Email", "note")
    assert {"Email_verdict", "Email_action"} <= set(header)
    assert [row[:3] for row in rows] == [(1, "<ada@x.org>", "a"), (2, "nobody", "b")]
