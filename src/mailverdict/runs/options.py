"""The arguments that `verify` and its siblings share, checked before any work.

verify(df, "email", backend="https://verify.example.org", limit=100)
-> Options.check: the first argument that cannot work is a SettingsError
-> open_execution: journal opened, screening chosen, nothing requested yet
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
import pyarrow as pa

from ..backend import Backend
from ..errors import SettingsError
from ..local.backend import LocalBackend
from ..model.paths import user_path
from ..model.settings import Duration, parse_duration
from ..model.table import SCHEMA
from ..model.words import Status, ValidationType, Verdict
from .execution import Execution, RunSettings
from .progress import Listener

if TYPE_CHECKING:
    from ..local.screen import Screener

ON_QUOTA = ("stop", "raise", "wait")
SCREENS = (None, "mx")
KEPT_FOR = "30D"  # how long an answer in the journal is used, unless the caller says it


def default_journal() -> Path:
    """The file of ``journal="auto"``: one per user."""
    return Path(platformdirs.user_data_dir("mailverdict", appauthor=False)) / "journal.db"


def parse_validation_type(value: str) -> ValidationType:
    """One of the four types; a `SettingsError` names them otherwise."""
    try:
        return ValidationType(value)
    except ValueError:
        message = f"validation_type={value!r}: give one of {', '.join(ValidationType)}"
        raise SettingsError(message) from None


def pick_backend(backend: Any) -> Backend:
    """None is this machine, a text is the URL of a service, anything else must be a backend."""
    if backend is None:
        return LocalBackend()
    if isinstance(backend, str):
        # These import httpx, which few calls need.
        from ..remote.backend import RemoteBackend  # noqa: PLC0415
        from ..remote.client import parse_base_url  # noqa: PLC0415

        return RemoteBackend(parse_base_url(backend, "backend"))
    if isinstance(backend, type) or not hasattr(backend, "verify"):
        message = f"backend={backend!r}: give None, the URL of a service, or a backend object"
        raise SettingsError(message)
    picked: Backend = backend
    return picked


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments that `verify` and its siblings share, checked, with their backend."""

    backend: Any  # a `Backend`; None in the tasks of a cluster, which get it apart
    journal: Path | None
    settings: RunSettings
    screen: LocalBackend | str | None
    known: Any  # what another verifier said, as the caller gave it; read where the frame is
    owns_backend: bool
    clean: bool
    columns: Any  # a set's name, or names; checked where the result columns are chosen
    categories: bool
    prefix: str | None
    overwrite: bool
    progress: bool | str | Listener
    known_max_age: float | None = None  # seconds; None: `known` counts however old it is

    @classmethod
    def check(
        cls,
        *,
        validation_type: str = "mx",
        backend: Any = None,
        journal: str | Path | None = "auto",
        max_age: Duration | None = None,
        refresh: Iterable[str] = (),
        limit: int | None = None,
        on_quota: str = "stop",
        screen: LocalBackend | str | None = None,
        known: Any = None,
        clean: bool = True,
        columns: Any = "core",
        categories: bool = True,
        prefix: str | None = None,
        overwrite: bool = True,
        offline: bool = False,
        progress: bool | str | Listener = "auto",
    ) -> Options:
        """Check every argument; a `SettingsError` names the first that cannot work."""
        if not callable(progress) and progress not in (True, False, "auto"):
            raise SettingsError(f"progress={progress!r}: give 'auto', True, False or a function")
        kind = parse_validation_type(validation_type)
        if on_quota not in ON_QUOTA:
            raise SettingsError(f"on_quota={on_quota!r}: give one of {', '.join(ON_QUOTA)}")
        if not isinstance(screen, LocalBackend) and screen not in SCREENS:
            raise SettingsError(
                f"screen={screen!r}: give None, 'mx', or a LocalBackend with settings of its own"
            )
        addresses = parse_limit(limit)
        picked = pick_backend(backend)
        kept_for = KEPT_FOR if max_age is None else max_age
        settings = RunSettings(
            validation_type=kind,
            max_age=parse_duration(kept_for, name="max_age"),
            refresh=parse_refresh(refresh),
            limit=addresses,
            on_quota=on_quota,
            offline=offline,
            lenient=clean is True,
        )
        return cls(
            picked,
            journal_path(journal, picked, kind),
            settings,
            screen,
            known,
            owns_backend=picked is not backend,
            clean=check_flag("clean", clean),
            columns=columns,
            categories=check_flag("categories", categories),
            prefix=prefix,
            overwrite=check_flag("overwrite", overwrite),
            progress=progress,
            known_max_age=None if max_age is None else settings.max_age,
        )

    def renewed(self) -> Options:
        """The same for another run; a backend that the run closed is made anew."""
        if not self.owns_backend:
            return self
        return replace(self, backend=pick_backend(getattr(self.backend, "base_url", None)))

    @property
    def validation_type(self) -> ValidationType:
        """Which checks are made."""
        return self.settings.validation_type

    @property
    def is_free(self) -> bool:
        """Whether no network is used."""
        return bool(self.backend.is_free(self.validation_type))


