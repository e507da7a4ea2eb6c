"""Events of services as JSON: one a line, arrays, pages of an API, notifications in an envelope.

    {"bounce": {"bounceType": "Permanent", "bouncedRecipients": [{"emailAddress": "ada@web.de"}]}}
    -> for each recipient {"bounce.bounceType": "Permanent", "emailAddress": "ada@web.de", ...}

A document may hold many events, at any depth. An event is an object whose members, with those of
the objects around it, fit a known layout (`events_in`): Amazon SES names the cause in one object
and the recipients in a list inside it. A document without a known event is searched once more
(`find_general`): an event is then the innermost object of a list that has an address of its own,
with all members around it and below it.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError
from .exports import known_layout
from .general import may_be_recipient
from .words import ExportRow, last_member

# Octets of one line, or of a document over several lines: read whole, it needs ten times that.
MAX_DOCUMENT = 64 << 20
MAX_MEMBERS = 500  # of an object with those around it, which each object inside it gets
MAX_DEPTH = 12  # of objects and lists: Amazon SNS inside the envelope of AWS Lambda has eight
# Lists of those to whom a mail was written.
ADDRESSEES = ("to", "toaddresses", "torecipients", "to_emails", "destination", "destinations")
# Members of Amazon SNS, SQS and AWS Lambda that hold JSON as text.
ENVELOPES = ("Message", "body", "Body")
MAX_NAME = 200  # characters of a name or text in which a failure is looked for
FAILURE = re.compile(
    r"bounc|complain|\bfail|undeliver|as_?spam|spammed|spam_?report|[45]\d\d [45]\.\d\.\d",
    re.IGNORECASE,
)
DECODER = json.JSONDecoder()

Event = Mapping[str, Any]  # its members by name, those of an inner object as `outer.inner`
Unfit = list[tuple[Any, Event]]  # what is no event beside others that are, and the members around


def read_documents(octets: bytes, place: str) -> list[Any]:
    """The documents of a line; `InputError` for what is not JSON."""
    try:
        return list(documents_in(octets.decode("utf-8-sig")))
    except (ValueError, RecursionError) as exc:
        raise InputError(f"{place}: not valid JSON: {str(exc)[:200]}") from None


def texts_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers.

    Or the whole file, if its first line is not a whole document.
    """
    with path.open("rb") as file:
        line = file.readline(MAX_DOCUMENT + 1)
        while line.isspace():
            line = file.readline(MAX_DOCUMENT + 1)
        try:
            list(documents_in(line.decode("utf-8-sig")))
        except (ValueError, RecursionError):
            line += file.read(MAX_DOCUMENT + 1)
        number = 1
        while line:
            if len(line) > MAX_DOCUMENT:
                raise InputError(
                    f"{path}: more than {MAX_DOCUMENT >> 20} MiB in one document; give one event "
                    "a line"
                )
            yield number, line
            number += 1
            line = file.readline(MAX_DOCUMENT + 1)


def documents_in(text: str) -> Iterator[Any]:
    """The documents of a text, which may follow each other without a line end.

    Amazon Data Firehose writes them so.
    """
    place = 0
    while place < len(text):
        if text[place].isspace():
            place += 1
        else:
            document, place = DECODER.raw_decode(text, place)
            yield document


def find_general(value: Any, around: Event, depth: int = 0, path: str = "") -> list[Event]:
    """The objects of a document that have an address of their own, with the members around them.

    Those below them count, too.

    >>> data = {"to": ["ada@firm.example"], "bounce": {"type": "Permanent"}}
    >>> find_general({"type": "email.bounced", "data": data}, {})
    [{'type': 'email.bounced', 'data.bounce.type': 'Permanent', 'data.to': 'ada@firm.example'}]
    """
    if depth > MAX_DEPTH:
        return []
    if isinstance(value, dict):
        return find_in_object(value, around, depth, path)
    events: list[Event] = []
    if isinstance(value, list):
        for item in value:
            events += find_general(item, around, depth + 1, path)
    return events


