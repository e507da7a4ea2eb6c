"""Repair of one cell that is not an address as it stands: the address in it is found, or one is suggested.

`repair_cell` repairs one cell, in this order: invisible characters, escapes, HTML, width, bracketed at signs and dots;
then every address of the text is read with the text around it; if there is none, the text is rewritten
(percent-encoding, quoted-printable text, blanks in a domain, parts of a list without an address) and read again. *Safe*
repairs remove the text around an address or write a character in another standard form; they are applied. Repairs to
*ask* about guess what was meant; their result is only a suggestion. `REPAIRS` lists them all.

An address is only read where its neighbours cannot be a part of it: a wrong address is worse than none. Every pattern
is bounded, so the time grows with the length of the cell and not faster.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

from ..checks.lists.root_zone import is_top_level
from ..checks.syntax.address import canonical_form, is_well_formed
from ..model.address import address_key, folded_key
from .guess import BLANK_AT_SIGN, decode_again, guess_address, guess_parts, may_hold_address, write_plain_signs
from .remarks import has_remark
from .words import DOT_WORDS, KNOWN, NOT_A_NAME, SENTENCE, is_label, is_role_word, word_set

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
           "percent-encoding of a link (RFC 3986), if decoding gives an address and the cell is not one"),
    Repair("escape", True, "\\u003cada@firm.com\\u003e", "ada@firm.com",
           "escapes of JSON, of Python and of quoted-printable text (RFC 2045) are another form of their character"),
    Repair("link", True, "mailto:ada@firm.com?subject=Hello", "ada@firm.com",
           "scheme and parameters of a link (RFC 6068), or the function of a spreadsheet"),
    Repair("label", True, "E-Mail: ada@firm.com", "ada@firm.com",
           "the name of the field, in many languages"),
    Repair("unwrapped", True, '"Lovelace, Ada" <ada@firm.com>', "ada@firm.com",
           "a display name (RFC 5322), quotes and brackets, also if one half is missing"),
    Repair("words", True, "ada@firm.com, Tel. 030 1234567", "ada@firm.com",
           "words, numbers and placeholders that are separated from a single address"),
    Repair("remark", True, "ada@firm.com - do not contact", "ada@firm.com",
           "words that ask for no mail, or say that the address is out of use; policies have a person review the row"),
    Repair("joined", True, "ada @firm. com", "ada@firm.com",
           "blanks beside the at sign or beside a dot of the domain, whose end is a top-level domain"),
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
           "an address as it stands, but its first characters are probably a quote, a label or an encoded blank"),
    Repair("look_alike", False, "\u0430da@firm.com", "ada@firm.com",
           "letters that look like others, or were decoded wrongly, and a symbol that touches an address"),
    Repair("typo_domain", False, "ada@gmial.com", "ada@gmail.com",
           "the domain is one typing error away from a large provider's"),
)  # fmt: skip


ACCEPTED = (
    "suggestion"  # among the names of repairs: the address is a suggestion that a person accepted
)


class RepairedCell(NamedTuple):
    """What was found in a cell that is not an address as it stands."""

    addresses: tuple[
        str, ...
    ] = ()  # distinct, in order; one: the cell is repaired; more: it holds several
    changes: tuple[str, ...] = ()  # names of the repairs that were applied; only for one address
    suggestion: str | None = (
        None  # the address that was probably meant, if there is none in `addresses`
    )
    is_unclear: bool = False  # an address can be read, but not with certainty


NOTHING = RepairedCell()
UNCLEAR = RepairedCell(is_unclear=True)

# --- one cell -------------------------------------------------------------------------------------------------------


# Nothing in such a text can separate an address from the rest.
BARE_WORD = re.compile(r"[0-9A-Za-z._+\-]{1,255}@[0-9A-Za-z._+\-]{0,255}[0-9A-Za-z]")


def repair_cell(cell: str, *, suggests: bool = True) -> RepairedCell:
    """Repair a cell that is not a well-formed address; without `suggests` no address that may be meant is looked for.

    >>> repair_cell("E-Mail: Ada@FIRM.com;")
    RepairedCell(addresses=('Ada@firm.com',), changes=('label', 'case'), suggestion=None, is_unclear=False)
    >>> repair_cell("ada@gmail,com").suggestion
    'ada@gmail.com'
    """
    if BARE_WORD.fullmatch(cell) and "_x00" not in cell:
        return repair_word(cell, suggests=suggests)
    if len(cell) >= MAX_CELL:
        return RepairedCell(is_unclear="@" in cell)
    text = remove_invisible(cell)
    changes: dict[str, None] = {}
    if text != cell:
        changes["blanks"] = None
        if is_well_formed(text) and is_whole(text):
            return as_repaired(text, changes)
    rewriters = REWRITERS
    if not text.isascii() or SIGN_OF_CODE.search(text):
        text = decode_characters(text, changes)
        if changes and is_well_formed(text) and is_whole(text):
            return as_repaired(text, changes)
        rewriters = (*LATE_DECODERS, *REWRITERS)
    found = read_text(text, changes)
    for name, rewrite in rewriters:
        if found.addresses:
            return found
        rewritten = rewrite(text)
        if rewritten != text:
            again = read_text(rewritten, {**changes, name: None})
            if again.addresses:
                return again
    if found.addresses:
        return found
    suggestion = found.suggestion
    if suggests and suggestion is None:
        suggestion = read_rewritten(cell) or read_rewritten(text) or guess_address(text)
    is_unclear = found.is_unclear or may_hold_address(text)
    return RepairedCell(suggestion=suggestion, is_unclear=is_unclear)


def repair_word(word: str, *, suggests: bool) -> RepairedCell:
    """Repair a bare word: an address is the whole of it, or there is none."""
    if is_well_formed(word) and is_whole(word):
        return as_repaired(word, {})
    suggestion = None
    if suggests:
        suggestion = guess_parts(*word.split("@"))
    is_unclear = SIGN_IN_ADDRESS.search(word) is not None or may_hold_address(word)
    return RepairedCell(suggestion=suggestion, is_unclear=is_unclear)


def read_rewritten(text: str) -> str | None:
    """The address of a text with typographic signs or wrongly decoded letters, if it is one once they are rewritten."""
    if text.isascii():
        return None
    for plain in (write_plain_signs(text), decode_again(text)):
        addresses = repair_cell(plain, suggests=False).addresses if plain != text else ()
        if len(addresses) == 1:
            return addresses[0]
    return None


def as_repaired(written: str, changes: dict[str, None]) -> RepairedCell:
    """The cell of one address, in its canonical form."""
    address = address_key(written)
    canonical = address if address.isascii() else canonical_form(address)
    if canonical != address:
        changes = {**changes, "unicode": None}
    if address != written:
        changes = {**changes, "case": None}
    return RepairedCell((canonical,), tuple(changes))


# --- characters -----------------------------------------------------------------------------------------------------

# An ASCII text without any of these, and without invisible characters, is the same decoded.
SIGN_OF_CODE = re.compile(r"[\\&<%=\[({]")
# C1 controls are not here: they are what is left of letters that were decoded wrongly.
INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202d\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
CONTROL = re.compile(
    r"\x1b\[[0-9;]{0,20}[A-Za-z]|[\x00-\x08\x0e-\x1b\x7f]"
)  # also the colours of a terminal
UTF_16 = re.compile(
    r"(?:ÿþ)?(?:[^\0]\0)+|(?:þÿ)?(?:\0[^\0])+"
)  # UTF-16 that was read as one octet a character
# Line ends that a program wrote as text: as Excel does (_x000D_), or as \\n behind an address.
ESCAPED_LINE = re.compile(r"_x00(?:0[9AaDd])_|(?<=[A-Za-z>\")])(?:\\[rnt])+(?=\s|\Z)")
ESCAPED_BREAK = re.compile(r"(@[\w\-]{1,63}(?:\.[\w\-]{1,63}){0,5}\.[A-Za-z]{2,12})(?:\\[rnt])+")
ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
TAG = re.compile(
    r"</?(?:a|abbr|address|b|big|body|br|center|cite|code|div|em|font|h[1-6]|head|hr|html|i|img|li|nobr|o:p|ol|p|pre|s"
    r"|small|span|strong|sub|sup|table|tbody|td|th|tr|tt|u|ul)(?=[\s/>])([^<>]{0,2000})>|<wbr ?/?>|<!--[^<>]{0,500}-->",
    re.IGNORECASE,
)
CUT_TAG = re.compile(r"<a\s[^<>]{0,2000}$", re.IGNORECASE)
HREF = re.compile(r"mailto:(?://)?([^\"'>\s?]{1,400})", re.IGNORECASE)
# Browsers show nothing between the parts of an address that markup hides from programs.
MARKED_AT = re.compile(
    r"(?<=\w)(?:<!--[^<>]{0,500}-->|<(b|i|em|strong|span|u)>)@(?:<!--[^<>]{0,500}-->|</\1>)(?=\w)"
)
PERCENT_CODE = re.compile(r"%[0-9A-Fa-f]{2}")
HEX_ESCAPE = re.compile(r"\\(?:u00|x)([2-7][0-9A-Fa-f])")
WRONGLY_DECODED = re.compile(
    "\u00e2\u20ac[\u0080-\u00bf\u2039\u0153\u2122\u02dc\u201c\u201d\u00a6]?|\u00ef\u00bb\u00bf|\u00c2(?=\\W|\\Z)"
)
QUOTED_PRINTABLE = re.compile(r"=(?:\r?\n|([2-7][0-9A-F]))")
# Full stops that NFKC would not make into the one meant. Of symbols, as the raised digit of a footnote, it would make
# letters and digits that touch an address.
TRANSLATED = dict.fromkeys(map(ord, "。｡．﹒"), ".")
SYMBOLS = ("<super>", "<sub>", "<circle>", "<square>", "<fraction>")  # decompositions
OPEN, CLOSE = r"[\[({<«【]", r"[\])}>»】]"
AT_WORD = re.compile(
    rf"\s{{0,5}}{OPEN}\s{{0,3}}(?:at|@|ät|et|at-sign|at sign)\s{{0,3}}{CLOSE}\s{{0,5}}",
    re.IGNORECASE,
)
DOT_WORD = re.compile(
    rf"\s{{0,5}}{OPEN}\s{{0,3}}(?:{'|'.join(sorted(DOT_WORDS))}|\.)\s{{0,3}}{CLOSE}\s{{0,5}}",
    re.IGNORECASE,
)
LIST_OF_ONE = re.compile(
    r"[\[({]\s*[bu]?(?P<quote>[\"'])(?P<text>(?:(?!(?P=quote))[^\\])*)(?P=quote)\s*,?\s*[\])}]"
)
BRACKETED_SIGN = re.compile(
    rf"{OPEN}\s{{0,3}}(?:@|\.|at|ät|et|{'|'.join(sorted(DOT_WORDS))})", re.IGNORECASE
)
CONTROLS = "".join(map(chr, range(0x80, 0xA0))) + "\ufffd"
WRONG_START = re.compile(
    f"[{CONTROLS}]{{1,100}}(?!\\w)"
)  # touching a word, it may be its first letter


def remove_invisible(text: str) -> str:
    """Remove blanks around the text and characters that nobody sees."""
    if "\0" in text and UTF_16.fullmatch(text):
        text = text.replace("\0", "")
    text = text if text.isascii() else INVISIBLE.sub("", text)
    text = (text if text.isprintable() else CONTROL.sub(" ", text)).strip()
    if "\\" in text or "_x00" in text:
        text = ESCAPED_BREAK.sub(r"\1 ", ESCAPED_LINE.sub(" ", text)).strip()
    return text if text.isascii() else WRONG_START.sub("", text.rstrip(CONTROLS)).strip()


def decode_list(text: str) -> str:
    """The text of a list with one, as JSON and Python write it."""
    found = LIST_OF_ONE.fullmatch(text) if text[:1] in ("[", "(", "{") else None
    return found["text"].strip() if found else text


def decode_html(text: str) -> str:
    """Replace entities by their characters and tags by blanks; the address of a mailto link stays."""
    if "&" in text and ";" in text:
        for _ in range(2):  # exports escape what was escaped before
            text = ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    if "<" in text:
        text = MARKED_AT.sub("@", text)
        text = CUT_TAG.sub(replace_tag, TAG.sub(replace_tag, text))
    return remove_invisible(text)


def replace_tag(tag: re.Match[str]) -> str:
    if tag[0][:4].lower() == "<wbr":
        return ""
    link = HREF.search(tag[0])
    return f" {unquote(link[1])} " if link else " "


def unify_width(text: str) -> str:
    if text.isascii():
        return text
    blanks = {ord(sign): " " for sign in set(text) if not sign.isascii() and is_symbol(sign)}
    return unicodedata.normalize("NFKC", text.translate(TRANSLATED | blanks)).strip()


def is_symbol(sign: str) -> bool:
    is_compatible = unicodedata.normalize("NFKC", sign) != sign
    return is_compatible and (
        unicodedata.category(sign) in ("So", "No")
        or unicodedata.decomposition(sign).startswith(SYMBOLS)
    )


def unify_at_sign(text: str) -> str:
    if not BRACKETED_SIGN.search(text):
        return text
    return DOT_WORD.sub(".", AT_WORD.sub("@", text))


def decode_percent(text: str) -> str:
    if not PERCENT_CODE.search(text):
        return text
    try:
        return remove_invisible(unquote(text, errors="strict"))
    except UnicodeDecodeError:
        return text


def decode_escapes(text: str) -> str:
    return HEX_ESCAPE.sub(replace_octet, text) if "\\" in text else text


def decode_quoted_printable(text: str) -> str:
    if "=" not in text or "?" in text or "://" in text:  # the parameters of a link
        return text
    return remove_invisible(QUOTED_PRINTABLE.sub(replace_octet, text))


def replace_octet(escape: re.Match[str]) -> str:
    """The ASCII character of an escape with two hexadecimal digits; nothing for one without."""
    return chr(int(escape[1], 16)) if escape[1] else ""


def remove_wrongly_decoded(text: str) -> str:
    """Remove what is left of quotes, blanks and a byte order mark that were UTF-8 and decoded as cp1252."""
    return text if text.isascii() else remove_invisible(WRONGLY_DECODED.sub(" ", text))


LATE_DECODERS = (
    ("punctuation", remove_wrongly_decoded),
    ("percent", decode_percent),
    ("escape", decode_quoted_printable),
)
DECODERS = (
    ("list", decode_list),
    ("escape", decode_escapes),
    ("html", decode_html),
    ("width", unify_width),
    ("at_sign", unify_at_sign),
)


def decode_characters(text: str, changes: dict[str, None]) -> str:
    """Apply the decoders; the names of those that changed something are added to `changes`."""
    for name, decode in DECODERS:
        decoded = decode(text)
        if decoded != text:
            text, changes[name] = decoded, None
    return text


# --- addresses in a text --------------------------------------------------------------------------------------------

MAX_FAILURES = 100  # at signs without an address; a text with one is not repaired, so the rest need not be read
MAX_LOCAL = 255  # characters looked at before an at sign, and behind it
# The usual characters of a local part, read from its end to its beginning.
LOCAL_BACKWARDS = re.compile(r"(?:[\w+\-][\w.+'&\-]*)?\w")
ATOM_END = re.compile(
    r"[\w.!#$%&'*+/=?^`{|}~\-]*\Z"
)  # every character of a local part (RFC 5322 section 3.2.3)
LABEL = r"[^\W_](?:[\w\-]*[^\W_])?"
DOMAIN = re.compile(rf"{LABEL}(?:\.{LABEL})+")
# It is in every text in which LOCAL_END and DOMAIN find an address; a pattern that begins with a literal is fast.
SIGN_IN_ADDRESS = re.compile(r"@(?<=[\w+\-]@)[^\W_][\w\-]*\.[^\W_]")
QUOTED_LOCAL = re.compile(
    r'"@[^\W_][\w\-]*\.[^\W_]'
)  # RFC 5321 section 4.1.2 has it, `verify` does not accept it
HANDLE = re.compile(r"@\w{1,50}(?=[\s,;)]|\Z)")
MAY_PRECEDE = frozenset(
    '"“”„«»‹›‘’‚()[]<>【】「」『』《》〈〉:;,、|\\–—•·→►▪●◦'
)  # touching an address
MAY_FOLLOW = frozenset(
    "\"“”„«»‹›‘’‚()[]<>【】「」『』《》〈〉:;,、|\\–—•·→'/?!*}{=#"
)  # the same behind it
# Quotes, dashes and bullets between two letters: perhaps typed for an apostrophe, a hyphen or a dot.
QUOTES = dict.fromkeys('"“”„', '"“”„') | dict.fromkeys("‘’‚", "‘’‚'")
TYPED_SIGNS = frozenset([*QUOTES, *"–—•·"])
QUOTED = re.compile(
    r"(?:(?P<literal>[bBuU]')|\w{4,}')\w[^']*"
)  # in front of a closing quote; b' is of Python
ESCAPE_NAME = re.compile(r"[nrt]|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}")
TERMINAL_COLOUR = re.compile(r"(?:\d{1,3}m|m)(?=\w)")
PATH = re.compile(r"~?/|[\w.\-]{1,100}/")
HEXADECIMAL = re.compile("[0-9A-F]{2}")
CONTINUED = re.compile(
    r"\Z|\s*[\r\n]|[0-9A-F]{2}"
)  # of quoted-printable text (RFC 2045 section 6.7)
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
    failures, end, at = 0, 0, text.find("@")
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
    before = text[max(end, at - MAX_LOCAL) : at].rstrip(" ")
    is_separate = not before or before[-1] in ",;:|/(\n\t"
    return (
        is_separate
        and (at == 0 or not text[at - 1].isalnum())
        and HANDLE.match(text, at) is not None
    )


def address_at(text: str, at: int, earliest: int) -> Place | None:
    """The address around an at sign, if its neighbours cannot be a part of it."""
    domain = DOMAIN.match(text, at + 1, at + MAX_LOCAL)
    if domain is None:
        return None
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
    if text[start] == "_" and text[end : end + 1] == "_":
        return None  # perhaps both are emphasis
    begin = start
    if text[end : end + 1] == "'":
        quoted = QUOTED.fullmatch(text, start, at)
        if quoted:
            if not quoted["literal"]:
                return None  # perhaps a word that touches a quoted address
            begin = quoted.end("literal")
    address = text[begin:end]
    if is_well_formed(address) and is_whole(address):
        return Place(start, end, address)
    return None


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
        token = text[max(earliest, start - 300) : start].split()
        return not is_inside_word(text, start, earliest) and (
            not token or not is_in_link(token[-1])
        )
    if not before.isascii():
        # A bullet or a picture may be there, but not a wrongly decoded letter, nor an accent beside its letter.
        is_letter = before in CONTROLS or unicodedata.combining(before)
        return not is_letter and (start - 1 == earliest or text[start - 2].isspace())
    return is_separate_atom(text, start, earliest)


def is_separate_atom(text: str, start: int, earliest: int) -> bool:
    """Whether the characters in front of an address do not belong to it, although a local part may have them."""
    before = text[max(earliest, start - MAX_LOCAL) : start]
    found = ATOM_END.search(before)
    atom = found[0] if found else ""
    lead = before[: len(before) - len(atom)]
    is_quoted = OPEN_QUOTE.search(before) is not None and closes(text, start, "'")
    if is_quoted or (atom in PAIRS and closes(text, start, PAIRS[atom])):
        return True
    if earliest and not lead and atom in BETWEEN_ADDRESSES:
        return True
    if atom.endswith("=") and HEXADECIMAL.match(text, start):
        return False  # perhaps quoted-printable
    return may_drop_atom(atom, lead)


def is_left_of_code(text: str, start: int) -> bool:
    """Whether the name of an escape, or what is left of a terminal's colour, may stand at `start`."""
    if text[start - 1] == "\\":
        return ESCAPE_NAME.match(text, start) is not None
    if text[start - 1] == "[" and TERMINAL_COLOUR.match(text, start):
        return text[start] != "m" or not closes(text, start, "]")
    return False


