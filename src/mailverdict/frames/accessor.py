"""``df.mailverdict`` and ``s.mailverdict``: the same functions, from the frame's side."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from textwrap import fill
from typing import TYPE_CHECKING, Any, Unpack

import pandas as pd

from ..model.words import count_of
from .options import VerifyOptions, show_options

if TYPE_CHECKING:
    from ..reports.report import Report
    from ..runs.plan import Plan
    from ..runs.run import Run
    from .policy import Policy, Split


class AccessorBase:
    """What both accessors show of themselves: the public names alone."""

    def __dir__(self) -> list[str]:
        """The public names alone; this is what completion offers."""
        return [name for name in vars(type(self)) if not name.startswith("_")]

    def _shown(self, what: str) -> str:
        """What the accessor belongs to, and its public names."""
        return fill(f"<mailverdict of {what}: {', '.join(dir(self))}>", 88, subsequent_indent="  ")


@pd.api.extensions.register_dataframe_accessor("mailverdict")
class FrameAccessor(AccessorBase):
    """Verify, clean, decide on and count a column of this frame; each method is the function of the same name.

    Parameters
    ----------
    frame : DataFrame
        Given by pandas.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict
    >>> df = pd.DataFrame({"email": ["ada@example.org", "ada@"]})
    >>> df.mailverdict.verify("email", validation_type="regex")["email_verdict"].tolist()
    ['valid', 'invalid']
    >>> df.mailverdict
    <mailverdict of a DataFrame of 2 rows, column 'email': by_domain, clean, contradicted,
      decide, diff, domains, duplicates, explode, outcomes, plan, report, split, start,
      summary, suppress, verify>
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def __repr__(self) -> str:
        """The rows, the column that looks like addresses, and the methods."""
        from ..errors import ColumnError  # noqa: PLC0415 - loads when first used
        from .files.readers import SAMPLE_ROWS, guess_column  # noqa: PLC0415 - loads when first used

        rows = count_of(len(self._frame), "row")
        try:
            column = guess_column({name: cells.head(SAMPLE_ROWS) for name, cells in self._frame.items()})
        except ColumnError:
            return self._shown(f"a DataFrame of {rows}")
        return self._shown(f"a DataFrame of {rows}, column {column!r:.80}")

    def plan(self, column: Hashable | list[Any], **options: Any) -> Plan:
        """Calculate what verifying a column would do and cost; see `mailverdict.plan`."""
        from .planning import plan  # noqa: PLC0415 - loads when first used

        return plan(self._frame, column, **options)

    @show_options()
    def verify(self, column: Hashable | list[Any], **options: Unpack[VerifyOptions]) -> pd.DataFrame:
        """Verify a column; see `mailverdict.verify`."""
        from .verify import verify  # noqa: PLC0415 - loads when first used

        return verify(self._frame, column, **options)

    @show_options(progress=False)
    def start(self, column: Hashable | list[Any], **options: Unpack[VerifyOptions]) -> Run[pd.DataFrame]:
        """Verify a column in the background; see `mailverdict.start`."""
        from .verify import start  # noqa: PLC0415 - loads when first used

        return start(self._frame, column, **options)

    def clean(self, column: Hashable, *, prefix: str | None = None) -> pd.DataFrame:
        """Clean a column; see `mailverdict.clean`."""
        from .clean import clean  # noqa: PLC0415 - loads when first used

        return clean(self._frame, column, prefix=prefix)

    def duplicates(self, column: Hashable, *, prefix: str | None = None) -> pd.DataFrame:
        """Find rows that reach the same mailbox; see `mailverdict.duplicates`."""
        from .duplicates import duplicates  # noqa: PLC0415 - loads when first used

        return duplicates(self._frame, column, prefix=prefix)

    def suppress(
        self, column: Hashable, against: Any, *, against_column: Hashable | None = None, prefix: str | None = None
    ) -> pd.DataFrame:
        """Mark rows that are on a suppression list; see `mailverdict.suppress`."""
        from .suppress import suppress  # noqa: PLC0415 - loads when first used

        return suppress(self._frame, column, against, against_column=against_column, prefix=prefix)

    def explode(self, column: Hashable, *, prefix: str | None = None) -> pd.DataFrame:
        """Give each address of a cell a row of its own; see `mailverdict.explode`."""
        from .explode import explode  # noqa: PLC0415 - loads when first used

        return explode(self._frame, column, prefix=prefix)

    def decide(self, column: Hashable, *, policy: Policy | str = "balanced", prefix: str | None = None) -> pd.DataFrame:
        """Add what to do with each row of a verified column; see `mailverdict.decide`."""
        from .policy import decide  # noqa: PLC0415 - loads when first used

        return decide(self._frame, column, policy=policy, prefix=prefix)

    def split(
        self, column: Hashable, *, policy: Policy | str = "balanced", prefix: str | None = None
    ) -> Split[pd.DataFrame]:
        """Split a verified frame by what to do with each row; see `mailverdict.split`."""
        from .policy import split  # noqa: PLC0415 - loads when first used

        return split(self._frame, column, policy=policy, prefix=prefix)

    def report(self, column: Hashable, path: str | os.PathLike[str] | None = None, **options: Any) -> Report:
        """Report on a verified column; see `mailverdict.report`."""
        report: Callable[..., Report] = load_report("report")
        return report(self._frame, column, path, **options)

    def diff(self, old: Any, column: Hashable, *, prefix: str | None = None) -> pd.DataFrame:
        """Compare with an earlier audit of the list; see `mailverdict.diff`."""
        diff: Callable[..., pd.DataFrame] = load_report("diff")
        return diff(old, self._frame, column, prefix=prefix)

    def summary(self, column: Hashable, *, prefix: str | None = None) -> pd.DataFrame:
        """Count a verified column; see `mailverdict.summary`."""
        summary: Callable[..., pd.DataFrame] = load_report("summary")
        return summary(self._frame, column, prefix=prefix)

    def domains(self, column: Hashable | list[Any], *, backend: Any = None, clean: bool = False) -> pd.DataFrame:
        """Look each distinct domain up in the DNS; see `mailverdict.domains`."""
        from .domains import domains  # noqa: PLC0415 - loads when first used

        out: pd.DataFrame = domains(self._frame, column, backend=backend, clean=clean)
        return out

    def outcomes(
        self, column: Hashable, bounces: Any, *, mailed: Any = None, prefix: str | None = None
    ) -> pd.DataFrame:
        """Count hard bounces by verdict, reason and action; see `mailverdict.outcomes`."""
        outcomes: Callable[..., pd.DataFrame] = load_report("outcomes")
        return outcomes(self._frame, column, bounces, mailed=mailed, prefix=prefix)

    def contradicted(
        self, column: Hashable, bounces: Any, *, mailed: Any = None, prefix: str | None = None
    ) -> pd.DataFrame:
        """List the rows whose verdict was wrong; see `mailverdict.contradicted`."""
        contradicted: Callable[..., pd.DataFrame] = load_report("contradicted")
        return contradicted(self._frame, column, bounces, mailed=mailed, prefix=prefix)

    def by_domain(self, column: Hashable, *, top: int = 20, prefix: str | None = None) -> pd.DataFrame:
        """Count a verified column by domain; see `mailverdict.by_domain`."""
        by_domain: Callable[..., pd.DataFrame] = load_report("by_domain")
        return by_domain(self._frame, column, top=top, prefix=prefix)


