"""List files: reading the packaged ones and a user's newer copies, and writing a user's copy.

A list is plain text with one entry a line; ``#`` begins a comment. A ``MANIFEST.toml`` in each folder describes the
lists: source, licence, date, sha256, rows. A user's copy is preferred to the packaged one. A new copy is written to a
file named after its content, then the manifest is replaced in one step; a crash in between leaves the old manifest,
which names the old file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import platformdirs

from ...atomic_write import atomic_write
from ...errors import SettingsError
from ...model.words import printable_text

MANIFEST = "MANIFEST.toml"
KEYS = ("file", "source", "licence", "version", "date", "sha256", "rows")


@dataclass(frozen=True, slots=True)
class ListFile:
    """One list, as its manifest describes it."""

    name: str  # "disposable", "free", "relays" ...
    file: str  # name of its file in `folder`
    source: str
    licence: str
    version: str
    date: str  # ISO 8601
    sha256: str  # of the file, in lower-case hexadecimal digits
    rows: int
    folder: Traversable
    origin: str  # "packaged" or "user"


def packaged_folder() -> Traversable:
    """The folder of the packaged lists."""
    return files("mailverdict") / "data"


def user_lists_folder() -> Path:
    """The folder under the user's data directory to which `lists update` writes."""
    return platformdirs.user_data_path("mailverdict", appauthor=False) / "lists"


def read_manifest(folder: Traversable, *, origin: str) -> dict[str, ListFile]:
    """Read the manifest of `folder`; empty if there is none. SettingsError if it is damaged."""
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        return {name: list_file(name, table, folder, origin) for name, table in tables.items()}
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise SettingsError(damage(path, exc)) from exc


def list_file(name: str, table: dict[str, object], folder: Traversable, origin: str) -> ListFile:
    """Convert one table of a manifest; the file name must not lead out of the folder."""
    values = {key: str(table[key]) for key in KEYS}
    if Path(values["file"]).name != values["file"]:
        raise ValueError(f"{values['file']!r} is not a file name")
    return ListFile(name=name, folder=folder, origin=origin, **{**values, "rows": int(values["rows"])})  # type: ignore[arg-type]


def find_lists(names: Iterable[str], folder: Path | None = None) -> dict[str, ListFile]:
    """Find lists by name: in the user's `folder` if it has them, else in the package.

    SettingsError if a manifest is damaged, or the package lacks a list.
    """
    own = read_manifest(folder, origin="user") if folder is not None else {}
    known = read_manifest(packaged_folder(), origin="packaged") | own
    wanted = tuple(names)
    if missing := [name for name in wanted if name not in known]:
        raise SettingsError(f"the installed package lacks its list {missing[0]!r}; install it again")
    return {name: known[name] for name in wanted}


def read_entries(listing: ListFile) -> tuple[str, ...]:
    """Read a list's entries, after checking the file against its manifest.

    SettingsError if the file is missing or differs: a damaged file must not change verdicts.
    """
    path = listing.folder / listing.file
    try:
        data = path.read_bytes()
    except OSError as exc:
        raise SettingsError(damage(path, exc)) from exc
    if hashlib.sha256(data).hexdigest() != listing.sha256:
        raise SettingsError(damage(path, "its sha256 is not the one in the manifest"))
    return tuple(entry for _, entry in split_entries(data.decode("utf-8")))


def damage(path: Traversable, cause: object) -> str:
    """The message that a list cannot be used, and what helps."""
    return (
        f"{path}: {cause}. Replace a user's copy with 'mailverdict lists update', or delete its folder "
        "to use the packaged lists again."
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


PREVIOUS = "MANIFEST.previous.toml"


def write_list(folder: Path, name: str, entries: Sequence[str], *, source: str, licence: str, day: date) -> Path:
    """Write a list and make it the one in use; the copy before it is kept beside it.

    SettingsError if the folder cannot be written to; the list in use stays in use.
    """
    data = "".join(f"{entry}\n" for entry in entries).encode("utf-8")
    digest = hashlib.sha256(data).hexdigest()
    path = folder / f"{name}-{digest[:12]}.txt"
    table = manifest_table(
        name,
        file=path.name,
        source=redact_source(source),
        licence=licence,
        version=f"{day.isoformat()}-{digest[:8]}",
        date=day.isoformat(),
        sha256=digest,
        rows=len(entries),
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(path, data)
        keep_previous(folder)
        replace_file(folder / MANIFEST, table.encode("utf-8"))
        remove_unnamed(folder, name)
    except OSError as exc:
        raise SettingsError(f"{folder}: the list could not be written ({exc}); the one in use stays in use") from exc
    return path


def keep_previous(folder: Path) -> None:
    """Copy the current manifest, so that its list is not removed: another process may be about to read it."""
    current = folder / MANIFEST
    if current.exists():
        replace_file(folder / PREVIOUS, current.read_bytes())


def remove_unnamed(folder: Path, name: str) -> None:
    """Remove copies of a list that neither the manifest nor the previous one names."""
    manifests = (each for each in (folder / MANIFEST, folder / PREVIOUS) if each.exists())
    named = b"".join(each.read_bytes() for each in manifests)
    for path in folder.glob(f"{name}-*.txt"):
        if path.name.encode() not in named:
            with contextlib.suppress(OSError):  # still open elsewhere: an additional copy does no harm
                path.unlink()


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file once its new content is on the disk."""
    with atomic_write(path, sync=True) as temporary:
        temporary.write_bytes(data)


def manifest_table(name: str, **values: str | int) -> str:
    """Format one table of a manifest as TOML.

    >>> print(manifest_table("free", file="free.txt", rows=2), end="")
    [free]
    file = "free.txt"
    rows = 2
    """
    lines = (f"{key} = {value if isinstance(value, int) else toml_text(value)}" for key, value in values.items())
    return "\n".join([f"[{name}]", *lines, ""])


def toml_text(value: str) -> str:
    """Format a TOML basic string: JSON's escapes of printable text are valid TOML."""
    return json.dumps(printable_text(value), ensure_ascii=False)


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
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if parts.netloc else shown
