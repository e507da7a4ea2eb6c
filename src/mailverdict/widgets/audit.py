"""`Audit`: verify an e-mail column from a file to a decision, with a mouse or a keyboard."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pandas as pd

from ..backend import Backend
from ..frames.policy import Policy
from ..runs.plan import Plan
from ..runs.run import Run
from .notebook import PageWidget
from .state import AuditState


class Audit:
    """Verify a list interactively: load it, tidy it, verify it, decide what to do with each row.

    Write it as the last line of a cell to show it, in JupyterLab, Notebook 7, VS Code or under Voila.
    Other cells can be executed during a run. Results of a service are kept in the journal: pressing the
    button again goes on where the last run stopped, also in a new kernel. The page makes no request to
    any host; files go over the connection of the notebook.

    Parameters
    ----------
    df : DataFrame, Series or path, optional
        The rows, as a pandas, Polars or Arrow frame, or a table file; without, the user chooses a file.
    backend : backend, str or None
        As in `mailverdict.verify`: None for this machine, or the URL of a verification service.
    column : hashable, optional
        The column to begin with; without, it is guessed.
    validation_type : {"mx", "regex", "mx_blacklist", "smtp"}
        The type to begin with.
    journal : ``"auto"``, path or None
        As in `mailverdict.verify`.
    screen : {"mx", None}
        As in `mailverdict.verify`.
    limit : int, optional
        As in `mailverdict.verify`, for each press of the button.
    policy : Policy or {"balanced", "strict", "lenient"}
        The policy to begin with.
    folder : path, optional
        Where files are kept on their way from and to the browser; by default where the system keeps
        temporary files.
    allow_paths : bool, default True
        Whether files can be opened by their path. Turn it off where others use the page: they
        could read tables on the machine where the kernel runs.

    Attributes
    ----------
    result : DataFrame or None
        The rows of the last run as pandas frame with all result columns, `clean` and `change`
        included; rows that are not checked yet are ``pending``. What was chosen in the step "Tidy" is
        applied: each of several addresses in a cell has a row, with the index of its cell and its
        place there in the column `part`, and there may be columns such as `suppressed`. A check that
        uses a network leaves out rows that are removed anyway, as suppressed or as duplicates; they
        are ``pending``, too, unless another row has the same mailbox.
    plan : Plan or None
        The estimate that is shown.
    run : Run or None
        The last run on the list that is loaded.

    Raises
    ------
    SettingsError, InputError, ColumnError
        If an argument cannot work; no network is used.

    Examples
    --------
    >>> import pandas as pd
    >>> from mailverdict.widgets import Audit
    >>> audit = Audit(pd.DataFrame({"mail": ["ada@example.org", "nobody"]}), validation_type="regex")
    >>> audit.verify()
    >>> audit.wait()
    >>> audit.result["mail_verdict"].tolist()
    ['valid', 'invalid']
    """

    def __init__(
        self,
        df: Any = None,
        backend: Backend | str | None = None,
        *,
        column: Hashable | None = None,
        validation_type: str = "mx",
        journal: str | Path | None = "auto",
        screen: str | None = None,
        limit: int | None = None,
        policy: Policy | str = "balanced",
        folder: str | Path | None = None,
        allow_paths: bool = True,
    ) -> None:
        settings = {"backend": backend, "journal": journal, "screen": screen, "limit": limit}
        self._state = AuditState(
            settings, validation_type, policy, folder=folder, allow_paths=allow_paths
        )
        self._page: PageWidget | None = None
        if df is not None:
            self._state.load(df, column)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self._widget()._repr_mimebundle_(**options)

    def _widget(self) -> PageWidget:
        """The widget, made when it is first shown."""
        if self._page is None:
            self._page = PageWidget(self._state)
        return self._page

    @property
    def result(self) -> pd.DataFrame | None:
        """The rows of the last run with all result columns; rows that are not checked yet are ``pending``."""
        found = self._state.result
        return None if found is None else found.listing.rows.to_frame()

    @property
    def plan(self) -> Plan | None:
        """The estimate that is shown."""
        return self._state.plan

    @property
    def run(self) -> Run[Any] | None:
        """The last run on the list that is loaded."""
        return self._state.check.run

    def load(self, data: Any, column: Hashable | None = None) -> None:
        """Load a frame or a file, as choosing one on the page does.

        Parameters
        ----------
        data : DataFrame, Series or path
            The rows.
        column : hashable, optional
            The column; guessed if not given.

        Raises
        ------
        InputError, ColumnError, SettingsError
            If that cannot be read, has no such column, or a run is in progress. Nothing is loaded then.
        """
        self._state.load(data, column)

    def verify(self) -> None:
        """Start the run, or go on where the last one stopped, as the button does.

        Raises
        ------
        SettingsError, ColumnError, JournalError
            If nothing is chosen, or as `mailverdict.start`; no request was sent then.
        """
        self._state.verify()

    def cancel(self) -> None:
        """Stop the run, as the button "Pause" does; what is checked so far is kept."""
        self._state.pause()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the run and the estimate are complete.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait at most.

        Raises
        ------
        TimeoutError
            If something is still in progress after `timeout` seconds.
        """
        self._state.work.wait(timeout)
