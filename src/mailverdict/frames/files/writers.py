"""Write table files: CSV, TSV, Parquet, Arrow, JSON lines and XLSX.

`create_table` yields a writer for the kind of file. The CSV writer joins whole columns with Arrow and NumPy instead of
formatting cells one by one: a file of millions of rows takes longer to write than to verify by `regex` otherwise.
"""

from __future__ import annotations

import codecs
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...atomic_write import atomic_write, is_device
from ...checks.syntax.kernels import to_bools
from ...errors import InputError
from ...model.paths import user_path
from ..columns import ADDRESS_NAMES, MESSAGE_NAMES, label_of
from ..text_column import replace_texts
from .columnar import ArrowTableWriter, ParquetTableWriter
from .compression import COMPRESSIONS, pack
from .encodings import errors_of
from .json_lines import JsonLinesWriter, check_members
from .lines import Index, binary_array, find_line_ends, join_cells, split_rows, strip_line_ends
from .plain import to_plain
from .readers import KINDS, STDIN
from .table_file import CELL_MARK, LINE, FileFormat
from .workbook import XlsxTableWriter, check_replaced, check_room

STDOUT = STDIN
WRITABLE = {ending: kind for ending, kind in KINDS.items() if ending != ".xlsm"}  # which needs a macro in it
# A spreadsheet reads a cell that starts like this as a formula; numbers, also of telephones, are harmless.
FORMULA = r"^[=+\-@\t\r]"
HARMLESS = r"^[+\-]?([0-9 ().,/\-]*[0-9][0-9 ().,/\-]*([eE][+\-]?[0-9]+)?|(?i:inf|infinity|nan))$"
FORMULA_BYTES = np.isin(np.arange(256), np.frombuffer(b"=+-@\t\r", np.uint8))
CSV_ROWS = 65_536  # lines made at once: bounds memory
FEW = 1_000  # distinct values of a column that is joined by combination of values
MAX_COMBINATIONS = 1 << 40  # of values of neighbouring columns: a code is an int64


class TableWriter(Protocol):
    """Writes the pieces of one table, all with the same columns."""

    @property
    def remarks(self) -> Sequence[str]:
        """What the kind of file cannot hold, for the user."""
        ...

    def write(self, piece: pa.Table) -> None:
        """Append a piece."""
        ...

    def close(self) -> None:
        """Finish the file."""
        ...


@contextmanager
def create_table(
    path: Path | str,
    *,
    columns: Sequence[str] = (),
    delimiter: str = ",",
    is_escaped: Callable[[str], bool] = lambda name: False,
    has_bom: bool = False,
    choose: Callable[[], Path] | None = None,
    like: FileFormat | None = None,
    by_action: str | None = None,
) -> Iterator[TableWriter]:
    """Yield a writer for a table file that appears complete at the end, or not at all after an exception.

    The ending of the name decides the kind; ``"-"`` is CSV on standard output. `columns` are those that are known
    before the first piece, so that a kind that cannot have them is refused at once. `choose` is called at the end and
    may name another file to replace. With `by_action`, the name of the column of actions, a workbook also gets a
    summary and a sheet for each action. The other options are for CSV: its delimiter, in which columns text that a
    spreadsheet would run gets an apostrophe before it (a workbook's cells are typed), whether it begins with a byte
    order mark, and `like`, the format of the CSV that pieces with the column `LINE` are from: their own cells are
    copied as they are.
    Raises `InputError` if the file cannot be created.
    """
    target = user_path(path)
    is_stdout = str(path) == STDOUT
    kind = "csv" if is_stdout else check_target(target)
    with ExitStack() as stack:
        try:
            temporary = stack.enter_context(to_stdout() if is_stdout else atomic_write(target, choose=choose))
        except OSError as exc:
            raise InputError(f"{target} cannot be written: {exc.strerror}") from exc
        temporary = stack.enter_context(pack(temporary, target))
        writer: TableWriter
        if kind == "parquet":
            writer = ParquetTableWriter(temporary)
        elif kind == "arrow":
            writer = ArrowTableWriter(temporary)
        elif kind == "jsonl":
            check_members(columns)
            writer = JsonLinesWriter(temporary)
        elif kind == "xlsx":
            check_room(columns=len(columns))
            check_replaced(target)
            writer = XlsxTableWriter(temporary, like, by_action)
        else:
            used = "\t" if kind == "tsv" else delimiter
            writer = CsvTableWriter(temporary, used, is_escaped=is_escaped, has_bom=has_bom, like=like)
        yield stack.enter_context(closing(writer))


