"""What the package should reach, and what was measured: one row for each goal, compared with `results.json`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .figures import OURS, Figure, Results, amount

__all__ = ["GOALS", "Goal"]

MILLION = 1_000_000
Measured = Callable[[Results], float | None]


@dataclass(frozen=True)
class Goal:
    """What one benchmark should reach.

    Attributes
    ----------
    limit : float
        The least value if `is_least`, else the highest.
    measured : callable
        The value in the results; None if it was not measured.
    """

    section: str
    words: str
    limit: float
    unit: str
    measured: Measured
    is_least: bool = False

    @property
    def demanded(self) -> str:
        return f"at {'least' if self.is_least else 'most'} {self.limit:,g}{self.unit}"

    def is_reached(self, value: float) -> bool:
        return value >= self.limit if self.is_least else value <= self.limit

    def show(self, value: float) -> str:
        return f"{amount(value)}{self.unit}, {'reached' if self.is_reached(value) else '**missed**'}"


def median(task: str, subject: str = OURS, size: int | None = None) -> Measured:
    """The median of a figure."""

    def measured(results: Results) -> float | None:
        found = results.find(task, subject, size)
        return None if found is None else found.median

    return measured


def largest(prefix: str, size: int | None = None) -> Measured:
    """The largest of all values of the tasks that begin so."""

    def measured(results: Results) -> float | None:
        found = [each for each in results.figures if each.task.startswith(prefix) and size in (None, each.size)]
        return max((value for each in found for value in each.values), default=None)

    return measured


def slowest(prefix: str, size: int) -> Measured:
    """The largest median of the tasks that begin so."""

    def measured(results: Results) -> float | None:
        found = [each for each in results.figures if each.task.startswith(prefix) and each.size == size]
        return max((each.median for each in found), default=None)

    return measured


def middle(task: str) -> Measured:
    """The median of all values of all subjects of a task."""

    def measured(results: Results) -> float | None:
        values = tuple(value for each in results.figures if each.task == task for value in each.values)
        return Figure(task, "all", "", values).median if values else None

    return measured


def times_as_good(task: str, peer: str, ours: str = OURS, size: int | None = None) -> Measured:
    """How many times as fast, or as small, as a peer."""

    def measured(results: Results) -> float | None:
        us, them = results.find(task, ours, size), results.find(task, peer, size)
        return None if us is None or them is None else us.times_better(them)

    return measured


def times_as_much(task: str, base: str, subjects: Sequence[str] = (OURS,), size: int | None = None) -> Measured:
    """How many times as much as a base the most demanding of some subjects needs."""

    def measured(results: Results) -> float | None:
        found = [results.find(task, subject, size) for subject in (base, *subjects)]
        medians = [each.median for each in found if each is not None]
        return max(medians[1:]) / medians[0] if len(medians) == len(found) else None

    return measured


def lowest(*each: Measured) -> Measured:
    """The lowest of several, all of which were measured."""

    def measured(results: Results) -> float | None:
        values = [one(results) for one in each]
        known = [value for value in values if value is not None]
        return min(known) if len(known) == len(values) else None

    return measured


SMTP = "mailboxes by smtp: "
CSV = "a large CSV by regex"
GOALS = (
    Goal(
        "column",
        "a column by regex, 1,000,000 rows: times as fast as email-validator in a loop",
        80,
        "",
        times_as_good("a column by regex", "email-validator, loop", size=MILLION),
        is_least=True,
    ),
    Goal(
        "column",
        "the same: times as fast as emval's plug-in of Polars",
        5,
        "",
        times_as_good("a column by regex", "emval, Polars plug-in", size=MILLION),
        is_least=True,
    ),
    Goal(
        "column",
        "the same: memory above the input",
        200,
        " MB",
        median("memory above the input, a column by regex", size=MILLION),
    ),
    Goal(
        "column",
        "columns of objects, or with missing cells: times as long as texts",
        1.1,
        "",
        times_as_much("a column by regex, by its cells", "texts", ("objects", "texts, 2 % missing"), MILLION),
    ),
    Goal(
        "clean",
        "`clean`, one messy cell in ten: times the processor time of `verify`",
        2,
        "",
        times_as_much("one messy cell in ten, processor time", "verify", ("clean",)),
    ),
    Goal(
        "clean",
        "`verify(clean=True)`, nothing to repair: times the processor time of `verify`",
        1.1,
        "",
        times_as_much("nothing to repair, processor time", "verify", ("verify, clean=True",)),
    ),
    Goal("memory", "CSV to CSV, 5,000,000 rows: peak memory", 500, " MiB", median(f"{CSV}, peak memory")),
    Goal(
        "memory",
        "the same to Parquet",
        500,
        " MiB",
        median(f"{CSV}, peak memory", "mailverdict, to Parquet"),
    ),
    Goal("memory", "the same, `plan`", 600, " MiB", median(f"{CSV}, peak memory", "mailverdict, plan")),
    Goal("memory", "the same, with a report", 600, " MiB", median(f"{CSV}, peak memory", "mailverdict, with a report")),
    Goal(
        "memory",
        "CSV to CSV, 5,000,000 rows: times as long as `pyarrow.csv` reads and writes the file",
        3,
        "",
        times_as_much(CSV, "pyarrow.csv, no check"),
    ),
    Goal(
        "lookups",
        "MX look-ups of 20,000 domains: times as many a second as dnspython",
        1.7,
        "",
        lowest(*(times_as_good(f"MX look-ups, answers after {n} ms", "dnspython", size=20_000) for n in (0, 20))),
        is_least=True,
    ),
    Goal(
        "lookups",
        "the same, for each second of processor time: times as many as aiodns",
        1,
        "",
        lowest(
            *(
                times_as_good(f"MX look-ups, answers after {n} ms, processor time", "aiodns", size=20_000)
                for n in (0, 20)
            )
        ),
        is_least=True,
    ),
    *(
        Goal(
            "smtp",
            f"10,000 mailboxes, {name}: times as fast as aiosmtplib",
            limit,
            "",
            times_as_good(f"{SMTP}{name}", "aiosmtplib, 200 tasks"),
            is_least=True,
        )
        for name, limit in (
            ("refusals punished, PIPELINING everywhere", 13),
            ("refusals punished, PIPELINING at 70 %", 5),
            ("no punishment, PIPELINING everywhere", 60),
        )
    ),
    Goal(
        "smtp",
        "sessions, in each of these: times fewer than one for each address",
        15,
        "",
        lowest(
            *(
                times_as_good(f"sessions by smtp: {punished}, PIPELINING {where}", "aiosmtplib, 200 tasks")
                for punished in ("refusals punished", "no punishment")
                for where in ("everywhere", "at 70 %")
            )
        ),
        is_least=True,
    ),
    Goal(
        "smtp",
        "recipients without any delay, all known",
        15_000,
        " a second",
        median("recipients without delay, 0 % unknown users"),
        is_least=True,
    ),
    Goal("smtp", "200,000 addresses: peak memory", 500, " MiB", median("peak memory of the process, by smtp")),
    Goal("polling", "2,000 jobs: share of a processor core", 20, " %", median("share of a core, polling")),
    Goal("polling", "requests: times the fewest possible", 1.1, "", median("requests of a poll schedule")),
    Goal(
        "journal",
        "a column of 1,000,000 known addresses",
        15,
        " s",
        median("a column that the journal knows", size=MILLION),
    ),
    Goal(
        "service",
        "single checks by regex: requests a second, times those of a bare echo",
        0.6,
        "",
        times_as_good("single checks by regex over HTTP", "Starlette, bare echo"),
        is_least=True,
    ),
    Goal("service", "a bulk of 100 addresses accepted", 50, " ms", median("a bulk of 100 accepted, alone")),
    Goal(
        "service",
        "jobs lost, doubled or with a wrong quota after a `kill -9`",
        0,
        "",
        largest("jobs of 50 clients and a kill -9:"),
    ),
    Goal(
        "cluster",
        "a bulk of 100 addresses accepted, PostgreSQL",
        20,
        " ms",
        median("a bulk of 100 accepted, PostgreSQL", "alone"),
    ),
    Goal(
        "cluster",
        "jobs by smtp: two workers, times as fast as one",
        1.7,
        "",
        times_as_good("jobs by smtp, mail servers that answer after 150 ms", "one worker", "two workers"),
        is_least=True,
    ),
    Goal(
        "scale",
        "a Dask frame by smtp: two workers, times as fast as one",
        1.7,
        "",
        times_as_good(
            "a Dask frame by smtp, replies after 500 ms, 16 sessions for each worker", "one worker", "two workers"
        ),
        is_least=True,
    ),
    Goal(
        "audit",
        "the audit page, 100,000 rows: the slowest action, from the click until painted",
        0.2,
        " s",
        slowest("audit page, click to painted:", 100_000),
    ),
    Goal(
        "audit",
        "the same, 1,000,000 rows",
        1,
        " s",
        slowest("audit page, click to painted:", MILLION),
    ),
    Goal(
        "audit",
        "the same: memory of its kernel, times the list",
        3,
        "",
        largest("audit page, memory of the kernel:", MILLION),
    ),
    Goal(
        "congestion",
        "DNS, 108 simulated resolvers: domains without an answer, at the worst of them",
        1,
        " %",
        largest("simulated resolvers, domains without an answer"),
    ),
    Goal(
        "congestion",
        "the same: time, compared with a client that knows the resolver",
        3,
        " times",
        largest("simulated resolvers, time compared with the ideal"),
    ),
    Goal(
        "pace",
        "200 simulated services: addresses lost although quota is left",
        0,
        "",
        largest("simulated services, addresses lost"),
    ),
    Goal(
        "pace",
        "the same: time, compared with a client that knows the limiter, median",
        1.5,
        " times",
        middle("simulated services, time compared with the ideal"),
    ),
    Goal(
        "pace",
        "the same, at the worst of them",
        4,
        " times",
        largest("simulated services, time compared with the ideal"),
    ),
)
