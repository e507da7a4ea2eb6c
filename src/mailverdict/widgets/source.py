"""Loading a table: from a frame, an uploaded file or a path, and the controls to choose a file."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import ipywidgets as w
import pandas as pd
import pyarrow as pa

from ..errors import ColumnError, InputError, SettingsError
from ..frames.files.readers import COMPRESSIONS, KINDS, guess_column, open_table
from ..frames.files.table_file import TableFile
from ..frames.text_column import read_values
from .controls import LABEL, Quiet, button, choice, line, row, show
from .render import render_head, render_hint, render_source

__all__ = ["FilePicker", "Source", "read_frame", "read_path", "read_upload"]

SAMPLE_ROWS = 2_000
EXAMPLES = 3  # cells shown beside a column
LONGEST_LABEL = 60
FROM_MEMORY = "data frame"
COMMAND_LINE = re.compile("; give another with --[a-z]+")
# Nullable dtypes, so that integers and booleans with missing values are written back unchanged.
TYPES = {
    pa.int64(): pd.Int64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
    pa.string(): pd.StringDtype("pyarrow"),
    pa.large_string(): pd.StringDtype("pyarrow"),
}


@dataclass(frozen=True)
class Source:
    """A table that was loaded; `name` is its file name, or the kind of frame."""

    name: str
    frame: pd.DataFrame
    remarks: tuple[str, ...] = ()  # what was guessed or found odd when a file was read

    @cached_property
    def labels(self) -> list[str]:
        """The columns' names for a list to choose from: printable and unique."""
        labels: list[str] = []
        for name in map(label_of, self.frame.columns):
            earlier = labels.count(name)
            labels.append(name if not earlier else f"{name} ({earlier + 1})")
        return labels

    def guess(self) -> int | None:
        """Position of the column that looks like e-mail addresses; None where none does."""
        try:
            return self.labels.index(guess_column({name: self.head(at) for at, name in enumerate(self.labels)}))
        except ColumnError:
            return None

    def head(self, at: int) -> pd.Series[Any]:
        """The first cells of a column, by its position."""
        return self.frame.iloc[:SAMPLE_ROWS, at].reset_index(drop=True)

    def examples(self, at: int) -> list[str]:
        """A few cells of a column."""
        return list(read_values(self.head(at)).texts[:EXAMPLES].to_pylist())

    def stem(self) -> str:
        """The name for a file made from this table, without suffix; only characters that all file systems allow."""
        stem = PurePosixPath(self.name).stem if self.name != FROM_MEMORY else ""
        kept = "".join(c if c.isalnum() or c in "-_. " else "_" for c in stem)
        return kept.strip(" ._")[:LONGEST_LABEL] or "emails"


def label_of(name: Any) -> str:
    """A column's name as one line of bounded length, with all levels of a multi-level label."""
    whole = " / ".join(map(str, name)) if isinstance(name, tuple) else str(name)
    return readable(whole) or "(no name)"


def readable(text: str) -> str:
    """One line of bounded length."""
    plain = "".join(c if c.isprintable() else " " for c in text).strip()
    return plain if len(plain) <= LONGEST_LABEL else plain[: LONGEST_LABEL - 1] + "…"


def read_frame(data: Any) -> Source:
    """A frame of any library, or a Series, as a source."""
    if isinstance(data, pd.Series):
        data = data.to_frame("email" if data.name is None else data.name)
    elif not isinstance(data, pd.DataFrame) and hasattr(data, "to_pandas"):
        data = data.to_pandas()
    if not isinstance(data, pd.DataFrame):
        raise SettingsError(f"df={type(data).__name__}: give a DataFrame, a Series, or the path of a table file")
    return Source(FROM_MEMORY, data)


def read_path(path: str | Path, encoding: str | None = None) -> Source:
    """Read a table file."""
    try:
        with open_table(Path(path).expanduser(), encoding=encoding) as table:
            return read_whole(readable(Path(path).name), table)
    except (OSError, ValueError, RuntimeError) as exc:
        if isinstance(exc, InputError):
            raise
        raise InputError(f"{readable(str(path))}: {exc}") from exc


def read_upload(upload: Mapping[str, Any], encoding: str | None = None) -> Source:
    """Read an uploaded file; its name is not trusted."""
    name = readable(str(upload["name"]).replace("\\", "/").rpartition("/")[2]) or "the file"
    with tempfile.TemporaryDirectory(prefix="mailverdict-") as folder:
        copy = Path(folder, "upload").with_suffix("".join(PurePosixPath(name).suffixes[-2:]))
        copy.write_bytes(upload["content"])
        with open_table(copy, encoding=encoding, name=name) as table:
            return read_whole(name, table)


def read_whole(name: str, table: TableFile) -> Source:
    """Read all rows of an opened file; one without rows is an error."""
    rows = pa.concat_tables(list(table.pieces()))
    if not len(rows):
        raise InputError(f"{name} has a header line but no rows")
    frame: pd.DataFrame = rows.to_pandas(types_mapper=TYPES.get)
    remarks = (COMMAND_LINE.sub("", each) for each in (*table.remarks, *table.final_remarks()))
    return Source(name, frame, tuple(remarks))


