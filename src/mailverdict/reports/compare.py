"""`compare` puts the verdicts of one verification beside those of another.

Both are joined by address; what became of mails then says whose claim was right::

    address       a      b        why_a  why_b       mail arrived
    ada@firm.com  valid  valid                                     they agree
    bo@firm.com   valid  invalid         no_mailbox  no            they contradict, b was right
"""

from __future__ import annotations

import html
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..checks.bounces.outcome import Outcome
from ..frames.results import BUCKETS, Results
from ..frames.verifiers import read_verdicts
from ..model.words import Verdict, count_of, percent
from ..table.overwrite import SOURCES
from ..theme import notebook
from .counts import keys_of
from .outcomes import match_outcomes, warn_of_others
from .summary import by_address, join_verdicts
from .tables import CountTable, rate_table

OURS = "mailverdict"
# Whether mail should arrive; other verdicts claim nothing.
CLAIMS = {
    "valid": True,
    "invalid": False,
}
CONTRADICTED = "where they contradict"


@dataclass(frozen=True)
class Comparison:
    """What `compare` found, in distinct addresses; prints as small tables.

    Attributes
    ----------
    names : tuple of str
        Whose verdicts `a` and `b` are: a service, or ``mailverdict``.
    both, only_a, only_b : int
        Addresses in both, and in one of them.
    agreement : DataFrame
        How many of the addresses in both have which verdict: index the verdicts of `a`, columns
        those of `b` (int64), always all four; also the status of addresses without a verdict, if
        there are any.
    contradictions : DataFrame
        Index `address`, sorted: those that are valid for one and invalid for the other. `a` and `b`
        (the verdicts), `why_a` and `why_b` (the words of `why`); all object, None where there is
        nothing.
    right : DataFrame or None
        With bounces, who was right how often. Index `by` (the name) and `claim`: ``valid``,
        ``invalid``, and both ``where they contradict``. `known` (int64): addresses in both that
        have the claim, and of which is known what became of the mail; `right` (int64): of those,
        where the claim was right; `rate` (float64), and its 95 % Wilson score interval, `low` and
        `high`; NaN if none is known.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> df = pd.DataFrame({"email": ["ada@firm.example"]})
    >>> a = mv.verify(df, "email", validation_type="regex")
    >>> mv.compare(a, a).both
    1
    """

    names: tuple[str, str]
    both: int
    only_a: int
    only_b: int
    agreement: pd.DataFrame
    contradictions: pd.DataFrame
    right: pd.DataFrame | None

    @property
    def _same(self) -> tuple[int, int]:
        """How many addresses have the same verdict, of how many that have one in both."""
        judged = self.agreement.loc[list(Verdict), list(Verdict)].to_numpy()
        return int(np.trace(judged)), int(judged.sum())

    def _sentences(self) -> list[str]:
        """The figures in words."""
        a, b = self.names
        only = f"{self.only_a:,} only from {a}, {self.only_b:,} only from {b}"
        if not self.both:
            return [f"no address is in both; {only}"]
        same, judged = self._same
        return [
            f"{count_of(self.both, 'address')} in both, {only}",
            f"same verdict: {same:,} of {judged:,} ({percent(same, judged)})",
            f"valid for one and invalid for the other: {len(self.contradictions):,}",
        ]

    def __str__(self) -> str:
        """The sentences, the agreement, and who was right."""
        parts = [
            "\n".join(self._sentences()),
            f"rows: {self.names[0]}, columns: {self.names[1]}\n{self.agreement}",
        ]
        if self.right is not None:
            parts.append(f"who was right:\n{self.right.round(3)}")
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        """The same, for a prompt."""
        return str(self)

    def _repr_html_(self) -> str:
        """The same for notebooks; every text is escaped."""
        tables = {f"rows: {self.names[0]}, columns: {self.names[1]}": self.agreement}
        if self.right is not None:
            tables["who was right"] = self.right
        parts = [f"<p>{html.escape(sentence)}</p>" for sentence in self._sentences()]
        for head, table in tables.items():
            parts.append(f"<p><b>{html.escape(head)}</b></p>")
            parts.append(CountTable(table)._repr_html_())
        return notebook("".join(parts))


