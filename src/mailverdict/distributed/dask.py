"""The Dask driver: partitions are observed where they are, and each reads its own answers.

    partition 3   observe_numbered  ->  observed/3.parquet    what it has to ask
    task 17       run_task          ->  domains/17/...        ask_domains, and the other tasks
    partition 3   attach_numbered   <-  answers/...           when the frame is computed

So partitions, divisions, index and order of the caller's frame stay, the calling process has counts
only, and no task of the returned frame waits for another while it holds rows.
"""

from __future__ import annotations

import ipaddress
import json
import os
from os import PathLike
from typing import Any, Unpack

import pandas as pd
import pyarrow as pa

from ..errors import InputError, MissingExtraError
from ..runs.execution import unique_addresses
from ..runs.plan import Plan
from ..table.cells import read_texts
from ..table.options import ColumnChoice, VerifyOptions
from .asking import observe_part, read_part_answers, write_answers
from .call import Call, Task, ask_workers, open_call, plan_texts, verify_texts
from .scratch import Folder
from .stages import StageJob, attach, keys_and_counts, needed_labels, read_distinct, sum_counts

try:
    from dask import config
    from dask.base import compute
    from dask.dataframe import DataFrame, Series, from_delayed, from_map
    from dask.delayed import delayed
except ImportError as exc:
    raise MissingExtraError("verifying Dask frames", "dask") from exc

TEXT = pd.StringDtype("pyarrow")
TEXTS = pd.Series([], dtype=TEXT, name="text")  # what tasks return: reports or addresses
COUNTED = pd.DataFrame(dict.fromkeys(("address", "domain", "counts"), TEXTS))


