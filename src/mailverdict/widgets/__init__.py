"""The interactive audit, for JupyterLab, Notebook 7, VS Code and Voila; needs ``mailverdict[widgets]``."""

from ..errors import MissingExtraError

try:
    import anywidget as _anywidget
except ImportError as exc:
    raise MissingExtraError("the interactive audit", "widgets") from exc

from .audit import Audit
from .run_widget import RunWidget as RunWidget

__all__ = ["Audit"]

del _anywidget
