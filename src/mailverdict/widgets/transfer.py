"""Files between a browser and the kernel in pieces, over the comm channel of a widget; the other end is `transfer.js`.

Limits of Jupyter (jupyter_server 2.21, Voila 0.5, tornado 6.6): a WebSocket message over 10 MiB closes the connection
without an error in the page (`websocket_max_message_size`). Towards the browser `iopub_data_rate_limit` counts only the
text of `stream` messages, and `iopub_msg_rate_limit` allows 1,000 messages a second. Pieces of 1 MiB, at most four of
them not yet acknowledged, stay below all of these. XSRF tokens belong to HTTP requests; a WebSocket has none.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
import threading
import unicodedata
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import InputError

__all__ = ["FileTransfer"]

LARGEST_PIECE = 4 * 2**20  # bytes; transfer.js uses 1 MiB
MAX_UPLOADS = 4  # unfinished ones; a page that was closed leaves its own behind
MAX_OFFERS = 8
LONGEST_NAME = 60  # characters; at most 240 of the 255 bytes that file systems allow
SPARE = 16 * 2**20  # bytes of the disk that an upload does not use
IDENTITY = re.compile(r"[A-Za-z0-9-]{8,40}")


@dataclass
class Upload:
    """A file that is being received."""

    name: str
    path: Path
    size: int
    purpose: str
    file: BinaryIO
    received: int = 0


@dataclass(frozen=True)
class Offer:
    """A file or bytes that the browser may read; `modified` is the time of a file's last change in ns."""

    name: str
    content: bytes | Path
    size: int
    modified: int = 0


