"""The rows of a workbook as a person reads them: who it is, the address to mail, and what to do.

Of a row with forty columns a sheet for people has

    Record ID  First Name  Address       Verdict  Why               What to do         Suggestion
    103        Cy          cy@gmial.com  Valid    no problem found  Look at it: did …  cy@gmail.com

`Address` is the repaired one: who mails from a sheet must not mail the cell as it was written.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..files.plain import to_plain
from ..frames.results import Results
from ..model.arrow import one_array
from ..model.words import MEANING
from ..table.cells import strip_texts, to_array
from ..table.column_names import Identity, identity_of
from ..table.columns import RESULT_NAMES, label_of
from ..theme import LABELS

MOST_IDENTITY = 4  # columns that say who it is
OWN_VALUES = 0.9  # of the filled cells of an identifier differ
TO_DO = {
    "send": "Send",
    "review": "Look at it",
    "retry": "Verify it again later",
    "drop": "Take it off the list",
    "unchecked": "Not checked",
}


class PersonSheet:
    """Makes the sheet in pieces; the first one decides about its columns."""

    def __init__(self) -> None:
        self.identity: list[Hashable] | None = None  # the user's columns that say who it is

    def rows(self, rows: Results) -> pa.Table:
        """The columns for a person, of all rows of a piece."""
        if self.identity is None:
            self.identity = find_identity(rows)
        buckets = rows.buckets.cast(pa.string())
        buckets = pc.coalesce(rows["verdict"], buckets).to_pylist()
        actions = rows["action"].to_pylist()
        action_whys = rows["action_why"].to_pylist()
        verdicts = [LABELS[bucket] for bucket in buckets]
        reasons = map(describe_verdict, buckets, rows.why.to_pylist())
        to_do = map(describe_action, buckets, actions, action_whys)
        columns: dict[str, Any] = {}
        for label in self.identity:
            cells = to_array(rows.data.cells(label))
            columns[str(label)] = to_plain(cells)
        columns["Address"] = strip_texts(rows.addresses)
        columns["Verdict"] = pa.array(verdicts, pa.string())
        columns["Why"] = pa.array(reasons, pa.string())
        columns["What to do"] = pa.array(to_do, pa.string())
        columns["Suggestion"] = one_array(rows["suggestion"])
        return pa.table(columns)


def find_identity(rows: Results) -> list[Hashable]:
    """The user's columns that say who it is, at most some, in the order of the table.

    They are those that are named so; of identifiers only those whose values differ, since an owner
    has one, too. Where no name says so, it is the first column of which nearly every row has a
    value of its own.
    """
    labels = list(rows.data.labels())
    ours = {label_of(rows.column, rows.prefix, name) for name in RESULT_NAMES}
    named = []
    unique = []
    for label in labels:
        if label == rows.column or label in ours or labels.count(label) > 1:
            continue
        kind = identity_of(label)
        if kind is Identity.NAME:
            named.append(label)
        elif has_own_values(rows.data.cells(label)):
            unique.append(label)
            if kind is Identity.IDENTIFIER:
                named.append(label)
    return named[:MOST_IDENTITY] or unique[:1]


def has_own_values(cells: Any) -> bool:
    """Whether nearly every row has a value of its own."""
    column = to_array(cells)
    if pa.types.is_dictionary(column.type) or pa.types.is_nested(column.type):
        return False
    filled = len(column) - column.null_count
    if pa.types.is_floating(column.type) or filled <= len(column) / 2:
        return False
    return bool(pc.count_distinct(column).as_py() >= OWN_VALUES * filled)


def describe_verdict(bucket: str, why: str | None) -> str:
    """Why a row has its verdict, in words.

    >>> describe_verdict("invalid", "no_mx_record")
    'the domain does not exist or accepts no mail'
    """
    word = why or bucket
    return MEANING.get(word, word)


def describe_action(bucket: str, action: str | None, why: str | None) -> str:
    """What to do with a row, and why if the verdict alone does not say it.

    >>> describe_action("valid", "drop", "a person decided so, whatever the policy says")
    'Take it off the list: a person decided so, whatever the policy says'
    >>> describe_action("invalid", "drop", "invalid: not a well-formed address")
    'Take it off the list'
    """
    if action is None:
        return ""
    to_do = TO_DO.get(action, action)
    if not why or why == MEANING.get(bucket) or why.startswith(f"{bucket}: "):
        return to_do
    return f"{to_do}: {why}"
