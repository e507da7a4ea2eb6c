"""Everything that a report shows, as plain data; rendering computes nothing more."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd

from ..frames.clean import AFTER_CLEANING, USE_EXPLODE, split_address
from ..frames.columns import result_labels
from ..frames.kinds import read_notes
from ..frames.policy import ACTIONS, BUCKET_MEANING, Policy, decide_rows, decision_labels
from ..model.words import REASON_MEANING, Reason, Status, Verdict
from ..runs.retry import ASK_AGAIN
from .summary import BUCKETS, ERROR_MEANING, FLAGS, MEANING_OF_VALID, addresses_of, buckets, by_domain

__all__ = ["ReportFacts", "gather_facts"]

TOP_DOMAINS, TOP_TYPOS = 15, 20
LONGEST_TYPED = 80  # characters of a mistyped address that are shown
TOP_CONTRADICTED = 20
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
class ReportFacts:
    """The content of a report on one verified column."""

    column: str
    made_at: datetime  # UTC
    rows: int
    validation_types: dict[str, str]  # types used, and what `valid` means for each
    sources: dict[str, int]  # rows by source; empty where the frame does not say
    buckets: dict[str, int]  # rows by verdict, or by status where there is none; always all seven
    policy: str
    actions: dict[str, int]  # rows by action; always all five
    reasons: list[tuple[str, str, int]]  # why rows are not simply valid: reason, its meaning, rows
    retries: list[tuple[str, str, int]]  # unknowns that another verification may decide: reason, when, rows
    typos: list[tuple[str, str, int]]  # mistyped domain (or address), what was probably meant, rows
    cleaned: int  # rows whose verdict is that of a repaired address
    cleanable: int  # rows that `clean` would repair
    several: int  # rows that hold several addresses
    flags: dict[str, int]  # rows by flag that is true
    domains: pd.DataFrame  # as `by_domain`
    outcomes: OutcomeFacts | None = None  # what became of the mails, if bounces are given

    @property
    def addressed(self) -> int:
        """Rows with an address, or with anything else in the cell."""
        return self.rows - self.buckets["missing"]

    @property
    def mailable(self) -> float:
        """Share of the rows with an address that can be mailed under the policy."""
        return self.actions["send"] / self.addressed if self.addressed else 0.0


def gather_facts(
    out: pd.DataFrame,
    column: Hashable,
    policy: Policy,
    now: datetime,
    prefix: str | None = None,
    bounces: Any = None,
) -> ReportFacts:
    """Gather what a report on a verified column shows."""
    labels = decision_labels(out, column, prefix)
    bucket = buckets(out, column, prefix)
    action, why = decide_rows(out, labels, policy)
    note = read_notes(out.attrs).get(str(column), {})
    kinds = validation_types(out, column, prefix, note)
    return ReportFacts(
        column=str(column),
        made_at=now,
        rows=len(out),
        validation_types={kind: MEANING_OF_VALID.get(kind, "") for kind in kinds},  # type: ignore[call-overload]
        sources=counts_of(optional(out, column, prefix, "source")),
        buckets={name: int((bucket == name).sum()) for name in BUCKETS},
        policy=policy.name,
        actions={name: int((action == name).sum()) for name in ACTIONS},
        reasons=list(reasons_not_valid(out, labels, bucket, optional(out, column, prefix, "error"))),
        retries=list(retries(out, labels)),
        typos=list(typos(out, column, labels, prefix)),
        cleaned=count_cleaned(out, column, prefix),
        cleanable=int(why.str.endswith(AFTER_CLEANING).sum()),
        several=int(why.str.endswith(USE_EXPLODE).sum()),
        flags={flag: int(out[labels[flag]].fillna(value=False).astype(bool).sum()) for flag in FLAGS},
        domains=by_domain(out, column, top=TOP_DOMAINS, prefix=prefix),
        outcomes=None if bounces is None else gather_outcomes(out, column, policy, prefix, bounces),
    )


def gather_outcomes(
    out: pd.DataFrame, column: Hashable, policy: Policy, prefix: str | None, bounces: Any
) -> OutcomeFacts:
    """Counts and the first contradicted rows."""
    from .outcomes import CONTRADICTIONS, count_outcomes, match_outcomes  # noqa: PLC0415 - few reports need it

    found = match_outcomes(out, column, bounces, policy=policy, prefix=prefix)
    rows = np.flatnonzero(found.is_contradicted)
    listed = [
        (str(found.keys[row]), CONTRADICTIONS[found.verdict[row]], found.shown[found.keys[row]]["diagnostic"] or "")
        for row in rows[:TOP_CONTRADICTED]
    ]
    return OutcomeFacts(count_outcomes(found), listed, len(rows), found.matched, found.unmatched)


def optional(out: pd.DataFrame, column: Hashable, prefix: str | None, name: str) -> pd.Series[Any] | None:
    """A result column that is not in every set."""
    label = result_labels(out, column, prefix, (name,), must_exist=False)[name]
    return out[label] if label in out.columns else None


def validation_types(out: pd.DataFrame, column: Hashable, prefix: str | None, note: dict[str, Any]) -> list[str]:
    """From the rows where the column is there, else from what `verify` noted on the frame."""
    types = optional(out, column, prefix, "validation_type")
    if types is not None:
        return [str(kind) for kind in types.dropna().unique()]
    return [str(note["validation_type"])] if "validation_type" in note else []


def counts_of(values: pd.Series[Any] | None) -> dict[str, int]:
    if values is None:
        return {}
    return {str(name): int(count) for name, count in values.dropna().astype(object).value_counts().items()}


def reasons_not_valid(
    out: pd.DataFrame, labels: dict[str, Any], bucket: pd.Series[Any], error: pd.Series[Any] | None
) -> Iterator[tuple[str, str, int]]:
    """Each dominant reason with its meaning and rows; error code or bucket where there is no reason."""
    name = bucket.astype(object).reset_index(drop=True)
    why = out[labels["details"]].astype(object).reset_index(drop=True)
    if error is not None:
        why = why.where(why.notna(), error.astype(object).reset_index(drop=True))
    why = why.where(why.notna(), name)[name != Verdict.VALID]
    for reason, count in why.value_counts().items():
        yield str(reason), meaning_of(str(reason)), int(count)


def meaning_of(reason: str) -> str:
    """The meaning of a reason, error code or bucket; empty for a reason that only the service knows."""
    if reason in tuple(Reason):
        return REASON_MEANING[Reason(reason)]
    return ERROR_MEANING.get(reason) or BUCKET_MEANING.get(reason, "")


def retries(out: pd.DataFrame, labels: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Unknowns that another verification, later or from another host, may decide."""
    is_unknown = (out[labels["verdict"]] == Verdict.UNKNOWN) & (out[labels["status"]] == Status.DONE)
    counts = counts_of(out[labels["details"]][is_unknown.to_numpy()])
    for reason, when in RETRY_WHEN.items():
        if counts.get(str(reason)):
            yield str(reason), when, counts[str(reason)]


