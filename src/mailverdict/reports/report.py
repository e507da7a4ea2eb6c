"""`report`: a verified column as an HTML page, or as a workbook with a sheet per action.

    report(out) -> rows -> Counts, ListCounts          what is counted, also in pieces of a file
                -> ReportFacts                         and what bounces and an earlier audit add
                -> sections -> page.html, report.xlsx  (`page`, `workbook`)

The command line and the audit page count by themselves and call `make_report`. A frame is kept for
the sheets of a workbook, which have all rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ..atomic_write import atomic_write, check_writable
from ..errors import ColumnError, InputError, SettingsError
from ..files.plain import to_plain
from ..files.readers import open_table
from ..files.table_file import TableFile
from ..files.workbook import SUMMARY, check_replaced, import_xlsxwriter
from ..frames.policy import Policy, decide, find_policy, read_decided
from ..frames.results import Results, with_core
from ..model.paths import user_path
from ..model.words import count_of, percent
from ..table.columns import label_of
from ..table.table import labels_of
from .counts import Counts
from .facts import AUDIENCES, ReportFacts, gather_outcomes, gather_trend
from .origins import ListCounts, label_text
from .page import render_page, render_section


class Report:
    """A report on one verified column; made by `mailverdict.report`.

    Parameters
    ----------
    facts : ReportFacts
        What it shows.
    out : DataFrame, optional
        The verified frame, for the sheets of a workbook.
    column : hashable
        The column.
    prefix : str, optional
        The prefix of the result columns.

    Examples
    --------
    >>> import mailverdict as mv
    >>> import pandas as pd
    >>> df = pd.DataFrame({"email": ["ada@example.org", "nobody"]})
    >>> out = mv.verify(df, "email", validation_type="regex")
    >>> mv.report(out, "email").to_html()[:15]
    '<!DOCTYPE html>'
    """

    def __init__(self, facts: ReportFacts, out: Any, column: Hashable, prefix: str | None) -> None:
        self._facts = facts
        self._out = out
        self._column = column
        self._prefix = prefix
        self._remarks: list[str] = []  # what the file that was saved last cannot hold

    def to_html(self) -> str:
        """Give the page.

        Returns
        -------
        str
            One self-contained HTML document.
        """
        return render_page(self._facts)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the report.

        Parameters
        ----------
        path : path
            Ending in ``.html`` for the page, ``.xlsx`` for a workbook with a sheet per action.

        Returns
        -------
        Path
            Where it was written; it appears whole or not at all.

        Raises
        ------
        InputError
            If the ending is another one, or it is a workbook with a sheet that mailverdict did not
            write.
        """
        target, writer = check_path(path)
        with atomic_write(target) as temporary:
            writer(self, temporary)
        return target

    def __repr__(self) -> str:
        """One line."""
        counts = self._facts.counts
        share = percent(counts.actions["send"], counts.rows)
        rows = count_of(counts.rows, "row")
        return f"<mailverdict.Report of {self._facts.column!r}: {share} of {rows} can be mailed>"

    def _repr_html_(self) -> str:
        """The page inline."""
        return render_section(self._facts)


def check_path(path: str | os.PathLike[str]) -> tuple[Path, Callable[[Report, Path], None]]:
    """The path and the function that writes a report there, or an `InputError`."""
    target = user_path(path)
    writer = WRITERS.get(target.suffix.lower())
    if writer is None:
        raise InputError(f"{target}: a report is .html or .xlsx")
    if target.is_dir():
        raise InputError(f"{target} is a directory; name a file to write")
    if not target.parent.is_dir():
        raise InputError(f"{target} cannot be written: there is no directory {target.parent}")
    if writer is write_sheets:
        import_xlsxwriter("a report as XLSX")
        check_replaced(target)
    try:
        check_writable(target)
    except OSError as exc:
        raise InputError(f"{target} cannot be written: {exc.strerror}") from exc
    return target, writer


def write_page(report: Report, path: Path) -> None:
    path.write_text(report.to_html(), encoding="utf-8")


def write_sheets(report: Report, path: Path) -> None:
    """A sheet of facts, one per action, and all rows with all columns."""
    from .workbook import write_workbook  # noqa: PLC0415 - few need it

    decided = decide(
        report._out, report._column, policy=report._facts.policy, prefix=report._prefix
    )
    rows = Results(decided, report._column, report._prefix)
    report._remarks = write_workbook(path, report._facts, rows, to_table(decided))


def to_table(frame: Any) -> pa.Table:
    """A frame of any kind as an Arrow table, without the index."""
    if isinstance(frame, pd.DataFrame):
        return pa.Table.from_pandas(as_text_labels(frame), preserve_index=False)
    if isinstance(frame, pa.Table):
        return frame
    return frame.to_arrow()


