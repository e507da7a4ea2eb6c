"""What became of earlier mails, as counts without addresses: `Experience` and its file.

An `Experience` is a list of mailings, and a mailing is a table of counts by verdict, reason,
operator and domain:

    verdict  why        operator      domain        domains  mailed  hard  unclear ...
    risky    catch_all  microsoft365  firm.example        1      40     9        2
    risky    catch_all  microsoft365                     31      52     4        0

Its file is JSON; its form is in docs/reference/around.md.
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

from ..atomic_write import atomic_write
from ..errors import InputError, SettingsError
from ..model.paths import user_path
from ..model.words import count_of
from ..reports.outcomes import wilson_interval
from ..reports.tables import CountTable
from ..table.notices import warn_user
from .list_key import OTHER_LIST, SAME_LIST, shared_part
from .notes import read_key, read_rate, read_waves_asked
from .rates import CELL, NO_REASON, fit_rates

FORMAT = "mailverdict experience"
VERSION = 2
# What a line of counts has in the file. The first version had neither blocks nor complaints of
# their own.
COUNTS = ("domains", "mailed", "hard", "unclear", "blocked", "complaints")
COUNTS_OF_VERSION = {1: COUNTS[:4], 2: COUNTS}
LARGEST = 10**12  # count that is read: sums of many stay below 2^63
# Mailings look alike if the smaller one has at least this part of the mailboxes of the other.
SAME_MAILING = 0.9
MOST_NAME = 80  # characters
SHOWN_MAILINGS = 4
SHOWN_GROUPS = 5
FOLDS = 5
FORECASTS = (0, 0.01, 0.02, 0.05, 0.1, 0.2, 1)  # limits of the lines of the table of a calibration


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
        Index `forecast` (a range); `mailed`, `hard` (int64), `expected` (float64, the mean
        forecast), `seen` (float64), and the 95 % Wilson interval of what was seen, `low` and
        `high`.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> df = pd.DataFrame({"email": [f"{n}@firm{n % 9}.example" for n in range(90)]})
    >>> out = mv.verify(df, "email", validation_type="regex")
    >>> report = pd.DataFrame({"who": df["email"][:9], "reply": "550 5.1.1 User unknown"})
    >>> bounces = mv.read_bounces(report, columns={"address": "who", "diagnostic": "reply"})
    >>> mv.learn(out, "email", bounces, mailed=True).calibration.table[["mailed", "hard", "seen"]]
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
        what = "not better than"
        if self.is_better:
            what = "better than"
        return (
            f"forecasts are {what} the plain rate of the verdict: Brier score {self.brier:.5f} "
            f"against {self.plain_brier:.5f}, for domains that were left out"
        )


@dataclass(frozen=True)
class LearntMailing:
    """The counts of one mailing, with the columns of `CELL` and `COUNTS`."""

    wave: int | None  # if `mailing` planned it
    counts: pd.DataFrame
    name: str = ""
    is_complete: bool = False  # whether a person said that all bounces had come
    key: str = ""  # of its list; empty if not known
    waves: int | None = None  # what `mailing` was asked for
    max_bounce_rate: float | None = None

    def __str__(self) -> str:
        """What a person calls it."""
        wave = "a mailing"
        if self.wave is not None:
            wave = f"wave {self.wave}"
        if not self.name:
            return wave
        return f"{wave} of {self.name!r}"

    def total(self, name: str) -> int:
        """The sum of one column of the counts."""
        return int(self.counts[name].sum())

    @property
    def mailed(self) -> int:
        """Mailboxes that were mailed."""
        return self.total("mailed")

    @property
    def hard(self) -> int:
        """Mailboxes with a hard bounce."""
        return self.total("hard")

    @property
    def strength(self) -> tuple[int, bool, int]:
        """Of one mailing that was learnt twice, that with the higher one stays."""
        return self.hard, self.is_complete, self.mailed

    def by_group(self) -> pd.Series[int]:
        """Mailboxes by verdict and reason."""
        return self.counts.groupby(list(CELL[:2]))["mailed"].sum()

    def has_all(self, groups: pd.Series[int]) -> bool:
        """Whether the mailing has at least so many mailboxes of each group."""
        mailed = self.by_group().reindex(groups.index).fillna(0)
        return bool((mailed >= groups).all())

    def is_like(self, other: LearntMailing) -> bool:
        """Whether both have nearly as many mailboxes of each kind."""
        small, large = sorted((self, other), key=lambda mailing: mailing.mailed)
        part = small.mailed / max(large.mailed, 1)
        return part >= SAME_MAILING and large.has_all(small.by_group())

    def is_surely(self, other: LearntMailing) -> bool:
        """Whether nothing speaks against one mailing, of two that `is_same` takes for one."""
        if self.name and self.key and other.key:
            return True
        is_told = bool(self.name) or self.wave is not None
        return is_told and self.is_like(other)

    def is_same(self, other: LearntMailing) -> bool:
        """Whether both are one mailing; an error if one name stands for two lists.

        It is told by wave, name and list; without a wave and a name by the mailboxes.
        """
        if self.wave != other.wave:
            return False
        shared = shared_part(self.key, other.key)
        if self.name != other.name:
            is_named_later = "" in (self.name, other.name) and self.wave is not None
            return is_named_later and shared >= SAME_LIST
        if shared < OTHER_LIST and self.name:
            raise SettingsError(
                f"{self.name!r} is the name of another list: of its addresses and those of this "
                "one hardly any are the same. Learn this one with a name of its own"
            )
        if shared < OTHER_LIST:
            return False
        if self.name or self.wave is not None:
            return True
        return self.is_like(other)


@dataclass(frozen=True)
class Experience:
    """What became of earlier mails: counts by verdict, reason, operator and domain, no address.

    Two are added with ``+``. A mailing that is in both counts once: that of the two with more hard
    bounces stays, so that a mailing may be learnt again when late bounces have come. Mailings are
    told apart by name, wave and list; those without a name and a wave by their number of mailboxes
    and kinds of rows. Which list it was is known by a key that holds no address.

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
        """Both together; a `SettingsError` if one name stands for two lists."""
        if not isinstance(other, Experience):
            return NotImplemented
        mailings = list(self.mailings)
        for new in other.mailings:
            places = [place for place, old in enumerate(mailings) if old.is_same(new)]
            if not places:
                mailings.append(new)
                continue
            place = places[0]
            old = mailings[place]
            if not new.is_surely(old):
                warn_user(
                    f"{new} is in both, with {old.mailed:,} and {new.mailed:,} mailboxes, and "
                    "counts once. If these are two mailings, learn each with a name of its own"
                )
            if new.strength >= old.strength:
                mailings[place] = new
        return Experience(tuple(mailings))

    @cached_property
    def counts(self) -> pd.DataFrame:
        """Counts of all mailings together.

        Returns
        -------
        DataFrame
            `verdict`, `why`, `operator` and `domain` (object; empty where not known, and for
            domains with fewer than three mailboxes in their list, which are counted together), and
            int64: `domains`, how many the row is about; distinct mailboxes `mailed`, with a `hard`
            bounce, and `unclear`: blocked or deferred; of these those that were `blocked`; and
            `complaints`.
        """
        return CountTable(add_counts([mailing.counts for mailing in self.mailings]))

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
        mailings = [write_mailing(mailing) for mailing in self.mailings]
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
        damaged = f"{path}: not an experience that learn wrote, or damaged"
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except OSError as exc:
            raise InputError(f"{path} cannot be read: {exc.strerror}") from exc
        except (ValueError, RecursionError):
            raise InputError(damaged) from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise InputError(damaged)
        version = content.get("version")
        if type(version) is not int or version not in COUNTS_OF_VERSION:
            raise InputError(
                f"{path}: version {version!r:.20} of the form; this release of mailverdict reads "
                f"up to {VERSION}"
            )
        try:
            mailings = [read_mailing(mailing, version) for mailing in content["mailings"]]
        except (ValueError, KeyError, TypeError, OverflowError):
            raise InputError(damaged) from None
        return cls(tuple(mailings))

    def __repr__(self) -> str:
        """What is in it: the sums, the rate of each verdict and reason, and the last mailings."""
        if not self.mailings:
            return "Experience: no mailing"
        lines = [self._title()]
        for mailing in self.mailings[-SHOWN_MAILINGS:]:
            unclear = mailing.total("unclear")
            lines.append(
                f"  {mailing}: {mailing.mailed:,} mailed, {mailing.hard:,} hard, {unclear:,} "
                "blocked or deferred"
            )
        rates = rates_of(self.counts, ["verdict", "why"])
        largest = rates.sort_values("mailed", ascending=False).head(SHOWN_GROUPS)
        for group in largest.reset_index().to_dict("records"):
            lines.append(f"  {describe_group(group)}: {describe_rate(group)}")
        return "\n".join(lines)

    def _title(self) -> str:
        """The sums of all mailings."""
        counts = self.counts
        mailed = int(counts["mailed"].sum())
        hard = int(counts["hard"].sum())
        unclear = int(counts["unclear"].sum())
        share = ""
        known = mailed - unclear
        if known:
            low, high = wilson_interval(hard, known)
            share = f" ({hard / known:.1%}, {low:.1%} to {high:.1%})"
        complaints = int(counts["complaints"].sum())
        complained = ""
        if complaints:
            complained = f", {count_of(complaints, 'complaint')}"
        return (
            f"Experience: {count_of(len(self.mailings), 'mailing')}, "
            f"{count_of(mailed, 'mailbox', 'mailboxes')}, {count_of(hard, 'hard bounce')}{share}, "
            f"{unclear:,} blocked or deferred{complained}"
        )

    def _repr_html_(self) -> str:
        """The rates of each verdict and reason, for a notebook."""
        return rates_of(self.counts, ["verdict", "why"])._repr_html_()


