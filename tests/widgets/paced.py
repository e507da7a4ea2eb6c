"""A verification service on loopback that takes its time, so that a run can be watched, stopped and resumed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager

import httpx

import mailverdict as mv
from mailverdict.backend import Batch, Event, Job, Settled
from mailverdict.model.table import SOURCE_LOCAL
from mailverdict.model.verification import Verification
from mailverdict.sandbox.serving import ServiceThread
from tests.doubles.answering_backend import CHECKS, FLAGS, AnsweringBackend, unknown, valid
from tests.doubles.tables import rows_to_table


def gone(email: str, validation_type: str) -> Verification:
    """No such mailbox."""
    checks = {**CHECKS["smtp"], "smtp_rcptto": False, "smtp": False}
    return Verification(
        email,
        validation_type,
        "invalid",
        ("mailbox_not_found",),
        checks,
        reason="SMTP",
        errors=(mv.Fault("SMTP", "550 5.1.1 no such user"),),
        catch_all=False,
        protected=False,
        **FLAGS,
    )


def role(email: str, validation_type: str) -> Verification:
    """It exists, but names a function."""
    flags = {**FLAGS, "role": True}
    return Verification(
        email,
        validation_type,
        "risky",
        ("role",),
        CHECKS["smtp"],
        catch_all=False,
        protected=False,
        **flags,
    )


# Every local part begins with one of these, and a number. A full mailbox is an answer: it is not asked again.
SCRIPT = {"gone": gone, "info": role, "full": unknown("mailbox_full")}


class PacedBackend(AnsweringBackend):
    """Answers one address after the other, by the letters its local part begins with; with None all at once."""

    def __init__(self, pace: float | None) -> None:
        super().__init__()
        self.pace = pace

    async def verify(self, batch: Batch, in_flight: Sequence[Job] = ()) -> AsyncIterator[Event]:
        emails = batch.addresses.to_pylist()
        size = len(emails) if self.pace is None else 1
        for first in range(0, len(emails), size):
            await asyncio.sleep(self.pace or 0)
            rows = [
                self.answer(email, batch.validation_type) for email in emails[first : first + size]
            ]
            yield Settled(rows_to_table(rows, source=SOURCE_LOCAL))

    def answer(self, email: str, validation_type: str) -> Verification:
        """What is known about an address."""
        return SCRIPT.get(email.partition("@")[0].rstrip("0123456789"), valid)(
            email, validation_type
        )


class Cable(httpx.AsyncBaseTransport):
    """What carries requests to a service, until it is pulled out."""

    def __init__(self) -> None:
        self.is_out = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Pass it on over a socket of its own."""
        if self.is_out:
            raise httpx.ConnectError("connection refused", request=request)
        async with httpx.AsyncHTTPTransport(verify=False) as carrier:
            answer = await carrier.handle_async_request(request)
            content = await answer.aread()
        return httpx.Response(answer.status_code, headers=answer.headers, content=content)


@contextmanager
def paced_service(pace: float = 0.03, daily_limit: int = 1_000) -> Iterator[ServiceThread]:
    """Serve for as long as the block lasts."""
    service = ServiceThread(PacedBackend(pace or None), daily_limit=daily_limit)
    try:
        yield service
    finally:
        service.stop()


def paid(service: ServiceThread) -> int:
    """Addresses that the service has counted against its client's quota."""
    return mv.quota(service.url).used
