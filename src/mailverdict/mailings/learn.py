"""What became of a mailing: `learn` counts it by cell, for an `Experience`.

The steps: which rows were mailed, and in which wave (`read_waves`, `read_mailed`); which reports
are about them (`match_reports`, `check_reports`); the counts of each wave (`count_cells`):

    ada@firm.example   wave 1   no report            -> mailed
    bo@firm.example    wave 1   550 User unknown     -> mailed, hard
    cy@firm.example    wave 1   421 try again later  -> mailed, unclear
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..bounces.read import to_bounce_table
from ..checks.bounces.outcome import Outcome
from ..errors import InputError, SettingsError
from ..frames.results import JUDGED, Results
from ..model.arrow import Bools, to_bools
from ..model.words import Verdict, count_of
from ..reports.outcomes import mailed_rows, require_bounces
from ..table.columns import ARROW_TYPES, label_of
from ..table.notices import warn_user
from .cells import (
    ListCells,
    ListMailboxes,
    cells_of,
    name_mailboxes,
    read_list_mailboxes,
    read_wave_times,
    read_waves,
)
from .experience import COUNTS, MOST_NAME, Experience, LearntMailing, is_name
from .notes import read_note
from .rates import CELL, Codes

# Reports are often dated to the day, and in the time zone of the sender: so much older they are of
# an earlier mailing.
OLDER = timedelta(days=2)


def learn(
    out: Any,
    column: Hashable | None = None,
    bounces: Any = None,
    *,
    mailed: Any = None,
    name: str = "",
    complete: bool = False,
    prefix: str | None = None,
) -> Experience:
    """Count what became of a mailing, to forecast the bounces of the next one. Uses no network.

    A mailbox that was mailed and has no report counts as reached, so wait until all bounces have
    come. One whose mail was only blocked or deferred says nothing, and is counted apart. Rows that
    were not mailed teach nothing.

    Parameters
    ----------
    out : DataFrame
        `Mailing.frame`, or what `verify` returned (pandas, Polars or Arrow), with the rows that
        were mailed.
    column : hashable, optional
        The column that was verified; by default the only one.
    bounces : DataFrame or path
        What `read_bounces` returned, or what it reads; with the reports of all waves.
    mailed : hashable or array-like of bool, or True, optional
        Which rows were mailed, as in `outcomes`; ``True`` for all. By default those with a number
        in the column `wave` of `mailing`, where each wave is a mailing of its own; without such a
        column it is needed.
    name : str, optional
        The name of the mailing. By it an experience tells mailings apart that look alike, and
        recognises a mailing whose list has changed much. Two lists without common addresses need
        two names.
    complete : bool, default False
        Whether all bounces of all waves have come. Then a wave without any report is learnt, and
        `mailing` does not doubt that so few mails bounced.
    prefix : str, optional
        The prefix it was verified with, if not the default.

    Returns
    -------
    Experience
        Add it to an earlier one with ``+``.

    Raises
    ------
    ColumnError
        If the frame has no such column, or it has not been verified.
    SettingsError
        If `mailed` does not fit, or is needed; or if the name is an address or longer than 80
        characters.
    InputError
        If `bounces` cannot be read, no row was mailed, or no mailed row has a report: then the
        export is of another mailing, or too early. With `complete` also if most reports are about
        other addresses.

    Warns
    -----
    UserWarning
        If no report is about a wave, which is then not learnt; if reports are older than the wave,
        which then do not count; if most are about other addresses; if addresses with a hard bounce
        are not in a list that has waves; or if invalid rows count as mailed.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> df = pd.DataFrame({"email": ["ada@firm.example", "bo@firm.example", "cy@firm.example"]})
    >>> out = mv.verify(df, "email", validation_type="regex")
    >>> report = pd.DataFrame({"who": ["bo@firm.example"], "reply": ["550 5.1.1 User unknown"]})
    >>> bounces = mv.read_bounces(report, columns={"address": "who", "diagnostic": "reply"})
    >>> experience = mv.learn(out, "email", bounces, mailed=True)
    >>> experience.counts[["verdict", "domain", "mailed", "hard"]]
      verdict        domain  mailed  hard
    0   valid  firm.example       3     1
    """
    require_bounces(bounces)
    if not is_name(name):
        raise SettingsError(
            f"name={name!r:.100}: give a text without @, of at most {MOST_NAME} characters"
        )
    rows = Results(out, column, prefix, JUDGED)
    mailboxes = read_list_mailboxes(rows)
    is_by_wave = mailed is None and "wave" in rows
    if is_by_wave:
        wave_of = read_waves(rows)
        is_mailed = wave_of > 0
    else:
        wave_of = np.zeros(len(rows), np.int64)
        is_mailed = read_mailed(rows, mailed)
    is_mailed &= mailboxes.has_one
    if not is_mailed.any():
        raise InputError(
            "no row was mailed: the plan has no wave yet, or mailed= is false for every address"
        )
    note = read_note(rows)
    wave_at = read_wave_times(rows, wave_of, note.released)
    reports = match_reports(to_bounce_table(bounces), mailboxes, wave_at, is_mailed)
    check_reports(reports, rows.column, is_by_wave=is_by_wave, complete=complete)
    cells = cells_of(rows, mailboxes)
    mailings = []
    for wave in np.unique(wave_of[is_mailed]).tolist():
        is_in_wave = is_mailed & (wave_of == wave)
        has_report = reports.has_any[mailboxes.code[is_in_wave]]
        if not complete and not has_report.any():
            warn_user(
                f"no report is about wave {wave}: it is not learnt. Learn it when its bounces have "
                "come; if there are none, learn it as complete"
            )
            continue
        mailing = LearntMailing(
            wave=wave or None,
            counts=count_cells(cells, is_in_wave, reports),
            name=name,
            is_complete=complete,
            key=cells.key,
            waves=note.waves,
            max_bounce_rate=note.max_bounce_rate,
        )
        mailings.append(mailing)
    return Experience(tuple(mailings))


def read_mailed(rows: Results, mailed: Any) -> Bools:
    """Which rows were mailed, if no column of waves says it."""
    if mailed is None:
        wave = label_of(rows.column, rows.prefix, "wave")
        raise SettingsError(
            f"which of the {count_of(len(rows), 'row')} were mailed? Give Mailing.frame, which has "
            f"the column {wave!r}; or mailed=, a column of true and false or one value for each "
            "row; or mailed=True if it was every row"
        )
    is_mailed = np.ones(len(rows), np.bool_)
    if mailed is not True:
        is_mailed = mailed_rows(rows, mailed)
    is_invalid = to_bools(pc.equal(rows["verdict"], str(Verdict.INVALID)).fill_null(False))
    invalid = int((is_invalid & is_mailed).sum())
    if invalid:
        warn_user(
            f"{count_of(invalid, 'invalid row counts', 'invalid rows count')} as mailed: if they "
            "were not, give the rows that were in mailed="
        )
    return is_mailed


@dataclass(frozen=True, eq=False)
class Reports:
    """What the reports say about the mailboxes of a list."""

    has: dict[Outcome, Bools]  # of each mailbox, by outcome
    matched: int  # mailed mailboxes with a report
    unmatched: int  # addresses with a report that were not mailed
    others: int  # of these, those that are not in the list
    gone: int  # of these, those with a hard bounce
    older: int  # reports that are older than the wave, and do not count

    @property
    def has_any(self) -> Bools:
        """Mailboxes with a report."""
        return np.asarray(np.logical_or.reduce(list(self.has.values())), np.bool_)


def match_reports(
    reports: pa.Table, mailboxes: ListMailboxes, wave_at: pa.TimestampArray, is_mailed: Bools
) -> Reports:
    """Join the reports and the mailboxes of a list, without those older than the wave."""
    names, number = number_reports(reports, mailboxes)
    is_older = are_older(reports["at"], number, mailboxes, wave_at, is_mailed)
    is_other = number < 0
    outcome = reports["outcome"].cast(pa.string()).to_numpy()
    size = len(mailboxes.names)
    has = {}
    for word in Outcome:
        is_counted = (outcome == str(word)) & ~is_older & ~is_other
        has[word] = np.zeros(size, np.bool_)
        has[word][number[is_counted]] = True

    has_any = np.logical_or.reduce(list(has.values()))
    was_mailed = np.zeros(size, np.bool_)
    was_mailed[mailboxes.code[is_mailed]] = True
    # The number of an address that is not in the list, -1, is that of the last one here.
    is_unmatched = ~np.append(was_mailed, False)[number]
    is_gone = is_other & (outcome == str(Outcome.HARD))
    return Reports(
        has=has,
        matched=int((was_mailed & has_any).sum()),
        unmatched=count_distinct(names, is_unmatched),
        others=count_distinct(names, is_other),
        gone=count_distinct(names, is_gone),
        older=int(is_older.sum()),
    )


def count_distinct(names: pa.StringArray, mask: Bools) -> int:
    return len(names.filter(pa.array(mask)).unique())


def number_reports(reports: pa.Table, mailboxes: ListMailboxes) -> tuple[pa.StringArray, Codes]:
    """The mailbox of each report: its name, and its number in a list; -1 where it is not there."""
    names = name_mailboxes(reports["address"].combine_chunks().cast(pa.string()))
    number = pc.index_in(names, mailboxes.names).fill_null(-1)
    return names, np.asarray(number.to_numpy(), np.int64)


def are_older(
    reported_at: pa.ChunkedArray,
    number: Codes,
    mailboxes: ListMailboxes,
    wave_at: pa.TimestampArray,
    is_mailed: Bools,
) -> Bools:
    """Reports that are older than the wave of their mailbox, where both times are known."""
    planned_at = np.full(len(mailboxes.names) + 1, np.datetime64("NaT", "us"))
    planned_at[mailboxes.code[is_mailed]] = plain_times(wave_at)[is_mailed]
    # NaT, where a time is not known, is not less than another time.
    return plain_times(reported_at) < planned_at[number] - np.timedelta64(OLDER)


def plain_times(times: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.datetime64]:
    """Times in UTC as numpy has them; NaT where there is none."""
    in_utc = times.cast(ARROW_TYPES["moment"]).cast(pa.timestamp("us"))
    return np.asarray(in_utc.to_numpy(zero_copy_only=False), "datetime64[us]")


def find_older_reports(out: Any, column: Hashable, bounces: pd.DataFrame) -> Bools:
    """Which reports are older than the wave of their mailbox, by the columns of the waves."""
    rows = Results(out, column, None, JUDGED)
    wave_of = read_waves(rows)
    mailboxes = read_list_mailboxes(rows)
    reports = to_bounce_table(bounces)
    _, number = number_reports(reports, mailboxes)
    wave_at = read_wave_times(rows, wave_of, read_note(rows).released)
    is_mailed = (wave_of > 0) & mailboxes.has_one
    return are_older(reports["at"], number, mailboxes, wave_at, is_mailed)


def describe_older(count: int) -> str:
    """That reports are older than their wave, and why that may be."""
    return (
        f"{count_of(count, 'report is', 'reports are')} more than {OLDER.days} days older than the "
        "wave: they are of an earlier mailing, or the wave was planned again after it was mailed"
    )


def check_reports(reports: Reports, column: Hashable, *, is_by_wave: bool, complete: bool) -> None:
    """An error if no report is about the mailed rows, and warnings about those that are not."""
    older = describe_older(reports.older)
    if not reports.matched and (reports.unmatched or reports.older or not complete):
        none = "no report is"
        if reports.unmatched:
            none = f"none of the {reports.unmatched:,} addresses with a report is"
        which = "give the bounces of this mailing, or wait until they have come"
        if reports.older:
            which = f"{older}; {which}, or Mailing.frame of the day on which it was mailed"
        raise InputError(f"{none} among the mailed rows of {column!r}: {which}")
    if reports.older:
        warn_user(f"{older}, so that they do not count")
    total = reports.matched + reports.unmatched
    if reports.others > total / 2:
        others = f"{reports.others:,} of {total:,} addresses with a report are not in {column!r}"
        if complete:
            raise InputError(
                f"{others}: a mailing is learnt as complete from its own bounces only; leave out "
                "the others"
            )
        warn_user(f"{others}: are these the bounces of this mailing?")
    elif is_by_wave and reports.gone:
        warn_user(
            f"{count_of(reports.gone, 'address is', 'addresses are')} not in {column!r} and had a "
            "hard bounce. If they were taken off the list, these bounces are not counted, and the "
            "next wave would be too large: learn from the list with them, or add to what was "
            "learnt before"
        )


def count_cells(cells: ListCells, is_mailed: Bools, reports: Reports) -> pd.DataFrame:
    """The counts of a mailing; a mailbox counts once."""
    rows = cells.mailboxes.first_of(is_mailed)
    mailbox = cells.mailboxes.code[rows]
    cell = cells.cell[rows]
    has = {outcome: marks[mailbox] for outcome, marks in reports.has.items()}
    hard = has[Outcome.HARD]
    blocked = has[Outcome.BLOCKED]
    complained = has[Outcome.COMPLAINT]
    is_clear = hard | has[Outcome.DELIVERED] | complained
    is_unclear = (has[Outcome.SOFT] | blocked) & ~is_clear
    pairs = pd.DataFrame({"cell": cell, "domain": cells.mailboxes.domain[mailbox]})
    pairs = pairs.drop_duplicates()
    marks_of = {
        "mailed": np.ones(len(cell), np.bool_),
        "hard": hard,
        "unclear": is_unclear,
        "blocked": blocked & ~is_clear,
        "complaints": complained,
    }
    size = len(cells.table)
    counts = cells.table[list(CELL)].copy()
    counts["domains"] = np.bincount(pairs["cell"], minlength=size)
    for name, marks in marks_of.items():
        counts[name] = np.bincount(cell[marks], minlength=size)
    counts = counts[counts["mailed"] > 0].reset_index(drop=True)
    return counts.astype(dict.fromkeys(COUNTS, "int64"))
