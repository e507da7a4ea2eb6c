"""Choosing a file: from the user's computer, or by its path where the kernel runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ipywidgets as w

from ..errors import InputError
from ..frames.files.readers import KINDS
from .controls import LABEL, Quiet, button, choice, line, row, show
from .render import render_head, render_hint, render_taken
from .source import Source, read_path, read_upload

__all__ = ["FilePicker"]

LARGEST_UPLOAD = "9 MB"  # a message of 10 MiB is what Jupyter's server takes by default; it drops larger ones silently
# Of text files from elsewhere, the likeliest first. What a byte order mark says is found out.
ENCODINGS = (
    ("UTF-8, or as the file says", ""),
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
    """The controls by which a table is taken in.

    Parameters
    ----------
    take : callable
        Takes the `Source` that was read.
    tell : callable
        Shows a message of a kind.
    allow_paths : bool
        Whether a file can be named by its path.
    """

    def __init__(self, take: Callable[[Source], None], tell: Callable[[str, str], None], *, allow_paths: bool) -> None:
        self.take, self.tell = take, tell
        self.reader: Callable[[str | None], Source] | None = None
        self.tried: tuple[str, float] | None = None  # a click on Open comes with leaving the box: one reading is enough
        self.quiet = Quiet()
        self.upload = w.FileUpload(
            accept=",".join(KINDS),
            description="Choose a file",
            icon="",
            tooltip=f"Take in a table from this computer, up to {LARGEST_UPLOAD}",
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
        self.encoding = choice("Encoding", ENCODINGS, tooltip="How the file's letters are written down")
        self.taken = line()
        self.box = w.VBox(list(self.parts(allow_paths=allow_paths)))
        show(self.encoding, is_shown=False)

    def parts(self, *, allow_paths: bool) -> Iterator[Any]:
        """From top to bottom."""
        yield w.HTML(render_head("Addresses"))
        yield row(self.upload, w.HTML(render_hint(KINDS_TAKEN + BY_PATH * allow_paths)))
        if allow_paths:
            yield row(self.path, self.open)
        yield self.encoding
        yield self.taken

    def wire(self, guard: Callable[[Callable[[], None]], Callable[..., None]]) -> None:
        """Say what happens when."""
        self.upload.observe(guard(self.read_uploaded), "value")
        self.open.on_click(guard(self.read_named))
        self.path.observe(guard(self.read_named), "value")
        self.encoding.observe(guard(self.quiet.unless(self.read_again)), "value")

    def read_uploaded(self) -> None:
        """Read what the browser sent."""
        if self.upload.value:
            uploaded, self.tried = self.upload.value[0], None
            self.read_new(lambda encoding: read_upload(uploaded, encoding))

    def read_named(self) -> None:
        """Read the file that the path names."""
        path = self.path.value.strip()
        if path and self.tried != (tried := (path, changed_at(path))):
            self.tried = tried
            self.read_new(lambda encoding: read_path(path, encoding))

    def read_new(self, reader: Callable[[str | None], Source]) -> None:
        """Read another file; the encoding of the last one would silently spoil its letters."""
        with self.quiet:
            self.encoding.value = ""
        self.read(reader)

    def read_again(self) -> None:
        """Read the same file with another encoding."""
        if self.reader is not None:
            self.read(self.reader)

    def read(self, reader: Callable[[str | None], Source]) -> None:
        """Read a file; where that fails, the encoding can be chosen, since it is often the reason."""
        self.reader = reader
        self.tell("Reading the file…", "plain")
        try:
            source = reader(self.encoding.value or None)
        except InputError as exc:
            show(self.encoding, is_shown=True)
            self.tell(str(exc).replace("as in --encoding", "above, as in"), "failed")
            return
        show(self.encoding, is_shown=bool(self.encoding.value))
        self.tell("", "plain")
        self.take(source)

    def show_taken(self, source: Source) -> None:
        """Say what was taken in."""
        self.taken.value = render_taken(source.name, *source.frame.shape)

    def set_running(self, *, is_running: bool) -> None:
        """While a run goes on, no other table comes in."""
        for widget in (self.upload, self.path, self.open, self.encoding):
            widget.disabled = is_running


def changed_at(path: str) -> float:
    """When a file was last written; 0 where there is none."""
    try:
        return Path(path).expanduser().stat().st_mtime
    except (OSError, ValueError, RuntimeError):
        return 0.0
