"""``df.mailverdict`` and ``s.mailverdict``: the same functions, from the frame's side."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from textwrap import fill
from typing import Any

import pandas as pd

from ..model.words import count_of

DEPRECATED = ("by_domain", "by_operator")  # methods that completion does not find


class Verb:
    """A function of the package as a method, which loads when it is first used: its first argument is given."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, accessor: AccessorBase | None, owner: type) -> Callable[..., Any]:
        """The function with its data; the function itself where the class is asked."""
        import mailverdict  # noqa: PLC0415 - the functions load when first used, some of them in a higher layer

        function: Callable[..., Any] = getattr(mailverdict, self.name)
        if accessor is None:
            return function
        method = partial(function, *accessor._arguments)
        method.__doc__ = function.__doc__
        return method


class AccessorBase:
    """What both accessors show of themselves: the public names alone."""

    _arguments: tuple[Any, ...]  # the first ones of each function

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
    <mailverdict of a DataFrame of 2 rows, column 'email': breakdown, clean, contradicted,
      decide, diff, domains, duplicates, estimate, explode, outcomes, plan, report, split,
      start, summary, suppress, verify>
    """

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

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The deprecated methods."""
        if name in DEPRECATED:
            return Verb(name).__get__(self, type(self))
        raise AttributeError(f"the accessor has no method {name!r}")

    def diff(
        self, old: Any, column: Hashable | None = None, *, prefix: str | None = None
    ) -> pd.DataFrame:
        """Compare with an earlier audit of the list; see `mailverdict.diff`."""
        import mailverdict  # noqa: PLC0415 - loads when first used

        found: pd.DataFrame = mailverdict.diff(old, self._frame, column, prefix=prefix)
        return found


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
        self._arguments = (series, None)  # a Series has no other column

    def __repr__(self) -> str:
        """The name, the rows and the methods."""
        name = "" if self._series.name is None else f" {self._series.name!r:.80}"
        return self._shown(f"the Series{name} of {count_of(len(self._series), 'row')}")

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
        return (out["verdict"] == "valid").astype("boolean").mask(out["verdict"].isna())


ON_CELLS = ("plan", "estimate", "start", "verify", "clean", "duplicates", "suppress")
ON_RESULTS = (
    "decide",
    "split",
    "report",
    "summary",
    "breakdown",
    "outcomes",
    "contradicted",
)
for _name in (*ON_CELLS, "explode", "domains", *ON_RESULTS):
    setattr(FrameAccessor, _name, Verb(_name))
for _name in ON_CELLS:
    setattr(SeriesAccessor, _name, Verb(_name))
