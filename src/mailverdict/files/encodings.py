r"""The encoding of a text file: given, shown by its first bytes, or guessed; and a copy in UTF-8.

    b"\xef\xbb\xbfid,..."        the byte order mark of UTF-8          `find_encoding`
    b"i\0d\0,\0..."              every second octet is zero: UTF-16    `find_encoding`
    b"...,G\xfcnther,..."         not UTF-8: cp1252 by its letters      `guess_encoding`, `letters`

Bytes that are not in the encoding are kept: each byte sequence is decoded so that it can be encoded
back to the same. Rows are split at single bytes, so a file in UTF-16 is read from a copy in UTF-8
(`copy_as_utf8`), and so is one whose delimiter is not ASCII; in that copy UNIT stands for
the delimiter, and the delimiter for UNIT.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..errors import InputError
from .letters import DOUBTFUL, PAGES, RUNS, Decoding, decodes, rank_pages
from .table_file import LONGEST_LINE, temporary_copy

BLOCK = 8 << 20  # bytes read at once: bounds memory
SAMPLE = 64 << 10  # bytes from which the encoding is found out
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
WITH_ORDER = {"utf-16": "utf-16-le", "utf-8-sig": "utf-8"}  # of a file without a byte order mark
# Japanese code pages have a yen sign for the backslash.
STRUCTURE = bytes(range(0x20, 0x7F)).translate(None, b"\\~") + b"\t\r\n"
# Code pages that are guessed, beside those of Latin text (`letters`).
OTHERS = (
    *("cp1251", "koi8_r", "cp932", "euc_jp", "gb18030", "big5", "cp949"),
    *("cp1253", "cp1255", "cp1256", "cp874"),
)
DOUBLE_BYTES = ("gb18030", "cp949", "euc_jp")  # those whose characters are two bytes beyond ASCII
# Encodings in which the second byte of a character may be ASCII.
WITH_LOW_BYTES = ("shift_jis", "cp932", "gb", "big5", "cp949", "cp950", "johab")
RUNS_BEYOND_ASCII = re.compile(rb"[\x80-\xff][\x40-\xff]{0,40}")
LONGEST_EXAMPLE = 30  # characters of a word in a message
MOST_OTHERS = 2  # encodings that are named beside the guessed one
UNIT = "\x1f"  # the delimiter in a copy of a file whose own one is not ASCII


@dataclass(frozen=True)
class Encoding:
    """How the bytes of a file are read."""

    name: str
    why: str = ""  # how it was guessed, and what else it could be; empty if it was not
    original: str | None = None  # the file's own encoding if a copy of it in UTF-8 is read
    bom: bytes = b""  # the byte order mark in the bytes that are read


def find_encoding(path: Path, name: str, given: str | None) -> Encoding:
    """The encoding that is given or that the first bytes show; UTF-8 otherwise."""
    with path.open("rb") as file:
        sample = file.read(SAMPLE)
    asked = ""
    if given is not None:
        asked = codecs.lookup(check_encoding(given)).name
    is_marked = sample.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE))
    is_like_it = not asked and is_utf32(sample)
    if asked.startswith("utf-32") or is_marked or is_like_it:
        raise InputError(f"{name} is UTF-32, which is not read: save it as UTF-8")
    marked = read_mark(sample)
    if asked:
        if marked and asked.replace("-sig", "") in (marked.name, marked.name[:6]):
            return marked
        return Encoding(WITH_ORDER.get(asked, asked))
    return marked or guess_utf16(sample) or Encoding("utf-8")


def read_mark(sample: bytes) -> Encoding | None:
    """The encoding by a byte order mark, which is there twice after some conversions."""
    for mark, encoding in BYTE_ORDER_MARKS:
        if sample.startswith(mark):
            length = len(mark)
            while sample.startswith(mark, length):
                length += len(mark)
            return Encoding(encoding, bom=sample[:length])
    return None


def guess_utf16(sample: bytes) -> Encoding | None:
    """UTF-16 if about every second octet is zero, as in Latin text."""
    even = sample[0::2].count(0)
    odd = sample[1::2].count(0)
    more = max(even, odd)
    if more <= len(sample) // 5 or min(even, odd) * 20 >= more:
        return None
    encoding = "utf-16-be"
    if odd > even:
        encoding = "utf-16-le"
    if not re.search("[ -~]", sample.decode(encoding, "replace")):
        return None
    return Encoding(encoding, why="guessed, since every second octet is zero")


def is_utf32(sample: bytes) -> bool:
    """Whether a file is UTF-32 without its mark: two octets of each four are zero, one is not."""
    characters = len(sample) // 4
    first, second, third, fourth = [sample[place::4].count(0) for place in range(4)]
    most = 0.95 * characters
    is_little = 2 * first < characters and min(third, fourth) > most
    is_big = 2 * fourth < characters and min(first, second) > most
    return is_little or is_big


def check_encoding(name: str) -> str:
    """Return the name of a text encoding; codecs such as base64 are refused."""
    try:
        "x".encode(name)
    except LookupError:
        raise InputError(
            f"encoding {name!r} is not known; try utf-8, utf-16, cp1252 or latin-1"
        ) from None
    return name


def needs_copy(encoding: str, delimiter: str) -> bool:
    """Whether a delimiter, quote or line end may be anything but its ASCII byte.

    An empty delimiter is not given.
    """
    try:
        is_like_ascii = STRUCTURE.decode(encoding) == STRUCTURE.decode("ascii")
    except (UnicodeDecodeError, LookupError):
        return True
    if not is_like_ascii:
        return True
    return not delimiter.isascii() or (encoding.startswith(WITH_LOW_BYTES) and delimiter >= "0")


def copy_as_utf8(
    path: Path, name: str, encoding: Encoding, delimiter: str
) -> tuple[Encoding, Path]:
    """Copy a file to a temporary one in UTF-8; encoded again, it gives the same bytes."""
    errors = errors_of(encoding.name)
    is_text = False
    with (
        temporary_copy() as copy,
        path.open(encoding=encoding.name, errors=errors, newline="") as file,
    ):
        try:
            while text := file.read(BLOCK):
                is_text = is_text or re.search("[ -~]", text) is not None
                copy.write(swap(text, delimiter).encode("utf-8", errors))
        except UnicodeError as exc:
            raise InputError(
                f"{name} is not {encoding.name}: {exc}; give another --encoding"
            ) from exc
        if not is_text:
            raise InputError(
                f"{name}: nothing in it is readable as {encoding.name}; give another --encoding"
            )
    bom = encoding.bom.decode(encoding.name).encode()
    copied = replace(encoding, name="utf-8", original=encoding.name, bom=bom)
    return copied, Path(copy.name)


def swap(text: str, delimiter: str) -> str:
    """The text of a file as its copy has it, and the other way round."""
    if delimiter.isascii():
        return text
    for one, other in ((delimiter, UNIT), (UNIT, delimiter)):
        if other not in text:  # ten times as fast
            return text.replace(one, other)
    return text.translate({ord(delimiter): UNIT, ord(UNIT): delimiter})


def delimiter_octet(delimiter: str) -> bytes:
    """The delimiter in the bytes that are read."""
    if delimiter.isascii():
        return delimiter.encode()
    return UNIT.encode()


def errors_of(encoding: str) -> str:
    """The error handler by which each byte sequence is decoded and encoded back to the same."""
    return "surrogatepass" if encoding.startswith("utf-16") else "surrogateescape"


@dataclass
class ByteScan:
    """What one pass over the bytes of a file finds."""

    has_escaped_quotes: bool = False  # a backslash before a quote, which may mean nothing
    is_ascii: bool = True
    first_damaged: int | None = None  # the first block that is not UTF-8

    @property
    def is_utf8(self) -> bool:
        return self.first_damaged is None


def scan_bytes(path: Path) -> ByteScan:
    scan = ByteScan()
    for number, block in enumerate(blocks_of(path)):
        # One octet is found far faster than two.
        scan.has_escaped_quotes |= b"\\" in block and b'\\"' in block
        if not block.isascii():
            scan.is_ascii = False
            if scan.is_utf8 and not is_utf8(block):
                scan.first_damaged = number
    return scan


def blocks_of(path: Path) -> Iterator[bytes]:
    """The lines of a file, many at a time, so that no character is in two blocks."""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            yield block + file.readline(LONGEST_LINE)


def is_utf8(data: bytes) -> bool:
    """Whether bytes are valid UTF-8; Arrow finds it thirty times as fast as `bytes.decode`."""
    offsets = np.array([0, len(data)], np.int64)
    text = pa.LargeStringArray.from_buffers(1, pa.py_buffer(offsets), pa.py_buffer(data))
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def sample_lines(path: Path, first_damaged: int) -> bytes:
    """Lines with bytes beyond ASCII: the first of the file, and of the block that is not UTF-8."""
    sample = b""
    room = SAMPLE
    for number, block in enumerate(blocks_of(path)):
        if number == first_damaged:
            room = len(sample) + SAMPLE
        if block.isascii() or len(sample) >= room:
            continue
        for line in re.split(rb"[\r\n]+", block):
            if not line.isascii() and len(sample) < room:
                sample += line[:SAMPLE] + b"\n"
    return sample


def guess_encoding(sample: bytes, delimiter: str) -> Encoding:
    """The encoding of lines that are not all UTF-8."""
    text = sample.decode("utf-8", "surrogateescape")
    damaged = re.findall("[\udc80-\udcff]", text)
    whole = re.findall("[^\x00-\x7f\udc80-\udcff]", text)
    if len(whole) > 4 * len(damaged):
        return Encoding("utf-8")  # with a few damaged characters
    octet = delimiter.encode("cp1252", "replace")  # at the same place in most code pages
    if not delimiter.isascii():
        sample = sample.replace(octet, b",")
    words = b"".join(word for word in RUNS.findall(sample) if not word.isascii())
    ascii_letters = re.findall(rb"[A-Za-z]", words)
    has_ascii = len(ascii_letters) > 0.4 * len(words)  # accents among ASCII
    is_single = re.search(rb"[\x80-\xff]{2}", sample) is None  # signs, as in 5 €
    if not has_ascii and not is_single:
        return guess_other(sample, octet, delimiter)
    pages = with_delimiter(PAGES, octet, delimiter)
    best, *others = rank_pages(sample, pages)
    doubtful = [other for other in others if other.score > best.score - DOUBTFUL]
    return Encoding(best.encoding, why=explain(best, doubtful[:MOST_OTHERS]))


def with_delimiter(pages: Iterable[str], octet: bytes, delimiter: str) -> list[str]:
    """The code pages in which an octet is the delimiter."""
    fitting = [page for page in pages if octet.decode(page, "replace") == delimiter]
    return fitting or ["cp1252"]


def guess_other(sample: bytes, octet: bytes, delimiter: str) -> Encoding:
    """The encoding of lines in which few letters are ASCII."""
    from charset_normalizer import from_bytes  # noqa: PLC0415 - few files need it

    runs = re.findall(rb"[\x80-\xff]+", sample)
    possible: tuple[str, ...] = OTHERS
    if len(runs) > 1 and all(len(run) % 2 == 0 for run in runs):
        possible = DOUBLE_BYTES
    likely = with_delimiter(possible, octet, delimiter)
    plain = re.sub(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]", b" ", sample)
    matches = from_bytes(plain, cp_isolation=likely)
    pages = [match.encoding for match in matches]
    if not pages:
        pages = ["cp1252"]
        if decodes(sample, "cp1251"):
            pages = ["cp1251"]
    guessed = sample.decode(pages[0], "replace")
    if decodes(sample, "cp1252") and sample.decode("cp1252") == guessed:
        pages[0] = "cp1252"
    first_word = RUNS_BEYOND_ASCII.search(sample)
    decodings = []
    for page in pages[: 1 + MOST_OTHERS]:
        words = []
        if first_word is not None:
            words.append(first_word[0].decode(page, "replace"))
        decodings.append(Decoding(page, tuple(words), 0.0))
    best, *others = decodings
    return Encoding(best.encoding, why=explain(best, others))


def explain(best: Decoding, others: list[Decoding]) -> str:
    """Why an encoding was taken, with a word that another one reads otherwise."""
    if not best.words:
        return "guessed by its letters, since the file is not UTF-8"
    shown = 0
    for position, word in enumerate(best.words):
        if others and word != others[0].words[position]:
            shown = position
            break
    example = best.words[shown][:LONGEST_EXAMPLE]
    why = f"guessed by its letters, as in {example!r}, since the file is not UTF-8"
    if others:
        readings = []
        for other in others:
            example = other.words[shown][:LONGEST_EXAMPLE]
            readings.append(f"{other.encoding} ({example!r})")
        why += f"; it could also be {' or '.join(readings)}"
    return why


def decode_cell(cell: bytes, encoding: str) -> str:
    """The text of a cell.

    One with bytes that are not in the encoding is read as cp1252, else as Latin-1.
    """
    for likely in (encoding, "cp1252"):
        try:
            return cell.decode(likely)
        except UnicodeDecodeError:
            continue
    return cell.decode("latin-1")
