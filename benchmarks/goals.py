"""What the package should reach: one row for each goal, compared with `results.json` on the page of the results."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .figures import OURS, Figure, Results, amount

MILLION = 1_000_000
Measured = Callable[[Results], float]  # LookupError: it was not measured


@dataclass(frozen=True)
class Goal:
    """What one benchmark should reach.

    Attributes
    ----------
    limit : float
        The least value if `is_least`, else the highest.
    measured : callable
        The value in the results.
    """

    limit: float
    unit: str
    words: str
    measured: Measured
    is_least: bool = False

    @property
    def demanded(self) -> str:
        return f"at {'least' if self.is_least else 'most'} {self.limit:,g} {self.unit}".rstrip()

    def outcome(self, results: Results) -> str:
        """What was measured, and whether that is enough."""
        try:
            value = self.measured(results)
        except LookupError:
            return "not measured"
        is_reached = value >= self.limit if self.is_least else value <= self.limit
        return f"{f'{amount(value)} {self.unit}'.rstrip()}, {'reached' if is_reached else '**missed**'}"


def median(task: str, subject: str = OURS, size: int | None = None) -> Measured:
    """The median of a figure."""
    return lambda results: results.find(task, subject, size).median


def ratio(task: str, of: str, to: str, size: int | None = None) -> Measured:
    """The median of one subject, divided by that of another."""
    return lambda results: results.find(task, of, size).median / results.find(task, to, size).median


def least_ratio(tasks: Sequence[str], to: str, size: int) -> Measured:
    """How many times as much as a peer, where it is least."""
    return lambda results: min(ratio(task, OURS, to, size)(results) for task in tasks)


def all_of(results: Results, prefix: str, size: int | None = None) -> list[Figure]:
    """The figures of all tasks that begin so."""
    found = [
        each
        for each in results.figures
        if each.task.startswith(prefix) and size in (None, each.size)
    ]
    if not found:
        raise LookupError(prefix, size)
    return found


def largest(prefix: str) -> Measured:
    """The largest of all values of the tasks that begin so."""
    return lambda results: max(value for each in all_of(results, prefix) for value in each.values)


def most_of(task: str, subjects: str) -> Measured:
    """The largest value of a task among the subjects that begin so."""
    return lambda results: max(
        value
        for each in all_of(results, task)
        if each.subject.startswith(subjects)
        for value in each.values
    )


def slowest(prefix: str, size: int) -> Measured:
    """The largest median of the tasks that begin so."""
    return lambda results: max(each.median for each in all_of(results, prefix, size))


def middle(task: str) -> Measured:
    """The median of all values of all subjects."""
    return lambda results: statistics.median(
        value for each in all_of(results, task) for value in each.values
    )


def share_lost(results: Results) -> float:
    """The share of a list, in per cent, that was lost at the worst of the simulated services."""
    task = "simulated services, addresses"
    lost = {each.subject: each.values for each in all_of(results, f"{task} lost")}
    lists = [(each.values, lost[each.subject]) for each in results.figures if each.task == task]
    return max(100 * part / size for pair in lists for size, part in zip(*pair, strict=True))


def share_repeated(results: Results) -> float:
    """Questions to the DNS beyond one for each domain, in per cent, for the frame where they are most."""
    task = "a Dask frame by mx, work"
    sizes = {each.size for each in all_of(results, task)}
    return max(
        100 * (ratio(task, "questions to the DNS", "domains", size)(results) - 1) for size in sizes
    )


def at_most(limit: float, unit: str, words: str, measured: Measured) -> Goal:
    return Goal(limit, unit, words, measured)


def at_least(limit: float, unit: str, words: str, measured: Measured) -> Goal:
    return Goal(limit, unit, words, measured, is_least=True)


COLUMN, MEMORY = "a column by regex", "memory above the input, a column by regex"
AS_IT_STANDS = "mailverdict, clean=False"
LOOP, PLUGIN = "email-validator, loop", "emval, Polars plug-in"
CLEAN, CSV, LARGE = (
    "nothing to repair, processor time",
    "CSV to CSV by regex",
    "a large CSV by regex, peak memory",
)
LOOKUPS = ("MX look-ups, answers after 0 ms", "MX look-ups, answers after 20 ms")
PROCESSOR = [f"{each}, processor time" for each in LOOKUPS]
UNANSWERED, DNS_TIME = (
    f"simulated resolvers, {each}"
    for each in ("domains without an answer", "time compared with the ideal")
)
PUNISHED, UNPUNISHED = (
    f"mailboxes by smtp: {each}, PIPELINING" for each in ("refusals punished", "no punishment")
)
PEER = "aiosmtplib, 200 tasks"
KNOWN = "a column that the journal knows"
CHECKS, ECHO, KILL = (
    "single checks by regex over HTTP",
    "Starlette, bare echo",
    "jobs of 50 clients and a kill -9:",
)
COST, TIME = (
    f"simulated services, {each}" for each in ("units an address", "time compared with the ideal")
)
HELD = "made-up lists, interval holds the share, verdict"
MAILINGS = "made-up mailings"
LIST_SIZE = 40_000
CLICK = "audit page, click to painted:"

# By benchmark; each row is the limit, its unit, what it limits, and where the value is.
GOALS: dict[str, tuple[Goal, ...]] = {
    "column": (
        at_most(
            2.2,
            "",
            "1,000,000 rows, 2.6 % of them messy: times `clean=False`",
            ratio(COLUMN, OURS, AS_IT_STANDS, MILLION),
        ),
        at_least(
            60,
            "",
            "1,000,000 rows, `clean=False`: times as fast as email-validator",
            ratio(COLUMN, LOOP, AS_IT_STANDS, MILLION),
        ),
        at_least(
            3.5,
            "",
            "1,000,000 rows, `clean=False`: times as fast as emval's plug-in",
            ratio(COLUMN, PLUGIN, AS_IT_STANDS, MILLION),
        ),
        at_most(
            250,
            "MB",
            "1,000,000 rows, `clean=False`: memory above the input",
            median(MEMORY, AS_IT_STANDS, MILLION),
        ),
    ),
    "clean": (
        at_most(
            1.2,
            "",
            "nothing to repair: times `clean=False`",
            ratio(CLEAN, "verify, clean=True", "verify"),
        ),
    ),
    "files": (
        at_most(
            1.7,
            "",
            "CSV to CSV: times pandas, which checks nothing",
            ratio(CSV, OURS, "pandas, no check"),
        ),
    ),
    "memory": (at_most(500, "MiB", "CSV to CSV, 5,000,000 rows: peak memory", median(LARGE)),),
    "lookups": (
        at_least(
            5, "", "times as many a second as dnspython", least_ratio(LOOKUPS, "dnspython", 20_000)
        ),
        at_least(
            1,
            "",
            "the same for each processor second, as aiodns",
            least_ratio(PROCESSOR, "aiodns", 20_000),
        ),
    ),
    "congestion": (
        at_most(1, "%", "domains without an answer, at the worst resolver", largest(UNANSWERED)),
        at_most(
            4,
            "",
            "times as long as a client that knows the resolver, at the worst",
            largest(DNS_TIME),
        ),
    ),
    "smtp": (
        at_least(
            13,
            "",
            "refusals punished: times as fast as aiosmtplib",
            ratio(f"{PUNISHED} everywhere", PEER, OURS),
        ),
        at_least(
            3.5, "", "the same with PIPELINING at 70 %", ratio(f"{PUNISHED} at 70 %", PEER, OURS)
        ),
        at_least(
            15,
            "",
            "no punishment: times as fast as aiosmtplib",
            ratio(f"{UNPUNISHED} everywhere", PEER, OURS),
        ),
    ),
    "journal": (
        at_most(15, "s", "a column of 1,000,000 known addresses", median(KNOWN, size=MILLION)),
    ),
    "service": (
        at_least(
            0.6, "", "single checks a second, times those of a bare echo", ratio(CHECKS, OURS, ECHO)
        ),
        at_most(50, "ms", "a bulk of 100 accepted", median("a bulk of 100 accepted, alone")),
        at_most(
            0,
            "",
            "jobs lost or doubled, or clients with a wrong quota, after `kill -9`",
            largest(KILL),
        ),
        at_most(30, "%", "of a core, to poll 2,000 jobs", median("share of a core, polling")),
    ),
    "hostile.fairness": (
        at_most(
            2,
            "s",
            "ten jobs of a client beside 5,000 at slow servers, on SQLite",
            largest("SQLite: ten jobs"),
        ),
        at_most(2, "s", "the same on PostgreSQL", largest("PostgreSQL: ten jobs")),
    ),
    "cluster": (
        at_most(
            50,
            "ms",
            "a bulk of 100 accepted",
            median("a bulk of 100 accepted, PostgreSQL", "alone"),
        ),
    ),
    "scale": (at_most(1, "%", "questions to the DNS beyond one for each domain", share_repeated),),
    "audit": (
        at_most(
            0.2,
            "s",
            "100,000 rows: the slowest action, from the click until painted",
            slowest(CLICK, 100_000),
        ),
        at_most(1, "s", "1,000,000 rows: the same", slowest(CLICK, MILLION)),
    ),
    "pace": (
        at_most(1, "%", "addresses lost, at the worst service", share_lost),
        at_most(1.3, "units", "an address, median", middle(COST)),
        at_most(1.8, "units", "an address, at the worst service", largest(COST)),
        at_most(2, "", "times as long as a client that knows the limiter, median", middle(TIME)),
        at_most(6, "", "the same, at the worst service", largest(TIME)),
    ),
    "estimate": tuple(
        make(
            limit,
            "%",
            f"of lists: the 95 % interval holds the share, verdict {number}",
            median(f"{HELD} {number}"),
        )
        for number in (1, 2, 3, 4)
        for make, limit in ((at_least, 93), (at_most, 99))
    ),
    "breakdown": (
        at_most(
            6,
            "%",
            "of lists without any effect name a column",
            median("lists without an effect that name a column"),
        ),
        at_least(
            95,
            "%",
            "of lists with a bad source name it",
            median("lists with a bad source that name it"),
        ),
        at_least(93, "%", "of intervals hold the share", median("intervals that hold the share")),
        at_most(97, "%", "of intervals hold the share", median("intervals that hold the share")),
        at_most(
            5,
            "s",
            "of a processor: a million rows with 30 columns",
            median("all of 30 columns ranked, processor time", size=MILLION),
        ),
    ),
    "mailing": (
        at_least(
            70,
            "%",
            "of an oracle's good contacts are won, median of campaigns in the plain world",
            median(f"{MAILINGS}, good contacts", "plain", LIST_SIZE),
        ),
        at_most(
            5,
            "%",
            "of the waves in the plain world are above the bounce budget",
            median(f"{MAILINGS}, waves above the budget", "plain", LIST_SIZE),
        ),
        at_most(
            0,
            "%",
            "of the campaigns in the plain world are above the bounce budget",
            median(f"{MAILINGS}, campaigns above the budget", "plain", LIST_SIZE),
        ),
        at_most(
            1.5,
            "",
            "times the budget bounce in the first wave after another list, at worst",
            most_of(f"{MAILINGS}, bounces of the first wave by the budget", "after "),
        ),
        at_most(
            10,
            "s",
            "of processor time for a call, 1,000,000 rows",
            slowest("a call of mailing, pro", MILLION),
        ),
        at_most(
            700,
            "MiB",
            "above the frame for a call, 1,000,000 rows",
            slowest("a call of mailing, mem", MILLION),
        ),
    ),
}
