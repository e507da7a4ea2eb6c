"""Files to take home: small ones inside the page, large ones beside the notebook."""

from __future__ import annotations

import base64
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ..atomic_write import atomic_write
from ..errors import InputError
from ..frames.files.writers import create_table
from .cells import encodable, is_missing

__all__ = ["LARGEST_LINK", "MIME", "Saved", "save_table"]

LARGEST_LINK = 1_500_000  # octets; as text in a link they are a third more, and browsers balk above 2 MB
MIME = {
    "csv": "text/csv;charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


@dataclass(frozen=True)
class Saved:
    """A file that was made: either its content or where it lies.

    Attributes
    ----------
    name : str
        With its ending.
    rows, size : int
        Rows, and octets.
    url : str
        A ``data:`` URL with the content; empty for a large file.
    path : Path or None
        Where a large file was written.
    """

    name: str
    rows: int
    size: int
    url: str = ""
    path: Path | None = None


def save_table(frame: pd.DataFrame, stem: str, kind: str, folder: Path, largest_link: int = LARGEST_LINK) -> Saved:
    """Make a file of a frame; what a spreadsheet would run is neutralised.

    Parameters
    ----------
    frame : DataFrame
        The rows.
    stem : str
        The file's name without its ending.
    kind : str
        ``csv`` or ``xlsx``.
    folder : Path
        Where a large file goes; nothing there is overwritten.
    largest_link : int
        Octets up to which the content itself is handed over.

    Raises
    ------
    InputError
        If the kind cannot hold it, or the folder cannot be written to.
    """
    name = f"{stem}.{kind}"
    with tempfile.TemporaryDirectory(prefix="mailverdict-") as scratch:
        made = Path(scratch) / f"table.{kind}"
        with create_table(made) as table:
            table.write(to_arrow(frame))
        size = made.stat().st_size
        if size <= largest_link:
            return Saved(name, len(frame), size, url=data_url(made.read_bytes(), kind))
        target = put_beside(made, folder, stem, kind)
        return Saved(target.name, len(frame), size, path=target)


def data_url(content: bytes, kind: str) -> str:
    return f"data:{MIME[kind]};base64,{base64.b64encode(content).decode()}"


def put_beside(made: Path, folder: Path, stem: str, kind: str) -> Path:
    """Copy a file to a free name in a folder."""
    target = free_name(folder, stem, kind)
    try:
        with atomic_write(target) as temporary:
            shutil.copyfile(made, temporary)
    except OSError as exc:
        raise InputError(f"{target} cannot be written: {exc.strerror}") from exc
    return target


def free_name(folder: Path, stem: str, kind: str) -> Path:
    """The first name that nothing has."""
    target, number = folder / f"{stem}.{kind}", 1
    while target.exists():
        number += 1
        target = folder / f"{stem}-{number}.{kind}"
    return target.absolute()


def to_arrow(frame: pd.DataFrame) -> pa.Table:
    """A frame of any dtypes as a table that every kind of file can hold; names may occur twice."""
    arrays = [column_to_arrow(frame.iloc[:, at]) for at in range(frame.shape[1])]
    return pa.table(arrays, names=[name_of(name) for name in frame.columns])


def column_to_arrow(cells: pd.Series[Any]) -> pa.Array:
    """Arrow's own type where files have one for it, text otherwise."""
    try:
        array = pa.array(cells, from_pandas=True)
    except (pa.ArrowException, UnicodeEncodeError, TypeError, ValueError, OverflowError):
        return as_texts(cells)
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return whole if is_plain(whole.type) else as_texts(cells)


def is_plain(kind: pa.DataType) -> bool:
    """Whether files can hold values of a type as they are."""
    if pa.types.is_dictionary(kind):
        return bool(pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type))
    return any(is_kind(kind) for is_kind in PLAIN_KINDS)


PLAIN_KINDS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_null,
)


def as_texts(cells: pd.Series[Any]) -> pa.Array:
    """Whatever the cells are, as text that can be encoded."""
    texts = [None if is_missing(cell) else encodable(str(cell)) for cell in cells]
    return pa.array(texts, pa.large_string())


def name_of(name: Any) -> str:
    """A column's name as text; of labels on several levels all of them."""
    return encodable("_".join(map(str, name)) if isinstance(name, tuple) else str(name))
