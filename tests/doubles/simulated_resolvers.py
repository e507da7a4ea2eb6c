"""Resolvers in virtual time: a rate, a queue, random loss, a delay and a limit of queries in flight."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from mailverdict.checks.dns.congestion import (
    INITIAL_WINDOW,
    Query,
    QueryScheduler,
    Repeat,
    Transmission,
)
from mailverdict.checks.dns.retry import Effort
from mailverdict.checks.dns.wire import make_question
from mailverdict.model.settings import LocalSettings

QUESTION = make_question("ada.example", "MX")
LIMIT = 1000  # questions in progress
FOREVER = 100_000.0  # seconds; a simulation that takes longer has no end


@dataclass
class SimulatedResolver:
    """Answers `rate` queries a second, one after the other; those that do not fit into the queue are dropped."""

    rate: float = 1000.0
    queue: int = 100
    loss: float = 0.0  # part of the queries that are lost on the way
    delay: float = 0.01  # seconds there and back
    most_in_flight: int | None = None  # more than these are refused
    dead_from: float = math.inf  # seconds
    dead_until: float = math.inf
    silent_every: int = 0  # of so many questions one is never answered
    free_at: float = 0.0
    queries: int = 0
    dropped: int = 0
    leaving: deque[float] = field(default_factory=deque)  # when each answer is sent

    def ideal_seconds(self, questions: int) -> float:
        """What a client needs that knows the resolver from the beginning and starts as slowly as ours."""
        rate = min(self.rate, LIMIT / self.delay)
        return questions / rate / (1 - self.loss) + math.log2(LIMIT / INITIAL_WINDOW) * self.delay

    def receive(
        self, number: int, now: float, randomness: random.Random
    ) -> tuple[float, bool] | None:
        """The time of the answer, and whether it is a refusal; None: lost."""
        self.queries += 1
        if self.dead_from <= now < self.dead_until or randomness.random() < self.loss:
            return None
        if self.silent_every and number % self.silent_every == 0:
            return None
        arrived = now + self.delay / 2
        backlog = max(0.0, self.free_at - arrived) * self.rate
        while self.leaving and self.leaving[0] <= now:
            self.leaving.popleft()
        if self.most_in_flight is not None and len(self.leaving) >= self.most_in_flight:
            return now + self.delay / 10, True
        if backlog >= self.queue:
            self.dropped += 1
            return None
        self.free_at = max(self.free_at, arrived) + 1 / self.rate
        self.leaving.append(self.free_at + self.delay / 2)
        return self.leaving[-1], False


@dataclass
class SimulatedRun:
    """What came of the questions of one run."""

    seconds: float
    answered: int
    unknown: int
    queries: int
    largest_window: float


class Simulation:
    """Asks as `Resolver.observe_domains` does: `limit` questions at once, the unanswered once more at the end."""

    def __init__(
        self,
        resolvers: Sequence[SimulatedResolver],
        *,
        seed: int,
        limit: int,
        timeout: float,
        attempts: int,
    ) -> None:
        self.resolvers, self.limit, self.timeout, self.attempts = (
            resolvers,
            limit,
            timeout,
            attempts,
        )
        self.randomness = random.Random(seed)
        self.scheduler = QueryScheduler(len(resolvers), limit=limit, timeout=timeout)
        self.arriving: list[tuple[float, int, Transmission, bool]] = []
        self.order = itertools.count()
        self.now = self.ended_at = self.largest_window = 0.0
        self.answered = self.working = 0

    def ask(self, numbers: Sequence[int], *, is_last: bool) -> list[int]:
        """Ask all questions; return those that were not answered."""
        todo, failed = list(reversed(numbers)), []
        while todo or self.working:
            while todo and self.working < self.limit:
                self.working += 1
                self.scheduler.add(self.query(todo.pop(), is_last=is_last))
            self.send()
            due = self.scheduler.wake_at(self.now)
            if self.arriving and self.arriving[0][0] <= due:
                failed += self.receive()
            else:
                assert due < FOREVER, "nothing is under way"
                self.now = max(self.now, due)
                ended = self.scheduler.expire(self.now)
                self.working -= len(ended)
                failed += [query.owner for query in ended]
            self.largest_window = max(
                self.largest_window, *(window.size for window in self.scheduler.windows)
            )
        return failed

    def query(self, number: int, *, is_last: bool) -> Query:
        """A question with the effort of a first or a last attempt."""
        settings = LocalSettings(dns_timeout=self.timeout, dns_attempts=self.attempts)
        effort = Effort.last(settings) if is_last else Effort.brief(settings)
        return Query(
            QUESTION, number, is_new=effort.is_new, attempts=effort.queries, lifetime=effort.seconds
        )

    def send(self) -> None:
        for sent in self.scheduler.sends(self.now):
            result = self.resolvers[sent.server].receive(
                sent.query.owner, self.now, self.randomness
            )
            if result is not None:
                heapq.heappush(self.arriving, (result[0], next(self.order), sent, result[1]))

    def receive(self) -> list[int]:
        """Receive one answer; return its question if that has failed by it."""
        self.now, _, sent, is_refusal = heapq.heappop(self.arriving)
        query = sent.query
        if query.is_done:
            return []
        if is_refusal and self.scheduler.is_refusal_for_load(sent):
            self.scheduler.on_overload(sent, self.now)
            return []
        self.scheduler.on_answer(sent, self.now, is_refusal=is_refusal)
        if is_refusal:
            if self.scheduler.repeat(query, Repeat.ELSEWHERE):
                return []
            self.working -= 1
            return [query.owner]
        self.scheduler.preferred = sent.server
        self.working -= 1
        self.answered += 1
        self.ended_at = self.now
        return []


def simulate(
    resolvers: Sequence[SimulatedResolver],
    questions: int,
    *,
    seed: int = 0,
    limit: int = LIMIT,
    timeout: float = 3.0,
    attempts: int = 3,
) -> SimulatedRun:
    """Ask so many questions."""
    run = Simulation(resolvers, seed=seed, limit=limit, timeout=timeout, attempts=attempts)
    unanswered = run.ask(range(1, questions + 1), is_last=False)
    unknown = run.ask(unanswered, is_last=True)
    queries = sum(each.queries for each in resolvers)
    return SimulatedRun(
        max(run.ended_at, run.now), run.answered, len(unknown), queries, run.largest_window
    )
