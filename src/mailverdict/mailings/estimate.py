"""`estimate`: what a verification would find and cost, from a sample.

What costs nothing is done for all rows. In order:

1. the column is read (`read_list`), and what another verifier settled is left out (`leave_known`);
2. the lists and the DNS say what they know of each distinct address (`observe_addresses`);
3. from the addresses that only a mail server or a service can tell more of, a sample is drawn and
   verified (`draw_addresses`, `verify_sample`);
4. the shares of the whole, its cost and its operators follow.

An array named `rows` has the number of rows of each distinct address.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Unpack

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.operators import known_operators, name_operators
from ..errors import SettingsError
from ..frames.domains import look_up
from ..frames.planning import ask_quota, count_in_journal
from ..frames.reading import MISSING as MISSING_CELL
from ..frames.reading import SEVERAL, count_standing, describe_columns, read_addresses
from ..frames.results import Results
from ..frames.verify import collect, prepare, tables_of, with_known
from ..local.backend import LocalBackend
from ..local.batch import ObservedBatch
from ..loop import run_sync
from ..model.arrow import Bools, one_array, to_bools
from ..model.words import (
    SEVERAL_ADDRESSES,
    Status,
    ValidationType,
    Verdict,
    count_of,
    percent,
    reason_label,
)
from ..reports.by_operator import ANSWERS, answers_of, operator_line
from ..reports.tables import CountTable
from ..runs.execution import unique_addresses
from ..runs.options import Options
from ..runs.plan import daily_portions
from ..runs.run import Run
from ..table.notices import warn_user
from ..table.options import ColumnChoice, RunOptions, check_options
from ..table.overwrite import read_existing
from ..theme import notebook
from .beta import Floats
from .sampling import Ints, Sample, draw, pool_strata

UNANSWERED = "unanswered"
OUTCOMES = (*map(str, Verdict), UNANSWERED)  # what a sampled address may have
MISSING = str(Status.MISSING)
LINES = (*OUTCOMES, SEVERAL_ADDRESSES, MISSING)
MX = ("all", None)
MOST_SEED = 10**16  # a seed is the key of a hash, which has 16 octets
OPERATORS = 20  # with the most addresses, that are shown
ASKED = ("verdict", "why", "status", "catch_all")  # result columns of the sample


@dataclass(frozen=True)
class EstimatedCost:
    """What a verification of the rest would cost."""

    addresses: int  # whose answer is not known yet
    units: int | None  # of the service's quota; None for a backend without one
    # On which something is submitted; None without a quota, or with one that never allows it.
    days: int | None
    hours: float | None  # at the pace of the sample; None if half of its answers were known before

    def __str__(self) -> str:
        """In words."""
        words = [f"{count_of(self.addresses, 'address')} left"]
        if self.units is not None:
            words.append(count_of(self.units, "unit"))
        if self.days is not None:
            words.append(f"{count_of(self.days, 'day')} at the quota")
        if self.hours is not None:
            words.append(f"{duration(self.hours)} at the pace of the sample")
        return ", ".join(words)


@dataclass(frozen=True)
class Estimate:
    """What a verification would find and cost; prints as a small table.

    Attributes
    ----------
    shares : DataFrame
        Index `bucket`: valid, risky, invalid, unknown, unanswered (asked, and no answer came),
        several_addresses, missing. `share` of all rows (float64), `low` and `high` of its 95 %
        interval (float64), and the `rows` and `addresses` (distinct) of the whole that it stands
        for (int64).
    cost : EstimatedCost
        `addresses` whose answer is not known yet, `units` of quota, `days` at the quota, `hours` at
        the pace of the sample; None where it does not apply.
    operators : DataFrame
        Index `operator`, the 20 with the most addresses: `addresses` in the list and `sampled` ones
        (int64). Then for the sampled ones: `clear` answers (int64), their `share` with `low` and
        `high` of its 95 % interval (float64), and `catch_all`, `deferred`, `refused`, `no_answer`,
        `dead` and `note` as in `breakdown` by operator. No rows where no domain is looked up first:
        ``mx=None``, and types that are verified whole.
    sampled : int
        Addresses in the sample that were asked about.
    sample : int
        Addresses that were drawn; more than `sampled` if the quota ended early.
    population : int
        Addresses that it was drawn from: those about which only a mail server or a service can tell
        more.
    origin : str
        The three numbers in words.

    Examples
    --------
    >>> import mailverdict as mv
    >>> est = mv.estimate(["ada@example.org", "nobody", None], validation_type="regex")
    >>> est
                share  95 % interval  rows  addresses
    Valid       33.3%                    1          1
    Risky          0%                    0          0
    Invalid     33.3%                    1          1
    Unknown        0%                    0          0
    Empty cell  33.3%                    1          0
    from all addresses; 0 addresses left
    """

    shares: pd.DataFrame
    cost: EstimatedCost
    operators: pd.DataFrame
    sampled: int
    sample: int
    population: int

    def to_dict(self) -> dict[str, Any]:
        """Give all of it as plain values.

        Returns
        -------
        dict
            JSON-ready; the frames are lists of their rows.
        """
        return {
            "shares": rows_of(self.shares),
            "cost": asdict(self.cost),
            "operators": rows_of(self.operators),
            "sampled": self.sampled,
            "sample": self.sample,
            "population": self.population,
        }

    def __repr__(self) -> str:
        """The same table, for a prompt."""
        return str(self)

    def __str__(self) -> str:
        """A line for each outcome, then what it is made from and what the rest costs."""
        head = ("", "share", "95 % interval", "rows", "addresses")
        table = [head]
        for name in self._shown():
            table.append((LINE_LABELS[name], *self._cells(name)))
        widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
        lines = []
        for first, *others in table:
            cells = [first.ljust(widths[0])]
            for text, width in zip(others, widths[1:], strict=True):
                cells.append(text.rjust(width))
            lines.append("  ".join(cells).rstrip())
        return "\n".join([*lines, f"{self.origin}; {self.cost}"])

    def _shown(self) -> list[str]:
        """The lines that apply."""
        rows = self.shares["rows"].fillna(0)
        return [name for name in LINES if name in tuple(Verdict) or rows[name]]

    def _cells(self, name: str) -> tuple[str, str, str, str]:
        """The share, its interval, and the rows and addresses of a line; empty where not known."""
        line: dict[str, Any] = {str(column): self.shares.at[name, column] for column in self.shares}
        share = ""
        if not np.isnan(line["share"]):
            share = percent(line["share"], 1.0)
        interval = ""
        if line["low"] != line["high"]:
            interval = f"{line['low']:.1%} to {line['high']:.1%}"
        return share, interval, count_text(line["rows"]), count_text(line["addresses"])

    @property
    def origin(self) -> str:
        """How many addresses it is made from, in words."""
        whole = count_of(self.population, "address")
        if self.sampled == self.population:
            return "from all addresses"
        if self.sampled == self.sample:
            return f"from a sample of {self.sampled:,} of {whole}"
        return (
            f"from {self.sampled:,} of a sample of {self.sample:,} of {whole} (no quota for more "
            "now)"
        )

    def _repr_html_(self) -> str:
        """The table for notebooks; every text is escaped."""
        table = CountTable(self.shares.loc[self._shown()])
        origin = notebook(f"<p>{self.origin}; {self.cost}</p>")
        return f"{table._repr_html_()}{origin}"


LINE_LABELS = {name: reason_label(name) for name in LINES}
LINE_LABELS[UNANSWERED] = "No answer came"


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame with its index, as plain values."""
    rows: list[dict[str, Any]] = json.loads(frame.reset_index().to_json(orient="records"))
    return rows


