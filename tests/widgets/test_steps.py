"""The second step: what is found, what is chosen, and what is verified then."""

from __future__ import annotations

import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.errors import InputError, SettingsError
from mailverdict.model.words import REASON_LABELS, REPAIR_LABELS
from mailverdict.widgets.source import read_frame
from mailverdict.widgets.state import AuditState
from mailverdict.widgets.steps import SAFE, Choices, TidyColumn, prepare
from tests.doubles.answering_backend import AnsweringBackend
from tests.widgets.conftest import finished, message, ready, result_of, shown

CELLS = [
    "ada@example.org",
    "Bob <bob@gmial.com>",
    "x@a.com; y@b.com",
    None,
    "nobody",
    "ADA@example.org",
    "mailto:Z@Firm.com",
    "cy@gmial.com",
    "cy@gmial.com",
]


@pytest.fixture
def messy() -> AuditState:
    frame = pd.DataFrame({"id": range(len(CELLS)), "mail": CELLS}, index=list("abcdefghi"))
    return ready(frame, validation_type="regex")


def items(audit: AuditState) -> dict[str, dict]:
    return {item["id"]: item for item in shown(audit, "tidy")["items"]}


def test_each_safe_repair_has_a_label():
    assert set(SAFE) < set(REPAIR_LABELS)


def test_what_is_found_is_counted_with_examples(messy):
    found = items(messy)
    assert {name: item["count"] for name, item in found.items()} == {
        "unwrapped": "1 cell",
        "link": "1 cell",
        "case": "1 cell",
        "split": "1 cell",
        "merge": "2 rows",
    }
    assert found["unwrapped"]["examples"] == [
        {"before": "Bob <bob@gmial.com>", "after": "bob@gmial.com"}
    ]
    assert found["split"]["examples"] == [
        {"before": "x@a.com; y@b.com", "after": "x@a.com\ny@b.com"}
    ]
    assert found["merge"]["examples"][0] == {
        "before": "ada@example.org",
        "after": "ADA@example.org",
    }
    assert shown(messy, "tidy")["nothing"] == "1 cell holds no address that can be read."


def test_an_example_shows_what_is_repaired():
    cells = [
        "a.name.so.long.that.its.end.is.cut.where.it.is.shown@example.org;",
        "\u00a0ada@example.org",
        "bo@example.org;",
    ]
    found = items(ready(pd.DataFrame({"mail": cells}), validation_type="regex"))
    assert found["blanks"]["examples"][0] == {
        "before": "␣ada@example.org",
        "after": "ada@example.org",
    }
    assert found["punctuation"]["examples"][0] == {
        "before": "bo@example.org;",
        "after": "bo@example.org",
    }


def test_untouched_choices_verify_as_clean_does():
    tidy = TidyColumn(pd.Series([cell for cell in CELLS if cell]))
    repaired = tidy.addresses(Choices())
    expected = mv.clean([cell for cell in CELLS if cell])
    assert repaired["clean"].to_pylist() == [None if pd.isna(x) else x for x in expected["clean"]]
    assert repaired["change"].to_pylist() == expected["change"].tolist()


@pytest.mark.slow
def test_a_repair_that_is_off_leaves_the_cell_and_its_verdict_as_they_are(messy):
    messy.set_repair("link", False)
    finished(messy)
    assert result_of(messy).loc["g", "mail_verdict"] == "invalid"
    assert pd.isna(result_of(messy).loc["g", "mail_clean"])
    assert result_of(messy).loc["b", "mail_clean"] == "bob@gmial.com"
    messy.set_repair("link", True)
    finished(messy)
    assert result_of(messy).loc["g", "mail_verdict"] == "valid"


def test_a_well_formed_address_whose_repair_is_off_is_still_verified():
    audit = ready(pd.DataFrame({"mail": [" Ada@EXAMPLE.org "]}), validation_type="regex")
    for name in ("case", "blanks"):
        audit.set_repair(name, False)
    finished(audit)
    assert result_of(audit)["mail_verdict"].tolist() == ["valid"]
    assert result_of(audit)["mail_change"].tolist() == [""]


