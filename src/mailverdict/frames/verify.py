"""Verifying columns: `verify`, `averify` and `start`.

A call goes through these steps:

1. `verify` checks the arguments (`Options.check`), and `prepare` reads what another verifier
   settled (`with_known`).
2. `read_frame` finds the columns in the caller's data, and names their result columns.
3. `read_addresses` reads the cells as texts and repairs them (both in reading.py).
4. `number_answers` makes the addresses unique.
5. A `Run` verifies them.
6. The `Reading` puts the answers beside the caller's rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ColumnError
from ..local.backend import LocalBackend
from ..model.words import ValidationType, count_of
from ..runs.execution import FREE_BATCH, Execution
from ..runs.options import Options, open_execution
from ..runs.progress import Listener, ProgressBar, is_marimo, wants_bar
from ..runs.run import Run
from ..table.columns import Column, is_short
from ..table.notices import Note, warn_user
from ..table.options import (
    ColumnChoice,
    VerifyOptions,
    check_options,
    each_column,
    refuse_unknown,
)
from ..table.overwrite import describe_kept
from ..table.result_columns import plan_results
from ..table.table import Frame, Table, table_of
from ..version import __version__
from .reading import (
    SEVERAL,
    Reading,
    count_standing,
    describe_columns,
    number_answers,
    read_addresses,
)

if TYPE_CHECKING:
    from ..backend import Backend
    from ..model.settings import Duration
    from ..model.words import ColumnSet, OnQuota, ScreenWord, ValidationTypeWord


# Overloads: a frame comes back as the kind it came in, a column alone as a pandas frame.
@overload
def verify(data: Frame, column: ColumnChoice, **options: Unpack[VerifyOptions]) -> Frame: ...
@overload
def verify(
    data: Iterable[object], column: None = None, **options: Unpack[VerifyOptions]
) -> pd.DataFrame: ...
def verify(
    data: Any,
    column: ColumnChoice | None = None,
    *,
    validation_type: ValidationType | ValidationTypeWord = "mx",
    backend: Backend | str | None = None,
    journal: str | Path | None = "auto",
    max_age: Duration | None = None,
    refresh: Iterable[str] = (),
    limit: int | None = None,
    on_quota: OnQuota = "stop",
    screen: LocalBackend | ScreenWord | None = None,
    known: Any = None,
    clean: bool = True,
    columns: ColumnSet | Iterable[str] = "core",
    categories: bool = True,
    prefix: str | None = None,
    overwrite: bool = True,
    offline: bool = False,
    progress: bool | Literal["auto"] | Listener = "auto",
    **unknown: Any,
) -> Any:
    """Verify a column of e-mail addresses: a verdict, its reasons and flags for every row.

    Works in scripts, notebooks (also inside their running event loop), threads and worker
    processes. Each distinct address is verified once; blanks around it and the case of its domain
    make no difference.

    Parameters
    ----------
    data : DataFrame, Series or list-like
        A pandas, Polars or Arrow frame with `column`; or a Series, array or list of cells. Whatever
        else has the Arrow PyCapsule interface (a RecordBatchReader, a DuckDB relation) is read as
        an Arrow table; a reader gives its rows once. Cells of bytes in UTF-8 are text, and any
        other cell is read as its text: a list of texts as JSON, a number as ``str`` gives it. A
        list without any text is ``missing``, and texts that `pandas.read_csv` reads as missing
        (``N/A``, ``NULL``, ``NaN``, ``None``, ...) are, too.
    column : hashable or list, optional
        Which column of a frame; a tuple under MultiIndex columns. The addresses of a list of
        columns are verified together, in one run and each once; each column gets its own result
        columns.
    validation_type : {"regex", "mx", "mx_blacklist", "smtp"}, default "mx"
        ``regex`` uses no network; ``mx`` looks each distinct domain up in the DNS; ``mx_blacklist``
        also queries the configured blacklists; ``smtp`` also asks the mail servers.
    backend : backend, str or None
        None: this machine. Text: the URL of a verification service, where every distinct
        well-formed address costs one unit of the daily quota.
    journal : ``"auto"``, path or None
        The file in which results and submitted jobs are kept, so that calling again resumes.
        ``"auto"``: a file in the user's data directory for a service and for local ``smtp``,
        else none. ``regex`` costs nothing: its results are never kept.
    max_age : duration, optional
        How long a result in the journal is used: seconds, ``"12h"``, ``"30D"`` or a timedelta; by
        default 30 days. If it is given, older answers of `known` are not used either; those
        without a date are.
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
    known : path or DataFrame, optional
        Results of another verifier, as `read_verdicts` reads or returned them, or an earlier
        result. An address that is ``valid`` or ``invalid`` there is not verified again (``valid``
        in a result of `verify`: by at least this type): its rows have that verdict, and the column
        `source`, which is then always there, names the verifier. All other addresses are verified,
        also one that is both there. These results count before those of the journal, and are not
        kept in it. Malformed addresses are always judged here. A warning says how many addresses
        are settled, and the dates of the results; they count at any age unless `max_age` is given.
    clean : bool, default True
        Repair each cell first, as `mailverdict.clean` does, and verify the repaired address. A cell
        that cannot be repaired is verified as it stands, but one with several addresses is not
        verified: its verdict is ``unknown`` with the reason ``several_addresses``. Adds the columns
        `clean` (the address that was verified; NA for a cell without one) and `change`; the
        caller's column stays as it is. If `clean` is there already, from `mailverdict.clean` or an
        earlier call, its values stay: the addresses in `clean`, which may have been corrected by
        hand, are verified as they stand, and so is a cell whose address was taken away. Only rows
        with neither are repaired. False: every cell is verified as it stands.
    columns : {"short", "core", "all"} or list of str
        Which result columns. ``"short"``: those that a reader needs, `clean` first; of the repairs
        it has no `change`.
    categories : bool, default True
        False: `verdict` and `status` are text. The output of Spark's ``mapInArrow`` needs that.
    prefix : str, optional
        Prefix of each new column's name; by default ``f"{column}_"``, and none for a Series or
        list. Not with a list of columns, since each has its own.
    overwrite : bool, default True
        Replace the result columns of an earlier call, also those that `columns` does not name, and
        empty those made from its verdicts: actions, and without `clean` also cleaned addresses.
        They are recognized by the note that the call left in a pandas frame or an Arrow table, or
        by a `verdict` or a `status` that holds only our words, whatever file the frame was in. A
        result column's name on something that we never write there, or without either, is an
        error. False: any of these names is an error.
    offline : bool
        Use no network: what is not in the journal is ``pending``.
    progress : ``"auto"``, bool or callable
        Show a bar on stderr (``"auto"``: in notebooks and terminals, if a network is used), or
        call a function with each `Progress`.
    **unknown
        Any other argument is an error, which names the one that was probably meant.

    Returns
    -------
    DataFrame
        The same kind as `data`: one row out per row in, same index, same order, with the result
        columns beside the caller's own; for a Series or list a frame of the result columns alone: a
        Polars frame for a Polars Series, an Arrow table for an Arrow array, else a pandas frame.
        `verdict` and `status` are categories, flags ``boolean`` with NA, texts ``string``.

    Raises
    ------
    ColumnError
        No such column, the name occurs twice, or a list names it twice.
    SettingsError
        An argument cannot work, or a new column would overwrite one that mailverdict did not write.
    InputError
        `data` consists of rows or of frames, not of cells.
    BackendError
        The service could not be used; the results so far are on the error's `partial`.
    QuotaExceeded
        With ``on_quota="raise"``.
    JournalError
        The file is damaged or is not a journal; it is not changed.

    Warns
    -----
    UserWarning
        If something made the results less certain than they look, no cell of a column holds an
        ``@``, cells hold several addresses, or repaired addresses were there already.

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
    refuse_unknown("verify", unknown)
    options = Options.check(
        validation_type=validation_type,
        backend=backend,
        journal=journal,
        max_age=max_age,
        refresh=refresh,
        limit=limit,
        on_quota=on_quota,
        screen=screen,
        known=known,
        clean=clean,
        columns=columns,
        categories=categories,
        prefix=prefix,
        overwrite=overwrite,
        offline=offline,
        progress=progress,
    )
    return collect(prepare(data, column, options)._start())


