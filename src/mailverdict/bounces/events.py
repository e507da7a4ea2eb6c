"""Events of services as JSON: one a line, arrays, pages of an API, and notifications inside an envelope.

A document may hold many events, at any depth. An event is an object whose members, with those of the objects around
it, fit a known layout: Amazon SES names the cause in one object and the recipients in a list inside it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError

MAX_DOCUMENT = (
    64 << 20
)  # octets of one line, or of a document over several lines: read whole, it needs ten times that
MAX_MEMBERS = 500  # of an object with those around it, which each object inside it gets
MAX_DEPTH = (
    12  # of objects and lists: the envelope of Amazon SNS inside that of AWS Lambda has eight
)
ENVELOPES = (
    "Message",
    "body",
    "Body",
)  # members of Amazon SNS, SQS and AWS Lambda that hold JSON as text
DECODER = json.JSONDecoder()

Event = (
    Mapping[str, Any] | None
)  # its members by name, those of an inner object as `outer.inner`; None fits no layout
Fits = Callable[[tuple[str, ...]], object]  # whether members of these names are an event


def read_events(path: Path, fits: Fits) -> Iterator[Event]:
    """The events of a file in order; `InputError` for what is not JSON."""
    for number, octets in texts_of(path):
        try:
            for document in documents_in(octets.decode("utf-8-sig")):
                yield from events_in(document, {}, fits) or [None]
        except (ValueError, RecursionError) as exc:
            raise InputError(f"{path}, line {number}: not valid JSON: {str(exc)[:200]}") from None


def texts_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers, or the whole file if its first line is not a whole document."""
    with path.open("rb") as file:
        while (line := file.readline(MAX_DOCUMENT + 1)).isspace():
            pass
        try:
            list(documents_in(line.decode("utf-8-sig")))
        except (ValueError, RecursionError):
            line += file.read(MAX_DOCUMENT + 1)
        number = 1
        while line:
            if len(line) > MAX_DOCUMENT:
                raise InputError(
                    f"{path}: more than {MAX_DOCUMENT >> 20} MiB in one document; give one event a line"
                )
            yield number, line
            number, line = number + 1, file.readline(MAX_DOCUMENT + 1)


def documents_in(text: str) -> Iterator[Any]:
    """The documents of a text, which may follow each other without a line end, as Amazon Data Firehose writes them."""
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        else:
            document, at = DECODER.raw_decode(text, at)
            yield document


def events_in(value: Any, around: Mapping[str, Any], fits: Fits, depth: int = 0) -> list[Event]:
    """The events in a value; empty if there are none. In a list with events, whatever has none counts as None."""
    if depth > MAX_DEPTH:
        return []
    if isinstance(value, list):
        found = [events_in(each, around, fits, depth + 1) for each in value]
        return [event for events in found for event in events or [None]] if any(found) else []
    event = {**around, **members_of(value)} if isinstance(value, dict) else {**around}
    if len(event) > MAX_MEMBERS:
        return []
    if fits(tuple(event)):
        return [event]
    inner = value.items() if isinstance(value, dict) else ()
    return [
        each for name, child in inner for each in events_of_member(name, child, event, fits, depth)
    ]


def events_of_member(
    name: str, child: Any, event: Mapping[str, Any], fits: Fits, depth: int
) -> list[Event]:
    """The events in a member of an object that is none itself."""
    if isinstance(child, list) and all(isinstance(each, str) for each in child):
        # The recipients of a delivery of Amazon SES.
        return [
            found
            for each in child
            for found in events_in(each, {**event, name: each}, fits, depth + 1)
        ]
    if isinstance(child, dict | list):
        return events_in(child, {**event, name: None}, fits, depth + 1)
    if name in ENVELOPES and isinstance(child, str) and child.lstrip()[:1] in ("{", "["):
        with contextlib.suppress(ValueError):  # other text
            return [
                found
                for document in documents_in(child)
                for found in events_in(document, event, fits, depth + 1)
            ]
    return []


def members_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """The members of an object that are not objects or lists, and those of its inner objects."""
    plain = {name: inner for name, inner in value.items() if not isinstance(inner, dict | list)}
    for name, inner in value.items():
        if isinstance(inner, dict):
            plain |= {
                f"{name}.{each}": cell
                for each, cell in inner.items()
                if not isinstance(cell, dict | list)
            }
    return plain
