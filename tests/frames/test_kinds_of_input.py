"""The table of kinds of input by functions: every result is that of a pandas frame, every error names the way."""

from __future__ import annotations

import dataclasses
import functools
import re
import sqlite3
import sys

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.errors import ColumnError, InputError, MailVerdictError, SettingsError
from tests.doubles.tables import each_row
from tests.frames.kinds_of_input import CELLS, KINDS, ON_COLUMNS, VERBS, Relation, run, source_frame

PLAIN, *_ = KINDS  # a pandas frame with an ordinary index
ROW_LABELS = ("duplicate_of", "email_duplicate_of")


def facts_of(found):
    """A report as a dictionary, without the time and without what only the attrs of a pandas frame can tell."""
    facts, counts = found._facts, found._facts.counts
    return {
        "rows": counts.alike,
        "addresses": counts.addresses,
        "typos": facts.typos,
        "domains": facts.domains.to_dict(),
    }


def plain_value(value):
    if isinstance(value, bytes):
        return value.decode()
    return None if not isinstance(value, dict) and pd.isna(value) else value


def columns_of(found):
    """A result as lists of plain Python values by column name."""
    if isinstance(found, mv.Report):
        return facts_of(found)
    if isinstance(found, mv.Plan):
        return dataclasses.asdict(found)
    if isinstance(found, pd.DataFrame):
        flat = found if found.columns.nlevels == 1 else found.droplevel(0, axis=1)
        named = flat.reset_index() if any(flat.index.names) else flat
        columns = {name: named[name].astype(object).tolist() for name in named.columns}
    else:
        columns = (
            found.to_pydict() if isinstance(found, pa.Table) else found.to_dict(as_series=False)
        )
    return {name: [plain_value(value) for value in values] for name, values in columns.items()}


@functools.cache
def expected_of(verb):
    return columns_of(run(PLAIN, verb).result)


@pytest.mark.slow
@each_row("kind", KINDS, ids=lambda kind: kind.name.replace(" ", "_"))
def test_each_function_gives_what_it_gives_for_pandas_or_an_error_that_names_the_way(kind):
    check_kind(kind)


@pytest.mark.slow
@each_row("kind", KINDS[::8], ids=lambda kind: kind.name.replace(" ", "_"))
def test_each_function_gives_that_for_a_part_of_the_kinds(kind):
    check_kind(kind)


def check_kind(kind):
    for verb in VERBS:
        cell = run(kind, verb)
        works = kind.gives != "error" and (kind.column is not None or verb in ON_COLUMNS)
        assert cell.shown == (
            {"plan": "Plan", "report": "Report"}.get(verb, kind.gives) if works else "error"
        ), verb
        if not works:
            assert re.search(r"\b(give|call)\b", str(cell.error)), verb
            continue
        expected, found = expected_of(verb), columns_of(cell.result)
        if kind.column is None and verb != "plan":
            expected = {
                name.removeprefix("email_"): values
                for name, values in expected.items()
                if "email_" in name
            }
        is_by_row = (
            verb != "summary"
            and isinstance(cell.result, pd.DataFrame)
            and len(cell.result) == len(CELLS)
        )
        if is_by_row:
            index = cell.result.index
            assert index.equals(
                kind.make(source_frame()).index if kind.name.startswith("pandas D") else index
            )
            for name in expected.keys() & set(ROW_LABELS):
                labels = [None if at is None else index[at] for at in expected[name]]
                expected = {**expected, name: labels}
        assert found == expected, verb


def test_a_stream_is_read_once_for_several_columns_and_as_a_suppression_list():
    cells = ["ada@example.org", "nobody", None]
    frame = pd.DataFrame({"email": cells, "other": cells[::-1]})
    found = mv.verify(
        pa.Table.from_pandas(frame).to_reader(), ["email", "other"], validation_type="regex"
    )
    assert found["email_verdict"].to_pylist() == found["other_verdict"].to_pylist()[::-1]
    against = pa.table({"n": [1], "who": ["ada@example.org"]}).to_reader()
    assert mv.suppress(["ada@example.org"], against=against)["suppressed"].tolist() == [True]


@pytest.mark.slow
@each_row(
    "kind", [kind for kind in KINDS if kind.name not in ("str", "bytes")], ids=lambda k: k.name
)
def test_a_suppression_list_may_be_of_every_kind(kind):
    cells = ["ada@example.org", "eve@example.org", None]
    against = kind.make(
        pd.DataFrame({"email": pd.array(["bob@example.org", "ada@example.org"], dtype="string")})
    )
    column = kind.column if kind.name.endswith("two levels") else None
    if kind.gives == "error" and kind.name != "set":  # a list has no order that would matter
        with pytest.raises(MailVerdictError, match=r"^against: .*\b(give|call)\b"):
            mv.suppress(cells, against=against, against_column=column)
    else:
        assert mv.suppress(cells, against=against, against_column=column)[
            "suppressed"
        ].tolist() == [True, False, pd.NA]


def test_a_wrong_column_is_found_before_a_reader_is_read():
    reader = pa.Table.from_pandas(source_frame()).to_reader()
    for column in ("mail", None):
        with pytest.raises(ColumnError, match="'email'"):
            mv.verify(reader, column)
    assert reader.read_all().num_rows == len(CELLS)


def test_a_stream_of_one_column_without_a_name_gives_an_arrow_table():
    class Column:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.chunked_array([["ada@example.org"], ["nobody"]]).__arrow_c_stream__(
                requested_schema
            )

    assert mv.verify(Column(), validation_type="regex")["verdict"].to_pylist() == [
        "valid",
        "invalid",
    ]