def is_inside_word(text: str, start: int, earliest: int) -> bool:
    """Whether the sign in front of `start` may be part of a word, as in O’Brien and Jean–Luc."""
    before = text[max(earliest, start - MAX_LOCAL) : start - 1]
    if text[start - 1] not in TYPED_SIGNS or not before[-1:].isalnum():
        return False
    quotes = QUOTES.get(text[start - 1])
    if quotes and (
        closes(text, start, tuple(quotes)) or re.search(rf"(?<!\w)[{quotes}][^{quotes}]*\Z", before)
    ):
        return False
    word = WORD.findall(before)[-1].lower()
    is_separate = word.isdigit() or word in re.split(
        r"[._+\-]", text[start : text.find("@", start)].lower()
    )
    return not (
        is_separate or (len(word) > 2 and word in KNOWN)
    )  # o’brien: a letter is not a conjunction here


def closes(text: str, start: int, sign: str | tuple[str, ...]) -> bool:
    """Whether the address that begins at `start` is followed by `sign`, the other one of a pair."""
    domain = DOMAIN.match(text, text.find("@", start) + 1, start + 2 * MAX_LOCAL)
    return domain is not None and text.startswith(sign, domain.end())


def may_drop_atom(atom: str, lead: str) -> bool:
    """Whether characters that a local part may have do not belong to the address behind them; `lead` is before them."""
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
    scheme, found, rest = token.rpartition("://")
    return (
        bool(found)
        and not scheme.lower().endswith("mailto")
        and not re.search(r"[=(<\[\"']|[;,|]\Z", rest)
    )


