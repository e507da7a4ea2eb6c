"""What each function of frames gives for each kind of input: the table in the documentation, checked by the tests.

Every kind is made from one pandas frame, so that all results can be compared with those of that frame. Functions of
verified data get the same kind of the verified frame.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Hashable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

import mailverdict as mv
from mailverdict.errors import MailVerdictError

__all__ = ["KINDS", "ON_COLUMNS", "VERBS", "Cell", "Kind", "render", "run"]

CELLS = (
    "ada@example.org",
    "Ada@Example.ORG",
    "bob@gmial.com",
    "Cy Lee <cy@firm.example>",
    "dee@firm.example; eve@firm.example",
    "info@firm.example",
    "nobody",
    None,
)
SUPPRESSED = ["firm.example"]
BOUNCED = {
    "who": ["ada@example.org", "info@firm.example"],
    "reply": ["550 5.1.1 User unknown", "452 4.2.2 Mailbox full"],
}


@dataclasses.dataclass(frozen=True)
class Kind:
    """One kind of input."""

    name: str
    gives: str  # the kind of the results, or "error"
    make: Callable[[pd.DataFrame], Any]  # from a pandas frame with the column `email`
    column: Hashable | None = None  # the column argument; None: the data is a column


class Relation:
    """What has the Arrow PyCapsule interface and nothing else, as a DuckDB relation."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.table = to_arrow(frame)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The stream of the table."""
        return self.table.__arrow_c_stream__(requested_schema)


class Piece:
    """What has only the part of the interface for one array."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.batch = to_arrow(frame).combine_chunks().to_batches()[0]

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """The array of the batch."""
        capsules: tuple[object, object] = self.batch.__arrow_c_array__(requested_schema)
        return capsules


@dataclasses.dataclass
class Person:
    """A row as an object."""

    email: str | None


def to_arrow(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


def to_polars(frame: pd.DataFrame) -> pl.DataFrame:
    made = pl.from_arrow(to_arrow(frame))
    assert isinstance(made, pl.DataFrame)
    return made


def with_column(frame: pd.DataFrame, values: Any) -> pd.DataFrame:
    return frame.assign(email=values)


def with_arrow_column(
    frame: pd.DataFrame, change: Callable[[pa.ChunkedArray], pa.ChunkedArray]
) -> pa.Table:
    table = to_arrow(frame)
    at = table.schema.get_field_index("email")
    return table.set_column(at, "email", change(table["email"].cast(pa.string())))


def octets(frame: pd.DataFrame) -> list[bytes | None]:
    return [None if pd.isna(cell) else cell.encode() for cell in frame["email"]]


def cells_of(frame: pd.DataFrame) -> list[str | None]:
    return [None if pd.isna(cell) else cell for cell in frame["email"]]


def last_labels(ranked: Any) -> Any:
    """A ranking of columns with the last one of several labels."""
    if not isinstance(ranked, pd.DataFrame):
        return ranked
    return ranked.rename(index=lambda name: str(name).rpartition("/")[2])


def below_work(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with two levels of labels."""
    return frame.set_axis(pd.MultiIndex.from_product([["work"], frame.columns]), axis=1)


def foreign(module: str, name: str) -> Callable[[pd.DataFrame], Any]:
    """An object that is recognised by the module of its class, as the libraries themselves are."""
    return lambda frame: type(name, (), {"__module__": module, "columns": list(frame.columns)})()