def describe_group(group: dict[Hashable, Any]) -> str:
    """The rows of a verdict and reason, as a person calls them."""
    if group["why"] == NO_REASON:
        return str(group["verdict"])
    return f"{group['verdict']}, {group['why'].replace('_', ' ')}"


def describe_rate(row: dict[Hashable, Any]) -> str:
    """A rate with its interval; only the number of mails where none has an outcome."""
    if not row["mailed"]:
        return "no outcome is known"
    interval = f"{row['low']:.1%} to {row['high']:.1%}"
    return f"{row['rate']:.1%} of {row['mailed']:,.0f} bounced ({interval})"


def add_counts(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """The sums of tables of counts by cell."""
    if not tables:
        columns: dict[str, Any] = {name: np.array([], object) for name in CELL}
        columns |= {name: np.array([], np.int64) for name in COUNTS}
        return pd.DataFrame(columns)
    groups = pd.concat(tables).groupby(list(CELL), sort=False)
    counts = groups[list(COUNTS)].sum().reset_index()
    counts["domains"] = counts["domains"].where(counts["domain"] == "", 1)
    return counts


def tried_of(counts: pd.DataFrame) -> pd.Series[int]:
    """Mailboxes whose outcome is known."""
    return counts["mailed"] - counts["unclear"]


def is_name(text: Any) -> bool:
    """Whether a text can name a mailing."""
    if not isinstance(text, str) or "@" in text or len(text) > MOST_NAME:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:  # half a pair of surrogates, which no file holds
        return False
    return True


def write_mailing(mailing: LearntMailing) -> dict[str, Any]:
    """One mailing for the file."""
    lines = mailing.counts[[*CELL, *COUNTS]].itertuples(index=False)
    return {
        "name": mailing.name,
        "wave": mailing.wave,
        "complete": mailing.is_complete,
        "list": mailing.key,
        "waves": mailing.waves,
        "max_bounce_rate": mailing.max_bounce_rate,
        "counts": [list(line) for line in lines],
    }


def read_mailing(content: Any, version: int) -> LearntMailing:
    """One mailing of a file; any error if it is not of the form."""
    names = COUNTS_OF_VERSION[version]
    counts = pd.DataFrame(content["counts"], columns=[*CELL, *names], dtype=object)
    for name in names:
        for number in counts[name]:
            if type(number) is not int or not 0 <= number <= LARGEST:
                raise ValueError(name)
    for name in CELL:
        for text in counts[name]:
            if not isinstance(text, str) or "@" in text:
                raise ValueError(name)
            text.encode()  # a ValueError if no file could hold it
    for name in COUNTS:
        if name not in counts:
            counts[name] = 0
    counts = counts.astype(dict.fromkeys(COUNTS, "int64"))
    check_sums(counts)
    if not is_name(content["name"]) or type(content["complete"]) is not bool:
        raise ValueError("name")
    return LearntMailing(
        wave=read_waves_asked(content["wave"]),
        counts=counts,
        name=content["name"],
        is_complete=content["complete"],
        key=read_key(content.get("list", "")),
        waves=read_waves_asked(content.get("waves")),
        max_bounce_rate=read_rate(content.get("max_bounce_rate")),
    )


def check_sums(counts: pd.DataFrame) -> None:
    """A `ValueError` for a line of which a part is more than the whole."""
    is_wrong = counts["hard"] + counts["unclear"] > counts["mailed"]
    is_wrong |= counts["blocked"] > counts["unclear"]
    is_wrong |= counts["complaints"] > counts["mailed"]
    is_wrong |= counts["domains"] < 1
    if is_wrong.any():
        raise ValueError("counts")


def read_experience(experience: Any) -> Experience | None:
    """An experience itself, or the one of a file."""
    if experience is None or isinstance(experience, Experience):
        return experience
    if isinstance(experience, str | os.PathLike):
        return Experience.load(Path(experience))
    raise SettingsError(
        f"experience is of type {type(experience).__name__}: give what learn returned, or its file"
    )


def rates_of(counts: pd.DataFrame, by: list[str]) -> CountTable:
    """Mailboxes whose outcome is known, and the rate of hard bounces, by some columns."""
    tried = counts.assign(mailed=tried_of(counts))
    table = tried.groupby(by)[["mailed", "hard"]].sum()
    return with_interval(table, "rate")


def with_interval(table: pd.DataFrame, name: str) -> CountTable:
    """Counts with the rate of hard bounces and its 95 % Wilson interval."""
    rate = table["hard"] / table["mailed"].where(table["mailed"] > 0)
    low = []
    high = []
    for hard, mailed in zip(table["hard"].tolist(), table["mailed"].tolist(), strict=True):
        bounds = wilson_interval(hard, mailed)
        low.append(bounds[0])
        high.append(bounds[1])
    added: dict[str, Any] = {
        name: rate,
        "low": np.array(low, np.float64),
        "high": np.array(high, np.float64),
    }
    return CountTable(table.assign(**added))


def plain_risk(counts: pd.DataFrame) -> pd.DataFrame:
    """The rate of each verdict and its interval."""
    return rates_of(counts, ["verdict"])[["rate", "low", "high"]]


def calibrate(counts: pd.DataFrame) -> Calibration:
    """Forecast each domain from the others, and compare with what was seen."""
    table = counts.assign(tried=tried_of(counts))
    fold = folds_of(table)
    forecast = np.full(len(table), np.nan)
    plain = np.full(len(table), np.nan)
    for number in range(FOLDS):
        is_out = fold == number
        known = table.assign(
            tried=table["tried"].mask(is_out, 0),
            hard=table["hard"].mask(is_out, 0),
        )
        if not is_out.any() or not known["tried"].sum():
            continue
        forecast[is_out] = fit_rates(known).cells.rate[is_out]
        plain[is_out] = rates_by_verdict(known)[is_out]

    is_compared = ~np.isnan(forecast) & (table["tried"] > 0).to_numpy()
    table = table[is_compared]
    forecast = forecast[is_compared]
    plain = plain[is_compared]
    table = table.assign(expected=forecast * table["tried"])
    ranges = pd.cut(forecast, FORECASTS, include_lowest=True, labels=RANGES)
    lines = table.groupby(ranges, observed=True)[["tried", "hard", "expected"]].sum()
    lines = lines.rename(columns={"tried": "mailed"}).rename_axis("forecast")
    lines["expected"] /= lines["mailed"]
    return Calibration(brier(forecast, table), brier(plain, table), with_interval(lines, "seen"))


RANGES = [f"{low:.0%} to {high:.0%}" for low, high in itertools.pairwise(FORECASTS)]


def folds_of(table: pd.DataFrame) -> npt.NDArray[np.int64]:
    """The fold of each line: that of its domain; lines of small domains go in turn."""
    rank = table["domain"].rank(method="dense").astype("int64").to_numpy()
    in_turn = np.arange(len(table))
    return np.where(table["domain"] == "", in_turn, rank) % FOLDS


def rates_by_verdict(table: pd.DataFrame) -> pd.Series[float]:
    """The plain rate of each line's verdict; that of all where nothing is known of the verdict."""
    sums = table.groupby("verdict")[["hard", "tried"]].sum()
    rate = sums["hard"] / sums["tried"].where(sums["tried"] > 0)
    whole = table["hard"].sum() / table["tried"].sum()
    return table["verdict"].map(rate.fillna(whole))


def brier(forecast: npt.NDArray[np.float64], table: pd.DataFrame) -> float:
    """The mean squared difference between the forecast and what happened, 0 or 1."""
    hard = table["hard"].to_numpy()
    tried = table["tried"].to_numpy()
    if not tried.sum():
        return float("nan")
    squares = hard * (1 - forecast) ** 2 + (tried - hard) * forecast**2
    return float(squares.sum() / tried.sum())
