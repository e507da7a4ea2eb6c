"""Compressed files: unpacked to a temporary copy before they are read, packed while written.

contacts.csv.gz  ->  a copy as contacts.csv, refused if it has more than 200 times as many octets,
                     and more than 16 MiB
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from ..errors import InputError
from ..model.words import first_of
from .table_file import temporary_copy

CHUNK = 1 << 20
MAX_RATIO = 200  # unpacked to packed; tables of real data have less than 50
ALWAYS_ALLOWED = 16 << 20  # unpacked bytes for which the ratio does not matter
DAMAGED = (
    OSError,
    EOFError,
    lzma.LZMAError,
    zlib.error,
    zipfile.BadZipFile,
    pa.ArrowException,
    NotImplementedError,
)


def unpacked_limit(path: Path) -> int:
    """Octets to which a file may unpack."""
    return max(ALWAYS_ALLOWED, MAX_RATIO * path.stat().st_size)


def unpack(path: Path, name: str) -> Path:
    """A temporary copy of a compressed file, unpacked.

    Refused if it is a bomb, damaged, or not one table.
    """
    limit = unpacked_limit(path)
    with (
        temporary_copy() as copy,
        refused_if_damaged(name),
        READERS[path.suffix.lower()](path) as source,
    ):
        while chunk := source.read(CHUNK):
            copy.write(chunk)
            if copy.tell() > limit:
                raise InputError(
                    f"{name} unpacks to more than {MAX_RATIO} times its size, as an archive made "
                    "to fill a disk does: unpack it yourself if you trust it"
                )
    return Path(copy.name)


@contextmanager
def refused_if_damaged(name: str) -> Iterator[None]:
    try:
        yield
    except DAMAGED as exc:
        raise InputError(
            f"{name} cannot be unpacked: it is damaged, or its ending is wrong ({exc})"
        ) from exc


def only_member(path: Path, name: str) -> str:
    """The name of the file in an archive."""
    with refused_if_damaged(name), zipfile.ZipFile(path) as archive:
        members = []
        for member in archive.infolist():
            is_of_macos = "__MACOSX/" in member.filename
            if not member.is_dir() and not is_of_macos:
                members.append(member)
    if len(members) != 1:
        files = "no file"
        if members:
            names = first_of([f"{member.filename!r:.60}" for member in members], 5)
            files = f"{len(members)} files ({names})"
        raise InputError(f"{name}: holds {files}; give a zip file with one table in it")
    if members[0].flag_bits & 1:
        raise InputError(f"{name} is encrypted; unpack it first")
    return members[0].filename


@contextmanager
def read_zip(path: Path) -> Iterator[IO[bytes]]:
    with zipfile.ZipFile(path) as archive, archive.open(only_member(path, path.name)) as member:
        yield member


@contextmanager
def write_zip(path: Path, name: str) -> Iterator[IO[bytes]]:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(name, "w", force_zip64=True) as file,
    ):
        yield file


@contextmanager
def write_gzip(path: Path, name: str) -> Iterator[Any]:
    with path.open("wb") as file, gzip.GzipFile(name, "wb", 6, file, mtime=0) as packed:
        yield packed


READERS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": lambda path: pa.input_stream(str(path), compression="zstd"),
    ".zip": read_zip,
}
COMPRESSIONS = tuple(READERS)
WRITERS: dict[str, Callable[[Path, str], Any]] = {
    ".gz": write_gzip,
    ".bz2": lambda path, _: bz2.BZ2File(path, "wb"),
    ".xz": lambda path, _: lzma.LZMAFile(path, "wb", preset=3),  # noqa: SIM115 - caller closes it
    ".zst": lambda path, _: pa.output_stream(str(path), compression="zstd"),
    ".zip": write_zip,
}


def open_for_writing(path: Path, target: Path) -> Any:
    """Open a new file at `path`, packed by the ending of `target`, for a ``with`` statement."""
    open_packed = WRITERS.get(target.suffix.lower())
    if open_packed is None:
        return path.open("wb")
    return open_packed(path, target.stem)