KINDS = (
    Kind("pandas DataFrame, `str`", "pandas", lambda f: f.astype({"email": "string"}), "email"),
    Kind("pandas DataFrame, `object`", "pandas", lambda f: f.astype({"email": object}), "email"),
    Kind(
        "pandas DataFrame, `category`", "pandas", lambda f: f.astype({"email": "category"}), "email"
    ),
    Kind(
        "pandas DataFrame, Arrow text",
        "pandas",
        lambda f: f.astype({"email": pd.ArrowDtype(pa.large_string())}),
        "email",
    ),
    Kind(
        "pandas DataFrame, cells of bytes", "pandas", lambda f: with_column(f, octets(f)), "email"
    ),
    Kind(
        "pandas DataFrame, repeated index labels",
        "pandas",
        lambda f: f.set_index(pd.Index([7] * len(f))),
        "email",
    ),
    Kind(
        "pandas DataFrame, index of two levels",
        "pandas",
        lambda f: f.set_index(pd.MultiIndex.from_product([["a"], range(len(f))])),
        "email",
    ),
    Kind("pandas DataFrame, columns of two levels", "pandas", below_work, ("work", "email")),
    Kind("pandas Series", "pandas", lambda f: f["email"]),
    Kind("pandas Index", "pandas", lambda f: pd.Index(cells_of(f))),
    Kind("pandas array", "pandas", lambda f: pd.array(cells_of(f), dtype="string")),
    Kind("Polars DataFrame", "Polars", to_polars, "email"),
    Kind(
        "Polars DataFrame, `Categorical`",
        "Polars",
        lambda f: to_polars(f).cast({"email": pl.Categorical}),
        "email",
    ),
    Kind(
        "Polars DataFrame, `Binary`",
        "Polars",
        lambda f: to_polars(with_column(f, octets(f))),
        "email",
    ),
    Kind("Polars LazyFrame", "error", lambda f: to_polars(f).lazy(), "email"),
    Kind("Polars Series", "Polars", lambda f: to_polars(f)["email"]),
    Kind("Arrow Table", "Arrow", to_arrow, "email"),
    Kind(
        "Arrow Table, dictionary",
        "Arrow",
        lambda f: with_arrow_column(f, lambda c: c.dictionary_encode()),
        "email",
    ),
    Kind(
        "Arrow Table, binary",
        "Arrow",
        lambda f: with_arrow_column(f, lambda c: c.cast(pa.binary())),
        "email",
    ),
    Kind(
        "Arrow Table, text view",
        "Arrow",
        lambda f: with_arrow_column(f, lambda c: pa.array(c.to_pylist(), pa.string_view())),
        "email",
    ),
    Kind(
        "Arrow Table, run-end encoded",
        "Arrow",
        lambda f: with_arrow_column(f, pc.run_end_encode),
        "email",
    ),
    Kind(
        "Arrow RecordBatch",
        "Arrow",
        lambda f: to_arrow(f).combine_chunks().to_batches()[0],
        "email",
    ),
    Kind("Arrow RecordBatchReader", "Arrow", lambda f: to_arrow(f).to_reader(), "email"),
    Kind("Arrow Array", "Arrow", lambda f: pa.array(cells_of(f), pa.string())),
    Kind(
        "Arrow ChunkedArray",
        "Arrow",
        lambda f: pa.chunked_array([cells_of(f)[:3], cells_of(f)[3:]], pa.string()),
    ),
    Kind("Arrow dataset", "error", lambda f: pyarrow.dataset.dataset(to_arrow(f)), "email"),
    Kind("any object with `__arrow_c_stream__`, as a DuckDB relation", "Arrow", Relation, "email"),
    Kind("any object with `__arrow_c_array__`", "Arrow", Piece, "email"),
    Kind("numpy array, `object`", "pandas", lambda f: np.array(cells_of(f), dtype=object)),
    Kind("numpy array, `bytes`", "pandas", lambda f: np.array([each or b"" for each in octets(f)])),
    Kind("numpy array of two dimensions", "error", lambda f: f[["email"]].to_numpy()),
    Kind("numpy structured array", "error", lambda f: f[["email"]].to_records(index=False)),
    Kind("list", "pandas", cells_of),
    Kind("tuple", "pandas", lambda f: tuple(cells_of(f))),
    Kind("generator", "pandas", lambda f: (cell for cell in cells_of(f))),
    Kind("set", "error", lambda f: set(cells_of(f))),
    Kind("dict of lists", "error", lambda f: {"email": cells_of(f)}),
    Kind("str", "error", lambda f: str(f["email"].iloc[0])),
    Kind("bytes", "error", lambda f: str(f["email"].iloc[0]).encode()),
    Kind(
        "list of tuples, as `fetchall()` gives",
        "error",
        lambda f: [(cell,) for cell in cells_of(f)],
    ),
    Kind("list of dicts", "error", lambda f: [{"email": cell} for cell in cells_of(f)]),
    Kind("list of dataclasses", "error", lambda f: [Person(cell) for cell in cells_of(f)]),
    Kind(
        "generator of record batches",
        "error",
        lambda f: (batch for batch in to_arrow(f).to_batches()),
    ),
    Kind("list of DataFrames", "error", lambda f: [f.head(2), f.tail(2)]),
    Kind(
        "Dask DataFrame",
        "error",
        foreign("dask.dataframe.dask_expr._collection", "DataFrame"),
        "email",
    ),
    Kind(
        "Spark DataFrame", "error", foreign("pyspark.sql.classic.dataframe", "DataFrame"), "email"
    ),
    Kind("Ray Dataset", "error", foreign("ray.data.dataset", "Dataset"), "email"),
    Kind("Vaex DataFrame", "error", foreign("vaex.dataframe", "DataFrameLocal"), "email"),
    Kind(
        "Modin DataFrame without the Arrow interface",
        "error",
        foreign("modin.pandas.dataframe", "DataFrame"),
        "email",
    ),
    Kind(
        "DuckDB relation without the Arrow interface",
        "error",
        foreign("_duckdb", "DuckDBPyRelation"),
        "email",
    ),
)
# Called with the maker of a kind, and the column.
Verb = Callable[[Callable[[pd.DataFrame], Any], Any], Any]
ON_COLUMNS: dict[str, Verb] = {
    "verify": lambda make, column: mv.verify(make(source_frame()), column, validation_type="regex"),
    "plan": lambda make, column: mv.plan(make(source_frame()), column, validation_type="regex"),
    "clean": lambda make, column: mv.clean(make(source_frame()), column),
    "duplicates": lambda make, column: mv.duplicates(make(source_frame()), column),
    "suppress": lambda make, column: mv.suppress(make(source_frame()), column, SUPPRESSED),
}
ON_FRAMES: dict[str, Verb] = {
    "explode": lambda make, column: mv.explode(make(source_frame()), column),
    "decide": lambda make, column: mv.decide(make(verified_frame()), column),
    "split": lambda make, column: mv.split(make(verified_frame()), column).review,
    "summary": lambda make, column: mv.summary(make(verified_frame()), column),
    "breakdown": lambda make, column: last_labels(
        mv.breakdown(make(verified_frame()), column=column)
    ),
    "breakdown by domain": lambda make, column: mv.breakdown(
        make(verified_frame()), "domain", column=column
    ),
    "diff": lambda make, column: mv.diff(
        make(verified_frame().iloc[2:]), make(verified_frame().iloc[:4]), column
    ),
    "outcomes": lambda make, column: mv.outcomes(make(verified_frame()), column, bounces()),
    "contradicted": lambda make, column: mv.contradicted(make(verified_frame()), column, bounces()),
    "mailing": lambda make, column: mv.mailing(make(verified_frame()), column).held,
    "report": lambda make, column: mv.report(make(verified_frame()), column),
}
VERBS: dict[str, Verb] = {**ON_COLUMNS, **ON_FRAMES}


