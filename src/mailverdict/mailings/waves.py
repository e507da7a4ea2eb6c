"""Mail a list in waves within a bounce budget: which rows now, and why not the others.

One call, top to bottom:

1. the list: its mailboxes, its cells (`cells.py`), the waves of its rows, and the note of the call
   before (`notes.py`); and what is asked: the budget and the number of waves (`list_to_mail.py`);
2. what is known: the rates of the cells (`forecast.py`), and whether the sender has to wait
   (`reputation.py`);
3. rows that are never mailed, and the rows of this wave (`choice.py`, `release.py`);
4. the words about them (`wording.py`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import SettingsError
from ..model.words import count_of
from ..table.columns import HELD_COLUMNS, WAVE_COLUMNS
from ..table.notices import warn_user
from ..table.overwrite import name_columns
from ..table.table import Frame, Table
from .cells import read_wave_times
from .choice import Choice, choose_wave, count_reasons
from .experience import Experience, read_experience
from .forecast import Expected, forecast_list
from .list_to_mail import (
    BUDGET,
    Budget,
    ListToMail,
    check_frame,
    choose_budget,
    read_list,
    take_back,
)
from .notes import ListNote
from .reputation import judge_reputation
from .wording import RESUME, explain, warnings_of

SHOWN_REASONS = 7


@dataclass(frozen=True)
class Mailing(Generic[Frame]):
    """What to mail now.

    Attributes
    ----------
    wave, waves : int
        The number of this wave, and how many were asked for.
    next : DataFrame
        The rows to mail now, of the kind that was given.
    frame : DataFrame
        The whole list with the column `wave`, the number of the wave that each row was released in,
        and `wave_at`, when that wave was planned; NA where it was not. Keep the frame, since the
        next call needs it.
    held : DataFrame
        The rows that are not mailed, now or before, with the column `held`: why, in words.
    expected : Expected
        `bounces`, `low` and `high`: the hard bounces to expect, with their 95 % interval.
    why : str
        How this wave was chosen.
    rows : int
        How many are in `next`.
    reasons : dict
        How many are held, by reason.
    max_bounce_rate : float
        The budget that the wave was chosen for.
    not_learnt : tuple of int
        The waves of the list that the experience lacks.
    withheld : str
        Why no row is mailed although some might be: blocks or complaints. Empty if the wave is not
        withheld.
    is_pilot : bool
        Whether the rows are a pilot, whose bounces may be above the budget.
    warnings : tuple of str
        What a person has to know of the mailings before: exports that seem to lack bounces,
        complaints, and operators that blocked the last wave.
    can_pilot : bool
        Whether no row is sure enough, so that a pilot is the way to learn something
        (``pilot=200``).
    can_resume : bool
        Whether rows wait that were withheld (``resume=True``).

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> df = pd.DataFrame({"email": ["ada@example.org", "nobody"]})
    >>> out = mv.verify(df, "email", validation_type="regex")
    >>> mv.mailing(out, "email").held["email_held"].tolist()
    ['not sure enough for this wave', 'invalid: not a well-formed address']
    """

    wave: int
    waves: int
    next: Frame
    frame: Frame
    held: Frame
    expected: Expected
    why: str
    rows: int
    reasons: dict[str, int]
    max_bounce_rate: float = BUDGET
    not_learnt: tuple[int, ...] = ()
    withheld: str = ""
    is_pilot: bool = False
    warnings: tuple[str, ...] = ()
    can_pilot: bool = False
    can_resume: bool = False

    def __repr__(self) -> str:
        """The rows, the bounces to expect, and why."""
        lines = [self._title(), f"{self.why} {self._remedy()}".strip()]
        for why, rows in self._shown().items():
            lines.append(f"  {rows:>9,} {why}")
        return "\n".join(lines)

    def _title(self) -> str:
        bounces, low, high = self.expected
        share = ""
        if self.rows:
            share = f" ({bounces / self.rows:.1%})"
        kind = ""
        if self.is_pilot:
            kind = ", a pilot"
        return (
            f"Mailing: wave {self.wave} of {self.waves}{kind}: {count_of(self.rows, 'row')}, "
            f"{count_of(round(bounces), 'hard bounce')} expected{share}, {low:,.0f} to "
            f"{high:,.0f}; {sum(self.reasons.values()):,} held"
        )

    def _remedy(self) -> str:
        """What to do about rows that wait."""
        if self.can_resume:
            return f"{RESUME}."
        if self.can_pilot:
            return (
                "Verify them by smtp, learn from an earlier mailing, or mail a pilot (pilot=200)."
            )
        return ""

    def _shown(self) -> dict[str, int]:
        by_size = sorted(self.reasons.items(), key=lambda reason: -reason[1])
        shown = dict(by_size[:SHOWN_REASONS])
        others = sum(rows for _, rows in by_size[SHOWN_REASONS:])
        if others:
            shown["other reasons"] = others
        return shown

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        import html  # noqa: PLC0415 - only notebooks need it

        from ..theme import notebook  # noqa: PLC0415 - only notebooks need it

        lines = []
        for reason, rows in self._shown().items():
            cells = f'<td>{html.escape(reason)}</td><td class="mv-number">{rows:,}</td>'
            lines.append(f"<tr>{cells}</tr>")
        title = f"<p><b>{html.escape(self._title())}</b></p>"
        why = f"<p>{html.escape(self.why)} {html.escape(self._remedy())}</p>"
        head = "<thead><tr><th>held</th><th>rows</th></tr></thead>"
        return notebook(f"{title}{why}<table>{head}{''.join(lines)}</table>")


def mailing(
    out: Frame,
    column: Hashable | None = None,
    *,
    max_bounce_rate: float | None = None,
    waves: int | None = None,
    experience: Any = None,
    pilot: int | None = None,
    again: bool = False,
    resume: bool = False,
    prefix: str | None = None,
) -> Mailing[Frame]:
    """Choose the rows to mail now, so that hard bounces stay below a rate. Uses no network.

    Good rows (valid, and a mail server was asked) are spread over the waves. Of doubtful ones
    (catch-all, role, unknown, or valid without a question to the mail server) a few of each
    operator and domain are mailed first, and more when few of them bounce. After each wave read the
    bounces, `learn` from them, and call it again with the experience and `Mailing.frame`.

    Rows that are invalid, suppressed, a spamtrap, disposable, without a verdict, with several
    addresses or with an address that a person has to look at are never mailed, nor is the second
    row of a mailbox.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned (pandas, Polars or Arrow), or `Mailing.frame` of the wave before.
    column : hashable, optional
        The column that was verified; by default the only one.
    max_bounce_rate : float, optional
        The hard bounces of a wave by its rows. A wave is chosen so that 95 % of such waves are
        below. By default that of the wave before, as the frame or the experience knows it; 0.02 for
        the first one.
    waves : int, optional
        Number of waves of the list. By default as in the wave before; 6 for the first one.
    experience : Experience or path, optional
        What `learn` returned, or the file that it was saved in. Without one, the first wave is
        planned with cautious assumptions, which `Mailing.why` names. What it knows of other lists
        counts little.
    pilot : int, optional
        Release at most so many rows whose bounces teach the most, as far as they are doubtful,
        although more may bounce than the budget allows. For a list of which no row is sure enough.
    again : bool, default False
        Plan the last wave of the frame again: its rows were not mailed. A frame without waves is
        planned from the first one on, also if the experience has waves of this list.
    resume : bool, default False
        Mail although the last wave was blocked or complained about. Holds for this call.
    prefix : str, optional
        The prefix it was verified with, if not the default.

    Returns
    -------
    Mailing
        `.next`, `.frame`, `.held`, `.expected` and `.why`.

    Raises
    ------
    ColumnError
        If the frame has no such column, or it has not been verified.
    SettingsError
        If the rate is not between 0 and 1, all waves have been released, a new column would
        overwrite one that mailverdict did not write, or the frame is not `Mailing.frame` although
        waves of its list are known: then people would be mailed twice.
    InputError
        If the experience cannot be read, or a result column holds what `verify` never writes.

    Warns
    -----
    UserWarning
        If the experience lacks a wave of the list: then its bounces have not been learnt, or the
        list has changed. If a mailing has far fewer bounces than were expected: then its export may
        lack some, and only so many of its mails count as fit them until it is learnt with more of
        them, or as ``complete``. If the last wave was blocked or complained about. If nothing says
        whether mail servers were asked.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> df = pd.DataFrame({"email": [f"{n}@firm{n % 7}.example" for n in range(600)]})
    >>> out = mv.verify(df, "email", validation_type="regex")
    >>> out["email_catch_all"] = False  # as if the mail servers had been asked
    >>> out["email_validation_type"] = "smtp"
    >>> plan = mv.mailing(out, "email", waves=3)
    >>> len(plan.next), len(plan.held)
    (160, 440)
    """
    check_options(max_bounce_rate, waves, pilot)
    listed = read_list(out, column, prefix, read_experience(experience) or Experience())
    if again:
        listed = take_back(listed)
    else:
        check_frame(listed)
    labels = name_columns(listed.data, listed.rows.prefix, (*WAVE_COLUMNS, *HELD_COLUMNS))
    budget = choose_budget(listed, max_bounce_rate, waves)
    forecast = forecast_list(listed.cells, listed.wave_of, listed.known)
    last = forecast.last or next(reversed(listed.known.mailings), None)
    choice = choose_wave(listed, budget, forecast, judge_reputation(last), pilot, resume=resume)
    warn_user(*warnings_of(listed, forecast, choice, again=again))

    frame = mark_waves(listed, budget, choice, labels[:2])
    marked = Table(frame, listed.data.column)
    now = np.sort(choice.now)
    waiting = np.flatnonzero(choice.wave_of == 0)
    why_held = choice.held.take(pa.array(waiting))
    reasons = pa.table({"held": why_held})
    held = Table(marked.take(waiting), listed.data.column)
    sentences = explain(listed, budget, forecast, choice)
    can_choose_more = choice.left > 0 and not len(now)
    return Mailing(
        wave=listed.wave,
        waves=budget.waves,
        next=marked.take(now),
        frame=frame,
        held=held.attach(reasons, labels[2:], HELD_COLUMNS, {}),
        expected=choice.expected,
        why=" ".join(sentences),
        warnings=(*forecast.doubts, *choice.reputation.complaints, *choice.refusals),
        can_pilot=can_choose_more and not choice.withheld,
        can_resume=choice.can_resume,
        rows=len(now),
        reasons=count_reasons(why_held),
        max_bounce_rate=budget.rate,
        not_learnt=listed.not_learnt,
        withheld=choice.withheld,
        is_pilot=choice.is_pilot,
    )


def check_options(max_bounce_rate: Any, waves: Any, pilot: Any) -> None:
    """An error for options of a wrong type or size."""
    if max_bounce_rate is not None:
        is_number = isinstance(max_bounce_rate, int | float | np.floating)
        if not is_number or not 0 < max_bounce_rate < 1:
            raise SettingsError(f"max_bounce_rate={max_bounce_rate!r}: give a part of 1, as 0.02")
    for name, number in (("waves", waves), ("pilot", pilot)):
        is_whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
        if number is not None and (not is_whole or number < 1):
            raise SettingsError(f"{name}={number!r}: give a whole number from 1")


def mark_waves(listed: ListToMail, budget: Budget, choice: Choice, labels: list[Any]) -> Any:
    """The frame with the wave of each row and its time, and the note for the next call."""
    released = dict(listed.note.released)
    if len(choice.now):
        released[listed.wave] = datetime.now(UTC).replace(microsecond=0)
    before = read_wave_times(listed.rows, listed.wave_of, released)
    is_now = pa.array(choice.wave_of == listed.wave)
    now = pa.scalar(released.get(listed.wave), before.type)
    wave_at = pc.if_else(is_now, now, before)
    rows = listed.note.rows or len(listed.rows)
    note = ListNote(listed.cells.key, rows, budget.waves, budget.rate, released)
    wave = pa.array(choice.wave_of, mask=choice.wave_of == 0)
    marks = pa.table({"wave": wave, "wave_at": wave_at})
    return listed.data.attach(marks, labels, WAVE_COLUMNS, note.to_json())
