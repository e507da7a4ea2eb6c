"""CSV and TSV: encoding, delimiter and header are found out, then the rows are read as text."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from ...errors import InputError
from .table_file import TableFile, first_line

__all__ = ["DelimitedFile"]

BLOCK = 8 << 20  # octets parsed at once; Arrow reads 32 of them ahead. Bounds memory, and the length of a row
SAMPLE = 64 << 10  # octets looked at for the encoding, the delimiter and the header
DELIMITERS = ",;\t|"
SPOKEN_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
ASCII_LIKE = ("utf-8", "utf-8-sig", "ascii", "cp1252", "iso8859-1")  # in which an octet 0x22 is a quote
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class DelimitedFile(TableFile):
    """A CSV or TSV file.

    Parameters
    ----------
    path : Path
        The file.
    shown_as : str
        How messages name it.
    encoding : str or None
        None: UTF-8, or what the byte order mark says.
    delimiter : str or None
        One character, or its name; None: the likeliest in the header line.
    """

    def __init__(self, path: Path, shown_as: str, *, encoding: str | None = None, delimiter: str | None = None) -> None:
        with path.open("rb") as file:
            head = file.read(SAMPLE)
        mark = next((name for mark, name in MARKS if head.startswith(mark)), None)
        self.has_mark, self.is_told = mark is not None, encoding is not None
        self.encoding = known_encoding(encoding) if encoding is not None else mark or "utf-8"
        text = self.decode(head, shown_as, is_whole=path.stat().st_size <= len(head))
        self.delimiter = known_delimiter(delimiter) if delimiter is not None else guess_delimiter(text)
        lines = io.StringIO(text, newline="")
        super().__init__(path, read_header(lines, self.delimiter, shown_as), shown_as)
        rest, is_cut = lines.read(), path.stat().st_size > len(head)
        if is_cut and not rest:
            raise InputError(f"{shown_as}: the header line is longer than {SAMPLE:,} octets")
        self.has_rows = is_cut or bool(rest)

    def decode(self, head: bytes, shown_as: str, *, is_whole: bool) -> str:
        """The first characters; one that is cut in two at the end of the sample is no error."""
        try:
            text = codecs.getincrementaldecoder(self.encoding)("strict").decode(head, final=is_whole)
        except UnicodeDecodeError as exc:
            line = 1 + head.count(b"\n", 0, exc.start)
            raise InputError(f"{shown_as}{self.not_decoded(exc, line)}") from exc
        if "\0" in text:
            raise InputError(
                f"{shown_as} holds NUL characters: it is no text table, or in an encoding that has to be given, "
                "as --encoding utf-16-le"
            )
        return text.removeprefix("\ufeff")

    def read(self) -> Iterator[pa.Table]:
        """All cells as text, the empty ones as empty text, so that nothing is reinterpreted."""
        self.check_closed_quotes()
        if self.has_rows:
            with pyarrow.csv.open_csv(self.path, **self.arrow_options()) as reader:
                for batch in reader:
                    yield pa.table(batch.columns, names=list(self.columns))

    def arrow_options(self) -> dict[str, Any]:
        """How Arrow is to read it; a blank line is a row only where a row is a single cell."""
        labels = [f"c{i}" for i in range(len(self.columns))]
        encoding = "utf8" if codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig", "ascii") else self.encoding
        return {
            "read_options": pyarrow.csv.ReadOptions(
                block_size=BLOCK, column_names=labels, skip_rows_after_names=1, encoding=encoding
            ),
            "parse_options": pyarrow.csv.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=True, ignore_empty_lines=len(labels) > 1
            ),
            "convert_options": pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(labels, pa.string()), strings_can_be_null=False
            ),
        }

    def check_closed_quotes(self) -> None:
        """A file that ends inside quotes was cut off: its last rows would silently be one cell."""
        if self.may_end_in_quotes() and self.last_row() != [END]:
            raise InputError(f"{self.shown_as} ends inside quotes: it is cut off, or a quote is not doubled")

    def last_row(self) -> list[str]:
        """The last row of the file with one line more; if that is part of a longer cell, a quote is open."""
        last = [END]
        with self.path.open(encoding=self.encoding, newline="") as file:
            try:
                for row in csv.reader(itertools.chain(file, [END]), delimiter=self.delimiter):
                    last = row
            except csv.Error:  # a cell longer than this reader takes; Arrow takes it
                return [END]
        return last

    def may_end_in_quotes(self) -> bool:
        """Whether quotes do not come in pairs, as far as that can be told without parsing."""
        if codecs.lookup(self.encoding).name not in ASCII_LIKE:
            return True
        with self.path.open("rb") as file:
            quotes = sum(block.count(b'"') for block in iter(lambda: file.read(BLOCK), b""))
        return quotes % 2 == 1

    def explain(self, exc: Exception) -> str:
        """The line of the first fault, for which the file is read again; else what Arrow says."""
        if "straddling" in str(exc):
            return f": a row is longer than {BLOCK:,} octets, or a quote is not closed"
        return self.encoding_fault() or self.shape_fault() or f": {first_line(exc)}"

    def encoding_fault(self) -> str | None:
        """The first line that cannot be decoded."""
        decoder = codecs.getincrementaldecoder(self.encoding)("strict")
        with self.path.open("rb") as file:
            for number, line in enumerate(itertools.chain(file, [b""]), 1):
                try:
                    decoder.decode(line, final=not line)
                except UnicodeDecodeError as exc:
                    return self.not_decoded(exc, number)
        return None

    def not_decoded(self, exc: UnicodeDecodeError, line: int) -> str:
        """Which octet, and what to do about it."""
        hint = "give another --encoding" if self.is_told else "say which encoding it is, as --encoding cp1252"
        return f", line {line}: octet 0x{exc.object[exc.start]:02x} is not {self.encoding}; {hint}"

    def shape_fault(self) -> str | None:
        """The first row with too many or too few cells."""
        with self.path.open(encoding=self.encoding, newline="") as file:
            reader = csv.reader(file, delimiter=self.delimiter)
            try:
                found = next((row for row in reader if row and len(row) != len(self.columns)), None)
            except csv.Error as exc:
                return f", line {reader.line_num + 1}: {exc}"
        if found is None:
            return None
        cells = "1 cell" if len(found) == 1 else f"{len(found)} cells"
        return f", line {reader.line_num}: {cells} where the header has {len(self.columns)}"


END = "the end"


def known_encoding(name: str) -> str:
    """The encoding, if it is one of text."""
    try:
        "x".encode(name)
    except LookupError:
        raise InputError(f"encoding {name!r} is not known; try utf-8, utf-16, cp1252 or latin-1") from None
    return name


def known_delimiter(text: str) -> str:
    """One character, also by its name: a tab is hard to type."""
    found = SPOKEN_DELIMITERS.get(text, text)
    if len(found) != 1 or not found.isascii() or found in '"\r\n\0':
        raise InputError(f"delimiter {text!r}: give one character, or one of {', '.join(SPOKEN_DELIMITERS)}")
    return found


def guess_delimiter(text: str) -> str:
    """The one that the header line has most of, outside quotes."""
    line = next(iter(text.splitlines()), "")
    outside = "".join(line.split('"')[::2])
    return max(DELIMITERS, key=outside.count)


def read_header(lines: io.StringIO, delimiter: str, shown_as: str) -> list[str]:
    """The cells of the first row."""
    try:
        header = next(csv.reader(lines, delimiter=delimiter), [])
    except csv.Error as exc:
        raise InputError(f"{shown_as}: the header line cannot be read: {exc}") from exc
    if not any(header):
        raise InputError(f"{shown_as} has no header line")
    return header
