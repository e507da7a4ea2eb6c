"""Result tables made of single verifications, tables read back from a CSV, and tables of cases that differ."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from mailverdict.model.table import SCHEMA, row_of
from mailverdict.model.verification import Verification

__all__ = ["assert_none_differ", "crossed", "rows_of_csv", "rows_to_table"]


def rows_to_table(verifications: Iterable[Verification], *, source: str) -> pa.Table:
    """Make a table of verifications; `table_to_rows` returns them unchanged."""
    return pa.Table.from_pylist([row_of(each, source) for each in verifications], schema=SCHEMA)


def rows_of_csv(path: str | Path, delimiter: str = ",") -> list[dict[str, str]]:
    """The rows by the names of the columns; bytes that are not UTF-8 as lone surrogates."""
    with Path(path).open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def assert_none_differ(differing: Iterable[object]) -> None:
    """Fail with a line for each row of a table that differs; an `assert` of pytest would show the first ones only."""
    lines = [ascii(row) for row in differing]
    if lines:
        pytest.fail("\n".join([f"{len(lines)} rows differ:", *lines]), pytrace=False)


def crossed(*choices: Sequence[object]) -> list[object]:
    """All combinations for `parametrize`: `make test` has each value once or more, `make test-rest` the others."""
    once = {tuple(n % len(each) for each in choices) for n in range(max(map(len, choices)))}
    rows = []
    for places in itertools.product(*(range(len(each)) for each in choices)):
        values = [each[place] for each, place in zip(choices, places, strict=True)]
        rows.append(pytest.param(*values, marks=() if places in once else pytest.mark.slow))
    return rows
