"""Result columns beside the caller's own, whatever kind of frame and however odd its labels."""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mailverdict as mv
from mailverdict.errors import ColumnError, SettingsError
from mailverdict.table.columns import COLUMNS, REPAIR_COLUMNS
from tests.doubles.tables import each_row

CELLS = ["ada@example.org", "nobody", None, "ada@example.org"]
VERDICTS = ["valid", "invalid", None, "valid"]
CORE_NAMES = [*(c.name for c in COLUMNS if c.in_core), *(c.name for c in REPAIR_COLUMNS)]


def verify(data, *column, **options):
    return mv.verify(data, *column, validation_type="regex", **options)


def verdicts(values):
    return [None if pd.isna(v) else v for v in values]


def frame_of(cells=CELLS, **options):
    """A frame with things of the caller's in every place."""
    frame = pd.DataFrame(
        {"id": range(len(cells)), "email": cells, "note": [["x"]] * len(cells)}, **options
    )
    frame.attrs = {"owner": ["crm", {"since": 2019}], "mailverdict": "not ours at all"}
    return frame


INDEXES = {
    "duplicated": [7, 7, 7, 7],
    "unsorted": [3, 1, 2, 0],
    "text": list("bdac"),
    "missing labels": [np.nan, 1.0, np.nan, 2.0],
    "moments": pd.DatetimeIndex(["2026-01-02", "2026-01-01", "2026-01-02", pd.NaT]),
    "levels": pd.MultiIndex.from_tuples(
        [("b", 2), ("a", 1), ("b", 2), ("a", 3)], names=["region", None]
    ),
    "range": pd.RangeIndex(10, 2, -2),
}


@pytest.mark.slow
@each_row("index", INDEXES.values(), ids=INDEXES)
def test_rows_keep_index_order_and_number(index):
    frame = frame_of(index=index)
    out = verify(frame, "email")
    assert out.index.equals(frame.index)
    assert out.index.names == frame.index.names
    assert verdicts(out["email_verdict"]) == VERDICTS
    series = verify(frame["email"])
    assert series.index.equals(frame.index)
    assert verdicts(series["verdict"]) == VERDICTS


@each_row("dtype", ["object", "string", "category"])
def test_the_callers_frame_is_left_as_it_was(dtype):
    frame = frame_of().astype({"email": dtype})
    before, attrs = frame.copy(deep=True), copy.deepcopy(frame.attrs)
    out = verify(frame, "email")
    pd.testing.assert_frame_equal(frame, before)
    assert frame.attrs == attrs
    pd.testing.assert_frame_equal(out[["id", "email", "note"]], before)


def test_what_is_done_to_the_result_does_not_reach_the_callers_frame():
    frame = frame_of()
    attrs = copy.deepcopy(frame.attrs)
    out = verify(frame, "email")
    out.loc[:, "id"] = -1
    out.iloc[0, 1] = "changed@example.org"
    out.attrs["owner"].append("us")
    assert frame["id"].tolist() == [0, 1, 2, 3]
    assert frame["email"].iloc[0] == "ada@example.org"
    assert frame.attrs == attrs


def test_the_callers_attrs_stay_and_the_note_is_json():
    out = verify(frame_of(), "email")
    assert out.attrs["owner"] == ["crm", {"since": 2019}]
    note = json.loads(json.dumps(out.attrs["mailverdict"]))["email"]
    assert note == {
        "validation_type": "regex",
        "source": "local",
        "version": mv.__version__,
        "lists": mv.LocalBackend().lists_version(),
        "columns": [f"email_{name}" for name in CORE_NAMES],
    }


def test_attrs_that_cannot_be_compared_are_carried_along():
    frame = pd.DataFrame({"email": CELLS})
    frame.attrs["weights"] = np.array([1, 2])
    assert verify(frame, "email").attrs["weights"].tolist() == [1, 2]


def test_columns_under_a_multiindex_go_beside_theirs():
    columns = pd.MultiIndex.from_tuples(
        [("work", "email"), ("home", "email"), ("work", "tel")], names=["where", "what"]
    )
    frame = pd.DataFrame([["ada@example.org", "a@@b", "1"]], columns=columns)
    out = verify(verify(frame, ("work", "email")), ("home", "email"), columns=["verdict"])
    assert out["work", "email_verdict"].tolist() == ["valid"]
    assert out["home", "email_verdict"].tolist() == ["invalid"]
    assert out.columns.names == ["where", "what"]
    assert list(out.columns[:3]) == list(columns)
    assert mv.summary(out, ("work", "email")).loc["valid", "rows"] == 1


