"""From rows of unique addresses to one row per row of the caller's, by position."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..backend import Backend
from ..errors import BackendError, SettingsError
from ..local.backend import LocalBackend
from ..local.batch import foreign_rows
from ..model.settings import Duration
from ..model.table import SCHEMA, verification_of
from ..model.verification import Verification
from ..model.words import Status, ValidationType
from ..runs.execution import unique_addresses
from ..runs.options import Options, open_execution
from ..runs.progress import Listener, ProgressBar, wants_bar
from ..runs.run import Run
from .columns import Column, choose_columns, first_message
from .kinds import DataKind, kind_of_data
from .text_column import LONGEST_TEXT, Intake, read_values

__all__ = ["Assembly", "averify", "check", "start", "verify"]

Index = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Assembly:
    """Puts the rows of unique addresses back beside the caller's rows, by position."""

    data: DataKind
    names: Sequence[Any]
    columns: Sequence[Column]
    intake: Intake
    codes: npt.NDArray[np.int32] | None
    validation_type: ValidationType
    source: str

    def __call__(self, unique: pa.Table) -> Any:
        """Make the caller's kind of result."""
        fields = self.fields()
        rows = self.rows(unique.select(fields), fields)
        return self.data.attach(rows, self.names, self.columns, self.note())

    def fields(self) -> list[str]:
        """Fields of the one table that the columns are made from."""
        return list(dict.fromkeys(["status", *(column.field for column in self.columns)]))

    def rows(self, unique: pa.Table, fields: list[str]) -> pa.Table:
        """One row per row of the caller's, in their order."""
        intake = self.intake
        if intake.rows is None and self.codes is None:
            return unique
        order: Index = np.full(intake.size, -1, np.int64)
        order[slice(None) if intake.rows is None else intake.rows] = self.text_order(len(unique))
        if len(intake.foreign_rows):
            foreign = foreign_rows(intake.foreign_kinds, self.validation_type, datetime.now(UTC)).select(fields)
            order[intake.foreign_rows] = len(unique) + np.arange(len(foreign))
            unique = pa.concat_tables([unique, foreign])
        return spread(unique, order)

    def text_order(self, unique: int) -> Any:
        """For each text the row of its address."""
        return np.arange(unique) if self.codes is None else self.codes

    def note(self) -> dict[str, Any]:
        """What `attrs` keeps: small and JSON-ready."""
        return {"validation_type": str(self.validation_type), "source": self.source}


def spread(table: pa.Table, order: Index) -> pa.Table:
    """Row `order[i]` of the table in row i; -1 is an empty cell, of which only the status is known."""
    rows = table.unify_dictionaries().combine_chunks().take(pa.array(order, mask=order < 0))
    status = rows["status"].combine_chunks()
    words = pa.concat_arrays([status.dictionary, pa.array([str(Status.MISSING)])])
    codes = status.indices.fill_null(len(words) - 1)
    at = rows.schema.get_field_index("status")
    return rows.set_column(at, rows.field(at), pa.DictionaryArray.from_arrays(codes, words))


PRESENTATION = ("columns", "prefix", "progress")  # arguments about the frame that comes back, not about the run


