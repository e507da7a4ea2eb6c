"""The service's metrics, in a registry of its own: several services fit in one process."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from ...model.verification import Verification
from ..jobs.store import Depth

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
# Seconds. A regex check takes a millisecond, an SMTP check minutes.
BUCKETS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    180.0,
)


class Registry(CollectorRegistry):
    """A registry without `_created` samples, which the library has for a whole process."""

    def collect(self) -> Iterable[Metric]:
        """Every metric family."""
        for family in super().collect():
            family.samples = [
                sample for sample in family.samples if not sample.name.endswith("_created")
            ]
            yield family


class LabelledCounter(Collector):
    """A counter with labels that only the thread of the event loop increases.

    The library's own has a lock, and takes a microsecond for each increase; every request has
    three.

    >>> counter = LabelledCounter("jobs_ended", "Jobs that reached a final status.", "status")
    >>> counter.add("done")
    >>> [sample.value for family in counter.collect() for sample in family.samples]
    [1.0]
    """

    def __init__(self, name: str, description: str, *labels: str) -> None:
        self.name = f"mailverdict_{name}"  # the library appends "_total"
        self.description = description
        self.labels = labels
        self.counts: defaultdict[tuple[object, ...], int] = defaultdict(int)

    def add(self, *values: object) -> None:
        """Increase the counter of these label values."""
        self.counts[values] += 1

    def collect(self) -> Iterable[Metric]:
        """The metric family."""
        family = CounterMetricFamily(self.name, self.description, labels=self.labels)
        for values, count in self.counts.items():
            family.add_metric(list(map(str, values)), float(count))
        yield family


class RouteDurations(Collector):
    """A histogram of seconds for each route, of the thread of the event loop alone."""

    def __init__(self, name: str, description: str) -> None:
        self.name = f"mailverdict_{name}"
        self.description = description
        none = [0] * (len(BUCKETS) + 1)
        self.counts: defaultdict[str, list[int]] = defaultdict(none.copy)
        self.sums: defaultdict[str, float] = defaultdict(float)

    def observe(self, route: str, seconds: float) -> None:
        """Count a duration in the first bucket whose bound is not below it."""
        self.counts[route][bisect_left(BUCKETS, seconds)] += 1
        self.sums[route] += seconds

    def collect(self) -> Iterable[Metric]:
        """The metric family; its buckets are cumulative."""
        family = HistogramMetricFamily(self.name, self.description, labels=["route"])
        bounds = [*map(str, BUCKETS), "+Inf"]
        for route, counts in self.counts.items():
            totals = map(float, accumulate(counts))
            family.add_metric([route], list(zip(bounds, totals, strict=True)), self.sums[route])
        yield family


class Metrics:
    """Counters, histograms and gauges; every label has a bounded set of values.

    >>> metrics = Metrics()
    >>> metrics.jobs_ended.add("done")
    >>> b'mailverdict_jobs_ended_total{status="done"} 1.0' in metrics.render()
    True
    """

    def __init__(self) -> None:
        self.registry = Registry()
        common: dict[str, Any] = {"namespace": "mailverdict", "registry": self.registry}
        self.requests = LabelledCounter("http_requests", "Requests answered.", "route", "status")
        self.durations = RouteDurations(
            "http_request_seconds", "Time until a request was answered."
        )
        self.refusals = LabelledCounter(
            "refusals", "Requests answered with an error, by its code.", "code"
        )
        verdicts = "Verdicts given, on the single and the bulk path."
        self.verdicts = LabelledCounter("verdicts", verdicts, "path", "validation_type", "result")
        self.jobs_ended = LabelledCounter(
            "jobs_ended", "Jobs that reached a final status.", "status"
        )
        for each in (self.requests, self.durations, self.refusals, self.verdicts, self.jobs_ended):
            self.registry.register(each)
        self.jobs = Gauge("jobs", "Jobs that have not ended.", ["state"], **common)
        oldest = "Age of the job that has waited longest for its verification; 0 if none waits."
        self.oldest_waiting = Gauge("oldest_waiting_job_seconds", oldest, **common)
        self.checks = Gauge("checks", "Single checks in the engine.", **common)
        self.commits = Counter("commits", "Transactions written to the store.", **common)
        self.operations = Counter("operations", "Operations in these transactions.", **common)

    def count_request(self, route: str, status: int, code: str, seconds: float) -> None:
        """Count a request that was answered; `code` is that of its error, or empty."""
        self.requests.add(route, status)
        self.durations.observe(route, seconds)
        if code:
            self.refusals.add(code)

    def count_finished_job(self, status: str, verification: Verification | None = None) -> None:
        """Count a job that reached a final status, and its verdict if it has one."""
        self.jobs_ended.add(status)
        if verification is not None:
            self.verdicts.add("bulk", verification.validation_type, verification.result)

    def watch(self, depth: Callable[[], Depth], checks: Callable[[], int]) -> None:
        """Set what is read when the metrics are rendered: queue, and single checks under way."""

        def jobs_in(state: str) -> int:
            return depth().queue()[state]

        for state in depth().queue():
            self.jobs.labels(state).set_function(partial(jobs_in, state))
        self.oldest_waiting.set_function(lambda: depth().oldest_age)
        self.checks.set_function(checks)

    def render(self) -> bytes:
        """All metrics in Prometheus' text format, version 0.0.4."""
        return generate_latest(self.registry)
