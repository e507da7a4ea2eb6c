"""Two forms of an address that the syntax check refuses, and that mail systems carry.

    "hoge."@docomo.ne.jp      a local part with a dot at an end or two dots side by side, in quotes:
                              RFC 5321 section 4.1.2 has it, and carriers gave such names out
    ada@my_host.firm.com      an underscore in a label below the registered domain: the DNS has such
                              names (RFC 2181 section 11), registries do not

They are accepted where cells are repaired, and nowhere else: the syntax check, a single check and
the service refuse them, and a service of others is not asked about them. Of quoted local parts only
these are accepted: no blank, at sign or escape. The registered label, and one of underscores alone,
stay refused.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..lists.suffixes import registered_domain
from .address import (
    SHORTEST_DOMAIN,
    SHORTEST_LOCAL,
    canonical_form,
    is_well_formed,
    normalize_domain,
)
from .faults import MAX_OCTETS

# The characters of a dot-atom (RFC 5322 section 3.2.3).
QUOTED_DOTS = re.compile(r'"(?P<text>[A-Za-z0-9_!#$%&\'*+\-/=?^`{|}~.]+)"')
ODD_DOTS = re.compile(r"^\.|\.\.|\.$")


class LenientAddress(NamedTuple):
    """An address in one of the two forms."""

    text: str  # its canonical form
    local: str  # with its quotes
    ascii_domain: str


def accept_leniently(text: str) -> LenientAddress | None:
    """The address, if a text is one of the two forms, or both.

    None for any other, also for a plain address.

    >>> accept_leniently('"hoge."@Docomo.NE.jp').text
    '"hoge."@docomo.ne.jp'
    >>> accept_leniently("ada@my_host.firm.com").ascii_domain
    'my_host.firm.com'
    >>> others = ('"hoge"@docomo.ne.jp', "ada@my_firm.com", "ada@firm.com")
    >>> [accept_leniently(text) for text in others]
    [None, None, None]
    """
    if len(text) > MAX_OCTETS:
        return None
    local, _, domain = text.rpartition("@")
    is_quoted = has_odd_dots_in_quotes(local)
    if not is_quoted and not is_well_formed(f"{local}@{SHORTEST_DOMAIN}"):
        return None
    if "_" in domain:
        if not may_have_underscores(domain):
            return None
        ascii_domain = display = domain.lower()
    elif is_quoted:
        name = normalize_domain(domain)
        if name is None:
            return None
        ascii_domain = name.ascii
        display = canonical_form(f"{SHORTEST_LOCAL}@{domain}").partition("@")[2]
    else:
        return None
    if len(f"{local}@{ascii_domain}{display}".encode()) > MAX_OCTETS:
        return None
    return LenientAddress(f"{local}@{display}", local, ascii_domain)


def has_odd_dots_in_quotes(local: str) -> bool:
    """Whether a local part is a dot-atom in quotes, but for its dots.

    >>> [has_odd_dots_in_quotes(local) for local in ('"a..b"', '"a.b"', '"."')]
    [True, False, False]
    """
    quoted = QUOTED_DOTS.fullmatch(local)
    if quoted is None:
        return False
    return ODD_DOTS.search(quoted["text"]) is not None and quoted["text"].strip(".") != ""


def may_have_underscores(domain: str) -> bool:
    """Whether each underscore of an ASCII domain may be there.

    It must be below the registered domain, in a label with a letter or digit.
    """
    # A letter in its place makes a name that the syntax check can judge.
    if not domain.isascii() or not is_well_formed(f"{SHORTEST_LOCAL}@{domain.replace('_', 'x')}"):
        return False
    domain = domain.lower()
    if "_" in registered_domain(domain):
        return False
    for label in domain.split("."):
        if "_" in label and (not label.strip("_-") or label.startswith("xn--")):
            return False
    return True
