"""Exploding: a row for each address, and the rows of before come back by grouping on the index."""

from __future__ import annotations

import warnings

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mailverdict as mv
from tests.doubles.tables import each_row

CELLS = [
    "ada@firm.com; Bob <bob@firm.com>",
    None,
    " cy@firm.com ",
    "nobody",
    "a@x.com\nb@x.com and c@x.com",
]
EXPLODED = [
    "ada@firm.com",
    "bob@firm.com",
    None,
    " cy@firm.com ",
    "nobody",
    "a@x.com",
    "b@x.com",
    "c@x.com",
]
PARTS = [1, 2, 1, 1, 1, 1, 2, 3]
ROWS = [0, 0, 1, 2, 3, 4, 4, 4]


@each_row("dtype", [object, "str", "string", "category"])
def test_a_pandas_frame_keeps_its_index_and_other_cells(dtype):
    frame = pd.DataFrame({"n": range(5), "email": pd.Series(CELLS, dtype=dtype)})
    frame.index = pd.Index([7, 7, 8, 9, 10], name="id")
    before = frame.copy(deep=True)
    out = mv.explode(frame, "email")
    assert out["email"].astype(object).where(out["email"].notna(), None).tolist() == EXPLODED
    assert out["email_part"].tolist() == PARTS
    assert str(out["email_part"].dtype) == "Int64"
    assert out["n"].tolist() == ROWS
    assert out.index.tolist() == [frame.index[row] for row in ROWS]
    assert out.index.name == "id"
    pd.testing.assert_frame_equal(frame, before)


@each_row("kind", [pl.String, pl.Categorical])
def test_a_polars_frame_gives_a_polars_frame(kind):
    out = mv.explode(pl.DataFrame({"n": range(5), "email": pl.Series(CELLS, dtype=kind)}), "email")
    assert out["email"].to_list() == EXPLODED
    assert out["email_part"].to_list() == PARTS
    assert out["n"].to_list() == ROWS
    assert out.columns == ["n", "email", "email_part"]