@overload
def start(data: Frame, column: ColumnChoice, **options: Unpack[VerifyOptions]) -> Run[Frame]: ...
@overload
def start(
    data: Iterable[object], column: None = None, **options: Unpack[VerifyOptions]
) -> Run[pd.DataFrame]: ...
def start(
    data: Any, column: ColumnChoice | None = None, **options: Unpack[VerifyOptions]
) -> Run[Any]:
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
        With `.progress`, `.partial()`, `.cancel()`, `.wait(timeout)`, `.result()`,
        `.subscribe(callback)`.

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
    checked = check_options("start", {"progress": False, **options})
    return prepare(data, column, checked)._start()


@overload
async def averify(data: Frame, column: ColumnChoice, **options: Unpack[VerifyOptions]) -> Frame: ...
@overload
async def averify(
    data: Iterable[object], column: None = None, **options: Unpack[VerifyOptions]
) -> pd.DataFrame: ...
async def averify(
    data: Any, column: ColumnChoice | None = None, **options: Unpack[VerifyOptions]
) -> Any:
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
        As `verify`. Cancelling the await stops the run; what is checked is in the journal.

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
    checked = check_options("averify", options)
    run = await asyncio.to_thread(prepare, data, column, checked)
    try:
        result = await run
        warn_user(*describe_spamtraps(run))
        return result
    finally:
        warn_user(*run.notices)


