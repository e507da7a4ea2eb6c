"""Flags from lists: role, disposable, free, spamtrap. No network, and no judgement.

A listed domain stands for itself and everything below it. Where lists disagree, the deeper label
wins; at the same depth a user's *allow* beats a user's *deny*, which beats the relays, which beat
the list. `marks_of` is that rule: a dictionary filled in the order of increasing authority.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

import idna
import pyarrow as pa

from ...errors import SettingsError
from ...model.evidence import Flags
from ...model.settings import Lists
from ..syntax.local_parts import match_locals
from .files import MANIFEST, ListFile, find_lists, read_entries, split_entries, user_lists_folder

__all__ = ["DomainFlags", "LoadedLists", "below_any", "load_lists", "normal_domain"]

LABEL = r"(?!-)[a-z0-9_-]{1,63}(?<!-)"
DOMAIN = re.compile(rf"(?:{LABEL}\.)+{LABEL}")
MAX_DOMAIN = 253  # RFC 1035 section 3.1, without the final dot
SHOWN = 80  # characters of a wrong entry that a message repeats
LIST_NAMES = ("disposable", "relays", "free", "free_more", "role_core", "role_extended")


@dataclass(frozen=True, slots=True)
class DomainFlags:
    """Flags of many domains, position by position.

    Attributes
    ----------
    spamtrap, disposable, free : pyarrow.BooleanArray
        As in `mailverdict.model.evidence.Flags`; null where a flag was not determined.
    """

    spamtrap: pa.BooleanArray
    disposable: pa.BooleanArray
    free: pa.BooleanArray


@dataclass(frozen=True, slots=True, eq=False)
class LoadedLists:
    """The lists that decide the flags, with the user's own entries applied.

    Attributes
    ----------
    disposable, free, spamtrap : mapping of str to bool
        What is said of a domain and all below it; the deepest name that is found decides.
    marked : frozenset of str
        Every domain that any of the three speaks of.
    role_names : pyarrow.StringArray
        Lower-case local parts that name a function.
    version : str
        Which lists these are, for `metadata`.
    """

    disposable: Mapping[str, bool]
    free: Mapping[str, bool]
    spamtrap: Mapping[str, bool]
    marked: frozenset[str]
    role_names: pa.StringArray
    version: str

    def flags(self, local: str, ascii_domain: str) -> Flags:
        """Give the flags of one address.

        Parameters
        ----------
        local : str
            Local part; its case does not matter, and a ``+tag`` is cut.
        ascii_domain : str
            Lower-case domain in A-labels.

        Returns
        -------
        Flags
            `spamtrap` is True or None: a list cannot prove that a domain is no trap.

        Examples
        --------
        >>> from mailverdict.model.settings import Lists
        >>> load_lists(Lists()).flags("Info+web", "mail.yopmail.com")
        Flags(role=True, spamtrap=None, disposable=True, free=False)
        """
        return Flags(
            role=match_locals(pa.array([local], pa.string()), self.role_names.to_pylist())[0].as_py(),
            spamtrap=find_mark(ascii_domain, self.spamtrap) or None,
            disposable=bool(find_mark(ascii_domain, self.disposable)),
            free=bool(find_mark(ascii_domain, self.free)),
        )

    def domain_flags(self, domains: Sequence[str]) -> DomainFlags:
        """Give the flags of many domains at once.

        Parameters
        ----------
        domains : sequence of str
            Lower-case domains in A-labels, best each once.

        Returns
        -------
        DomainFlags
            Arrays as long as `domains`.
        """
        size = len(domains)
        spamtrap: list[bool | None] = [None] * size
        disposable, free = [False] * size, [False] * size
        for at in below_any(domains, self.marked):
            domain = domains[at]
            spamtrap[at] = find_mark(domain, self.spamtrap) or None
            disposable[at] = bool(find_mark(domain, self.disposable))
            free[at] = bool(find_mark(domain, self.free))
        return DomainFlags(*(pa.array(flag, pa.bool_()) for flag in (spamtrap, disposable, free)))


def below_any(domains: Sequence[str], names: frozenset[str]) -> Iterator[int]:
    """Positions of the domains that are one of `names` or below one, on label boundaries."""
    for at, domain in enumerate(domains):
        name = domain
        while "." in name:  # a top-level domain is never an entry
            if name in names:
                yield at
                break
            name = name.partition(".")[2]


def find_mark(domain: str, marks: Mapping[str, bool]) -> bool | None:
    """What `marks` says of the deepest name that `domain` is or is below; None: nothing."""
    while "." in domain:
        if domain in marks:
            return marks[domain]
        domain = domain.partition(".")[2]
    return None


def load_lists(settings: Lists, *, folder: Path | None = None) -> LoadedLists:
    """Load the lists that the settings ask for.

    Loaded once for equal settings and unchanged files; the network is never used.

    Parameters
    ----------
    settings : Lists
        The user's own entries.
    folder : Path, optional
        Where newer copies of lists may be; the user's data directory by default.

    Returns
    -------
    LoadedLists
        Ready for use; shared, and never changed.

    Raises
    ------
    SettingsError
        If a file cannot be read, or holds an entry that is none; names the file and the line.

    Examples
    --------
    >>> from mailverdict.model.settings import Lists
    >>> load_lists(Lists(disposable_deny=["throwaway.example"])).flags("ada", "throwaway.example").disposable
    True
    """
    where = user_lists_folder() if folder is None else folder
    own = (value for each in fields(settings) if isinstance(value := getattr(settings, each.name), Path))
    return load_once(settings, where, tuple(stamp_of(path) for path in (where / MANIFEST, *own)))


def stamp_of(path: Path) -> tuple[int, int] | None:
    """Tell a file's state apart from its earlier ones; None where there is none."""
    try:
        seen = path.stat()
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return None
    return seen.st_mtime_ns, seen.st_size


