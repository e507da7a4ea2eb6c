"""Mail a list in waves within a bounce budget: `mailing` says which rows are mailed now, and why the others are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..errors import SettingsError
from ..frames.clean import DID_YOU_MEAN
from ..frames.policy import REMARKED, Policy, decide_rows, read_decided
from ..frames.results import Results
from ..model.arrow import Bools, to_bools
from ..model.words import MEANING, SEVERAL_ADDRESSES, Verdict, count_of
from ..reports.outcomes import mailboxes_of
from ..table.columns import HELD_COLUMNS, WAVE_COLUMNS
from ..table.notices import warn_user
from ..table.overwrite import name_columns
from ..table.table import Frame, Table
from .experience import (
    INTERVAL,
    Experience,
    LearntMailing,
    cells_of,
    join_cells,
    read_experience,
    read_waves,
)
from .rates import CELL, NO_REASON, PRIORS, Codes, Rates, beta_of, beta_quantile, fit_rates
from .release import add_up, below_budget, choose_rows

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
VARIED = (DID_YOU_MEAN, REMARKED)  # what follows is another text in each row
SHOWN_REASONS = 8
NOT_LEARNT = "of this list is not in the experience"
SURELY = (0.005, 0.995)  # fewer bounces than the lower end of this interval are doubted


class Expected(NamedTuple):
    """The hard bounces to expect in a wave, and their 95 % interval."""

    bounces: float
    low: float
    high: float


@dataclass(frozen=True)
class Mailing(Generic[Frame]):
    """What to mail now.

    Attributes
    ----------
    wave, waves : int
        The number of this wave, and how many were asked for.
    next : DataFrame
        The rows to mail now, with the column `wave`; of the kind that was given.
    frame : DataFrame
        The whole list with the column `wave`: the number of the wave that each row was released in, NA
        where it was not. Keep it, since the next call begins with it.
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

    def __repr__(self) -> str:
        """The rows, the bounces to expect, and why."""
        return "\n".join(
            [
                self._title(),
                self.why,
                *(f"  {rows:>9,} {why}" for why, rows in self._shown().items()),
            ]
        )

    def _title(self) -> str:
        bounces, low, high = self.expected
        share = f" ({bounces / self.rows:.1%})" if self.rows else ""
        expected = (
            f"{count_of(round(bounces), 'hard bounce')} expected{share}, {low:,.0f} to {high:,.0f}"
        )
        rows = f"{count_of(self.rows, 'row')}, {expected}; {sum(self.reasons.values()):,} held"
        return f"Mailing: wave {self.wave} of {self.waves}: {rows}"

    def _shown(self) -> dict[str, int]:
        order = sorted(self.reasons.items(), key=lambda each: -each[1])
        others = sum(rows for _, rows in order[SHOWN_REASONS:])
        return {**dict(order[:SHOWN_REASONS]), **({"other reasons": others} if others else {})}

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        import html  # noqa: PLC0415 - only notebooks need it

        from ..theme import notebook  # noqa: PLC0415 - only notebooks need it

        lines = (
            f'<tr><td>{html.escape(why)}</td><td class="mv-number">{rows:,}</td></tr>'
            for why, rows in self._shown().items()
        )
        title = f"<p><b>{html.escape(self._title())}</b></p><p>{html.escape(self.why)}</p>"
        return notebook(
            f"{title}<table><thead><tr><th>held</th><th>rows</th></tr></thead>{''.join(lines)}</table>"
        )