def load_report(name: str) -> Callable[..., Any]:
    """Load a function of `reports` through the public names, since this layer must not import that one."""
    import mailverdict  # noqa: PLC0415 - the functions load when first used

    function: Callable[..., Any] = getattr(mailverdict, name)
    return function


@pd.api.extensions.register_series_accessor("mailverdict")
class SeriesAccessor(AccessorBase):
    """Verify or clean this Series of addresses, or split its addresses at the ``@``.

    Parameters
    ----------
    series : Series
        Given by pandas.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict
    >>> s = pd.Series(["Ada@Example.org", None])
    >>> s.mailverdict.domain.tolist()
    ['example.org', <NA>]
    """

    def __init__(self, series: pd.Series[Any]) -> None:
        self._series = series

    def __repr__(self) -> str:
        """The name, the rows and the methods."""
        name = "" if self._series.name is None else f" {self._series.name!r:.80}"
        return self._shown(f"the Series{name} of {count_of(len(self._series), 'row')}")

    def plan(self, **options: Any) -> Plan:
        """Calculate what verifying the cells would do and cost; see `mailverdict.plan`."""
        from .planning import plan  # noqa: PLC0415 - loads when first used

        return plan(self._series, **options)

    @show_options(progress=False)
    def start(self, **options: Unpack[VerifyOptions]) -> Run[pd.DataFrame]:
        """Verify the cells in the background; see `mailverdict.start`."""
        from .verify import start  # noqa: PLC0415 - loads when first used

        return start(self._series, **options)

    @show_options()
    def verify(self, **options: Unpack[VerifyOptions]) -> pd.DataFrame:
        """Verify the cells; see `mailverdict.verify`."""
        from .verify import verify  # noqa: PLC0415 - loads when first used

        return verify(self._series, **options)

    def clean(self, *, prefix: str | None = None) -> pd.DataFrame:
        """Clean the cells; see `mailverdict.clean`."""
        from .clean import clean  # noqa: PLC0415 - loads when first used

        return clean(self._series, prefix=prefix)

    def duplicates(self, *, prefix: str | None = None) -> pd.DataFrame:
        """Find cells that reach the same mailbox; see `mailverdict.duplicates`."""
        from .duplicates import duplicates  # noqa: PLC0415 - loads when first used

        return duplicates(self._series, prefix=prefix)

    def suppress(
        self, against: Any, *, against_column: Hashable | None = None, prefix: str | None = None
    ) -> pd.DataFrame:
        """Mark cells that are on a suppression list; see `mailverdict.suppress`."""
        from .suppress import suppress  # noqa: PLC0415 - loads when first used

        return suppress(self._series, against=against, against_column=against_column, prefix=prefix)

    @property
    def domain(self) -> pd.Series[Any]:
        """What follows the last ``@``, in lower case; NA where there is none."""
        from .clean import split_address  # noqa: PLC0415 - loads when first used

        return split_address(self._series)["domain"]

    @property
    def local(self) -> pd.Series[Any]:
        """What stands before the last ``@``; NA where there is none."""
        from .clean import split_address  # noqa: PLC0415 - loads when first used

        return split_address(self._series)["local"]

    @property
    def is_well_formed(self) -> pd.Series[Any]:
        """Whether each cell is a well-formed address; NA for empty cells. Uses no network."""
        from .verify import start  # noqa: PLC0415 - loads when first used

        # `verify` would warn that some cells can be cleaned, which is not asked for here
        out = start(self._series, validation_type="regex", columns=["verdict"]).result()
        return (out["verdict"] == "valid").astype("boolean").mask(out["verdict"].isna())
