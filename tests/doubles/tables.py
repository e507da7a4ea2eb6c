"""Result tables made of single verifications, and tables read back from a CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from mailverdict.model.table import SCHEMA, row_of
from mailverdict.model.verification import Verification

__all__ = ["rows_of_csv", "rows_to_table"]


def rows_to_table(verifications: Iterable[Verification], *, source: str) -> pa.Table:
    """Make a table of verifications; `table_to_rows` returns them unchanged."""
    return pa.Table.from_pylist([row_of(each, source) for each in verifications], schema=SCHEMA)


def rows_of_csv(path: str | Path, delimiter: str = ",") -> list[dict[str, str]]:
    """The rows by the names of the columns; bytes that are not UTF-8 as lone surrogates."""
    with Path(path).open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        return list(csv.DictReader(file, delimiter=delimiter))
