r"""Write table files: CSV, TSV, Parquet, Arrow, JSON lines and XLSX.

`create_table` yields a writer for the kind of file. That of CSV is here. It joins whole columns
with Arrow; with cells formatted one by one, a file of millions of rows would take longer to write
than to verify by `regex`.

Rows of another CSV come as their octets in the column `LINE`, and our cells go behind them:

    b'1;"Lovelace, Ada";ada@x.org\r\n'  and  valid  ->  b'1;"Lovelace, Ada";ada@x.org;valid\r\n'
"""

from __future__ import annotations

import codecs
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import reduce
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..atomic_write import atomic_write, is_device
from ..errors import InputError
from ..model.paths import user_path
from ..table.columns import ADDRESS_NAMES, MESSAGE_NAMES, label_of
from .columnar import TypedWriter
from .compression import COMPRESSIONS, open_for_writing
from .encodings import UNIT, delimiter_octet, errors_of, swap
from .joined import TEXTS, bytes_of, join, large_offsets_of
from .json_lines import JsonLinesWriter, check_members
from .lines import join_cells, split_cells, split_end, unquote
from .plain import to_plain
from .readers import KINDS, STDIN
from .table_file import CELL_MARK, LINE, UNKNOWN, FileFormat
from .workbook import ActionSheets, XlsxTableWriter, check_replaced, check_room

STDOUT = STDIN
READ_ONLY = (".xlsm", ".xlsb", ".xls", ".ods", ".vcf")  # the first needs a macro in it
WRITABLE = {ending: kind for ending, kind in KINDS.items() if ending not in READ_ONLY}
# A spreadsheet reads a cell that starts like this as a formula; numbers, also of telephones, are
# harmless.
FORMULA = r"^[=+\-@\t\r]"
HARMLESS = r"^[+\-]?([0-9 ().,/\-]*[0-9][0-9 ().,/\-]*([eE][+\-]?[0-9]+)?|(?i:inf|infinity|nan))$"
CSV_ROWS = 65_536  # lines made at once: bounds memory
OCTETS = pa.large_binary()


@contextmanager
def create_table(
    path: Path | str,
    *,
    columns: Sequence[str] = (),
    is_escaped: Callable[[str], bool] = lambda name: False,
    choose: Callable[[], Path] | None = None,
    like: FileFormat = UNKNOWN,
    by_action: ActionSheets | None = None,
) -> Iterator[TableWriter]:
    """Yield a writer for a table file that appears complete at the end, or not after an exception.

    Its method `write` appends a piece; `remarks` says what the kind of file cannot hold. The ending
    of the name decides the kind; ``"-"`` is CSV on standard output. `columns` are those that are
    known before the first piece, so that a kind that cannot have them is refused at once. `choose`
    is called at the end and may name another file to replace.

    `like` is the format of the file that the rows are from: a CSV gets its delimiter and byte order
    mark, and copies the own cells of rows with the column `LINE`; a workbook gets the name of its
    sheet and its title. In the columns of a CSV for which `is_escaped` is true, text that a
    spreadsheet would run gets an apostrophe before it; a workbook's cells are typed. With
    `by_action` a workbook also gets a summary and a sheet for each action.

    Raises `InputError` if the file cannot be created.
    """
    target = user_path(path)
    is_stdout = str(path) == STDOUT
    if is_stdout:
        kind = "csv"
        place = to_stdout()
    else:
        kind = check_target(target)
        place = atomic_write(target, choose=choose)
    with ExitStack() as stack:
        try:
            temporary = stack.enter_context(place)
        except OSError as exc:
            raise InputError(f"{target} cannot be written: {exc.strerror}") from exc
        writer: TableWriter
        if kind in ("parquet", "arrow"):
            writer = stack.enter_context(closing(TypedWriter(temporary, kind)))
        elif kind == "jsonl":
            check_members(columns)
            writer = JsonLinesWriter(stack.enter_context(open_for_writing(temporary, target)))
        elif kind == "xlsx":
            check_room(columns=len(columns))
            check_replaced(target)
            writer = stack.enter_context(closing(XlsxTableWriter(temporary, like, by_action)))
        else:
            file = stack.enter_context(open_for_writing(temporary, target))
            delimiter = like.delimiter
            if kind == "tsv":
                delimiter = "\t"
            writer = CsvTableWriter(file, delimiter, like, is_escaped)
        yield writer


