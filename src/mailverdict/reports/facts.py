"""Everything a report says, as plain data; whoever renders it computes nothing."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pandas as pd

from ..frames.clean import split_address
from ..frames.columns import result_labels
from ..frames.kinds import our_notes
from ..frames.policy import ACTIONS, PLAIN_WHY, Policy, decide_rows
from ..model.words import REASON_MEANING, Reason, Status, Verdict
from .summary import BUCKETS, FLAGS, MEANING_OF_VALID, SPOKEN, buckets, by_domain

__all__ = ["ReportFacts", "gather_facts"]

TOP_DOMAINS, TOP_SLIPS = 15, 20
# When asking again is likely to help, by reason.
ASK_AGAIN = {
    Reason.GREYLISTED: "after an hour",
    Reason.TIMEOUT: "after an hour",
    Reason.CONNECTION_DROPPED: "after an hour",
    Reason.THROTTLED: "after an hour",
    Reason.RATE_LIMITED: "after an hour",
    Reason.INCONCLUSIVE: "tomorrow",
    Reason.NO_SMTP_DATA: "tomorrow",
    Reason.MAILBOX_FULL: "in a week",
    Reason.PORT_CLOSED: "from a host whose port 25 is open",
    Reason.PROTECTED: "from a host with a better reputation",
    Reason.SENDER_BLOCKED: "with a HELO name and sender that the DNS confirms",
}


@dataclass(frozen=True)
class ReportFacts:
    """What is said of one verified column.

    Attributes
    ----------
    column : str
        Its name.
    made_at : datetime
        When the report was made, UTC.
    rows : int
        Rows in all.
    validation_types : dict of str to str
        Types used, and what `valid` means for each.
    sources : dict of str to int
        Where answers came from; empty where the frame does not say.
    buckets : dict of str to int
        Rows by verdict, or by status where there is none; always all seven.
    policy : str
        Name of the policy.
    actions : dict of str to int
        Rows by action; always all five.
    why : list of tuple
        Reason, its meaning, rows: why rows are not simply valid.
    ask_again : list of tuple
        Reason, when, rows: unknowns that may be settled later.
    slips : list of tuple
        Mistyped domain, the domain probably meant, rows.
    flags : dict of str to int
        Rows by flag that is true.
    domains : DataFrame
        As `by_domain`.
    """

    column: str
    made_at: datetime
    rows: int
    validation_types: dict[str, str]
    sources: dict[str, int]
    buckets: dict[str, int]
    policy: str
    actions: dict[str, int]
    why: list[tuple[str, str, int]]
    ask_again: list[tuple[str, str, int]]
    slips: list[tuple[str, str, int]]
    flags: dict[str, int]
    domains: pd.DataFrame

    @property
    def mailable(self) -> float:
        """Share of rows with an address that can be mailed under the policy."""
        addressed = self.rows - self.buckets["missing"]
        return self.actions["send"] / addressed if addressed else 0.0


def gather_facts(
    out: pd.DataFrame, column: Hashable, policy: Policy, now: datetime, prefix: str | None = None
) -> ReportFacts:
    """Sum up a verified column for a report."""
    names = ("verdict", "details", "status", "suggestion", *FLAGS)
    labels = result_labels(out, column, prefix, names)
    bucket = buckets(out, column, prefix)
    action, _ = decide_rows(out, labels, policy)
    note = our_notes(out.attrs).get(str(column), {})
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
        why=list(why_not(out, labels, bucket, optional(out, column, prefix, "error"))),
        ask_again=list(ask_again(out, labels)),
        slips=list(slips(out, column, labels)),
        flags={flag: int(out[labels[flag]].fillna(value=False).astype(bool).sum()) for flag in FLAGS},
        domains=by_domain(out, column, top=TOP_DOMAINS, prefix=prefix),
    )


def optional(out: pd.DataFrame, column: Hashable, prefix: str | None, name: str) -> pd.Series[Any] | None:
    """A result column that is not in every set."""
    label = result_labels(out, column, prefix, (name,), must_exist=False)[name]
    return out[label] if label in out.columns else None


def validation_types(out: pd.DataFrame, column: Hashable, prefix: str | None, note: dict[str, Any]) -> list[str]:
    """From the rows where they say it, else from what `verify` noted on the frame."""
    said = optional(out, column, prefix, "validation_type")
    if said is not None:
        return [str(kind) for kind in said.dropna().unique()]
    return [str(note["validation_type"])] if "validation_type" in note else []


def counts_of(values: pd.Series[Any] | None) -> dict[str, int]:
    if values is None:
        return {}
    return {str(name): int(count) for name, count in values.dropna().astype(object).value_counts().items()}


def why_not(
    out: pd.DataFrame, labels: dict[str, Any], bucket: pd.Series[Any], error: pd.Series[Any] | None
) -> Iterator[tuple[str, str, int]]:
    """Why rows are not simply valid: the dominant reason, else the error code, else the bucket."""
    name = bucket.astype(object).reset_index(drop=True)
    why = out[labels["details"]].astype(object).reset_index(drop=True)
    if error is not None:
        why = why.where(why.notna(), error.astype(object).reset_index(drop=True))
    why = why.where(why.notna(), name)[name != Verdict.VALID]
    for reason, count in why.value_counts().items():
        yield str(reason), meaning_of(str(reason)), int(count)


def meaning_of(reason: str) -> str:
    """In words; what a service says beyond our vocabulary has none."""
    if reason in tuple(Reason):
        return REASON_MEANING[Reason(reason)]
    return SPOKEN.get(reason) or PLAIN_WHY.get(reason, "")


def ask_again(out: pd.DataFrame, labels: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Unknowns that another time, or another host, may settle."""
    is_unknown = (out[labels["verdict"]] == Verdict.UNKNOWN) & (out[labels["status"]] == Status.DONE)
    counts = counts_of(out[labels["details"]][is_unknown.to_numpy()])
    for reason, when in ASK_AGAIN.items():
        if counts.get(str(reason)):
            yield str(reason), when, counts[str(reason)]


def slips(out: pd.DataFrame, column: Hashable, labels: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Mistyped domains and what was probably meant, the most frequent first."""
    has = out[labels["suggestion"]].notna().to_numpy()
    pairs = pd.DataFrame(
        {
            "typed": split_address(out[column][has])["domain"].to_numpy(),
            "meant": split_address(out[labels["suggestion"]][has])["domain"].to_numpy(),
        }
    )
    counted = pairs.value_counts().head(TOP_SLIPS).reset_index(name="rows")
    for typed, meant, count in counted.itertuples(index=False, name=None):
        yield str(typed), str(meant), int(count)
