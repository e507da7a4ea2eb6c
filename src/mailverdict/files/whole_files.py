"""Files that are read whole: arrays of JSON objects, and vCards. A temporary copy has a line of JSON for each."""

from __future__ import annotations

import json
import quopri
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import InputError
from .json_lines import JsonLinesFile
from .table_file import TableFile, open_temporary, temporary_copy

MOST_OCTETS = 256 << 20  # of a file that is read whole; its objects take several times that
PROPERTY = re.compile(
    r"(?:[\w\-]+\.)?(?P<name>[\w\-]+)(?P<parameters>(?:;[^:\"]*(?:\"[^\"]*\")?[^:\"]*)*):(?P<value>.*)"
)
ESCAPED = re.compile(r"\\([\\,;nN])")


def open_json(path: Path, name: str) -> TableFile:
    """Open JSON lines, or an array of objects."""
    with path.open("rb") as file:
        if not file.read(1 << 12).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
            return JsonLinesFile(path, name)
    try:
        rows = json.loads(read_whole(path, name))
    except (ValueError, RecursionError) as exc:
        raise InputError(f"{name}: not valid JSON: {str(exc)[:200]}") from None
    if not all(isinstance(row, dict) for row in rows):
        raise InputError(
            f"{name}: the array has items that are not objects; give addresses alone as text, one a line"
        )
    return open_rows(rows, name, "an array of objects: what is written as JSON has a line for each")


def open_contacts(path: Path, name: str) -> TableFile:
    """Open a file of vCards (RFC 6350, and versions 2.1 and 3.0): a row for each address, or for a contact without."""
    octets = read_whole(path, name)
    try:
        text = octets.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = octets.decode("cp1252", "replace")
    rows = list(read_contacts(text))
    if not rows:
        raise InputError(f"{name} has no contact: no line is BEGIN:VCARD")
    return open_rows(rows, name, "contacts: a row for each address, or for a contact without one")


def read_whole(path: Path, name: str) -> bytes:
    if path.stat().st_size > MOST_OCTETS:
        raise InputError(
            f"{name} has more than {MOST_OCTETS >> 20} MiB, which are read at once: convert it to JSON lines"
        )
    return path.read_bytes()


def open_rows(rows: Iterable[dict[str, Any]], name: str, remark: str) -> TableFile:
    with temporary_copy() as copy:
        copy.writelines(
            json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n" for row in rows
        )
    opened: TableFile = open_temporary(Path(copy.name), lambda path: JsonLinesFile(path, name))
    opened.remarks.append(remark)
    return opened


def read_contacts(text: str) -> Iterator[dict[str, str | None]]:
    """Name and address of each contact; text without an end is read to its end."""
    name, is_open = "", False
    addresses: list[str | None] = []
    for line in [*unfold(text), "END:VCARD"]:
        found = PROPERTY.fullmatch(line)
        key = found["name"].upper() if found else ""
        if key in ("BEGIN", "END"):
            if is_open:
                yield from (
                    {"name": name or None, "email": address} for address in addresses or [None]
                )
            name, addresses, is_open = "", [], key == "BEGIN"
        elif found and key in ("FN", "EMAIL"):
            value = read_value(found["parameters"].upper(), found["value"])
            if key == "FN":
                name = value
            elif value:
                addresses.append(value)


def unfold(text: str) -> Iterator[str]:
    """The lines of vCards, with those that continue them: after a blank, or after a quoted-printable line's "="."""
    whole = ""
    for line in text.splitlines():
        is_soft = whole.endswith("=") and "QUOTED-PRINTABLE" in whole.upper()
        if is_soft or line[:1] in (" ", "\t"):
            whole = whole[:-1] + line if is_soft else whole + line[1:]
            continue
        yield whole
        whole = line
    yield whole


def read_value(parameters: str, value: str) -> str:
    if "QUOTED-PRINTABLE" in parameters:
        octets = quopri.decodestring(value.encode())
        value = octets.decode("utf-8" if "UTF-8" in parameters else "cp1252", "replace")
    return ESCAPED.sub(lambda escape: "\n" if escape[1] in "nN" else escape[1], value).strip()