# --- a run ----------------------------------------------------------------------------------------


def prepare(
    data: Any,
    column: ColumnChoice | None,
    options: Options,
    *,
    read: pa.RecordBatch | None = None,
) -> Run[Any]:
    """Read the columns, unless they were `read` already, and set the run up.

    It uses no network before its start.
    """
    options = with_known(options)
    is_free = options.is_free
    reading = read_frame(data, column, options, origin_of(options), is_free=is_free, read=read)
    fields = reading.fields()

    def open_run(given: Options) -> Execution:
        return open_execution(reading.asked, given, fields, reading.syntax())

    run: Run[Any] = Run(open_run(options), reading, lambda: open_run(options.renewed()))
    show_progress(run, column, options.progress, is_free=is_free)
    for notice in (*describe_columns(reading.rows, column), *reading.notices):
        run._execution.add_notice(notice)
    several = count_standing(reading.rows, SEVERAL)
    if several and read is None:  # else who has read them knows it
        run._execution.add_notice(describe_several(several))
    return run


def collect(run: Run[Any]) -> Any:
    """The result of a run; Ctrl-C ends the run first, and puts what is settled on the exception."""
    try:
        result = run._wait_for_result()
        warn_user(*describe_spamtraps(run))
        return result
    except KeyboardInterrupt as interrupt:
        run._interrupt()
        run._describe(interrupt)
        raise
    finally:
        warn_user(*run.notices)


def show_progress(
    run: Run[Any],
    column: ColumnChoice | None,
    progress: bool | str | Listener,  # noqa: FBT001
    *,
    is_free: bool,
) -> None:
    """Subscribe the caller's function or a progress bar."""
    if callable(progress):
        run.subscribe(progress)
        return
    if not wants_bar(progress=progress, is_free=is_free):
        return
    widget = None
    if is_marimo():
        widget = run._live_widget(has_buttons=False)
    if widget is not None:
        import marimo  # noqa: PLC0415 - it runs this code

        marimo.output.append(widget)
        return
    names = [str(label) for label in each_column(column) if label is not None]
    run.subscribe(ProgressBar(f"verify {', '.join(names)}".strip()))


