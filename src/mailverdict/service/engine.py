"""`VerificationEngine`: verifies addresses with the backend; every address gets exactly one outcome."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from ..backend import Backend, Batch, Deferred, Event, Settled
from ..errors import BackendError, ContractError, RateLimited
from ..model.table import table_to_rows
from ..model.verification import Verification
from ..model.words import Reason, Status, Verdict
from ..verdicts import settle_saturated

__all__ = ["CheckOutcome", "EngineFailure", "VerificationEngine", "saturated_verification"]

LOG = logging.getLogger(__name__)


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


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The outcome for one address: a verification, or why there is none."""

    email: str
    verification: Verification | None = None
    failure: EngineFailure | None = None


class VerificationEngine:
    """Verifies addresses with a backend. No address is left without an outcome."""

    def __init__(self, backend: Backend, *, check_timeout: float) -> None:
        self.backend = backend
        self.check_timeout = check_timeout
        self.gathering: dict[str, dict[str, list[asyncio.Future[CheckOutcome]]]] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.checking = 0

    async def verify(self, emails: Sequence[str], validation_type: str) -> AsyncGenerator[list[CheckOutcome]]:
        """Verify unique addresses; each is in exactly one of the lists that are yielded."""
        left = dict.fromkeys(emails)
        failure = EngineFailure.MISMATCH  # of addresses that the backend does not answer
        try:
            batch = Batch(pa.array(emails, pa.string()), validation_type)
            async with aclosing(self.backend.verify(batch)) as events:  # type: ignore[type-var]
                async for event in events:
                    outcomes = [each for each in read_event(event, emails) if each.email in left]
                    for each in outcomes:
                        left.pop(each.email, None)
                    if outcomes:
                        yield outcomes
        except RateLimited:
            failure = EngineFailure.SATURATED
        except ContractError as exc:
            LOG.error("the backend's service broke the contract: %s", exc)
        except BackendError as exc:
            failure = EngineFailure.ERROR
            LOG.error("the backend failed: %s", exc)
        except Exception:  # a bug in a backend must not become a verdict
            failure = EngineFailure.ERROR
            LOG.exception("the backend failed unexpectedly")
        if left:
            yield [CheckOutcome(email, failure=failure) for email in left]

    async def check(self, email: str, validation_type: str) -> CheckOutcome:
        """Verify one address, together with the others that are asked at the same moment."""
        loop = asyncio.get_running_loop()
        if not self.gathering:
            loop.call_soon(self.start)
        future: asyncio.Future[CheckOutcome] = loop.create_future()
        self.gathering.setdefault(validation_type, {}).setdefault(email, []).append(future)
        return await future

    def start(self) -> None:
        """Begin a batch of each type that was asked."""
        gathered, self.gathering = self.gathering, {}
        for validation_type, waiting in gathered.items():
            task = asyncio.get_running_loop().create_task(self.check_all(validation_type, waiting))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def check_all(self, validation_type: str, waiting: dict[str, list[asyncio.Future[CheckOutcome]]]) -> None:
        """One batch of single checks; who waits too long is told that there was no answer."""
        self.checking += len(waiting)
        left = dict(waiting)
        try:
            async with (
                asyncio.timeout(self.check_timeout),
                aclosing(self.verify(list(waiting), validation_type)) as lists,
            ):
                async for answers in lists:
                    for answer in answers:
                        hand_out(left.pop(answer.email), answer)
        except TimeoutError:
            LOG.error("the engine did not answer %d single checks in time", len(left))
        finally:
            self.checking -= len(waiting)
            for email, futures in left.items():
                hand_out(futures, CheckOutcome(email, failure=EngineFailure.ERROR))

    async def aclose(self) -> None:
        """Stop the checks that are running, and close the backend."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.backend.aclose()


def hand_out(futures: Iterable[asyncio.Future[CheckOutcome]], answer: CheckOutcome) -> None:
    for future in futures:
        if not future.done():
            future.set_result(answer)


def read_event(event: Event, emails: Sequence[str]) -> list[CheckOutcome]:
    """The outcomes in an event; most kinds of events have none."""
    if isinstance(event, Deferred):
        return [CheckOutcome(email, failure=EngineFailure.SATURATED) for email in event.emails]
    if not isinstance(event, Settled):
        return []
    statuses = event.rows["status"].to_pylist()
    asked = event.rows["email"].to_pylist() if event.positions is None else [emails[i] for i in event.positions]
    done = iter(table_to_rows(event.rows))
    return [read_row(email, status, done) for email, status in zip(asked, statuses, strict=True)]


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
    decision = settle_saturated(reason)
    return Verification(
        email=email,
        validation_type=validation_type,
        result=decision.result,
        reasons=decision.reasons,
        reason=decision.error,
        errors=decision.errors,
    )
