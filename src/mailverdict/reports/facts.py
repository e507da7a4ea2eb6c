"""What a report is about, as plain data; sections make shares of it.

`ReportFacts` holds the counts of a column and what else was gathered; what a report shows of them
is computed once, when a section asks for it::

    facts.reasons     ("invalid", "no_mx_record", "the domain does not exist ...", 412) ...
    facts.typos       ("gmial.com", "gmail.com", 31) ...
    facts.cleaning    rows 96, rescued 80, sendable 71, repairs ("label", "E-Mail: ada@...", 40) ...
    facts.command     mailverdict verify contacts.csv --type smtp --refresh unknown

`gather_trend` and `gather_outcomes` add what an earlier audit and bounces tell.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from ..frames.alike import Alike
from ..frames.clean import show_blanks
from ..frames.policy import Policy
from ..frames.results import Results
from ..model.table import SOURCE_REMOTE
from ..model.words import (
    MEANING,
    NO_ANSWER,
    SEVERAL_ADDRESSES,
    Reason,
    Status,
    ValidationType,
    Verdict,
)
from ..repair.repair import REPAIRS
from ..runs.retry import ASK_AGAIN
from .counts import Counts, add_domains, top_domains
from .origins import ColumnFinding, ListCounts, rank
from .summary import by_address

TOP_DOMAINS, TOP_TYPOS, TOP_MOVES = 100, 20, 8
TOP_CONTRADICTED = 20
AUDIENCES = ("analyst", "manager")
# When verifying again is likely to help, by reason.
RETRY_WHEN: dict[str, str] = {
    **{reason: f"after {math.ceil(seconds / 60)} min" for reason, seconds in ASK_AGAIN.items()},
    Reason.TIMEOUT: "after an hour",
    Reason.CONNECTION_DROPPED: "after an hour",
    NO_ANSWER: "after an hour",
    Reason.INCONCLUSIVE: "tomorrow",
    Reason.NO_SMTP_DATA: "tomorrow",
    Reason.MAILBOX_FULL: "in a week",
    Reason.PORT_CLOSED: "from a computer that may connect to mail servers (port 25)",
    Reason.PROTECTED: "from a computer with a better reputation",
    Reason.SENDER_BLOCKED: "with a sender and a name of the computer that the DNS confirms",
}


@dataclass(frozen=True)
class OutcomeFacts:
    """What became of the mails that were sent."""

    counts: pd.DataFrame  # as `outcomes`
    # Address, how the verdict was wrong, what the mail server said.
    contradicted: list[tuple[str, str, str]]
    contradicted_rows: int
    matched: int  # distinct addresses with a report, among the rows
    unmatched: int


@dataclass(frozen=True)
class CleaningFacts:
    """What cleaning the cells before the check changed."""

    rows: int  # rows with a cleaned cell
    rescued: int  # of these, rows whose cell was malformed as it stood
    sendable: int  # of the rescued rows, those that can be mailed under the policy
    # Name of a repair, an example of such a cell, rows; the most frequent first.
    repairs: list[tuple[str, str, int]]


@dataclass(frozen=True)
class TrendFacts:
    """How the list and its verdicts differ from an earlier audit."""

    counts: Counts  # of the earlier audit
    added: int  # distinct addresses that are only in this audit
    removed: int  # distinct addresses that are only in the earlier one
    changed: int  # distinct addresses with another verdict (or status)
    # Verdict before, verdict now, distinct addresses; the most frequent first.
    moves: list[tuple[str, str, int]]


@dataclass(frozen=True)
class ReportFacts:
    """What a report shows of the counts of a column, which were made with a policy."""

    counts: Counts
    policy: Policy
    column: str
    made_at: datetime  # UTC
    name: str | None = None  # of the list, such as its file's
    # The command that made it, to verify the list again; by default a call of `verify`.
    again: str = ""
    audience: str = "analyst"  # one of `AUDIENCES`: how much a report shows
    outcomes: OutcomeFacts | None = None  # what became of the mails, if bounces are given
    trend: TrendFacts | None = None  # against an earlier audit, if one is given
    origins: ListCounts | None = None  # of the list's other columns: where bad addresses come from
    kept: str = ""  # how long the audit page keeps the clear answers, if the report is made there

    @cached_property
    def sources(self) -> dict[str, int]:
        """Rows by source; empty where the frame does not say."""
        return dict(most_common(self.counts.by("source")))

    @cached_property
    def reasons(self) -> list[tuple[str, str, str, int]]:
        """Of rows that are not valid or not sent: verdict or status, reason, meaning, rows."""
        lines = []
        for (bucket, why), count in most_common(self.counts.by_key(reason_of)):
            lines.append((bucket, why, MEANING.get(why, ""), count))
        return lines

    @cached_property
    def typos(self) -> list[tuple[str, str, int]]:
        """Mistyped domains (or addresses), what was probably meant, rows."""
        typos = most_common(self.counts.typos)[:TOP_TYPOS]
        return [(typed, meant, count) for (typed, meant), count in typos]

    @cached_property
    def cleaning(self) -> CleaningFacts | None:
        """The cleaned rows, and which would have been lost; None if no cell was cleaned."""
        if not self.counts.cleaned:
            return None
        rescued = self.counts.number(attrgetter("is_rescued"))
        sendable = self.counts.number(is_rescued_and_sent)
        repairs = Counter[str]()
        for change, count in self.counts.by("change").items():
            for name in change.split(";"):
                repairs[name] += count
        lines = []
        for name, count in most_common(repairs):
            lines.append((name, EXAMPLES.get(name, ""), count))
        return CleaningFacts(self.counts.cleaned, rescued, sendable, lines)

    @cached_property
    def unanswered(self) -> int:
        """Rows that are unknown since the check gave no clear answer."""
        return self.counts.number(is_unanswered)

    @cached_property
    def domains(self) -> pd.DataFrame:
        """As `by_domain`."""
        return top_domains(add_domains(self.counts.domains), TOP_DOMAINS)

    @cached_property
    def findings(self) -> list[ColumnFinding]:
        """What the list's other columns say of invalid addresses."""
        if self.origins is None:
            return []
        return rank(self.origins, "invalid")

    @property
    def answered_by(self) -> str:
        """What the backends call themselves, such as the sandbox; most have no name."""
        return ", ".join(self.counts.answered_by)

    @property
    def is_check_unknown(self) -> bool:
        """Whether there are verdicts, and nothing says what "valid" means."""
        return not self.counts.validation_types and any(
            self.counts.buckets[verdict] for verdict in Verdict
        )

    @property
    def is_kept(self) -> bool:
        """Whether `verify` keeps the answers in its journal: of a service, and by `smtp`."""
        return ValidationType.SMTP in self.counts.validation_types or SOURCE_REMOTE in self.sources

    @property
    def command(self) -> str:
        """The command for the rows without a clear answer; empty if the check is not known."""
        if self.again and self.is_kept:
            return f"{self.again} --refresh {Verdict.UNKNOWN}"
        if self.again:
            return self.again
        if len(self.counts.validation_types) != 1:
            return ""
        (validation_type,) = self.counts.validation_types
        arguments = [repr(self.column), f"validation_type={validation_type!r}"]
        if SOURCE_REMOTE in self.sources:
            arguments.append("backend=backend")
        if self.is_kept:
            arguments.append(f"refresh={{{str(Verdict.UNKNOWN)!r}}}")
        return f"mailverdict.verify(df, {', '.join(arguments)})"


