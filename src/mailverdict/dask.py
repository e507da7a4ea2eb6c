"""Dask frames: distinct addresses are verified once, by the calling process, and joined back partition by partition.

Dask works on partitions in many processes at once, and repeats one that is lost or computed twice. So no partition
uses the network itself: cost, speed and the limits for each mail server are kept however many workers there are.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from .errors import InputError, MissingExtraError, SettingsError
from .frames.columns import Column, choose_columns
from .frames.kinds import kind_of_data
from .frames.options import VerifyOptions, show_options, split_options
from .frames.text_column import read_values
from .frames.verify import (
    ResultBuilder,
    check_flag,
    check_progress,
    choose_names,
    collect,
    read_addresses,
    show_progress,
    shown_columns,
)
from .local.backend import LocalBackend
from .model.settings import Lists
from .model.table import SCHEMA, complete_table
from .model.words import Status, ValidationType
from .runs.execution import unique_addresses
from .runs.options import Options, open_execution
from .runs.run import Run

try:
    from dask.dataframe import DataFrame, Series
    from dask.delayed import delayed
except ImportError as exc:
    raise MissingExtraError("verifying Dask frames", "dask") from exc

__all__ = ["verify"]


@show_options()
def verify(
    data: Any,
    column: Hashable | None = None,
    **options: Unpack[VerifyOptions],
) -> Any:
    """Verify a column of a Dask frame.

    ``regex`` needs no network: the result is lazy, each partition checks its own rows. For the other
    types the call itself reads the column, verifies its distinct addresses in this process, and
    returns a lazy frame that only joins the results: computing it, once or often, on one worker or
    on many, uses no network and no quota. The distinct addresses have to fit into memory; the rows do not.

    Parameters
    ----------
    data : dask.dataframe.DataFrame or Series
        Its partitions are pandas frames. It is read twice: `persist` it if that is expensive.
    column : hashable, optional
        Which column of a frame.
    **options
        The keyword arguments of `mailverdict.verify`. `limit` counts distinct addresses of the whole frame.

    Returns
    -------
    dask.dataframe.DataFrame
        Partitions, divisions, index and order are kept; the result columns are added to the
        caller's own, with the dtypes of `mailverdict.verify`.

    Raises
    ------
    InputError
        If `data` is not a Dask frame.
    ColumnError, SettingsError, BackendError, QuotaExceeded, JournalError
        As `mailverdict.verify`, at the call and not at `compute`; a `partial` on a `BackendError`
        is an Arrow table of the distinct texts.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> import mailverdict.dask
    >>> people = pd.DataFrame({"email": ["ada@gmail.com", "bo@gone.example", "ada@gmail.com", None]})
    >>> ddf = dd.from_pandas(people, npartitions=2)
    >>> with mv.sandbox.World() as world:
    ...     out = mailverdict.dask.verify(ddf, "email", backend=world.backend, progress=False)
    >>> out.compute()["email_verdict"].tolist()
    ['valid', 'invalid', 'valid', nan]
    """
    if not isinstance(data, DataFrame | Series):
        raise InputError(f"{type(data).__name__} is not a Dask frame; use mailverdict.verify for frames in memory")
    frame: Any = data
    run_options, output = split_options("verify", options)
    check_progress(output["progress"])
    is_cleaned = check_flag("clean", output["clean"])
    if isinstance(column, list):
        raise SettingsError(f"column={column!r}: give one column of a Dask frame; a list is for frames in memory")
    checked = Options.check(**run_options)
    columns = choose_columns(output["columns"], categories=output["categories"])
    join = ResultJoin(
        column,
        output["prefix"],
        columns,
        checked.validation_type,
        checked.backend.source,
        is_cleaned=is_cleaned,
        overwrite=check_flag("overwrite", output["overwrite"]),
    )
    meta = join(frame._meta, NO_RESULTS)
    if is_lazy(checked):
        assert isinstance(checked.backend, LocalBackend)
        return frame.map_partitions(check_syntax, join, checked.backend.settings.lists, meta=meta)
    addresses = distinct_addresses(data, column, is_cleaned=is_cleaned)
    run = run_over(addresses, checked)
    show_progress(run, column, output["progress"], is_free=checked.is_free)
    results = DistinctResults(addresses, collect(run).select(join.fields()))
    return frame.map_partitions(join_partition, join, delayed(results), meta=meta)


@dataclass(frozen=True)
class DistinctResults:
    """The results by distinct address; sent to every worker."""

    addresses: pa.StringArray
    rows: pa.Table

    def rows_for(self, texts: pa.StringArray, validation_type: ValidationType) -> pa.Table:
        """The rows of these addresses; one that was not there when the frame was read is pending."""
        missing = {"status": pa.array([str(Status.PENDING)]), "validation_type": pa.array([str(validation_type)])}
        pending = complete_table(missing, 1).select(self.rows.column_names)
        whole = pa.concat_tables([self.rows, pending]).unify_dictionaries().combine_chunks()
        return whole.take(pc.index_in(texts, value_set=self.addresses).fill_null(len(self.rows)))


NO_RESULTS = DistinctResults(pa.array([], pa.string()), SCHEMA.empty_table())


@dataclass(frozen=True)
class ResultJoin:
    """Adds the result columns to a partition."""

    column: Hashable | None
    prefix: str | None
    columns: Sequence[Column]
    validation_type: ValidationType
    source: str
    is_cleaned: bool  # whether cells are repaired first
    overwrite: bool  # whether result columns of an earlier call are replaced

    def fields(self) -> list[str]:
        """Fields of the table of results that the columns are made from."""
        return list(dict.fromkeys(["status", *(field for column in self.columns for field in column.fields)]))

    def __call__(self, part: pd.DataFrame | pd.Series[Any], results: DistinctResults) -> pd.DataFrame:
        """One partition with its result columns."""
        kind = kind_of_data(part, self.column)
        read = read_addresses([kind.values()], clean=self.is_cleaned)
        texts, codes = unique_addresses(read.texts)
        shown = shown_columns(self.columns, clean=self.is_cleaned)
        [names] = choose_names([kind], self.column, self.prefix, [shown], overwrite=self.overwrite)
        builder = ResultBuilder(
            kind, names, self.columns, read.cells[0], codes, self.validation_type, self.source, read.repaired
        )
        out: pd.DataFrame = builder(results.rows_for(texts, self.validation_type))
        return out


def is_lazy(options: Options) -> bool:
    """Whether each partition can be verified where it is; a limit is for the whole frame."""
    return options.is_free and isinstance(options.backend, LocalBackend) and options.settings.limit is None


def join_partition(part: pd.DataFrame | pd.Series[Any], join: ResultJoin, results: DistinctResults) -> pd.DataFrame:
    """One partition with its result columns; a function, since Dask shows its name in graphs."""
    return join(part, results)


def check_syntax(part: pd.DataFrame | pd.Series[Any], join: ResultJoin, lists: Lists) -> pd.DataFrame:
    """One partition, verified by the worker that holds it."""
    kind = kind_of_data(part, join.column)
    texts, _ = unique_addresses(read_addresses([kind.values()], clean=join.is_cleaned).texts)
    given = {"validation_type": join.validation_type, "backend": LocalBackend(lists=lists)}
    options = Options.check(**split_options("verify", given)[0])
    return join(part, DistinctResults(texts, run_over(texts, options).result()))


def distinct_addresses(data: Any, column: Hashable | None, *, is_cleaned: bool) -> pa.StringArray:
    """Read the one column, partition by partition, and keep each address once."""
    cells = data if column is None else data[column]
    texts = cells.map_partitions(
        distinct_texts, is_cleaned=is_cleaned, meta=pd.Series([], dtype="string", name="address")
    ).compute()
    return unique_addresses(read_values(texts).texts)[0]


def distinct_texts(cells: pd.Series[Any], *, is_cleaned: bool) -> pd.Series[Any]:
    """The distinct addresses of one partition."""
    texts, _ = unique_addresses(read_addresses([cells], clean=is_cleaned).texts)
    return pd.Series(texts.to_pandas(), dtype="string", name="address")


def run_over(addresses: pa.StringArray, options: Options) -> Run[pa.Table]:
    """A run whose result is the table of unique addresses itself."""
    return Run(open_execution(addresses, options), lambda table: table)
