"""Did you mean: the provider that a mistyped domain stands for. Nothing is looked up, nothing is rewritten.

In this order: the table of known slips; never for a provider or domain that is known to be real; then
the rules, against about a hundred large providers:

* the end (all after the first label) is right, the first label has 5 letters or more and is one edit
  away, and its first letter is right or a neighbour on the keyboard;
* the end is a slip of the right one (``con``, ``cmo`` ...), the first label is right or as above;
* the dot is in the wrong place.

One candidate, or none. Edits are those of optimal string alignment: a letter too many, too few or
wrong, or two neighbours exchanged. All labels one edit away from a provider's are written out once,
so that a look-up is a dictionary's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from .files import find_lists, read_entries

__all__ = ["SuggestionIndex", "build_index", "suggest_domain", "suggest_domains"]

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-"  # all that an A-label is made of
MIN_LABEL = 5  # shorter names are one edit away from too many real ones
MIN_MOVED = 8  # letters that must agree before a moved dot is a slip and not another name

# Ends that do not exist, so that nobody real is hurt; seen in typo tables (2026-08).
SLIPS: Mapping[str, tuple[str, ...]] = {
    "com": ("con", "cmo", "ocm", "comm", "vom", "xom", "coom", "cim", "cpm"),
    "net": ("ner", "nte", "ney", "nett"),
    "co.uk": ("co.u", "co.ul", "co.ik", "co.yk", "co.ukk"),
}
# Ends that do exist: only with a name that is right, and so large that its owner took these too.
TAKEN_SLIPS = ("co", "cm", "om")
LARGEST = ("gmail.com", "hotmail.com", "yahoo.com", "outlook.com", "icloud.com")

KEYBOARD = ("1234567890-", "qwertyuiop", "asdfghjkl", "zxcvbnm")  # QWERTY; each row half a key to the right
TOUCHED = ((0, -1), (0, 1), (-1, 0), (-1, 1), (1, -1), (1, 0))  # rows and keys away
KNOWN_LISTS = ("suggestion_targets", "known_domains", "free", "free_more", "relays")


@dataclass(frozen=True, slots=True)
class SuggestionIndex:
    """Everything a look-up needs.

    Attributes
    ----------
    typos : mapping of str to str
        Known slips and what was meant.
    known : frozenset of str
        Real domains that are never taken for a slip.
    near : mapping of str to tuple of str
        First labels, right or one edit away, and the providers' labels they may stand for.
    ends : mapping of (str, str) to str
        Provider label and end, right or mistyped, and the provider.
    exact : mapping of str to str
        Whole domains that only stand for a provider as they are.
    undotted : mapping of str to str
        Providers by their letters without the dots.
    """

    typos: Mapping[str, str]
    known: frozenset[str]
    near: Mapping[str, tuple[str, ...]]
    ends: Mapping[tuple[str, str], str]
    exact: Mapping[str, str]
    undotted: Mapping[str, str]

    def suggest(self, domain: str) -> str | None:
        """Give the provider that `domain` stands for, or None."""
        if domain in self.typos:
            return self.typos[domain]
        label, _, end = domain.partition(".")
        labels = self.near.get(label, ())
        moved = self.undotted.get(domain.replace(".", ""))
        if not (labels or moved) or domain in self.known:
            return None
        found = {self.ends[each, end] for each in labels if (each, end) in self.ends}
        if domain in self.exact:
            found.add(self.exact[domain])
        if moved and domain.count(".") <= moved.count("."):
            found.add(moved)
        return found.pop() if len(found) == 1 else None


def suggest_domain(ascii_domain: str) -> str | None:
    """Give the provider that a mistyped domain most likely stands for.

    Parameters
    ----------
    ascii_domain : str
        Lower-case domain in A-labels.

    Returns
    -------
    str or None
        None where the domain is a known one, or no single provider is near. Only ever a question
        to the user: the domain may exist.

    Examples
    --------
    >>> suggest_domain("gmial.com")
    'gmail.com'
    >>> suggest_domain("ymail.com") is None
    True
    """
    return packaged_index().suggest(ascii_domain)


def suggest_domains(domains: Sequence[str], *, skip: Collection[str] = frozenset()) -> list[str | None]:
    """Give `suggest_domain` of many domains at once.

    Parameters
    ----------
    domains : sequence of str
        Lower-case domains in A-labels, best each once.
    skip : collection of str
        Domains that the caller knows to be right; a set, if there are many.

    Returns
    -------
    list of (str or None)
        As long as `domains`.

    Examples
    --------
    >>> suggest_domains(["yaho.com", "hotmail.con", "example.org"], skip={"yaho.com"})
    [None, 'hotmail.com', None]
    """
    suggest = packaged_index().suggest
    return [None if domain in skip else suggest(domain) for domain in domains]


@lru_cache(maxsize=1)
def packaged_index() -> SuggestionIndex:
    """Build the index of the packaged lists, once."""
    entries = {name: read_entries(each) for name, each in find_lists(("typo_domains", *KNOWN_LISTS)).items()}
    return build_index(
        targets=entries["suggestion_targets"],
        typos=dict(parse_pairs(entries["typo_domains"])),
        known=(domain for name in KNOWN_LISTS for domain in entries[name]),
    )


def parse_pairs(entries: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Split ``slip meant`` into its two domains."""
    for entry in entries:
        slip, meant = entry.split()
        yield slip, meant


