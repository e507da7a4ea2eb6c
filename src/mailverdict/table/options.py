"""The keyword arguments that `verify`, `averify`, `start`, `plan`, the accessors and Dask share.

`runs.options.Options` has their defaults and checks them, `VerifyOptions` has their types for editors and type
checkers. `show_options` gives a function the signature that `help()`, notebooks and the documentation show. What each
argument means is documented in `verify`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from ..errors import SettingsError
from ..runs.options import Options
from .columns import did_you_mean

if TYPE_CHECKING:
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
    max_age: Duration | None
    refresh: Iterable[str]
    limit: int | None
    on_quota: OnQuota
    screen: LocalBackend | ScreenWord | None
    known: Any
    clean: bool
    columns: ColumnSet | Iterable[str]
    categories: bool
    prefix: str | None
    overwrite: bool
    offline: bool
    progress: bool | Literal["auto"] | Listener


ColumnChoice = Hashable | list[Any]  # one column of a frame, or several


def each_column(column: ColumnChoice | None) -> list[Any]:
    """The columns to verify one by one; None, for data that is a column itself, is one."""
    return column if isinstance(column, list) else [column]


DEFAULTS = {
    name: each.default for name, each in inspect.signature(Options.check).parameters.items()
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
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=defaults[name],
            annotation=kind.__forward_arg__,
        )
        for name, kind in VerifyOptions.__annotations__.items()
    ]


def check_options(function: str, options: Mapping[str, Any]) -> Options:
    """The options given to `function`, and the defaults of the others, checked."""
    if unknown := [name for name in options if name not in DEFAULTS]:
        raise SettingsError(
            f"{function} has no argument {unknown[0]!r}{did_you_mean(unknown[0], list(DEFAULTS))}"
        )
    return Options.check(**options)
