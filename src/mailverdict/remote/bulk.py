"""Submitting addresses in batches: sized by the quota, journalled before they are sent, never paid twice.

Decides without doing: `Submission.next_batch` is a generator of steps that whoever drives it
carries out.

What is promised about a submission whose answer is lost (cut, garbled, a server error): it is not
blindly repeated. The quota's `used` before and after tells whether it was counted. If it was not,
the batch is sent `RESUBMISSIONS` more time; if it was, or if that cannot be told, its addresses end
as uncertain and are not sent again by this run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

from ..backend import Deferred, Job, Noticed, Quota, QuotaSeen, Settled, Submitted, Submitting
from ..contract.envelope import BULK_LIMIT, BulkEntry, Failure, Success, parse_entry
from ..errors import BackendError, ContractError
from ..model.json_fields import require_field
from .api import (
    QUOTA_REQUEST,
    Answer,
    Lost,
    Pause,
    Request,
    Steps,
    error_of,
    is_quota_refusal,
    read_quota,
    rejected_row,
    rows_table,
    success_of,
)

__all__ = [
    "GRACE",
    "RESUBMISSIONS",
    "Submission",
    "ask_quota",
    "batch_size",
    "match_entries",
    "was_counted",
]

GRACE = 5.0  # seconds a service gets to finish counting a submission whose answer was lost
RESUBMISSIONS = 1  # of one batch, and only where the quota shows that it was not counted
QUOTA_LOOK = 900.0  # seconds until it makes sense to look at a used-up quota again; its reset is not told
REQUEST_TIMEOUT = 408
# Codes of something that broke on the way, whatever status they come with.
UNSURE_CODES = frozenset({"E1001", "E1004", "E1005", "UPSTREAM_ERROR", "UPSTREAM_SCHEMA_MISMATCH", "INTERNAL_ERROR"})


class Submission:
    """What is left of a batch to submit.

    Parameters
    ----------
    emails : sequence of str
        Unique addresses.
    validation_type : str
        As the contract names it.
    clock, new_token : callable
        Seconds since the epoch; a name for an attempt that no other has.

    Attributes
    ----------
    left : list of str
        Not submitted yet.
    error : BackendError or None
        Why nothing more is submitted.
    """

    def __init__(
        self, emails: Sequence[str], validation_type: str, *, clock: Callable[[], float], new_token: Callable[[], str]
    ) -> None:
        self.left, self.validation_type = list(emails), validation_type
        self.clock, self.new_token = clock, new_token
        self.error: BackendError | None = None
        self.largest = BULK_LIMIT
        self.next_largest: int | None = None
        self.lost = 0

    @property
    def has_work(self) -> bool:
        """Whether another batch is to be sent."""
        return bool(self.left) and self.error is None

    def next_batch(self) -> Steps[None]:
        """Send one batch, or defer everything that is left where the quota is used up.

        Raises
        ------
        BackendError
            If the quota cannot be read; nothing was sent.
        """
        quota = yield from ask_quota()
        largest = self.largest if self.next_largest is None else self.next_largest
        size = batch_size(len(self.left), quota.remaining, largest)
        self.next_largest = None
        if size == 0:
            yield from self.stop_for_quota()
        else:
            yield from self.submit(tuple(self.left[:size]), quota)

    def stop_for_quota(self) -> Steps[None]:
        """What the quota does not cover stays pending."""
        rest, self.left = tuple(self.left), []
        yield Deferred(rest, "quota", retry_after=QUOTA_LOOK)

    def submit(self, emails: tuple[str, ...], before: Quota) -> Steps[None]:
        """Announce the batch, send it, and see what became of it."""
        token = self.new_token()
        yield Submitting(token, emails, before.used)
        body = {"emails": list(emails), "validation_type": self.validation_type}
        answer = yield Request("POST", "/api/bulk-check-email", body, is_repeatable=False)
        assert answer is not None
        entries = match_entries(answer.data, emails) if isinstance(answer, Success) else []
        if any(entries):
            yield from self.accept(emails, entries, token)
        elif is_refusal(answer):
            yield Deferred((), "rejected", token=token)
            self.take_refusal(answer, len(emails))
        else:
            yield from self.look_after(emails, before, token, answer)

    def accept(self, emails: tuple[str, ...], entries: Sequence[BulkEntry | None], token: str) -> Steps[None]:
        """Tell the jobs first: they are paid for. Then what was rejected, then what cannot be polled."""
        self.drop(emails)
        self.lost = 0
        pairs = list(zip(emails, entries, strict=True))
        now = self.clock()
        jobs = tuple(Job(e.job_id, email, self.validation_type, now) for email, e in pairs if e and e.is_queued)
        yield Submitted(jobs, token)
        rejected = [rejected_row(email, self.validation_type, e.message) for email, e in pairs if e and not e.is_queued]
        if rejected:
            yield Settled(rows_table(rejected))
        if broken := tuple(email for email, entry in pairs if entry is None):
            yield Deferred(broken, "uncertain", token=token)
            yield Noticed(f"{len(broken)} addresses were accepted without a usable job id; {STAYS}")

    def look_after(self, emails: tuple[str, ...], before: Quota, token: str, answer: Answer) -> Steps[None]:
        """Find out whether a submission without a usable answer was counted."""
        error = lost_error(answer)
        self.lost += 1
        self.error = error if self.lost > RESUBMISSIONS else None
        yield Pause(GRACE, "the answer to a submission was lost; looking whether it was counted")
        try:
            after = yield from ask_quota()
        except BackendError as exc:
            self.error = exc
            yield from self.give_up_on(emails, token, f"{error}; and then the quota could not be read")
            return
        if was_counted(before, after):
            reading = f"{error}; the quota's used went from {before.used} to {after.used}"
            yield from self.give_up_on(emails, token, reading)
        else:
            yield Deferred((), "rejected", token=token)

    def give_up_on(self, emails: tuple[str, ...], token: str, reading: str) -> Steps[None]:
        """Addresses that may have been paid for, without an answer to show for it."""
        self.drop(emails)
        yield Deferred(emails, "uncertain", token=token)
        yield Noticed(f"{reading}: {len(emails)} addresses may have been paid for; {STAYS}")

    def take_refusal(self, refusal: Failure | Lost, size: int) -> None:
        """Take its word for how much is too much: every refusal makes the batch smaller, or ends the submitting."""
        if isinstance(refusal, Lost):
            self.error = refusal.error
        elif is_quota_refusal(refusal):
            remaining = refusal.whole_number("remaining")
            self.next_largest = remaining if remaining is not None and 0 <= remaining < size else size // 2
        elif refusal.code == "BULK_LIMIT_EXCEEDED" and size > 1:
            limit = refusal.whole_number("limit") or size // 2
            self.largest = max(1, min(limit, size - 1))
        else:
            self.error = error_of(refusal)

    def drop(self, emails: tuple[str, ...]) -> None:
        """Take the first ones off the list."""
        del self.left[: len(emails)]


STAYS = "they stay pending and are not sent again by this run, nor for a day by a journal"


def is_refusal(answer: Answer) -> TypeGuard[Failure | Lost]:
    """Whether nothing was queued or counted, for certain: a refusal is all or nothing."""
    if isinstance(answer, Lost):
        return not answer.was_sent
    if not isinstance(answer, Failure) or answer.code in UNSURE_CODES:
        return False
    return 300 <= answer.status < 500 and answer.status != REQUEST_TIMEOUT


def lost_error(answer: Answer) -> BackendError:
    """Why an answer is of no use."""
    if isinstance(answer, Success):
        return ContractError("the answer to a submission has no usable entry in data.results", path="data.results")
    return error_of(answer)


def match_entries(data: Any, emails: Sequence[str]) -> list[BulkEntry | None]:
    """Find each address's entry; None where there is none that can be used.

    The contract gives one entry per line; an answer that is short, long or in another order is
    matched by address, so that what was paid for is not lost over it.
    """
    entries = [read_entry(each, i) for i, each in enumerate(read_results(data))]
    ids = Counter(entry.job_id for entry in entries if entry and entry.is_queued)
    usable = [entry if entry and not (entry.is_queued and ids[entry.job_id] > 1) else None for entry in entries]
    by_email: Mapping[str, BulkEntry] = {entry.email: entry for entry in usable if entry}
    in_order = usable if len(usable) == len(emails) else [None] * len(emails)
    asked = frozenset(emails)
    return [
        by_email.get(email) or (entry if entry and entry.email not in asked else None)
        for email, entry in zip(emails, in_order, strict=True)
    ]


def read_results(data: Any) -> list[Any]:
    """The list of entries; empty where there is none."""
    try:
        return require_field(data, "results", list, "data")
    except ContractError:
        return []


def read_entry(entry: Any, position: int) -> BulkEntry | None:
    """One entry, or None where it does not say what the contract promises."""
    try:
        return parse_entry(entry, f"data.results[{position}]")
    except ContractError:
        return None


def ask_quota() -> Steps[Quota]:
    """Ask how much is left; tells it as an event and gives it back."""
    answer = yield QUOTA_REQUEST
    quota = read_quota(success_of(answer).data)
    yield QuotaSeen(quota)
    return quota


def batch_size(left: int, remaining: int, largest: int = BULK_LIMIT) -> int:
    """Addresses of the next batch; a batch beyond `remaining` would be refused as a whole.

    >>> batch_size(250, remaining=30)
    30
    """
    return max(0, min(left, remaining, largest))


def was_counted(before: Quota, after: Quota) -> bool:
    """Whether a submission whose answer was lost may have been paid for.

    Only an unchanged `used` under an unchanged limit says no. A smaller one means that a new day
    began in between, which says nothing.
    """
    return (before.used, before.daily_limit) != (after.used, after.daily_limit)
