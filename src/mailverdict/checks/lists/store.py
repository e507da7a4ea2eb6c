"""Writing a list into the user's folder: all or nothing, and the copy before it is kept.

The list goes into a file named after its content, then the manifest that names it replaces the old
one in a single step. A crash in between leaves the old manifest, which names the old file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from ...atomic_write import atomic_write
from ...errors import SettingsError
from .files import MANIFEST

__all__ = ["manifest_table", "printable_text", "redact_source", "restore_previous", "write_list"]

PREVIOUS = "MANIFEST.previous.toml"


def write_list(folder: Path, name: str, entries: Sequence[str], *, source: str, licence: str, day: date) -> Path:
    """Write a list and make it the one in use; the one before stays beside it.

    Parameters
    ----------
    folder : Path
        The user's folder of lists; made if it is not there.
    name : str
        What the list is called.
    entries : sequence of str
        In the order to write.
    source, licence : str
        For the manifest.
    day : date
        When it was fetched.

    Returns
    -------
    Path
        The list's file.

    Raises
    ------
    SettingsError
        If the folder cannot be written to; the list in use stays in use.
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


def restore_previous(folder: Path) -> bool:
    """Take the last update back.

    Parameters
    ----------
    folder : Path
        The user's folder of lists.

    Returns
    -------
    bool
        False where there is nothing to take back. Without an earlier copy of the user's, the
        packaged list is in use again.

    Raises
    ------
    SettingsError
        If the folder cannot be written to.
    """
    current, previous = folder / MANIFEST, folder / PREVIOUS
    try:
        if not current.exists():
            return False
        if previous.exists():
            previous.replace(current)
        else:
            current.unlink()
    except OSError as exc:
        raise SettingsError(f"{folder}: the update could not be taken back ({exc})") from exc
    return True


def keep_previous(folder: Path) -> None:
    """Keep what the manifest says now, under another name."""
    current = folder / MANIFEST
    if current.exists():
        replace_file(folder / PREVIOUS, current.read_bytes())


def remove_unnamed(folder: Path, name: str) -> None:
    """Remove copies of a list that neither the manifest nor the one before names."""
    manifests = (each for each in (folder / MANIFEST, folder / PREVIOUS) if each.exists())
    named = b"".join(each.read_bytes() for each in manifests)
    for path in folder.glob(f"{name}-*.txt"):
        if path.name.encode() not in named:
            with contextlib.suppress(OSError):  # still open somewhere: a copy too many does no harm
                path.unlink()


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file once its new content is on the disk."""
    with atomic_write(path, sync=True) as temporary:
        temporary.write_bytes(data)


def manifest_table(name: str, **values: str | int) -> str:
    """One table of a manifest as TOML text.

    >>> print(manifest_table("free", file="free.txt", rows=2), end="")
    [free]
    file = "free.txt"
    rows = 2
    """
    lines = (f"{key} = {value if isinstance(value, int) else toml_text(value)}" for key, value in values.items())
    return "\n".join([f"[{name}]", *lines, ""])


def toml_text(value: str) -> str:
    """A TOML basic string: JSON's escapes of printable text are a part of TOML's."""
    return json.dumps(printable_text(value), ensure_ascii=False)


def printable_text(text: str, limit: int = 500) -> str:
    r"""Untrusted text, bounded and without anything that could command a terminal.

    >>> printable_text("a\x1b[2Jb")
    'a?[2Jb'
    """
    return "".join(each if each.isprintable() else "?" for each in text[:limit])


def redact_source(source: str) -> str:
    """Leave user name and password out of an address, and anything unprintable.

    >>> redact_source("https://ada:secret@lists.example/a.txt")
    'https://lists.example/a.txt'
    """
    shown = printable_text(source)
    try:
        parts = urlsplit(shown)
    except ValueError:  # a bracket in the host: no address, but perhaps a file's name
        return shown
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if parts.netloc else shown