def typos(
    out: pd.DataFrame, column: Hashable, labels: dict[str, Any], prefix: str | None
) -> Iterator[tuple[str, str, int]]:
    """Mistyped domains and the domains probably meant, the most frequent first; addresses where the domain is right."""
    has = out[labels["suggestion"]].notna().to_numpy()
    typed, meant = (
        texts[has].astype("string") for texts in (addresses_of(out, column, prefix), out[labels["suggestion"]])
    )
    domains = [split_address(texts)["domain"].fillna("") for texts in (typed, meant)]
    differ = (domains[0] != domains[1]).to_numpy(bool)
    pairs = pd.DataFrame(
        {
            "typed": np.where(differ, domains[0], typed.str.slice(0, LONGEST_TYPED)),
            "meant": np.where(differ, domains[1], meant.str.slice(0, LONGEST_TYPED)),
        }
    )
    counted = pairs.value_counts().head(TOP_TYPOS).reset_index(name="rows")
    for wrong, right, count in counted.itertuples(index=False, name=None):
        yield str(wrong), str(right), int(count)


def count_cleaned(out: pd.DataFrame, column: Hashable, prefix: str | None) -> int:
    """Rows whose cleaned address differs from the cell."""
    return int((addresses_of(out, column, prefix).astype("string") != out[column].astype("string")).fillna(False).sum())
