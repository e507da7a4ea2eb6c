"""The Spark driver: `mapInArrow` runs the tasks and the stages on Arrow batches.

    a row       attach_batches    ada@web.de, pending, key web.de
    shard 17    read_batches      key web.de, valid
    joined      by the key        ada@web.de, valid

The rows of the caller's frame go through Python once, for what follows from the cells alone, and
get the key of the answer that they wait for. Spark's own join adds the answers, which tasks have
written to the scratch folder.
"""

from __future__ import annotations

import importlib
import json
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from os import PathLike
from typing import Any, Unpack

import pyarrow as pa

from ..checks.lists.flags import find_mark, load_lists
from ..errors import ColumnError, InputError, SettingsError
from ..model.words import Status
from ..runs.plan import Plan
from ..table.columns import REPAIR_COLUMNS, Column, to_arrow
from ..table.options import ColumnChoice, VerifyOptions
from .asking import observe_part, read_answers
from .call import Call, Task, ask_workers, error_of, open_call, plan_texts, verify_texts
from .scratch import Folder, without_dictionaries
from .stages import (
    ANSWERED,
    StageJob,
    attach,
    keys_and_counts,
    needed_labels,
    read_distinct,
    read_part,
    sum_counts,
)

Batches = Iterator[pa.RecordBatch]  # what `mapInArrow` gives and takes
KEY = Column("mailverdict_key", "text", "email", False, "key of the answer that a row waits for")
# Rows of batches that are worked on together: each piece of work has a fixed cost.
ROWS_AT_ONCE = 200_000
BYTES_AT_ONCE = 128 << 20  # or octets, where rows are wide
BATCH_ROWS = 10_000  # in the batches that Spark receives
OWN_ERROR = re.compile(r"^mailverdict\.errors\.(?P<name>\w+): (?P<message>.+)$", re.MULTILINE)
# Of result columns, by their kind; all others are texts.
TYPES = {
    "bool": "boolean",
    "moment": "timestamp",
}


def verify(
    data: Any,
    column: str | list[str] | None = None,
    *,
    scratch: str | PathLike[str] | None = None,
    **options: Unpack[VerifyOptions],
) -> Any:
    """Verify one or several columns of a Spark frame.

    It works as `mailverdict.dask.verify`: the result of ``regex`` is lazy. For the other types the
    call itself asks, on the executors; the returned frame only joins the answers, so that actions
    on it use no network. With a service, `limit`, `offline` or the path of a `journal`, the driver
    alone asks, and the distinct addresses have to fit into its memory; otherwise no address travels
    to the driver. The package has to be installed on the executors.

    Parameters
    ----------
    data : pyspark.sql.DataFrame
        It is read several times: `cache` it if that is expensive.
    column : str or list of str
        Which column, or several.
    scratch : str or path, optional
        A folder that the driver and all executors can write: a path, or a URL of `pyarrow.fs` such
        as ``"s3://bucket/folder"``. What was answered is asked neither by a task that replaces a
        lost one nor by a later call with the same folder. The returned frame reads it; delete it
        when that is no longer used. None: a temporary folder for the time of this process, if the
        master is ``local`` or ``local-cluster``.
    **options
        The keyword arguments of `mailverdict.verify`. `limit` counts distinct addresses of the
        whole frame. Where executors ask, the scratch folder replaces ``journal="auto"``, and the
        tasks that run at once share `dns_concurrency` and `max_sessions` of the backend.

    Returns
    -------
    pyspark.sql.DataFrame
        One row out per row in, with the result columns beside the caller's own: texts are strings
        (verdict and status too), flags booleans, `checked_at` a timestamp. A join may change the
        order of rows, which Spark frames do not define.

    Raises
    ------
    InputError
        If `data` is not a Spark frame.
    SettingsError
        As `mailverdict.verify`; if `scratch` cannot be written, or is missing while executors are
        on other machines; and if ``spark.speculation`` is on, since a speculative copy of a task
        would ask everything twice.
    ColumnError, BackendError, QuotaExceeded, JournalError
        As `mailverdict.verify`, at the call and not at an action.

    Examples
    --------
    >>> import mailverdict as mv
    >>> import mailverdict.spark
    >>> try:
    ...     mailverdict.spark.verify(["ada@gmail.com"])
    ... except mv.InputError as error:
    ...     print(error)
    list is not a Spark frame; use mailverdict.verify for frames in memory
    """
    call, schema = open_frame("verify", data, column, scratch, options)
    job = call.job
    if job.key_kind == "row":
        return data.mapInArrow(partial(attach_batches, job=job), schema)
    engine = SparkEngine(data, schema)
    if job.key_kind == "text":
        rows = verify_texts(call, engine.texts(job))
        answers = engine.local_answers(final_columns(rows, job), job)
        return engine.join(answers, job)
    return ask_workers(call, engine)