@contextmanager
def write_behind(
    write: Callable[[pa.Table], None],
) -> Iterator[Callable[[pa.Table], None]]:
    """Yield a function that writes a piece in a thread while its caller makes the next one.

    Pieces are written one after the other. The error of one is raised at the next call, or at the
    end.
    """
    with ThreadPoolExecutor(1) as thread:
        last: Future[None] | None = None

        def write_after(piece: pa.Table) -> None:
            nonlocal last
            if last is not None:
                last.result()
            last = thread.submit(write, piece)

        yield write_after
        if last is not None:
            last.result()


def check_target(path: Path) -> str:
    """The kind of table to write, by the ending of the name."""
    is_packed = path.suffix.lower() in COMPRESSIONS
    table = path
    if is_packed:
        table = Path(path.stem)
    kind = WRITABLE.get(table.suffix.lower())
    if path.is_dir():
        raise InputError(f"{path} is a directory; name a file to write")
    if kind is None and is_device(path):
        return "csv"
    if path.suffix.lower() in READ_ONLY:
        raise InputError(
            f"{path}: {path.suffix} files are read and not written: name another file, as "
            f"{writable_name(path)}"
        )
    if kind is None:
        raise InputError(
            f"{path}: cannot tell what kind of table to write; known endings: {', '.join(WRITABLE)}"
        )
    if is_packed and kind in ("parquet", "arrow", "xlsx"):
        raise InputError(
            f"{path}: a {table.suffix} file is compressed already; leave out {path.suffix}"
        )
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no directory {path.parent}")
    return kind


def writable_name(path: Path) -> Path:
    """A file to write instead of one that is only read: a workbook, or a CSV for contacts."""
    if path.suffix.lower() == ".vcf":
        return path.with_suffix(".csv")
    return path.with_suffix(".xlsx")


@contextmanager
def to_stdout() -> Iterator[Path]:
    """Yield the path of a temporary file that is copied to standard output at the end."""
    if sys.stdout is None:
        raise InputError("standard output is closed: give a file with --output")
    with tempfile.TemporaryDirectory(prefix="mailverdict-") as folder:
        temporary = Path(folder, "table.csv")
        temporary.touch(0o600)
        yield temporary
        with temporary.open("rb") as file:
            try:
                shutil.copyfileobj(file, sys.stdout.buffer)
                sys.stdout.buffer.flush()
            except OSError as exc:
                exc.filename = exc.filename or "standard output"
                raise


class FormulaColumns:
    """In which columns of a CSV text gets an apostrophe if a spreadsheet would run it as a formula.

    Always where a result column may quote somebody else, such as a mail server's reply; in the
    user's own columns only when asked for; never in a column of addresses, which must stay those
    that were judged.
    """

    def __init__(self, column: str, prefix: str | None, *, in_all: bool) -> None:
        self.messages = {label_of(column, prefix, name) for name in MESSAGE_NAMES}
        self.addresses = {label_of(column, prefix, name) for name in ADDRESS_NAMES}
        self.addresses.add(column)
        self.in_all = in_all

    def __call__(self, name: str) -> bool:
        if name in self.messages:
            return True
        return self.in_all and name not in self.addresses


# --- CSV ---------------------------------------------------------------------------------


