"""The table: facets, words, order, pages, actions; over all rows, in Python."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.errors import SettingsError
from mailverdict.frames.policy import POLICIES
from mailverdict.frames.results import BUCKETS
from mailverdict.model.words import ACTIONS
from mailverdict.sandbox.dns import DomainRecords
from mailverdict.table.columns import COLUMNS
from mailverdict.widgets.listing import LONGEST_CELL, OTHER_COLUMNS, PAGE_ROWS, Listing
from tests.doubles.tables import first_ones
from tests.widgets.conftest import finished, ready, shown

MAILS = ["ada@example.org", "info@gmial.com", "no at sign", None, "bob@mailinator.com"]


def listing(frame: pd.DataFrame, column: object = None, **options) -> Listing:
    return finished(ready(frame, column=column, validation_type="regex", **options)).result.listing


@pytest.fixture
def small() -> Listing:
    names = ["Ada Lovelace", "Info", "<b>Bad</b>", "None", "Bob Ünal"]
    return listing(pd.DataFrame({"who": names, "mail": MAILS}, index=list("vwxyz")))


def test_counts_are_complete_and_in_order(small):
    verdicts, actions = small.counts.buckets, small.counts.actions
    assert tuple(verdicts) == BUCKETS
    assert tuple(actions) == ACTIONS
    assert {name: count for name, count in verdicts.items() if count} == {
        "valid": 3,
        "invalid": 1,
        "missing": 1,
    }
    assert actions == {"send": 1, "review": 1, "retry": 0, "drop": 2, "unchecked": 1}
    assert small.count("reason") == {"syntax_error": 1, "typo": 1, "disposable": 1, "missing": 1}
    assert small.count("domain") == {"example.org": 1, "gmial.com": 1, "mailinator.com": 1}


@pytest.mark.parametrize("policy", POLICIES)
def test_actions_are_those_of_decide(policy):
    mails = [
        *MAILS,
        "info@example.org",
        "=x",
        "Ada <ada@firm.com>",
        "a@b.com; c@d.com",
        5,
        "<bob@mailinator.com>",
    ]
    mails += ["cy@firm.com", "di@firm.com - do not contact", "info@firm.com (unsubscribed)"]
    found = listing(pd.DataFrame({"mail": mails}), "mail", policy=policy)
    expected = mv.decide(found.rows.to_frame(), "mail", policy=policy)
    assert [ACTIONS[code] for code in found.action] == expected["mail_action"].tolist()
    decided = found.decide(columns=COLUMNS)
    repeated = expected["mail_duplicate_of"].notna() & (expected["mail_action"] == "drop")
    assert set(decided["mail_action_why"][repeated]) <= {"the same mailbox as row 5"}
    expected["mail_action_why"] = expected["mail_action_why"].mask(
        repeated, "the same mailbox as row 5"
    )
    pd.testing.assert_frame_equal(decided, expected)


def test_a_listed_domain_at_an_operator_for_companies_is_reviewed():
    frame = pd.DataFrame({"mail": ["ada@mailinator.com", "ada@yopmail.com"]})
    zones = {
        "mailinator.com": DomainRecords({"MX": ("10 aspmx.l.google.com",)}),
        "yopmail.com": DomainRecords({"MX": ("10 smtp.yopmail.com",)}),
    }
    with mv.sandbox.World(zones) as world:
        page = ready(frame, world.backend, column="mail", validation_type="mx")
        found = finished(page).result.listing
    assert found.counts.actions["review"] == found.counts.actions["drop"] == 1
    assert found.decide()["mail_action"].tolist() == ["review", "drop"]


@pytest.mark.parametrize(
    ("facets", "words", "rows"),
    first_ones(
        [
            ({}, "", [0, 1, 2, 3, 4]),
            ({"verdict": ["valid"]}, "", [0, 1, 4]),
            ({"verdict": ["missing", "invalid"]}, "", [2, 3]),
            ({"reason": ["syntax_error"]}, "", [2]),
            # Valid, and removed by the policy.
            (
                {"reason": ["disposable"], "action": ["drop"]},
                "",
                [4],
            ),
            ({}, "likely", [1]),
            ({"action": ["drop"]}, "", [2, 4]),
            ({"verdict": ["valid"], "action": ["drop"]}, "", [4]),
            ({"domain": ["gmial.com"]}, "", [1]),
            ({}, "LOVELACE", [0]),
            ({}, "gmail.com", [1]),  # a suggestion
            ({}, "ünal BOB", [4]),
            ({}, "ada bob", []),
            ({}, "<b>", [2]),
            ({}, ".*", []),
            ({}, "   ", [0, 1, 2, 3, 4]),
            ({}, "not an address", [2]),  # the words of the reason
            ({"verdict": ["valid"]}, "bob", [4]),
        ],
        9,
    ),
)
def test_rows_are_found(small, facets, words, rows):
    for facet, values in facets.items():
        for value in values:
            small.toggle(facet, value)
    small.search(words)
    assert small.found().tolist() == rows


def test_counts_of_a_facet_follow_the_other_facets(small):
    small.toggle("verdict", "valid")
    assert small.count("verdict") == {"valid": 3, "invalid": 1, "missing": 1}, (
        "its own values can be added"
    )
    assert small.count("action") == {"send": 1, "review": 1, "drop": 1, "unchecked": 0}, (
        "no value goes away"
    )
    assert small.count("domain") == {"example.org": 1, "gmial.com": 1, "mailinator.com": 1}
    small.toggle("action", "drop")
    assert small.count("verdict")["valid"] == 1
    small.clear()
    assert len(small.found()) == 5


def test_the_repairs_are_a_facet():
    mails = ["Ada <Ada@EXAMPLE.org>", "<bob@example.org>", "cy@example.org", None]
    found = listing(pd.DataFrame({"mail": mails}))
    assert found.count("repaired") == {"unwrapped": 2, "case": 1}
    found.toggle("repaired", "case")
    assert found.found().tolist() == [0]


@pytest.mark.parametrize(
    ("key", "rows"),
    [
        ("column 1", [0, 4, 1, 2, 3]),
        ("verdict", [0, 1, 4, 2, 3]),
        ("action", [0, 1, 2, 4, 3]),
        ("column 0", [2, 0, 4, 1, 3]),
        ("suggestion", [1, 0, 2, 3, 4]),
    ],
)
def test_rows_are_sorted_and_reversed_and_restored(small, key, rows):
    small.sort(key)
    assert small.found().tolist() == rows
    small.sort(key)
    assert small.found().tolist() == rows[::-1]
    small.sort(key)
    assert small.found().tolist() == [0, 1, 2, 3, 4]


def test_odd_columns_can_be_sorted():
    cells = [["b"], 3, None, "x"]
    found = listing(pd.DataFrame({"odd": cells, "mail": ["ada@example.org"] * 4}))
    found.sort("column 0")
    assert found.found().tolist() == [1, 0, 3, 2]


def test_a_page_shows_the_address_first_then_what_was_found(small):
    assert [head["label"] for head in small.heads()] == [
        "mail",
        "Verdict",
        "Why",
        "What to do",
        "Did you mean",
        "who",
    ]
    page = small.page(np.array([1, 2, 4]))
    assert [row["row"] for row in page] == ["2", "3", "5"]
    assert page[0]["cells"] == {
        "clean": "",
        "suggestion": "info@gmail.com",
        "column 1": "info@gmial.com",
        "column 0": "Info",
    }
    assert page[0]["why"] == "probably mistyped: did you mean info@gmail.com?"
    assert (page[1]["verdict"], page[1]["reason"], page[1]["action"]) == (
        "invalid",
        "Not an address",
        "drop",
    )
    assert page[2]["reason"] == "Disposable address"


@pytest.mark.slow
def test_of_300_columns_a_few_are_shown_and_all_are_kept():
    frame = pd.DataFrame({f"c{n}": ["x"] for n in range(299)} | {"mail": ["ada@example.org"]})
    wide = listing(frame)
    assert len(wide.heads()) == 4 + OTHER_COLUMNS
    assert wide.columns_left_out() == 299 - OTHER_COLUMNS
    assert list(wide.rows.to_frame().columns[:300]) == list(frame.columns)


def test_columns_that_the_audit_added_are_not_among_those_left_out():
    frame = pd.DataFrame(
        {f"c{n}": ["x"] for n in range(OTHER_COLUMNS)} | {"mail": ["ada@example.org"]}
    )
    added = mv.suppress(frame, "mail", ["bob@example.org"]).assign(
        mail_duplicate_of=pd.NA, mail_copies=1
    )
    assert listing(added).columns_left_out() == 0


def test_cells_of_any_kind_are_short_texts():
    cells = [
        1.5,
        ["a", None],
        {"k": 1},
        b"\xff",
        "\ud800",
        pd.Timestamp("2026-01-02"),
        None,
        float("nan"),
        "y" * 9999,
    ]
    page = listing(pd.DataFrame({"odd": cells, "mail": ["ada@example.org"] * 9})).page(np.arange(9))
    texts = [row["cells"]["column 0"] for row in page]
    assert texts[0] == "1.5"
    assert texts[6:8] == ["", ""]
    assert all(isinstance(text, str) and len(text) <= LONGEST_CELL for text in texts)
    assert all(text.encode() for text in texts[:6])


def test_columns_named_like_ours_or_twice_are_all_shown():
    frame = pd.DataFrame(
        [["ada@example.org", "theirs", 1, 2]], columns=["mail", "verdict", "x", "x"]
    )
    found = listing(frame)
    assert [head["label"] for head in found.heads()][-3:] == ["verdict", "x", "x"]
    assert [found.page(np.array([0]))[0]["cells"][f"column {at}"] for at in (1, 2, 3)] == [
        "theirs",
        "1",
        "2",
    ]


def test_columns_on_several_levels_work():
    names = pd.MultiIndex.from_tuples([("w", "mail"), ("w", "name")])
    found = listing(pd.DataFrame([["ada@example.org", "Ada"]], columns=names), ("w", "mail"))
    assert found.page(np.array([0]))[0]["verdict"] == "valid"
    assert ("w", "mail_action") in found.decide().columns


def test_a_column_without_any_answer_can_be_listed():
    empty = listing(pd.DataFrame({"mail": [None, ""]}), "mail", policy="strict")
    assert empty.count("reason") == {"missing": 2}
    assert empty.count("domain") == {}
    assert len(empty.page(empty.found())) == 2


@pytest.mark.slow
def test_the_window_of_the_table_stays_within_the_rows():
    mails = [f"a{n}@example.org" for n in range(2 * PAGE_ROWS + 1)]
    audit = finished(ready(pd.DataFrame({"mail": mails}), validation_type="regex"))
    state = audit

    def table() -> tuple[int, int, list[int]]:
        found = shown(audit, "decide")["table"]
        return found["first"], found["total"], [row["at"] for row in found["rows"]]

    assert table() == (0, 101, list(range(PAGE_ROWS)))
    state.result.rows(99, 200)
    assert table() == (99, 101, [99, 100])
    state.result.rows(10**9, 10**9)
    assert table() == (100, 101, [100])
    state.result.rows(-5, -5)
    assert table() == (0, 101, [0])
    state.result.rows(100, 50)
    state.result.set_facet("verdict", "invalid")
    assert table() == (0, 0, [])


def test_a_filter_survives_another_policy_and_a_second_run():
    audit = finished(ready(pd.DataFrame({"mail": MAILS}), validation_type="regex"))
    audit.result.set_facet("action", "drop")
    audit.result.search("bob")
    audit.set_policy("lenient")
    assert shown(audit, "decide")["found"] == "0 of 5 rows"
    audit.set_policy("balanced")
    finished(audit)
    assert shown(audit, "decide")["found"] == "1 of 5 rows"
    assert [part["on"] for part in shown(audit, "decide")["picture"]] == [False, False, False]


def test_a_policy_of_ones_own_can_be_chosen():
    mine = mv.Policy("mine", send=["valid", "invalid"], drop=[])
    audit = finished(ready(pd.DataFrame({"mail": MAILS}), validation_type="regex", policy=mine))
    assert shown(audit, "decide")["policy"] == "mine"
    assert audit.result.listing.counts.actions["send"] == 3


@pytest.mark.parametrize(
    "act",
    [
        lambda state: state.result.set_facet("colour", "x"),
        lambda state: state.result.sort("column 99"),
        lambda state: state.set_policy("reckless"),
        lambda state: state.download("all", "csv"),
        lambda state: state.download("send", "exe"),
        lambda state: state.set_depth("deep"),
        lambda state: state.open_earlier(3),
    ],
)
def test_what_a_page_cannot_mean_is_refused(act):
    audit = finished(ready(pd.DataFrame({"mail": MAILS}), validation_type="regex"))
    with pytest.raises(SettingsError):
        act(audit)


def test_without_a_result_there_is_nothing_to_filter():
    with pytest.raises(SettingsError, match="no result yet"):
        ready(pd.DataFrame({"mail": MAILS}), validation_type="regex").look("search", text="x")
