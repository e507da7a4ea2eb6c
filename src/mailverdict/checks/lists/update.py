"""Updating the disposable list, on request only: read, clean, check, show, write.

Lists have been poisoned: in January 2026 an automated fetcher put a law firm and a
telecommunications group on this very list for two days. So a new edition is compared with the one
in use, and refused as a whole if it lost or gained too much, or lists a public suffix or a large
provider; the list in use then stays in use. The bytes come from a function that the caller gives;
this module opens no connection.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from ...errors import InputError, SettingsError
from ...model.words import first_of, printable_text
from .files import (
    find_list,
    find_lists,
    packaged_lists,
    read_entries,
    redact_source,
    split_entries,
    user_lists_folder,
    write_list,
)
from .flags import below_any, normal_domain
from .suffixes import is_public_suffix, public_suffixes
from .suggestions import parse_pairs

DEFAULT_SOURCE = (
    "https://raw.githubusercontent.com/disposable-email-domains/disposable-email-domains/main/"
    "disposable_email_blocklist.conf"
)
LICENCE = "CC0-1.0"  # of the default source
MAX_BYTES = 16 * 1024 * 1024  # a hundred times the list of 2026
MAX_LOSS = 0.05  # the list lost 245 of 10,000 names in the year to 2026-08
MAX_GAIN = 0.25  # and gained 4,000, in small steps
MAX_MALFORMED = 0.01  # more than that is a web page or another format
WAIVABLE = ("loss", "gain")  # a user who has read the difference may accept these
SHOWN = 20  # names in one line of the difference
PROTECTED_LISTS = ("relays", "suggestion_targets", "free_more")


@dataclass(frozen=True, slots=True)
class UpdateRefusal:
    """Why a new edition is refused."""

    guard: str  # "loss", "gain", "suffix", "protected" or "malformed"
    message: str


@dataclass(frozen=True, slots=True)
class ListUpdate:
    """A new edition of the disposable list compared with the one in use."""

    source: str  # without user name and password
    before: int  # number of names in use
    after: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    left_out: Mapping[str, tuple[str, ...]]  # names that cleaning removed, by the cause
    refusals: tuple[UpdateRefusal, ...]  # empty: the edition may be used
    written: Path | None = None  # the file it was written to

    def to_text(self) -> str:
        """Format the difference and the outcome as lines to print."""
        groups = {"added": self.added, "removed": self.removed} | {
            f"left out, {cause}": names for cause, names in self.left_out.items()
        }
        lines = [f"disposable: {self.before:,} names in use, {self.after:,} in {self.source}"]
        lines += [
            f"  {what}: {len(names):,} ({first_of(names, SHOWN)})"
            for what, names in groups.items()
            if names
        ]
        lines += [f"  refused ({each.guard}): {each.message}" for each in self.refusals]
        return "\n".join([*lines, self.outcome()])

    def outcome(self) -> str:
        """Describe the outcome in a line."""
        if self.refusals:
            return "The list in use stays in use."
        if self.written is not None:
            return f"Written to {self.written}"
        return "Nothing written." if self.added or self.removed else "The list in use is the same."


def update_disposable(
    fetch: Callable[[str], bytes],
    *,
    source: str = DEFAULT_SOURCE,
    folder: Path | None = None,
    dry_run: bool = False,
    accept: Collection[str] = (),
    today: Callable[[], date] = lambda: datetime.now(UTC).date(),
) -> ListUpdate:
    """Fetch a new edition of the disposable list and write it.

    It is checked against the one in use, and may be refused.

    `fetch(source)` returns the bytes of a plain-text list; its exceptions are passed on. `accept`
    names guards to ignore (``loss``, ``gain``); the others always apply. InputError if the bytes
    are too large or are not text, SettingsError if `folder` cannot be written to.

    >>> def fetch(source):
    ...     return b"<html>busy</html>"
    >>> update_disposable(fetch, source="demo", dry_run=True).outcome()
    'The list in use stays in use.'
    """
    where = user_lists_folder() if folder is None else folder
    old, is_intact = names_in_use(where)
    protected = protected_domains()
    unwanted = {
        "a typo of a provider": typo_domains(),
        "on the free list": packaged_names("free") - protected,
        "listed by mistake": packaged_names("not_disposable"),
    }
    new, left_out = clean_domains(parse_source(fetch(source), source), unwanted)
    refusals = check_update(old, new, protected, malformed=len(left_out.get("no domain", ())))
    remaining = tuple(each for each in refusals if each.guard not in {*accept} & {*WAIVABLE})
    path = None
    if not (remaining or dry_run or (is_intact and new == old)):
        licence = LICENCE if source == DEFAULT_SOURCE else "that of its source"
        path = write_list(
            where, "disposable", sorted(new), source=source, licence=licence, day=today()
        )
    return ListUpdate(
        source=redact_source(source),
        before=len(old),
        after=len(new),
        added=tuple(sorted(new - old)),
        removed=tuple(sorted(old - new)),
        left_out=left_out,
        refusals=remaining,
        written=path,
    )


def names_in_use(folder: Path) -> tuple[frozenset[str], bool]:
    """The names in use, and whether their file is intact.

    If it is not, these are the packaged names (an update repairs the file).
    """
    try:
        return frozenset(read_entries(find_list("disposable", folder))), True
    except SettingsError:
        return packaged_names("disposable"), False


def packaged_names(*names: str) -> frozenset[str]:
    """The entries of some packaged lists together."""
    return frozenset(
        entry for listing in find_lists(names).values() for entry in read_entries(listing)
    )


def protected_domains() -> frozenset[str]:
    """Domains that no correct edition lists.

    They are relays, the large providers, and the hand-written part of the free list.

    The rest of the free list is not included: a provider of 2005 may have become a disposable one,
    and would then block every update. Such names are left out and shown.
    """
    return packaged_names(*PROTECTED_LISTS)


def check_update(
    old: Collection[str],
    new: Collection[str],
    protected: Collection[str],
    *,
    suffixes: Collection[str] | None = None,
    malformed: int = 0,
) -> tuple[UpdateRefusal, ...]:
    """Compare a new edition with the one in use; empty if it may be used.

    Loss and gain count the names that went and came, so a replacement at equal size is noticed as
    well. `suffixes` are the packaged public suffixes by default, a small list together with the
    form ``com.br``; the whole Public Suffix List is used only when the packaged lists are built.
    `malformed` is the number of entries that are not domains.

    >>> old = {f"throwaway{n}.example" for n in range(100)}
    >>> [each.guard for each in check_update(old, old | {"gmail.com", "com.br"}, {"gmail.com"})]
    ['suffix', 'protected']
    """
    before = frozenset(old)
    after = frozenset(new)
    zones = public_suffixes() if suffixes is None else frozenset(suffixes)
    ordered = sorted(after)
    listed_suffixes = [name for name in ordered if is_public_suffix(name, zones)]
    listed_providers = [ordered[at] for at in below_any(ordered, frozenset(protected))]
    lost = len(before - after)
    gained = len(after - before)
    read = malformed + len(after)
    suffixes = first_of(listed_suffixes, SHOWN)
    providers = first_of(listed_providers, SHOWN)
    guards = (
        (
            "malformed",
            share(malformed, read) > MAX_MALFORMED,
            f"{malformed:,} of {read:,} entries are not domains",
        ),
        (
            "loss",
            share(lost, len(before)) >= MAX_LOSS,
            f"{lost:,} of {len(before):,} names are gone",
        ),
        (
            "gain",
            share(gained, len(before)) >= MAX_GAIN,
            f"{gained:,} names are new beside {len(before):,}",
        ),
        ("suffix", bool(listed_suffixes), f"public suffixes ({suffixes})"),
        ("protected", bool(listed_providers), f"providers that must not be listed ({providers})"),
    )
    return tuple(UpdateRefusal(guard, message) for guard, holds, message in guards if holds)


def share(part: int, whole: int) -> float:
    """`part` of `whole`; 0 if `whole` is 0."""
    return part / whole if whole else 0.0


def clean_domains(
    entries: Iterable[str], unwanted: Mapping[str, Collection[str]]
) -> tuple[frozenset[str], dict[str, tuple[str, ...]]]:
    """Convert entries to their normal form; return the names, and by the cause what was left out.

    `unwanted` are the names to leave out, by the cause; ``no domain`` is an additional cause.
    """
    normal = {text: normal_domain(text) for text in entries}
    names = frozenset(name for name in normal.values() if name is not None)
    left_out = {
        "no domain": tuple(
            sorted(printable_text(text, 80) for text, name in normal.items() if name is None)
        )
    }
    left_out |= {
        cause: tuple(sorted(names & frozenset(those))) for cause, those in unwanted.items()
    }
    return names.difference(*unwanted.values()), {
        cause: those for cause, those in left_out.items() if those
    }


def typo_domains() -> frozenset[str]:
    """The known typing errors of providers.

    Squatters receive mail there, but the mailboxes are not disposable.
    """
    return frozenset(wrong for wrong, _ in parse_pairs(packaged_names("typo_domains")))


def parse_source(data: bytes, source: str) -> tuple[str, ...]:
    """Read the entries of a plain-text list; InputError if it is too large, or is not text."""
    shown = redact_source(source)
    if len(data) > MAX_BYTES:
        raise InputError(
            f"{shown}: {len(data):,} bytes are too many for a list; the limit is {MAX_BYTES:,}"
        )
    try:
        return tuple(entry for _, entry in split_entries(data.decode("utf-8")))
    except UnicodeDecodeError as exc:
        raise InputError(
            f"{shown}: this is not UTF-8 text ({exc.reason} at byte {exc.start})"
        ) from exc


def describe_lists(folder: Path | None = None) -> list[dict[str, Any]]:
    """Describe every list in use, in the order of the manifest; SettingsError if a copy is damaged.

    >>> sorted(describe_lists()[0])
    ['date', 'licence', 'list', 'origin', 'rows', 'source', 'version']
    """
    where = user_lists_folder() if folder is None else folder
    keys = ("rows", "version", "date", "licence", "source", "origin")
    in_use = find_lists(packaged_lists(), where)
    return [
        {"list": name} | {key: getattr(each, key) for key in keys} for name, each in in_use.items()
    ]