def find_in_object(value: Event, around: Event, depth: int, path: str) -> list[Event]:
    """The same of an object: those inside it, or else itself."""
    members: dict[str, Any] = {}
    lists: list[tuple[str, list[Any]]] = []
    collect_members(value, path, members, lists, depth)
    event = {**around, **members}
    if len(event) > MAX_MEMBERS:
        return []
    inner: list[Event] = []
    addressees: list[Event] = []  # of a mail: a bounce need not be of all of them
    for name, items in lists:
        objects = [item for item in items if isinstance(item, dict)]
        events = find_general(objects, event, depth + 1, f"{name}.")
        if objects and not events:  # attempts, of which the last one counts
            collect_members(objects[-1], f"{name}.", event, [], depth + 1)
        if is_addressee(name):
            addressees += events
        else:
            inner += events
    for name, items in lists:
        events = [{**event, name: item} for item in items if is_recipient(name, item)]
        if is_addressee(name):
            addressees += events
        else:
            inner += events
    for name, text in members.items():
        if last_member(name) not in ENVELOPES or not is_json(text):
            continue
        event[name] = None
        with contextlib.suppress(ValueError, RecursionError):  # other text
            for document in documents_in(text):
                inner += find_general(document, event, depth + 1)
    if inner:
        return inner
    if any(is_recipient(name, text) for name, text in members.items()):
        return [event]
    return together(addressees)


def together(addressees: list[Event]) -> list[Event]:
    """The event of a mail with one addressee; of several, one that names all of them.

    `read_address` refuses it: the bounce of one of them says nothing about the others.
    """
    if len(addressees) < 2:
        return addressees
    first = addressees[0]
    event = dict(first)
    for name, text in first.items():
        if is_recipient(name, text):
            texts = [str(addressee.get(name)) for addressee in addressees]
            event[name] = ", ".join(dict.fromkeys(texts))
    return [event]


def is_recipient(name: str, text: object) -> bool:
    return isinstance(text, str) and "@" in text and may_be_recipient(name)


def is_addressee(name: str) -> bool:
    """Whether a list of this name has those to whom a mail was written, bounced or not."""
    return last_member(name).lower() in ADDRESSEES


def collect_members(
    value: Event,
    path: str,
    members: dict[str, Any],
    lists: list[tuple[str, list[Any]]],
    depth: int,
) -> None:
    """The plain members of an object and of those inside it, and the lists, by names with dots."""
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
        document, _ = DECODER.raw_decode(start)
    except ValueError:
        document, _ = DECODER.raw_decode(start.replace("!\n ", ""))
    return document


def events_in(value: Any, around: Event, unfit: Unfit, depth: int = 0) -> list[ExportRow]:
    """The events in a value, with their layouts; empty if there are none.

    What has none in a list with events is added to `unfit`, with the members around it.
    """
    if depth > MAX_DEPTH:
        return []
    if isinstance(value, list):
        return events_in_list(value, around, unfit, depth)
    event = dict(around)
    if isinstance(value, dict):
        event |= members_of(value)
    if len(event) > MAX_MEMBERS:
        return []
    layout = known_layout(tuple(event))
    if layout is not None:
        return [ExportRow(layout, event)]
    if not isinstance(value, dict):
        return []
    events = []
    for name, child in value.items():
        events += events_of_member(name, child, event, unfit, depth)
    return events


def events_in_list(items: list[Any], around: Event, unfit: Unfit, depth: int) -> list[ExportRow]:
    events = []
    without_event = []
    for item in items:
        of_item = events_in(item, around, unfit, depth + 1)
        events += of_item
        if not of_item:
            without_event.append((item, around))
    if events:
        unfit += without_event
    return events


def events_of_member(
    name: str, child: Any, event: Event, unfit: Unfit, depth: int
) -> list[ExportRow]:
    """The events in a member of an object that is none itself."""
    events = []
    if isinstance(child, list) and all(isinstance(item, str) for item in child):
        if name == "to" and len(set(child)) > 1:  # Resend
            child = [", ".join(child)]
        # The recipients of a delivery of Amazon SES.
        for item in child:
            events += events_in(item, {**event, name: item}, unfit, depth + 1)
        return events
    if isinstance(child, dict | list):
        return events_in(child, {**event, name: None}, unfit, depth + 1)
    if name not in ENVELOPES or not is_json(child):
        return []
    try:
        for document in documents_in(child):
            events += events_in(document, event, unfit, depth + 1)
    except ValueError:  # other text
        return []
    return events


def members_of(value: Event) -> dict[str, Any]:
    """The members of an object that are not objects or lists, and those of its inner objects."""
    plain = {}
    below = {}
    for name, inner in value.items():
        if isinstance(inner, dict):
            for inner_name, cell in inner.items():
                if not isinstance(cell, dict | list):
                    below[f"{name}.{inner_name}"] = cell
        elif not isinstance(inner, list):
            plain[name] = inner
    return {**plain, **below}
