"""What became of earlier mails, as counts without addresses: `learn` makes them, `risk` forecasts from them.

An `Experience` is a list of mailings, and a mailing is a table of counts by verdict, reason, operator and domain. Its
file is JSON; its form is in docs/reference/around.md.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..atomic_write import atomic_write
from ..checks.bounces.outcome import Outcome
from ..checks.operators import SELF, known_operators
from ..errors import InputError, SettingsError
from ..frames.results import JUDGED, Results
from ..model.arrow import Bools, to_bools
from ..model.paths import user_path
from ..model.table import SOURCE_JOURNAL, SOURCE_LOCAL, SOURCE_REMOTE
from ..model.words import WHY_MEANING, ValidationType, Verdict, count_of
from ..reports.outcomes import mailboxes_of, match_outcomes, require_bounces, wilson_interval
from ..reports.tables import CountTable
from ..table.columns import RISK_COLUMNS
from ..table.notices import Note, warn_user
from ..table.overwrite import name_columns
from ..table.table import Frame
from .rates import CELL, NO_REASON, beta_of, beta_quantile, fit_rates

FORMAT, VERSION = "mailverdict experience", 1
COUNTS = ("domains", "mailed", "hard", "unclear")
NOT_ASKED = (
    "mailbox_not_asked"  # the reason of a valid row whose mailbox no mail server was asked about
)
OTHER = "other"  # the reason where it is a word that only a service has
KNOWN_REASONS = np.array([NO_REASON, NOT_ASKED, *WHY_MEANING], object)
SMALL_DOMAIN = (
    3  # mailboxes of a list: a domain with fewer may be a person, and is counted with others
)
SAME_MAILING = 0.9  # mailings look alike if the smaller one has at least this part of the mailboxes of the other
MOST_NAME = 80  # characters
FOLDS = 5
FORECASTS = (0, 0.01, 0.02, 0.05, 0.1, 0.2, 1)  # limits of the lines of the table of a calibration
INTERVAL = (0.025, 0.975)


@dataclass(frozen=True)
class Calibration:
    """How good the forecasts of an experience are, for domains that they were not made from.

    Attributes
    ----------
    brier : float
        Mean squared error of the forecasts (Brier 1950), by cross-validation over domains.
    plain_brier : float
        The same if each verdict's rate were the forecast.
    table : DataFrame
        Index `forecast` (a range); `mailed`, `hard` (int64), `expected` (float64, the mean forecast),
        `seen` (float64), and the 95 % Wilson interval of what was seen, `low` and `high`.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> df = pd.DataFrame({"email": [f"{n}@firm{n % 9}.example" for n in range(90)]})
    >>> out = mv.verify(df, "email", validation_type="regex")
    >>> report = pd.DataFrame({"who": df["email"][:9], "reply": "550 5.1.1 User unknown"})
    >>> bounces = mv.read_bounces(report, columns={"address": "who", "diagnostic": "reply"})
    >>> mv.learn(out, "email", bounces).calibration.table[["mailed", "hard", "seen"]]
                mailed  hard  seen
    forecast
    10% to 20%      90     9   0.1
    """

    brier: float
    plain_brier: float
    table: pd.DataFrame

    @property
    def is_better(self) -> bool:
        """Whether the forecasts are better than the plain rate of the verdict."""
        return self.brier < self.plain_brier

    def __repr__(self) -> str:
        """One sentence."""
        if math.isnan(self.brier):
            return "too little was learnt to compare forecasts with what was seen"
        what = "better than" if self.is_better else "not better than"
        return (
            f"forecasts are {what} the plain rate of the verdict: Brier score {self.brier:.5f} against "
            f"{self.plain_brier:.5f}, for domains that were left out"
        )


@dataclass(frozen=True)
class LearntMailing:
    """The counts of one mailing, with the columns of `CELL` and `COUNTS`."""

    wave: int | None  # if `mailing` planned it
    counts: pd.DataFrame
    name: str = ""
    is_complete: bool = False  # whether a person said that all bounces had come

    def __str__(self) -> str:
        """What a person calls it."""
        wave = "a mailing" if self.wave is None else f"wave {self.wave}"
        return f"{wave} of {self.name!r}" if self.name else wave

    @property
    def sums(self) -> tuple[int, int, int]:
        """Mailboxes that were mailed, those with a hard bounce, and those whose mail was blocked or deferred."""
        mailed, hard, unclear = (
            int(self.counts[name].sum()) for name in ("mailed", "hard", "unclear")
        )
        return mailed, hard, unclear

    @property
    def strength(self) -> tuple[int, bool, int]:
        """Of one mailing that was learnt twice, that with the higher one stays."""
        mailed, hard, _ = self.sums
        return hard, self.is_complete, mailed

    def by_group(self) -> pd.Series[int]:
        """Mailboxes by verdict and reason."""
        return self.counts.groupby(list(CELL[:2]))["mailed"].sum()

    def has_all(self, groups: pd.Series[int]) -> bool:
        """Whether the mailing has at least so many mailboxes of each group."""
        return bool((self.by_group().reindex(groups.index).fillna(0) >= groups).all())

    def is_same(self, other: LearntMailing) -> bool:
        """Whether both are one mailing: by name and wave; without any by their mailboxes."""
        named = (self.name, self.wave)
        return named == (other.name, other.wave) and (named != ("", None) or self.is_like(other))

    def is_like(self, other: LearntMailing) -> bool:
        """Whether both have nearly as many mailboxes of each kind."""
        small, large = sorted((self, other), key=lambda each: int(each.counts["mailed"].sum()))
        part = small.counts["mailed"].sum() / max(large.counts["mailed"].sum(), 1)
        return bool(part >= SAME_MAILING) and large.has_all(small.by_group())


@dataclass(frozen=True)
class Experience:
    """What became of the mails of earlier mailings: counts by verdict, reason, operator and domain, without addresses.

    Two are added with ``+``. A mailing that is in both counts once: that of the two with more hard
    bounces stays, so that a mailing may be learnt again when late bounces have come. Mailings are told apart
    by name and wave; those without either by their number of mailboxes and kinds of rows.

    Parameters
    ----------
    mailings : tuple
        What `learn` counted, by mailing.

    Examples
    --------
    >>> import mailverdict as mv
    >>> mv.Experience()
    Experience: no mailing
    """

    mailings: tuple[LearntMailing, ...] = ()

    def __add__(self, other: Experience) -> Experience:
        """Both together."""
        if not isinstance(other, Experience):
            return NotImplemented
        mailings = list(self.mailings)
        for new in other.mailings:
            same = next((at for at, old in enumerate(mailings) if old.is_same(new)), None)
            if same is None:
                mailings.append(new)
                continue
            old = mailings[same]
            if not new.name and (new.wave is None or not new.is_like(old)):
                warn_user(
                    f"{new} is in both, with {old.sums[0]:,} and {new.sums[0]:,} mailboxes, and counts once. If these "
                    "are two mailings, learn each with a name"
                )
            if new.strength >= mailings[same].strength:
                mailings[same] = new
        return Experience(tuple(mailings))

    @cached_property
    def counts(self) -> pd.DataFrame:
        """Counts of all mailings together.

        Returns
        -------
        DataFrame
            `verdict`, `why`, `operator` and `domain` (object; empty where not known, and for domains with fewer than
            three mailboxes in their list, which are counted together), and int64: `domains`, how many the row is
            about; distinct mailboxes `mailed`, with a `hard` bounce, and `unclear`: blocked or deferred.
        """
        if not self.mailings:
            columns = {name: np.array([], object) for name in CELL} | {
                name: np.array([], np.int64) for name in COUNTS
            }
            return CountTable(columns)
        groups = pd.concat([each.counts for each in self.mailings]).groupby(list(CELL), sort=False)
        counts = groups[list(COUNTS)].sum().reset_index()
        counts["domains"] = counts["domains"].where(counts["domain"] == "", 1)
        return CountTable(counts)

    @cached_property
    def calibration(self) -> Calibration:
        """How good the forecasts are; see `Calibration`."""
        return calibrate(self.counts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, which is complete or not there at all.

        Parameters
        ----------
        path : path
            The JSON file; it is replaced.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        mailings = [
            {
                "name": each.name,
                "wave": each.wave,
                "complete": each.is_complete,
                "counts": [
                    list(row) for row in each.counts[[*CELL, *COUNTS]].itertuples(index=False)
                ],
            }
            for each in self.mailings
        ]
        text = json.dumps(
            {"format": FORMAT, "version": VERSION, "mailings": mailings},
            ensure_ascii=False,
            indent=1,
        )
        try:
            with atomic_write(user_path(path)) as temporary:
                temporary.write_text(text + "\n", encoding="utf-8")
        except OSError as exc:
            raise InputError(f"{path} cannot be written: {exc.strerror}") from exc

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Experience:
        """Read a file that `save` wrote.

        Parameters
        ----------
        path : path
            The JSON file.

        Returns
        -------
        Experience
            What was saved.

        Raises
        ------
        InputError
            If it cannot be read, or is not such a file.
        """
        file = user_path(path)
        if not file.exists():
            raise InputError(f"{path}: no such file")
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            if found["format"] != FORMAT:
                raise ValueError
            version = found["version"]
            mailings = (
                tuple(read_mailing(each) for each in found["mailings"])
                if version == VERSION
                else ()
            )
        except OSError as exc:
            raise InputError(f"{path} cannot be read: {exc.strerror}") from exc
        except (ValueError, KeyError, TypeError, OverflowError):
            raise InputError(f"{path}: not an experience that learn wrote, or damaged") from None
        if version != VERSION:
            raise InputError(
                f"{path}: version {version!r:.20} of the form; this release of mailverdict reads {VERSION}"
            )
        return cls(mailings)

    def __repr__(self) -> str:
        """What is in it, in one line."""
        if not self.mailings:
            return "Experience: no mailing"
        mailed, hard, unclear = (
            sum(each) for each in zip(*(one.sums for one in self.mailings), strict=True)
        )
        low, high = wilson_interval(hard, mailed - unclear)
        share = (
            ""
            if mailed == unclear
            else f" ({hard / (mailed - unclear):.1%}, {low:.1%} to {high:.1%})"
        )
        return (
            f"Experience: {count_of(len(self.mailings), 'mailing')}, {count_of(mailed, 'mailbox', 'mailboxes')}, "
            f"{count_of(hard, 'hard bounce')}{share}, {unclear:,} blocked or deferred"
        )

    def _repr_html_(self) -> str:
        """The rates of each verdict and reason, for a notebook."""
        return rates_of(self.counts, ["verdict", "why"])._repr_html_()


def read_mailing(found: Any) -> LearntMailing:
    """One mailing of a file; any error if it is not of the form."""
    wave, name, is_complete = found["wave"], found["name"], found["complete"]
    counts = pd.DataFrame(found["counts"], columns=[*CELL, *COUNTS], dtype=object)
    numbers = [number for name in COUNTS for number in counts[name]] + (
        [] if wave is None else [wave - 1]
    )
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError
    counts = counts.astype(dict.fromkeys(COUNTS, "int64"))
    is_wrong = (counts["hard"] + counts["unclear"] > counts["mailed"]).any() or (
        counts["domains"] < 1
    ).any()
    texts = [name, *(text for column in CELL for text in counts[column])]
    if (
        is_wrong
        or type(is_complete) is not bool
        or not all(isinstance(text, str) and "@" not in text for text in texts)
    ):
        raise ValueError
    return LearntMailing(wave, counts, name, is_complete)


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

    A mailbox that was mailed and has no report counts as reached, so wait until all bounces have come. One
    whose mail was only blocked or deferred says nothing, and is counted apart. Rows that were not mailed teach
    nothing.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned (pandas, Polars or Arrow), with the rows that were mailed.
    column : hashable, optional
        The column that was verified; by default the only one.
    bounces : DataFrame or path
        What `read_bounces` returned, or what it reads; with the reports of all waves.
    mailed : hashable or array-like of bool, optional
        Which rows were mailed, as in `outcomes`. By default those with a number in the column `wave`
        of `mailing`, where each wave is a mailing of its own; without such a column all rows with an
        address, of which none may be invalid.
    name : str, optional
        What to call the mailing, so that an experience can tell mailings apart that look alike, and knows
        one again whose list has changed much.
    complete : bool, default False
        Whether all bounces of all waves have come. Then a wave without any report is learnt, and `mailing` does
        not doubt that so few mails bounced.
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
        If `mailed` does not fit, or is needed: without it and a column of waves, rows are invalid; or if the name
        is an address or longer than 80 characters.
    InputError
        If `bounces` cannot be read, no row was mailed, or no mailed row has a report: then the export is of another
        mailing, or too early. With `complete` also if most reports are about other addresses.

    Warns
    -----
    UserWarning
        If no report is about a wave, which is then not learnt; if most reports are about other addresses; or if
        addresses with a hard bounce are not in a list that has waves.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> df = pd.DataFrame({"email": ["ada@firm.example", "bo@firm.example", "cy@firm.example"]})
    >>> out = mv.verify(df, "email", validation_type="regex")
    >>> report = pd.DataFrame({"who": ["bo@firm.example"], "reply": ["550 5.1.1 User unknown"]})
    >>> bounces = mv.read_bounces(report, columns={"address": "who", "diagnostic": "reply"})
    >>> experience = mv.learn(out, "email", bounces)
    >>> experience.counts[["verdict", "domain", "mailed", "hard"]]
      verdict        domain  mailed  hard
    0   valid  firm.example       3     1
    """
    require_bounces(bounces)
    if not isinstance(name, str) or "@" in name or len(name) > MOST_NAME:
        raise SettingsError(
            f"name={name!r:.100}: give a text without @, of at most {MOST_NAME} characters"
        )
    rows = Results(out, column, prefix, JUDGED)
    waves = read_waves(rows)
    is_by_wave = mailed is None and "wave" in rows
    if (
        mailed is None
        and not is_by_wave
        and (never := pc.equal(rows["verdict"], str(Verdict.INVALID))).true_count
    ):
        raise SettingsError(
            f"{count_of(never.true_count, 'row is', 'rows are')} invalid: were they mailed? Give Mailing.frame, the "
            "rows that were mailed, or mailed="
        )
    found = match_outcomes(rows, bounces, mailed=waves > 0 if is_by_wave else mailed)
    if not found.is_mailed.any():
        raise InputError(
            "no row was mailed: the plan has no wave yet, or mailed= is false for every address"
        )
    if not found.matched and (found.unmatched or not complete):
        none = (
            f"none of the {found.unmatched:,} addresses with a report is"
            if found.unmatched
            else "no report is"
        )
        raise InputError(
            f"{none} among the mailed rows of {rows.column!r}: give the bounces of this mailing, or wait until they "
            "have come"
        )
    foreign = set(found.shown).difference(found.keys)
    gone = sum(found.shown[key]["outcome"] == Outcome.HARD for key in foreign)
    if len(foreign) > len(found.shown) / 2:
        others = f"{len(foreign):,} of {len(found.shown):,} addresses with a report are not in {rows.column!r}"
        if complete:
            raise InputError(
                f"{others}: a mailing is learnt as complete from its own bounces only; leave out the others"
            )
        warn_user(f"{others}: are these the bounces of this mailing?")
    elif is_by_wave and gone:
        warn_user(
            f"{count_of(gone, 'address is', 'addresses are')} not in {rows.column!r} and had a hard bounce. If they "
            "were taken off the list, these bounces are not counted, and the next wave would be too large: learn from "
            "the list with them, or add to what was learnt before"
        )
    cells = cells_of(rows, found.keys)
    is_clear = np.logical_or.reduce(
        [found.has[each] for each in (Outcome.HARD, Outcome.DELIVERED, Outcome.COMPLAINT)]
    )
    cells["hard"] = found.has[Outcome.HARD]
    cells["unclear"] = (found.has[Outcome.SOFT] | found.has[Outcome.BLOCKED]) & ~is_clear
    has_report = np.logical_or.reduce(list(found.has.values()))
    mailings = []
    for wave in np.unique(waves[found.is_mailed]).tolist() if is_by_wave else [None]:
        of_wave = found.is_mailed & ((waves == wave) if wave else True)
        if not complete and not (has_report & of_wave).any():
            warn_user(
                f"no report is about wave {wave}: it is not learnt. Learn it when its bounces have come; if there "
                "are none, learn it as complete"
            )
            continue
        mailings.append(LearntMailing(wave, count_cells(cells[of_wave]), name, complete))
    return Experience(tuple(mailings))