def test_results_under_a_multiindex_are_written_again_where_no_column_is_new():
    columns = pd.MultiIndex.from_tuples([("work", "email"), ("work", "tel")], names=["a", "b"])
    frame = pd.DataFrame([["ada@example.org", "1"]], columns=columns)
    once = verify(frame, ("work", "email"), columns=["verdict"], clean=False)
    again = verify(once, ("work", "email"), columns=["verdict"], clean=False)
    assert list(again.columns) == list(once.columns)
    assert again.columns.names == ["a", "b"]


def test_an_empty_lower_label_gives_names_without_a_lead():
    frame = pd.DataFrame(
        [["ada@example.org", 1]], columns=pd.MultiIndex.from_tuples([("email", ""), ("a", "b")])
    )
    assert verify(frame, ("email", ""), columns=["verdict"]).columns[2] == ("email", "verdict")


LABELS = [
    0,
    -1,
    2.5,
    True,
    "",
    "a b",
    "e\u0301",
    "x" * 10_000,
    pd.Timestamp("2026-01-02"),
    b"email",
]


@each_row("label", LABELS, ids=lambda v: repr(v)[:20])
def test_a_label_may_be_anything_hashable(label):
    out = verify(pd.DataFrame({label: CELLS, "other": 1}), label, columns=["verdict"])
    assert verdicts(out.iloc[:, 2]) == VERDICTS
    assert out.columns[0] == label


@each_row(
    "columns",
    [
        pd.RangeIndex(2),
        pd.CategoricalIndex(["email", "b"]),
        pd.to_datetime(["2026-01-01", "2026-01-02"]),
        pd.Index(["email", "b"], name="fields"),
        pd.Index([("email", 1), "b"], tupleize_cols=False),
    ],
    ids=lambda v: type(v).__name__,
)
def test_every_kind_of_column_index_takes_new_columns(columns):
    frame = pd.DataFrame([["ada@example.org", 1]], columns=columns)
    out = verify(frame, columns[0], columns=["verdict"])
    assert list(out.columns[:2]) == list(columns)
    assert out.columns.name == columns.name
    assert out.iloc[0, 2] == "valid"


def test_other_columns_may_share_a_name():
    frame = pd.DataFrame([["ada@example.org", 1, 2]], columns=["email", "x", "x"])
    out = verify(frame, "email", columns=["verdict"], clean=False)
    assert out.iloc[0].tolist() == ["ada@example.org", 1, 2, "valid"]


def test_a_frame_in_a_hundred_pieces_is_not_complained_about():
    frame = pd.concat(
        [pd.DataFrame({f"c{i}": [i]}) for i in range(150)] + [pd.DataFrame({"email": CELLS[:1]})],
        axis=1,
    )
    assert verify(frame, "email").shape == (1, 151 + len(CORE_NAMES))


def test_a_subclass_of_a_frame_stays_one():
    class Leads(pd.DataFrame):
        @property
        def _constructor(self):
            return Leads

    assert isinstance(verify(Leads({"email": CELLS}), "email"), Leads)


@each_row(
    ("data", "column", "told"),
    [
        (pd.DataFrame({"mail": CELLS}), "email", "no column 'email'.*; there are 'mail'"),
        (pd.DataFrame({"mail": CELLS}), None, "give a column: one of 'mail'"),
        (pd.DataFrame({"mail": CELLS}), ["mail", "email"], "no column 'email'.*; there are 'mail'"),
        (pd.DataFrame(), "email", "no column 'email'; there are no columns"),
        (
            pd.DataFrame([[1, 2]], columns=["email"] * 2),
            "email",
            r"'email' occurs 2 times \(columns 1 and 2 of 2\)",
        ),
        (
            pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "email")])),
            "a",
            r"no column 'a'; there are \('a', 'email'\)",
        ),
        (pd.DataFrame([[1] * 50]), "email", "and 30 more"),
        (pa.table({"mail": CELLS}), "email", "no column 'email'.*; there are 'mail'"),
        (pa.table([[1], [2]], names=["email"] * 2), "email", "occurs 2 times"),
        (pl.DataFrame({"mail": CELLS}), "email", "no column 'email'.*; there are 'mail'"),
        (pl.DataFrame({"mail": CELLS}), None, "give a column"),
    ],
    ids=lambda v: str(v)[:20] if isinstance(v, str) else type(v).__name__,
)
def test_a_missing_or_repeated_column_is_reported_with_the_available_ones(data, column, told):
    with pytest.raises(ColumnError, match=told):
        verify(data, column)


