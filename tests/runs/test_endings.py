"""The loud ending: a run whose addresses mostly have no verdict for one technical cause."""

from __future__ import annotations

import warnings

import pandas as pd
import pyarrow as pa

import mailverdict as mv
from mailverdict.model.table import complete_table
from mailverdict.model.words import Reason
from mailverdict.runs.endings import (
    CAUSES,
    count_causes,
    count_errors,
    describe_ending,
    describe_errors,
)
from mailverdict.sandbox import World
from mailverdict.sandbox.dns_table import DnsFault, DomainRecords
from tests.doubles.answering_backend import AnsweringBackend, unknown
from tests.doubles.tables import each_row

CASES = [
    ({"DNS": 6, "other": 4}, "the DNS gave no usable answer", "most"),
    ({"DNS": 5, "other": 5}, "", "a half is not most"),
    ({"DNS": 1}, "", "one address shows nothing about the network"),
    ({"DNS": 2, "malformed": 100}, "2 of 2 addresses", "malformed addresses need no network"),
    ({"DNS": 6, "undeliverable": 94}, "", "the DNS answered about the others"),
    ({"port_closed": 6, "undeliverable": 94}, "port 25", "the others have no mail server"),
    ({"port_closed": 6, "undeliverable": 4, "other": 6}, "", "some mail servers were reached"),
    (
        {"timeout": 30, "connection_dropped": 30, "other": 40},
        "without an answer",
        "two reasons of one cause",
    ),
    ({"rate_limited": 60, "throttled": 39}, "rate limit", "the largest decides"),
    ({"throttled": 60}, "the queue of the service", "saturation"),
    ({"error": 60, "other": 3}, "the service failed", "no verdict at all"),
    ({"other": 1000}, "", "greylisted, full, or simply known"),
    ({}, "", "nothing was settled"),
]


@each_row(("counts", "says", "why"), CASES)
def test_one_function_decides(counts, says, why):
    found = describe_ending(counts, "local")
    assert says in found
    assert bool(found) == bool(says), why


@each_row("source", ["local", "remote"])
def test_each_cause_has_a_remedy(source):
    for key in CAUSES:
        found = describe_ending({key: 9, "other": 1}, source)
        assert found.startswith("9 of 10 addresses have no verdict, since "), key
        assert len(found.partition("; ")[2]) > 20, key


ROWS = [
    ("done", "valid", "", None, "other"),
    ("done", "unknown", "", "DNS", "DNS"),
    ("done", "unknown", "inconclusive;role", "DNS", "DNS"),
    ("done", "unknown", "port_closed", "SMTP", "port_closed"),
    ("done", "unknown", "greylisted", "SMTP", "other"),
    ("done", "risky", "disposable;port_closed", "SMTP", "other"),
    ("done", "invalid", "", "REGEX", "malformed"),
    ("done", "invalid", "no_mx_record", "DNS", "undeliverable"),
    ("error", None, None, "UPSTREAM_ERROR", "error"),
    ("pending", None, None, None, None),
]


def test_rows_are_counted_by_cause():
    names = ("status", "result", "reasons", "error")
    table = pa.table(
        {name: pa.array([row[i] for row in ROWS], pa.string()) for i, name in enumerate(names)}
    )
    encoded = pa.table({name: table[name].dictionary_encode() for name in names})
    expected = pd.Series([row[4] for row in ROWS if row[4]]).value_counts().to_dict()
    assert count_causes(table) == count_causes(encoded) == expected


def caught(action, *arguments, **given):
    """The result, and the warnings with the line that they are about."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = action(*arguments, **given)
    return found, [each for each in seen if "have no verdict" in str(each.message)]


def test_verify_warns_at_the_line_of_its_caller():
    zones = {f"s{i}.example": DomainRecords(faults={"*": DnsFault.SERVFAIL}) for i in range(5)}
    with World(zones) as world:
        out, (warning,) = caught(
            mv.verify, [f"ada@s{i}.example" for i in range(5)], backend=world.backend
        )
        assert out["verdict"].tolist() == ["unknown"] * 5
        assert "5 of 5 addresses" in str(warning.message)
        assert warning.filename == __file__


def test_verify_warns_of_closed_ports():
    with World() as world:
        emails = ["ada@closed.example", "grace@closed.example"]
        out, (warning,) = caught(
            mv.verify, emails, validation_type="smtp", backend=world.backend, journal=None
        )
        assert out["details"].tolist() == ["port_closed"] * 2
        assert "outgoing connections to port 25" in str(warning.message)


@each_row("reason", [Reason.RATE_LIMITED, Reason.PORT_CLOSED])
def test_the_run_and_its_progress_name_the_cause(reason):
    backend = AnsweringBackend({f"u{i}": unknown(reason) for i in range(6)})
    emails = [f"{name}@one.example" for name in ("u0", "u1", "u2", "u3", "u4", "u5", "ada", "bob")]
    run = mv.start(emails, validation_type="smtp", backend=backend, journal=None).wait()
    assert run.progress.state == "done"
    assert run.progress.problem == describe_ending({reason: 6, "other": 2}, "local")
    assert run.notices == [run.progress.problem]


def test_a_run_with_verdicts_names_none():
    run = mv.start(["ada@one.example", "bob@one.example"], backend=AnsweringBackend()).wait()
    assert (run.progress.problem, run.notices) == ("", [])


def test_addresses_without_a_verdict_of_the_service_are_counted_by_their_code() -> None:
    rows = complete_table(
        {
            "status": pa.array(["done", "error", "error", "error", "pending"]),
            "error": pa.array(["SMTP", "CONTRACT", None, "CONTRACT", None]),
        },
        5,
    )
    counts = count_errors(rows)
    assert counts == {"CONTRACT": 2, "ERROR": 1}
    assert "no verdict about 3 addresses (2 CONTRACT, 1 ERROR)" in describe_errors(counts)
    assert describe_errors({}) == ""
