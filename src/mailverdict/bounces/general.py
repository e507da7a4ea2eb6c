"""The general reading: an export of no known service, by the names of its columns and its cells.

    Contact e-mail   Bounce type   error_message            when
    ada@web.de       Permanent     550 5.1.1 User unknown   2026-03-05T10:00:00Z
    -> address, cells, cells, at -> word "Permanent", reply "550 5.1.1 User unknown"

A layout is made of the names that mean an address, a time, a word, a reply or a status. A cell is
then a status, a code, a reply, a sentence or a word by its text. A word that also occurs in tables
about other things counts only if the row also speaks of a delivery.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain

from ..checks.bounces.message import CODE_AND_STATUS
from ..checks.bounces.outcome import REPLY, Outcome, find_status
from ..checks.bounces.parts import find_address
from ..model.address import folded_key
from ..table.columns import listed, plain_word
from .services import (
    BESIDE,
    CELLS,
    DIRECTION,
    FEEDBACK,
    GENERAL,
    SENTENCES,
    SKIP,
    ExportLayout,
    general_names,
)
from .words import ExportRow, known_word, last_member, whole_word, word_of_flag

RANK_OF_TEXTS = 3  # in `general.cells`: from here on a cell may be a sentence
# A column that is called like an address, if no other one is: "Contact e-mail address".
LIKE_ADDRESS = re.compile(r"e-?mail|recipient|rcpt", re.IGNORECASE)
UNLIKE = re.compile(
    r"from|sender|reply|owner|status|type|\bid\b|_id|count|subject|client|template|campaign|name"
    r"|date|time|domain",
    re.IGNORECASE,
)
BOUNCE_WORD = re.compile(r"bounc", re.IGNORECASE)
DELIVERY = re.compile(
    r"bounc|complain|deliver|smtp|suppress|feedback|fail|reject|report|drop|dsn", re.IGNORECASE
)


@lru_cache(maxsize=1_000)
def general_layout(names: tuple[str, ...]) -> ExportLayout | None:
    """The names that mean an address, a time, a word, a reply or a status.

    None without an address or the rest.

    >>> layout = general_layout(("id", "to", "data.bounce.type", "error_message", "created_at"))
    >>> layout.columns["address"], layout.columns["cells"], layout.columns["at"]
    (('to',), ('data.bounce.type', 'error_message'), ('created_at',))
    """
    columns: dict[str, tuple[str, ...]] = {}
    for field in ("address", "at", FEEDBACK, DIRECTION, CELLS):
        theirs = names_of_field(names, field)
        if theirs:
            columns[field] = theirs
    if "address" not in columns:
        like = filter(LIKE_ADDRESS.search, names)
        likely = tuple(name for name in like if not UNLIKE.search(name))
        if len(likely) == 1:
            columns["address"] = likely
    if "address" not in columns or columns.keys().isdisjoint((CELLS, FEEDBACK)):
        return None
    taken = set(chain.from_iterable(columns.values()))
    others = [name for name in names if name not in taken]
    beside = tuple(filter(may_give_cause, others))
    if beside:
        columns[BESIDE] = beside
    return ExportLayout(GENERAL, columns, "the names of its columns")


def names_of_field(names: Iterable[str], field: str) -> tuple[str, ...]:
    """The names that mean a field, those that mean it most surely first."""
    ranks = general_names(field)
    order = list(ranks)
    places: dict[str, tuple[int, int]] = {}
    for name in names:
        word = general_name(name, field)
        if word is not None and not is_not_ours(name):
            places[name] = (ranks[word], order.index(word))
    return tuple(sorted(places, key=places.__getitem__))


def general_name(name: str, field: str) -> str | None:
    """The name by which a column or member is known in the general reading; None if it is not."""
    ranks = general_names(field)
    word = plain_word(last_member(name))
    if word in ranks:
        return word
    outer = plain_word(last_member(name.rpartition(".")[0]))
    if field == CELLS and ranks.get(outer, 0) >= RANK_OF_TEXTS:  # the text of an inner object
        return outer
    return None


def may_give_cause(name: str) -> bool:
    """Whether the last word of a name is one of a cause: "bounce log", "recipientState".

    >>> may_give_cause("recipientState"), may_give_cause("Postal code of home")
    (True, False)
    """
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", last_member(name))
    if not words or is_not_ours(name):
        return False
    return words[-1].lower() in general_names(BESIDE)


def cause_beside(cells: Iterable[tuple[str, str]]) -> tuple[list[str], str | None]:
    """The words and the reply of cells whose names mean neither for sure.

    Only what can be nothing else is taken: "HardBounce", or the reply of a mail server.

    >>> cause_beside([("recipientState", "HardBounce"), ("order_status", "failed")])
    (['HardBounce'], None)
    >>> cause_beside([("smtp_log", "550 5.1.1 User unknown"), ("Comments", "called")])
    ([], '550 5.1.1 User unknown')
    """
    words: list[str] = []
    replies: list[str] = []
    for _, text in cells:
        if CODE_AND_STATUS.search(text):
            replies.append(text)
        elif BOUNCE_WORD.search(text) and known_word(text) in (Outcome.HARD, Outcome.SOFT):
            words.append(text)
    return words, next(iter(replies), None)


def general_description(layout: ExportLayout) -> str:
    """The names by which the general reading reads, for people."""
    kinds = {"address": "addresses", CELLS: "words and replies", "at": "times"}
    shown = []
    for field, kind in kinds.items():
        if field in layout.columns:
            shown.append(f"{kind} were taken from {listed(layout.columns[field])}")
    if BESIDE in layout.columns:
        shown.append(f"causes that these do not give, from {listed(layout.columns[BESIDE])}")
    return ", ".join(shown)


def may_be_recipient(name: str) -> bool:
    return plain_word(last_member(name)) in general_names("address") and not is_not_ours(name)


def is_not_ours(name: str) -> bool:
    """Whether a member is one of the sender, or of the headers of a mail."""
    outer = name.split(".")[:-1]
    return any(plain_word(part) in general_names("not_ours") for part in outer)


def general_address(row: ExportRow) -> tuple[str, str]:
    """The address of the first rank of names that has one, or "" and why there is none."""
    ranks = general_names("address")
    by_rank: dict[int, dict[str, str]] = {}
    seen = ""
    for name, cell in row.filled("address"):
        seen = seen or cell
        address = find_address(cell)
        if address is None:
            continue
        rank = ranks.get(plain_word(last_member(name)), 0)
        if "original" in name.lower():
            rank -= 1
        of_rank = by_rank.setdefault(rank, {})
        of_rank.setdefault(folded_key(address), address)
    if not by_rank:
        return "", why_no_address(seen)
    first_rank = min(by_rank)
    address, *others = by_rank[first_rank].values()
    if others:
        shown = f"{address[:60]!r} and {others[0][:60]!r}"
        return "", f"it names several addresses, {shown}; name the column"
    return address, ""


def names_several(text: str) -> bool:
    return text.count("@") > 1 and ", " in text


def why_no_address(text: str) -> str:
    """Why a text is not the address of a row."""
    if names_several(text):
        return f"it names several addresses, {text[:80]!r}, and not which of them is meant"
    return f"{text[:40]!r} is not an address"


def sort_cells(
    cells: Iterable[tuple[str, str]],
) -> tuple[list[tuple[str, str]], str | None, str | None]:
    """The words of a row with their names, its status and its reply, by what each cell holds."""
    words: list[tuple[str, str]] = []
    replies: list[str] = []
    statements: list[str] = []
    status: str | None = None
    code: str | None = None
    for name, text in cells:
        word = word_of_flag(name, text)
        if re.fullmatch(r"[45]\d\d", text):
            code = code or text
        elif text.isdigit() or word is None:
            continue
        elif re.fullmatch(r"[245]\.\d{1,3}\.\d{1,3}", text):
            status = status or text
        elif find_status(text) or REPLY.search(text):
            replies.append(text)
        else:
            is_long = " " in text and whole_word(text) is None  # "hard bounce" is a word
            is_sentence = is_long or any(pattern.search(text) for pattern, _ in SENTENCES)
            if is_sentence and rank_of_cell(name) >= RANK_OF_TEXTS:
                statements.append(text)
            if " " not in text or known_word(text) is not None:
                words.append((name, word))
    texts = replies or statements
    if not texts:
        return words, status, code
    diagnostic = texts[0]
    if code is not None and not REPLY.search(diagnostic):
        diagnostic = f"{code} {diagnostic}"
    return words, status, diagnostic


def rank_of_cell(name: str) -> int:
    """How surely the name of a cell means a word or reply: 0 most surely."""
    return general_names(CELLS)[str(general_name(name, CELLS))]


def believed_words(
    words: Sequence[tuple[str, str]], *, has_reply: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of a row in the general reading, without tags of the sender; and the doubtful ones.

    "Permanent" or "spam" is said of an employment or of a web form, too: it counts if something
    else in the row speaks of a delivery.

    >>> believed_words([("type", "permanent")], has_reply=False)
    ((), ('permanent',))
    >>> believed_words([("bounce_type", "permanent")], has_reply=False)
    (('permanent',), ())
    """
    is_delivery = has_reply
    for name, word in words:
        is_event = rank_of_cell(name) == 0 and known_word(word) is not None
        if is_event or DELIVERY.search(f"{name} {word}"):
            is_delivery = True
    believed: list[str] = []
    doubtful: list[str] = []
    tags: list[str] = []
    for name, word in words:
        if plain_word(word) in general_names("elsewhere") and not is_delivery:
            doubtful.append(word)
            continue
        if plain_word(last_member(name)) in general_names("tags"):
            tags.append(word)
        else:
            believed.append(word)
    known = [meaning for meaning in map(known_word, believed) if meaning is not None]
    if not known or known[0] not in (SKIP, Outcome.DELIVERED, Outcome.COMPLAINT):
        believed += tags
    return tuple(dict.fromkeys(believed)), tuple(dict.fromkeys(doubtful))