@each_row(
    ("data", "told"),
    [
        ("ada@example.org", "of type str; give a list of addresses, or call mailverdict.check"),
        ("contacts.csv", "name of a file, 'contacts.csv': read it first, as with pandas.read_csv"),
        (Path("list"), "or use the command line: mailverdict verify list"),
        (b"ada@example.org", "of type bytes; give a DataFrame"),
        ({"email": CELLS}, "of type dict; give a DataFrame"),
        (None, "of type NoneType"),
        (7, "of type int"),
        ({"ada@example.org"}, "of type set, which has no order"),
        (np.array([["ada@example.org"]]), "of type ndarray; give a DataFrame"),
        (np.array("ada@example.org"), "of type ndarray; give a DataFrame"),
        (pd.MultiIndex.from_tuples([("a", "b")]), "of type MultiIndex; give a DataFrame"),
        (np.array([("a", 1)], dtype="U1,i4"), "of type ndarray; give a DataFrame"),
        (pl.LazyFrame({"email": CELLS}), r"lazy Polars frame: call .collect\(\)"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_unsupported_data_is_an_error_that_names_what_to_give(data, told):
    with pytest.raises(SettingsError, match=told):
        verify(data)


def test_a_column_name_goes_with_a_frame_only():
    with pytest.raises(SettingsError, match="column='email' goes with a frame, but data is a list"):
        verify(CELLS, "email")
    pieces = iter([pd.DataFrame({"email": [cell]}) for cell in CELLS])
    with pytest.raises(
        SettingsError, match=r"give one DataFrame, of several pandas.concat\(data\), or leave"
    ):
        verify(pieces, "email")
    assert len(list(pieces)) == len(CELLS)  # none was read


@each_row(
    "column", [pd.Index(["email"]), np.array(["email"]), {"email"}], ids=lambda v: type(v).__name__
)
@each_row("kind", [pd.DataFrame, pa.table, pl.DataFrame])
def test_what_cannot_be_a_column_name_is_an_error(kind, column):
    told = f"column is of type {type(column).__name__}: give one name of 'email'"
    with pytest.raises(mv.ColumnError, match=told):
        verify(kind({"email": CELLS}), column)
    with pytest.raises(mv.ColumnError, match="column is of type list: give one name of 'email'"):
        mv.clean(kind({"email": CELLS}), ["email"])


@each_row("prefix", [5, False, ["new_"]])
def test_a_prefix_is_a_text(prefix):
    for data, column in ((pd.DataFrame({"email": CELLS}), "email"), (CELLS, None)):
        for function in (verify, mv.clean, mv.duplicates):
            with pytest.raises(
                SettingsError, match=r"prefix=.*: give a text, as 'email_', or leave it out"
            ):
                function(data, column, prefix=prefix)


@pytest.mark.filterwarnings("ignore:.*verified as they stand:UserWarning")
class TestOverwriting:
    @each_row("kind", [pd.DataFrame, pa.table, pl.DataFrame])
    @each_row("name", ["email_role", "email_verdict"])
    def test_the_callers_own_column_is_never_replaced(self, kind, name):
        frame = kind({"email": CELLS, name: [1, 2, 3, 4]})
        with pytest.raises(SettingsError, match=f"'{name}' that mailverdict did not write"):
            verify(frame, "email")
        assert (
            verdicts(
                pd.DataFrame(verify_to_dict(verify(frame, "email", prefix="new_")))["new_verdict"]
            )
            == VERDICTS
        )

    @pytest.mark.slow
    @each_row("kind", [pd.DataFrame, pa.table, pl.DataFrame])
    def test_again_after_cleaning_replaces_what_is_ours(self, kind):
        once = verify(mv.clean(kind({"email": CELLS}), "email"), "email")
        again = verify(verify(once, "email"), "email", columns="all")
        names = list(verify_to_dict(again))
        assert len(names) == len(set(names))
        assert set(names) == {"email", "email_clean", "email_change"} | {
            f"email_{c.name}" for c in COLUMNS
        }
        assert verdicts(verify_to_dict(again)["email_verdict"]) == VERDICTS

    def test_a_note_lasts_through_selection_and_concatenation(self):
        out = verify(frame_of(), "email", columns=["verdict"])
        both = pd.concat([out.head(2), out.tail(2)])
        assert verdicts(verify(both, "email", columns=["verdict"])["email_verdict"]) == VERDICTS

    def test_what_comes_back_from_csv_is_known_by_its_company(self, tmp_path):
        out = verify(pd.DataFrame({"email": CELLS}), "email")
        out.to_csv(tmp_path / "out.csv", index=False)
        back = pd.read_csv(tmp_path / "out.csv")
        assert verdicts(verify(back, "email")["email_verdict"]) == VERDICTS
        with pytest.raises(SettingsError, match="'email_role' that mailverdict did not write"):
            verify(back[["email", "email_role"]], "email")


def verify_to_dict(out):
    """Columns by name, of any kind of frame."""
    if isinstance(out, pa.Table):
        return out.to_pydict()
    return out.to_dict(as_series=False) if isinstance(out, pl.DataFrame) else dict(out.items())


class TestOtherFrames:
    def test_polars_in_polars_out(self):
        frame = pl.DataFrame({"id": [1, 2, 3, 4], "email": CELLS})
        out = verify(frame, "email", columns="all")
        assert out.select("id", "email").equals(frame)
        assert out["email_verdict"].cast(pl.String).to_list() == VERDICTS
        assert out["email_status"].dtype == pl.Categorical
        assert out["email_checked_at"].dtype == pl.Datetime("us", "UTC")

    @each_row(
        "dtype", [pl.String, pl.Categorical, pl.Enum(["ada@example.org", "nobody"]), pl.Object]
    )
    def test_every_polars_text_dtype(self, dtype):
        assert verdicts(verify(pl.Series(CELLS, dtype=dtype))["verdict"]) == VERDICTS

    @each_row("values", [[1, 2], [[1], None], [{"a": 1}, None], [None, None], [object(), None]])
    def test_polars_columns_of_something_else(self, values):
        with (
            pytest.warns(UserWarning, match="'email' holds an @")
            if any(values)
            else contextlib.nullcontext()
        ):
            out = verify(pl.DataFrame({"email": pl.Series(values, strict=False)}), "email")
        wanted = [None if v is None else "invalid" for v in values]
        assert out["email_verdict"].cast(pl.String).to_list() == wanted

    def test_arrow_in_arrow_out(self):
        frame = pa.table({"id": [1, 2, 3, 4], "email": CELLS})
        out = verify(frame, "email")
        assert out.select(["id", "email"]).equals(frame)
        assert out["email_verdict"].to_pylist() == VERDICTS
        assert pa.types.is_dictionary(out["email_status"].type)

    @pytest.mark.slow
    @each_row(
        "cells",
        [
            tuple(CELLS),
            (cell for cell in CELLS),
            np.array(CELLS, dtype=object),
            np.ma.array(["ada@example.org", "nobody", "x", "ada@example.org"], mask=[0, 0, 1, 0]),
            pd.Index(CELLS),
            pd.array(CELLS, dtype="string"),
            pd.Categorical(CELLS),
            dict.fromkeys(["ada@example.org", "nobody"]).keys(),
        ],
        ids=lambda v: type(v).__name__,
    )
    def test_any_list_like_gives_a_frame_of_results(self, cells):
        out = verify(cells)
        assert list(out.columns) == CORE_NAMES
        assert verdicts(out["verdict"]) == VERDICTS[: len(out)]

    @each_row(
        "cells", [pa.array(CELLS), pa.chunked_array([CELLS[:1], CELLS[1:]]), pl.Series(CELLS)]
    )
    def test_a_column_alone_gives_a_frame_of_its_own_kind(self, cells):
        out = verify(cells, prefix="e_")
        assert isinstance(out, pl.DataFrame if isinstance(cells, pl.Series) else pa.Table)
        found = verify_to_dict(out)
        assert list(found) == [f"e_{name}" for name in CORE_NAMES]
        assert verdicts(found["e_verdict"]) == VERDICTS


@functools.cache
def verify_alone(cell):
    with warnings.catch_warnings(action="ignore"):
        return verify(pd.Series([cell], dtype=object))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:no cell of column:UserWarning")
@given(
    st.lists(st.sampled_from([*CELLS, "x@gmial.com", 5, "Ada@Example.ORG"]), max_size=12), st.data()
)
def test_each_row_gets_what_it_would_get_alone(cells, data):
    index = data.draw(st.lists(st.integers(0, 3), min_size=len(cells), max_size=len(cells)))
    out = verify(pd.DataFrame({"email": pd.Series(cells, dtype=object, index=index)}), "email")
    alone = [verify_alone(cell) for cell in cells]
    assert out.index.tolist() == index
    for name in CORE_NAMES:
        assert verdicts(out[f"email_{name}"]) == [verdicts(one[name])[0] for one in alone]
