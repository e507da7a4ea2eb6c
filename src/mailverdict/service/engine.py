"""`VerificationEngine`: verifies addresses with the backend.

Every address gets exactly one outcome.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from enum import StrEnum
from typing import NamedTuple

import pyarrow as pa

from ..backend import Backend, Batch, Deferred, Event, Noticed, Settled
from ..errors import BackendError, ContractError, QuotaExceeded, RateLimited
from ..model.table import table_to_rows
from ..model.verification import Verification
from ..model.words import Reason, Status, ValidationType, Verdict
from ..runs.single import check_address
from ..verdicts import settle_saturated

LOG = logging.getLogger(__name__)
# To construct an enumeration takes ten times as long.
KINDS = {str(kind): kind for kind in ValidationType}
MAX_LOGGED = 100  # different notices of the backend
# Rows that become verifications in one turn of the event loop, and seconds until the next ones:
# requests come first.
PIECE, PAUSE = 100, 0.005


class EngineFailure(StrEnum):
    """Why an address has no verdict; the first two are error codes of the contract."""

    ERROR = "UPSTREAM_ERROR"
    MISMATCH = "UPSTREAM_SCHEMA_MISMATCH"
    SATURATED = "SATURATED"  # the backend refused for now; a later attempt may succeed


FAILURE_MESSAGE = {
    EngineFailure.ERROR: "the verification engine could not be reached or failed",
    EngineFailure.MISMATCH: "the verification engine answered without a usable verdict",
    EngineFailure.SATURATED: "the verification engine is saturated",
}


class CheckOutcome(NamedTuple):
    """The outcome for one address: a verification, or why there is none."""

    email: str
    verification: Verification | None = None
    failure: EngineFailure | None = None


class VerificationEngine:
    """Verifies addresses with a backend. No address is left without an outcome."""

    def __init__(self, backend: Backend, *, check_timeout: float) -> None:
        self.backend = backend
        self.check_timeout = check_timeout
        self.checks: set[asyncio.Timeout] = set()  # the timeouts of the single checks under way
        self.idle = asyncio.Event()
        self.logged: set[str] = set()  # notices of the backend

    async def verify(
        self, emails: Sequence[str], validation_type: str, clients: Sequence[str] | None = None
    ) -> AsyncGenerator[list[CheckOutcome]]:
        """Verify unique addresses, each for a client.

        Each is in exactly one of the lists that are yielded.
        """
        left = dict.fromkeys(emails)
        failure = EngineFailure.MISMATCH  # of addresses that the backend does not answer
        try:
            batch = Batch(pa.array(emails, pa.string()), validation_type, clients=clients)
            async with aclosing(self.backend.verify(batch)) as events:  # type: ignore[type-var]
                async for event in events:
                    if isinstance(event, Noticed):
                        self._log_notice(event.message)
                    outcomes: list[CheckOutcome] = []
                    for number, piece in enumerate(read_event(event, emails)):
                        if number:
                            await asyncio.sleep(PAUSE)
                        outcomes += [outcome for outcome in piece if outcome.email in left]
                    for outcome in outcomes:
                        left.pop(outcome.email, None)
                    if outcomes:
                        yield outcomes
        except BackendError as exc:
            failure = failure_of(exc)
        except Exception:  # a bug in a backend must not become a verdict
            failure = EngineFailure.ERROR
            LOG.exception("the backend failed unexpectedly")
        if left:
            yield [CheckOutcome(email, failure=failure) for email in left]

    def _log_notice(self, message: str) -> None:
        """Log what an operator must know about the resolver or the blacklists.

        Each message once.
        """
        if message not in self.logged and len(self.logged) < MAX_LOGGED:
            self.logged.add(message)
            LOG.warning("%s", message)

    async def check(self, email: str, validation_type: str, client: str = "") -> CheckOutcome:
        """Verify one address within `check_timeout`.

        A timer would cost a `regex` check a third of its time.

        Sessions with mail servers are given to the checks and to the jobs of a client in turn.
        """
        kind = KINDS[validation_type]
        turn = ("check", client)
        try:
            if self.backend.is_free(validation_type):
                return CheckOutcome(email, await check_address(email, kind, self.backend))
            async with self._time_limit():
                verification = await check_address(email, kind, self.backend, client=turn)
                return CheckOutcome(email, verification)
        except TimeoutError:
            LOG.error("a single check was not answered in time")
            failure = EngineFailure.ERROR
        except QuotaExceeded:  # the backend is itself a service, and its quota is used up
            failure = EngineFailure.SATURATED
        except BackendError as exc:
            failure = failure_of(exc)
        except Exception:  # a bug in a backend must not become a verdict
            LOG.exception("the backend failed unexpectedly")
            failure = EngineFailure.ERROR
        return CheckOutcome(email, failure=failure)

    @asynccontextmanager
    async def _time_limit(self) -> AsyncIterator[None]:
        """End a check after `check_timeout`, or earlier when the engine is closed."""
        timeout = asyncio.timeout(self.check_timeout)
        self.checks.add(timeout)
        try:
            async with timeout:
                yield
        finally:
            self.checks.discard(timeout)
            if not self.checks:
                self.idle.set()

    @property
    def checking(self) -> int:
        """Single checks under way."""
        return len(self.checks)

    async def aclose(self) -> None:
        """End the checks under way and close the backend."""
        for timeout in self.checks:
            timeout.reschedule(asyncio.get_running_loop().time())
        if self.checks:
            self.idle.clear()
            await self.idle.wait()
        await self.backend.aclose()


def failure_of(exc: BackendError) -> EngineFailure:
    """Log why a backend gave no verdict, and name the failure."""
    if isinstance(exc, RateLimited):
        return EngineFailure.SATURATED
    if isinstance(exc, ContractError):
        LOG.error("the backend's answer violates the contract: %s", exc)
        return EngineFailure.MISMATCH
    LOG.error("the backend could not answer: %s", exc)
    return EngineFailure.ERROR


def read_event(event: Event, emails: Sequence[str]) -> Iterator[list[CheckOutcome]]:
    """The outcomes in an event, in pieces; most kinds of events have none."""
    if isinstance(event, Deferred):
        yield [CheckOutcome(email, failure=EngineFailure.SATURATED) for email in event.emails]
    if not isinstance(event, Settled):
        return
    if event.positions is None:
        asked = event.rows["email"].to_pylist()
    else:
        asked = [emails[position] for position in event.positions]
    for start in range(0, len(asked), PIECE):
        rows = event.rows.slice(start, PIECE)
        statuses = rows["status"].to_pylist()
        done = iter(table_to_rows(rows))
        outcomes = []
        for email, status in zip(asked[start : start + PIECE], statuses, strict=True):
            outcomes.append(read_row(email, status, done))
        yield outcomes


def read_row(email: str, status: str, done: Iterable[Verification]) -> CheckOutcome:
    """The outcome in one row; a result outside the four verdicts is a failure."""
    if status != Status.DONE:
        return CheckOutcome(email, failure=EngineFailure.ERROR)
    verification = next(iter(done))
    if verification.result not in VERDICTS:
        return CheckOutcome(email, failure=EngineFailure.MISMATCH)
    return CheckOutcome(email, verification)


VERDICTS = frozenset(map(str, Verdict))


def saturated_verification(email: str, validation_type: str, reason: Reason) -> Verification:
    """The verification when our own queue or rate limiter refused: no checks and no flags."""
    return settle_saturated(reason).to_verification(email, validation_type)
