"""`diff`: what changed between two audits of one list."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from ..frames.labels import result_labels
from .summary import address_keys, buckets

__all__ = ["diff"]

NAMES = ("before", "after", "details_before", "details_after")
CHANGE_DTYPE = pd.CategoricalDtype(["added", "removed", "changed"])


def diff(old: pd.DataFrame, new: pd.DataFrame, column: Hashable, *, prefix: str | None = None) -> pd.DataFrame:
    """Compare two audits of one list, address by address.

    Parameters
    ----------
    old, new : DataFrame
        What `verify` gave, earlier and later; their rows may differ.
    column : hashable
        The column that was verified in both.
    prefix : str, optional
        The prefix they were verified with, if not the default.

    Returns
    -------
    DataFrame
        Index `address`, one row per distinct address that differs, sorted: `change` (category:
        added, removed, changed), `before` and `after` (verdict, or status where there is none),
        `details_before` and `details_after`; all texts are object, None where there is nothing.

    Raises
    ------
    ColumnError
        If a frame has no such column, or it has not been verified.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> def audit(*cells):
    ...     return mv.verify(pd.DataFrame({"email": cells}), "email", validation_type="regex")
    >>> mv.diff(audit("a@x.example", "b@x.example"), audit("a@x.example", "c@x.example"), "email")["change"].to_dict()
    {'b@x.example': 'removed', 'c@x.example': 'added'}
    """
    before, after = by_address(old, column, prefix), by_address(new, column, prefix)
    before.columns, after.columns = pd.Index(["before", "details_before"]), pd.Index(["after", "details_after"])
    both = before.join(after, how="outer").sort_index()[list(NAMES)]
    both = both.astype(object).where(both.notna(), None)
    change = pd.Series("changed", index=both.index, dtype=object)
    change = change.mask(both["before"].isna(), "added").mask(both["after"].isna(), "removed")
    same = (both["before"] == both["after"]) & (both["details_before"].eq(both["details_after"]) | no_details(both))
    both.insert(0, "change", change.astype(CHANGE_DTYPE))
    return both[~same].rename_axis(index="address")


def no_details(both: pd.DataFrame) -> pd.Series[Any]:
    return both["details_before"].isna() & both["details_after"].isna()


def by_address(out: pd.DataFrame, column: Hashable, prefix: str | None) -> pd.DataFrame:
    """Bucket and dominant reason of each distinct address; empty cells are no address."""
    details = out[result_labels(out, column, prefix, ("details",))["details"]]
    table = pd.DataFrame(
        {
            "address": address_keys(out[column]).to_numpy(),
            "bucket": buckets(out, column, prefix).astype(object).to_numpy(),
            "details": details.astype(object).to_numpy(),
        }
    )
    table = table[table["bucket"] != "missing"].dropna(subset="address")
    return table.drop_duplicates("address").set_index("address")
