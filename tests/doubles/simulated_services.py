"""Services in virtual time, each with a limiter of some kind: what a run loses and costs, and its time against the ideal.

The code that submits and polls is the real one; the services answer without HTTP. The ideal is the time of a client
that knows the limiter, polls as ours does, and sends as early as it can.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from mailverdict.backend import Settled
from mailverdict.contract.envelope import ErrorEnvelope, SuccessEnvelope
from mailverdict.remote.api import ApiAnswer, ApiRequest
from mailverdict.remote.bulk import Submission
from mailverdict.remote.events import EventStream, PollSchedule
from mailverdict.remote.pace import Pace
from tests.doubles.clock import VirtualLoop, run_virtual

PARALLEL = 8
FIRST_POLL = 2.0  # seconds; no outcome is known earlier


@dataclass
class Limiter:
    """Grants tokens, one per address: a bucket, or a number per fixed window; nothing at all between `off` times."""

    rate: float = math.inf  # tokens a second
    burst: float = math.inf
    window: float = 0.0  # seconds; 0: a bucket
    is_whole: bool = False  # whether a batch passes as a whole or not at all
    off: tuple[float, float] = (math.inf, math.inf)
    tokens: float = field(init=False)
    at: float = 0.0

    def __post_init__(self) -> None:
        self.tokens = self.burst

    def refill(self, now: float) -> None:
        if self.window:
            if now // self.window > self.at // self.window:
                self.tokens = self.burst
        elif self.rate < math.inf:
            self.tokens = min(self.burst, self.tokens + (now - self.at) * self.rate)
        self.at = now

    def grant(self, now: float, size: int) -> int:
        """How many of a batch pass."""
        self.refill(now)
        if self.off[0] <= now < self.off[1]:
            return 0
        granted = min(size, int(min(self.tokens, size)))
        if self.is_whole and granted < size:
            return 0
        self.tokens -= granted
        return granted

    def ideal(self, size: int) -> float:
        """The earliest time at which so many addresses can have passed."""
        if self.burst == math.inf:
            return self.off[1] if self.off[0] <= 0 else 0.0
        if self.window:
            return max(0, math.ceil(size / self.burst) - 1) * self.window
        granted, time = min(size, self.burst), 0.0
        if self.off[0] <= 0:
            return self.off[1] + (size - granted) / self.rate
        if granted < size:
            time = (size - granted) / self.rate
        begin, end = self.off
        if time > begin:  # tokens gather while the limiter is off, at most a bucket
            passed = self.burst + begin * self.rate
            left = size - passed - min(self.burst, (end - begin) * self.rate)
            time = end + max(0.0, left / self.rate)
        return time


@dataclass
class Case:
    """A simulated service and a list."""

    kind: str
    size: int
    limiter: Limiter
    latency: float = 0.02  # seconds of a request
    refused_after: float = 0.5  # seconds until a refused job says so
    duration: float = 1.0  # seconds until a job is done, on average
    speed: float = math.inf  # jobs a second that the service works off
    queue: float = math.inf  # jobs that may wait; more are `throttled` after `backoff`
    backoff: float = 720.0
    quota: int = 10**9
    answers_429: bool = False


class SimulatedService:
    """Answers the requests of an `EventStream`, in place of its client."""

    base_url = "http://simulated"

    def __init__(self, case: Case, loop: VirtualLoop, chance: random.Random) -> None:
        self.case, self.loop, self.chance = case, loop, chance
        self.jobs: dict[str, tuple[str, float, str]] = {}  # address, when it ends, how
        self.numbers = count()
        self.used = 0
        self.paid: Counter[str] = Counter()
        self.busy_until = 0.0
        self.is_stopped = False

    def delay_notice(self) -> str:
        return ""

    async def send(self, request: ApiRequest) -> ApiAnswer:
        await asyncio.sleep(self.case.latency * self.chance.uniform(0.5, 1.5))
        if request.path == "/api/quota":
            used, limit = self.used, self.case.quota
            return SuccessEnvelope(
                {"daily_limit": limit, "used": used, "remaining": limit - used}, {}
            )
        if request.body is not None:
            return self.submit(list(request.body["emails"]))
        return SuccessEnvelope(self.poll(request.path.rpartition("/")[2]), {})

    def submit(self, emails: list[str]) -> ApiAnswer:
        case, now = self.case, self.loop.time()
        if len(emails) > case.quota - self.used:
            return ErrorEnvelope("QUOTA_EXCEEDED", "m", 429, {"remaining": case.quota - self.used})
        granted = case.limiter.grant(now, len(emails))
        if case.answers_429 and granted < len(emails):
            case.limiter.tokens += granted
            return ErrorEnvelope("RATE_LIMITED", "m", 429, {}, 1.0)
        self.used += len(emails)
        self.paid.update(emails)
        results = []
        for place, email in enumerate(emails):
            job_id = str(next(self.numbers))
            self.jobs[job_id] = (email, *self.fate(now, is_refused=place >= granted))
            results.append({"email": email, "status": "queued", "message": "", "job_id": job_id})
        return SuccessEnvelope({"results": results}, {})

    def fate(self, now: float, *, is_refused: bool) -> tuple[float, str]:
        case = self.case
        if is_refused:
            return now + case.refused_after * self.chance.uniform(0.5, 1.5), "rate_limited"
        if case.speed == math.inf:
            return now + case.duration * self.chance.uniform(0.5, 1.5), ""
        waiting = max(0.0, self.busy_until - now) * case.speed
        if waiting > case.queue and waiting - case.backoff * case.speed > case.queue:
            return now + case.backoff, "throttled"
        # Others are faster to use the room that is made.
        if waiting > case.queue and self.chance.random() < 0.5:
            return now + case.backoff, "throttled"
        self.busy_until = max(self.busy_until, now) + 1 / case.speed
        return self.busy_until + case.duration, ""

    def poll(self, job_id: str) -> Any:
        email, ends, how = self.jobs[job_id]
        record: dict[str, Any] = {"email": email, "status": "queued", "verification": None}
        if self.loop.time() >= ends:
            reasons = [how] if how else []
            payload = {
                "email": email,
                "validation_type": "mx",
                "result": "unknown" if how else "valid",
            }
            payload |= {
                "details": how or None,
                "reasons": reasons,
                "checks": {},
                "reason": None,
                "errors": None,
            }
            record |= {"status": "done", "verification": payload}
        return {"job_id": job_id, "result": record}


@dataclass
class Result:
    """What came of one simulated run."""

    case: Case
    seconds: float
    ideal: float
    lost: int  # refused, although quota is left
    pending: int  # without any answer, although the quota covers them
    unpaid: int  # refused, and not asked again since no quota was left
    allowed: int
    units: int

    @property
    def ratio(self) -> float:
        return self.seconds / self.ideal

    @property
    def cost(self) -> float:
        return self.units / max(1, self.allowed)


def run_case(
    case: Case, seed: int, new_pace: Callable[[int], Pace] = Pace
) -> tuple[float, dict[str, str], SimulatedService]:
    """Verify the list; gives the seconds, the last reason of each address, and the service."""

    async def main(loop: VirtualLoop) -> tuple[float, dict[str, str], SimulatedService]:
        service = SimulatedService(case, loop, random.Random(seed))
        emails = [f"user{n}@example.org" for n in range(case.size)]
        tokens = count()
        submission = Submission(
            service,
            emails,
            "mx",
            pace=new_pace(case.size),
            clock=loop.wall_clock,
            new_token=lambda: str(next(tokens)),
        )
        stream = EventStream(submission, schedule=PollSchedule(), parallel=PARALLEL)
        outcome: dict[str, str] = {}
        async with aclosing(stream.events(())) as events:
            async for event in events:
                if isinstance(event, Settled):
                    outcome.update(
                        zip(
                            event.rows["email"].to_pylist(),
                            event.rows["reasons"].to_pylist(),
                            strict=True,
                        )
                    )
        return loop.time(), outcome, service

    return run_virtual(main)


class NoPace(Pace):
    """Everything at once."""

    def allowance(self, now: float, left: int, *, is_last_chance: bool = False) -> int:
        return min(100, left)

    def next_time(self, now: float, left: int) -> float:
        return now


def measure(case: Case, seed: int) -> Result:
    allowed = min(case.size, case.quota)
    free = Case(
        case.kind,
        allowed,
        Limiter(),
        latency=case.latency,
        duration=case.duration,
        speed=case.speed,
    )
    fastest, _, _ = run_case(free, seed, NoPace)
    ideal = max(fastest, case.limiter.ideal(allowed) + FIRST_POLL + case.duration)
    # That a queue is full shows only when the service's own attempts are over.
    if case.queue < math.inf:
        ideal += case.backoff
    seconds, outcome, service = run_case(deepcopy(case), seed)
    refused = sum(1 for reasons in outcome.values() if reasons)
    lost = refused if service.used < case.quota else 0
    return Result(
        case,
        seconds,
        ideal,
        lost,
        allowed - len(outcome),
        refused - lost,
        allowed,
        sum(service.paid.values()),
    )


def random_case(chance: random.Random) -> Case:
    """One of many kinds of services."""

    def log(low: float, high: float) -> float:
        return math.exp(chance.uniform(math.log(low), math.log(high)))

    size = int(log(500, 3_000))
    rate = log(1, 200)
    burst = math.ceil(rate * log(1, 30)) + 10
    latency, refused_after, duration = log(0.005, 0.08), log(0.1, 2.5), log(0.2, 6)
    common: dict[str, Any] = {
        "latency": latency,
        "refused_after": refused_after,
        "duration": duration,
    }
    kind = chance.choice(list(KINDS))
    cases: dict[str, Callable[[], Case]] = {
        "unlimited": lambda: Case(kind, size, Limiter(), **common),
        "bucket by address": lambda: Case(kind, size, Limiter(rate, burst), **common),
        "bucket by batch": lambda: Case(kind, size, Limiter(rate, burst, is_whole=True), **common),
        "fixed window": lambda: Case(
            kind, size, Limiter(burst=int(log(50, 1_000)), window=log(10, 300)), **common
        ),
        "daily quota": lambda: Case(
            kind, size, Limiter(rate, burst), quota=int(size * chance.uniform(0.2, 1.3)), **common
        ),
        "slow queue": lambda: Case(kind, min(size, 800), Limiter(), speed=log(5, 100), **common),
        "saturation": lambda: Case(
            kind, size, Limiter(rate, burst, off=(begin, begin + log(5, 300))), **common
        ),
        "full queue": lambda: Case(
            kind, min(size, 600), Limiter(), speed=log(2, 20), queue=log(50, 300), **common
        ),
        "status 429": lambda: Case(
            kind, size, Limiter(rate, max(100, burst), is_whole=True), answers_429=True, **common
        ),
    }
    begin = Limiter(rate, burst).ideal(size) * chance.uniform(0.0, 0.8)
    return cases[kind]()


KINDS = {
    "unlimited": "no limiter",
    "bucket by address": "token bucket, address by address",
    "bucket by batch": "token bucket, a batch as a whole",
    "fixed window": "so many addresses in each window of 10 to 300 seconds",
    "daily quota": "token bucket, and a daily quota below or above the list",
    "slow queue": "no limiter, 5 to 100 addresses a second",
    "saturation": "token bucket; refuses everything for 5 to 300 seconds",
    "full queue": "a queue that is full: `throttled` after 12 minutes",
    "status 429": "token bucket that answers 429 to a submission",
}