def mailing(
    out: Frame,
    column: Hashable | None = None,
    *,
    max_bounce_rate: float = 0.02,
    waves: int = 6,
    experience: Any = None,
    prefix: str | None = None,
) -> Mailing[Frame]:
    """Choose the rows to mail now, so that hard bounces stay below a rate. Uses no network.

    Good rows (valid, and a mail server was asked) are spread over the waves. Of doubtful ones
    (catch-all, role, unknown, or valid without a question to the mail server) a few of each operator
    and domain are mailed first, and more when few of them bounce. After each wave read the bounces,
    `learn` from them, and call it again with the experience and `Mailing.frame`.

    Never mailed are rows that are invalid, suppressed, a spamtrap, disposable, without a verdict, with several
    addresses or with an address that a person has to look at, and the second row of a mailbox.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned (pandas, Polars or Arrow), or `Mailing.frame` of the wave before.
    column : hashable, optional
        The column that was verified; by default the only one.
    max_bounce_rate : float, default 0.02
        The hard bounces of a wave by its rows. A wave is chosen so that 95 % of such waves are below.
    waves : int, default 6
        In how many parts the list is mailed.
    experience : Experience or path, optional
        What `learn` returned, or the file that it was saved in. Without one, the first wave is
        planned with cautious assumptions, which `Mailing.why` names.
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
        If the rate is not between 0 and 1, all waves have been released, or a new column would overwrite one that
        mailverdict did not write.
    InputError
        If the experience cannot be read, or a result column holds what `verify` never writes.

    Warns
    -----
    UserWarning
        If the experience lacks a wave of the list: then its bounces have not been learnt, or the list has changed.
        If a mailing has far fewer bounces than were expected: then its export may lack some, and only its bounces
        count until it is learnt with more of them, or as ``complete``.

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
    if not isinstance(max_bounce_rate, int | float | np.floating) or not 0 < max_bounce_rate < 1:
        raise SettingsError(f"max_bounce_rate={max_bounce_rate!r}: give a part of 1, as 0.02")
    if isinstance(waves, bool) or not isinstance(waves, int | np.integer) or waves < 1:
        raise SettingsError(f"waves={waves!r}: give a whole number from 1")
    known = read_experience(experience) or Experience()
    rows = read_decided(out, column, prefix)
    wave_of = read_waves(rows)
    wave = int(wave_of.max(initial=0)) + 1
    if wave > waves:
        raise SettingsError(
            f"waves={waves}: all of them have been released; give more for another one"
        )
    names = [name_columns(rows.data, rows.prefix, each)[0] for each in (WAVE_COLUMNS, HELD_COLUMNS)]
    keys = mailboxes_of(rows.addresses)
    cells = cells_of(rows, keys, known.counts)
    warn_user(
        *(
            missing_wave(each, cells[wave_of == each], known)
            for each in range(1, wave)
            if (wave_of == each).any()
        )
    )
    believed, doubts = leave_out_doubtful(known)
    warn_user(*doubts)
    held = hold_rows(rows, keys, wave_of)
    table, cell = join_cells(cells, believed.counts)
    rates = fit_rates(table)
    left = np.flatnonzero(held == "")
    left = left[wave_of[left] == 0]
    is_good = ((cells["verdict"] == str(Verdict.VALID)) & (cells["why"] == NO_REASON)).to_numpy()
    now = left[choose_rows(rates, cell[left], is_good[left], max_bounce_rate, wave, waves)]
    wave_of[now] = wave
    later = left[wave_of[left] == 0]
    held[later] = np.where(
        is_good[later] & (rates.cells.rate[cell[later]] <= max_bounce_rate), LATER, UNSURE
    )
    waiting = np.flatnonzero(wave_of == 0)
    marks = pa.table({"wave": pa.array(wave_of, mask=wave_of == 0)})
    frame = rows.data.attach(marks, names[:1], WAVE_COLUMNS, {})
    marked = Table(frame, rows.data.column)
    words = pa.table({"held": pa.array(held[waiting].tolist(), pa.string())})
    return Mailing(
        wave,
        waves,
        marked.take(np.sort(now)),
        frame,
        Table(marked.take(waiting), rows.data.column).attach(words, names[1:], HELD_COLUMNS, {}),
        expect(rates, cell[now]),
        explain(
            known,
            is_good[now],
            len(left),
            max_bounce_rate,
            is_sure=bool(below_budget(rates, cell[now], max_bounce_rate)[-1:].all()),
        ),
        len(now),
        dict(Counter(map(reason_held, held[waiting].tolist()))),
    )


def missing_wave(wave: int, cells: pd.DataFrame, known: Experience) -> str | None:
    """A warning if the experience has no mailing with the rows of a wave of this list."""
    groups = cells.drop_duplicates("key").groupby(list(CELL[:3])).size()
    if any(each.wave == wave and each.has_all(groups) for each in known.mailings):
        return None
    return (
        f"wave {wave} {NOT_LEARNT}: learn it from its bounces first. If it was learnt, the list or its verdicts have "
        "changed since; then begin a new experience and learn all waves from this list"
    )


def leave_out_doubtful(known: Experience) -> tuple[Experience, list[str]]:
    """What counts of the mailings, and a warning about each of which only the bounces count.

    Far fewer bounces than the mailings before let expect may mean that the export lacks some.
    """
    kept, said = Experience(), list[str]()
    for each in sorted(known.mailings, key=lambda each: (each.name, each.wave or 0)):
        mailed, hard, _ = each.sums
        _, low, high = forecast(kept, each)
        counts = each.counts
        if hard < int(low) and not each.is_complete:
            counts = counts.assign(mailed=counts["hard"] + counts["unclear"])
            said.append(
                f"{each} had {count_of(hard, 'hard bounce')} of {count_of(mailed, 'mail')}, and {low:,.0f} to "
                f"{high:,.0f} were expected: does its export lack some? Only its bounces count until it is learnt with "
                "more of them, or as complete: all bounces have come"
            )
        kept = Experience((*kept.mailings, replace(each, counts=counts[counts["mailed"] > 0])))
    return kept, said


def forecast(known: Experience, mailing: LearntMailing) -> Expected:
    """The bounces to expect of a mailing from what others showed."""
    empty = mailing.counts.assign(**dict.fromkeys(("mailed", "hard", "unclear"), 0))
    table = Experience((*known.mailings, LearntMailing(None, empty))).counts
    rates = fit_rates(table.assign(tried=table["mailed"] - table["unclear"]))
    places = pd.Series(np.arange(len(table)), pd.MultiIndex.from_frame(table[list(CELL)]))
    at = places.reindex(pd.MultiIndex.from_frame(mailing.counts[list(CELL)])).to_numpy(np.int64)
    tried = (mailing.counts["mailed"] - mailing.counts["unclear"]).to_numpy(np.int64)
    return expect(rates, np.repeat(at, tried), SURELY)


def hold_rows(rows: Results, keys: npt.NDArray[Any], wave_of: Codes) -> npt.NDArray[Any]:
    """Why each row is never mailed, in words; empty for rows that may be."""
    decided = decide_rows(rows, RELEASED)
    action = np.asarray(decided["action"].to_pylist(), object)
    held = np.where(action == "send", "", np.asarray(decided["action_why"].to_pylist(), object))
    buckets = np.asarray(rows.buckets.cast(pa.string()).to_pylist(), object)
    never = {  # also if a person decided to send
        MEANING["invalid"]: buckets == str(Verdict.INVALID),
        "flagged spamtrap": to_bools(rows["spamtrap"].fill_null(False)),
        "flagged disposable": to_bools(rows["disposable"].fill_null(False)),
        MEANING[SEVERAL_ADDRESSES]: rows.is_several,
        UNVERIFIED: ~np.isin(buckets, [str(each) for each in Verdict]),
    }
    for why, is_never in never.items():
        held[np.asarray(is_never, np.bool_) & (held == "")] = why
    # Of a mailbox one row is mailed: the one that was, or the first that may be.
    order = np.lexsort((np.arange(len(keys)), held != "", wave_of == 0))
    is_repeated = np.zeros(len(keys), np.bool_)
    is_repeated[order] = pd.Series(keys[order]).duplicated().to_numpy()
    held[is_repeated & (held == "")] = REPEATED
    return held


def reason_held(why: str) -> str:
    """Why a row is held, without what is another text in each row.

    >>> reason_held(f"{DID_YOU_MEAN} ada@gmail.com?"), reason_held(LATER)
    ('probably mistyped', 'kept for a later wave')
    """
    return why.partition(":")[0] if why.startswith(VARIED) else why


def expect(rates: Rates, cell: Codes, interval: tuple[float, float] = INTERVAL) -> Expected:
    """The bounces of some rows; the interval is that of a Beta distribution of their rate."""
    if not len(cell):
        return Expected(0.0, 0.0, 0.0)
    expected, variance = (each[-1:] for each in add_up(rates, cell))
    size = len(cell)
    a, b = beta_of(expected / size, variance / size**2)
    low, high = (float(beta_quantile(chance, a, b)[0]) * size for chance in interval)
    return Expected(float(expected[0]), low, high)


def explain(known: Experience, is_good: Bools, left: int, budget: float, *, is_sure: bool) -> str:
    """How the wave was chosen, in sentences; `is_good` has a value for each row of the wave."""
    said = []
    if not known.mailings:
        assumed = " and ".join(f"{each.rate:.1%} of {name} rows" for name, each in PRIORS.items())
        said.append(
            f"Nothing has been learnt yet: it is assumed, with a wide margin, that {assumed} bounce."
        )
    else:
        mailed, hard, unclear = known.mailings[-1].sums
        counted = f"{count_of(mailed, 'mail')}, {count_of(hard, 'hard bounce')} and {unclear:,} blocked or deferred"
        said.append(f"The last mailing had {counted}; mails without a report count as reached.")
    if not left:
        said.append("No row is left that may be mailed.")
    elif not len(is_good):
        said.append(
            f"No row is mailed: as far as is known, none of the {left:,} rows that are left is sure enough for a rate "
            f"of {budget:.1%}. Verify them by smtp, or learn from an earlier mailing."
        )
    else:
        said.append(
            f"{is_good.sum():,} good and {(~is_good).sum():,} doubtful rows, those of the lowest forecast."
        )
        said.append(
            f"Of such waves 95 % stay below {budget:.1%}."
            if is_sure
            else f"In so small a wave a bounce more than expected may be above {budget:.1%}."
        )
    return " ".join(said)