@pytest.mark.slow
def test_suggestions_are_accepted_by_domain_or_all_and_undone(messy):
    def left() -> str:
        messy.work.wait(30)
        return shown(messy, "tidy")["suggestions"]["left"]

    part = shown(messy, "tidy")["suggestions"]
    assert part["count"] == "3 rows"
    assert [(each["before"], each["after"], each["rows"]) for each in part["items"]] == [
        ("gmial.com", "gmail.com", "3 rows"),
    ]
    messy.accept_typo(part["items"][0]["id"])
    assert left() == ""
    messy.accept_typo(part["items"][0]["id"])
    assert left() == "3 rows"
    messy.accept_all()
    assert left() == ""
    messy.undo()
    assert left() == "3 rows"
    messy.redo()
    finished(messy)
    assert result_of(messy)["mail_clean"].tolist()[-2:] == ["cy@gmail.com"] * 2
    assert result_of(messy)["mail_change"].tolist()[-2:] == ["suggestion"] * 2
    assert result_of(messy)["mail_suggestion"].dropna().tolist() == []
    assert shown(messy, "page")["undo"][0] == "all likely typos corrected"
    decided = messy.result.listing.decide()["mail_action"]
    assert (decided["b"], decided["h"]) == ("send", "send")


@pytest.mark.slow
def test_the_report_says_that_suggestions_were_accepted(messy):
    files = []
    messy.on_file = lambda name, path, by: files.append(path)
    messy.accept_typo(0)
    for expected in ("3 were accepted", "spelling and were not applied"):
        messy.work.wait(30)
        finished(messy)
        messy.download("report", "html")
        messy.work.wait(30)
        assert expected in files.pop().read_text(encoding="utf-8")
        messy.undo()


def test_each_of_several_addresses_has_a_row_of_its_own(messy):
    assert items(messy)["split"]["on"]
    assert messy.plan.rows == 10
    finished(messy)
    assert result_of(messy)["mail"].tolist()[2:4] == ["x@a.com", "y@b.com"]
    assert result_of(messy).index.tolist()[2:4] == ["c", "c"]
    assert result_of(messy)["id"].tolist()[1:5] == [1, 2, 2, 3]
    assert result_of(messy)["mail_part"].tolist()[1:5] == [1, 1, 2, 1], (
        "which address of the cell it is"
    )
    assert result_of(messy)["mail_verdict"].tolist()[2:4] == ["valid", "valid"]


def test_another_column_is_split_too_after_the_first_was_not():
    frame = pd.DataFrame(
        {"mail": ["ada@example.org; bob@example.org"], "other": ["cy@example.org, di@example.org"]}
    )
    audit = ready(frame, column="mail", validation_type="regex")
    audit.set_repair("split", False)
    audit.work.wait(30)
    assert audit.plan.rows == 1
    audit.choose_column(1)
    audit.work.wait(30)
    assert audit.plan.rows == 2


@pytest.mark.slow
def test_without_it_cells_with_several_addresses_are_reviewed_and_not_counted_as_unanswered(messy):
    messy.set_repair("split", False)
    finished(messy)
    assert messy.plan.rows == 9
    assert "mail_part" not in result_of(messy)
    assert result_of(messy).loc["c", ["mail_verdict", "mail_why"]].tolist() == [
        "unknown",
        "several_addresses",
    ]
    assert messy.require_result().listing.count_unclear() == 0
    decided = shown(messy, "decide")
    assert "no clear answer" not in decided["unclear"]
    assert [
        row["why"].startswith("holds 2 addresses")
        for row in decided["table"]["rows"]
        if row["row"] == "3"
    ] == [True]
    assert mv.decide(result_of(messy), "mail")["mail_action"].loc["c"] == "review"