def plan(
    data: Any,
    column: str | list[str] | None = None,
    **options: Unpack[VerifyOptions],
) -> Plan:
    """Work out what `verify` with the same arguments would do and cost. Uses no quota.

    Reads the column once, on the executors; the DNS resolver of this machine is tested with a few
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
    >>> import mailverdict as mv
    >>> import mailverdict.spark
    >>> try:
    ...     mailverdict.spark.plan(["ada@gmail.com"])
    ... except mv.InputError as error:
    ...     print(error)
    list is not a Spark frame; use mailverdict.plan for frames in memory
    """
    call, _ = open_frame("plan", data, column, None, options, is_plan=True)
    job = call.job
    engine = SparkEngine(data, None)
    sql = functions()
    stage = partial(count_batches, job=job)
    schema = "address string, domain string, counts string"
    keys = engine.needed_columns(job).mapInArrow(stage, schema)
    with own_errors():
        [row] = keys.agg(
            sql.countDistinct("address").alias("unique"),
            sql.countDistinct("domain").alias("domains"),
            sql.collect_list("counts").alias("counts"),
        ).collect()
    texts = None
    if job.key_kind == "text":
        texts = engine.texts(job)
    counts = sum_counts(json.loads(text) for text in row["counts"])
    return plan_texts(call, counts, texts, row["unique"], row["domains"])


def open_frame(
    function: str,
    data: Any,
    column: ColumnChoice | None,
    scratch: Folder | None,
    options: Any,
    *,
    is_plan: bool = False,
) -> tuple[Call, Any]:
    """Check the frame and the arguments; the call, and the schema of its result."""
    if not is_spark(data):
        raise InputError(
            f"{type(data).__name__} is not a Spark frame; use mailverdict.{function} for frames "
            "in memory"
        )
    session = data.sparkSession
    master = session.conf.get("spark.master", "") or ""
    empty = empty_part(data)
    call = open_call(
        function,
        empty,
        column,
        options,
        scratch=scratch,
        is_local=master.startswith("local"),
        slots=slots_of(session),
        is_plan=is_plan,
    )
    job = call.job
    if job.scratch is not None and is_on(session, "spark.speculation"):
        raise SettingsError(
            "spark.speculation is on: a speculative copy of a task would ask mail servers and "
            "resolvers twice; set spark.speculation=false for this session"
        )
    added = list(chain.from_iterable(named_columns(empty, job)))
    names = [name for name, _ in added]
    check_names(data.columns, names, session)
    return call, schema_with(data.schema, added)


def is_on(session: Any, setting: str) -> bool:
    """Whether a setting of Spark is true."""
    return str(session.conf.get(setting, "false")).lower() == "true"


def check_names(existing: Sequence[str], added: Sequence[str], session: Any) -> None:
    """Refuse before anything is asked what Spark would refuse when the answers are joined."""
    for name in existing:
        if "." in name or "`" in name:
            raise ColumnError(
                f"Spark cannot give the column {name!r:.80} to Python: rename it without dots and `"
            )
    if is_on(session, "spark.sql.caseSensitive"):
        return
    results = {name.lower(): name for name in added}
    for name in existing:
        result = results.get(name.lower(), name)
        if result != name:
            raise SettingsError(
                f"the frame already has a column {name!r:.80}, and Spark ignores case: the result "
                f"column {result!r:.80} needs another prefix, or rename yours"
            )


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise an error of this package that ended a task as itself.

    Spark raises one that quotes the traceback.
    """
    try:
        yield
    except Exception as exc:
        if type(exc).__name__ != "PythonException":
            raise
        quoted_error = OWN_ERROR.search(str(exc))
        if quoted_error is None:
            raise
        raise error_of(quoted_error["name"], quoted_error["message"]) from exc


def is_spark(data: Any) -> bool:
    """Whether data is a frame of Spark or Spark Connect, whose classes differ.

    Nothing is imported to find out.
    """
    if not hasattr(data, "mapInArrow"):
        return False
    for kind in type(data).__mro__:
        if kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql."):
            return True
    return False


def schema_with(schema: Any, added: Sequence[tuple[str, Column]]) -> Any:
    """A schema of Spark with result columns at the end; columns of an earlier call are replaced."""
    names = {name for name, _ in added}
    extended = type(schema)([field for field in schema if field.name not in names])
    for name, column in added:
        extended = extended.add(name, TYPES.get(column.kind, "string"))
    return extended


def functions() -> Any:
    """Spark's functions; a caller with a frame has the package."""
    return importlib.import_module("pyspark.sql.functions")


