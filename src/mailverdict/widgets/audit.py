"""`Audit`: verify an e-mail column from a file to a decision, with a mouse or a keyboard.

`PageWidget` is its page as one anywidget: it sends snapshots to the browser and the browser's
events to the state. The front end is plain JavaScript without a build step: the modules in
`static`, joined to one. It makes no request.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import anywidget
import pandas as pd
import traitlets

from ..backend import Backend
from ..frames.policy import Policy
from ..runs.plan import Plan
from ..runs.run import Run
from ..theme import stylesheet
from .actions import PAGE_ACTIONS, read_message
from .state import SECTIONS, AuditState
from .transfer import FileTransfer
from .view import take_snapshot
from .wording import VERDICT_LABELS, marks


class Audit:
    """Verify a list interactively: load it, tidy it, verify it, decide what to do with each row.

    Write it as the last line of a cell to show it, in JupyterLab, Notebook 7, VS Code or under
    Voila. Other cells can be executed during a run. Results of a service are kept in the journal:
    pressing the button again goes on where the last run stopped, also in a new kernel. The page
    makes no request to any host; files go over the connection of the notebook.

    Parameters
    ----------
    df : DataFrame, Series or path, optional
        The rows, as a pandas, Polars or Arrow frame, or a table file; without, the user chooses a
        file.
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
        included; rows that are not checked yet are ``pending``. What was chosen in the step "Tidy"
        is applied: each of several addresses in a cell has a row, with the index of its cell and
        its place there in the column `part`, and there may be columns such as `suppressed`. A check
        that uses a network leaves out rows that are removed anyway, as suppressed or as duplicates;
        they are ``pending``, too, unless another row has the same mailbox.
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
    >>> contacts = pd.DataFrame({"mail": ["ada@example.org", "nobody"]})
    >>> audit = Audit(contacts, validation_type="regex")
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
        """The rows of the last run with all result columns.

        Rows that are not checked yet are ``pending``.
        """
        result = self._state.result
        if result is None:
            return None
        return result.listing.rows.to_frame()

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
            If that cannot be read, has no such column, or a run is in progress. Nothing is loaded
            then.
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


# --- the page -------------------------------------------------------------------------------------


# Each after those that it imports; the last one is the widget.
SCRIPTS = (
    "vendor/preact-htm.js",
    "connection.js",
    "parts.js",
    "table.js",
    "mailing.js",
    "steps.js",
    "page.js",
)
IMPORT = re.compile(r'^import \{(.+?)\} from "\./(.+?)";$', re.M | re.S)
EXPORT = re.compile(r"export ?\{([^{}]+)\};\s*\Z")  # how each of them ends


@cache
def front_end(names: tuple[str, ...] = SCRIPTS) -> str:
    """The modules of the folder `static` as one module.

    It exports what the last one does as its default.

    A notebook gets its script as one text, so that `import` finds no other file there.
    """
    parts = ["const modules = {};"]
    for name in names:
        text = IMPORT.sub(as_lookup, read_static(name))
        text = EXPORT.sub(as_return, text)
        parts.append(f'modules["{name}"] = (() => {{\n{text}\n}})();')
    parts.append(f'export default modules["{names[-1]}"];\n')
    return "\n".join(parts)


def as_lookup(statement: re.Match[str]) -> str:
    """An import as a look-up: ``a as b`` becomes ``a: b`` of an object that is taken apart."""
    names = statement[1].replace(" as ", ": ")
    return f'const {{{names}}} = modules["{statement[2]}"];'


def as_return(statement: re.Match[str]) -> str:
    """An export as the value of a function: ``a as b`` becomes ``b: a`` of an object."""
    names = re.sub(r"(\w+) as (\w+)", r"\2: \1", statement[1])
    return f"return {{{names}}};"


def read_static(name: str) -> str:
    """A file of the folder `static`."""
    return (files(__package__) / "static" / name).read_text(encoding="utf-8")


class PageWidget(anywidget.AnyWidget):
    """The widget; its traits are what the page shows, by section."""

    _esm = ""
    _css = ""
    list_section = traitlets.Dict().tag(sync=True)
    tidy_section = traitlets.Dict().tag(sync=True)
    check_section = traitlets.Dict().tag(sync=True)
    decide_section = traitlets.Dict().tag(sync=True)
    page_section = traitlets.Dict().tag(sync=True)
    # The last action whose end the browser waits for.
    answered = traitlets.Unicode("").tag(sync=True)
    marks = traitlets.Dict().tag(sync=True)  # shapes by verdict, action and state
    words = traitlets.Dict().tag(sync=True)  # labels by verdict and state

    def __init__(self, state: AuditState) -> None:
        self.state = state
        self.sending = threading.RLock()
        first = {f"{name}_section": take_snapshot(state, name) for name in SECTIONS}
        super().__init__(
            _esm=front_end(),
            _css=stylesheet(".mv-audit") + read_static("page.css"),
            marks=marks(),
            words=VERDICT_LABELS,
            **first,
        )
        self.transfer = FileTransfer(self.send, lambda: state.folder, state.use_file)
        state.work.on_change = self.show
        state.on_file = self.offer_file
        self.on_msg(self.receive)

    def show(self, names: Sequence[str]) -> None:
        """Send the sections that have changed."""
        with self.sending:
            sections = {name: take_snapshot(self.state, name) for name in dict.fromkeys(names)}
            with self.hold_sync():
                for name, section in sections.items():
                    trait = f"{name}_section"
                    if section != getattr(self, trait):
                        setattr(self, trait, section)

    def receive(self, widget: Any, content: Any, buffers: Sequence[Any]) -> None:
        """Do what the browser asks for."""
        if self.transfer.on_message(content, buffers) or not isinstance(content, Mapping):
            return
        message = read_message(content)
        if message.action not in PAGE_ACTIONS:
            return
        self.state.act(message.action, **message.arguments)
        # After the sections that the action has changed: the browser has what was chosen, or
        # that it was refused.
        if message.answer:
            self.answered = message.answer

    def offer_file(self, name: str, path: Path, tab: str) -> None:
        """Let the browser download a file; it is removed when the browser has it."""
        self.send({"act": "save", "id": self.transfer.offer(path), "name": name})

    def close(self) -> None:
        """Stop the run and remove temporary files."""
        self.state.close()
        super().close()
