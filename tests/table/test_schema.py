"""The types of result columns: as `schema` gives them, for every input and in a Parquet file of every origin."""

from __future__ import annotations

import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import mailverdict as mv
from mailverdict.cli import app
from mailverdict.sandbox import World
from mailverdict.table.columns import COLUMNS, SETS, VERDICT_DTYPE
from tests.doubles.tables import crossed, each_row

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
    return {
        "pandas": table.to_pandas,
        "polars": lambda: pl.from_arrow(table),
        "arrow": lambda: table,
    }[kind]()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("rows", ROWS)
class TestTypes:
    def test_the_schema_of_pandas_is_that_of_the_result(self, rows, options):
        out = mv.verify(contacts(rows).to_pandas(), "email", validation_type="regex", **options)
        wanted = mv.schema("pandas", prefix="email_", **options)
        assert out.drop(columns="email").dtypes.to_dict() == wanted
        assert list(out.columns[1:]) == list(wanted)

    def test_the_schema_of_polars_is_that_of_the_result(self, rows, options):
        out = mv.verify(pl.from_arrow(contacts(rows)), "email", validation_type="regex", **options)
        assert out.drop("email").schema == mv.schema("polars", prefix="email_", **options)

    def test_the_schema_of_arrow_is_that_of_the_result(self, rows, options):
        out = mv.verify(contacts(rows), "email", validation_type="regex", **options)
        assert out.drop_columns("email").schema == mv.schema("arrow", prefix="email_", **options)


def test_the_categories_of_arrow_are_the_same_in_every_table():
    outs = [
        mv.verify(contacts(rows), "email", validation_type="regex") for rows in ("full", "missing")
    ]
    for out in outs:
        words = out["email_verdict"].combine_chunks().dictionary.to_pylist()
        assert words == ["valid", "risky", "invalid", "unknown"]
    whole = pa.concat_tables(outs)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(
        sink, whole.schema
    ) as writer:  # which allows one dictionary for all batches
        writer.write_table(whole)
    back = pa.ipc.open_file(sink.getvalue()).read_all()
    assert back["email_verdict"].to_pylist() == ["valid", "valid", "invalid", None, None, None]


def test_spark_ddl_names_every_column_and_quotes_what_is_not_a_word():
    ddl = mv.schema("spark", "all", prefix="e-mail `a` ", clean=False)
    assert ddl.count(", ") == len(COLUMNS) - 1
    assert ddl.startswith("`e-mail ``a`` verdict` STRING, ")
    assert "`e-mail ``a`` role` BOOLEAN" in ddl
    assert mv.schema("spark", ["role"]) == "role BOOLEAN, clean STRING, change STRING"