def slots_of(session: Any) -> int:
    """How many tasks run at once; with Spark Connect, which has no context, shuffle partitions."""
    try:
        return int(session.sparkContext.defaultParallelism)
    except Exception:  # noqa: BLE001 - each version of Spark Connect raises another one
        return int(session.conf.get("spark.sql.shuffle.partitions", "8"))


def empty_part(data: Any) -> pa.Table:
    """A partition without rows; only its names matter."""
    empty = pa.array([], pa.string())
    return pa.Table.from_arrays([empty] * len(data.columns), names=data.columns)


def named_columns(
    part: pa.Table, job: StageJob, extra: Sequence[Column] = ()
) -> list[list[tuple[str, Column]]]:
    """The names and kinds of the result columns of each column."""
    frame = read_part(part, job, extra)
    return [list(result.columns.items()) for result in frame.results]


# --- batches ---------------------------------------------------------------------------------


def gather(batches: Batches) -> Iterator[pa.Table]:
    """Batches joined to tables of `ROWS_AT_ONCE` rows."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    octets = 0
    for batch in batches:
        waiting.append(batch)
        rows += len(batch)
        octets += batch.nbytes
        if rows >= ROWS_AT_ONCE or octets >= BYTES_AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting = []
            rows = 0
            octets = 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def attach_batches(batches: Batches, *, job: StageJob, extra: Sequence[Column] = ()) -> Batches:
    """Rows with what follows from their cells; the result columns come last."""
    for table in gather(batches):
        out = without_dictionaries(attach(table, job, None, extra))
        names = []
        for group in named_columns(table[:0], job, extra):
            names += [name for name, _ in group]
        kept = [name for name in out.column_names if name not in names]
        yield from out.select([*kept, *names]).to_batches(BATCH_ROWS)


def observe_batches(batches: Batches, *, job: StageJob) -> Batches:
    """Write what a partition has to ask, by a random number: a second try may have other rows."""
    number = secrets.randbits(62)
    yield report_batch(observe_part(gather(batches), number, job))


def run_batches(batches: Batches, *, task: Task, job: StageJob) -> Batches:
    """Run a task for each number."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield report_batch(task(number, job))


def report_batch(report: str) -> pa.RecordBatch:
    return pa.record_batch({"report": pa.array([report], pa.string())})


def count_batches(batches: Batches, *, job: StageJob) -> Batches:
    """The keys of a partition and its counts."""
    for table in gather(batches):
        yield from keys_and_counts(table, job).to_batches(BATCH_ROWS)


def read_batches(batches: Batches, *, job: StageJob) -> Batches:
    """The answers of some shards from the scratch folder."""
    job.required_scratch.require()
    for batch in batches:
        for shard in batch.column(0).to_pylist():
            yield from final_columns(read_answers(shard, job), job).to_batches(BATCH_ROWS)


def text_batches(batches: Batches, *, job: StageJob) -> Batches:
    """The distinct texts of the columns."""
    for table in gather(batches):
        yield pa.record_batch({"text": read_distinct(table, job)})


def answer_columns(job: StageJob) -> list[Column]:
    """The result columns that answers bring."""
    if job.key_kind != "domain":
        return list(job.columns)
    columns = []
    for column in job.columns:
        if column.field in ANSWERED or column.name == "status":
            columns.append(column)
    return columns


def final_columns(rows: pa.Table, job: StageJob) -> pa.Table:
    """Answers as result columns, by their names without prefix, after their `key`."""
    columns = {"key": rows["key"].cast(pa.string())}
    if job.key_kind == "domain":
        # Columns about the mail server need these two of each row.
        lists = load_lists(job.lists)
        domains = rows["key"].to_pylist()
        disposable = [bool(find_mark(domain, lists.disposable)) for domain in domains]
        rows = rows.append_column("normalized", rows["key"])
        rows = rows.append_column("disposable", pa.array(disposable, pa.bool_()))
    for column in answer_columns(job):
        if column.field in rows.column_names:
            columns[column.name] = to_arrow(rows, column)
        else:  # an answer about a domain is final
            columns[column.name] = pa.repeat(pa.scalar(str(Status.DONE)), len(rows))
    return without_dictionaries(pa.table(columns))


