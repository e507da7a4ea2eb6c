"""Flags from lists: role, disposable, free, spamtrap. No network and no verdict.

A listed domain stands for itself and all its subdomains. If lists disagree, the most specific name
decides; for the same name a user's *allow* beats a user's *deny*, which beats the relays, which
beat the list. `marks_of` implements that as a dictionary filled in the order of increasing
precedence.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from pathlib import Path

import idna
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import SettingsError
from ...model.arrow import map_slices
from ...model.evidence import Flags
from ...model.settings import Lists
from .files import ListFile, find_lists, read_entries, split_entries, user_lists_folder

LABEL = r"(?!-)[a-z0-9_-]{1,63}(?<!-)"
DOMAIN = re.compile(rf"(?:{LABEL}\.)+{LABEL}")
MAX_DOMAIN = 253  # RFC 1035 section 3.1, without the final dot
SHOWN = 80  # characters of a wrong entry that a message repeats
LIST_NAMES = (
    "disposable",
    "not_disposable",
    "relays",
    "free",
    "free_more",
    "role_core",
    "role_languages",
    "role_extended",
)
NAMES_AT_ONCE = 1_000
WHOLE = "="  # before a role that counts only as the whole local part
SEPARATOR = r"[._\-0-9]"  # between the words of a local part
WORDS = re.compile(rf"{SEPARATOR}+")


@dataclass(frozen=True, eq=False)
class LoadedLists:
    """The lists that decide the flags, with the user's own entries applied.

    The mappings hold what is known of a domain and its subdomains; the most specific name decides.
    """

    disposable: Mapping[str, bool]
    free: Mapping[str, bool]
    spamtrap: Mapping[str, bool]
    marked: frozenset[str]  # every domain in one of the three
    role_names: frozenset[str]  # lower-case local parts that stand for a function
    # Those of them that also do so as the first or last word of a local part.
    role_words: frozenset[str]
    no_roles: frozenset[str]  # local parts that are none, whatever their words
    version: str  # names the lists, for `metadata`

    def flags(self, local: str, ascii_domain: str) -> Flags:
        """Return the flags of one address; the case and a ``+tag`` of the local part do not matter.

        `spamtrap` is True or None: a list cannot prove that a domain is not a trap.

        >>> from mailverdict.model.settings import Lists
        >>> load_lists(Lists()).flags("Info+web", "mail.yopmail.com")
        Flags(role=True, spamtrap=None, disposable=True, free=False)
        """
        if next(below_any((ascii_domain,), self.marked), None) is None:  # as nearly all are
            return Flags(role=self.is_role(local), disposable=False, free=False)
        return Flags(
            role=self.is_role(local),
            spamtrap=find_mark(ascii_domain, self.spamtrap) or None,
            disposable=bool(find_mark(ascii_domain, self.disposable)),
            free=bool(find_mark(ascii_domain, self.free)),
        )

    def is_role(self, local: str) -> bool:
        """Whether a local part is a role.

        In ASCII this works without Arrow, for which a single check would wait.
        """
        if not local.isascii():
            return bool(self.match_slice(pa.array([local]))[0].as_py())
        name, tag, _ = local.lower().partition("+")
        if name in self.no_roles:
            return False
        words = WORDS.split(name)
        if name in self.role_names or words[0] in self.role_words:
            return True
        return not tag and words[-1] in self.role_words

    def match_roles(self, local: pa.StringArray) -> pa.BooleanArray:
        """The same for a column of local parts; null where there is none.

        >>> from mailverdict.model.settings import Lists
        >>> local_parts = pa.array(["Info+web", "rome.info", "ada", None])
        >>> load_lists(Lists()).match_roles(local_parts).to_pylist()
        [True, True, False, None]
        """
        slices = map_slices(self.match_slice, local)
        return pa.chunked_array(slices, pa.bool_()).combine_chunks()

    def match_slice(self, local: pa.StringArray) -> pa.BooleanArray:
        lowered = pc.utf8_lower(local)
        is_role = matches_any(lowered, self.role_patterns)
        return pc.and_not(is_role, matches_any(lowered, self.excluding_patterns))

    @cached_property
    def role_patterns(self) -> list[str]:
        """What finds a role in a local part in lower case.

        It is a name before its tag, or a word at one of its ends.

        A word at the end is followed by nothing, not even a tag.
        """
        patterns = whole_names(self.role_names)
        if self.role_words:
            word = f"(?:{'|'.join(map(re.escape, sorted(self.role_words)))})"
            at_an_end = rf"\A{word}{SEPARATOR}|\A[^+]*{SEPARATOR}{word}\z"
            # One pattern takes half the time of two.
            patterns[:1] = ["|".join([*patterns[:1], at_an_end])]
        return patterns

    @cached_property
    def excluding_patterns(self) -> list[str]:
        return whole_names(self.no_roles)

    def domain_flags(self, domains: Sequence[str]) -> pa.RecordBatch:
        """The flags of many domains, in lower case and A-labels, best each once: a row for each."""
        size = len(domains)
        spamtrap: list[bool | None] = [None] * size
        disposable = [False] * size
        free = [False] * size
        for at in below_any(domains, self.marked):
            domain = domains[at]
            spamtrap[at] = find_mark(domain, self.spamtrap) or None
            disposable[at] = bool(find_mark(domain, self.disposable))
            free[at] = bool(find_mark(domain, self.free))
        flags = {"spamtrap": spamtrap, "disposable": disposable, "free": free}
        return pa.record_batch({name: pa.array(flag, pa.bool_()) for name, flag in flags.items()})


def whole_names(names: Collection[str]) -> list[str]:
    """Patterns of local parts, before their tag.

    RE2 takes some thousands of names in one pattern.
    """
    ordered = sorted(names)
    patterns = []
    for start in range(0, len(ordered), NAMES_AT_ONCE):
        some = "|".join(map(re.escape, ordered[start : start + NAMES_AT_ONCE]))
        patterns.append(rf"\A(?:{some})(?:\+|\z)")
    return patterns


def matches_any(texts: pa.StringArray, patterns: Iterable[str]) -> pa.BooleanArray:
    """Whether each text matches one of the patterns; null where it is null."""
    found = pc.if_else(texts.is_valid(), False, pa.nulls(len(texts), pa.bool_()))
    for pattern in patterns:
        found = pc.or_(found, pc.match_substring_regex(texts, pattern))
    return found


def below_any(domains: Sequence[str], names: frozenset[str]) -> Iterator[int]:
    """Yield the positions of the domains that are one of `names` or a subdomain of one."""
    for at, domain in enumerate(domains):
        name = domain
        while "." in name:  # a top-level domain is never an entry
            if name in names:
                yield at
                break
            name = name.partition(".")[2]


def find_mark(domain: str, marks: Mapping[str, bool]) -> bool | None:
    """The mark of the most specific name that is `domain` or above it; None without one."""
    while "." in domain:
        if domain in marks:
            return marks[domain]
        domain = domain.partition(".")[2]
    return None


def load_lists(settings: Lists, *, folder: Path | None = None) -> LoadedLists:
    """Load the lists that the settings ask for.

    They are in `folder` or the user's data directory, else in the package.

    Loaded once for equal settings and unchanged files; the result is shared and never changed.
    SettingsError names the file and the line of a wrong entry.

    >>> from mailverdict.model.settings import Lists
    >>> lists = load_lists(Lists(disposable_deny=["throwaway.example"]))
    >>> lists.flags("ada", "throwaway.example").disposable
    True
    """
    where = user_lists_folder() if folder is None else folder
    paths = [where]  # the folder changes when a file comes or goes
    for name in LIST_NAMES:
        paths.append(where / f"{name}.txt")
    for setting in fields(settings):
        value = getattr(settings, setting.name)
        if isinstance(value, Path):
            paths.append(value)
    stamps = tuple(map(stamp_of, paths))
    return load_once(settings, where, stamps)


def stamp_of(path: Path) -> tuple[int, int] | None:
    """The modification time and size of a file; None if there is none."""
    try:
        status = path.stat()
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return None
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=8)
def load_once(
    settings: Lists, folder: Path, _stamps: tuple[tuple[int, int] | None, ...]
) -> LoadedLists:
    """Load everything; the stamps make the cache notice changed files."""
    listings = find_lists(LIST_NAMES, folder)
    entries = {name: read_entries(listing) for name, listing in listings.items()}
    own: dict[str, tuple[str, ...]] = {}
    for setting in fields(settings):
        if setting.name != "extended_roles":
            own[setting.name] = own_entries(settings, setting.name)
    disposable = marks_of(
        (without_relays(entries["disposable"], entries["relays"]), True),
        (entries["not_disposable"] + entries["relays"], False),
        (own["disposable_deny"], True),
        (own["disposable_allow"], False),
    )
    free = marks_of(
        (entries["free"] + entries["free_more"], True),
        (own["free_deny"], True),
        (own["free_allow"], False),
    )
    spamtrap = marks_of((own["spamtrap"], True))
    roles = {*entries["role_core"], *entries["role_languages"]}
    names = {role.removeprefix(WHOLE) for role in roles} | {*own["role_deny"]}
    if settings.extended_roles:
        names.update(entries["role_extended"])
    words = {role for role in roles if not role.startswith(WHOLE) and not WORDS.search(role)}
    return LoadedLists(
        disposable=disposable,
        free=free,
        spamtrap=spamtrap,
        marked=frozenset((*disposable, *free, *spamtrap)),
        role_names=frozenset(names.difference(own["role_allow"])),
        role_words=frozenset(words.difference(own["role_allow"])),
        no_roles=frozenset(own["role_allow"]),
        version=version_text(listings, own, extended=settings.extended_roles),
    )


def marks_of(*layers: tuple[Iterable[str], bool]) -> dict[str, bool]:
    """Combine layers of names; a later one has precedence for the same name."""
    marks: dict[str, bool] = {}
    for names, mark in layers:
        marks.update(dict.fromkeys(names, mark))
    return marks


def without_relays(names: Sequence[str], relays: Iterable[str]) -> list[str]:
    """Drop subdomains of a relay.

    They would be more specific than it, and a relay always beats a list.
    """
    hidden = set(below_any(names, frozenset(relays)))
    return [name for at, name in enumerate(names) if at not in hidden]


def version_text(
    listings: Mapping[str, ListFile], own: Mapping[str, tuple[str, ...]], *, extended: bool
) -> str:
    """Name the versions of the lists, and the user's own entries by a digest."""
    versions = {name: listing.version for name, listing in listings.items()}
    roles = f"{versions['role_core']}+{versions['role_languages']}"
    if extended:
        roles += f"+{versions['role_extended']}"
    parts = [
        f"disposable {versions['disposable']}",
        f"free {versions['free']}+{versions['free_more']}",
        f"role {roles}",
    ]
    if any(own.values()):
        digest = hashlib.sha256(repr(sorted(own.items())).encode()).hexdigest()
        parts.append(f"own {digest[:8]}")
    return ", ".join(parts)


