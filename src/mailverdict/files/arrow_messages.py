"""What the batches of an Arrow IPC file need in memory, before they are unpacked.

Arrow unpacks a batch as a whole, and a file of some kilobytes may say that gigabytes follow. A file
or a stream is a sequence of messages, and each of them has, in octets
(https://arrow.apache.org/docs/format/Columnar.html):

    FF FF FF FF | length of the head | head, a flatbuffer | body: buffer, buffer, ...

The head of a batch has the place of each buffer in the body, and a packed buffer begins with its
length unpacked. A file has the places of its messages at its end, in the footer. What the footer
says counts, even if other octets stand between the messages.

A flatbuffer is a tree of tables. A table begins with the distance back to its "vtable", which
has the place of each field in the table, or 0 where the field is missing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..errors import InputError

ALWAYS_ALLOWED = 64 << 20  # octets of a batch for which the ratio does not matter
MAX_RATIO = 50  # octets of a batch to those in the file; tables of real data have less
MAGIC = b"ARROW1"
CONTINUATION = b"\xff\xff\xff\xff"
# Of a version before the head of a batch said so itself.
PACKED_SIGN = b"ARROW:experimental_compression"
# Kinds of messages, and the lists of the footer that have their places.
DICTIONARY_BATCH = 2
RECORD_BATCH = 3


class FlatTable:
    """A table of a flatbuffer."""

    def __init__(self, data: bytes, start: int) -> None:
        self.data = data
        self.start = start
        self.vtable = start - self.number("<i", start)
        self.vtable_size = self.number("<H", self.vtable)

    def number(self, kind: str, place: int) -> int:
        if place < 0:
            raise ValueError(place)
        value: int
        (value,) = struct.unpack_from(kind, self.data, place)
        return value

    def place(self, field: int) -> int | None:
        """Where the value of a field is."""
        entry = 4 + 2 * field
        if entry >= self.vtable_size:
            return None
        offset = self.number("<H", self.vtable + entry)
        if not offset:
            return None
        return self.start + offset

    def integer(self, field: int, kind: str) -> int:
        place = self.place(field)
        if place is None:
            return 0
        return self.number(kind, place)

    def table(self, field: int) -> FlatTable | None:
        place = self.place(field)
        if place is None:
            return None
        return FlatTable(self.data, place + self.number("<I", place))

    def structs(self, field: int, kind: str) -> Iterator[tuple[int, ...]]:
        """The values of a list of structs."""
        place = self.place(field)
        if place is None:
            return
        place += self.number("<I", place)
        count = self.number("<I", place)
        end = place + 4 + count * struct.calcsize(kind)
        yield from struct.iter_unpack(kind, self.data[place + 4 : end])


def root(data: bytes) -> FlatTable:
    return FlatTable(data, struct.unpack_from("<I", data)[0])


def check_batches(path: Path, name: str) -> None:
    """Raise `InputError` if a batch unpacks to far more than it has in the file."""
    try:
        sizes = list(batch_sizes(path))
    except (struct.error, ValueError, OSError) as exc:
        raise InputError(f"{name} is damaged: a message of it cannot be read") from exc
    for packed, unpacked in sizes:
        if unpacked > max(ALWAYS_ALLOWED, MAX_RATIO * packed):
            raise InputError(
                f"{name}: one of its batches has {packed:,} bytes and unpacks to {unpacked:,}, as "
                "a file made to use up memory does; if you trust it, write it again without "
                "compression"
            )


def batch_sizes(path: Path) -> Iterator[tuple[int, int]]:
    """The octets of each batch and each dictionary in the file, and unpacked."""
    with path.open("rb") as source:
        is_file = source.read(len(MAGIC)) == MAGIC
        messages = file_messages(source) if is_file else stream_messages(source)
        for message in messages:
            yield message.body_size, unpacked_octets(source, message)


@dataclass(frozen=True)
class Message:
    """The head of a message, and where its body is."""

    head: FlatTable
    body: int
    body_size: int


def read_message(source: IO[bytes], start: int) -> Message | None:
    """The message that begins at a place; None at the end of a stream."""
    source.seek(start)
    length = source.read(4)
    if length == CONTINUATION:
        length = source.read(4)
    if len(length) < 4 or length == bytes(4):
        return None
    head = root(source.read(struct.unpack("<i", length)[0]))
    body_size = head.integer(3, "<q")
    if body_size < 0:
        raise ValueError(body_size)
    return Message(head, source.tell(), body_size)


def stream_messages(source: IO[bytes]) -> Iterator[Message]:
    start = 0
    while message := read_message(source, start):
        yield message
        start = message.body + message.body_size


def file_messages(source: IO[bytes]) -> Iterator[Message]:
    for place in footer_places(source):
        message = read_message(source, place)
        if message is not None:
            yield message


def footer_places(source: IO[bytes]) -> list[int]:
    """Where the batches and the dictionaries of a file begin."""
    end = source.seek(-len(MAGIC) - 4, 2)
    size = struct.unpack("<i", source.read(4))[0]
    source.seek(end - size)
    footer = root(source.read(size))
    places = []
    for field in (DICTIONARY_BATCH, RECORD_BATCH):
        for offset, _, _ in footer.structs(field, "<qi4xq"):
            places.append(offset)
    return places


def unpacked_octets(source: IO[bytes], message: Message) -> int:
    """What the buffers of a message say that they unpack to; 0 where nothing is packed."""
    head = message.head
    batch = head.table(2)
    kind = head.integer(1, "<B")
    if kind == DICTIONARY_BATCH and batch is not None:
        batch = batch.table(1)
    if batch is None or kind not in (DICTIONARY_BATCH, RECORD_BATCH):
        return 0
    if batch.place(3) is None and PACKED_SIGN not in head.data:
        return 0
    octets = 0
    for offset, size in batch.structs(2, "<qq"):
        if size < 8:
            continue
        source.seek(message.body + offset)
        (unpacked,) = struct.unpack("<q", source.read(8))
        if unpacked < 0:  # it is not packed
            unpacked = size
        octets += unpacked
    return octets
