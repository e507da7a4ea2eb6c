"""Rows out of answers."""

import json

from mailverdict.backend import Job
from mailverdict.model.table import SCHEMA, table_to_rows
from mailverdict.model.verification import Verification
from mailverdict.remote.rows import Trouble, answer_row, job_row, rejected_row, rows_table

JOB = Job("j", "ada@example.org", "smtp", 0.0)


def test_a_verdict_is_taken_as_it_is_with_reasons_that_no_table_knows() -> None:
    odd = Verification("ada@example.org", "smtp", "risky", reasons=("on_holiday", "role"), extra={"score": 7})
    table = rows_table([job_row(odd, JOB)])
    assert table.schema == SCHEMA
    assert table_to_rows(table) == [odd]


def test_the_row_answers_the_address_that_was_asked() -> None:
    row = answer_row(Verification("Ada@EXAMPLE.org", "mx", "valid"), "Ada@example.org")
    assert (row["email"], row["normalized"], row["source"]) == ("Ada@example.org", "Ada@EXAMPLE.org", "remote")


def test_a_technical_failure_has_no_verdict() -> None:
    row = rows_table([job_row(Trouble("ERROR", "disk on fire"), JOB)]).to_pylist()[0]
    assert (row["status"], row["result"], row["reasons"], row["error"]) == ("error", None, None, "ERROR")
    assert json.loads(row["errors"]) == [{"code": "ERROR", "message": "disk on fire"}]


def test_a_malformed_address_is_refused_as_one() -> None:
    row = rejected_row("no at", "smtp", "Invalid email format")
    assert (row["status"], row["result"], row["reasons"], row["error"]) == ("done", "invalid", "syntax_error", "REGEX")
    assert rejected_row("no at", "mx", "Invalid email format")["reasons"] == ""


def test_a_refusal_for_another_reason_is_no_verdict() -> None:
    row = rejected_row("ada@example.org", "smtp", "Domain not served")
    assert (row["status"], row.get("result"), row["error"]) == ("error", None, "REJECTED")
