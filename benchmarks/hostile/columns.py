"""A Parquet file of a few kilobytes that holds gigabytes of text: each value once, and a number for each row.

Measured are the seconds for reading it in pieces, and the memory above that of the process before. Run it as
``python -m benchmarks.hostile.columns``.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mailverdict.files.readers import open_table

from ..figures import OURS, read_options, record

LENGTH, VALUES = 13_000, 8


def write(path: Path, rows: int) -> None:
    """Few long texts in many rows."""
    texts = pa.array(["x" * LENGTH + str(number) for number in range(VALUES)])
    numbers = pa.array(np.arange(rows, dtype=np.int32) % VALUES)
    notes = pa.DictionaryArray.from_arrays(numbers, texts)
    mails = pa.array(["ada@example.org"]).take(pa.array(np.zeros(rows, np.int64)))
    table = pa.table({"mail": mails, "note": notes})
    pq.write_table(table, path, compression="zstd", store_schema=False)


def main() -> None:
    given = read_options(__doc__, rows=(250_000, 20_000))
    with tempfile.TemporaryDirectory(prefix="mailverdict-bench-") as folder:
        path = Path(folder) / "long.parquet"
        write(path, given.rows)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.perf_counter()
        with open_table(path) as table:
            rows = sum(len(piece) for piece in table.pieces())
        assert rows == given.rows
        seconds = time.perf_counter() - began
        memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    name = f"Parquet, {given.rows * LENGTH / 1e9:.1f} GB of text in few values"
    record(f"{name}: reading", OURS, [seconds], "s", given.rows)
    record(f"{name}: memory", OURS, [memory], "MiB", given.rows)


if __name__ == "__main__":
    main()
