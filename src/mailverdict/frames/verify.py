"""Verifying a column: `verify`, `averify` and `start`; and `check` for one address.

In order: the arguments are checked, the column is read as text, its addresses are made unique, a `Run` verifies
them, and a `ResultBuilder` puts the results beside the caller's rows.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..backend import Backend
from ..errors import SettingsError
from ..local.backend import CheckRecord
from ..local.batch import foreign_rows
from ..loop import run_sync
from ..model.verification import Verification
from ..model.words import Status, ValidationType, ValidationTypeWord
from ..runs.execution import unique_addresses
from ..runs.options import Options, open_execution, parse_validation_type
from ..runs.progress import Listener, ProgressBar, wants_bar
from ..runs.run import Run
from ..runs.single import check_address, open_backend
from .columns import Column, choose_columns
from .kinds import DataKind, kind_of_data
from .options import VerifyOptions, show_options, split_options
from .text_column import LONGEST_TEXT, TextColumn, read_values

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ResultBuilder", "averify", "check", "start", "verify"]

Index = npt.NDArray[np.int64]
# Overloads: a frame comes back as the kind it came in, anything else as a pandas frame. The Arrow table comes last,
# since pyarrow has no types of its own and every argument would match it.


@dataclass(frozen=True)
class ResultBuilder:
    """Turns a table of unique addresses into the caller's kind of result; a run calls it with what is settled."""

    data: DataKind
    names: Sequence[Any]  # of the result columns
    columns: Sequence[Column]
    cells: TextColumn
    codes: npt.NDArray[np.int32] | None  # for each text the row of its address; None: the same order
    validation_type: ValidationType
    source: str

    def __call__(self, unique: pa.Table) -> Any:
        """Make the caller's kind of result."""
        fields = self.fields()
        rows = self.rows(unique.select(fields), fields)
        note = {"validation_type": str(self.validation_type), "source": self.source}
        return self.data.attach(rows, self.names, self.columns, note)

    def fields(self) -> list[str]:
        """Fields of the table that the columns are made from."""
        return list(dict.fromkeys(["status", *(column.field for column in self.columns)]))

    def rows(self, unique: pa.Table, fields: list[str]) -> pa.Table:
        """One row per row of the caller's, in their order."""
        cells = self.cells
        if cells.rows is None and self.codes is None:
            return unique
        order: Index = np.full(cells.size, -1, np.int64)
        order[slice(None) if cells.rows is None else cells.rows] = (
            np.arange(len(unique)) if self.codes is None else self.codes
        )
        if len(cells.nontext_rows):
            nontext = foreign_rows(cells.nontext_types, self.validation_type, datetime.now(UTC)).select(fields)
            order[cells.nontext_rows] = len(unique) + np.arange(len(nontext))
            unique = pa.concat_tables([unique, nontext])
        return take_rows(unique, order)


def take_rows(table: pa.Table, order: Index) -> pa.Table:
    """Row `order[i]` of the table in row i; -1 is an empty cell: status ``missing``, everything else null."""
    rows = table.unify_dictionaries().combine_chunks().take(pa.array(order, mask=order < 0))
    status = rows["status"].combine_chunks()
    words = pa.concat_arrays([status.dictionary, pa.array([str(Status.MISSING)])])
    codes = status.indices.fill_null(len(words) - 1)
    at = rows.schema.get_field_index("status")
    return rows.set_column(at, rows.field(at), pa.DictionaryArray.from_arrays(codes, words))


@overload
def start(data: pd.DataFrame, column: Hashable, **options: Unpack[VerifyOptions]) -> Run[pd.DataFrame]: ...
@overload
def start(data: pl.DataFrame, column: str, **options: Unpack[VerifyOptions]) -> Run[pl.DataFrame]: ...
@overload
def start(data: Iterable[object], column: None = None, **options: Unpack[VerifyOptions]) -> Run[pd.DataFrame]: ...
@overload
def start(data: pa.Table, column: str, **options: Unpack[VerifyOptions]) -> Run[pa.Table]: ...
@show_options(progress=False)
def start(data: Any, column: Hashable | None = None, **options: Unpack[VerifyOptions]) -> Run[Any]:
    """Verify a column in the background and return at once.

    Parameters
    ----------
    data, column
        As in `verify`.
    **options
        The keyword arguments of `verify`; only `progress` has another default, False.

    Returns
    -------
    Run
        With `.progress`, `.partial()`, `.cancel()`, `.wait(timeout)`, `.result()`, `.subscribe(callback)`.

    Raises
    ------
    ColumnError, SettingsError
        As `verify`, before any work.
    JournalError
        If the file is damaged or is not a journal; it is not changed.

    Examples
    --------
    >>> import mailverdict as mv
    >>> run = mv.start(["ada@example.org", "ada@@example.org"], validation_type="regex")
    >>> run.result()["verdict"].tolist()
    ['valid', 'invalid']
    """
    return prepare(data, column, *split_options("start", options, progress=False))._start()


