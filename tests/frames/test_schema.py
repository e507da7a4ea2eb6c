"""The types of result columns: as `schema` gives them, for every input and in a Parquet file of every origin."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import mailverdict as mv
from mailverdict.cli import app
from mailverdict.frames.columns import COLUMNS, SETS

ROWS = {
    "full": ["ada@example.org", "info@gmial.com", "nobody", None],
    "missing": [None, None],
    "none": [],
}
OPTIONS = [
    {"columns": "core"},
    {"columns": "all", "clean": True},
    {"columns": ["verdict", "status", "checked_at"], "categories": False},
]


def contacts(rows):
    return pa.table({"email": pa.array(ROWS[rows], pa.string())})


def to_kind(table, kind):
    return {"pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table), "arrow": lambda: table}[kind]()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("rows", ROWS)
class TestTypes:
    def test_of_pandas(self, rows, options):
        out = mv.verify(contacts(rows).to_pandas(), "email", validation_type="regex", **options)
        wanted = mv.schema("pandas", prefix="email_", **options)
        assert out.drop(columns="email").dtypes.to_dict() == wanted
        assert list(out.columns[1:]) == list(wanted)

    def test_of_polars(self, rows, options):
        out = mv.verify(pl.from_arrow(contacts(rows)), "email", validation_type="regex", **options)
        assert out.drop("email").schema == mv.schema("polars", prefix="email_", **options)

    def test_of_arrow(self, rows, options):
        out = mv.verify(contacts(rows), "email", validation_type="regex", **options)
        assert out.drop_columns("email").schema == mv.schema("arrow", prefix="email_", **options)


def test_the_categories_of_arrow_are_the_same_in_every_table():
    outs = [mv.verify(contacts(rows), "email", validation_type="regex") for rows in ("full", "missing")]
    for out in outs:
        words = out["email_verdict"].combine_chunks().dictionary.to_pylist()
        assert words == ["valid", "risky", "invalid", "unknown"]
    whole = pa.concat_tables(outs)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, whole.schema) as writer:  # which allows one dictionary for all batches
        writer.write_table(whole)
    back = pa.ipc.open_file(sink.getvalue()).read_all()
    assert back["email_verdict"].to_pylist() == ["valid", "valid", "invalid", None, None, None]


def test_spark_ddl_names_every_column_and_quotes_what_is_not_a_word():
    ddl = mv.schema("spark", "all", prefix="e-mail `a` ")
    assert ddl.count(", ") == len(COLUMNS) - 1
    assert ddl.startswith("`e-mail ``a`` verdict` STRING, ")
    assert "`e-mail ``a`` role` BOOLEAN" in ddl
    assert mv.schema("spark", ["role"], clean=True) == "role BOOLEAN, clean STRING, change STRING"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "dask"}, "kind='dask': give one of pandas, polars, arrow, spark"),
        ({"kind": None}, "kind=None: give one of"),
        ({"kind": "arrow", "columns": "most"}, "columns='most'"),
        ({"kind": "arrow", "columns": ["verdicts"]}, "'verdicts' is not one of verdict"),
        ({"kind": "arrow", "prefix": None}, "prefix=None: give text"),
        ({"kind": "arrow", "categories": "no"}, "categories='no': give True or False"),
        ({"kind": "arrow", "clean": 1}, "clean=1: give True or False"),
    ],
)
def test_an_argument_that_cannot_work_is_an_error(arguments, message):
    with pytest.raises(mv.SettingsError, match=message):
        mv.schema(**arguments)


def parquet_types(path):
    """What a reader without Arrow's own metadata finds."""
    found = pq.ParquetFile(path).schema
    columns = [found.column(at) for at in range(len(found))]
    return {c.name: (c.physical_type, str(c.logical_type), c.max_definition_level) for c in columns}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("columns", SETS)
def test_a_parquet_file_has_the_same_types_whatever_wrote_it(tmp_path, rows, columns):
    options = {"validation_type": "regex", "columns": columns, "clean": True}
    table = contacts(rows)
    table.to_pandas().to_csv(tmp_path / "in.csv", index=False)
    pq.write_table(table, tmp_path / "in.parquet")
    mv.verify(table.to_pandas(), "email", **options).to_parquet(tmp_path / "pandas.parquet")
    mv.verify(pl.from_arrow(table), "email", **options).write_parquet(tmp_path / "polars.parquet")
    pq.write_table(mv.verify(table, "email", **options), tmp_path / "arrow.parquet")
    for source in ("csv", "parquet"):
        target = tmp_path / f"command-{source}.parquet"
        arguments = ["verify", str(tmp_path / f"in.{source}"), "-c", "email", "-t", "regex", "--columns", columns]
        ran = CliRunner().invoke(app, [*arguments, "-o", str(target)])
        assert ran.exit_code == 0, ran.output
    names = ["pandas", "polars", "arrow", "command-csv", "command-parquet"]
    found = {name: parquet_types(tmp_path / f"{name}.parquet") for name in names}
    results = {name: {k: v for k, v in types.items() if k != "email"} for name, types in found.items()}
    assert list(results["pandas"]) == list(mv.schema("pandas", columns, prefix="email_", clean=True))
    for name in names[1:]:
        assert results[name] == results["pandas"], name


def test_a_parquet_file_from_a_csv_has_no_marks_of_its_reading(tmp_path):
    (tmp_path / "in.csv").write_text("email\nada@example.org\n")
    arguments = ["verify", str(tmp_path / "in.csv"), "-t", "regex", "-o", str(tmp_path / "out.parquet")]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert pq.read_schema(tmp_path / "out.parquet").field("email").metadata is None


def test_pandas_gets_its_dtypes_back_from_its_own_parquet(tmp_path):
    out = mv.verify(contacts("full").to_pandas(), "email", validation_type="regex", columns="all")
    out.to_parquet(tmp_path / "out.parquet")
    back = pd.read_parquet(tmp_path / "out.parquet")
    assert back["email_verdict"].dtype == mv.VERDICT_DTYPE
    assert back["email_role"].dtype == "boolean"
    assert back["email_checked_at"].dtype == pd.DatetimeTZDtype("us", "UTC")
