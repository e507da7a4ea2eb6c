"""The interactive audit, for JupyterLab and Voila; needs ``mailverdict[widgets]``."""

from ..errors import MissingExtraError

try:
    import ipywidgets as _ipywidgets
    import itables.widget as _itables
except ImportError as exc:
    raise MissingExtraError("the interactive audit", "widgets") from exc

from .audit import Audit

__all__ = ["Audit"]

del _ipywidgets, _itables
