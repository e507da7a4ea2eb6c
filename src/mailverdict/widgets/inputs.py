"""The first two steps of an audit: loading a list, and choosing what is done about what was found in it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import InputError, SettingsError
from ..files.table_file import ReadOptions
from ..frames.suppress import SuppressionList
from ..model.paths import user_path
from ..runs.options import default_journal
from ..table.columns import check_column
from .earlier import list_runs
from .shared_state import NOTHING_LOADED, SECTIONS, Reader, SharedState, Suppression
from .source import Source, read_file, read_frame, read_pasted, readable
from .tidy import SAFE, Choices
from .wording import count_of

__all__ = ["InputState"]


class InputState(SharedState):
    """The actions of the steps "List" and "Tidy"."""

    # --- 1 list -------------------------------------------------------------------------------------------------------

    def load(self, data: Any, column: Hashable | None = None) -> None:
        """Load a frame, or a file by its path."""
        if isinstance(data, str | Path):
            reader: Reader = partial(read_table, data, None)
        else:
            reader = partial(read_in_memory, data)
        try:
            self.set_source(self.read(reader), column)
        finally:
            self.changed(*SECTIONS)

    def read(self, reader: Reader) -> Source:
        """Read a list; what was loaded before is forgotten first, so that it cannot be taken for this one."""
        self.require_idle()
        with self.lock:
            self.forget()
            self.number += 1
            if reader is not self.reader:  # what was chosen for another file could silently give wrong characters
                self.encoding = self.has_header = self.sheet = ""
                self.sheets = ()
            self.reader = reader
        header = {"yes": True, "no": False}.get(self.has_header)
        return reader(ReadOptions(self.encoding or None, sheet=self.sheet or None, has_header=header))

    def load_file(self, path: str | Path, name: str | None = None, column: Hashable | None = None) -> None:
        """Load a file in the background; `name` is what a browser calls it."""
        self.load_by(partial(read_table, path, name), name or str(path), column)

    def load_path(self, path: str) -> None:
        """Load a file of the kernel's machine, if that is allowed."""
        if not self.allow_paths:
            raise SettingsError("files cannot be opened by their path here; drop the file on the page")
        if path.strip():
            self.load_file(path.strip())

    def load_pasted(self, text: str) -> None:
        """Load a list that was pasted."""
        self.load_by(partial(read_paste, text), "the pasted list")

    def load_by(self, reader: Reader, name: str, column: Hashable | None = None) -> None:
        self.require_idle()
        self.say("list", "")
        self.in_background(
            "list", lambda: self.set_source(self.read(reader), column), f"Reading {readable(name.rpartition('/')[2])}…"
        )

    def read_again(self, encoding: str, has_header: str, sheet: str) -> None:
        """Read the same file with another encoding, with or without a header line, or another sheet of it."""
        if self.reader is None:
            return
        self.require_idle()
        self.encoding, self.has_header, self.sheet = encoding, has_header, sheet
        self.load_by(self.reader, "the file again")

    def set_source(self, source: Source, column: Hashable | None = None) -> None:
        """Use a list, with its column chosen or guessed."""
        names: list[Any] = list(source.frame.columns)
        if column is not None:
            check_column(column, names)
        self.require_idle()
        with self.lock:
            self.forget()
            self.source, self.sheets = source, source.sheets
            self.at, self.guess = source.guess() if column is None else (names.index(column), "")
            self.say("list", "")
            rows = f"{source.name} is loaded: {count_of(len(source.frame), 'row')}"
            if self.at is None:
                self.say("list", "No column looks like e-mail addresses: choose the one that holds them.", "warned")
            else:
                self.spoken = f"{rows}, column {source.labels[self.at]}."
        self.start_pipeline()

    def choose_column(self, at: int) -> None:
        """Choose the column that holds the addresses, by its position."""
        self.require_idle()
        if self.source is None or not 0 <= at < len(self.source.labels):
            raise SettingsError(NOTHING_LOADED)
        with self.lock:
            if at == self.at:
                return
            self.at, self.guess, self.base, self.prepared, self.plan = at, "", None, None, None
            self.choices = Choices()
            self.is_refreshing, self.asked_since = False, None
            self.say("list", "")
        self.start_pipeline()

    def list_runs(self) -> None:
        """Look up the earlier runs of the journal."""
        journal = self.journal_path()
        if journal is None:
            self.say("list", "No earlier runs: nothing is kept with these settings.", "warned")
            self.changed("list")
            return

        def work() -> None:
            self.runs = list_runs(journal)
            if not self.runs:
                self.say("list", "No earlier runs are recorded. Checks of mailboxes, and checks by a service, are.")

        self.in_background("list", work, "Looking for earlier runs…")

    def journal_path(self) -> Path | None:
        """The journal whose runs are listed."""
        given = self.settings.get("journal", "auto")
        if given is None:
            return None
        return default_journal() if given == "auto" else user_path(given)

    # --- 2 tidy -------------------------------------------------------------------------------------------------------

    def set_repair(self, name: str, is_on: bool) -> None:  # noqa: FBT001 - a switch of the page
        """Turn a repair on or off; also `split`, `merge` and `suppress`."""
        self.require_idle()
        if name in ("split", "merge", "suppress"):
            setattr(self.choices, name, is_on)
        elif name in SAFE:
            (self.choices.off.discard if is_on else self.choices.off.add)(name)
        else:
            raise SettingsError(
                f"{name!r} is not a repair; there are {', '.join((*SAFE, 'split', 'merge', 'suppress'))}"
            )
        self.start_pipeline()

    def accept_suggestion(self, number: int | None = None) -> None:
        """Accept the likely typo with this number on the page, or all of them."""
        self.require_idle()
        tidy = self.current_tidy()
        if tidy is None:
            raise SettingsError(NOTHING_LOADED)
        chosen = tidy.suggestions if number is None else [tidy.suggestions[number]]
        self.choices.accept((each.written, each.meant) for each in chosen)
        self.spoken = f"{count_of(sum(each.rows for each in chosen), 'row')} corrected."
        self.start_pipeline()

    def undo(self) -> None:
        """Undo the last acceptance of likely typos."""
        self.require_idle()
        self.choices.undo()
        self.spoken = "Undone."
        self.start_pipeline()

    def show_more(self) -> None:
        """Show more likely typos."""
        self.shown_suggestions = min(self.shown_suggestions + 20, 50)
        self.changed("tidy")

    def suppress_file(self, path: Path, name: str) -> None:
        """Use a suppression list from a file."""
        self.use_suppression(lambda: path, readable(name))

    def suppress_pasted(self, text: str) -> None:
        """Use a suppression list that was pasted."""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines:
            raise InputError("nothing was pasted; paste addresses or domains, one per line")
        self.use_suppression(lambda: lines, "pasted suppression list")

    def use_suppression(self, find: Callable[[], Any], name: str) -> None:
        self.require_idle()

        def work() -> None:
            listed = SuppressionList.read(find())
            refused = listed.refused.total()
            verb = "is" if refused == 1 else "are"
            notes = [f"{count_of(refused, 'entry')} in it {verb} neither an address nor a domain."] if refused else []
            if others := ", ".join(f"{name!r:.80}" for name in listed.other_columns[:3]):
                notes.append(f"It is read from column {listed.column!r:.80}; there are addresses in {others}, too.")
            with self.lock:
                self.suppression = Suppression(name, listed, notes)
                self.suppression_number += 1
                self.choices.suppress = True
            self.say("tidy", "")
            self.start_pipeline()

        self.in_background("tidy", work, f"Reading {name}…")

    def drop_suppression(self) -> None:
        """Use no suppression list."""
        self.require_idle()
        self.suppression = None
        self.start_pipeline()


def read_table(path: str | Path, name: str | None, given: ReadOptions) -> Source:
    return read_file(path, name, given)


def read_paste(text: str, given: ReadOptions) -> Source:
    return read_pasted(text, has_header=given.has_header)


def read_in_memory(data: Any, given: ReadOptions) -> Source:
    return read_frame(data)
