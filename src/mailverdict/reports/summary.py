"""The plain summary that everything else shows: counts and shares, by verdict and by domain."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd
import pyarrow as pa

from ..frames.clean import row_index, split_address
from ..frames.columns import as_text
from ..frames.intake import read_values
from ..frames.labels import result_labels
from ..model.address import identities
from ..model.words import Status, Verdict

__all__ = ["BUCKETS", "buckets", "by_domain", "summary"]

# The five buckets of the contract, then what has not been processed or was not there.
BUCKETS = (*map(str, Verdict), str(Status.ERROR), str(Status.PENDING), str(Status.MISSING))


def buckets(out: pd.DataFrame, column: Hashable, prefix: str | None) -> pd.Series[Any]:
    """Per row the verdict where there is one, else the status."""
    labels = result_labels(out, column, prefix, ("verdict", "status"))
    verdict, status = out[labels["verdict"]].astype(object), out[labels["status"]].astype(object)
    bucket = verdict.where(status == Status.DONE, status)
    return pd.Series(pd.Categorical(bucket, categories=list(BUCKETS)), index=out.index)


def summary(out: pd.DataFrame, column: Hashable, *, prefix: str | None = None) -> pd.DataFrame:
    """Count a verified column: five buckets, and what is pending or missing.

    Parameters
    ----------
    out : DataFrame
        What `verify` gave.
    column : hashable
        The column that was verified.
    prefix : str, optional
        The prefix it was verified with, if not the default.

    Returns
    -------
    DataFrame
        Index `bucket`: valid, risky, invalid, unknown, error, pending, missing, always all seven.
        `rows` (int64), `share` of all rows (float64), `addresses` (distinct, int64) and `top_reason`
        (object, the most frequent dominant reason; None for none).

    Raises
    ------
    ColumnError
        If the frame has no such column, or it has not been verified.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> df = pd.DataFrame({"email": ["ada@example.org", "Ada@", None, "bob@example.org"]})
    >>> mv.summary(mv.verify(df, "email", validation_type="regex"), "email")[["rows", "share"]]
             rows  share
    bucket
    valid       2   0.50
    risky       0   0.00
    invalid     1   0.25
    unknown     0   0.00
    error       0   0.00
    pending     0   0.00
    missing     1   0.25
    """
    bucket = buckets(out, column, prefix)
    details = out[result_labels(out, column, prefix, ("details",))["details"]]
    counts = bucket.value_counts().reindex(list(BUCKETS), fill_value=0)
    keys = address_keys(out[column])
    addresses = keys.groupby(bucket.to_numpy(), observed=False).nunique().reindex(list(BUCKETS), fill_value=0)
    top = {name: top_value(details[(bucket == name).to_numpy()]) for name in BUCKETS}
    table = pd.DataFrame(
        {
            "rows": counts.astype("int64"),
            "share": counts / max(len(out), 1),
            "addresses": addresses.astype("int64"),
            "top_reason": pd.Series(top, dtype=object),
        }
    )
    return table.rename_axis(index="bucket")


def address_keys(cells: pd.Series[Any]) -> pd.Series[Any]:
    """By position, what makes two cells one address; NA where there is no text."""
    intake = read_values(cells)
    distinct = identities(intake.texts).dictionary_encode()
    return pd.Series(as_text(pa.chunked_array([distinct.dictionary.take(row_index(distinct.indices, intake))])))


def top_value(values: pd.Series[Any]) -> str | None:
    counts = values.dropna().value_counts()
    return None if counts.empty else str(counts.index[0])


def by_domain(out: pd.DataFrame, column: Hashable, *, top: int = 20, prefix: str | None = None) -> pd.DataFrame:
    """Count a verified column by the domain of the address.

    Parameters
    ----------
    out : DataFrame
        What `verify` gave.
    column : hashable
        The column that was verified.
    top : int, default 20
        How many domains, by number of rows.
    prefix : str, optional
        The prefix it was verified with, if not the default.

    Returns
    -------
    DataFrame
        Index `domain`; `rows` and one column per bucket (int64), most rows first, ties by name.

    Raises
    ------
    ColumnError
        If the frame has no such column, or it has not been verified.

    Examples
    --------
    >>> import mailverdict as mv
    >>> import pandas as pd
    >>> df = pd.DataFrame({"email": ["a@x.example.org", "b@x.example.org", "c@y.example.org"]})
    >>> mv.by_domain(mv.verify(df, "email", validation_type="regex"), "email")["rows"].to_dict()
    {'x.example.org': 2, 'y.example.org': 1}
    """
    bucket = buckets(out, column, prefix).reset_index(drop=True)
    domain = split_address(out[column])["domain"].astype(object).reset_index(drop=True)
    table = pd.crosstab(domain, bucket, dropna=True).reindex(columns=list(BUCKETS), fill_value=0)
    table.insert(0, "rows", table.sum(axis=1))
    table = table.sort_index().sort_values("rows", ascending=False, kind="stable").head(top)
    return table.astype("int64").rename_axis(index="domain", columns=None)
