"""Functions that are deprecated, since `breakdown` tells more.

They give what `breakdown` does not: `by_domain` counts rows by verdict and status, not people, and
both do without the flags that a policy needs. What they count with is that of reports and of
`breakdown`.
"""

from __future__ import annotations

from collections.abc import Hashable

from ..errors import SettingsError
from ..frames.results import Results
from ..table.table import Frame
from .by_operator import OperatorCounts
from .counts import count_domains, keys_of, top_domains
from .tables import CountTable


def by_domain(
    out: Frame, column: Hashable | None = None, *, top: int = 20, prefix: str | None = None
) -> Frame:
    """Count a verified column by the domain of the address.

    Deprecated: ``mailverdict.breakdown(out, "domain")`` counts people, with intervals, and the
    worst domains first.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned: a pandas, Polars or Arrow frame.
    column : hashable, optional
        The column that was verified; by default the only one.
    top : int, default 20
        How many domains, by number of rows.
    prefix : str, optional
        The prefix it was verified with, if not the default.

    Returns
    -------
    DataFrame
        Index `domain`; `rows` and one column per bucket (int64), most rows first, ties by name. For
        a Polars or Arrow frame the same kind, where `domain` is the first column.

    Raises
    ------
    ColumnError
        If the frame has no such column, or it has not been verified.
    InputError
        If a result column holds what `verify` never writes.

    Warns
    -----
    FutureWarning
        That it is deprecated.

    Examples
    --------
    >>> import warnings
    >>> import mailverdict as mv
    >>> import pandas as pd
    >>> warnings.simplefilter("ignore", FutureWarning)
    >>> df = pd.DataFrame({"email": ["a@x.example.org", "b@x.example.org", "c@y.example.org"]})
    >>> mv.by_domain(mv.verify(df, "email", validation_type="regex"), "email")["rows"].to_dict()
    {'x.example.org': 2, 'y.example.org': 1}
    """
    rows = Results(out, column, prefix, ("verdict", "status"))
    table = top_domains(count_domains(keys_of(rows), rows.buckets), top)
    domains: Frame = rows.data.convert(CountTable(table))
    return domains


def by_operator(
    out: Frame, column: Hashable | None = None, *, top: int = 20, prefix: str | None = None
) -> Frame:
    """Count a verified column by who runs the mail servers of the addresses.

    Deprecated: ``mailverdict.breakdown(out, "operator")`` has these figures, and the shares of
    people with intervals.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned: a pandas, Polars or Arrow frame, with the column `operator` or
        `mx_records`, as ``columns="all"`` has them.
    column : hashable, optional
        The column that was verified; by default the only one.
    top : int, default 20
        How many operators, by number of addresses.
    prefix : str, optional
        The prefix it was verified with, if not the default.

    Returns
    -------
    DataFrame
        Index `operator`, most addresses first, ties by name; distinct addresses (int64) in each:

        - `addresses`: all; those whose mail servers are not known are in no line
        - `clear`: the answer says whether the mailbox exists (for types without SMTP: whether the
          domain receives mail); `share` of `addresses` (float64)
        - `catch_all`: accepted by a server that accepts every address
        - `deferred`: the server asked for another attempt (greylisting)
        - `refused`: it refused the computer that checked, or the sender
        - `no_answer`: time-out, closed port, an answer that shows nothing
        - `dead`: of the clear ones those that cannot receive mail
        - `note`: where `share` is below one half, why not more is clear (object, else None). What
        the
          packaged table says of the operator is cited with its source and date.

        For a Polars or Arrow frame the same kind, where `operator` is the first column.

    Raises
    ------
    ColumnError
        If the frame has no such column, it has not been verified, or nothing shows the mail
        servers.
    InputError
        If a result column holds what `verify` never writes.
    SettingsError
        If `top` is not a number of operators.

    Warns
    -----
    FutureWarning
        That it is deprecated.

    Examples
    --------
    >>> import warnings
    >>> import mailverdict as mv
    >>> import pandas as pd
    >>> warnings.simplefilter("ignore", FutureWarning)
    >>> df = pd.DataFrame({"email": ["ada@gmail.com", "nobody@gmail.com", "ada@yahoo.com"]})
    >>> with mv.sandbox.World() as world:
    ...     ask = {"validation_type": "smtp", "backend": world.backend}
    ...     out = mv.verify(df, "email", columns="all", **ask)
    >>> mv.by_operator(out, "email")[["addresses", "clear", "share", "catch_all", "dead"]]
                     addresses  clear  share  catch_all  dead
    operator
    bigmail.example          2      2    1.0          0     1
    oldmail.example          1      0    0.0          1     0
    """
    if isinstance(top, bool) or not isinstance(top, int) or top < 0:
        raise SettingsError(f"top={top!r}: give a number of operators")
    rows = Results(out, column, prefix)
    counts = OperatorCounts()
    counts.add(rows)
    operators: Frame = rows.data.convert(CountTable(counts.table(top)))
    return operators
