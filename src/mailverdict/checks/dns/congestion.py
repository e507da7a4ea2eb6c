"""When a DNS query is sent, and when it is sent again: a window of queries in flight per resolver. No I/O, no clock.

A resolver that receives more queries than it can answer drops or refuses some. As TCP does (RFC 5681), the window
grows with the answers, fast at first, and shrinks when queries are lost. Queries are also lost for reasons that have
nothing to do with their number: a weak radio link, domains whose name servers do not work. So a smaller window is
compared with the larger one before it: if it answered less and lost as much, the loss has another cause and the
larger window is restored. The random loss is learned fast while answers are not delayed, and slowly when a queue at the
resolver delays them. Time-outs follow the measured round-trip times (RFC 6298).
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from .wire import Question

# Windows. All sizes are in queries.
INITIAL_WINDOW = 20  # home routers queue at least as many
SMALLEST_WINDOW = 2
BUSY = 10  # in flight; with as many, REFUSED may mean that there were too many
# Growth. A step is the number of windows by which a window grows in a round trip.
DOUBLING = 1.0  # the step at first, until the window reaches a plateau
PLATEAU = 1.25  # times the answers; a doubled window that brings fewer has reached one
FLAT_ROUNDS = 2  # rounds at a plateau that end doubling where loss is random: a single one may be chance
RANDOM_LOSS = 0.02  # share of queries; with more lost at random, `FLAT_ROUNDS` are needed
STEP = 1 / 32  # the step after a loss or a plateau
ROUNDS_PER_PERIOD = 8  # round trips; the step is doubled after a period in which a larger window answered more
SMALLEST_STEP = 1 / 128  # the step after two periods in which it did not
MUCH_LOSS = 0.1  # share of queries; with more lost at random, an overflow is recognised late
CAREFUL_STEP = 1 / 4  # the longest step then; while a queue delays answers it is `STEP`
# A window does not grow while answers take `DELAYED` times as long as the first ones, and `LONG_DELAY` of the longest
# time-out.
DELAYED, LONG_DELAY = 2.0, 0.25
# Loss. Queries sent one after the other form a cohort and are judged together.
COHORT = 32  # queries at least; as many as the window if that is larger
DECREASE = 0.7  # what a smaller window is of the queries in flight, as in CUBIC (RFC 9438 section 4.6)
HARD_DECREASE = 0.4  # the same if most queries of a cohort were lost
TOLERATED = 0.02  # share of queries by which the loss may always exceed the random loss
CHANCE = 2.5  # standard deviations by which the loss of one cohort may exceed it
CLEARLY_LESS = 0.15  # share of queries; a smaller window that loses so much less is kept, even if it answers less
RESTORED = 1.2  # times the queries that were in flight when the loss began: the largest window after a test
MEMORY = 512  # earlier queries that the random loss is estimated from, beside those of the last cohort
QUEUED = 4  # queries waiting at the resolver; with more, loss is probably due to congestion
SLOW_SHARE = 1 / 64  # weight of a cohort in the random loss while so many wait
MAX_RANDOM_LOSS = 0.3  # share of queries; more is never taken for random
TESTED_EVERY = 16  # cohorts; what is taken for random loss is tested again after so many
TESTED_LOSS = 0.05  # share of queries; less is not tested again
# Time.
INITIAL_TIMEOUT = 1.0  # seconds before the first measurement (RFC 6298 section 2.1)
SHORTEST_TIMEOUT = 0.1  # seconds: pauses of an event loop are shorter
BACK_OFF = 1.5  # times the time-out of the query before, for each repeated query about a question
BACK_OFFS = 6  # different time-outs; further queries have the longest of them
JITTER = 0.25  # share of the time-out by which a repeated query is delayed at most
PACING_GAIN = 1.3  # a window is spread over the round-trip time divided by this
DOUBLING_GAIN = 2.0  # the same while the window doubles
PACING_BURST = 8  # queries sent at once
PACING_PAUSE = 0.002  # seconds; timers of event loops are not more precise
# Silence.
SILENT_AFTER = 5  # questions in a row without an answer: other resolvers are preferred
DEAD_AFTER, DEAD_TIMEOUTS = 10, 10  # questions in a row, and time-outs: waiting questions fail without being sent


@dataclass(slots=True, eq=False)
class Query:
    """A question in progress. The caller reads it; only the scheduler changes it."""

    question: Question
    owner: Any = None  # what the caller finds with the query; `LoopClient`: the function to call with the answer
    edns: bool = True
    is_new: bool = True  # not asked before
    attempts: int = 3  # transmissions at most
    lifetime: float = 0.0  # seconds from the first transmission in which an answer is awaited
    sent: int = 0  # transmissions
    first_sent: float = 0.0
    deadline: float = math.inf
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
    cohort: Cohort | None  # None for repeated questions: those about dead domains would count again and again
    identifier: int = -1  # of the message
    channel: Any = None  # the socket that it was sent from; set and read by the caller
    is_open: bool = True  # neither answered nor lost
    is_lost: bool = False


@dataclass(slots=True, eq=False)
class Cohort:
    """Queries sent one after the other, judged together once each was answered or lost."""

    number: int
    started: float
    ended: float = math.inf
    sent: int = 0
    answered: int = 0
    lost: int = 0
    flight: int = 0  # sum over the queries

    @property
    def is_complete(self) -> bool:
        return self.ended < math.inf and self.answered + self.lost >= self.sent

    @property
    def loss(self) -> float:
        return self.lost / self.sent

    @property
    def mean_flight(self) -> float:
        return self.flight / self.sent

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.answered / max(self.ended - self.started, 1e-6)


class Repeat(Enum):
    """How a question is asked again."""

    AT_ONCE = "the same server, in another form"
    ELSEWHERE = "another server, since this one would only repeat its answer"
    LATER = "after a while, since the answer was damaged or there were too many queries"


class RoundTrip:
    """Estimates the round-trip time and the time-out (RFC 6298)."""

    def __init__(self, longest: float) -> None:
        self.longest = longest
        self.shortest = min(SHORTEST_TIMEOUT, longest)
        self.mean = self.deviation = 0.0
        self.smoothed = 0.0  # over more answers than the mean
        self.base_sum, self.base_count = 0.0, 0  # of the first answers
        self.timeout = min(INITIAL_TIMEOUT, longest)

    def add(self, seconds: float, flight: int) -> None:
        """Count an answer. With many in flight each counts less (RFC 7323 appendix G)."""
        if self.base_count < COHORT:
            self.base_sum += seconds
            self.base_count += 1
            self.smoothed = self.base
        else:
            self.smoothed += (seconds - self.smoothed) / 32
        if not self.mean:
            self.mean, self.deviation = seconds, seconds / 2
        else:
            error = abs(seconds - self.mean)
            share = 2 / flight if flight > 8 else 0.25
            # A longer error counts at once, so that the time-out is not too short while a queue grows.
            rising = 0.125 if share < 0.125 and error > self.deviation else share
            self.deviation += (error - self.deviation) * rising
            self.mean += (seconds - self.mean) * (share / 2 if share > 1 / 32 else 1 / 64)
        timeout = self.mean + 4 * self.deviation
        self.timeout = self.shortest if timeout < self.shortest else min(timeout, self.longest)

    @property
    def base(self) -> float:
        """The mean of the first answers, before a queue could form."""
        return self.base_sum / self.base_count if self.base_count else 0.0

    @property
    def is_too_long(self) -> bool:
        """Whether answers take so long that a larger window would only make a queue longer."""
        return self.smoothed > max(DELAYED * self.base, LONG_DELAY * self.longest)

    def back_off(self) -> None:
        """Wait longer after a cohort without any answer."""
        self.timeout = min(self.timeout * 2, self.longest)


class ServerWindow:
    """How many queries may be in flight to one server. All times are seconds of the caller's clock."""

    def __init__(self, limit: int, longest_timeout: float) -> None:
        self.limit, self.longest_timeout = limit, longest_timeout
        self.size = float(min(INITIAL_WINDOW, limit))
        self.in_flight = 0
        self.round_trip = RoundTrip(longest_timeout)
        self.next_send = 0.0  # when the pace allows the next query
        # Growth.
        self.step = DOUBLING
        self._full_at = -math.inf  # when there was last no room: answers to later queries do not make the window grow
        self._begin_growth(0.0)
        # Loss.
        self.random_loss = self.recent_loss = 0.0  # shares of queries
        self._learned = 0  # queries that the random loss was estimated from
        self.cohort = Cohort(0, 0.0)  # that queries are added to
        self._ignored_below = 0  # number of the first cohort after the last change of the window
        self._test = -1  # number of the cohort that shows whether a smaller window is right; negative: there is no test
        self._before: tuple[Cohort, float, float] | None = None  # what led to the test: cohort, window, step
        self._tested_at = 0  # number of the cohort of the last test
        # Silence.
        self.answers = 0
        self.unanswered = 0  # questions in a row whose first query had no answer
        self.silent_since: float | None = None
        self.last_loss = 0.0  # when a query was last lost

    def _begin_growth(self, now: float) -> None:
        """Forget the answers of earlier rounds and periods, which had another window."""
        self._rounds = self._round_answers = self._period_answers = self._flat_rounds = 0
        self._round_started = self._period_started = now
        self._round_rate = 0.0  # answers a second of the best round so far
        self._period = self.size, 0.0  # window, and answers a second, of the last period

    # --- sending ------------------------------------------------------------------------------------

    def has_room(self, now: float) -> bool:
        if self.in_flight >= int(self.size):
            self._full_at = now
            return False
        if now < self.next_send:
            if 2 * self.in_flight >= self.size:
                self._full_at = now
            return False
        return True

    def send(self, query: Query, server: int, now: float) -> Transmission:
        """Count a query as sent."""
        self.in_flight += 1
        cohort = None
        if query.sent == 1 and query.is_new:
            cohort = self.cohort
            if cohort.sent >= max(COHORT, self.size) or not cohort.sent:
                cohort = self._begin_cohort(now)
            cohort.sent += 1
            cohort.flight += self.in_flight
        if self.silent_since is None:
            self.silent_since = now
        self._pace(now)
        return Transmission(query, server, now, self.in_flight, query.sent, cohort)

    def _begin_cohort(self, now: float) -> Cohort:
        last = self.cohort
        if not last.sent:
            last.started = now
            return last
        last.ended = now
        self.cohort = Cohort(last.number + 1, now)
        if last.is_complete:
            self._judge(last, now)
        return self.cohort

    def _pace(self, now: float) -> None:
        """Spread the window over the round-trip time, so that a short queue is not filled at once."""
        interval = self.round_trip.mean / (self.size * (DOUBLING_GAIN if self.step == DOUBLING else PACING_GAIN))
        if interval * PACING_BURST > PACING_PAUSE / 8:
            burst = max(PACING_BURST * interval, PACING_PAUSE)
            self.next_send = max(self.next_send, now - burst) + interval

    # --- outcomes -----------------------------------------------------------------------------------

    def on_answer(self, sent: Transmission, now: float, *, is_refusal: bool = False) -> None:
        """Count an answer, also a late one. A refusal (REFUSED, SERVFAIL) counts as a lost query."""
        self.unanswered = 0
        self.silent_since = now if self.in_flight else None
        cohort = sent.cohort
        self._close(sent)
        if is_refusal:
            if cohort is not None and not sent.is_lost:
                self._count_loss(cohort, now)
            return
        self.answers += 1
        self.round_trip.add(now - sent.sent_at, self.in_flight + 1)
        self._grow(sent, now)
        if cohort is not None:
            cohort.lost -= sent.is_lost  # it was only late
            cohort.answered += 1
            if cohort.ended is not math.inf and cohort.is_complete:
                self._judge(cohort, now)

    def on_loss(self, sent: Transmission, now: float) -> None:
        """Count a query that was not answered in time."""
        self._close(sent)
        sent.is_lost = True
        self.last_loss = now
        if sent.number == 1:
            self.unanswered += 1
        if sent.cohort is not None:
            self._count_loss(sent.cohort, now)

    def forget(self, sent: Transmission, now: float) -> None:
        """Remove a query whose outcome is not known, since its question ended otherwise."""
        if not sent.is_open:
            return
        self._close(sent)
        if (cohort := sent.cohort) is not None:
            cohort.sent -= 1
            cohort.flight -= sent.flight
            if cohort.sent and cohort.is_complete:
                self._judge(cohort, now)

    def _close(self, sent: Transmission) -> None:
        if sent.is_open:
            sent.is_open = False
            self.in_flight -= 1

    def _count_loss(self, cohort: Cohort, now: float) -> None:
        cohort.lost += 1
        if cohort.is_complete or (cohort.lost > COHORT / 2 and cohort.number != self._test):
            self._judge(cohort, now)

    def _grow(self, sent: Transmission, now: float) -> None:
        if self._test >= 0 or sent.sent_at > self._full_at:  # a window that is not used does not grow (RFC 7661)
            return
        self._round_answers += 1
        if sent.sent_at > self._round_started and self._round_answers >= COHORT / 2:
            self._end_round(now)
        if self.size >= self.limit or self.round_trip.is_too_long:
            return
        step = self.step if self.step == SMALLEST_STEP else max(self.step, 1 / self.size)
        if self.random_loss > MUCH_LOSS:  # an overflow is recognised later
            step = min(step, STEP if self._has_queue() else CAREFUL_STEP)
        self.size = min(self.size + step, self.limit)

    def _end_round(self, now: float) -> None:
        """Stop doubling at a plateau; later, grow faster while larger windows answer more."""
        if self.step == DOUBLING:
            rate = self._round_answers / max(now - self._round_started, 1e-6)
            if rate >= PLATEAU * self._round_rate:
                self._round_rate, self._flat_rounds = rate, 0
            else:
                self._flat_rounds += 1
            if self._flat_rounds >= (FLAT_ROUNDS if self.random_loss > RANDOM_LOSS else 1):
                self._slow_down(now)
        self._period_answers += self._round_answers
        self._round_answers, self._round_started = 0, now
        self._rounds += 1
        if self._rounds >= ROUNDS_PER_PERIOD:
            self._end_period(now)

    def _end_period(self, now: float) -> None:
        """Double the step if the answers a second grew at least half as much as the window; else make it smaller."""
        size, rate = self._period
        self._period = self.size, self._period_answers / max(now - self._period_started, 1e-6)
        if self._period[1] >= rate * (1 + self.size / size) / 2:
            self.step = min(2 * max(self.step, STEP), DOUBLING)
        else:
            self.step = STEP if self.step > STEP else SMALLEST_STEP
        self._rounds, self._period_answers, self._period_started = 0, 0, now

    def _slow_down(self, now: float) -> None:
        self.step = STEP
        self._begin_growth(now)

    # --- judging a cohort ---------------------------------------------------------------------------

    def _judge(self, cohort: Cohort, now: float) -> None:
        """Change the window after a cohort."""
        if cohort.number == self._test:
            self._end_test(cohort, now)
            return
        if cohort.number < self._ignored_below or self._test >= 0:
            return
        if cohort.is_complete:
            self.recent_loss += (cohort.loss - self.recent_loss) / 4
        excess = self._has_excess_loss(cohort)
        if cohort.is_complete and not excess:
            self._learn_random_loss(cohort)
        if excess and not cohort.answered and cohort.is_complete:
            self.round_trip.back_off()
        is_due = self.random_loss > TESTED_LOSS and cohort.number - self._tested_at > TESTED_EVERY
        if excess or (is_due and cohort.is_complete and cohort.loss > TESTED_LOSS):
            self._decrease(cohort, now)

    def _has_excess_loss(self, cohort: Cohort) -> bool:
        """Whether this cohort, or the last ones together, lost clearly more than is lost at random."""
        expected = max(self.random_loss, TOLERATED)
        deviation = math.sqrt(expected * (1 - expected) * (1 / cohort.sent + 1 / max(self._learned, COHORT)))
        if cohort.loss > self.random_loss + max(TOLERATED, CHANCE * deviation):
            return True
        return self.recent_loss > self.random_loss + max(TOLERATED, deviation)

    def _learn_random_loss(self, cohort: Cohort) -> None:
        """Update the estimate from a cohort whose loss is taken for random; slowly upwards while a queue grows."""
        self._learned = min(self._learned, MEMORY) + cohort.sent
        share = cohort.sent / self._learned
        if cohort.loss > self.random_loss and self._has_queue():
            share = SLOW_SHARE
        self.random_loss = min(self.random_loss + share * (cohort.loss - self.random_loss), MAX_RANDOM_LOSS)

    def _has_queue(self) -> bool:
        """Whether answers take so much longer than at first that some of the queries in flight wait in a queue.

        As TCP Veno estimates the backlog, to tell loss by congestion from random loss.
        """
        mean, base = self.round_trip.smoothed, self.round_trip.base
        return self.size * (mean - base) > QUEUED * mean

    def _decrease(self, cohort: Cohort, now: float) -> None:
        """Make the window smaller, and begin to test whether that helps."""
        self._before = cohort, self.size, self.step
        factor = HARD_DECREASE if cohort.loss > 0.5 else DECREASE
        reached = min(self.size, cohort.mean_flight)
        self.size = max(reached * factor, float(min(SMALLEST_WINDOW, self.limit)))
        self._slow_down(now)
        self._test = self._ignored_below = self.cohort.number + 1
        self._tested_at = self._test
        self.cohort = Cohort(self._test, 0.0)  # begun by the next query

    def _end_test(self, cohort: Cohort, now: float) -> None:
        """Keep the smaller window if it lost less or answered as much; otherwise restore the larger one."""
        assert self._before is not None
        before, size, step = self._before
        self._test, self._before = -1, None
        self.recent_loss = self.random_loss
        self._ignored_below = self.cohort.number
        self._begin_growth(now)
        if not cohort.answered:
            self.round_trip.back_off()
        chance = math.sqrt(before.loss * (1 - before.loss) / cohort.sent)
        ratio = cohort.mean_flight / before.mean_flight
        is_slower = before.ended < math.inf and cohort.rate < before.rate * (1 + ratio) / 2
        if is_slower and cohort.loss > before.loss - CLEARLY_LESS - 2 * chance:
            self.size, self.step = min(size, RESTORED * before.mean_flight), step
            if self._has_queue():
                known = self.random_loss or cohort.loss
                self.random_loss = min((known + cohort.loss) / 2, MAX_RANDOM_LOSS)
            else:
                self._learn_random_loss(before)
                self._learn_random_loss(cohort)
            self.recent_loss = self.random_loss

    # --- silence ------------------------------------------------------------------------------------

    def is_silent(self) -> bool:
        """Whether the last questions were not answered."""
        return self.unanswered >= SILENT_AFTER

    def is_dead(self) -> bool:
        """Whether nothing was answered for so long that waiting is of no use."""
        return (
            self.unanswered >= DEAD_AFTER
            and self.silent_since is not None
            and self.last_loss - self.silent_since >= DEAD_TIMEOUTS * self.longest_timeout
        )


