"""Suggestions for mistyped domains ("did you mean"). Nothing is looked up and nothing is rewritten.

In this order: the table of known typing errors; no suggestion for a provider or domain that is
known to be real; then the rules, against about a hundred large providers:

* the ending (all after the first label) is right, the first label has 5 letters or more and is one
  edit away, and its first letter is right, a neighbour on the keyboard or of the same sound; of 7
  letters or more, it may also be lost, or stand behind another one;
* the top-level domain is one edit away from the right one and does not exist (``con``, ``come``
  ...), and the first label is right or as above;
* the dot is in the wrong place.

    gmial.com     gmail.com     two neighbours exchanged
    gmail.con     gmail.com     ``con`` does not exist
    gmailc.om     gmail.com     the dot
    ymail.com     none          it is real

One candidate, or no suggestion. Edits are those of optimal string alignment: a letter too many, too
few or wrong, or two neighbours exchanged. All labels one edit away from a provider's are generated
once, so that a look-up is one access to a dictionary.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from .files import find_lists, read_entries
from .root_zone import top_levels

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-"  # the characters of an A-label
MIN_LABEL = 5  # shorter names are one edit away from too many real ones
# Letters; of such a name the first may be lost, or one be put before it: icloud is not micloud.
MIN_ANCHORED = 7
MIN_MOVED = 8  # letters that must agree before a moved dot is a typing error and not another name

# Their typing errors that the root zone does not have are typing errors that no real domain has.
LAST_LABELS = ("com", "net", "de", "it", "uk")
# Seen in tables of typing errors (2026-08).
FURTHER_ENDINGS: Mapping[str, tuple[str, ...]] = {"com": ("c", "comcom")}
# Endings that exist: only with a correct name, of a provider so large that it owns these domains
# too.
OWNED_ENDINGS = ("co", "cm", "om")
LARGEST_PROVIDERS = ("gmail.com", "hotmail.com", "yahoo.com", "outlook.com", "icloud.com")

# QWERTY; each row half a key to the right.
KEYBOARD = (
    "1234567890-",
    "qwertyuiop",
    "asdfghjkl",
    "zxcvbnm",
)
SAME_SOUND = {"y": "j", "j": "y"}  # written for each other in many languages
NEIGHBOUR_OFFSETS = ((0, -1), (0, 1), (-1, 0), (-1, 1), (1, -1), (1, 0))  # rows and keys away
KNOWN_LISTS = ("suggestion_targets", "known_domains", "free", "free_more", "relays")


@dataclass(frozen=True, slots=True)
class SuggestionIndex:
    """The tables of a look-up."""

    typos: Mapping[str, str]  # known typing errors, and the domain that was meant
    known: frozenset[str]  # real domains, which get no suggestion
    # First labels, right or one edit away, and the providers' labels.
    near: Mapping[str, tuple[str, ...]]
    # Provider's label and ending, right or wrong, and the provider.
    ends: Mapping[tuple[str, str], str]
    exact: Mapping[str, str]  # whole domains that stand for a provider only as they are
    undotted: Mapping[str, str]  # providers by their letters without the dots

    def suggest(self, domain: str) -> str | None:
        """Return the provider that `domain` probably means, or None."""
        if domain in self.typos:
            return self.typos[domain]
        label, _, end = domain.partition(".")
        labels = self.near.get(label, ())
        moved = self.undotted.get(domain.replace(".", ""))
        if not (labels or moved) or domain in self.known:
            return None
        providers = set()
        for right_label in labels:
            if (right_label, end) in self.ends:
                providers.add(self.ends[right_label, end])
        if domain in self.exact:
            providers.add(self.exact[domain])
        if moved and domain.count(".") <= moved.count("."):
            providers.add(moved)
        if len(providers) != 1:
            return None
        return providers.pop()


def suggest_domain(ascii_domain: str) -> str | None:
    """Return the provider that a lower-case domain in A-labels probably means.

    None for a known domain, and if it is like no provider's.

    >>> suggest_domain("gmial.com")
    'gmail.com'
    >>> suggest_domain("ymail.com") is None
    True
    """
    return packaged_index().suggest(ascii_domain)


def suggest_domains(domains: Sequence[str]) -> list[str | None]:
    """Apply `suggest_domain` to many domains.

    >>> suggest_domains(["hotmail.con", "example.org"])
    ['hotmail.com', None]
    """
    index = packaged_index()
    typos = index.typos
    near = index.near
    undotted = index.undotted
    suggestions: list[str | None] = [None] * len(domains)
    for position, domain in enumerate(domains):  # hardly any domain is in one of the tables
        if (
            domain in typos
            or domain.partition(".")[0] in near
            or domain.replace(".", "") in undotted
        ):
            suggestions[position] = index.suggest(domain)
    return suggestions


@lru_cache(maxsize=1)
def packaged_index() -> SuggestionIndex:
    """Build the index of the packaged lists, once."""
    lists = find_lists(("typo_domains", *KNOWN_LISTS))
    entries = {name: read_entries(file) for name, file in lists.items()}
    known: list[str] = []
    for name in KNOWN_LISTS:
        known += entries[name]
    return build_index(
        targets=entries["suggestion_targets"],
        typos=dict(parse_pairs(entries["typo_domains"])),
        known=known,
    )


def parse_pairs(entries: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Split entries of the form ``wrong right`` into their two domains."""
    for entry in entries:
        wrong, right = entry.split()
        yield wrong, right