def ends_here(text: str, start: int, end: int) -> bool:
    """Whether the characters behind an address cannot be a part of it."""
    after, next_one = text[end : end + 1], text[end + 1 : end + 2]
    if after == ":":
        return PATH.match(text, end + 1) is None  # git@firm.com:ada/tool.git
    if after == "=":
        return CONTINUED.match(text, end + 1) is None
    if after == "\\":
        return not next_one or not (next_one.isalnum() or next_one in ".\r\n") or next_one in "nrt"
    if after and after in "·•'\"’" and next_one.isalnum():  # perhaps a sign typed for a dot
        is_quoted = start > 0 and text[start - 1] == after
        return is_quoted or (after in "'’" and POSSESSIVE.match(text, end + 1) is not None)
    if not after or after.isspace() or after in MAY_FOLLOW:
        return True
    if after == ".":  # ada@firm.co..uk
        next_one = text[end : end + MAX_LOCAL].lstrip(".")[:1]
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
    is_name = TOP_LEVEL.fullmatch(top_level) is not None and not NEXT_WORD.search(top_level)
    return is_name and not mixes_scripts(address)


def mixes_scripts(address: str) -> bool:
    """Whether a part of an address is written in two scripts, as when a word touches it."""
    if address.isascii():
        return False
    if (
        not address[-1].isascii()
        and not OTHER_SCRIPT.match(address[-1])
        and LATIN_LETTER.match(address[-2])
    ):
        return True  # no top-level domain; such letters are what is left of signs that were decoded wrongly
    local, _, domain = address.rpartition("@")
    return any(
        OTHER_SCRIPT.search(part) is not None and LATIN_LETTER.search(part) is not None
        for part in (local, domain.rpartition(".")[2])
    )


