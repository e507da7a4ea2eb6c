"""When the next request may be sent to a service that refuses requests (429, 503), whatever they ask for. No I/O.

A proxy before a service, as nginx with ``limit_req``, counts requests and not addresses: readings of the quota and
polls as well as submissions. It may grant one in a second, without a burst. So all requests of a client pass one gate.
The gate learns the least time between two accepted requests, and sends the next one after a share of it, since a
refused request costs little. Where refusals do not depend on the pace, some repetition passes at once, so that time
becomes shorter and shorter.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

FIRST_HOLD, MAX_HOLD = 0.02, 30.0  # seconds after a refusal
SHARE = 0.8  # of the time between accepted requests, after which the next one is tried
HOLD_SHARE = 0.1  # of the same, after a refusal
GROWTH = 1.4  # of the wait with each refusal in a row; at 2, long waits would follow two refusals in three by chance
REMEMBERED = 4  # times between accepted requests
MIN_GAP = 0.02  # seconds; a shorter one is none


@dataclass(slots=True)
class Gate:
    """The gate of one client; all times are those of the event loop."""

    # Between accepted requests.
    intervals: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    opens_at: float = -math.inf
    accepted_at: float | None = None
    # What became of requests that were sent earlier shows nothing new.
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
        """Note the time since the last accepted request; without a refusal a longer one shows nothing."""
        before, self.accepted_at = self.accepted_at, sent_at
        interval = 0.0 if before is None else max(0.0, sent_at - before)
        self.intervals.append(interval if self.refusals else min(interval, self.gap))
        self.refusals = 0
