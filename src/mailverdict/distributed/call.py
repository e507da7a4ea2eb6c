"""One distributed call in the calling process: its arguments, its stages, progress and warnings.

An `Engine` (of Dask or Spark) runs the tasks of a stage:

    observe            each partition writes what it has to ask
    ask_domains        for each shard of domains
    route_addresses    for `smtp` alone: which task asks which mail servers (`decide_routing`)
    ask_mailboxes      for each shard of mail servers
    attach             the frame with the answers, lazily

This process receives reports and has no address, unless the addresses have to be verified from
here: by a service, under a limit, or from a journal (`verify_texts`).
"""

from __future__ import annotations

import atexit
import heapq
import json
import logging
import math
import pickle
import secrets
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from os import PathLike
from typing import Any, Protocol

import pyarrow as pa

from .. import errors
from ..backend import Backend
from ..checks.syntax.column import observe_column
from ..errors import BackendError, MailVerdictError, MissingExtraError, SettingsError
from ..frames.planning import ask_quota, count_in_journal, resolver_notices
from ..frames.verify import collect, describe_several, show_progress
from ..local.backend import LocalBackend
from ..model.settings import Lists
from ..model.words import ValidationType
from ..runs.endings import MALFORMED, describe_ending
from ..runs.execution import unique_addresses
from ..runs.options import Options, open_execution
from ..runs.plan import Plan, plan_run
from ..runs.progress import Progress, ProgressBar, wants_bar
from ..runs.run import Run
from ..table.columns import REPAIR_COLUMNS, Column
from ..table.notices import warn_user
from ..table.options import ColumnChoice, check_options
from .asking import (
    DOMAINS,
    MAILBOXES,
    StageReport,
    ask_domains,
    ask_mailboxes,
    merge_reports,
    route_addresses,
)
from .scratch import Folder, Scratch
from .stages import KeyKind, Routing, StageJob, read_part, sum_counts

logger = logging.getLogger("mailverdict")
DOMAIN_TASKS_PER_SLOT = 4  # so that a slow task does not delay the end much
MAX_DOMAIN_TASKS = 512
# Bounds its memory: a task asks all its mail servers at the same time.
ROWS_PER_MAILBOX_TASK = 50_000
MAX_MAILBOX_TASKS = 4096
MAX_PLACED = 1000  # owners that are placed by their rows; all others are hashed
UNITS = {DOMAINS: "domains", MAILBOXES: "addresses"}  # what the tasks of a stage ask about
POLL_SECONDS = 1.0  # between two looks at the scratch folder, for the progress


Task = Callable[[int, StageJob], str]  # by its number; returns a report


class Engine(Protocol):
    """Runs tasks on the partitions of a frame, and tasks that need only their number."""

    def observe(self, job: StageJob) -> list[str]:
        """Run `observe_part` on each partition; its reports."""
        ...

    def run(self, task: Task, count: int, job: StageJob) -> list[str]:
        """Run a task for each number below `count`; its reports."""
        ...

    def attach(self, job: StageJob) -> Any:
        """The frame with the answers at its rows, lazily."""
        ...


@dataclass(frozen=True)
class Call:
    """The checked arguments of one call."""

    options: Options
    job: StageJob


