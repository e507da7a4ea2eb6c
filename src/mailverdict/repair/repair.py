"""Repair of one cell that is not an address as it stands.

The address in it is found, or one is suggested.

`repair_cell` repairs one cell, in this order:

    characters.py   invisible characters, escapes, HTML, width, words in brackets for signs
    addresses.py    every address of the text is read
    around.py       whether the text around them may be removed
    lists.py        if there is none, the text is rewritten (blanks in a domain, parts of a list
                    without an address; before them percent-encoding and other late decoders of
                    characters.py) and read again
    guess.py        what was probably meant, if there is still none
    wrapped.py      the address that a forwarder or a mailing list wrote into one of its own

A bare word, in which nothing can be removed, goes to `repair_word` at once. words.py has the words
that all of these know; remarks.py the words beside an address that ask for no mail.

*Safe* repairs remove the text around an address or write a character in another standard form; they
are applied. Repairs to *ask* about guess what was meant; their result is only a suggestion.
`REPAIRS` lists them all.

    " Ada <ada@FIRM.com>; "   ada@firm.com, by `blanks`, `unwrapped` and `case`
    "ada@gmail,com"           ada@gmail.com is suggested

An address is only read where its neighbours cannot be a part of it: a wrong address is worse than
none. Every pattern is bounded, so the time grows with the length of the cell and not faster. Most
cells of a column need few of these steps; each begins with the sign without which it changes
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..checks.syntax.address import canonical_form, is_well_formed
from ..checks.syntax.lenient import accept_leniently
from ..model.address import address_key, folded_key
from .addresses import SIGN_IN_ADDRESS, Place, find_addresses, is_whole
from .around import changes_of, is_separated
from .characters import LATE_DECODERS, SIGN_OF_CODE, decode_characters, remove_invisible
from .guess import (
    decode_again,
    guess_address,
    guess_domain,
    guess_parts,
    may_hold_address,
    write_plain_signs,
)
from .lists import REWRITERS
from .words import names_nobody
from .wrapped import unwrap_address

MAX_CELL = 1_000_000  # characters; a longer cell is not repaired


@dataclass(frozen=True, slots=True)
class Repair:
    """One row of the table of repairs."""

    name: str  # in the column `change`
    is_safe: bool  # True: applied; False: only suggested
    before: str
    after: str
    why: str


REPAIRS: tuple[Repair, ...] = (
    Repair("blanks", True, " ada@firm.com\u200b", "ada@firm.com",
           "blanks around an address, invisible and control characters are never part of it"),
    Repair("html", True, '<a href="mailto:ada@firm.com">Ada</a>', "ada@firm.com",
           "markup of a web page; an entity such as &#64; is another form of its character"),
    Repair("width", True, "ada＠firm．com", "ada@firm.com",
           "full-width, half-width and small forms are the same characters (Unicode NFKC)"),
    Repair("at_sign", True, "ada [at] firm [dot] com", "ada@firm.com",
           "brackets around the word show that it replaces a sign"),
    Repair("list", True, "['ada@firm.com']", "ada@firm.com",
           "a list with one text: a cell that is one, or a list as JSON or Python writes it"),
    Repair("percent", True, "ada%40firm.com", "ada@firm.com",
           "percent-encoding of a link (RFC 3986), if decoding gives an address and the cell is "
           "not one"),
    Repair("escape", True, "\\u003cada@firm.com\\u003e", "ada@firm.com",
           "escapes of JSON, of Python and of quoted-printable text (RFC 2045) are another form "
           "of their character"),
    Repair("link", True, "mailto:ada@firm.com?subject=Hello", "ada@firm.com",
           "scheme and parameters of a link (RFC 6068), or the function of a spreadsheet"),
    Repair("label", True, "E-Mail: ada@firm.com", "ada@firm.com",
           "the name of the field, in many languages"),
    Repair("unwrapped", True, '"Lovelace, Ada" <ada@firm.com>', "ada@firm.com",
           "a display name (RFC 5322), quotes and brackets, also if one half is missing"),
    Repair("words", True, "ada@firm.com, Tel. 030 1234567", "ada@firm.com",
           "words, numbers and placeholders that are separated from a single address"),
    Repair("remark", True, "ada@firm.com - do not contact", "ada@firm.com",
           "words that ask for no mail, or say that the address is out of use; policies have a "
           "person review the row"),
    Repair("joined", True, "ada @firm. com", "ada@firm.com",
           "blanks beside the at sign or beside a dot of the domain, whose end is a top-level "
           "domain"),
    Repair("part", True, "ada@firm.com; bob@firm", "ada@firm.com",
           "a part of a list that is not an address; the other parts are read"),
    Repair("repeated", True, "ada@firm.com; ada@firm.com", "ada@firm.com",
           "the same address several times"),
    Repair("punctuation", True, "ada@firm.com;", "ada@firm.com",
           "punctuation, bullets and list numbers around an address"),
    Repair("unicode", True, "ad\u0061\u0301@firm.com", "adá@firm.com",
           "the same characters, composed (Unicode NFC); in a domain, its standard form (UTS 46)"),
    Repair("case", True, "Ada@FIRM.com", "Ada@firm.com",
           "the case of a domain has no meaning (RFC 4343)"),
    Repair("missing_at", False, "ada at firm dot com", "ada@firm.com",
           "a word or another sign stands for the at sign; it may be part of a name"),
    Repair("repeated_sign", False, "ada@@firm..com", "ada@firm.com",
           "a sign typed twice, or a dot at an end; a character may be missing between"),
    Repair("comma", False, "ada@gmail,com", "ada@gmail.com",
           "a comma for a dot; it may also separate two values"),
    Repair("inner_blank", False, "ada@firm com", "ada@firm.com",
           "a blank inside; it may stand for a missing character"),
    Repair("top_level", False, "ada@gmail", "ada@gmail.com",
           "the end of a well-known provider's domain is missing"),
    Repair("typed_sign", False, "<o’neil@firm.com>", "o'neil@firm.com",
           "a typographic apostrophe or dash between two letters; it may also separate two words"),
    Repair("unclear_text", False, "ada@firm.com bob@firm", "ada@firm.com",
           "one address can be read, but the rest of the cell may be a second one or a part of it"),
    Repair("prefix", False, "'ada@firm.com", "ada@firm.com",
           "an address as it stands, but its first characters are probably a quote, a label or an "
           "encoded blank"),
    Repair("look_alike", False, "\u0430da@firm.com", "ada@firm.com",
           "letters that look like others, or were decoded wrongly, and a symbol that touches an "
           "address"),
    Repair("wrapped", False, "SRS0=HHH=TT=firm.com=ada@forwarder.net", "ada@firm.com",
           "a forwarder, a mailing list or a directory wrote the address into one of its own, in "
           "an exact format"),
    Repair("typo_domain", False, "ada@gmial.com", "ada@gmail.com",
           "the domain is one typing error away from a large provider's"),
)  # fmt: skip


# Among the names of repairs: the address is a suggestion that a person accepted.
ACCEPTED = "suggestion"


class RepairedCell(NamedTuple):
    """What was found in a cell that is not an address as it stands."""

    # Distinct, in order; one: the cell is repaired; more: it holds several.
    addresses: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()  # names of the repairs that were applied; only for one address
    # The address that was probably meant, if there is none in `addresses`.
    suggestion: str | None = None


NOTHING = RepairedCell()

# Nothing in such a text can separate an address from the rest.
BARE_WORD = re.compile(r"[0-9A-Za-z._+\-]{1,255}@[0-9A-Za-z._+\-]{0,255}[0-9A-Za-z]")


def repair_cell(cell: str, *, suggests: bool = True) -> RepairedCell:
    """Repair a cell that is not a well-formed address.

    Without `suggests` no address that may be meant is looked for.

    >>> cell = repair_cell("E-Mail: Ada@FIRM.com;")
    >>> cell.addresses, cell.changes
    (('Ada@firm.com',), ('label', 'case'))
    >>> repair_cell("ada@gmail,com")
    RepairedCell(addresses=(), changes=(), suggestion='ada@gmail.com')
    """
    if BARE_WORD.fullmatch(cell) and "_x00" not in cell:
        return repair_word(cell, suggests=suggests)
    if len(cell) >= MAX_CELL:
        return NOTHING
    text = remove_invisible(cell)
    changes: dict[str, None] = {}
    if text != cell:
        changes["blanks"] = None
        if is_well_formed(text) and is_whole(text):
            return as_repaired(text, changes)
    rewriters: Sequence[tuple[str, Callable[[str], str]]] = REWRITERS
    if not text.isascii() or SIGN_OF_CODE.search(text):
        text = decode_characters(text, changes)
        if changes and is_well_formed(text) and is_whole(text):
            return as_repaired(text, changes)
        rewriters = (*LATE_DECODERS, *REWRITERS)
    found = read_text(text, changes)
    if found.addresses:
        return found
    for name, rewrite in rewriters:
        rewritten = rewrite(text)
        if rewritten != text:
            again = read_text(rewritten, {**changes, name: None})
            if again.addresses:
                return again
    suggestion = found.suggestion
    if suggests and suggestion is None:
        suggestion = read_rewritten(cell) or read_rewritten(text) or guess_address(text)
    if suggestion is not None:
        suggestion = unwrap_address(suggestion) or suggestion
        if names_nobody(suggestion):
            suggestion = None
    return RepairedCell(suggestion=suggestion)


def is_unclear(cell: str) -> bool:
    """Whether a person should look at a cell in which no address is certain.

    >>> is_unclear("ada@vol ny.com"), is_unclear("lunch @ 12.30")
    (True, False)
    """
    if len(cell) >= MAX_CELL:
        return "@" in cell
    text = remove_invisible(cell)
    if not text.isascii() or SIGN_OF_CODE.search(text):
        text = decode_characters(text, {})
    return SIGN_IN_ADDRESS.search(text) is not None or may_hold_address(text)


def repair_word(word: str, *, suggests: bool) -> RepairedCell:
    """Repair a bare word: an address is the whole of it, or there is none."""
    local, _, domain = word.partition("@")
    if guess_domain(domain) is None and "_" not in domain:
        return NOTHING
    if is_well_formed(word) and is_whole(word):
        return as_repaired(word, {})
    if "_" in domain and is_whole(word) and accept_leniently(word):
        return as_repaired(word, {})
    suggestion = None
    if suggests:
        suggestion = guess_parts(local, domain)
    if suggestion is not None and names_nobody(suggestion):
        suggestion = None
    return RepairedCell(suggestion=suggestion)


def read_rewritten(text: str) -> str | None:
    """The address of a text once its signs and letters are rewritten, if it is one then.

    Its signs are typographic, or its letters were decoded wrongly.
    """
    if text.isascii():
        return None
    for rewrite in (write_plain_signs, decode_again):
        plain = rewrite(text)
        if plain != text:
            found = repair_cell(plain, suggests=False)
            if len(found.addresses) == 1:
                return found.addresses[0]
    return None


def read_text(text: str, changes: dict[str, None]) -> RepairedCell:
    """Read the addresses of a text, if the rest of the text is certainly not a part of them."""
    if not SIGN_IN_ADDRESS.search(text):
        return NOTHING
    if "\u202e" in text:  # the order in which a person reads the text is reversed
        return NOTHING
    places, is_complete = find_addresses(text)
    if not places:
        return NOTHING
    distinct = distinct_addresses(places)
    if not is_complete and len(distinct) == 1:
        return RepairedCell(suggestion=canonical_form(distinct[0]))
    if not is_complete or not is_separated(text, places):
        return NOTHING
    if len(distinct) > 1:
        return RepairedCell(addresses=tuple(map(canonical_form, distinct)))
    return as_repaired(distinct[0], {**changes, **dict.fromkeys(changes_of(text, places))})


def distinct_addresses(places: Sequence[Place]) -> list[str]:
    """The addresses that differ in more than their case, each as it was written first."""
    if len(places) == 1:
        return [places[0].address]
    distinct: dict[str, str] = {}
    for place in places:
        distinct.setdefault(folded_key(place.address), place.address)
    return list(distinct.values())


def as_repaired(written: str, changes: dict[str, None]) -> RepairedCell:
    """The cell of one address, in its canonical form; of none if the address says so itself."""
    if names_nobody(written):
        return NOTHING
    address = address_key(written)
    canonical = address
    if not address.isascii():
        canonical = canonical_form(address)
    if canonical != address:
        changes = {**changes, "unicode": None}
    if address != written:
        changes = {**changes, "case": None}
    return RepairedCell((canonical,), tuple(changes))