# --- lists and blanks -----------------------------------------------------------------------------------------------

# An address with blanks beside its at sign or beside the dots of its domain, at the end of a part of a text.
NAME = r"[^\W_][\w\-]{0,62}"
SPACED = re.compile(
    rf"(?<![\w.+\-])(?P<local>[\w.+\-]{{1,64}})(?P<blanks>\s{{0,3}})@\s{{0,3}}(?P<domain>{NAME}(?:\s{{0,3}}\.\s{{0,3}}{NAME}){{0,5}}"
    r"\s{0,3}\.\s{0,3}(?P<end>[A-Za-z]{2,18}))(?=\s{0,5}(?:\Z|[;,>)\n]))"
)
BLANKS = re.compile(r"\s+")
NETWORKS = word_set(
    "twitter x insta instagram ig facebook fb tiktok telegram tg linkedin youtube yt threads bluesky"
)
# Two addresses, or a part of one, are only read apart where one of these signs is between their at signs.
SIGN_BETWEEN = re.compile(r"@[^@;,|\n\r<>+.]*[;,|\n\r<>+.][^@]*@")
# A whole part of a list, in angle brackets or between two separators.
PART = re.compile(r"(?:[^;,|\n\r<>]|,(?!\s)){1,320}")
# The same domain again, behind a word that touches the first: two addresses with a sign or nothing between them.
TOUCHING = re.compile(
    r"(@([^\W_][\w\-]{0,62}(?:\.[\w\-]{1,63}){1,5}))[+\-]?(?=[^\W_][\w.+\-]{0,63}@\2(?![\w.\-]))",
    re.IGNORECASE,
)
PLUS_BETWEEN = re.compile(
    r"(@[^\W_][\w.\-]{0,200}\.[A-Za-z]{2,18})\s?\+\s?(?=[^\W_][\w.+\-]{0,63}@)"
)


