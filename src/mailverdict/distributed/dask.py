"""The Dask driver: partitions are observed where they are, and the engine's own shuffle brings keys to the tasks.

A pair of a partition and a key goes to the task that asks about the key, and with its answer back to the partition,
whose answers become a file of the scratch folder. So partitions, divisions, index and order of the caller's frame stay,
the calling process has counts only, and no task of the returned frame waits for another while it holds rows.
"""

from __future__ import annotations

import inspect
import ipaddress
import json
import os
import secrets
from collections.abc import Callable
from functools import lru_cache
from os import PathLike
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.syntax.column import observe_column
from ..errors import InputError, MissingExtraError
from ..model.table import dump_json
from ..runs.execution import unique_addresses
from ..runs.plan import Plan
from ..table.options import ColumnChoice, VerifyOptions, show_options
from ..table.text_column import read_values
from .asking import DOMAINS, ask_domains, ask_mailboxes, read_domains, read_mailboxes
from .call import Call, ask_workers, open_call, plan_texts, verify_texts
from .stages import (
    EVIDENCE,
    StageJob,
    add_owners,
    as_text_columns,
    attach,
    from_text_columns,
    needed_labels,
    observe,
    read_texts,
    sum_counts,
)

try:
    from dask import config
    from dask.base import compute
    from dask.dataframe import DataFrame, Series, from_map, from_pandas
    from dask.delayed import delayed
except ImportError as exc:
    raise MissingExtraError("verifying Dask frames", "dask") from exc

TO, PART = "to", "part"  # columns of frames that are shuffled: where a row goes, and where it came from
CANDIDATES = 32  # integers tried for each partition
TEXT = pd.StringDtype("pyarrow")
PAIRS_META = pd.DataFrame(
    {
        TO: pd.Series([], dtype="int64"),
        PART: pd.Series([], dtype="int64"),
        "shard": pd.Series([], dtype="int64"),
        "address": pd.Series([], dtype=TEXT),
        "domain": pd.Series([], dtype=TEXT),
        "rows": pd.Series([], dtype="int64"),
        "counts": pd.Series([], dtype=TEXT),
    }
)
OWNED_META = PAIRS_META.assign(**{name: pd.Series([], dtype=TEXT) for name in ("outcome", "exchanges", "message")})
REPORT_META = pd.DataFrame({"report": pd.Series([], dtype=TEXT)})
Ask = Callable[[pa.Table, int, StageJob], str]  # asks about the keys of a shard and returns a report
COUNTED_META = pd.DataFrame(
    {
        "addresses": pd.Series([], dtype="int64"),
        "domains": pd.Series([], dtype="int64"),
        "counts": pd.Series([], dtype=TEXT),
    }
)


