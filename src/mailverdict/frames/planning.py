"""`plan` and `quota`: what a call would do and cost, before it does."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from ..backend import Backend, Quota
from ..checks.syntax.column import observe_column
from ..errors import ResolverError, SettingsError
from ..local.backend import LocalBackend
from ..loop import run_sync
from ..model.table import SOURCE_LOCAL
from ..runs.execution import find_known, unique_addresses
from ..runs.options import Options, pick_screen
from ..runs.plan import Plan, plan_run
from ..runs.single import open_backend
from ..table.notices import warn_user
from ..table.options import ColumnChoice, VerifyOptions, check_options
from ..table.overwrite import read_existing
from ..table.table import Table
from .reading import MISSING, SEVERAL, count_standing, find_odd_forms, read_addresses
from .seen_addresses import SeenAddresses
from .verify import tables_of, with_known

# Seconds for the test of the resolver, which else waits for the answers to several questions.
RESOLVER_SECONDS = 5.0


def quota(backend: Backend | str) -> Quota:
    """Ask a service how much of today's quota is left; this uses no quota.

    Parameters
    ----------
    backend : RemoteBackend or str
        The backend, or the URL of the service.

    Returns
    -------
    Quota
        `daily_limit`, `used` and `remaining`, in addresses.

    Raises
    ------
    SettingsError
        If the backend has no quota; a local backend has none.
    BackendError
        If the service cannot be used.

    Examples
    --------
    >>> import mailverdict as mv
    >>> try:
    ...     mv.quota(mv.LocalBackend())
    ... except mv.SettingsError as error:
    ...     print(error)
    LocalBackend() has no quota; give the URL of a verification service
    """
    reading = ask_quota(backend)
    if reading is None:
        raise SettingsError(f"{backend!r} has no quota; give the URL of a verification service")
    return reading


def ask_quota(backend: Any, *, owned: bool = False) -> Quota | None:
    """A backend's quota; None for one that has none. With `owned` the backend is closed."""

    async def ask() -> Quota | None:
        async with open_backend(backend) as opened:
            try:
                if not hasattr(opened, "quota"):
                    return None
                reading: Quota | None = await opened.quota()
                return reading
            finally:
                if owned:
                    await opened.aclose()

    return run_sync(ask())


def plan(
    data: Any,
    column: ColumnChoice | None = None,
    **options: Unpack[VerifyOptions],
) -> Plan:
    """Work out what `verify` with the same arguments would do and cost. Uses no quota.

    Reads the journal, and asks a service for its quota. Where domains would be looked up on this
    machine, the DNS resolver is tested with a few questions; no domain of the column is looked up,
    so that with ``screen="mx"`` the plan is an upper bound.

    Parameters
    ----------
    data, column
        As in `verify`.
    **options
        The keyword arguments of `verify`; `columns` and `progress` change nothing here.
        The rows of several columns are counted together.

    Returns
    -------
    Plan
        `rows`, `missing`, `malformed`, `unique`, `given`, `known`, `in_flight`, `to_submit`,
        `batches`, `daily_limit`, `remaining`, `days`, `outdated`; prints as a small table.

    Raises
    ------
    ColumnError, SettingsError, JournalError, BackendError
        As `verify`.

    Warns
    -----
    UserWarning
        If the DNS resolver answers falsely or not at all.

    Examples
    --------
    >>> import mailverdict as mv
    >>> emails = ["ada@example.org", "ADA@Example.org", "ada@example.ORG", "nobody", None]
    >>> with mv.sandbox.World() as world:
    ...     found = mv.plan(emails, backend=world.backend)
    >>> found.rows, found.missing, found.malformed, found.unique
    (5, 1, 1, 2)
    """
    return plan_pieces([tables_of(data, column)], options)


def plan_pieces(pieces: Iterable[Sequence[Table]], options: VerifyOptions) -> Plan:
    """The plan for a table that comes in pieces.

    Each piece has the columns to verify. Keeps a hash of each address.
    """
    checked = with_known(check_options("plan", options))

    def read(piece: Sequence[Table]) -> pa.RecordBatch:
        kept = None
        if checked.clean:
            existing = [read_existing(table, checked.prefix) for table in piece]
            kept = [results.kept_repairs() for results in existing]
        cells = [table.values() for table in piece]
        return read_addresses(cells, clean=checked.clean, keep_syntax=True, kept=kept)

    planned = plan_addresses(map(read, pieces), checked)
    if planned.unique > planned.known + planned.given:
        notices = resolver_notices(check_options("plan", options))
        warn_user(*notices)
    return planned


def plan_addresses(reads: Iterable[pa.RecordBatch], options: Options) -> Plan:
    """The plan for columns that were read, in one piece or several.

    Closes a backend that was made from a URL.
    """
    counter = PlanCounter(options)
    for read in reads:
        counter.add(read)
    quota = None
    limit: int | None = 0
    if not options.settings.offline:
        quota = ask_quota(options.backend, owned=options.owns_backend)
        limit = options.settings.limit
    max_age = None
    if options.journal is not None:
        max_age = options.settings.max_age
    figures: dict[str, Any] = dict(counter.counts)
    return plan_run(
        **figures,
        repaired=counter.repaired(),
        quota=quota,
        limit=limit,
        repeats=getattr(options.backend, "max_repeats", 0),
        max_age=max_age,
    )