def check_flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise SettingsError(f"{name}={value!r}: give True or False")
    return value


def parse_limit(limit: Any) -> int | None:
    """A whole number of addresses, also a NumPy integer."""
    if limit is None:
        return None
    try:
        number = operator.index(limit)
    except TypeError:
        number = -1
    if isinstance(limit, bool) or number < 0:
        raise SettingsError(f"limit={limit!r}: give a whole number of addresses, or None")
    return number


def parse_refresh(refresh: Iterable[str]) -> frozenset[str]:
    """The verdicts that are not reused; ``error`` means technical failures."""
    try:
        wanted = frozenset([refresh] if isinstance(refresh, str) else refresh)
    except TypeError:
        raise SettingsError(f"refresh={refresh!r}: give verdicts, as {{'unknown'}}") from None
    known = (*Verdict, Status.ERROR)
    unknown = sorted(str(word) for word in wanted if word not in known)
    if unknown:
        raise SettingsError(f"refresh: {unknown[0]!r} is not one of {', '.join(known)}")
    return wanted


def journal_path(journal: str | Path | None, backend: Backend, kind: ValidationType) -> Path | None:
    """The journal's file, or None for no journal."""
    if journal is None or backend.is_free(kind):
        return None
    if journal == "auto":
        return default_journal() if backend.wants_journal(kind) else None
    try:
        return user_path(journal)
    except TypeError:
        message = f"journal={journal!r}: give 'auto', the path of a file, or None"
        raise SettingsError(message) from None


def open_execution(
    addresses: pa.StringArray,
    options: Options,
    fields: Sequence[str] = tuple(SCHEMA.names),
    syntax: pa.RecordBatch | None = None,
) -> Execution:
    """Open the journal and set up the execution, without any request.

    The result will be made from `fields`. `syntax` is what `observe_column` saw of the addresses,
    if it was called already.
    """
    journal = None
    if options.journal is not None:
        from .journal.journal import Journal  # noqa: PLC0415 - imports SQLite, which few calls need

        if options.journal == default_journal():
            options.journal.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        journal = Journal(options.journal)
    return Execution(
        addresses,
        options.backend,
        options.settings,
        journal=journal,
        screen=pick_screen(options),
        owns_backend=options.owns_backend,
        fields=fields,
        syntax=syntax,
    )


def pick_screen(options: Options) -> Screener | None:
    """What is settled before a service is asked: malformed addresses, and as `screen` says.

    `LocalBackend` settles malformed addresses itself, so it needs a screen only when offline.
    """
    settings = options.settings
    backend = options.backend
    if isinstance(backend, LocalBackend) and not settings.offline:
        return None
    # It imports the modules for DNS, which `regex` does not need.
    from ..local.screen import Screener  # noqa: PLC0415

    if isinstance(backend, LocalBackend):
        return Screener(backend, with_dns=False, lenient=settings.lenient)
    asking = options.screen
    owns_backend = False
    if not isinstance(asking, LocalBackend):
        asking = LocalBackend()
        owns_backend = True
    return Screener(
        asking,
        with_dns=options.screen is not None and not settings.offline,
        owns_backend=owns_backend,
        lenient=settings.lenient,
        for_service=True,
    )
