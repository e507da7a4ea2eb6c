"""Files between a browser and the kernel, over the comm channel of a widget.

The other end is in `connection.js`.

One message is on its way at a time, with at most 1 MiB: a WebSocket message over 10 MiB closes
Jupyter's connection without an error in the page. Each says to which place its bytes belong, so
that one that is sent again, because it or its answer was lost, does no harm.

====================================================== ===========================================
from the browser                                       answer
====================================================== ===========================================
`{file: "put", id, name, size, purpose, offset}`,      `{file: "put", id, received}`
and a piece
`{file: "get", id, offset}`                            `{file: "get", id, offset, size}`, a piece
`{file: "drop", id}`: cancelled, or received in full
====================================================== ===========================================

`{file: "failed", id, why}` ends a file with an error.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import threading
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError
from .source import printable

PIECE = 2**20  # bytes
MAX_UPLOADS = 4  # a page that was closed leaves its own behind
MAX_OFFERS = 8
LONGEST_NAME = 60  # characters; at most 240 of the 255 bytes that file systems allow
SPARE = 16 * 2**20  # bytes of the disk that an upload does not use
NOT_IN_PATHS = re.compile(r"[^\w.-]")
IDENTITY = re.compile(r"[A-Za-z0-9-]{8,40}")


@dataclass
class Upload:
    """A file that is being received.

    One that is complete is kept as long, in case that the last answer was lost.
    """

    name: str
    path: Path
    size: int
    purpose: str
    received: int = 0


class FileTransfer:
    """Receives uploads from a page and serves downloads to it, in pieces.

    The name that a browser gives is only shown to people; the path is made from it without folders
    and special characters. Failed and cancelled uploads are removed at once.

    Parameters
    ----------
    send : callable
        Sends a message, ``send(content, buffers)``, as the method `send` of a widget does.
    get_folder : callable
        Gives the private folder for uploads.
    on_file : callable
        Called as ``on_file(path, name, purpose)`` for each complete upload, in the thread that
        received its last message. The purpose is what the browser gave with the upload.
    """

    def __init__(
        self,
        send: Callable[..., Any],
        get_folder: Callable[[], Path],
        on_file: Callable[[Path, str, str], None],
    ) -> None:
        self.send = send
        self.get_folder = get_folder
        self.on_file = on_file
        # By the id that the browser chose, and by the one that it was told; the oldest is first.
        self.uploads: dict[str, Upload] = {}
        self.offers: dict[str, Path] = {}
        self.count = 0
        # JupyterLab lets messages arrive in another thread than the cells.
        self.lock = threading.RLock()

    def offer(self, path: Path) -> str:
        """Let the browser download a file; gives its id.

        It is removed once the browser has it. Of more than eight offers the oldest is removed.
        """
        identity = secrets.token_hex(16)
        with self.lock:
            while len(self.offers) >= MAX_OFFERS:
                self.drop(next(iter(self.offers)))
            self.offers[identity] = path
        return identity

    def on_message(self, content: Any, buffers: Sequence[Any] = ()) -> bool:
        """Answer a message from the browser; False if it is not about a file."""
        if not isinstance(content, Mapping) or "file" not in content:
            return False
        step = content["file"]
        identity = str(content.get("id"))[:41]
        complete = None
        with self.lock:
            try:
                if step == "put":
                    complete = self.put(identity, content, buffers)
                elif step == "get":
                    self.get(identity, content)
                else:
                    self.drop(identity)
            except (InputError, OSError) as exc:
                # `strerror` is without the path.
                why = getattr(exc, "strerror", None) or str(exc)
                self.drop(identity)
                self.send({"file": "failed", "id": identity, "why": why}, [])
        if complete is not None:
            self.on_file(complete.path, complete.name, complete.purpose)
        return True

    def put(
        self, identity: str, content: Mapping[str, Any], buffers: Sequence[Any]
    ) -> Upload | None:
        """Append a piece to an upload, and answer how much has arrived.

        Gives the upload when it becomes complete.
        """
        offset = whole_number(content.get("offset"), "the offset of a piece")
        if len(buffers) != 1:
            raise InputError(f"a piece has one buffer; this one came with {len(buffers)}")
        piece = memoryview(buffers[0]).cast("B")
        if len(piece) > PIECE:
            raise InputError(f"a piece has at most {PIECE:,} bytes; this one has {len(piece):,}")
        upload = self.uploads.get(identity)
        is_new = upload is None
        if upload is None:
            if offset:
                raise InputError("this upload has ended; choose the file again")
            upload = self.start(identity, content)
        # Else it came twice.
        is_next = offset == upload.received and (is_new or upload.received < upload.size)
        if is_next:
            if offset + len(piece) > upload.size:
                raise InputError(
                    f"more data came than the {upload.size:,} bytes that were announced"
                )
            with upload.path.open("ab") as file:
                file.write(piece)
            upload.received += len(piece)
        self.send({"file": "put", "id": identity, "received": upload.received}, [])
        if is_next and upload.received == upload.size:
            return upload
        return None

    def start(self, identity: str, content: Mapping[str, Any]) -> Upload:
        """Create the file of an upload."""
        if not IDENTITY.fullmatch(identity):
            raise InputError("the id of a file must be 8 to 40 letters, digits or hyphens")
        name = shown_name(content.get("name"))
        size = whole_number(content.get("size"), f"the size of {name}")
        folder = self.get_folder()
        free = max(0, shutil.disk_usage(folder).free - SPARE)
        if size > free:
            raise InputError(
                f"{name} has {size:,} bytes; the disk for temporary files has room for {free:,}"
            )
        while len(self.uploads) >= MAX_UPLOADS:
            self.drop(next(iter(self.uploads)))
        self.count += 1
        path = folder / f"{self.count}-{path_name(name)}"
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        upload = Upload(name, path, size, str(content.get("purpose", ""))[:LONGEST_NAME])
        self.uploads[identity] = upload
        return upload

    def get(self, identity: str, content: Mapping[str, Any]) -> None:
        """Send a piece of an offer."""
        if identity not in self.offers:
            raise InputError("this file is not offered any more; make it again")
        offset = whole_number(content.get("offset"), "the offset of a piece")
        with self.offers[identity].open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(offset)
            piece = file.read(PIECE)
        self.send({"file": "get", "id": identity, "offset": offset, "size": size}, [piece])

    def drop(self, identity: str) -> None:
        """Forget a file, and remove it unless it is a complete upload.

        One that is not known is ignored.
        """
        path = self.offers.pop(identity, None)
        upload = self.uploads.pop(identity, None)
        if upload is not None and upload.received < upload.size:
            path = upload.path
        if path is not None:
            with suppress(OSError):  # gone, or not to be removed: the folder is in the end
                path.unlink()


def whole_number(value: Any, what: str) -> int:
    """A size or offset from a message; JavaScript has integers up to 2^53 - 1."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise InputError(f"{what} must be a whole number of bytes, not {str(value)[:40]!r}")
    return value


def shown_name(name: Any) -> str:
    """The last part of a file name as one printable line of bounded length."""
    path = unicodedata.normalize("NFC", str(name)[:1000]).replace("\\", "/")
    _, _, last = path.rstrip("/").rpartition("/")
    return shorten(printable(last).strip()) or "the file"


def path_name(name: str) -> str:
    """A name for the disk: letters, digits, hyphens, underscores and dots; the suffixes stay."""
    return NOT_IN_PATHS.sub("_", name).rstrip(".")


def shorten(name: str) -> str:
    """At most `LONGEST_NAME` characters; the end with its suffixes is kept."""
    if len(name) <= LONGEST_NAME:
        return name
    return name[: LONGEST_NAME - 21] + "…" + name[-20:]
