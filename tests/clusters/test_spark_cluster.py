"""Spark's local-cluster of two executor processes.

Equal answers, each owner asked once, kills survived.
"""

from __future__ import annotations

import os
import shutil
import sys

import pandas as pd
import psutil
import pyarrow as pa
import pytest

import mailverdict as mv
import mailverdict.spark
from mailverdict.errors import ColumnError, InputError, SettingsError
from mailverdict.sandbox import World
from tests.clusters.conftest import (
    DELAY,
    DOMAINS,
    REPEATED_DOMAINS,
    REPEATED_RCPTS,
    ROUND_TRIP,
    Killer,
    WatchedWorld,
    check_counts,
    rcpts_of,
    slow_world,
)

if shutil.which("java") is None:
    pytest.skip("needs Java 17: see `make test-clusters`", allow_module_level=True)
pyspark = pytest.importorskip("pyspark", reason="needs pyspark: see `make test-clusters`")

EMAILS = [
    None,
    "",
    "nobody",
    "Ada <ada@gmail.com>",
    "ada@gmial.com",
    "info@gmail.com",
    "ada@gmail.com",
    "bo@gone.example",
]


@pytest.fixture(scope="module")
def spark():
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config(
        "spark.ui.enabled", "false"
    )
    builder = builder.config("spark.sql.shuffle.partitions", "4").config(
        "spark.driver.host", "127.0.0.1"
    )
    # The files of a killed executor are gone: do not try for 15 seconds to fetch each of them.
    builder = builder.config("spark.shuffle.io.maxRetries", "1").config(
        "spark.shuffle.io.retryWait", "500ms"
    )
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def frame_of(spark, table: pd.DataFrame, partitions=4):
    types = ", ".join(f"`{name}` {'long' if name == 'row' else 'string'}" for name in table.columns)
    rows = [
        tuple(None if value is None else value for value in row)
        for row in table.astype(object).to_numpy().tolist()
    ]
    return spark.createDataFrame(rows, types).repartition(partitions)


def collected(frame) -> dict[str, list[object]]:
    """The columns in the order of `row`."""
    rows = sorted((each.asDict() for each in frame.collect()), key=lambda each: each["row"])
    return {name: [each[name] for each in rows] for name in frame.columns}


def in_memory(table: pd.DataFrame, column, **options) -> dict[str, list[object]]:
    """What `mailverdict.verify` gives, as Python values."""
    arrow = pa.table({name: list(values) for name, values in table.astype(object).items()})
    found: dict[str, list[object]] = mv.verify(arrow, column, progress=False, **options).to_pydict()
    return found


def executors() -> list[int]:
    """The process ids of the executors."""
    whole = [each for each in psutil.Process().children(recursive=True) if each.name() == "java"]
    return [
        each.pid for each in whole if "CoarseGrainedExecutorBackend" in " ".join(each.cmdline())
    ]


@pytest.mark.parametrize(
    ("kind", "clean", "column"),
    [("regex", True, ["email", "work"]), ("mx", False, "email"), ("mx", True, ["email", "work"])],
    ids=["regex, two columns repaired", "mx", "mx, two columns repaired"],
)
def test_rows_are_those_of_one_process(spark, kind, clean, column):
    table = pd.DataFrame(
        {"row": range(16), "email": EMAILS * 2, "work": (EMAILS * 2)[::-1]}, dtype=object
    )
    options = {"validation_type": kind, "columns": "all", "clean": clean}
    with WatchedWorld() as world:
        out = mailverdict.spark.verify(
            frame_of(spark, table), column, backend=world.backend, progress=False, **options
        )
        found, there = collected(out), in_memory(table, column, backend=world.backend, **options)
        asked = ["gone.example"] if kind == "mx" else []
        check_counts(world, asked, repeated=1)  # `in_memory` asks, too
    moments = [name for name in there if name.endswith("checked_at")]
    for name in moments:
        assert [each is None for each in found.pop(name)] == [
            each is None for each in there.pop(name)
        ]
    assert found == there
    types = dict(out.dtypes)
    assert types["email_verdict"] == "string"
    assert types["email_role"] == "boolean"
    assert types["email_checked_at"] == "timestamp"


def test_a_frame_without_rows_has_the_same_schema(spark):
    empty = spark.createDataFrame([], "row long, email string")
    with mv.sandbox.World() as world:
        out = mailverdict.spark.verify(empty, "email", backend=world.backend, progress=False)
        assert out.collect() == []
        full = mailverdict.spark.verify(
            spark.createDataFrame([(1, "ada@gmail.com")], "row long, email string"),
            "email",
            backend=world.backend,
            progress=False,
        )
    assert out.schema == full.schema
    # Columns are replaced.
    assert mailverdict.spark.verify(out, "email", validation_type="regex").schema == out.schema