def join_blanks(text: str) -> str:
    """Remove the blanks beside the at sign and the dots of a domain that ends in a top-level domain."""
    if len(text.split(None, 1)) == 1 or not BLANK_AT_SIGN.search(text):
        return text
    return SPACED.sub(join_spaced, text)


def join_spaced(found: re.Match[str]) -> str:
    domain, end = BLANKS.sub("", found["domain"]), found["end"]
    begins_sentence = end[0].isupper() and not domain.isupper()
    is_whole_before = len(end) > 2 and is_top_level(domain.split(".")[-2])  # firm.com .com
    if (
        not is_top_level(end)
        or begins_sentence
        or is_whole_before
        or (found["blanks"] and not may_be_alone(found))
    ):
        return found[0]
    return f"{found['local']}@{domain}"


def may_be_alone(found: re.Match[str]) -> bool:
    """Whether the word before a blank and an at sign is a local part, and not the end of a name or a network's name."""
    before = found.string[: found.start()].rstrip(" \t")
    words = before.split()
    is_begin = not words or before[-1] in ":;,<(\n" or is_label(words[-1])
    return is_begin and found["local"].lower() not in NETWORKS


def split_touching(text: str) -> str:
    """Write a separator between two addresses with a plus sign or nothing between them, if their domain is the same."""
    return TOUCHING.sub(r"\1; ", PLUS_BETWEEN.sub(r"\1; ", text))


