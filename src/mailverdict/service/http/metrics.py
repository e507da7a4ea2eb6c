"""Counters in Prometheus' text format, version 0.0.4."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

__all__ = ["CONTENT_TYPE", "Metric", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# A regex check takes a millisecond, a mailbox check minutes.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0)
PREFIX = "mailverdict_"
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Metric:
    """One family and its samples."""

    name: str
    kind: str
    help: str
    samples: Iterable[tuple[str, Labels, float]]

    def lines(self) -> Iterator[str]:
        """The family as text."""
        name = PREFIX + self.name
        yield f"# HELP {name} {self.help}"
        yield f"# TYPE {name} {self.kind}"
        for suffix, labels, value in self.samples:
            shown = ",".join(f'{key}="{escape(text)}"' for key, text in labels)
            yield f"{name}{suffix}{{{shown}}} {value!r}" if shown else f"{name}{suffix} {value!r}"


def escape(text: str) -> str:
    """A label value's three characters that need it."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


@dataclass(slots=True)
class Histogram:
    """How long something took."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds

    def samples(self, labels: Labels) -> Iterator[tuple[str, Labels, float]]:
        """Cumulative buckets, sum and count."""
        seen = 0
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), self.counts, strict=True):
            seen += count
            yield "_bucket", (*labels, ("le", bound)), seen
        yield "_sum", labels, self.total
        yield "_count", labels, seen


class Metrics:
    """What the service counts; every label has a bounded set of values.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.jobs["done"] += 1
    >>> 'mailverdict_jobs_ended_total{status="done"} 1' in metrics.render()
    True
    """

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.durations: dict[str, Histogram] = {}
        self.refusals: Counter[str] = Counter()
        self.verdicts: Counter[tuple[str, str, str]] = Counter()
        self.jobs: Counter[str] = Counter()

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self.requests[route, status] += 1
        if route not in self.durations:
            self.durations[route] = Histogram()
        self.durations[route].observe(seconds)

    def families(self) -> Iterator[Metric]:
        """Everything counted here."""
        requests = (("", (("route", r), ("status", str(s))), n) for (r, s), n in sorted(self.requests.items()))
        yield Metric("http_requests_total", "counter", "Requests answered.", requests)
        durations = (s for r, h in sorted(self.durations.items()) for s in h.samples((("route", r),)))
        yield Metric("http_request_seconds", "histogram", "Time until a request was answered.", durations)
        refusals = (("", (("code", c),), n) for c, n in sorted(self.refusals.items()))
        yield Metric("refusals_total", "counter", "Requests answered with an error, by its code.", refusals)
        verdicts = (
            ("", (("path", p), ("validation_type", t), ("result", r)), n)
            for (p, t, r), n in sorted(self.verdicts.items())
        )
        yield Metric("verdicts_total", "counter", "Verdicts given, on the single and the bulk path.", verdicts)
        jobs = (("", (("status", s),), n) for s, n in sorted(self.jobs.items()))
        yield Metric("jobs_ended_total", "counter", "Jobs that reached a final status.", jobs)

    def render(self, *more: Metric) -> str:
        """The whole text, with families that are known elsewhere."""
        return "".join(f"{line}\n" for family in (*self.families(), *more) for line in family.lines())
