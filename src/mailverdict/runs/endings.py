"""How a run ended: whether most addresses have no verdict for one technical cause, and what helps.

    rows -> count_causes: {"timeout": 80, "undeliverable": 15, "other": 5} -> describe_ending: "80
    of 85 addresses have no verdict, since connections ...; use another host"

Pure functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ..model.table import SOURCE_REMOTE
from ..model.words import Reason, Status, Verdict, count_of

FEWEST = 2  # addresses: a single one shows nothing about the network
MALFORMED = "malformed"
UNDELIVERABLE = "undeliverable"
OTHER = "other"


@dataclass(frozen=True, slots=True)
class TechnicalCause:
    """Why addresses have no verdict although nothing is known against them."""

    what: str  # completes "... have no verdict, since"
    local_remedy: str  # if this machine asked
    remote_remedy: str  # if a service asked
    is_session: bool = False  # only addresses whose domain has a mail server can have it


ANOTHER_HOST = (
    "mailverdict.audit_host() or mailverdict audit-host shows details; use another host, or a "
    "service as backend"
)
DNS = TechnicalCause(
    "the DNS gave no usable answer about their domains",
    "check the network with mailverdict.audit_host() or mailverdict audit-host, or use another "
    "resolver, as LocalBackend(resolver='9.9.9.9') or --resolver 9.9.9.9",
    "ask the operator of the service to check its resolver, then verify again with "
    "refresh={'unknown'} or --refresh unknown",
)
LISTS = TechnicalCause(
    "a DNS blacklist gave no answer",
    "check that its operator accepts questions from your resolver, or verify without it",
    "ask the operator of the service to check its blacklists",
)
PORT = TechnicalCause(
    "no mail server could be connected to (many networks close outgoing connections to port 25)",
    ANOTHER_HOST,
    "ask the operator of the service to check its outgoing connections to port 25",
    is_session=True,
)
SILENT = TechnicalCause(
    "connections to mail servers ended without an answer, as behind a firewall",
    ANOTHER_HOST,
    "ask the operator of the service to check its outgoing connections to port 25",
    is_session=True,
)
REFUSED = TechnicalCause(
    "mail servers refuse this client, whatever the address is",
    "mailverdict.audit_host() or mailverdict audit-host checks PTR record, HELO name and "
    "blacklists; use another host, or a service as backend",
    "ask the operator of the service to check the reputation of its host",
    is_session=True,
)
FULL = TechnicalCause(
    "the queue of the service was full",
    "verify again later; such answers are not reused",
    "verify again later; such answers are not reused",
)
LIMITED = TechnicalCause(
    "the service refused them by its rate limit",
    "verify again later, with fewer addresses at once; such answers are not reused",
    "verify again later, with fewer addresses at once; such answers are not reused",
)
FAILED = TechnicalCause(
    "the service failed",
    "verify again later; the column error_message has the cause",
    "verify again later, or ask its operator; the column error_message has the cause",
)

# By the first reason of an unknown verdict, by the first error code where a type has no reasons, or
# by the status. Greylisting is not a failure: the run itself says when to ask again.
CAUSES: Mapping[str, TechnicalCause] = {
    "DNS": DNS,
    "BLACKLIST": LISTS,
    Reason.PORT_CLOSED: PORT,
    Reason.TIMEOUT: SILENT,
    Reason.CONNECTION_DROPPED: SILENT,
    Reason.NO_SMTP_DATA: SILENT,
    Reason.PROTECTED: REFUSED,
    Reason.SENDER_BLOCKED: REFUSED,
    Reason.THROTTLED: FULL,
    Reason.RATE_LIMITED: LIMITED,
    Status.ERROR: FAILED,
}


def count_causes(rows: pa.Table) -> Counter[str]:
    """Count the settled rows by the key of their cause in `CAUSES`, or by another word.

    `rows` has the columns `status`, `result`, `reasons` and `error`.
    """
    names = ["status", "result", "reasons", "error"]
    texts = pa.table({name: rows[name].cast(pa.string()) for name in names})
    counts: Counter[str] = Counter()
    for group in texts.group_by(names).aggregate([([], "count_all")]).to_pylist():
        if group["status"] in (Status.DONE, Status.ERROR):
            words = [group[name] or "" for name in names]
            counts[cause_of(*words)] += group["count_all"]
    return counts


def cause_of(status: str, result: str, reasons: str, error: str) -> str:
    """The key of one row's cause.

    >>> cause_of("done", "unknown", "timeout;role", "SMTP")
    'timeout'
    """
    if status == Status.ERROR:
        return status
    if result == Verdict.UNKNOWN:
        first_reason, _, _ = reasons.partition(";")
        for key in (error, first_reason):
            if key in CAUSES:
                return key
        return OTHER
    if error == "REGEX":
        return MALFORMED
    return UNDELIVERABLE if error == "DNS" else OTHER


# The service reports these itself: a job that failed, an address that it refused. Other codes are
# defective answers.
REPORTED_ERRORS = frozenset({"ERROR", "REJECTED"})


def count_errors(rows: pa.Table) -> Counter[str]:
    """Count the rows with the status ``error`` by the code of the error.

    `rows` as in `count_causes`.
    """
    is_error = pc.equal(rows["status"].cast(pa.string()), Status.ERROR)
    codes = rows["error"].cast(pa.string()).filter(is_error)
    counts: Counter[str] = Counter()
    for group in pc.value_counts(codes).to_pylist():
        counts[group["values"] or "ERROR"] += group["counts"]
    return counts


def describe_errors(counts: Mapping[str, int]) -> str:
    """Say that a service gave no verdict about some addresses; empty if there are none.

    >>> describe_errors({"ERROR": 2, "CONTRACT": 1}).partition(";")[0]
    'the service gave no verdict about 3 addresses (2 ERROR, 1 CONTRACT)'
    """
    if not counts:
        return ""
    codes = [f"{count:,} {code}" for code, count in Counter(counts).most_common()]
    addresses = count_of(sum(counts.values()), "address")
    return (
        f"the service gave no verdict about {addresses} ({', '.join(codes)}); what it accepted is "
        "counted against the quota all the same; error_message says why, and a call an hour later "
        "asks again"
    )


def describe_ending(counts: Mapping[str, int], source: str, *, unit: str = "addresses") -> str:
    """Say that most addresses have no verdict, for one cause, and the remedy.

    Empty if there is no such cause. Malformed addresses are not counted, and for causes of SMTP
    sessions neither are those whose domain has no mail server. `source` is the backend's; `unit` is
    what `counts` counts.

    >>> describe_ending({"rate_limited": 80, "other": 20}, "remote").partition(",")[0]
    '80 of 100 addresses have no verdict'
    >>> describe_ending({"rate_limited": 20, "other": 80}, "remote")
    ''
    """
    by_cause: Counter[TechnicalCause] = Counter()
    for key, count in counts.items():
        if key in CAUSES:
            by_cause[CAUSES[key]] += count
    if not by_cause:
        return ""
    [(cause, count)] = by_cause.most_common(1)
    base = sum(counts.values()) - counts.get(MALFORMED, 0)
    if cause.is_session:
        base -= counts.get(UNDELIVERABLE, 0)
    if count < FEWEST or 2 * count <= base:
        return ""
    remedy = cause.remote_remedy if source == SOURCE_REMOTE else cause.local_remedy
    return f"{count:,} of {base:,} {unit} have no verdict, since {cause.what}; {remedy}"
