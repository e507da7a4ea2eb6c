"""What is shown of a result.

The rows that match, some of them in the table, files, and what changed since another result.

Earlier results are the runs that a journal remembers, and files that were saved before. All that a
person only looks at is here; what a person decides, and what is checked, is in `state`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode

import numpy as np
import pandas as pd
import pyarrow as pa

from ..errors import ColumnError, InputError, SettingsError
from ..files.readers import KINDS as FILE_KINDS
from ..frames.reading import Reading
from ..frames.results import Results, with_core
from ..frames.verify import describe_origin
from ..model.words import ACTIONS, ValidationType, count_of
from ..reports.counts import checked_days, validation_types
from ..reports.facts import verify_command
from ..reports.summary import diff
from ..reports.wording import CHECKS, another_check, days_of_earlier
from ..runs.journal.journal import Journal
from ..runs.journal.recall import RecordedRun, parse_key
from ..table.columns import COLUMNS, REPAIR_COLUMNS, SUPPRESS_COLUMNS
from ..table.importers import find_importer, importers
from ..table.overwrite import find_verified, name_columns
from ..table.result_columns import ResultColumns
from ..table.table import Table
from ..theme import LABELS
from .choices import Choices
from .exports import KINDS, rows_to_save, save_report, save_table, types_of_objects
from .listing import CORE, FILTERS, PAGE_ROWS, AuditedRows, Listing, Rows
from .mailing import NO_WAVE, Bounced, Origins, count_operators
from .source import TYPES, read_file, readable
from .steps import ResultInfo, TidyColumn
from .wording import VERDICT_LABELS, date_text

# --- earlier audits -------------------------------------------------------------------------------


MAX_RUNS = 20
MAX_SHOWN = 50  # addresses that changed
MAX_MOVES = 20  # from a verdict to another one
CHANGES = {"added": "New in the list", "removed": "No longer in the list"}


def list_runs(journal: Path) -> list[RecordedRun]:
    """The last runs of a journal; none where there is no file, which is not created."""
    if not journal.exists():
        return []
    with Journal(journal) as opened:
        return [run for run in opened.runs(MAX_RUNS) if depth_of_run(run)]


def describe_run(run: RecordedRun) -> dict[str, str]:
    """A run for the page."""
    check = CHECKS[ValidationType(depth_of_run(run))]
    return {
        "when": date_text(datetime.fromtimestamp(run.last, UTC)),
        "what": f"{count_of(run.settled, 'entry')}, {check}",
        "where": place_of_run(run),
    }


def depth_of_run(run: RecordedRun) -> str:
    """How deep it checked; empty if that is not known."""
    depth, _ = parse_key(run.key)
    return depth


def place_of_run(run: RecordedRun) -> str:
    """Who checked."""
    _, service = parse_key(run.key)
    return readable(service) or "this computer"


def open_run(journal: Path, run: RecordedRun) -> AuditedRows:
    """The addresses of an earlier run with their answers; nothing is asked."""
    with Journal(journal) as opened:
        answers = opened.answers_of(run)
    if not len(answers):
        raise InputError(
            "this run has no answers any more: later runs asked for all its addresses again"
        )
    texts = answers["email"].combine_chunks()
    frame = pd.DataFrame({"email": texts.to_pandas(types_mapper=TYPES.get)})
    read = TidyColumn(frame["email"]).addresses(Choices())
    data = Table(frame, "email")
    columns = (*COLUMNS, *REPAIR_COLUMNS)
    labels = name_columns(data, None, columns)
    results = ResultColumns(dict(zip(labels, columns, strict=True)))
    note = describe_origin(ValidationType(depth_of_run(run)), "journal")
    reading = Reading([data], [results], read, texts, note)
    return AuditedRows.of_run(reading, answers)


def read_audit(path: Path, name: str, column: Hashable) -> pd.DataFrame:
    """The file of an earlier audit, with the names of the result columns of `column`."""
    old = read_file(path, name).frame
    then = verified_column(old, column)
    if then is None:
        raise InputError(
            f"{readable(name)} is not a result of an earlier audit: it has no verdict column. "
            "Give a file that was downloaded here as “Everything”"
        )
    new_names = {}
    for label in old.columns:
        if label == then or str(label).startswith(f"{then}_"):
            new_names[label] = f"{column}{label[len(then) :]}"
    renamed = old[list(new_names)].rename(columns=new_names)
    table = pa.Table.from_pandas(renamed, preserve_index=False)
    whole: pd.DataFrame = with_core(table, column, None).to_pandas()
    rows = Results(whole, column, None, ("verdict", "status"))
    for result in (*CORE, *SUPPRESS_COLUMNS):
        _ = rows[result.name]  # an error for what is not a result
    return whole


def compare_with(
    old: pd.DataFrame, name: str, new: pd.DataFrame, column: Hashable
) -> dict[str, Any]:
    """What changed since an earlier audit, as figures and the first addresses that differ."""
    changed = diff(old, new, column)
    has_other_verdict = (changed["change"] == "changed") & (changed["before"] != changed["after"])
    addresses = []
    for address, row in changed[has_other_verdict].head(MAX_SHOWN).iterrows():
        shown = readable(str(address), 80)
        addresses.append({"address": shown, "before": row["before"], "after": row["after"]})
    then = Results(old, column, None)
    now = Results(new, column, None)
    since = f"since {name} ({days_of_earlier(checked_days(then))})"
    different = another_check(validation_types(then), validation_types(now))
    return {
        "name": name,
        "headline": f"{count_changes(changed)} {since}. {different}".strip(),
        "moves": describe_moves(changed)[:MAX_MOVES],
        "addresses": addresses,
    }


def count_changes(changed: pd.DataFrame) -> str:
    """How many addresses changed, are new and are gone."""
    counts = changed["change"].value_counts()
    words = {
        "changed": ("address changed", "addresses changed"),
        "added": ("address is new", "addresses are new"),
        "removed": ("address is gone", "addresses are gone"),
    }
    parts = []
    for key, (one, several) in words.items():
        count = int(counts.get(key, 0))
        if count:
            parts.append(count_of(count, one, several))
    return ", ".join(parts) or "Nothing changed"


def describe_moves(changed: pd.DataFrame) -> list[dict[str, Any]]:
    """How many addresses changed from which verdict to which, the most frequent first."""
    groups = changed.groupby(["change", "before", "after"], dropna=False, observed=True)
    moves = []
    for key, count in groups.size().sort_values(ascending=False).items():
        change, before, after = cast("tuple[str, Any, Any]", key)
        detail = ""
        if change == "added":
            what = CHANGES[change]
            detail = verdict_label(after)
        elif change == "removed":
            what = CHANGES[change]
            detail = verdict_label(before)
        elif before == after:
            what = f"{verdict_label(after)}, for another reason"
        else:
            what = f"{verdict_label(before)} → {verdict_label(after)}"
        move = {
            "what": what,
            "detail": detail,
            "rows": int(count),
            "verdict": after if isinstance(after, str) else "",
        }
        moves.append(move)
    return moves


def verdict_label(word: Any) -> str:
    if not isinstance(word, str):
        return ""
    return VERDICT_LABELS.get(word, word)


def verified_column(frame: pd.DataFrame, column: Hashable) -> Any:
    """The column that was verified in a table: the same as now, the only one, or None."""
    if not isinstance(column, str):
        return None
    for prefix in (f"{column}_", None):
        with suppress(ColumnError):
            return find_verified(frame, prefix)[0]
    return None


# --- a result -------------------------------------------------------------------------------------


LONGEST_SEARCH = 200
LONGEST_ADDRESS = 4_000  # characters of the query of a page
REPORTS = {"report": "analyst", "summary": "manager"}  # for whom each is
MAX_WINDOW = 200  # rows of the table that are shown at once


class Result:
    """A result as it is looked at. The actions give what a screen reader reads out, if anything."""

    def __init__(
        self, listing: Listing, info: ResultInfo, looks: Mapping[str, Any] | None = None
    ) -> None:
        self.listing = listing
        self.info = info
        self.window = (0, PAGE_ROWS)  # the first row of those found that is shown, and how many
        self.service = ""  # for whose importer the send list is made; empty: for a spreadsheet
        self.format = KINDS[0]  # of files
        self.comparison: dict[str, Any] | None = None
        # Gives the audit that it is compared with.
        self.read_earlier: Callable[[], pd.DataFrame] | None = None
        self.operators: dict[str, Any] | None = None
        if info.depth != ValidationType.REGEX:
            self.operators = count_operators(listing)
        self.origins: Origins | None = None  # where invalid addresses come from, once it is found
        self.grouped_by: int | None = None  # the position of the column whose groups are shown
        self.bounced: Bounced | None = None  # what a sender's export says
        self.wave = NO_WAVE  # the one that was made last
        if looks is not None:
            self.look_as(looks)
        self.find()

    # --- the rows that match ----------------------------------------------------------------------

    def find(self, first: int = 0) -> str:
        """Find the rows that match, and show those from a position on."""
        self.found: Rows = self.listing.found()
        self.rows(first, self.window[1])
        return f"{count_of(len(self.found), 'row')} found."

    def rows(self, first: int, count: int) -> None:
        """Show some of the rows that match, from a position on."""
        last = max(len(self.found) - 1, 0)
        first = min(max(first, 0), last)
        count = min(max(count, 1), MAX_WINDOW)
        self.window = (first, count)

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
        if not self.has_head(key):
            raise SettingsError(f"{key!r} is not a column of the table")
        self.listing.sort(key)
        return self.find()

    def has_head(self, key: str) -> bool:
        """Whether the table has a column."""
        return any(head["key"] == key for head in self.listing.heads())

    def save_as(self, service: str, format: str) -> str:  # noqa: A002 - as the page calls it
        """Choose for what service and in what format files are made."""
        if service:
            find_importer(service)
        if format not in KINDS:
            raise SettingsError(f"{format!r} is not a format; there are {', '.join(KINDS)}")
        self.service = service
        self.format = format
        return ""

    def looks(self) -> dict[str, Any]:
        """How the rows are looked at and saved, as values of JSON."""
        facets = []
        for facet in FILTERS:
            facets += [[facet, value] for value in sorted(self.listing.chosen[facet])]
        return {
            "facets": facets,
            "words": self.listing.words,
            "sort": list(self.listing.sorted_by),
            "service": self.service,
            "format": self.format,
        }

    def address(self) -> str:
        """The same as the query of an address, so that a page can be opened as it was.

        Empty for all rows.
        """
        looks = self.looks()
        fields = list(map(tuple, looks["facets"]))
        if looks["words"]:
            fields.append(("words", looks["words"]))
        key, is_reversed = looks["sort"]
        if key:
            fields.append(("sort", key))
        if is_reversed:
            fields.append(("order", "descending"))
        address = f"?{urlencode(fields)}"
        if not fields or len(address) > LONGEST_ADDRESS:
            return ""
        return address

    def look_at(self, address: str) -> str:
        """Show the rows of the address of a page, as far as this list has them."""
        fields = parse_qsl(address[:LONGEST_ADDRESS].removeprefix("?"))
        named = dict(fields)
        is_reversed = named.get("order") == "descending"
        looks = {
            "facets": [field for field in fields if field[0] in FILTERS],
            "words": named.get("words", "")[:LONGEST_SEARCH],
            "sort": [named.get("sort", ""), is_reversed],
        }
        self.listing.clear()
        self.listing.forget_order()
        self.look_as(looks)
        return self.find()

    def look_as(self, looks: Mapping[str, Any]) -> None:
        """Look at the rows as before, where they still have such facets and columns.

        An address, and an audit of an earlier release, do not say how files are made.
        """
        listing = self.listing
        if looks.get("service") in importers():
            self.service = looks["service"]
        if looks.get("format") in KINDS:
            self.format = looks["format"]
        for facet, name in looks["facets"]:
            value = str(name)
            if facet in FILTERS and listing.can_choose(facet, value):
                listing.toggle(facet, value)
        listing.search(str(looks["words"]))
        key, is_reversed = looks["sort"]
        if self.has_head(key):
            listing.sort(key)
            if is_reversed:
                listing.sort(key)

    # --- files ------------------------------------------------------------------------------------

    def rows_of(self, which: str, kind: str) -> Rows:
        """The rows of a file.

        `which` is an action, ``everything``, ``shown``, or one of `REPORTS`.
        """
        files = (*ACTIONS, "everything", "shown", *REPORTS)
        if which not in files or kind not in (*KINDS, "html"):
            raise SettingsError(f"{which!r} as {kind!r} is not a file that can be made")
        if which in ACTIONS:
            return np.flatnonzero(self.listing.action == ACTIONS.index(which))
        if which == "shown":
            return self.found
        return np.arange(len(self.listing.rows))

    def save(self, which: str, rows: Rows, path: Path, service: str, kept: str = "") -> list[str]:
        """Write a file; gives what a person must know about it.

        `service` is the address of the one that checked, and `kept` says how long clear answers are
        kept.
        """
        if which not in REPORTS:
            types = types_of_objects(self.listing.rows.frame)
            return save_table(rows_to_save(self.listing, rows, which), path, types)
        earlier = None
        if self.read_earlier is not None:
            earlier = self.read_earlier()
        again = self.command_again(service)
        audience = REPORTS[which]
        return save_report(self.listing, path, self.info.name, earlier, again, audience, kept)

    def command_again(self, service: str) -> str:
        """The command that verifies the file of the result again.

        Empty where the list was not a file.
        """
        name = self.info.name
        if not name.lower().endswith(tuple(FILE_KINDS)):
            return ""
        column = str(self.listing.column)  # whole: the label of the page is cut
        options = ["--column", column, "--type", self.info.depth]
        if service:
            options += ["--backend", service]
        options += ["--output", f"{Path(name).stem}-verified.csv"]
        return verify_command(name, options)

    # --- an earlier audit -------------------------------------------------------------------------

    def compare(self, path: Path, name: str) -> str:
        """Compare with an earlier audit, from a file; the report then compares, too."""
        column = self.listing.column
        read = partial(read_audit, path, name, column)
        frame = self.listing.rows.to_frame(columns=CORE)
        self.comparison = compare_with(read(), readable(name), frame, column)
        self.read_earlier = read
        return str(self.comparison["headline"])


def file_name(stem: str, which: str, kind: str) -> str:
    """The name of a file that is downloaded."""
    ending = which
    if which in ACTIONS:
        ending = LABELS[which].lower().replace(" ", "-")
    return f"{stem}-{ending}.{kind}"