class QueryScheduler:
    """Decides which query is sent to which server and when, and which questions end without an answer.

    Servers are numbers from 0 on, in the order of preference. The caller sends what `sends` gives, reports what comes
    back, and calls `expire` and `sends` again at `wake_at`.
    """

    def __init__(self, servers: int, *, limit: int, timeout: float, randomness: random.Random) -> None:
        self.windows = [ServerWindow(limit, timeout) for _ in range(servers)]
        self.preferred = 0  # the server that answered last
        self.timeout = timeout
        self._randomness = randomness
        self._waiting: deque[Query] = deque()
        self._repeats: list[tuple[float, int, Query]] = []  # by the time from which they may be sent
        self._expiring: list[tuple[float, int, Query]] = []  # without further transmissions, by deadline
        self._open = [
            [deque[Transmission]() for _ in range(BACK_OFFS)] for _ in range(servers)
        ]  # by number sent before
        self._order = itertools.count()
        self._last_sent = -math.inf

    def add(self, query: Query) -> None:
        """Enqueue a question."""
        self._waiting.append(query)

    def sends(self, now: float) -> Iterator[Transmission]:
        """Yield what is to be sent now."""
        while self._repeats and self._repeats[0][0] <= now:
            query = self._repeats[0][2]
            if not query.is_done:
                server = self._server_for(query, now)
                if server is None:
                    break
                heapq.heappop(self._repeats)
                yield self._send(query, server, now)
            else:
                heapq.heappop(self._repeats)
        waiting = self._waiting
        while waiting:
            query = waiting[0]
            if query.is_done:
                waiting.popleft()
                continue
            server = self._server_for(query, now)
            if server is None:
                return
            waiting.popleft()
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
        allowed = [each % count for each in range(first, first + count) if each % count not in query.excluded]
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
        self._open[server][min(query.sent, BACK_OFFS) - 1].append(sent)
        return sent

    def on_answer(self, sent: Transmission, now: float, *, is_refusal: bool = False) -> None:
        """Count an answer; unless `repeat` is called, its question has ended."""
        self.windows[sent.server].on_answer(sent, now, is_refusal=is_refusal)
        query = sent.query
        query.is_done = True
        query.last_server = sent.server
        if len(query.transmissions) > 1:
            for other in query.transmissions:
                self.windows[other.server].forget(other, now)

    def on_error(self, sent: Transmission, now: float) -> None:
        """Count a query that could not be sent or delivered."""
        sent.query.is_done = True
        sent.query.last_server = sent.server
        for each in sent.query.transmissions:
            self.windows[each.server].forget(each, now)

    def close(self, query: Query, now: float) -> None:
        """End a question whose answer is not needed any more."""
        query.is_done = True
        for each in query.transmissions:
            self.windows[each.server].forget(each, now)

    def repeat(self, query: Query, now: float, how: Repeat) -> bool:
        """Ask again, after an answer without a result; False if the attempts or the servers are used up."""
        if how is Repeat.ELSEWHERE:
            query.excluded |= {query.last_server}
        if query.sent >= query.attempts or len(query.excluded) >= len(self.windows):
            return False
        query.is_done = False
        if how is Repeat.LATER:
            self._push_repeat(query, now)
        else:
            query.last_server -= how is Repeat.AT_ONCE  # the same server comes next
            heapq.heappush(self._repeats, (now, next(self._order), query))
        return True

    def is_refusal_for_load(self, sent: Transmission) -> bool:
        """Whether REFUSED may be due to the queries in flight: the server answers, and many were in flight."""
        return sent.flight >= BUSY and self.windows[sent.server].answers > 0

    def expire(self, now: float) -> list[Query]:
        """Count the queries whose time-out has passed; return the questions that end without an answer."""
        for window, queues in zip(self.windows, self._open, strict=True):
            for number, queue in enumerate(queues):
                timeout = self._timeout_of(window, number)
                while queue and (not queue[0].is_open or queue[0].sent_at + timeout <= now):
                    sent = queue.popleft()
                    if sent.is_open:
                        window.on_loss(sent, now)
                        self._after_loss(sent.query, now)
        ended = []
        while self._expiring and (self._expiring[0][0] <= now or self._expiring[0][2].is_done):
            query = heapq.heappop(self._expiring)[2]
            if not query.is_done:
                ended.append(query)
        if self._is_dead():
            ended += self._give_up(now)
        for query in ended:
            query.is_done = True
        return ended

    def _timeout_of(self, window: ServerWindow, number: int) -> float:
        return min(window.round_trip.timeout * BACK_OFF**number, self.timeout)

    def _after_loss(self, query: Query, now: float) -> None:
        """Ask again, or wait for a late answer."""
        if query.is_done:
            return
        if query.sent < query.attempts:
            self._push_repeat(query, now)
            return
        query.deadline = query.first_sent + query.lifetime
        heapq.heappush(self._expiring, (query.deadline, next(self._order), query))

    def _push_repeat(self, query: Query, now: float) -> None:
        delay = self._randomness.random() * JITTER * self.windows[query.last_server].round_trip.timeout
        heapq.heappush(self._repeats, (now + delay, next(self._order), query))

    def _is_dead(self) -> bool:
        return all(window.is_dead() for window in self.windows)

    def _give_up(self, now: float) -> list[Query]:
        """End the waiting questions of servers that do not answer, but for one that is sent now and then."""
        waiting = [each for each in self._waiting if not each.is_done]
        self._waiting.clear()
        waiting += [each for *_, each in self._repeats if not each.is_done]
        self._repeats.clear()
        if waiting and now - self._last_sent >= self.timeout:
            self._waiting.append(waiting.pop(0))
        return waiting

    def wake_at(self, now: float) -> float:
        """When `expire` and `sends` are due next; infinity if nothing is under way."""
        if len(self._waiting) + len(self._repeats) > 1 and self._is_dead():
            return now
        due = self._overdue_at()
        for heap in (self._expiring, self._repeats):
            while heap and heap[0][2].is_done:
                heapq.heappop(heap)
        if self._expiring:
            due = min(due, self._expiring[0][0])
        if self._repeats:
            at, _, query = self._repeats[0]
            due = min(due, max(at, self._room_at(query, now)))
        if self._waiting:
            due = min(due, self._room_at(self._waiting[0], now))
        return due

    def _overdue_at(self) -> float:
        """When the first time-out of a query in flight passes."""
        due = math.inf
        for window, queues in zip(self.windows, self._open, strict=True):
            for number, queue in enumerate(queues):
                while queue and not queue[0].is_open:
                    queue.popleft()
                if queue:
                    due = min(due, queue[0].sent_at + self._timeout_of(window, number))
        return due

    @property
    def silence(self) -> float:
        """Seconds without an answer after which waiting questions fail."""
        return DEAD_TIMEOUTS * self.timeout

    def unsent(self) -> list[Query]:
        """The questions that wait for their next query."""
        repeats = [query for *_, query in self._repeats]
        return [query for query in (*self._waiting, *repeats) if not query.is_done]

    def _room_at(self, query: Query, now: float) -> float:
        """When the pace allows the next query about a question; infinity if the windows are full."""
        windows = [self.windows[each] for each in self._candidates(query)]
        return min(max(each.next_send, now) if each.in_flight < int(each.size) else math.inf for each in windows)
