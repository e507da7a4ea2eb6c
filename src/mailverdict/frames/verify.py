"""Verifying columns: `verify`, `averify` and `start`.

In order: the arguments are checked, the columns are read as text and repaired, their addresses are made unique, a `Run`
verifies them, and a `FrameReading` puts the results beside the caller's rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.mailboxes import find_mailboxes
from ..checks.syntax.column import SyntaxColumn, observe_column
from ..checks.syntax.kernels import to_bools
from ..errors import ColumnError, SettingsError
from ..local.backend import LocalBackend
from ..model.address import address_keys
from ..model.table import SOURCE_LOCAL, TEXT_CODES, complete_table, texts_where
from ..model.words import SEVERAL_ADDRESSES, Status, ValidationType, Verdict, count_of
from ..repair.repair import MAX_CELL
from ..runs.execution import FREE_BATCH, Execution, unique_addresses
from ..runs.options import Options, open_execution
from ..runs.progress import Listener, ProgressBar, is_marimo, wants_bar
from ..runs.run import Run
from ..table.columns import (
    BY_NAME,
    CATEGORIES,
    CLEAN_COLUMNS,
    DERIVED_COLUMNS,
    REPAIR_COLUMNS,
    Column,
    choose_columns,
    is_short,
    label_of,
    take_rows,
)
from ..table.notices import Note, warn_user
from ..table.options import ColumnChoice, VerifyOptions, check_options, each_column, show_options
from ..table.overwrite import KeptRepairs, earlier_columns, kept_repairs, name_columns
from ..table.table import Frame, Table, table_of
from ..table.text_column import (
    LONGEST_TEXT,
    cut_long,
    describe_no_address,
    is_filled,
    join_texts,
    read_values,
    where_filled,
)
from ..version import __version__
from .clean import repair_column

if TYPE_CHECKING:
    from .verifiers import KnownAnswers

Codes = npt.NDArray[np.int32]
# Rows after those of the answers, for rows of the caller about which nothing is asked: see `standing_rows`. Those of
# addresses that another verifier settled follow them.
MISSING, PENDING, SEVERAL = range(3)
STANDING = 3


@dataclass(frozen=True)
class AddressColumns:
    """One or several columns as they were read; all rows of one column, then those of the next."""

    texts: (
        pa.StringArray
    )  # stripped and, where there is an address, repaired; empty where the cell is missing
    repaired: (
        pa.Table | None
    )  # clean, suggestion and change of each text; None: cells were not repaired
    syntax: SyntaxColumn | None  # the check of `texts`, if it was made
    is_wanted: pa.BooleanArray | None = (
        None  # whether each text is to be verified if that uses a network; None: all
    )
    is_several: pa.BooleanArray | None = (
        None  # whether each text holds several addresses; None: none does
    )
    is_rescued: pa.BooleanArray | None = (
        None  # whether each is an address only since its cell was repaired, if known
    )

    def asked(
        self, *, is_free: bool, known: KnownAnswers | None = None
    ) -> tuple[pa.StringArray, Codes | None, SyntaxColumn | None]:
        """The texts to verify, for each row that of its answer, and the check of the texts if it was made.

        None instead of rows: the answers are in the same order. The texts of a free type are not made unique: hashing
        a million texts takes longer than checking them. A text that is not wanted gets the answer of another row with
        its address or mailbox, else it is pending. One that is known gets what is known.
        """
        filled, wanted = is_filled(self.texts), None if is_free else self.is_wanted
        is_asked = filled if self.is_several is None else pc.and_not(filled, self.is_several)
        at_known = None if known is None else known.find(self.texts)
        is_asked = is_asked if at_known is None else pc.and_(is_asked, at_known.is_null())
        is_asked = is_asked if wanted is None else pc.and_(is_asked, wanted)
        if is_free and not is_asked.false_count:
            return self.texts, None, self.syntax
        texts = self.texts.filter(is_asked) if is_asked.false_count else self.texts
        asked, own = (
            (texts, np.arange(len(texts), dtype=np.int32)) if is_free else unique_addresses(texts)
        )
        syntax = (
            self.syntax.filter(texts, is_asked) if is_free and self.syntax is not None else None
        )
        if not is_asked.false_count:
            return asked, own, syntax
        codes = np.full(len(self.texts), len(asked) + PENDING, np.int32)
        if wanted is not None:
            rest = np.flatnonzero(~to_bools(is_asked))
            unasked = self.texts.take(pa.array(rest))
            found = pc.index_in(address_keys(unasked), value_set=asked)
            same = pc.index_in(
                find_mailboxes(unasked).names,
                value_set=find_mailboxes(asked).names,
                skip_nulls=True,
            )
            found = pc.coalesce(found, same)
            codes[rest[to_bools(found.is_valid())]] = found.drop_null().to_numpy()
        codes[~to_bools(filled)] = len(asked) + MISSING
        if self.is_several is not None:
            codes[to_bools(self.is_several)] = len(asked) + SEVERAL
        codes[to_bools(is_asked)] = own
        if at_known is not None:
            codes[to_bools(at_known.is_valid())] = (
                at_known.drop_null().to_numpy() + len(asked) + STANDING
            )
        return asked, codes, syntax

    @property
    def missing_rows(self) -> int:
        """How many cells are missing."""
        return int(is_filled(self.texts).false_count)

    @property
    def several_rows(self) -> int:
        """How many rows hold several addresses."""
        return 0 if self.is_several is None else int(self.is_several.true_count)

    def notices(self, column: ColumnChoice | None) -> list[str]:
        """A warning for each column without an address."""
        labels = each_column(column)
        size = len(self.texts) // len(labels)
        parts = (self.texts.slice(at * size, size) for at in range(len(labels)))
        return [found for found in map(describe_no_address, parts, labels) if found]


def read_addresses(
    columns: Sequence[Any],
    *,
    clean: bool,
    keep_syntax: bool = False,
    kept: Sequence[KeptRepairs | None] | None = None,
) -> AddressColumns:
    """Read columns of cells; with `clean` the address that the safe repairs find in a cell takes its place.

    A cell without such an address stays as it is. `kept` has for each column what was repaired before, or None. With
    `keep_syntax` the syntax is checked, and the check is kept.

    >>> read_addresses([["Ada <ada@example.org>", None], ["nobody", ""]], clean=True).texts.to_pylist()
    ['ada@example.org', '', 'nobody', '']
    """
    longest = MAX_CELL if clean else LONGEST_TEXT
    kept = [None] * len(columns) if kept is None else kept
    kept = [
        known and with_change(known, column) for column, known in zip(columns, kept, strict=True)
    ]
    cells = [
        read_values(
            column,
            for_repair=clean,
            longest=longest,
            instead=None if known is None else known.clean,
        )
        for column, known in zip(columns, kept, strict=True)
    ]
    written, stripped = (
        join_texts([each.texts for each in cells]),
        join_texts([each.stripped for each in cells]),
    )
    seen = observe_column(stripped) if clean or keep_syntax else None
    if not clean or seen is None:
        return AddressColumns(written, None, seen)
    # `verify` suggests domains itself.
    found = repair_column(written, stripped, seen, suggests_domains=False)
    texts, address, change, is_rescued = (
        found.texts,
        found.address,
        found.change,
        found.address.is_valid(),
    )
    if any(known is not None for known in kept):
        nothing = pa.nulls(len(stripped) // len(columns), pa.string())
        known, done = (
            join_texts([nothing if values is None else values for values in each])
            for each in (
                [each and each.clean for each in kept],
                [each and each.change for each in kept],
            )
        )
        is_kept = pc.or_(
            known.is_valid(), done.is_valid()
        )  # else nothing was repaired before: it is a new row
        texts, address = pc.if_else(is_kept, stripped, texts), pc.if_else(is_kept, known, address)
        change = pc.if_else(is_kept, done.fill_null(""), change)
        is_rescued = pc.and_not(is_rescued, is_kept)
    texts = cut_long(texts)
    repaired = pa.table(
        {"clean": address, "suggestion": found.suggestion, "change": where_filled(texts, change)}
    )
    is_several = pc.greater(found.count, 1)
    is_several = is_several if is_several.true_count else None
    if not keep_syntax:
        return AddressColumns(texts, repaired, None, is_several=is_several)
    is_rescued = pc.and_not(
        is_rescued, seen.ok
    )  # the canonical form of the others is accepted, too
    if is_rescued.true_count:
        seen = seen.replace_rows(texts, is_rescued, observe_column(texts.filter(is_rescued)))
    seen = replace(seen, texts=texts)
    return AddressColumns(texts, repaired, seen, is_several=is_several, is_rescued=is_rescued)


def with_change(kept: KeptRepairs, values: Any) -> KeptRepairs:
    """What was repaired before; what was done is found again in the cells where the short set does not say it."""
    if kept.change is not None:
        return kept
    found = repair_column(
        read_values(values, for_repair=True, longest=MAX_CELL).texts, suggests_domains=False
    )
    return replace(kept, change=texts_where(kept.clean.is_valid(), found.change))


def describe_origin(
    validation_type: ValidationType, source: str, *, lists: str | None = None, answered_by: str = ""
) -> dict[str, Any]:
    """What made the answers, as it is noted beside the result columns; as JSON.

    `lists` is the version of the lists of this machine, if its backend was used, and `answered_by` the label of the
    backend, if it has one.
    """
    note = {
        "validation_type": str(validation_type),
        "source": source,
        "version": __version__,
        "lists": lists,
    }
    return {**note, "answered_by": answered_by} if answered_by else note


def origin_of(options: Options) -> dict[str, Any]:
    """What makes the answers of a run with these options."""
    backend = options.backend
    lists = backend.lists_version() if isinstance(backend, LocalBackend) else None
    label = str(getattr(backend, "label", ""))
    return describe_origin(options.validation_type, backend.source, lists=lists, answered_by=label)


@dataclass(frozen=True)
class FrameReading:
    """A frame whose columns were read. Called with an answer for each of `asked`, it adds the result columns."""

    tables: Sequence[Table]  # the caller's data, with each of its columns to verify
    results: Sequence[ResultColumns]  # of each of them
    read: AddressColumns
    note: dict[str, Any]  # what makes the answers
    asked: pa.StringArray  # the addresses to verify: distinct ones, unless the type is free
    codes: Codes | None = None  # for each row of `read` that of its answer; None: the same order
    syntax: SyntaxColumn | None = None  # the check of `asked`, if it was made
    notices: Sequence[str] = ()  # for the user: which repaired addresses are verified
    known: KnownAnswers | None = None  # what another verifier settled

    def __call__(self, answers: pa.Table) -> Any:
        """Make the caller's kind of result."""
        rows = self.rows(answers)
        out, size = self.tables[0].frame, len(rows) // len(self.tables)
        for at, own in enumerate(self.results):
            table, part = self.tables[at], rows.slice(at * size, size)
            for column in own.emptied.values():
                nothing = pa.nulls(size, TEXT_CODES if column.kind in CATEGORIES else pa.string())
                part = part.append_column(column.field, nothing)
            table = Table(out, table.column) if at else table
            columns = [*own.columns, *own.emptied.values()]
            out = table.attach(part, [*own.names, *own.emptied], columns, self.note)
        return out

    def fields(self) -> list[str]:
        """Fields of the answers that the columns are made from."""
        columns = (
            column for own in self.results for column in own.columns if column not in REPAIR_COLUMNS
        )
        return list(
            dict.fromkeys(
                ["status", "spamtrap", *(field for column in columns for field in column.fields)]
            )
        )

    def rows(self, answers: pa.Table) -> pa.Table:
        """A row for each row of `read`, with what was repaired, and suggestions for what could not be repaired."""
        fields, repaired = self.fields(), self.read.repaired
        rows = answers.select(fields)
        if self.codes is not None:
            standing = [
                standing_rows(self.note["validation_type"]),
                *([self.known.rows] if self.known else []),
            ]
            rows = take_rows(
                pa.concat_tables([rows, *(each.select(fields) for each in standing)]), self.codes
            )
        if repaired is None:
            return rows
        if "suggestion" in fields and repaired["suggestion"].null_count < len(repaired):
            suggestion = pc.coalesce(rows["suggestion"].cast(pa.string()), repaired["suggestion"])
            rows = rows.set_column(
                rows.schema.get_field_index("suggestion"), "suggestion", suggestion
            )
        if (
            "normalized" in fields and self.read.is_wanted is not None
        ):  # of the row whose answer it has
            own = texts_where(rows["normalized"].is_valid(), repaired["clean"])
            normalized = pc.if_else(self.read.is_wanted, rows["normalized"], own)
            rows = rows.set_column(
                rows.schema.get_field_index("normalized"), "normalized", normalized
            )
        for column in REPAIR_COLUMNS:
            rows = rows.append_column(column.field, repaired[column.field])
        return rows


