"""Compressed files: unpacked to a temporary copy before they are read, packed while they are written."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import pyarrow as pa

from ..errors import InputError
from ..model.words import first_of

T = TypeVar("T")
CHUNK = 1 << 20
MAX_RATIO = 200  # unpacked to packed; tables of real data have less than 50
ALWAYS_ALLOWED = 16 << 20  # unpacked bytes for which the ratio does not matter
DAMAGED = (OSError, EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile, pa.ArrowException, NotImplementedError)


def members_of(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The files of an archive, without folders and what macOS adds."""
    return [each for each in archive.infolist() if not each.is_dir() and "__MACOSX/" not in each.filename]


def list_members(members: Sequence[zipfile.ZipInfo]) -> str:
    names = first_of([repr(each.filename)[:60] for each in members], 5)
    return f"holds {len(members)} files ({names})" if len(members) > 1 else f"holds {names or 'no file'}"


@contextmanager
def read_zip(path: Path) -> Iterator[IO[bytes]]:
    with zipfile.ZipFile(path) as archive:
        members = members_of(archive)
        if len(members) != 1:
            raise InputError(f"{list_members(members)}; give a zip file with one table in it")
        if members[0].flag_bits & 1:
            raise InputError("is encrypted; unpack it first")
        with archive.open(members[0]) as member:
            yield member


READERS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": lambda path: pa.input_stream(str(path), compression="zstd"),
    ".zip": read_zip,
}
COMPRESSIONS = tuple(READERS)


def unpacked_limit(path: Path) -> int:
    """Octets to which a file may unpack."""
    return max(ALWAYS_ALLOWED, MAX_RATIO * path.stat().st_size)


def unpack(path: Path, name: str, ending: str) -> Path:
    """A temporary copy of a compressed file, unpacked; refused if it is a bomb, damaged, or not one table."""
    limit = unpacked_limit(path)
    with tempfile.NamedTemporaryFile(prefix="mailverdict-", suffix=ending, delete=False) as made:
        copy = Path(made.name)
        try:
            with READERS[path.suffix.lower()](path) as source:
                while chunk := source.read(CHUNK):
                    made.write(chunk)
                    if made.tell() > limit:
                        raise InputError(
                            f"unpacks to more than {MAX_RATIO} times its size, as an archive made to fill a disk "
                            "does: unpack it yourself if you trust it"
                        )
        except InputError as exc:
            copy.unlink()
            raise InputError(f"{name} {exc}") from None
        except DAMAGED as exc:
            copy.unlink()
            raise InputError(f"{name} cannot be unpacked: it is damaged, or its ending is wrong ({exc})") from exc
        except BaseException:
            copy.unlink()
            raise
    return copy


def describe_members(path: Path) -> str:
    """What a zip file holds, for an error message."""
    return with_archive(path, lambda archive: list_members(members_of(archive)))


def member_ending(path: Path) -> str:
    """The ending of the file in a zip file, as ``.csv``; empty where that is not clear."""
    if path.suffix.lower() != ".zip":
        return ""
    endings = with_archive(path, lambda archive: {Path(each.filename).suffix.lower() for each in members_of(archive)})
    return endings.pop() if len(endings) == 1 else ""


def with_archive(path: Path, read: Callable[[zipfile.ZipFile], T]) -> T:
    try:
        with zipfile.ZipFile(path) as archive:
            return read(archive)
    except DAMAGED as exc:
        raise InputError(f"{path} cannot be unpacked: it is damaged, or its ending is wrong ({exc})") from exc


@contextmanager
def write_zip(path: Path, name: str) -> Iterator[IO[bytes]]:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(name, "w", force_zip64=True) as file:
        yield file


@contextmanager
def write_gzip(path: Path, name: str) -> Iterator[Any]:
    with path.open("wb") as file, gzip.GzipFile(name, "wb", 6, file, mtime=0) as packed:
        yield packed


@contextmanager
def pack(path: Path, target: Path) -> Iterator[Path]:
    """Yield a temporary path; what is written there is in the end packed to `path`, by the ending of `target`."""
    ending = target.suffix.lower()
    if ending not in COMPRESSIONS:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix=".mailverdict-", dir=path.parent if path.is_file() else None) as folder:
        plain = Path(folder, target.stem)
        plain.touch(0o600)
        yield plain
        with plain.open("rb") as source, WRITERS[ending](path, target.stem) as packed:
            shutil.copyfileobj(source, packed, CHUNK)


WRITERS: dict[str, Callable[[Path, str], Any]] = {
    ".gz": write_gzip,
    ".bz2": lambda path, _: bz2.BZ2File(path, "wb"),
    ".xz": lambda path, _: lzma.LZMAFile(path, "wb", preset=3),  # noqa: SIM115 - the caller closes it
    ".zst": lambda path, _: pa.output_stream(str(path), compression="zstd"),
    ".zip": write_zip,
}