def is_unanswered(alike: Alike) -> bool:
    return alike.bucket == Verdict.UNKNOWN and alike.why != SEVERAL_ADDRESSES


def is_rescued_and_sent(alike: Alike) -> bool:
    return bool(alike.is_rescued) and alike.action == "send"


def verify_command(file: str, options: Iterable[str]) -> str:
    """The command that verifies a file, to be copied from a report.

    >>> verify_command("my list.csv", ["--type", "smtp"])
    "mailverdict verify 'my list.csv' --type smtp"
    """
    return shlex.join(["mailverdict", "verify", file, *options])


def reason_of(alike: Alike) -> tuple[str, str] | None:
    """Bucket and reason of rows that are not valid, or that something else keeps off.

    The reason is the word of `why`, or the bucket where there is none; whatever the verdict, what
    keeps all rows of a person off the list comes first.
    """
    is_kept_off = alike.action != "send" and alike.cause
    is_open = alike.bucket in (Verdict.VALID, Status.PENDING)
    if is_kept_off and (is_open or alike.cause in WHATEVER_THE_VERDICT):
        return alike.bucket, str(alike.cause)
    if alike.bucket == Verdict.VALID:
        return None
    return alike.bucket, alike.why or alike.bucket


WHATEVER_THE_VERDICT = ("suppressed", "duplicate", "decided", "waiting")
EXAMPLES = {repair.name: show_blanks(repair.before) for repair in REPAIRS} | {
    "suggestion": "ada@gmial.com"
}
T = TypeVar("T", bound=Any)


def most_common(counts: Counter[T]) -> list[tuple[T, int]]:
    """The most frequent first, ties by name: the same however the rows were cut into pieces."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def gather_trend(out: Results, earlier: Results, policy: Policy) -> TrendFacts:
    """Counts of the earlier audit, and how the verdicts of the same addresses changed."""
    counts = Counts(policy)
    counts.add(earlier)
    buckets = [by_address(earlier)["bucket"], by_address(out)["bucket"]]
    both = pd.concat(buckets, axis=1, keys=["before", "now"])
    before = both["before"]
    now = both["now"]
    moved = both[before.notna() & now.notna() & (before != now)]
    top = moved.value_counts().head(TOP_MOVES).reset_index(name="addresses")
    moves = []
    for old, new, count in top.itertuples(index=False, name=None):
        moves.append((str(old), str(new), int(count)))
    return TrendFacts(
        counts,
        added=int(before.isna().sum()),
        removed=int(now.isna().sum()),
        changed=len(moved),
        moves=moves,
    )


def gather_outcomes(out: Results, policy: Policy, bounces: Any) -> OutcomeFacts:
    """Counts and the first contradicted rows."""
    # Few reports need them.
    from .outcomes import (  # noqa: PLC0415
        CONTRADICTIONS,
        actions_of,
        count_outcomes,
        match_outcomes,
    )

    matched = match_outcomes(out, bounces)
    rows = np.flatnonzero(matched.is_contradicted)
    lines = []
    for row in rows[:TOP_CONTRADICTED].tolist():
        address = out.addresses[row].as_py()
        report = matched.shown[matched.keys[row]]
        how = CONTRADICTIONS[matched.verdict[row]]
        lines.append((address, how, report["diagnostic"] or ""))
    counts = count_outcomes(matched, actions_of(out, policy))
    return OutcomeFacts(counts, lines, len(rows), matched.matched, matched.unmatched)