def count_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """The counts of some rows; a mailbox counts once."""
    groups = cells.drop_duplicates("key").groupby(list(CELL), sort=False)
    counts = groups.agg(
        domains=("own_domain", "nunique"),
        mailed=("key", "size"),
        hard=("hard", "sum"),
        unclear=("unclear", "sum"),
    )
    return counts.astype("int64").reset_index()


def cells_of(
    rows: Results, keys: npt.NDArray[Any], known: pd.DataFrame | None = None
) -> pd.DataFrame:
    """The cell of each row, with its mailbox `key` and `own_domain`.

    The domain of a cell is empty if fewer than three mailboxes of the list are there, and so is an operator that the
    packaged table does not have, unless they are in `known` counts. A word that only a service has is ``other``, since
    it may have a part of an address.
    """
    has_key = np.array([key is not None for key in keys], np.bool_)
    own = np.array([str(key).rpartition("@")[2] if key is not None else "" for key in keys], object)
    operator = np.asarray(
        rows["operator"].cast(pa.string()).fill_null("").to_pylist(), dtype=object
    )
    people = pd.DataFrame({"key": keys, "domain": own, "operator": operator})[
        has_key
    ].drop_duplicates("key")
    named = {name: large_groups(people[name]) for name in ("domain", "operator")}
    named["operator"] |= {SELF, *known_operators()}
    if known is not None:
        named = {name: each | set(known[name]) for name, each in named.items()}
    verdict = np.asarray(rows.buckets.cast(pa.string()).to_pylist(), dtype=object)
    why = np.asarray(rows.why.fill_null(NO_REASON).to_pylist(), dtype=object)
    why[(verdict == str(Verdict.VALID)) & (why == NO_REASON) & ~is_asked(rows)] = NOT_ASKED
    why[~np.isin(why, KNOWN_REASONS)] = OTHER
    operator = np.array([each if each in named["operator"] else "" for each in operator], object)
    domain = np.array([each if each in named["domain"] else "" for each in own], object)
    columns = {"verdict": verdict, "why": why, "operator": operator, "domain": domain}
    return pd.DataFrame({**columns, "key": keys, "own_domain": own})


