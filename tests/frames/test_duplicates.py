"""Rows of the same mailbox."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mailverdict as mv
from mailverdict.frames.duplicates import SentMailboxes
from tests.doubles.tables import each_row

LOCALS = ["ada", "A.da", "ada+x", "a-da", "a_da", "ADA+y.z", "bob", "b.ob"]
DOMAINS = [
    "gmail.com",
    "googlemail.com",
    "Firm.example",
    "firm.example",
    "pm.me",
    "proton.me",
    "ya.ru",
    "yandex.com",
]
ADDRESSES = st.builds("{}@{}".format, st.sampled_from(LOCALS), st.sampled_from(DOMAINS))
WRAPPINGS = st.sampled_from(["{}", " {} ", "<{}>", "Ada <{}>", "mailto:{}", "{};"])
CELLS = st.one_of(
    st.builds(lambda form, address: form.format(address), WRAPPINGS, ADDRESSES),
    st.sampled_from([None, "", "  ", "nobody", 7, "ada@", float("nan")]),
)


def mailbox_of(cell):
    """The mailbox of a cell, defined one cell and one provider at a time."""
    text = str(cell).strip(" <>;").removeprefix("Ada <").removeprefix("mailto:")
    local, at, domain = text.lower().rpartition("@")
    if not at or not domain:
        return None
    if domain in ("gmail.com", "googlemail.com"):
        return local.split("+")[0].replace(".", "") + "@gmail.com"
    if domain in ("pm.me", "proton.me"):
        return "".join(c for c in local.split("+")[0] if c not in "._-") + "@proton.me"
    if domain in ("ya.ru", "yandex.com"):
        return local.split("+")[0].replace("-", ".") + "@yandex.ru"
    return f"{local}@{domain}"


@pytest.mark.slow
@given(st.lists(CELLS, max_size=30))
def test_it_agrees_with_a_comparison_of_all_pairs(cells):
    found = mv.duplicates(cells)
    mailboxes = [mailbox_of(cell) for cell in cells]
    first = [mailboxes.index(each) for each in mailboxes]
    expected = pd.DataFrame(
        {
            "identity": pd.array(mailboxes, dtype="string[pyarrow]"),
            "duplicate_of": pd.array(
                [
                    None if box is None or at == row else at
                    for row, (box, at) in enumerate(zip(mailboxes, first, strict=True))
                ],
                dtype="Int64",
            ),
            "copies": pd.array(
                [None if box is None else mailboxes.count(box) for box in mailboxes], dtype="Int64"
            ),
        }
    )
    pd.testing.assert_frame_equal(found, expected)


TWINS = ["ada@gmail.com", "bob@firm.example", "a.da@googlemail.com", None]


@each_row(
    ("index", "dtype"),
    [
        (pd.RangeIndex(4), "Int64"),
        (pd.Index([30, 10, 20, 40]), "Int64"),
        (pd.Index([3, 1, 2, 4], dtype="uint8"), "UInt8"),
        (pd.Index(["a", "b", "c", "d"]), "string"),
        (pd.Index(["a", "a", "a", "a"]), "string"),
        (pd.Index([0.0, 1.0, 2.0, 3.0]), "float64"),
        (pd.date_range("2026-01-01", periods=4), "datetime64"),
        (pd.date_range("2026-01-01", periods=4, tz="UTC"), "datetime64"),
        (pd.CategoricalIndex(["a", "b", "c", "d"]), "category"),
        (pd.MultiIndex.from_product([["a", "b"], [1, 2]]), "object"),
        (pd.Index([1, "a", None, 2.5]), "object"),
    ],
)
def test_a_duplicate_names_the_label_of_the_first_row(index, dtype):
    frame = pd.DataFrame({"email": TWINS, "n": range(4)}, index=index)
    out = mv.duplicates(frame, "email")
    assert out.index.equals(index)
    assert str(out["email_duplicate_of"].dtype).startswith(dtype)
    assert out["email_duplicate_of"].isna().tolist() == [True, True, False, True]
    assert out["email_duplicate_of"].iloc[2] == index[0]
    assert out["email_copies"].tolist() == [2, 1, 2, pd.NA]
    assert list(frame.columns) == ["email", "n"]


@each_row(
    "labels",
    [
        [None, "b", "c", "d"],
        [float("nan"), 1.0, 2.0, 3.0],
        [pd.NaT, *pd.date_range("2026", periods=3)],
    ],
)
def test_a_first_row_without_a_label_is_named_by_its_position(labels):
    found = mv.duplicates(
        pd.DataFrame({"email": ["bob@firm.example", *TWINS]}, index=["z", *labels]), "email"
    )
    assert found["email_duplicate_of"].isna().tolist() == [True, True, False, False, True]
    assert found["email_duplicate_of"].tolist()[2:4] == ["z", 1]


def test_polars_and_arrow_frames_name_the_position_of_the_first_row():
    polars = mv.duplicates(pl.DataFrame({"email": TWINS}), "email")
    assert polars["email_duplicate_of"].to_list() == [None, None, 0, None]
    assert polars["email_copies"].to_list() == [2, 1, 2, None]
    arrow = mv.duplicates(pa.table({"email": TWINS}), "email")
    assert arrow["email_identity"].to_pylist() == [
        "ada@gmail.com",
        "bob@firm.example",
        "ada@gmail.com",
        None,
    ]
    assert arrow["email_duplicate_of"].to_pylist() == [None, None, 0, None]


@each_row("cells", [[], [None, None], pd.Series([], dtype="string"), pd.Series([1.5, 2.5])])
def test_a_column_without_addresses_has_no_duplicates(cells):
    out = mv.duplicates(cells)
    assert out.dtypes.astype(str).to_dict() == {
        "identity": "string",
        "duplicate_of": "Int64",
        "copies": "Int64",
    }
    assert out.isna().all(axis=None)
    assert len(out) == len(cells)


def test_its_own_columns_are_replaced_and_nobody_else_s():
    frame = pd.DataFrame({"email": TWINS})
    again = mv.duplicates(mv.duplicates(frame, "email"), "email")
    pd.testing.assert_frame_equal(again, mv.duplicates(frame, "email"))
    table = mv.duplicates(pa.table({"email": TWINS}), "email")
    assert mv.duplicates(table, "email").equals(table)
    with pytest.raises(mv.SettingsError, match="email_copies"):
        mv.duplicates(frame.assign(email_copies=1), "email")


def test_the_first_sent_row_of_a_mailbox_is_named_over_all_pieces():
    sent = SentMailboxes()
    first = sent.find_repeats(pa.array(["ada@x.example", None, "bo@x.example", "ada@x.example"]))
    assert first.tolist() == [0, 0, 0, 1]
    second = sent.find_repeats(pa.array([None, "cy@x.example", "bo@x.example", "cy@x.example"]))
    assert second.tolist() == [0, 0, 3, 6]
    assert sent.find_repeats(pa.nulls(2, pa.string())).tolist() == [0, 0]
    assert sent.find_repeats(pa.array(["ada@x.example"])).tolist() == [1]