def open_call(
    function: str,
    empty: Any,
    column: ColumnChoice | None,
    options: Mapping[str, Any],
    *,
    scratch: Folder | None,
    is_local: bool,
    slots: int,
    is_plan: bool = False,
) -> Call:
    """Check the arguments and decide who asks.

    `empty` is a partition without rows; `is_local`: all workers are on this machine; a plan asks
    nothing.
    """
    checked = check_options(function, options)
    if checked.known is not None:
        raise SettingsError(
            "known= is not read on a cluster: leave out the rows that another verifier settled, "
            "as by a join with what mailverdict.read_verdicts returns"
        )
    backend = checked.backend
    key_kind = decide_key_kind(checked, options.get("journal"))
    tasks_ask = key_kind in ("address", "domain")
    pickled = b""
    if tasks_ask:
        pickled = pickle.dumps(backend)
    lists = Lists()
    lists_version = None
    if isinstance(backend, LocalBackend):
        lists = backend.settings.lists
        lists_version = backend.lists_version()
    job = StageJob(
        column=column,
        options=replace(checked, backend=None, screen=None, progress=False),
        validation_type=checked.validation_type,
        key_kind=key_kind,
        backend=pickled,
        source=backend.source,
        lists=lists,
        lists_version=lists_version,
        slots=max(1, slots),
        began_at=datetime.now(UTC),
        max_age=checked.settings.max_age,
        refresh=checked.settings.refresh,
    )
    frame = read_part(empty, job)
    shown: dict[Column, None] = {}
    for result in frame.results:
        shown.update(dict.fromkeys(result.columns.values()))
    asked_for = [column for column in shown if column not in REPAIR_COLUMNS]
    job = replace(job, columns=tuple(asked_for))
    if not is_plan:
        warn_user(*frame.notices)
    if scratch is not None and not isinstance(scratch, str | PathLike):
        raise SettingsError(f"scratch={scratch!r:.80}: give the path or URL of a folder, or None")
    if tasks_ask and not is_plan:
        assert isinstance(backend, LocalBackend)
        backend._require_open()
        job = with_scratch(job, scratch, is_local=is_local, backend=backend)
    return Call(checked, job)


def with_scratch(
    job: StageJob, scratch: Folder | None, *, is_local: bool, backend: Backend
) -> StageJob:
    """A job with its scratch folder, and with the number of its tasks, which the folder keeps."""
    folder = open_scratch(scratch, is_local=is_local, backend=backend, job=job)
    job = replace(job, scratch=folder, call=f"call-{secrets.token_hex(8)}")
    job = replace(job, shards=decide_shards(job))
    is_path_of_user = scratch is not None and "://" not in folder.url
    if is_path_of_user:
        # What the frame of this call reads; the answers stay for later calls.
        atexit.register(folder.delete, job.call)
    return job


def decide_key_kind(options: Options, journal: object) -> KeyKind:
    """What the keys of the answers are, which follows from who asks.

    Each partition (`row`), the calling process (`text`), or tasks.
    """
    is_local = isinstance(options.backend, LocalBackend)
    if is_local and options.is_free and options.settings.limit is None:
        return "row"
    if is_asked_here(options, journal):
        return "text"
    return "address" if options.validation_type is ValidationType.SMTP else "domain"


def is_asked_here(options: Options, journal: object) -> bool:
    """Whether the calling process alone asks, since a quota, limit or journal is in one place."""
    if not isinstance(options.backend, LocalBackend):
        return True
    if options.settings.offline or options.settings.limit is not None:
        return True
    return journal not in ("auto", None) and not options.is_free


def open_scratch(
    scratch: Folder | None, *, is_local: bool, backend: Backend, job: StageJob
) -> Scratch:
    """The folder of answers of the same type and settings, below the one that was given."""
    if scratch is None:
        if not is_local:
            raise SettingsError(
                "scratch=None: the workers are on other machines; give scratch= a folder that this "
                "process and all workers can write, as 's3://bucket/folder' or the path of a "
                "shared directory"
            )
        scratch = tempfile.mkdtemp(prefix="mailverdict-")
        atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    kind = "smtp" if job.key_kind == "address" else str(job.validation_type)
    digest = sha256(backend.journal_key(kind).encode()).hexdigest()[:12]
    return Scratch.open(scratch).below(f"{kind}-{digest}")


def decide_shards(job: StageJob) -> int:
    """How many tasks ask the DNS; a folder of an earlier call has its number."""
    known = job.required_scratch.read_json("shards.json")
    if known is not None:
        return int(known)
    shards = min(MAX_DOMAIN_TASKS, DOMAIN_TASKS_PER_SLOT * job.slots)
    job.required_scratch.write_json("shards.json", shards)
    return shards


# --- asking ----------------------------------------------------------------------------------