def drop_bad_parts(text: str) -> str:
    """Remove the parts of a list that hold an at sign and no address, if another part holds one."""
    if not SIGN_BETWEEN.search(text):
        return text
    text = split_touching(join_blanks(text))
    return PART.sub(
        lambda part: part[0] if "@" not in part[0] or holds_address(part[0]) else " ", text
    )


def bad_parts(text: str) -> tuple[str, ...]:
    """The parts of a list that hold an at sign and no address.

    >>> bad_parts("ada@firm.com; bob@firm; cy@firm.com")
    ('bob@firm',)
    """
    parts = (found[0].strip() for found in PART.finditer(split_touching(join_blanks(text))))
    return tuple(part for part in parts if "@" in part and not holds_address(part))


def holds_address(part: str) -> bool:
    places, is_complete = find_addresses(part)
    return is_complete or bool(places)


REWRITERS = (("joined", join_blanks), ("part", drop_bad_parts))

# --- the text around addresses --------------------------------------------------------------------------------------


WORD = re.compile(r"[^\W_][\w'’.\-]*")
FORMULA_OR_LINK = re.compile(r"^=|://|mailto:", re.IGNORECASE)
WRAPPING = re.compile(r"[<>()\[\]{}\"“”„«»‹›【】「」《》'`]")
OPEN_BRACKET = re.compile(r"<([^<>]*)\Z")
NUMBER = re.compile(r"\d+(?:[.\-]\d+)*[.\-]*")  # or a date
SEGMENT_END = re.compile(r"[;|\n\r\t<(\[{]")
SIGN_TYPED = ",;:"  # on the keys beside the dot
PARTED = re.compile(r"[._]")
LONGEST_END = 4  # letters; shorter words behind an address may be the end of its domain