def large_groups(names: pd.Series[Any]) -> set[Any]:
    """The names that occur at least `SMALL_DOMAIN` times."""
    sizes = names.value_counts()
    return set(sizes.index[sizes >= SMALL_DOMAIN])


def is_asked(rows: Results) -> Bools:
    """Whether a mail server was asked about the mailbox of each row, as other verifiers do; by default it was not."""
    sources = np.asarray(rows["source"].cast(pa.string()).to_pylist(), dtype=object)
    is_foreign = ~np.isin(
        sources.astype(str), ["None", SOURCE_LOCAL, SOURCE_REMOTE, SOURCE_JOURNAL]
    )
    by_flag = to_bools(rows["catch_all"].is_valid()) | is_foreign
    if "validation_type" in rows:
        kinds = np.asarray(rows["validation_type"].to_pylist(), dtype=object)
        return np.asarray(kinds == str(ValidationType.SMTP), np.bool_) | by_flag
    kind = rows.data.notes().get("validation_type")
    if kind:
        return np.full(len(rows), kind == ValidationType.SMTP) | is_foreign
    return np.full(len(rows), bool(by_flag.any())) if not is_foreign.any() else by_flag


def read_waves(rows: Results) -> npt.NDArray[np.int64]:
    """The wave of each row; 0 for none."""
    try:
        numbers = np.array(
            [float(text or 0) for text in rows["wave"].cast(pa.string()).to_pylist()]
        )
        waves: npt.NDArray[np.int64] = np.nan_to_num(numbers).astype(np.int64)
        is_right = bool((numbers == waves).all() and (waves >= 0).all())
    except (ValueError, OverflowError):
        is_right = False
    if not is_right:
        raise InputError(
            f"the column of waves of {rows.column!r} holds something else than 1, 2, ..."
        )
    return waves