class FileTransfer:
    """Receives uploads from a page and serves downloads to it, in pieces.

    Uploads are written to a private temporary folder (mode 0700, files 0600). The name that a browser gives is only
    shown to people; the path is made from it without folders and special characters. Failed and cancelled uploads are
    removed at once; the folder with all that is in it is removed by `close` and at the end of the process.

    Parameters
    ----------
    send : callable
        Sends a message, ``send(content, buffers)``, as the method `send` of a widget does.
    folder : path, optional
        Where the temporary folder is made; by default where the system keeps temporary files.
    on_file : callable
        Called as ``on_file(name, path, purpose)`` for each finished upload, in the thread that received its last
        message. The purpose is what the browser gave with the upload.
    on_failed : callable
        Called as ``on_failed(name, why)`` for each transfer that ended with an error; cancelling is not an error.
    """

    def __init__(
        self,
        send: Callable[..., Any],
        folder: str | Path | None = None,
        *,
        on_file: Callable[[str, Path, str], None] | None = None,
        on_failed: Callable[[str, str], None] | None = None,
    ) -> None:
        self.send, self.on_file, self.on_failed = send, on_file, on_failed
        self.parent = folder
        self.uploads: dict[str, Upload] = {}  # by the id that the browser chose; the one that waits longest is first
        self.finished: dict[str, int] = {}  # the sizes of complete uploads, in case that the last answer was lost
        self.offers: dict[str, Offer] = {}  # the oldest first
        self.count = 0
        self.lock = threading.RLock()  # JupyterLab lets messages arrive in another thread than the cells
        self.callbacks: list[Callable[[], None]] = []  # due when the lock is released
        self.made: Path | None = None
        self.remove_folder: Callable[[], object] = lambda: None

    @property
    def folder(self) -> Path:
        """The private folder; a file in it that is offered is removed once the browser has it."""
        with self.lock:
            if self.made is None:
                self.made = Path(tempfile.mkdtemp(prefix="mailverdict-", dir=self.parent))
                self.remove_folder = weakref.finalize(self, shutil.rmtree, self.made, ignore_errors=True)
            return self.made

    def close(self) -> None:
        """End all transfers, and remove the folder with every uploaded file."""
        with self.lock:
            for upload in self.uploads.values():
                upload.file.close()
            self.uploads.clear()
            self.offers.clear()
            self.remove_folder()
            self.made = None

    def offer(self, name: str, content: str | Path | bytes) -> str:
        """Let the browser download a file or bytes; gives the id for `download` in transfer.js.

        Bytes, and a file within `folder`, are removed once the browser has them. Of more than eight offers the oldest
        is removed.
        """
        if isinstance(content, bytes):
            offer = Offer(shown_name(name), content, len(content))
        else:
            path = Path(content)
            if not path.is_file():
                raise InputError(f"{path}: no such file")
            found = path.stat()
            offer = Offer(shown_name(name), path, found.st_size, found.st_mtime_ns)
        identity = secrets.token_hex(16)
        with self.lock:
            while len(self.offers) >= MAX_OFFERS:
                self.withdraw(next(iter(self.offers)))
            self.offers[identity] = offer
        return identity

    def withdraw(self, identity: str) -> None:
        """Remove an offer; one that is not known is ignored."""
        with self.lock:
            offer = self.offers.pop(identity, None)
            if offer is not None and isinstance(offer.content, Path) and self.made in offer.content.parents:
                offer.content.unlink(missing_ok=True)

    def on_message(self, content: Any, buffers: Sequence[Any] = ()) -> bool:
        """Answer a message from the browser; False if it does not belong to a transfer."""
        if not isinstance(content, Mapping) or "transfer" not in content:
            return False
        steps = {
            "begin": self.begin,
            "piece": self.receive,
            "status": self.report,
            "cancel": self.cancel,
            "read": self.read,
            "done": self.finish_download,
        }
        step, identity = str(content["transfer"]), content.get("id")
        with self.lock:
            try:
                if not isinstance(identity, str) or not IDENTITY.fullmatch(identity):
                    raise InputError("the id of a transfer must be 8 to 40 letters, digits or hyphens")
                if step not in steps:
                    raise InputError(f"{step[:40]!r} is not a step of a transfer; there are {', '.join(steps)}")
                steps[step](identity, content, buffers)
            except (InputError, OSError) as exc:
                self.refuse(content, exc)
            due, self.callbacks = self.callbacks, []
        for callback in due:
            callback()
        return True

    def begin(self, identity: str, content: Mapping[str, Any], buffers: Sequence[Any]) -> None:
        """Create the file of an upload; one without content is finished by that. The message may come twice."""
        name = shown_name(content.get("name"))
        size = whole_number(content.get("size"), f"the size of {name}")
        known = self.uploads.get(identity)
        if known is not None or identity in self.finished:
            if size != (known.size if known is not None else self.finished[identity]):
                raise InputError(f"an upload with this id and another size has begun already: {identity}")
            received = known.received if known is not None else size
            self.send({"transfer": "ack", "id": identity, "received": received}, [])
            return
        free = max(0, shutil.disk_usage(self.folder).free - SPARE)
        if size > free:
            raise InputError(f"{name} has {size:,} bytes; the disk for temporary files has room for {free:,}")
        while len(self.uploads) >= MAX_UPLOADS:
            oldest = next(iter(self.uploads))
            self.fail(oldest, "the upload stopped, and others began since")
        self.count += 1
        path = self.folder / f"{self.count}-{path_name(name)}"
        file = os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o600), "wb")
        purpose = str(content.get("purpose", ""))[:LONGEST_NAME]
        self.uploads[identity] = Upload(name, path, size, purpose, file)
        self.acknowledge(identity)

    def receive(self, identity: str, content: Mapping[str, Any], buffers: Sequence[Any]) -> None:
        """Append a piece to an upload."""
        if identity in self.finished:  # sent twice, and complete by now
            self.send({"transfer": "ack", "id": identity, "received": self.finished[identity]}, [])
            return
        upload = self.find_upload(identity)
        if len(buffers) != 1:
            raise InputError(f"a piece has one buffer; this one came with {len(buffers)}")
        piece = memoryview(buffers[0]).cast("B")
        offset = whole_number(content.get("offset"), "the offset of a piece")
        if not 0 < len(piece) <= LARGEST_PIECE:
            raise InputError(f"a piece has 1 to {LARGEST_PIECE:,} bytes; this one has {len(piece):,}")
        if offset + len(piece) > upload.size:
            raise InputError(f"more data came than the {upload.size:,} bytes that were announced")
        if offset != upload.received:  # pieces before this one were lost, or it came twice
            self.ask_again(identity, content, upload)
            return
        upload.file.write(piece)
        upload.received += len(piece)
        self.uploads[identity] = self.uploads.pop(identity)
        self.acknowledge(identity)

    def ask_again(self, identity: str, content: Mapping[str, Any], upload: Upload) -> None:
        """Answer which byte is next; the browser sends again from there, some times without success at most."""
        attempt = whole_number(content.get("attempt", 0), "the number of an attempt")
        answer = {"transfer": "ack", "id": identity, "received": upload.received, "missed": attempt}
        self.send(answer, [])

    def report(self, identity: str, content: Mapping[str, Any], buffers: Sequence[Any]) -> None:
        """Answer how much of an upload has arrived; the browser asks when it has waited long."""
        asked = whole_number(content.get("asked"), "the number of a question")
        received = self.finished.get(identity)
        if received is None:
            received = self.find_upload(identity).received
        self.send({"transfer": "ack", "id": identity, "received": received, "asked": asked}, [])

    def acknowledge(self, identity: str) -> None:
        """Send how much has arrived; when that is all, the file is finished."""
        upload = self.uploads[identity]
        if upload.received == upload.size:
            upload.file.close()
            del self.uploads[identity]
            self.finished[identity] = upload.size
            if self.on_file is not None:
                self.callbacks.append(partial(self.on_file, upload.name, upload.path, upload.purpose))
        self.send({"transfer": "ack", "id": identity, "received": upload.received}, [])

    def cancel(self, identity: str, content: Mapping[str, Any], buffers: Sequence[Any]) -> None:
        """Remove an upload that the user cancelled."""
        self.drop(identity)

    def read(self, identity: str, content: Mapping[str, Any], buffers: Sequence[Any]) -> None:
        """Send a part of an offer."""
        offer = self.offers.get(str(content.get("file")))
        if offer is None:
            raise InputError("this file is not offered any more; make it again")
        offset = whole_number(content.get("offset"), "the offset of a part")
        size = whole_number(content.get("size"), "the size of a part")
        if offset > offer.size or size > LARGEST_PIECE:
            raise InputError(
                f"{size:,} bytes at {offset:,}: a part has at most {LARGEST_PIECE:,} of {offer.size:,} bytes"
            )
        piece = read_part(offer, offset, min(size, offer.size - offset))
        self.send({"transfer": "part", "id": identity, "offset": offset, "size": offer.size}, [piece])

    def finish_download(self, identity: str, content: Mapping[str, Any], buffers: Sequence[Any]) -> None:
        """Remove an offer that the browser has received completely."""
        self.withdraw(str(content.get("file")))

    def find_upload(self, identity: str) -> Upload:
        if identity not in self.uploads:
            raise InputError("this upload has ended; choose the file again")
        return self.uploads[identity]

    def drop(self, identity: str) -> Upload | None:
        """Forget an upload and remove its file; None if there is no such upload."""
        upload = self.uploads.pop(identity, None)
        if upload is not None:
            with suppress(OSError):  # a full disk: its buffer cannot be written, and the file is removed anyway
                upload.file.close()
            upload.path.unlink(missing_ok=True)
        return upload

    def refuse(self, content: Mapping[str, Any], exc: Exception) -> None:
        """End the transfer that a message belongs to with an error."""
        identity, step, why = str(content.get("id"))[:40], content.get("transfer"), str(exc)
        if isinstance(exc, OSError):
            why = exc.strerror or why  # without the path
        if not self.fail(identity, why):
            self.send({"transfer": "refused", "id": identity, "why": why}, [])
            offer = self.offers.get(str(content.get("file")))
            if step == "begin" or (step == "read" and offer is not None):
                self.notify(offer.name if offer else shown_name(content.get("name")), why)

    def fail(self, identity: str, why: str) -> bool:
        """End an upload with an error; False if there is no such upload."""
        upload = self.drop(identity)
        if upload is not None:
            self.send({"transfer": "refused", "id": identity, "why": why}, [])
            self.notify(upload.name, why)
        return upload is not None

    def notify(self, name: str, why: str) -> None:
        """Call `on_failed` when the lock is released."""
        if self.on_failed is not None:
            self.callbacks.append(partial(self.on_failed, name, why))