def ask_workers(call: Call, engine: Engine) -> Any:
    """Let the tasks of the engine ask; returns the frame with their answers.

    Raises the error of a task if one is of this package: what was settled before is in the scratch
    folder.
    """
    job = call.job
    show = StageProgress(call)
    try:
        with show.watch(job, DOMAINS):
            observed = [json.loads(report) for report in engine.observe(job)]
            counts = sum_counts(observed)
            job = replace(job, parts=[report["part"] for report in observed])
            stage = merge_reports(engine.run(ask_domains, job.shards, job))
        raise_errors(stage)
        show.end_stage(DOMAINS, stage)
        notices = stage.notices
        unit = "rows"
        if job.key_kind == "address":
            well_formed = counts["texts"] - counts["malformed"]
            job = replace(job, routing=decide_routing(job, stage, well_formed))
            with show.watch(job, MAILBOXES):
                engine.run(route_addresses, job.shards, job)
                stage = merge_reports(engine.run(ask_mailboxes, job.routing.shards, job))
            raise_errors(stage)
            show.end_stage(MAILBOXES, stage)
            notices = notices + stage.notices
            unit = "addresses"
        attached = engine.attach(job)
    except BaseException as exc:
        show.emit(state="failed", message=str(exc)[:300])
        raise
    finally:
        for folder in ("observed", "routed"):
            job.exchange.delete(folder)
    causes = stage.causes
    causes[MALFORMED] += counts["malformed"]
    problem = describe_ending(causes, job.source, unit=unit)
    show.emit(state="done", message="", problem=problem)
    warn_user(*dict.fromkeys([*notices, problem]))
    warn_of_rows(counts)
    return attached


def warn_of_rows(counts: Mapping[str, Any]) -> None:
    """Warn of cells with several addresses, and of columns without any address."""
    if counts["several"]:
        warn_user(describe_several(counts["several"]))
    if counts["texts"] == counts["malformed"]:
        warn_user(*counts["notices"])


def raise_errors(stage: StageReport) -> None:
    """Raise the error of the first task that failed for a known cause."""
    if stage.errors:
        raise error_of(*stage.errors[0])


def error_of(name: str, message: str) -> MailVerdictError:
    """The error of a task, which came as text."""
    kind = getattr(errors, name, BackendError)
    is_ours = isinstance(kind, type) and issubclass(kind, MailVerdictError)
    if not is_ours or kind is MissingExtraError:
        kind = BackendError
    error: MailVerdictError = kind(message)
    return error


def decide_routing(job: StageJob, stage: StageReport, rows: int) -> Routing:
    """Give every owner of exchanges one task; owners that share a domain have the same one.

    A task mostly waits for replies, and waits for all its mail servers at once. So there are only
    as many tasks as run at once, as long as their memory allows. What an earlier call on the folder
    decided stays.
    """
    known = job.required_scratch.read_json("routing.json") or {"owners": {}}
    owners = join_organisations(known["owners"], stage.shared)
    known["owners"] = owners
    if "shards" not in known:
        sizes: Counter[str] = Counter()
        for name, size in stage.owners.items():
            sizes[owners.get(name, name)] += size
        known |= place_owners(sizes, max(sizes.total(), rows), job.slots)
    job.required_scratch.write_json("routing.json", known)
    return Routing(known["shards"], owners, known["placed"], known["others"])


def place_owners(sizes: Counter[str], rows: int, slots: int) -> dict[str, Any]:
    """The number of shards, the shard of each large owner, and the shards for all others.

    Each owner, from the largest, gets the shard that has the fewest rows so far; so large owners
    start first.
    """
    wanted = math.ceil(rows / ROWS_PER_MAILBOX_TASK)
    shards = max(slots, min(MAX_MAILBOX_TASKS, wanted))
    load = [(0, shard) for shard in range(shards)]
    placed = {}
    for name, size in sizes.most_common(MAX_PLACED):
        least, shard = heapq.heappop(load)
        heapq.heappush(load, (least + size, shard))
        placed[name] = shard
    # At least one has not more than the mean.
    others = sorted(shard for size, shard in load if size * shards <= rows)
    return {"shards": shards, "placed": placed, "others": others}


