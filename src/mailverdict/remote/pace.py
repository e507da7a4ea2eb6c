"""How fast addresses are submitted to a service (`Pace`), and when any request is sent (`Gate`).

No I/O; times are parameters. A service does not announce its limit, and its limiter's burst hides
it: the first batches all pass, then every address is refused, and paid for. So the number of
addresses without an outcome is bounded: from the start, and then by the number that have passed, as
in the slow start of TCP. After a refusal nothing is sent but a few addresses as a trial. What was
accepted between two refusals, when the limiter had nothing left both times, is its limit. From
there the pace follows a cubic curve in time, as in RFC 9438: quickly towards the limit, slowly past
it, and then faster, since the limit may have been raised or measured too low.

    before a refusal    at most `window` addresses without an outcome, more with each that passes
    after it            nothing but trials of a few addresses, after growing waits (`on_refused`)
    a trial has passed  `measure`: 300 addresses accepted in 60 seconds are a limit of 5 a second
    from then on        4.5 a second, growing by the curve (`rate`), until the next refusal

The gate is about requests, whatever they ask for. A proxy before a service, as nginx with
``limit_req``, counts readings of the quota and polls as well as submissions, and answers 429 or
503. It may grant one in a second, without a burst. So all requests of a client pass one gate. It
learns the least time between two accepted requests, and sends the next one after a share of it,
since a refused request costs little. Where refusals do not depend on the pace, some repeated
request is accepted at once, so that the least time becomes shorter and shorter.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from ..backend import KnownPace
from ..contract.envelope import BULK_LIMIT
from ..errors import SettingsError

SAMPLE = 10  # jobs of a batch that must have passed before the whole batch counts as passed
# Seconds after which a job that is still queued counts as passed: limiters refuse within seconds.
QUEUED_FOR = 3.5
MAX_WINDOW = 2_000.0  # addresses without an outcome
SHARE_AT_RISK = 0.5  # of all addresses that may be without an outcome while the limit is unknown
FIRST_SHARE = 1 / 3  # the same from the start, if the quota covers them twice
MIN_FIRST_RISK = 200.0  # addresses
MAX_FIRST_RISK = 300.0
SMALL_BATCH = 50  # addresses; no smaller batch is made to fill what is left of the window
# A batch is what the pace allows in this time: small batches fit into small bursts.
BATCH_SECONDS = 1.0
START_BELOW = 0.9  # of the measured limit, after a refusal
TIME_TO_LIMIT = 20.0  # seconds from there to the measured limit
DECREASE = 0.7  # of the pace, after a refusal that shows no limit
MIN_INTERVAL = 1.0  # seconds between two refusals that show the limit
TRIAL = 5  # addresses
# Seconds until the next trial: a share of the time without success.
WAIT_SHARE = 0.25
MIN_WAIT = 1.0
MAX_WAIT = 300.0
THROTTLED_SHARE = 0.1  # of the time until `throttled`: the service itself has tried for 12 minutes
# Seconds without success after which nothing more is sent; longer than a limit by the hour.
STOP_AFTER = 4_500.0
USUAL_DELAY = 2.5  # seconds from a submission to its first outcomes, until it is measured
MEMORY = 7 * 86_400.0  # seconds for which a pace is remembered
# An address that is not submitted again is risked after so many times the longest wait so far.
LAST_WAIT = 1.2
MIN_RATE = 0.01  # addresses a second


@dataclass(slots=True)
class SentBatch:
    """A batch that was submitted, and what is known of its jobs."""

    at: float  # seconds since the epoch
    size: int
    # Number of the decrease before it; an earlier batch shows nothing about the present pace.
    epoch: int
    is_trial: bool = False
    open: int = 0  # jobs without an outcome
    passed: int = 0
    refused: int = 0
    is_ended: bool = False

    def __post_init__(self) -> None:
        """All jobs are open."""
        self.open = self.size


@dataclass(slots=True)
class Pace:
    """The pace of one run.

    `allowance` is asked before each submission; `on_sent`, `on_passed`, `on_refused` and
    `on_abandoned` report what became of it. `total` is the number of addresses of the run. With
    `fixed`, addresses a second or infinity, the pace is kept whatever the service answers.
    """

    total: int
    known: KnownPace | None = None
    fixed: float | None = None
    limit: float | None = None  # addresses a second when it was measured; None until then
    measured_at: float = 0.0  # when the pace began to grow from it
    window: float = float(BULK_LIMIT)  # addresses without an outcome while the limit is not known
    delay: float = USUAL_DELAY
    outstanding: int = 0
    passed: int = 0  # addresses that no limiter refused
    epoch: int = 0
    credit: float = float(BULK_LIMIT)
    credit_at: float | None = None
    empty_at: float | None = None  # when the limiter had nothing left
    accepted: int = 0  # addresses sent since then that were not refused
    refused_at: float = -math.inf  # when the last refused address was sent
    blocked_at: float | None = None  # since when nothing but trials is sent
    trial_at: float = 0.0
    trials_open: int = 0
    sent_at: float = 0.0
    longest_block: float = 0.0  # seconds until a trial passed, at most
    largest_passed: float = 1.0  # size of a batch since the last refusal
    max_size: int = BULK_LIMIT  # addresses of a batch, after answers with status 429
    limited: int = 0  # submissions in a row that were answered with 429
    not_before: float = 0.0  # when the next submission may be sent, after such an answer

    def start(self, now: float) -> None:
        """Begin with what is known of the service."""
        self.credit_at = now
        self.measured_at = now
        if self.fixed is not None:
            self.limit = self.fixed
            self.credit = min(self.fixed * BATCH_SECONDS, float(BULK_LIMIT))
        elif self.known is None or now - self.known.at > MEMORY:
            self.known = None
        elif self.known.limit is not None:
            self.limit = self.known.limit
        else:
            self.window = min(max(self.window, self.known.window), MAX_WINDOW)

    # What may be sent.

    def allowance(self, now: float, left: int, *, is_last_chance: bool = False) -> int:
        """How many of `left` addresses may be submitted now.

        With 0, wait until `next_time` or for an outcome.
        """
        if self.credit_at is None:
            self.start(now)
        if now < self.not_before:
            return 0
        if self.blocked_at is not None:
            trial = self.trial_allowance(now, self.blocked_at, is_last_chance=is_last_chance)
            return min(trial, left)
        if is_last_chance and self.fixed is None:
            return min(left, self.safe_size(now))
        self.earn(now)
        size = self.batch_size(now, left)
        room = self.room(now)
        if room < min(size, SMALL_BATCH) or self.credit < size:
            return 0
        return min(size, room)

    def trial_allowance(self, now: float, blocked_at: float, *, is_last_chance: bool) -> int:
        """How many addresses a trial may have now, while everything is refused."""
        if self.trials_open or now < self.trial_at:
            return 0
        if not is_last_chance:
            return self.trial_size
        if now < blocked_at + LAST_WAIT * self.longest_block:
            return 0
        return 1

    def safe_size(self, now: float) -> int:
        """How many addresses pass as certainly as can be: half the pace, and no outcome is open."""
        if self.outstanding:
            return 0
        if self.empty_at is None:
            return self.trial_size
        rate = self.limit or self.window / self.delay
        earned = rate / 2 * (now - max(self.sent_at, self.empty_at, self.refused_at))
        return int(min(earned, 2 * self.largest_passed, float(BULK_LIMIT)))

    @property
    def first_risk(self) -> float:
        """Addresses that may be without an outcome while nothing is known of the limit."""
        return min(MAX_FIRST_RISK, max(MIN_FIRST_RISK, self.total * FIRST_SHARE))

    @property
    def trial_size(self) -> int:
        return max(1, min(TRIAL, self.total // 200))

    def batch_size(self, now: float, left: int) -> int:
        wanted = min(self.rate(now) * BATCH_SECONDS, float(self.max_size), self.open_limit(now))
        return min(left, max(1, int(wanted)))

    def open_limit(self, now: float) -> float:
        """How many addresses may be without an outcome."""
        if self.fixed is not None:
            return math.inf
        if self.limit is None:
            return self.window
        return max(1.0, self.rate(now) * (1.5 * self.delay + 2 * BATCH_SECONDS))

    def room(self, now: float) -> int:
        """How many more addresses may be without an outcome."""
        return int(min(self.open_limit(now) - self.outstanding, MAX_WINDOW))

    def rate(self, now: float) -> float:
        """The present pace in addresses a second; infinity while only the window bounds it."""
        if self.fixed is not None:
            return self.fixed
        if self.limit is None:
            return math.inf
        share_of_time = (now - self.measured_at) / TIME_TO_LIMIT
        growth = 1.0 + (1.0 - START_BELOW) * (share_of_time - 1.0) ** 3
        return max(MIN_RATE, self.limit * growth)

    def earn(self, now: float) -> None:
        """Add the credit of the time since the last call."""
        assert self.credit_at is not None
        rate = self.rate(now)
        if rate == math.inf:
            self.credit = math.inf
        else:
            before = min(self.credit, float(BULK_LIMIT))
            earned = (now - self.credit_at) * rate
            most = max(1.0, rate * BATCH_SECONDS)
            self.credit = min(most, before + earned)
        self.credit_at = now

    def next_time(self, now: float, left: int) -> float:
        """When `allowance` may be above 0 without another outcome; infinity if it needs one."""
        if now < self.not_before:
            return self.not_before
        if self.blocked_at is not None and self.trials_open:
            return math.inf
        if self.blocked_at is not None:
            return max(now, self.trial_at)
        if self.credit_at is None:
            return now
        self.earn(now)
        size = self.batch_size(now, left)
        if self.room(now) < min(size, SMALL_BATCH):
            return math.inf
        return now + max(0.0, size - self.credit) / self.rate(now)

    def speed(self, now: float) -> float | None:
        """The present pace for people: addresses a second; None if it is not limited."""
        if self.blocked_at is not None or now < self.not_before:
            return 0.0
        if self.limit is None and self.epoch:
            return self.window / self.delay
        rate = self.rate(now)
        return None if rate == math.inf else rate

    def has_given_up(self, now: float) -> bool:
        """Whether nothing has passed for so long that the run ends."""
        return self.blocked_at is not None and now - self.blocked_at > STOP_AFTER

    def seconds_left(self, now: float, left: int) -> float | None:
        """Seconds until `left` addresses are submitted at the present pace.

        None if that is not known.
        """
        if self.blocked_at is not None:
            return None
        speed = self.rate(now)
        if self.limit is None:
            speed = self.window / self.delay
        return None if speed == math.inf else left / speed

    def known_pace(self, now: float) -> KnownPace | None:
        """What a later run should know."""
        if self.fixed is not None:
            return None
        return KnownPace(self.limit, self.window, now)

    # Outcomes of what was sent.

    def on_sent(self, now: float, size: int) -> SentBatch:
        """Jobs were accepted."""
        sent = SentBatch(now, size, self.epoch, is_trial=self.blocked_at is not None)
        if self.limited:
            self.limited = 0
        elif size == self.max_size:
            self.max_size = min(BULK_LIMIT, 2 * size)
        self.sent_at = now
        self.outstanding += size
        self.accepted += size
        self.credit -= size
        self.trials_open += sent.is_trial
        return sent

    def on_passed(self, sent: SentBatch, now: float) -> None:
        """A job has certainly passed the limiter.

        After some of a batch the rest counts as passed, too.
        """
        sent.passed += 1
        self.close(sent, 1)
        if sent.open and not sent.refused and sent.passed >= SAMPLE:
            self.close(sent, sent.open)
        if not sent.open:
            self.end_batch(sent, now)

    def on_abandoned(self, sent: SentBatch, now: float) -> None:
        """A job is not polled any more, and it is not known whether a limiter refused it."""
        self.close(sent, 1)
        if not sent.open:
            self.end_batch(sent, now)

    def on_refused(self, sent: SentBatch, now: float, *, is_throttled: bool = False) -> None:
        """A job ended as `rate_limited` or `throttled`."""
        sent.refused += 1
        self.close(sent, 1)
        if self.fixed is not None:
            # What is left may be what was just refused.
            self.not_before = max(self.not_before, now + MIN_WAIT)
            return
        if self.empty_at is None or sent.at > self.empty_at:
            self.accepted -= 1
            self.refused_at = max(self.refused_at, sent.at)
        if sent.epoch != self.epoch:
            return
        at_least = THROTTLED_SHARE * (now - sent.at) if is_throttled else 0.0
        if self.blocked_at is None:
            self.blocked_at = now
            self.trial_at = now + at_least
            self.trials_open = 0
        elif sent.is_trial and sent.refused == 1:
            self.close(sent, sent.open)
            self.trials_open -= 1
            wait = max(MIN_WAIT, WAIT_SHARE * (now - self.blocked_at))
            self.trial_at = now + max(at_least, min(wait, MAX_WAIT))

    def close(self, sent: SentBatch, jobs: int) -> None:
        """So many jobs fewer without an outcome."""
        jobs = min(jobs, sent.open)
        sent.open -= jobs
        self.outstanding -= jobs

    def end_batch(self, sent: SentBatch, now: float) -> None:
        """Every job of a batch has an outcome, or counts as passed."""
        if sent.is_ended:
            return
        sent.is_ended = True
        self.delay += (now - sent.at - self.delay) / 4
        if sent.refused or sent.epoch != self.epoch:
            return
        if sent.is_trial and self.blocked_at is not None:
            self.resume(now)
            return
        self.passed += sent.size
        if self.epoch:
            self.largest_passed = max(self.largest_passed, float(sent.size))
        most = MAX_WINDOW
        knows_window = self.known is not None and self.known.limit is None
        if self.limit is None and not knows_window:
            most = max(self.first_risk, min(float(self.passed), self.total * SHARE_AT_RISK))
        self.window = max(self.window, min(self.window + sent.size, most, MAX_WINDOW))

    def resume(self, now: float) -> None:
        """A trial has passed: go on a little below the limit, or look for it by a small window."""
        assert self.blocked_at is not None
        self.longest_block = max(self.longest_block, now - self.blocked_at)
        self.measure(self.blocked_at)
        self.blocked_at = None
        self.trials_open = 0
        self.window = float(max(2 * self.trial_size, min(20, self.total // 50)))
        self.begin_epoch(now)

    def measure(self, now: float) -> None:
        """The limit, by what was accepted between two times when the limiter had nothing left."""
        if self.empty_at is not None:
            seconds = self.refused_at - self.empty_at
            before = self.rate(now)
            if seconds >= MIN_INTERVAL and self.accepted > 0:
                measured = self.accepted / seconds
                if self.limit is not None:
                    measured = max(before / 2, min(measured, before))
                self.limit = measured
            elif self.limit is not None:
                self.limit = before * DECREASE
        self.empty_at = self.refused_at
        self.accepted = 0

    def begin_epoch(self, now: float) -> None:
        """What was sent earlier shows nothing about the present pace."""
        self.epoch += 1
        self.largest_passed = 1.0
        self.measured_at = now
        self.credit_at = now
        self.credit = math.inf if self.limit is None else 0.0

    def on_limited(self, now: float, size: int, retry_after: float | None) -> None:
        """A submission was refused as a whole, with status 429; nothing was paid for.

        No trial is needed, since the next submission is one. It is smaller, as the limit may be
        below its size. The client has repeated it by then, so the number of requests was not the
        reason. With size 0 it was another request than a submission.
        """
        self.limited += 1
        if size and (retry_after is None or self.limited > 1):
            self.max_size = max(1, size // 2)
        doubled = min(MIN_WAIT * 2 ** (self.limited - 1), MAX_WAIT)
        self.not_before = now + max(retry_after or 0.0, doubled)
        if self.fixed is not None or self.blocked_at is not None:
            return
        if not size or self.limited > 1:
            return
        self.refused_at = now
        self.measure(now)
        self.begin_epoch(self.not_before)

    def on_quota(self, spare: int) -> None:
        """Read before the first batch how much quota is left beyond the run's addresses.

        More addresses are submitted at the start if those that are refused can be submitted again.
        """
        if self.known is None and self.fixed is None and not self.epoch and not self.accepted:
            self.window = max(self.window, min(self.first_risk, float(spare)))


def check_pace(pace: Any) -> float | str | None:
    """The pace: ``"auto"``, None, or a number of addresses a second."""
    if pace is None:
        return None
    if pace == "auto":
        return "auto"
    if isinstance(pace, bool) or not isinstance(pace, int | float) or not 0 < pace < math.inf:
        raise SettingsError(f"pace={pace!r}: give 'auto', None, or addresses a second, above 0")
    return float(pace)


# --- the gate ---

FIRST_HOLD = 0.02  # seconds after a refusal
MAX_HOLD = 30.0
SHARE = 0.8  # of the time between accepted requests, after which the next one is tried
HOLD_SHARE = 0.1  # of the same, after a refusal
# Of the wait with each refusal in a row; at 2, long waits would follow two refusals in three by
# chance.
GROWTH = 1.4
REMEMBERED = 4  # times between accepted requests
MIN_GAP = 0.02  # seconds; a shorter one is none


@dataclass(slots=True)
class Gate:
    """The gate of one client; all times are those of the event loop."""

    # Between accepted requests.
    intervals: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    opens_at: float = -math.inf
    accepted_at: float | None = None
    # Answers to requests that were sent before this moment show nothing new.
    held_since: float = -math.inf
    refusals: int = 0  # in a row

    @property
    def gap(self) -> float:
        """Seconds between two requests that the service accepts, as far as they are known."""
        least = min(self.intervals, default=0.0)
        return least if least >= MIN_GAP else 0.0

    def seconds_left(self, now: float) -> float:
        """Seconds until the next request may be sent."""
        return max(0.0, self.opens_at - now)

    def on_sent(self, now: float) -> None:
        """A request is sent; the next one follows at a distance."""
        self.opens_at = now + SHARE * self.gap

    def on_refused(self, sent_at: float, now: float, jitter: float) -> None:
        """Wait before the next request."""
        if sent_at < self.held_since:
            return
        self.refusals += 1
        self.held_since = now
        hold = max(FIRST_HOLD, HOLD_SHARE * self.gap) * GROWTH ** min(40, self.refusals - 1)
        self.opens_at = now + min(hold, MAX_HOLD) * (0.9 + 0.2 * jitter)

    def on_accepted(self, sent_at: float) -> None:
        """Note the time since the last accepted request.

        Without a refusal a longer one shows nothing.
        """
        interval = 0.0
        if self.accepted_at is not None:
            interval = max(0.0, sent_at - self.accepted_at)
        if not self.refusals:
            interval = min(interval, self.gap)
        self.intervals.append(interval)
        self.accepted_at = sent_at
        self.refusals = 0
