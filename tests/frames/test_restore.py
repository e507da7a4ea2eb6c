"""A verified table that went through a file is what it was."""

import pandas as pd
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.files.readers import open_table
from mailverdict.files.writers import create_table
from mailverdict.frames.restore import restore_frame
from mailverdict.sandbox import World

CELLS = ["ada@gmail.com", "info@gmial.com", "x@gone.example", "bad", None]


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.parquet", "out.xlsx"])
@pytest.mark.parametrize("columns", ["core", "all"])
def test_dtypes_and_values_come_back(tmp_path, name, columns):
    with World() as world:
        options = {"backend": world.backend, "columns": columns, "clean": False}
        out = mv.verify(pa.table({"email": CELLS}), "email", **options)
        expected = mv.verify(pd.DataFrame({"email": CELLS}), "email", **options)
    with create_table(tmp_path / name) as writer:
        writer.write(out)
    with open_table(tmp_path / name) as source:
        table = pa.concat_tables(source.pieces())
    back = restore_frame(table, "email")
    moved = ["email_reasons", "email_checked_at"]  # "" and missing are one in a CSV; two runs, two moments
    for column in [c for c in expected.columns if c != "email" and c not in moved]:
        assert back[column].dtype == expected[column].dtype or column.endswith(("details", "suggestion"))
        assert back[column].astype(object).where(back[column].notna(), None).tolist() == (
            expected[column].astype(object).where(expected[column].notna(), None).tolist()
        )
    pd.testing.assert_frame_equal(mv.summary(back, "email"), mv.summary(expected, "email"))


@pytest.mark.parametrize(
    ("column", "cell"), [("email_verdict", "maybe"), ("email_role", "perhaps"), ("email_status", "ok")]
)
def test_what_verify_never_writes_is_refused(column, cell):
    table = pa.table(
        {"email": ["a@b.example"], "email_verdict": ["valid"], "email_details": [""], "email_status": ["done"]}
    )
    table = table.drop([column]) if column in table.column_names else table
    with pytest.raises(mv.InputError, match=cell):
        restore_frame(table.append_column(column, pa.array([cell])), "email")


def test_a_table_that_was_not_verified_is_refused():
    with pytest.raises(mv.ColumnError):
        restore_frame(pa.table({"email": ["a@b.example"]}), "email")


@pytest.mark.parametrize("factor", [1, 1_000, 1_000_000, 1_000_000_000])
def test_numbers_are_times_in_the_unit_that_their_size_shows(factor):
    moment = pd.Timestamp("2026-11-22T10:30:00Z")
    table = mv.verify(pa.table({"email": ["a@b.example", None]}), "email", validation_type="regex")
    cells = pa.array([int(moment.timestamp()) * factor, None], pa.int64())
    back = restore_frame(table.append_column("email_checked_at", cells), "email")
    assert back["email_checked_at"].tolist() == [moment, pd.NaT]
