"""The keyword arguments that `verify`, `averify`, `start`, `plan`, the accessors and Dask share.

`VerifyOptions` holds their names, order and types for editors and type checkers, `DEFAULTS` their defaults.
`show_options` gives a function the signature that `help()`, notebooks and the documentation show, and
`complete_options` reads what a caller gave; `runs.options.Options` checks it. What each argument means is documented in
`verify`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from ..errors import SettingsError

if TYPE_CHECKING:  # the accessors need this module, and importing mailverdict stays light
    from ..backend import Backend
    from ..local.backend import LocalBackend
    from ..model.settings import Duration
    from ..model.words import ColumnSet, OnQuota, ScreenWord, ValidationType, ValidationTypeWord
    from ..runs.progress import Listener


class VerifyOptions(TypedDict, total=False):
    """Keyword arguments of `mailverdict.verify`."""

    validation_type: ValidationType | ValidationTypeWord
    backend: Backend | str | None
    journal: str | Path | None
    max_age: Duration
    refresh: Iterable[str]
    limit: int | None
    on_quota: OnQuota
    screen: LocalBackend | ScreenWord | None
    clean: bool
    columns: ColumnSet | Iterable[str]
    categories: bool
    prefix: str | None
    overwrite: bool
    offline: bool
    progress: bool | Literal["auto"] | Listener


Columns = Hashable | list[Any]  # one column of a frame, or several


def each_column(column: Columns | None) -> list[Any]:
    """The columns to verify one by one; None, for data that is a column itself, is one."""
    return column if isinstance(column, list) else [column]


DEFAULTS: VerifyOptions = {
    "validation_type": "mx",
    "backend": None,
    "journal": "auto",
    "max_age": "30D",
    "refresh": (),
    "limit": None,
    "on_quota": "stop",
    "screen": None,
    "clean": True,
    "columns": "core",
    "categories": True,
    "prefix": None,
    "overwrite": True,
    "offline": False,
    "progress": "auto",
}

Function = TypeVar("Function", bound=Callable[..., Any])


def show_options(**changed: Any) -> Callable[[Function], Function]:
    """Replace ``**options`` in the signature that a function shows by all options, with defaults `changed`.

    >>> @show_options(progress=False)
    ... def example(data, **options): ...
    >>> list(inspect.signature(example).parameters)[:3], inspect.signature(example).parameters["progress"].default
    (['data', 'validation_type', 'backend'], False)
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        function.__signature__ = signature.replace(parameters=[*own, *option_parameters(changed)])  # type: ignore[attr-defined]
        return function

    return decorate


def option_parameters(changed: Mapping[str, Any]) -> list[inspect.Parameter]:
    defaults = {**DEFAULTS, **changed}
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=kind.__forward_arg__)
        for name, kind in VerifyOptions.__annotations__.items()
    ]


def complete_options(function: str, options: Mapping[str, Any], **changed: Any) -> dict[str, Any]:
    """The options given to `function`, and the defaults of the others, some of them `changed`."""
    if unknown := [name for name in options if name not in DEFAULTS]:
        from .columns import did_you_mean  # noqa: PLC0415 - only a wrong name needs it

        raise SettingsError(f"{function} has no argument {unknown[0]!r}{did_you_mean(unknown[0], list(DEFAULTS))}")
    return {**DEFAULTS, **changed, **options}
