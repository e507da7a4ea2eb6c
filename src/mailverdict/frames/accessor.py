"""``df.mailverdict`` and ``s.mailverdict``: the same functions, from the frame's side."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from textwrap import fill
from typing import Any

import pandas as pd

from ..model.words import count_of

# Functions of the package that are methods of both accessors, and of frames alone.
ON_CELLS = ("clean", "duplicates", "estimate", "plan", "start", "suppress", "verify")
ON_FRAMES = (
    "breakdown",
    "contradicted",
    "decide",
    "explode",
    "lookup_domains",
    "outcomes",
    "report",
    "split",
    "summary",
)
DEPRECATED = (
    "by_domain",
    "by_operator",
    "domains",
)  # methods of frames that completion does not find


class Accessor:
    """Functions of the package as methods: the data is their first argument."""

    _methods: tuple[str, ...]  # functions that are methods
    _others: tuple[str, ...]  # what else completion finds
    _hidden: tuple[str, ...] = ()  # methods that it does not find
    _arguments: tuple[Any, ...]  # the first ones of each function

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The function of the same name with its data."""
        if name not in (*self._methods, *self._hidden):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        # The functions load when they are first used; some of them are in a higher layer.
        import mailverdict  # noqa: PLC0415

        function: Callable[..., Any] = getattr(mailverdict, name)
        method = partial(function, *self._arguments)
        method.__doc__ = function.__doc__
        return method

    def __dir__(self) -> list[str]:
        """The public names alone; this is what completion offers."""
        return sorted([*self._methods, *self._others])

    def _shown(self, what: str) -> str:
        """What the accessor belongs to, and its public names."""
        return fill(f"<mailverdict of {what}: {', '.join(dir(self))}>", 88, subsequent_indent="  ")


@pd.api.extensions.register_dataframe_accessor("mailverdict")
class FrameAccessor(Accessor):
    """Verify, clean, decide on and count a column of this frame.

    Each method is the function of the same name.

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
    <mailverdict of a DataFrame of 2 rows, column 'email': breakdown, clean, contradicted,
      decide, diff, duplicates, estimate, explode, lookup_domains, outcomes, plan, report,
      split, start, summary, suppress, verify>
    """

    _methods = (*ON_CELLS, *ON_FRAMES)
    _others = ("diff",)
    _hidden = DEPRECATED

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame
        self._arguments = (frame,)

    def __repr__(self) -> str:
        """The rows, the column that looks like addresses, and the methods."""
        from ..table.choose_column import choose_column  # noqa: PLC0415 - loads when first used

        rows = count_of(len(self._frame), "row")
        choice = choose_column(dict(self._frame.items()))
        if choice.chosen is None:
            return self._shown(f"a DataFrame of {rows}")
        return self._shown(f"a DataFrame of {rows}, column {choice.chosen.name!r:.80}")

    def diff(
        self, old: Any, column: Hashable | None = None, *, prefix: str | None = None
    ) -> pd.DataFrame:
        """Compare with an earlier audit of the list; see `mailverdict.diff`."""
        import mailverdict  # noqa: PLC0415 - loads when first used

        found: pd.DataFrame = mailverdict.diff(old, self._frame, column, prefix=prefix)
        return found


@pd.api.extensions.register_series_accessor("mailverdict")
class SeriesAccessor(Accessor):
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

    _methods = ON_CELLS
    _others = ("domain", "is_well_formed", "local")

    def __init__(self, series: pd.Series[Any]) -> None:
        self._series = series
        self._arguments = (series, None)  # a Series has no other column

    def __repr__(self) -> str:
        """The name, the rows and the methods."""
        series = self._series
        name = ""
        if series.name is not None:
            name = f" {series.name!r:.80}"
        return self._shown(f"the Series{name} of {count_of(len(series), 'row')}")

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

        out = start(
            self._series, validation_type="regex", columns=["verdict"], clean=False
        ).result()
        verdict = out["verdict"]
        is_valid = (verdict == "valid").astype("boolean")
        return is_valid.mask(verdict.isna())
