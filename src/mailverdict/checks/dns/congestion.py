"""When a DNS query is sent, and when it is sent again: a window of queries in flight per resolver.

No I/O, no clock.

A resolver that receives more queries than it can answer drops or refuses some. As in TCP (RFC
5681), the window grows with the answers, fast at first, and shrinks when queries are lost. Queries
are also lost for reasons that have nothing to do with their number: a weak radio link, domains
whose name servers do not work. So the usual loss is measured with windows that are small enough,
the initial one and each that was just made smaller, and only clearly more than that makes the
window smaller. Time-outs follow the measured round-trip times (RFC 6298).
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from .wire import Question

INITIAL_WINDOW = 20  # queries; home routers queue at least as many
COHORT = 64  # queries that are judged together, at least; as many as the window if that is larger
CHANCE = 2.0  # standard deviations by which the loss of a cohort may exceed the usual one
MOST_USUAL = 0.25  # share of queries; more is never taken for usual
# Times the queries that were in flight: the smaller window, as in CUBIC (RFC 9438 section 4.6).
DECREASE = 0.7
GROWTH = 1 / 8  # of the window in a round trip, once queries were lost; before, the window doubles
# A window does not grow while answers take `DELAYED` times as long as the first ones, and
# `LONG_DELAY` of the longest time-out: a queue would only become longer.
DELAYED, LONG_DELAY = 2.0, 0.25
INITIAL_TIMEOUT = 1.0  # seconds before the first measurement (RFC 6298 section 2.1)
SHORTEST_TIMEOUT = 0.1  # seconds: pauses of an event loop are shorter
BACK_OFF = 1.5  # times the time-out of the query before, for each repeated query about a question
PACING_GAIN = 2.0  # a window is spread over the round-trip time divided by this
PACING_PAUSE = 0.002  # seconds; timers of event loops are not more precise
# After so many questions in a row, and a second, without an answer, other resolvers are preferred.
SILENT_AFTER = 5
# After so many of the longest time-outs without an answer, waiting questions fail unsent.
DEAD_TIMEOUTS = 10


@dataclass(slots=True, eq=False)
class Query:
    """A question in progress. The caller reads it; only the scheduler changes it."""

    question: Question
    # What the caller finds with the query; `LoopClient`: the function to call with the answer.
    owner: Any = None
    edns: bool = True
    is_new: bool = True  # not asked before
    attempts: int = 3  # transmissions at most
    lifetime: float = 0.0  # seconds from the first transmission in which an answer is awaited
    sent: int = 0  # transmissions
    first_sent: float = 0.0
    last_server: int = -1
    excluded: frozenset[int] = frozenset()  # servers that would only repeat their answer
    is_done: bool = False
    transmissions: list[Transmission] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Transmission:
    """One query sent to one server."""

    query: Query
    server: int
    sent_at: float
    flight: int  # queries in flight to the server, with this one
    number: int  # 1 for the first query about the question
    # None for repeated questions: those about dead domains would count again and again.
    cohort: Cohort | None
    identifier: int = -1  # of the message
    channel: Any = None  # the socket that it was sent from; set and read by the caller
    is_open: bool = True  # neither answered nor lost
    is_lost: bool = False  # not answered in time, or refused for the load


@dataclass(slots=True, eq=False)
class Cohort:
    """Queries sent one after the other, judged together once each was answered or lost."""

    number: int
    size: int
    sent: int = 0
    flight: int = 0  # sum of the queries in flight, over those sent
    ended: int = 0  # answered or lost
    lost: int = 0


class Repeat(Enum):
    """How a question is asked again."""

    AT_ONCE = "the same server, in another form"
    ELSEWHERE = "another server, since this one would only repeat its answer"
    LATER = "after all that wait, since the answer was damaged or did not come over TCP"


class ServerWindow:
    """How many queries may be in flight to one server.

    All times are seconds of the caller's clock.
    """

    def __init__(self, limit: int, longest_timeout: float) -> None:
        self.limit, self.longest_timeout = limit, longest_timeout
        self.size = float(min(INITIAL_WINDOW, limit))
        self.growth = 1.0  # queries for each answer; with 1 the window doubles in a round trip
        self.in_flight = self.answers = 0
        self.next_send = 0.0  # when the pace allows the next query
        # Time-outs.
        self.round_trip = self.deviation = self.first_round_trip = 0.0
        self.timeout = min(INITIAL_TIMEOUT, longest_timeout)
        # Loss.
        self.cohort = Cohort(0, COHORT)  # that queries are added to
        # Number of the first one since the window was made smaller, which shows the usual loss.
        self.first_cohort = 0
        self.usual = self.cohort  # what was lost in such cohorts
        # Silence.
        self.unanswered = 0  # questions in a row whose first query had no answer
        self.silent_since: float | None = None
        self.last_loss = 0.0  # when a query was last lost

    def has_room(self, now: float) -> bool:
        return self.in_flight < int(self.size) and now >= self.next_send

    def send(self, query: Query, server: int, now: float) -> Transmission:
        """Count a query as sent."""
        self.in_flight += 1
        if self.silent_since is None:
            self.silent_since = now
        # The window is spread over the round trip, so that a short queue is not filled at once.
        self.next_send = max(self.next_send, now - PACING_PAUSE) + self.round_trip / (
            PACING_GAIN * self.size
        )
        cohort = None
        if query.sent == 1 and query.is_new:
            if self.cohort.sent == self.cohort.size:
                self._begin_cohort()
            cohort = self.cohort
            cohort.sent += 1
            cohort.flight += self.in_flight
        return Transmission(query, server, now, self.in_flight, query.sent, cohort)

    def _begin_cohort(self) -> None:
        self.first_round_trip = self.first_round_trip or self.round_trip
        self.cohort = Cohort(self.cohort.number + 1, max(COHORT, int(self.size)))

    def on_answer(self, sent: Transmission, now: float, *, is_refusal: bool = False) -> None:
        """Count an answer, also a late one.

        A refusal (REFUSED, SERVFAIL) counts as a lost query.
        """
        self.unanswered = 0
        if not is_refusal:
            self.answers += 1
            self._measure(now - sent.sent_at)
            self._grow()
            if sent.is_lost and sent.cohort is not None:
                sent.cohort.lost -= 1  # it was only late
        self.close(sent, is_lost=is_refusal)
        self.silent_since = now if self.in_flight else None

    def on_loss(self, sent: Transmission, now: float) -> None:
        """Count a query that was not answered in time."""
        sent.is_lost = True
        self.last_loss = now
        self.unanswered += sent.number == 1
        self.close(sent, is_lost=True)

    def close(self, sent: Transmission, *, is_lost: bool = False) -> None:
        """Await a query no longer: it was answered or lost, or its question ended otherwise."""
        if not sent.is_open:
            return
        sent.is_open = False
        self.in_flight -= 1
        if (cohort := sent.cohort) is not None:
            cohort.ended += 1
            cohort.lost += is_lost
            if cohort.ended == cohort.size:
                self._judge(cohort)

    def _measure(self, seconds: float) -> None:
        """Estimate the round-trip time and the time-out (RFC 6298 section 2)."""
        if not self.round_trip:
            self.round_trip, self.deviation = seconds, seconds / 2
        else:
            self.deviation += (abs(seconds - self.round_trip) - self.deviation) / 4
            self.round_trip += (seconds - self.round_trip) / 8
        # Twice the time at least, since a queue can grow as fast as the window.
        timeout = self.round_trip + max(4 * self.deviation, self.round_trip, SHORTEST_TIMEOUT)
        self.timeout = min(timeout, self.longest_timeout)

    def _grow(self) -> None:
        """Make the window larger.

        It stays if it is not used (RFC 7661), if answers are late, or while its usual loss is
        measured.
        """
        if self.size >= self.limit:
            return
        is_used = 2 * self.in_flight >= self.size
        is_late = self.round_trip > max(
            DELAYED * self.first_round_trip, LONG_DELAY * self.longest_timeout
        )
        if is_used and not is_late and self.cohort.number > self.first_cohort:
            self.size = min(self.size + max(self.growth, 1 / self.size), self.limit)

    def _judge(self, cohort: Cohort) -> None:
        """Make the window smaller if more is lost than usual.

        The loss must exceed the usual one by more than chance (the test of two shares).
        """
        usual = self.usual
        if cohort.number < self.first_cohort or cohort is usual:
            return
        loss, expected = cohort.lost / cohort.size, min(usual.lost / usual.ended, MOST_USUAL)
        pooled = (cohort.lost + usual.lost) / (cohort.size + usual.ended)
        deviation = math.sqrt(pooled * (1 - pooled) * (1 / cohort.size + 1 / usual.ended))
        if cohort.number == self.first_cohort and loss <= MOST_USUAL:
            usual.lost += cohort.lost
            usual.ended += cohort.size
        if loss > expected + CHANCE * deviation:
            in_flight = min(self.size, cohort.flight / cohort.size)
            self.size = max(in_flight * min(DECREASE, 1 - loss), 1.0)
            self.growth = GROWTH
            self._begin_cohort()
            self.first_cohort = self.cohort.number
        if loss == 1.0:
            self.timeout = min(2 * self.timeout, self.longest_timeout)

    def is_silent(self) -> bool:
        """Whether the last questions were not answered.

        That lasts longer than an overloaded server needs to answer again.
        """
        return self._silence() >= min(INITIAL_TIMEOUT, self.longest_timeout)

    def is_dead(self) -> bool:
        """Whether nothing was answered for so long that waiting is of no use."""
        return self._silence() >= DEAD_TIMEOUTS * self.longest_timeout

    def _silence(self) -> float:
        """Seconds from the last answer to the last lost query; 0 after few lost questions."""
        if self.unanswered < SILENT_AFTER or self.silent_since is None:
            return 0.0
        return self.last_loss - self.silent_since


class QueryScheduler:
    """Decides which query is sent to which server and when.

    It also says which questions end without an answer.

    Servers are numbers from 0 on, in the order of preference. The caller sends what `sends` gives,
    reports what comes back, and calls `expire` and `sends` again at `wake_at`.
    """

    def __init__(self, servers: int, *, limit: int, timeout: float) -> None:
        self.windows = [ServerWindow(limit, timeout) for _ in range(servers)]
        self.preferred = 0  # the server that answered last
        self.timeout = timeout
        self._repeated: deque[Query] = deque()  # to be sent before those that wait
        self._waiting: deque[Query] = deque()
        # Queries by the time at which their answer is overdue; a lost one by the time at which its
        # question ends.
        self._timers: list[tuple[float, int, Transmission]] = []
        self._order = itertools.count()
        self._last_sent = -math.inf

    def add(self, query: Query) -> None:
        """Enqueue a question."""
        self._waiting.append(query)

    def sends(self, now: float) -> Iterator[Transmission]:
        """Yield what is to be sent now; what was lost before what is new."""
        for line in (self._repeated, self._waiting):
            while line:
                query = line[0]
                server = None if query.is_done else self._server_for(query, now)
                if server is None and not query.is_done:
                    break
                line.popleft()
                if server is not None:
                    yield self._send(query, server, now)

    def _server_for(self, query: Query, now: float) -> int | None:
        """The server that the next query goes to; None: wait for room."""
        windows = self.windows
        if len(windows) == 1:
            return 0 if windows[0].has_room(now) else None
        return next((each for each in self._candidates(query) if windows[each].has_room(now)), None)

    def _candidates(self, query: Query) -> list[int]:
        """The servers that the next query may go to; a new question waits for the preferred one."""
        windows, count = self.windows, len(self.windows)
        first = self.preferred if query.last_server < 0 else query.last_server + 1
        allowed = [
            each % count
            for each in range(first, first + count)
            if each % count not in query.excluded
        ]
        answering = [each for each in allowed if not windows[each].is_silent()] or allowed
        return answering[:1] if query.last_server < 0 else answering

    def _send(self, query: Query, server: int, now: float) -> Transmission:
        query.sent += 1
        self._last_sent = now
        if query.sent == 1:
            query.first_sent = now
        query.last_server = server
        sent = self.windows[server].send(query, server, now)
        query.transmissions.append(sent)
        self._set_timer(self._overdue_at(sent), sent)
        return sent

    def _overdue_at(self, sent: Transmission) -> float:
        timeout = self.windows[sent.server].timeout * BACK_OFF ** (sent.number - 1)
        return sent.sent_at + min(timeout, self.timeout)

    def _set_timer(self, at: float, sent: Transmission) -> None:
        heapq.heappush(self._timers, (at, next(self._order), sent))

    def on_answer(self, sent: Transmission, now: float, *, is_refusal: bool = False) -> None:
        """Count an answer; unless `repeat` is called, its question has ended."""
        self.windows[sent.server].on_answer(sent, now, is_refusal=is_refusal)
        sent.query.last_server = sent.server
        self.close(sent.query)

    def on_overload(self, sent: Transmission, now: float) -> None:
        """Count a refusal for the load.

        The question is asked again when the answer would be overdue.
        """
        self.windows[sent.server].on_answer(sent, now, is_refusal=True)
        sent.is_lost = True

    def on_error(self, sent: Transmission) -> None:
        """Count a query that could not be sent or delivered."""
        sent.query.last_server = sent.server
        self.close(sent.query)

    def close(self, query: Query) -> None:
        """End a question."""
        query.is_done = True
        for each in query.transmissions:
            self.windows[each.server].close(each)

    def repeat(self, query: Query, how: Repeat) -> bool:
        """Ask again, after an answer without a result.

        False if the attempts or the servers are used up.
        """
        if how is Repeat.ELSEWHERE:
            query.excluded |= {query.last_server}
        if query.sent >= query.attempts or len(query.excluded) >= len(self.windows):
            return False
        query.is_done = False
        query.last_server -= how is Repeat.AT_ONCE  # the same server comes next
        (self._waiting if how is Repeat.LATER else self._repeated).append(query)
        return True

    def is_refusal_for_load(self, sent: Transmission) -> bool:
        """Whether REFUSED may be due to the load.

        So it is if the server answers and many queries were in flight.
        """
        return sent.flight >= INITIAL_WINDOW / 2 and self.windows[sent.server].answers > 0

    def expire(self, now: float) -> list[Query]:
        """Count the queries whose time-out has passed.

        Returns the questions that end without an answer.
        """
        ended = []
        timers = self._timers
        while timers and timers[0][0] <= now:
            sent = heapq.heappop(timers)[2]
            query = sent.query
            if query.is_done or not (sent.is_open or sent.is_lost):
                continue
            if sent.is_open and (due := self._overdue_at(sent)) > now:
                self._set_timer(due, sent)  # the time-out is longer now
                continue
            if sent.is_open:
                self.windows[sent.server].on_loss(sent, now)
            if query.sent < query.attempts:
                self._repeated.append(query)
            elif now < query.first_sent + query.lifetime:
                # Until then a late answer counts.
                self._set_timer(query.first_sent + query.lifetime, sent)
            else:
                query.is_done = True
                ended.append(query)
        return ended + self._give_up(now) if self._is_dead() else ended

    def _is_dead(self) -> bool:
        return all(window.is_dead() for window in self.windows)

    def _give_up(self, now: float) -> list[Query]:
        """End the waiting questions of servers that do not answer.

        All but one, which is sent now and then.
        """
        waiting = [query for query in (*self._repeated, *self._waiting) if not query.is_done]
        self._repeated.clear()
        self._waiting.clear()
        if waiting and now - self._last_sent >= self.timeout:
            self._waiting.append(waiting.pop(0))
        for query in waiting:
            query.is_done = True
        return waiting

    def in_progress(self) -> list[Query]:
        """All questions without an answer."""
        sent = (each.query for *_, each in self._timers)
        return [
            query
            for query in dict.fromkeys((*self._repeated, *self._waiting, *sent))
            if not query.is_done
        ]

    def wake_at(self, now: float) -> float:
        """When `expire` and `sends` are due next; infinity if nothing is under way."""
        timers = self._timers
        while timers and timers[0][2].query.is_done:
            heapq.heappop(timers)
        due = timers[0][0] if timers else math.inf
        for line in (self._repeated, self._waiting):
            while line and line[0].is_done:
                line.popleft()
            if line:
                due = min(due, self._room_at(line[0], now))
        return now if len(self._waiting) + len(self._repeated) > 1 and self._is_dead() else due

    def _room_at(self, query: Query, now: float) -> float:
        """When the pace allows the next query about a question; infinity: the windows are full."""
        windows = [self.windows[each] for each in self._candidates(query)]
        return min(
            max(each.next_send, now) if each.in_flight < int(each.size) else math.inf
            for each in windows
        )

    @property
    def silence(self) -> float:
        """Seconds without an answer after which waiting questions fail."""
        return DEAD_TIMEOUTS * self.timeout
