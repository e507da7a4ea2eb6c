"""What a person decides about single addresses: who it holds for, what it does, and where it is kept."""

from __future__ import annotations

import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.errors import SettingsError
from mailverdict.widgets.choices import (
    Choices,
    decide,
    describe_to_check,
    find_typos,
    rows_of_domain,
)
from mailverdict.widgets.listing import Listing
from mailverdict.widgets.state import AuditState
from tests.doubles.tables import first_ones
from tests.widgets.conftest import finished, ready, result_of, shown

MAILS = [
    "ada@example.org",  # 0
    "bob@gmial.com",  # 1: a typo
    "cy@mailinator.com",  # 2: removed by the policy
    "BOB@gmial.com",  # 3: the person of 1
    "nobody",  # 4
    None,  # 5
    "di@gmial.com",  # 6
    "x@a.com; y@b.com",  # 7
    "ada@gmail,com",  # 8: malformed, with a suggestion
]


def audited() -> AuditState:
    """An audit of `MAILS` after a run, with a row for each cell."""
    audit = ready(pd.DataFrame({"mail": MAILS}), column="mail", validation_type="regex")
    audit.set_repair("split", is_on=False)
    audit.set_repair("merge", is_on=False)
    return finished(audit)


def listing() -> Listing:
    return audited().result.listing


def after(found: Listing, *steps: tuple[list[int], str]) -> Listing:
    """The listing after some decisions, one by one."""
    choices = Choices()
    for rows, what in steps:
        choices = decide(found, rows, what, choices)
    found.set_decided(choices)
    return found


def actions(found: Listing) -> list[str]:
    return found.decide()["mail_action"].tolist()


BEFORE = ["send", "review", "drop", "review", "drop", "unchecked", "review", "review", "review"]


@pytest.mark.parametrize(
    ("steps", "changed"),
    first_ones(
        [
            ([], {}),
            ([([1], "send")], {1: "send", 3: "send"}),  # each row of the person
            ([([3], "remove")], {1: "drop", 3: "drop"}),
            ([([2], "send")], {2: "send"}),
            ([([0, 2], "remove")], {0: "drop"}),
            ([([4, 5, 7, 8], "send")], {}),  # there is no address to send to
            ([([4, 7], "remove")], {4: "drop", 7: "drop"}),
            ([([1], "send"), ([1], "remove")], {1: "drop", 3: "drop"}),
            ([([1], "send"), ([3], "none")], {}),
            ([([1], "suggestion")], {1: "unchecked", 3: "unchecked"}),  # until it is verified
            ([([1], "suggestion"), ([1], "send")], {1: "send", 3: "send"}),
            ([([8], "suggestion"), ([0], "suggestion")], {8: "unchecked"}),
            ([([1, 8], "suggestion"), ([1], "none")], {8: "unchecked"}),
        ],
        6,
    ),
)
def test_a_decision_is_applied_after_the_policy_to_each_row_of_the_person(steps, changed):
    found = after(listing(), *steps)
    expected = [changed.get(row, action) for row, action in enumerate(BEFORE)]
    assert actions(found) == expected
    assert found.counts.actions == {name: expected.count(name) for name in found.counts.actions}
    again = mv.decide(found.rows.to_frame(), "mail", policy=found.policy)
    assert again["mail_action"].tolist() == expected, "the columns of the frame say the same"


def test_a_decision_survives_another_policy():
    found = after(listing(), ([2], "send"), ([0], "remove"))
    found.set_policy("strict")
    assert actions(found)[:3] == ["drop", "review", "send"]


def test_the_decision_before_is_not_changed():
    found = listing()
    first = decide(found, [1], "send", Choices())
    later = decide(found, [0], "remove", first)
    assert (first.decided.to_dict(), first.accepted) == ({"bob@gmial.com": "send"}, frozenset())
    assert later.decided.to_dict() == {"bob@gmial.com": "send", "ada@example.org": "remove"}
    found.set_decided(later)
    found.set_decided(first)
    assert actions(found)[:2] == ["send", "send"]


