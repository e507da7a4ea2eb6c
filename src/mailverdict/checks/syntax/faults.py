"""Messages for refused addresses: one table of faults, read from top to bottom.

The first match decides.

The table is searched only after an address was refused, so a row need not be a rule of any RFC: its
message has to be true of every refused text that it matches. The most helpful rows come first.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field

from email_validator import SPECIAL_USE_DOMAIN_NAMES
from email_validator.rfc_constants import EMAIL_MAX_LENGTH

# RFC 5321 section 4.5.3.1.3 less the angle brackets (RFC 3696 erratum 1690).
MAX_OCTETS = EMAIL_MAX_LENGTH
TOO_LONG = f"The address is longer than {MAX_OCTETS} octets."


@dataclass(frozen=True, slots=True)
class SyntaxFault:
    r"""One row of the table.

    The pattern uses the syntax that ``re`` and RE2 share (RE2 writes ``\Z`` as ``\z``). RE2 gets
    ASCII texts only, since the two differ for others.
    """

    pattern: str  # a group `char` captures the character to name
    sentence: str  # {char} stands for the captured character
    sample: str  # an address with this fault and none of an earlier row
    non_ascii: bool = False  # only non-ASCII texts can have it
    search: Callable[[str], re.Match[str] | None] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the pattern once."""
        object.__setattr__(self, "search", re.compile(self.pattern, re.DOTALL).search)


RESERVED = "|".join(re.escape(name) for name in SPECIAL_USE_DOMAIN_NAMES)

SYNTAX_FAULTS: tuple[SyntaxFault, ...] = (
    SyntaxFault(r"\A\Z", "There is no address.", ""),
    SyntaxFault(
        "\\A[^@]*(?P<char>[\uff20\ufe6b])[^@]*\\Z",
        "There is {char} where the @ should be.",
        "ada\uff20web.de",
        non_ascii=True,
    ),
    SyntaxFault(r"\A[^@]*\Z", "There is no @.", "ada.web.de"),
    SyntaxFault(
        r"\A[Mm][Aa][Ii][Ll][Tt][Oo]:", "It is a link: remove 'mailto:'.", "mailto:ada@web.de"
    ),
    SyntaxFault(
        r'\A"', "The part before the @ is in quotes, which is not accepted.", '"ada b"@web.de'
    ),
    # Between two @ a separator means a list; without one it is a typing error.
    SyntaxFault(
        r"@[^@]*[\t\n\r ,;|/&][^@]*@",
        "There is more than one address: keep one per row.",
        "ada@web.de; ben@web.de",
    ),
    SyntaxFault(r"@.*@", "There is more than one @.", "ada@home@web.de"),
    SyntaxFault(
        r"<[^<>]*@[^<>]*>\Z",
        "There is a name or angle brackets around it: keep what is inside the brackets.",
        "Ada <ada@web.de>",
    ),
    SyntaxFault(r"\A[ \t]*@", "There is nothing before the @.", "@web.de"),
    SyntaxFault(r"@[ \t]*\Z", "There is nothing after the @.", "ada@"),
    SyntaxFault(
        r"(?P<char>[\x00-\x1f\x7f])",
        "There is a control character in it: {char}.",
        "ada\x00@web.de",
    ),
    SyntaxFault(
        r"\([^()]*\)",
        "There is a comment in parentheses, which is not accepted.",
        "ada(work)@web.de",
    ),
    SyntaxFault(
        r"@\[.*\]\Z",
        "The domain is an IP address in brackets, which is not accepted.",
        "ada@[192.0.2.7]",
    ),
    SyntaxFault(r" ", "There is a blank inside.", "ada b@web.de"),
    SyntaxFault(
        r"\A[^@]*?(?P<char>[\"(),:;<>\[\\\]])",
        "{char} is not accepted before the @.",
        "ada,b@web.de",
    ),
    SyntaxFault(
        r"@.*?(?P<char>[!-,/:-@\[-^`{-~])", "{char} is not accepted in a domain.", "ada@my*web.de"
    ),
    SyntaxFault(
        "@[^_]*_",
        "'_' (U+005F) is not accepted in a domain; DNS carries such names, but no mail address "
        "has one (RFC 5321).",
        "ada@my_web.de",
    ),
    SyntaxFault(r"\A\.", "There is a dot at the start.", ".ada@web.de"),
    SyntaxFault(r"\.\.", "There are two dots in a row.", "ada..b@web.de"),
    SyntaxFault(r"\.@", "There is a dot just before the @.", "ada.@web.de"),
    SyntaxFault(r"@\.", "There is a dot just after the @.", "ada@.web.de"),
    SyntaxFault(r"\.\Z", "There is a dot at the end.", "ada@web.de."),
    # The ideographic and full-width stops separate labels too (UTS 46).
    SyntaxFault("@[^.\u3002\uff0e\uff61]*\\Z", "There is no dot in the domain.", "ada@web"),
    SyntaxFault(r"@(?:.*\.)?-", "A label of the domain starts with a hyphen.", "ada@-web.de"),
    SyntaxFault(r"@.*-(?:\.|\Z)", "A label of the domain ends with a hyphen.", "ada@web-.de"),
    SyntaxFault(
        r"@.*[0-9A-Za-z-]{64}",
        "A label of the domain is longer than 63 octets.",
        "ada@" + "w" * 64 + ".de",
    ),
    SyntaxFault(
        r"@(?:.*\.)?(?:[^Xx.][^.]|[Xx][^Nn.])--",
        "A label of the domain has hyphens in its third and fourth place, which only 'xn--' names "
        "may have.",
        "ada@ab--cd.de",
    ),
    SyntaxFault(
        r"\.[0-9A-Za-z-]*[0-9]\Z",
        "The top-level domain does not end with a letter.",
        "ada@192.0.2.7",
    ),
    SyntaxFault(
        rf"@(?:.*\.)?(?i:{RESERVED})\Z",
        "The domain is reserved for special use and receives no mail from outside.",
        "ada@printer.local",
    ),
)