@pytest.mark.parametrize("index", [range(5), list("aabbb"), [0.5, 1, 1, (2,), "x"]])
def test_a_duplicate_names_the_row_that_it_repeats(index):
    mails = [
        "bob@gmail.com; cy@firm.example",
        "ann@example.com",
        "B.ob@gmail.com",
        "<ANN@example.com>",
        "cy@firm.example",
    ]
    audit = ready(pd.DataFrame({"mail": mails}, index=index), validation_type="regex")
    audit.set_repair("merge", is_on=True)
    finished(audit)
    rows = shown(audit, "decide")["table"]["rows"]
    assert [row["row"] for row in rows] == ["1", "2", "3", "4", "5", "6"]
    assert [row["why"] for row in rows] == [
        *["no problem found"] * 3,
        "the same mailbox as row 1: bob@gmail.com",
        "the same mailbox as row 3: ann@example.com",
        "the same mailbox as row 2: cy@firm.example",
    ]


def test_duplicates_are_removed_from_the_send_list_but_not_lost(messy):
    messy.set_repair("merge", True)
    finished(messy)
    decided = messy.result.listing.decide()
    assert len(decided) == 10
    repeated = decided.loc["f"]
    assert repeated["mail_action"] == "drop"
    assert repeated["mail_action_why"] == "the same mailbox as row 1"
    assert repeated["mail_duplicate_of"] == "a"


def test_a_suppression_list_takes_rows_off_the_send_list(messy, tmp_path):
    messy.suppress_pasted("firm.com\nnot an entry\n")
    messy.work.wait(30)
    assert shown(messy, "tidy")["suppression"] == "pasted suppression list"
    assert "1 entry in it" in shown(messy, "tidy")["suppression_notes"][0]
    assert items(messy)["suppress"]["count"] == "1 row"
    finished(messy)
    assert (
        messy.result.listing.decide().loc["g", "mail_action_why"]
        == "on your suppression list, or a column says no"
    )
    file = tmp_path / "unsubscribed.txt"
    file.write_text("ada@example.org\n")
    messy.suppress_file(file, "unsubscribed.txt")
    messy.work.wait(30)
    assert items(messy)["suppress"]["count"] == "2 rows"
    messy.drop_suppression()
    messy.work.wait(30)
    assert "suppress" not in items(messy)


def test_a_suppression_list_that_cannot_be_read_is_reported(messy, tmp_path):
    messy.suppress_file(tmp_path / "nowhere.txt", "nowhere.txt")
    messy.work.wait(30)
    assert "no such file" in message(messy, "tidy")
    with pytest.raises(InputError, match="nothing was pasted"):
        messy.suppress_pasted(" \n")


def test_an_unknown_repair_is_refused(messy):
    with pytest.raises(SettingsError, match="'magic' is not a repair"):
        messy.set_repair("magic", True)


def test_a_clean_list_says_so():
    audit = ready(pd.DataFrame({"mail": ["ada@example.org"]}), validation_type="regex")
    tidy = shown(audit, "tidy")
    assert (tidy["items"], tidy["suggestions"], tidy["summary"]) == ([], None, "nothing to repair")


def test_cells_that_are_not_text_are_counted():
    audit = ready(
        pd.DataFrame({"mail": [1, 2.5, "ada@example.org", None]}),
        column="mail",
        validation_type="regex",
    )
    assert shown(audit, "tidy")["nothing"] == "2 cells hold no address that can be read."
    assert audit.plan.malformed == 2
    assert result_of(finished(audit))["mail_verdict"].isna().sum() == 1