def prepare(
    data: Any,
    column: Hashable | None,
    run_options: dict[str, Any],
    output_options: dict[str, Any],
    fields: Sequence[str] | None = None,
) -> Run[Any]:
    """Read the column and set the run up; no network is used before it is started.

    Only the `fields` of the table of results that the columns need are kept, unless others are given.
    """
    options = Options.check(**run_options)
    kind = kind_of_data(data, column)
    columns = choose_columns(output_options["columns"])
    names = kind.names(output_options["prefix"], columns)
    progress = output_options["progress"]
    check_progress(progress)
    cells = read_values(kind.values())
    # Addresses of a free type are not made unique: hashing a million texts takes longer than checking them.
    texts, codes = (cells.texts, None) if options.is_free else unique_addresses(cells.texts)
    builder = ResultBuilder(kind, names, columns, cells, codes, options.validation_type, options.backend.source)
    run: Run[Any] = Run(open_execution(texts, options, fields or builder.fields()), builder)
    show_progress(run, column, progress, is_free=options.is_free)
    return run


def check_progress(progress: bool | str | Listener) -> None:  # noqa: FBT001 - the argument that users give
    if not callable(progress) and progress not in (True, False, "auto"):
        raise SettingsError(f"progress={progress!r}: give 'auto', True, False or a function")


def show_progress(run: Run[Any], column: Hashable | None, progress: bool | str | Listener, *, is_free: bool) -> None:  # noqa: FBT001
    """Subscribe the caller's function or a progress bar."""
    if callable(progress):
        run.subscribe(progress)
    elif wants_bar(progress=progress, is_free=is_free):
        run.subscribe(ProgressBar(f"verify {column}" if column is not None else "verify"))


@overload
def verify(data: pd.DataFrame, column: Hashable, **options: Unpack[VerifyOptions]) -> pd.DataFrame: ...
@overload
def verify(data: pl.DataFrame, column: str, **options: Unpack[VerifyOptions]) -> pl.DataFrame: ...
@overload
def verify(data: Iterable[object], column: None = None, **options: Unpack[VerifyOptions]) -> pd.DataFrame: ...
@overload
def verify(data: pa.Table, column: str, **options: Unpack[VerifyOptions]) -> pa.Table: ...
@show_options()
def verify(data: Any, column: Hashable | None = None, **options: Unpack[VerifyOptions]) -> Any:
    """Verify a column of e-mail addresses: a verdict, its reasons and flags for every row.

    Works in scripts, notebooks (also inside their running event loop), threads and worker
    processes. Each distinct address is verified once; blanks around it and the case of its domain
    make no difference.

    Parameters
    ----------
    data : DataFrame, Series or list-like
        A pandas, Polars or Arrow frame with `column`; or a Series, array or list of cells.
    column : hashable, optional
        Which column of a frame; a tuple under MultiIndex columns.
    validation_type : {"regex", "mx", "mx_blacklist", "smtp"}, default "mx"
        ``regex`` uses no network; ``mx`` looks each distinct domain up in the DNS; ``mx_blacklist``
        also queries the configured blacklists; ``smtp`` also asks the mail servers.
    backend : backend, str or None
        None: this machine. Text: the URL of a verification service, where every distinct
        well-formed address costs one unit of the daily quota.
    journal : ``"auto"``, path or None
        The file in which results and submitted jobs are kept, so that calling again resumes.
        ``"auto"``: a file in the user's data directory for a service and for local ``smtp``,
        else none.
    max_age : duration, default "30D"
        How long a result in the journal is used: seconds, ``"12h"``, ``"30D"`` or a timedelta.
    refresh : iterable of str
        Verdicts in the journal to verify again, for example ``{"unknown"}``.
    limit : int, optional
        Verify at most that many addresses that are not in the journal; the rest is ``pending``.
    on_quota : {"stop", "raise", "wait"}
        What to do when the daily quota is used up: return the rest as ``pending``, raise an
        error, or wait for the next day.
    screen : {"mx", None} or LocalBackend
        Find domains that cannot receive mail on this machine first, so that no quota is spent on
        them; a local backend has the settings for it.
    columns : {"core", "all"} or list of str
        Which result columns.
    prefix : str, optional
        Prefix of each new column's name; by default ``f"{column}_"``, and none for a Series or list.
    offline : bool
        Use no network: what is not in the journal is ``pending``.
    progress : ``"auto"``, bool or callable
        Show a bar on stderr (``"auto"``: in notebooks and terminals, if a network is used), or
        call a function with each `Progress`.

    Returns
    -------
    DataFrame
        The same kind as `data`: one row out per row in, same index, same order, with the result
        columns beside the caller's own; for a Series or list a frame of the result columns alone.
        `verdict` and `status` are categories, flags ``boolean`` with NA, texts ``string``.

    Raises
    ------
    ColumnError
        No such column, or the name occurs twice.
    SettingsError
        An argument cannot work, or a new column would overwrite one that mailverdict did not write.
    BackendError
        The service could not be used; the results so far are on the error's `partial`.
    QuotaExceeded
        With ``on_quota="raise"``.
    JournalError
        The file is damaged or is not a journal; it is not changed.

    Warns
    -----
    UserWarning
        If something made the results less certain than they look.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> df = pd.DataFrame({"email": ["ada@example.org", "info@gmial.com", "no at sign", None]})
    >>> out = mv.verify(df, "email", validation_type="regex")
    >>> out[["email_verdict", "email_role", "email_suggestion", "email_status"]]
      email_verdict  email_role email_suggestion email_status
    0         valid       False             <NA>         done
    1         valid        True   info@gmail.com         done
    2       invalid        <NA>             <NA>         done
    3           NaN        <NA>             <NA>      missing
    """
    return collect(prepare(data, column, *split_options("verify", options))._start())


