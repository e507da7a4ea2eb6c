"""The work of four hot paths, in instructions, calls and octets, is not above what is stored: no time is measured."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from benchmarks.work import STORED, TOLERANCE, WorkCounter, excesses, stored_figures, version

from tests import ROOT

pytestmark = pytest.mark.slow


def test_hot_paths_need_no_more_work_than_stored():
    """In a process of its own, since the tests' coverage and time-outs would be counted."""
    if stored_figures() is None:
        pytest.skip(f"{STORED.name} has no figures for Python {version()}: python -m benchmarks.work --write")
    done = subprocess.run([sys.executable, "-m", "benchmarks.work"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_excess_is_what_is_above_the_tolerance():
    above = 100 * (1 + TOLERANCE) + 1
    assert excesses({"a": 100.0, "b": above}, {"a": 100.0, "b": 100.0}) == ["b: 116, stored 100 (+16%)"]


def test_pass_over_a_column_is_counted():
    """It is one call, and few instructions."""
    column = pa.array(["Ada@example.org"] * 1_000)
    with WorkCounter() as once:
        pc.utf8_lower(column)
    with WorkCounter() as twice:
        pc.utf8_lower(column)
        pc.utf8_lower(column)

    assert once.octets >= column.nbytes - 4_004  # beside the offsets
    assert twice.octets == 2 * once.octets