def build_index(targets: Iterable[str], typos: Mapping[str, str], known: Iterable[str]) -> SuggestionIndex:
    """Write out everything that is near a target."""
    meant = tuple(targets)
    near: defaultdict[str, list[str]] = defaultdict(list)
    for label in sorted({target.partition(".")[0] for target in meant}):
        for variant in variants_of(label):
            near[variant].append(label)
    return SuggestionIndex(
        typos=dict(typos),
        known=frozenset((*meant, *known)),
        near={variant: tuple(labels) for variant, labels in near.items()},
        ends={end: target for target in meant for end in ends_of(target)},
        exact={target[:-3] + slip: target for target in meant if target in LARGEST for slip in TAKEN_SLIPS},
        undotted={bare: target for target in meant if len(bare := target.replace(".", "")) >= MIN_MOVED},
    )


def ends_of(target: str) -> Iterator[tuple[str, str]]:
    """A provider's label with its end and with each slip of that end."""
    label, _, end = target.partition(".")
    yield from ((label, each) for each in (end, *SLIPS.get(end, ())))


def variants_of(label: str) -> set[str]:
    """The label itself and, if it is long enough, all one edit away with a plausible first letter."""
    if len(label) < MIN_LABEL:
        return {label}
    first = label[0] + neighbours_of(label[0])
    return {label} | {each for each in edits_of(label) if each[0] in first}


def edits_of(label: str) -> Iterator[str]:
    """All texts one edit of optimal string alignment away."""
    for at in range(len(label) + 1):
        head, tail = label[:at], label[at:]
        yield from (head + letter + tail for letter in LETTERS)
        if tail:
            yield head + tail[1:]
            yield from (head + letter + tail[1:] for letter in LETTERS)
        if len(tail) > 1:
            yield head + tail[1] + tail[0] + tail[2:]


def neighbours_of(letter: str) -> str:
    """The keys around a key: left and right, and the two it touches in the rows above and below.

    >>> neighbours_of("h")
    'gjyubn'
    """
    row = next((at for at, keys in enumerate(KEYBOARD) if letter in keys), None)
    if row is None:
        return ""
    column = KEYBOARD[row].index(letter)
    touched = ((row + down, column + right) for down, right in TOUCHED)
    return "".join(KEYBOARD[r][c] for r, c in touched if 0 <= r < len(KEYBOARD) and 0 <= c < len(KEYBOARD[r]))
