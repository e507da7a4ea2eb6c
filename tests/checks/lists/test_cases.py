"""A table of addresses: what the lists say about each, alone and in a column."""

from __future__ import annotations

import pandas as pd

import mailverdict as mv
from mailverdict.checks.lists.flags import load_lists
from mailverdict.model.settings import Lists
from tests import CASES
from tests.doubles.tables import rows_of_csv

ROWS = rows_of_csv(CASES / "lists.csv")


def test_each_address_of_the_table_has_its_flag_or_suggestion() -> None:
    found = mv.verify(
        pd.DataFrame({"email": [row["address"] for row in ROWS]}), "email", validation_type="regex"
    )
    wrong = []
    for at, row in enumerate(ROWS):
        value = found[f"email_{row['field']}"][at]
        text = (
            ""
            if pd.isna(value)
            else str(value)
            if row["field"] == "suggestion"
            else str(value).lower()
        )
        if text != row["expected"]:
            wrong.append((row["address"], row["field"], text, row["why"]))
    assert wrong == []


def test_one_address_has_the_flags_of_the_column() -> None:
    lists = load_lists(Lists())
    flagged = [row for row in ROWS if row["field"] != "suggestion"]
    flags = [lists.flags(*row["address"].split("@")) for row in flagged]
    assert [
        str(getattr(each, row["field"])).lower() for each, row in zip(flags, flagged, strict=True)
    ] == [row["expected"] for row in flagged]
