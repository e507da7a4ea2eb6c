"""Open table files of every kind and standard input.

`open_table` decides by the ending of the file's name and returns a `TableFile`:

    contacts.csv.gz  ->  unpacked by `compression`  ->  kind "csv"  ->  `delimited`

CSV and TSV are in `delimited`, Parquet and Arrow files in `columnar`, JSON lines in `json_lines`,
workbooks in `sheets`, JSON of one value in `whole_files`, vCards in `contacts`.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO

import pyarrow as pa

from ..atomic_write import is_device
from ..errors import InputError
from ..model.paths import user_path
from ..table.choose_column import choose_column
from .columnar import open_arrow, open_parquet, open_parquet_folder
from .compression import COMPRESSIONS, only_member, unpack
from .contacts import open_contacts
from .delimited import open_delimited
from .header import numbered
from .json_lines import is_json
from .sheets import open_sheet
from .table_file import (
    UNSPECIFIED,
    ReadOptions,
    TableFile,
    first_line,
    open_temporary,
    temporary_copy,
)
from .whole_files import open_json

STDIN = "-"
SPREADSHEETS = (".fods", ".numbers", ".sxc")  # which people have, and which are not read
KINDS = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".xlsb": "xlsx",
    ".xls": "xlsx",
    ".ods": "xlsx",
    ".vcf": "contacts",
}
BLOCK = 1 << 20  # octets that are copied at a time


def open_table(
    path: str | Path, options: ReadOptions = UNSPECIFIED, *, name: str | None = None
) -> TableFile:
    """Open a table file, or standard input for ``"-"``; use the result in a ``with`` statement.

    Standard input is Parquet, Arrow, a workbook or JSON lines if it begins like that, otherwise
    CSV. A directory is a table of Parquet files. Messages use `name`, by default the path.

    Raises `InputError` if the file does not exist, is empty, or is not of the kind that its name
    says.
    """
    if str(path) == STDIN:
        return open_stdin(options)
    if not str(path):  # which Path reads as the working directory
        raise InputError("the name of the file is empty")
    file = user_path(path)
    name = name or str(file)
    if file.is_dir():
        return open_kind(file, "folder", options, name)
    if not file.exists():
        raise InputError(f"{name}: no such file")
    if is_device(file):
        return open_pipe(file, options)
    kind = kind_of_name(file, name)
    if file.suffix.lower() in COMPRESSIONS:
        copy = unpack(file, name)
        return open_temporary(copy, lambda copy: open_kind(copy, kind, options, name))
    return open_kind(file, kind, options, name)


def kind_of_name(path: Path, name: str) -> str:
    """The kind of a table by the ending of its name, without that of its compression."""
    is_packed = path.suffix.lower() in COMPRESSIONS
    table = path
    if is_packed:
        table = Path(path.stem)
    ending = table.suffix.lower()
    if not ending and path.suffix.lower() == ".zip":
        member = only_member(path, name)
        ending = Path(member).suffix.lower()
        if ending not in KINDS:
            raise InputError(f"{name}: holds {member!r:.62}; give a zip file with one table in it")
    if ending in SPREADSHEETS:
        raise InputError(
            f"{name} is a spreadsheet of a kind that is not read: save it as .xlsx or .csv"
        )
    if ending not in KINDS:
        raise InputError(
            f"{name}: cannot tell what kind of table this is; known endings: {', '.join(KINDS)}, "
            f"and {', '.join(COMPRESSIONS)} after them; save anything else as .csv or .xlsx"
        )
    return KINDS[ending]


def open_kind(path: Path, kind: str, options: ReadOptions, name: str) -> TableFile:
    """Open a file of a known kind; raise `InputError` for everything that is wrong with it."""
    can_be_empty = kind in ("jsonl", "folder")  # the first is a table without rows then
    if not path.stat().st_size and not can_be_empty:
        raise InputError(f"{name} is empty")
    unused = unused_options(kind, options, name)
    try:
        opened = OPENERS[kind](path, name, options)
    except (pa.ArrowException, OSError, UnicodeError) as exc:
        raise InputError(f"{name}: {first_line(exc)}") from exc
    opened.remarks += unused
    return opened


def unused_options(kind: str, options: ReadOptions, name: str) -> list[str]:
    """Remarks about options for another kind of file.

    A sheet is an error, since the wrong table would be read.
    """
    if options.sheet is not None and kind != "xlsx":
        raise InputError(
            f"{name} is not a workbook and has no sheet {options.sheet!r}: leave out the sheet"
        )
    given = [option for option in ("encoding", "delimiter") if getattr(options, option) is not None]
    if not given or kind in ("csv", "tsv"):
        return []
    return [f"{' and '.join(given)}: only for CSV; {name} is read without"]


def open_stdin(options: ReadOptions) -> TableFile:
    if sys.stdin is None:
        raise InputError("standard input is closed: give a file, or pipe a table to the command")
    return open_stream(sys.stdin.buffer, None, options, "standard input")


def open_pipe(path: Path, options: ReadOptions) -> TableFile:
    """Read a pipe, such as that of ``<(command)``."""
    if path.suffix.lower() in COMPRESSIONS:
        raise InputError(
            f"{path} is a pipe: unpack what is written to it, as zcat does, or give a file"
        )
    with path.open("rb") as pipe:
        return open_stream(pipe, KINDS.get(path.suffix.lower()), options, str(path))


def open_stream(stream: IO[bytes], kind: str | None, options: ReadOptions, name: str) -> TableFile:
    """Copy a stream to its end to a temporary file, because a CSV is read more than once."""
    with temporary_copy() as copy:
        shutil.copyfileobj(stream, copy, BLOCK)
    path = Path(copy.name)
    return open_temporary(
        path, lambda path: open_kind(path, kind or kind_of_content(path), options, name)
    )


def kind_of_content(path: Path) -> str:
    """The kind of a table without a name, by its first bytes."""
    with path.open("rb") as file:
        start = file.read(8)
    for magic, kind in MAGIC.items():
        if start.startswith(magic):
            return kind
    return "jsonl" if is_json(path) else "csv"


MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"PK\x03\x04": "xlsx",
    b"\xd0\xcf\x11\xe0": "xlsx",
}
OPENERS: dict[str, Callable[[Path, str, ReadOptions], TableFile]] = {
    "csv": open_delimited,
    "tsv": lambda path, name, given: open_delimited(
        path, name, replace(given, likely_delimiter="\t")
    ),
    "parquet": lambda path, name, _: open_parquet(path, name),
    "folder": lambda path, name, _: open_parquet_folder(path, name),
    "arrow": lambda path, name, _: open_arrow(path, name),
    "jsonl": lambda path, name, _: open_json(path, name),
    "contacts": lambda path, name, _: open_contacts(path, name),
    "xlsx": lambda path, name, given: open_sheet(
        path, name, given.sheet, has_header=given.has_header, has_addresses=has_addresses
    ),
}


def has_addresses(table: pa.Table) -> bool:
    """Whether a column of addresses is found in a table, such as that of a sheet."""
    columns = {}
    for position, name in enumerate(table.column_names):
        unique = name
        if name in columns:
            unique = numbered(position)
        columns[unique] = table.column(position)
    choice = choose_column(columns)
    likely = choice.doubted
    if choice.chosen is not None:
        likely = (choice.chosen,)
    return any(candidate.with_mention for candidate in likely)
