"""The scratch folder of a distributed call: answers by shard, and what tasks give each other.

    mx-1f2e3d4c5b6a/                     validation type, and a digest of the settings
        shards.json                      a later call on the folder has the same shards
        domains/17/rows-2000-9f...parquet, keys-2500-.json    answers of shard 17, and its keys
        call-.../observed/3.parquet      what partition 3 asks, a row group for each shard

A task writes what has settled about once a second. A task that runs again reads the files of its
shard first and asks only for the rest. Each file appears complete or not at all, and the name of a
file of answers has its number of rows, so that the calling process can count without reading.

What tasks give each other is one file for each writer, with row groups for each reader. So an
engine only has to run tasks by their numbers, and a task that runs again finds what the others
wrote.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq

from ..errors import BackendError, SettingsError
from ..model.paths import user_path

PIECE_SECONDS = 1.0  # between two files of a task: what a lost task has to ask again
PIECE_ROWS = 50_000  # written at once, before the time is up
READ_TRIES = 3  # a listed file may be replaced by a larger one before it is read
Shards = npt.NDArray[np.int64]  # for each row the number of the task that reads it
Folder = str | os.PathLike[str]  # a path, or a URL of pyarrow.fs as s3://bucket/folder


@dataclass(frozen=True)
class Scratch:
    """One folder that the calling process and all workers can write."""

    url: str  # a path, or a URL of pyarrow.fs as s3://bucket/folder

    @classmethod
    def open(cls, url: Folder) -> Scratch:
        """Make the folder; a `SettingsError` if it cannot be written."""
        text = os.fspath(url)
        if not text.strip():
            raise SettingsError(f"scratch={text!r}: give the path or URL of a folder, or None")
        scratch = cls(text)
        if "://" not in text:
            scratch = cls(str(user_path(text).absolute()))
        test = f"test-{secrets.token_hex(4)}.json"
        try:
            scratch.write_json(test, {})
            system, path = scratch._place(test)
            system.delete_file(path)
        except (OSError, ValueError, pa.ArrowException) as exc:
            raise SettingsError(f"scratch={text!r:.200}: cannot write there: {exc}") from exc
        return scratch

    def below(self, name: str) -> Scratch:
        """A folder within."""
        return replace(self, url=f"{self.url.rstrip('/')}/{name}")

    def _place(self, *names: str) -> tuple[Any, str]:
        """The file system, and the path of a file or folder on it."""
        if "://" in self.url:
            system, root = pa_fs.FileSystem.from_uri(self.url)
        else:
            system = pa_fs.LocalFileSystem()
            root = self.url
        return system, "/".join((root.rstrip("/"), *names))

    def write_json(self, name: str, value: Any) -> None:
        """Write a small file of the whole call."""
        self._write(name, json.dumps(value).encode())

    def read_json(self, name: str) -> Any:
        """Read one; None if it is not there."""
        system, path = self._place(name)
        try:
            with system.open_input_stream(path) as stream:
                return json.loads(stream.read())
        except FileNotFoundError:
            return None

    def _write(self, name: str, content: Any) -> None:
        """Write a file under another name first, since a task may be killed while it writes."""
        system, path = self._place(name)
        system.create_dir(path.rpartition("/")[0], recursive=True)
        temporary = f"{path}.{secrets.token_hex(4)}.part"
        if isinstance(system, pa_fs.LocalFileSystem):  # it holds addresses
            Path(temporary).touch(0o600)
        with system.open_output_stream(temporary) as stream:
            stream.write(content)
        system.move(temporary, path)

    def write(self, stage: str, shard: int, table: pa.Table) -> str:
        """Write settled rows of a shard; returns the name of the file."""
        name = f"rows-{len(table)}-{secrets.token_hex(8)}.parquet"
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        self._write(f"{stage}/{shard}/{name}", sink.getvalue())
        return name

    def write_groups(
        self, name: str, schema: pa.Schema, pieces: Iterable[tuple[pa.Table, Shards]]
    ) -> None:
        """Write tables whose rows have readers as one file, with row groups for each reader.

        The metadata of the file say whose each row group is. A file of this name that is there is
        replaced.
        """
        sink = pa.BufferOutputStream()
        readers: list[int] = []
        # With dictionaries each row group would have all values.
        schema = without_dictionaries(schema.empty_table()).schema
        with pq.ParquetWriter(sink, schema, compression="zstd", write_statistics=False) as writer:
            for table, numbers in pieces:
                order = np.argsort(numbers, kind="stable")
                plain = without_dictionaries(table.select(schema.names))
                ordered = plain.take(pa.array(order))
                runs = np.unique(numbers[order], return_index=True, return_counts=True)
                for reader, start, size in np.column_stack(runs).tolist():
                    writer.write_table(ordered.slice(start, size), row_group_size=size)
                    readers.append(reader)
            writer.add_key_value_metadata({"readers": json.dumps(readers)})
        self._write(name, sink.getvalue())

    def read_groups(self, names: Iterable[str], reader: int, schema: pa.Schema) -> pa.Table:
        """What files have for a reader; a `BackendError` if one of them is not there."""
        tables = [without_dictionaries(schema.empty_table())]
        for name in names:
            system, path = self._place(name)
            try:
                with system.open_input_file(path) as source:
                    file = pq.ParquetFile(source, pre_buffer=True)
                    readers = json.loads(file.metadata.metadata[b"readers"])
                    groups = [group for group, other in enumerate(readers) if other == reader]
                    if groups:
                        tables.append(file.read_row_groups(groups, use_threads=False))
            except FileNotFoundError:
                raise BackendError(missing_message(path)) from None
        return pa.concat_tables(tables).combine_chunks().cast(schema)

    def delete(self, name: str) -> None:
        """Delete a folder; what cannot be deleted stays, since nothing reads it."""
        system, path = self._place(name)
        with suppress(OSError):
            system.delete_dir(path)

    def require(self) -> None:
        """Raise a `BackendError` if the folder was deleted since the call."""
        if self.read_json("shards.json") is None:
            raise BackendError(missing_message(self.url))

    def note_keys(self, stage: str, shard: int, keys: int) -> None:
        """Note how many keys a shard has, for the progress."""
        self._write(f"{stage}/{shard}/keys-{keys}-.json", b"{}")

    def names(self, stage: str, shard: int) -> list[str]:
        """The names of a shard's files of rows."""
        system, path = self._place(stage, f"{shard}")
        files = system.get_file_info(pa_fs.FileSelector(path, allow_not_found=True))
        return sorted(file.base_name for file in files if is_rows(file.base_name))

    def read(self, stage: str, shard: int, schema: pa.Schema) -> pa.Table:
        """All rows of a shard, each key once: the latest by `checked_at`.

        The key is the first column.
        """
        for _ in range(READ_TRIES - 1):
            try:
                return self._read(stage, shard, schema)
            except FileNotFoundError:
                continue
        return self._read(stage, shard, schema)

    def _read(self, stage: str, shard: int, schema: pa.Schema) -> pa.Table:
        tables = []
        for name in self.names(stage, shard):
            system, path = self._place(stage, f"{shard}", name)
            with system.open_input_file(path) as file:
                tables.append(pq.read_table(file).cast(schema))
        if not tables:
            return schema.empty_table()
        table = pa.concat_tables(tables)
        if len(tables) == 1:
            return table
        return latest_rows(table.unify_dictionaries())

    def compact(self, stage: str, shard: int, table: pa.Table) -> None:
        """Replace the files of a finished shard by one."""
        earlier = self.names(stage, shard)
        if len(earlier) < 2:
            return
        self.write(stage, shard, table)
        for name in earlier:
            system, path = self._place(stage, f"{shard}", name)
            system.delete_file(path)

    def counts(self, stage: str) -> tuple[int, int]:
        """How many keys the shards that have begun hold, and how many of them have an answer."""
        system, path = self._place(stage)
        selector = pa_fs.FileSelector(path, allow_not_found=True, recursive=True)
        keys: Counter[str] = Counter()
        settled: Counter[str] = Counter()
        for file in system.get_file_info(selector):
            name = file.base_name
            shard = file.path.split("/")[-2]
            if is_rows(name):
                settled[shard] += int(name.split("-")[1])
            elif name.startswith("keys-") and name.endswith(".json"):
                keys[shard] = max(keys[shard], int(name.split("-")[1]))
        for shard in settled.keys() & keys.keys():
            settled[shard] = min(settled[shard], keys[shard])
        return keys.total(), settled.total()