def test_suppressed_and_repeated_rows_stay_off_the_send_list():
    audit = ready(
        pd.DataFrame({"mail": ["ada@example.org", "Ada@example.org", "bob@example.org"]}),
        validation_type="regex",
    )
    audit.set_repair("merge", is_on=True)
    audit.suppress_pasted("bob@example.org")
    audit.work.wait(30)
    found = after(finished(audit).result.listing, ([1, 2], "send"))
    assert actions(found) == ["send", "drop", "drop"]


@pytest.mark.slow
def test_a_domain_is_decided_at_once_and_typos_are_grouped_by_it():
    found = listing()
    assert find_typos(found) == [
        {"domain": "gmial.com", "suggested": "gmail.com", "people": 2, "decided": ""},
        {"domain": "gmail,com", "suggested": "gmail.com", "people": 1, "decided": ""},
    ]
    chosen = decide(found, rows_of_domain(found, "gmial.com"), "suggestion", Choices())
    found.set_decided(chosen)
    assert [actions(found)[row] for row in (1, 3, 6)] == ["unchecked"] * 3
    assert [each["decided"] for each in find_typos(found)] == ["suggestion", ""]
    found.set_decided(decide(found, [6], "remove", chosen))
    assert [each["decided"] for each in find_typos(found)] == ["", ""]
    found.set_decided(decide(found, rows_of_domain(found, "mailinator.com"), "send", Choices()))
    assert actions(found)[2] == "send"


@pytest.mark.slow
def test_what_is_to_be_checked_is_counted_once_per_address():
    found = after(listing(), ([1, 3, 8], "suggestion"))
    assert found.addresses_to_check() == ["BOB@gmail.com", "ada@gmail.com", "bob@gmail.com"]
    text = describe_to_check(found, is_metered=True, known=1)
    assert text == "3 addresses to check: costs 2 addresses of the quota."
    assert describe_to_check(found, is_metered=False) == "3 addresses to check: costs nothing."
    assert describe_to_check(listing(), is_metered=True) == ""


@pytest.mark.slow
def test_a_suggestion_that_was_chosen_is_verified_by_the_next_check_and_can_be_taken_back():
    audit = audited()
    state = audit
    state.decide([1, 8], "suggestion")
    before = state.choices
    audit.work.wait(30)
    found = finished(audit).result.listing
    out = found.decide()
    assert out["mail_clean"].tolist()[1:4:2] == ["bob@gmail.com", "BOB@gmail.com"]
    assert out["mail_decision"].fillna("").tolist() == [
        "",
        "suggestion",
        "",
        "suggestion",
        *[""] * 4,
        "suggestion",
    ]
    assert out["mail_decided_address"].dropna().tolist() == [
        "bob@gmail.com",
        "BOB@gmail.com",
        "ada@gmail.com",
    ]
    assert [actions(found)[row] for row in (1, 3, 8)] == ["send"] * 3
    assert [row["decided"] for row in found.page(found.found())][1:4] == [
        "suggestion",
        "",
        "suggestion",
    ]
    after_one = decide(found, [1], "none", before)
    assert after_one.accepted == {("ada@gmail,com", "ada@gmail.com")}
    sent_by_hand = after(found, ([1], "send"))
    assert sent_by_hand.decide()["mail_decided_address"][1] == "bob@gmail.com", (
        "the cell is corrected all the same"
    )


@pytest.mark.parametrize(
    ("rows", "what", "message"),
    first_ones(
        [
            ([0], "burn", "'burn' is not a decision"),
            *(
                ([row], "send", "not in the result")
                for row in (9, -1, 10**30, "0", 0.5, True, None, [0])
            ),
        ],
        4,
    ),
)
def test_what_cannot_be_decided_is_refused(rows, what, message):
    with pytest.raises(SettingsError, match=message):
        decide(listing(), rows, what, Choices())


def test_a_domain_without_an_address_is_refused():
    with pytest.raises(SettingsError, match=r"no address is at 'nowhere\.example'"):
        rows_of_domain(listing(), "nowhere.example")


def test_without_a_decision_there_are_no_columns_for_it_and_a_column_of_the_user_decides_nothing():
    assert not [name for name in listing().rows.to_frame().columns if "deci" in name]
    frame = pd.DataFrame({"mail": ["ada@example.org"], "mail_decision": ["remove"]})
    out = mv.verify(frame, "mail", validation_type="regex")
    assert mv.decide(out, "mail")["mail_action"].tolist() == ["send"]


