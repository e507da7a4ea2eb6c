"""List files: the packaged ones and a user's newer copies, with what their manifest says of them.

A list is plain text: an entry a line, ``#`` begins a comment. Every folder of lists has a
``MANIFEST.toml`` that names the source, licence, date, sha256 and rows of each. A user's copy, put
there by `mailverdict.checks.lists.update`, is preferred to the packaged one.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import platformdirs

from ...errors import SettingsError

__all__ = [
    "MANIFEST",
    "ListFile",
    "find_lists",
    "packaged_folder",
    "read_entries",
    "read_manifest",
    "split_entries",
    "user_lists_folder",
]

MANIFEST = "MANIFEST.toml"
KEYS = ("file", "source", "licence", "version", "date", "sha256", "rows")


@dataclass(frozen=True, slots=True)
class ListFile:
    """One list, as its manifest describes it.

    Attributes
    ----------
    name : str
        What the list is called: ``disposable``, ``free``, ``relays`` ...
    file : str
        Its file's name in `folder`.
    source, licence, version, date : str
        Where it comes from, on which terms, which edition, when (ISO 8601).
    sha256 : str
        Of the file's bytes, in lower-case hexadecimal digits.
    rows : int
        Number of entries.
    folder : Traversable
        Where it is.
    origin : str
        ``packaged`` or ``user``.
    """

    name: str
    file: str
    source: str
    licence: str
    version: str
    date: str
    sha256: str
    rows: int
    folder: Traversable
    origin: str


def packaged_folder() -> Traversable:
    """Where the lists that come with the package are."""
    return files("mailverdict") / "data"


def user_lists_folder() -> Path:
    """Where `lists update` puts newer copies: a folder under the user's data directory."""
    return platformdirs.user_data_path("mailverdict", appauthor=False) / "lists"


def read_manifest(folder: Traversable, *, origin: str) -> dict[str, ListFile]:
    """Read what `folder` says of its lists; empty where it has no manifest.

    Raises
    ------
    SettingsError
        If the manifest cannot be read, or lacks something.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        return {name: list_file(name, table, folder, origin) for name, table in tables.items()}
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise SettingsError(damage(path, exc)) from exc


def list_file(name: str, table: dict[str, object], folder: Traversable, origin: str) -> ListFile:
    """One table of a manifest as a value; a file name may not lead out of the folder."""
    values = {key: str(table[key]) for key in KEYS}
    if Path(values["file"]).name != values["file"]:
        raise ValueError(f"{values['file']!r} is no file name")
    return ListFile(name=name, folder=folder, origin=origin, **{**values, "rows": int(values["rows"])})  # type: ignore[arg-type]


def find_lists(names: Iterable[str], folder: Path | None = None) -> dict[str, ListFile]:
    """Find lists by name: each in the user's `folder` if it is there, else in the package.

    Raises
    ------
    SettingsError
        If a manifest is damaged, or the package holds no such list.
    """
    own = read_manifest(folder, origin="user") if folder is not None else {}
    known = read_manifest(packaged_folder(), origin="packaged") | own
    wanted = tuple(names)
    if missing := [name for name in wanted if name not in known]:
        raise SettingsError(f"the installed package lacks its list {missing[0]!r}; install it again")
    return {name: known[name] for name in wanted}


def read_entries(listing: ListFile) -> tuple[str, ...]:
    """Read a list's entries, after checking the file against its manifest.

    Raises
    ------
    SettingsError
        If the file is missing, or is not the one that the manifest describes: a verdict must not
        change because a disk or an editor did.
    """
    path = listing.folder / listing.file
    try:
        data = path.read_bytes()
    except OSError as exc:
        raise SettingsError(damage(path, exc)) from exc
    if hashlib.sha256(data).hexdigest() != listing.sha256:
        raise SettingsError(damage(path, "its sha256 is not the one in the manifest"))
    return tuple(entry for _, entry in split_entries(data.decode("utf-8")))


def damage(path: Traversable, why: object) -> str:
    """Say that a list cannot be used, and what helps."""
    return (
        f"{path}: {why}. Put a user's copy right with 'mailverdict lists update', or delete the folder it is in "
        "to go back to the packaged lists."
    )


def split_entries(text: str) -> Iterator[tuple[int, str]]:
    r"""Give line number and entry of each line that has one; comments and blanks go.

    >>> list(split_entries("# mine\n\nexample.org  # seen in May\n"))
    [(3, 'example.org')]
    """
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        entry = line.partition("#")[0].strip()
        if entry:
            yield number, entry
