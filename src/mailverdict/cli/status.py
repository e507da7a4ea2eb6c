"""Messages on standard error, as text or as lines of JSON, and the ends of a command.

    note: options are read from mailverdict.toml
    {"time": "2026-11-30T12:00:00.000Z", "level": "info", "message": "options are read from ..."}

Standard output is for data alone.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NoReturn

import typer

from ..reports.summary import BAR
from ..runs.progress import Progress

COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}  # of labels, on a terminal
PROGRESS_SECONDS = 60.0  # between two lines about the progress, where no bar is shown


class LogFormat(StrEnum):
    """How messages are written to standard error."""

    TEXT = "text"
    # An object in each line: time, level, message, and fields that depend on the message.
    JSON = "json"


@dataclass(frozen=True)
class StatusLog:
    """Formats and writes the messages of a command."""

    format: LogFormat = LogFormat.TEXT

    @property
    def is_json(self) -> bool:
        return self.format is LogFormat.JSON

    def line(self, message: str, label: str = "", **fields: Any) -> str:
        """One message; a `label` is ``note``, ``warning`` or ``error``."""
        if self.is_json:
            level = "info"
            if label in ("warning", "error"):
                level = label
            moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            record = {"time": moment, "level": level, "message": message, **fields}
            return json.dumps(record, ensure_ascii=False)
        if not label:
            return message
        title = f"{label}:"
        if label == "error":
            title = "mailverdict:"
        if label in COLOURS and sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
            title = typer.style(title, fg=COLOURS[label])
        return f"{title} {message}"

    def write(self, message: str, label: str = "", **fields: Any) -> None:
        print(self.line(message, label, **fields), file=sys.stderr, flush=True)


# The default is immutable.
STATUS: ContextVar[StatusLog] = ContextVar("status", default=StatusLog())  # noqa: B039


def print_status(text: str, label: str = "") -> None:
    """Print to stderr, as the progress bar does: standard output is for data."""
    STATUS.get().write(text, label)


def print_error(message: object, status: int) -> None:
    """Print an error in one line, with the exit status where lines are JSON."""
    log = STATUS.get()
    text = " ".join(str(message).split())
    log.write(text, "error", exit_status=status)


def exit_with_error(message: object, status: int) -> NoReturn:
    print_error(message, status)
    sys.exit(status)


@contextmanager
def printed_warnings(label: str = "note") -> Iterator[None]:
    """Print what the library warns about, without the lines of Python that `warnings` shows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:  # they may tell the cause of an error
            for text in dict.fromkeys(str(warning.message) for warning in caught):
                print_status(text, label)


def accept_all_characters() -> None:
    """Let both streams write what their encoding lacks, as it often does on Windows."""
    codecs.register_error("mailverdict", as_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="mailverdict")


def as_ascii(exc: UnicodeError) -> tuple[str, int]:
    r"""Bars as number signs, and other characters as JSON escapes them.

    >>> as_ascii(UnicodeEncodeError("cp1252", "2 █ ␣", 2, 5, "undefined"))
    ('# \\u2423', 5)
    """
    assert isinstance(exc, UnicodeEncodeError)
    text = exc.object[exc.start : exc.end].replace(BAR, "#")
    return json.dumps(text)[1:-1], exc.end


class ProgressLog:
    """Writes a line about the progress now and then, for logs; `Run.subscribe` calls it."""

    def __init__(
        self,
        log: StatusLog,
        seconds: float = PROGRESS_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.log = log
        self.seconds = seconds
        self.clock = clock
        self.written_at = clock()

    def __call__(self, progress: Progress) -> None:
        if self.clock() - self.written_at < self.seconds:
            return
        self.written_at = self.clock()
        self.log.write(str(progress), progress=asdict(progress))