def risk(
    out: Frame, column: Hashable | None = None, experience: Any = None, *, prefix: str | None = None
) -> Frame:
    """Forecast how likely the mail to each row bounces, from what was learnt. Uses no network.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned: a pandas, Polars or Arrow frame.
    column : hashable, optional
        The column that was verified; by default the only one.
    experience : Experience or path
        What `learn` returned, or the file that it was saved in.
    prefix : str, optional
        The prefix it was verified with, if not the default.

    Returns
    -------
    DataFrame
        The same kind, with `bounce_risk`, `risk_low` and `risk_high` (``Float64``, parts of 1): the
        probability of a hard bounce, and the 95 % interval of the rate of such rows. NA where no row
        of that verdict was ever mailed. If the forecasts are not better than the plain rate of the
        verdict (see `Calibration`), that rate is given, and a warning says so.

    Raises
    ------
    ColumnError
        If the frame has no such column, or it has not been verified.
    SettingsError, InputError
        Without an experience, if its file cannot be read, or if a new column would overwrite one that mailverdict did
        not write.

    Warns
    -----
    UserWarning
        If the plain rates are given.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> df = pd.DataFrame({"email": [f"{n}@firm.example" for n in range(40)]})
    >>> out = mv.verify(df, "email", validation_type="regex")
    >>> report = pd.DataFrame({"who": ["0@firm.example"], "reply": ["550 5.1.1 User unknown"]})
    >>> bounces = mv.read_bounces(report, columns={"address": "who", "diagnostic": "reply"})
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     found = mv.risk(out, "email", mv.learn(out, "email", bounces))
    >>> found[["email_bounce_risk", "email_risk_low", "email_risk_high"]].head(1).round(3)
       email_bounce_risk  email_risk_low  email_risk_high
    0              0.025           0.004            0.129
    """
    known = read_experience(experience)
    if known is None or not known.mailings:
        raise SettingsError(
            "give an experience, what learn returned or the file it was saved in: nothing is known yet"
        )
    rows = Results(out, column, prefix, JUDGED)
    names = name_columns(rows.data, rows.prefix, RISK_COLUMNS)
    cells = cells_of(rows, mailboxes_of(rows.addresses), known.counts)
    if not known.calibration.is_better:
        warn_user(Note(f"{known.calibration}; the risk is the plain rate of the verdict"))
        found = plain_risk(known.counts).reindex(cells["verdict"]).to_numpy()
    else:
        table, at = join_cells(cells, known.counts)
        level = fit_rates(table).cells
        a, b = beta_of(level.rate, level.variance)
        found = np.stack(
            [level.rate, *(beta_quantile(chance, a, b) for chance in INTERVAL)], axis=1
        )[at]
        tried = rates_of(known.counts, ["verdict"])["mailed"]
        found[(cells["verdict"].map(tried).fillna(0) == 0).to_numpy()] = np.nan
    found[cells["key"].isna().to_numpy()] = np.nan
    table = pa.table(
        [pa.array(values, from_pandas=True) for values in found.T],
        names=[c.name for c in RISK_COLUMNS],
    )
    marked: Frame = rows.data.attach(table, names, RISK_COLUMNS, {})
    return marked