def compare(
    a: Any,
    b: Any,
    column: Hashable | None = None,
    *,
    bounces: Any = None,
    mailed: Any = None,
    prefix: str | None = None,
) -> Comparison:
    """Compare two verifications of the same addresses, and see who was right. Uses no network.

    What changed between two audits of one list, row by row, is in `diff`.

    Parameters
    ----------
    a, b : DataFrame or path
        What `verify` or `read_verdicts` returned (pandas, Polars or Arrow), or a path that
        `read_verdicts` reads without being told its columns. Of an address with several rows the
        first one counts.
    column : hashable, optional
        The column that was verified in both frames; by default the only one of each.
    bounces : DataFrame or path, optional
        What became of mails to these addresses: what `read_bounces` returned, or what it reads. A
        hard bounce shows that mail does not arrive, a delivery or a complaint without one that it
        does; other reports say neither.
    mailed : hashable or array-like of bool, optional
        Which rows of `a` were mailed, as in `outcomes`: of those, mail without any report arrived.
        By default only what a report says counts.
    prefix : str, optional
        The prefix that both were verified with, if not the default.

    Returns
    -------
    Comparison
        `names`, `both`, `only_a`, `only_b`, `agreement`, `contradictions` and `right`; its frames
        are of pandas.

    Raises
    ------
    ColumnError
        If a frame has no such column, or it has not been verified.
    SettingsError, InputError
        If `mailed` does not fit, a file cannot be read, or a result column holds what `verify`
        never writes.

    Warns
    -----
    UserWarning
        If none of the addresses with a report is in `a`.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> emails = ["ada@firm.example", "bo@firm.example"]
    >>> export = pd.DataFrame({"email": emails, "ZB Status": ["valid", "invalid"]})
    >>> theirs = mv.read_verdicts(export)
    >>> ours = mv.verify(theirs[["email"]], "email", validation_type="regex")
    >>> found = mv.compare(ours, theirs)
    >>> found
    2 addresses in both, 0 only from mailverdict, 0 only from ZeroBounce
    same verdict: 1 of 2 (50.0%)
    valid for one and invalid for the other: 1
    <BLANKLINE>
    rows: mailverdict, columns: ZeroBounce
                 valid  risky  invalid  unknown
    mailverdict
    valid            1      0        1        0
    risky            0      0        0        0
    invalid          0      0        0        0
    unknown          0      0        0        0
    >>> found.contradictions[["a", "b"]]
                         a        b
    address
    bo@firm.example  valid  invalid
    """
    rows_a = rows_of(a, column, prefix)
    rows_b = rows_of(b, column, prefix)
    names = (name_of(rows_a), name_of(rows_b))
    if names[0] == names[1]:
        names = (f"{names[0]} (a)", f"{names[1]} (b)")
    verdicts_a = by_address(rows_a)
    verdicts_b = by_address(rows_b)
    both = join_verdicts(verdicts_a, verdicts_b, ("a", "b", "why_a", "why_b"), how="inner")
    claim_a = both["a"].map(CLAIMS)
    claim_b = both["b"].map(CLAIMS)
    contradicts = claim_a.notna() & claim_b.notna() & (claim_a != claim_b)
    right = None
    if bounces is not None:
        right = count_right(both, contradicts, names, arrived(rows_a, bounces, mailed))
    return Comparison(
        names=names,
        both=len(both),
        only_a=len(verdicts_a) - len(both),
        only_b=len(verdicts_b) - len(both),
        agreement=count_agreement(both, names),
        contradictions=both[contradicts],
        right=right,
    )


def rows_of(data: Any, column: Hashable | None, prefix: str | None) -> Results:
    if isinstance(data, str | Path):
        return Results(read_verdicts(data), None, None)
    return Results(data, column, prefix)


def name_of(rows: Results) -> str:
    """Whose verdicts they are: a service if all are its own."""
    sources = rows["source"].unique().drop_null().to_pylist()
    if len(sources) == 1 and sources[0] not in SOURCES:
        return str(sources[0])
    return OURS


def count_agreement(both: pd.DataFrame, names: tuple[str, str]) -> pd.DataFrame:
    """Rows are the verdicts of one, columns those of the other, or the status without one."""
    shown = {*map(str, Verdict), *both["a"], *both["b"]}
    order = [name for name in BUCKETS if name in shown]
    counts = pd.crosstab(both["a"], both["b"])
    counts = counts.reindex(index=order, columns=order, fill_value=0)
    counts = counts.rename_axis(index=names[0], columns=None)
    return CountTable(counts.astype("int64"))


def arrived(rows: Results, bounces: Any, mailed: Any) -> pd.Series[bool]:
    """Whether mail arrives, by address; only of those of which that is known."""
    matched = match_outcomes(rows, bounces, mailed=mailed)
    warn_of_others(matched, rows.column)
    has = matched.has
    is_hard = has[Outcome.HARD]
    is_good = has[Outcome.DELIVERED] | has[Outcome.COMPLAINT]
    if mailed is not None:
        has_report = np.logical_or.reduce(list(has.values()))
        is_good = is_good | ~has_report
    known = matched.is_mailed & (is_hard | is_good)
    addresses = keys_of(rows).to_pandas()
    truth = pd.Series(~is_hard, index=addresses)[known]
    return truth[~truth.index.duplicated()]


def count_right(
    both: pd.DataFrame, contradicts: pd.Series[bool], names: tuple[str, str], truth: pd.Series[bool]
) -> pd.DataFrame:
    """How often each claim was right, by whose it is."""
    known = both[both.index.isin(truth.index)]
    has_arrived = truth.reindex(known.index)
    contradicts = contradicts[known.index]
    labels = []
    lines = []
    for name, side in zip(names, ("a", "b"), strict=True):
        verdicts = known[side]
        is_right = verdicts.map(CLAIMS) == has_arrived
        claims = {claim: verdicts == claim for claim in CLAIMS}
        claims[CONTRADICTED] = contradicts
        for claim, is_claimed in claims.items():
            labels.append((name, claim))
            lines.append({"known": is_claimed.sum(), "right": (is_claimed & is_right).sum()})
    index = pd.MultiIndex.from_tuples(labels, names=["by", "claim"])
    table = pd.DataFrame(lines, index).astype("int64")
    return CountTable(table.join(rate_table(table["right"], table["known"])))
