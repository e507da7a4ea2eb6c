r"""Texts joined row by row, and their octets one after the other: how writers make text files.

join("<", names, ">")     ["ada", None]    ->  ["<ada>", "<>"]
bytes_of(rows)            ["a,1\n", "b,2\n"]  ->  b"a,1\nb,2\n"
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

TEXTS = pa.large_string()


def large_offsets_of(texts: pa.LargeStringArray) -> Any:
    """The offset of each text in the buffer, which takes 64 bits, and the end of the last one."""
    count = len(texts)
    if not count:
        return np.zeros(1, np.int64)
    offsets = np.frombuffer(texts.buffers()[1], np.int64)
    return offsets[texts.offset : texts.offset + count + 1]


def bytes_of(texts: pa.LargeStringArray) -> memoryview:
    """The bytes of all texts, without a copy."""
    offsets = large_offsets_of(texts)
    octets = texts.buffers()[2] or b""
    return memoryview(octets)[offsets[0] : offsets[-1]]


def join(*parts: pa.LargeStringArray | str, between: str = "") -> Any:
    """Concatenate texts row by row; a missing one is empty."""
    columns = []
    for part in (*parts, between):
        if isinstance(part, str):
            part = pa.scalar(part, TEXTS)  # noqa: PLW2901 - the same for all rows
        columns.append(part)
    return pc.binary_join_element_wise(*columns, null_handling="replace")