class PlanCounter:
    """Counts the rows and addresses of pieces, each address once."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.seen = SeenAddresses()
        # Addresses that no cell holds as it stands, so that only a repair gives them.
        self.rescued = pa.array([], pa.string())
        names = (
            "rows",
            "missing",
            "malformed",
            "several",
            "unique",
            "given",
            "known",
            "in_flight",
            "held",
        )
        self.counts: Counter[str] = Counter(dict.fromkeys(names, 0))

    def add(self, read: pa.RecordBatch) -> None:
        """Count a piece, as `read_addresses` gives it."""
        accepted = self.accepted(read)
        missing = count_standing(read, MISSING)
        several = count_standing(read, SEVERAL)
        malformed = accepted.false_count - missing - several
        self.counts.update(rows=len(read), missing=missing, several=several, malformed=malformed)

        options = self.options
        is_asked = accepted
        if "wanted" in read.schema.names and not options.is_free:
            is_asked = pc.and_(accepted, read["wanted"])
        distinct, _ = unique_addresses(read["text"].filter(is_asked))
        unique = self.seen.keep_new(distinct)
        self.counts.update(unique=len(unique))
        if options.known is not None:
            is_open = options.known.find(unique).is_null()
            unique = unique.filter(is_open)
            self.counts.update(given=is_open.false_count)
        in_journal = count_in_journal(unique, options)
        self.counts.update(in_journal._asdict())
        self.add_rescued(read, is_asked, unique)

    def accepted(self, read: pa.RecordBatch) -> pa.BooleanArray:
        """The rows whose text is an address that the backend is asked about."""
        if "well_formed" in read.schema.names:
            accepted = read["well_formed"]
        else:
            is_cleaned = "clean" in read.schema.names
            accepted = observe_column(read["text"], lenient=is_cleaned)["well_formed"]
        if self.options.backend.source == SOURCE_LOCAL:
            return accepted
        return pc.and_not(accepted, find_odd_forms(read))  # no service is asked about them

    def add_rescued(
        self, read: pa.RecordBatch, is_asked: pa.BooleanArray, unique: pa.StringArray
    ) -> None:
        """Add the new addresses of a piece without those that a cell of it holds as it stands."""
        if "rescued" not in read.schema.names:
            return
        is_rescued = read["rescued"]
        if not is_rescued.true_count and not len(self.rescued):
            return
        is_written = pc.and_not(is_asked, is_rescued)
        written, _ = unique_addresses(read["text"].filter(is_written))
        rescued = pa.concat_arrays([self.rescued, unique])
        is_elsewhere = pc.is_in(rescued, value_set=written)
        self.rescued = rescued.filter(pc.invert(is_elsewhere))

    def repaired(self) -> int:
        """How many of the addresses to submit only a repair gives."""
        if not len(self.rescued):
            return 0
        return len(self.rescued) - sum(count_in_journal(self.rescued, self.options))


def resolver_notices(options: Options) -> list[str]:
    """Why the resolver of this machine cannot be trusted; empty if it can, or is not needed."""

    async def test(backend: LocalBackend, *, owned: bool) -> list[str]:
        try:
            async with asyncio.timeout(RESOLVER_SECONDS):
                await backend.domains.require_resolver()
                return backend.domains.take_notices()
        except (ResolverError, SettingsError) as exc:  # SettingsError: the system has no resolver
            return [str(exc)]
        except TimeoutError:
            return [
                f"the DNS resolver did not answer within {RESOLVER_SECONDS:.0f} s:"
                " see mailverdict.audit_host()"
            ]
        finally:
            if owned:
                await backend.aclose()

    if options.is_free or options.settings.offline:
        return []
    screen = pick_screen(options)
    if isinstance(options.backend, LocalBackend):
        return run_sync(test(options.backend, owned=options.owns_backend))
    if screen is not None and screen.with_dns:
        return run_sync(test(screen.backend, owned=screen.owns_backend))
    return []


class JournalCounts(NamedTuple):
    """How many addresses are in the journal; each is counted once."""

    known: int = 0
    in_flight: int = 0
    held: int = 0


def count_in_journal(unique: pa.StringArray, options: Options) -> JournalCounts:
    """What the journal has of some addresses; one that does not exist is not created."""
    if options.journal is None or not options.journal.exists():
        return JournalCounts()
    # It brings SQLite, which few calls need.
    from ..runs.journal.journal import Journal  # noqa: PLC0415

    with Journal(options.journal) as journal:
        key = options.backend.journal_key(options.validation_type)
        known = find_known(journal, options.backend, options.settings, unique, journal.clock())
        jobs = journal.in_flight(key, unique)
        held = journal.unclaimed(key, unique).held
    settled = set(known["email"].to_pylist())
    in_flight = {job.email for job in jobs} - settled
    others = set(held.to_pylist()) - settled - in_flight
    return JournalCounts(len(known), len(in_flight), len(others))