class CsvTableWriter:
    """One header, and quotes only where needed.

    The text is UTF-8; rows of another CSV are copied in the encoding of that.
    """

    remarks: Sequence[str] = ()

    def __init__(
        self,
        file: IO[bytes],  # which the caller closes
        delimiter: str,
        like: FileFormat = UNKNOWN,
        is_escaped: Callable[[str], bool] = lambda name: False,
    ) -> None:
        self.file = file
        self.delimiter = delimiter
        self.like = like
        self.is_escaped = is_escaped
        self.has_header = False

    def write(self, piece: pa.Table) -> None:
        """Append rows."""
        if LINE in piece.column_names:
            self.copy_rows(piece)
            return
        if not self.has_header:
            self.write_header(piece.column_names)
            self.has_header = True
        for batch in piece.to_batches(max_chunksize=CSV_ROWS):
            cells = map(self.cells, piece.column_names, batch.columns)
            rows = join(*cells, between=self.delimiter)
            self.file.write(bytes_of(join(rows, "\n")))

    def write_header(self, columns: Sequence[str]) -> None:
        if self.like.head.startswith(codecs.BOM_UTF8):  # by which spreadsheets recognise Unicode
            self.file.write(codecs.BOM_UTF8)
        names = quote(pa.array(columns, TEXTS), self.delimiter)
        header = self.delimiter.join(names.to_pylist()) + "\n"
        self.file.write(header.encode())

    def copy_rows(self, piece: pa.Table) -> None:
        """Append rows of another CSV with our cells behind them.

        Its own cells stay byte for byte.
        """
        line_at = piece.column_names.index(LINE)
        names = piece.column_names[line_at + 1 :]
        if not self.has_header:
            self.copy_header(names)
            self.has_header = True
        changed = []
        for position in range(line_at):
            field = piece.schema.field(position)
            if field.metadata != CELL_MARK or self.is_escaped(field.name):
                changed.append(position)
        between = delimiter_octet(self.delimiter).decode()
        for batch in piece.to_batches(max_chunksize=CSV_ROWS):
            if not len(batch):
                continue
            rows, line_ends = split_line_ends(batch.column(line_at))
            if changed:
                rows = self.changed_rows(rows, batch, changed)
            added = []
            for name, column in zip(names, batch.columns[line_at + 1 :], strict=True):
                cells = self.cells(name, column)
                added.append(encode(cells, self.like))
            rows = join(rows, *added, between=between)
            self.put(bytes_of(join(rows, line_ends)))

    def copy_header(self, added: Sequence[str]) -> None:
        head, line_end = split_end(self.like.head)
        names = quote(pa.array(added, TEXTS), self.delimiter)
        octets = encode(names, self.like).view(OCTETS)
        header = delimiter_octet(self.delimiter).join([head, *octets.to_pylist()])
        self.put(header + line_end)

    def changed_rows(
        self, rows: pa.LargeStringArray, batch: pa.RecordBatch, changed: Sequence[int]
    ) -> pa.LargeStringArray:
        """Rows of the other CSV with other values in some columns, or with escaped cells."""
        delimiter = delimiter_octet(self.delimiter)
        octets = rows.view(OCTETS).to_pylist()
        split = [split_cells(row, delimiter) for row in octets]
        for position in changed:
            field = batch.schema.field(position)
            if field.metadata == CELL_MARK:
                cells = escaped_cells([row[position] for row in split])
            else:
                texts = self.cells(field.name, batch.column(position))
                encoded = encode(texts, self.like).fill_null("")
                cells = encoded.view(OCTETS).to_pylist()
            for row, cell in zip(split, cells, strict=True):
                row[position] = cell
        joined = pa.array(map(delimiter.join, split), OCTETS)
        return joined.view(TEXTS)

    def put(self, data: Any) -> None:
        """Write bytes; a copy in UTF-8 goes back to the encoding that it was made from."""
        encoding = self.like.encoding
        is_copy = encoding != self.like.text_encoding or not self.delimiter.isascii()
        if encoding is not None and is_copy:
            errors = errors_of(encoding)
            text = bytes(data).decode("utf-8", errors)
            data = swap(text, self.delimiter).encode(encoding, errors)
        self.file.write(data)

    def cells(self, name: str, column: pa.Array) -> pa.LargeStringArray:
        """Cells as they are in the file."""
        if pa.types.is_dictionary(column.type):  # few values for many rows
            return self.cells(name, column.dictionary).take(column.indices)
        plain = to_plain(column)
        kind = plain.type
        if pa.types.is_timestamp(kind) and kind.tz == "UTC":
            # Arrow would look for the database of time zones, which Windows does not have.
            moments = plain.view(pa.timestamp(kind.unit)).cast(TEXTS)
            return pc.replace_substring_regex(moments, "$", "Z")
        texts = plain.cast(TEXTS)
        if pa.types.is_timestamp(kind):  # +0100 is not ISO 8601 beside a time with colons
            return pc.replace_substring_regex(texts, r"([+-]\d\d)(\d\d)$", r"\1:\2")
        if not pa.types.is_string(kind):
            return texts
        if self.is_escaped(name):
            texts = neutralize(texts)
        return quote(texts, self.delimiter)