def check_target(path: Path) -> str:
    """The kind of table to write, by the ending of the name."""
    is_packed = path.suffix.lower() in COMPRESSIONS
    kind = WRITABLE.get(Path(path.stem).suffix.lower() if is_packed else path.suffix.lower())
    if path.is_dir():
        raise InputError(f"{path} is a directory; name a file to write")
    if kind is None and is_device(path):
        return "csv"
    if kind is None:
        raise InputError(f"{path}: cannot tell what kind of table to write; known endings: {', '.join(WRITABLE)}")
    if is_packed and kind in ("parquet", "arrow", "xlsx"):
        raise InputError(f"{path}: a {Path(path.stem).suffix} file is compressed already; leave out {path.suffix}")
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no directory {path.parent}")
    return kind


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
    """In which columns of a CSV text that a spreadsheet would run as a formula gets an apostrophe before it.

    Always where a result column may quote somebody else, such as a mail server's reply; in the user's own columns
    only when asked for; never in a column of addresses, which must stay those that were judged.
    """

    def __init__(self, column: str, prefix: str | None, *, in_all: bool) -> None:
        self.messages = {label_of(column, prefix, name) for name in MESSAGE_NAMES}
        self.addresses = {column, *(label_of(column, prefix, name) for name in ADDRESS_NAMES)}
        self.in_all = in_all

    def __call__(self, name: str) -> bool:
        return name in self.messages or (self.in_all and name not in self.addresses)


# --- CSV -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cells:
    """Cells of one column, or of neighbouring ones: row i has ``texts[codes[i]]``, without codes ``texts[i]``."""

    texts: pa.LargeBinaryArray
    codes: npt.NDArray[Any] | None = None  # integers; one for all rows if they have the same text


