"""The keyword arguments that other functions share with `verify`.

These functions are `averify`, `start`, `plan`, the accessors, and those for Spark and Dask.

`verify` documents these arguments and has them in its signature. `VerifyOptions` has their types
for editors and type checkers; `runs.options.Options.check` has their defaults and checks them.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Hashable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from ..errors import SettingsError
from ..runs.options import Options
from .columns import did_you_mean

if TYPE_CHECKING:
    from ..backend import Backend
    from ..local.backend import LocalBackend
    from ..model.settings import Duration
    from ..model.words import ColumnSet, OnQuota, ScreenWord, ValidationType, ValidationTypeWord
    from ..runs.progress import Listener


class RunOptions(TypedDict, total=False):
    """Keyword arguments of `mailverdict.verify` that decide what is asked."""

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
    offline: bool
    progress: bool | Literal["auto"] | Listener


class VerifyOptions(RunOptions, total=False):
    """Keyword arguments of `mailverdict.verify`."""

    columns: ColumnSet | Iterable[str]
    categories: bool
    prefix: str | None
    overwrite: bool


ColumnChoice = Hashable | list[Any]  # one column of a frame, or several


def each_column(column: ColumnChoice | None) -> list[Any]:
    """The columns to verify one by one; None, for data that is a column itself, is one."""
    return column if isinstance(column, list) else [column]


PARAMETERS = inspect.signature(Options.check).parameters
DEFAULTS = {name: parameter.default for name, parameter in PARAMETERS.items()}


def check_options(
    function: str, options: Mapping[str, Any], names: Collection[str] = DEFAULTS.keys()
) -> Options:
    """The options given to `function`, and the defaults of the others, checked.

    `names` are the keyword arguments that `function` has.
    """
    refuse_unknown(function, [name for name in options if name not in names])
    return Options.check(**options)


def refuse_unknown(function: str, names: Iterable[str]) -> None:
    """Raise an error that names the first argument that `function` does not have.

    It also says what was probably meant.
    """
    for name in names:
        hint = did_you_mean(name, list(DEFAULTS))
        raise SettingsError(f"{function} has no argument {name!r}{hint}")
