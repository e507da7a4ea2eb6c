"""Show options that several functions share in the signatures of the reference pages.

Reference pages are made from source, where `verify` and its siblings end in ``**options:
Unpack[VerifyOptions]`` and `LocalBackend` in ``**settings: Unpack[LocalOptions]``; the run-time
signatures have every name with its default. mkdocs.yml names this file under the extensions of
mkdocstrings.
"""

from __future__ import annotations

import inspect
import pydoc
from typing import Any

import griffe


class SharedOptions(griffe.Extension):
    """Takes the signature of a function with such a parameter from the function itself."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Replace the parameters that were read from source."""
        if any("Unpack[" in str(each.annotation) for each in func.parameters):
            shown = inspect.signature(pydoc.locate(func.path.removesuffix(".__init__")))  # type: ignore[arg-type]
            func.parameters = griffe.Parameters(*map(to_griffe, shown.parameters.values()))
            func.overloads = None  # they differ in the kind of frame alone, which the text says


def to_griffe(parameter: inspect.Parameter) -> griffe.Parameter:
    default = None if parameter.default is parameter.empty else repr(parameter.default)
    return griffe.Parameter(
        parameter.name,
        annotation=None if parameter.annotation is parameter.empty else str(parameter.annotation),
        kind=griffe.ParameterKind(parameter.kind.description),
        default="..."
        if default and default.startswith("<")
        else default,  # a factory of a dataclass field
    )