def count_text(count: Any) -> str:
    """A count in digits; empty if it is not known."""
    if pd.isna(count):
        return ""
    return f"{count:,}"


def duration(hours: float) -> str:
    """About how long, in words.

    >>> duration(0.4), duration(30.0)
    ('24 min', '30 h')
    """
    if hours < 2:
        return f"{max(1, round(hours * 60)):,} min"
    return f"{round(hours):,} h"


def estimate(
    data: Any,
    column: ColumnChoice | None = None,
    *,
    sample: int = 400,
    seed: int | None = None,
    mx: str | None = "all",
    **options: Unpack[RunOptions],
) -> Estimate:
    """Estimate what `verify` would find and cost, by verifying a sample.

    What costs nothing is done for all rows: cells are repaired, repeated addresses counted once,
    what another verifier settled is taken from `known`, and each domain is looked up in the DNS of
    this machine. Only what a mail server or a service must tell is sampled. Answers are kept in the
    journal, so that `verify` asks only the rest. What a local backend verifies without mail servers
    (``regex``, ``mx``, ``mx_blacklist``) is verified whole.

    Parameters
    ----------
    data, column
        As in `verify`.
    sample : int, default 400
        Distinct addresses to draw. 400 give a share of one half to within 5 percentage points.
    seed : int, optional
        Another seed, from 0, draws other addresses. The same one draws the same from the same list,
        in any order of its rows, so that calling again asks nothing again; a larger sample holds
        nearly all of a smaller one.
    mx : {"all", None}, default "all"
        Look up each domain first: addresses that receive no mail are not sampled, and the sample is
        drawn by operator of the mail servers. None: no domain is looked up, and it is drawn by
        domain.
    **options
        The keyword arguments of `verify`; only `validation_type` has another default, ``smtp``.
        `screen` may be the `LocalBackend` that looks the domains up. Those about the columns of the
        result (`columns`, `categories`, `prefix`, `overwrite`) are an error here.

    Returns
    -------
    Estimate
        `shares`, `cost` and `operators` as frames and numbers; prints as a small table. If the
        quota ends early, it is made from the part of the sample that was asked about.

    Raises
    ------
    ColumnError, SettingsError, ResolverError, BackendError, JournalError
        As `verify`.

    Warns
    -----
    UserWarning
        As `verify`, about the sample.

    Examples
    --------
    >>> import mailverdict as mv
    >>> people = ("ada", "bo", "cy")
    >>> emails = [f"{name}@gmail.com" for name in people]
    >>> emails += [f"{name}@gone.example" for name in people]
    >>> with mv.sandbox.World() as world:
    ...     est = mv.estimate(emails, backend=world.backend, journal=None, progress=False)
    >>> est.population, est.cost.units, list(est.operators.index)
    (3, None, ['bigmail.example'])
    """
    asked = {"validation_type": "smtp", **options}
    checked = with_known(check_options("estimate", asked, RunOptions.__annotations__))
    size = check_sample(sample, seed, mx)
    fixed = Fixed()
    addresses, rows = read_list(data, column, checked, fixed)
    addresses, rows = leave_known(addresses, rows, checked, fixed)
    facts = observe_addresses(addresses, checked, mx)
    fixed.add(Verdict.INVALID, rows, facts.is_dead)
    dead = addresses.filter(pa.array(facts.is_dead))
    living = np.flatnonzero(~facts.is_dead)
    addresses = addresses.take(pa.array(living))
    rows = rows[living]
    facts = facts.take(living)

    if checked.settings.limit is not None:
        size = min(size, checked.settings.limit)
    if is_verified_whole(checked):
        size = len(addresses)
    strata, drawn = draw_addresses(addresses, rows, facts, size, seed or 0)
    answers = verify_sample(addresses.take(pa.array(drawn)), checked)
    drawn = drawn[: len(answers.outcomes)]
    by_rows = Sample(strata, rows, drawn)
    by_addresses = Sample(strata, np.ones(len(rows)), drawn)
    return Estimate(
        shares=share_table(fixed, by_rows, by_addresses, answers.outcomes),
        cost=cost_of_rest(addresses, dead, checked, answers),
        operators=operator_table(facts.operators, drawn, answers),
        sampled=len(drawn),
        sample=answers.drawn,
        population=len(addresses),
    )


