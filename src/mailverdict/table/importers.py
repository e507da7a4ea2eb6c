"""What the importers of services expect of a file: the table of `data/importers.toml`.

HubSpot finds a contact again by "Record ID" and calls the address "Email"; Mailchimp knows people
by "Email Address" alone. An `Importer` is one row of the table.
"""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cache

from ..errors import SettingsError
from .column_names import fold_text, phrases_of, read_table


@dataclass(frozen=True)
class Importer:
    """The file that a service imports."""

    name: str
    label: str  # how the service writes its name
    identifiers: tuple[str, ...]  # columns that name a person, folded; the first one counts
    address: str  # the name of the column of addresses
    remove_address: str  # the same in the file of those to unsubscribe or delete
    remove: str  # how that file is used
    source: str  # where this was read

    def find_identifier(self, labels: Iterable[Hashable], column: Hashable) -> Hashable | None:
        """The column of an export that names a person to this service; None if there is none.

        >>> find_importer("hubspot").find_identifier(["record id", "Email"], "Email")
        'record id'
        """
        by_name: dict[str, Hashable] = {}
        for label in labels:
            if label != column:
                by_name.setdefault(fold_text(label), label)
        for name in self.identifiers:
            if name in by_name:
                return by_name[name]
        return None


@cache
def importers() -> dict[str, Importer]:
    """The known importers, by name.

    >>> list(importers())
    ['hubspot', 'mailchimp', 'brevo', 'klaviyo', 'salesforce']
    """
    known = {}
    for row in read_table("importers.toml")["importer"]:
        identifiers = [fold_text(name) for name in phrases_of(row["identifiers"]) if name]
        known[row["name"]] = Importer(
            name=row["name"],
            label=row["label"],
            identifiers=tuple(identifiers),
            address=row["address"],
            remove_address=row["remove_address"],
            remove=row["remove"],
            source=row["source"],
        )
    return known


def find_importer(service: str) -> Importer:
    """The importer of a service, by its name in any case; an error names those that are known."""
    known = importers()
    name = str(service).strip().lower()
    if name in known:
        return known[name]
    similar = difflib.get_close_matches(name, known, 1)
    advice = ""
    if similar:
        advice = f"did you mean {similar[0]!r}? "
    raise SettingsError(
        f"{service!r:.60} is not a service whose importer is known: {advice}"
        f"there are {', '.join(known)}"
    )