def test_each_owner_is_asked_by_one_task(spark):
    with slow_world() as (world, table):
        out = mailverdict.spark.verify(
            frame_of(spark, table),
            "email",
            validation_type="smtp",
            backend=world.backend,
            progress=False,
        )
        found = collected(out)
        check_counts(world, [f"d{at}.example" for at in range(DOMAINS)])
        assert max(rcpts_of(world)) == 1
    assert found["email_verdict"] == ["valid"] * len(table)


def test_an_executor_killed_while_it_asks_the_dns_repeats_only_what_was_not_written(spark):
    with slow_world(dns_delay=DELAY) as (world, table):
        killer = Killer("domains", world, executors)
        out = mailverdict.spark.verify(
            frame_of(spark, table), "email", backend=world.backend, progress=killer
        )
        found = collected(out)
        check_counts(world, [f"d{at}.example" for at in range(DOMAINS)], repeated=REPEATED_DOMAINS)
    assert killer.killed
    assert found["email_verdict"] == ["valid"] * len(table)


def test_an_executor_killed_while_it_asks_mail_servers_repeats_only_what_was_not_written(spark):
    with slow_world(round_trip=ROUND_TRIP) as (world, table):
        killer = Killer("mailboxes", world, executors)
        options = {"backend": world.backend, "validation_type": "smtp", "progress": killer}
        found = collected(mailverdict.spark.verify(frame_of(spark, table), "email", **options))
        check_counts(world, [f"d{at}.example" for at in range(DOMAINS)])
        assert sum(rcpts_of(world)) - len(table) <= REPEATED_RCPTS
    assert killer.killed
    assert found["email_verdict"] == ["valid"] * len(table)


def test_an_executor_killed_while_it_reads_rows_asks_nothing_twice(spark, tmp_path):
    flag = tmp_path / "killed"

    def read(batches):
        for batch in batches:
            if 0 in batch["row"].to_pylist() and not flag.exists():
                flag.touch()
                executor = next(
                    each for each in psutil.Process().parents() if each.name() == "java"
                )
                executor.kill()
            yield batch

    with slow_world() as (world, table):
        frame = frame_of(spark, table).mapInArrow(read, "row long, email string")
        options = {"backend": world.backend, "validation_type": "smtp", "progress": False}
        found = collected(mailverdict.spark.verify(frame, "email", **options))
        check_counts(world, [f"d{at}.example" for at in range(DOMAINS)])
        assert max(rcpts_of(world)) == 1
    assert flag.exists()
    assert found["email_verdict"] == ["valid"] * len(table)


def test_a_remote_service_pays_once_for_each_address(spark):
    table = pd.DataFrame({"row": range(24), "email": EMAILS * 3}, dtype=object)
    with mv.sandbox.World() as world:
        options = {"backend": world.url, "journal": None}
        out = mailverdict.spark.verify(frame_of(spark, table), "email", progress=False, **options)
        assert mv.quota(world.url).used == 4
        found = collected(out)
        assert found["email_verdict"] == in_memory(table, "email", **options)["email_verdict"]


def test_a_plan_counts_before_anything_is_asked(spark):
    table = pd.DataFrame({"row": range(16), "email": EMAILS * 2}, dtype=object)
    with mv.sandbox.World() as world:
        found = mailverdict.spark.plan(frame_of(spark, table), "email", backend=world.backend)
        assert world.dns.count("gone.example") == 0
    assert (found.rows, found.missing, found.malformed, found.unique, found.domains) == (
        16,
        4,
        2,
        4,
        3,
    )


class TestWhatCannotWork:
    def test_a_column_that_is_not_there(self, spark):
        with pytest.raises(ColumnError, match="no column 'mail'"):
            mailverdict.spark.verify(spark.createDataFrame([("x",)], "email string"), "mail")

    def test_a_column_of_the_caller(self, spark):
        frame = spark.createDataFrame(
            [("ada@gmail.com", "ask Ada")], "email string, email_verdict string"
        )
        with World() as world:
            for backend in (world.backend, world.url):
                with pytest.raises(
                    SettingsError, match="'email_verdict' that mailverdict did not write"
                ):
                    mailverdict.spark.verify(
                        frame, "email", backend=backend, journal=None, progress=False
                    )
            assert (world.dns.count("gmail.com"), mv.quota(world.url).used) == (0, 0)

    def test_frames_of_other_kinds(self, spark):
        with pytest.raises(InputError, match=r"use mailverdict\.verify"):
            mailverdict.spark.verify(pd.DataFrame({"email": ["ada@gmail.com"]}), "email")
        with pytest.raises(SettingsError, match=r"mailverdict\.spark\.verify"):
            mv.verify(spark.createDataFrame([("x",)], "email string"), "email")
