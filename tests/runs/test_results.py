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
from mailverdict.runs.results import FEW, Ledger
from tests.runs.scripted import rows_of


def ledger_of(count):
    return Ledger(pa.array([f"a{n}@example.org" for n in range(count)], pa.string()))


@pytest.mark.parametrize("size", [3, FEW - 1, FEW, FEW + 1, 5 * FEW])
@pytest.mark.parametrize("picked", [1, 2, FEW - 1, FEW, FEW + 1])
def test_positions_are_found_by_either_way_of_looking(size, picked):
    ledger = ledger_of(size)
    wanted = [(n * 7) % size for n in range(picked)]
    emails = pa.chunked_array([[f"a{n}@EXAMPLE.org" for n in wanted]], pa.string())
    found = ledger.positions_of(emails)
    assert found.dtype == np.int64
    assert found.tolist() == wanted


@pytest.mark.parametrize("size", [3, 2 * FEW])
@pytest.mark.parametrize("stranger", ["eve@example.org", "A1@example.org", "", "x" * 9_999])
def test_a_stranger_is_the_backends_error(size, stranger):
    with pytest.raises(BackendError, match=r"the backend answered about '.{0,99}, which it was not asked about"):
        ledger_of(size).positions_of(pa.chunked_array([["a1@example.org", stranger]]))


@given(st.permutations(range(6)), st.integers(0, 6), st.integers(1, 6))
def test_rows_come_out_in_the_order_of_the_addresses(order, settled, at_once):
    ledger, verdicts = ledger_of(6), ["valid", "invalid", "unknown"] * 2
    for start in range(0, settled, at_once):
        some = order[start : min(start + at_once, settled)]
        parts = [rows_of([f"a{n}@example.org"], verdicts[n]) for n in some]
        ledger.settle(pa.concat_tables(parts), np.array(some))
    done = set(order[:settled])
    table = ledger.table("mx")
    assert table.schema.equals(SCHEMA)
    assert table["email"].to_pylist() == ledger.addresses.to_pylist()
    assert table["result"].to_pylist() == [verdicts[n] if n in done else None for n in range(6)]
    assert table["status"].to_pylist() == ["done" if n in done else "pending" for n in range(6)]
    assert set(table["validation_type"].to_pylist()) == {"mx"}
    assert ledger.unsettled().tolist() == [n for n in range(6) if n not in done]
    assert ledger.counts["settled"] == settled


def test_a_later_row_replaces_an_earlier_one():
    ledger = ledger_of(2)
    for verdict in ("unknown", "valid"):
        ledger.settle(rows_of(["a1@example.org"], verdict))
    assert ledger.table("mx")["result"].to_pylist() == [None, "valid"]
    assert ledger.counts["settled"] == 1


def test_only_the_columns_asked_for_come():
    ledger = ledger_of(2)
    ledger.settle(rows_of(["a1@example.org"]))
    assert ledger.table("mx", ["result", "status"]).to_pydict() == {
        "result": [None, "valid"],
        "status": ["pending", "done"],
    }


def test_only_the_fields_that_will_be_asked_for_are_kept():
    ledger = Ledger(pa.array(["a1@example.org", "a2@example.org"]), ["status", "role"])
    ledger.settle(rows_of(["a2@example.org"], "invalid"))
    assert [table.column_names for table in ledger.tables] == [["status", "role"]]
    assert ledger.table("mx").to_pydict() == {"status": ["pending", "done"], "role": [None, None]}
    assert ledger.counts["invalid"] == 1


def test_an_empty_ledger_gives_an_empty_table():
    assert ledger_of(0).table("mx").schema.equals(SCHEMA)
    assert ledger_of(0).table("mx").num_rows == 0


def test_it_is_read_while_it_is_written():
    ledger, broken = ledger_of(200), []

    def read():
        while not stop.is_set():
            table = ledger.table("mx", ["email", "status"])
            if table["email"].to_pylist() != ledger.addresses.to_pylist():
                broken.append(table)

    stop = threading.Event()
    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for n in reversed(range(200)):
        ledger.settle(rows_of([f"a{n}@example.org"]))
    stop.set()
    for reader in readers:
        reader.join()
    assert broken == []
    assert ledger.table("mx")["status"].to_pylist() == ["done"] * 200