def start(
    data: Any,
    column: Hashable | None = None,
    *,
    validation_type: str = "mx",
    backend: Backend | str | None = None,
    journal: str | Path | None = "auto",
    max_age: Duration = "30D",
    refresh: Iterable[str] = (),
    limit: int | None = None,
    on_quota: str = "stop",
    screen: LocalBackend | str | None = None,
    columns: str | Iterable[str] = "core",
    prefix: str | None = None,
    offline: bool = False,
    progress: bool | str | Listener = False,
) -> Run[Any]:
    """Verify a column in the background; the kernel stays free.

    Arguments are those of `verify`, except that no bar is shown unless asked for.

    Parameters
    ----------
    data, column, validation_type, backend, journal, max_age, refresh, limit, on_quota, screen, columns, prefix, offline
        As in `verify`.
    progress : bool, ``"auto"`` or callable, default False
        Whether to show a bar, or who is called with each `Progress`.

    Returns
    -------
    Run
        With `.progress`, `.partial()`, `.cancel()`, `.wait(timeout)`, `.result()`, `.subscribe(callback)`.

    Raises
    ------
    ColumnError, SettingsError
        As `verify`, before any work.
    JournalError
        If the journal file is damaged or not ours; it is left as it was.

    Examples
    --------
    >>> import mailverdict as mv
    >>> run = mv.start(["ada@example.org", "ada@@example.org"], validation_type="regex")
    >>> run.result()["verdict"].tolist()
    ['valid', 'invalid']
    """
    options = Options.check(
        validation_type=validation_type,
        backend=backend,
        journal=journal,
        max_age=max_age,
        refresh=refresh,
        limit=limit,
        on_quota=on_quota,
        screen=screen,
        offline=offline,
    )
    return prepare(data, column, options, columns=columns, prefix=prefix, progress=progress).start()


def prepare(
    data: Any,
    column: Hashable | None,
    options: Options,
    *,
    columns: str | Iterable[str] = "core",
    prefix: str | None = None,
    progress: bool | str | Listener = False,
    fields: Sequence[str] | None = None,
) -> Run[Any]:
    """Take the column in and set the run up; nothing is asked before it is started.

    Of the one table only the `fields` behind the columns are kept, unless others are named.
    """
    kind = kind_of_data(data, column)
    chosen = choose_columns(columns)
    names = kind.names(prefix, chosen)
    check_progress(progress)
    intake = read_values(kind.values())
    texts, codes = (intake.texts, None) if options.is_free else unique_addresses(intake.texts)
    assembly = Assembly(kind, names, chosen, intake, codes, options.validation_type, options.backend.source)
    run: Run[Any] = Run(open_execution(texts, options, fields or assembly.fields()), assembly)
    show_progress(run, column, progress, is_free=options.is_free)
    return run


def show_progress(run: Run[Any], column: Hashable | None, progress: bool | str | Listener, *, is_free: bool) -> None:  # noqa: FBT001
    """Subscribe whoever wants to know how far it is."""
    if callable(progress):
        run.subscribe(progress)
    elif wants_bar(progress=progress, is_free=is_free):
        run.subscribe(ProgressBar(f"verify {column}" if column is not None else "verify"))


def check_progress(progress: bool | str | Listener) -> None:  # noqa: FBT001 - the argument that users give
    if not callable(progress) and progress not in (True, False, "auto"):
        raise SettingsError(f"progress={progress!r}: give 'auto', True, False or a function")