def standing_rows(validation_type: str) -> pa.Table:
    """The rows of a missing cell, of one that was not to be verified, and of one that holds several addresses."""
    words = {
        "status": (Status.MISSING, Status.PENDING, Status.DONE),
        "validation_type": (None, validation_type, validation_type),
        "result": (None, None, Verdict.UNKNOWN),
        "reasons": (None, None, SEVERAL_ADDRESSES),
        "source": (None, None, SOURCE_LOCAL),
    }
    columns = {
        name: pa.array(values, pa.string()).dictionary_encode() for name, values in words.items()
    }
    columns["checked_at"] = pa.array([None, None, datetime.now(UTC)], pa.timestamp("us", tz="UTC"))
    return complete_table(columns, STANDING)


def describe_several(
    rows: int, remedy: str = "mailverdict.explode gives each a row of its own"
) -> str:
    """How many rows hold several addresses, and what helps."""
    return Note(
        f"{count_of(rows, 'row holds', 'rows hold')} several addresses, which are not verified: {remedy}"
    )


# Overloads: a frame comes back as the kind it came in, a column alone as a pandas frame.
@overload
def start(data: Frame, column: ColumnChoice, **options: Unpack[VerifyOptions]) -> Run[Frame]: ...
@overload
def start(
    data: Iterable[object], column: None = None, **options: Unpack[VerifyOptions]
) -> Run[pd.DataFrame]: ...
@show_options(progress=False)
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
    return prepare(data, column, check_options("start", {"progress": False, **options}))._start()


