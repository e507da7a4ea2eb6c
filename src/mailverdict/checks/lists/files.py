"""List files: reading the packaged ones and a user's newer copies, and writing a user's copy.

A list is plain text with one entry a line; ``#`` begins a comment. ``MANIFEST.toml`` describes the
packaged lists: source, licence, version, date, rows (and sha256, which the tests compare). A user's
copy is preferred to the packaged list; it is one file, whose first lines are comments with the same
facts.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import platformdirs

from ...atomic_write import atomic_write
from ...errors import SettingsError
from ...model.words import printable_text

MANIFEST = "MANIFEST.toml"
FACTS = ("source", "licence", "version", "date", "rows")


@dataclass(frozen=True, slots=True)
class ListFile:
    """One list and what is known about it."""

    name: str  # "disposable", "free", "relays" ...
    path: Traversable
    origin: str  # "packaged" or "user"
    source: str
    licence: str
    version: str
    date: str  # ISO 8601
    rows: int


def user_lists_folder() -> Path:
    """The folder under the user's data directory to which `lists update` writes."""
    return platformdirs.user_data_path("mailverdict", appauthor=False) / "lists"


@cache
def packaged_lists() -> Mapping[str, ListFile]:
    """The packaged lists by name, in the order of the manifest."""
    folder = files("mailverdict") / "data"
    tables = tomllib.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return {
        name: ListFile(name, folder / table["file"], "packaged", *(table[fact] for fact in FACTS))
        for name, table in tables.items()
    }


def find_list(name: str, folder: Path | None = None) -> ListFile:
    """A list by name: the user's copy in `folder` if there is one, else the packaged one.

    SettingsError if the copy is damaged, or is of a release whose copies had a manifest.
    """
    if folder is None:
        return packaged_lists()[name]
    if (folder / MANIFEST).is_file():
        raise SettingsError(damage(folder / MANIFEST, "this is a copy of an earlier release"))
    path = folder / f"{name}.txt"
    if not path.is_file():
        return packaged_lists()[name]
    try:
        with path.open(encoding="utf-8") as opened:
            head = dict(
                line.removeprefix("# ").rstrip("\n").split(": ", 1)
                for _, line in zip(FACTS, opened, strict=False)
            )
        source, licence, version, day, rows = (head[fact] for fact in FACTS)
        return ListFile(name, path, "user", source, licence, version, day, int(rows))
    except (OSError, ValueError, LookupError) as exc:
        raise SettingsError(damage(path, f"its first lines do not say what it is ({exc})")) from exc


def find_lists(names: Iterable[str], folder: Path | None = None) -> dict[str, ListFile]:
    """Find lists by name, as `find_list`."""
    return {name: find_list(name, folder) for name in names}


def read_entries(listing: ListFile) -> tuple[str, ...]:
    """Read a list's entries; SettingsError if they are not as many as it says.

    A damaged file must not change verdicts.
    """
    try:
        text = listing.path.read_text(encoding="utf-8")
    except (OSError, ValueError) as exc:
        raise SettingsError(damage(listing.path, exc)) from exc
    entries = tuple(entry for _, entry in split_entries(text))
    if len(entries) != listing.rows:
        raise SettingsError(
            damage(listing.path, f"it has {len(entries):,} entries and says {listing.rows:,}")
        )
    return entries


def damage(path: Traversable, cause: object) -> str:
    """The message that a list cannot be used, and what helps."""
    return (
        f"{path}: {cause}. Replace a user's copy with 'mailverdict lists update', or delete its "
        "folder to use the packaged lists again."
    )


def split_entries(text: str) -> Iterator[tuple[int, str]]:
    r"""Yield the line number and entry of each line that has one, without comments and blanks.

    >>> list(split_entries("# mine\n\nexample.org  # seen in May\n"))
    [(3, 'example.org')]
    """
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        entry = line.partition("#")[0].strip()
        if entry:
            yield number, entry


def write_list(
    folder: Path, name: str, entries: Sequence[str], *, source: str, licence: str, day: date
) -> Path:
    """Write a list and make it the one in use; a crash leaves the copy before it.

    SettingsError if the folder cannot be written to; the list in use stays in use.
    """
    text = "".join(f"{entry}\n" for entry in entries)
    version = f"{day.isoformat()}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    facts = (redact_source(source), licence, version, day.isoformat(), len(entries))
    head = "".join(f"# {fact}: {value}\n" for fact, value in zip(FACTS, facts, strict=True))
    path = folder / f"{name}.txt"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(path, sync=True) as temporary:
            temporary.write_text(head + text, encoding="utf-8")
        (folder / MANIFEST).unlink(missing_ok=True)  # of a release whose copies had one
    except OSError as exc:
        raise SettingsError(
            f"{folder}: the list could not be written ({exc}); the one in use stays in use"
        ) from exc
    return path


def redact_source(source: str) -> str:
    """Remove user name, password and anything unprintable from a URL.

    >>> redact_source("https://ada:secret@lists.example/a.txt")
    'https://lists.example/a.txt'
    """
    shown = printable_text(source)
    try:
        parts = urlsplit(shown)
    except ValueError:  # a bracket in the host: not a URL, but perhaps a file name
        return shown
    return (
        urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        if parts.netloc
        else shown
    )
