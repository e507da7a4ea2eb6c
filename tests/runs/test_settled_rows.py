"""What has been settled so far: rows in any order in, rows in the order of the addresses out."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.errors import BackendError
from mailverdict.model.table import SCHEMA
from mailverdict.runs.progress import SettledRows
from tests.doubles.scripted_backend import rows_of
from tests.doubles.tables import each_row


def rows_for(count):
    return SettledRows(pa.array([f"a{n}@example.org" for n in range(count)], pa.string()))


def test_positions_are_found_by_the_key_of_an_address():
    collected = rows_for(10)
    for wanted in ([], [7], [3, 1, 9, 0]):
        found = collected.positions_of(pa.array([f"a{n}@EXAMPLE.org" for n in wanted], pa.string()))
        assert found.dtype == np.int64
        assert found.tolist() == wanted


@each_row("stranger", ["eve@example.org", "A1@example.org", "", "x" * 9_999])
def test_an_unknown_address_is_an_error_of_the_backend(stranger):
    with pytest.raises(
        BackendError, match=r"the backend answered about '.{0,99}, which it was not asked about"
    ):
        rows_for(3).positions_of(pa.chunked_array([["a1@example.org", stranger]]))


@given(st.permutations(range(6)), st.integers(0, 6), st.integers(1, 6))
def test_rows_come_out_in_the_order_of_the_addresses(order, settled, at_once):
    collected, verdicts = rows_for(6), ["valid", "invalid", "unknown"] * 2
    for start in range(0, settled, at_once):
        some = order[start : min(start + at_once, settled)]
        parts = [rows_of([f"a{n}@example.org"], verdicts[n]) for n in some]
        collected.settle(pa.concat_tables(parts), np.array(some))
    done = set(order[:settled])
    table = collected.table("mx")
    assert table.schema.equals(SCHEMA)
    assert table["email"].to_pylist() == collected.addresses.to_pylist()
    assert table["result"].to_pylist() == [verdicts[n] if n in done else None for n in range(6)]
    assert table["status"].to_pylist() == ["done" if n in done else "pending" for n in range(6)]
    assert set(table["validation_type"].to_pylist()) == {"mx"}
    assert collected.unsettled().tolist() == [n for n in range(6) if n not in done]
    assert collected.counts["settled"] == settled


@each_row("settled", [0, 2, 3])
def test_rows_that_come_in_order_stay_where_they_are(settled):
    collected, verdicts = rows_for(3), ["valid", "invalid", "unknown"]
    for n in range(settled):
        collected.settle_next(rows_of([f"a{n}@example.org"], verdicts[n]))
        assert collected.unsettled().tolist() == list(range(n + 1, 3))
    table = collected.table("regex")
    assert table["email"].to_pylist() == collected.addresses.to_pylist()
    assert table["result"].to_pylist() == verdicts[:settled] + [None] * (3 - settled)
    assert collected.counts["settled"] == settled


def test_a_later_row_replaces_an_earlier_one():
    collected = rows_for(2)
    for verdict in ("unknown", "valid"):
        collected.settle(rows_of(["a1@example.org"], verdict), np.array([1]))
    assert collected.table("mx")["result"].to_pylist() == [None, "valid"]
    assert collected.counts["settled"] == 1


def test_only_the_columns_asked_for_come():
    collected = rows_for(2)
    collected.settle(rows_of(["a1@example.org"]), np.array([1]))
    assert collected.table("mx", ["result", "status"]).to_pydict() == {
        "result": [None, "valid"],
        "status": ["pending", "done"],
    }


def test_only_the_fields_that_will_be_asked_for_are_kept():
    collected = SettledRows(pa.array(["a1@example.org", "a2@example.org"]), ["status", "role"])
    collected.settle(rows_of(["a2@example.org"], "invalid"), np.array([1]))
    assert [table.column_names for table in collected.tables] == [["status", "role"]]
    assert collected.table("mx").to_pydict() == {
        "status": ["pending", "done"],
        "role": [None, None],
    }
    assert collected.counts["invalid"] == 1


def test_a_column_without_addresses_gives_an_empty_table():
    assert rows_for(0).table("mx").schema.equals(SCHEMA)
    assert rows_for(0).table("mx").num_rows == 0


@pytest.mark.slow
def test_it_is_read_while_it_is_written():
    collected, broken = rows_for(200), []

    def read():
        while not stop.is_set():
            table = collected.table("mx", ["email", "status"])
            if table["email"].to_pylist() != collected.addresses.to_pylist():
                broken.append(table)

    stop = threading.Event()
    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for n in reversed(range(200)):
        collected.settle(rows_of([f"a{n}@example.org"]), np.array([n]))
    stop.set()
    for reader in readers:
        reader.join()
    assert broken == []
    assert collected.table("mx")["status"].to_pylist() == ["done"] * 200