class CsvTableWriter:
    """One header, quotes only where needed, in UTF-8; rows of another CSV are copied in the encoding of that."""

    remarks: Sequence[str] = ()

    def __init__(
        self,
        path: Path,
        delimiter: str,
        *,
        is_escaped: Callable[[str], bool] = lambda name: False,
        has_bom: bool = False,
        like: FileFormat | None = None,
    ) -> None:
        self.delimiter, self.is_escaped, self.like, self.has_bom = delimiter, is_escaped, like, has_bom
        self.has_header = False
        self.is_copying = False  # pieces have the column LINE
        self.ends_open = False  # the last row that was copied has no line end
        self.file: BinaryIO = path.open("wb")

    def write(self, piece: pa.Table) -> None:
        """Append rows; cells are joined to lines by column, so that millions of rows are a few arrays."""
        if LINE in piece.column_names and self.like is not None:
            self.copy_rows(piece, self.like)
            return
        if not self.has_header:
            self.file.write(codecs.BOM_UTF8 if self.has_bom else b"")
            names = pa.array(piece.column_names, pa.large_string())
            self.file.write((self.delimiter.join(quote(names, self.delimiter).to_pylist()) + "\n").encode())
            self.has_header = True
        for batch in piece.to_batches(max_chunksize=CSV_ROWS):
            cells = delimit(self.joined_cells(piece.column_names, batch.columns), self.delimiter)
            self.file.write(join_rows([*cells, constant("\n")], len(batch)))

    def copy_rows(self, piece: pa.Table, like: FileFormat) -> None:
        """Append rows of another CSV with our cells behind them; its own cells stay byte for byte."""
        own = piece.column_names.index(LINE)
        names = [*piece.column_names[:own], *piece.column_names[own + 1 :]]
        if not self.has_header:
            added = quote(pa.array(names[own:], pa.large_string()), self.delimiter)
            header = [like.header, *self.encode(Cells(added.cast(pa.large_binary())), like).texts.to_pylist()]
            self.put(like.original_bom, None)
            self.put(like.lead + self.delimiter.encode().join(header) + like.header_end, like)
            self.has_header = self.is_copying = True
        changed = [at for at in range(own) if self.is_changed(piece, at)]
        line_end = (re.match(rb"\r?\n|\r|", like.header_end) or [b""])[0] or b"\n"
        for batch in piece.to_batches(max_chunksize=CSV_ROWS):
            if len(batch):
                self.put(line_end if self.ends_open else b"", like)
                parts, self.ends_open = self.copied_lines(batch, own, changed, line_end, like)
                for part in parts:
                    self.put(part, like)

    def copied_lines(
        self, batch: pa.RecordBatch, own: int, changed: Sequence[int], line_end: bytes, like: FileFormat
    ) -> tuple[list[Any], bool]:
        """The bytes of rows of another CSV with our cells behind them, and whether the last one has no line end."""
        names, columns = batch.schema.names[own + 1 :], batch.columns[own + 1 :]
        added = [self.encode(each, like) for each in self.joined_cells(names, columns)]
        data, starts, ends = find_line_ends(batch.column(own))
        is_open = ends == starts[1:]
        ends_open = bool(is_open[-1])
        is_open[-1] = False  # from here on: rows that were repeated or moved
        if added and not changed and not is_open.any():
            # Behind our cells of a row are its line end and the cells of the next row, as they stand in the file.
            between = Cells(binary_array(data, np.append(ends, starts[-1])))
            parts = [*delimit(added, self.delimiter, first=self.delimiter), between]
            return [data[int(starts[0]) : int(ends[0])], join_rows(parts, len(batch))], ends_open
        lines, line_ends = strip_line_ends(batch.column(own))
        if is_open.any():
            line_ends = pc.if_else(pa.array(is_open), line_end, line_ends)
        cells = [lines] if not changed else self.changed_cells(lines, batch, own, changed, like)
        parts = delimit([*map(Cells, cells), *added], self.delimiter)
        return [join_rows([*parts, Cells(line_ends)], len(batch))], ends_open

    def is_changed(self, piece: pa.Table, at: int) -> bool:
        """Whether a column of the other CSV is not copied: it has other values, or is to be escaped."""
        field = piece.schema.field(at)
        return field.metadata != CELL_MARK or self.is_escaped(field.name)

    def changed_cells(
        self, lines: pa.LargeBinaryArray, batch: pa.RecordBatch, own: int, changed: Sequence[int], like: FileFormat
    ) -> list[pa.LargeBinaryArray]:
        """The cells of rows of the other CSV by column, some of them with other values."""
        data = b"\n".join(lines.to_pylist()) + b"\n"
        rows = split_rows(data, self.delimiter.encode(), is_last=True)
        cells = [rows.column(at, own) for at in range(own)]
        for at in changed:
            field = batch.schema.field(at)
            if field.metadata != CELL_MARK:
                cells[at] = self.encode(self.cells(field.name, batch.column(at)), like).texts
                continue
            texts = rows.values(at, own).to_pylist()
            risky = [is_risky(text) for text in texts]
            escaped = [join_cells([b"'" + text], b"") for text in texts if is_risky(text)]
            cells[at] = pc.replace_with_mask(cells[at], pa.array(risky), pa.array(escaped, pa.large_binary()))
        return cells

    def encode(self, cells: Cells, like: FileFormat) -> Cells:
        """Our cells in the encoding of the bytes that are copied; unknown characters as escapes."""
        if like.text_encoding in ("utf-8", None) or bytes(bytes_of(cells.texts)).isascii():
            return cells
        encoding, texts = str(like.text_encoding), cells.texts.cast(pa.large_string()).to_pylist()
        octets = [None if text is None else text.encode(encoding, "backslashreplace") for text in texts]
        return replace(cells, texts=pa.array(octets, pa.large_binary()))

    def put(self, data: Any, like: FileFormat | None) -> None:
        """Write bytes; a copy in UTF-8 goes back to the encoding that it was made from."""
        if like is not None and like.original_encoding is not None:
            errors = errors_of(like.original_encoding)
            data = bytes(data).decode("utf-8", errors).encode(like.original_encoding, errors)
        self.file.write(data)

    def joined_cells(self, names: Sequence[str], columns: Sequence[pa.Array]) -> list[Cells]:
        """Cells by column; neighbours with few distinct values are one column, joined once for each combination."""
        joined: list[Cells] = []
        group: list[tuple[str, FewValues]] = []
        combinations = 1
        for name, column in zip(names, columns, strict=True):
            few = find_few(column)
            if group and (few is None or combinations * len(few.values) > MAX_COMBINATIONS):
                joined.append(self.join_group(group))
                group, combinations = [], 1
            if few is None:
                joined.append(self.cells(name, column))
            else:
                group.append((name, few))
                combinations *= len(few.values)
        return [*joined, self.join_group(group)] if group else joined

    def join_group(self, group: Sequence[tuple[str, FewValues]]) -> Cells:
        """Columns with few distinct values as one."""
        codes: Index = np.zeros(1, np.int64)
        for _, column in group:
            if len(column.values) > 1:
                codes = codes * len(column.values) + column.codes
        used = pa.array(codes).dictionary_encode()
        left = used.dictionary.to_numpy()
        cells = []
        for name, column in reversed(group):
            left, at = np.divmod(left, len(column.values))
            cells.append(self.cells(name, column.values.take(pa.array(at))))
        texts = join(*(each.texts for each in reversed(cells)), between=self.delimiter)
        return Cells(texts, used.indices.to_numpy())

    def cells(self, name: str, column: pa.Array) -> Cells:
        """Cells as they are in the file; a missing one is empty."""
        plain = to_plain(column)
        texts = plain.cast(pa.large_string())
        if pa.types.is_timestamp(plain.type):  # +0100 is not ISO 8601 beside a time with colons
            texts = pc.replace_substring_regex(texts, r"([+-]\d\d)(\d\d)$", r"\1:\2")
        if pa.types.is_string(plain.type):
            texts = quote(neutralize(texts) if self.is_escaped(name) else texts, self.delimiter)
        return Cells(texts.cast(pa.large_binary()))

    def close(self) -> None:
        if self.is_copying and self.like is not None:
            self.file.write(self.like.tail)
        self.file.close()