def verify(
    data: Any,
    column: Hashable | None = None,
    *,
    validation_type: str = "mx",
    backend: Backend | str | None = None,
    journal: str | Path | None = "auto",
    max_age: Duration = "30D",
    refresh: Iterable[str] = (),
    limit: int | None = None,
    on_quota: str = "stop",
    screen: LocalBackend | str | None = None,
    columns: str | Iterable[str] = "core",
    prefix: str | None = None,
    offline: bool = False,
    progress: bool | str | Listener = "auto",
) -> Any:
    """Verify a column of e-mail addresses: a verdict, its reasons and flags for every row.

    Works in scripts, notebooks (also inside their running event loop), threads and worker
    processes. Blanks around an address and the case of its domain do not make two addresses;
    each distinct address is verified once.

    Parameters
    ----------
    data : DataFrame, Series or list-like
        A pandas, Polars or Arrow frame with `column`; or a Series, array or list of cells.
    column : hashable, optional
        Which column of a frame; a tuple under MultiIndex columns.
    validation_type : {"regex", "mx", "mx_blacklist", "smtp"}, default "mx"
        ``regex`` asks nothing of any network; ``mx`` asks the DNS once per distinct domain;
        ``mx_blacklist`` also asks the configured blacklists; ``smtp`` also asks the exchanges.
    backend : backend, str or None
        None: this machine. Text: the URL of a verification service, where every distinct
        well-formed address costs one unit of the daily quota.
    journal : ``"auto"``, path or None
        Where settled answers and paid-for jobs are kept, so that calling again resumes.
        ``"auto"``: a file under the user's data directory for a service and for local ``smtp``.
    max_age : duration, default "30D"
        How long a journalled answer is good: seconds, ``"12h"``, ``"30D"`` or a timedelta.
    refresh : iterable of str
        Verdicts to ask again although they are known, as ``{"unknown"}``.
    limit : int, optional
        Verify at most that many addresses newly; the rest is ``pending``.
    on_quota : {"stop", "raise", "wait"}
        What to do when the quota ends before the column.
    screen : {"mx", None} or LocalBackend
        Settle domains that cannot receive mail here first, so that no quota is spent on them; a
        local backend says with which resolver.
    columns : {"core", "all"} or list of str
        Which result columns.
    prefix : str, optional
        Before each new column's name; ``f"{column}_"`` by default, nothing for a Series or list.
    offline : bool
        Never touch the network: what the journal does not know is ``pending``.
    progress : ``"auto"``, bool or callable
        Show a bar on stderr (``"auto"``: in notebooks and terminals, for work that takes a
        while), or call a function with each `Progress`.

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
        An argument cannot work, or a new column would overwrite one that is not ours.
    BackendError
        The service could not be used; what was settled is on the error's `partial`.
    QuotaExceeded
        With ``on_quota="raise"``.
    JournalError
        The journal file is damaged or not ours; it is left as it was.

    Warns
    -----
    UserWarning
        Once for anything that makes the answers poorer than they look.

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
    run = start(
        data,
        column,
        validation_type=validation_type,
        backend=backend,
        journal=journal,
        max_age=max_age,
        refresh=refresh,
        limit=limit,
        on_quota=on_quota,
        screen=screen,
        columns=columns,
        prefix=prefix,
        offline=offline,
        progress=progress,
    )
    return collect(run)


def collect(run: Run[Any]) -> Any:
    """The result of a run; Ctrl-C ends the run first, and takes what was settled along."""
    try:
        return run.result()
    except KeyboardInterrupt as interrupt:
        run.interrupt()
        interrupt.partial = run.partial()  # type: ignore[attr-defined]
        interrupt.add_note("what was settled is on this exception's .partial, and in the journal if there is one")
        raise
    finally:
        warn_of(run, stacklevel=4)


def warn_of(run: Run[Any], stacklevel: int) -> None:
    """Pass the run's notices on, as of the line that called for the run."""
    for notice in run.notices:
        warnings.warn(notice, UserWarning, stacklevel=stacklevel)


async def averify(data: Any, column: Hashable | None = None, **options: Any) -> Any:
    """Verify a column from async code: the awaiting event loop stays free.

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
    shown = {"progress": "auto"} | {name: options.pop(name) for name in PRESENTATION if name in options}
    run = await asyncio.to_thread(prepare, data, column, Options.check(**options), **shown)
    try:
        return await run
    finally:
        warn_of(run, stacklevel=3)


def check(
    email: str,
    *,
    validation_type: str = "smtp",
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
    if not isinstance(email, str) or not email.strip():
        raise SettingsError(f"email={email!r:.80}: give one address as text")
    options = Options.check(validation_type=validation_type, backend=backend, journal=None, on_quota="raise")
    run = prepare([email], None, options, fields=SCHEMA.names)
    collect(run)
    assembly = run.finish
    assert isinstance(assembly, Assembly)
    table = assembly.rows(run.execution.ledger.table(validation_type), SCHEMA.names)
    row = {**table.to_pylist()[0], "email": readable(email)}
    if row["status"] == Status.DONE:
        return verification_of(row)
    why = first_message(row["errors"] or "[]") or run.progress.message or "the backend did not settle it"
    raise BackendError(f"{row['email']!r:.80} could not be verified: {why}")


def readable(email: str) -> str:
    """The address as it is told back: stripped, of bounded length, encodable."""
    return email.strip()[:LONGEST_TEXT].encode("utf-8", "backslashreplace").decode()
