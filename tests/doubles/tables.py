"""Result tables made of single verifications, tables read back from a CSV, and tables of cases that differ."""

from __future__ import annotations

import csv
import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from _pytest.mark import ParameterSet

from mailverdict.files.readers import open_table
from mailverdict.model.table import SCHEMA, row_of
from mailverdict.model.verification import Verification

__all__ = [
    "assert_none_differ",
    "crossed",
    "each_row",
    "file_rows",
    "first_ones",
    "rows_of_csv",
    "rows_to_table",
    "write_file",
]


def file_rows(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of a table file, and the remarks about it."""
    with open_table(path) as opened:
        rows = [row for piece in opened.read() for row in piece.to_pylist()]
        return rows, opened.remarks


def write_file(path: Path, octets: bytes | str) -> Path:
    path.write_bytes(octets.encode() if isinstance(octets, str) else octets)
    return path


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


def first_ones(rows: Iterable[Any], number: int) -> list[Any]:
    """Rows for `parametrize`: `make test` has the first so many, `make test-rest` the others."""
    return [
        row
        if at < number
        else pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=pytest.mark.slow)
        for at, row in enumerate(rows)
    ]


def each_row(
    names: str | Sequence[str],
    rows: Iterable[Any],
    *,
    ids: Callable[[Any], Any] | Sequence[str] | None = None,
) -> Callable[[Any], Any]:
    """As `pytest.mark.parametrize` in one test, whose error has each row that fails: for rows that take less than a test.

    The test may have no fixtures, since rows would share them.
    """
    expected = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    table = [
        row.values if isinstance(row, ParameterSet) else (row,) if len(expected) == 1 else row
        for row in rows
    ]
    labels = map(ascii, table) if ids is None or callable(ids) else ids
    named = [
        (label, dict(zip(expected, row, strict=True)))
        for label, row in zip(labels, table, strict=True)
    ]

    def decorate(test: Any) -> Any:
        @functools.wraps(test)
        def test_each(*args: Any, **given: Any) -> None:
            errors: dict[str, BaseException] = {}
            for label, row in named:
                try:
                    test(*args, **given, **row)
                except (Exception, pytest.fail.Exception) as exc:  # noqa: BLE001 - told with those of the other rows
                    errors[f"{label[:1_000]}: {exc!r}"] = exc
            if errors:
                lines = [f"{len(errors)} of {len(named)} rows fail, the first as above:", *errors]
                raise AssertionError("\n".join(lines)) from next(iter(errors.values()))

        kept = [
            each
            for name, each in inspect.signature(test).parameters.items()
            if name not in expected
        ]
        test_each.__signature__ = inspect.Signature(kept)  # type: ignore[attr-defined]
        return test_each

    return decorate
