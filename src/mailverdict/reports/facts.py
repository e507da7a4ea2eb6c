"""Everything that a report shows, as plain data; rendering computes nothing more."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..checks.syntax.column import observe_column
from ..frames.clean import AFTER_CLEANING, USE_EXPLODE, show_blanks, split_address
from ..frames.columns import ACTIONS, BY_NAME
from ..frames.files.restore import restore
from ..frames.overwrite import foreign_value
from ..frames.planning import SeenAddresses
from ..frames.policy import Policy, cause_of, decide_rows
from ..frames.repair import REPAIRS
from ..frames.text_column import read_values
from ..frames.verified import VerifiedColumn
from ..model.address import identities
from ..model.table import SOURCE_REMOTE
from ..model.words import (
    CAUSE_MEANING,
    ERROR_MEANING,
    FLAGS,
    REASON_MEANING,
    STATE_MEANING,
    Reason,
    Status,
    ValidationType,
    Verdict,
    reason_within,
)
from ..runs.retry import ASK_AGAIN
from .summary import (
    BUCKETS,
    MEANING_OF_VALID,
    add_domain_counts,
    buckets,
    by_address,
    domain_counts,
    top_domains,
)

TOP_DOMAINS, TOP_TYPOS, TOP_MOVES = 100, 20, 8
LONGEST_TYPED = 80  # characters of a mistyped address that are shown
TOP_CONTRADICTED = 20
MAX_TABLES = 8  # tables of domains that are kept before they are added up
# When verifying again is likely to help, by reason.
RETRY_WHEN = {
    **{Reason(reason): f"after {math.ceil(seconds / 60)} min" for reason, seconds in ASK_AGAIN.items()},
    Reason.TIMEOUT: "after an hour",
    Reason.CONNECTION_DROPPED: "after an hour",
    Reason.INCONCLUSIVE: "tomorrow",
    Reason.NO_SMTP_DATA: "tomorrow",
    Reason.MAILBOX_FULL: "in a week",
    Reason.PORT_CLOSED: "from a host whose port 25 is open",
    Reason.PROTECTED: "from a host with a better reputation",
    Reason.SENDER_BLOCKED: "with a HELO name and sender that the DNS confirms",
}


@dataclass(frozen=True)
class OutcomeFacts:
    """What became of the mails that were sent."""

    counts: pd.DataFrame  # as `outcomes`
    contradicted: list[tuple[str, str, str]]  # address, how the verdict was wrong, what the mail server said
    contradicted_rows: int
    matched: int  # distinct addresses with a report, among the rows
    unmatched: int


@dataclass(frozen=True)
class CleaningFacts:
    """What cleaning the cells before the check changed."""

    rows: int  # rows with a cleaned cell
    rescued: int  # of these, rows whose cell was malformed as it stood
    sendable: int  # of the rescued rows, those that can be mailed under the policy
    repairs: list[tuple[str, str, int]]  # name of a repair, an example of such a cell, rows; the most frequent first


@dataclass(frozen=True)
class TrendFacts:
    """How the list and its verdicts differ from an earlier audit."""

    checked: tuple[date, date] | None  # first and last day of the earlier checks, if the frame says so
    validation_types: list[str]  # types used; empty if the frame does not say
    rows: int
    buckets: dict[str, int]  # rows of the earlier audit, as in `ReportFacts`
    actions: dict[str, int]
    added: int  # distinct addresses that are only in this audit
    removed: int  # distinct addresses that are only in the earlier one
    changed: int  # distinct addresses with another verdict (or status)
    moves: list[tuple[str, str, int]]  # verdict before, verdict now, distinct addresses; the most frequent first

    @property
    def mailable(self) -> float:
        """As in `ReportFacts`."""
        return share(self.actions["send"], self.rows)


@dataclass(frozen=True)
class ReportFacts:
    """The content of a report on one verified column."""

    column: str
    name: str | None  # of the list, such as its file's
    made_at: datetime  # UTC
    checked: tuple[date, date] | None  # first and last day of the checks, if the frame says so
    rows: int
    addresses: int  # distinct and well-formed, after cleaning
    validation_types: dict[str, str]  # types used, and what `valid` means for each
    sources: dict[str, int]  # rows by source; empty where the frame does not say
    buckets: dict[str, int]  # rows by verdict, or by status where there is none; always all seven
    policy: str
    actions: dict[str, int]  # rows by action; always all five
    reasons: list[tuple[str, str, str, int]]  # of rows not valid or not sent: verdict or status, reason, meaning, rows
    retries: list[tuple[str, str, int]]  # unknowns that another verification may decide: reason, when, rows
    typos: list[tuple[str, str, int]]  # mistyped domain (or address), what was probably meant, rows
    cleaning: CleaningFacts | None  # None: no cell was cleaned
    cleanable: int  # rows that `clean` would repair
    several: int  # rows that hold several addresses
    flags: dict[str, int]  # rows by flag that is true
    domains: pd.DataFrame  # as `by_domain`
    outcomes: OutcomeFacts | None = None  # what became of the mails, if bounces are given
    trend: TrendFacts | None = None  # against an earlier audit, if one is given
    again: str = ""  # the command that made it, to verify the list again; by default a call of `verify`
    answered_by: str = ""  # what the backends call themselves, such as the sandbox; most have no name

    @property
    def addressed(self) -> int:
        """Rows with an address, or with anything else in the cell."""
        return self.rows - self.buckets["missing"]

    @property
    def is_check_unknown(self) -> bool:
        """Whether there are verdicts, and nothing says what "valid" means."""
        return not self.validation_types and any(self.buckets[verdict] for verdict in Verdict)

    @property
    def is_kept(self) -> bool:
        """Whether `verify` keeps the answers in its journal: it does for a service, and for the type `smtp`."""
        return ValidationType.SMTP in self.validation_types or SOURCE_REMOTE in self.sources

    @property
    def command(self) -> str:
        """What verifies the rows without a clear answer again; empty where the check is not known."""
        if self.again:
            return f"{self.again} --refresh {Verdict.UNKNOWN}" if self.is_kept else self.again
        if len(self.validation_types) != 1:
            return ""
        arguments = [repr(self.column), f"validation_type={next(iter(self.validation_types))!r}"]
        arguments += ["backend=backend"] if SOURCE_REMOTE in self.sources else []
        arguments += [f"refresh={{{str(Verdict.UNKNOWN)!r}}}"] if self.is_kept else []
        return f"mailverdict.verify(df, {', '.join(arguments)})"

    @property
    def mailable(self) -> float:
        """Share of all rows that can be mailed under the policy."""
        return share(self.actions["send"], self.rows)


def verify_command(file: str, options: Iterable[str]) -> str:
    """The command that verifies a file, to be copied from a report.

    >>> verify_command("my list.csv", ["--type", "smtp"])
    "mailverdict verify 'my list.csv' --type smtp"
    """
    return shlex.join(["mailverdict", "verify", file, *options])


def share(count: int, whole: int) -> float:
    return count / whole if whole else 0.0


def gather_facts(
    out: VerifiedColumn,
    policy: Policy,
    now: datetime,
    *,
    name: str | None = None,
    bounces: Any = None,
    earlier: VerifiedColumn | None = None,
) -> ReportFacts:
    """Gather what a report on a verified column shows."""
    counts = FactsCounter(out.column, policy)
    counts.add(out)
    return replace(
        counts.facts(now, name),
        outcomes=None if bounces is None else gather_outcomes(out, policy, bounces),
        trend=None if earlier is None else gather_trend(out, earlier, policy),
    )


class FactsCounter:
    """Counts what a report shows, piece by piece, so that a list larger than memory has one too."""

    def __init__(self, column: Hashable, policy: Policy) -> None:
        self.column, self.policy = column, policy
        self.rows = self.addresses = self.cleanable = self.several = 0
        self.days: list[tuple[date, date]] = []
        self.seen = SeenAddresses()
        self.validation_types: dict[str, None] = {}
        self.sources = Counter[str]()
        self.answered_by: dict[str, None] = {}
        self.buckets = Counter[str]()
        self.actions = Counter[str]()
        self.flags = Counter[str]()
        self.reasons = Counter[tuple[str, str]]()
        self.retries = Counter[str]()
        self.typos = Counter[tuple[str, str]]()
        self.cleaned = self.rescued = self.sendable = 0
        self.repairs = Counter[str]()
        self.domains: list[pd.DataFrame] = []

    def add(self, piece: VerifiedColumn) -> None:
        """Count a piece with the rows that follow those before."""
        bucket = buckets(piece)
        action, why = decide_rows(piece, self.policy)
        advised = why[bucket == Verdict.INVALID].value_counts()
        self.rows += len(bucket)
        distinct = identities(read_values(piece.addresses).texts).unique()
        self.addresses += len(self.seen.keep_new(distinct.filter(observe_column(distinct).ok)))
        self.days += [days] if (days := checked_days(piece)) else []
        self.validation_types.update(dict.fromkeys(validation_types(piece)))
        self.sources.update(counts_of(piece.get("source")))
        if label := piece.data.notes().get("answered_by"):
            self.answered_by[str(label)] = None
        self.buckets.update(counts_of(bucket))
        self.actions.update(counts_of(action))
        # Rows without a reason of their own that something else than the verdict keeps off the send list.
        is_kept_back = (bucket.isin([Verdict.VALID, Status.PENDING]) & (action != "send")).to_numpy(bool)
        causes = why.where(is_kept_back, "").map(cause_of)
        for state in (Verdict.VALID, Status.PENDING):
            counted = counts_of(causes[(bucket == state).to_numpy()])
            self.reasons.update({(str(state), cause): count for cause, count in counted.items() if cause})
        self.reasons.update(reasons_not_valid(piece, bucket, (causes == "").to_numpy(bool)))
        self.retries.update(counts_of(piece["details"][(bucket == Verdict.UNKNOWN).to_numpy()]))
        self.typos.update(count_typos(piece))
        if len(advised):
            self.cleanable += int(advised[advised.index.str.endswith(AFTER_CLEANING)].sum())
            self.several += int(advised[advised.index.str.endswith(USE_EXPLODE)].sum())
        for flag in FLAGS:
            self.flags[flag] += int(piece[flag].fillna(value=False).astype(bool).sum())
        self.add_cleaning(piece, action)
        self.domains.append(domain_counts(piece))
        if len(self.domains) > MAX_TABLES:
            self.domains = [add_domain_counts(self.domains)]

    def add_cleaning(self, piece: VerifiedColumn, action: pd.Series[Any]) -> None:
        """Count rows that were cleaned, and which of them would have been lost without it."""
        change = piece.get("change") if "clean" in piece else None
        if change is None:
            return
        is_changed = (change.fillna("").astype(str) != "") & (piece.addresses != piece.texts).fillna(value=False)
        positions = np.flatnonzero(is_changed.to_numpy(bool))
        cells = read_values(piece.texts.iloc[positions])
        is_malformed = np.ones(len(positions), np.bool_)
        is_malformed[slice(None) if cells.rows is None else cells.rows] = ~np.asarray(observe_column(cells.texts).ok)
        is_sent = (action.iloc[positions] == "send").to_numpy(bool)
        self.cleaned += len(positions)
        self.rescued += int(is_malformed.sum())
        self.sendable += int((is_malformed & is_sent).sum())
        for joined, count in change.iloc[positions].value_counts().items():
            self.repairs.update(dict.fromkeys(str(joined).split(";"), int(count)))

    def facts(self, now: datetime, name: str | None, again: str = "") -> ReportFacts:
        """What was counted."""
        return ReportFacts(
            column=str(self.column),
            name=name,
            made_at=now,
            checked=(min(first for first, _ in self.days), max(last for _, last in self.days)) if self.days else None,
            rows=self.rows,
            addresses=self.addresses,
            validation_types={kind: MEANING_OF_VALID.get(kind, "") for kind in self.validation_types},  # type: ignore[call-overload]
            sources=dict(most_common(self.sources)),
            buckets={each: self.buckets[each] for each in BUCKETS},
            policy=self.policy.name,
            actions={each: self.actions[each] for each in ACTIONS},
            reasons=[(b, why, meaning_of(why), count) for (b, why), count in most_common(self.reasons)],
            retries=[(str(r), when, self.retries[str(r)]) for r, when in RETRY_WHEN.items() if self.retries[str(r)]],
            typos=[(typed, meant, count) for (typed, meant), count in most_common(self.typos)[:TOP_TYPOS]],
            cleaning=self.cleaning(),
            cleanable=self.cleanable,
            several=self.several,
            flags={flag: self.flags[flag] for flag in FLAGS},
            domains=top_domains(add_domain_counts(self.domains), TOP_DOMAINS),
            again=again,
            answered_by=", ".join(self.answered_by),
        )

    def cleaning(self) -> CleaningFacts | None:
        if not self.cleaned:
            return None
        repairs = [(name, EXAMPLES.get(name, ""), count) for name, count in most_common(self.repairs)]
        return CleaningFacts(self.cleaned, self.rescued, self.sendable, repairs)


EXAMPLES = {repair.name: show_blanks(repair.before) for repair in REPAIRS} | {"suggestion": "ada@gmial.com"}
T = TypeVar("T", bound=Any)


def most_common(counts: Counter[T]) -> list[tuple[T, int]]:
    """The most frequent first, ties by name: the same however the rows were cut into pieces."""
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))


def counts_by(values: pd.Series[Any], names: Iterable[str]) -> dict[str, int]:
    """Rows by value, for all of the names."""
    counts = values.value_counts()
    return {name: int(counts.get(name, 0)) for name in names}


def checked_days(out: VerifiedColumn) -> tuple[date, date] | None:
    """The first and the last day on which rows were checked, in UTC; a file may have made texts of the times."""
    moments, column = out.get("checked_at"), BY_NAME["checked_at"]
    if moments is None or moments.isna().all():
        return None
    if not isinstance(moments.dtype, pd.DatetimeTZDtype):
        if foreign_value(moments, column):  # a column of the user
            return None
        moments = restore(moments, column, column.name)
    return moments.min().date(), moments.max().date()


def gather_trend(out: VerifiedColumn, earlier: VerifiedColumn, policy: Policy) -> TrendFacts:
    """Counts of the earlier audit, and how the verdicts of the same addresses changed."""
    bucket = buckets(earlier)
    both = pd.concat([by_address(each)["bucket"] for each in (earlier, out)], axis=1, keys=["before", "now"])
    before, now = both["before"], both["now"]
    moved = both[before.notna() & now.notna() & (before != now)]
    moves = moved.value_counts().head(TOP_MOVES).reset_index(name="addresses").itertuples(index=False, name=None)
    counts = counts_by(bucket, BUCKETS)
    return TrendFacts(
        checked=checked_days(earlier),
        validation_types=validation_types(earlier),
        rows=len(bucket),
        buckets=counts,
        actions=counts_by(decide_rows(earlier, policy)[0], ACTIONS),
        added=int(before.isna().sum()),
        removed=int(now.isna().sum()),
        changed=len(moved),
        moves=[(str(old), str(new), int(count)) for old, new, count in moves],
    )


def gather_outcomes(out: VerifiedColumn, policy: Policy, bounces: Any) -> OutcomeFacts:
    """Counts and the first contradicted rows."""
    from .outcomes import CONTRADICTIONS, actions_of, count_outcomes, match_outcomes  # noqa: PLC0415 - few need it

    found = match_outcomes(out, bounces)
    rows = np.flatnonzero(found.is_contradicted)
    listed = [
        (str(found.keys[row]), CONTRADICTIONS[found.verdict[row]], found.shown[found.keys[row]]["diagnostic"] or "")
        for row in rows[:TOP_CONTRADICTED]
    ]
    counts = count_outcomes(found, actions_of(out, policy))
    return OutcomeFacts(counts, listed, len(rows), found.matched, found.unmatched)


def validation_types(out: VerifiedColumn) -> list[str]:
    """From the rows where the column is there, else from what `verify` noted on the frame."""
    types = out.get("validation_type")
    if types is not None:
        return [str(kind) for kind in types.dropna().unique()]
    note = out.data.notes()
    return [str(note["validation_type"])] if "validation_type" in note else []


def counts_of(values: pd.Series[Any] | None) -> dict[str, int]:
    if values is None:
        return {}
    return {str(name): int(count) for name, count in values.dropna().astype(object).value_counts().items()}


def reasons_not_valid(
    out: VerifiedColumn, bucket: pd.Series[Any], is_counted: npt.NDArray[np.bool_]
) -> dict[tuple[str, str], int]:
    """Rows by bucket and dominant reason; error code or bucket where there is no reason."""
    why, error = out["details"].astype(object), out.get("error")
    if error is not None:
        why = why.where(why.notna(), error.astype(object))
    others = pd.DataFrame({"bucket": bucket.astype(object), "why": why})[
        (bucket != Verdict.VALID).to_numpy(bool) & is_counted
    ]
    others["why"] = others["why"].where(others["why"].notna(), others["bucket"])
    counted = others.value_counts().reset_index(name="rows").itertuples(index=False, name=None)
    return {(str(name), reason_within(str(reason), str(name))): int(count) for name, reason, count in counted}


def meaning_of(reason: str) -> str:
    """The meaning of a reason, error code or bucket; empty for a reason that only the service knows."""
    if reason in tuple(Reason):
        return REASON_MEANING[Reason(reason)]
    return ERROR_MEANING.get(reason) or CAUSE_MEANING.get(reason) or STATE_MEANING.get(reason, "")


def count_typos(out: VerifiedColumn) -> dict[tuple[str, str], int]:
    """Rows by mistyped domain and the domain probably meant; by address where the domain is right."""
    suggestion = out["suggestion"]
    has = suggestion.notna()
    typed, meant = (texts[has].astype("string") for texts in (out.addresses, suggestion))
    domains = [split_address(texts)["domain"].fillna("") for texts in (typed, meant)]
    differ = (domains[0] != domains[1]).to_numpy(bool)
    pairs = pd.DataFrame(
        {
            "typed": np.where(differ, domains[0], typed.str.slice(0, LONGEST_TYPED)),
            "meant": np.where(differ, domains[1], meant.str.slice(0, LONGEST_TYPED)),
        }
    )
    counted = pairs.value_counts().reset_index(name="rows").itertuples(index=False, name=None)
    return {(str(wrong), str(right)): int(count) for wrong, right, count in counted}
