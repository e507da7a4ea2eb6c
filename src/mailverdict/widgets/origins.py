"""Where the invalid addresses of a result come from: what its other columns say, for the page and the report.

What a policy or a person decides does not change it, so that it is found once for each result.
"""

from __future__ import annotations

from typing import Any

from ..frames.policy import POLICIES, read_decided
from ..model.words import percent
from ..reports.breakdown import RankTable, group_order, headline, other_sentences
from ..reports.differences import elsewhere, wilson_intervals
from ..reports.groups import Groups, people_in, people_that
from ..reports.origins import ListCounts, rank, shown_name
from ..table.table import Table
from .listing import CORE, Listing, group_value
from .source import printable_label, short_text

MAX_SENTENCES = 12
MAX_GROUPS = 12  # of a column that are shown at once
LONGEST = 200


def count_origins(listing: Listing, *, is_decided: bool = False) -> ListCounts:
    """The people of a result by its other columns; with `is_decided` as policy and decisions have it."""
    rows, column = listing.rows, listing.column
    own = [listing.address_at, *listing.own_columns]
    table = Table(rows.frame.iloc[:, own], column)
    counts = ListCounts(listing.policy if is_decided else POLICIES["balanced"])
    if is_decided:
        counts.add(read_decided(rows.to_frame(columns=CORE), column, None), table)
    else:
        counts.add(rows.results(), table)
    return counts


class Origins:
    """What the other columns of a result say, and the groups of the one that is looked at."""

    def __init__(self, listing: Listing) -> None:
        counts = count_origins(listing)
        self.findings = rank(counts, "invalid")
        self.table = RankTable.of(self.findings, counts, "invalid")
        names: list[Any] = list(listing.rows.frame.columns)
        self.place_of = {finding.name: names.index(finding.name) for finding in self.findings}
        self.shown = [finding for finding in self.findings if finding.groups is not None]

    def to_json(self, listing: Listing, chosen: int | None) -> dict[str, Any] | None:
        """What the page shows; `chosen` is the position of a column. None where there is nothing to look at."""
        if not self.shown:
            return None
        by_place = {self.place_of[finding.name]: finding for finding in self.shown}
        looked_at = by_place.get(-1 if chosen is None else chosen, self.shown[0])
        at = self.place_of[looked_at.name]
        pressed = listing.chosen["group"]
        found = []
        for finding in self.shown:
            for text, group in zip((finding.worst, finding.best), finding.ends, strict=True):
                if finding.is_found and text is not None and finding.groups is not None:
                    value = group_value(self.place_of[finding.name], finding.groups.labels[group])
                    found.append(
                        {"id": value, "text": short_text(text, LONGEST), "on": value in pressed}
                    )
        assert looked_at.groups is not None
        rest = other_sentences(self.table)
        return {
            "headline": f"{headline(self.table)}.",
            "found": found[:MAX_SENTENCES],
            "rest": [short_text(f"{line[:1].upper()}{line[1:]}.", 2 * LONGEST) for line in rest],
            "columns": [
                {"id": place, "label": printable_label(finding.name)}
                for place, finding in by_place.items()
            ],
            "column": at,
            "name": short_text(shown_name(looked_at.name), LONGEST),
            "groups": groups_part(looked_at.groups, at, pressed),
            "more": max(len(looked_at.groups.labels) - MAX_GROUPS, 0),
        }


def groups_part(groups: Groups, at: int, pressed: set[str]) -> list[dict[str, Any]]:
    """The groups of a column, each with its figures; pressed ones filter the rows."""
    people = people_in(groups.counts)
    bad = people_that(groups.counts, "invalid")
    low, high = wilson_intervals(bad, people)
    others = elsewhere(people, bad)
    order = [place for place in group_order(groups, "invalid") if people[place]][:MAX_GROUPS]
    largest = max((float(bad[place] / people[place]) for place in order), default=0.0) or 1.0
    parts = []
    for place in order:
        value = group_value(at, groups.labels[place])
        share = float(bad[place] / people[place])
        parts.append(
            {
                "id": value,
                "label": short_text(groups.labels[place], 80),
                "share": share / largest,
                "percent": percent(int(bad[place]), int(people[place])),
                "interval": f"{low[place]:.1%} to {high[place]:.1%}",
                "people": f"{int(people[place]):,}",
                "elsewhere": "" if others[place] != others[place] else f"{others[place]:.1%}",
                "on": value in pressed,
            }
        )
    return parts
