"""Single checks in the cluster: by `smtp` a worker answers them, under the lock of the mail servers' owner.

So an API opens no session with a mail server, and the session limit of a mail server includes single checks. The
other types need no mail server: the API answers them itself.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from contextlib import suppress

from ...errors import BackendError
from ...model.verification import parse_payload
from ...model.words import ValidationType
from ..engine import CheckOutcome, EngineFailure, VerificationEngine, failure_of
from ..jobs.worker import STORE_UNAVAILABLE
from ..limiter import SHORTEST_WAIT, RateLimiter
from ..settings import ServiceSettings
from .owners import find_owners
from .store import CHECKS_CHANNEL, AnsweredCheck, SharedStore
from .tasks import TaskQueue

LOG = logging.getLogger(__name__)
LOOK_INTERVAL = 1.0  # seconds between looks for answers whose notification was lost


class CheckQueue:
    """Passes single checks to the workers, and waits for their answers."""

    def __init__(self, store: SharedStore, tasks: TaskQueue, engine: VerificationEngine) -> None:
        self.store = store
        self.tasks = tasks
        self.engine = engine
        self.waiting: dict[str, asyncio.Future[AnsweredCheck]] = {}  # by identifier
        self.wakeup = asyncio.Event()

    async def check(self, email: str, validation_type: str, client: str = "") -> CheckOutcome:
        """The outcome of one address; `SATURATED` if no worker has answered within `check_timeout`.

        A check that cannot be written failed: it has cost its unit, so that it was not refused.
        """
        if validation_type != ValidationType.SMTP:
            return await self.engine.check(email, validation_type, client)
        try:
            async with asyncio.timeout(self.engine.check_timeout):
                owner = (await find_owners(self.engine.backend, [email]))[email]
                if owner is not None:
                    return await self.ask_worker(email, owner)
        except BackendError as exc:  # the resolver cannot be used
            return CheckOutcome(email, failure=failure_of(exc))
        except STORE_UNAVAILABLE as exc:
            self.store.outages.failed(exc)
            return CheckOutcome(email, failure=EngineFailure.ERROR)
        except TimeoutError:
            LOG.error("no worker has answered a single check in time")
            return CheckOutcome(email, failure=EngineFailure.SATURATED)
        return await self.engine.check(email, validation_type, client)  # no mail server would be asked

    async def ask_worker(self, email: str, owner: str) -> CheckOutcome:
        """Write the check, wake a worker, wait for the answer."""
        number = secrets.token_hex(16)
        answered = self.waiting[number] = asyncio.get_running_loop().create_future()
        try:
            await self.store.run(self.store.add_check, number, owner, email, self.engine.check_timeout)
            with self.tasks.reporting():  # workers also find checks without a task themselves
                await self.tasks.defer_ask([owner], is_check=True)
            return read_answer(await answered)
        finally:
            del self.waiting[number]
            with suppress(*STORE_UNAVAILABLE):  # it expires
                await self.store.run(self.store.remove_checks, [number])

    async def can_answer(self, validation_type: str) -> bool:
        """Whether somebody answers single checks of a type at present."""
        if validation_type != ValidationType.SMTP:
            return True
        return await self.store.run(self.store.has_check_worker, validation_type)

    async def run(self) -> None:
        """Read answers when a notification comes, or after `LOOK_INTERVAL`, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.tasks.listen(CHECKS_CHANNEL, self.on_answered))
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_INTERVAL):
                        await self.wakeup.wait()
                self.wakeup.clear()
                if self.waiting:
                    await self.read_answers()

    def on_answered(self, number: str) -> None:
        """Read the answer to a check of this process."""
        if number in self.waiting:
            self.wakeup.set()

    async def read_answers(self) -> None:
        """Pass on the answers that have been written."""
        try:
            for each in await self.store.run(self.store.answered_checks, list(self.waiting)):
                if (answered := self.waiting.get(each.id)) is not None and not answered.done():
                    answered.set_result(each)
        except STORE_UNAVAILABLE as exc:
            self.store.outages.failed(exc)

    def close(self) -> None:
        """End the checks that wait."""
        for number, answered in self.waiting.items():
            if not answered.done():
                answered.set_result(AnsweredCheck(number, "", None, EngineFailure.ERROR))


def read_answer(answer: AnsweredCheck) -> CheckOutcome:
    """The outcome that a worker has written."""
    if answer.verification is None:
        return CheckOutcome(answer.email, failure=EngineFailure(answer.failure or EngineFailure.ERROR))
    return CheckOutcome(answer.email, parse_payload(json.loads(answer.verification)))


class SharedLimiter(RateLimiter):
    """The token buckets of single checks in the database, so that they are exact for any number of APIs.

    The buckets in memory are those that this process saw last; `RateFields` reads them.
    """

    def __init__(self, store: SharedStore, settings: ServiceSettings) -> None:
        super().__init__(settings.rate_limit, settings.rate_burst)
        self.store = store

    async def acquire(self, client: str, cost: int) -> float:
        """Take `cost` tokens, and return 0; or the seconds after which the bucket has them."""
        if not self.rate:
            return 0.0
        is_granted, tokens = await self.store.run(self.store.acquire, client, cost, self.rate, self.burst)
        self.set_tokens(client, tokens, self.clock())
        return 0.0 if is_granted else max((cost - tokens) / self.rate, SHORTEST_WAIT)