def read_part(offer: Offer, offset: int, size: int) -> bytes:
    """Bytes of an offer; a file that changed since it was offered is an error, never a mixture of two contents."""
    if isinstance(offer.content, bytes):
        return offer.content[offset : offset + size]
    with offer.content.open("rb") as file:
        found = os.fstat(file.fileno())
        if (found.st_size, found.st_mtime_ns) != (offer.size, offer.modified):
            raise InputError(f"{offer.name} was changed while it was downloaded; make it again")
        file.seek(offset)
        piece = file.read(size)
    if len(piece) != size:
        raise InputError(f"{offer.name} was changed while it was downloaded; make it again")
    return piece


def whole_number(value: Any, what: str) -> int:
    """A size or offset from a message; JavaScript has integers up to 2^53 - 1."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise InputError(f"{what} must be a whole number of bytes, not {str(value)[:40]!r}")
    return value


def shown_name(name: Any) -> str:
    """The last part of a file name as one printable line of bounded length."""
    last = unicodedata.normalize("NFC", str(name)[:1000]).replace("\\", "/").rstrip("/").rpartition("/")[2]
    plain = "".join(c if c.isprintable() else " " for c in last).strip()
    return shorten(plain) or "the file"


def path_name(name: str) -> str:
    """A name for the disk: letters, digits, hyphens, underscores and dots; the suffixes stay."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name).rstrip(".")


def shorten(name: str) -> str:
    """At most `LONGEST_NAME` characters; the end with its suffixes is kept."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 21] + "…" + name[-20:]