def test_decisions_are_in_the_report_and_in_the_figures_of_a_frame(tmp_path):
    found = after(listing(), ([1], "send"), ([0], "remove"), ([8], "suggestion"))
    assert found.counts.decisions == {"send": 2, "remove": 1, "suggestion": 1}
    page = mv.report(found.rows.to_frame(), "mail").to_html()
    assert "Decided by hand" in page
    assert "Send anyway: 2 rows; Remove: 1 row; Use the suggestion: 1 row" in page
    assert "bob@gmial.com" in page


def test_actions_of_the_page_decide_and_undo_and_the_files_and_the_frame_follow():
    audit = audited()
    state, files = audit, []
    state.on_file = lambda name, path, by: files.append(path)

    def words() -> list[str]:
        """What the frame and the file of everything say, which must be the same."""
        found = (
            result_of(audit)
            .get("mail_decision", pd.Series("", range(len(MAILS))))
            .fillna("")
            .tolist()
        )
        state.act("download", which="everything", kind="csv")
        audit.work.wait(30)
        saved = pd.read_csv(files[-1])
        assert (
            saved.get("mail_decision", pd.Series("", range(len(MAILS)))).fillna("").tolist()
            == found
        )
        return found

    assert words() == [""] * 9
    state.act("decide", rows=[1], what="send")
    assert words() == ["", "send", "", "send", *[""] * 5]
    state.act("search", text="mailinator")
    state.act("decide_shown", what="remove")
    assert words() == ["", "send", "remove", "send", *[""] * 5]
    state.act("decide_domain", domain="gmial.com", what="remove")
    assert words() == ["", "remove", "remove", "remove", "", "", "remove", "", ""]
    state.act("undo")
    state.act("undo")
    assert words() == ["", "send", "", "send", *[""] * 5]
    state.act("redo")
    assert words() == ["", "send", "remove", "send", *[""] * 5]
    state.act("search", text="")
    assert [row["decided"] for row in shown(audit, "decide")["table"]["rows"]] == words()
    finished(audit)
    assert words() == ["", "send", "remove", "send", *[""] * 5], "decisions survive another check"


@pytest.mark.slow
def test_the_cost_of_suggestions_is_said_before_and_they_are_checked_on_request():
    audit = audited()
    state = audit
    assert not shown(audit, "decide")["to_check"]
    state.act("decide_domain", domain="gmial.com", what="suggestion")
    audit.work.wait(30)
    decide = shown(audit, "decide")
    assert decide["to_check"] == {"text": "3 addresses to check: costs nothing."}
    assert {each["id"]: each["count"] for each in decide["actions"]}["unchecked"] == "4 rows"
    state.act("check_decided")
    audit.work.wait(30)
    assert not shown(audit, "decide")["to_check"]
    assert result_of(audit)["mail_decided_address"].dropna().tolist() == [
        "bob@gmail.com",
        "BOB@gmail.com",
        "di@gmail.com",
    ]
    assert result_of(audit)["mail_clean"].tolist()[6] == "di@gmail.com"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet"])
def test_decisions_in_a_file_of_the_page_hold_when_it_is_loaded_again(kind):
    audit = audited()
    state, files = audit, []
    state.on_file = lambda name, path, by: files.append(path)
    for rows, what in (([1], "suggestion"), ([2], "send"), ([0, 4], "remove"), ([6], "suggestion")):
        state.act("decide", rows=rows, what=what)
    finished(audit)
    state.act("decide", rows=[6], what="remove")
    state.act("download", which="everything", kind=kind)
    audit.work.wait(30)
    before = result_of(audit)
    again = ready(files[0], column="mail", validation_type="regex")
    again.set_repair("split", is_on=False)
    finished(again)
    columns = ["mail_decision", "mail_decided_address", "mail_verdict"]
    assert result_of(again)[columns].astype("string").equals(before[columns].astype("string"))
    assert result_of(again)["mail_decision"].fillna("").tolist() == [
        *("remove", "suggestion", "send", "suggestion", "remove", "", "remove", "", "")
    ]
    assert again.choices.decided.to_dict() == state.choices.decided.to_dict()
    assert mv.decide(result_of(again), "mail")["mail_action"].tolist()[:3] == [
        "drop",
        "send",
        "send",
    ]