def describe_spamtraps(run: Run[Any]) -> list[str]:
    """A notice about spamtraps that the short set does not show.

    A policy drops them whatever their verdict.
    """
    reading: Any = run._build
    if not isinstance(reading, Reading):
        return []
    names = [column.name for column in reading.results[0].columns.values()]
    if not is_short(names):
        return []
    count = pc.sum(run._settled_table()["spamtrap"]).as_py()
    if not count:
        return []
    addresses = count_of(count, "address is", "addresses are")
    return [
        f"{addresses} of domains on a list of spamtraps: policies drop them with "
        "columns='core', "
        "which has `spamtrap`"
    ]


def describe_several(
    rows: int, remedy: str = "mailverdict.explode gives each a row of its own"
) -> str:
    """How many rows hold several addresses, and what helps."""
    several = count_of(rows, "row holds", "rows hold")
    return Note(f"{several} several addresses, which are not verified: {remedy}")


def describe_origin(
    validation_type: ValidationType, source: str, *, lists: str | None = None, answered_by: str = ""
) -> dict[str, Any]:
    """What made the answers, as it is noted beside the result columns; values that JSON has.

    `lists` is the version of the lists of this machine, if its backend was used, and `answered_by`
    the label of the backend, if it has one.
    """
    note = {
        "validation_type": str(validation_type),
        "source": source,
        "version": __version__,
        "lists": lists,
    }
    if answered_by:
        note["answered_by"] = answered_by
    return note


def origin_of(options: Options) -> dict[str, Any]:
    """What makes the answers of a run with these options."""
    backend = options.backend
    lists = None
    if isinstance(backend, LocalBackend):
        lists = backend.lists_version()
    label = str(getattr(backend, "label", ""))
    return describe_origin(options.validation_type, backend.source, lists=lists, answered_by=label)


def with_known(options: Options) -> Options:
    """The options with what another verifier settled, once it was read."""
    if options.known is None:
        return options
    # It loads the rules for exports, which few calls need.
    from .verifiers import KnownAnswers, read_known  # noqa: PLC0415

    known = read_known(options.known)
    if known is None:
        return options
    settled = known.settled_for(options.validation_type, options.known_max_age)
    if not isinstance(options.known, KnownAnswers):  # else who has read it has said so
        warn_user(Note(f"known=: {settled.describe()}"))
    return replace(options, known=settled)


# --- the frame ------------------------------------------------------------------------------------


def read_frame(
    data: Any,
    column: ColumnChoice | None,
    options: Options,
    note: dict[str, Any],
    *,
    is_free: bool,
    extra: Sequence[Column] = (),
    read: pa.RecordBatch | None = None,
) -> Reading:
    """Read the columns of a frame, and name the result columns of each.

    `extra` ones come at the end.

    `read` are the columns if `read_addresses` was called already. The options are those that
    `with_known` gave. What was repaired before is found, since the user may have corrected it.
    """
    tables = tables_of(data, column)
    results = plan_results(tables, column, options, extra, finds_kept=read is None)
    kept = [result.kept for result in results]
    notices = []
    for table, repairs in zip(tables, kept, strict=True):
        if repairs is not None:
            notices.append(Note(describe_kept(table, options.prefix)))
    if read is None:
        values = [table.values() for table in tables]
        # A longer column is checked in several batches, each when the run comes to it.
        is_checked = is_free and (options.clean or sum(map(len, values)) <= FREE_BATCH)
        read = read_addresses(values, clean=options.clean, keep_syntax=is_checked, kept=kept)
    asked, rows = number_answers(read, is_free=is_free, known=options.known)
    return Reading(
        tables=tables,
        results=results,
        rows=rows,
        asked=asked,
        note=note,
        notices=notices,
        known=options.known,
    )


def tables_of(data: Any, column: ColumnChoice | None) -> list[Table]:
    """The data with its column, or with each of a list of columns."""
    if not isinstance(column, list):
        return [table_of(data, column)]
    if not column:
        table_of(data, None)  # a frame: an error that names its columns
        raise ColumnError("column=[]: give the name of a column")
    first = table_of(data, column[0])
    others = [table_of(first.frame, label) for label in column[1:]]  # a stream is read once
    for position, label in enumerate(column):
        if label in column[:position]:
            raise ColumnError(f"column {label!r} is given twice")
    return [first, *others]