@each_row(
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


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns"), crossed([*ROWS], [*SETS]))
def test_a_parquet_file_has_the_same_types_whatever_wrote_it(tmp_path, rows, columns):
    options = {"validation_type": "regex", "columns": columns}
    table = contacts(rows)
    table.to_pandas().to_csv(tmp_path / "in.csv", index=False)
    pq.write_table(table, tmp_path / "in.parquet")
    mv.verify(table.to_pandas(), "email", **options).to_parquet(tmp_path / "pandas.parquet")
    mv.verify(pl.from_arrow(table), "email", **options).write_parquet(tmp_path / "polars.parquet")
    pq.write_table(mv.verify(table, "email", **options), tmp_path / "arrow.parquet")
    for source in ("csv", "parquet"):
        target = tmp_path / f"command-{source}.parquet"
        arguments = [
            "verify",
            str(tmp_path / f"in.{source}"),
            "-c",
            "email",
            "-t",
            "regex",
            "--columns",
            columns,
        ]
        ran = CliRunner().invoke(app, [*arguments, "-o", str(target)])
        assert ran.exit_code == 0, ran.output
    names = ["pandas", "polars", "arrow", "command-csv", "command-parquet"]
    found = {name: parquet_types(tmp_path / f"{name}.parquet") for name in names}
    results = {
        name: {k: v for k, v in types.items() if k != "email"} for name, types in found.items()
    }
    assert list(results["pandas"]) == list(mv.schema("pandas", columns, prefix="email_"))
    for name in names[1:]:
        assert results[name] == results["pandas"], name


def test_a_parquet_file_from_a_csv_has_no_marks_of_its_reading(tmp_path):
    (tmp_path / "in.csv").write_text("email\nada@example.org\n")
    arguments = [
        "verify",
        str(tmp_path / "in.csv"),
        "-t",
        "regex",
        "-o",
        str(tmp_path / "out.parquet"),
    ]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert pq.read_schema(tmp_path / "out.parquet").field("email").metadata is None


@pytest.mark.filterwarnings("ignore:.*verified as they stand:UserWarning")
class TestVersions:
    lists = mv.LocalBackend().lists_version()

    def test_of_rows_judged_here(self):
        out = mv.verify([*ROWS["full"], 5], validation_type="regex", columns=["version"])
        full = f"mailverdict {mv.__version__}, {self.lists}"
        assert out["version"].tolist()[:3] == [full, full, full]
        assert pd.isna(out["version"][3])
        assert out["version"][4].startswith(f"mailverdict {mv.__version__}")

    def test_of_rows_from_the_journal_the_release_is_not_known(self, tmp_path):
        options = {
            "validation_type": "mx",
            "journal": tmp_path / "j.db",
            "columns": ["source", "version"],
        }
        with World() as world:
            first = mv.verify(["ada@plain.example"], backend=world.backend, **options)
            again = mv.verify(["ada@plain.example"], backend=world.backend, **options)
            lists = world.backend.lists_version()
        assert first["version"].tolist() == [f"mailverdict {mv.__version__}, {lists}"]
        assert again.iloc[0].tolist()[:2] == ["journal", lists]

    @pytest.mark.slow
    def test_of_rows_from_a_service_are_never_those_of_this_machine(self, tmp_path):
        with World() as world:
            out = mv.verify(
                ["ada@plain.example"],
                backend=world.url,
                journal=None,
                columns=["source", "version"],
            )
            note = out.attrs["mailverdict"][""]
        assert out["source"].tolist() == ["remote"]
        assert "mailverdict" not in out["version"].fillna("")[0]
        assert note["lists"] is None

    @pytest.mark.parametrize("kind", ["pandas", "arrow"])
    def test_in_a_parquet_file(self, tmp_path, kind):
        out = mv.verify(to_kind(contacts("full"), kind), "email", validation_type="regex")
        path = tmp_path / "out.parquet"
        out.to_parquet(path) if kind == "pandas" else pq.write_table(out, path)
        back = pd.read_parquet(path) if kind == "pandas" else pq.read_table(path)
        attrs = (
            back.attrs
            if kind == "pandas"
            else {"mailverdict": json.loads(back.schema.metadata[b"mailverdict"])}
        )
        note = attrs["mailverdict"]["email"]
        assert (note["version"], note["lists"]) == (mv.__version__, self.lists)
        again = mv.verify(back, "email", validation_type="regex", columns=["verdict"])
        assert list(again.to_pydict() if kind == "arrow" else again) == list(
            out.to_pydict() if kind == "arrow" else out
        )

    def test_in_a_parquet_file_of_the_command_line(self, tmp_path):
        contacts("full").to_pandas().assign(k=1).to_parquet(tmp_path / "in.parquet")
        arguments = ["verify", str(tmp_path / "in.parquet"), "-c", "email", "-t", "regex"]
        assert (
            CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "out.parquet")]).exit_code
            == 0
        )
        metadata = pq.read_schema(tmp_path / "out.parquet").metadata
        assert json.loads(metadata[b"mailverdict"])["email"]["version"] == mv.__version__

    def test_pandas_reads_the_note_of_the_last_call_from_a_file_that_pandas_wrote_first(
        self, tmp_path
    ):
        contacts("full").to_pandas().assign(k=1).to_parquet(tmp_path / "in.parquet")
        out = mv.verify(pd.read_parquet(tmp_path / "in.parquet"), "email", validation_type="regex")
        out.attrs["mailverdict"]["email"]["version"] = "0.0.1"
        out.to_parquet(tmp_path / "old.parquet")
        again = mv.verify(pq.read_table(tmp_path / "old.parquet"), "email", validation_type="regex")
        pq.write_table(again, tmp_path / "new.parquet")
        assert (
            pd.read_parquet(tmp_path / "new.parquet").attrs["mailverdict"]["email"]["version"]
            == mv.__version__
        )

    @each_row("text", [b"\xff", b"[1]", b"{", b'{"email": 1}', b'{"email": {"columns": []}}'])
    def test_metadata_of_somebody_else_is_not_a_note(self, text):
        table = contacts("full").replace_schema_metadata({b"mailverdict": text, b"owner": b"crm"})
        out = mv.verify(table, "email", validation_type="regex")
        assert out.schema.metadata[b"owner"] == b"crm"
        assert json.loads(out.schema.metadata[b"mailverdict"])["email"]["version"] == mv.__version__


def test_pandas_gets_its_dtypes_back_from_its_own_parquet(tmp_path):
    out = mv.verify(contacts("full").to_pandas(), "email", validation_type="regex", columns="all")
    out.to_parquet(tmp_path / "out.parquet")
    back = pd.read_parquet(tmp_path / "out.parquet")
    assert back["email_verdict"].dtype == VERDICT_DTYPE
    assert back["email_role"].dtype == "boolean"
    assert back["email_checked_at"].dtype == pd.DatetimeTZDtype("us", "UTC")