# --- the engine ------------------------------------------------------------------------------


class SparkEngine:
    """Runs the tasks of a call for one frame; `schema` is that of its result."""

    def __init__(self, data: Any, schema: Any) -> None:
        self.data = data
        self.schema = schema
        self.session = data.sparkSession

    def needed_columns(self, job: StageJob) -> Any:
        """The columns that are read before anything is asked."""
        sql = functions()
        columns = [sql.col(quoted(name)) for name in needed_labels(self.data.columns, job)]
        return self.data.select(*columns)

    def observe(self, job: StageJob) -> list[str]:
        """Each partition writes what it has to ask."""
        stage = partial(observe_batches, job=job)
        reports = self.needed_columns(job).mapInArrow(stage, "report string")
        return reports_of(reports)

    def run(self, task: Task, count: int, job: StageJob) -> list[str]:
        """Run a task for each number, in a partition of its own."""
        stage = partial(run_batches, task=task, job=job)
        reports = self.numbers(count).mapInArrow(stage, "report string")
        return reports_of(reports)

    def attach(self, job: StageJob) -> Any:
        """A join brings the answers, which are read when it is computed.

        Spark's partitions have no stable numbers.
        """
        stage = partial(read_batches, job=job)
        answers = self.numbers(job.answering).mapInArrow(stage, self.answer_schema(job))
        return self.join(answers, job)

    def numbers(self, count: int) -> Any:
        """A frame with a partition for each number."""
        return self.session.range(0, count, numPartitions=count)

    def texts(self, job: StageJob) -> pa.StringArray:
        """The distinct texts of the columns in this process."""
        stage = partial(text_batches, job=job)
        frame = self.needed_columns(job).mapInArrow(stage, "text string").distinct()
        with own_errors():
            texts = [row["text"] for row in frame.toLocalIterator()]
        return pa.array(sorted(texts), pa.string())

    def local_answers(self, answers: pa.Table, job: StageJob) -> Any:
        """The answers of this process as a frame."""
        columns = answers.to_pydict().values()
        rows = list(zip(*columns, strict=True))
        return self.session.createDataFrame(rows, self.answer_schema(job))

    def answer_schema(self, job: StageJob) -> str:
        fields = ["key string"]
        for column in answer_columns(job):
            fields.append(f"{column.name} {TYPES.get(column.kind, 'string')}")
        return ", ".join(fields)

    def join(self, answers: Any, job: StageJob) -> Any:
        """The caller's rows with their result columns."""
        sql = functions()
        groups = named_columns(empty_part(self.data), job, [KEY])
        schema = schema_with(self.data.schema, list(chain.from_iterable(groups)))
        stage = partial(attach_batches, job=job, extra=[KEY])
        rows = self.data.mapInArrow(stage, schema)
        brought = {column.name for column in answer_columns(job)}
        results: dict[str, Any] = {}
        for number, group in enumerate(groups):
            # The answers once for each verified column, under names of their own.
            mark = f"mailverdict_{number}_"
            marked_columns = [sql.col(name).alias(mark + name) for name in answers.columns]
            marked = answers.select(*marked_columns)
            key = next(name for name, column in group if column is KEY)
            is_match = rows[quoted(key)] == marked[f"{mark}key"]
            rows = rows.join(marked, is_match, "left")
            has_answer = sql.col(f"{mark}key").isNotNull()
            for name, column in group:
                value = sql.col(quoted(name))
                if column.name in brought and column not in REPAIR_COLUMNS:
                    answer = sql.col(mark + column.name)
                    if column.name == "suggestion":  # the repairs of a cell may suggest, too
                        answer = sql.coalesce(answer, value)
                    value = sql.when(has_answer, answer).otherwise(value)
                results[name] = value.alias(name)
        shown = []
        for field in self.schema:
            shown.append(results.get(field.name, sql.col(quoted(field.name))))
        return rows.select(*shown)


def reports_of(frame: Any) -> list[str]:
    with own_errors():
        return [row["report"] for row in frame.collect()]


def quoted(name: str) -> str:
    """A column's name as Spark reads it literally."""
    return f"`{name.replace('`', '``')}`"
