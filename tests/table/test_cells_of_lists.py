"""Cells that are lists of texts: read for a repair in every kind of frame, and never dropped."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.table.cells import read_texts, texts_of
from tests.doubles.tables import each_row

CELLS = [
    ["ada@firm.com"],
    ["Bob <bob@FIRM.com>", None],
    ["ada@firm.com", "bob@firm.com"],
    ['"Byron, Ada" <ada@firm.com>'],
    ["nobody"],
    [],
    [None],
    [" "],
    None,
]
CLEAN = ["ada@firm.com", "bob@firm.com", None, "ada@firm.com", None, None, None, None, None]
CHANGE = ["list", "list;unwrapped;case", "", "unwrapped", "", None, None, None, None]
STATUS = ["done"] * 5 + ["missing"] * 4
ACTION = ["send", "send", "review", "send", "drop", *["unchecked"] * 4]
EXPLODED = [
    *("ada@firm.com", "Bob <bob@FIRM.com>", "ada@firm.com", "bob@firm.com"),
    *('"Byron, Ada" <ada@firm.com>', "nobody", None, None, None, None),
]


def wrapped(make):
    return pd.DataFrame(
        {"email": pd.Series([None if cell is None else make(cell) for cell in CELLS], dtype=object)}
    )


FRAMES = {
    "lists": lambda: wrapped(list),
    "tuples": lambda: wrapped(tuple),
    "arrays": lambda: wrapped(lambda cell: np.array(cell, dtype=object)),
    "pandas, Arrow type": lambda: pd.DataFrame(
        {"email": pd.Series(CELLS, dtype=pd.ArrowDtype(pa.list_(pa.string())))}
    ),
    "Arrow": lambda: pa.table({"email": CELLS}),
    "Arrow, large": lambda: pa.table({"email": pa.array(CELLS, pa.large_list(pa.large_string()))}),
    "Arrow, dictionary": lambda: pa.table(
        {"email": pa.array(CELLS, pa.list_(pa.dictionary(pa.int8(), pa.string())))}
    ),
    "Arrow, pieces": lambda: pa.table({"email": pa.chunked_array([CELLS[:3], CELLS[3:]])}),
    "Arrow, slice": lambda: pa.table({"email": [["x@y.com"], *CELLS, ["x@y.com"]]}).slice(
        1, len(CELLS)
    ),
    "Polars": lambda: pl.DataFrame({"email": CELLS}),
}


def cells_of(out, name):
    return out[name].to_pylist() if isinstance(out, pa.Table) else out[name].to_list()


def column(out, name):
    return [None if pd.isna(cell) else cell for cell in cells_of(out, name)]


@pytest.fixture(params=FRAMES.values(), ids=FRAMES)
def frame(request):
    return request.param()


def test_clean_reads_the_only_text_of_a_list(frame):
    out = mv.clean(frame, "email")
    assert column(out, "email_clean") == CLEAN
    assert column(out, "email_change") == CHANGE


@pytest.mark.filterwarnings("ignore:.*several addresses:UserWarning")
def test_verify_verifies_it_and_empty_lists_are_missing(frame):
    out = mv.decide(mv.verify(frame, "email", validation_type="regex"), "email")
    assert column(out, "email_clean") == CLEAN
    assert column(out, "email_status") == STATUS
    assert column(out, "email_action") == ACTION


def test_a_list_with_an_address_is_never_dropped_without_repairs(frame):
    out = mv.decide(mv.verify(frame, "email", validation_type="regex", clean=False), "email")
    assert column(out, "email_status") == STATUS
    assert column(out, "email_action") == [action.replace("send", "review") for action in ACTION]
    assert column(out, "email_action_why")[0] == "would be ada@firm.com after cleaning"
    assert column(out, "email_action_why")[2] == "holds 2 addresses: give each a row of its own"


def test_explode_gives_each_text_of_a_list_a_row(frame):
    out = mv.explode(frame, "email")
    assert [cell if isinstance(cell, str) else None for cell in cells_of(out, "email")] == EXPLODED
    assert column(out, "email_part") == [1, 1, 1, 2, *[1] * 6]


@each_row("column_type", [pa.list_(pa.string()), pa.list_(pa.string(), 1)])
def test_an_exploded_column_of_lists_is_text_even_if_all_are_empty(column_type):
    out = mv.explode(pa.table({"email": pa.array([None, [None]], column_type)}), "email")
    assert (out["email"].type, out["email"].to_pylist()) == (pa.string(), [None, None])


def test_lists_of_a_fixed_size_are_read():
    cells = pa.array([["ada@firm.com"], None, [None]], pa.list_(pa.string(), 1))
    assert mv.clean(pa.table({"email": cells}), "email")["email_clean"].to_pylist() == [
        "ada@firm.com",
        None,
        None,
    ]


@each_row("cell", [["ada@firm.com", 1], [["ada@firm.com"]], [{"email": "ada@firm.com"}]])
def test_a_list_of_something_else_is_read_as_its_text(cell):
    frame = pd.DataFrame({"email": pd.Series([cell, "bob@firm.com"], dtype=object)})
    out = mv.decide(mv.verify(frame, "email", validation_type="regex"), "email")
    assert out["email_clean"].tolist() == ["ada@firm.com", "bob@firm.com"]
    assert out["email_action"].tolist() == ["send", "send"]


def test_a_list_of_octets_that_are_not_text_is_reviewed():
    frame = pd.DataFrame({"email": pd.Series([(b"\xff@x.com",), "bob@firm.com"], dtype=object)})
    out = mv.decide(mv.verify(frame, "email", validation_type="regex"), "email")
    assert out["email_action"].tolist() == ["review", "send"]


def test_a_value_of_any_type_is_read_as_its_text():
    class Contact:
        def __str__(self):
            return "Ada <ada@firm.com>"

    frame = pd.DataFrame({"email": [Contact(), 5, "bob@firm.com"]})
    out = mv.decide(mv.verify(frame, "email", validation_type="regex"), "email")
    assert out["email_clean"].tolist()[::2] == ["ada@firm.com", "bob@firm.com"]
    assert out["email_action"].tolist() == ["send", "drop", "send"]


def test_arrow_lists_are_written_as_python_lists_are():
    cells = [["a"], ["b", "c"], ['"'], ["\\"], ["\u00e9\n", ""], [], None, [None, "d"]]
    typed = read_texts(pa.array(cells)).to_pylist()
    objects = read_texts(pd.Series(cells, dtype=object)).to_pylist()
    assert typed == objects
    assert [row for row, text in enumerate(typed) if text] == [0, 1, 2, 3, 4, 7]


def test_texts_of_a_list():
    assert texts_of({"b", "a"}) == ["a", "b"]
    assert texts_of(np.array([["a"]])) is None
    assert texts_of([np.nan, pd.NA, "a"]) == ["a"]
