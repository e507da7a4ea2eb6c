"""How fast addresses are submitted to a service: additive increase, multiplicative decrease. No I/O.

A service does not announce its limit, and its limiter's burst hides it: the first batches all pass, then every
address is refused, and paid for. So the number of addresses without an outcome is bounded: from the start, and then
by the number that have passed, as in the slow start of TCP. After a refusal nothing is sent but a few addresses as a
trial. When the trial passes, the limit is estimated from what was accepted between two refusals, when the limiter had
nothing left both times. From there the pace follows a cubic curve in time, as in RFC 9438: quickly towards the
estimate, slowly past it, and then faster, since the limit may have been raised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ..backend import KnownPace
from ..contract.envelope import BULK_LIMIT
from ..errors import SettingsError
from .rate_fields import Advertised, AdvertisedLimit

SAMPLE = 10  # jobs of a batch that must have passed before the whole batch counts as passed
QUEUED_FOR = 3.5  # seconds after which a job that is still queued counts as passed: limiters refuse within seconds
MAX_WINDOW = 2_000.0  # addresses without an outcome
SHARE_AT_RISK = 0.5  # of all addresses that may be without an outcome while the limit is unknown
FIRST_SHARE = 1 / 3  # the same from the start, if the quota covers them twice
MIN_FIRST_RISK, MAX_FIRST_RISK = 200.0, 300.0  # addresses
SMALL_BATCH = 50  # addresses; a batch is not made smaller than this to fill what is left of the window
START_BELOW = 0.9  # of the estimated limit, after a refusal
TIME_TO_LIMIT = 30.0  # seconds from there to the estimated limit
SHORT_TIME_TO_LIMIT = 10.0  # the same, if the estimate may be low (the first; a disturbance), or refusals cost nothing
BATCH_SECONDS = 1.0  # a batch is what the pace allows in this time: small batches fit into small bursts
CREDIT_SECONDS = 4.0  # unused pace that may be made up for
DECREASE = 0.7  # of the pace, after a refusal, if what was accepted does not show the limit
MIN_INTERVAL = 1.0  # seconds between two refusals that show the limit
SLOW_GROWTH = 0.25  # of a batch that passed
TRIAL = 5  # addresses
MIN_WAIT, WAIT_SHARE, MAX_WAIT = 1.0, 0.25, 300.0  # seconds until the next trial: a share of the time without success
THROTTLED_SHARE = 0.1  # of the time until `throttled`: the service itself has tried for 12 minutes
STOP_AFTER = 4_500.0  # seconds without success after which nothing more is sent; longer than a limit by the hour
USUAL_DELAY = 2.5  # seconds from a submission to its first outcomes, until it is measured
MEMORY = 7 * 86_400.0  # seconds for which a pace is remembered
LAST_WAIT = 1.2  # times the longest wait so far, before an address is risked that is not submitted again
MIN_RATE = 0.01  # addresses a second


@dataclass(slots=True)
class SentBatch:
    """A batch that was submitted, and what is known of its jobs."""

    at: float  # seconds since the epoch
    size: int
    epoch: int  # number of the decrease before it; an earlier batch shows nothing about the present pace
    is_trial: bool = False
    open: int = 0  # jobs without an outcome
    passed: int = 0
    refused: int = 0
    is_clear: bool = False

    def __post_init__(self) -> None:
        """All jobs are open."""
        self.open = self.size


@dataclass(slots=True)
class Pace:
    """The pace of one run.

    `allowance` is asked before each submission; `on_sent`, `on_passed`, `on_refused` and `on_abandoned` report what
    became of it. `total` is the number of addresses of the run.
    """

    total: int
    known: KnownPace | None = None
    limit: float | None = None  # addresses a second; None until the first refusal
    slow_start_until: float = math.inf  # window from which on it grows slowly
    was_long: bool = False  # whether most of the last interval was a wait
    window: float = float(BULK_LIMIT)
    delay: float = USUAL_DELAY
    outstanding: int = 0
    passed: int = 0  # addresses that no limiter refused
    epoch: int = 0
    increase_since: float = 0.0
    credit: float = float(BULK_LIMIT)
    credit_at: float | None = None
    anchor: float | None = None  # when the limiter had nothing left
    history: list[SentBatch] = field(default_factory=list)  # since the anchor
    blocked_at: float | None = None  # since when nothing but trials is sent
    trial_at: float = 0.0
    trials_open: int = 0
    sent_at: float = 0.0
    longest_block: float = 0.0  # seconds until a trial passed, at most
    largest_passed: float = 1.0  # size of a batch since then
    time_to_limit: float = SHORT_TIME_TO_LIMIT
    max_size: int = BULK_LIMIT  # addresses of a batch, after answers with status 429
    limited: int = 0  # submissions in a row that were answered with 429
    not_before: float = 0.0  # when the next submission may be sent, after such an answer
    advertised: AdvertisedLimit = field(default_factory=AdvertisedLimit)

    def start(self, now: float) -> None:
        """Begin with what is known of the service."""
        self.credit_at = self.increase_since = now
        if self.known is None or now - self.known.at > MEMORY:
            self.known = None
        elif self.known.limit is not None:
            self.limit = self.known.limit
        else:
            self.window = min(max(self.window, self.known.window), MAX_WINDOW)

    # What may be sent.

    def allowance(self, now: float, left: int, *, is_last_chance: bool = False) -> int:
        """How many of `left` addresses may be submitted now; 0: wait until `next_time` or for an outcome."""
        if self.credit_at is None:
            self.start(now)
        if now < self.not_before:
            return 0
        if self.blocked_at is not None:
            size = 1 if is_last_chance else self.trial_size
            ready_at = max(self.trial_at, self.blocked_at + LAST_WAIT * self.longest_block * is_last_chance)
            return min(size, left) if not self.trials_open and now >= ready_at else 0
        if is_last_chance:
            return min(left, self.safe_size(now))
        self.earn(now)
        size = self.batch_size(now, left)
        room = int(self.open_limit(now) - self.outstanding)
        if room < min(size, SMALL_BATCH) or (self.limit is not None and self.credit < size):
            return 0
        size = min(size, room)
        return size if self.advertised.room(now) >= size else min(size, int(self.advertised.room(now)))

    def safe_size(self, now: float) -> int:
        """How many addresses pass as certainly as can be: half the pace, and every outcome before is known."""
        if self.outstanding or not self.anchor:
            return 0 if self.outstanding else self.trial_size
        rate = self.limit or self.window / self.delay
        earned = rate / 2 * (now - max(self.sent_at, self.anchor))
        wanted = max(1.0, min(rate * self.delay, 2 * self.largest_passed))
        return min(BULK_LIMIT, int(min(earned, wanted))) if earned >= wanted / 2 else 0

    @property
    def first_risk(self) -> float:
        """Addresses that may be without an outcome while nothing is known of the limit."""
        return min(MAX_FIRST_RISK, max(MIN_FIRST_RISK, self.total * FIRST_SHARE))

    @property
    def trial_size(self) -> int:
        """Addresses of a trial."""
        return max(1, min(TRIAL, self.total // 200))

    def batch_size(self, now: float, left: int) -> int:
        """Size of the next batch."""
        wanted = BULK_LIMIT if self.limit is None else int(self.rate(now) * BATCH_SECONDS)
        return min(left, max(1, min(self.max_size, wanted, int(self.open_limit(now)))))

    def open_limit(self, now: float) -> float:
        """How many addresses may be without an outcome."""
        if self.limit is None:
            return self.window
        return max(1.0, self.rate(now) * (1.5 * self.delay + 2 * BATCH_SECONDS))

    def rate(self, now: float) -> float:
        """The present pace in addresses a second; infinity while only the window bounds it."""
        if self.limit is None:
            return math.inf
        passed = (now - self.increase_since) / self.time_to_limit - 1.0
        return max(MIN_RATE, self.limit * (1.0 + (1.0 - START_BELOW) * passed**3))

    def earn(self, now: float) -> None:
        """Add the credit of the time since the last call."""
        assert self.credit_at is not None
        if self.limit is not None:
            rate = self.rate(now)
            most = max(1.0, rate * CREDIT_SECONDS)
            self.credit = min(
                max(most, min(self.credit, float(BULK_LIMIT))), self.credit + (now - self.credit_at) * rate
            )
        self.credit_at = now

    def next_time(self, now: float, left: int) -> float:
        """When `allowance` may be above 0 without another outcome; infinity if it needs one."""
        if now < self.not_before:
            return self.not_before
        if self.blocked_at is not None:
            return math.inf if self.trials_open else max(now, self.trial_at)
        self.earn(now)
        size = self.batch_size(now, left)
        if int(self.open_limit(now) - self.outstanding) < min(size, SMALL_BATCH):
            return math.inf
        wait = 0.0 if self.limit is None else max(0.0, (size - self.credit) / self.rate(now))
        if self.advertised.room(now) < 1:
            wait = max(wait, self.advertised.until(now) - now)
        return now + wait

    def speed(self, now: float) -> float | None:
        """The present pace for people: addresses a second; None if it is not limited."""
        if self.blocked_at is not None or now < self.not_before:
            return 0.0
        if self.limit is None:
            return self.window / self.delay if self.epoch else None
        return self.rate(now)

    def has_given_up(self, now: float) -> bool:
        """Whether nothing has passed for so long that the run ends."""
        return self.blocked_at is not None and now - self.blocked_at > STOP_AFTER

    # Outcomes of what was sent.

    def on_sent(self, now: float, size: int) -> SentBatch:
        """Jobs were accepted."""
        sent = SentBatch(now, size, self.epoch, is_trial=self.blocked_at is not None)
        self.sent_at = now
        if self.limited:
            self.limited = 0
        elif size == self.max_size:
            self.max_size = min(BULK_LIMIT, 2 * size)
        self.outstanding += size
        self.credit -= size
        self.advertised.sent_since += size
        self.history.append(sent)
        if sent.is_trial:
            self.trials_open += 1
        return sent

    def on_passed(self, sent: SentBatch, now: float) -> None:
        """A job has certainly passed the limiter."""
        sent.passed += 1
        self.close_one(sent)
        is_sampled = not sent.refused and sent.passed >= min(SAMPLE, sent.size)
        if not sent.is_clear and (is_sampled or not sent.open):
            self.clear(sent, now)

    def on_abandoned(self, sent: SentBatch, now: float) -> None:
        """A job is not polled any more, and it is not known whether a limiter refused it."""
        self.close_one(sent)
        if not sent.open and not sent.is_clear:
            self.clear(sent, now)

    def on_refused(self, sent: SentBatch, now: float, *, is_throttled: bool = False) -> None:
        """A job ended as `rate_limited` or `throttled`."""
        wait = THROTTLED_SHARE * (now - sent.at) if is_throttled else 0.0
        sent.refused += 1
        self.close_one(sent)
        if sent.refused == 1 and sent.is_trial and sent.epoch == self.epoch and self.blocked_at is not None:
            self.trials_open -= 1
            sent.is_clear = True
            self.wait_longer(now, wait)
            self.outstanding -= sent.open
            sent.open = 0
        elif self.blocked_at is None and sent.epoch == self.epoch:
            self.block(now, wait)
        if not sent.open and not sent.is_clear:
            sent.is_clear = True

    def close_one(self, sent: SentBatch) -> None:
        """One job fewer without an outcome."""
        if sent.open:
            sent.open -= 1
            self.outstanding -= 1

    def clear(self, sent: SentBatch, now: float) -> None:
        """The rest of a batch counts as passed."""
        sent.is_clear = True
        self.outstanding -= sent.open
        sent.open = 0
        self.delay += (now - sent.at - self.delay) / 4
        if sent.is_trial and sent.epoch == self.epoch and self.blocked_at is not None:
            self.trials_open -= 1
            if not sent.refused:
                self.resume(now)
        elif sent.epoch == self.epoch and not sent.refused:
            self.passed += sent.size
            if self.epoch:
                self.largest_passed = max(self.largest_passed, float(sent.size))
            most = MAX_WINDOW
            if self.limit is None and not (self.known and self.known.limit is None):
                most = max(self.first_risk, min(float(self.passed), self.total * SHARE_AT_RISK))
            more = sent.size if self.window < self.slow_start_until else sent.size * SLOW_GROWTH
            self.window = max(self.window, min(self.window + more, most, MAX_WINDOW))

    def block(self, now: float, wait: float) -> None:
        """Send nothing but trials, the first after `wait` seconds."""
        self.blocked_at, self.trial_at, self.trials_open = now, now + wait, 0

    def wait_longer(self, now: float, at_least: float = 0.0) -> None:
        """Wait for the next trial; a share of the time since the first refusal."""
        assert self.blocked_at is not None
        wait = min(max(MIN_WAIT, WAIT_SHARE * (now - self.blocked_at)), MAX_WAIT)
        self.trial_at = now + max(wait, at_least)

    def on_limited(self, now: float, size: int, retry_after: float | None) -> None:
        """A submission was refused as a whole, with status 429; nothing was paid for.

        No trial is needed, since the next submission is one. It is smaller, as the limit may be below its size.
        The client has repeated it by then, so the number of requests was not the reason. With size 0 it was another
        request than a submission.
        """
        self.limited += 1
        if size and (retry_after is None or self.limited > 1):
            self.max_size = max(1, size // 2)
        self.not_before = now + max(retry_after or 0.0, min(MIN_WAIT * 2 ** (self.limited - 1), MAX_WAIT))
        if self.blocked_at is not None or not size:
            return
        if self.limited > 1:
            self.anchor, self.history = now, []
        else:
            self.history.append(SentBatch(now, size, self.epoch, refused=size, is_clear=True))
            self.estimate()
            self.epoch += 1
        self.time_to_limit = SHORT_TIME_TO_LIMIT
        self.increase_since, self.credit = self.not_before, min(self.credit, 0.0)

    def on_quota(self, spare: int) -> None:
        """Read before the first batch how much quota is left beyond the run's addresses.

        More addresses are submitted at the start if those that are refused can be submitted again.
        """
        if self.known is None and not self.epoch and not self.history:
            self.window = max(self.window, min(self.first_risk, float(spare)))

    def on_advertised(self, fields: Advertised, now: float) -> None:
        """An answer had header fields about a limit."""
        self.advertised.read(fields, now)
        if self.advertised.counts_addresses and self.limit is None and not self.epoch:
            self.window = max(self.window, min(float(fields.remaining), MAX_WINDOW))

    def resume(self, now: float) -> None:
        """A trial has passed: estimate the limit, and go on a little below it."""
        if any(sent.refused for sent in self.history):
            self.estimate()
        if self.blocked_at is not None:
            self.longest_block = max(self.longest_block, now - self.blocked_at)
        self.blocked_at = None
        self.largest_passed = 1.0
        self.epoch += 1
        self.increase_since = self.credit_at = now
        self.slow_start_until = self.window / 2
        self.window = float(max(2 * self.trial_size, min(20, self.total // 50)))
        if self.limit is not None and self.anchor is not None:
            self.credit = min(self.limit * START_BELOW * (now - self.anchor), float(BULK_LIMIT))

    def estimate(self) -> None:
        """Estimate the limit by what was accepted between two times at which the limiter had nothing left."""
        refused = [sent for sent in self.history if sent.refused]
        batches = [sent for sent in refused if not sent.is_trial] or refused
        start, end, before = self.anchor, batches[-1].at, self.limit
        if start is None and self.limit is None:
            start = batches[0].at  # the burst is used up: what passes from here on is the rate
        elif start is None:
            start = self.history[0].at
        was_long, self.was_long = self.was_long, refused[-1].at - end > 0.3 * (refused[-1].at - start)
        is_window = was_long and self.was_long  # a window that begins anew, and not a disturbance
        if is_window:
            end = refused[-1].at
        is_sure = before is not None and self.was_long == is_window
        self.time_to_limit = TIME_TO_LIMIT if is_sure else SHORT_TIME_TO_LIMIT
        accepted = sum(sent.size - sent.refused for sent in self.history if start < sent.at <= end)
        seconds = end - start
        self.anchor = refused[-1].at
        self.history = [sent for sent in self.history if sent.at > self.anchor]
        if seconds < MIN_INTERVAL or not accepted:
            self.limit = None if before is None else before / 2
            return
        low = accepted / seconds
        is_whole = all(sent.refused == sent.size for sent in batches)
        high = low + batches[-1].size / seconds if is_whole else low
        guess = (low + high) / 2 if before is None else before * DECREASE
        least = MIN_RATE if before is None or is_window else before / 2  # a disturbance shows nothing about the limit
        self.limit = max(least, min(max(guess, low), high))

    def seconds_left(self, now: float, left: int) -> float | None:
        """Seconds until `left` addresses are submitted at the present pace; None if that is not known."""
        speed = self.window / self.delay if self.limit is None else self.rate(now)
        return None if self.blocked_at is not None else left / speed

    def known_pace(self, now: float) -> KnownPace | None:
        """What a later run should know."""
        return KnownPace(self.limit, self.window, now)


@dataclass(slots=True)
class FixedPace:
    """A pace that was given, whatever the service answers; with the interface of `Pace`."""

    per_second: float  # addresses; infinity: no limit
    ready_at: float = 0.0

    def allowance(self, now: float, left: int, *, is_last_chance: bool = False) -> int:
        """How many of `left` addresses may be submitted now."""
        size = max(1, int(min(float(BULK_LIMIT), self.per_second * BATCH_SECONDS)))
        return min(left, size) if now >= self.ready_at else 0

    def next_time(self, now: float, left: int) -> float:
        """When `allowance` is above 0."""
        return max(now, self.ready_at)

    def on_sent(self, now: float, size: int) -> SentBatch:
        """Jobs were accepted."""
        self.ready_at = max(now, self.ready_at) + size / self.per_second
        return SentBatch(now, size, 0)

    def on_passed(self, sent: SentBatch, now: float) -> None:
        """Do nothing."""

    def on_abandoned(self, sent: SentBatch, now: float) -> None:
        """Do nothing."""

    def on_refused(self, sent: SentBatch, now: float, *, is_throttled: bool = False) -> None:
        """Wait a little: what is left may be what was just refused."""
        self.ready_at = max(self.ready_at, now + MIN_WAIT)

    def on_limited(self, now: float, size: int, retry_after: float | None) -> None:
        """Wait as the service asked."""
        self.ready_at = max(self.ready_at, now + (retry_after or MIN_WAIT))

    def on_quota(self, spare: int) -> None:
        """Do nothing."""

    def on_advertised(self, fields: Advertised, now: float) -> None:
        """Do nothing."""

    def has_given_up(self, now: float) -> bool:
        """Never."""
        return False

    def speed(self, now: float) -> float | None:
        """The pace that was given."""
        return None if self.per_second == math.inf else self.per_second

    def seconds_left(self, now: float, left: int) -> float | None:
        """Seconds until `left` addresses are submitted."""
        return None if self.per_second == math.inf else left / self.per_second

    def known_pace(self, now: float) -> KnownPace | None:
        """Nothing was learned."""
        return None


def check_pace(pace: Any) -> float | str | None:
    """The pace: ``"auto"``, None, or a number of addresses a second."""
    if pace is None or pace == "auto":
        return pace if pace is None else "auto"
    if isinstance(pace, bool) or not isinstance(pace, int | float) or not 0 < pace < math.inf:
        raise SettingsError(f"pace={pace!r}: give 'auto', None, or addresses a second, above 0")
    return float(pace)