def test_a_reader_of_many_batches_gives_a_row_for_each_address():
    batches = [
        pa.record_batch({"email": [f"ada{n}@example.org" for n in range(100)]}) for _ in range(50)
    ]
    out = mv.verify(
        pa.RecordBatchReader.from_batches(batches[0].schema, batches),
        "email",
        validation_type="regex",
    )
    assert out["email_verdict"].value_counts().to_pylist() == [{"values": "valid", "counts": 5_000}]


ROWS = [("ada@example.org", 1), ("nobody", 2)]


@each_row(
    ("data", "said"),
    [
        (ROWS, r"rows or frames \(of type tuple\).*as \[row\[0\] for row in data\]"),
        ([None, float("nan"), *ROWS], r"rows or frames \(of type tuple\)"),
        (iter(ROWS), r"rows or frames \(of type tuple\)"),
        ([list(row) for row in ROWS], r"rows or frames \(of type list\)"),
        (pd.DataFrame(ROWS).to_records(index=False).tolist(), r"rows or frames \(of type tuple\)"),
        (pd.DataFrame(ROWS).itertuples(), r"rows or frames \(of type Pandas\)"),
        (
            sqlite3.connect(":memory:").execute("select 'ada@example.org'"),
            r"rows or frames \(of type tuple\)",
        ),
        ([pa.table({"email": ["a"]})], r"frames \(of type Table\).*give one DataFrame"),
        (
            [pa.record_batch({"email": ["a"]})],
            r"frames \(of type RecordBatch\).*give one DataFrame",
        ),
        (
            (pl.DataFrame({"email": ["a"]}) for _ in range(2)),
            r"frames \(of type DataFrame\).*give one DataFrame",
        ),
        (pd.Series(ROWS).to_numpy(), r"rows or frames \(of type tuple\)"),
        ([pd.Series(["a@b.example"])], r"rows or frames \(of type Series\)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_rows_and_frames_are_refused(data, said):
    with pytest.raises(InputError, match=said):
        mv.verify(data, validation_type="regex")


def test_a_row_among_texts_is_a_cell_that_is_not_text():
    out = mv.verify(["ada@example.org", ("nobody",)], validation_type="regex")
    assert out["verdict"].tolist() == ["valid", "invalid"]


def test_a_column_without_an_address_gives_one_warning():
    frame = pd.DataFrame({"id": [1, 2], "email": ["ada@example.org", None]})
    for function in (
        mv.clean,
        mv.duplicates,
        mv.explode,
        functools.partial(mv.suppress, against=["x.example"]),
    ):
        with pytest.warns(
            UserWarning, match="no cell of column 'id' holds an @; is it the right column?"
        ) as told:
            function(frame, "id")
        assert [each.filename for each in told] == [__file__]
    with pytest.warns(UserWarning, match="column 'id' holds an @") as told:
        mv.verify(frame, ["id", "email"], validation_type="regex")
    assert [each.filename for each in told] == [__file__]
    assert "column 'id' holds an @" in mv.start(frame, "id", validation_type="regex").notices[0]


def test_rows_with_types_that_arrow_cannot_take_are_split():
    nested = pa.array([{"name": "a"}, None, {"name": "c"}], pa.struct({"name": pa.string_view()}))
    table = pa.table(
        {
            "email": pa.array(["ada@x.example", "nobody", "cy@x.example"], pa.string_view()),
            "who": nested,
        }
    )
    parts = mv.split(mv.verify(table, "email", validation_type="regex"), "email")
    assert parts.send.select(["email", "who"]).schema == table.schema
    assert parts.send["who"].to_pylist() == [{"name": "a"}, {"name": "c"}]
    assert parts.drop["email"].to_pylist() == ["nobody"]


class LateImport:
    """A module while another thread imports it."""


def test_polars_that_is_being_imported_does_not_matter(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", LateImport())
    assert mv.verify(["ada@example.org"], validation_type="regex")["verdict"].tolist() == ["valid"]


def test_real_duckdb_relations_are_streams():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select 'ada@example.org' as email union all select null")
    assert isinstance(mv.verify(relation, "email", validation_type="regex"), pa.Table)


def test_a_dask_frame_is_recognised():
    dask = pytest.importorskip("dask.dataframe")
    with pytest.raises(SettingsError, match=r"mailverdict\.dask\.verify"):
        mv.verify(dask.from_pandas(source_frame(), npartitions=1), "email")


def test_an_error_in_the_middle_of_a_stream_reaches_the_caller():
    schema = pa.schema({"email": pa.string()})

    def batches():
        yield pa.record_batch({"email": ["ada@example.org"]}, schema=schema)
        raise OSError("the disk is gone")

    with pytest.raises((OSError, MailVerdictError), match="the disk is gone"):
        mv.verify(
            pa.RecordBatchReader.from_batches(schema, batches()), "email", validation_type="regex"
        )


@pytest.mark.filterwarnings("ignore:.*several addresses:UserWarning")
def test_results_of_a_stream_stay_when_a_report_is_saved_later(tmp_path):
    verified = mv.verify(source_frame().astype({"email": object}), "email", validation_type="regex")
    path = mv.report(Relation(verified), "email").save(tmp_path / "report.xlsx")
    sheet = pd.read_excel(path, sheet_name="Send list", engine="calamine")
    sent = mv.split(verified, "email").send
    assert sheet["Address"].tolist() == sent["email_clean"].tolist()