@dataclass(frozen=True)
class FewValues:
    """A column with few distinct values: row i has ``values[codes[i]]``."""

    codes: npt.NDArray[Any]  # integers; one for all rows if there is one value
    values: pa.Array


def find_few(column: pa.Array) -> FewValues | None:
    """The distinct values of a column of text or booleans, null among them; None if there are many."""
    if column.null_count == len(column):
        return FewValues(np.zeros(1, np.int8), pa.nulls(1, column.type))
    if pa.types.is_dictionary(column.type):
        values = pa.concat_arrays([column.dictionary, pa.nulls(1, column.type.value_type)])
        if len(values) > FEW:
            return None
        codes = column.indices if not column.null_count else column.indices.cast(pa.int32()).fill_null(len(values) - 1)
        return FewValues(codes.to_numpy(), values)
    if pa.types.is_boolean(column.type):
        bits = pa.BooleanArray.from_buffers(pa.bool_(), len(column), [None, column.buffers()[1]], offset=column.offset)
        codes = np.where(to_bools(column.is_valid()), to_bools(bits), np.uint8(2))
        return FewValues(codes, pa.array([False, True, None]))
    if not pa.types.is_string(column.type) or len(column.slice(0, FEW).unique()) > FEW // 10:
        return None
    encoded = column.dictionary_encode(null_encoding="encode")
    return FewValues(encoded.indices.to_numpy(), encoded.dictionary) if len(encoded.dictionary) <= FEW else None


def constant(text: str) -> Cells:
    """The same text in each row."""
    return Cells(pa.array([text.encode()], pa.large_binary()), np.zeros(1, np.int32))