@show_options()
def verify(
    data: Any,
    column: ColumnChoice | None = None,
    *,
    scratch: str | PathLike[str] | None = None,
    **options: Unpack[VerifyOptions],
) -> Any:
    """Verify one or several columns of a Dask frame.

    The result of ``regex`` is lazy. For the other types the call itself asks, on the workers: one task looks up each
    distinct domain, and one task asks each mail server, so that its limits hold in the whole cluster. The returned
    frame only joins the answers; computing it, once or often, uses no network. No address travels to the calling
    process.

    A service (`backend` is a URL), `limit`, `offline` and the path of a `journal` are the exception: the calling
    process alone asks, and the distinct addresses have to fit into its memory.

    Parameters
    ----------
    data : dask.dataframe.DataFrame or Series
        Its partitions are pandas frames. It is read several times: `persist` it if that is expensive.
    column : hashable or list, optional
        Which column of a frame, or several.
    scratch : str or path, optional
        A folder that this process and all workers can write: a path, or a URL of `pyarrow.fs` such as
        ``"s3://bucket/folder"``. What was answered is asked neither by a task that replaces a lost one nor by a later
        call with the same folder. The returned frame reads it; delete it when that is no longer used.
        None: a temporary folder for the time of this process, if all workers are on this machine.
    **options
        The keyword arguments of `mailverdict.verify`. `limit` counts distinct addresses of the whole frame. Where
        workers ask, the scratch folder replaces ``journal="auto"``, and the tasks that run at once share
        `dns_concurrency` and `max_sessions` of the backend.

    Returns
    -------
    dask.dataframe.DataFrame
        Partitions, divisions, index and order are kept; the result columns are added to the
        caller's own, with the dtypes of `mailverdict.verify`.

    Raises
    ------
    InputError
        If `data` is not a Dask frame.
    SettingsError
        As `mailverdict.verify`; and if `scratch` cannot be written, or is missing while workers are on other
        machines.
    ColumnError, BackendError, QuotaExceeded, JournalError
        As `mailverdict.verify`, at the call and not at `compute`; a `partial` on a `BackendError` of the calling
        process is an Arrow table of the distinct texts.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> import mailverdict.dask
    >>> people = pd.DataFrame({"email": ["ada@gmail.com", "bo@gone.example", "ada@gmail.com", None]})
    >>> ddf = dd.from_pandas(people, npartitions=2)
    >>> with mv.sandbox.World() as world:
    ...     out = mailverdict.dask.verify(ddf, "email", backend=world.backend, progress=False)
    >>> out.compute()["email_verdict"].tolist()
    ['valid', 'invalid', 'valid', nan]
    """
    call, meta = open_frame("verify", data, column, scratch, options)
    job = call.job
    if job.key_kind == "row":
        return data.map_partitions(attach_part, job, None, meta=meta)
    if job.key_kind == "text":
        answers = verify_texts(call, distinct_texts(data, job, is_refused_kept=True))
        return data.map_partitions(attach_part, job, delayed(answers), meta=meta)
    tasks = DaskTasks(data)
    job = ask_workers(call, tasks)
    return tasks.attached(job, meta)


@show_options()
def plan(
    data: Any,
    column: ColumnChoice | None = None,
    **options: Unpack[VerifyOptions],
) -> Plan:
    """Work out what `verify` with the same arguments would do and cost. Uses no quota.

    Reads the column once, on the workers; the DNS resolver of this machine is tested with a few questions.

    Parameters
    ----------
    data, column
        As in `verify`.
    **options
        The keyword arguments of `verify`.

    Returns
    -------
    mailverdict.Plan
        With `domains`, the number of distinct domains.

    Raises
    ------
    InputError, ColumnError, SettingsError, JournalError, BackendError
        As `verify`.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> import mailverdict.dask
    >>> people = pd.DataFrame({"email": ["ada@gmail.com", "bo@gone.example", "ada@gmail.com", None]})
    >>> with mv.sandbox.World() as world:
    ...     found = mailverdict.dask.plan(dd.from_pandas(people, npartitions=2), "email", backend=world.backend)
    >>> found.rows, found.unique, found.domains
    (4, 2, 2)
    """
    call, _ = open_frame("plan", data, column, None, options, is_plan=True)
    job = call.job.for_counting()
    pairs = observed_pairs(data, job)
    counted = shuffled(pairs, job.shards).map_partitions(count_keys, meta=COUNTED_META).compute()
    counts = sum_counts(counted["counts"].dropna().tolist())
    texts = distinct_texts(data, job, is_refused_kept=False) if call.job.key_kind == "text" else None
    return plan_texts(call, counts, texts, int(counted["addresses"].sum()), int(counted["domains"].sum()))


def open_frame(
    function: str,
    data: Any,
    column: ColumnChoice | None,
    scratch: str | PathLike[str] | None,
    options: Any,
    *,
    is_plan: bool = False,
) -> tuple[Call, pd.DataFrame]:
    """Check the frame and the arguments; the call, and an empty partition of its result."""
    if not isinstance(data, DataFrame | Series):
        raise InputError(f"{type(data).__name__} is not a Dask frame; use mailverdict.{function} for frames in memory")
    is_local, slots = describe_cluster()
    frame: Any = data
    empty = without_notes(frame._meta)
    call = open_call(function, empty, column, options, scratch=scratch, is_local=is_local, slots=slots, is_plan=is_plan)
    return call, attach(empty, call.job, None)


