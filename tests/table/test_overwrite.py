"""Verifying a frame again: our columns are replaced whatever file they went through, the caller's own never."""

from __future__ import annotations

import io
import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mailverdict as mv
from mailverdict.errors import ColumnError, SettingsError
from mailverdict.frames.results import Results
from tests.doubles.tables import each_row, first_ones

pytestmark = pytest.mark.filterwarnings("ignore:.*verified as they stand:UserWarning")

CELLS = ["ada@example.org", "info@gmial.com", "nobody", None, "x@mailinator.com"]
VERDICTS = ["valid", "valid", "invalid", None, "valid"]


def verify(data, **options):
    return mv.verify(data, "email", **{"validation_type": "regex", **options})


EARLIER = {}


def earlier(**options):
    """The contacts as an earlier call verified them; made once for each set of options."""
    if (key := repr(options)) not in EARLIER:
        EARLIER[key] = verify(contacts(), **options)
    return EARLIER[key].copy()


def contacts(kind=pd.DataFrame):
    return kind({"id": [1, 2, 3, 4, 5], "email": CELLS})


def texts(out, name):
    """A column of any kind of frame as a list with None."""
    values = out[name]
    if isinstance(values, pd.Series):
        return [None if pd.isna(v) else v for v in values]
    return values.to_pylist() if isinstance(values, pa.ChunkedArray) else values.to_list()


def csv_by_pandas(out):
    return pd.read_csv(io.StringIO(out.to_csv(index=False)))


def csv_as_text(out):
    return pd.read_csv(io.StringIO(out.to_csv(index=False)), dtype=str, keep_default_na=False)


def csv_by_polars(out):
    return pl.read_csv(io.BytesIO(out.to_csv(index=False).encode()))


def parquet_by_arrow(out):
    buffer = io.BytesIO()
    out.to_parquet(buffer)
    return pq.read_table(buffer).replace_schema_metadata(None)


def parquet_by_polars(out):
    buffer = io.BytesIO()
    out.to_parquet(buffer)
    return pl.read_parquet(buffer.getvalue())


def parquet_from_polars(out):
    buffer = io.BytesIO()
    pl.from_pandas(out).write_parquet(buffer)
    return pd.read_parquet(buffer)


def json_lines(out):
    return pd.read_json(
        io.StringIO(out.to_json(orient="records", lines=True, date_format="iso")), lines=True
    )


def workbook(out):
    buffer = io.BytesIO()
    naive = {
        n: out[n].dt.tz_localize(None) for n in out if isinstance(out[n].dtype, pd.DatetimeTZDtype)
    }
    out.assign(**naive).to_excel(buffer, index=False, engine="xlsxwriter")
    return pd.read_excel(buffer, engine="calamine")


def sqlite(out):
    with closing(sqlite3.connect(":memory:")) as db:
        out.to_sql("contacts", db, index=False)
        return pd.read_sql("SELECT * FROM contacts", db)


ROUTES = [
    csv_by_pandas,
    csv_as_text,
    csv_by_polars,
    parquet_by_arrow,
    parquet_by_polars,
    parquet_from_polars,
    json_lines,
    workbook,
    sqlite,
]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.__name__)
class TestRoutes:
    @pytest.mark.parametrize(
        "options",
        first_ones(
            [
                {},
                {"columns": "all"},
                {"clean": False},
                {"columns": ["verdict", "status", "role", "checked_at", "source"]},
            ],
            1,
        ),
        ids=str,
    )
    def test_the_columns_are_replaced(self, route, options):
        first = earlier(**options)
        again = verify(route(first), **options)
        names = list(again.column_names if isinstance(again, pa.Table) else again.columns)
        assert names == list(first.columns)
        assert texts(again, "email_verdict") == VERDICTS
        assert texts(again, "email_role") == texts(first, "email_role")

    def test_columns_that_are_not_asked_for_do_not_keep_old_results(self, route):
        old = route(verify(contacts().assign(email="gone@"), columns="all"))
        new = earlier(columns="all")
        if isinstance(old, pa.Table):
            changed = old.set_column(1, "email", pa.array(CELLS))
        else:
            cells = pd.Series(CELLS) if isinstance(old, pd.DataFrame) else pl.Series("email", CELLS)
            changed = (
                old.assign(email=cells)
                if isinstance(old, pd.DataFrame)
                else old.with_columns(cells)
            )
        again = verify(changed)
        assert texts(again, "email_error") == texts(new, "email_error")
        assert texts(again, "email_normalized") == texts(new, "email_normalized")

    @pytest.mark.parametrize("name", ["error_message", "suggestion"])
    def test_verdict_and_status_show_that_the_columns_beside_them_are_ours(self, route, name):
        again = verify(route(earlier(columns=["verdict", "status", name])))
        assert texts(again, f"email_{name}") == texts(earlier(), f"email_{name}")


