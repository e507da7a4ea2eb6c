"""The service's side of the backend: addresses in, one answer for each, whatever the backend does."""

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
    """Why there is no verdict; the first two are the contract's error codes."""

    ERROR = "UPSTREAM_ERROR"
    MISMATCH = "UPSTREAM_SCHEMA_MISMATCH"
    SATURATED = "SATURATED"  # asked too much; asking again later makes sense


FAILURE_MESSAGE = {
    EngineFailure.ERROR: "the verification engine could not be reached or failed",
    EngineFailure.MISMATCH: "the verification engine answered without a usable verdict",
    EngineFailure.SATURATED: "the verification engine is saturated",
}


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """What the engine says of one address: a verification, or the fault that kept it from one."""

    email: str
    verification: Verification | None = None
    fault: EngineFailure | None = None


class VerificationEngine:
    """Asks a backend, and never leaves an address without an answer.

    Parameters
    ----------
    backend : Backend
        What verifies.
    check_timeout : float
        Seconds that single checks wait.
    """

    def __init__(self, backend: Backend, *, check_timeout: float) -> None:
        self.backend = backend
        self.check_timeout = check_timeout
        self.gathering: dict[str, dict[str, list[asyncio.Future[CheckOutcome]]]] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.checking = 0

    async def answers(self, emails: Sequence[str], validation_type: str) -> AsyncGenerator[list[CheckOutcome]]:
        """Verify unique addresses; each is in exactly one of the lists that come."""
        left = dict.fromkeys(emails)
        fault = EngineFailure.MISMATCH  # what an address that the backend passed over amounts to
        try:
            batch = Batch(pa.array(emails, pa.string()), validation_type)
            async with aclosing(self.backend.verify(batch)) as events:  # type: ignore[type-var]
                async for event in events:
                    found = [each for each in read_event(event, emails) if each.email in left]
                    for each in found:
                        left.pop(each.email, None)
                    if found:
                        yield found
        except RateLimited:
            fault = EngineFailure.SATURATED
        except ContractError as exc:
            LOG.error("the engine does not speak the contract: %s", exc)
        except BackendError as exc:
            fault = EngineFailure.ERROR
            LOG.error("the engine could not answer: %s", exc)
        except Exception:  # whatever it is, it is no verdict on any address
            fault = EngineFailure.ERROR
            LOG.exception("the engine failed")
        if left:
            yield [CheckOutcome(email, fault=fault) for email in left]

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
                aclosing(self.answers(list(waiting), validation_type)) as lists,
            ):
                async for answers in lists:
                    for answer in answers:
                        hand_out(left.pop(answer.email), answer)
        except TimeoutError:
            LOG.error("the engine did not answer %d single checks in time", len(left))
        finally:
            self.checking -= len(waiting)
            for email, futures in left.items():
                hand_out(futures, CheckOutcome(email, fault=EngineFailure.ERROR))

    async def aclose(self) -> None:
        """Stop what is under way and close the backend."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.backend.aclose()


def hand_out(futures: Iterable[asyncio.Future[CheckOutcome]], answer: CheckOutcome) -> None:
    for future in futures:
        if not future.done():
            future.set_result(answer)


def read_event(event: Event, emails: Sequence[str]) -> list[CheckOutcome]:
    """The answers in an event; most events hold none."""
    if isinstance(event, Deferred):
        return [CheckOutcome(email, fault=EngineFailure.SATURATED) for email in event.emails]
    if not isinstance(event, Settled):
        return []
    statuses = event.rows["status"].to_pylist()
    asked = event.rows["email"].to_pylist() if event.positions is None else [emails[i] for i in event.positions]
    done = iter(table_to_rows(event.rows))
    return [read_row(email, status, done) for email, status in zip(asked, statuses, strict=True)]


def read_row(email: str, status: str, done: Iterable[Verification]) -> CheckOutcome:
    """One row; a verdict that is none of the four is no verdict."""
    if status != Status.DONE:
        return CheckOutcome(email, fault=EngineFailure.ERROR)
    verification = next(iter(done))
    if verification.result not in VERDICTS:
        return CheckOutcome(email, fault=EngineFailure.MISMATCH)
    return CheckOutcome(email, verification)


VERDICTS = frozenset(map(str, Verdict))


def saturated_verification(email: str, validation_type: str, reason: Reason) -> Verification:
    """The outcome where our own queue or limiter refused: no check, no flag."""
    decision = settle_saturated(reason)
    return Verification(
        email=email,
        validation_type=validation_type,
        result=decision.result,
        reasons=decision.reasons,
        reason=decision.error,
        errors=decision.errors,
    )