def without_notes(part: Any) -> Any:
    """A partition without `attrs`, which Dask gives some partitions and not others."""
    part = part.copy(deep=False)
    part.attrs = {}
    return part


def describe_cluster() -> tuple[bool, int]:
    """Whether all workers are on this machine, and how many tasks run at once."""
    try:
        from distributed import default_client  # noqa: PLC0415 - an extra of Dask's own

        client = default_client()
    except (ImportError, ValueError):
        if config.get("scheduler", None) in ("sync", "synchronous", "single-threaded"):
            return True, 1
        return True, int(config.get("num_workers", None) or os.cpu_count() or 1)
    info = client.scheduler_info(n_workers=-1) if takes_count(client.scheduler_info) else client.scheduler_info()
    hosts = {each["host"] for each in info["workers"].values()}
    is_local = info["address"].startswith("inproc:") or all(is_loopback(host) for host in hosts)
    return is_local, sum(client.nthreads().values())


def takes_count(function: Callable[..., Any]) -> bool:
    """Whether `scheduler_info` leaves workers out unless all are asked for, as since Dask 2025.7."""
    return "n_workers" in inspect.signature(function).parameters


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


# --- shuffles -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def targets(partitions: int) -> npt.NDArray[np.int64]:
    """For each partition an integer whose rows a shuffle by that integer brings there; found by shuffling some."""
    if partitions == 1:
        return np.zeros(1, np.int64)
    found: npt.NDArray[np.int64] = np.full(partitions, -1, np.int64)
    tried = 0
    while (found < 0).any():
        candidates = pd.DataFrame({TO: np.arange(tried, tried + CANDIDATES * partitions)})
        moved: Any = from_pandas(candidates, npartitions=1).shuffle(TO, npartitions=partitions, shuffle_method="tasks")
        parts = compute(*moved.to_delayed(), scheduler="sync")
        for at, part in enumerate(parts):
            if found[at] < 0 and len(part):
                found[at] = part[TO].min()
        tried += len(candidates)
    return found


def shuffled(frame: Any, partitions: int) -> Any:
    """The rows of the frame in the partitions that their column `to` names."""
    return frame.shuffle(TO, npartitions=partitions, ignore_index=True)


def to_arrow(frame: pd.DataFrame) -> pa.Table:
    """A frame of pairs as an Arrow table, without the columns of the shuffle."""
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()


def to_frame(table: pa.Table) -> pd.DataFrame:
    """An Arrow table of texts and integers as a frame whose texts stay in Arrow."""
    frame: pd.DataFrame = table.to_pandas(types_mapper=lambda kind: TEXT if pa.types.is_string(kind) else None)
    return frame


def observed_pairs(data: Any, job: StageJob) -> Any:
    """What each partition has to ask, with the shard that asks and the number of the partition."""
    to = targets(job.shards).tolist()
    return needed_columns(data, job).map_partitions(observe_part, job=job, to=to, meta=PAIRS_META)


def needed_columns(data: Any, job: StageJob) -> Any:
    """The columns that are read before anything is asked: a file of columns is not read whole."""
    is_frame = job.column is not None and isinstance(data, DataFrame)
    return data[needed_labels(data.columns, job)] if is_frame else data


def observe_part(part: Any, *, job: StageJob, to: list[int], partition_info: Any = None) -> pd.DataFrame:
    """One partition's pairs."""
    table = observe(without_notes(part), job)
    frame = to_frame(table)
    frame.insert(0, PART, np.int64(partition_info["number"] if partition_info else 0))
    frame.insert(0, TO, np.array(to, np.int64)[table["shard"].to_numpy()])
    return frame


