"""The results of an audit: counts of a policy, filters, the table in pages, and downloads."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import ipywidgets as w
import numpy as np
import pandas as pd
from itables.widget import ITable

from ..frames.policy import POLICIES, Policy, find_policy
from .controls import LABEL, Quiet, button, choice, line, row, set_choices, show
from .listing import PAGE_ROWS, Listing, save_table
from .render import render_counts, render_head, render_hint, render_left_out, render_notice, render_saved
from .source import label_of

__all__ = ["Results"]

MOST_REASONS = 50  # offered to choose from; a service's vocabulary is open
# The browser gets one page, so it has nothing to search, sort or page in: that is done here, over all rows.
TABLE: dict[str, Any] = {
    "paging": False,
    "ordering": False,
    "showIndex": False,
    "maxBytes": 0,
    "maxColumns": 0,
    "layout": {"topStart": None, "topEnd": None, "bottomStart": None, "bottomEnd": None},
    "classes": "display compact nowrap",
    "style": "width:100%;margin:0",
    "allow_html": False,
}
NOTHING = np.empty(0, np.int64)
Callback = Callable[[Callable[[], None]], Callable[..., None]]

ESCAPING = (
    "In a CSV, a message that a spreadsheet would run as a formula gets an apostrophe; your own cells stay as they are."
)


class Results:
    """The lower half of an audit, hidden until there are results."""

    listing: Listing | None

    def __init__(
        self,
        policy: Policy | str,
        folder: Path,
        as_callback: Callback,
        run_in_background: Callable[[Callable[[], None]], None],
    ) -> None:
        first = find_policy(policy)
        self.policies = {**POLICIES, first.name: first}
        self.folder, self.listing, self.stem = folder, None, "emails"
        self.out: pd.DataFrame | None = None
        self.column: Hashable = None
        self.rows = NOTHING
        self.table: Any = None
        self.quiet = Quiet()
        self.run_in_background, self.files = run_in_background, 0
        self.make_controls(first)
        self.connect(as_callback)

    def make_controls(self, policy: Policy) -> None:
        """Make all controls, and the box that contains them."""
        self.policy = choice("Policy", list(self.policies), tooltip="What is done with which verdict")
        self.policy.value = policy.name
        self.head, self.actions = line(), line()
        self.verdict = choice("Verdict", tooltip="Show rows with this verdict only", width="15rem")
        self.reason = choice("Reason", tooltip="Show rows with this reason only", width="22rem")
        self.action = choice("Action", tooltip="Show rows with this action only", width="15rem")
        self.search = w.Text(
            description="Search",
            placeholder="words in any column shown",
            tooltip="Show rows that contain all these words",
            style=LABEL,
            layout=w.Layout(width="22rem"),
        )
        self.note = line()
        self.frame = w.Box(layout=w.Layout(overflow="auto", display="block", max_height="30rem"))
        self.frame.add_class("mv-table")
        self.back, self.on = button("Previous", "Previous page"), button("Next", "Next page")
        self.number = w.BoundedIntText(
            description="Page",
            value=1,
            min=1,
            max=1,
            tooltip="Page number",
            layout=w.Layout(width="9.5rem"),
            style=LABEL,
        )
        self.place = line()
        self.which = choice("Rows", [("all", "all"), ("as in the table", "shown")], tooltip="Rows of the file")
        self.format = choice("Format", [("CSV", "csv"), ("XLSX", "xlsx")], tooltip="Kind of file", width="12rem")
        self.make = button("Make file", "Write the rows to a file for download")
        self.saved = line()
        self.box = w.VBox(list(self.parts()))
        show(self.box, is_shown=False)

    def parts(self) -> Any:
        """The rows of controls, from top to bottom."""
        yield self.head
        yield row(self.policy, self.actions)
        yield row(self.verdict, self.reason, self.action, self.search)
        yield self.note
        yield self.frame
        yield row(self.back, self.number, self.place, self.on)
        yield w.HTML(render_head("Download"))
        yield row(self.which, self.format, self.make)
        yield w.HTML(render_hint(ESCAPING))
        yield self.saved

    def connect(self, callback: Callback) -> None:
        """Connect the controls with what they do."""
        self.policy.observe(callback(self.quiet.unless(self.decide)), "value")
        for control in (self.verdict, self.reason, self.action, self.search):
            control.observe(callback(self.quiet.unless(self.filter)), "value")
        self.number.observe(callback(self.quiet.unless(self.turn)), "value")
        self.back.on_click(callback(lambda: self.step(-1)))
        self.on.on_click(callback(lambda: self.step(1)))
        for control in (self.which, self.format):
            control.observe(callback(self.forget_file), "value")
        self.make.on_click(callback(self.save))

    def clear(self) -> None:
        """Remove the results."""
        self.listing, self.out, self.rows = None, None, NOTHING
        show(self.box, is_shown=False)

    def fill(self, out: pd.DataFrame, column: Hashable, stem: str) -> None:
        """Show a verified frame."""
        self.out, self.column, self.stem = out, column, stem
        self.head.value = render_head(f"Result for {label_of(column)}")
        self.decide()
        show(self.box, is_shown=True)

    def decide(self) -> None:
        """Apply the policy and show its actions."""
        if self.out is None:
            return
        self.listing = Listing(self.out, self.column, self.policies[self.policy.value])
        self.actions.value = render_counts(self.listing.counts("action"))
        self.note.value = render_left_out(self.listing.columns_left_out())
        self.offer_filters(self.listing)
        self.filter()

    def offer_filters(self, listing: Listing) -> None:
        """Fill the filters with values and counts; a choice that still exists is kept."""
        with self.quiet:
            for control, name in ((self.verdict, "bucket"), (self.reason, "reason"), (self.action, "action")):
                counts = {value: count for value, count in listing.counts(name).items() if count}
                options = [(f"{value} ({count:,})", value) for value, count in list(counts.items())[:MOST_REASONS]]
                set_choices(control, [(f"any ({len(listing):,} rows)", ""), *options], control.value or "")

    def filter(self) -> None:
        """Find the rows that match, and show their first page."""
        if self.listing is None:
            return
        self.rows = self.listing.find(
            bucket=self.verdict.value or "",
            reason=self.reason.value or "",
            action=self.action.value or "",
            search=self.search.value,
        )
        with self.quiet:
            self.number.max = max(1, -(-len(self.rows) // PAGE_ROWS))
            self.number.value = 1
        self.forget_file()
        self.turn()

    def step(self, by: int) -> None:
        """Go some pages forward or back, not beyond the first or last."""
        self.number.value += by

    def turn(self) -> None:
        """Show the chosen page."""
        if self.listing is None:
            return
        number, last = self.number.value, self.number.max
        self.back.disabled, self.on.disabled = number <= 1, number >= last
        self.place.value = self.whereabouts(number, last)
        self.show_page(self.listing.page(self.rows, number))

    def whereabouts(self, number: int, last: int) -> str:
        """The page and its rows, in words."""
        start = (number - 1) * PAGE_ROWS
        rows = f"{start + 1:,} to {min(start + PAGE_ROWS, len(self.rows)):,}" if len(self.rows) else "none"
        return render_hint(f"of {last:,}; rows {rows} of {len(self.rows):,}")

    def show_page(self, page: pd.DataFrame) -> None:
        """Show a page in the table, which is made at the first call."""
        if self.table is None:
            self.table = ITable(page, **TABLE)
            self.frame.children = (self.table,)
        else:
            self.table.update(page, **TABLE)

    def forget_file(self) -> None:
        """Withdraw a file that was made before: it does not contain what is shown now."""
        self.files += 1
        self.saved.value = ""

    def save(self) -> None:
        """Make the file on a thread: a large workbook takes many seconds."""
        if self.listing is None:
            return
        self.forget_file()
        frame = self.listing.to_save(self.rows if self.which.value == "shown" else None)
        number, stem, kind = self.files, f"{self.stem}-verified", self.format.value
        self.saved.value = render_notice("Writing the file…")
        self.make.disabled = True
        self.run_in_background(lambda: self.write(number, frame, stem, kind))

    def write(self, number: int, frame: pd.DataFrame, stem: str, kind: str) -> None:
        """Write the file, and offer it unless the choices have changed meanwhile."""
        made = ""
        try:
            made = render_saved(save_table(frame, stem, kind, self.folder))
        finally:
            self.make.disabled = False
            if number == self.files:
                self.saved.value = made