def check_sample(sample: int, seed: int | None, mx: str | None) -> int:
    """The size of the sample; a `SettingsError` for an argument that cannot work."""
    if isinstance(sample, bool) or not isinstance(sample, (int, np.integer)) or sample < 1:
        raise SettingsError(f"sample={sample!r}: give a number of addresses, from 1")
    is_number = isinstance(seed, (int, np.integer)) and not isinstance(seed, bool)
    if seed is not None and not (is_number and 0 <= seed < MOST_SEED):
        raise SettingsError(
            f"seed={seed!r}: give a whole number from 0, below 10 to the power of 16, or None"
        )
    if mx not in MX:
        raise SettingsError(f"mx={mx!r}: give 'all' or None")
    return int(sample)


def is_verified_whole(options: Options) -> bool:
    """Whether all addresses are verified, since this costs no unit and asks no mail server."""
    if options.is_free:
        return True
    is_smtp = options.validation_type is ValidationType.SMTP
    return isinstance(options.backend, LocalBackend) and not is_smtp


# --- what costs nothing ---------------------------------------------------------------------------


class Fixed:
    """Rows and distinct addresses whose line is known without a sample."""

    def __init__(self) -> None:
        self.rows = dict.fromkeys(LINES, 0)
        self.addresses = dict.fromkeys(LINES, 0)

    def add(self, line: str, rows: Floats, which: Bools) -> None:
        """Add some of the addresses; `rows` has the number of rows of each."""
        self.rows[line] += int(rows[which].sum())
        self.addresses[line] += int(which.sum())


