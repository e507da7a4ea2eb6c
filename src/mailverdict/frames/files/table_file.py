"""The base class of opened table files: what was found out about the file, and its rows in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from ...errors import ColumnError, InputError
from ..columns import check_column

__all__ = ["PIECE_ROWS", "FileFormat", "TableFile", "first_line"]

PIECE_ROWS = 250_000  # rows in one piece: bounds memory


@dataclass(frozen=True)
class FileFormat:
    """What was found out about a file when it was opened, apart from its column names."""

    encoding: str | None = None  # CSV
    has_bom: bool = False  # CSV: begins with a byte order mark, by which spreadsheets recognise Unicode
    delimiter: str = ","  # CSV
    sheet: str | None = None  # XLSX


class TableFile:
    """A table file whose header has been read. Subclasses override `read`.

    Use it in a ``with`` statement, so that the temporary copy of standard input is deleted.
    """

    def __init__(self, path: Path, name: str, columns: Sequence[str], file_format: FileFormat) -> None:
        self.path = path
        self.name = name  # in messages; the path of standard input is that of a temporary copy
        self.columns = tuple(columns)  # as in the header, including duplicates
        self.format = file_format
        self.is_temporary = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.is_temporary:
            self.path.unlink(missing_ok=True)

    def check_column(self, column: str) -> None:
        """Raise `ColumnError` unless the column exists exactly once."""
        try:
            check_column(column, self.columns)
        except ColumnError as exc:
            raise ColumnError(f"{self.name}: {exc}") from None

    def pieces(self) -> Iterator[pa.Table]:
        """Yield the rows in pieces, at least one; raise `InputError` where the file is truncated or malformed."""
        has_rows = False
        try:
            for piece in self.read():
                if len(piece):
                    has_rows = True
                    yield piece
        except (pa.ArrowException, OSError, UnicodeError) as exc:
            raise InputError(f"{self.name}{self.describe_error(exc)}") from exc
        if not has_rows:
            yield self.empty_piece()

    def read(self) -> Iterator[pa.Table]:
        raise NotImplementedError

    def empty_piece(self) -> pa.Table:
        return pa.table([pa.array([], pa.string()) for _ in self.columns], names=list(self.columns))

    def describe_error(self, exc: Exception) -> str:
        """The text of an error after the file's name, with the position where it is known."""
        return f": {first_line(exc)}"


def first_line(exc: BaseException) -> str:
    return (str(exc).strip().splitlines() or [type(exc).__name__])[0][:300]
