"""The card that says where invalid addresses come from; its groups filter the rows."""

from __future__ import annotations

import pandas as pd
import pytest

from mailverdict.widgets.listing import column_of_group, group_value
from tests.doubles.simulated_origins import simulated_list
from tests.widgets.conftest import finished, message, ready, shown


@pytest.fixture(scope="module")
def audit():
    """A checked list with a bad source."""
    out = simulated_list(1, has_effect=True)
    frame = out[["email", "source", "words_5", "amount", "since"]]
    return finished(ready(frame, column="email", validation_type="regex"))


def origins(audit):
    return shown(audit, "decide")["origins"]


def test_the_worst_group_is_named_first(audit):
    card = origins(audit)
    assert card["headline"].startswith("1,500 people, ")
    assert card["found"][0]["text"].startswith("source “Fair”: ")
    assert next(each["label"] for each in card["columns"]) == "source"
    assert card["groups"][0]["label"] == "Fair"
    assert card["groups"][0]["people"] == "100"
    assert any(line.startswith("Say nothing: ") for line in card["rest"])


def test_a_group_filters_the_rows_and_another_press_shows_all(audit):
    card = origins(audit)
    fair = card["groups"][0]
    audit.act("set_facet", facet="group", value=fair["id"])
    decide = shown(audit, "decide")
    assert decide["table"]["total"] == 100
    assert decide["is_filtered"]
    assert decide["origins"]["groups"][0]["on"]
    assert decide["origins"]["found"][0]["on"]
    audit.act("set_facet", facet="group", value=fair["id"])
    assert shown(audit, "decide")["table"]["total"] == 1_500


def test_groups_of_one_column_add_up_and_of_another_one_replace_them(audit):
    card = origins(audit)
    first, second = card["groups"][:2]
    for each in (first, second):
        audit.act("set_facet", facet="group", value=each["id"])
    listing = audit.result.listing
    sources = listing.rows.frame["source"]
    wanted = sources.isin([first["label"], second["label"]]).sum()
    assert shown(audit, "decide")["table"]["total"] == wanted
    at = next(each["id"] for each in card["columns"] if each["label"] == "amount")
    audit.act("show_groups", column=at)
    amounts = origins(audit)["groups"]
    audit.act("set_facet", facet="group", value=amounts[0]["id"])
    assert shown(audit, "decide")["table"]["total"] == int(amounts[0]["people"])
    audit.act("clear_facets")
    assert shown(audit, "decide")["table"]["total"] == 1_500


def test_it_combines_with_other_filters(audit):
    fair = origins(audit)["found"][0]
    audit.act("set_facet", facet="group", value=fair["id"])
    audit.act("set_facet", facet="verdict", value="invalid")
    number = shown(audit, "decide")["table"]["total"]
    assert f"{number}.0% invalid of 100" in fair["text"]
    audit.act("clear_facets")


def test_what_names_no_group_finds_no_row(audit):
    for value in ("", "x", "99 Fair", "-1 Fair", "1 nothing", "0 p1@firm.example", "²3 Fair"):
        audit.act("set_facet", facet="group", value=value)
        assert shown(audit, "decide")["table"]["total"] == 0
        audit.act("clear_facets")
    audit.act("show_groups", column=999)
    assert origins(audit)["groups"][0]["label"] == "Fair"


def test_a_group_is_named_by_the_position_of_its_column():
    assert column_of_group(group_value(7, "Trade fair 2023")) == 7


def test_a_list_of_addresses_alone_has_no_card():
    audit = finished(
        ready(
            pd.DataFrame({"email": ["ada@x.org", "bo@x"]}), column="email", validation_type="regex"
        )
    )
    assert origins(audit) is None
    assert message(audit, "decide") is not None