LARGEST_UPLOAD = "9 MB"  # a message of 10 MiB is what Jupyter's server takes by default; it drops larger ones silently
# Of text files from elsewhere, the likeliest first. What a byte order mark says is found out.
ENCODINGS = (
    ("as found in the file", ""),
    ("Western European, Windows (cp1252)", "cp1252"),
    ("Western European, Unix (latin-9)", "iso8859-15"),
    ("Western European, old Mac (mac-roman)", "mac-roman"),
    ("Unicode, 16 bits (utf-16-le)", "utf-16-le"),
    ("Central European, Windows (cp1250)", "cp1250"),
    ("Cyrillic, Windows (cp1251)", "cp1251"),
    ("Japanese (cp932)", "cp932"),
    ("Chinese (gb18030)", "gb18030"),
    ("Chinese, traditional (big5)", "big5"),
    ("Korean (cp949)", "cp949"),
)
KINDS_TAKEN = f"CSV, TSV, XLSX or Parquet up to {LARGEST_UPLOAD}; Jupyter loses larger ones silently"
BY_PATH = ", so give their path:"


class FilePicker:
    """The controls to choose a file."""

    def __init__(
        self, on_source: Callable[[Source], None], show_message: Callable[[str, str], None], *, allow_paths: bool
    ) -> None:
        self.on_source, self.show_message = on_source, show_message
        self.reader: Callable[[str | None], Source] | None = None
        self.tried: tuple[str, float] | None = None  # a click on Open comes with leaving the box: one reading is enough
        self.quiet = Quiet()
        self.upload = w.FileUpload(
            accept=",".join((*KINDS, *COMPRESSIONS)),
            description="Choose a file",
            icon="",
            tooltip=f"Upload a table from this computer, up to {LARGEST_UPLOAD}",
            layout=w.Layout(width="auto"),
        )
        self.path = w.Text(
            description="Path",
            placeholder="exports/contacts.csv",
            tooltip="Path of a table file on the machine where the notebook runs",
            style=LABEL,
            continuous_update=False,
            layout=w.Layout(width="24rem"),
        )
        self.open = button("Open", "Read the file at this path")
        self.encoding = choice("Encoding", ENCODINGS, tooltip="Character encoding of the file")
        self.taken = line()
        self.box = w.VBox(list(self.parts(allow_paths=allow_paths)))
        show(self.encoding, is_shown=False)

    def parts(self, *, allow_paths: bool) -> Iterator[Any]:
        """The rows of controls, from top to bottom."""
        yield w.HTML(render_head("Addresses"))
        yield row(self.upload, w.HTML(render_hint(KINDS_TAKEN + BY_PATH * allow_paths)))
        if allow_paths:
            yield row(self.path, self.open)
        yield self.encoding
        yield self.taken

    def connect(self, callback: Callable[[Callable[[], None]], Callable[..., None]]) -> None:
        """Connect the controls with what they do."""
        self.upload.observe(callback(self.read_uploaded), "value")
        self.open.on_click(callback(self.read_named))
        self.path.observe(callback(self.read_named), "value")
        self.encoding.observe(callback(self.quiet.unless(self.read_again)), "value")

    def read_uploaded(self) -> None:
        """Read the uploaded file."""
        if self.upload.value:
            uploaded, self.tried = self.upload.value[0], None
            self.read_new(lambda encoding: read_upload(uploaded, encoding))

    def read_named(self) -> None:
        """Read the file at the path."""
        path = self.path.value.strip()
        if path and self.tried != (tried := (path, changed_at(path))):
            self.tried = tried
            self.read_new(lambda encoding: read_path(path, encoding))

    def read_new(self, reader: Callable[[str | None], Source]) -> None:
        """Read another file. The encoding chosen for the last one is reset: it could silently give wrong characters."""
        with self.quiet:
            self.encoding.value = ""
        self.read(reader)

    def read_again(self) -> None:
        """Read the same file with another encoding."""
        if self.reader is not None:
            self.read(self.reader)

    def read(self, reader: Callable[[str | None], Source]) -> None:
        """Read a file; offer the choice of an encoding where it was guessed, and where reading failed."""
        self.reader = reader
        self.show_message("Reading the file…", "plain")
        try:
            source = reader(self.encoding.value or None)
        except InputError as exc:
            show(self.encoding, is_shown=True)
            self.show_message(str(exc).replace("as in --encoding", "above, as in"), "failed")
            return
        is_guessed = any(each.startswith("encoding: ") for each in source.remarks)
        show(self.encoding, is_shown=is_guessed or bool(self.encoding.value))
        self.show_message("", "plain")
        self.on_source(source)

    def show_source(self, source: Source) -> None:
        """Show what was loaded."""
        self.taken.value = render_source(source.name, *source.frame.shape, source.remarks)

    def set_running(self, *, is_running: bool) -> None:
        """Disable the controls during a run."""
        for widget in (self.upload, self.path, self.open, self.encoding):
            widget.disabled = is_running


def changed_at(path: str) -> float:
    """When a file was last written; 0 if it does not exist."""
    try:
        return Path(path).expanduser().stat().st_mtime
    except (OSError, ValueError, RuntimeError):
        return 0.0