def own_entries(settings: Lists, name: str) -> tuple[str, ...]:
    """Read one of the user's lists in normal form; SettingsError for a wrong entry."""
    is_role = name.startswith("role_")
    entries = []
    for where, text in located_entries(getattr(settings, name), name):
        entry = normal_role(text) if is_role else normal_domain(text)
        if entry is None:
            shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
            kind = "local part" if is_role else "domain"
            raise SettingsError(f"{where}: {shown!r} is not a {kind}")
        entries.append(entry)
    return tuple(entries)


def located_entries(value: Path | tuple[str, ...], name: str) -> Iterator[tuple[str, str]]:
    """Yield the location of each entry, for messages, and the entry."""
    if not isinstance(value, Path):
        for entry in value:
            yield f"Lists.{name}", entry
        return
    try:
        text = value.read_text(encoding="utf-8")
    except (OSError, ValueError) as exc:
        raise SettingsError(
            f"Lists.{name}: cannot read {str(value)!r} as UTF-8 text: {exc}"
        ) from exc
    for number, entry in split_entries(text):
        yield f"Lists.{name}: {value}, line {number}", entry


def normal_role(text: str) -> str | None:
    """Return the form of a local part that is compared; None if it could never match.

    >>> normal_role(" Info ")
    'info'
    """
    name = unicodedata.normalize("NFC", text.strip()).lower()
    return name if name and not re.search(r"[@+\s]", name) else None


def normal_domain(text: str) -> str | None:
    """Return a domain of two or more labels in lower-case A-labels; None if it is not one.

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
