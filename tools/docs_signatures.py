"""Show the options that `verify` and its siblings share in the signatures of the reference pages.

Reference pages are made from source, where such a function ends in ``**options``; its run-time signature has them
all, with their defaults. mkdocs.yml names this file under the extensions of mkdocstrings.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import griffe


class SharedOptions(griffe.Extension):
    """Replaces ``**options: Unpack[VerifyOptions]`` by the options."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Read the run-time signature of a function that has one of its own."""
        if "options" not in func.parameters or "VerifyOptions" not in str(func.parameters["options"].annotation):
            return
        shown = importlib.import_module(func.module.path)
        for name in func.path.removeprefix(func.module.path + ".").split("."):
            shown = getattr(shown, name)
        del func.parameters["options"]
        for parameter in inspect.signature(shown).parameters.values():
            if parameter.name not in func.parameters:
                func.parameters.add(
                    griffe.Parameter(
                        parameter.name,
                        annotation=str(parameter.annotation),
                        kind=griffe.ParameterKind.keyword_only,
                        default=repr(parameter.default),
                    )
                )
        func.overloads = None  # they differ in the kind of frame alone, which the text says