def prepare(
    data: Any, column: ColumnChoice | None, options: Options, *, read: AddressColumns | None = None
) -> Run[Any]:
    """Read the columns, unless they were `read` already, and set the run up; before its start it uses no network."""
    options, is_free = with_known(options), options.is_free
    frame = read_frame(data, column, options, origin_of(options), is_free=is_free, read=read)
    fields = frame.fields()

    def open_run(given: Options) -> Execution:
        return open_execution(frame.asked, given, fields, frame.syntax)

    run: Run[Any] = Run(open_run(options), frame, lambda: open_run(options.renewed()))
    show_progress(run, column, options.progress, is_free=is_free)
    for notice in (*frame.read.notices(column), *frame.notices):
        run._execution.add_notice(notice)
    if frame.read.several_rows and read is None:  # else who has read them knows it
        run._execution.add_notice(describe_several(frame.read.several_rows))
    return run


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


def read_frame(
    data: Any,
    column: ColumnChoice | None,
    options: Options,
    note: dict[str, Any],
    *,
    is_free: bool,
    extra: Sequence[Column] = (),
    read: AddressColumns | None = None,
) -> FrameReading:
    """Read the columns of a frame, and name the result columns of each, with `extra` ones at the end.

    `read` are the columns if they were read already. The options are those that `with_known` gave.
    """
    tables = tables_of(data, column)
    is_read = read is not None
    results = name_results(tables, column, options, extra, finds_kept=not is_read)
    if read is None:
        values, kept = [table.values() for table in tables], [own.kept for own in results]
        # A longer column is checked in several batches, each when the run comes to it.
        is_checked = is_free and (options.clean or sum(map(len, values)) <= FREE_BATCH)
        read = read_addresses(values, clean=options.clean, keep_syntax=is_checked, kept=kept)
    notices = [Note(own.kept.notice) for own in results if own.kept is not None]
    asked = read.asked(is_free=is_free, known=options.known)
    return FrameReading(tables, results, read, note, *asked, notices, options.known)


