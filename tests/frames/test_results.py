"""A verified table that went through a file is what it was."""

import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.files.readers import open_table
from mailverdict.files.writers import create_table
from mailverdict.frames.results import Results
from mailverdict.sandbox import World
from mailverdict.table.columns import COLUMNS
from tests.doubles.tables import crossed, each_row

CELLS = ["ada@gmail.com", "info@gmial.com", "x@gone.example", "bad", None]


@pytest.mark.parametrize(
    ("columns", "name"), crossed(["core", "all"], ["out.csv", "out.tsv", "out.parquet", "out.xlsx"])
)
def test_types_and_values_come_back(tmp_path, name, columns):
    with World() as world:
        options = {"backend": world.backend, "columns": columns, "clean": False}
        out = mv.verify(pa.table({"email": CELLS}), "email", **options)
        expected = mv.verify(pd.DataFrame({"email": CELLS}), "email", **options)
    with create_table(tmp_path / name) as writer:
        writer.write(out)
    with open_table(tmp_path / name) as source:
        table = pa.concat_tables(source.pieces())
    back, wanted = Results(table, "email", None), Results(expected, "email", None)
    for column in COLUMNS:
        # "" and missing are one in a CSV; two runs, two moments.
        if column.name not in (
            "reasons",
            "checked_at",
        ):
            assert back[column.name].equals(wanted[column.name]), column.name
    assert back["checked_at"].type == wanted["checked_at"].type
    assert back["checked_at"].null_count == wanted["checked_at"].null_count
    pd.testing.assert_frame_equal(
        mv.summary(table.to_pandas(), "email"), mv.summary(expected, "email")
    )


@pytest.mark.parametrize("through", ["csv", "json", "objects", "polars", "dictionaries"])
def test_results_are_read_alike_from_any_kind_of_column(tmp_path, through):
    out = mv.verify(pd.DataFrame({"email": CELLS}), "email", validation_type="regex", columns="all")
    if through == "csv":
        out.to_csv(tmp_path / "out.csv", index=False)
        back = pd.read_csv(tmp_path / "out.csv")
    elif through == "json":
        back = pd.DataFrame(json.loads(out.to_json(orient="records", date_format="iso")))
    elif through == "polars":
        back = pl.from_pandas(out)
    else:
        objects = out.astype(object).where(out.notna(), None)
        back = objects if through == "objects" else pa.Table.from_pandas(objects.astype("category"))
    found, wanted = Results(back, "email", None), Results(out, "email", None)
    for column in COLUMNS:
        if column.name != "checked_at":
            assert found[column.name].equals(wanted[column.name]), column.name
    assert [str(each)[:19] for each in found["checked_at"]] == [
        str(each)[:19] for each in wanted["checked_at"]
    ]


@each_row(
    ("column", "cell"),
    [("email_verdict", "maybe"), ("email_role", "perhaps"), ("email_status", "ok")],
)
@each_row("make", [pa.table, lambda table: pa.table(table).to_pandas()])
def test_what_verify_never_writes_is_refused(make, column, cell):
    table = {
        "email": ["a@b.example"],
        "email_verdict": ["valid"],
        "email_details": [""],
        "email_status": ["done"],
    }
    with pytest.raises(
        mv.InputError, match=f"column '{column}' holds '{cell}', which verify never writes"
    ):
        mv.summary(make({**table, column: [cell]}), "email")


def test_a_table_that_was_not_verified_is_refused():
    with pytest.raises(mv.ColumnError):
        mv.summary(pa.table({"email": ["a@b.example"]}), "email")


def test_times_that_are_all_missing_are_read_from_a_column_of_any_type():
    out = mv.verify(["ada@example.org"], validation_type="regex", columns="all")
    out = out.assign(email="ada@example.org", checked_at=float("nan"))
    assert Results(out, "email", "")["checked_at"].to_pylist() == [None]
