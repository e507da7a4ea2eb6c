"""The types of the result columns, for code that declares them before a row is verified: `schema`.

    column     kind      pandas                  Arrow                            Spark
    verdict    verdict   category of 4 words     dictionary of int8 and string    STRING
    role       bool      boolean                 bool                             BOOLEAN
    clean      text      string                  string                           STRING

The others are derived from the Arrow schema; that of Polars from an empty Arrow table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeAlias

import pyarrow as pa

from ..errors import MissingExtraError, SettingsError
from ..model.words import ColumnSet
from ..runs.options import check_flag
from .columns import ARROW_TYPES, PANDAS_TYPES, choose_columns

Wanted: TypeAlias = ColumnSet | Iterable[str]
FRAMES = ("pandas", "polars", "arrow", "spark")
# Of the kinds that `verify` gives; all its others are STRING.
SPARK_TYPES = {"bool": "BOOLEAN", "moment": "TIMESTAMP"}


def schema(
    kind: str,
    columns: Wanted = "core",
    *,
    prefix: str = "",
    clean: bool = True,
    categories: bool = True,
) -> Any:
    """Give the names and types of the result columns of `verify`, without verifying anything.

    They are the same for every input, also for one without rows.

    Parameters
    ----------
    kind : {"pandas", "polars", "arrow", "spark"}
        The kind of frame that `verify` gets and returns; for Spark, see below.
    columns : {"short", "core", "all"} or list of str, default "core"
        Which result columns, as in `verify`.
    prefix : str, default ""
        Prefix of each name. For a frame `verify` uses ``f"{column}_"`` by default, and none for a
        column alone.
    clean : bool, default True
        With the columns of repaired cells; False: as ``clean=False`` of `verify`.
    categories : bool, default True
        False: `verdict` and `status` are text, as with ``categories=False`` of `verify`.

    Returns
    -------
    dict, polars.Schema, pyarrow.Schema or str
        Pandas: dtypes by name, as for ``DataFrame.astype``. Polars and Arrow: a schema. Spark: DDL
        text, as for `mapInArrow` and `mapInPandas`; there `categories` makes no difference, since
        Spark has no such type. `mapInArrow` cannot read dictionary columns: call `verify` with
        ``categories=False`` in it.

    Raises
    ------
    SettingsError
        If `kind`, `columns` or another argument cannot work.
    MissingExtraError
        If Polars is not installed, for ``"polars"``.

    Examples
    --------
    >>> import mailverdict as mv
    >>> mv.schema("spark", ["verdict", "role", "checked_at"], prefix="email_", clean=False)
    'email_verdict STRING, email_role BOOLEAN, email_checked_at TIMESTAMP'
    >>> mv.schema("arrow", ["verdict", "details"])
    verdict: dictionary<values=string, indices=int8, ordered=0>
    details: string
    clean: string
    change: string
    >>> out = mv.verify([], validation_type="regex")
    >>> out.dtypes.to_dict() == mv.schema("pandas")
    True
    """
    if not isinstance(kind, str) or kind not in FRAMES:
        raise SettingsError(f"kind={kind!r}: give one of {', '.join(FRAMES)}")
    if not isinstance(prefix, str):
        raise SettingsError(f"prefix={prefix!r}: give text")
    chosen = choose_columns(columns, clean=check_flag("clean", clean), categories=categories)
    kinds = {prefix + column.name: column.kind for column in chosen}
    if kind == "spark":
        declared = []
        for name, word in kinds.items():
            declared.append(f"{quoted(name)} {SPARK_TYPES.get(word, 'STRING')}")
        return ", ".join(declared)
    if kind == "pandas":
        dtypes = {}
        for name, word in kinds.items():
            nothing = pa.chunked_array([], ARROW_TYPES[word])
            dtypes[name] = PANDAS_TYPES[word](nothing).dtype
        return dtypes
    fields = [pa.field(name, ARROW_TYPES[word]) for name, word in kinds.items()]
    arrow_schema = pa.schema(fields)
    if kind == "arrow":
        return arrow_schema
    return to_polars(arrow_schema)


def quoted(name: str) -> str:
    """A name in Spark's DDL; in backticks unless it is a plain word."""
    if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        return name
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def to_polars(arrow_schema: pa.Schema) -> Any:
    """The schema that Polars gives a table with these types."""
    try:
        import polars  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise MissingExtraError("a schema for Polars", "polars") from exc
    frame: Any = polars.from_arrow(arrow_schema.empty_table())
    return frame.schema
