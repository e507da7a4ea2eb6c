"""Show options that several functions share in the signatures of the reference pages.

Reference pages are made from source, where `verify` and its siblings end in ``**options: Unpack[VerifyOptions]`` and
`LocalBackend` in ``**settings: Unpack[LocalOptions]``; the run-time signatures have every name with its default.
mkdocs.yml names this file under the extensions of mkdocstrings.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import griffe


class SharedOptions(griffe.Extension):
    """Replaces a parameter like ``**options: Unpack[VerifyOptions]`` by the options."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Read the run-time signature of a function with such a parameter."""
        unpacked = [each.name for each in func.parameters if "Unpack[" in str(each.annotation)]
        if not unpacked:
            return
        shown = importlib.import_module(func.module.path)
        for name in func.path.removeprefix(func.module.path + ".").removesuffix(".__init__").split("."):
            shown = getattr(shown, name)
        parameters = inspect.signature(shown).parameters
        for name in [each.name for each in func.parameters if each.name not in ("self", *parameters)]:
            del func.parameters[name]
        for parameter in parameters.values():
            if parameter.name not in func.parameters:
                default = repr(parameter.default)
                func.parameters.add(
                    griffe.Parameter(
                        parameter.name,
                        annotation=str(parameter.annotation),
                        kind=griffe.ParameterKind.keyword_only,
                        default="..." if default.startswith("<") else default,  # a factory of a dataclass field
                    )
                )
        func.overloads = None  # they differ in the kind of frame alone, which the text says