def read_list(
    data: Any, column: ColumnChoice | None, options: Options, fixed: Fixed
) -> tuple[pa.StringArray, Floats]:
    """The well-formed addresses, repaired, and the rows of each; other cells are `fixed`."""
    tables = tables_of(data, column)
    kept = None
    if options.clean:
        kept = [read_existing(table, options.prefix).kept_repairs() for table in tables]
    cells = [table.values() for table in tables]
    read = read_addresses(cells, clean=options.clean, keep_syntax=True, kept=kept)
    warn_user(*describe_columns(read, column))
    is_well_formed = read["well_formed"]
    is_malformed = pc.and_not(read["standing"].is_null(), is_well_formed)
    malformed, rows = count_rows(read["text"].filter(is_malformed))
    fixed.add(Verdict.INVALID, rows, np.ones(len(malformed), np.bool_))
    fixed.rows[MISSING] = count_standing(read, MISSING_CELL)
    several = count_standing(read, SEVERAL)
    fixed.rows[SEVERAL_ADDRESSES] = several
    fixed.addresses[SEVERAL_ADDRESSES] = several
    return count_rows(read["text"].filter(is_well_formed))


def count_rows(texts: pa.StringArray) -> tuple[pa.StringArray, Floats]:
    """The distinct texts, and how often each is there."""
    distinct, codes = unique_addresses(texts)
    rows = np.bincount(codes, minlength=len(distinct))
    return distinct, rows.astype(np.float64)


def leave_known(
    addresses: pa.StringArray, rows: Floats, options: Options, fixed: Fixed
) -> tuple[pa.StringArray, Floats]:
    """Without those that another verifier settled, which are `fixed`."""
    if options.known is None:
        return addresses, rows
    place = options.known.find(addresses)
    verdicts = one_array(options.known.rows["result"].cast(pa.string())).take(place)
    for verdict in (Verdict.VALID, Verdict.INVALID):
        is_settled = pc.equal(verdicts, str(verdict)).fill_null(False)
        fixed.add(verdict, rows, to_bools(is_settled))
    is_left = place.is_null()
    return addresses.filter(is_left), rows[to_bools(is_left)]


@dataclass(frozen=True)
class AddressFacts:
    """What lists and the DNS say about each distinct address."""

    is_dead: Bools  # it is established that its domain receives no mail
    # Role, disposable or spamtrap, which decide about the verdict of an accepted address.
    is_flagged: Bools
    operators: pa.StringArray  # null where the mail servers are not known
    domains: pa.StringArray

    def take(self, rows: Ints) -> AddressFacts:
        """Those of some addresses."""
        return AddressFacts(
            self.is_dead[rows],
            self.is_flagged[rows],
            self.operators.take(pa.array(rows)),
            self.domains.take(pa.array(rows)),
        )


