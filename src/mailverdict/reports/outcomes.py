"""`outcomes` counts what became of mails by verdict, `contradicted` lists the wrong verdicts.

`match_outcomes` joins rows and reports by the mailbox of their addresses::

    row                      report
    Ada.L@gmail.com, valid   adal@gmail.com, hard     the same mailbox: the verdict was wrong
    bo@firm.com, invalid     bo@firm.com, delivered   mail has arrived: the verdict was wrong

What several reports say of one mailbox is all counted; the one that matters most (`SHOWN_ORDER`) is
shown beside the row.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..bounces.read import to_bounce_table
from ..checks.bounces.outcome import Outcome
from ..errors import ColumnError, MailVerdictError, SettingsError
from ..frames.duplicates import read_mailboxes
from ..frames.policy import Policy, decide_rows, find_policy, read_decided
from ..frames.results import Results
from ..model.arrow import Bools, to_bools
from ..model.words import ACTIONS, Verdict
from ..table.cells import to_array
from ..table.columns import CONTRADICTION_COLUMNS, check_column
from ..table.notices import warn_user
from ..table.overwrite import name_columns
from ..table.table import Frame, table_of
from .differences import wilson_intervals
from .tables import CountTable, rate_table

COUNTED = (Outcome.HARD, Outcome.BLOCKED, Outcome.SOFT, Outcome.COMPLAINT, Outcome.DELIVERED)
NO_REASON = "none"
# From the least to the most important: of several reports about an address the last one here is
# shown.
SHOWN_ORDER = (Outcome.SOFT, Outcome.BLOCKED, Outcome.DELIVERED, Outcome.COMPLAINT, Outcome.HARD)


def wilson_interval(hits: float, trials: float) -> tuple[float, float]:
    """The score interval of a proportion (Wilson 1927) at 95 %; NaN without trials.

    >>> [round(bound, 4) for bound in wilson_interval(10, 100)]
    [0.0552, 0.1744]
    """
    low, high = wilson_intervals(hits, trials)
    return float(low), float(high)


def outcomes(
    out: Frame,
    column: Hashable | None = None,
    bounces: Any = None,
    *,
    mailed: Any = None,
    policy: Policy | str | None = None,
    prefix: str | None = None,
) -> Frame:
    """Count hard bounces by verdict, reason and action: was the verdict right? Uses no network.

    Addresses are matched by their mailbox, as in `duplicates`: without regard to case, since mail
    servers change it in their reports, and for the providers of its table to what they ignore.
    Blocked mails say nothing about the address and are counted apart, as are soft bounces and
    complaints.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned (pandas, Polars or Arrow), with the rows that were mailed.
    column : hashable, optional
        The column that was verified; by default the only one.
    bounces : DataFrame or path
        What `read_bounces` returned, or what it reads.
    mailed : hashable or array-like of bool, optional
        Which rows of `out` were mailed: a column of it, or one value for each row. By default all
        that have an address.
    policy : Policy or {"strict", "balanced", "lenient"}, optional
        For the actions. By default those in `out` if `decide` or `split` added them, else the
        balanced policy.
    prefix : str, optional
        The prefix it was verified with, if not the default.

    Returns
    -------
    DataFrame
        Index `by` (verdict, reason, action) and `value`; in Polars and Arrow two columns. `rows`
        (int64), and counts of distinct mailboxes (int64): `mailed`, `hard`, `blocked`, `soft`,
        `complaint`, `delivered`. `rate` (float64) is `hard` by `mailed`, `low` and `high` its 95 %
        Wilson score interval; NaN if none was mailed. All verdicts and actions are there. A reason
        of a valid address is ``none``. A mailbox with several outcomes counts in each.

        For pandas, ``attrs["outcomes"]`` counts the distinct addresses with a report that are in
        `out` (`matched`) and that are not (`unmatched`).

    Raises
    ------
    ColumnError
        If the frame has no such column, or it has not been verified.
    SettingsError, InputError
        If there is no such policy, `mailed` does not fit, `bounces` cannot be read, or a result
        column holds what `verify` never writes.

    Warns
    -----
    UserWarning
        If none of the addresses with a report is in `out`.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> df = pd.DataFrame({"email": ["ada@firm.example", "bo@firm.example", "cy@firm"]})
    >>> out = mv.verify(df, "email", validation_type="regex")
    >>> reply = "550 5.1.1 User unknown"
    >>> report = {"address": ["bo@firm.example"], "outcome": ["hard"], "reply": [reply]}
    >>> columns = {"address": "address", "outcome": "outcome", "diagnostic": "reply"}
    >>> bounces = mv.read_bounces(pd.DataFrame(report), columns=columns)
    >>> figures = ["mailed", "hard", "rate", "low", "high"]
    >>> mv.outcomes(out, "email", bounces).loc["verdict", figures].round(2)
             mailed  hard  rate   low  high
    value
    valid         2     1   0.5  0.09  0.91
    risky         0     0   NaN   NaN   NaN
    invalid       1     0   0.0  0.00  0.79
    unknown       0     0   NaN   NaN   NaN
    """
    require_bounces(bounces)
    rows = read_decided(out, column, prefix)
    actions = actions_of(rows, policy)
    matched = match_outcomes(rows, bounces, mailed=mailed)
    warn_of_others(matched, rows.column)
    counts: Frame = rows.data.convert(count_outcomes(matched, actions))
    return counts


def contradicted(
    out: Frame,
    column: Hashable | None = None,
    bounces: Any = None,
    *,
    mailed: Any = None,
    prefix: str | None = None,
) -> Frame:
    """List the rows whose verdict was wrong, with what happened. Uses no network.

    A `valid` row is contradicted by a hard bounce, an `invalid` one by a delivery or a complaint
    without a hard bounce. Verdicts of other rows claim nothing that a report could contradict.

    Parameters
    ----------
    out, column, bounces, mailed, prefix
        As in `outcomes`.

    Returns
    -------
    DataFrame
        The contradicted rows of `out` in their order, with their index, and four new columns:
        `outcome` (hard, delivered or complaint), `outcome_at` (UTC), `outcome_diagnostic` (what the
        mail server said; NA if not known) and `contradiction` (in words). The kind is that of
        `out`.

    Raises
    ------
    ColumnError, SettingsError, InputError
        As `outcomes`.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> df = pd.DataFrame({"email": ["ada@firm.example", "bo@firm.example"]})
    >>> out = mv.verify(df, "email", validation_type="regex")
    >>> report = pd.DataFrame({"who": ["bo@firm.example"], "reply": ["550 5.1.1 User unknown"]})
    >>> bounces = mv.read_bounces(report, columns={"address": "who", "diagnostic": "reply"})
    >>> mv.contradicted(out, "email", bounces)[["email", "email_contradiction"]]
                 email                          email_contradiction
    1  bo@firm.example  valid, but the mailbox or domain is missing
    """
    require_bounces(bounces)
    verified = Results(out, column, prefix)
    names = name_columns(verified.data, verified.prefix, CONTRADICTION_COLUMNS)
    matched = match_outcomes(verified, bounces, mailed=mailed)
    rows = np.flatnonzero(matched.is_contradicted)
    lines = []
    for key, verdict in zip(matched.keys[rows], matched.verdict[rows], strict=True):
        report = matched.shown[key]
        lines.append(
            {
                "outcome": report["outcome"],
                "outcome_at": report["at"],
                "outcome_diagnostic": report["diagnostic"],
                "contradiction": CONTRADICTIONS[verdict],
            }
        )
    table = pa.Table.from_pylist(lines, CONTRADICTION_SCHEMA)
    none = np.empty(0, np.int64)
    contradicted_rows = verified.data.repeat(rows, none, [])
    marked: Frame = contradicted_rows.attach(table, names, CONTRADICTION_COLUMNS, {})
    return marked


def warn_of_others(matched: OutcomeRows, column: Hashable) -> None:
    """Warn if no report is about a mailed row."""
    if matched.unmatched and not matched.matched:
        warn_user(
            f"none of the {matched.unmatched:,} addresses with a report "
            f"is among the mailed rows of {column!r}"
        )


def require_bounces(bounces: Any) -> None:
    if bounces is None:
        raise SettingsError("give bounces=, what read_bounces returned or a path that it reads")


CONTRADICTION_SCHEMA = pa.schema(
    [
        ("outcome", pa.string()),
        ("outcome_at", pa.timestamp("us", "UTC")),
        ("outcome_diagnostic", pa.string()),
        ("contradiction", pa.string()),
    ]
)
CONTRADICTIONS = {
    "valid": "valid, but the mailbox or domain is missing",
    "invalid": "invalid, but mail was delivered",
}


@dataclass(frozen=True)
class OutcomeRows:
    """The rows of a verified frame, each with what became of its mail."""

    keys: npt.NDArray[Any]  # the address as it is matched; None where there is none
    is_mailed: Bools
    verdict: npt.NDArray[Any]  # or the status where there is no verdict
    reason: npt.NDArray[Any]
    has: dict[Outcome, Bools]
    shown: dict[Any, dict[str, Any]]  # by key, the report that matters most
    matched: int  # distinct addresses with a report
    unmatched: int

    @property
    def is_contradicted(self) -> Bools:
        is_hard = self.has[Outcome.HARD]
        has_arrived = self.has[Outcome.DELIVERED] | self.has[Outcome.COMPLAINT]
        is_valid = np.asarray(self.verdict == "valid", np.bool_)
        is_invalid = np.asarray(self.verdict == "invalid", np.bool_)
        is_wrong = (is_valid & is_hard) | (is_invalid & has_arrived & ~is_hard)
        contradicted_rows: Bools = self.is_mailed & is_wrong
        return contradicted_rows


def match_outcomes(rows: Results, bounces: Any, *, mailed: Any = None) -> OutcomeRows:
    """Join a verified column and the reports by address."""
    reports = to_bounce_table(bounces).to_pylist()
    keys = mailboxes_of(rows.addresses)
    has_key = np.array([key is not None for key in keys], np.bool_)
    is_mailed = mailed_rows(rows, mailed) & has_key
    addresses = [report["address"] for report in reports]
    keys_of_reports = mailboxes_of(pa.array(addresses, pa.string()))
    mailboxes: dict[Outcome, set[Any]] = {outcome: set() for outcome in Outcome}
    shown: dict[Any, dict[str, Any]] = {}
    for key, report in zip(keys_of_reports, reports, strict=True):
        mailboxes[Outcome(report["outcome"])].add(key)
        earlier = shown.get(key)
        if earlier is None or rank(earlier) <= rank(report):
            shown[key] = report
    has = {}
    for outcome in Outcome:
        has_outcome = [key in mailboxes[outcome] for key in keys]
        has[outcome] = np.array(has_outcome, np.bool_)
    mailed_keys = set(keys[is_mailed])
    reported_keys = set(shown)
    reasons = rows.why.fill_null(NO_REASON).to_pylist()
    return OutcomeRows(
        keys=keys,
        is_mailed=is_mailed,
        verdict=rows.buckets.to_pandas().astype(object).to_numpy(),
        reason=np.asarray(reasons, dtype=object),
        has=has,
        shown=shown,
        matched=len(reported_keys & mailed_keys),
        unmatched=len(reported_keys - mailed_keys),
    )


def rank(report: dict[str, Any]) -> int:
    return SHOWN_ORDER.index(Outcome(report["outcome"]))


def mailboxes_of(texts: pa.StringArray) -> npt.NDArray[Any]:
    """The mailbox by which each row is matched; of what is no address, the text in lower case."""
    others = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
    mailboxes = pc.coalesce(read_mailboxes(texts.fill_null("")).names, others)
    return np.asarray(mailboxes.to_pylist(), dtype=object)


def mailed_rows(rows: Results, mailed: Any) -> Bools:
    if mailed is None:
        return np.ones(len(rows), np.bool_)
    is_label = isinstance(mailed, str | tuple | int) and not isinstance(mailed, bool)
    if is_label and mailed in rows.data.labels():
        check_column(mailed, rows.data.labels())
        flags = to_array(rows.data.cells(mailed))
    elif is_label and not isinstance(mailed, tuple):
        raise ColumnError(f"mailed: no column {mailed!r}")
    else:
        try:
            flags = to_array(table_of(mailed, None).values())
        except MailVerdictError as exc:
            message = f"mailed: give a column of the frame, or true or false for each row ({exc})"
            raise SettingsError(message) from None
    if len(flags) != len(rows):
        raise SettingsError(f"mailed has {len(flags):,} values for {len(rows):,} rows")
    if flags.null_count == len(flags):
        return np.zeros(len(rows), np.bool_)
    if not pa.types.is_boolean(flags.type):
        raise SettingsError("mailed: give true or false for each row")
    return to_bools(flags.fill_null(False))  # what is missing was not mailed


def actions_of(rows: Results, policy: Policy | str | None) -> npt.NDArray[Any]:
    """The actions in the frame, or those of the policy; `rows` is what `read_decided` gave."""
    if policy is None and "action" in rows:
        actions = rows["action"]
    else:
        actions = decide_rows(rows, find_policy(policy or "balanced"))["action"]
    return np.asarray(actions.to_pylist(), dtype=object)


def count_outcomes(matched: OutcomeRows, actions: npt.NDArray[Any]) -> pd.DataFrame:
    """The table of `outcomes`; `actions` has one for each row."""
    columns = {
        "key": matched.keys,
        "verdict": matched.verdict,
        "reason": matched.reason,
        "action": actions,
    }
    for outcome in COUNTED:
        columns[str(outcome)] = matched.has[outcome]
    rows = pd.DataFrame(columns)[matched.is_mailed]
    reasons = rows["reason"].value_counts().index
    tables = [
        count_by(rows, "verdict", with_others(map(str, Verdict), rows["verdict"])),
        count_by(rows, "reason", list(map(str, reasons))),
        count_by(rows, "action", with_others(ACTIONS[:-1], rows["action"])),
    ]
    table = CountTable(pd.concat(tables))
    table.attrs["outcomes"] = {"matched": matched.matched, "unmatched": matched.unmatched}
    return table


def with_others(words: Iterable[str], values: pd.Series[Any]) -> list[str]:
    """Some words, and those among the values that are not among them."""
    named = list(words)
    others = set(map(str, values.dropna().unique()))
    return [*named, *sorted(others.difference(named))]


def count_by(rows: pd.DataFrame, by: str, values: list[str]) -> pd.DataFrame:
    """One row for each value: rows, distinct addresses, and of these those with each outcome."""
    groups = rows.groupby(by, observed=True)
    counts = groups.size().to_frame("rows")
    counts["mailed"] = groups["key"].nunique()
    for outcome in map(str, COUNTED):
        with_outcome = rows[rows[outcome]].groupby(by, observed=True)
        counts[outcome] = with_outcome["key"].nunique()
    counts = counts.reindex(values).fillna(0).astype("int64")
    rates = rate_table(counts["hard"], counts["mailed"])
    counts = pd.concat([counts.iloc[:, :3], rates, counts.iloc[:, 3:]], axis=1)
    counts.index = pd.MultiIndex.from_product([[by], values], names=["by", "value"])
    return counts
