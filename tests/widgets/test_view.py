"""What a page shows of a state: the line in sight, names of what can be undone, what cannot be done and why."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from mailverdict.errors import ResolverError
from tests.doubles.answering_backend import AnsweringBackend, unknown
from tests.widgets.conftest import finished, message, ready, shown

MAILS = [
    "Ada <ada@example.org>",
    "bob@gmial.com",
    "cy@gmial.com",
    "di@outlok.com",
    "nobody",
    None,
    "mailto:bob@example.org",
    "BOB@example.org",
]


def frame() -> pd.DataFrame:
    return pd.DataFrame({"Record ID": range(101, 109), "Email": MAILS})


@pytest.fixture
def audit():
    return finished(ready(frame(), validation_type="regex", column="Email"))


# --- the line that stays in sight ------------------------------------------------------------------


def test_the_line_says_what_is_to_be_checked_then_who_can_be_mailed():
    audit = ready(frame(), AnsweringBackend(), column="Email")
    line = shown(audit, "page")["line"]
    to_check = shown(audit, "check")["plan"]["figures"][2]
    assert line["text"] == f"{to_check['number']} addresses to check"
    assert (line["label"], line["enabled"]) == ("Verify", True)
    finished(audit)
    line = shown(audit, "page")["line"]
    counts = audit.result.listing.counts
    assert line["text"] == f"{counts.people} people, {counts.actions['send']} rows"
    assert line["label"] == "Download send list"


def test_tidy_is_one_line_with_what_is_on_by_default(audit):
    assert not shown(audit, "page")["open"]["tidy"]
    assert shown(audit, "tidy")["summary"] == (
        "2 cells repaired in 2 ways · 1 repeat · 3 likely typos"
    )


def test_likely_typos_are_listed_by_domain_and_accepted_together(audit):
    part = shown(audit, "tidy")["suggestions"]
    assert [(each["before"], each["after"], each["rows"]) for each in part["items"]] == [
        ("gmial.com", "gmail.com", "2 rows"),
        ("outlok.com", "outlook.com", "1 row"),
    ]
    audit.accept_typo(0)
    audit.work.wait(30)
    part = shown(audit, "tidy")["suggestions"]
    assert [each["accepted"] for each in part["items"]] == [True, False]
    assert part["left"] == "1 row"
    audit.accept_typo(0)
    audit.work.wait(30)
    assert audit.choices.accepted == frozenset()


# --- undo ------------------------------------------------------------------------------------------


def test_undo_says_what_it_undoes_and_several_can_be_undone(audit):
    audit.set_policy("strict")
    audit.set_repair("unwrapped", is_on=False)
    audit.act("decide", rows=[6], what="remove")
    audit.act("decide_domain", domain="gmial.com", what="send")
    audit.work.wait(30)
    undo = shown(audit, "page")["undo"]
    assert undo == [
        "Send anyway, gmial.com",
        "Remove, bob@example.org",
        "Names, quotes and brackets off",
        "policy Strict",
    ]
    audit.undo()
    page = shown(audit, "page")
    assert page["redo"] == "Send anyway, gmial.com"
    assert page["said"] == "Undone: Send anyway, gmial.com."
    audit.act("undo_several", count=3)
    audit.work.wait(30)
    assert shown(audit, "page")["undo"] == []
    assert audit.choices.policy == "balanced"


def test_a_row_without_an_address_cannot_be_sent_and_that_leaves_nothing_to_undo(audit):
    rows = shown(audit, "decide")["table"]["rows"]
    assert [row["can_send"] for row in rows[3:7]] == [True, False, False, True]
    audit.act("decide", rows=[4], what="send")
    assert shown(audit, "page")["undo"] == []


def test_what_cannot_be_done_with_all_rows_that_are_shown_says_why(audit):
    audit.act("search", text="nobody")
    buttons = {each["id"]: each["why"] for each in shown(audit, "decide")["decide_shown"]}
    assert buttons == {
        "send": "none of these rows holds an address",
        "remove": "",
        "suggestion": "none of these rows has a suggestion",
    }


# --- one number each, and what is not known --------------------------------------------------------


def test_the_headline_says_what_is_not_known(audit):
    decide = shown(audit, "decide")
    assert decide["headline_text"] == "people may be mailed"
    assert decide["headline_limits"] == (
        "form checked; domains and mailboxes not asked: expect bounces"
    )
    deep = finished(ready(frame(), AnsweringBackend(), validation_type="smtp", column="Email"))
    assert shown(deep, "decide")["headline_text"] == "people can be mailed"
    assert shown(deep, "decide")["headline_limits"] == ""


def test_rows_without_a_clear_answer_are_one_number():
    mails = [*(f"full{n}@example.org" for n in range(5)), "full1@example.org", "ada@example.org"]
    backend = AnsweringBackend({f"full{n}": unknown("mailbox_full") for n in range(5)})
    audit = finished(
        ready(pd.DataFrame({"mail": mails}), backend, validation_type="smtp", policy="lenient")
    )
    decide = shown(audit, "decide")
    (part,) = [each for each in decide["picture"] if each["id"] == "unknown"]
    assert decide["unclear"].startswith(f"{part['count']} rows have no clear answer")
    assert "checks only the 5 different addresses behind them" in decide["unclear"]
    audit.check.refresh(is_on=True)
    audit.work.wake()
    audit.work.wait(30)
    assert audit.plan.to_submit == 5


def test_a_list_that_reached_nobody_yet_is_no_result():
    class Offline(AnsweringBackend):
        async def verify(self, batch, in_flight=()):
            raise ResolverError("192.0.2.1 gave no answer. Use LocalBackend(resolver='9.9.9.9')")
            yield

    audit = finished(ready(frame(), Offline(), validation_type="smtp", column="Email"))
    assert audit.check.state == "failed"
    assert message(audit) == (
        "This computer has no connection to the internet, or its network does not let it look up "
        "domains. What is checked so far is kept. Press Resume when it is back."
    )
    assert not shown(audit, "decide")["is_ready"]
    assert shown(audit, "page")["can"]["decide"] is False


# --- the address, and files for services -----------------------------------------------------------


def test_a_filter_is_part_of_the_address_of_the_page(audit):
    assert shown(audit, "decide")["address"] == ""
    audit.act("set_facet", facet="verdict", value="valid")
    audit.act("search", text="gmial c&y")
    audit.act("sort", key="verdict")
    audit.act("sort", key="verdict")
    address = shown(audit, "decide")["address"]
    assert address == "?verdict=valid&words=gmial+c%26y&sort=verdict&order=descending"
    found = shown(audit, "decide")["found"]
    audit.act("clear_facets")
    audit.act("look_at", address=address)
    assert shown(audit, "decide")["address"] == address
    assert shown(audit, "decide")["found"] == found
    audit.act("look_at", address="")
    assert shown(audit, "decide")["address"] == ""


@pytest.mark.parametrize("address", ["?verdict=%00&sort=x&order=descending", "?" + "a=b&" * 9000])
def test_an_address_that_is_not_of_this_list_shows_all_rows(audit, address):
    audit.act("look_at", address=address)
    assert shown(audit, "decide")["address"] == ""
    assert message(audit, "decide") == ""


def test_the_send_list_goes_back_to_the_service_that_it_came_from(audit):
    files: list[Path] = []
    audit.on_file = lambda name, path, by: files.append(path)
    audit.act("decide", rows=[3], what="remove")
    for which in ("send", "drop"):
        audit.act("download_for", service="hubspot", which=which)
        audit.work.wait(30)
    assert [file.name for file in files] == ["emails-hubspot.csv", "emails-hubspot-remove.csv"]
    send, remove = (pd.read_csv(file) for file in files)
    assert list(send.columns) == ["Record ID", "Email"]
    assert send["Record ID"].tolist() == [101, 107]
    assert send["Email"].tolist() == ["ada@example.org", "bob@example.org"]
    assert 104 in remove["Record ID"].tolist()
    assert not set(send["Record ID"]) & set(remove["Record ID"])
    assert "HubSpot finds people by the column 'Record ID'." in message(audit, "decide")
    labels = {each["id"]: each["means"] for each in shown(audit, "decide")["services"]}
    assert labels["hubspot"] == "Record ID and Email, and nothing else."
    assert labels["mailchimp"] == "Email Address, and nothing else."


def test_a_service_that_is_not_known_is_refused(audit):
    audit.act("download_for", service="mailpit", which="send")
    assert "is not a service whose importer is known" in message(audit, "decide")


def test_how_files_are_made_is_chosen_once_for_filters_checks_and_addresses(audit):
    assert shown(audit, "decide")["save_as"] == {"service": "", "format": "csv"}
    audit.act("save_as", service="hubspot", format="xlsx")
    audit.act("look_at", address="?verdict=valid")
    audit.act("clear_facets")
    finished(audit)
    assert shown(audit, "decide")["save_as"] == {"service": "hubspot", "format": "xlsx"}
    audit.act("save_as", service="hubspot", format="doc")
    assert message(audit, "decide") == "'doc' is not a format; there are csv, xlsx, parquet."
    audit.act("save_as", service="mailpit", format="csv")
    assert "is not a service whose importer is known" in message(audit, "decide")
    assert shown(audit, "decide")["save_as"] == {"service": "hubspot", "format": "xlsx"}