@pytest.mark.slow
def test_rows_that_are_removed_anyway_are_not_checked_and_stay_in_the_table():
    cells = [
        "ada@gmail.com",
        "a.da+x@gmail.com",
        "ada@GMAIL.com",
        "bob@firm.com",
        None,
        "nobody",
        "cy@example.org",
    ]
    backend = AnsweringBackend()
    audit = ready(pd.DataFrame({"mail": cells}), backend)
    assert audit.plan.unique == 3
    audit.set_repair("merge", False)
    audit.work.wait(30)
    assert audit.plan.unique == 4
    audit.set_repair("merge", True)
    audit.suppress_pasted("firm.com")
    audit.work.wait(30)
    assert (audit.plan.rows, audit.plan.unique, audit.plan.malformed, audit.plan.missing) == (
        7,
        2,
        1,
        1,
    )
    assert (
        "3 rows are suppressed or duplicates: not checked (free)."
        in shown(audit, "check")["plan"]["notes"]
    )
    finished(audit)
    assert [sorted(asked) for _, asked in backend.batches] == [["ada@gmail.com", "cy@example.org"]]
    # Duplicates have the verdict of the first.
    status = [
        "done",
        "done",
        "done",
        "pending",
        "missing",
        "done",
        "done",
    ]
    assert result_of(audit)["mail_status"].tolist() == status
    assert result_of(audit)["mail_verdict"].notna().tolist() == [each == "done" for each in status]
    assert result_of(audit)["mail_normalized"].tolist()[:3] == [
        "ada@gmail.com",
        "a.da+x@gmail.com",
        "ada@gmail.com",
    ]
    decided = audit.result.listing.decide()
    assert decided["mail_action"].tolist()[:4] == ["send", "drop", "drop", "drop"]
    assert decided["mail_action_why"].tolist()[3] == "on your suppression list, or a column says no"
    page = shown(audit, "decide")
    assert page["unclear"] == "", "nothing is left to check"
    assert [row["reason"] for row in page["table"]["rows"][1:4]] == [
        REASON_LABELS[each] for each in ("duplicate", "duplicate", "suppressed")
    ]
    audit.drop_suppression()
    finished(audit)
    assert "bob@firm.com" in backend.batches[-1][1]
    assert result_of(audit)["mail_status"].tolist()[3] == "done"


def test_the_format_of_removed_rows_is_checked_since_it_costs_nothing():
    audit = ready(
        pd.DataFrame({"mail": ["ada@example.org", "nobody", "bob@firm.com"]}),
        validation_type="regex",
    )
    audit.suppress_pasted("firm.com")
    finished(audit)
    assert audit.plan.unique == 2
    assert result_of(audit)["mail_verdict"].tolist() == ["valid", "invalid", "valid"]


def test_choices_that_are_undone_give_the_texts_from_before():
    tidy = TidyColumn(pd.Series(CELLS))
    typos = frozenset((each.written, each.meant) for each in tidy.suggestions)
    off = Choices(off=frozenset({"unwrapped", "link", "case"}), accepted=typos)
    accepted = Choices(accepted=typos)
    expected = [TidyColumn(pd.Series(CELLS)).addresses(each) for each in (Choices(), off, accepted)]
    for number in (0, 1, 2, 1, 0, 2, 0):
        read = tidy.addresses((Choices(), off, accepted)[number])
        assert read.equals(expected[number])
    assert not expected[0]["text"].equals(expected[1]["text"])
    assert not expected[0]["text"].equals(expected[2]["text"])


def test_cells_that_are_split_are_the_only_ones_that_are_repaired_again():
    listed = [["ada@firm.com"], ["bo@firm.com", "cy@gmial.com"], None, "  ", "a@b.co,b@c.co"]
    # A text of this length is not repaired, since it may have been cut.
    long = "ada@example.org; bo@example.org ".ljust(1_000, "x")
    frame = pd.DataFrame({"mail": [*CELLS, *listed, long, "ada@x.de, bo@x.de (do not contact)"]})
    prepared = prepare(read_frame(frame), Choices(column=0))
    rows = mv.explode(frame, "mail")
    assert prepared.rows.equals(rows)
    whole = TidyColumn(rows["mail"])
    assert prepared.tidy.repaired.equals(whole.repaired)
    assert prepared.tidy.stripped.equals(whole.stripped)
    assert prepared.tidy.examples == whole.examples
    assert prepared.tidy.suggestions == whole.suggestions
    assert (prepared.tidy.several_rows == whole.several_rows).all()


