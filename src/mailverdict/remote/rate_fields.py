"""Header fields by which a service announces its limit: reading them, and what may be sent by them. No I/O.

`mailverdict.service.http.rate_fields` writes the same fields.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MAX_FIELD = 1_000  # characters of a header field that are read
# Seconds. A limit that is reset later is a quota, and so is one whose window is a day or longer. The quota is read by a
# request of its own.
MAX_RESET = 900
DAY = 86_400


@dataclass(frozen=True, slots=True)
class Advertised:
    """What the header fields of an answer say about a limit; units are addresses or requests."""

    remaining: int
    reset: float  # seconds
    quota: int | None = None
    counts_addresses: bool | None = None  # whether the unit is an address; None: the service does not say


@dataclass(slots=True)
class AdvertisedLimit:
    """The limit that a service announces, once it is known to count addresses and not requests."""

    counts_addresses: bool | None = None
    last: Advertised | None = None
    sent_since: int = 0
    seen_at: float = 0.0

    def read(self, fields: Advertised, now: float) -> None:
        """Compare with the last reading: a limit of addresses falls by what was sent in between."""
        if fields.counts_addresses is not None:
            self.counts_addresses = fields.counts_addresses
        elif self.last is not None and self.sent_since > 1:
            fell = self.last.remaining - fields.remaining
            if fell >= self.sent_since * 0.5:
                self.counts_addresses = True
            elif fell >= 0 and self.counts_addresses is None and now - self.seen_at < 1.0:
                self.counts_addresses = False
        self.last, self.seen_at, self.sent_since = fields, now, 0

    def room(self, now: float) -> float:
        """Addresses that may be sent now; infinity if nothing is known."""
        if self.last is None:
            return math.inf
        if now >= self.seen_at + self.last.reset:
            return math.inf
        if self.counts_addresses:
            return max(0, self.last.remaining - self.sent_since)
        return math.inf if self.last.remaining > 0 else 0

    def until(self, now: float) -> float:
        """When the limit is reset."""
        return now if self.last is None else self.seen_at + self.last.reset


def read_advertised(headers: Mapping[str, str]) -> Advertised | None:
    """The limit in an answer's header fields; None if there is none, or nothing that can be read.

    ``RateLimit: "default";r=50;t=30`` with ``RateLimit-Policy: "default";q=100;w=60`` are the fields of
    draft-ietf-httpapi-ratelimit-headers-10. Earlier drafts have ``limit=100, remaining=50, reset=30``, or
    ``RateLimit-Limit``, ``-Remaining`` and ``-Reset``, also with ``X-`` before.

    >>> read_advertised({"RateLimit": '"burst";r=8;t=1, "daily";r=4998;t=69076'})
    Advertised(remaining=8, reset=1.0, quota=None, counts_addresses=None)
    >>> read_advertised({"RateLimit": '"daily";r=0;t=60', "RateLimit-Policy": '"daily";q=5000;w=86400'}) is None
    True
    """
    fields = {name.lower(): str(value)[:MAX_FIELD] for name, value in headers.items()}
    policies = dict(read_items(fields.get("ratelimit-policy", "")))
    if "=" in (text := fields.get("ratelimit", "")).partition(";")[0]:  # the form of drafts 5 to 7: one list
        fields["ratelimit"] = text.replace(",", ";")
    found: list[tuple[int | None, int | None, int | None, bool | None]] = []
    for name, params in read_items(fields.get("ratelimit", "")):
        remaining, reset = (
            read_number(params.get("r") or params.get("remaining", "")),
            read_number(params.get("t") or params.get("reset", "")),
        )
        policy = policies.get(name, {})
        if (read_number(policy.get("w", "")) or 0) >= DAY:
            continue  # a quota, also shortly before it is reset
        unit = policy.get("qu", "").strip('"')
        found.append((remaining, reset, read_number(policy.get("q", "")), unit == "addresses" if unit else None))
    for prefix in ("ratelimit-", "x-ratelimit-"):
        remaining, reset, limit = (read_number(fields.get(prefix + key, "")) for key in ("remaining", "reset", "limit"))
        found.append((remaining, reset, limit, None))
    known = [
        Advertised(remaining, float(reset), quota, counts_addresses)
        for remaining, reset, quota, counts_addresses in found
        if remaining is not None and reset is not None and reset <= MAX_RESET
    ]
    return min(known, key=lambda each: each.remaining, default=None)


def read_items(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The items of a structured field (RFC 9651) and their parameters, as texts."""
    for item in re.split(r',(?=(?:[^"]*"[^"]*")*[^"]*$)', text):
        name, *params = (part.strip() for part in item.split(";"))
        pairs = (param.partition("=") for param in [*params, name])
        yield name.strip('"'), {key.strip().lower(): value.strip() for key, _, value in pairs}


def read_number(text: str) -> int | None:
    """A whole number of at most nine digits; None for anything else."""
    match = re.match(r"\s*([0-9]{1,9})\s*(?:$|[,;])", text)
    return int(match[1]) if match else None