def observe_addresses(addresses: pa.StringArray, options: Options, mx: str | None) -> AddressFacts:
    """Look at the lists and, unless `mx` is None or a run does it anyway, in the DNS."""
    is_looked_up = mx is not None and not is_verified_whole(options)
    if options.settings.offline:
        is_looked_up = False
    backend = options.backend
    is_owned = False
    # The run closes one of its own.
    if not isinstance(backend, LocalBackend) or options.owns_backend:
        backend = options.screen
        is_owned = not isinstance(backend, LocalBackend)
    if is_owned:
        backend = LocalBackend()

    async def observe() -> tuple[ObservedBatch, Mapping[int, Any], list[str]]:
        batch = await backend.observe_batch(addresses)
        names = list[str]()
        if is_looked_up:
            names = batch.domain_names()
        evidence, notices = await look_up(names, backend, is_owned=is_owned)
        return batch, evidence, notices

    batch, evidence, notices = run_sync(observe())
    warn_user(*notices)
    domains = batch.domains["domain"]
    hosts: list[str | None] = [None] * len(domains)
    is_undeliverable = np.zeros(len(domains), np.bool_)
    for place, dns in evidence.items():
        is_undeliverable[place] = dns.is_undeliverable
        if dns.exchanges:
            hosts[place] = dns.exchanges[0].host
    operators = name_operators(pa.array(hosts, pa.string()), domains)
    flags = batch.flags_of(batch.rows)
    is_flagged = np.zeros(len(batch), np.bool_)
    for name in ("role", "disposable", "spamtrap"):
        is_flagged |= to_bools(flags[name].fill_null(False))
    domain = batch.rows["domain"].indices
    return AddressFacts(
        is_undeliverable[domain.to_numpy()],
        is_flagged,
        operators.take(domain),
        domains.take(domain),
    )


def draw_addresses(
    addresses: pa.StringArray, rows: Floats, facts: AddressFacts, size: int, seed: int
) -> tuple[Ints, Ints]:
    """The stratum of each address, and the positions of the sample in the order of asking.

    The strata are operators (domains where these are not known), each in two halves: what a list
    flags has another verdict if it is accepted. An address of very many rows is drawn for certain.
    """
    coded = pc.coalesce(facts.operators, facts.domains).dictionary_encode()
    width = len(coded.dictionary)
    operator = coded.indices.to_numpy().astype(np.int64)
    half = operator + width * facts.is_flagged
    kinds = np.repeat([0, 1], width)
    strata = pool_strata(half, kinds, size)
    is_certain = (rows > 1) & (rows * size >= rows.sum())
    strata = np.where(is_certain, len(strata), strata)
    _, codes = np.unique(strata, return_inverse=True)
    strata = codes.astype(np.int64)

    texts = addresses.to_numpy(zero_copy_only=False)
    ranks = pd.util.hash_array(texts, hash_key=f"{seed:016d}", categorize=False)
    drawn = draw(strata, ranks, size, certain=is_certain)
    return strata, drawn


# --- the sample -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class SampleAnswers:
    """What came out for the addresses of a sample whose turn came, in the order of the draw."""

    outcomes: Ints  # indices of `OUTCOMES`
    codes: Ints  # indices of `ANSWERS`, and the one after the last
    drawn: int  # addresses of the sample
    seconds: float  # that the run took
    asked: int  # addresses about which the backend was asked newly


def verify_sample(addresses: pa.StringArray, options: Options) -> SampleAnswers:
    """Verify the addresses of the sample; what is known in the journal is not asked again.

    If the quota ends, those after the first without a turn are left out: what is known of them was
    not drawn.
    """
    chosen = replace(options, known=None, clean=False, columns=ASKED, categories=True, prefix=None)
    run = prepare(pa.table({"email": addresses}), "email", chosen)
    began = time.perf_counter()
    rows = Results(collect(run._start()), "email", None)
    seconds = time.perf_counter() - began
    turns = first_without_turn(run, addresses, rows)
    outcomes = pc.index_in(rows["verdict"], value_set=pa.array(OUTCOMES))
    outcomes = outcomes.fill_null(OUTCOMES.index(UNANSWERED))
    return SampleAnswers(
        outcomes=outcomes.to_numpy().astype(np.int64)[:turns],
        codes=answers_of(rows).to_numpy().astype(np.int64)[:turns],
        drawn=len(addresses),
        seconds=seconds,
        asked=run._execution.newly_verified,
    )


def first_without_turn(run: Run[Any], addresses: pa.StringArray, rows: Results) -> int:
    """The position of the first address that the quota or ``offline`` left out.

    The number of all if there is none.
    """
    is_left = pc.equal(rows["status"], str(Status.PENDING))
    # Then others are pending, too: they were asked, and no answer came.
    if run._execution.unanswered:
        short = list[str]()
        for batch in run._execution.short_of_quota:
            short += batch.emails
        is_short = pc.is_in(addresses, value_set=pa.array(short, pa.string()))
        is_left = pc.and_(is_left, is_short)
    left = np.flatnonzero(to_bools(is_left.fill_null(False)))
    if not len(left):
        return len(addresses)
    return int(left[0])


# --- the whole ------------------------------------------------------------------------------------