@lru_cache(maxsize=8)
def load_once(settings: Lists, folder: Path, _stamps: tuple[tuple[int, int] | None, ...]) -> LoadedLists:
    """Load everything; the stamps are there to tell calls apart."""
    listings = find_lists(LIST_NAMES, folder)
    entries = {name: read_entries(listing) for name, listing in listings.items()}
    own = {each.name: own_entries(settings, each.name) for each in fields(settings) if each.name != "extended_roles"}
    disposable = marks_of(
        (without_relays(entries["disposable"], entries["relays"]), True),
        (entries["relays"], False),
        (own["disposable_deny"], True),
        (own["disposable_allow"], False),
    )
    free = marks_of(
        (entries["free"] + entries["free_more"], True), (own["free_deny"], True), (own["free_allow"], False)
    )
    spamtrap = marks_of((own["spamtrap"], True))
    roles = {*entries["role_core"], *(entries["role_extended"] if settings.extended_roles else ())}
    return LoadedLists(
        disposable=disposable,
        free=free,
        spamtrap=spamtrap,
        marked=frozenset((*disposable, *free, *spamtrap)),
        role_names=pa.array(sorted((roles | {*own["role_deny"]}) - {*own["role_allow"]}), pa.string()),
        version=version_text(listings, own, extended=settings.extended_roles),
    )


def marks_of(*layers: tuple[Iterable[str], bool]) -> dict[str, bool]:
    """Put layers of names over each other; a later one has more authority over the same name."""
    marks: dict[str, bool] = {}
    for names, mark in layers:
        marks.update(dict.fromkeys(names, mark))
    return marks


def without_relays(names: Sequence[str], relays: Iterable[str]) -> list[str]:
    """Leave out names below a relay: deeper labels would win over it, and a relay always wins over a list."""
    hidden = set(below_any(names, frozenset(relays)))
    return [name for at, name in enumerate(names) if at not in hidden]


def version_text(listings: Mapping[str, ListFile], own: Mapping[str, tuple[str, ...]], *, extended: bool) -> str:
    """Name the lists that decide, and the user's own entries by a digest."""
    free, role = listings["free"], listings["role_extended" if extended else "role_core"]
    parts = [
        f"disposable {listings['disposable'].version}",
        f"free {free.version}+{listings['free_more'].version}",
        f"role {role.version}{' extended' if extended else ''}",
    ]
    if any(own.values()):
        digest = hashlib.sha256(repr(sorted(own.items())).encode()).hexdigest()
        parts.append(f"own {digest[:8]}")
    return ", ".join(parts)


def own_entries(settings: Lists, name: str) -> tuple[str, ...]:
    """Read one of the user's lists in its normal form; a wrong entry is a `SettingsError`."""
    normal, kind = (normal_role, "local part") if name.startswith("role_") else (normal_domain, "domain")
    entries = []
    for where, text in located_entries(getattr(settings, name), name):
        entry = normal(text)
        if entry is None:
            shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
            raise SettingsError(f"{where}: {shown!r} is no {kind}")
        entries.append(entry)
    return tuple(entries)


def located_entries(value: Path | tuple[str, ...], name: str) -> Iterator[tuple[str, str]]:
    """Give each entry with where it stands, for messages."""
    if not isinstance(value, Path):
        yield from ((f"Lists.{name}", text) for text in value)
        return
    try:
        text = value.read_text(encoding="utf-8")
    except (OSError, ValueError) as exc:
        raise SettingsError(f"Lists.{name}: cannot read {str(value)!r} as UTF-8 text: {exc}") from exc
    yield from ((f"Lists.{name}: {value}, line {number}", entry) for number, entry in split_entries(text))


def normal_role(text: str) -> str | None:
    """Bring a local part to the form that is compared; None where it could never match.

    >>> normal_role(" Info ")
    'info'
    """
    name = unicodedata.normalize("NFC", text.strip()).lower()
    return name if name and not re.search(r"[@+\s]", name) else None


def normal_domain(text: str) -> str | None:
    """Bring a domain of two labels or more to lower-case A-labels; None where it is none.

    >>> normal_domain("Bücher.Example.")
    'xn--bcher-kva.example'
    """
    name = text.strip().lower()
    if len(name) > MAX_DOMAIN + 1:  # with a final dot; A-labels are never shorter
        return None
    if not name.isascii():
        try:
            name = idna.encode(name, uts46=True).decode("ascii")
        except idna.IDNAError:
            return None
    name = name.removesuffix(".")
    return name if len(name) <= MAX_DOMAIN and DOMAIN.fullmatch(name) else None
