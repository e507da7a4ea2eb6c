"""Addresses in a text: each at sign is read with the characters around it.

`find_addresses` goes from one at sign to the next. `address_at` reads the domain forwards and the
local part backwards, as far as their usual characters go, and asks whether the neighbours cannot be
a part of the address: `starts_here` and `ends_here`. An address that may be only a part of another
one is not read, since a wrong address is worse than none:

    Ada <ada@firm.com>, Tel. 1    an address between two signs that no address has at its ends
    "ada lovelace"@firm.com       a quote closes in front of the at sign: none
    o"brien@firm.com              the quote may have been typed for an apostrophe: none
    ada@firm.co..uk               the domain may go on behind the dots: none
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from ..checks.syntax.address import is_well_formed
from ..checks.syntax.lenient import accept_leniently
from .characters import CONTROLS
from .words import KNOWN, WORD, is_label

# At signs without an address; a text with one is not repaired, so the rest need not be read.
MAX_FAILURES = 100
MAX_LOCAL = 255  # characters looked at before an at sign, and behind it
LONGEST_LINK = 300  # characters looked at before an address that may be in a link
# The usual characters of a local part, read from its end to its beginning.
LOCAL_BACKWARDS = re.compile(r"(?:[\w+\-][\w.+'&\-]*)?\w")
# Every character of a local part (RFC 5322 section 3.2.3).
ATOM_END = re.compile(r"[\w.!#$%&'*+/=?^`{|}~\-]*\Z")
LABEL = r"[^\W_](?:[\w\-]*[^\W_])?"
DOMAIN = re.compile(rf"{LABEL}(?:\.{LABEL})+")
# It is in every text that holds an address; a pattern that begins with a literal is fast.
SIGN_IN_ADDRESS = re.compile(r"@(?<=[\w+\-\"]@)[^\W_][\w\-]*\.[^\W_]")
# A local part in quotes, from its end to its beginning; `accept_leniently` says which are accepted.
QUOTED_BACKWARDS = re.compile(r'"[^"@\s]+"')
BEFORE_QUOTED = frozenset("<([:;,|")
HANDLE = re.compile(r"@\w{1,50}(?=[\s,;)]|\Z)")
# Signs that may touch an address, in front of it and behind it.
MAY_PRECEDE = frozenset('"“”„«»‹›‘’‚()[]<>【】「」『』《》〈〉:;,、|\\–—•·→►▪●◦')
MAY_FOLLOW = frozenset("\"“”„«»‹›‘’‚()[]<>【】「」『』《》〈〉:;,、|\\–—•·→'/?!*}{=#")
# Quotes, dashes and bullets between two letters: perhaps typed for an apostrophe, a hyphen or a
# dot.
QUOTES = dict.fromkeys('"“”„', '"“”„') | dict.fromkeys("‘’‚", "‘’‚'")
TYPED_SIGNS = frozenset([*QUOTES, *"–—•·"])
# In front of a closing quote; b' is of Python.
QUOTED = re.compile(r"(?:(?P<literal>[bBuU]')|\w{4,}')\w[^']*")
ESCAPE_NAME = re.compile(r"[nrt]|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}")
TERMINAL_COLOUR = re.compile(r"(?:\d{1,3}m|m)(?=\w)")
PATH = re.compile(r"~?/|[\w.\-]{1,100}/")
HEXADECIMAL = re.compile("[0-9A-F]{2}")
# Quoted-printable text goes on (RFC 2045 section 6.7).
CONTINUED = re.compile(r"\Z|\s*[\r\n]|[0-9A-F]{2}")
POSSESSIVE = re.compile(r"s(?!\w)")
TOP_LEVEL = re.compile(r"xn--[a-z0-9\-]+|[^\W\d_]*", re.IGNORECASE)  # RFC 3696 section 2: letters
NEXT_WORD = re.compile("[a-z]{2}[A-Z]")  # comPhone
PAIRS = {"'": "'", "{": "}", "*": "*", "**": "**", "|": "|", "`": "`", "/": "/"}
OPEN_QUOTE = re.compile(r"[\s=({\[,]'\Z")  # of a value in a program
BETWEEN_ADDRESSES = frozenset("/|&'=*")  # may be all that is between two addresses
OTHER_SCRIPT = re.compile("[^\x00-\u024f\u1e00-\u1eff]")
LATIN_LETTER = re.compile("[A-Za-z]")


class Place(NamedTuple):
    """An address in a text."""

    start: int
    end: int
    address: str


def find_addresses(text: str) -> tuple[list[Place], bool]:
    """Find the addresses of a text, and whether each at sign belongs to one of them."""
    places: list[Place] = []
    failures = 0
    end = 0  # of the last address
    at = text.find("@")
    while at >= 0 and failures < MAX_FAILURES:
        place = address_at(text, at, end)
        if place is not None:
            places.append(place)
            end = place.end
        elif not is_handle(text, at, end):
            failures += 1
        at = text.find("@", at + 1)
    return places, failures == 0


def is_handle(text: str, at: int, end: int) -> bool:
    """Whether an at sign begins a name of a social network, separated from what is before it."""
    first = max(end, at - MAX_LOCAL)
    before = text[first:at].rstrip(" ")
    if before and before[-1] not in ",;:|/(\n\t":
        return False
    if at and text[at - 1].isalnum():
        return False
    return HANDLE.match(text, at) is not None


def address_at(text: str, at: int, earliest: int) -> Place | None:
    """The address around an at sign, if its neighbours cannot be a part of it."""
    domain = DOMAIN.match(text, at + 1, at + MAX_LOCAL)
    if domain is None:
        return None
    if text[at - 1 : at] == '"':
        return quoted_at(text, at, earliest, domain.end())
    first = max(earliest, at - MAX_LOCAL)
    local = LOCAL_BACKWARDS.match(text[first:at][::-1])
    if local is None:
        return None
    start = at - local.end()
    end = domain.end()
    if start == first > earliest:
        return None  # longer than what is looked at, or it touches the address before
    if not starts_here(text, start, earliest) or not ends_here(text, start, end):
        return None
    after = text[end : end + 1]
    if text[start] == "_" and after == "_":
        return None  # perhaps both are emphasis
    begin = start
    if after == "'":
        quoted = QUOTED.fullmatch(text, start, at)
        if quoted:
            if not quoted["literal"]:
                return None  # perhaps a word that touches a quoted address
            begin = quoted.end("literal")
    address = text[begin:end]
    is_accepted = is_well_formed(address)
    if not is_accepted and "_" in domain[0]:
        is_accepted = accept_leniently(address) is not None
    if is_accepted and is_whole(address):
        return Place(start, end, address)
    return None


def quoted_at(text: str, at: int, earliest: int, end: int) -> Place | None:
    """The address whose local part is in quotes because of its dots."""
    first = max(earliest, at - MAX_LOCAL)
    local = QUOTED_BACKWARDS.match(text[first:at][::-1])
    if local is None:
        return None
    start = at - local.end()
    before = text[start - 1 : start] if start > earliest else ""
    if start and not before.isspace() and before not in BEFORE_QUOTED:
        return None
    if not ends_here(text, start, end):
        return None
    address = text[start:end]
    if not is_whole(address) or not accept_leniently(address):
        return None
    return Place(start, end, address)


def starts_here(text: str, start: int, earliest: int) -> bool:
    """Whether the characters in front of an address cannot be a part of it."""
    if start == earliest:
        return start == 0  # two addresses without anything between them
    before = text[start - 1]
    if before == ".":
        return False
    if is_left_of_code(text, start):
        return False
    if before == "{" and text.startswith("{") and text.rstrip().endswith("}"):
        return True
    if before.isspace():
        return True
    if before in MAY_PRECEDE:
        if is_inside_word(text, start, earliest):
            return False
        if "://" not in text:
            return True
        first = max(earliest, start - LONGEST_LINK)
        tokens = text[first:start].split()
        return not tokens or not is_in_link(tokens[-1])
    if not before.isascii():
        # A bullet or a picture may be there, but not a wrongly decoded letter, nor an accent beside
        # its letter.
        if before in CONTROLS or unicodedata.combining(before):
            return False
        return start - 1 == earliest or text[start - 2].isspace()
    return is_separate_atom(text, start, earliest)


def is_separate_atom(text: str, start: int, earliest: int) -> bool:
    """Whether the characters in front of an address do not belong to it.

    A local part may have such characters.
    """
    first = max(earliest, start - MAX_LOCAL)
    before = text[first:start]
    found = ATOM_END.search(before)
    atom = found[0] if found else ""
    lead = before[: len(before) - len(atom)]
    if OPEN_QUOTE.search(before) and closes(text, start, "'"):
        return True
    if atom in PAIRS and closes(text, start, PAIRS[atom]):
        return True
    if earliest and not lead and atom in BETWEEN_ADDRESSES:
        return True
    if atom.endswith("=") and HEXADECIMAL.match(text, start):
        return False  # perhaps quoted-printable
    return may_drop_atom(atom, lead)


def is_left_of_code(text: str, start: int) -> bool:
    """Whether the name of an escape, or the rest of a terminal's colour, may be at `start`."""
    before = text[start - 1]
    if before == "\\":
        return ESCAPE_NAME.match(text, start) is not None
    if before == "[" and TERMINAL_COLOUR.match(text, start):
        return text[start] != "m" or not closes(text, start, "]")
    return False


