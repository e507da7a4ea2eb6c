"""The files of other verifiers as tables: an export, or the JSON that an API answers.

JSON has one object for each address, somewhere: `find_results` finds them in documents like these.
A file may also have one document in each line.

    {"email_batch": [{"address": "ada@firm.example", "status": "valid"}, ...]}
    {"results": [{"data": {"email": "ada@firm.example"}, "verification": {"result": "valid"}}]}
    {"results": {"ada@firm.example": {"email": "ada@firm.example", "status": "safe"}}}

Each becomes a row: its members by name, those of inner objects as `data.email`, a list of texts as
one cell. Members of the objects around it are not of its address, and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..bounces.events import MAX_DEPTH, MAX_MEMBERS, documents_in, texts_of
from ..bounces.mailboxes import kind_of_file
from ..errors import InputError
from ..files.readers import open_table
from ..files.table_file import ReadOptions, without_options
from ..model.words import count_of
from ..table.notices import warn_user

SHOWN = 3  # lines in a warning
Row = Mapping[str, str | None]
# What is said instead of an option of the command line, which is about the table that is verified.
HOW_TO_READ = {
    "sheet": "another is given as sheet= of read_verdicts, or saved as a file of its own",
    "encoding": "another is given as encoding= of read_verdicts, or the file is saved in UTF-8",
}
KindOf = Callable[[tuple[str, ...]], str]  # the kind of result by its members; empty if it is none


def read_file(
    path: Path,
    kind_of: KindOf,
    is_ours: Callable[[tuple[str, ...]], object],
    options: ReadOptions,
) -> pa.Table:
    """The rows of a table; of a JSON file with results a row for each."""
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if kind_of_file(path) == "events":
        finder = find_results(path, kind_of)
        rows = finder.results or finder.others
        names: dict[str, None] = {}  # in order
        for row in rows:
            names.update(dict.fromkeys(row))
        if rows and not is_ours(tuple(names)):
            warn_user(*finder.remarks(path))
            columns = {}
            for name in names:
                cells = [row.get(name) for row in rows]
                columns[name] = pa.array(cells, pa.string())
            return pa.table(columns)
    with open_table(path, options) as table:
        rows_of_table = pa.concat_tables(table.pieces())
        for remark in [*table.remarks, *table.final_remarks()]:
            warn_user(f"{path}: {without_options(remark, HOW_TO_READ)}")
    return rows_of_table


def find_results(path: Path, kind_of: KindOf) -> ResultFinder:
    """The results in a JSON file; an error for those of several services."""
    finder = ResultFinder(kind_of)
    for number, octets in texts_of(path):
        try:
            for document in documents_in(octets.decode("utf-8-sig")):
                finder.add(document)
        except (ValueError, RecursionError) as exc:
            problem = f"line {number}: not valid JSON: {str(exc)[:200]}"
            if number == 1:
                raise InputError(f"{path}, {problem}") from None
            finder.unread += 1
            if len(finder.problems) < SHOWN:
                finder.problems.append(problem)
    if len(finder.kinds) > 1:
        kinds = " and ".join(finder.kinds)
        raise InputError(f"{path} has results of {kinds}: give each a file of its own")
    return finder


@dataclass
class ResultFinder:
    """Finds the objects of a document that are results.

    If none is, those that have an address.
    """

    kind_of: KindOf
    kinds: dict[str, None] = field(default_factory=dict)  # of the results, in order
    results: list[Row] = field(default_factory=list)
    others: list[Row] = field(default_factory=list)  # objects that have an address, where none fits
    left: int = 0  # documents, and items of a list with results, that have none
    without_address: int = 0  # documents and items of a list that are not in `others`
    unread: int = 0  # lines that are not JSON
    problems: list[str] = field(default_factory=list)  # of the first of them

    def add(self, document: Any) -> None:
        """Add the results of a document."""
        results = list(self.results_in(document))
        self.results += results
        if not results:
            self.left += 1
        if self.results:
            return
        items = [document]
        if isinstance(document, list):
            items = document
        for item in items:
            rows = rows_with_address(item)
            self.others += rows
            if not rows:
                self.without_address += 1

    def remarks(self, path: Path) -> Iterator[str]:
        """What is left out, for the user."""
        if self.unread:
            shown = list(self.problems)
            if self.unread > len(shown):
                shown.append("...")
            lines = count_of(self.unread, "line")
            yield f"{path}: {lines} could not be read: {'; '.join(shown)}"
        if self.results and self.left:
            objects = count_of(self.left, "object")
            whole = self.left + len(self.results)
            yield f"{path}: {objects} of {whole:,} without results of a known form"
        if not self.results and self.without_address:
            yield f"{path}: {count_of(self.without_address, 'object')} without an address left out"

    def results_in(self, value: Any, depth: int = 0) -> Iterator[Row]:
        """The results in a value."""
        if depth > MAX_DEPTH:
            return
        if isinstance(value, dict):
            row = row_of(value)
            kind = self.kind_of(tuple(row))
            if kind:
                self.kinds[kind] = None
                yield row
                return
            for child in value.values():
                yield from self.results_in(child, depth + 1)
        elif isinstance(value, list):
            results_of_items = [list(self.results_in(item, depth + 1)) for item in value]
            if any(results_of_items):
                self.left += results_of_items.count([])
            for results in results_of_items:
                yield from results


def rows_with_address(value: Any, depth: int = 0) -> list[Row]:
    """The objects that have an address in them; of an object with a list of such objects, those."""
    if depth > MAX_DEPTH or not isinstance(value, dict | list):
        return []
    rows: list[Row] = []
    if isinstance(value, list):
        for item in value:
            rows += rows_with_address(item, depth + 1)
        return rows
    for child in lists_in(value):
        rows = rows_with_address(child, depth + 1)
        if rows:
            return rows
    row = row_of(value)
    if any(cell and "@" in cell for cell in row.values()):
        return [row]
    return []


def lists_in(value: Mapping[str, Any], depth: int = 0) -> Iterator[list[Any]]:
    """The lists of an object, and of the objects in it."""
    for child in value.values():
        if isinstance(child, list):
            yield child
        elif isinstance(child, dict) and depth < MAX_DEPTH:
            yield from lists_in(child, depth + 1)


def row_of(value: Mapping[str, Any], lead: str = "", depth: int = 0) -> dict[str, str | None]:
    """The members of an object as cells, those of inner objects as `outer.inner`."""
    row: dict[str, str | None] = {}
    for name, member in value.items():
        if len(row) > MAX_MEMBERS:
            break
        if not isinstance(member, dict):
            row[f"{lead}{name}"] = cell_of(member)
        elif depth < MAX_DEPTH:
            row |= row_of(member, f"{lead}{name}.", depth + 1)
    return row


def cell_of(member: Any) -> str | None:
    """A member as a cell; a list of texts is one, and an empty list is an empty one."""
    if member is None:
        return None
    if not isinstance(member, list):
        return str(member)
    if any(isinstance(item, dict | list) for item in member):
        return count_of(len(member), "item")
    texts = [str(item) for item in member if item is not None]
    return ", ".join(texts) or None
