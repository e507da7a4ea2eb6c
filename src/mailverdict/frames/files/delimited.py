"""CSV and TSV files: find out encoding, delimiter and header from a sample, then read all rows as text.

`open_delimited` does the first part. `DelimitedFile` reads the rows with Arrow, which is fast but names no line in its
errors; only after an error is the file read again, slowly, to find the first wrong line.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from ...errors import InputError
from .table_file import FileFormat, TableFile, first_line

__all__ = ["DelimitedFile", "open_delimited"]

BLOCK = 8 << 20  # bytes parsed at once; Arrow reads 32 blocks ahead. Bounds memory, and the length of a row
SAMPLE = 64 << 10  # bytes from which encoding, delimiter and header are found out
DELIMITERS = ",;\t|"
DELIMITER_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
ASCII_COMPATIBLE = ("utf-8", "utf-8-sig", "ascii", "cp1252", "iso8859-1")  # in these, byte 0x22 is always a quote
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is the beginning of this one
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
LAST_LINE = "end of file"


def open_delimited(path: Path, name: str, *, encoding: str | None, delimiter: str | None) -> DelimitedFile:
    """Open a CSV or TSV file; an encoding or delimiter that is None is found out."""
    with path.open("rb") as file:
        sample = file.read(SAMPLE)
    is_complete = path.stat().st_size <= len(sample)
    mark = next((marked for mark, marked in BYTE_ORDER_MARKS if sample.startswith(mark)), None)
    used_encoding = mark or "utf-8" if encoding is None else check_encoding(encoding)
    text = decode_sample(sample, used_encoding, name, is_complete=is_complete, is_given=encoding is not None)
    used_delimiter = guess_delimiter(text) if delimiter is None else parse_delimiter(delimiter)
    lines = io.StringIO(text, newline="")
    header = read_header(lines, used_delimiter, name)
    has_rest = bool(lines.read())
    if not is_complete and not has_rest:
        raise InputError(f"{name}: the header line is longer than {SAMPLE:,} bytes")
    found = FileFormat(encoding=used_encoding, has_bom=mark is not None, delimiter=used_delimiter)
    return DelimitedFile(path, name, header, found, is_encoding_given=encoding is not None, has_rows=has_rest)


def check_encoding(name: str) -> str:
    """Return the name of a text encoding; codecs such as base64 are refused."""
    try:
        "x".encode(name)
    except LookupError:
        raise InputError(f"encoding {name!r} is not known; try utf-8, utf-16, cp1252 or latin-1") from None
    return name


def decode_sample(sample: bytes, encoding: str, name: str, *, is_complete: bool, is_given: bool) -> str:
    """Decode the sample without its byte order mark; a character cut in two at its end is not an error."""
    try:
        text = codecs.getincrementaldecoder(encoding)("strict").decode(sample, final=is_complete)
    except UnicodeDecodeError as exc:
        line = 1 + sample.count(b"\n", 0, exc.start)
        raise InputError(f"{name}{decoding_error(exc, line, encoding, is_given=is_given)}") from exc
    if "\0" in text:
        raise InputError(
            f"{name} contains NUL characters: it is not a text table, or its encoding must be given, "
            "as in --encoding utf-16-le"
        )
    return text.removeprefix("\ufeff")


def decoding_error(exc: UnicodeDecodeError, line: int, encoding: str, *, is_given: bool) -> str:
    hint = "give another --encoding" if is_given else "give its encoding, as in --encoding cp1252"
    return f", line {line}: byte 0x{exc.object[exc.start]:02x} is not {encoding}; {hint}"


def parse_delimiter(text: str) -> str:
    """One character, or its name: a tab is hard to type."""
    found = DELIMITER_NAMES.get(text, text)
    if len(found) != 1 or not found.isascii() or found in '"\r\n\0':
        raise InputError(f"delimiter {text!r}: give one character, or one of {', '.join(DELIMITER_NAMES)}")
    return found


def guess_delimiter(text: str) -> str:
    """The delimiter that is most frequent in the header line, outside quotes."""
    line = next(iter(text.splitlines()), "")
    outside = "".join(line.split('"')[::2])
    return max(DELIMITERS, key=outside.count)


def read_header(lines: io.StringIO, delimiter: str, name: str) -> list[str]:
    try:
        header = next(csv.reader(lines, delimiter=delimiter), [])
    except csv.Error as exc:
        raise InputError(f"{name}: the header line cannot be read: {exc}") from exc
    if not any(header):
        raise InputError(f"{name} has no header line")
    return header


class DelimitedFile(TableFile):
    """The rows of a CSV or TSV file, every cell as text."""

    def __init__(
        self,
        path: Path,
        name: str,
        columns: Sequence[str],
        file_format: FileFormat,
        *,
        is_encoding_given: bool,  # by the user
        has_rows: bool,  # whether anything follows the header
    ) -> None:
        super().__init__(path, name, columns, file_format)
        self.encoding = file_format.encoding or "utf-8"
        self.is_encoding_given, self.has_rows = is_encoding_given, has_rows

    def read(self) -> Iterator[pa.Table]:
        """Yield the rows; empty cells are empty text, so that nothing is reinterpreted."""
        if self.ends_in_quotes():
            raise InputError(f"{self.name} ends inside quotes: it is truncated, or a quote is not doubled")
        if self.has_rows:
            with pyarrow.csv.open_csv(self.path, **self.arrow_options()) as reader:
                for batch in reader:
                    yield pa.table(batch.columns, names=list(self.columns))

    def arrow_options(self) -> dict[str, Any]:
        labels = [f"c{i}" for i in range(len(self.columns))]  # Arrow needs unique names
        encoding = "utf8" if codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig", "ascii") else self.encoding
        return {
            "read_options": pyarrow.csv.ReadOptions(
                block_size=BLOCK, column_names=labels, skip_rows_after_names=1, encoding=encoding
            ),
            "parse_options": pyarrow.csv.ParseOptions(
                delimiter=self.format.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=len(labels) > 1,  # in a table of one column, a blank line is an empty cell
            ),
            "convert_options": pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(labels, pa.string()), strings_can_be_null=False
            ),
        }

    def ends_in_quotes(self) -> bool:
        """Whether a quote is open at the end: Arrow would silently read the last rows as one cell.

        A line is added behind the file. If it is not a row of its own, it became part of a quoted cell.
        """
        if not self.may_end_in_quotes():
            return False
        last = [LAST_LINE]
        with self.path.open(encoding=self.encoding, newline="") as file:
            try:
                for row in csv.reader(itertools.chain(file, [LAST_LINE]), delimiter=self.format.delimiter):
                    last = row
            except csv.Error:  # a cell longer than this module allows; Arrow reads it
                return False
        return last != [LAST_LINE]

    def may_end_in_quotes(self) -> bool:
        """Whether the number of quotes is odd, which is quick to count; True where bytes are not characters."""
        if codecs.lookup(self.encoding).name not in ASCII_COMPATIBLE:
            return True
        with self.path.open("rb") as file:
            quotes = sum(block.count(b'"') for block in iter(lambda: file.read(BLOCK), b""))
        return quotes % 2 == 1

    def describe_error(self, exc: Exception) -> str:
        if "straddling" in str(exc):
            return f": a row is longer than {BLOCK:,} bytes, or a quote is not closed"
        return self.find_decoding_error() or self.find_ragged_row() or f": {first_line(exc)}"

    def find_decoding_error(self) -> str | None:
        """The first line that cannot be decoded."""
        decoder = codecs.getincrementaldecoder(self.encoding)("strict")
        with self.path.open("rb") as file:
            for number, line in enumerate(itertools.chain(file, [b""]), 1):
                try:
                    decoder.decode(line, final=not line)
                except UnicodeDecodeError as exc:
                    return decoding_error(exc, number, self.encoding, is_given=self.is_encoding_given)
        return None

    def find_ragged_row(self) -> str | None:
        """The first row with too many or too few cells."""
        with self.path.open(encoding=self.encoding, newline="") as file:
            reader = csv.reader(file, delimiter=self.format.delimiter)
            try:
                found = next((row for row in reader if row and len(row) != len(self.columns)), None)
            except csv.Error as exc:
                return f", line {reader.line_num + 1}: {exc}"
        if found is None:
            return None
        cells = "1 cell" if len(found) == 1 else f"{len(found)} cells"
        return f", line {reader.line_num}: {cells} where the header has {len(self.columns)}"
