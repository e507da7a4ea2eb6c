"""What is shown of a result: the rows that match, some of them in the table, files, and what changed since another one.

All that a person only looks at is here; what a person decides, and what is checked, is in `state`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import SettingsError
from ..files.readers import KINDS as FILE_KINDS
from ..model.words import ACTIONS, ValidationType, count_of
from ..reports.facts import verify_command
from ..theme import LABELS
from .earlier import compare_with, read_audit
from .exports import KINDS, rows_to_save, save_report, save_table, types_of_objects
from .listing import CORE, FILTERS, PAGE_ROWS, Listing, Rows
from .mailing import NO_WAVE, Bounced, count_operators
from .origins import Origins
from .source import readable
from .steps import ResultInfo

LONGEST_SEARCH = 200
REPORTS = {"report": "analyst", "summary": "manager"}  # for whom each is
MAX_WINDOW = 200  # rows of the table that are shown at once


class Result:
    """A result as it is looked at. The actions give what a screen reader reads out, if anything."""

    def __init__(
        self, listing: Listing, info: ResultInfo, looks: Mapping[str, Any] | None = None
    ) -> None:
        self.listing, self.info = listing, info
        self.window = (0, PAGE_ROWS)  # the first row of those found that is shown, and how many
        self.comparison: dict[str, Any] | None = None
        self.read_earlier: Callable[[], pd.DataFrame] | None = (
            None  # the audit that it is compared with
        )
        self.operators = count_operators(listing) if info.depth != ValidationType.REGEX else None
        self.origins: Origins | None = None  # where invalid addresses come from, once it is found
        self.grouped_by: int | None = None  # the position of the column whose groups are shown
        self.bounced: Bounced | None = None  # what a sender's export says
        self.wave = NO_WAVE  # the one that was made last
        if looks is not None:
            self.look_as(looks)
        self.find()

    # --- the rows that match ------------------------------------------------------------------------------------------

    def find(self, first: int = 0) -> str:
        """Find the rows that match, and show those from a position on."""
        self.found: Rows = self.listing.found()
        self.rows(first, self.window[1])
        return f"{count_of(len(self.found), 'row')} found."

    def rows(self, first: int, count: int) -> None:
        """Show some of the rows that match, from a position on."""
        self.window = (
            min(max(first, 0), max(len(self.found) - 1, 0)),
            min(max(count, 1), MAX_WINDOW),
        )

    def set_facet(self, facet: str, value: str) -> str:
        """Choose a value of a facet, or no longer."""
        if facet not in FILTERS:
            raise SettingsError(f"{facet!r} is not a facet; there are {', '.join(FILTERS)}")
        if not self.listing.can_choose(facet, value):
            raise SettingsError(
                f"no row has {value!r:.80} as its {facet}; choose a value that is shown"
            )
        self.listing.toggle(facet, value)
        return self.find()

    def clear_facets(self) -> str:
        """Show all rows."""
        self.listing.clear()
        return self.find()

    def show_groups(self, column: int) -> str:
        """Show the groups of a column."""
        self.grouped_by = column
        return ""

    def find_origins(self) -> None:
        """Find out where invalid addresses come from."""
        self.origins = Origins(self.listing)

    def search(self, text: str) -> str:
        """Show the rows that contain all words."""
        self.listing.search(text[:LONGEST_SEARCH])
        return self.find()

    def sort(self, key: str) -> str:
        """Sort by a column of the table."""
        if key not in {head["key"] for head in self.listing.heads()}:
            raise SettingsError(f"{key!r} is not a column of the table")
        self.listing.sort(key)
        return self.find()

    def looks(self) -> dict[str, Any]:
        """How the rows are looked at, as values of JSON."""
        facets = [
            [facet, value] for facet in FILTERS for value in sorted(self.listing.chosen[facet])
        ]
        return {"facets": facets, "words": self.listing.words, "sort": list(self.listing.sorted_by)}

    def look_as(self, looks: Mapping[str, Any]) -> None:
        """Look at the rows as before, where they still have such facets and columns."""
        for facet, value in looks["facets"]:
            if facet in FILTERS and self.listing.can_choose(facet, str(value)):
                self.listing.toggle(facet, str(value))
        self.listing.search(str(looks["words"]))
        key, is_reversed = looks["sort"]
        if key in {head["key"] for head in self.listing.heads()}:
            for _ in range(1 + bool(is_reversed)):
                self.listing.sort(key)

    # --- files --------------------------------------------------------------------------------------------------------

    def rows_of(self, which: str, kind: str) -> Rows:
        """The rows of a file: `which` is an action, ``everything``, ``shown``, or one of `REPORTS`."""
        if which not in (*ACTIONS, "everything", "shown", *REPORTS) or kind not in (*KINDS, "html"):
            raise SettingsError(f"{which!r} as {kind!r} is not a file that can be made")
        if which in ACTIONS:
            return np.flatnonzero(self.listing.action == ACTIONS.index(which))
        return self.found if which == "shown" else np.arange(len(self.listing.rows))

    def save(self, which: str, rows: Rows, path: Path, service: str) -> list[str]:
        """Write a file; gives what a person must know about it. `service` is the address of the one that checked."""
        if which not in REPORTS:
            return save_table(
                rows_to_save(self.listing, rows, which),
                path,
                types_of_objects(self.listing.rows.frame),
            )
        earlier = None if self.read_earlier is None else self.read_earlier()
        again = self.command_again(service)
        return save_report(self.listing, path, self.info.name, earlier, again, REPORTS[which])

    def command_again(self, service: str) -> str:
        """The command that verifies the file of the result again; empty where the list was not a file."""
        name = self.info.name
        if not name.lower().endswith(tuple(FILE_KINDS)):
            return ""
        column = str(self.listing.column)  # whole: the label of the page is cut
        options = [
            "--column",
            column,
            "--type",
            self.info.depth,
            *(("--backend", service) if service else ()),
        ]
        return verify_command(name, [*options, "--output", f"{Path(name).stem}-verified.csv"])

    # --- an earlier audit ---------------------------------------------------------------------------------------------

    def compare(self, path: Path, name: str) -> str:
        """Compare with an earlier audit, from a file; the report then compares, too."""
        column = self.listing.column
        read = partial(read_audit, path, name, column)
        self.comparison = compare_with(
            read(), readable(name), self.listing.rows.to_frame(columns=CORE), column
        )
        self.read_earlier = read
        return str(self.comparison["headline"])


def file_name(stem: str, which: str, kind: str) -> str:
    """The name of a file that is downloaded."""
    return f"{stem}-{LABELS[which].lower().replace(' ', '-') if which in ACTIONS else which}.{kind}"