def is_rows(name: str) -> bool:
    return name.startswith("rows-") and name.endswith(".parquet")


def missing_message(path: str) -> str:
    return f"{path} is missing: was the scratch folder deleted? Verify the frame again"


def latest_rows(table: pa.Table) -> pa.Table:
    """The last row of each key by `checked_at`."""
    checked = table["checked_at"].combine_chunks().cast(pa.int64()).fill_null(-1)
    ordered = np.argsort(checked.to_numpy(), kind="stable")
    keys = table.column(0).combine_chunks().dictionary_encode()
    codes = keys.indices.to_numpy(zero_copy_only=False)
    last = np.full(codes.max() + 1, -1, np.int64)
    last[codes[ordered]] = ordered  # a later row replaces an earlier one
    return table.combine_chunks().take(pa.array(np.sort(last)))


class PieceWriter:
    """Writes the rows of one shard about once a second as they settle; an async context manager."""

    def __init__(
        self,
        scratch: Scratch,
        stage: str,
        shard: int,
        *,
        seconds: float = PIECE_SECONDS,
        most_rows: int = PIECE_ROWS,
    ) -> None:
        self.scratch = scratch
        self.stage = stage
        self.shard = shard
        self.seconds = seconds
        self.most_rows = most_rows
        self.waiting: list[pa.Table] = []
        self._lock = asyncio.Lock()
        self._over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._write_often())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Write the rest, also after an error; a file that is being written is waited for."""
        assert self._task is not None
        self._over.set()
        await self._task
        await self.flush()

    async def add(self, table: pa.Table) -> None:
        """Add settled rows."""
        self.waiting.append(table)
        if sum(map(len, self.waiting)) >= self.most_rows:
            await self.flush()

    async def flush(self) -> None:
        """Write what waits; it still waits if that fails."""
        async with self._lock:
            tables = list(self.waiting)
            if tables:
                rows = concat(tables)
                await asyncio.to_thread(self.scratch.write, self.stage, self.shard, rows)
                del self.waiting[: len(tables)]

    async def _write_often(self) -> None:
        """Write once in a while until the end.

        A write that fails is tried again, and at the end raises.
        """
        while not self._over.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), self.seconds)
            with suppress(OSError):
                await self.flush()


def rows_of_keys(keys: pa.StringArray, table: pa.Table, name: str) -> pa.Int32Array:
    """For each key the row of a table whose column `name` has it; null where there is none."""
    values = table[name].combine_chunks()
    return pc.index_in(keys, value_set=values, skip_nulls=True)


def without_dictionaries(table: pa.Table) -> pa.Table:
    """The table with the values of its dictionaries."""
    for position, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            values = table.column(position).cast(field.type.value_type)
            table = table.set_column(position, field.name, values)
    return table


def concat(tables: Iterable[pa.Table]) -> pa.Table:
    """Tables of one schema, whose dictionaries may differ, as one."""
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()
