"""What the Spark driver does without Spark: batches in, batches out, and what it refuses."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from datetime import UTC, datetime

import pandas as pd
import pyarrow as pa
import pytest

import mailverdict as mv
import mailverdict.spark
from mailverdict.distributed.asking import ask_domains
from mailverdict.distributed.scratch import Scratch
from mailverdict.distributed.spark import (
    KEY,
    attach_batches,
    check_names,
    count_batches,
    final_columns,
    observe_batches,
    own_errors,
    quoted,
    read_batches,
    run_batches,
    text_batches,
)
from mailverdict.distributed.stages import KeyKind, StageJob
from mailverdict.errors import BackendError, ColumnError, InputError, SettingsError
from mailverdict.model.words import ValidationType
from mailverdict.table.columns import COLUMNS
from mailverdict.table.options import check_options
from tests.doubles.tables import each_row

EMAILS = ["ada@gmail.com", None, "nobody", "bo@gone.example", "ada@gmail.com", "eve@gmail.com"]


def batches(size=4):
    return pa.table({"row": range(len(EMAILS)), "email": EMAILS}).to_batches(size)


def job(key: KeyKind = "domain", kind="mx", **changes):
    options = check_options("verify", {"columns": "all"})
    given = {"backend": b"", "columns": COLUMNS, **changes}
    return StageJob("email", options, ValidationType(kind), key_kind=key, **given)


def whole(parts):
    return pa.Table.from_batches(list(parts))


class Conf:
    def __init__(self, **settings):
        self.settings = {name.replace("_", "."): value for name, value in settings.items()}

    def get(self, name, default=None):
        return self.settings.get(name, default)


def spark_frame(**settings):
    """An object of the class that Spark's frames have, as far as the arguments are checked."""
    session = type("Session", (), {"conf": Conf(**settings)})()
    members = {"columns": ["email"], "sparkSession": session, "mapInArrow": None, "schema": []}
    return type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe", **members})()


class TestBatches:
    def test_small_batches_are_worked_on_together(self):
        found = whole(count_batches(batches(1), job=job()))
        assert found["domain"].to_pylist() == ["gmail.com", "gone.example", "gmail.com", None]
        assert found["counts"].null_count == 3

    def test_rows_wait_for_their_domains(self):
        out = whole(attach_batches(batches(), job=job(), extra=[KEY]))
        assert out["email_mailverdict_key"].to_pylist() == [
            "gmail.com",
            None,
            None,
            "gone.example",
            "gmail.com",
            "gmail.com",
        ]
        assert out.column_names[:2] == ["row", "email"]
        assert not [field.name for field in out.schema if pa.types.is_dictionary(field.type)]

    def test_a_partition_without_batches_gives_none(self, tmp_path):
        wanted = job(shards=2, scratch=Scratch.open(tmp_path))
        assert list(attach_batches([], job=wanted)) == []
        assert list(run_batches([], task=ask_domains, job=wanted)) == []
        assert list(count_batches([], job=wanted)) == []
        [observed] = whole(observe_batches([], job=wanted))["report"].to_pylist()
        assert json.loads(observed)["rows"] == 0

    def test_answers_come_back_as_result_columns(self, tmp_path):
        with mv.sandbox.World() as world:
            wanted = job(
                backend=pickle.dumps(world.make_backend()),
                scratch=Scratch.open(tmp_path),
                shards=2,
                began_at=datetime.now(UTC),
                max_age=60.0,
            )
            [observed] = whole(observe_batches(batches(), job=wanted))["report"].to_pylist()
            wanted = replace(wanted, parts=[json.loads(observed)["part"]])
            shards = pa.record_batch({"id": [0, 1]})
            reports = whole(run_batches([shards], task=ask_domains, job=wanted))[
                "report"
            ].to_pylist()
        assert sum(json.loads(report)["keys"] for report in reports) == 2
        with pytest.raises(BackendError, match="was the scratch folder deleted"):
            whole(read_batches([shards], job=replace(wanted, scratch=Scratch(f"{tmp_path}/gone"))))
        wanted.scratch.write_json("shards.json", 2)
        answers = whole(read_batches([shards], job=wanted)).to_pylist()
        assert {each["key"]: (each["verdict"], each["status"]) for each in answers} == {
            "gmail.com": ("valid", "done"),
            "gone.example": ("invalid", "done"),
        }
        assert "free" not in answers[0]  # a flag follows from the lists, where the rows are

    def test_rows_of_a_service_come_back_as_result_columns(self):
        rows = mv.verify(EMAILS, validation_type="regex", columns=["verdict"])
        table = pa.table(
            {"key": ["a", "b"], "result": pa.array(["valid", "invalid"]).dictionary_encode()}
        )
        found = final_columns(
            table, job("text", columns=[each for each in COLUMNS if each.name == "verdict"])
        )
        assert found.to_pydict() == {"key": ["a", "b"], "verdict": ["valid", "invalid"]}
        assert rows["verdict"].isna().sum() == 1

    def test_distinct_texts_with_malformed_ones(self):
        texts = whole(text_batches(batches(), job=job("text")))["text"].to_pylist()
        assert sorted(texts) == ["ada@gmail.com", "bo@gone.example", "eve@gmail.com", "nobody"]

    def test_distinct_keys_are_counted(self):
        rows = whole(count_batches(batches(size=100), job=job())).to_pylist()
        assert [row["address"] for row in rows] == [
            "ada@gmail.com",
            "bo@gone.example",
            "eve@gmail.com",
            None,
        ]
        assert json.loads(rows[-1]["counts"])["malformed"] == 1