def read_experience(experience: Any) -> Experience | None:
    """An experience itself, or the one of a file."""
    if experience is None or isinstance(experience, Experience):
        return experience
    if isinstance(experience, str | os.PathLike):
        return Experience.load(Path(experience))
    raise SettingsError(
        f"experience is of type {type(experience).__name__}: give what learn returned, or its file"
    )


def join_cells(
    cells: pd.DataFrame, counts: pd.DataFrame
) -> tuple[pd.DataFrame, npt.NDArray[np.int64]]:
    """The cells of a list and of an experience with what is known of each; and the position of each row's cell."""
    listed = (
        cells.groupby(list(CELL), sort=False)["own_domain"].nunique().rename("listed").reset_index()
    )
    table = listed.merge(counts, "outer", list(CELL), sort=False)
    table[["listed", *COUNTS]] = table[["listed", *COUNTS]].fillna(0).astype("int64")
    table["domains"] = np.where(
        table["domain"] == "", table[["domains", "listed"]].max(axis=1).clip(lower=1), 1
    )
    table["tried"] = table["mailed"] - table["unclear"]
    places = pd.Series(np.arange(len(table)), pd.MultiIndex.from_frame(table[list(CELL)]))
    at = places.reindex(pd.MultiIndex.from_frame(cells[list(CELL)])).to_numpy(np.int64)
    return table, at