def read_text(text: str, changes: dict[str, None]) -> RepairedCell:
    """Read the addresses of a text, if the rest of the text is certainly not a part of them."""
    if not SIGN_IN_ADDRESS.search(text):
        return UNCLEAR if '"@' in text and QUOTED_LOCAL.search(text) else NOTHING
    if "\u202e" in text:  # the order in which a person reads the text is reversed
        return UNCLEAR
    places, is_complete = find_addresses(text)
    if not places:
        return UNCLEAR
    distinct = distinct_addresses(places)
    if not is_complete and len(distinct) == 1:
        return RepairedCell(suggestion=canonical_form(distinct[0]), is_unclear=True)
    if not is_complete or not is_separated(text, places):
        return UNCLEAR
    if len(distinct) > 1:
        return RepairedCell(addresses=tuple(map(canonical_form, distinct)))
    return as_repaired(distinct[0], {**changes, **dict.fromkeys(changes_of(text, places))})


def distinct_addresses(places: Sequence[Place]) -> list[str]:
    """The addresses that differ in more than their case, each as it was written first."""
    if len(places) == 1:
        return [places[0].address]
    found: dict[str, str] = {}
    for place in places:
        found.setdefault(folded_key(place.address), place.address)
    return list(found.values())


def is_separated(text: str, places: Sequence[Place]) -> bool:
    """Whether the text before, between and behind the addresses may be removed."""
    end = 0
    for place in places:
        gap = text[end : place.start]
        if end and gap.strip().lower() == "a":  # "and" in Czech, Slovak and other languages
            end = place.end
            continue
        if (gap and not may_drop_before(gap, place.address.partition("@")[0])) or (
            end and not may_drop_after(gap)
        ):
            return False
        end = place.end
    before = text[: places[0].start]
    return end == len(text) or len(WORD.findall(before, 0, 2_000)) > 1 or may_drop_after(text[end:])


