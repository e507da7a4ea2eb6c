"""Table files: CSV, TSV, Parquet, XLSX and standard input, opened by what their names end with."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from ...errors import InputError
from .delimited import DelimitedFile
from .table_file import PIECE_ROWS, TableFile, first_line
from .workbook import Workbook

__all__ = ["KINDS", "STDIN", "open_table"]

STDIN = "-"
KINDS = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
}


@dataclass(frozen=True)
class Hints:
    """What the caller knows of a file; None is found out."""

    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None


class ParquetFile(TableFile):
    """A Parquet file.

    Parameters
    ----------
    path : Path
        The file.
    shown_as : str
        How messages name it.
    """

    def __init__(self, path: Path, shown_as: str) -> None:
        self.schema = pyarrow.parquet.read_schema(path)
        super().__init__(path, self.schema.names, shown_as)

    def read(self) -> Iterator[pa.Table]:
        """The rows, a piece at a time."""
        with pyarrow.parquet.ParquetFile(self.path) as reader:
            for batch in reader.iter_batches(batch_size=PIECE_ROWS):
                yield pa.Table.from_batches([batch])

    def empty(self) -> pa.Table:
        """No rows, with the types of the columns."""
        return self.schema.empty_table()


def open_table(
    path: str | Path, *, encoding: str | None = None, delimiter: str | None = None, sheet: str | None = None
) -> TableFile:
    """Look at a file: its kind, encoding, delimiter and header. To be closed, or used in a ``with`` statement.

    Raises
    ------
    InputError
        If it is not there, a directory, empty, of no known kind, or not what its name says.
    """
    hints = Hints(encoding, delimiter, sheet)
    if str(path) == STDIN:
        return open_stdin(hints)
    found = Path(path)
    if found.is_dir():
        raise InputError(f"{found} is a directory; give a file")
    if not found.exists():
        raise InputError(f"{found}: no such file")
    kind = KINDS.get(found.suffix.lower())
    if kind is None:
        raise InputError(f"{found}: cannot tell what kind of table this is; known endings: {', '.join(KINDS)}")
    return open_kind(found, kind, hints, str(found))


def open_kind(path: Path, kind: str, hints: Hints, shown_as: str) -> TableFile:
    """Open a file of a known kind; whatever is wrong with it is an `InputError`."""
    if not path.stat().st_size:
        raise InputError(f"{shown_as} is empty")
    try:
        return OPENERS[kind](path, shown_as, hints)
    except (pa.ArrowException, OSError, UnicodeError) as exc:
        raise InputError(f"{shown_as}: {first_line(exc)}") from exc


def open_stdin(hints: Hints) -> TableFile:
    """Standard input as a file, since its encoding is looked at before it is read."""
    with tempfile.NamedTemporaryFile(prefix="mailverdict-", suffix=".csv", delete=False) as copy:
        spooled = Path(copy.name)
        try:
            shutil.copyfileobj(sys.stdin.buffer, copy)
            copy.close()
            opened = open_kind(spooled, "csv", hints, "standard input")
        except BaseException:
            spooled.unlink()
            raise
    opened.is_temporary = True
    return opened


def open_tsv(path: Path, shown_as: str, hints: Hints) -> TableFile:
    return DelimitedFile(path, shown_as, encoding=hints.encoding, delimiter=hints.delimiter or "\t")


OPENERS: dict[str, Callable[[Path, str, Hints], TableFile]] = {
    "csv": lambda path, shown, hints: DelimitedFile(path, shown, encoding=hints.encoding, delimiter=hints.delimiter),
    "tsv": open_tsv,
    "parquet": lambda path, shown, hints: ParquetFile(path, shown),
    "xlsx": lambda path, shown, hints: Workbook(path, shown, sheet=hints.sheet),
}