@each_row("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_an_arrow_table_gives_an_arrow_table(kind):
    out = mv.explode(
        pa.table({"n": range(5), "email": pa.array(CELLS, pa.string()).cast(kind)}), "email"
    )
    assert out["email"].to_pylist() == EXPLODED
    assert out["email_part"].to_pylist() == PARTS
    assert out["n"].to_pylist() == ROWS


def test_a_frame_without_such_cells_gets_only_the_number():
    frame = pd.DataFrame({"email": ["ada@firm.com", 3, None]})
    out = mv.explode(frame, "email", prefix="e_")
    pd.testing.assert_frame_equal(out.drop(columns="e_part"), frame)
    assert out["e_part"].tolist() == [1, 1, 1]
    assert len(mv.explode(frame[:0], "email")) == 0


def test_a_column_of_the_caller_is_not_overwritten_and_a_second_call_is_allowed():
    frame = pd.DataFrame({"email": CELLS, "email_part": 5})
    with pytest.raises(mv.SettingsError, match="email_part"):
        mv.explode(frame, "email")
    once = mv.explode(frame[["email"]], "email")
    assert mv.explode(once, "email")["email_part"].eq(1).all()


def test_a_series_or_an_unknown_column_is_refused():
    with pytest.raises(mv.SettingsError, match=r"as pandas.DataFrame\({'email': data}\)"):
        mv.explode(pd.Series(CELLS), None)
    with pytest.raises(mv.ColumnError, match="no column 'mail'"):
        mv.explode(pd.DataFrame({"email": CELLS}), "mail")


PAIR = ["ada@x.example; bob@x.example", "cy@x.example", None]
PAIR_EXPLODED = ["ada@x.example", "bob@x.example", "cy@x.example", None]
PAIR_OCTETS = [cell and cell.encode() for cell in PAIR]


@each_row(
    "cells",
    [
        pa.array(PAIR, pa.string_view()),
        pa.array(PAIR).dictionary_encode(),
        pc.run_end_encode(pa.array(PAIR)),
        pa.array(PAIR_OCTETS, pa.binary_view()),
        pa.array(PAIR_OCTETS).dictionary_encode(),
        pa.array([cell and cell.ljust(28) for cell in PAIR_OCTETS], pa.binary(28)),
        pl.Series(PAIR, dtype=pl.Object),
        pl.Series(PAIR, dtype=pl.Categorical),
        pl.Series(PAIR_OCTETS),
    ],
    ids=lambda cells: str(getattr(cells, "type", getattr(cells, "dtype", None))),
)
def test_every_type_of_text_is_exploded(cells):
    frame = cells.to_frame("email") if isinstance(cells, pl.Series) else pa.table({"email": cells})
    out = mv.explode(frame, "email")
    found = out["email"].to_list() if isinstance(cells, pl.Series) else out["email"].to_pylist()
    assert [
        cell.decode().strip() if isinstance(cell, bytes) else cell for cell in found
    ] == PAIR_EXPLODED


def test_the_accessor_is_the_same():
    frame = pd.DataFrame({"email": CELLS})
    pd.testing.assert_frame_equal(frame.mailverdict.explode("email"), mv.explode(frame, "email"))


ADDRESS = st.from_regex(r"[a-z]{3,6}[0-9]?@[a-z]{2,6}\.(com|org)", fullmatch=True)
SEPARATOR = st.sampled_from(
    ["; ", ", ", ";", ",", " / ", " | ", " ", "\n", " and ", " & ", " or ", "\t"]
)
JOINED = st.tuples(st.lists(ADDRESS, min_size=1, max_size=4, unique=True), SEPARATOR)


@given(st.lists(JOINED, min_size=1, max_size=15))
def test_grouping_on_the_index_gives_the_rows_back(cells):
    frame = pd.DataFrame(
        {"email": [sign.join(addresses) for addresses, sign in cells], "n": range(len(cells))}
    )
    out = mv.explode(frame, "email")
    assert out.groupby(level=0)["email"].agg(list).tolist() == [addresses for addresses, _ in cells]
    assert out.groupby(level=0)["n"].first().tolist() == frame["n"].tolist()
    assert out.groupby(level=0)["email_part"].agg(list).tolist() == [
        [*range(1, len(a) + 1)] for a, _ in cells
    ]


PIECES = st.sampled_from(
    [
        "ada@firm.com",
        "bob@firm.com",
        "Bob <",
        ">",
        ";",
        ",",
        " ",
        "\n",
        "@",
        "x",
        "&lt;",
        "[at]",
        "1.",
    ]
)
MIXED = st.lists(st.none() | st.lists(PIECES, max_size=8).map("".join), max_size=15)


@pytest.mark.filterwarnings("ignore:no cell of column:UserWarning")
@given(MIXED, st.data())
def test_no_row_of_a_mixture_is_lost(cells, data):
    labels = data.draw(st.lists(st.integers(0, 2), min_size=len(cells), max_size=len(cells)))
    frame = pd.DataFrame({"email": pd.Series(cells, dtype=object), "n": range(len(cells))})
    frame.index = pd.Index(labels, dtype="int64")
    out = mv.explode(frame, "email")
    first = out[out["email_part"] == 1]
    assert first["n"].tolist() == list(range(len(cells)))
    assert first.index.tolist() == labels
    for row, part in out.groupby("n"):
        assert part["email_part"].tolist() == list(range(1, len(part) + 1))
        if len(part) == 1:
            assert part["email"].iloc[0] == cells[row] or cells[row] is None
        else:
            # Others are bad parts.
            whole = mv.clean(part["email"])["clean"].eq(part["email"]).fillna(value=False)
            assert whole.sum() > 1
            assert part["email"][~whole].str.contains("@").all()


@pytest.mark.filterwarnings("ignore:.*several addresses:UserWarning")
@pytest.mark.filterwarnings("ignore:.*verified as they stand:UserWarning")
@pytest.mark.parametrize("made", ["pandas", "csv", "polars", "arrow"])
def test_results_about_whole_cells_are_dropped(made, tmp_path):
    frame = mv.verify(
        pd.DataFrame({"email": [*CELLS, "x@"], "n": range(6)}), "email", validation_type="regex"
    )
    frame = mv.suppress(
        mv.decide(mv.verify(frame, "email", validation_type="regex"), "email"),
        "email",
        ["bob@firm.com"],
    )
    if made == "csv":
        frame.to_csv(tmp_path / "c.csv", index=False)
        frame = pd.read_csv(tmp_path / "c.csv")
    if made in ("polars", "arrow"):
        frame = (pl.from_pandas if made == "polars" else pa.Table.from_pandas)(frame)
    with pytest.warns(
        UserWarning, match="results of earlier calls beside column 'email' are dropped"
    ):
        out = mv.explode(frame, "email")
    table = out.to_pandas() if made in ("polars", "arrow") else out
    assert list(table) == ["email", "n", "email_suppressed", "email_part"]
    assert (
        mv.verify(table, "email", validation_type="regex")["email_verdict"].eq("valid").sum() == 6
    )


@pytest.mark.filterwarnings("ignore:.*several addresses:UserWarning")
def test_results_with_another_prefix_or_of_another_column_stay():
    frame = mv.verify(
        pd.DataFrame({"email": CELLS, "work": CELLS}), "work", validation_type="regex"
    )
    frame = mv.verify(frame, "email", validation_type="regex", prefix="check_")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert set(frame) < set(mv.explode(frame, "email"))


def test_words_that_ask_for_no_mail_stay_beside_each_address():
    frame = pd.DataFrame({"email": ["ada@one.example; Bo <bo@one.example> (do not contact)"]})
    exploded = mv.explode(frame, "email")
    assert len(exploded) == 2
    out = mv.decide(mv.verify(exploded, "email", validation_type="regex"), "email")
    assert out["email_clean"].tolist() == ["ada@one.example", "bo@one.example"]
    assert out["email_action"].tolist() == ["review", "review"]
    assert out["email_action_why"].str.contains("do not contact").all()


@each_row("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_cell_that_is_not_text_is_exploded_as_its_text(make):
    out = mv.explode(
        make(
            {
                "email": [
                    {"own": "a@x.com", "work": "b@x.com"},
                    {"own": "c@x.com", "work": None},
                    None,
                ]
            }
        ),
        "email",
    )
    cells = out["email"].to_pylist() if isinstance(out, pa.Table) else list(out["email"])
    assert cells[:2] == ["a@x.com", "b@x.com"]
    assert ("c@x.com" in str(cells[2]), cells[3] is None) == (True, True)


def test_a_part_that_is_not_an_address_is_not_lost():
    cell = "ada@firm.com; bob@firm; Cy <cy@firm.com>, dan@@firm.com"
    out = mv.explode(pd.DataFrame({"email": [cell, "ada@firm.com; bob@firm"]}), "email")
    assert out["email"].tolist() == [
        "ada@firm.com",
        "cy@firm.com",
        "bob@firm",
        "dan@@firm.com",
        "ada@firm.com; bob@firm",
    ]


def test_the_shortest_cell_with_two_addresses_is_exploded():
    exploded = mv.explode(pd.DataFrame({"mail": ["a@b.co,b@c.co"]}), "mail")
    assert exploded["mail"].tolist() == ["a@b.co", "b@c.co"]
