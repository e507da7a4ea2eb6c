"""The interactive audit, for JupyterLab, Notebook 7, VS Code and Voila.

Needs ``mailverdict[widgets]``.

The page of `mailverdict audit` needs no widget, and opens a third sooner without the import of one.
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