def may_drop_before(text: str, local: str) -> bool:
    """Whether the text in front of an address is not a part of it that a blank or a comma cut off."""
    text = text[-2_000:]
    opened = OPEN_BRACKET.search(text)
    text = (
        opened[1] if opened else text
    )  # what is before the bracket is not a part of the address for certain
    words = WORD.findall(text)
    stripped = text.rstrip()
    if not words or not stripped:
        return True
    last, word, has_blank = stripped[-1], words[-1], stripped != text
    if word.lower().rstrip(".") in KNOWN or is_label(word.rstrip(".")) or NUMBER.fullmatch(word):
        return True
    if not (last.isalnum() or last in "._-'"):
        # ada,lovelace@firm.com: a sign typed for a dot
        return (
            has_blank
            or last not in SIGN_TYPED
            or len(words) > 1
            or not (word.islower() and word.isascii())
        )
    if last == "-" and stripped[-2:-1].isspace():
        return True
    if last == "'" and (stripped.count("'") > 1 or OPEN_QUOTE.search(stripped)):
        return True
    if "\t" in text[len(stripped) :]:
        return True
    if len(words) > 1:
        is_name = (
            len(words) == 2 and all(map(is_lower_ascii, words)) and text.replace(" ", "").isalpha()
        )
        return not is_name or not SENTENCE.isdisjoint(words)
    if last in "._-'":
        return False
    if OTHER_SCRIPT.search(word):
        return local.isascii()
    parts = re.split(r"[._+\-\d]", local.lower())
    is_title = (
        word.istitle() and PARTED.search(local) is not None
    )  # ada.lovelace@: it has all its parts
    return len(word) > 1 and (
        word.lower() in parts
        or (word[0].isupper() and word.lower() in local.lower())
        or (has_blank and word.lower() not in NOT_A_NAME and (is_title or is_role_word(word)))
    )


def is_lower_ascii(word: str) -> bool:
    return word.isascii() and word.islower()


def may_drop_after(text: str) -> bool:
    """Whether the text behind an address is not a part of it that a blank or a comma cut off."""
    text = text[:2_000]
    head = text.lstrip()
    sign = head[:1]
    if not sign:
        return True
    if sign == ".":
        return re.match(r"\.\s*\w", head) is None
    is_cut = sign.isalnum() or (sign in SIGN_TYPED and head[1:2].isalnum())
    if not is_cut:
        return True
    start = 0 if sign.isalnum() else 1
    stop = SEGMENT_END.search(head, start)
    segment = head[start : stop.start() if stop else None].strip()
    words = WORD.findall(segment)
    if len(words) != 1:
        return not words or words[0].lower() not in DOT_WORDS
    word = words[0].rstrip(".")
    if (
        word.lower() in KNOWN
        or word.lower().startswith(("www.", "http"))
        or (word[0].isdigit() and "." not in word)
    ):
        return True
    return not (is_lower_ascii(word) and (len(word) <= LONGEST_END or "." in word))


def changes_of(text: str, places: Sequence[Place]) -> Iterator[str]:
    """Name the repairs that removed the text around the addresses."""
    around = text[: places[0].start] + text[places[-1].end :]
    if around.strip():
        yield name_change(around)
    if len(places) > 1:
        yield "repeated"


def name_change(around: str) -> str:
    """Name the repair that removed this text around an address."""
    words = WORD.findall(around)
    if has_remark(around):
        return "remark"
    if FORMULA_OR_LINK.search(around):
        return "link"
    if WRAPPING.search(around):
        return "unwrapped"
    if words and all(is_label(word.strip(".-")) for word in words):
        return "label"
    return "punctuation" if all(word.rstrip(".").isdigit() for word in words) else "words"