def delimit(cells: Iterable[Cells], delimiter: str, *, first: str = "") -> list[Cells]:
    """The cells with the delimiter before each but the first one, before which is `first`."""
    parts, lead = [], first
    for each in cells:
        if each.codes is None:
            parts += [constant(lead), each] if lead else [each]
        else:
            parts.append(replace(each, texts=join(lead, each.texts)))
        lead = delimiter
    return parts


def join_rows(parts: Sequence[Cells], rows: int) -> memoryview:
    """The bytes of the cells, row by row: one `take` of all, for which the parts alternate."""
    order = np.empty((rows, len(parts)), np.int32)
    starts = np.cumsum([0, *(len(each.texts) for each in parts)])
    for at, each in enumerate(parts):
        order[:, at] = starts[at] + (np.arange(rows, dtype=np.int32) if each.codes is None else each.codes)
    return bytes_of(pa.concat_arrays([each.texts for each in parts]).take(pa.array(order.ravel())))


def is_risky(value: bytes) -> bool:
    """Whether a spreadsheet would run a cell as a formula."""
    text = value.decode("latin-1")
    return re.match(FORMULA, text) is not None and re.match(HARMLESS, text) is None


def neutralize(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Put an apostrophe before text that a spreadsheet would run as a formula.

    >>> neutralize(pa.array(["=1+1", "-5", "+49 30 1234", "ada"], pa.large_string())).to_pylist()
    ["'=1+1", '-5', '+49 30 1234', 'ada']
    """
    if not begins_formula(texts).any():
        return texts
    risky = pc.and_not(pc.match_substring_regex(texts, FORMULA), pc.match_substring_regex(texts, HARMLESS))
    return pc.if_else(risky, join("'", texts), texts)


def quote(texts: pa.LargeStringArray, delimiter: str) -> pa.LargeStringArray:
    """Put quotes around text that contains the delimiter, a quote or a line end (RFC 4180 section 2).

    >>> quote(pa.array(["ada", "a,b", '5" pipe'], pa.large_string()), ",").to_pylist()
    ['ada', '"a,b"', '"5"" pipe"']
    """
    data, offsets = np.frombuffer(bytes_of(texts), np.uint8), large_offsets_of(texts)
    is_special = data == ord('"')
    for special in (delimiter, "\r", "\n"):
        is_special |= data == ord(special)
    if not is_special.any():
        return texts
    rows = np.unique(np.searchsorted(offsets, np.flatnonzero(is_special) + offsets[0], side="right") - 1)
    rows = rows[to_bools(texts.is_valid())[rows]]  # a missing text may have bytes, too
    quoted = join('"', pc.replace_substring(texts.take(pa.array(rows)), '"', '""'), '"')
    return replace_texts(texts, rows, quoted)


def begins_formula(texts: pa.LargeStringArray) -> Any:
    """For each text, whether its first byte begins a formula; for an empty text, the first byte of the next one."""
    data, offsets = np.frombuffer(bytes_of(texts), np.uint8), large_offsets_of(texts)
    starts = offsets[:-1] - offsets[0]
    return FORMULA_BYTES[data[starts[starts < len(data)]]]


def large_offsets_of(texts: pa.LargeStringArray) -> Any:
    """The offset of each text in the buffer, which takes 64 bits, and the end of the last one."""
    if not len(texts):
        return np.zeros(1, np.int64)
    return np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]


def bytes_of(texts: pa.LargeStringArray) -> memoryview:
    """The bytes of all texts, one after the other, without a copy."""
    offsets = large_offsets_of(texts)
    return memoryview(texts.buffers()[2] or b"")[offsets[0] : offsets[-1]]


def join(*parts: Any, between: str = "") -> Any:
    """Concatenate texts row by row; a missing one is empty."""
    kind = next(part.type for part in parts if not isinstance(part, str))
    whole = [pa.scalar(part, kind) if isinstance(part, str) else part for part in (*parts, between)]
    return pc.binary_join_element_wise(*whole, null_handling="replace")
