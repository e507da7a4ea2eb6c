"""Submitting addresses in batches that the quota covers, journalled first, never paid twice.

    allowance 100 by the pace, 60 units of quota -> 60 addresses, claimed in the journal -> POST
    -> {"results": [{"job_id": "j1"}, ...]}  Submitted(jobs), the rejected ones Settled
    -> 429, 503, BULK_LIMIT_EXCEEDED         smaller or later (`apply_refusal`), or the `error`
    -> no usable answer                      `resolve_lost_answer`

A submission whose answer is lost (cut off, unreadable, a server error) is not simply repeated. The
quota's `used` before and after shows whether it was counted. If not, the batch is sent
`RESUBMISSIONS` more time, and after the status 503 when the pace allows it; if it was, or if that
is not certain, its addresses end as uncertain and are not sent again by this run. The same batch is
sent with the same Idempotency-Key, also by a later run, since a service whose database is slow may
count the first one later.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from http import HTTPStatus
from itertools import chain
from typing import Any, TypeGuard

from ..backend import (
    GRACE,
    QUOTA_INTERVAL,
    Deferred,
    Event,
    Job,
    Noticed,
    Quota,
    QuotaSeen,
    Settled,
    Submitted,
    Submitting,
    Waiting,
    is_same_day,
)
from ..contract.envelope import BULK_LIMIT, BulkEntry, ErrorEnvelope, SuccessEnvelope, parse_entry
from ..errors import BackendError, ContractError, RateLimited
from ..model.json_fields import require_field
from .api import (
    QUOTA_REQUEST,
    ApiAnswer,
    ApiRequest,
    NoAnswer,
    error_of,
    is_quota_refusal,
    read_quota,
    rejected_row,
    rows_table,
    success_of,
)
from .client import Client
from .pace import Pace

BULK_PATH = "/api/bulk-check-email"
MAX_REPEATS = 2  # of one address that a limiter refused
MAX_LIMITED = 12  # submissions in a row that are answered with 429, before that is an error
MAX_UNAVAILABLE = 6  # the same with 503: about two minutes
MAX_RETRY_AFTER = 900.0  # seconds; if the service asks for a longer wait, its answer is an error
RESUBMISSIONS = 1  # of one batch, and only if the quota shows that it was not counted
GATEWAY_STATUSES = (HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT)
# Error codes after which a submission may have been counted, whatever the HTTP status.
UNCERTAIN_CODES = frozenset(
    {"E1001", "E1004", "E1005", "UPSTREAM_ERROR", "UPSTREAM_SCHEMA_MISMATCH", "INTERNAL_ERROR"}
)


class Submission:
    """The addresses that are still to be submitted (`left`), and the `error` after which none are.

    Addresses that a limiter refused (`refused`) are submitted again after all others, those refused
    twice last. `new_token` gives each batch a name of its own. `lost_batches` are sent first.
    """

    def __init__(
        self,
        client: Client,
        emails: Sequence[str],
        validation_type: str,
        *,
        pace: Pace,
        clock: Callable[[], float],
        new_token: Callable[[], str],
        lost_batches: Sequence[Submitting] = (),
        claim: Callable[[Submitting], tuple[str, ...]] | None = None,
    ) -> None:
        self.client = client
        self.pace = pace
        # Whether a submission that is answered with 429 is sent again by the pace.
        self.is_paced = pace.fixed is None
        # To be sent again as they were.
        self.lost_batches = {lost.emails: lost.token for lost in lost_batches}
        self.left = list(dict.fromkeys(chain(*self.lost_batches, emails)))
        self.validation_type = validation_type
        self.clock = clock
        self.new_token = new_token
        self.claim = claim or (lambda batch: batch.emails)
        self.error: BackendError | None = None
        self.max_batch = BULK_LIMIT  # addresses that the service takes at once
        self.next_max_batch = BULK_LIMIT  # the same for the next batch, by its quota
        self.lost = 0  # submissions in a row whose answer was lost
        self.has_ended = False  # whether the rest was deferred
        self.refused: list[str] = []
        self.refusals: dict[str, int] = {}  # by address
        self.repeats = 0  # addresses that were submitted again

    @property
    def has_work(self) -> bool:
        """Whether another batch is to be sent."""
        return bool(self.left or self.refused) and self.error is None

    @property
    def next_queue(self) -> list[str]:
        """Where the next batch comes from."""
        return self.left or self.refused

    @property
    def is_last_chance(self) -> bool:
        """Whether the next address is not submitted again if it is refused once more."""
        if self.left or not self.refused:
            return False
        return self.refusals[self.refused[0]] >= MAX_REPEATS

    @property
    def next_count(self) -> int:
        """How many addresses the next batch may have.

        Those at their last chance have batches of their own.
        """
        if self.left or self.is_last_chance:
            return len(self.next_queue)
        return bisect_left(self.refused, MAX_REPEATS, key=self.refusals.__getitem__)

    def ask_again(self, email: str) -> bool:
        """Submit a refused address again, if that was not done `MAX_REPEATS` times."""
        count = self.refusals.get(email, 0) + 1
        if count > MAX_REPEATS or self.error is not None or self.has_ended:
            return False
        self.refusals[email] = count
        insort(self.refused, email, key=self.refusals.__getitem__)
        return True

    def allowance(self) -> int:
        """How many addresses the pace allows now."""
        return self.pace.allowance(
            self.clock(), self.next_count, is_last_chance=self.is_last_chance
        )

    async def next_batch(self) -> AsyncGenerator[Event, None]:
        """Send one batch, or defer all that is left if the quota is used up.

        Raises if the quota cannot be read. If the run is cancelled while it is sent, the events of
        the answer are left, and nothing else is sent.
        """
        read_at = self.clock()
        try:
            quota = await request_quota(self.client)
        except RateLimited as exc:
            if not self.send_later(0, exc.retry_after):
                raise
            return
        yield QuotaSeen(quota)
        self.pace.on_quota(quota.remaining - len(self.left))
        most = min(self.max_batch, self.next_max_batch)
        size = batch_size(self.next_count, quota.remaining, most)
        self.next_max_batch = BULK_LIMIT
        if size == 0:
            for event in self.defer_rest("quota", "the quota is used up"):
                yield event
            return
        size = min(size, self.allowance())
        if size == 0:
            return
        emails = self.lost_batch(quota) or tuple(self.next_queue[:size])
        token = self.lost_batches.get(emails) or self.new_token()
        claimed = self.claim(Submitting(token, emails, quota.used))
        if claimed != emails:
            yield self.leave_out(emails, claimed)
            return
        request = ApiRequest(
            "POST",
            BULK_PATH,
            {"emails": list(emails), "validation_type": self.validation_type},
            is_repeatable=False,
            repeats_limited=not self.is_paced,
            key=token,
        )
        answer = await self.client.send(request)
        entries: list[BulkEntry | None] = []
        if isinstance(answer, SuccessEnvelope):
            entries = match_entries(answer.data, emails)
        events: Iterable[Event] = [Deferred((), "rejected", token=token)]
        if any(entries):
            events = self.accept(emails, entries, token)
        elif is_refusal(answer):
            self.apply_refusal(answer, len(emails))
        else:
            why = "the answer to a submission was lost; checking whether it was counted"
            yield Waiting(GRACE, why)
            events = await self.resolve_lost_answer(emails, quota, read_at, token, answer)
        for event in events:
            yield event

    def lost_batch(self, quota: Quota) -> tuple[str, ...] | None:
        """A lost batch, if the queue begins with it and the quota covers it."""
        for lost in self.lost_batches:
            if lost == tuple(self.next_queue[: len(lost)]) and len(lost) <= quota.remaining:
                return lost
        return None

    def leave_out(self, emails: tuple[str, ...], claimed: tuple[str, ...]) -> Event:
        """Leave addresses to another run; the rest of the batch is first in the next one."""
        self.next_queue[: len(emails)] = claimed
        self.lost_batches.pop(emails, None)
        ours = frozenset(claimed)
        others = tuple(email for email in emails if email not in ours)
        return Deferred(others, "elsewhere")

    def defer_rest(self, why: str, words: str) -> Iterator[Event]:
        """Send nothing more; refused addresses keep the answer that they have."""
        rest = tuple(self.left)
        kept = len(self.refused)
        self.left = []
        self.refused = []
        self.has_ended = True
        if rest:
            yield Deferred(rest, why, retry_after=QUOTA_INTERVAL)
        if kept:
            yield Noticed(
                f"{kept:,} addresses that the service's limiter refused "
                f"are not submitted again: {words}"
            )

    def accept(
        self, emails: tuple[str, ...], entries: Sequence[BulkEntry | None], token: str
    ) -> Iterator[Event]:
        """Yield the jobs first, since they are paid for, then what was rejected, then the rest."""
        del self.next_queue[: len(emails)]
        self.lost = 0
        accepted = frozenset(emails)
        for batch in list(self.lost_batches):
            if not accepted.isdisjoint(batch):
                del self.lost_batches[batch]
        now = self.clock()
        jobs = []
        rejected = []
        broken = []
        for email, entry in zip(emails, entries, strict=True):
            if entry is None:
                broken.append(email)
            elif entry.is_queued:
                jobs.append(Job(entry.job_id, email, self.validation_type, now))
            else:
                rejected.append(rejected_row(email, self.validation_type, entry.message))
        self.repeats += sum(1 for job in jobs if job.email in self.refusals)
        yield Submitted(tuple(jobs), token)
        if rejected:
            yield Settled(rows_table(rejected))
        if broken:
            yield Deferred(tuple(broken), "uncertain", token=token)
            yield Noticed(
                f"{len(broken)} of {len(emails)} addresses were accepted without a usable job id; "
                f"{STAYS_PENDING}"
            )

    async def resolve_lost_answer(
        self, emails: tuple[str, ...], before: Quota, read_at: float, token: str, answer: ApiAnswer
    ) -> list[Event]:
        """Find out by the quota whether a submission without a usable answer was counted."""
        if self.client.is_stopped:  # a later run finds out
            raise asyncio.CancelledError
        await asyncio.sleep(GRACE)
        self.lost_batches[emails] = token
        error = lost_error(answer)
        self.lost += 1
        self.error = error if self.lost > RESUBMISSIONS else None
        try:
            after = await request_quota(self.client)
        except BackendError as exc:
            self.error = exc
            reading = f"{error}; and then the quota could not be read"
            return self.defer_uncertain(emails, token, reading)
        if was_counted(before, after) or not is_same_day(read_at, self.clock()):
            reading = f"{error}; the quota's used went from {before.used} to {after.used}"
            return [QuotaSeen(after), *self.defer_uncertain(emails, token, reading)]
        is_later = False
        if is_unavailable(answer):
            is_later = self.send_later(len(emails), answer.retry_after, MAX_UNAVAILABLE)
        if is_later:
            self.error = None
        why = "uncounted" if may_be_handled(answer) else "rejected"
        return [QuotaSeen(after), Deferred((), why, token=token)]

    def defer_uncertain(self, emails: tuple[str, ...], token: str, reading: str) -> list[Event]:
        """Leave addresses pending that may have been paid for."""
        del self.next_queue[: len(emails)]
        notice = f"{reading}: {len(emails)} addresses may have been paid for; {STAYS_PENDING}"
        return [Deferred(emails, "uncertain", token=token), Noticed(notice)]

    def apply_refusal(self, refusal: ErrorEnvelope | NoAnswer, size: int) -> None:
        """Make the next batch smaller, by a limit that the service names, or end submitting."""
        if isinstance(refusal, NoAnswer):
            self.error = refusal.error
        elif is_quota_refusal(refusal):
            remaining = refusal.whole_number("remaining")
            self.next_max_batch = size // 2
            if remaining is not None and 0 <= remaining < size:
                self.next_max_batch = remaining
        elif refusal.code == "BULK_LIMIT_EXCEEDED" and size > 1:
            limit = refusal.whole_number("limit") or size // 2
            self.max_batch = max(1, min(limit, size - 1))
        else:
            is_limited = refusal.status == HTTPStatus.TOO_MANY_REQUESTS
            if not is_limited or not self.send_later(size, refusal.retry_after):
                self.error = error_of(refusal)

    def send_later(self, size: int, retry_after: float | None, most: int = MAX_LIMITED) -> bool:
        """Send a refused request again when the pace allows it.

        False after `most` refusals in a row.

        It was a submission of `size` addresses, or, with 0, the reading of the quota before one.
        """
        if not self.is_paced or self.pace.limited >= most:
            return False
        if retry_after is not None and retry_after > MAX_RETRY_AFTER:
            return False
        self.pace.on_limited(self.clock(), size, retry_after)
        return True


STAYS_PENDING = "they stay pending and are not sent again by this run, nor for a day by a journal"


def is_refusal(answer: ApiAnswer) -> TypeGuard[ErrorEnvelope | NoAnswer]:
    """Whether the service certainly queued and counted nothing: a batch is refused as a whole."""
    if isinstance(answer, NoAnswer):
        return not answer.was_sent
    if not isinstance(answer, ErrorEnvelope) or answer.code in UNCERTAIN_CODES:
        return False
    is_before_work = HTTPStatus.MULTIPLE_CHOICES <= answer.status < HTTPStatus.INTERNAL_SERVER_ERROR
    return is_before_work and answer.status != HTTPStatus.REQUEST_TIMEOUT


def may_be_handled(answer: ApiAnswer) -> bool:
    """Whether the service may still be working on a submission: no answer, or one of a gateway."""
    if isinstance(answer, NoAnswer):
        return True
    return isinstance(answer, ErrorEnvelope) and answer.status in GATEWAY_STATUSES


def is_unavailable(answer: ApiAnswer) -> TypeGuard[ErrorEnvelope]:
    """Whether the service, or a proxy before it, cannot be used now."""
    return isinstance(answer, ErrorEnvelope) and answer.status == HTTPStatus.SERVICE_UNAVAILABLE


def lost_error(answer: ApiAnswer) -> BackendError:
    """The error of an answer without usable entries."""
    if isinstance(answer, SuccessEnvelope):
        message = "the answer to a submission has no usable entry in data.results"
        return ContractError(message, path="data.results")
    return error_of(answer)


def match_entries(data: Any, emails: Sequence[str]) -> list[BulkEntry | None]:
    """The entry of each address, or None if it has no usable entry.

    In the contract entries have the order of the addresses. An answer that is too short, too long
    or in another order is matched by address, so that no paid-for job is lost.
    """
    entries = read_entries(data)
    by_email = {entry.email: entry for entry in entries if entry is not None}
    in_order = entries
    if len(entries) != len(emails):
        in_order = [None] * len(emails)
    asked = frozenset(emails)
    matched: list[BulkEntry | None] = []
    for email, entry in zip(emails, in_order, strict=True):
        if email in by_email:
            matched.append(by_email[email])
        elif entry is not None and entry.email not in asked:  # the service writes it otherwise
            matched.append(entry)
        else:
            matched.append(None)
    return matched


def read_entries(data: Any) -> list[BulkEntry | None]:
    """The entries in their order, None where one cannot be used: it is not as in the contract.

    Nor is the job of an entry used if another entry has the same job id for another address.
    """
    entries = []
    for position, record in enumerate(read_results(data)):
        entries.append(read_entry(record, position))
    jobs = set()
    for entry in entries:
        if entry is not None and entry.is_queued:
            jobs.add((entry.job_id, entry.email))
    uses = Counter(job_id for job_id, _ in jobs)
    usable: list[BulkEntry | None] = []
    for entry in entries:
        if entry is not None and entry.is_queued and uses[entry.job_id] > 1:
            usable.append(None)
        else:
            usable.append(entry)
    return usable


def read_results(data: Any) -> list[Any]:
    """The list of entries; empty if it is missing."""
    try:
        return require_field(data, "results", list, "data")
    except ContractError:
        return []


def read_entry(entry: Any, position: int) -> BulkEntry | None:
    """One entry, or None if it is not as in the contract."""
    try:
        return parse_entry(entry, f"data.results[{position}]")
    except ContractError:
        return None


async def request_quota(client: Client) -> Quota:
    """The quota; an error names the URL."""
    data = success_of(await client.send(QUOTA_REQUEST)).data
    try:
        return read_quota(data)
    except ContractError as exc:
        raise ContractError(f"{client.base_url}: {exc}", path=exc.path) from exc


def batch_size(left: int, remaining: int, max_batch: int = BULK_LIMIT) -> int:
    """Size of the next batch; a batch larger than `remaining` would be refused as a whole.

    >>> batch_size(250, remaining=30)
    30
    """
    return max(0, min(left, remaining, max_batch))


def was_counted(before: Quota, after: Quota) -> bool:
    """Whether a submission whose answer was lost may have been paid for.

    Only an unchanged `used` with an unchanged limit, on the same day, shows that it was not. A
    smaller `used` means that a new day began in between.
    """
    return before.used != after.used or before.daily_limit != after.daily_limit