def rates_of(counts: pd.DataFrame, by: list[str]) -> CountTable:
    """Mailboxes whose outcome is known, and the rate of hard bounces, by some columns."""
    told = counts.assign(mailed=counts["mailed"] - counts["unclear"])
    table = told.groupby(by)[["mailed", "hard"]].sum()
    return with_interval(table, "rate")


def with_interval(table: pd.DataFrame, name: str) -> CountTable:
    """Counts with the rate of hard bounces and its 95 % Wilson interval."""
    pairs = [
        wilson_interval(*pair)
        for pair in zip(table["hard"].tolist(), table["mailed"].tolist(), strict=True)
    ]
    intervals = np.array(pairs, np.float64).reshape(-1, 2)
    table = table.assign(low=intervals[:, 0], high=intervals[:, 1])
    table.insert(
        list(table).index("low"), name, table["hard"] / table["mailed"].where(table["mailed"] > 0)
    )
    return CountTable(table)


def plain_risk(counts: pd.DataFrame) -> pd.DataFrame:
    """The rate of each verdict and its interval."""
    return rates_of(counts, ["verdict"])[["rate", "low", "high"]]


def calibrate(counts: pd.DataFrame) -> Calibration:
    """Forecast each domain from the others, and compare with what was seen."""
    table = counts.assign(tried=counts["mailed"] - counts["unclear"])
    fold = table["domain"].rank(method="dense").astype("int64").to_numpy() % FOLDS
    fold = np.where(table["domain"] == "", np.arange(len(table)) % FOLDS, fold)
    forecast, plain = np.full(len(table), np.nan), np.full(len(table), np.nan)
    for each in range(FOLDS):
        is_out = fold == each
        known = table.assign(
            tried=table["tried"].mask(is_out, 0), hard=table["hard"].mask(is_out, 0)
        )
        if not is_out.any() or not known["tried"].sum():
            continue
        sums = known.groupby("verdict")[["hard", "tried"]].sum()
        whole = known["hard"].sum() / known["tried"].sum()
        rate = (sums["hard"] / sums["tried"].where(sums["tried"] > 0)).fillna(whole)
        plain[is_out] = table["verdict"].map(rate)[is_out]
        forecast[is_out] = fit_rates(known).cells.rate[is_out]
    is_compared = ~np.isnan(forecast) & (table["tried"] > 0).to_numpy()
    table, forecast, plain = table[is_compared], forecast[is_compared], plain[is_compared]
    table = table.assign(expected=forecast * table["tried"])
    lines = table.groupby(
        pd.cut(forecast, FORECASTS, include_lowest=True, labels=RANGES), observed=True
    )
    shown = (
        lines[["tried", "hard", "expected"]]
        .sum()
        .rename(columns={"tried": "mailed"})
        .rename_axis("forecast")
    )
    shown["expected"] /= shown["mailed"]
    return Calibration(brier(forecast, table), brier(plain, table), with_interval(shown, "seen"))


RANGES = [f"{low:.0%} to {high:.0%}" for low, high in itertools.pairwise(FORECASTS)]


def brier(forecast: npt.NDArray[np.float64], table: pd.DataFrame) -> float:
    """The mean over mails of the squared difference between the forecast and what happened, 0 or 1."""
    hard, tried = table["hard"].to_numpy(), table["tried"].to_numpy()
    if not tried.sum():
        return float("nan")
    return float((hard * (1 - forecast) ** 2 + (tried - hard) * forecast**2).sum() / tried.sum())
