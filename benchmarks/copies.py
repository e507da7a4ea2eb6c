"""Copies of a CSV without a check, by libraries that read and write tables: the peers of `files` and `memory`.

``python -m benchmarks.copies arrow|pandas TARGET SOURCE`` makes one, with no import that it does
not need.
"""

from __future__ import annotations

import sys
from pathlib import Path


def copy_by_pandas(source: Path, target: Path) -> None:
    """All cells as text, the whole file at once."""
    import pandas as pd

    pd.read_csv(source, dtype=str, keep_default_na=False).to_csv(target, index=False)


def copy_by_arrow(source: Path, target: Path) -> None:
    """All cells as text, in pieces, as our command reads and writes."""
    import pyarrow as pa
    import pyarrow.csv

    with source.open(encoding="utf-8") as file:
        names = file.readline().strip().split(",")
    as_text = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    reader = pyarrow.csv.open_csv(source, convert_options=as_text)
    with reader, pyarrow.csv.CSVWriter(target, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


if __name__ == "__main__":
    {"arrow": copy_by_arrow, "pandas": copy_by_pandas}[sys.argv[1]](
        Path(sys.argv[3]), Path(sys.argv[2])
    )
