"""How likely the mail to each row of a list bounces: `risk`.

The rate of its cell, from the same model as the waves of `mailing` (`forecast.py`):

    email             bounce_risk  risk_low  risk_high
    ada@firm.example        0.025     0.004      0.129
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import SettingsError
from ..frames.results import JUDGED, Results
from ..table.columns import RISK_COLUMNS
from ..table.notices import Note, warn_user
from ..table.overwrite import name_columns
from ..table.table import Frame
from .beta import Floats, beta_of, beta_quantile
from .cells import ListCells, cells_of, read_list_mailboxes, read_waves
from .experience import Experience, plain_risk, rates_of, read_experience
from .forecast import INTERVAL, forecast_list
from .rates import Codes


def risk(
    out: Frame, column: Hashable | None = None, experience: Any = None, *, prefix: str | None = None
) -> Frame:
    """Forecast how likely the mail to each row bounces, from what was learnt. Uses no network.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned: a pandas, Polars or Arrow frame.
    column : hashable, optional
        The column that was verified; by default the only one.
    experience : Experience or path
        What `learn` returned, or the file that it was saved in.
    prefix : str, optional
        The prefix it was verified with, if not the default.

    Returns
    -------
    DataFrame
        The same kind, with `bounce_risk`, `risk_low` and `risk_high` (``Float64``, parts of 1): the
        probability of a hard bounce, and the 95 % interval of the rate of such rows. NA where no
        row of that verdict was ever mailed. If the forecasts are not better than the plain rate of
        the verdict (see `Calibration`), that rate is given, and a warning says so.

    Raises
    ------
    ColumnError
        If the frame has no such column, or it has not been verified.
    SettingsError, InputError
        Without an experience, if its file cannot be read, or if a new column would overwrite one
        that mailverdict did not write.

    Warns
    -----
    UserWarning
        If the plain rates are given.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> df = pd.DataFrame({"email": [f"{n}@firm.example" for n in range(40)]})
    >>> out = mv.verify(df, "email", validation_type="regex")
    >>> report = pd.DataFrame({"who": ["0@firm.example"], "reply": ["550 5.1.1 User unknown"]})
    >>> bounces = mv.read_bounces(report, columns={"address": "who", "diagnostic": "reply"})
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     found = mv.risk(out, "email", mv.learn(out, "email", bounces, mailed=True))
    >>> found[["email_bounce_risk", "email_risk_low", "email_risk_high"]].head(1).round(3)
       email_bounce_risk  email_risk_low  email_risk_high
    0              0.025           0.004            0.129
    """
    known = read_experience(experience)
    if known is None or not known.mailings:
        raise SettingsError(
            "give an experience, what learn returned or the file it was saved in: nothing is known "
            "yet"
        )
    rows = Results(out, column, prefix, JUDGED)
    names = name_columns(rows.data, rows.prefix, RISK_COLUMNS)
    cells = cells_of(rows, read_list_mailboxes(rows), known.counts)
    if known.calibration.is_better:
        risks = forecast_risks(cells, read_waves(rows), known)
    else:
        warn_user(Note(f"{known.calibration}; the risk is the plain rate of the verdict"))
        of_verdict = plain_risk(known.counts).reindex(cells.table["verdict"])
        risks = of_verdict.to_numpy()[cells.cell]
    risks[~cells.mailboxes.has_one] = np.nan
    columns = [pa.array(values, from_pandas=True) for values in risks.T]
    table = pa.table(columns, [column.name for column in RISK_COLUMNS])
    marked: Frame = rows.data.attach(table, names, RISK_COLUMNS, {})
    return marked


def forecast_risks(cells: ListCells, wave_of: Codes, known: Experience) -> Floats:
    """The rate of each row's cell and its 95 % credible interval; NaN where nothing is known."""
    forecast = forecast_list(cells, wave_of, known)
    level = forecast.rates.cells
    a, b = beta_of(level.rate, level.variance)
    low, high = [beta_quantile(chance, a, b) for chance in INTERVAL]
    of_cell = np.stack([level.rate, low, high], axis=1)
    risks = of_cell[forecast.cell]
    tried_of = rates_of(known.counts, ["verdict"])["mailed"]
    tried = cells.table["verdict"].map(tried_of).fillna(0)
    was_tried = (tried > 0).to_numpy()
    risks[~was_tried[cells.cell]] = np.nan
    return risks