def build_index(
    targets: Iterable[str], typos: Mapping[str, str], known: Iterable[str]
) -> SuggestionIndex:
    """Generate the tables for the providers in `targets`."""
    providers = tuple(targets)
    first_labels = {provider.partition(".")[0] for provider in providers}
    near: defaultdict[str, list[str]] = defaultdict(list)
    for label in sorted(first_labels):
        for variant in variants_of(label):
            near[variant].append(label)
    exact: dict[str, str] = {}
    undotted: dict[str, str] = {}
    for provider in providers:
        if provider in LARGEST_PROVIDERS:
            name = provider.removesuffix("com")
            for ending in OWNED_ENDINGS:
                exact[name + ending] = provider
        letters = provider.replace(".", "")
        if len(letters) >= MIN_MOVED:
            undotted[letters] = provider
    return SuggestionIndex(
        typos=dict(typos),
        known=frozenset((*providers, *known)),
        near={variant: tuple(labels) for variant, labels in near.items()},
        ends=unique_ends(providers),
        exact=exact,
        undotted=undotted,
    )


def unique_ends(targets: Iterable[str]) -> dict[tuple[str, str], str]:
    """Map each label and ending, right or wrong, to the only target that it may mean."""
    meant: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for target in targets:
        for end in ends_of(target):
            meant[end].add(target)
    return {end: providers.pop() for end, providers in meant.items() if len(providers) == 1}


def ends_of(target: str) -> Iterator[tuple[str, str]]:
    """Yield a provider's label with its ending and with each wrong form of that ending."""
    label, _, end = target.partition(".")
    yield label, end
    for wrong in wrong_endings(end):
        yield label, wrong


def wrong_endings(end: str) -> frozenset[str]:
    """The typing errors of an ending whose top-level domain does not exist.

    >>> "come" in wrong_endings("com"), "cam" in wrong_endings("com")
    (True, False)
    >>> "co.u" in wrong_endings("co.uk")
    True
    """
    front, dot, last = end.rpartition(".")
    if last not in LAST_LABELS:
        return frozenset()
    errors = {*edits_of(last), *FURTHER_ENDINGS.get(last, ())}
    errors -= top_levels()
    errors.discard("")
    return frozenset(front + dot + error for error in errors)


def variants_of(label: str) -> set[str]:
    """The label itself and, if it is long enough, all labels one edit away.

    The first letter of each must be plausible.
    """
    if len(label) < MIN_LABEL:
        return {label}
    plausible = first_letters(label)
    variants = {edit for edit in edits_of(label) if edit[0] in plausible}
    variants.add(label)
    if len(label) >= MIN_ANCHORED:
        variants.add(label[1:])
        variants.update(letter + label for letter in LETTERS)
    return variants


def first_letters(label: str) -> str:
    """The first letters that a label and its typing errors may have."""
    first = label[0]
    return first + neighbours_of(first) + SAME_SOUND.get(first, "")


def edits_of(label: str) -> Iterator[str]:
    """Yield all texts one edit of optimal string alignment away."""
    for position in range(len(label) + 1):
        head = label[:position]
        tail = label[position:]
        for letter in LETTERS:
            yield head + letter + tail
        if not tail:
            continue
        yield head + tail[1:]
        for letter in LETTERS:
            yield head + letter + tail[1:]
        if len(tail) > 1:
            yield head + tail[1] + tail[0] + tail[2:]


def neighbours_of(letter: str) -> str:
    """The keys around a key: left and right, and the two next to it in the rows above and below.

    >>> neighbours_of("h")
    'gjyubn'
    """
    neighbours = ""
    for row, keys in enumerate(KEYBOARD):
        if letter not in keys:
            continue
        for down, right in NEIGHBOUR_OFFSETS:
            other_row = row + down
            key = keys.index(letter) + right
            if 0 <= other_row < len(KEYBOARD) and 0 <= key < len(KEYBOARD[other_row]):
                neighbours += KEYBOARD[other_row][key]
    return neighbours
