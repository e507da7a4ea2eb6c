"""The mails in a path: an mbox file, a Maildir, one mail, or a folder of these.

    From MAILER-DAEMON Thu Mar  5 10:00:00 2026        begins a mail in an mbox file
    To: news@sender.example
    Subject: Undelivered Mail Returned to Sender

An mbox file is read from its beginning to its end, in pieces of at most `MAX_PIECE` octets, and of
each mail the first `MAX_MESSAGE` octets are kept, and one more, which tells `read_message` that the
mail is larger: neither a line of 400 MiB nor a million mails needs more memory than one mail. What
kind of file a path is follows from its first octets, then from its ending (`kind_of_file`).
"""

from __future__ import annotations

import mailbox
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..checks.bounces.parts import MAX_MESSAGE
from ..files.compression import COMPRESSIONS
from ..files.readers import KINDS

HEAD = 4_096  # octets by which the kind of a file is found
MAX_PIECE = 64 * 1024  # octets of a line that are read at once
HEADER_LINE = re.compile(rb"(?:\xef\xbb\xbf)?(?:>?From |[A-Za-z][A-Za-z0-9-]{0,60}:[ \t\r\n])")
JSON_START = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:\[\s*)*\{\s*"')
OUTLOOK_MAGIC = b"\xd0\xcf\x11\xe0"


@dataclass(frozen=True, slots=True)
class Mail:
    """One mail, cut to what is read of it; `data` is None where it cannot be opened."""

    place: str  # for messages: the file, and the number within a mailbox
    data: bytes | None
    problem: str = ""


def kind_of_file(path: Path) -> str:
    """maildir, folder, mbox, mail, events, table, outlook or unknown: by content, then ending."""
    if path.is_dir():
        if (path / "cur").is_dir() and (path / "new").is_dir():
            return "maildir"
        return "folder"
    with path.open("rb") as file:
        head = file.read(HEAD)
    ending = path.suffix.lower()
    if head.startswith(b"From "):
        return "mbox"
    if head.startswith(OUTLOOK_MAGIC) and ending == ".msg":
        return "outlook"
    if ending in (".eml", ".mail"):
        return "mail"
    if ending not in (".csv", ".tsv"):
        if HEADER_LINE.match(head):
            return "mail"
        if JSON_START.match(head):
            return "events"
    if ending == ".zip":
        return "table"
    inner = ending
    if ending in COMPRESSIONS:
        inner = Path(path.stem).suffix.lower()
    if inner in KINDS:
        return "table"
    if ending in (".mbox", ".mbx"):
        return "mbox"
    return "unknown"


def list_files(folder: Path) -> list[Path]:
    """The files of a folder and those below it in order.

    A Maildir is one, hidden ones do not count.
    """
    files: list[Path] = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        is_folder = path.is_dir() and not path.is_symlink()
        if is_folder and kind_of_file(path) != "maildir":
            files += list_files(path)
        elif is_folder or path.is_file():
            files.append(path)
    return files


def read_mails(path: Path, kind: str) -> Iterator[Mail]:
    """The mails of an mbox file, a Maildir with its subfolders, or one mail."""
    if kind == "mail":
        yield read_file(path, path.name)
    elif kind == "mbox":
        with path.open("rb") as file:
            yield from read_mbox(file, path.name)
    else:
        with closing(mailbox.Maildir(path, create=False)) as box:
            yield from read_box(box, path.name)
            for name in sorted(box.list_folders()):
                yield from read_box(box.get_folder(name), f"{path.name}/.{name}")


def read_mbox(file: BinaryIO, name: str) -> Iterator[Mail]:
    """The mails of an mbox file: each begins behind a line that begins with ``From ``."""
    number = 0
    pieces: list[bytes] = []
    size = 0
    is_line_start = True
    while piece := file.readline(MAX_PIECE):
        if is_line_start and piece.startswith(b"From "):
            if number:
                yield Mail(f"{name}, mail {number}", b"".join(pieces))
            number += 1
            pieces = []
            size = 0
        elif number and size <= MAX_MESSAGE:
            kept = piece[: MAX_MESSAGE + 1 - size]
            pieces.append(kept)
            size += len(kept)
        is_line_start = piece.endswith(b"\n")
    if number:
        yield Mail(f"{name}, mail {number}", b"".join(pieces))


def read_box(box: Any, name: str) -> Iterator[Mail]:
    for number, key in enumerate(sorted(box.keys()), 1):
        place = f"{name}/{key}"
        if isinstance(key, int):
            place = f"{name}, mail {number}"
        try:
            with closing(box.get_file(key)) as file:
                yield Mail(place, file.read(MAX_MESSAGE + 1))
        except (OSError, KeyError, ValueError) as exc:
            # Removed or unreadable since the mailbox was listed.
            yield Mail(place, None, f"cannot be opened ({type(exc).__name__})")


def read_file(path: Path, place: str) -> Mail:
    try:
        with path.open("rb") as file:
            return Mail(place, file.read(MAX_MESSAGE + 1))
    except OSError as exc:
        return Mail(place, None, f"cannot be opened ({exc.strerror})")