@dataclass(frozen=True)
class ResultColumns:
    """The result columns of one column."""

    columns: tuple[Column, ...]
    names: list[Any]  # their labels
    emptied: Mapping[Any, Column] = field(
        default_factory=dict
    )  # columns made from the verdicts of an earlier call
    kept: KeptRepairs | None = None  # what was repaired before


def name_results(
    tables: Sequence[Table],
    column: ColumnChoice | None,
    options: Options,
    extra: Sequence[Column] = (),
    *,
    finds_kept: bool = True,
) -> list[ResultColumns]:
    """The result columns of each column, with `extra` ones; an error if one would replace a column of the caller.

    Those of an earlier verification are made again, since they would not fit the new verdict, and what was made from
    its verdicts is emptied. With `finds_kept` repaired addresses that are there already are found, since the user may
    have corrected them.
    """
    is_cleaned, categories, prefix, overwrite = (
        options.clean,
        options.categories,
        options.prefix,
        options.overwrite,
    )
    if prefix is not None and len(tables) > 1:
        raise SettingsError(
            f"prefix={prefix!r}: each of several columns has its own prefix; leave it out"
        )
    chosen, results = choose_columns(options.columns, clean=is_cleaned, categories=categories), []
    if options.known is not None and BY_NAME["source"] not in chosen:
        chosen = (*chosen, BY_NAME["source"])
    taken = set(column) if isinstance(column, list) else set()
    for table in tables:
        earlier = earlier_columns(table, prefix) if overwrite else {}
        is_verified = not earlier.keys().isdisjoint(("verdict", "status"))
        again = [name for name in earlier if is_verified and name in BY_NAME]
        others = choose_columns(
            again, clean=is_cleaned and "change" in earlier, categories=categories
        )
        columns = (*chosen, *(each for each in others if each not in chosen), *extra)
        kept = kept_repairs(table, prefix, earlier) if is_cleaned and finds_kept else None
        if kept is not None:
            earlier["clean"] = CLEAN_COLUMNS[0]
        names = name_columns(table, prefix, columns, overwrite=overwrite, earlier=earlier)
        if twice := taken.intersection(names):
            raise SettingsError(
                f"two results would get the label {twice.pop()!r}; verify these columns one by one"
            )
        taken.update(names if isinstance(column, list) else ())
        derived = [
            c for c in DERIVED_COLUMNS if is_verified and c.name in earlier and c not in columns
        ]
        emptied = {label_of(table.column, prefix, c.name): c for c in derived}
        if not categories:
            emptied = {label: replace(c, kind="text") for label, c in emptied.items()}
        results.append(ResultColumns(columns, names, emptied, kept))
    return results