@each_row("kind", [pd.DataFrame, pa.table, pl.DataFrame])
@each_row(
    ("name", "values", "found"),
    [
        ("verdict", ["good", "bad", None, None, None], "'good'"),
        ("verdict", [0.5, 0.7, None, None, None], "0.5"),
        ("status", ["active", None, None, None, None], "'active'"),
        ("details", ["called on Monday", None, None, None, None], "'called on Monday'"),
        ("role", ["manager", None, None, None, None], "'manager'"),
        ("role", [["manager"], None, None, None, None], r"\['manager'\]"),
        ("free", [3, 4, None, None, None], "3"),
        ("error_message", [1, 2, 3, 4, 5], "1"),
        ("suggestion", ["call first", None, None, None, None], "'call first'"),
        ("checked_at", ["Monday", None, None, None, None], "'Monday'"),
        ("source", ["newsletter", "local", None, None, None], "'newsletter'"),
        ("normalized", [b"x", None, None, None, None], "b'x'"),
    ],
)
def test_other_content_is_an_error_also_among_our_columns(kind, name, values, found):
    ours = earlier(columns="all").drop(columns=f"email_{name}")
    columns = {n: texts(ours, n) for n in ours}
    frame = kind({**columns, f"email_{name}": values})
    told = rf"'email_{name}' that mailverdict did not write; .*\(it holds {found}"
    with pytest.raises(SettingsError, match=told):
        verify(frame, columns="all")
    assert texts(verify(frame, prefix="new_"), "new_verdict") == VERDICTS


def test_other_content_in_a_column_that_was_noted_is_an_error():
    out = verify(contacts())
    out["email_verdict"] = "reviewed by hand"
    with pytest.raises(SettingsError, match="it holds 'reviewed by hand'"):
        verify(out)


def test_a_column_of_the_same_name_that_is_not_asked_for_stays():
    own = contacts().assign(email_source="newsletter", email_normalized=CELLS)
    again = verify(verify(own))
    assert again["email_source"].eq("newsletter").all()
    assert texts(again, "email_normalized") == CELLS


@each_row(
    ("name", "values"),
    [
        ("role", [True] * 5),
        ("suggestion", ["a@b.org"] * 5),
        ("free", ["true", "false", "", "", ""]),
        ("error_message", ["call first"] * 5),
    ],
)
def test_a_lone_column_of_text_or_flags_is_not_replaced(name, values):
    with pytest.raises(
        SettingsError, match="neither a note nor the columns beside it show that it did"
    ):
        verify(contacts().assign(**{f"email_{name}": values}))


@pytest.mark.slow
@each_row("made", ["pandas", "polars", "arrow"])
@each_row(("name", "word"), [("verdict", "valid"), ("status", "done")])
def test_a_verdict_or_a_status_alone_is_ours(made, name, word):
    own = contacts().assign(
        **{
            f"email_{name}": pd.Categorical(
                [word] * 5, verify(contacts())[f"email_{name}"].cat.categories
            )
        }
    )
    frame = {"pandas": pd.DataFrame, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas}[made](
        own
    )
    assert texts(verify(frame), "email_verdict") == VERDICTS


@each_row("route", ROUTES)
def test_cleaned_and_then_verified_for_the_verdict_alone_it_is_verified_again(route):
    cleaned = route(mv.clean(contacts(), "email"))
    judged = verify(cleaned, columns=["verdict"])
    if not isinstance(judged, pd.DataFrame):
        judged = judged.to_pandas()
    judged = route(judged)
    again = verify(judged)
    assert texts(again, "email_verdict") == VERDICTS
    assert texts(again, "email_clean") == texts(mv.clean(contacts(), "email"), "email_clean")


@each_row("route", ROUTES)
def test_a_cleaned_frame_is_cleaned_again(route):
    first = mv.clean(contacts(), "email")
    again = mv.clean(route(first), "email")
    for name in ("email_clean", "email_suggestion", "email_change"):
        assert [text or None for text in texts(again, name)] == [
            text or None for text in texts(first, name)
        ]


@each_row("values", [[None] * 5, [np.nan] * 5, [""] * 5])
def test_an_empty_column_loses_nothing(values):
    assert texts(verify(contacts().assign(email_verdict=values)), "email_verdict") == VERDICTS


@each_row("kind", [pd.DataFrame, pa.table, pl.DataFrame])
def test_without_overwrite_any_column_of_these_names_is_an_error(kind):
    out = verify(contacts(kind))
    with pytest.raises(
        SettingsError, match="'email_verdict', and overwrite=False: give another prefix"
    ):
        verify(out, overwrite=False)
    both = verify(out, overwrite=False, prefix="second_")
    assert texts(both, "second_verdict") == texts(both, "email_verdict") == VERDICTS
    with pytest.raises(SettingsError, match="overwrite='no': give True or False"):
        verify(out, overwrite="no")


def test_a_name_that_occurs_twice_is_an_error():
    out = verify(contacts())
    frame = pd.concat([out, out[["email_verdict"]]], axis=1)
    table = verify(contacts(pa.table))
    names = [*table.column_names, "email_verdict"]
    table = pa.table([*table.columns, table["email_verdict"]], names=names)
    for twice in (frame, table):
        with pytest.raises(ColumnError, match="'email_verdict' occurs 2 times"):
            verify(twice)


