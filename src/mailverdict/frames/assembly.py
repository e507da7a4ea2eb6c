"""From rows of unique addresses to one row per row of the caller's, by position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..local.batch import foreign_rows
from ..model.words import Status, ValidationType
from .columns import Column
from .intake import Intake
from .kinds import DataKind

__all__ = ["Assembly"]

Index = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Assembly:
    """Puts the rows of unique addresses back beside the caller's rows, by position."""

    data: DataKind
    names: Sequence[Any]
    columns: Sequence[Column]
    intake: Intake
    codes: npt.NDArray[np.int32] | None
    validation_type: ValidationType
    source: str

    def __call__(self, unique: pa.Table) -> Any:
        """Make the caller's kind of result."""
        fields = self.fields()
        rows = self.rows(unique.select(fields), fields)
        return self.data.attach(rows, self.names, self.columns, self.note())

    def fields(self) -> list[str]:
        """Fields of the one table that the columns are made from."""
        return list(dict.fromkeys(["status", *(column.field for column in self.columns)]))

    def rows(self, unique: pa.Table, fields: list[str]) -> pa.Table:
        """One row per row of the caller's, in their order."""
        intake = self.intake
        if intake.rows is None and self.codes is None:
            return unique
        order: Index = np.full(intake.size, -1, np.int64)
        order[slice(None) if intake.rows is None else intake.rows] = self.text_order(len(unique))
        if len(intake.foreign_rows):
            foreign = foreign_rows(intake.foreign_kinds, self.validation_type, datetime.now(UTC)).select(fields)
            order[intake.foreign_rows] = len(unique) + np.arange(len(foreign))
            unique = pa.concat_tables([unique, foreign])
        return spread(unique, order)

    def text_order(self, unique: int) -> Any:
        """For each text the row of its address."""
        return np.arange(unique) if self.codes is None else self.codes

    def note(self) -> dict[str, Any]:
        """What `attrs` keeps: small and JSON-ready."""
        return {"validation_type": str(self.validation_type), "source": self.source}


def spread(table: pa.Table, order: Index) -> pa.Table:
    """Row `order[i]` of the table in row i; -1 is an empty cell, of which only the status is known."""
    rows = table.unify_dictionaries().combine_chunks().take(pa.array(order, mask=order < 0))
    status = rows["status"].combine_chunks()
    words = pa.concat_arrays([status.dictionary, pa.array([str(Status.MISSING)])])
    codes = status.indices.fill_null(len(words) - 1)
    at = rows.schema.get_field_index("status")
    return rows.set_column(at, rows.field(at), pa.DictionaryArray.from_arrays(codes, words))