class DaskTasks:
    """Runs the tasks that ask, for one frame; those of the last stage bring the answers to the partitions."""

    def __init__(self, data: Any) -> None:
        self.data, self.folder = data, f"answers-{secrets.token_hex(8)}"

    def by_shard(self, job: StageJob) -> Any:
        """The pairs, in the partitions of their domains."""
        return shuffled(observed_pairs(self.data, job), job.shards)

    def by_owner(self, job: StageJob) -> Any:
        """The pairs with the evidence about their domains, in the partitions of the owners of their exchanges."""
        owned = self.by_shard(job).map_partitions(
            own_part, job=job, to=targets(job.routing.shards).tolist(), meta=OWNED_META
        )
        return shuffled(owned, job.routing.shards)

    def ask_domains(self, job: StageJob) -> list[str]:
        """Ask the DNS; where nothing else is asked, write the answers of each partition."""
        if job.key_kind == "domain":
            return self._ask_and_answer(self.by_shard(job), ask_domains, job)
        reports = self.by_shard(job).map_partitions(ask_part, ask=ask_domains, job=job, meta=REPORT_META)
        return texts_of(reports.compute())

    def ask_mailboxes(self, job: StageJob) -> list[str]:
        """Ask the mail servers, and write the answers of each partition."""
        return self._ask_and_answer(self.by_owner(job), ask_mailboxes, job)

    def _ask_and_answer(self, pairs: Any, ask: Ask, job: StageJob) -> list[str]:
        to = targets(self.data.npartitions).tolist()
        texts = {name: pd.Series([], dtype=TEXT) for name in ("report", "key", *job.answer_fields())}
        meta = PAIRS_META[[TO, PART]].assign(**texts)
        answers = pairs.map_partitions(answer_part, ask=ask, job=job, to=to, meta=meta)
        parts = shuffled(answers, self.data.npartitions)
        reports = parts.map_partitions(write_part, job=job, folder=self.folder, meta=REPORT_META)
        return texts_of(reports.compute())

    def attached(self, job: StageJob, meta: pd.DataFrame) -> Any:
        """The caller's frame with its result columns, lazily: each partition reads the file of its answers."""
        kept = from_map(number_part, range(self.data.npartitions), meta=number_part(0).iloc[:0])
        return self.data.map_partitions(
            attach_kept, kept, job=job, folder=self.folder, meta=meta, align_dataframes=False
        )


def texts_of(reports: pd.DataFrame) -> list[str]:
    """The reports as they were written."""
    return [str(text) for text in reports["report"]]


def ask_part(pairs: pd.DataFrame, *, ask: Ask, job: StageJob) -> pd.DataFrame:
    """Ask about the keys of a partition, usually of one shard; a row for each report."""
    table = to_arrow(pairs)
    shards = pc.unique(table["shard"]).to_pylist()
    reports = [ask(table.filter(pc.equal(table["shard"], shard)), shard, job) for shard in shards]
    return pd.DataFrame({"report": pd.Series(reports, dtype=TEXT)})


def answer_part(pairs: pd.DataFrame, *, ask: Ask, job: StageJob, to: list[int]) -> pd.DataFrame:
    """Ask; the answers for the pairs, with the partition of the caller's frame that each is for.

    The reports go to the first partition. After an error of a task there are no answers: the call raises it.
    """
    reports = ask_part(pairs, ask=ask, job=job).assign(**{TO: to[0], PART: 0})
    if any("error" in json.loads(text) for text in reports["report"]):
        return reports.reindex(columns=[TO, PART, "report", "key", *job.answer_fields()])
    table = to_arrow(pairs.loc[pairs["domain"].notna(), [PART, "shard", "address", "domain"]])
    shards = pc.unique(table["shard"]).to_pylist() or [0]
    is_address = job.key_kind == "address"
    found = (read_mailboxes if is_address else read_domains)(shards, job)
    answers = as_text_columns(found.select(["key", *job.answer_fields()]))
    keys = table["address" if is_address else "domain"].combine_chunks()
    at = pc.index_in(keys, value_set=answers["key"].combine_chunks())
    frame = to_frame(answers.take(at.drop_null()))
    parts = table[PART].filter(at.is_valid()).to_numpy()
    frame.insert(0, "report", pd.Series([None] * len(frame), dtype=TEXT))
    frame.insert(0, PART, parts)
    frame.insert(0, TO, np.array(to, np.int64)[parts])
    reports = reports.reindex(columns=frame.columns).astype(frame.dtypes)
    return pd.concat([frame, reports], ignore_index=True)