def test_several_columns_each_keep_their_own_earlier_ones():
    frame = pd.DataFrame({"home": CELLS, "work": CELLS[::-1]})
    first = mv.verify(frame, "home", validation_type="regex", columns="all")
    again = mv.verify(first, ["home", "work"], validation_type="regex")
    assert texts(again, "home_error") == texts(first, "home_error")
    assert "work_error" not in again
    assert texts(again, "work_verdict") == VERDICTS[::-1]


def test_the_other_functions_refuse_what_they_never_write():
    with pytest.raises(SettingsError, match="'email_change' that mailverdict did not write"):
        mv.clean(contacts().assign(email_change="moved house"), "email")
    with pytest.raises(SettingsError, match="'email_action' that mailverdict did not write"):
        mv.decide(verify(contacts()).assign(email_action="phone"), "email")
    for function in (mv.clean, mv.duplicates):
        once = csv_by_pandas(function(contacts(), "email"))
        assert list(function(once, "email").columns) == list(once.columns)


@pytest.mark.slow
@each_row("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_what_describes_an_earlier_verdict_is_emptied(kind):
    first = mv.decide(verify(contacts(kind)), "email")
    assert texts(first, "email_action")[:3] == ["send", "review", "drop"]
    again = verify(first, clean=False)
    names = list(again.columns if not isinstance(again, pa.Table) else again.column_names)
    assert names == list(first.columns if not isinstance(first, pa.Table) else first.column_names)
    for name in ("clean", "change", "action", "action_why"):
        assert texts(again, f"email_{name}") == [None] * 5, name
    assert texts(again, "email_verdict") == VERDICTS
    assert texts(mv.decide(again, "email"), "email_action") == texts(first, "email_action")
    assert texts(verify(again), "email_clean") == texts(first, "email_clean")


@each_row("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_reader_of_a_frame_uses_the_cells_and_not_what_an_earlier_call_cleaned(kind):
    cells = ["Ada <ada@one.example>", "bo@two.example"]
    frame = kind({"email": cells})
    again = verify(verify(frame), clean=False)
    assert Results(again, "email", None).addresses.to_pylist() == cells
    assert texts(again, "email_verdict") == ["invalid", "valid"]


@each_row("made", ["pandas", "csv"])
def test_a_column_of_the_callers_with_such_a_name_is_not_emptied(made):
    first = verify(contacts(), clean=False).assign(
        email_action=["call", None, "write", "x", "y"], email_clean=list("abcde")
    )
    again = verify(csv_by_pandas(first) if made == "csv" else first, clean=False)
    assert texts(again, "email_action") == ["call", None, "write", "x", "y"]
    assert texts(again, "email_clean") == list("abcde")


@pytest.mark.slow
@each_row("made", ["pandas", "polars", "csv"])
def test_a_reader_of_a_frame_uses_the_cells_if_they_were_verified_beside_cleaned_addresses(made):
    cells = ["ada@one.example", "mailto:ada@one.example", "Bo <bo@two.example>", "nobody", None]
    tidy = mv.clean(pd.DataFrame({"email": cells}), "email")
    out = verify(pl.from_pandas(tidy) if made == "polars" else tidy, clean=False)
    out = csv_by_pandas(out) if made == "csv" else out
    read = Results(out, "email", None).addresses.fill_null("").to_pylist()
    assert read == [cell or "" for cell in cells]
    assert mv.report(out, "email")._facts.cleaning is None
    assert mv.report(out, "email")._facts.counts.causes["clean"] == 2
    counts = mv.breakdown(out if made != "polars" else out.to_pandas(), "domain")
    assert counts.loc["one.example", ["sendable", "invalid"]].tolist() == [1, 1]
    before = verify(pd.DataFrame({"email": ["ada@one.example"]}))
    changes = mv.diff(before, out if made != "polars" else out.to_pandas(), "email")
    assert changes.loc["mailto:ada@one.example", "after"] == "invalid"
    assert "ada@one.example" not in changes.index


@pytest.mark.filterwarnings("ignore:.*hold:UserWarning")
@pytest.mark.filterwarnings("ignore:.*holds an address:UserWarning")
@pytest.mark.filterwarnings("ignore:results of earlier calls beside column 'email':UserWarning")
def test_an_older_status_does_not_stay_beside_a_new_verdict():
    cells = pl.DataFrame({"email": ["ada@one.example", "a@x.example; b@x.example"]})
    pair = mv.verify(
        cells, "email", validation_type="regex", columns=["verdict", "status"], limit=1, clean=False
    )
    assert pair["email_status"].to_list() == ["done", "pending"]
    again = mv.verify(pair, "email", validation_type="regex", columns=["verdict"])
    assert again["email_status"].to_list() == ["done", "done"]
    exploded = mv.explode(again, "email")
    assert exploded.columns == ["email", "email_part"]
    own = again.with_columns(email_status=pl.Series(["open", "closed"]))
    assert mv.verify(own, "email", validation_type="regex", columns=["role"])[
        "email_status"
    ].to_list() == [
        "open",
        "closed",
    ]
