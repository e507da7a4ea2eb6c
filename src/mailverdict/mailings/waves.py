"""Mail a list in waves within a bounce budget: which rows now, and why not the others.

One call, top to bottom:

1. the list: its mailboxes, its cells (`cells.py`), the waves of its rows, and the note of the call
   before (`notes.py`);
2. what is asked: the budget and the number of waves, by the arguments, the note, or the experience;
3. rows that are never mailed (`hold_rows`);
4. what is known: the rates of the cells (`forecast.py`), and whether the sender has to wait
   (`reputation.py`);
5. the rows of this wave (`release.py`), and the words about them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Generic

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import SettingsError
from ..frames.clean import DID_YOU_MEAN
from ..frames.policy import REMARKED, Policy, decide_rows, read_decided
from ..frames.results import Results
from ..model.arrow import Bools, one_array, to_bools
from ..model.words import MEANING, SEVERAL_ADDRESSES, Verdict, count_of
from ..table.columns import HELD_COLUMNS, WAVE_COLUMNS, label_of
from ..table.notices import warn_user
from ..table.overwrite import name_columns
from ..table.table import Frame, Table
from .cells import (
    ListCells,
    ListMailboxes,
    cells_of,
    read_list_mailboxes,
    read_wave_times,
    read_waves,
    says_who_was_asked,
)
from .experience import Experience, LearntMailing, read_experience
from .forecast import (
    Expected,
    Forecast,
    expect,
    forecast_list,
    has_wave,
    is_within,
    last_mailing,
    split_mailings,
)
from .list_key import FEWEST, shared_part
from .notes import ListNote, read_note
from .rates import PRIORS, Codes
from .release import below_budget, choose_pilot, choose_rows
from .reputation import Reputation, judge_reputation

BUDGET = 0.02
WAVES = 6
# A list that shares so much with one of which a wave was mailed is that list, of which some rows
# were taken off.
UNCHANGED = 0.9
# Which rows may be mailed at all; the words for the others are those of `decide`.
RELEASED = Policy(
    "mailing",
    send=("valid", "risky", "unknown"),
    retry=(),
    drop=("invalid", "risky:disposable", "risky:spamtrap", "flag:disposable", "flag:spamtrap"),
)
LATER = "kept for a later wave"
REPEATED = "its mailbox is in another row"
UNVERIFIED = "it has no verdict"
UNSURE = "not sure enough for this wave"
REFUSING = "withheld: its operator blocked the last wave"
WITHHELD = "withheld: the last wave was blocked or complained about"
RESUME = "Find the cause, then go on with resume=True"
VARIED = (DID_YOU_MEAN, REMARKED)  # what follows is another text in each row
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
        and `wave_at`, when that wave was planned; NA where it was not. Keep it, since the next call
        begins with it.
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

        lines = (
            f'<tr><td>{html.escape(why)}</td><td class="mv-number">{rows:,}</td></tr>'
            for why, rows in self._shown().items()
        )
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

    Never mailed are rows that are invalid, suppressed, a spamtrap, disposable, without a verdict,
    with several addresses or with an address that a person has to look at, and the second row of a
    mailbox.

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
        In how many parts the list is mailed. By default as in the wave before; 6 for the first one.
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
    waiting = np.flatnonzero(choice.wave_of == 0)
    words = choice.held.take(pa.array(waiting))
    held = Table(marked.take(waiting), listed.data.column)
    return Mailing(
        wave=listed.wave,
        waves=budget.waves,
        next=marked.take(np.sort(choice.now)),
        frame=frame,
        held=held.attach(pa.table({"held": words}), labels[2:], HELD_COLUMNS, {}),
        expected=choice.expected,
        why=" ".join(explain(listed, budget, forecast, choice)),
        warnings=(*forecast.doubts, *choice.reputation.complaints, *choice.refusals),
        can_pilot=not choice.withheld and choice.left > 0 and not len(choice.now),
        can_resume=choice.can_resume,
        rows=len(choice.now),
        reasons=count_reasons(words),
        max_bounce_rate=budget.rate,
        not_learnt=listed.not_learnt,
        withheld=choice.withheld,
        is_pilot=choice.is_pilot,
    )


# --- the list, and what is asked
# -------------------------------------------------------------------------------------


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


@dataclass(frozen=True, eq=False)
class ListToMail:
    """A list with what is known of its waves."""

    rows: Results
    cells: ListCells
    wave_of: Codes  # of each row; 0 where it was not released
    note: ListNote
    known: Experience

    @property
    def data(self) -> Table:
        """The frame that was given."""
        return self.rows.data

    @property
    def last_wave(self) -> int:
        """The last wave of the frame; 0 for none."""
        return int(self.wave_of.max(initial=0))

    @property
    def wave(self) -> int:
        """The number of the next wave."""
        return self.last_wave + 1

    @cached_property
    def own(self) -> list[LearntMailing]:
        """The learnt mailings of this list."""
        return split_mailings(self.cells, self.wave_of, self.known)[0]

    @cached_property
    def not_learnt(self) -> tuple[int, ...]:
        """The waves of the frame that the experience lacks."""
        waves = np.unique(self.wave_of[self.wave_of > 0]).tolist()
        return tuple(wave for wave in waves if not self.is_learnt(wave))

    def is_learnt(self, wave: int) -> bool:
        """Whether the experience has a wave of this list, with its rows."""
        return any(
            mailing.wave == wave and has_wave(mailing, self.cells, self.wave_of, wave)
            for mailing in self.own
        )

    @property
    def mailed_before(self) -> LearntMailing | None:
        """The last learnt wave of this list, if no row of the frame has a wave."""
        if self.last_wave:
            return None
        waves = [mailing for mailing in self.own if mailing.wave is not None]
        return last_mailing(waves, 0)

    @property
    def maybe_mailed_before(self) -> LearntMailing | None:
        """The last learnt wave of a list that may be this one, where both are too short for a key."""
        if self.last_wave or self.cells.key:
            return None
        waves = []
        for mailing in self.known.mailings:
            is_short = not mailing.key and mailing.mailed < FEWEST
            if is_short and mailing.wave is not None and is_within(mailing, self.cells):
                waves.append(mailing)
        return last_mailing(waves, 0)

    def label(self, name: str) -> str:
        """The label of a result column, for messages."""
        return repr(label_of(self.rows.column, self.rows.prefix, name))


def read_list(
    out: Any, column: Hashable | None, prefix: str | None, known: Experience
) -> ListToMail:
    """The list, its cells and its waves."""
    rows = read_decided(out, column, prefix)
    cells = cells_of(rows, read_list_mailboxes(rows), known.counts)
    return ListToMail(rows, cells, read_waves(rows), read_note(rows), known)


def take_back(listed: ListToMail) -> ListToMail:
    """The list without its last wave, which was not mailed."""
    wave = listed.last_wave
    if not wave:
        return listed
    if wave not in listed.not_learnt:
        raise SettingsError(
            f"again=True: wave {wave} was learnt, so it was mailed. Leave again= out for wave "
            f"{wave + 1}"
        )
    wave_of = np.where(listed.wave_of == wave, 0, listed.wave_of)
    released = {number: moment for number, moment in listed.note.released.items() if number < wave}
    return replace(listed, wave_of=wave_of, note=replace(listed.note, released=released))


def check_frame(listed: ListToMail) -> None:
    """An error if waves of the list are known, and the frame does not say who was in them."""
    remedy = (
        "Give Mailing.frame of the last call, which has all rows and their waves. again=True plans "
        "wave 1 again"
    )
    if listed.last_wave:
        is_all_released = bool((listed.wave_of > 0).all())
        if is_all_released and listed.note.rows > len(listed.wave_of):
            raise SettingsError(
                f"all {count_of(len(listed.wave_of), 'row')} of this frame are in a wave, and the "
                f"list has {listed.note.rows:,}: is it Mailing.next? {remedy}"
            )
        return
    label = listed.label("wave")
    if listed.note.released:
        wave = max(listed.note.released)
        raise SettingsError(
            f"wave {wave} of this list was released, and no row of this frame has a wave in "
            f"{label}: is it Mailing.held? {remedy}"
        )
    if "wave" in listed.rows and "held" in listed.rows and listed.rows["held"].null_count == 0:
        raise SettingsError(
            f"each row of this frame has a reason in {listed.label('held')}: is it Mailing.held? "
            f"{remedy}"
        )
    before = listed.mailed_before
    if before is None or before.wave == before.waves:
        return
    if shared_part(before.key, listed.cells.key) >= UNCHANGED:
        raise SettingsError(f"{before} {describe_before(listed)}. {remedy}")


def describe_before(listed: ListToMail) -> str:
    """What is known of waves of this list, of which the frame says nothing."""
    return (
        "of this list is in the experience, and no row of this frame has a wave in "
        f"{listed.label('wave')}: people would be mailed again"
    )


@dataclass(frozen=True)
class Budget:
    """The bounces that are allowed, in how many waves."""

    rate: float
    waves: int
    assumed: tuple[str, ...]  # which of them nobody gave


def choose_budget(listed: ListToMail, rate: float | None, waves: int | None) -> Budget:
    """What was asked for, now or in the waves before; else the defaults, which are named."""
    assumed = []
    last = last_mailing(listed.own, listed.last_wave)
    if rate is None:
        rate = listed.note.max_bounce_rate
    if rate is None and last is not None:
        rate = last.max_bounce_rate
    if rate is None:
        rate = BUDGET
        assumed.append(f"max_bounce_rate={BUDGET}")
    if waves is None:
        waves = listed.note.waves
    if waves is None and last is not None:
        waves = last.waves
    if waves is None:
        waves = WAVES
        assumed.append(f"waves={WAVES}")
    if listed.wave > waves:
        raise SettingsError(
            f"waves={waves}: all of them have been released; give more for another one, or "
            "again=True if the last one was not mailed"
        )
    return Budget(float(rate), int(waves), tuple(assumed))


# --- the rows of the wave
# --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Choice:
    """The rows of a wave, and why the others wait."""

    now: Codes  # the rows to mail
    wave_of: Codes  # of each row, with this wave
    held: pa.StringArray  # why each row is held; null for those that are mailed, now or before
    left: int  # rows that might be mailed
    expected: Expected
    is_sure: bool  # whether the margin fits in the budget
    reputation: Reputation
    refusals: tuple[str, ...]  # operators whose rows are withheld
    withheld: str
    can_resume: bool  # rows wait until resume=True
    is_pilot: bool


def choose_wave(
    listed: ListToMail,
    budget: Budget,
    forecast: Forecast,
    reputation: Reputation,
    pilot: int | None,
    *,
    resume: bool,
) -> Choice:
    """Choose the rows of the wave, and say why the others are held."""
    held = hold_rows(listed.rows, listed.cells.mailboxes, listed.wave_of)
    is_left = to_bools(held.is_null()) & (listed.wave_of == 0)
    is_refused = np.zeros(len(is_left), np.bool_)
    refusals: tuple[str, ...] = ()
    withheld = ""
    if not resume:
        refusals = reputation.refusals
        is_refused = is_left & np.isin(listed.cells.operators, reputation.operators)
        withheld = "; ".join(reputation.withheld)
    is_open = is_left & ~is_refused
    if withheld:
        is_open = np.zeros(len(is_left), np.bool_)
    rows = np.flatnonzero(is_open)
    rates, cell = forecast.rates, forecast.cell
    is_good = listed.cells.is_good
    if pilot is None:
        chosen = choose_rows(
            rates, cell[rows], is_good[rows], budget.rate, listed.wave, budget.waves
        )
    else:
        chosen = choose_pilot(rates, cell[rows], is_good[rows], pilot)
    now = rows[chosen]
    wave_of = listed.wave_of.copy()
    wave_of[now] = listed.wave

    is_waiting = is_left & (wave_of == 0)
    is_later = is_good & (rates.cells.rate[cell] <= budget.rate)
    if withheld:
        held = put_reason(held, is_waiting, WITHHELD)
    held = put_reason(held, is_waiting & is_refused, REFUSING)
    held = put_reason(held, is_waiting & is_later, LATER)
    held = put_reason(held, is_waiting, UNSURE)
    return Choice(
        now=now,
        wave_of=wave_of,
        held=held,
        left=int(is_open.sum()),
        expected=expect(rates, cell[now]),
        is_sure=bool(below_budget(rates, cell[now], budget.rate)[-1:].all()),
        reputation=reputation,
        refusals=refusals,
        withheld=withheld,
        can_resume=bool(withheld) or bool(is_refused.any()),
        is_pilot=pilot is not None,
    )


def hold_rows(rows: Results, mailboxes: ListMailboxes, wave_of: Codes) -> pa.StringArray:
    """Why each row is never mailed, in words; null for rows that may be."""
    decided = decide_rows(rows, RELEASED)
    is_sent = pc.equal(decided["action"], "send")
    held = one_array(pc.if_else(is_sent, pa.scalar(None, pa.string()), decided["action_why"]))
    has_verdict = pc.is_in(rows.buckets.cast(pa.string()), pa.array(list(map(str, Verdict))))
    never = [  # also if a person decided to send
        (MEANING["invalid"], pc.equal(rows.buckets, str(Verdict.INVALID))),
        ("flagged spamtrap", rows["spamtrap"]),
        ("flagged disposable", rows["disposable"]),
        (MEANING[SEVERAL_ADDRESSES], pa.array(rows.is_several)),
        (UNVERIFIED, pc.invert(has_verdict)),
    ]
    for reason, is_never in never:
        held = put_reason(held, to_bools(is_never.cast(pa.bool_()).fill_null(False)), reason)
    # Of a mailbox one row is mailed: the one that was, or the first that may be.
    is_held = to_bools(held.is_valid())
    order = np.argsort(2 * (wave_of == 0) + is_held, kind="stable")
    is_repeated = np.zeros(len(order), np.bool_)
    is_repeated[order] = pd.Series(mailboxes.code[order]).duplicated().to_numpy()
    return put_reason(held, is_repeated & mailboxes.has_one, REPEATED)


def put_reason(held: pa.StringArray, mask: Bools, reason: str) -> pa.StringArray:
    """Say a reason where the mask is true and none is said yet."""
    return pc.if_else(pc.and_(pa.array(mask), held.is_null()), reason, held)


def count_reasons(held: pa.StringArray) -> dict[str, int]:
    """How many rows are held, by reason."""
    counts = dict[str, int]()
    for entry in held.value_counts().to_pylist():
        reason = reason_held(entry["values"] or "")
        counts[reason] = counts.get(reason, 0) + entry["counts"]
    return counts


def reason_held(why: str) -> str:
    """Why a row is held, without what is another text in each row.

    >>> reason_held(f"{DID_YOU_MEAN} ada@gmail.com?"), reason_held(LATER)
    ('probably mistyped', 'kept for a later wave')
    """
    if why.startswith(VARIED):
        return why.partition(":")[0]
    return why


def mark_waves(listed: ListToMail, budget: Budget, choice: Choice, labels: list[Any]) -> Any:
    """The frame with the wave of each row and its time, and the note for the next call."""
    released = dict(listed.note.released)
    if len(choice.now):
        released[listed.wave] = datetime.now(UTC).replace(microsecond=0)
    before = read_wave_times(listed.rows, listed.wave_of, released)
    is_now = pa.array(choice.wave_of == listed.wave)
    wave_at = pc.if_else(is_now, pa.scalar(released.get(listed.wave), before.type), before)
    rows = listed.note.rows or len(listed.rows)
    note = ListNote(listed.cells.key, rows, budget.waves, budget.rate, released)
    marks = pa.table(
        {"wave": pa.array(choice.wave_of, mask=choice.wave_of == 0), "wave_at": wave_at}
    )
    return listed.data.attach(marks, labels, WAVE_COLUMNS, note.to_json())


# --- in words ----------------------------------------------------------------------------------


def warnings_of(
    listed: ListToMail, forecast: Forecast, choice: Choice, *, again: bool
) -> list[str]:
    """What a person has to know before the wave is mailed."""
    warnings = []
    if listed.mailed_before is not None and not again:
        warnings.append(
            f"{listed.mailed_before} {describe_before(listed)}. If this is another mailing, that "
            "is right; to go on with that one, give its Mailing.frame"
        )
    maybe_before = listed.maybe_mailed_before
    if maybe_before is not None and not again:
        warnings.append(
            f"{maybe_before} of a list of fewer than {FEWEST} mailboxes is in the experience, and "
            "this list is as short: of so few no key is kept, which would tell whether they are "
            "the same people. If they are, give Mailing.frame of the last call, or they are mailed "
            "again"
        )
    for wave in listed.not_learnt:
        not_mailed = ""
        if wave == listed.last_wave:
            not_mailed = (
                f" If wave {wave} was not mailed, as when a cell ran twice, plan it again with "
                "again=True."
            )
        warnings.append(
            f"wave {wave} of this list is not in the experience: learn it from its bounces "
            f"first.{not_mailed} If it was learnt, the list or its verdicts have changed since; "
            "then begin a new experience and learn all waves from this list"
        )
    warnings += forecast.doubts
    warnings += choice.reputation.complaints
    warnings += [f"{refusal}. {RESUME}" for refusal in choice.refusals]
    if choice.withheld:
        warnings.append(f"wave {listed.wave} is withheld: {choice.withheld}. {RESUME}")
    if not says_who_was_asked(listed.rows):
        label = listed.label("validation_type")
        warnings.append(
            f"there is no column {label}, and {listed.label('catch_all')} has no value, so that "
            "nothing says whether mail servers were asked, and all rows are doubtful: verify with "
            f"columns='all', or add {label} with 'smtp' if they were"
        )
    return warnings


def explain(listed: ListToMail, budget: Budget, forecast: Forecast, choice: Choice) -> list[str]:
    """How the wave was chosen, in sentences."""
    sentences = [describe_known(listed, forecast)]
    if budget.assumed:
        assumed = " and ".join(budget.assumed)
        taken = "is the default" if len(budget.assumed) == 1 else "are the defaults"
        sentences.append(
            f"{assumed} {taken}; neither the frame nor the experience has another value."
        )
    if "operator" not in listed.rows:
        sentences.append(
            f"Without the column {listed.label('operator')} (columns='all') nothing is known of "
            "who runs the mailboxes."
        )
    if listed.known.mailings and forecast.surprise > 1:
        sentences.append(
            "More doubtful rows of the last wave bounced than its rates say: they are taken "
            f"{forecast.surprise:.1f} times as high."
        )
    good = int(listed.cells.is_good[choice.now].sum())
    doubtful = len(choice.now) - good
    if choice.withheld:
        sentences.append(f"The wave is withheld: {choice.withheld}.")
    elif not choice.left:
        sentences.append("No row is left that may be mailed.")
    elif not len(choice.now):
        sentences.append(
            f"No row is mailed: as far as is known, none of the {choice.left:,} rows that are left "
            f"is sure enough for a rate of {budget.rate:.1%}."
        )
    elif choice.is_pilot:
        sentences.append(
            f"A pilot of {good:,} good and {doubtful:,} doubtful rows, those whose bounces teach "
            "the most."
        )
        if choice.expected.bounces > budget.rate * len(choice.now):
            sentences.append(f"It is expected to be above the budget of {budget.rate:.1%}.")
    else:
        sentences.append(
            f"{good:,} good and {doubtful:,} doubtful rows, those of the lowest forecast."
        )
        if choice.is_sure:
            sentences.append(f"Of such waves 95 % stay below {budget.rate:.1%}.")
        else:
            sentences.append(
                f"In so small a wave a bounce more than expected may be above {budget.rate:.1%}."
            )
    sentences += [f"{sentence}." for sentence in (*choice.reputation.complaints, *choice.refusals)]
    return sentences


def describe_known(listed: ListToMail, forecast: Forecast) -> str:
    """What is known, in sentences: of this list, of others, or nothing."""
    last = forecast.last
    if last is not None:
        return (
            f"The last mailing had {count_of(last.mailed, 'mail')}, "
            f"{count_of(last.hard, 'hard bounce')} and {last.total('unclear'):,} blocked or "
            "deferred; mails without a report count as reached."
        )
    assumed = " and ".join(f"{prior.rate:.1%} of {name} rows" for name, prior in PRIORS.items())
    first = f"it is assumed, with a wide margin, that {assumed} bounce."
    if not listed.known.mailings:
        return f"Nothing has been learnt yet: {first}"
    mailed = sum(mailing.mailed for mailing in forecast.others)
    hard = sum(mailing.hard for mailing in forecast.others)
    return (
        f"Nothing has been learnt of this list yet: {first} Of other lists "
        f"{count_of(mailed, 'mail')} with {count_of(hard, 'hard bounce')} are known; they count "
        "for the domains that are also in this one, and no further: a list is not another list."
    )
