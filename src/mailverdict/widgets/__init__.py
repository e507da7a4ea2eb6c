"""The interactive audit, for JupyterLab, Notebook 7, VS Code and Voila.

Needs ``mailverdict[widgets]``.

The page of `mailverdict audit` needs no widget, and opens a third faster because it imports none.

    choices.py, steps.py     what a person decided, and the list as functions of it
    source.py, session.py    opening a list, and audits that are kept
    check.py                 the run: who checks, what it costs, how it ended
    listing.py, result.py    the verified rows, and how a person looks at them
    mailing.py, exports.py   waves and origins; files
    actions.py, state.py     what a page can ask for, and `AuditState`, which does it
    background.py            its thread, and what each section of the page says
    view.py, wording.py      what is shown, as JSON, and the words for it
    audit.py, transfer.py    the widget of a notebook, and files through its channel
    server.py                the page of the command line
    run_widget.py            one run as a widget, without an audit
    static/                  the page: it makes text nodes of the JSON; titles and buttons of fixed
                             text are here

Where a change goes: a further filter, `FACET_VALUES` and `FACETS` in listing.py and `FACET_LABELS`
in view.py; an action, `actions.py` and a method of `AuditState`; a switch, `view.tidy_items`; what
stays after a reload, `session.keep` and `session.to_keep`; how rows are looked at, `Result.looks`
and `look_as`.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtraError

if TYPE_CHECKING:
    from .audit import Audit
    from .run_widget import RunWidget as RunWidget

__all__ = ["Audit"]


def is_installed(name: str) -> bool:
    """Whether a package can be imported."""
    try:
        return find_spec(name) is not None
    except ValueError:  # it is marked as missing
        return False


if not is_installed("anywidget"):
    raise MissingExtraError("the interactive audit", "widgets")


def __getattr__(name: str) -> Any:
    if name == "Audit":
        from .audit import Audit  # noqa: PLC0415 - see above

        return Audit
    if name == "RunWidget":
        from .run_widget import RunWidget  # noqa: PLC0415 - see above

        return RunWidget
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
