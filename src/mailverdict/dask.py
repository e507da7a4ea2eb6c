"""Dask frames: distinct addresses are verified once, by one asker, and joined back partition by partition.

Partitions are worked on by many processes at once, and again when one is lost or a result is
computed twice. So no partition asks the network itself: what is asked, how fast, and what it costs
stays in one hand, and politeness towards an exchange holds however many workers there are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from .errors import InputError, MissingExtraError
from .frames.columns import Column, choose_columns
from .frames.kinds import kind_of_data
from .frames.text_column import read_values
from .frames.verify import Assembly, check_progress, collect, show_progress
from .local.backend import LocalBackend
from .model.settings import Lists
from .model.table import SCHEMA, complete_table
from .model.words import Status, ValidationType
from .runs.execution import unique_addresses
from .runs.options import Options, open_execution
from .runs.progress import Listener
from .runs.run import Run

try:
    from dask.dataframe import DataFrame, Series
    from dask.delayed import delayed
except ImportError as exc:
    raise MissingExtraError("verifying Dask frames", "dask") from exc

__all__ = ["verify"]


def verify(
    data: Any,
    column: Hashable | None = None,
    *,
    columns: str | Iterable[str] = "core",
    prefix: str | None = None,
    progress: bool | str | Listener = "auto",
    **options: Any,
) -> Any:
    """Verify a column of a Dask frame.

    ``regex`` needs no network: the result is lazy, each partition checks its own rows. For the other
    types the call itself reads the column, verifies its distinct addresses in this process, and
    returns a lazy frame that only looks answers up: computing it, once or often, on one worker or
    on many, asks nobody and costs nothing. The distinct addresses have to fit into memory; the rows do not.

    Parameters
    ----------
    data : dask.dataframe.DataFrame or Series
        Its partitions are pandas frames. It is read twice: `persist` it if that is dear.
    column : hashable, optional
        Which column of a frame.
    columns, prefix, progress
        As in `mailverdict.verify`.
    **options
        The other keyword arguments of `mailverdict.verify`. `limit` counts distinct addresses of
        the whole frame.

    Returns
    -------
    dask.dataframe.DataFrame
        Partitions, divisions, index and order are kept; the result columns stand beside the
        caller's own, with the dtypes that `mailverdict.verify` gives.

    Raises
    ------
    InputError
        If `data` is no Dask frame.
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
        raise InputError(f"{type(data).__name__} is no Dask frame; mailverdict.verify takes frames in memory")
    frame: Any = data
    check_progress(progress)
    checked = Options.check(**options)
    join = Join(column, prefix, choose_columns(columns), checked.validation_type, checked.backend.source)
    meta = join(frame._meta, NOBODY)
    if is_lazy(checked):
        assert isinstance(checked.backend, LocalBackend)
        return frame.map_partitions(check_syntax, join, checked.backend.settings.lists, meta=meta)
    addresses = distinct_addresses(data, column)
    run = run_over(addresses, checked)
    show_progress(run, column, progress, is_free=checked.is_free)
    answers = Answers(addresses, collect(run).select(join.fields()))
    return frame.map_partitions(look_up, join, delayed(answers), meta=meta)


@dataclass(frozen=True)
class Answers:
    """What was found out, by distinct address; it travels to every worker."""

    addresses: pa.StringArray
    rows: pa.Table

    def of(self, texts: pa.StringArray, validation_type: ValidationType) -> pa.Table:
        """Look addresses up; one that was not there when the frame was read stays pending."""
        missing = {"status": pa.array([str(Status.PENDING)]), "validation_type": pa.array([str(validation_type)])}
        pending = complete_table(missing, 1).select(self.rows.column_names)
        whole = pa.concat_tables([self.rows, pending]).unify_dictionaries().combine_chunks()
        return whole.take(pc.index_in(texts, value_set=self.addresses).fill_null(len(self.rows)))


NOBODY = Answers(pa.array([], pa.string()), SCHEMA.empty_table())


@dataclass(frozen=True)
class Join:
    """Puts answers beside the rows of a partition."""

    column: Hashable | None
    prefix: str | None
    columns: Sequence[Column]
    validation_type: ValidationType
    source: str

    def fields(self) -> list[str]:
        """What of an answer is shown."""
        return list(dict.fromkeys(["status", *(column.field for column in self.columns)]))

    def __call__(self, part: pd.DataFrame | pd.Series[Any], answers: Answers) -> pd.DataFrame:
        """One partition with its result columns."""
        kind = kind_of_data(part, self.column)
        intake = read_values(kind.values())
        texts, codes = unique_addresses(intake.texts)
        names = kind.names(self.prefix, self.columns)
        assembly = Assembly(kind, names, self.columns, intake, codes, self.validation_type, self.source)
        out: pd.DataFrame = assembly(answers.of(texts, self.validation_type))
        return out


def is_lazy(options: Options) -> bool:
    """Whether partitions can answer by themselves; a limit is for the whole frame."""
    return options.is_free and isinstance(options.backend, LocalBackend) and options.request.limit is None


def look_up(part: pd.DataFrame | pd.Series[Any], join: Join, answers: Answers) -> pd.DataFrame:
    """One partition; a function by name, since Dask shows it in its graphs."""
    return join(part, answers)


def check_syntax(part: pd.DataFrame | pd.Series[Any], join: Join, lists: Lists) -> pd.DataFrame:
    """One partition, settled where it is."""
    kind = kind_of_data(part, join.column)
    texts, _ = unique_addresses(read_values(kind.values()).texts)
    options = Options.check(validation_type=join.validation_type, backend=LocalBackend(lists=lists))
    return join(part, Answers(texts, run_over(texts, options).result()))


def distinct_addresses(data: Any, column: Hashable | None) -> pa.StringArray:
    """Read the one column, partition by partition, and keep each address once."""
    cells = data if column is None else data[column]
    texts = cells.map_partitions(distinct_texts, meta=pd.Series([], dtype="string", name="address")).compute()
    return unique_addresses(read_values(texts).texts)[0]


def distinct_texts(cells: pd.Series[Any]) -> pd.Series[Any]:
    """The distinct addresses of one partition."""
    texts, _ = unique_addresses(read_values(cells).texts)
    return pd.Series(texts.to_pandas(), dtype="string", name="address")


def run_over(addresses: pa.StringArray, options: Options) -> Run[pa.Table]:
    """A run that gives the table of unique addresses as it is."""
    return Run(open_execution(addresses, options), lambda table: table)
