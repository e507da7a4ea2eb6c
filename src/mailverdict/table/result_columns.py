"""The result columns of a call: their labels beside the caller's columns.

It also says what becomes of those of earlier calls.

For each verified column of a frame, `plan_results` says

    columns   the columns that the call writes, by their labels, including those of an earlier
              call that it makes again
    emptied   the columns that were made from earlier verdicts, as actions: they would not fit the
              new ones
    kept      the addresses that were repaired before, by us or by the user's own hand; they are
              verified as they stand

Which columns an earlier call wrote is found in overwrite.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ..errors import SettingsError
from ..runs.options import Options
from .columns import (
    BY_NAME,
    CLEANED,
    DERIVED_COLUMNS,
    Column,
    choose_columns,
)
from .options import ColumnChoice
from .overwrite import name_new_columns, read_existing
from .table import Table


@dataclass(frozen=True)
class ResultColumns:
    """What is written about one verified column."""

    columns: Mapping[Any, Column]  # by label
    emptied: Mapping[Any, Column] = field(default_factory=dict)  # by label
    kept: pa.RecordBatch | None = None  # see `ExistingResults`


def plan_results(
    tables: Sequence[Table],
    column: ColumnChoice | None,
    options: Options,
    extra: Sequence[Column] = (),
    *,
    finds_kept: bool = True,
) -> list[ResultColumns]:
    """The result columns of each table, with `extra` ones at the end.

    A `SettingsError` if one would replace a column of the caller's, or that of another table.
    """
    if options.prefix is not None and len(tables) > 1:
        raise SettingsError(
            f"prefix={options.prefix!r}: each of several columns has its own prefix; leave it out"
        )
    planned = []
    taken: set[Any] = set()
    if isinstance(column, list):
        taken.update(column)
    for table in tables:
        result = plan_table(table, options, extra, finds_kept=finds_kept)
        if isinstance(column, list):
            twice = taken.intersection(result.columns)
            if twice:
                raise SettingsError(
                    f"two results would get the label {twice.pop()!r}; verify these columns one by "
                    "one"
                )
            taken.update(result.columns)
        planned.append(result)
    return planned


def plan_table(
    table: Table, options: Options, extra: Sequence[Column], *, finds_kept: bool
) -> ResultColumns:
    """The result columns of one table."""
    if not options.overwrite:
        columns = [*choose_result_columns(options), *extra]
        labels = name_new_columns(table, options.prefix, columns)
        return ResultColumns(dict(zip(labels, columns, strict=True)))

    existing = read_existing(table, options.prefix, extra)
    earlier = dict(existing.earlier)
    kept = None
    if options.clean and finds_kept:
        kept = existing.kept_repairs()
    if kept is not None:
        earlier["clean"] = CLEANED
    is_verified = "verdict" in earlier or "status" in earlier

    columns = choose_result_columns(options)
    if is_verified:
        for column in made_again(options, earlier):
            if column not in columns:
                columns.append(column)
    columns += extra
    labels = existing.name_columns(columns, earlier)

    emptied = {}
    if is_verified:
        for derived in DERIVED_COLUMNS:
            if derived.name not in existing.earlier or derived in columns:
                continue
            label = existing.columns[derived.name].label
            emptied[label] = derived
            if not options.categories:
                emptied[label] = derived.without_categories()
    return ResultColumns(dict(zip(labels, columns, strict=True)), emptied, kept)


def choose_result_columns(options: Options) -> list[Column]:
    """The columns that the options ask for; beside what another verifier said always `source`."""
    columns = choose_columns(options.columns, clean=options.clean, categories=options.categories)
    if options.known is not None and BY_NAME["source"] not in columns:
        columns = (*columns, BY_NAME["source"])
    return list(columns)


def made_again(options: Options, earlier: Mapping[str, Column]) -> Sequence[Column]:
    """The columns of an earlier verification, which would not fit the new verdicts."""
    names = [name for name in earlier if name in BY_NAME]
    was_cleaned = options.clean and "change" in earlier
    return choose_columns(names, clean=was_cleaned, categories=options.categories)
