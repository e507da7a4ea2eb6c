"""Everything that a report shows, as plain data; rendering computes nothing more."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd

from ..frames.clean import AFTER_CLEANING, USE_EXPLODE, split_address
from ..frames.columns import ACTIONS
from ..frames.policy import BUCKET_MEANING, Policy, decide_rows
from ..frames.verified import VerifiedColumn
from ..model.words import REASON_MEANING, Reason, Status, Verdict
from ..runs.retry import ASK_AGAIN
from .summary import BUCKETS, ERROR_MEANING, FLAGS, MEANING_OF_VALID, addresses_of, buckets, count_domains

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


def gather_facts(out: VerifiedColumn, policy: Policy, now: datetime, bounces: Any = None) -> ReportFacts:
    """Gather what a report on a verified column shows."""
    bucket = buckets(out)
    action, why = decide_rows(out, policy)
    return ReportFacts(
        column=str(out.column),
        made_at=now,
        rows=len(bucket),
        validation_types={kind: MEANING_OF_VALID.get(kind, "") for kind in validation_types(out)},  # type: ignore[call-overload]
        sources=counts_of(out.get("source")),
        buckets={name: int((bucket == name).sum()) for name in BUCKETS},
        policy=policy.name,
        actions={name: int((action == name).sum()) for name in ACTIONS},
        reasons=list(reasons_not_valid(out, bucket)),
        retries=list(retries(out)),
        typos=list(typos(out)),
        cleaned=count_cleaned(out),
        cleanable=int(why.str.endswith(AFTER_CLEANING).sum()),
        several=int(why.str.endswith(USE_EXPLODE).sum()),
        flags={flag: int(out[flag].fillna(value=False).astype(bool).sum()) for flag in FLAGS},
        domains=count_domains(out, TOP_DOMAINS),
        outcomes=None if bounces is None else gather_outcomes(out, policy, bounces),
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


def reasons_not_valid(out: VerifiedColumn, bucket: pd.Series[Any]) -> Iterator[tuple[str, str, int]]:
    """Each dominant reason with its meaning and rows; error code or bucket where there is no reason."""
    name, why, error = bucket.astype(object), out["details"].astype(object), out.get("error")
    if error is not None:
        why = why.where(why.notna(), error.astype(object))
    why = why.where(why.notna(), name)[name != Verdict.VALID]
    for reason, count in why.value_counts().items():
        yield str(reason), meaning_of(str(reason)), int(count)


def meaning_of(reason: str) -> str:
    """The meaning of a reason, error code or bucket; empty for a reason that only the service knows."""
    if reason in tuple(Reason):
        return REASON_MEANING[Reason(reason)]
    return ERROR_MEANING.get(reason) or BUCKET_MEANING.get(reason, "")


def retries(out: VerifiedColumn) -> Iterator[tuple[str, str, int]]:
    """Unknowns that another verification, later or from another host, may decide."""
    counts = counts_of(out["details"][(out["verdict"] == Verdict.UNKNOWN) & (out["status"] == Status.DONE)])
    for reason, when in RETRY_WHEN.items():
        if counts.get(str(reason)):
            yield str(reason), when, counts[str(reason)]


def typos(out: VerifiedColumn) -> Iterator[tuple[str, str, int]]:
    """Mistyped domains and the domains probably meant, the most frequent first; addresses where the domain is right."""
    suggestion = out["suggestion"]
    has = suggestion.notna()
    typed, meant = (texts[has].astype("string") for texts in (addresses_of(out), suggestion))
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


def count_cleaned(out: VerifiedColumn) -> int:
    """Rows whose cleaned address differs from the cell."""
    return int((addresses_of(out) != out.texts()).fillna(value=False).sum())