TableWriter: TypeAlias = CsvTableWriter | JsonLinesWriter | TypedWriter | XlsxTableWriter


def split_line_ends(lines: pa.LargeBinaryArray) -> tuple[pa.LargeStringArray, pa.LargeStringArray]:
    """Rows without their line ends, and the line ends; as text, whose encoding is not checked.

    Both are in the octets of the lines: row, line end, row, line end ...
    """
    whole = lines.view(TEXTS)
    rows = pc.ascii_rtrim(whole, "\r\n")
    lengths = pc.binary_length(rows).to_numpy()
    offsets = large_offsets_of(whole)
    count = 2 * len(lines)
    borders = np.empty(count + 1, np.int64)
    borders[0::2] = offsets
    borders[1::2] = offsets[:-1] + lengths
    octets = whole.buffers()[2]
    parts = pa.LargeStringArray.from_buffers(count, pa.py_buffer(borders), octets)
    odd = np.arange(1, count, 2)
    return rows, parts.take(odd)


def encode(texts: pa.LargeStringArray, like: FileFormat) -> pa.LargeStringArray:
    """Our cells as the bytes that are copied have them.

    Characters that are not in the file's encoding are escapes.
    """
    if like.delimiter.isascii() and like.encoding in ("utf-8", None):
        return texts
    whole = bytes(bytes_of(texts))
    if whole.isascii() and UNIT.encode() not in whole:
        return texts
    encoding = str(like.encoding)
    octets = []
    for text in texts.to_pylist():
        if text:
            known = text.encode(encoding, "backslashreplace").decode(encoding)
            text = swap(known, like.delimiter).encode(str(like.text_encoding))  # noqa: PLW2901
        octets.append(text)
    return pa.array(octets, OCTETS).view(TEXTS)


def escaped_cells(cells: Sequence[bytes]) -> list[bytes]:
    """Cells of another CSV with an apostrophe where a spreadsheet would run their text."""
    texts = list(map(unquote, cells))
    safe = neutralize(pa.array(texts, OCTETS).view(TEXTS))
    safe_texts = safe.view(OCTETS).to_pylist()
    escaped = []
    for cell, text, safe_text in zip(cells, texts, safe_texts, strict=True):
        written = cell
        if text != safe_text:
            written = join_cells([safe_text], b"")
        escaped.append(written)
    return escaped


def neutralize(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Put an apostrophe before text that a spreadsheet would run as a formula.

    >>> neutralize(pa.array(["=1+1", "-5", "+49 30 1234", "ada"], pa.large_string())).to_pylist()
    ["'=1+1", '-5', '+49 30 1234', 'ada']
    """
    risky = pc.match_substring_regex(texts, FORMULA)
    if not risky.true_count:
        return texts
    harmless = pc.match_substring_regex(texts, HARMLESS)
    escaped = join("'", texts)
    return pc.if_else(pc.and_not(risky, harmless), escaped, texts)


def quote(texts: pa.LargeStringArray, delimiter: str) -> pa.LargeStringArray:
    """Put quotes around text with the delimiter, a quote or a line end (RFC 4180 section 2).

    >>> quote(pa.array(["ada", "a,b", '5" pipe'], pa.large_string()), ",").to_pylist()
    ['ada', '"a,b"', '"5"" pipe"']
    """
    octets = bytes(bytes_of(texts))
    signs = [sign for sign in ('"', "\r", "\n", delimiter) if sign.encode() in octets]
    if not signs:
        return texts
    is_special = reduce(pc.or_, [pc.match_substring(texts, sign) for sign in signs])
    special = texts.filter(is_special)
    doubled = pc.replace_substring(special, '"', '""')
    return pc.replace_with_mask(texts, is_special, join('"', doubled, '"'))