def as_text_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its column labels as text; a label that occurs twice gets its position."""
    labels = [label_text(label) for label in frame.columns]
    names = []
    for place, label in enumerate(labels):
        name = label
        if labels.count(label) > 1:
            name = f"{label}.{place}"
        names.append(name)
    return frame.set_axis(names, axis=1)


WRITERS: dict[str, Callable[[Report, Path], None]] = {
    ".html": write_page,
    ".htm": write_page,
    ".xlsx": write_sheets,
}


def report(
    out: Any,
    column: Hashable | None = None,
    path: str | os.PathLike[str] | None = None,
    *,
    policy: Policy | str | None = None,
    audience: str = "analyst",
    prefix: str | None = None,
    bounces: Any = None,
    earlier: Any = None,
    name: str | None = None,
    by: Hashable | None = None,
) -> Report:
    """Report on a verified column: what can be mailed, why the rest cannot, what to do next.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned: a pandas, Polars or Arrow frame.
    column : hashable, optional
        The column that was verified; by default the only one.
    path : path, optional
        Where to save it: ``.html`` or ``.xlsx``.
    policy : Policy or {"strict", "balanced", "lenient"}, optional
        The policy that gives the actions; balanced when not given.
    audience : {"analyst", "manager"}, default "analyst"
        For an analyst the whole; for a manager one page: the share that can be mailed, a picture,
        what to do, and the main reasons. A workbook has the sheets of rows for both.
    prefix : str, optional
        The prefix it was verified with, if not the default.
    bounces : DataFrame or path, optional
        What `read_bounces` returned, or what it reads: the report then shows whether the verdicts
        were right, as `outcomes` counts it.
    earlier : DataFrame or path, optional
        An earlier audit of the same list: a frame of any kind that `verify` returned, or the table
        file that it was written to, with the same column and prefix. The report then shows what
        changed.
    name : str, optional
        What the list is called, such as the name of its file; the report's title has it.
    by : hashable, optional
        A column of yours, ``"domain"`` or ``"operator"``: the report also shows its groups, as
        `breakdown` counts them. Which columns say where invalid addresses come from is always in
        it.

    Returns
    -------
    Report
        Shows as a page in a notebook; `save` writes it.

    Raises
    ------
    ColumnError
        If the frame has no such column, or it has not been verified.
    SettingsError, InputError
        If there is no such policy or audience, the path has another ending, `bounces` or `earlier`
        cannot be read, or a result column holds what `verify` never writes.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> df = pd.DataFrame({"email": ["ada@example.org", "bob@example.org", "nobody", None]})
    >>> mv.report(mv.verify(df, "email", validation_type="regex"), "email")
    <mailverdict.Report of 'email': 50.0% of 4 rows can be mailed>
    """
    chosen = find_policy(policy or "balanced")
    check_audience(audience)
    if path is not None:
        check_path(path)
    elif is_path(column) and column not in labels_of(out):
        name = str(column)
        raise SettingsError(f"column={name!r}: to save the report, give path={name!r}")
    rows = read_decided(out, column, prefix)
    before = None
    if earlier is not None:
        before = read_earlier(earlier, rows.column, rows.prefix)
    counts = Counts(chosen)
    counts.add(rows)
    asked = [by]
    if by is None:
        asked = []
    origins = ListCounts(chosen, asked=asked)
    origins.add(rows)
    result = make_report(
        counts,
        rows.column,
        rows,
        bounces=bounces,
        earlier=before,
        name=name,
        audience=audience,
        origins=origins,
    )
    if path is not None:
        result.save(path)
    return result


def is_path(column: Any) -> bool:
    """Whether what was given as a column looks like the path of a report."""
    return isinstance(column, str | Path) and Path(column).suffix in WRITERS


def check_audience(audience: str) -> str:
    """The audience; a `SettingsError` if there is no such one."""
    if audience not in AUDIENCES:
        raise SettingsError(f"audience={audience!r}: give one of {', '.join(AUDIENCES)}")
    return audience


def make_report(
    counts: Counts,
    column: Hashable,
    rows: Results | None = None,
    *,
    bounces: Any = None,
    earlier: Results | None = None,
    name: str | None = None,
    again: str = "",
    audience: str = "analyst",
    origins: ListCounts | None = None,
    kept: str = "",
) -> Report:
    """The report of what was counted; a workbook and a comparison need the rows themselves.

    `kept` says how long the audit page keeps the clear answers, where the report is made there.
    """
    assert counts.policy is not None
    facts = ReportFacts(
        counts,
        counts.policy,
        str(column),
        datetime.now(UTC),
        name,
        again,
        audience,
        origins=origins,
        kept=kept,
    )
    if rows is None:
        return Report(facts, None, column, None)
    if bounces is not None:
        facts = replace(facts, outcomes=gather_outcomes(rows, facts.policy, bounces))
    if earlier is not None:
        facts = replace(facts, trend=gather_trend(rows, earlier, facts.policy))
    return Report(facts, rows.data.frame, column, rows.prefix)


def read_earlier(earlier: Any, column: Hashable, prefix: str | None) -> Results:
    """An earlier audit: a verified frame, or the file of one."""
    try:
        if not isinstance(earlier, str | os.PathLike):
            return read_decided(earlier, column, prefix)
        with open_table(user_path(earlier)) as table:
            if table.format.sheet is not None and table.sheets[0] == SUMMARY:
                raise InputError(
                    f"{earlier} is a report, whose rows are on several sheets: give the verified "
                    "table itself"
                )
            table.check_column(str(column))
            pieces = [*verified_pieces(table, str(column), prefix)]
        return read_decided(pa.concat_tables(pieces), column, prefix)
    except (ColumnError, InputError, SettingsError) as exc:
        raise type(exc)(f"earlier: {exc}") from None


def verified_pieces(
    table: TableFile, column: str, prefix: str | None, others: Collection[str] = ()
) -> Iterator[pa.Table]:
    """The pieces of a verified file with the column, its results and some other columns.

    Of the results those of the core that the file lacks are null.
    """
    first = str(label_of(column, prefix, ""))
    places = []
    names = []
    for place, name in enumerate(table.columns):
        if name == column or name.startswith(first) or name in others:
            places.append(place)
            names.append(name)
    for piece in table.pieces(names):
        cells = [to_plain(piece.column(place)) for place in places]
        # The metadata has what verify noted.
        verified = pa.table(cells, names=names, metadata=piece.schema.metadata)
        yield with_core(verified, column, prefix)