def is_inside_word(text: str, start: int, earliest: int) -> bool:
    """Whether the sign in front of `start` may be part of a word, as in O’Brien and Jean–Luc."""
    sign = text[start - 1]
    first = max(earliest, start - MAX_LOCAL)
    before = text[first : start - 1]
    if sign not in TYPED_SIGNS or not before[-1:].isalnum():
        return False
    quotes = QUOTES.get(sign)
    if quotes:
        is_closed = closes(text, start, tuple(quotes))
        if is_closed or re.search(rf"(?<!\w)[{quotes}][^{quotes}]*\Z", before):
            return False
    word = WORD.findall(before)[-1].lower()
    local = text[start : text.find("@", start)].lower()
    if word.isdigit() or word in re.split(r"[._+\-]", local):
        return False
    return len(word) <= 2 or word not in KNOWN  # o’brien: a letter is not a conjunction here


def closes(text: str, start: int, sign: str | tuple[str, ...]) -> bool:
    """Whether the address that begins at `start` is followed by `sign`, the other one of a pair."""
    at = text.find("@", start)
    domain = DOMAIN.match(text, at + 1, start + 2 * MAX_LOCAL)
    return domain is not None and text.startswith(sign, domain.end())


def may_drop_atom(atom: str, lead: str) -> bool:
    """Whether characters of a local part do not belong to the address behind them.

    `lead` is before them.
    """
    if atom == "//":
        return lead.lower().endswith("mailto:")
    if atom == "#":
        return lead.endswith(";")  # 12;#ada@firm.com: a value and its number
    if atom == "-":
        return bool(lead.strip())  # behind a label; alone it may belong to the address
    if atom == "/":
        return lead[-1:].isspace()
    if atom.endswith("="):
        name = re.split(r"[?&=/]", atom[:-1])[-1]
        return is_label(name) or "?" in atom or "://" in lead or not (name or lead)
    return False