def test_names_are_read_literally():
    assert [quoted("a.b"), quoted("a`b")] == ["`a.b`", "`a``b`"]


class PythonException(Exception):
    """What Spark raises after an error in a Python worker."""


@each_row(
    ("last", "kind"),
    [
        ("mailverdict.errors.SettingsError: give another prefix", SettingsError),
        ("mailverdict.errors.MissingExtraError: give another prefix", BackendError),
        ("KeyError: 'give another prefix'", PythonException),
    ],
)
def test_an_error_of_this_package_in_a_task_is_raised_as_itself(last, kind):
    quoted_trace = (
        "An exception was thrown from the Python worker:\n"
        f"Traceback (most recent call last):\n  ...\n{last}\n"
    )
    with pytest.raises(kind, match="give another prefix") as caught, own_errors():
        raise PythonException(quoted_trace)
    assert caught.type is kind


class TestNames:
    def test_results_that_spark_does_not_tell_from_a_column_of_the_caller(self):
        with pytest.raises(SettingsError, match="'EMAIL_Verdict', and Spark ignores case"):
            check_names(["email", "EMAIL_Verdict"], ["email_verdict"], spark_frame().sparkSession)

    def test_case_may_count(self):
        session = spark_frame(spark_sql_caseSensitive="true").sparkSession
        check_names(["email", "EMAIL_Verdict"], ["email_verdict"], session)

    def test_replaced_columns_are_not_refused(self):
        check_names(["email", "email_verdict"], ["email_verdict"], spark_frame().sparkSession)

    @each_row("name", ["e.mail", "e`mail"])
    def test_names_that_spark_cannot_give_to_python(self, name):
        with pytest.raises(ColumnError, match="rename it"):
            check_names([name], [], spark_frame().sparkSession)


class TestWhatCannotWork:
    @each_row("function", [mailverdict.spark.verify, mailverdict.spark.plan])
    def test_frames_of_other_kinds(self, function):
        with pytest.raises(InputError, match=rf"use mailverdict\.{function.__name__}"):
            function(pd.DataFrame({"email": EMAILS}), "email")

    def test_speculative_copies_of_tasks(self):
        frame = spark_frame(spark_master="local[2]", spark_speculation="true")
        with pytest.raises(SettingsError, match=r"set spark\.speculation=false"):
            mailverdict.spark.verify(frame, "email")

    def test_executors_elsewhere_without_a_folder(self):
        with pytest.raises(SettingsError, match="scratch=None: the workers are on other machines"):
            mailverdict.spark.verify(spark_frame(spark_master="spark://10.0.0.1:7077"), "email")
