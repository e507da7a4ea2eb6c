"""Open table files of every kind and standard input; and guess which column has the addresses.

`open_table` decides by the ending of the file's name and returns a `TableFile`. CSV and TSV are in
`delimited`, Parquet and Arrow files in `columnar`, JSON lines in `json_lines`, workbooks in
`sheets`, JSON of one value in `whole_files`, vCards in `contacts`.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

from ..atomic_write import is_device
from ..errors import ColumnError, InputError
from ..model.paths import user_path
from ..table.cells import is_filled, read_cells, read_texts
from ..table.columns import CLEAN_COLUMNS, COLUMNS, DUPLICATE_COLUMNS, listed
from .columnar import open_arrow, open_parquet, open_parquet_folder
from .compression import COMPRESSIONS, only_member, unpack
from .contacts import open_contacts
from .delimited import open_delimited
from .header import ADDRESS, EMAIL_NAME, numbered
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
# Two columns that `verify`, `clean` or `duplicates` wrote, by which the others of the same prefix are recognized.
WRITTEN_TOGETHER = (("verdict", "status"), ("clean", "change"), ("identity", "duplicate_of"))
BLOCK = 1 << 20  # octets that are copied at a time
SAMPLE_ROWS = 2_000  # looked at to guess the column
MIN_ADDRESS_SHARE = (
    0.3  # of the filled cells; a notes column that mentions an address now and then has far less
)
ADDRESS_LIKE = (  # one address or several, in angle brackets, after a label, or with a written-out @
    r"(?i)^\s*\S+@\S+\.\S+(?:\s+(?:[/|&;,]\s*|and\s+|or\s+)?\S+@\S+\.\S+)*\s*$|<\S+@\S+>"
    r"|^\s*[\w\-]{1,12}\s*[:=]\s*\S+@\S+\.\S+\s*$|^\s*\S+\s*[\[({]\s*at\s*[\])}]\s*\S+\s*$"
)
MOST_OTHERS = 3  # columns with addresses that are named beside the chosen one
LONGEST_SAMPLE = (
    1 << 16
)  # characters of a cell that is looked at for that; it may hold many addresses


def open_table(
    path: str | Path, options: ReadOptions = UNSPECIFIED, *, name: str | None = None
) -> TableFile:
    """Open a table file, or standard input for ``"-"``; use the result in a ``with`` statement.

    Standard input is Parquet, Arrow, a workbook or JSON lines if it begins like that, otherwise CSV. A directory is a
    table of Parquet files. Messages use `name`, by default the path.
    Raises `InputError` if the file does not exist, is empty, or is not of the kind that its name says.
    """
    if str(path) == STDIN:
        return open_stdin(options)
    if not str(path):  # which Path reads as the working directory
        raise InputError("the name of the file is empty")
    found = user_path(path)
    name = name or str(found)
    if found.is_dir():
        return open_kind(found, "folder", options, name)
    if not found.exists():
        raise InputError(f"{name}: no such file")
    if is_device(found):
        return open_pipe(found, options)
    kind = kind_of_name(found, name)
    if found.suffix.lower() in COMPRESSIONS:
        return open_temporary(
            unpack(found, name), lambda copy: open_kind(copy, kind, options, name)
        )
    return open_kind(found, kind, options, name)


def kind_of_name(path: Path, name: str) -> str:
    """The kind of a table by the ending of its name, without that of its compression."""
    is_packed = path.suffix.lower() in COMPRESSIONS
    ending = Path(path.stem).suffix.lower() if is_packed else path.suffix.lower()
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
    if not path.stat().st_size and kind not in (
        "jsonl",
        "folder",
    ):  # the first is a table without rows then
        raise InputError(f"{name} is empty")
    unused = unused_options(kind, options, name)
    try:
        opened = OPENERS[kind](path, name, options)
    except (pa.ArrowException, OSError, UnicodeError) as exc:
        raise InputError(f"{name}: {first_line(exc)}") from exc
    opened.remarks += unused
    return opened


def unused_options(kind: str, options: ReadOptions, name: str) -> list[str]:
    """Remarks about options for another kind of file; an error for a sheet, since the wrong table would be read."""
    if options.sheet is not None and kind != "xlsx":
        raise InputError(
            f"{name} is not a workbook and has no sheet {options.sheet!r}: leave out the sheet"
        )
    given = [each for each in ("encoding", "delimiter") if getattr(options, each) is not None]
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
    return open_temporary(
        Path(copy.name), lambda path: open_kind(path, kind or kind_of_content(path), options, name)
    )


def kind_of_content(path: Path) -> str:
    """The kind of a table without a name, by its first bytes."""
    with path.open("rb") as file:
        start = file.read(8)
    found = next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), None)
    return found or ("jsonl" if is_json(path) else "csv")


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


# --- the column of addresses -----------------------------------------------------------------------


def count_addresses(values: Any) -> tuple[float, float]:
    """Shares of addresses: among the filled cells, and among all."""
    kind = values.type if isinstance(values, pa.Array | pa.ChunkedArray) else pa.null()
    if (pa.types.is_string(kind) or pa.types.is_large_string(kind)) and not count_matches(
        values, ADDRESS.pattern
    ):
        return (
            0.0,
            0.0,
        )  # far quicker than to read the cells, which counts in a table with thousands of columns
    texts = read_cells(values, longest=LONGEST_SAMPLE)["stripped"]
    filled = is_filled(texts).true_count
    if not filled:
        return 0.0, 0.0
    found = count_matches(texts, ADDRESS_LIKE)
    return found / filled, found / len(values)


def count_matches(texts: pa.Array | pa.ChunkedArray, pattern: str) -> int:
    return pc.sum(pc.match_substring_regex(texts, pattern)).as_py() or 0


def guess_column(columns: Mapping[Any, Any]) -> Any:
    """The column with the most addresses, the first of equals; `ColumnError` if none has a large share."""
    return explain_guess(columns)[0]


def explain_guess(columns: Mapping[Any, Any]) -> tuple[Any, str]:
    """The guessed column, and why it was chosen.

    Empty cells count against a column, and a column that mailverdict wrote is never chosen.

    >>> explain_guess({"backup": ["a@x.org", ""], "mail": ["b@x.org", "c@x.org"], "mail_clean": ["b@x.org", "c@x.org"]})
    ('mail', "100% of the first 2 rows are addresses; 50% in 'backup'")
    """
    ranked = rank_columns(columns)
    if not ranked:
        return by_name(
            {name: values[:SAMPLE_ROWS] for name, values in columns.items()}, text_names(columns)
        )
    (share, best), *others = ranked
    rows = len(columns[best][:SAMPLE_ROWS])
    reason = (
        f"{share:.0%} of the first {rows:,} rows are addresses"
        if rows > 1
        else "the only row is an address"
    )
    return best, "; ".join(
        [reason, *(f"{each:.0%} in {name!r}" for each, name in others[:MOST_OTHERS])]
    )


def rank_columns(columns: Mapping[Any, Any]) -> list[tuple[float, Any]]:
    """The columns that hold addresses, each with its share of the first rows; the largest first."""
    names = text_names(columns)
    shares = {name: count_addresses(values[:SAMPLE_ROWS]) for name, values in columns.items()}
    likely = [
        (of_all, name)
        for name, (of_filled, of_all) in shares.items()
        if of_filled >= MIN_ADDRESS_SHARE and not is_result(name, names)
    ]
    return sorted(likely, key=lambda each: -each[0])


def has_addresses(table: pa.Table) -> bool:
    """Whether a table, such as that of a sheet, has a column of addresses."""
    columns = {}
    for at, name in enumerate(table.column_names):
        columns[numbered(at) if name in columns else name] = table.column(at)
    return bool(rank_columns(columns))


def text_names(columns: Iterable[Any]) -> frozenset[str]:
    return frozenset(name for name in columns if isinstance(name, str))


def by_name(heads: Mapping[Any, Any], names: frozenset[str]) -> tuple[Any, str]:
    """The only column whose name says that it has addresses, if its first cells are empty or have some in them."""
    if not heads:
        raise ColumnError(
            "the table has no columns to choose from: name the one with the addresses"
        )
    found = [
        n for n, v in heads.items() if EMAIL_NAME.fullmatch(str(n)) and not is_result(n, names)
    ]
    if len(found) == 1:
        texts = read_texts(heads[found[0]])
        filled = is_filled(texts).true_count
        if not filled:
            return found[0], "by its name; the first rows have no filled cell in it"
        if count_matches(texts, ADDRESS.pattern) >= MIN_ADDRESS_SHARE * filled:
            return found[0], "by its name; addresses are within the text of its cells"
    raise ColumnError(f"no column looks like e-mail addresses; name one of {listed(list(heads))}")


def is_result(name: Any, names: frozenset[str]) -> bool:
    """Whether a column is one that mailverdict writes beside another column of the table."""
    for result in (*COLUMNS, *CLEAN_COLUMNS, *DUPLICATE_COLUMNS) if isinstance(name, str) else ():
        prefix = name.removesuffix(result.name)
        if prefix == name:
            continue
        if any(names.issuperset({prefix + one, prefix + other}) for one, other in WRITTEN_TOGETHER):
            return True
        if prefix.endswith("_") and prefix[:-1] in names:
            return True
    return False