def share_table(
    fixed: Fixed, by_rows: Sample, by_addresses: Sample, outcomes: Ints
) -> pd.DataFrame:
    """The shares of all rows, and what they stand for."""
    every = sum(fixed.rows.values()) + by_rows.total
    table = {}
    for code, line in enumerate(LINES):
        bounds = (0.0, 0.0, 0.0)
        part = 0.0
        if line in OUTCOMES and by_rows.total:
            bounds = by_rows.share(outcomes == code)
            part, _, _ = by_addresses.share(outcomes == code)
        shares = []
        for bound in bounds:
            rows = fixed.rows[line] + bound * by_rows.total
            shares.append(rows / max(every, 1))
        addresses = fixed.addresses[line] + part * by_addresses.total
        table[line] = (*shares, shares[0] * every, addresses)
    names = ["share", "low", "high", "rows", "addresses"]
    lines = pd.DataFrame.from_dict(table, orient="index", columns=names, dtype="float64")
    for name in ("rows", "addresses"):
        lines[name] = lines[name].round().astype("Int64")
    return CountTable(lines.rename_axis(index="bucket"))


def cost_of_rest(
    addresses: pa.StringArray, dead: pa.StringArray, options: Options, answers: SampleAnswers
) -> EstimatedCost:
    """What a verification of all would cost now; for free types nothing is left.

    Those that are `dead` by the DNS of this machine are submitted to a service, too, unless
    `screen` finds them first.
    """
    if is_verified_whole(options):
        return EstimatedCost(addresses=0, units=None, days=None, hours=None)
    asked = len(addresses) - sum(count_in_journal(addresses, options))
    left = asked
    is_screened = options.screen is not None or isinstance(options.backend, LocalBackend)
    if not is_screened:
        left += len(dead) - sum(count_in_journal(dead, options))
    hours = None
    if 2 * answers.asked > answers.drawn:
        hours = asked * answers.seconds / answers.asked / 3600

    quota = None
    if not options.settings.offline:
        renewed = options.renewed()
        quota = ask_quota(renewed.backend, owned=renewed.owns_backend)
    if quota is None:
        return EstimatedCost(addresses=left, units=None, days=None, hours=hours)
    days = None
    portions = daily_portions(left, quota)
    if portions is not None:
        days = sum(times for _, times in portions)
    return EstimatedCost(addresses=left, units=left, days=days, hours=hours)


def operator_table(operators: pa.StringArray, drawn: Ints, answers: SampleAnswers) -> pd.DataFrame:
    """The largest operators: the addresses at each, and the answers to those in the sample."""
    coded = operators.dictionary_encode()
    texts = coded.dictionary.to_numpy(zero_copy_only=False)
    operator = coded.indices.fill_null(-1).to_numpy()
    sizes = np.bincount(operator[operator >= 0], minlength=len(texts))
    largest = np.lexsort((texts, -sizes))[:OPERATORS]
    known = known_operators()
    drawn_operator = operator[drawn]
    lines = []
    for code in largest.tolist():
        size = sizes[code]
        codes = answers.codes[drawn_operator == code]
        counts = np.bincount(codes, minlength=len(ANSWERS) + 1)
        line = operator_line(counts, known.get(texts[code], ()))
        # The operator's addresses as one stratum, of which the first ones were drawn.
        one_stratum = np.zeros(size, np.int64)
        sample = Sample(one_stratum, np.ones(size), np.arange(len(codes)))
        is_clear = np.isin(codes, CLEAR)
        _, line["low"], line["high"] = sample.share(is_clear)
        line["sampled"] = line["addresses"]
        line["addresses"] = size
        lines.append(line)
    index = pd.Index(texts[largest], dtype=object, name="operator")
    table = pd.DataFrame(lines, index, list(OPERATOR_COLUMNS), dtype=object)
    return CountTable(table.astype(OPERATOR_COLUMNS))


CLEAR = [ANSWERS.index("live"), ANSWERS.index("dead")]
OPERATOR_COLUMNS: dict[str, Any] = {
    **dict.fromkeys(("addresses", "sampled", "clear"), "int64"),
    **dict.fromkeys(("share", "low", "high"), "float64"),
    **dict.fromkeys(("catch_all", "deferred", "refused", "no_answer", "dead"), "int64"),
    "note": object,
}
