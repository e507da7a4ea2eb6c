"""Result tables made of single verifications."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from mailverdict.model.table import SCHEMA, row_of
from mailverdict.model.verification import Verification

__all__ = ["rows_to_table"]


def rows_to_table(verifications: Iterable[Verification], *, source: str) -> pa.Table:
    """Make a table of verifications; `table_to_rows` returns them unchanged."""
    return pa.Table.from_pylist([row_of(each, source) for each in verifications], schema=SCHEMA)