def write_part(answers: pd.DataFrame, *, job: StageJob, folder: str, partition_info: Any = None) -> pd.DataFrame:
    """Write the answers that were brought to a partition; returns the reports."""
    number = partition_info["number"]
    if not (answers[PART] == number).all():
        raise RuntimeError("Dask brought answers to another partition than theirs; report this with Dask's version")
    is_report = answers["report"].notna()
    kept = answers.loc[~is_report, ["key", *job.answer_fields()]]
    job.required_scratch.write_table(f"{folder}/{number}.parquet", to_arrow(kept))
    return answers.loc[is_report, ["report"]]


def number_part(number: int) -> pd.DataFrame:
    """A partition with its number: the file that the partition of the caller's frame beside it reads."""
    return pd.DataFrame({PART: pd.Series([number], dtype="int64")})


def attach_kept(part: Any, number: pd.DataFrame, *, job: StageJob, folder: str) -> Any:
    """A partition with its result columns, from the file of its answers."""
    answers = job.required_scratch.read_table(f"{folder}/{number[PART].iloc[0]}.parquet")
    return attach(without_notes(part), job, from_text_columns(answers))


def own_part(pairs: pd.DataFrame, *, job: StageJob, to: list[int]) -> pd.DataFrame:
    """Add the evidence about the domains of a partition, and the shards of the owners of their exchanges."""
    table = to_arrow(pairs.loc[pairs["domain"].notna()])
    shards = pc.unique(table["shard"]).to_pylist()
    evidence = [job.required_scratch.read(DOMAINS, shard, EVIDENCE) for shard in shards]
    owned = add_owners(table, pa.concat_tables(evidence) if evidence else EVIDENCE.empty_table(), job.routing)
    frame = to_frame(owned)[list(OWNED_META.columns)]
    frame[TO] = np.array(to, np.int64)[owned["shard"].to_numpy()]
    return frame


def attach_part(part: Any, job: StageJob, answers: pa.Table | None) -> Any:
    """A partition with its result columns; a function, since Dask shows its name in graphs."""
    return attach(without_notes(part), job, answers)


def count_keys(pairs: pd.DataFrame) -> pd.DataFrame:
    """How many distinct addresses and domains a partition of pairs has, and the counts of the caller's rows."""
    counts = sum_counts(pairs["counts"].dropna().tolist())
    counted = {"addresses": [pairs["address"].nunique()], "domains": [pairs["domain"].nunique()]}
    return pd.DataFrame({**counted, "counts": pd.Series([dump_json(counts)], dtype=TEXT)})


# --- addresses in the calling process -------------------------------------------------------------------------------


def distinct_texts(data: Any, job: StageJob, *, is_refused_kept: bool) -> pa.StringArray:
    """Read the columns partition by partition and keep each text once, all of them or the well-formed ones."""
    meta = pd.Series([], dtype=TEXT, name="address")
    read = needed_columns(data, job)
    texts = read.map_partitions(texts_of_part, job=job, is_refused_kept=is_refused_kept, meta=meta).compute()
    return unique_addresses(read_values(texts).texts)[0]


def texts_of_part(part: Any, *, job: StageJob, is_refused_kept: bool) -> pd.Series[Any]:
    """The distinct addresses of one partition."""
    read = read_texts(without_notes(part), job)
    texts = read.asked(is_free=False)[0]
    texts = texts if is_refused_kept else texts.filter(observe_column(texts, threads=1).ok)
    return pd.Series(texts.to_pandas(), dtype=TEXT, name="address")
