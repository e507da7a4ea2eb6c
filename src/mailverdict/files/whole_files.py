"""Files that are read whole: JSON of one value, and vCards (`contacts`). A temporary copy has a line of JSON for each."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import InputError
from .json_lines import JsonLinesFile
from .table_file import TableFile, open_temporary, temporary_copy

MOST_OCTETS = 256 << 20  # of a file that is read whole; its objects take several times that


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