@dataclasses.dataclass(frozen=True)
class Cell:
    """What a function gave for a kind of input."""

    result: Any = None
    error: MailVerdictError | None = None

    @property
    def shown(self) -> str:
        """The kind of the result, or that it is an error."""
        return "error" if self.error is not None else kind_of_result(self.result)


@cache
def source_frame() -> pd.DataFrame:
    return pd.DataFrame({"id": range(len(CELLS)), "email": pd.array(CELLS, dtype="string")})


@cache
def verified_frame() -> pd.DataFrame:
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return mv.verify(source_frame(), "email", validation_type="regex")


@cache
def bounces() -> pd.DataFrame:
    return mv.read_bounces(pd.DataFrame(BOUNCED), columns={"address": "who", "diagnostic": "reply"})


def run(kind: Kind, verb: str) -> Cell:
    """Call a function with a kind of input; an error that is not one of the package is raised."""
    column = kind.column if verb in ON_COLUMNS or kind.column is not None else "email"
    try:
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            return Cell(VERBS[verb](kind.make, column))
    except MailVerdictError as exc:
        return Cell(error=exc)


def kind_of_result(result: Any) -> str:
    names = {
        pd.DataFrame: "pandas",
        pl.DataFrame: "Polars",
        pa.Table: "Arrow",
        mv.Plan: "Plan",
        mv.Report: "Report",
    }
    return next(name for kind, name in names.items() if isinstance(result, kind))


@cache
def render() -> tuple[list[list[str]], list[list[str]]]:
    """The rows of two tables: what comes out by kind and function, and what the errors say."""
    found = {kind.name: {verb: run(kind, verb) for verb in VERBS} for kind in KINDS}
    results = [[name, *(cell.shown for cell in row.values())] for name, row in found.items()]
    return results, [line for name, row in found.items() for line in errors_of(name, row)]


def errors_of(name: str, row: dict[str, Cell]) -> Iterator[list[str]]:
    """A line for each message, with the functions that give it."""
    messages: dict[str, list[str]] = {}
    for verb, cell in row.items():
        if cell.error is not None:
            messages.setdefault(f"`{type(cell.error).__name__}`: {cell.error}", []).append(verb)
    for message, verbs in messages.items():
        which = "all" if len(verbs) == len(row) else ", ".join(verbs)
        yield [name, which, message]
