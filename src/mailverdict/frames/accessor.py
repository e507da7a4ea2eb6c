"""``df.mailverdict`` and ``s.mailverdict``: the same functions, from the frame's side."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

__all__ = ["FrameAccessor", "SeriesAccessor"]


@pd.api.extensions.register_dataframe_accessor("mailverdict")
class FrameAccessor:
    """Verify, clean and sum up a column of this frame.

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
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    def verify(self, column: Hashable, **options: Any) -> pd.DataFrame:
        """Verify a column; see `mailverdict.verify`."""
        out: pd.DataFrame = self.call("verify", column, **options)
        return out

    def start(self, column: Hashable, **options: Any) -> Any:
        """Verify a column in the background; see `mailverdict.start`."""
        return self.call("start", column, **options)

    def clean(self, column: Hashable, **options: Any) -> pd.DataFrame:
        """Tidy a column; see `mailverdict.clean`."""
        out: pd.DataFrame = self.call("clean", column, **options)
        return out

    def summary(self, column: Hashable, **options: Any) -> pd.DataFrame:
        """Sum up a verified column; see `mailverdict.summary`."""
        out: pd.DataFrame = self.call("summary", column, **options)
        return out

    def by_domain(self, column: Hashable, **options: Any) -> pd.DataFrame:
        """Sum up a verified column by domain; see `mailverdict.by_domain`."""
        out: pd.DataFrame = self.call("by_domain", column, **options)
        return out

    def call(self, name: str, column: Hashable, **options: Any) -> Any:
        """Call the public function of that name on this frame."""
        import mailverdict  # noqa: PLC0415 - the functions load when first used

        return getattr(mailverdict, name)(self.frame, column, **options)


@pd.api.extensions.register_series_accessor("mailverdict")
class SeriesAccessor:
    """Verify or clean this Series of addresses, or take it apart.

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
        self.series = series

    def verify(self, **options: Any) -> pd.DataFrame:
        """Verify the cells; see `mailverdict.verify`."""
        from .verify import verify  # noqa: PLC0415 - loads when first used

        out: pd.DataFrame = verify(self.series, **options)
        return out

    def clean(self, **options: Any) -> pd.DataFrame:
        """Tidy the cells; see `mailverdict.clean`."""
        from .clean import clean  # noqa: PLC0415 - loads when first used

        out: pd.DataFrame = clean(self.series, **options)
        return out

    @property
    def domain(self) -> pd.Series[Any]:
        """What follows the last ``@``, in lower case; NA where there is none."""
        from .clean import split_address  # noqa: PLC0415 - loads when first used

        return split_address(self.series)["domain"]

    @property
    def local(self) -> pd.Series[Any]:
        """What stands before the last ``@``; NA where there is none."""
        from .clean import split_address  # noqa: PLC0415 - loads when first used

        return split_address(self.series)["local"]

    @property
    def is_well_formed(self) -> pd.Series[Any]:
        """Whether each cell is a well-formed address; NA for empty cells. Asks no network."""
        out = self.verify(validation_type="regex", columns=["verdict"], progress=False)
        return (out["verdict"] == "valid").astype("boolean").mask(out["verdict"].isna())
