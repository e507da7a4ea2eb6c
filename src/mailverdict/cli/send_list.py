"""The files of ``--for hubspot``: the send list, and those to take off.

They are beside the output, named after it: `out.csv` has `out-hubspot.csv` and
`out-hubspot-remove.csv`. Both are CSV in UTF-8 with commas, which every importer reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

import mailverdict as mv

from ..files.readers import STDIN
from ..files.writers import create_table
from ..frames.results import Results
from ..frames.send_list import SendListMaker
from ..table.importers import find_importer
from .files import check_not_read, partial_path, stem_of
from .status import print_status


class SendListFiles:
    """The two files of a run."""

    def __init__(self, service: str, output: str) -> None:
        self.importer = find_importer(service)
        whole = Path(output)
        name = f"{stem_of(whole)}-{self.importer.name}"
        self.send_path = str(whole.with_name(f"{name}.csv"))
        self.remove_path = str(whole.with_name(f"{name}-remove.csv"))
        self.maker = SendListMaker(self.importer, None)
        self.removed = 0  # rows of the second file

    @classmethod
    def check(
        cls, service: str | None, policy: str | None, output: str | None, *others: str | None
    ) -> SendListFiles | None:
        """The files that the options name, or None; those that replace others are refused."""
        if service is None:
            return None
        if policy is None:
            raise mv.SettingsError(
                "--for is for --policy, which says who is sent: add --policy balanced"
            )
        if output is None or output == STDIN:
            raise mv.SettingsError("--for writes files beside the output: name it with --output")
        files = cls(service, output)
        for path in (files.send_path, files.remove_path):
            check_not_read(path, "--for", output, *others)
        return files

    def find_identifier(self, columns: Sequence[str], column: str) -> list[str]:
        """Look for the column that names a person; it has to be read, too."""
        unique = [name for name in columns if columns.count(name) == 1]
        identifier = self.importer.find_identifier(unique, column)
        self.maker = SendListMaker(self.importer, identifier)
        if identifier is None:
            return []
        return [str(identifier)]

    @contextmanager
    def open(self, has_failed: Callable[[], bool]) -> Iterator[Callable[[Results, pa.Array], None]]:
        """Yield the function that adds a piece; both files are complete at the end.

        Those of a run that has failed get other names, so that older files stay.
        """

        def choose(path: str) -> Path:
            if has_failed():
                return partial_path(path)
            return Path(path)

        with (
            create_table(self.send_path, choose=lambda: choose(self.send_path)) as send,
            create_table(self.remove_path, choose=lambda: choose(self.remove_path)) as remove,
        ):
            send.write(self.maker.no_rows())
            yield lambda rows, action: send.write(self.maker.add(rows, action))
            removed = self.maker.removed()
            remove.write(removed)
        self.removed = len(removed)
        self.send_path = str(choose(self.send_path))
        self.remove_path = str(choose(self.remove_path))

    def print_written(self, *, quiet: bool) -> None:
        """Print what the files hold, and where they are."""
        if quiet:
            return
        for note in self.maker.notes():
            print_status(note, "note")
        print_status(f"written: {self.send_path} ({self.maker.sent:,} to send)")
        print_status(f"written: {self.remove_path} ({self.removed:,} to take off)")