UNSAFE = "There is a character that addresses may not have: {char}."
LOCAL_CHANGED = "The part before the @ is not accepted after Unicode normalization (NFC)."
NOT_IDNA = "The domain is not a valid internationalized domain name (IDNA 2008)."
TOO_LONG_NORMALIZED = f"The address is longer than {MAX_OCTETS} octets once it is normalized."


def search_faults(text: str) -> str | None:
    """Return the message of the first row that matches `text`, or None.

    >>> search_faults("ada,b@web.de")
    "',' (U+002C) is not accepted before the @."
    """
    for fault in SYNTAX_FAULTS:
        match = fault.search(text)
        if match:
            named = {name: describe_character(char) for name, char in match.groupdict().items()}
            return fault.sentence.format(**named)
    return None


@functools.lru_cache(maxsize=4096)
def describe_character(char: str) -> str:
    r"""Name a character so that it can be found even if it is invisible.

    >>> describe_character(","), describe_character("\u200b"), describe_character("\x00")
    ("',' (U+002C)", 'U+200B (ZERO WIDTH SPACE)', 'U+0000')
    """
    code = f"U+{ord(char):04X}"
    if char.isprintable() and not char.isspace() and unicodedata.category(char)[0] != "M":
        return f"'{char}' ({code})"
    name = unicodedata.name(char, "")
    return f"{code} ({name})" if name else code


def describe_unsafe(text: str) -> str | None:
    """Return a message that names the first unsafe character, or None if there is none."""
    unsafe = find_unsafe(text)
    return UNSAFE.format(char=describe_character(unsafe)) if unsafe else None


def describe_non_ascii(text: str, *, local_ok: bool, domain_ok: bool) -> str:
    """Return a message for a refused text that no row matches.

    The text has one @ and no unsafe characters.

    `local_ok` and `domain_ok`: whether each side is accepted beside a short other side.
    """
    if len(unicodedata.normalize("NFC", text).encode()) > MAX_OCTETS or (local_ok and domain_ok):
        return TOO_LONG_NORMALIZED
    return NOT_IDNA if local_ok else LOCAL_CHANGED


def find_unsafe(text: str) -> str | None:
    """Find the first unsafe character, or misplaced mark.

    Unsafe are control, format, surrogate, private, unassigned and space characters.
    """
    before = "@"
    for char in text:
        category = unicodedata.category(char)[0]
        if category in "CZ" or (category == "M" and before == "@"):
            return char
        before = char
    return None
