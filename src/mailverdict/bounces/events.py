"""Events of services as JSON: one a line, arrays, pages of an API, and notifications inside an envelope.

A document may hold many events, at any depth. An event is an object whose members, with those of the objects around
it, fit a known layout: Amazon SES names the cause in one object and the recipients in a list inside it. A document without
a known event is searched once more (`find_general`): an event is then the innermost object of a list that has an address
of its own, with all members around it and below it.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError

# Octets of one line, or of a document over several lines: read whole, it needs ten times that.
MAX_DOCUMENT = 64 << 20
MAX_MEMBERS = 500  # of an object with those around it, which each object inside it gets
MAX_DEPTH = (
    12  # of objects and lists: the envelope of Amazon SNS inside that of AWS Lambda has eight
)
# Members of Amazon SNS, SQS and AWS Lambda that hold JSON as text.
ENVELOPES = (
    "Message",
    "body",
    "Body",
)
MAX_NAME = 200  # characters of a name or text in which a failure is looked for
FAILURE = re.compile(r"bounc|complain|\bfail|undeliver|[45]\d\d [45]\.\d\.\d", re.IGNORECASE)
DECODER = json.JSONDecoder()

# Its members by name, those of an inner object as `outer.inner`; None fits no layout.
Event = Mapping[str, Any] | None
IsAddress = Callable[[str], bool]  # whether a member of this name may be the recipient
Fits = Callable[[tuple[str, ...]], object]  # whether members of these names are an event


def read_documents(octets: bytes, place: str) -> list[Any]:
    """The documents of a line; `InputError` for what is not JSON."""
    try:
        return list(documents_in(octets.decode("utf-8-sig")))
    except (ValueError, RecursionError) as exc:
        raise InputError(f"{place}: not valid JSON: {str(exc)[:200]}") from None


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


def find_general(
    value: Any, around: Mapping[str, Any], is_address: IsAddress, depth: int = 0, path: str = ""
) -> list[Mapping[str, Any]]:
    """The objects of a document that have an address of their own, with the members around them and below them.

    >>> event = {"type": "email.bounced", "data": {"to": ["ada@firm.example"], "bounce": {"type": "Permanent"}}}
    >>> find_general(event, {}, lambda name: name.endswith("to"))
    [{'type': 'email.bounced', 'data.bounce.type': 'Permanent', 'data.to': 'ada@firm.example'}]
    """
    if depth > MAX_DEPTH:
        return []
    if isinstance(value, list):
        events: list[Mapping[str, Any]] = []
        for item in value:
            events += find_general(item, around, is_address, depth + 1, path)
        return events
    if not isinstance(value, dict):
        return []
    members: dict[str, Any] = {}
    lists: list[tuple[str, list[Any]]] = []
    collect_members(value, path, members, lists, depth)
    event = {**around, **members}
    if len(event) > MAX_MEMBERS:
        return []
    inner: list[Mapping[str, Any]] = []
    for name, items in lists:
        objects = [item for item in items if isinstance(item, dict)]
        found = find_general(objects, event, is_address, depth + 1, f"{name}.")
        inner += found
        if objects and not found:  # attempts, of which the last one counts
            collect_members(objects[-1], f"{name}.", event, [], depth + 1)
    for name, items in lists:
        for item in items:
            if isinstance(item, str) and "@" in item and is_address(name):
                inner.append({**event, name: item})
    for name, text in members.items():
        if name.rpartition(".")[2] in ENVELOPES and is_json(text):
            event[name] = None
            with contextlib.suppress(ValueError, RecursionError):  # other text
                for document in documents_in(text):
                    inner += find_general(document, event, is_address, depth + 1)
    if inner:
        return inner
    has_address = any(
        isinstance(text, str) and "@" in text and is_address(name) for name, text in members.items()
    )
    return [event] if has_address else []


def collect_members(
    value: Mapping[str, Any],
    path: str,
    members: dict[str, Any],
    lists: list[tuple[str, list[Any]]],
    depth: int,
) -> None:
    """The plain members of an object and of those inside it, and the lists in them, by their names with dots."""
    for name, inner in value.items():
        if len(members) + len(lists) > MAX_MEMBERS or depth > MAX_DEPTH:
            return
        if isinstance(inner, dict):
            collect_members(inner, f"{path}{name}.", members, lists, depth + 1)
        elif isinstance(inner, list):
            lists.append((f"{path}{name}", inner))
        else:
            members[f"{path}{name}"] = inner


def mentions_failure(value: Any, depth: int = 0) -> bool:
    """Whether a member of a value speaks of a bounce, a complaint or a failure."""
    if depth > MAX_DEPTH:
        return False
    if isinstance(value, Mapping):
        for name, inner in value.items():
            is_empty = inner is None or inner is False or inner in ("", 0)
            if not is_empty and FAILURE.search(str(name)[:MAX_NAME]):
                return True
            if mentions_failure(inner, depth + 1):
                return True
        return False
    if isinstance(value, list):
        return any(mentions_failure(item, depth + 1) for item in value[:MAX_MEMBERS])
    return isinstance(value, str) and FAILURE.search(value[:MAX_NAME]) is not None


def is_json(text: object) -> bool:
    return isinstance(text, str) and text.lstrip()[:1] in ("{", "[")


def first_document(text: str) -> Any:
    """The document at the beginning of a text; `ValueError` if there is none.

    Sendmail breaks lines that are too long behind a "!", and goes on after a blank.
    """
    start = text.lstrip("\ufeff \r\n\t")
    try:
        return DECODER.raw_decode(start)[0]
    except ValueError:
        return DECODER.raw_decode(start.replace("!\n ", ""))[0]


def events_in(
    value: Any,
    around: Mapping[str, Any],
    fits: Fits,
    depth: int = 0,
    unfit: list[tuple[Any, Mapping[str, Any]]] | None = None,
) -> list[Event]:
    """The events in a value; empty if there are none. In a list with events, whatever has none counts as None.

    What counts as None is added to `unfit`, with the members around it.
    """
    if depth > MAX_DEPTH:
        return []
    if isinstance(value, list):
        found = [events_in(each, around, fits, depth + 1, unfit) for each in value]
        if not any(found):
            return []
        if unfit is not None:
            unfit += [
                (item, around) for item, events in zip(value, found, strict=True) if not events
            ]
        return [event for events in found for event in events or [None]]
    event = {**around, **members_of(value)} if isinstance(value, dict) else {**around}
    if len(event) > MAX_MEMBERS:
        return []
    if fits(tuple(event)):
        return [event]
    inner = value.items() if isinstance(value, dict) else ()
    return [
        each
        for name, child in inner
        for each in events_of_member(name, child, event, fits, depth, unfit)
    ]


def events_of_member(
    name: str,
    child: Any,
    event: Mapping[str, Any],
    fits: Fits,
    depth: int,
    unfit: list[tuple[Any, Mapping[str, Any]]] | None,
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
        return events_in(child, {**event, name: None}, fits, depth + 1, unfit)
    if name in ENVELOPES and is_json(child):
        with contextlib.suppress(ValueError):  # other text
            return [
                found
                for document in documents_in(child)
                for found in events_in(document, event, fits, depth + 1, unfit)
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