def tables_of(data: Any, column: ColumnChoice | None) -> list[Table]:
    """The data with its column, or with each of a list of columns."""
    if not isinstance(column, list):
        return [table_of(data, column)]
    if not column:
        table_of(data, None)  # a frame: an error that names its columns
        raise ColumnError("column=[]: give the name of a column")
    first = table_of(data, column[0])
    tables = [first, *(table_of(first.frame, each) for each in column[1:])]  # a stream is read once
    if twice := [each for at, each in enumerate(column) if each in column[:at]]:
        raise ColumnError(f"column {twice[0]!r} is given twice")
    return tables


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
    elif not wants_bar(progress=progress, is_free=is_free):
        return
    elif is_marimo() and (shown := run._live_widget(has_buttons=False)) is not None:
        import marimo  # noqa: PLC0415 - it runs this code

        marimo.output.append(shown)
    else:
        names = [each for each in each_column(column) if each is not None]
        run.subscribe(ProgressBar(f"verify {', '.join(map(str, names))}".strip()))


@overload
def verify(data: Frame, column: ColumnChoice, **options: Unpack[VerifyOptions]) -> Frame: ...
@overload
def verify(
    data: Iterable[object], column: None = None, **options: Unpack[VerifyOptions]
) -> pd.DataFrame: ...
@show_options()
def verify(data: Any, column: ColumnChoice | None = None, **options: Unpack[VerifyOptions]) -> Any:
    """Verify a column of e-mail addresses: a verdict, its reasons and flags for every row.

    Works in scripts, notebooks (also inside their running event loop), threads and worker
    processes. Each distinct address is verified once; blanks around it and the case of its domain
    make no difference.

    Parameters
    ----------
    data : DataFrame, Series or list-like
        A pandas, Polars or Arrow frame with `column`; or a Series, array or list of cells. Whatever
        else has the Arrow PyCapsule interface (a RecordBatchReader, a DuckDB relation) is read as an
        Arrow table; a reader gives its rows once. Cells of bytes in UTF-8 are text, and any other cell is
        read as its text: a list of texts as JSON, a number as ``str`` gives it. A list without any text
        is ``missing``, and texts that `pandas.read_csv` reads as missing (``N/A``, ``NULL``, ``NaN``, ``None``, ...)
        are, too.
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
        What another verifier said, as `read_verdicts` reads or returned it, or an earlier result. An
        address that is ``valid`` or ``invalid`` there is not asked (``valid`` in a result of ours: by at
        least this type): its rows have that verdict, and the column `source`, which is then always
        there, names the verifier. Whatever else it said, or if it said both, is open and is asked. Not
        kept in the journal, and preferred to it. Malformed addresses are judged here in any case.
        A warning says how many addresses it settles, and from when its answers are; they count
        however old they are, unless `max_age` is given.
    clean : bool, default True
        Repair each cell first, as `mailverdict.clean` does, and verify the repaired address. A cell
        that cannot be repaired is verified as it stands, but one with several addresses is not
        verified: its verdict is ``unknown`` with the reason ``several_addresses``. Adds the columns
        `clean` (the address that was verified; NA for a cell without one) and `change`; the caller's
        column stays as it is.
        If both are there already, from `mailverdict.clean` or an earlier call, what they hold stays:
        the addresses in `clean`, which may have been corrected by hand, are verified as they stand, a
        cell whose address was taken away as well, and only rows with neither are repaired. False:
        every cell is verified as it stands.
    columns : {"short", "core", "all"} or list of str
        Which result columns. ``"short"``: those that a reader needs, `clean` first; of the repairs it
        has no `change`.
    categories : bool, default True
        False: `verdict` and `status` are text. The output of Spark's ``mapInArrow`` needs that.
    prefix : str, optional
        Prefix of each new column's name; by default ``f"{column}_"``, and none for a Series or
        list. Not with a list of columns, since each has its own.
    overwrite : bool, default True
        Replace the result columns of an earlier call, also those that `columns` does not name, and
        empty those made from its verdicts: actions, and without `clean` also cleaned addresses.
        They are recognized by the note that the call left in a pandas frame or an Arrow table, or
        by a `verdict` and a `status` that hold only our words, whatever file the frame was in. A
        result column's name on something that we never write there, or without either, is an
        error. False: any of these names is an error.
    offline : bool
        Use no network: what is not in the journal is ``pending``.
    progress : ``"auto"``, bool or callable
        Show a bar on stderr (``"auto"``: in notebooks and terminals, if a network is used), or
        call a function with each `Progress`.

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
        If something made the results less certain than they look, no cell of a column holds an ``@``,
        cells hold several addresses, or repaired addresses were there already.

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
    return collect(prepare(data, column, check_options("verify", options))._start())


def collect(run: Run[Any]) -> Any:
    """The result of a run; Ctrl-C ends the run first, and puts what is settled on the exception."""
    try:
        result = run.result()
        warn_user(*describe_spamtraps(run))
        return result
    except KeyboardInterrupt as interrupt:
        run._interrupt()
        interrupt.partial = run.partial()  # type: ignore[attr-defined]
        interrupt.add_note(
            "what was checked is on this exception's .partial, and in the journal if there is one"
        )
        raise
    finally:
        warn_user(*run.notices)


def describe_spamtraps(run: Run[Any]) -> list[str]:
    """A notice about spamtraps that the short set does not show, since a policy drops them whatever their verdict."""
    frame: Any = run._build
    if not isinstance(frame, FrameReading) or not is_short(
        [each.name for each in frame.results[0].columns]
    ):
        return []
    count = pc.sum(run._settled_table()["spamtrap"]).as_py()
    if not count:
        return []
    found = count_of(count, "address is", "addresses are")
    return [
        f"{found} of domains on a list of spamtraps: policies drop them with columns='core', which has `spamtrap`"
    ]


@overload
async def averify(data: Frame, column: ColumnChoice, **options: Unpack[VerifyOptions]) -> Frame: ...
@overload
async def averify(
    data: Iterable[object], column: None = None, **options: Unpack[VerifyOptions]
) -> pd.DataFrame: ...
@show_options()
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
    run = await asyncio.to_thread(prepare, data, column, check_options("averify", options))
    try:
        result = await run
        warn_user(*describe_spamtraps(run))
        return result
    finally:
        warn_user(*run.notices)
