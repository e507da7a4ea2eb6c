"""Texts joined row by row, and their octets one after the other: what writers of text files put together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def large_offsets_of(texts: pa.LargeStringArray) -> Any:
    """The offset of each text in the buffer, which takes 64 bits, and the end of the last one."""
    if not len(texts):
        return np.zeros(1, np.int64)
    return np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]


def bytes_of(texts: pa.LargeStringArray) -> memoryview:
    """The bytes of all texts, one after the other, without a copy."""
    offsets = large_offsets_of(texts)
    return memoryview(texts.buffers()[2] or b"")[offsets[0] : offsets[-1]]


def join(*parts: Any, between: str = "") -> Any:
    """Concatenate texts row by row; a missing one is empty."""
    texts = [part for part in parts if not isinstance(part, str)]
    kind = texts[0].type
    whole = []
    for part in (*parts, between):
        whole.append(pa.scalar(part, kind) if isinstance(part, str) else part)
    return pc.binary_join_element_wise(*whole, null_handling="replace")
