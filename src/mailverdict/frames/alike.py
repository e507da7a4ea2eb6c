"""Rows that are treated and counted alike: what decides about a row, and each kind of row once.

A million rows have a few hundred kinds. `row_facts` gives the facts of each row as columns,
`group_alike` numbers the kinds, and policies, counts, the page and waves then look at each kind
once:

    bucket   why        role   suppressed  ...      kind
    valid               false                       0
    risky    catch_all  true                        1
    valid               false                       0
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..model.arrow import map_distinct_texts
from ..model.words import FLAGS, SEVERAL_ADDRESSES, Verdict
from .results import Results

# A note on a frame: whether rows whose mailbox is in an earlier row are dropped.
DROPS_DUPLICATES = "drops_duplicates"
REMARK = "remark"  # the repair that takes away words which ask for no mail
REPEATED = "the same mailbox "  # how `action_why` begins where another row of the mailbox is sent


class Alike(NamedTuple):
    """What rows that are treated and counted alike have in common.

    None where the frame does not say.
    """

    bucket: str  # verdict, or status where there is none
    why: str | None = None
    role: bool | None = None
    disposable: bool | None = None
    disposable_suspected: bool | None = None  # the list and the mail server contradict each other
    free: bool | None = None
    spamtrap: bool | None = None
    catch_all: bool | None = None
    protected: bool | None = None
    is_suggested: bool = False
    has_remark: bool | None = False  # words in the cell ask for no mail
    suppressed: bool | None = None
    is_repeated: bool | None = False  # the mailbox is in an earlier row, and such rows are dropped
    # Of a person: send, remove, suggestion; or waiting, if that is not verified yet.
    decision: str | None = None
    is_placeholder: bool = False  # the address stands for a missing one; only with a policy
    advice: str | None = None  # about a malformed cell: clean, explode, typo or unclear
    # Only in counts:
    source: str | None = None
    # Names of the repairs, joined by ";", where the verdict is that of a repaired address.
    change: str | None = None
    # The verdict is that of a repaired address, and the cell was malformed.
    is_rescued: bool = False
    # Only with a policy:
    action: str | None = None
    # What decides about the action besides the verdict, or the advice about a malformed cell.
    cause: str | None = None
    # To `DID_YOU_MEAN` and `REMARKED` a text of the row is added; empty: the advice about it.
    action_why: str = ""

    @property
    def line(self) -> str:
        """The line of a summary: the bucket, but for cells with several addresses."""
        if self.why == SEVERAL_ADDRESSES:
            return SEVERAL_ADDRESSES
        return self.bucket

    @property
    def reason(self) -> str | None:
        """Why the verdict is not valid."""
        if self.bucket in (Verdict.RISKY, Verdict.INVALID, Verdict.UNKNOWN):
            return self.why
        return None


def row_facts(rows: Results) -> dict[str, pa.Array]:
    """The facts of each row that no policy is needed for, by the fields of `Alike`."""

    def names_remark(change: str) -> bool:
        return REMARK in change.split(";")

    facts = {
        "bucket": rows.buckets,
        "why": rows.why,
        "disposable_suspected": rows["disposable_suspected"],
        "is_suggested": rows["suggestion"].is_valid(),
        "has_remark": map_distinct_texts(names_remark, rows.change, pa.bool_()),
        "suppressed": rows["suppressed"],
        "decision": rows.decision,
    }
    for flag in FLAGS:
        facts[flag] = rows[flag]
    drops_duplicates = rows.data.notes().get(DROPS_DUPLICATES)
    if drops_duplicates:
        facts["is_repeated"] = rows["duplicate_of"].is_valid()
    elif drops_duplicates is None and "action_why" in rows:  # a file has no notes, but words
        facts["is_repeated"] = pc.starts_with(rows["action_why"], REPEATED).fill_null(False)
    return facts


def group_alike(facts: Mapping[str, pa.Array]) -> tuple[npt.NDArray[np.intp], list[Alike]]:
    """For each row the number of its kind, whose rows have the same facts; and these."""
    kinds = np.zeros(len(facts["bucket"]), np.int64)
    size = 1  # numbers below it are possible
    for values in facts.values():
        if values.null_count == len(values):
            continue
        coded = values.dictionary_encode()
        missing = len(coded.dictionary)
        width = missing + 1
        if size * width > np.iinfo(np.int64).max:
            kinds, distinct = pd.factorize(kinds)
            size = len(distinct)
        kinds = kinds * width + coded.indices.fill_null(missing).to_numpy()
        size *= width
    kinds, distinct = pd.factorize(kinds)
    rows = np.arange(len(kinds))
    first = np.empty(len(distinct), np.int64)  # the first row of each kind
    first[kinds[::-1]] = rows[::-1]
    examples = pa.table(dict(facts)).take(first)
    return kinds, [Alike(**example) for example in examples.to_pylist()]