def collect(run: Run[Any]) -> Any:
    """The result of a run; Ctrl-C ends the run first, and puts what is settled on the exception."""
    try:
        return run.result()
    except KeyboardInterrupt as interrupt:
        run._interrupt()
        interrupt.partial = run.partial()  # type: ignore[attr-defined]
        interrupt.add_note("what was settled is on this exception's .partial, and in the journal if there is one")
        raise
    finally:
        show_warnings(run, stacklevel=4)


def show_warnings(run: Run[Any], stacklevel: int) -> None:
    """Emit the run's notices as warnings; `stacklevel` is that of the user's line."""
    for notice in run.notices:
        warnings.warn(notice, UserWarning, stacklevel=stacklevel)


@overload
async def averify(data: pd.DataFrame, column: Hashable, **options: Unpack[VerifyOptions]) -> pd.DataFrame: ...
@overload
async def averify(data: pl.DataFrame, column: str, **options: Unpack[VerifyOptions]) -> pl.DataFrame: ...
@overload
async def averify(data: Iterable[object], column: None = None, **options: Unpack[VerifyOptions]) -> pd.DataFrame: ...
@overload
async def averify(data: pa.Table, column: str, **options: Unpack[VerifyOptions]) -> pa.Table: ...
@show_options()
async def averify(data: Any, column: Hashable | None = None, **options: Unpack[VerifyOptions]) -> Any:
    """Verify a column from async code; the event loop is not blocked.

    Parameters
    ----------
    data, column
        As in `verify`.
    **options
        The keyword arguments of `verify`.

    Returns
    -------
    DataFrame
        As `verify`. Cancelling the await stops the run; what is settled is in the journal.

    Raises
    ------
    ColumnError, SettingsError, BackendError, JournalError
        As `verify`.

    Examples
    --------
    >>> import asyncio
    >>> import mailverdict as mv
    >>> asyncio.run(mv.averify(["ada@example.org"], validation_type="regex"))["verdict"].tolist()
    ['valid']
    """
    run = await asyncio.to_thread(prepare, data, column, *split_options("averify", options))
    try:
        return await run
    finally:
        show_warnings(run, stacklevel=3)


def check(
    email: str,
    *,
    validation_type: ValidationType | ValidationTypeWord = "smtp",
    backend: Backend | str | None = None,
) -> Verification:
    """Verify one address now; nothing is journalled.

    Parameters
    ----------
    email : str
        The address.
    validation_type : {"smtp", "mx", "mx_blacklist", "regex"}, default "smtp"
        As in `verify`.
    backend : backend, str or None
        As in `verify`; a service may count a check against the daily quota.

    Returns
    -------
    Verification
        Its `to_dict` is the contract's payload. A malformed address is ``invalid``, never sent.

    Raises
    ------
    SettingsError
        If `email` is not text or empty, or another argument cannot work.
    BackendError
        If the backend could not answer.

    Examples
    --------
    >>> import mailverdict as mv
    >>> mv.check("ada@example", validation_type="regex").result
    'invalid'
    """
    address, kind, record = parse_email(email), parse_validation_type(validation_type), CheckRecord()

    async def check_once() -> Verification:
        async with open_backend(backend) as opened:
            return await check_address(address, kind, opened, record)

    found = run_sync(check_once())
    for notice in record.notices:
        warnings.warn(notice, UserWarning, stacklevel=2)
    return found


def parse_email(email: str) -> str:
    """The address of a call for one address: stripped, of bounded length."""
    if not isinstance(email, str) or not email.strip():
        raise SettingsError(f"email={email!r:.80}: give one address as text")
    return email.strip()[:LONGEST_TEXT]