def is_in_link(token: str) -> bool:
    """Whether the text before a host is the user of a link, as in ``ssh://git:``."""
    scheme, sign, rest = token.rpartition("://")
    if not sign or scheme.lower().endswith("mailto"):
        return False
    return re.search(r"[=(<\[\"']|[;,|]\Z", rest) is None


def ends_here(text: str, start: int, end: int) -> bool:
    """Whether the characters behind an address cannot be a part of it."""
    after = text[end : end + 1]
    next_one = text[end + 1 : end + 2]
    if after == ":":
        return PATH.match(text, end + 1) is None  # git@firm.com:ada/tool.git
    if after == "=":
        return CONTINUED.match(text, end + 1) is None
    if after == "\\":
        is_inside = next_one.isalnum() or next_one in ".\r\n"
        return not next_one or not is_inside or next_one in "nrt"
    if after and after in "·•'\"’" and next_one.isalnum():  # perhaps a sign typed for a dot
        if start > 0 and text[start - 1] == after:
            return True
        return after in "'’" and POSSESSIVE.match(text, end + 1) is not None
    if not after or after.isspace() or after in MAY_FOLLOW:
        return True
    if after == ".":  # ada@firm.co..uk
        behind_dots = text[end : end + MAX_LOCAL].lstrip(".")
        next_one = behind_dots[:1]
        return not (next_one.isalnum() or next_one in ("_", "-"))
    if after == "-":
        return not next_one or next_one in "->"
    if after == "_":
        return not text[end : end + MAX_LOCAL].strip("_")
    if after in "`~&":
        return not next_one or next_one.isspace() or after == "&"
    return not after.isascii() and (not next_one or next_one.isspace())


def is_whole(address: str) -> bool:
    """Whether no word touches the end of an address, or its beginning in another script."""
    top_level = address.rpartition(".")[2]
    if address.isascii() and top_level.isalpha() and top_level.islower():
        return True  # as nearly all are
    if not TOP_LEVEL.fullmatch(top_level) or NEXT_WORD.search(top_level):
        return False
    return not mixes_scripts(address)


def mixes_scripts(address: str) -> bool:
    """Whether a part of an address is written in two scripts, as when a word touches it."""
    if address.isascii():
        return False
    last = address[-1]
    is_accented = not last.isascii() and not OTHER_SCRIPT.match(last)
    if is_accented and LATIN_LETTER.match(address[-2]):
        # Not a top-level domain; such letters are left of signs that were decoded wrongly.
        return True
    local, _, domain = address.rpartition("@")
    top_level = domain.rpartition(".")[2]
    for part in (local, top_level):
        if OTHER_SCRIPT.search(part) and LATIN_LETTER.search(part):
            return True
    return False