def test_mailboxes_are_those_of_the_addresses_after_each_switch():
    source = read_frame(pd.DataFrame({"mail": CELLS}))
    typos = frozenset({("bob@gmial.com", "bob@gmail.com"), ("cy@gmial.com", "cy@gmail.com")})
    whole = Choices(column=0)
    without_links = Choices(column=0, off=frozenset({"link", "unwrapped"}))
    corrected = Choices(column=0, accepted=typos)
    unsplit = Choices(column=0, split=False)
    earlier = None
    for choices in (whole, without_links, corrected, unsplit, whole):
        earlier = prepare(source, choices, earlier=earlier)
        fresh = prepare(source, choices)
        assert earlier.mailboxes.names.equals(fresh.mailboxes.names)
        assert earlier.mailboxes.domains.equals(fresh.mailboxes.domains)
        assert earlier.frame.equals(fresh.frame)


EXPORT = pd.DataFrame(
    {
        "owner": ["ann@shop.example"] * 6,
        "Email": [
            "ada@x.example (do not contact)",
            "ada@x.example",
            "bo@x.example",
            "bo@x.example",
            "cy@x.example",
            None,
        ],
        "Unsubscribed from all email": [None, None, "true", "", "false", "true"],
    }
)


def test_a_column_that_says_no_is_offered_and_not_applied_by_itself():
    audit = finished(ready(EXPORT, validation_type="regex"))
    assert shown(audit, "list")["guess"].startswith(
        "Found automatically: column Email: 5 of 6 rows"
    )
    offered = items(audit)["refused 2"]
    assert (offered["label"], offered["on"]) == ("Unsubscribed from all email", False)
    assert offered["why"] == "2 rows say true. Take them off?"
    assert "Email_suppressed" not in result_of(audit)
    assert audit.result.listing.decide()["Email_action"].tolist()[2] == "send"


def test_the_people_who_say_no_are_taken_off_after_a_yes_in_all_of_their_rows():
    audit = ready(EXPORT, validation_type="regex")
    audit.set_repair("refused 2", is_on=True)
    finished(audit)
    assert items(audit)["refused 2"]["why"].endswith("Their people are off the send list.")
    assert "3 rows taken off" in shown(audit, "tidy")["summary"]
    decided = audit.result.listing.decide()
    assert decided["Email_action"].tolist()[2:5] == ["drop", "drop", "send"]
    audit.undo()
    audit.work.wait(30)
    assert not items(audit)["refused 2"]["on"]


def test_of_the_rows_of_a_mailbox_the_first_that_may_be_sent_stays():
    audit = finished(ready(EXPORT, validation_type="regex"))
    decided = audit.result.listing.decide()
    assert decided["Email_action"].tolist()[:4] == ["review", "send", "send", "drop"]
    assert decided["Email_action_why"].tolist()[3] == "the same mailbox as row 3"
    audit.set_repair("merge", is_on=False)
    finished(audit)
    assert audit.result.listing.decide()["Email_action"].tolist()[3] == "send"


def test_more_than_half_of_the_rows_is_said_before_the_yes():
    frame = pd.DataFrame({"mail": ["a@x.example", "b@x.example"], "Newsletter": ["no", "no"]})
    why = items(ready(frame, validation_type="regex"))["refused 1"]["why"]
    assert why == "2 rows say no; that is more than half of the 2 rows. Take them off?"


def test_of_two_likely_columns_the_page_asks_which_one_is_meant():
    frame = pd.DataFrame(
        {
            "work email": [f"p{number}@firm.example" for number in range(9)],
            "home email": [f"p{number}@home.example" for number in range(9)],
        }
    )
    audit = ready(frame, validation_type="regex")
    assert (
        message(audit, "list")
        == "Two columns may hold the addresses of these people: which one is meant?"
    )
    doubted = shown(audit, "list")["doubted"]
    assert [each["label"] for each in doubted] == ["work email", "home email"]
    assert doubted[0]["text"] == "9 of 9 rows filled, 9 different addresses"
    audit.choose_column(doubted[1]["at"])
    audit.work.wait(30)
    assert shown(audit, "list")["doubted"] == []
    assert audit.plan.rows == 9