def join_organisations(known: Mapping[str, str], shared: Sequence[Sequence[str]]) -> dict[str, str]:
    """The name of the group of each organisation that shares a domain with another.

    >>> join_organisations({}, [["a.example", "b.example"], ["b.example", "c.example"]])
    {'a.example': 'a.example', 'b.example': 'a.example', 'c.example': 'a.example'}
    """
    parent: dict[str, str] = dict(known)

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for names in shared:
        first = root(names[0])
        for name in names[1:]:
            parent[root(name)] = first
    return {name: root(name) for name in sorted(parent)}


# --- progress --------------------------------------------------------------------------------


class StageProgress:
    """Shows each stage that asks: the keys that its tasks have, and how many have an answer."""

    def __init__(self, call: Call) -> None:
        self.progress = Progress(unit="domains")
        self.listener: Callable[[Progress], None] | None = None
        if callable(call.options.progress):
            self.listener = call.options.progress
        elif wants_bar(progress=call.options.progress, is_free=False):
            self.listener = ProgressBar("verify")

    def emit(self, **changes: Any) -> None:
        """Update the progress and show it; a listener that raises is dropped."""
        self.progress = replace(self.progress, **changes)
        if self.listener is not None:
            try:
                self.listener(self.progress)
            except Exception:
                logger.exception("a progress listener failed and was dropped")
                self.listener = None

    @contextmanager
    def watch(self, job: StageJob, stage: str) -> Iterator[None]:
        """Look at the scratch folder once in a while until the stage is over."""
        scratch = job.required_scratch
        over = threading.Event()
        self.emit(unit=UNITS[stage], total=0, settled=0, message=f"stage {stage}")

        def look() -> None:
            while not over.wait(POLL_SECONDS):
                total, settled = scratch.counts(stage)
                self.emit(total=total, settled=settled)

        thread = threading.Thread(target=look, name="mailverdict-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def end_stage(self, stage: str, report: StageReport) -> None:
        """Show and log the counts of a stage."""
        known = report.keys - report.asked
        message = (
            f"stage {stage}: {report.keys:,} {UNITS[stage]} by {report.shards:,} tasks, {known:,} "
            "known before"
        )
        logger.info("%s", message)
        self.emit(total=report.keys, settled=report.keys, message=message)


# --- asking from the calling process ---------------------------------------------------------


def verify_texts(call: Call, texts: pa.StringArray) -> pa.Table:
    """Verify distinct texts in this process, as a service with one quota needs.

    The rows with their `key`.
    """
    options = call.options
    addresses, _ = unique_addresses(texts)
    execution = open_execution(addresses, options)
    run: Run[pa.Table] = Run(execution, lambda table: table)
    show_progress(run, call.job.column, options.progress, is_free=options.is_free)
    rows = collect(run)
    answers = rows.select(call.job.answer_fields())
    return answers.append_column("key", addresses)


def plan_texts(
    call: Call, counts: Mapping[str, Any], texts: pa.StringArray | None, unique: int, domains: int
) -> Plan:
    """The plan of a call; `texts` are the distinct texts if this process asks, else None."""
    options = call.options
    known = 0
    in_flight = 0
    held = 0
    if texts is not None:
        is_well_formed = observe_column(texts, threads=1)["well_formed"]
        texts, _ = unique_addresses(texts.filter(is_well_formed))
        unique = len(texts)
        known, in_flight, held = count_in_journal(texts, options)
    quota = None
    limit: int | None = 0
    if not options.settings.offline:
        quota = ask_quota(options.backend)
        limit = options.settings.limit
    if unique > known:
        warn_user(*resolver_notices(options))
    return plan_run(
        rows=counts["rows"],
        missing=counts["missing"],
        malformed=counts["malformed"] - counts["several"],
        several=counts["several"],
        unique=unique,
        known=known,
        in_flight=in_flight,
        held=held,
        quota=quota,
        limit=limit,
        repeats=getattr(options.backend, "max_repeats", 0),
        domains=domains,
    )