def verify(
    data: Any,
    column: ColumnChoice | None = None,
    *,
    scratch: str | PathLike[str] | None = None,
    **options: Unpack[VerifyOptions],
) -> Any:
    """Verify one or several columns of a Dask frame.

    The result of ``regex`` is lazy. For the other types the call itself asks, on the workers: one
    task looks up each distinct domain, and one task asks each mail server, so that its limits hold
    in the whole cluster. The returned frame only joins the answers; computing it, once or often,
    uses no network. No address travels to the calling process.

    A service (`backend` is a URL), `limit`, `offline` and the path of a `journal` are the
    exception: the calling process alone asks, and the distinct addresses have to fit into its
    memory.

    Parameters
    ----------
    data : dask.dataframe.DataFrame or Series
        Its partitions are pandas frames. It is read several times: `persist` it if that is
        expensive.
    column : hashable or list, optional
        Which column of a frame, or several.
    scratch : str or path, optional
        A folder that this process and all workers can write: a path, or a URL of `pyarrow.fs` such
        as ``"s3://bucket/folder"``. What was answered is asked neither by a task that replaces a
        lost one nor by a later call with the same folder. The returned frame reads it; delete it
        when that is no longer used. What only this frame reads is removed from a path when this
        process ends; only its user can read the files. None: a temporary folder for the time of
        this process, if all workers are on this machine.
    **options
        The keyword arguments of `mailverdict.verify`. `limit` counts distinct addresses of the
        whole frame. Where workers ask, the scratch folder replaces ``journal="auto"``, and the
        tasks that run at once share `dns_concurrency` and `max_sessions` of the backend.

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
        As `mailverdict.verify`; and if `scratch` cannot be written, or is missing while workers are
        on other machines.
    ColumnError, BackendError, QuotaExceeded, JournalError
        As `mailverdict.verify`, at the call and not at `compute`; a `partial` on a `BackendError`
        of the calling process is an Arrow table of the distinct texts.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> import mailverdict.dask
    >>> emails = ["ada@gmail.com", "bo@gone.example", "ada@gmail.com", None]
    >>> people = pd.DataFrame({"email": emails})
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
        answers = verify_texts(call, distinct_texts(data, job))
        return data.map_partitions(attach_part, job, delayed(answers), meta=meta)
    return ask_workers(call, DaskEngine(data, meta))


def plan(
    data: Any,
    column: ColumnChoice | None = None,
    **options: Unpack[VerifyOptions],
) -> Plan:
    """Work out what `verify` with the same arguments would do and cost. Uses no quota.

    Reads the column once, on the workers; the DNS resolver of this machine is tested with a few
    questions.

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
    >>> emails = ["ada@gmail.com", "bo@gone.example", "ada@gmail.com", None]
    >>> people = pd.DataFrame({"email": emails})
    >>> with mv.sandbox.World() as world:
    ...     ddf = dd.from_pandas(people, npartitions=2)
    ...     found = mailverdict.dask.plan(ddf, "email", backend=world.backend)
    >>> found.rows, found.unique, found.domains
    (4, 2, 2)
    """
    call, _ = open_frame("plan", data, column, None, options, is_plan=True)
    columns = needed_columns(data, call.job)
    keys = columns.map_partitions(count_part, job=call.job, meta=COUNTED)
    questions = (keys["address"].nunique(), keys["domain"].nunique(), keys["counts"].dropna())
    unique, domains, counted = compute(*questions)
    texts = None
    if call.job.key_kind == "text":
        texts = distinct_texts(data, call.job)
    counts = sum_counts(json.loads(text) for text in counted)
    return plan_texts(call, counts, texts, int(unique), int(domains))


def open_frame(
    function: str,
    data: Any,
    column: ColumnChoice | None,
    scratch: Folder | None,
    options: Any,
    *,
    is_plan: bool = False,
) -> tuple[Call, pd.DataFrame]:
    """Check the frame and the arguments; the call, and an empty partition of its result."""
    if not isinstance(data, DataFrame | Series):
        raise InputError(
            f"{type(data).__name__} is not a Dask frame; use mailverdict.{function} for frames "
            "in memory"
        )
    is_local, slots = describe_cluster()
    frame: Any = data
    empty = without_notes(frame._meta)
    call = open_call(
        function,
        empty,
        column,
        options,
        scratch=scratch,
        is_local=is_local,
        slots=slots,
        is_plan=is_plan,
    )
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
    info = client.scheduler_info(n_workers=-1)
    hosts = {worker["host"] for worker in info["workers"].values()}
    is_local = info["address"].startswith("inproc:") or all(is_loopback(host) for host in hosts)
    return is_local, sum(client.nthreads().values())


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


# --- tasks -----------------------------------------------------------------------------------


class DaskEngine:
    """Runs the tasks of a call for one frame; `meta` is an empty partition of its result."""

    def __init__(self, data: Any, meta: pd.DataFrame) -> None:
        self.data = data
        self.meta = meta
        # A partition with its number for each of the frame, since a selection of partitions counts
        # from 0.
        empty = number_part(0).iloc[:0]
        self.numbers = from_map(number_part, range(data.npartitions), meta=empty)

    def observe(self, job: StageJob) -> list[str]:
        """Each partition writes what it has to ask."""
        columns = pinned(needed_columns(self.data, job))
        reports = columns.map_partitions(
            observe_numbered, self.numbers, job=job, meta=TEXTS, align_dataframes=False
        )
        return [str(report) for report in reports.compute()]

    def run(self, task: Task, count: int, job: StageJob) -> list[str]:
        """Run a task for each number."""
        reports = from_map(run_task, range(count), task=task, job=job, meta=TEXTS)
        return [str(report) for report in reports.compute()]

    def attach(self, job: StageJob) -> Any:
        """Answers are written by partition; each partition reads its own when it is computed."""
        self.run(write_answers, job.answering, job)
        rows = pinned(self.data)
        return rows.map_partitions(
            attach_numbered, self.numbers, job=job, meta=self.meta, align_dataframes=False
        )


def pinned(data: Any) -> Any:
    """The frame with its partitions as they are.

    Otherwise Dask joins those of a file of which few columns are used.
    """
    frame = data.simplify()
    parts = frame.to_delayed(optimize_graph=False)
    # The columns of the caller stay as they are.
    with config.set({"dataframe.convert-string": False}):
        return from_delayed(parts, meta=frame._meta, divisions=frame.divisions, verify_meta=False)


def number_part(number: int) -> pd.Series[Any]:
    return pd.Series([number], dtype="int64", name="number")


def observe_numbered(part: Any, number: pd.Series[Any], *, job: StageJob) -> pd.Series[Any]:
    """Write what a partition has to ask."""
    report = observe_part([without_notes(part)], int(number.iloc[0]), job)
    return texts_of([report])


def run_task(number: int, *, task: Task, job: StageJob) -> pd.Series[Any]:
    return texts_of([task(number, job)])


def attach_numbered(part: Any, number: pd.Series[Any], *, job: StageJob) -> Any:
    """A partition with its result columns, from the answers that were written for it."""
    answers = read_part_answers(int(number.iloc[0]), job)
    return attach_part(part, job, answers)


def attach_part(part: Any, job: StageJob, answers: pa.Table | None) -> Any:
    """A partition with its result columns; a function, since Dask shows its name in graphs."""
    return attach(without_notes(part), job, answers)


def needed_columns(data: Any, job: StageJob) -> Any:
    """The columns that are read before anything is asked: a file of columns is not read whole."""
    is_frame = job.column is not None and isinstance(data, DataFrame)
    if not is_frame:
        return data
    return data[needed_labels(data.columns, job)]


def count_part(part: Any, *, job: StageJob) -> pd.DataFrame:
    """The keys of a partition and its counts."""
    table = keys_and_counts(without_notes(part), job)
    counted: pd.DataFrame = table.to_pandas(types_mapper=lambda _: TEXT)
    return counted


def texts_of(texts: Any) -> pd.Series[Any]:
    return pd.Series(texts, dtype=TEXT, name="text")


def distinct_texts(data: Any, job: StageJob) -> pa.StringArray:
    """The distinct texts of the columns in this process, read partition by partition."""
    columns = needed_columns(data, job)
    texts = columns.map_partitions(read_part_texts, job=job, meta=TEXTS).compute()
    addresses, _ = unique_addresses(read_texts(texts))
    return addresses


def read_part_texts(part: Any, *, job: StageJob) -> pd.Series[Any]:
    texts = read_distinct(without_notes(part), job)
    return texts_of(texts.to_pandas())
